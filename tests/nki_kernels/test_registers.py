"""Registers, and loops and branches on the device: values on the simulated machine against NumPy's formula, every stage against the
evaluation of the record, and what is refused."""
import os
import subprocess
import sys

import numpy as np
import pytest

from support import compiler, nki_checks
from support.nki_kernels import HEAD, TARGETS
from support.paths import BUILD
from support.runs import simulated

I32, U32, F32 = np.int32, np.uint32, np.float32


def one(value, dtype=I32):
    return np.array([[value]], dtype)


def _x(*shape):
    return np.random.default_rng(sum(shape)).uniform(-1, 1, shape).astype(F32)


CASES = []  # (name, parameters, body, inputs, formula)


def case(name, body, inputs, want, out="(128, 8), nl.float32"):
    CASES.append((name, body, inputs, want, out))


def source_of(body, inputs, out):
    parameters = ", ".join(f"{k}: nl.tensor[nl.{v.dtype.name}, {v.shape}]" for k, v in inputs.items())
    lines = [f"out = nl.ndarray({out}, buffer=nl.shared_hbm)", *body.strip("\n").split("\n"), "return out"]
    return HEAD + f"\n@nki.jit\ndef kernel({parameters}):\n" + "".join(f"    {line}\n" for line in lines)


# ---- loops -----------------------------------------------------------------------------------------------------------

SUM = """
acc, t, r = nl.zeros((128, 8), nl.float32), nl.ndarray((128, 8), nl.float32), nisa.register_alloc(n)
for i in nl.dynamic_range({bounds}):
    nisa.dma_copy(dst=t, src=x[:, nl.ds(i * 8, 8)])
    nisa.tensor_tensor(dst=acc, data1=acc, data2=t, op=nl.add)
nl.store(out, acc)
"""
for bounds, n, rounds in (("r", 5, range(5)), ("r", 0, range(0)), ("r", -3, range(0)), ("2, r", 7, range(2, 7)), ("1, r, 3", 8, range(1, 8, 3)),
                          ("r, 8", 6, range(6, 8)), ("r, 8, 5", 1, range(1, 8, 5)), ("r - 3, r + 1", 4, range(1, 5)), ("0, 3", 1, range(3)), ("4", 1, range(4))):
    x = _x(128, 64)
    case(f"dynamic_range({bounds}) with {n}", SUM.format(bounds=bounds), {"x": x, "n": one(n)},
         sum((x[:, i * 8:i * 8 + 8] for i in rounds), np.zeros((128, 8), F32)))

case("an index of HBM, odd shapes", """
r = nisa.register_alloc(n)
for i in nl.dynamic_range(3):
    for k in range(5):
        nl.store(out[i, k:k + 1], nl.load(x[i, k:k + 1]))
    if i == r:
        nl.store(out[i, 1:4, 2:5], nl.load(x[i, 2:5, 1:4]))
""", {"x": _x(3, 5, 7), "n": one(2, np.uint8)}, None, "(3, 5, 7), nl.float32")
_want = _x(3, 5, 7)
_want[2, 1:4, 2:5] = _x(3, 5, 7)[2, 2:5, 1:4]
CASES[-1] = (*CASES[-1][:3], _want, CASES[-1][4])

case("two loops in each other, with bounds from each other", """
acc, rows = nl.zeros((128, 8), nl.float32), nisa.register_alloc(n)
for i in nl.dynamic_range(rows):
    for k in nl.dynamic_range(i + 1):
        t = nl.load(x[:, nl.ds(i * 16 + k * 2, 8)])
        nisa.tensor_tensor(dst=acc, data1=acc, data2=t, op=nl.add)
nl.store(out, acc)
""", {"x": _x(128, 64), "n": one(3)},
     sum(_x(128, 64)[:, i * 16 + 2 * k:i * 16 + 2 * k + 8] for i in range(3) for k in range(i + 1)))

case("a loop of Python in a loop on the device, and around one", """
r = nisa.register_alloc(n)
for part in range(2):
    acc = nl.zeros((128, 4), nl.float32)
    for i in nl.dynamic_range(r):
        for k in range(4):
            t = nl.load(x[:, nl.ds(i * 4 + part * 32, 4)])
            nisa.tensor_scalar(acc[:, k:k + 1], t[:, k:k + 1], nl.multiply, 2.0, op1=nl.add, operand1=acc[:, k:k + 1])
    nl.store(out[:, part * 4:part * 4 + 4], acc)
""", {"x": _x(128, 64), "n": one(3)},
     np.hstack([2 * sum(_x(128, 64)[:, p * 32 + 4 * i:p * 32 + 4 * i + 4] for i in range(3)) for p in range(2)]))

case("fori_loop, whose state is in HBM", """
r, state = nisa.register_alloc(n), nl.ndarray((128, 8), nl.float32, buffer=nl.hbm)
nl.store(state, nl.load(x[:, 0:8]))
def body(i):
    t = nl.load(state)
    u = nl.load(x[:, nl.ds(i * 8, 8)])
    nisa.tensor_tensor(t, t, u, op=nl.maximum)
    nl.store(state, t)
nl.fori_loop(1, r, body)
nl.store(out, nl.load(state))
""", {"x": _x(128, 64), "n": one(6)}, np.max([_x(128, 64)[:, i * 8:i * 8 + 8] for i in range(6)], axis=0))

case("fori_loop with a step", """
acc = nl.zeros((128, 8), nl.float32)
def body(i):
    nisa.tensor_tensor(acc, acc, nl.load(x[:, nl.ds(i, 8)]), op=nl.add)
nl.fori_loop(0, 40, body, step=16)
nl.store(out, acc)
""", {"x": _x(128, 64)}, sum(_x(128, 64)[:, i:i + 8] for i in (0, 16, 32)))

