"""Programs with more buffers than SBUF holds: same results after insert-spill-reload, and at no point too much in use.

What is in use is read off the text (on_chip.walk): insert-memref-dealloc, another pass, frees each buffer after its last
use.  NKX_SPILL_PROGRAMS=n runs n more random programs (make nightly).
"""
import os

import numpy as np
import pytest

from support import on_chip, values
from support.oracles import nisa_eval

SHAPE = (16, 2, 8)
BYTES = 2 * 8 * 4
T = "memref<16x2x8xf32, 3 : i32>"
H = "memref<16x2x8xf32, 4 : i32>"


def peak(text):
    """The most bytes per partition that SBUF buffers take at once."""
    return on_chip.walk(text).sbuf


def program(rng, n_buffers, n_steps, in_loop=False, views=False):
    """Random element-wise steps on SBUF buffers, some inside of loops, some on slices; the sum of all is returned."""
    lines, names = [], [f"%b{k}" for k in range(n_buffers)]

    def step(indent, choices, counter=None):
        x, y, z = rng.choice(choices, 3)
        where, shape = "", "16x2x8"
        if views and rng.random() < 0.5:
            at = counter if counter and rng.random() < 0.5 else str(rng.integers(0, 2))
            n = len(lines)
            kind = "memref<16x1x8xf32, strided<[16, 8, 1], offset: ?>, 3 : i32>"
            if at.isdigit():
                kind = f"memref<16x1x8xf32, strided<[16, 8, 1]{', offset: 8' if at == '1' else ''}>, 3 : i32>"
            for k, v in enumerate((x, y, z)):
                lines.append(f"{indent}%s{n}_{k} = memref.subview {v}[0, {at}, 0] [16, 1, 8] [1, 1, 1] : {T} to {kind}")
            lines.append(f"{indent}linalg.max ins(%s{n}_0, %s{n}_1 : {kind}, {kind}) outs(%s{n}_2 : {kind})")
            return
        lines.append(f"{indent}linalg.{rng.choice(['add', 'max', 'sub'])} ins({x}, {y} : {T}, {T}) outs({z} : {T})")

    for k, b in enumerate(names):
        lines.append(f"    {b} = memref.alloc() : {T}")
        lines.append(f"    memref.copy %arg{k % 2}, {b} : {H} to {T}")
    for k in range(n_steps):
        few = list(rng.choice(names, 2, replace=False))
        if in_loop and k % 3 == 1:
            lines.append(f"    scf.for %i{k} = %c0 to %c2 step %c1 {{")
            inner = []
            for j in range(2):
                inner.append(f"%t{k}_{j}")
                lines.append(f"      {inner[-1]} = memref.alloc() : {T}")
                lines.append(f"      memref.copy {few[0]}, {inner[-1]} : {T} to {T}")
            for _ in range(3):
                step("      ", few + inner, f"%i{k}")
            lines.append("    }")
        else:
            step("    ", few)
    lines.append(f"    %r = memref.alloc() : {H}")
    for k in range(1, n_buffers):
        lines.append(f"    linalg.add ins(%b{k - 1}, %b{k} : {T}, {T}) outs(%b{k} : {T})")
    lines.append(f"    memref.copy {names[-1]}, %r : {T} to {H}")
    return "\n".join([f"func.func @f(%arg0: {H}, %arg1: {H}) -> {H} {{",
                      "    %c0 = arith.constant 0 : index", "    %c1 = arith.constant 1 : index",
                      "    %c2 = arith.constant 2 : index", *lines, f"    return %r : {H}", "}"])


@pytest.mark.parametrize("n, capacity, in_loop, views", [
    (5, 3, False, False), (6, 3, False, True), (8, 4, False, True), (5, 4, True, False), (6, 5, True, True),
    (7, 4, True, True),
])
def test_spilling_keeps_values_and_stays_within_the_capacity(rng, n, capacity, in_loop, views):
    text = program(rng, n, 9, in_loop, views)
    option = f"insert-spill-reload=sbuf-capacity={capacity * BYTES}"
    assert peak(values.opt(text, "insert-memref-dealloc")) > capacity * BYTES
    after = values.check(text, [option], rng)
    assert "1 : i32" in after
    assert peak(values.opt(after, "insert-memref-dealloc")) <= capacity * BYTES


@pytest.mark.parametrize("seed", range(int(os.environ.get("NKX_SPILL_PROGRAMS", "0"))))
def test_more_random_programs(seed):
    rng = np.random.default_rng(1000 + seed)
    n, in_loop, views = int(rng.integers(4, 10)), bool(rng.random() < 0.6), bool(rng.random() < 0.6)
    text = program(rng, n, int(rng.integers(4, 14)), in_loop, views)
    before = peak(values.opt(text, "insert-memref-dealloc"))
    capacity = int(rng.integers(5 if in_loop else 3, n + 2)) * BYTES
    after = values.check(text, [f"insert-spill-reload=sbuf-capacity={capacity}"], rng)
    assert peak(values.opt(after, "insert-memref-dealloc")) <= capacity
    assert before > capacity or "1 : i32" not in after  # nothing is spilled without need


