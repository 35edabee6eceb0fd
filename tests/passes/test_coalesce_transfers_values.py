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


def rounds(rng):
    """A loop of loads, element-wise instructions and stores.  In some, a round reads or overwrites what another one wrote."""
    n, p, f = int(rng.choice([2, 3, 4, 8, 12])), int(rng.choice([16, 128])), int(rng.choice([32, 64, 128]))
    t, x, y = f"memref<{p}x{f}xf32, #nisa.mem<sbuf>>", f"memref<{p}x{n * f}xf32, #nisa.mem<shared_hbm>>", f"memref<{n}x{p}x{f}xf32, #nisa.mem<shared_hbm>>"
    kept = f"memref<{p}x{n + 1}x{f}xf32, #nisa.mem<sbuf>>"
    body, tiles = [], []

    def tile():
        tiles.append(f"%t{len(tiles)}")
        body.append(f"{tiles[-1]} = nisa.alloc : {t}")
        return tiles[-1]

    def some():
        return str(rng.choice(tiles)), "[d0, d1]", t

    def add(dst, lhs, rhs):
        sides = [f"{name}<{p}| {f}>={kind} {v}{at}" for name, (v, at, kind) in zip(["dst", "lhs", "rhs"], [dst, lhs, rhs], strict=True)]
        body.append(f"nisa.tensor_tensor_arith({', '.join(sides)}, op={rng.choice(['add', 'multiply', 'subtract'])}) engine=vector")

    def load():
        body.append(f"nisa.dma_copy(dst<{p}| {f}>={t} {tile()}[d0, d1], src<{p}| {f}>={x} %x[d0, %i*{f} + d1]) engine=dma")

    def store():
        h = f // 2
        for to, at in ((0, h), (h, 0)) if rng.random() < 0.5 else ((0, 0), (h, h)):
            body.append(f"nisa.dma_copy(dst<{p}| {h}>={y} %y[%i, d0, d1 + {to}], src<{p}| {h}>={t} {some()[0]}[d0, d1 + {at}]) engine=dma")

    every, round_of = ("%m", "[d0, d1]", t), ("%b", "[d0, %i, d1]", kept)
    next_one = "%b", "[d0, %i + 1, d1]", kept
    load()
    for _ in range(int(rng.integers(1, 6))):
        match int(rng.integers(8)):
            case 0:
                load()
            case 1:
                store()
            case 2:
                add((tile(), "[d0, d1]", t), (tiles[0], "[d0, d1]", t), every)
            case 3:
                add(some(), some(), some())
            case 4:
                add(round_of, round_of, some())
            case 5:
                add(some(), round_of, some())
            case 6 if rng.random() < 0.3:
                add(every, every, some())  # all rounds overwrite it
            case 7 if rng.random() < 0.3:
                add(*((next_one, some(), some()) if rng.random() < 0.5 else (some(), next_one, some())))
    store()
    body += [f"nisa.release {v} : {t}" for v in tiles]
    text = f"""func.func @k(%x: {x}) -> {y} {{
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%cn = arith.constant {n} : index
%half = arith.constant 0.5 : f32
%y = nisa.alloc : {y}
%m = nisa.alloc : {t}
nisa.dma_copy(dst<{p}| {f}>={t} %m[d0, d1], src<{p}| {f}>={x} %x[d0, d1]) engine=dma
%b = nisa.alloc : {kept}
nisa.memset(dst<{p}| {n + 1}, {f}>={kept} %b[d0, d1, d2], value=f32 %half) engine=vector
{nest([("i", "n", 1)], chr(10).join(body))}
nisa.release %b : {kept}
nisa.release %m : {t}
return %y : {y}
}}"""
    return HEAD + text + "\n}\n", (p, n * f)


def test_rounds_of_several_instructions_become_one_and_compute_the_same(simulator, rng):
    fewer = 0
    for _ in range(80):
        text, shape = rounds(rng)
        merged = values.opt(text, "coalesce-transfers", "nisa-verify", "print-nisa")
        x = rng.uniform(-1, 1, shape).astype(np.float32)
        np.testing.assert_array_equal(simulator.run(merged, [x])[0], simulator.run(text, [x])[0], err_msg=text)
        fewer += merged.count("scf.for") < text.count("scf.for")
    assert 30 <= fewer < 80


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
