"""A feed-forward of 2048x2048x4096 asks for more SBUF than there is: it spills, reloads, and stays within what is usable at
every point of the program, which on_chip.walk finds out by itself.  Whether the numbers are right is checked on a small
one with as much less SBUF; NKX_BIG=1 (make nightly) checks the large one at every stage, too.  NKX_SPILL_TAILS=n makes n
kernels whose last tiles are not full.
"""
import os
import re

import numpy as np
import pytest

from support import compiler, on_chip, reference, values
from support.kernels import feedforward
from support.simulator import Simulator

LATER = ["insert-memref-dealloc", "cse", "canonicalize"]


def stages(result):
    assert result["status"] == "ok", result["diagnostics"]
    (kernel,) = result["kernels"]
    return {s["name"]: s["text"] for s in kernel["stages"]}  # the last of each name


def moves(text):
    """Copies between SBUF and HBM that is no argument or result: (how many to HBM, how many back)."""
    sides = re.findall(r"memref\.copy .* : memref<.*(\d) : i32> to memref<.*(\d) : i32>", text)
    return sides.count(("3", "1")) + sides.count(("2", "1")), sides.count(("1", "3"))


def whole(text):
    """Those of them that take whole buffers, in their physical form."""
    shape = r"memref<128x\d+x\d+x\d+x\w+, {} : i32>"
    return [len(re.findall(f"memref.copy .* : {shape.format(a)} to {shape.format(b)}", text)) for a, b in ("31", "13")]


@pytest.mark.parametrize("target", on_chip.USABLE)
@pytest.mark.parametrize("variant", feedforward.VARIANTS)
def test_a_large_feedforward_stays_within_sbuf(variant, target):
    got = stages(compiler.compile(feedforward.source(variant), "--target", target))
    usable = on_chip.USABLE[target]
    before = on_chip.walk(values.opt(got["simplify-linalg"], "insert-memref-dealloc"))
    after = on_chip.walk(got["canonicalize"])
    nisa = on_chip.walk(got["linalg-to-nisa"])
    print(f"{variant} {target}: {before.sbuf} -> {after.sbuf} bytes, as instructions {nisa.sbuf}, of {usable}; "
          f"moves {moves(got['simplify-linalg'])} -> {moves(got['insert-spill-reload'])}, "
          f"of whole buffers {whole(got['insert-spill-reload'])}")
    assert max(after.sbuf, nisa.sbuf) <= usable
    assert max(after.psum, nisa.psum) <= on_chip.PSUM
    spills, reloads = np.subtract(moves(got["insert-spill-reload"]), moves(got["simplify-linalg"]))
    if variant == "plain":  # the compiler chose HBM for what does not fit
        assert before.sbuf <= usable and not spills
    else:
        assert before.sbuf > usable and spills > 0 and reloads > 0
    if variant == "residual" and target == "trn1":  # there the matmul has no room beside it
        assert min(whole(got["insert-spill-reload"])) > 0


# As much less SBUF as the kernel is smaller.
@pytest.mark.parametrize("variant, capacity", [("kept", 6144), ("residual", 6144)])
def test_a_small_one_with_less_sbuf_computes_the_same_at_every_stage(variant, capacity):
    source = feedforward.source(variant, 256, 256, 512)
    result = compiler.compile(source)
    text = stages(result)["simplify-linalg"]
    inputs = compiler.random_inputs(result["kernels"][0])
    want = reference.run_numpy(source, result["kernels"][0], inputs)
    assert on_chip.walk(values.opt(text, "insert-memref-dealloc")).sbuf > capacity
    done = text
    for step in [f"insert-spill-reload=sbuf-capacity={capacity}", *LATER]:
        done = values.opt(done, step)
        if done != text:
            reference.assert_close(values.run(done, inputs), want, f"{variant} after {step}")
        text = done
    assert min(moves(done)) > 0
    assert on_chip.walk(done).sbuf <= capacity
    nisa = values.opt(done, f"linalg-to-nisa=sbuf-capacity={capacity}", "print-nisa")
    assert on_chip.walk(nisa).sbuf <= capacity
    compiler.stage(result["kernels"][0], "linalg-to-nisa")["text"] = nisa
    reference.assert_nisa(result["kernels"][0], inputs, want)


@pytest.mark.skipif(not os.environ.get("NKX_BIG"), reason="200 GFLOP and more per kernel: make nightly")
@pytest.mark.parametrize("variant, target", [("plain", "trn2"), ("kept", "trn1"), ("kept", "trn2"), ("kept", "trn3"),
                                             ("residual", "trn1"), ("residual", "trn2"), ("residual", "trn3")])
def test_a_large_one_computes_what_numpy_computes_at_every_stage(variant, target):
    result = compiler.compile(feedforward.source(variant), "--target", target, check=True, timeout=1800)
    assert result["status"] == "ok", result["diagnostics"]
    for stage in result["kernels"][0]["stages"]:
        assert compiler.is_checked(stage), (stage["name"], stage["check"])
    inputs = compiler.random_inputs(result["kernels"][0])
    want = reference.run_numpy(feedforward.source(variant), result["kernels"][0], inputs)
    reference.assert_nisa(result["kernels"][0], inputs, want)


# ---- buffers whose last tiles are not full -----------------------------------------------------------------------------

