"""What passes decide is data in their stages' frames, tied to operations and to the source."""
import pytest

from support import compiler, source_map
from support.paths import EXAMPLES
from support.rules import FORCED, is_priced

pytestmark = pytest.mark.xdist_group("remarks")  # the examples are compiled once
# passes that decide something in one example or another
TALKING = {
    "remove-redundant-zero-fill", "prepare-arithmetic", "flash-attention", "decompose-batch-matmul", "infer-layout",
    "canonicalize-partition-dim", "fuse-row-tiles", "knob-driven-tiling", "one-shot-bufferize", "eliminate-uninitialized-copies",
    "annotate-memory-space", "eliminate-same-memspace-copy", "legalize-layout",
    "simplify-linalg", "insert-spill-reload", "insert-memref-dealloc", "linalg-to-nisa",
    "coalesce-transfers", "schedule", "balance-engines", "allocate-memory", "engine-programs",
}

# the products of the examples that have batches are attentions, which flash-attention takes apart
BATCHED = """import numpy as np
from nkigen import trace


@trace(input_specs=[((4, 128, 64), "f32"), ((4, 64, 96), "f32")])
def batched(x, y):
    return np.matmul(x, y) + 1
"""

# columns of floats become rows in prepare-arithmetic, those of integers do not
INTEGERS = """import numpy as np
from nkigen import trace


@trace(input_specs=[((512, 128), "i32")])
def columns(x):
    return np.max(x, axis=0)
"""


@pytest.fixture(scope="module")
def results():
    return [(source, compiler.compile(source)) for source in [*(p.read_text() for p in EXAMPLES), BATCHED, INTEGERS]]


def test_remarks_name_operations_that_are_there(results):
    for source, result in results:
        for kernel in result["kernels"]:
            before = set()
            for stage in kernel["stages"]:
                here = {e["op"] for e in stage["lines"] if "op" in e}
                for r in stage.get("remarks", []):
                    assert r["pass"] == stage["pass"] and r["text"]
                    assert "op" not in r or (r["op"] in here and r["from"] in stage["from"][str(r["op"])]), (stage["name"], r)
                    assert "from" not in r or r["from"] in before, (stage["name"], r)
                    for place in r.get("src", []):
                        assert source_map.text_of(source, place).strip()
                before = source_map.all_ids(stage)


def test_every_pass_that_decides_says_so(results):
    said = {r["pass"] for _, result in results for k in result["kernels"] for s in k["stages"] for r in s.get("remarks", [])}
    assert TALKING <= said, TALKING - said


def test_decisions_of_the_examples_have_costs_or_say_why_there_is_no_other_choice(results):
    for _, result in results:
        for r in (r for k in result["kernels"] for s in k["stages"] for r in s.get("remarks", [])):
            assert is_priced(r) + bool(FORCED[r["rule"]]) + ("forced" in r) == 1, r


def test_remarks_lead_to_the_expression_and_to_the_line(results):
    source, result = results[0]
    stage = next(s for s in result["kernels"][0]["stages"] if s["name"] == "knob-driven-tiling")
    lines = {e["op"]: t for t, e in zip(stage["text"].split("\n"), stage["lines"]) if "op" in e}
    found = [(r["text"], source_map.text_of(source, r["src"][0]), lines[r["op"]].split(" = ")[1].split(" ")[0]) for r in stage["remarks"]]
    assert found == [
        ("TILE=[128,512,128], 2x1x2 of them", "np.matmul(x, w)", "linalg.matmul"),
        ("promoted 2 inputs to SBUF, in blocks that serve several tiles", "np.matmul(x, w)", "linalg.matmul"),
        ("accumulates in PSUM", "np.matmul(x, w)", "linalg.matmul"),
        ("the left input is transposed: the tensor engine wants its rows across the partitions", "np.matmul(x, w)", "linalg.matmul"),
        ("blocks of 2x1 tiles in SBUF, rows outside: 786432 bytes are loaded", "np.matmul(x, w)", "linalg.matmul"),
        ("TILE=[128,512], 2x1 of them", "product + bias", "linalg.generic"),
        ("promoted 1 input to SBUF", "product + bias", "linalg.generic"),
        ("TILE=[128,512], 2x1 of them", "np.maximum(shifted, 0.0)", "linalg.generic"),
    ]


def test_fused_loops_and_removed_copies_are_reported():
    source = """import numpy as np
from nkigen import trace, knob

@trace(input_specs=[((256, 256), "f32"), ((256, 256), "f32")])
def f(x, y):
    a = np.exp(x)
    knob.knob(a).tile_op(tile_size=[128, 256])
    b = np.exp(y)
    knob.knob(b).tile_op(tile_size=[128, 256])
    knob.fuse(a, b)
    return a, b
"""
    result = compiler.compile(source)
    assert result["status"] == "ok", result["diagnostics"]
    texts = {s["name"]: [r["text"] for r in s.get("remarks", [])] for s in result["kernels"][0]["stages"]}
    assert texts["knob-driven-fusion"] == ["computes 2 fused values"]


def test_a_remark_about_something_that_is_gone_still_has_its_place(results):
    gone = [(source, r) for source, result in results for k in result["kernels"] for s in k["stages"]
            for r in s.get("remarks", []) if r["text"].startswith("removed a copy within") and "op" not in r]
    assert gone and all(r.get("src") for _, r in gone)
