"""POST /api/v1/shrink and /api/v1/parting: searches whose jobs are compiled like any others."""
import base64
import http.client
import json
import math
import re
import struct
import time

import pytest

from support.paths import EXAMPLES
from support.refused import REQUEST
from support.server import JSON, Server
from support.wait import wait_until

SOFTMAX = next(p for p in EXAMPLES if p.stem == "03_softmax").read_text()
# many statements, each of which is left out in turn, so that a search can be watched
SLOW = "import numpy as np\n\ndef f(x):\n" + "    x = np.exp(x) * 0.5 + 1.0\n" * 60 + "    return np.convolve(x, x)\n"
LONG = {"source": SLOW, "inputs": [{"name": "x", "shape": [4096], "dtype": "float32"}]}


def ask(server, path, body, accept="application/json"):
    return server.request("POST", f"/api/v1/{path}", body, {**JSON, "Accept": accept})


def frames(answer):
    return [json.loads(line) for line in answer.body.splitlines()]


def both(*changes):
    other = SOFTMAX
    for old, new in changes:
        assert other.count(old) == 1
        other = other.replace(old, new)
    return {"a": {"source": SOFTMAX}, "b": {"source": other}}


# ---- shrink


def test_one_request_makes_a_refused_kernel_small(server):
    answer = ask(server, "shrink", {"request": REQUEST})
    assert answer.status == 200 and answer.json["status"] == "ok", answer.body
    found = answer.json["shrunk"]
    assert found["done"] and found["code"] == "unsupported-op" and found["stopped"] == "nothing smaller has the fault"
    small = {**REQUEST, **found["request"]}
    assert small["files"] == [] and "np.convolve(x, x)" in small["source"] and small["options"].get("by_hand", []) == []
    assert found["lines"] == small["source"].count("\n") <= 7 and 0 < found["kept"] < found["tried"]
    errors = [d for d in server.post(small).json["diagnostics"] if d["severity"] == "error"]
    assert errors[0]["code"] == "unsupported-op" and "np.convolve" in errors[0]["message"]


@pytest.mark.parametrize("accept", ["application/x-ndjson", "text/event-stream"])
def test_a_stream_tells_each_candidate(server, accept):
    answer = ask(server, "shrink", {"request": REQUEST}, accept)
    text = answer.body.decode()
    told = [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line]
    assert told[0]["frame"] == "start" and told[-1]["frame"] == "end" and told[-1]["status"] == "ok"
    steps = [f["shrunk"] for f in told if f["frame"] == "shrunk"]
    assert steps[0] == {"tried": 0, "lines": 12, "is_kept": True}, "the kernel as it is"
    assert [s["tried"] for s in steps[:-1]] == list(range(len(steps) - 1))
    kept = [s for s in steps[1:-1] if s["is_kept"]]
    assert len(kept) == steps[-1]["kept"] and all(s["what"] for s in kept) and kept[-1]["lines"] == steps[-1]["lines"]
    assert kept[-1]["request"] == steps[-1]["request"], "whoever stops here has what was found"


def test_a_search_ends_at_its_limits(server):
    found = ask(server, "shrink", {"request": REQUEST, "candidates": 3}).json["shrunk"]
    assert found["tried"] == 3 and found["stopped"] == "candidates"
    began = time.monotonic()
    found = ask(server, "shrink", {"request": LONG, "seconds": 2}).json["shrunk"]
    assert found["stopped"] == "seconds" and found["tried"] > 0 and time.monotonic() - began < 10


def test_a_whole_answer_may_take_as_long_as_its_search():
    """Other answers are given up after six seconds here."""
    with Server("--answer-timeout-ms", "2000", "--queue-timeout-ms", "2000", "--job-timeout-ms", "2000", "--client-compiles", "20") as s:
        assert ask(s, "shrink", {"request": LONG, "seconds": 12}).json["shrunk"]["stopped"] == "seconds"


def test_what_is_right_has_nothing_to_shrink(server):
    result = ask(server, "shrink", {"request": {"source": SOFTMAX}}).json
    assert result["status"] == "error" and "shrunk" not in result
    assert [(d["code"], d["severity"]) for d in result["diagnostics"]] == [("search", "error")]
    assert "nothing is wrong with the kernel" in result["diagnostics"][0]["message"]


def test_a_client_that_hangs_up_cancels_the_search_and_its_job():
    with Server() as s:
        for accept in ("application/x-ndjson", "application/json"):
            c = http.client.HTTPConnection("127.0.0.1", s.port, timeout=60)
            body = {"request": LONG, "seconds": 600}
            c.request("POST", "/api/v1/shrink", json.dumps(body), {**JSON, "Accept": accept})
            s.wait_running()
            before = sum("search_done" in line for line in s.log)
            c.close()
            wait_until(lambda: sum("search_done" in line for line in list(s.log)) == before + 1, "the end of the search", 10)
            s.wait_running(0)
        assert not s.health["waiting"]