TAILS = """
import numpy as np
from nkigen import trace, knob

def keep(v):
    knob.knob(v).tile_op(tile_size=[{rows_of_tile}, {tile}]).layout(mem_space="Sbuf")
    return v

@trace(input_specs=[(({rows}, {length}), {dtype!r}), (({length}, {columns}), {dtype!r})])
def tails(x, w):
    half = keep(x * 0.5)
    grown = keep(np.exp(x))
    product = grown @ w
    more = keep(grown + 1.0)
    return product, more * grown + half, np.max(more, axis=-1)
"""


def tails(rng):
    """A kernel of random shapes.  True with it if the last tiles of rows, or of the elements of a row, are partly unused."""
    rows_of_tile, tile = int(rng.choice([32, 128])), int(rng.choice([64, 200, 256, 512]))
    rows, length = (int(rng.integers(1, 3)) * t + int(rng.choice([0, 1, t // 3])) for t in (rows_of_tile, tile))
    source = TAILS.format(rows=rows, length=length, columns=rng.integers(1, 64), rows_of_tile=rows_of_tile, tile=tile,
                          dtype=str(rng.choice(["f32", "bf16"])))
    return source, bool(rows % rows_of_tile or length % tile)


def copied_in_parts(text):
    """The number of copies to the HBM of what waits there, and back, that do not take whole buffers."""
    part = r"memref<[^<>]*strided<[^<>]*>, {} : i32>"
    return sum(len(re.findall(f"memref.copy .* : {part.format(a)} to {part.format(b)}", text)) for a, b in ("31", "13"))


@pytest.fixture(scope="module")
def simulator():
    with Simulator() as s:
        yield s


@pytest.mark.parametrize("seed", range(int(os.environ.get("NKX_SPILL_TAILS", "6"))))
def test_what_spills_of_buffers_with_tails_was_written(simulator, seed):
    """The simulator refuses a transfer that reads what nothing has written."""
    rng = np.random.default_rng(seed)
    source, has_tails = tails(rng)
    result = compiler.compile(source)
    text = stages(result)["simplify-linalg"]
    (kernel,) = result["kernels"]
    capacity = int(on_chip.walk(values.opt(text, "insert-memref-dealloc")).sbuf * rng.uniform(0.6, 0.8))
    spilled = values.opt(text, f"insert-spill-reload=sbuf-capacity={capacity}")
    assert (copied_in_parts(spilled) > 0) == has_tails
    nisa = values.opt(spilled, *LATER, "linalg-to-nisa", "nisa-verify", "print-nisa")
    inputs = compiler.random_inputs(kernel, seed)
    got = [g.view(t) for g, (_, t) in zip(simulator.run(nisa, inputs), compiler.output_types(kernel), strict=True)]
    want = reference.call(reference.functions(source)["tails"], kernel, inputs)
    reference.assert_close(got, want, source)


# ---- the walk itself fails when it should -----------------------------------------------------------------------------

T, SLOT = "memref<128x4x16xf32, 3 : i32>", "memref<128x4x16xf32, 1 : i32>"
LOOP = f"""func.func @f(%x: memref<128x4x16xf32, 4 : i32>) {{
  %a = memref.alloc() : {T}
  %h = memref.alloc() : {SLOT}
  scf.for %i = %c0 to %c8 step %c1 {{
    %t = memref.alloc() {{alignment = 64 : i64}} : memref<128x8xbf16, 3 : i32>
    %p = memref.alloc() : memref<128x8xf32, 2 : i32>
    memref.dealloc %t : memref<128x8xbf16, 3 : i32>
    memref.dealloc %p : memref<128x8xf32, 2 : i32>
  }}
  memref.copy %a, %h : {T} to {SLOT}
  memref.dealloc %a : {T}
  %b = memref.alloc() : {T}
  memref.dealloc %b : {T}
  return
}}"""


def test_the_walk_adds_up_what_lives_at_once():
    live = on_chip.walk(LOOP)
    assert (live.sbuf, live.psum, live.n_buffers) == (256 + 16, 2048, 4)
    assert live.sbuf_line == 5


@pytest.mark.parametrize("old, new, why", [
    ("    memref.dealloc %t : memref<128x8xbf16, 3 : i32>\n", "", "does not free ..%t.."),
    (f"  memref.dealloc %a : {T}\n", "", "does not free ..%a.."),
    ("  %b = memref", f"  memref.dealloc %a : {T}\n  %b = memref", "%a is used after its end"),
    (f"  memref.copy %a, %h : {T} to {SLOT}\n  memref.dealloc %a : {T}\n",
     f"  memref.dealloc %a : {T}\n  memref.copy %a, %h : {T} to {SLOT}\n", "%a is used after its end"),
    ("%t : memref<128x8xbf16, 3 : i32>\n", f"%a : {T}\n", "does not free"),
])
def test_the_walk_notices_buffers_that_do_not_end_once(old, new, why):
    assert old in LOOP
    with pytest.raises(on_chip.Broken, match=why):
        on_chip.walk(LOOP.replace(old, new, 1))


def test_without_the_pass_the_verifier_and_the_walk_both_object():
    text = stages(compiler.compile(feedforward.source("residual"), "--target", "trn1"))["simplify-linalg"]
    nisa = values.opt(text, "insert-memref-dealloc", "linalg-to-nisa=target=trn1")
    assert on_chip.walk(nisa).sbuf > on_chip.USABLE["trn1"]
    with pytest.raises(values.Refused, match="bytes of every SBUF partition are in use; there are 180224"):
        values.opt(nisa, "nisa-verify")