case("while with an end that depends on data", """
value, limit, count = nl.load(x), nisa.register_alloc(n), nisa.register_alloc(0)
total, go = nl.ndarray((1, 1), nl.int32), nisa.register_alloc(1)
while go:
    nisa.tensor_scalar(value, value, nl.multiply, 2.0)
    nisa.register_move(dst=count, src=count + 1)
    nisa.tensor_copy(total, value[0:1, 0:1])
    now = nisa.register_alloc(total)
    nisa.register_move(dst=go, src=now < limit)
nl.store(out[:, 0:7], value)
c = nl.ndarray((1, 1), nl.int32)
nisa.register_store(dst=c, src=count)
f = nl.zeros((128, 1), nl.float32)
nisa.tensor_copy(f[0:1, :], c)
nl.store(out[:, 7:8], f)
""", {"x": np.full((128, 7), 3, F32), "n": one(100)}, np.hstack([np.full((128, 7), 192, F32), np.eye(128, 1, dtype=F32) * 6]))

case("while whose condition is computed", """
acc, i, r = nl.zeros((128, 8), nl.float32), nisa.register_alloc(0), nisa.register_alloc(n)
while i < r:
    nisa.tensor_scalar(acc, acc, nl.add, 1.5)
    nisa.register_move(dst=i, src=i + 2)
nl.store(out, acc)
""", {"n": one(9)}, np.full((128, 8), 7.5, F32))

case("while that does not begin", """
acc, r = nl.zeros((128, 8), nl.float32), nisa.register_alloc(n)
while r > 0:
    nisa.tensor_scalar(acc, acc, nl.add, 1.0)
    nisa.register_move(dst=r, src=r - 1)
nl.store(out, acc)
""", {"n": one(-1)}, np.zeros((128, 8), F32))

case("while_loop", """
acc = nl.zeros((128, 8), nl.float32)
def body(r):
    nisa.tensor_scalar(acc, acc, nl.add, 1.0)
    return r - 3
nl.while_loop(nisa.register_alloc(n), body)
nl.store(out, acc)
""", {"n": one(12)}, np.full((128, 8), 4, F32))

case("loops in each other of each kind", """
acc, a = nl.zeros((128, 8), nl.float32), nisa.register_alloc(n)
def body(i):
    left = nisa.register_alloc(i)
    while left:
        if left > 1:
            nisa.tensor_scalar(acc, acc, nl.add, 1.0)
        else:
            for k in nl.dynamic_range(3):
                nisa.tensor_scalar(acc, acc, nl.add, 10.0)
        nisa.register_move(dst=left, src=left - 1)
nl.fori_loop(0, a, body)
nl.store(out, acc)
""", {"n": one(4)}, np.full((128, 8), 3 * 30 + (0 + 1 + 2), F32))

# ---- branches --------------------------------------------------------------------------------------------------------

for n in (0, 1, 2, 7):
    case(f"if, elif and else with {n}", """
t, r = nl.ndarray((128, 8), nl.float32), nisa.register_alloc(n)
if r == 0:
    nisa.memset(t, 5.0)
elif r == 1:
    nl.store(out[:, 0:4], nl.load(x[:, 0:4]))
    nisa.memset(t, 6.0)
elif r < 3:
    nisa.memset(t, 7.0)
else:
    u = nl.load(x)
    nisa.tensor_scalar(t, u, nl.multiply, 2.0)
nl.store(out, t)
""", {"x": _x(128, 8), "n": one(n)}, {0: np.full((128, 8), 5, F32), 1: np.full((128, 8), 6, F32), 2: np.full((128, 8), 7, F32)}.get(n, 2 * _x(128, 8)))

case("if without else, in a loop", """
acc, r = nl.zeros((128, 8), nl.float32), nisa.register_alloc(n)
for i in nl.dynamic_range(r):
    if (i & 1) == 0:
        nisa.tensor_tensor(acc, acc, nl.load(x[:, nl.ds(i * 8, 8)]), op=nl.add)
nl.store(out, acc)
""", {"x": _x(128, 64), "n": one(7)}, sum(_x(128, 64)[:, i * 8:i * 8 + 8] for i in (0, 2, 4, 6)))

case("a register that branches write", """
r, s = nisa.register_alloc(n), nisa.register_alloc(0)
if r > 10:
    nisa.register_move(dst=s, src=2)
else:
    nisa.register_move(dst=s, src=r)
nl.store(out, nl.load(x[:, nl.ds(s * 8, 8)]))
""", {"x": _x(128, 64), "n": one(5)}, _x(128, 64)[:, 40:48])

case("if on a float", """
t, r = nl.zeros((128, 8), nl.float32), nisa.register_alloc(f)
if r > 0.5:
    nisa.memset(t, 1.0)
nl.store(out, t)
""", {"f": one(0.75, F32)}, np.ones((128, 8), F32))

case("loops and branches with nothing in them", """
r = nisa.register_alloc(n)
for i in nl.dynamic_range(r):
    pass
if r:
    pass
else:
    nisa.register_move(dst=r, src=7)
if r == 3:
    for i in nl.dynamic_range(2):
        pass
nl.fori_loop(0, r, lambda i: None)
nl.store(out, nl.load(x))
""", {"x": _x(128, 8), "n": one(3)}, _x(128, 8))