def test_candidates_take_from_the_clients_share_and_wait_for_more():
    with Server("--client-compiles", "30") as s:
        found = ask(s, "shrink", {"request": REQUEST, "seconds": 9}).json["shrunk"]
        assert found["stopped"] == "seconds" and 20 <= found["tried"] <= 45, found
        assert s.post({"source": SOFTMAX}).status in (200, 429)


def test_a_client_has_two_searches_at_a_time():
    slow = {"request": LONG, "seconds": 600}
    with Server() as s:
        held = []
        for _ in range(2):
            held.append(http.client.HTTPConnection("127.0.0.1", s.port, timeout=60))
            held[-1].request("POST", "/api/v1/shrink", json.dumps(slow), {**JSON, "Accept": "application/x-ndjson"})
            assert held[-1].getresponse().status == 200
        refused = ask(s, "shrink", slow)
        assert (refused.status, refused.error["code"]) == (429, "too-many-jobs")
        for c in held:
            c.close()


def test_a_server_that_ends_says_what_was_found():
    s = Server()
    c = http.client.HTTPConnection("127.0.0.1", s.port, timeout=60)
    c.request("POST", "/api/v1/shrink", json.dumps({"request": LONG, "seconds": 600}), {**JSON, "Accept": "application/x-ndjson"})
    answer = c.getresponse()
    while json.loads(answer.readline())["frame"] != "shrunk":
        pass
    s.process.terminate()
    last = [json.loads(line) for line in answer.read().splitlines()]
    assert last[-1]["frame"] == "end" and last[-2]["shrunk"]["stopped"] == "the server ends"
    assert s.process.wait(timeout=60) == 0


# ---- parting


def test_results_part_in_text_and_in_values(server):
    body = both(("np.exp(x - biggest)", "np.exp(x - biggest) * (1.0 + x * 0.0 + 0.25)"))
    found = ask(server, "parting", body).json["parting"]
    assert found["done"] and found["text"]["stage"] == "trace"
    values = found["values"]
    assert values["stage"] == "trace" and all("reduce" in values[side]["text"] for side in "ab")
    assert values["b"]["value"] == pytest.approx(1.25 * values["a"]["value"], rel=1e-3), "the sum of values that are all larger by a quarter"
    assert values["index"] == [0] and values["max_abs_err"] >= abs(values["b"]["value"] - values["a"]["value"])
    assert 0 < found["compared"] <= 400


def test_the_lines_of_a_place_are_those_of_the_results(server):
    body = both(("np.exp(", "np.cosh("))
    found = ask(server, "parting", {**body, "values": False}).json["parting"]
    assert "values" not in found and "compared" not in found
    for side in "ab":
        place = found["text"].get(side)
        (kernel,) = server.post(body[side]).json["kernels"]
        stage = next(s for s in kernel["stages"] if s["name"] == found["text"]["stage"])
        assert place is None or stage["text"].splitlines()[place["line"] - 1] == place["text"]


def test_a_stream_says_how_far_the_comparison_is(server):
    told = frames(ask(server, "parting", both(("np.exp(x - biggest)", "np.exp(x - biggest) * 2.0")), "application/x-ndjson"))
    steps = [f["parting"] for f in told if f["frame"] == "parting"]
    assert [s["compared"] for s in steps[:-1]] == list(range(1, len(steps))) and steps[-1]["compared"] == len(steps) - 1
    assert told[-1] == {"frame": "end", "status": "ok", "time_us": told[-1]["time_us"]}


def test_targets_and_pipelines_part_in_text_alone(server):
    same = ask(server, "parting", {"a": {"source": SOFTMAX}, "b": {"source": SOFTMAX}}).json["parting"]
    assert "text" not in same and "values" not in same and same["alone"] == 0
    target = ask(server, "parting", {"a": {"source": SOFTMAX}, "b": {"source": SOFTMAX, "target": "trn1"}, "seconds": 150}).json["parting"]
    assert "text" in target and "values" not in target and target["compared"] > 0
    reference = ask(server, "parting", {"a": {"source": SOFTMAX}, "b": {"source": SOFTMAX, "options": {"pipeline": "reference"}}, "values": False}).json["parting"]
    assert reference["alone"] > 0


