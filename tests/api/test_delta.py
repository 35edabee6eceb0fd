"""A recompile sends only what has changed: stages as their difference from the result that the client has."""
import json

import pytest
from support.paths import EXAMPLES
from support.server import ADD_ONE, FLOAT_INPUT, JSON, Server

DECODER = next(p for p in EXAMPLES if p.name.startswith("12_")).read_text()
TWO_KERNELS = """import numpy as np
from nkigen import trace

@trace(input_specs=[((8, 16), "float32")])
def first(x):
    return np.exp(x) + 1.5

@trace(input_specs=[((8, 16), "float32")])
def second(x):
    return x * 2.5
"""


@pytest.fixture(scope="module")
def server():
    with Server() as s:
        yield s


def stream(server, source, have=None, encoding="identity", inputs=(), **fields):
    """The frames of a compile, and the bytes of the answer."""
    headers = {**JSON, "Accept": "application/x-ndjson", "Accept-Encoding": encoding, **({"X-Nkx-Have": have} if have else {})}
    answer = server.request("POST", "/api/v1/compile", {"source": source, "inputs": list(inputs), **fields}, headers)
    assert answer.status == 200
    return [json.loads(line) for line in answer.body.splitlines()] if encoding == "identity" else [], len(answer.body)


def run_of(frames):
    return f"{frames[0]['key']}.{frames[-1]['time_us']}"


def is_delta(frame):
    return "same" in frame


def whole(frame, base):
    """The frame that a delta stands for; base: the frames that it refers to."""
    if not is_delta(frame):
        return frame
    (old,) = [f["stage"] for f in base if f["frame"] == "stage" and f["kernel"] == frame["kernel"] and f["stage"]["index"] == frame["stage"]["index"]]
    stage = {**{name: old[name] for name in frame["same"]}, **frame["stage"]}
    if isinstance(stage["text"], list):
        lines = old["text"].split("\n")
        stage["text"] = "\n".join(line for piece in stage["text"]
                                  for line in ([piece] if isinstance(piece, str) else lines[piece[0] - 1:piece[0] - 1 + piece[1]]))
    return {"frame": "stage", "kernel": frame["kernel"], "stage": stage}


@pytest.mark.parametrize("before, after", [
    (DECODER, DECODER.replace("1e-5", "2e-5")), (DECODER, DECODER.replace("EPS =", "# a line more\n\nEPS =")),
    (DECODER, DECODER.replace("np.square(x)", "np.square(x + 1.0)")), (TWO_KERNELS, TWO_KERNELS.replace("2.5", "3.5")),
    (TWO_KERNELS, TWO_KERNELS.replace("def second", "def third")), (TWO_KERNELS, DECODER), (DECODER, "def f(x:\n"), ("def f(x:\n", DECODER)],
    ids=["a constant", "a blank line", "an operation", "one of two kernels", "a name", "another kernel", "to an error", "from an error"])
def test_deltas_stand_for_the_frames_of_a_whole_answer(server, before, after):
    base, _ = stream(server, before)
    short, n_short = stream(server, after, run_of(base))
    long, n_long = stream(server, after)
    assert [whole(f, base) for f in short] == long
    assert n_short <= n_long


def test_one_constant_of_the_largest_example_is_a_small_answer(server):
    base, _ = stream(server, DECODER)
    frames, n = stream(server, DECODER.replace("1e-5", "3e-5"), run_of(base))
    assert all(is_delta(f) for f in frames if f["frame"] == "stage") and n < 150_000
    _, packed = stream(server, DECODER.replace("1e-5", "4e-5"), run_of(base), "zstd")
    assert packed < 15_000


def test_the_largest_example_fits_into_its_budget_in_each_encoding(server):
    for encoding, limit in (("zstd", 400_000), ("gzip", 700_000)):
        assert stream(server, DECODER + f"# {encoding}\n", None, encoding)[1] < limit


def test_checks_and_simulations_are_in_the_delta(server):
    fields = {"inputs": FLOAT_INPUT, "options": {"check": True, "simulate": True}}
    base, _ = stream(server, ADD_ONE, **fields)
    frames, _ = stream(server, ADD_ONE.replace("1", "2"), run_of(base), **fields)
    assert [whole(f, base) for f in frames] == stream(server, ADD_ONE.replace("1", "2"), **fields)[0]
    assert all(whole(f, base)["stage"]["check"]["status"] for f in frames if f["frame"] == "stage")


@pytest.mark.parametrize("named", [lambda run: run.split(".")[0], lambda run: run + "1", lambda run: "0" * 64 + ".1", lambda _: "x", lambda run: run.upper()],
                         ids=["no time", "another run", "an unknown key", "no key", "capitals"])
def test_a_result_that_the_server_does_not_hold_gives_a_whole_answer(server, named):
    base, _ = stream(server, ADD_ONE, inputs=FLOAT_INPUT)
    frames, _ = stream(server, ADD_ONE.replace("1", "3"), named(run_of(base)), inputs=FLOAT_INPUT)
    assert frames[-1]["status"] == "ok" and not any(is_delta(f) for f in frames)


def test_a_result_that_was_dropped_gives_a_whole_answer():
    with Server("--cache-s", "1") as s:
        base, _ = stream(s, ADD_ONE, inputs=FLOAT_INPUT)
        fresh = iter(range(10, 100))

        def is_whole():
            frames, _ = stream(s, ADD_ONE.replace("1", str(next(fresh))), run_of(base), inputs=FLOAT_INPUT)
            return not any(is_delta(f) for f in frames)

        s.wait_until(is_whole, "the result to be dropped", 10, poll_s=0.3)


def test_events_have_deltas_too(server):
    base, _ = stream(server, ADD_ONE, inputs=FLOAT_INPUT)
    answer = server.request("POST", "/api/v1/compile", {"source": ADD_ONE.replace("1", "4"), "inputs": FLOAT_INPUT},
                            {**JSON, "Accept": "text/event-stream", "X-Nkx-Have": run_of(base)})
    frames = [json.loads(line.removeprefix(b"data: ")) for line in answer.body.splitlines() if line]
    assert sum(map(is_delta, frames)) > 40 and frames[-1]["status"] == "ok"
