"""Programs whose work was divided among the engines compute the same, in places and engine programs, too."""
import re

import ml_dtypes
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


BIG = "memref<1024x128xbf16, #nisa.mem<shared_hbm>>"
KINDS = {"s": "memref<128x128xbf16, #nisa.mem<sbuf>>", "f": "memref<128x128xf32, #nisa.mem<sbuf>>", "p": "memref<128x128xf32, #nisa.mem<psum>>"}


def of(kind, name):
    return f"<128| 128>={KINDS[kind]} %{name}[d0, d1]"


def matmul(dst, left, right):
    return (f"nisa.matmul(dst{of('p', dst)}, stationary{of('s', left)}, moving{of('s', right)}, row_pos=index %c0, col_pos=index %c0, "
            "is_transpose=false, perf_opt=none_, psum_zero_region=size2048) engine=tensor")


def chain(rng, n, carries):
    """The lines of a tile: a product, operations on it, and a product of that.  carries: a value stays for the next round."""
    def t(x):
        return f"{x}{n}"
    lines = [(t("a"), "s", f"nisa.dma_copy(dst{of('s', t('a'))}, src<128| 128>={BIG} %x[%i*128 + d0, d1]) engine=dma"),
             (t("p"), "p", matmul(t("p"), t("a"), "w")),
             (t("b"), "f", f"nisa.tensor_copy(dst{of('f', t('b'))}, src{of('p', t('p'))}) engine=vector")]
    last = t("b")
    for k in range(int(rng.integers(0, 4))):
        new, other = f"m{n}x{k}", rng.choice([last, t("b"), *(["kept"] * carries)])
        op = rng.choice(["add", "subtract", "max"])
        lines.append((new, "f", f"nisa.tensor_tensor_arith(dst{of('f', new)}, lhs{of('f', last)}, rhs{of('f', other)}, op={op}) engine=vector"))
        last = new
    lines += [(t("e"), "s", f"nisa.activation(dst{of('s', t('e'))}, src{of('f', last)}, bias=f32 %zero, scale=f32 %small, op=tanh) engine=scalar"),
              (t("q"), "p", matmul(t("q"), t("e"), "w")),
              (t("r"), "s", f"nisa.tensor_copy(dst{of('s', t('r'))}, src{of('p', t('q'))}) engine=vector")]
    if carries:
        lines.append(("", "", f"nisa.tensor_copy(dst{of('f', 'kept')}, src{of('p', t('q'))}) engine=vector"))
    lines.append(("", "", f"nisa.dma_copy(dst<128| 128>={BIG} %y{n}[%i*128 + d0, d1], src{of('s', t('r'))}) engine=dma"))
    return lines


def products(rng):
    """A loop over one to three tiles, their instructions mixed in any order that computes the same."""
    n = int(rng.integers(1, 4))
    chains = [chain(rng, k, rng.random() < 0.2) for k in range(n)]
    left, body, alive = [list(c) for c in chains], [], []
    stays = rng.random()
    k = 0
    while any(left):
        k = int(rng.choice([j for j in range(n) if left[j]])) if rng.random() > stays or not left[k] else k
        name, kind, line = left[k].pop(0)
        if name:
            body.append(f"%{name} = nisa.alloc : {KINDS[kind]}")
            alive.append((name, kind))
        body.append(line)
    released = []
    for name, kind in alive:
        at = max(k for k, line in enumerate(body) if f"%{name}[" in line)
        released.append((at, f"nisa.release %{name} : {KINDS[kind]}"))
    for at, line in sorted(released, reverse=True):
        body.insert(at + 1, line)
    arrays = "\n  ".join(f"%y{k} = nisa.alloc : {BIG}" for k in range(n))
    return f"""// nisa text 1
module attributes {{nisa.target = #nisa.target<trn2>}} {{
func.func @k(%x: {BIG}) -> ({", ".join([BIG] * n)}) {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %small = arith.constant 0.25 : f32
  {arrays}
  %w = nisa.alloc : {KINDS["s"]}
  nisa.dma_copy(dst{of("s", "w")}, src<128| 128>={BIG} %x[d0, d1]) engine=dma
  %kept = nisa.alloc : {KINDS["f"]}
  nisa.memset(dst{of("f", "kept")}, value=f32 %zero) engine=vector
  scf.for %i = %c0 to %c8 step %c1 {{
    {chr(10).join(body)}
  }}
  nisa.release %w : {KINDS["s"]}
  nisa.release %kept : {KINDS["f"]}
  return {", ".join(f"%y{k}" for k in range(n))} : {", ".join([BIG] * n)}
}}
}}
"""


def test_rounds_that_overlap_compute_the_same(simulator, rng):
    cut = 0
    for seed in range(16):
        text = products(rng)
        ordered = values.opt(text, "balance-engines", "nisa-verify", "print-nisa")
        machine = values.opt(ordered, "allocate-memory", "engine-programs", "nisa-verify", "print-nisa")
        x = rng.uniform(-1, 1, (1024, 128)).astype(ml_dtypes.bfloat16)
        want = simulator.run(text, [x])
        for got in simulator.run(ordered, [x]), simulator.run(machine, [x], schedule="random", seed=seed):
            for a, b in zip(got, want, strict=True):
                np.testing.assert_array_equal(a, b)
        cut += "to %c7 " in ordered
    assert cut >= 4, cut
