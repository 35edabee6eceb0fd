"""Programs whose work was divided among the engines compute the same, in places and engine programs, too."""
import re

import numpy as np
import pytest

from support import values
from support.simulator import Simulator

TILE, COLUMN = "memref<128x1024xf32, #nisa.mem<sbuf>>", "memref<128x1xf32, #nisa.mem<sbuf>>"
HBM = "memref<512x1024xf32, #nisa.mem<shared_hbm>>"
PAIRS, NUMBERS = ["add", "subtract", "multiply", "max"], ["add", "subtract", "multiply", "max", "min"]


@pytest.fixture(scope="module")
def simulator():
    with Simulator() as s:
        yield s


def at(kind, name):
    return f"<128| {'1' if kind == COLUMN else '1024'}>={kind} %{name}[d0, {'0' if kind == COLUMN else 'd1'}]"


def tile_of(number):
    return f"t{number}"


def instruction(rng, n, kinds, is_chain):
    """A line that computes tile n + 1 from tile n, or any one before, from an earlier one and from the column."""
    dst, src = at(TILE, tile_of(n + 1)), at(TILE, tile_of(n if is_chain else int(rng.integers(n + 1))))
    earlier = at(TILE, tile_of(int(rng.integers(n + 1))))
    kind = rng.choice(kinds)
    if kind == 0:
        return f"nisa.tensor_copy(dst{dst}, src{src}) engine=vector"
    if kind < 3:
        return f"nisa.tensor_tensor_arith(dst{dst}, lhs{src}, rhs{earlier}, op={rng.choice(PAIRS)}) engine=vector"
    first = at(COLUMN, "c").join(["operand0", ""]) if rng.random() < 0.5 else "operand0=f32 %half"
    if kind == 3:
        turned = rng.choice(["none", "first"])
        return f"nisa.tensor_scalar_arith(dst{dst}, src{src}, {first}, op0={rng.choice(NUMBERS)}, reverse_operands={turned}) engine=vector"
    second, op = [("%zero", "max"), ("%half", "add"), ("%half", "max"), ("%half", "multiply")][rng.integers(2 if kinds == [4] else 4)]
    op0 = "multiply" if kinds == [4] else rng.choice(["add", "multiply"])
    return f"nisa.tensor_scalar_arith(dst{dst}, src{src}, {first}, operand1=f32 {second}, op0={op0}, op1={op}, reverse_operands=none) engine=vector"


def program(rng, steps, is_loop):
    kinds = range(5) if rng.random() < 0.5 else [4]  # all of the latter may become activations
    lines = [f"%t0 = nisa.alloc : {TILE}", f"nisa.dma_copy(dst{at(TILE, 't0')}, src<128| 1024>={HBM} %x[%i*128 + d0, d1]) engine=dma"]
    for n in range(steps):
        lines += [f"%{tile_of(n + 1)} = nisa.alloc : {TILE}", instruction(rng, n, kinds, is_loop)]
    lines.append(f"nisa.dma_copy(dst<128| 1024>={HBM} %y[%i*128 + d0, d1], src{at(TILE, tile_of(steps))}) engine=dma")
    lines += [f"nisa.release %{tile_of(n)} : {TILE}" for n in range(steps + 1)]
    body = "\n    ".join(lines)
    if is_loop:
        body = f"scf.for %i = %c0 to %c4 step %c1 {{\n    {body}\n  }}"
    else:
        body = body.replace("%i", "%c0")
    return f"""// nisa text 1
module attributes {{nisa.target = #nisa.target<trn2>}} {{
func.func @k(%x: {HBM}) -> {HBM} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %half = arith.constant 0.5 : f32
  %zero = arith.constant 0.0 : f32
  %y = nisa.alloc : {HBM}
  %c = nisa.alloc : {COLUMN}
  nisa.dma_copy(dst{at(COLUMN, "c")}, src<128| 1>={HBM} %x[d0, d1]) engine=dma
  {body}
  nisa.release %c : {COLUMN}
  return %y : {HBM}
}}
}}
"""


@pytest.mark.parametrize("is_loop, most", [(True, 12), (False, 40)], ids=["loops", "programs"])
def test_random_code_computes_the_same_on_other_engines(simulator, rng, is_loop, most):
    moved = {"gpsimd": 0, "scalar": 0}
    for _ in range(12):
        rows = 512 if is_loop else 128
        text = program(rng, int(rng.integers(3, most)), is_loop).replace("512x", f"{rows}x")
        divided = values.opt(text, "balance-engines", "nisa-verify", "print-nisa")
        machine = values.opt(divided, "allocate-memory", "engine-programs", "nisa-verify", "print-nisa")
        x = rng.uniform(-2, 2, (rows, 1024)).astype(np.float32)
        (want,), (got,) = simulator.run(text, [x]), simulator.run(divided, [x])
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(simulator.run(machine, [x], schedule="random", seed=7)[0], want)
        for engine in moved:
            moved[engine] += len(re.findall(rf"nisa\.(?:tensor|activation)\S*\(.*engine={engine}", divided))
    assert moved["gpsimd"] >= 8 and moved["scalar"] >= 4, moved
