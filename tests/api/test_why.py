"""GET …/why: why an operation of a result is as it is."""
import subprocess

import pytest

from support.mcp_client import TWO
from support.paths import NKX


@pytest.fixture(scope="module")
def result(server):
    return server.post({"source": TWO, "filename": "two.py"}, cache=None).json


def why(server, result, query):
    return server.get(f"/api/v1/results/{result['key']}/why?{query}")


def line_with(result, kernel, stage, text):
    (s,) = [s for s in result["kernels"][kernel]["stages"] if s["name"] == stage]
    return 1 + [text in x for x in s["text"].split("\n")].index(True), s["index"]


def test_any_kernel_of_the_file_is_told_by_name_and_by_number(server, result):
    line, index = line_with(result, 1, "linalg-to-nisa", "op=exp")
    answers = [why(server, result, f"stage={stage}&line={line}&kernel={kernel}") for stage in ("linalg-to-nisa", index) for kernel in ("second", 1)]
    assert [a.status for a in answers] == [200] * 4
    assert answers[0].json == answers[1].json and (answers[0].json["kernel"], answers[0].json["line"]) == ("second", line)
    for a in answers:
        assert "from two.py:10:" in a.json["text"] and "exponential" in a.json["text"] and "Rule tile-size" in a.json["text"]
    line, _ = line_with(result, 0, "linalg-to-nisa", "op0=add")
    first = why(server, result, f"stage=linalg-to-nisa&line={line}").json
    assert first["kernel"] == "first" and "two.py:6:" in first["text"]


def test_it_says_what_the_terminal_says(server, result, tmp_path):
    (tmp_path / "two.py").write_text(TWO)
    line, _ = line_with(result, 0, "linalg-to-nisa", "op0=add")
    said = subprocess.run([NKX, "why", "two.py", "linalg-to-nisa", str(line)], capture_output=True, text=True, cwd=tmp_path, check=True).stdout
    assert said == why(server, result, f"stage=linalg-to-nisa&line={line}").json["text"]


@pytest.mark.parametrize(("query", "status"), [
    ("", 400), ("stage=cse", 400), ("line=3", 400), ("stage=cse&line=0", 400), ("stage=cse&line=-1", 400), ("stage=cse&line=x", 400),
    ("stage=cse&line=999999999", 400), ("stage=&line=1", 400), ("stage=no-such&line=1", 404), ("stage=cse:99&line=1", 404),
    ("stage=trace&line=1", 404), ("stage=trace&line=99999999", 404), ("stage=trace&line=3&kernel=third", 404), ("stage=trace&line=3&kernel=2", 404),
])
def test_wrong_questions_are_refused(server, result, query, status):
    assert why(server, result, query).status == status


def test_an_unknown_result_is_not_found(server):
    assert server.get(f"/api/v1/results/{'0' * 64}/why?stage=cse&line=1").status == 404