def test_what_fits_is_left_alone(rng):
    text = program(rng, 4, 6, True, True)
    want = values.opt(text, "insert-spill-reload=sbuf-capacity=-1")
    assert values.opt(want, "insert-spill-reload") == want
    assert "1 : i32" not in want


def test_an_operation_that_cannot_fit_is_refused(rng):
    with pytest.raises(values.Refused, match="needs 128 bytes of SBUF per partition at once, there are 127"):
        values.opt(f"""
        func.func @f() {{
          %a = memref.alloc() : {T}
          %b = memref.alloc() : {T}
          %c = memref.alloc() : {T}
          linalg.add ins(%a, %b : {T}, {T}) outs(%c : {T})
          return
        }}""", "insert-spill-reload=sbuf-capacity=127")


def test_a_loop_over_more_than_fits_reads_tiles_from_hbm(rng):
    big, tile = "memref<16x8x8xf32, 3 : i32>", "memref<16x8xf32, strided<[64, 1], offset: ?>, 3 : i32>"
    hbm = "memref<16x8x8xf32, 4 : i32>"
    slices = "\n".join(f"%s{k} = memref.subview %{v}[0, %i, 0] [16, 1, 8] [1, 1, 1] : {big} to {tile}"
                       for k, v in enumerate("abc"))
    text = f"""
    func.func @f(%x: {hbm}) -> {hbm} {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %a = memref.alloc() : {big}
      %b = memref.alloc() : {big}
      %c = memref.alloc() : {big}
      memref.copy %x, %a : {hbm} to {big}
      memref.copy %x, %b : {hbm} to {big}
      scf.for %i = %c0 to %c8 step %c1 {{
        {slices}
        linalg.exp ins(%s0 : {tile}) outs(%s0 : {tile})
        linalg.add ins(%s0, %s1 : {tile}, {tile}) outs(%s2 : {tile})
      }}
      %r = memref.alloc() : {hbm}
      memref.copy %c, %r : {big} to {hbm}
      return %r : {hbm}
    }}"""
    one, bytes_of_tile = 8 * 8 * 4, 8 * 4
    for capacity in (2 * one + 3 * bytes_of_tile, one + 4 * bytes_of_tile, 4 * bytes_of_tile, 2 * bytes_of_tile):
        after = values.check(text, f"insert-spill-reload=sbuf-capacity={capacity}", rng)
        assert peak(values.opt(after, "insert-memref-dealloc")) <= capacity
    with pytest.raises(values.Refused, match="bytes of SBUF per partition at once"):
        values.opt(text, f"insert-spill-reload=sbuf-capacity={2 * bytes_of_tile - 1}")


# ---- one operation that uses more than there is ------------------------------------------------------------------------

WIDE, FAR = "memref<128x1x1x2048xf32, 3 : i32>", "memref<128x1x1x2048xf32, 4 : i32>"
STEPS = {
    "none is read later": ["mul a b c"],
    "one is read later": ["mul a b c", "add c a a"],
    "both are read later": ["mul a b c", "add c a a", "max a b b", "sub b c a", "exp a c"],
    "both are read later, in another order": ["sub b a c", "exp b b", "add c b c", "mul a b b", "max b c c"],
    "the same one twice": ["mul b b a", "sub a b c", "max c b c"],
    "one after the other": ["sub a b c", "add a c b", "mul b c a", "sub a b c"],
}


def three_buffers(steps):
    """Copy in, exp, the steps, copy c out: each buffer takes 8 KiB per partition."""
    lines = [f"%{b} = memref.alloc() : {WIDE}" for b in "abc"] + [f"memref.copy %x, %a : {FAR} to {WIDE}"]
    for name, *operands in map(str.split, ["exp a b", *steps]):
        *ins, out = operands
        lines.append(f"linalg.{name} ins({', '.join('%' + v for v in ins)} : {', '.join([WIDE] * len(ins))}) outs(%{out} : {WIDE})")
    lines += [f"%r = memref.alloc() : {FAR}", f"memref.copy %c, %r : {WIDE} to {FAR}"]
    return "\n".join([f"func.func @f(%x: {FAR}) -> {FAR} {{", *("  " + line for line in lines), f"  return %r : {FAR}", "}"])


@pytest.mark.parametrize("steps", STEPS.values(), ids=list(STEPS))
def test_an_operation_with_one_buffer_too_many_is_computed_in_place(rng, steps):
    text = three_buffers(steps)
    inputs = [rng.uniform(-1, 1, (128, 1, 1, 2048)).astype(np.float32)]
    want = values.run(text, inputs)
    done = values.opt(text, "insert-spill-reload=sbuf-capacity=16384")
    values.same(values.run(done, inputs), want)
    done = values.opt(done, "insert-memref-dealloc")
    assert peak(done) <= 16384
    nisa = values.opt(done, "cse", "canonicalize", "linalg-to-nisa=sbuf-capacity=16384", "nisa-verify", "print-nisa")
    assert peak(nisa) <= 16384
    values.same(nisa_eval.run(nisa, [a.copy() for a in inputs]), want)


def test_an_operation_with_two_buffers_too_many_is_refused():
    with pytest.raises(values.Refused, match="needs 16384 bytes of SBUF per partition at once, there are 12288: spilling"):
        values.opt(three_buffers(["mul a b c"]), "insert-spill-reload=sbuf-capacity=12288")
