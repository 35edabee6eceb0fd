"""POST /api/v1/compile with options.value: one value of one stage."""
import json
import re

import numpy as np
import pytest

from support.server import FLOAT_INPUT, Server

ROWS, COLUMNS = 512, 128
ROUND = 256  # rows that one round of the fused loop computes: two tiles
SOFTMAX = """import numpy as np

def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)
"""
INPUT = [{"name": "x", "shape": [ROWS, COLUMNS], "dtype": "float32"}]
PRODUCT = """import numpy as np

def product(x, w):
    return x @ w
"""
PAIR = [{"name": n, "shape": [256, 256], "dtype": "float32"} for n in "xw"]
LOOP = """HloModule count

%body (p: (s32[], f32[4])) -> (s32[], f32[4]) {
  %p = (s32[], f32[4]) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %v = f32[4] get-tuple-element(%p), index=1
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %twice = f32[4] add(%v, %v)
  ROOT %out = (s32[], f32[4]) tuple(%next, %twice)
}

%condition (p: (s32[], f32[4])) -> pred[] {
  %p = (s32[], f32[4]) parameter(0)
  %i = s32[] get-tuple-element(%p), index=0
  %n = s32[] constant(5)
  ROOT %less = pred[] compare(%i, %n), direction=LT
}

ENTRY %main (x: f32[4]) -> f32[4] {
  %x = f32[4] parameter(0)
  %zero = s32[] constant(0)
  %start = (s32[], f32[4]) tuple(%zero, %x)
  %loop = (s32[], f32[4]) while(%start), condition=%condition, body=%body
  ROOT %result = f32[4] get-tuple-element(%loop), index=1
}
"""


WIDE = """HloModule wide

ENTRY %main (x: s64[4,8]) -> s64[4,8] {
  %x = s64[4,8] parameter(0)
  %c = s64[] constant(3000000000)
  %b = s64[4,8] broadcast(%c), dimensions={}
  %y = s64[4,8] multiply(%x, %b)
  ROOT %r = s64[4,8] add(%y, %x)
}
"""


@pytest.fixture(scope="module")
def server():
    with Server() as s:
        yield s


@pytest.fixture(scope="module")
def stages(server):
    return {s["index"]: s for s in server.post({"source": SOFTMAX, "inputs": INPUT}).json["kernels"][0]["stages"]}


def find(server, stage, source=SOFTMAX, inputs=INPUT, **fields):
    """The value, of the only kernel."""
    job = {"source": source, "inputs": inputs, "options": {"value": {"stage": str(stage), **fields}}}
    if source.startswith("HloModule"):
        job = {"source": source, "language": "hlo", "filename": "a.hlo", "options": job["options"]}
    result = server.post(job).json
    (kernel,) = result["kernels"]
    assert result["status"] == "ok" and kernel["stages"] == [] and kernel["value"]["index"] >= 0
    return kernel["value"]