case("memory, transposes and sums in loops on the device", """
acc, r = nl.zeros((128, 8), nl.float32), nisa.register_alloc(n)
for i in nl.dynamic_range(r):
    h, p = nl.ndarray((128, 8), nl.float32, buffer=nl.hbm), nl.ndarray((8, 128), nl.float32, buffer=nl.psum)
    nl.store(h, nl.load(x[:, nl.ds(i * 8, 8)]))
    nisa.nc_transpose(p, nl.load(h))
    t, s = nl.ndarray((8, 128), nl.float32), nl.ndarray((8, 1), nl.float32)
    nisa.activation(t, nl.copy, p, reduce_op=nl.add, reduce_res=s, reduce_cmd=nisa.reduce_cmd.reset_reduce)
    nisa.tensor_scalar(t, t, nl.add, s)
    nisa.tensor_tensor(acc, acc, nl.transpose(t), op=nl.add)
nl.store(out, acc)
""", {"x": _x(128, 64), "n": one(3)}, sum(_x(128, 64)[:, i * 8:i * 8 + 8] + _x(128, 64)[:, i * 8:i * 8 + 8].sum(0) for i in range(3)))

# ---- places ----------------------------------------------------------------------------------------------------------

x = _x(6, 64)
case("a gather by .ap(scalar_offset)", """
t = nl.ndarray((1, 64), nl.float32)
for k in range(3):
    r = nisa.register_alloc(rows[0:1, k:k + 1])
    nisa.dma_copy(dst=t, src=x.ap([[64, 1], [1, 64]], scalar_offset=r, indirect_dim=0))
    nl.store(out[k:k + 1, :], t)
""", {"x": x, "rows": np.array([[4, 0, 5]], I32)}, x[[4, 0, 5]], "(3, 64), nl.float32")

case(".ap(scalar_offset) of an inner dimension in SBUF, and an offset", """
t, r = nl.load(x), nisa.register_alloc(n)
y = nl.ndarray((6, 5), nl.float32)
nisa.tensor_copy(y, t.ap([[64, 6], [2, 5]], offset=3, scalar_offset=r, indirect_dim=1))
nl.store(out, y)
""", {"x": x, "n": one(9, np.uint16)}, x[:, 12:22:2], "(6, 5), nl.float32")

x3 = _x(16, 4, 9)
case("an index, select and nl.ds on chip", """
t, r = nl.load(x), nisa.register_alloc(n)
y = nl.ndarray((16, 3, 9), nl.float32)
nisa.tensor_copy(y[:, 0], t[:, r])
nisa.tensor_copy(y[:, 1], t.select(1, r - 1))
nisa.tensor_scalar(y[:, 2, 0:4], t[:, r - 2, nl.ds(r, 4)], nl.add, 1.0)
nisa.tensor_copy(y[:, 2, 4:9], t[:, 0, 4:9])
nl.store(out, y)
""", {"x": x3, "n": one(2)}, np.stack([x3[:, 2], x3[:, 1], np.hstack([x3[:, 0, 2:6] + 1, x3[:, 0, 4:9]])], 1), "(16, 3, 9), nl.float32")

case("a destination that a register moves", """
r, t = nisa.register_alloc(n), nl.zeros((128, 8), nl.float32)
for i in nl.dynamic_range(r):
    u = nl.load(x[:, nl.ds(i, 1)])
    nisa.tensor_copy(t[:, nl.ds((r - 1) - i, 1)], u)
nl.store(out, t)
""", {"x": _x(128, 8), "n": one(5)}, np.hstack([_x(128, 8)[:, 4::-1], np.zeros((128, 3), F32)]))

case("registers move what loops of Python move, too", """
r, acc = nisa.register_alloc(n), nl.ndarray((128, 64), nl.float32)
t = nl.load(x)
for k in range(8):
    nisa.tensor_copy(acc[:, k * 8:k * 8 + 4], t[:, nl.ds(r + k * 8, 4)])
    nisa.tensor_copy(acc[:, k * 8 + 4:k * 8 + 8], t[:, k * 8:k * 8 + 4])
nl.store(out, acc)
""", {"x": _x(128, 64), "n": one(3)}, np.hstack([np.hstack([_x(128, 64)[:, k * 8 + 3:k * 8 + 7], _x(128, 64)[:, k * 8:k * 8 + 4]]) for k in range(8)]),
     "(128, 64), nl.float32")

# ---- arithmetic ------------------------------------------------------------------------------------------------------

ALU = """
x, y = nisa.register_alloc(a), nisa.register_alloc(b)
results = [x + y, x - y, x * y, y - 7, 5 - x, x & y, x | y, x ^ y, x << 3, x >> 5, -x, x == y, x != y, x < y, x <= y, x > y, x >= y, x + 2147483647]
t = nl.ndarray((1, 18), {kind})
for k, r in enumerate(results):
    nisa.register_store(dst=t[0:1, k:k + 1], src=r)
nl.store(out, t)
"""


def alu(a, b, dtype):
    """The 18 results, computed in integers of 64 bits and cut to 32."""
    x, y = int(a), int(b)
    shifted = x >> 5
    results = [x + y, x - y, x * y, y - 7, 5 - x, x & y, x | y, x ^ y, x << 3, shifted, -x, x == y, x != y, x < y, x <= y, x > y, x >= y, x + 2147483647]
    return np.array([[int(r) & 0xffffffff for r in results]], U32).view(dtype)


