"""Versions of the compiler side by side: two releases made from this tree, the earlier one with a pass that does nothing yet."""
import json
import os
import shutil
import subprocess

import pytest

from support.paths import EXAMPLES, NKX
from support.releases import EARLIER, EARLIER_PIPELINE, PASS, pack, wait_for
from support.server import JOB, OURS, Server

SOFTMAX = {"source": next(e for e in EXAMPLES if "softmax" in e.name).read_text()}


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    root = tmp_path_factory.mktemp("releases")
    return {"earlier": pack(root / "earlier", EARLIER), "today": pack(root / "today")}


@pytest.fixture(scope="module")
def both(releases):
    with Server("--workers", "2", "--worker-version", f"6={releases['earlier']}", "--worker-version", f"7={releases['today']}") as s:
        wait_for(s, "6")
        yield s


def text_of(result, stage):
    return next(s["text"] for s in result["kernels"][0]["stages"] if s["name"] == stage)


def test_the_list_names_them_todays_first(both):
    today, earlier = both.get("/api/v1/versions").json["versions"]
    assert today == {"name": "7", "release": today["release"], "pipeline": both.health["pipeline"], "is_current": True}
    assert earlier == {"name": "6", "release": "0.1.0", "pipeline": EARLIER_PIPELINE, "is_current": False}


def test_a_kernel_is_compiled_by_the_version_that_the_request_names(both):
    today = both.compile(**SOFTMAX, inputs=[])
    earlier = both.compile(**SOFTMAX, inputs=[], version="6")
    assert today["status"] == earlier["status"] == "ok"
    assert today["pipeline"] == both.health["pipeline"] and earlier["pipeline"] == EARLIER_PIPELINE
    assert text_of(today, "coalesce-transfers") == text_of(earlier, "coalesce-transfers")
    assert text_of(earlier, PASS) == text_of(earlier, "schedule")
    assert text_of(today, PASS) != text_of(earlier, PASS)


def test_the_pipelines_own_name_and_todays_are_names_too(both):
    keys = {v: both.post({**JOB, "version": v}).json["key"] for v in ("6", EARLIER_PIPELINE, "7", both.health["pipeline"])}
    assert keys["6"] == keys[EARLIER_PIPELINE] != keys["7"] == keys[both.health["pipeline"]] == both.post(JOB).json["key"]


def test_memory_and_store_keep_versions_apart(both):
    source = JOB["source"] + "# of this test\n"
    asked = [{"source": source, "inputs": JOB["inputs"], **v} for v in ({}, {"version": "6"})]
    first = [both.post(a, cache=None).json for a in asked]
    again = [both.post(a, accept="application/x-ndjson", cache=None) for a in asked]
    assert [a.headers["X-Nkx-Cached"] for a in again] == ["1", "1"]
    assert [json.loads(a.body.splitlines()[0])["pipeline"] for a in again] == [f["pipeline"] for f in first] == [both.health["pipeline"], EARLIER_PIPELINE]
    assert first[0]["key"] != first[1]["key"]
    for f in first:
        assert both.get(f"/api/v1/results/{f['key']}").json["pipeline"] == f["pipeline"]


def test_versions_differ_by_their_results(both):
    today, earlier = (both.post({**SOFTMAX, **v}, cache=None).json for v in ({}, {"version": "6"}))
    index = next(i for i, s in enumerate(today["kernels"][0]["stages"]) if s["name"] == PASS)
    diff = both.get(f"/api/v1/results/{earlier['key']}/diff?kernel=0&from={index}&to={index}&with={today['key']}")
    same = both.get(f"/api/v1/results/{today['key']}/diff?kernel=0&from={index}&to={index}&with={today['key']}")
    assert diff.status == same.status == 200 and diff.json != same.json


def test_versions_part_where_the_pass_does_something_and_compute_the_same(both):
    def part(a, b):
        answer = both.request("POST", "/api/v1/parting", {"a": {**SOFTMAX, **a}, "b": {**SOFTMAX, **b}}, OURS)
        assert answer.status == 200 and answer.json["status"] == "ok", answer.body
        return answer.json["parting"]

    found = part({"version": "6"}, {"version": "7"})
    assert found["text"]["stage"] == PASS and "values" not in found and found["compared"] > 0 and found["alone"] == 0
    lines = {side: text_of(both.compile(**SOFTMAX, inputs=[], version=version), PASS).splitlines() for side, version in (("a", "6"), ("b", "7"))}
    assert all(lines[side][found["text"][side]["line"] - 1] == found["text"][side]["text"] for side in "ab")
    assert found["text"]["a"]["text"] != found["text"]["b"]["text"]
    assert "text" not in part({"version": "6"}, {"version": "6"})


