"""Registers, and loops and branches on the device: values on the simulated machine against NumPy's formula, every stage against the
evaluation of the record, and what is refused."""
import numpy as np
import pytest

from support import compiler
from support.nki_kernels import HEAD, TARGETS
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
