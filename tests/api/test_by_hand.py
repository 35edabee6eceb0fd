"""POST /api/v1/compile with options.by_hand: a pipeline that the user changed."""
import pytest

from support.clients import read, share

SOURCE = """import numpy as np
from nkigen import trace

@trace(input_specs=[((4, 8), "f32"), ((4, 8), "f32")])
def kernel(x, y):
    return np.exp(x * y) + y
"""
CHANGES = ["without flash-attention", "after canonicalize linalg-fuse-elementwise-ops"]


def test_a_link_keeps_the_changes_and_values_count_the_stages_after_them(server):
    result = server.compile(SOURCE, inputs=[], options={"by_hand": CHANGES, "check": True})
    stages = result["kernels"][0]["stages"]
    assert {s["name"]: s["by_hand"] for s in stages if "by_hand" in s} == {"flash-attention": "left out", "linalg-fuse-elementwise-ops": "put in"}
    assert len(stages) == 55 and [s["index"] for s in stages] == list(range(55)) and all(s["check"]["status"] == "pass" for s in stages)
    value = server.compile(SOURCE, inputs=[], options={"by_hand": CHANGES, "value": {"stage": "54", "name": "kernel"}})["kernels"][0]["value"]
    assert value["stage"] == "engine-programs"
    made = share(server, SOURCE, inputs=[], options={"by_hand": CHANGES})
    assert made.status == 201, made.body
    stored = read(server, made.json).json
    assert stored["request"]["options"]["by_hand"] == CHANGES and len(stored["result"]["kernels"][0]["stages"]) == 55


def test_the_passes_that_can_be_put_in_are_listed(server):
    passes = server.get("/api/v1/pipeline").json["passes"]
    known = {p["name"]: p for p in passes if p["form"] == "mlir"}
    assert known["canonicalize"]["options"].split()[0] == "top-down" and "infer-layout" in known and "trace" not in known
    assert {"hlo", "mlir", "nisa"} == {p["form"] for p in passes}


def test_patterns_are_tried_and_a_link_keeps_them(server):
    patterns = "// STAGE: hlo-to-linalg\n// CHECK: linalg.exp\n// CHECK-NOT: linalg.tanh\n"
    result = server.compile(SOURCE, inputs=[], options={"patterns": patterns})
    (found,) = [s["patterns"] for s in result["kernels"][0]["stages"] if "patterns" in s]
    assert result["status"] == "ok" and found["ok"] and [line for line, _ in found["found"]] == [2]
    made = share(server, SOURCE, inputs=[], options={"patterns": patterns})
    assert made.status == 201 and read(server, made.json).json["request"]["options"]["patterns"] == patterns
    for wrong in (1, "a\0b", "x" * 65537):
        assert server.post({"source": SOURCE, "options": {"patterns": wrong}}).error["field"] == "options.patterns"


@pytest.mark.parametrize("changes, says", [
    ("without cse", "options.by_hand: expected an array"), ([1], "options.by_hand[0]: expected a string"), (["without cse"] * 33, "options.by_hand: at most 32 changes"),
    (["without cse", "without trace"], "options.by_hand[1]: trace cannot be left out"), (["without a\0b"], "options.by_hand[0]: expected a string"),
    ([""], "options.by_hand[0]:"),
])
def test_other_changes_are_refused(server, changes, says):
    answer = server.post({"source": SOURCE, "options": {"by_hand": changes}})
    assert answer.status in (400, 413) and says in answer.json["error"]["message"], answer.body
