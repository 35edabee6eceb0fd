"""Programs whose instructions were put in another order compute the same, in places and engine programs, too."""
import ml_dtypes
import numpy as np
import pytest

from support import values
from support.simulator import Simulator


@pytest.fixture(scope="module")
def simulator():
    with Simulator() as s:
        yield s


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
        ordered = values.opt(text, "schedule", "nisa-verify", "print-nisa")
        machine = values.opt(ordered, "allocate-memory", "engine-programs", "nisa-verify", "print-nisa")
        x = rng.uniform(-1, 1, (1024, 128)).astype(ml_dtypes.bfloat16)
        want = simulator.run(text, [x])
        for got in simulator.run(ordered, [x]), simulator.run(machine, [x], schedule="random", seed=seed):
            for a, b in zip(got, want, strict=True):
                np.testing.assert_array_equal(a, b)
        cut += "to %c7 " in ordered
    assert cut >= 4, cut


ROWS, TILE = "memref<128x256xf32, #nisa.mem<shared_hbm>>", "memref<128x256xf32, #nisa.mem<sbuf>>"


def access(kind, name):
    return f"<128| 256>={kind} %{name}[d0, d1]"


def several(rng):
    """What computes some results, step by step beside each other: each of them from its own array, now and then from what another one has or
    in place, and into an array of its own or one that several write."""
    n = int(rng.integers(2, 5))
    last, body, made = [f"t{k}" for k in range(n)], [], []
    for k in range(n):
        made.append(f"t{k}")
        body += [f"%t{k} = nisa.alloc : {TILE}", f"nisa.dma_copy(dst{access(TILE, f't{k}')}, src{access(ROWS, f'x{k}')}) engine=dma"]
    for step in range(int(rng.integers(2, 7))):
        for k in range(n):
            other = last[int(rng.integers(n))] if rng.random() < 0.2 else f"t{k}"
            is_in_place = rng.random() < 0.2
            new = last[k] if is_in_place else f"m{step}x{k}"
            if not is_in_place:
                made.append(new)
                body.append(f"%{new} = nisa.alloc : {TILE}")
            if rng.random() < 0.4:
                body.append(f"nisa.activation(dst{access(TILE, new)}, src{access(TILE, last[k])}, bias=f32 %zero, scale=f32 %half, op=tanh) engine=scalar")
            else:
                op, engine = rng.choice(["add", "subtract", "max"]), rng.choice(["vector", "vector", "gpsimd"])
                body.append(f"nisa.tensor_tensor_arith(dst{access(TILE, new)}, lhs{access(TILE, last[k])}, rhs{access(TILE, other)}, op={op}) engine={engine}")
            last[k] = new
    shared = rng.random() < 0.3
    for k in range(n):
        body.append(f"nisa.dma_copy(dst{access(ROWS, 'y0' if shared else f'y{k}')}, src{access(TILE, last[k])}) engine=dma")
    body += [f"nisa.release %{name} : {TILE}" for name in made]
    arguments = ", ".join(f"%x{k}: {ROWS}" for k in range(n))
    lines = "\n  ".join([*(f"%y{k} = nisa.alloc : {ROWS}" for k in range(1 if shared else n)), *body])
    results = ["%y0"] if shared else [f"%y{k}" for k in range(n)]
    return n, f"""// nisa text 1
module attributes {{nisa.target = #nisa.target<trn2>}} {{
func.func @k({arguments}) -> ({", ".join([ROWS] * len(results))}) {{
  %zero = arith.constant 0.0 : f32
  %half = arith.constant 0.5 : f32
  {lines}
  return {", ".join(results)} : {", ".join([ROWS] * len(results))}
}}
}}
"""


def test_programs_in_another_order_compute_the_same(simulator, rng):
    changed = 0
    for seed in range(24):
        n, text = several(rng)
        ordered = values.opt(text, "schedule=parts=0" if seed % 2 else "schedule", "nisa-verify", "print-nisa")
        machine = values.opt(ordered, "allocate-memory", "engine-programs", "nisa-verify", "print-nisa")
        x = [rng.uniform(-1, 1, (128, 256)).astype(np.float32) for _ in range(n)]
        want = simulator.run(text, x)
        for got in simulator.run(ordered, x), simulator.run(machine, x, schedule="random", seed=seed):
            for a, b in zip(got, want, strict=True):
                np.testing.assert_array_equal(a, b)
        changed += ordered != values.opt(text, "nisa-verify", "print-nisa")
    assert changed >= 4, changed


# ---- short programs, written out ------------------------------------------------------------------------------------

DTYPES = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "i8": np.int8}


def memref(rows, columns, dtype, memory):
    return f"memref<{rows}x{columns}x{dtype}, #nisa.mem<{memory}>>"