for dtype, pairs in ((I32, ((7, -3), (2147483647, 1), (-2147483648, -1), (123456789, 987654321))), (U32, ((7, 4294967293), (4294967295, 1), (0, 5)))):
    for a, b in pairs:
        kind = "nl.int32" if dtype is I32 else "nl.uint32"
        case(f"arithmetic of {kind} {a} {b}", ALU.format(kind=kind),
             {"a": one(a, dtype), "b": one(b, dtype)}, alu(a, b, dtype), f"(1, 18), {kind}")

case("arithmetic of floats", """
x, y, z = nisa.register_alloc(a), nisa.register_alloc(b), nisa.register_alloc(0.1)
t, flags = nl.ndarray((1, 6), nl.float32), nl.ndarray((1, 6), nl.int32)
for k, r in enumerate([x + y, x - y, x * y, x * 3, 2.5 - x, z + 0.2]):
    nisa.register_store(dst=t[0:1, k:k + 1], src=r)
for k, r in enumerate([x == y, x != y, x < y, x <= 1.5, x > y, x >= 1.5]):
    nisa.register_store(dst=flags[0:1, k:k + 1], src=r)
f = nl.ndarray((1, 12), nl.float32)
nisa.tensor_copy(f[:, 0:6], t)
nisa.tensor_copy(f[:, 6:12], flags)
nl.store(out, f)
""", {"a": one(1.5, F32), "b": one(-0.3, F32)},
     np.array([[F32(1.5) + F32(-0.3), F32(1.5) - F32(-0.3), F32(1.5) * F32(-0.3), 4.5, 1.0, F32(0.1) + F32(0.2), 0, 1, 0, 1, 1, 1]], F32), "(1, 12), nl.float32")

for t, value in (("int8", -5), ("uint8", 250), ("int16", -300), ("uint16", 65000), ("int32", -70000), ("uint32", 4000000000)):
    kind = "int32" if t[0] == "i" else "uint32"
    case(f"loads and stores of {t}", f"""
r = nisa.register_alloc(a)
t = nl.ndarray((1, 2), nl.{t})
nisa.register_store(dst=t[0:1, 0:1], src=r)
nisa.register_store(dst=t[0:1, 1:2], src=r + 1000)
nl.store(out, t)
""", {"a": one(value, np.dtype(t))}, np.array([[value, value + 1000]], np.int64).astype(t), f"(1, 2), nl.{t}")

case("loads from HBM and SBUF, stores to HBM and SBUF", """
s = nl.load(a)
x, y = nisa.register_alloc(), nisa.register_alloc()
nisa.register_load(dst=x, src=a[1:2, 2:3])
nisa.register_load(dst=y, src=s[2:3, 1:2])
nisa.register_store(dst=out[0:1, 0:1], src=x)
nisa.register_store(dst=out[0:1, 1:2], src=y)
nisa.register_move(dst=x, src=y)
nisa.register_store(dst=s[1:2, 0:1], src=x * 2)
nl.store(out[0:1, 2:4], s[1:2, 0:2])
""", {"a": np.arange(12, dtype=I32).reshape(3, 4)}, np.array([[6, 9, 18, 5]], I32), "(1, 4), nl.int32")

case("a register that several engines wait for", """
r, t = nisa.register_alloc(n), nl.load(x)
a, b, c = (nl.ndarray((128, 8), nl.float32) for _ in range(3))
nisa.tensor_scalar(a, t[:, nl.ds(r, 8)], nl.add, 1.0, engine=nisa.engine.vector)
nisa.activation(b, nl.copy, t[:, nl.ds(r + 8, 8)])
nisa.tensor_tensor(c, t[:, nl.ds(r, 8)], t[:, nl.ds(r + 16, 8)], op=nl.add, engine=nisa.engine.gpsimd)
nisa.tensor_tensor(a, a, b, op=nl.add)
nisa.tensor_tensor(a, a, c, op=nl.add)
nl.store(out, a)
""", {"x": _x(128, 64), "n": one(11)}, _x(128, 64)[:, 11:19] + 1 + _x(128, 64)[:, 19:27] + (_x(128, 64)[:, 11:19] + _x(128, 64)[:, 27:35]))

xs, ys = _x(512, 32), _x(512, 8)
case("products that a loop on the device adds", """
acc, r = nl.zeros((32, 8), nl.float32, buffer=nl.psum), nisa.register_alloc(n)
for i in nl.dynamic_range(r):
    l, m = nl.load(x.ap([[32, 128], [1, 32]], scalar_offset=i * 128)), nl.load(y.ap([[8, 128], [1, 8]], scalar_offset=i * 128))
    nisa.nc_matmul(acc, l, m)
nl.store(out, nl.copy(acc, dtype=nl.float32))
""", {"x": xs, "y": ys, "n": one(3)}, xs[:384].T @ ys[:384], "(32, 8), nl.float32")

case("a product in PSUM that a body makes", """
acc, r = nl.zeros((32, 8), nl.float32), nisa.register_alloc(n)
for i in nl.dynamic_range(1, r):
    l, m = nl.load(x.ap([[32, 128], [1, 32]], scalar_offset=i * 128)), nl.load(y.ap([[8, 128], [1, 8]], scalar_offset=i * 128))
    p = nl.ndarray((32, 8), nl.float32, buffer=nl.psum)
    nisa.nc_matmul(p, l, m, accumulate=False)
    nisa.tensor_tensor(acc, acc, p, op=nl.maximum)
nl.store(out, acc)
""", {"x": xs, "y": ys, "n": one(4)}, np.max([np.zeros((32, 8), F32), *(xs[k:k + 128].T @ ys[k:k + 128] for k in (128, 256, 384))], axis=0), "(32, 8), nl.float32")