def test_an_element_of_a_value_is_that_of_the_file_with_its_elements(server):
    """The value's artifact is what the search compares."""
    (kernel,) = server.post({"source": SOFTMAX}).json["kernels"]
    line = 1 + next(i for i, text in enumerate(kernel["stages"][0]["text"].splitlines()) if " reduce(" in text)
    request = {"source": SOFTMAX, "options": {"value": {"stage": "trace", "line": line}, "artifacts": True}}
    result = server.post(request).json
    (file,) = [a for a in result["artifacts"] if a["name"].endswith("/value.bin")]
    value = result["kernels"][0]["value"]
    elements = base64.b64decode(file["data"])
    assert len(elements) == file["size"] and value["dtype"] == "float32"
    all_elements = struct.unpack(f"<{math.prod(value['shape'])}f", elements)
    assert min(all_elements) == pytest.approx(value["min"]) and max(all_elements) == pytest.approx(value["max"])
    assert len(result["artifacts"]) == 1


WRITTEN_OUT = """import numpy as np
from nkigen import trace, knob

@trace(input_specs=[((256, 256), 'f32'), ((256, 512), 'f32')])
def up(x, w):
    u = x @ w
    knob.knob(u).tile_op(tile_size=[128, 256, 128])
    return u * np.tanh(u)
"""


def other_order(server, change=lambda lines: lines):
    """A request for the kernel with the parts of tanh in the opposite order in stage schedule."""
    stages = server.post({"source": WRITTEN_OUT}).json["kernels"][0]["stages"]
    text = next(s["text"] for s in stages if s["name"] == "schedule")
    parts = [line for line in text.splitlines() if "nisa.activation" in line]
    assert len(parts) == 8 and text.count("\n".join(parts)) == 1, "it is written out"
    return {"source": WRITTEN_OUT, "options": {"resume": {"stage": "schedule", "text": text.replace("\n".join(parts), "\n".join(change(parts[::-1])))}}}


def test_lines_are_paired_by_the_part_that_they_compute(server):
    found = ask(server, "parting", {"a": {"source": WRITTEN_OUT}, "b": other_order(server)}).json["parting"]
    assert found["text"]["stage"] == "schedule" and found["results"] == {"same": True, "max_abs_err": 0} and "values" not in found
    assert found["compared"] >= 8 and found["no_counterpart"] == {"stage": "schedule", "a": 0, "b": 0}


def test_the_part_that_is_computed_differently_is_found(server):
    def change(lines):
        return [*lines[:2], lines[2].replace("op=tanh", "op=exp"), *lines[3:]]

    found = ask(server, "parting", {"a": {"source": WRITTEN_OUT}, "b": other_order(server, change)}).json["parting"]
    assert found["results"]["same"] is False and found["results"]["name"] == "output0"
    values = found["values"]
    assert values["stage"] == "schedule" and "op=tanh" in values["a"]["text"] and "op=exp" in values["b"]["text"]
    places = [re.search(r"%sbuf\w*\[([^]]*)\]", values[side]["text"])[1] for side in "ab"]
    assert places[0] == places[1] == "d0, 1, 0, d1 + 128", "the third of the parts from the end"


def test_tile_sizes_have_results_of_their_own_order(server):
    found = ask(server, "parting", {"a": {"source": WRITTEN_OUT}, "b": {"source": WRITTEN_OUT.replace("128, 256, 128", "128, 128, 128")}}).json["parting"]
    assert found["results"]["same"] and found["results"]["max_abs_err"] < 1e-4 and "values" not in found


# ---- what is refused


def test_requests_are_checked(server):
    wrong = [("shrink", {}, "request"), ("shrink", [], "object"), ("shrink", {"request": {}}, "source"), ("shrink", {"request": REQUEST, "seconds": 0}, "seconds"),
             ("shrink", {"request": REQUEST, "candidates": 2001}, "candidates"), ("shrink", {"request": REQUEST, "values": True}, "values"),
             ("shrink", {"request": {**REQUEST, "options": {"upgrade": True}}}, "request"), ("shrink", {"request": {**REQUEST, "options": {"resume": {"stage": "cse", "text": ""}}}}, "resume"),
             ("parting", {"a": REQUEST}, "a and b"), ("parting", {"a": REQUEST, "b": {**REQUEST, "nonsense": 1}}, "b: "), ("parting", {"a": REQUEST, "b": REQUEST, "values": 1}, "values")]
    for path, body, word in wrong:
        answer = ask(server, path, body)
        assert answer.status == 400 and word in answer.error["message"], (path, body, answer.body)
    assert ask(server, "parting", {"a": REQUEST, "b": {**REQUEST, "version": "0.0.1-no"}}).status == 422
    assert server.get("/api/v1/shrink").status == 405
    both_wrong = ask(server, "parting", {"a": {"source": "def f(:\n"}, "b": {"source": SOFTMAX}}).json
    assert both_wrong["status"] == "error" and re.search("has no stages", both_wrong["diagnostics"][0]["message"])