def rounds(rng, rows, columns, dtype):
    """A loop that loads rows of two arrays, computes something from them, and stores it.  What a tile of the round before left stays in a
    buffer around the loop, now and then."""
    trips = int(rng.integers(1, 5))
    big, tile = memref(trips * rows, columns, dtype, "shared_hbm"), memref(rows, columns, dtype, "sbuf")
    keeps = rng.random() < 0.3

    def of(kind, name, row=""):
        return f"<{rows}| {columns}>={kind} %{name}[{row}d0, d1]"
    body = [f"%row = arith.muli %i, %rows : index"]
    for name in "ab":
        body += [f"%{name} = nisa.alloc : {tile}", f"nisa.dma_copy(dst{of(tile, name)}, src{of(big, 'x' + name, '%row + ')}) engine=dma"]
    made, last = ["a", "b"], "a"
    for k in range(int(rng.integers(1, 4))):
        other = rng.choice(["a", "b", *(["kept"] * keeps)])
        engine = "gpsimd" if dtype == "i8" else rng.choice(["vector", "gpsimd"])
        body += [f"%m{k} = nisa.alloc : {tile}",
                 f"nisa.tensor_tensor_arith(dst{of(tile, f'm{k}')}, lhs{of(tile, last)}, rhs{of(tile, other)}, op={rng.choice(['add', 'max'])}) engine={engine}"]
        last = f"m{k}"
        made.append(last)
    if keeps:
        body.append(f"nisa.tensor_copy(dst{of(tile, 'kept')}, src{of(tile, last)}) engine=vector")
    body.append(f"nisa.dma_copy(dst{of(big, 'y', '%row + ')}, src{of(tile, last)}) engine=dma")
    body += [f"nisa.release %{name} : {tile}" for name in made]
    number = "0 : i8" if dtype == "i8" else f"0.0 : {dtype}"
    lines = "\n    ".join(body)
    return (trips * rows, columns), f"""// nisa text 1
module attributes {{nisa.target = #nisa.target<trn2>}} {{
func.func @k(%xa: {big}, %xb: {big}) -> {big} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %trips = arith.constant {trips} : index
  %rows = arith.constant {rows} : index
  %zero = arith.constant {number}
  %y = nisa.alloc : {big}
  %kept = nisa.alloc : {tile}
  nisa.memset(dst{of(tile, 'kept')}, value={number.split(' : ')[1]} %zero) engine=vector
  scf.for %i = %c0 to %trips step %c1 {{
    {lines}
  }}
  nisa.release %kept : {tile}
  return %y : {big}
}}
}}
"""


def blocks(rng, columns, dtype):
    """A product of some blocks: transposed loads, sums over blocks in PSUM, and stores of rows."""
    m, k = (int(x) for x in rng.integers(1, 3, 2))
    left, right, out = (memref(*shape, dtype, "shared_hbm") for shape in ((m * 128, k * 128), (k * 128, columns), (m * 128, columns)))
    a, b, c = f"memref<128x{k}x{m}x128x{dtype}, #nisa.mem<sbuf>>", f"memref<128x{k}x{columns}x{dtype}, #nisa.mem<sbuf>>", memref(128, columns, dtype, "sbuf")
    p = memref(128, columns, "f32", "psum")
    return ((m * 128, k * 128), (k * 128, columns)), f"""// nisa text 1
module attributes {{nisa.target = #nisa.target<trn2>}} {{
func.func @k(%x: {left}, %w: {right}) -> {out} {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c128 = arith.constant 128 : index
  %m = arith.constant {m} : index
  %k = arith.constant {k} : index
  %y = nisa.alloc : {out}
  %a = nisa.alloc : {a}
  %b = nisa.alloc : {b}
  scf.for %j = %c0 to %k step %c1 {{
    %from = arith.muli %j, %c128 : index
    nisa.dma_transpose(dst<128| {m}, 128>={a} %a[d0, %j, d1, d2], src<{m * 128}| 128>={left} %x[d0, %from + d1], permutation=[1, 0]) engine=dma
    nisa.dma_copy(dst<128| {columns}>={b} %b[d0, %j, d1], src<128| {columns}>={right} %w[%from + d0, d1]) engine=dma
  }}
  scf.for %i = %c0 to %m step %c1 {{
    %p = nisa.alloc : {p}
    scf.for %j = %c0 to %k step %c1 {{
      nisa.matmul(dst<128| {columns}>={p} %p[d0, d1], stationary<128| 128>={a} %a[d0, %j, %i, d1], moving<128| {columns}>={b} %b[d0, %j, d1], row_pos=index %c0, col_pos=index %c0, is_transpose=false, perf_opt=none_, psum_zero_region=size2048) engine=tensor
    }}
    %c = nisa.alloc : {c}
    nisa.tensor_copy(dst<128| {columns}>={c} %c[d0, d1], src<128| {columns}>={p} %p[d0, d1]) engine=vector
    nisa.release %p : {p}
    %to = arith.muli %i, %c128 : index
    nisa.dma_copy(dst<128| {columns}>={out} %y[%to + d0, d1], src<128| {columns}>={c} %c[d0, d1]) engine=dma
    nisa.release %c : {c}
  }}
  nisa.release %a : {a}
  nisa.release %b : {b}
  return %y : {out}
}}
}}
"""


def numbers(rng, shape, dtype):
    return rng.integers(-3, 4, shape).astype(DTYPES[dtype])


@pytest.mark.parametrize("form", ["parts=1", "parts=2", "parts=4", "parts=1 halves=1", "parts=2 halves=1"])
def test_programs_that_are_written_out_compute_the_same(simulator, rng, form):
    divided = 0
    for seed in range(8):
        dtype = str(rng.choice(list(DTYPES)))
        if seed % 2:
            shape, text = rounds(rng, int(rng.choice([128, 65, 1])), int(rng.choice([1, 37, 256, 512, 517, 1024])), dtype)
            x = [numbers(rng, shape, dtype) for _ in range(2)]
        else:
            dtype = "f32" if dtype == "i8" else dtype
            shapes, text = blocks(rng, int(rng.choice([64, 129, 256, 512])), dtype)
            x = [numbers(rng, shape, dtype) for shape in shapes]
        written = values.opt(text, f"schedule={form}", "nisa-verify", "print-nisa")
        machine = values.opt(written, "balance-engines", "allocate-memory", "engine-programs", "nisa-verify", "print-nisa")
        assert "scf.for" not in written
        want = simulator.run(text, x)
        for got in simulator.run(written, x), simulator.run(machine, x, schedule="random", seed=seed):
            for a, b in zip(got, want, strict=True):
                np.testing.assert_array_equal(a, b)
        divided += written != values.opt(text, "schedule=parts=1", "nisa-verify", "print-nisa")
    assert divided or form == "parts=1"