def array(server, stage, shape, **fields):
    """All elements of a value, part by part."""
    rows = max(4096 // int(np.prod(shape[1:])), 1)
    parts = []
    for at in range(0, shape[0], rows):
        s = find(server, stage, slice=[{"start": at, "stop": at + rows}], **fields)["slice"]
        parts.append(np.array(s["data"], dtype=np.float64).reshape(s["shape"]))
    return np.concatenate(parts)


@pytest.fixture(scope="module")
def x(server):
    return array(server, "trace", (ROWS, COLUMNS), name="x")


def line_of(stage, pattern, nth=0):
    return [i + 1 for i, text in enumerate(stage["text"].split("\n")) if re.search(pattern, text)][nth]


def index_of(stages, name):
    return next(i for i, s in stages.items() if s["name"] == name)


def exp(x):
    return np.exp(x - x.max(axis=-1, keepdims=True))


@pytest.mark.parametrize("stage,pattern", [("trace", r" exponential\("), ("dce", r" exponential\("), ("hlo-to-linalg", r"linalg\.exp"),
                                           ("prepare-arithmetic", r"linalg\.exp")])
def test_a_value_of_a_whole_tensor_is_numpys_at_every_level(server, stages, x, stage, pattern):
    line = line_of(stages[index_of(stages, stage)], pattern)
    v = find(server, stage, line=line)
    want = exp(x)
    assert (v["shape"], v["dtype"], v["execution"], v["executions"]) == ([ROWS, COLUMNS], "float32", 1, 1)
    assert np.allclose([v["min"], v["max"], v["mean"], v["std"]], [want.min(), want.max(), want.mean(), want.std()], rtol=1e-5)
    assert v["nan"] == v["inf"] == v["zero"] == 0 and sum(v["histogram"]["counts"]) == want.size and len(v["histogram"]["counts"]) == 32
    assert np.allclose(np.reshape(v["slice"]["data"], (64, 64)), want[:64, :64], rtol=1e-5)
    heat = v["heat"]
    assert (heat["rows"], heat["columns"], heat["row_step"], heat["column_step"]) == (128, 128, ROWS // 128, 1)
    assert np.allclose(np.reshape(heat["means"], (128, 128)), want.reshape(128, ROWS // 128, 128).mean(axis=1), rtol=1e-5)


def test_the_rows_of_a_buffer_on_chip_are_its_partitions(server):
    done = server.post({"source": PRODUCT, "inputs": PAIR}).json["kernels"][0]["stages"]
    text = done[-1]["text"].split("\n")
    found = [t for t in text if re.search(r"%sbuf\w* = nisa\.alloc.*memref<128x[2-9]x", t)]
    v = find(server, done[-1]["index"], PRODUCT, PAIR, line=text.index(found[0]) + 1)
    heat = v["heat"]
    assert len(v["shape"]) > 2 and (heat["row_dim"], heat["rows"]) == (0, 128) and heat["column_dim"] == max(d for d, n in enumerate(v["shape"]) if n > 1)
    assert v["slice"]["shape"][0] == 64


def test_it_is_compared_with_the_instruction_of_the_trace_that_it_is(server, stages):
    traced = stages[0]
    stage = stages[index_of(stages, "prepare-arithmetic")]
    v = find(server, stage["index"], line=line_of(stage, r"linalg\.exp"))
    assert v["reference"]["of"] == "trace" and v["reference"]["pass"] and v["reference"]["max_rel_err"] < 1e-6
    assert v["reference"]["line"] == line_of(traced, r" exponential\(") and v["reference"]["name"] in traced["text"]
    assert "reference" not in find(server, stage["index"], name="%arg0")


def test_an_output_is_compared_with_numpys(server, stages):
    v = find(server, "trace", line=line_of(stages[0], "ROOT %result"))
    assert v["reference"]["of"] == "numpy" and v["reference"]["pass"]


def test_the_first_element_that_differs_is_named(server):
    got = find(server, "convert-legalization", WIDE, name="%y")
    x = np.array(find(server, "trace", WIDE, name="x")["slice"]["data"])
    assert got["dtype"] == "int32" and 0 in x
    first = [int(i) for i in np.argwhere(x.reshape(4, 8))[0]]
    differs = got["reference"]["differs"]
    assert not got["reference"]["pass"] and got["reference"]["name"] == "%y" and differs["index"] == first
    assert differs["want"] == x.reshape(4, 8)[tuple(first)] * 3e9 and differs["got"] == np.reshape(got["slice"]["data"], (4, 8))[tuple(first)]


def test_a_value_in_a_loop_is_taken_at_the_execution_that_is_asked_for(server, stages, x):
    stage = stages[index_of(stages, "insert-memref-dealloc")]
    name = re.search(r"(%\w+) = memref\.alloc.*<128x128xf32, 3 : i32>", stage["text"]).group(1)
    for k in (1, 2):
        v = find(server, stage["index"], name=name, execution=k)
        assert (v["execution"], v["executions"], v["shape"]) == (k, 2, [128, 128])
        assert np.allclose(np.reshape(v["slice"]["data"], (64, 64)), x[ROUND * (k - 1) :, :][:64, :64])
    assert find(server, stage["index"], name=name)["execution"] == 2
    assert find(server, stage["index"], name=name, execution=3)["reason"] == "it is executed only 2 times"


def test_a_loop_of_hlo_has_a_value_for_every_round(server):
    start = np.array(find(server, "trace", LOOP, name="x")["slice"]["data"])
    for k in (1, 5):
        v = find(server, "trace", LOOP, name="twice", execution=k)
        assert v["executions"] == 5 and np.allclose(v["slice"]["data"], start * 2**k)
    assert "tuple" in find(server, "trace", LOOP, name="%loop")["reason"]


@pytest.mark.parametrize("stage", ["linalg-to-nisa", "coalesce-transfers", "schedule", "balance-engines", "allocate-memory", "engine-programs"])
def test_a_buffer_and_an_operand_of_an_instruction_have_the_same_values(server, stages, x, stage):
    """Of a line that is executed twice, or of the one of the second round, if the loop is written out."""
    s = stages[index_of(stages, stage)]
    first, line = (line_of(s, r"nisa\.activation.*op=exp", nth) for nth in (0, 0 if "scf.for" in s["text"] else 2))
    v = find(server, stage, line=line)
    assert v["operand"] == "dst" and v["executions"] == (2 if first == line else 1)
    assert np.allclose(np.reshape(v["slice"]["data"], (64, 64)), exp(x)[ROUND:ROUND + 64, :64], rtol=1e-5)
    name = re.search(r"dst<.*?(%\w+)\[", s["text"].split("\n")[line - 1]).group(1)
    rotated = re.search(rf"{name} = nisa\.rotate (%\w+)", s["text"])
    whole = find(server, stage, name=rotated.group(1) if rotated else name)
    assert "operand" not in whole and whole["max"] == 1 and whole["shape"][0] == 128
    assert find(server, stage, line=line, name=name)["slice"] == v["slice"]
    source = find(server, stage, line=first, operand="src", execution=1)
    assert np.allclose(np.reshape(source["slice"]["data"], (64, 64)), x[:64, :64], rtol=1e-5)
    bias = find(server, stage, line=first, operand="bias", execution=1)
    assert np.allclose(np.ravel(bias["slice"]["data"])[:64], -x.max(axis=-1)[:64], rtol=1e-5)


def test_a_slice_has_the_elements_that_are_asked_for_and_says_if_they_are_too_many(server, x):
    part = [{"start": 3, "stop": 200, "step": 50}, {"stop": 10, "step": 3}]
    s = find(server, "trace", name="x", slice=part)["slice"]
    assert (s["start"], s["step"], s["shape"]) == ([3, 0], [50, 3], [4, 4])
    assert np.allclose(np.reshape(s["data"], (4, 4)), x[3:200:50, 0:10:3])
    assert "4096" in find(server, "trace", name="x", slice=[{"stop": 33}])["slice"]["reason"]
    assert find(server, "trace", name="x", slice=[{"start": 600, "stop": 700}])["slice"]["data"] == []


@pytest.mark.parametrize("fields,word", [({"line": 1}, "no operation"), ({"name": "%nothing"}, "no value of this name"),
                                         ({"name": "%in"}, "each element"), ({"name": "%2#3"}, "no such")])
def test_what_has_no_value_says_why(server, fields, word):
    v = find(server, "cse:2", **fields)
    assert word in v["reason"] and "shape" not in v


@pytest.mark.parametrize("value,field", [({"stage": "nothing", "line": 1}, "stage"), ({"stage": "999", "line": 1}, "stage"),
                                         ({"stage": "trace"}, "line"), ({"stage": "trace", "line": 0}, "line"),
                                         ({"stage": "trace", "line": 1, "slice": [{"stop": 1, "step": 0}]}, "slice[0].step"),
                                         ({"stage": "trace", "line": 1, "slice": [{}]}, "slice[0].stop"),
                                         ({"stage": "trace", "line": 1, "nth": 1}, "nth")])
def test_a_wrong_request_is_refused_by_the_name_of_its_field(server, value, field):
    answer = server.post({"source": SOFTMAX, "inputs": INPUT, "options": {"value": value}})
    assert answer.status == 400 and answer.error["field"] == f"options.value.{field}"


def test_a_stream_has_a_frame_of_the_value_and_none_of_the_stages(server):
    body = {"source": SOFTMAX, "inputs": FLOAT_INPUT, "options": {"value": {"stage": "trace", "name": "x"}}}
    kinds = re.findall(r'^{"frame":"(\w+)"', server.post(body, accept="application/x-ndjson").body.decode(), re.M)
    assert kinds == ["start", "kernel", "value", "end"]


def test_a_snippet_cannot_ask_for_a_value(server):
    body = {"source": SOFTMAX, "inputs": INPUT, "options": {"value": {"stage": "trace", "name": "x"}}}
    answer = server.request("POST", "/api/v1/snippets", json.dumps(body), {"Content-Type": "application/json", "X-Nkx-Request": "1"})
    assert answer.status == 400 and answer.error["field"] == "options.value"
