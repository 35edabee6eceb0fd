"""POST /api/v1/compile with options.tune: candidates as frames, and the sources of those that none beats."""
import json

SOURCE = """import numpy as np
from nkigen import trace, knob

@trace(input_specs=[((256, 256), "f32")])
def f(x):
    y = np.exp(x)
    knob.knob(y).tile_op(tile_size=[32, 32])
    return y * 2.0
"""


def test_a_stream_has_each_candidate_and_then_the_result(server):
    answer = server.post({"source": SOURCE, "options": {"tune": {"candidates": 12}}}, accept="application/x-ndjson")
    frames = [json.loads(line) for line in answer.body.splitlines()]
    assert {f["frame"] for f in frames} == {"start", "tune", "end"} and frames[-1]["status"] == "ok"
    *candidates, done = [f["tune"] for f in frames if f["frame"] == "tune"]
    assert [c["number"] for c in candidates] == list(range(len(candidates))) and done["tried"] == len(candidates) - 1
    best = done["points"][0]
    assert best["us"] < done["start_us"] and "tile_size=[32, 32]" not in best["source"]
    again = server.compile(best["source"], inputs=[], options={"simulate": True})
    assert abs(again["kernels"][0]["profile"]["total_us"] - best["us"]) < 1e-6


def test_a_result_lists_them_and_has_no_stages(server):
    result = server.compile(SOURCE, inputs=[], options={"tune": {"seconds": 2, "candidates": 2}})
    assert result["status"] == "ok" and result["kernels"] == []
    assert [bool(t.get("done")) for t in result["tune"]] == [False, False, False, True]
    assert result["tune"][-1]["stopped"] in ("candidates", "seconds")


def test_budgets_and_what_they_go_with_are_checked(server):
    for options in ({"tune": {"seconds": 0}}, {"tune": {"candidates": 2001}}, {"tune": {"hours": 1}}, {"tune": 5},
                    {"tune": {}, "check": True}, {"tune": {}, "simulate": True}):
        answer = server.post({"source": SOURCE, "options": options})
        assert answer.status == 400 and b"options.tune" in answer.body, options