def close(got, want):
    want = np.asarray(want)
    assert got.shape == want.shape and got.dtype == want.dtype
    if want.dtype.kind in "iu":
        return (got == want).all()
    return np.abs(got.astype(np.float64) - want).max() <= 1e-5 * max(1, np.abs(want).max())


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", [c[0] for c in CASES])
def test_a_kernel_on_the_simulated_machine_computes_numpys_formula(name, target):
    [(_, body, inputs, want, out)] = [c for c in CASES if c[0] == name]
    got, kernel = simulated(source_of(body, inputs, out), inputs, "--target", target)
    assert close(got["out"], want), (got["out"][:4], np.asarray(want)[:4])


# Random inputs would move these out of their tensors, or make them endless.
_ONLY_THEIR_INPUTS = ("while", "x > y, x >= y", "x + 1000", "scalar_offset=i", "(r - 1) - i", "r - 2", "r + 16", "r - 3")


@pytest.mark.parametrize("name", [c[0] for c in CASES if not any(text in c[1] for text in _ONLY_THEIR_INPUTS)])
def test_every_stage_computes_what_the_record_means(name):
    """With other inputs, random ones, than those of the formula."""
    [(_, body, inputs, _, out)] = [c for c in CASES if c[0] == name]
    result = compiler.compile(source_of(body, inputs, out), check=True)
    assert result["status"] == "ok", result["diagnostics"]
    [kernel] = result["kernels"]
    assert nki_checks.all_pass(kernel), [s["check"] for s in kernel["stages"]]


# ---- random programs -------------------------------------------------------------------------------------------------

REGISTERS = 4


class Random:
    """A program of registers as the body of a kernel, and as Python that computes the same with integers that wrap around."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.kernel, self.python = [], []
        self.loops = 0

    def value(self):
        if self.rng.random() < 0.6:
            return f"r{self.rng.integers(REGISTERS)}"
        return str(self.rng.choice([0, 1, 2, 7, -5, 2147483647, -2147483648, int(self.rng.integers(-1000, 1000))]))

    def register(self):
        return f"r{self.rng.integers(REGISTERS)}"

    def expression(self):
        op = self.rng.choice(["+", "-", "*", "&", "|", "^", "<<", ">>", "<", "==", ">="])
        x = self.register()
        return f"{x} {op} {self.rng.integers(32)}" if op in ("<<", ">>") else f"{x} {op} {self.value()}"

    def line(self, depth, kernel, python):
        self.kernel.append("    " * depth + kernel)
        self.python.append("    " * depth + python)

    def block(self, depth, most):
        for _ in range(self.rng.integers(1, most + 1)):
            kind = self.rng.random() if depth < 4 else 0
            if kind < 0.6:
                to, e = self.register(), self.expression()
                self.line(depth, f"nisa.register_move(dst={to}, src={e})", f"{to} = wrap({e})")
            elif kind < 0.75:
                e = self.expression()
                self.line(depth, f"if {e}:", f"if wrap({e}):")
                self.block(depth + 1, 3)
                if self.rng.random() < 0.5:
                    self.line(depth, "else:", "else:")
                    self.block(depth + 1, 3)
            elif kind < 0.9:
                self.loops += 1
                i, (lower, step), r = f"i{self.loops}", self.rng.integers([-2, 1], [3, 3]), self.register()
                self.line(depth, f"for {i} in nl.dynamic_range({lower}, {r} & 3, {step}):", f"for {i} in range({lower}, {r} & 3, {step}):")
                to = self.register()
                self.line(depth + 1, f"nisa.register_move(dst={to}, src={i} + {to})", f"{to} = wrap({i} + {to})")
                self.block(depth + 1, 3)
            else:
                self.loops += 1
                left, n = f"left{self.loops}", self.rng.integers(4)
                self.line(depth, f"{left} = nisa.register_alloc({n})", f"{left} = {n}")
                self.line(depth, f"while {left} > 0:", f"while {left} > 0:")
                self.line(depth + 1, f"nisa.register_move(dst={left}, src={left} - 1)", f"{left} -= 1")
                self.block(depth + 1, 3)


def wrap(x):
    return (int(x) + (1 << 31) & 0xffffffff) - (1 << 31)


@pytest.mark.parametrize("seed", range(24))
def test_random_programs_of_registers_compute_what_python_computes(seed):
    program = Random(seed)
    program.block(0, 9)
    start = program.rng.integers(-2147483648, 2147483648, (1, REGISTERS)).astype(I32)
    body = "".join(f"r{k} = nisa.register_alloc(a[0:1, {k}:{k + 1}])\n" for k in range(REGISTERS)) + "\n".join(program.kernel)
    body += "\nt = nl.ndarray((1, 4), nl.int32)\n" + "\n".join(f"nisa.register_store(dst=t[0:1, {k}:{k + 1}], src=r{k})" for k in range(REGISTERS))
    names = {"wrap": wrap, **{f"r{k}": int(start[0, k]) for k in range(REGISTERS)}}
    exec("\n".join(program.python), names)
    got, _ = simulated(source_of(body + "\nnl.store(out, t)", {"a": start}, "(1, 4), nl.int32"), {"a": start})
    assert got["out"].tolist() == [[names[f"r{k}"] for k in range(REGISTERS)]], body


# ---- the record ------------------------------------------------------------------------------------------------------


def text_of(body, inputs, out="(128, 8), nl.float32", stage="nki-canonicalize"):
    result = compiler.compile(source_of(body, inputs, out), "--stop-after", stage)
    assert result["status"] == "ok", result["diagnostics"]
    [kernel] = result["kernels"]
    return compiler.stage(kernel, stage)["text"]


LOOPS = """
acc = nl.zeros((128, 8), nl.float32)
r = nisa.register_alloc(n)
for i in nl.dynamic_range(1, r, 2):
    while r > i:
        if i == 3:
            nisa.register_move(dst=r, src=0)
        else:
            nisa.register_move(dst=r, src=r - 1)
    nisa.tensor_copy(acc[:, nl.ds(i, 1)], acc[:, 0:1])
