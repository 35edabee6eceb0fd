"""Programs whose loops of transfers were merged move the same bytes."""
import re

import numpy as np
import pytest

from support import values
from support.simulator import Simulator

HEAD = "// nisa text 1\nmodule attributes {nisa.target = #nisa.target<trn2>} {\n"


@pytest.fixture(scope="module")
def simulator():
    with Simulator() as s:
        yield s


def nest(loops, body):
    """Lines of scf.for around body, the first loop outermost; a loop is (name, upper bound, step)."""
    lines = []
    for k, (name, upper, step) in enumerate(loops):
        lines.append("  " * k + f"scf.for %{name} = %c0 to %c{upper} step %c{step} {{")
    lines.append(body)
    return "\n".join(lines + ["}"] * len(loops))


def program(rng):
    """A kernel that loads all of a matrix tile by tile, as it is or transposed, and stores it tile by tile."""
    turned = rng.random() < 0.5
    p, f = (int(rng.choice([16, 32, 64])) for _ in range(2))
    m, n = (int(rng.integers(1, 7)) for _ in range(2))
    dtype = rng.choice(["f32", "bf16"])
    x = f"memref<{m * p}x{n * f}x{dtype}, #nisa.mem<shared_hbm>>"
    i, j = ("i", m, 1), ("j", n, 1)
    if rng.random() < 0.3 and m % 2 == 0:  # a step other than 1
        i = ("i", 2 * m, 2)
    half = "%i*" if i[2] == 1 else None
    row = f"%i*{p if half else p // 2}"
    block = "%i" if half else "%i2"
    prefix = "" if half else "%i2 = arith.divui %i, %c2 : index\n"
    order = [[i, j], [j, i]][rng.integers(2)]
    if turned:  # [n*f, m*p]: columns across the partitions
        y, b = f"memref<{n * f}x{m * p}x{dtype}, #nisa.mem<shared_hbm>>", f"memref<{f}x{n}x{m}x{p}x{dtype}, #nisa.mem<sbuf>>"
        load = (f"nisa.dma_transpose(dst<{f}| {p}>={b} %b[d0, %j, {block}, d1], src<{p}| {f}>={x} %x[{row} + d0, %j*{f} + d1], "
                "permutation=[1, 0]) engine=dma")
        store = f"nisa.dma_copy(dst<{f}| {p}>={y} %y[%j*{f} + d0, {row} + d1], src<{f}| {p}>={b} %b[d0, %j, {block}, d1]) engine=dma"
    else:
        y, b = x, f"memref<{p}x{m}x{n}x{f}x{dtype}, #nisa.mem<sbuf>>"
        load = f"nisa.dma_copy(dst<{p}| {f}>={b} %b[d0, {block}, %j, d1], src<{p}| {f}>={x} %x[{row} + d0, %j*{f} + d1]) engine=dma"
        store = f"nisa.dma_copy(dst<{p}| {f}>={y} %y[{row} + d0, %j*{f} + d1], src<{p}| {f}>={b} %b[d0, {block}, %j, d1]) engine=dma"
    numbers = "\n".join(f"%c{k} = arith.constant {k} : index" for k in range(13))
    body = f"""func.func @k(%x: {x}) -> {y} {{
{numbers}
%y = nisa.alloc : {y}
%b = nisa.alloc : {b}
{nest(order, prefix + load)}
{nest(order[::-1], prefix + store)}
nisa.release %b : {b}
return %y : {y}
}}"""
    return HEAD + body + "\n}\n", (m * p, n * f), dtype, turned


def test_random_nests_of_transfers_move_the_same_elements(simulator, rng):
    import ml_dtypes

    fewer = 0
    for _ in range(60):
        text, shape, dtype, turned = program(rng)
        merged = values.opt(text, "coalesce-transfers", "nisa-verify", "print-nisa")
        x = rng.uniform(-1, 1, shape).astype(np.float32 if dtype == "f32" else ml_dtypes.bfloat16)
        (got,) = simulator.run(merged, [x])
        np.testing.assert_array_equal(got, x.T if turned else x)
        fewer += merged.count("scf.for") < text.count("scf.for")
    assert fewer >= 40


def test_a_merged_transfer_is_as_large_as_it_should_be_and_its_loop_stays(rng, simulator):
    text = HEAD + """func.func @k(%x: memref<128x12288xf32, #nisa.mem<shared_hbm>>) -> memref<128x12288xf32, #nisa.mem<shared_hbm>> {
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%c24 = arith.constant 24 : index
%y = nisa.alloc : memref<128x12288xf32, #nisa.mem<shared_hbm>>
%b = nisa.alloc : memref<128x24x512xf32, #nisa.mem<sbuf>>
scf.for %i = %c0 to %c24 step %c1 {
  nisa.dma_copy(dst<128| 512>=memref<128x24x512xf32, #nisa.mem<sbuf>> %b[d0, %i, d1], src<128| 512>=memref<128x12288xf32, #nisa.mem<shared_hbm>> %x[d0, %i*512 + d1]) engine=dma
}
nisa.dma_copy(dst<128| 24, 512>=memref<128x12288xf32, #nisa.mem<shared_hbm>> %y[d0, d1*512 + d2], src<128| 24, 512>=memref<128x24x512xf32, #nisa.mem<sbuf>> %b[d0, d1, d2]) engine=dma
nisa.release %b : memref<128x24x512xf32, #nisa.mem<sbuf>>
return %y : memref<128x12288xf32, #nisa.mem<shared_hbm>>
}
}
"""
    merged = values.opt(text, "coalesce-transfers", "nisa-verify", "print-nisa")
    assert re.search(r"scf\.for %i = %c0_?\d* to %c12", merged) and "dst<128| 2, 512>" in merged
    x = rng.uniform(-1, 1, (128, 12288)).astype(np.float32)
    np.testing.assert_array_equal(simulator.run(merged, [x])[0], x)
