"""POST /api/v1/compile with options.upgrade: the files, rewritten for the newest NKI, and what is left to be done by hand."""
import json

import pytest

HEAD = """import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
from neuronxcc.nki.typing import tensor
"""
KERNEL = HEAD + """
@nki.jit
def scaled(a: tensor[64, 96]):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    ip, jf = nl.mgrid[0:64, 0:96]
    x = nl.load(a[ip, jf])
    nl.store(out[ip, jf], value=nl.exp(x))
    return out
"""
STRANGE = HEAD + """
@nki.jit
def strange(a: tensor[64, 96]):
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    x = other(nl.load(a))
    nl.store(out, value=x)
    return out
"""


def upgrade(server, source, **fields):
    options = {"upgrade": True, **fields.pop("options", {})}
    return server.post({"source": source, **fields, "options": options})


def test_a_kernel_of_beta_1_is_rewritten_and_compiles_to_the_same_instructions(server):
    result = upgrade(server, KERNEL).json
    (file,) = result["upgrade"]["files"]
    assert result["status"] == "ok" and result["kernels"] == [] and result["diagnostics"] == []
    assert file["name"] == "kernel.py" and file["marks"] == [] and "neuronxcc" not in file["source"] and "mgrid" not in file["source"]
    old, new = (server.post({"source": s}).json["kernels"][0]["stages"][-1]["op_counts"] for s in (KERNEL, file["source"]))
    assert old == new


def test_every_file_is_rewritten_and_the_marks_have_the_lines_of_their_comments(server):
    files = [{"name": "parts/more.py", "source": STRANGE}, {"name": "plain.py", "source": "WIDTH = 4\n"}]
    result = upgrade(server, KERNEL, filename="main.py", files=files).json
    main, strange, plain = result["upgrade"]["files"]
    assert [f["name"] for f in (main, strange, plain)] == ["main.py", "parts/more.py", "plain.py"]
    assert main["marks"] == [] and plain == {"name": "plain.py", "source": "WIDTH = 4\n", "marks": []}
    lines = strange["source"].split("\n")
    assert len(strange["marks"]) == 2
    for mark in strange["marks"]:
        assert lines[mark["line"] - 1].strip() == f"# nkx: not upgraded: {mark['reason']}"
    assert lines[strange["marks"][0]["line"]].strip() == "x = other(nl.load(a))"


def test_a_stream_has_the_upgrade_as_a_frame(server):
    lines = server.post({"source": KERNEL, "options": {"upgrade": True}}, accept="application/x-ndjson").body.splitlines()
    kinds = [f["frame"] for f in map(json.loads, lines) if f["frame"] != "queued"]
    assert kinds == ["start", "upgrade", "end"]


def test_the_source_is_not_executed(server):
    result = upgrade(server, "print('executed')\nraise SystemExit\n" + KERNEL).json
    assert result["status"] == "ok" and result["diagnostics"] == [] and result["upgrade"]["files"][0]["source"].startswith("print(")


def test_what_is_no_python_is_refused_at_its_place_in_its_file(server):
    result = upgrade(server, KERNEL, files=[{"name": "more.py", "source": "x = 1\ndef f(:\n"}]).json
    (d,) = result["diagnostics"]
    assert result["status"] == "error" and "upgrade" not in result
    assert (d["code"], d["range"]["file"], d["range"]["line"]) == ("python-syntax", "more.py", 2)


@pytest.mark.parametrize("text,code", [("x = " + "(" * 200 + "1" + ")" * 200 + "\n", "nesting-too-deep"),
                                       ("x = " + "+".join(["1"] * 30000) + "\n", "nesting-too-deep")])
def test_a_source_beyond_the_parsers_limits_is_refused(server, text, code):
    result = upgrade(server, KERNEL + text).json
    assert result["status"] == "error" and [d["code"] for d in result["diagnostics"]] == [code]


def test_a_deep_expression_in_a_kernel_is_refused_or_left(server):
    deep = KERNEL.replace("nl.exp(x)", "+".join(["x"] * 3000))
    result = upgrade(server, deep).json
    assert result["status"] == "error" and [d["code"] for d in result["diagnostics"]] == ["nesting-too-deep"]


@pytest.mark.parametrize("job,field", [({"language": "hlo", "source": "HloModule m"}, "options.upgrade"),
                                       ({"source": KERNEL, "options": {"upgrade": 1}}, "options.upgrade"),
                                       ({"source": KERNEL, "options": {"upgrade": True, "value": {"stage": "trace", "line": 1}}}, "options.upgrade")])
def test_a_request_that_cannot_be_is_refused(server, job, field):
    job["options"] = job.get("options", {"upgrade": True})
    answer = server.post(job)
    assert answer.status == 400 and field in answer.error["message"]


def test_a_source_that_is_too_large_is_refused(server):
    assert upgrade(server, KERNEL + "#" * (256 << 10)).status == 413


def test_a_stored_link_has_no_upgrade(server):
    answer = server.request("POST", "/api/v1/snippets", '{"source": "x = 1", "options": {"upgrade": true}}',
                            {"Content-Type": "application/json", "X-Nkx-Request": "1"})
    assert answer.status == 400 and "options.upgrade" in answer.error["message"]