nl.store(out, acc)
"""


def test_the_text_of_the_record_has_loops_and_branches():
    text = text_of(LOOPS, {"n": one(1)})
    assert text == """def kernel(n: int32[1, 1]):
  out = nl.ndarray((128, 8), nl.float32, buffer=nl.shared_hbm)
  acc = nl.ndarray((128, 8), nl.float32, buffer=nl.sbuf)
  nisa.memset(dst=acc, value=0)
  r = nisa.register_alloc()  # int32
  nisa.register_load(dst=r, src=n)
  for i in nl.dynamic_range(1, r, 2):
    while True:
      reg = r > i
      if not reg: break
      reg_1 = i == 3
      if reg_1:
        nisa.register_move(dst=r, src=0)
      else:
        reg_2 = r - 1
        nisa.register_move(dst=r, src=reg_2)
    nisa.tensor_copy(dst=acc[:, i:i+1], src=acc[:, 0:1])
  nisa.dma_copy(dst=out, src=acc)
  return out
"""


def test_a_loop_of_python_in_a_loop_on_the_device_becomes_a_loop():
    text = text_of("""
t, r = nl.load(x), nisa.register_alloc(n)
for i in nl.dynamic_range(r):
    for k in range(64):
        nisa.tensor_scalar(t[:, k:k + 1], t[:, k:k + 1], nl.add, 1.0)
nl.store(out, t)
""", {"x": _x(128, 64), "n": one(1)}, "(128, 64), nl.float32", "nki-reroll")
    assert "for j in nl.affine_range(64):" in text or "for k in nl.affine_range(64):" in text or "i_ in nl.affine_range(64)" in text, text
    assert text.count("tensor_scalar") == 1


def test_instances_with_other_registers_are_told_apart():
    source = HEAD + """
@nki.jit
def kernel(x: nl.tensor[nl.float32, (128, 64)], n: nl.tensor[nl.int32, (1, 2)]):
    out = nl.ndarray((2, 128, 8), nl.float32, buffer=nl.shared_hbm)
    k = nl.program_id(0)
    r = nisa.register_alloc(n[0:1, k:k + 1])
    if k:
        t = nl.load(x[:, nl.ds(r, 8)])
    else:
        t = nl.load(x[:, nl.ds(r * 2, 8)])
    nl.store(out[k], t)
    return out