@pytest.mark.parametrize("path", ["/api/v1/compile", "/api/v1/snippets"])
def test_a_version_that_is_not_installed_has_a_code_of_its_own(both, path):
    answer = both.request("POST", path, {**JOB, "version": "5"}, OURS)
    assert answer.status == 422 and answer.error["code"] == "version-not-installed" and answer.error["field"] == "version"


@pytest.mark.parametrize("version", ["", "a b", 6, "x" * 41, "../6"])
def test_what_is_no_name_is_refused_as_a_field(both, version):
    answer = both.post({**JOB, "version": version})
    assert answer.status == 400 and answer.error["code"] == "bad-field" and answer.error["field"] == "version"


def test_a_link_keeps_the_version_that_made_it(both):
    made = both.request("POST", "/api/v1/snippets", {**JOB, "version": "6"}, OURS)
    assert made.status == 201
    kept = both.get(f"/api/v1/snippets/{made.json['id']}").json
    assert kept["pipeline"] == kept["result"]["pipeline"] == EARLIER_PIPELINE and kept["is_current"] is False
    again = both.post({**kept["request"], "version": kept["pipeline"]}, cache=None).json
    assert again["pipeline"] == EARLIER_PIPELINE
    assert both.post(kept["request"], cache=None).json["pipeline"] == both.health["pipeline"]
    deleted = both.request("DELETE", f"/api/v1/snippets/{made.json['id']}", headers={**OURS, "X-Nkx-Edit-Token": made.json["edit_token"]})
    assert deleted.status == 204


def test_a_run_on_a_host_is_made_by_todays(both):
    answer = both.request("POST", "/api/v1/runs", {**JOB, "version": "6"}, OURS)
    assert answer.status == 400 and answer.error["field"] == "version"


def test_a_version_whose_workers_do_not_start_is_refused_and_others_go_on(releases, tmp_path):
    broken = tmp_path / "broken"
    shutil.copytree(releases["earlier"], broken, symlinks=True)
    (broken / "bin/nkx-worker").write_text("#!/bin/sh\nexit 1\n")
    with Server("--worker-version", f"6={broken}") as s:
        answer = s.post({**JOB, "version": "6"})
        assert answer.status == 503 and answer.error["code"] == "version-unavailable" and answer.headers["X-Nkx-Not-Begun"] == "1"
        assert s.compile(**JOB)["status"] == "ok" and s.get("/readyz").status == 200
        shutil.copy2(EARLIER, broken / "bin/nkx-worker")
        wait_for(s, "6")


def test_a_server_does_not_start_with_what_is_no_release(tmp_path):
    p = subprocess.run([NKX, "serve", "--worker-version", f"6={tmp_path}"], capture_output=True, text=True)
    assert p.returncode == 2 and "--worker-version" in p.stderr and "release.json" in p.stderr


def test_the_terminal_chooses_too(releases, tmp_path):
    kernel = tmp_path / "add_one.py"
    kernel.write_text(JOB["source"])
    env = {**os.environ, "NKX_WORKER_VERSION": f"6={releases['earlier']}"}

    def compile_with(*flags):
        return subprocess.run([NKX, "compile", kernel, "--input", "x=8x16:f32", "--quiet", "--json", "-", *flags], capture_output=True, text=True, env=env)

    assert json.loads(compile_with("--version", "6").stdout)["pipeline"] == EARLIER_PIPELINE
    assert json.loads(compile_with("--version=0123456789ab").stdout)["pipeline"] == EARLIER_PIPELINE
    assert json.loads(compile_with().stdout)["pipeline"] != EARLIER_PIPELINE
    refused = compile_with("--version", "5")
    assert refused.returncode == 2 and "not installed" in refused.stderr and "NKX_WORKER_VERSION" in refused.stderr