kernel[2](np.zeros((128, 64), np.float32), np.zeros((1, 2), np.int32))
"""
    x = _x(128, 64)
    got, _ = simulated(source, {"x": x, "n": np.array([[5, 7]], I32)})
    assert (got["out"] == np.stack([x[:, 10:18], x[:, 7:15]])).all()


def test_a_register_that_is_written_once_is_no_memory():
    text = text_of("r = nisa.register_alloc(n)\nnl.store(out, nl.load(x[:, nl.ds(r * 8, 8)]))", {"x": _x(128, 64), "n": one(1)}, stage="nki-to-nisa")
    assert "register_store" not in text and text.count("register_load") == 1
    text = text_of(LOOPS, {"n": one(1)}, stage="nki-to-nisa")
    assert text.count("register_store") == 3 and "scf.while" in text and "scf.if" in text


# ---- what is refused -------------------------------------------------------------------------------------------------

# the body; « and » around the range; the code, a part of the message
REFUSED = [
    # Python in loops and branches
    ("k = 0\nfor i in nl.dynamic_range(4):\n    «k» += 1", "nki-device-loop", "k would be carried from round to round"),
    ("k = 0\nfor i in nl.dynamic_range(4):\n    t = x[:, k:k + 1]\n    «k» = k + 1", "nki-device-loop", "k would be carried"),
    ("a, b = x, y\nfor i in nl.dynamic_range(4):\n    «a», «b» = b, a", "nki-device-loop nki-device-loop", "would be carried from round to round"),
    ("q = nisa.register_alloc(4)\nwhile q:\n    «q» = q - 1", "nki-device-loop", "q would be carried"),
    ("if r:\n    «k» = 1\nelse:\n    k = 2\nnisa.memset(x, k)", "nki-device-loop", "which value k has after this branch"),
    ("for k in range(4):\n    if r:\n        «break»", "nki-device-loop", "break is not possible in a branch on a register"),
    ("for k in range(4):\n    if «r > k»:\n        «continue»", "nki-register-in-host-code nki-device-loop", ""),
    ("if r:\n    «return out»", "nki-device-loop", "return is not possible in a branch"),
    ("while r:\n    «break»", "nki-device-loop", "break is not possible in a loop on the device"),
    # the same in helpers, whose parameters are registers only when they run
    ("def pick(q):\n    «if q > 2»:\n        k = 5.0\n    else:\n        k = 7.0\n    nisa.memset(x, k)\npick(r)", "nki-device-loop", "which value k has after this branch"),
    ("def pick(q):\n    «if q»:\n        t = x\n    else:\n        t = y\n    nl.store(out, t)\npick(r)", "nki-device-loop", "which value t has after this branch"),
    ("def count(q):\n    while «q»:\n        q = q - 1\ncount(r)", "nki-device-loop", "q would be carried from round to round"),
    # what is made inside
    ("for i in nl.dynamic_range(4):\n    t = nl.load(a)\nnisa.tensor_copy(x, «t»)", "nki-device-loop", "src is t, which was made in a loop or branch on the device"),
    ("for i in nl.dynamic_range(4):\n    q = nisa.register_alloc(3)\nnisa.register_move(r, «q»)", "nki-device-loop", "src is the register q, which was made in a loop or branch"),
    ("for i in nl.dynamic_range(4):\n    pass\nnisa.register_move(r, «i»)", "nki-device-loop", "src is the register i, which was made"),
    ("if r:\n    t = nl.load(a)\nelse:\n    nisa.tensor_copy(x, «t»)", "nki-device-loop", "src is t, which was made in a loop or branch"),
    ("p = nl.zeros((128, 512), nl.float32, buffer=nl.psum)\nfor i in nl.dynamic_range(4):\n    «nisa.nc_matmul(p, x[:, 0:128], x, accumulate=False)»", "nki-device-loop",
     "in PSUM was made outside of this loop"),
    ("p = nl.zeros((128, 512), nl.float32, buffer=nl.psum)\nwhile r:\n    «nisa.memset(p, 0.0)»\n    nisa.register_move(r, 0)", "nki-device-loop", "in PSUM was made outside"),
    # loops
    ("for i in «nl.dynamic_range(0, 4, 0)»:\n    pass", "nki-device-loop", "the step of a loop on the device is 0"),
    ("for i in «nl.dynamic_range(0, 4, -1)»:\n    pass", "nki-device-loop", "the step of a loop on the device is -1"),
    ("for i in «nl.dynamic_range(0, f)»:\n    pass", "nki-dtype", "upper is a register of float32"),
    ("for i in «nl.dynamic_range(0, 2147483648)»:\n    pass", "nki-size-limit", "upper is 2147483648, but int32 goes from -2147483648 to 2147483647"),
    ("for i in nl.dynamic_range(0, 4):\n    nisa.register_move(dst=«i», src=3)", "nki-device-loop", "dst is i, which a loop or an operator has made"),
    ("«nl.fori_loop(0, 4, lambda i: i)»", "nki-device-loop", "the body of nl.fori_loop returns a value"),
    ("nl.while_loop(r, lambda q: None)", "nki-device-loop", "the body of nl.while_loop returns no register"),
    ("with nl.no_reorder():\n    «nl.fori_loop(0, 4, lambda i: None)»", "nki-device-loop", "cannot be in nl.no_reorder()"),
    # registers in the wrong place
    ("k = int(«r»)", "nki-register-in-host-code", "int() needs a number"),
    ("for k in range(«r»):\n    pass", "nki-register-in-host-code", "range() needs a number"),
    ("nisa.memset(x, «r»)", "nki-call", "value must be a number"),
    ("t = «x[:, r:r + 4]»", "nki-register-in-host-code", "a bound of a slice is a register"),
    ("nisa.memset(x[:, «r / 2»], 0.0)", "nki-operator", "registers have no /"),
    ("q = «r // 2»", "nki-operator", "registers have no //"),
    ("q = «r << r»", "nki-operand", "a register is shifted by register r"),
    ("q = «r >> 32»", "nki-operand", "a register is shifted by 32"),
    ("q = «r + x»", "nki-tensor-operator", "tensors of NKI have no operators"),
    ("k = «1 if r else 2»", "nki-register-in-host-code", "the truth of a register"),
    ("k = «not r»", "nki-register-in-host-code", "the truth of a register"),
    # places
    ("t = «x[r, :]»", "nki-view", "a register cannot select partitions"),
    ("t = x[nl.ds(r, 4), :]", "nki-view", "a register cannot select partitions"),
    ("t = x.select(0, r)", "nki-view", "a register cannot select partitions"),
    ("t = x.ap([[512, 128], [1, 4]], scalar_offset=r)", "nki-view", "a register cannot select partitions"),
    ("t = x.ap([[512, 128], [1, 4]], scalar_offset=r, indirect_dim=2)", "nki-bounds", "dimension 2 does not exist"),
    ("t = x.ap([[512, 128], [1, 4]], scalar_offset=r, vector_offset=x, indirect_dim=1)", "nki-view", "scalar_offset and vector_offset"),
    ("t = x.ap([[512, 128], [1, 4]], scalar_offset=3, indirect_dim=1)", "nki-operand", "scalar_offset must be a register or a tensor of one element, not int"),
    ("t = x[:, f]", "nki-dtype", "an index is the register f of float32"),
    ("t = x[:, nl.ds(r, 513)]", "nki-bounds", "the slice 0:513 is not inside dimension 1"),
    # values
    ("q = nisa.register_alloc()\nnisa.register_move(r, «q»)", "nki-operand", "src is the register q, to which nothing has been written"),
    ("nisa.register_load(dst=r, src=«x[0:1, 0:1]»)", "nki-dtype", "src is float32, but the register r has int32"),
    ("nisa.register_load(dst=r, src=«x»)", "nki-shape-mismatch", "src has 65536 elements"),
    ("nisa.register_load(dst=r, src=«h»)", "nki-dtype", "src has the type bfloat16, which no register holds"),
    ("nisa.register_load(dst=«x», src=x[0:1, 0:1])", "nki-operand", "dst must be a register, not nki.Tensor"),
    ("nisa.register_load(dst=r, src=«p»)", "nki-memory", "src is in psum, but it must be in hbm or sbuf"),
    ("nisa.register_store(dst=«x[0:1, 0:1]», src=r)", "nki-dtype", "dst is float32, but the register r has int32"),
    ("nisa.register_store(dst=«x[0:2, 0:1]», src=f)", "nki-shape-mismatch", "dst has 2 elements"),
    ("nisa.register_store(dst=x[0:1, 0:1], src=«3»)", "nki-operand", "src must be a register, not int"),
    ("nisa.register_move(dst=r, src=«f»)", "nki-dtype", "src is float32, but the register r has int32"),
    ("nisa.register_move(dst=r, src=«0.5»)", "nki-dtype", "src is the float 0.5"),
    ("nisa.register_move(dst=r, src=«2147483648»)", "nki-size-limit", "src is 2147483648, but int32 goes from"),
    ("nisa.register_move(dst=r, src=«-2147483649»)", "nki-size-limit", "src is -2147483649"),
    ("q = «nisa.register_alloc(4294967296)»", "nki-size-limit", "src is 4294967296, but uint32 goes from 0 to 4294967295"),
    ("q = «r + f»", "nki-dtype", "an operand is float32, but the register r has int32"),
    ("q = «f & 1»", "nki-dtype", "the register f has float32"),
    ("q = «r + 0.5»", "nki-dtype", "a number is the float 0.5"),
    ("for k in range(70):\n    q = «nisa.register_alloc(k)»", "nki-size-limit", "there are more than 64 registers"),
]


def refused_source():
    """One kernel for each case, and {number: the ranges that are marked}."""
    text, lines, ranges = HEAD, {}, {}
    for number, (body, _, _) in enumerate(REFUSED):
        own = f"""
@nki.jit
def kernel_{number}(a: nl.tensor[nl.float32, (128, 512)], n: nl.tensor[nl.int32, (1, 1)]):
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    x, y, h = nl.load(a), nl.load(a), nl.ndarray((1, 1), nl.bfloat16)
    p = nl.ndarray((1, 1), nl.float32, buffer=nl.psum)
    r = nisa.register_alloc(n)
    f = nisa.register_alloc(0.5)
    nl.store(out, x)
""" + "".join(f"    {line}\n" for line in body.split("\n")) + "    return out\n"
        first, ranges[number], opened = text.count("\n") + 1, [], None
        line, col = first, 1
        for c in own:
            if c == "«":
                opened = line, col
                continue
            if c == "»":
                ranges[number].append((*opened, line, col))
                continue
            text += c
            line, col = (line + 1, 1) if c == "\n" else (line, col + 1)
        lines[number] = range(first, line)
    return text, lines, ranges


@pytest.fixture(scope="module")
def refusals():
    text, lines, ranges = refused_source()
    found = {number: [] for number in lines}
    for d in compiler.compile(text, "--stop-after", "nki-reroll")["diagnostics"]:
        if d["severity"] == "error":
            found[next(n for n in lines if d["range"]["line"] in lines[n])].append(d)
    return found, ranges


@pytest.mark.parametrize("number", range(len(REFUSED)), ids=[c[0].replace("\n", "; ")[:70] for c in REFUSED])
def test_each_refusal_has_its_code_its_range_and_says_what_was_found(number, refusals):
    found, ranges = refusals
    body, codes, message = REFUSED[number]
    diagnostics = found[number]
    assert sorted(d["code"] for d in diagnostics) == sorted(codes.split()), diagnostics
    assert all(message in d["message"] and (d.get("hint") or d["code"] in ("nki-call", "nki-bounds")) for d in diagnostics), diagnostics
    if ranges[number]:
        at = [(d["range"]["line"], d["range"]["col"], d["range"]["end_line"], d["range"]["end_col"]) for d in diagnostics]
        assert sorted(at) == sorted(ranges[number]), (at, ranges[number])


def test_registers_can_be_as_many_as_an_engine_has():
    body = "qs = [nisa.register_alloc(k) for k in range({n})]\nfor q in qs:\n    nisa.register_move(q, 1)\nnl.store(out, nl.load(x))"
    inputs = {"x": _x(128, 8)}
    assert compiler.compile(source_of(body.format(n=64), inputs, "(128, 8), nl.float32"))["status"] == "ok"
    assert compiler.compile(source_of(body.format(n=65), inputs, "(128, 8), nl.float32"))["status"] == "error"


def test_a_kernel_in_an_ordinary_python_has_branches_and_loops_on_registers(tmp_path):
    body = """
acc, i, r = nl.zeros((128, 8), nl.float32), nisa.register_alloc(0), nisa.register_alloc(n)
while i < r:
    if i > 1:
        nisa.tensor_tensor(acc, acc, nl.load(x[:, nl.ds(i * 8, 8)]), op=nl.add)
    nisa.register_move(dst=i, src=i + 1)
nl.store(out, acc)
"""
    x = _x(128, 64)
    source = source_of(body, {"x": x, "n": one(5)}, "(128, 8), nl.float32") + f"""
x = np.random.default_rng({128 + 64}).uniform(-1, 1, (128, 64)).astype(np.float32)
for run in (kernel, nki.simulate(kernel)):
    assert np.abs(run(x, np.array([[5]], np.int32)) - (x[:, 16:24] + x[:, 24:32] + x[:, 32:40])).max() < 1e-6
print("equal")
"""
    (tmp_path / "program.py").write_text(source)
    path = os.pathsep.join(map(str, (BUILD / "python", BUILD / "python/nkx/stubs")))
    done = subprocess.run([sys.executable, tmp_path / "program.py"], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, timeout=60)
    assert done.stdout == "equal\n", done.stderr
