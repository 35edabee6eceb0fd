"""Every operation, over dtypes and shapes: NumPy's results and dtypes, computed by XLA from our HLO.

One kernel returns the results of many expressions.  A result's dtype must be NumPy's with 64 bits narrowed to 32;
where the promotion table differs from NumPy's (Python floats with bfloat16, which stays bfloat16), the table wins.
"""
import ml_dtypes
import numpy as np
import pytest

from support.oracles import xla

ALL = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "float16", "bfloat16", "float32"]
INTS = [d for d in ALL if "int" in d]
SIGNED = [d for d in INTS if d[0] == "i"]
FLOATS = ["float16", "bfloat16", "float32"]
SHAPES = [(), (13, 17)]

NARROW = {"float64": "float32", "int64": "int32", "uint64": "uint32"}

HEAD = """
import numpy as np, ml_dtypes
from nkipy.core.compile import trace
def arr(dtype, shape, lo, hi, seed):
    r = np.random.default_rng(seed).uniform(lo, hi, shape)
    return np.asarray(r > (lo + hi) / 2 if dtype == "bool" else np.rint(r) if "int" in dtype else r).astype(dtype)
"""


def kernel_source(expressions, arrays):
    args = ", ".join(name for name, *_ in arrays)
    values = ", ".join(f"arr({d!r}, {s!r}, {lo}, {hi}, {i})" for i, (_, d, s, lo, hi) in enumerate(arrays))
    results = "".join(f"        {e},\n" for e in expressions)
    return f"{HEAD}\ndef kernel({args}):\n    return (\n{results}    )\ntrace(kernel).specialize({values})\n"


def check(expressions, arrays, tolerance=None):
    source = kernel_source(expressions, arrays)
    kernel = xla.trace(source, evaluate=True)
    space = {"trace": lambda f: f}
    exec(source.replace("from nkipy.core.compile import trace", "").rsplit("trace(kernel)", 1)[0], space)
    given = [space["arr"](d, s, lo, hi, i) for i, (_, d, s, lo, hi) in enumerate(arrays)]
    with np.errstate(all="ignore"):
        plain = space["kernel"](*given)
    got = xla.run(kernel["proto"], kernel["input_values"])
    for e, p, g, w, out in zip(expressions, plain, got, kernel["expected"], kernel["outputs"], strict=True):
        p = np.asarray(p)
        what = f"{e} on {[(d, s) for _, d, s, *_ in arrays]}"
        assert out["shape"] == p.shape, what
        if not any(d == "bfloat16" for _, d, *_ in arrays):
            assert out["dtype"] == NARROW.get(p.dtype.name, p.dtype.name), what
        xla.assert_close(g, w, what)


BINARY = ["np.add(x, y)", "np.multiply(x, y)", "np.maximum(x, y)", "np.minimum(x, y)", "np.divide(x, y)",
          "np.true_divide(x, y)", "x == y", "x != y", "x < y", "x <= y", "x > y", "x >= y",
          "np.logical_and(x, y)", "np.logical_or(x, y)", "np.logical_xor(x, y)", "np.floor_divide(x, y)",
          "np.remainder(x, y)", "np.fmod(x, y)", "x + y", "x * y", "x / y", "x // y", "x % y", "divmod(x, y)[1]"]
PAIRS = [((), ()), ((3, 1), (1, 4)), ((2, 3, 5), (3, 1)), ((), (2, 3))]


@pytest.mark.parametrize("dtype", ALL)
def test_binary_of_one_dtype(dtype):
    for a, b in PAIRS:
        lo = 0 if dtype[0] in "ub" else -9
        e = BINARY + (["x - y", "np.subtract(x, y)"] if dtype != "bool" else ["x & y", "x | y", "x ^ y", "x << y", "x >> y"])
        if dtype == "bool":  # XLA turns bool / bool into a select, which loses the NaN of 0 / 0
            e = [i for i in e if "/ y" not in i and "divide" not in i] + ["x / (y | True)", "x // y", "np.divide(y, True)"]
        if dtype in INTS:
            e = e + ["x & y", "x | y", "x ^ y", "np.bitwise_and(x, y)", "np.bitwise_or(x, y)", "np.bitwise_xor(x, y)", "x << y", "x >> y", "x << 2", "x >> 1", "3 << x",
                     "np.left_shift(x, y)", "np.right_shift(x, 40)"]
        check(e, [("x", dtype, a, lo, 9), ("y", dtype, b, lo, 9)])


@pytest.mark.parametrize("dtype", FLOATS)
def test_power_and_logaddexp(dtype):
    check(["x ** y", "np.power(x, y)", "x ** 2", "x ** 0.5", "2.0 ** x", "x ** -1", "np.logaddexp(x, y)",
           "np.arctan2(x, y)", "np.logaddexp(x, x)"],
          [("x", dtype, (3, 4), 0.1, 2), ("y", dtype, (4,), -2, 2)])


@pytest.mark.parametrize("dtype", INTS)
def test_integer_power(dtype):
    check(["x ** y", "x ** 2", "x ** 0", "x ** 0.5"], [("x", dtype, (3, 4), 0, 4), ("y", dtype, (4,), 0, 3)])


@pytest.mark.parametrize("dtype", ALL)
def test_python_numbers_on_either_side(dtype):
    lo = 1 if dtype[0] in "ub" else -9
    e = ["x + 1", "1 + x", "x * 2", "2 * x", "x / 3", "3 / x", "x + 0.5", "0.5 * x", "x // 2", "x % 3", "x > 1", "1 > x",
         "x == 0", "x < 0.5", "np.maximum(x, 0)", "np.minimum(2.5, x)", "x + True", "np.where(x > 1, x, 0)",
         "np.where(x > 1, 0.5, x)", "np.where(x > 1, 1, 0)", "np.where(x > 1, 1.0, 0)", "np.where(x > 1, True, False)",
         "x + np.float32(2)", "np.float32(2) * x", "x * np.array([2.0], np.float32)", "np.ones(4, np.float32) - x"]
    if dtype != "bool":
        e += ["x - 1", "1 - x", "+x"]
    if dtype in INTS:
        e += ["x & 3", "3 | x", "x ^ 1", "~x", "x > 1000000", "x != -1000000", "x <= 1000000"]
    check(e, [("x", dtype, (3, 4), lo, 9)])


UNARY = ["np.abs(x)", "abs(x)", "np.absolute(x)", "np.exp(x)", "np.sqrt(np.abs(x))", "np.sin(x)", "np.cos(x)",
         "np.tanh(x)", "np.arctan(x)", "np.square(x)", "np.tan(x)", "np.logical_not(x)", "np.rint(x)", "np.trunc(x)",
         "np.expm1(x)", "np.isnan(x)", "np.isfinite(x)", "np.isinf(x)", "np.ceil(x)", "np.floor(x)", "np.copy(x)",
         "x.copy()", "np.log(np.abs(x) + 1)", "np.log1p(np.abs(x))", "np.log2(np.abs(x) + 1)", "np.round(x)", "np.around(x)"]


@pytest.mark.parametrize("dtype", ALL)
def test_unary(dtype):
    lo = 0 if dtype[0] in "ub" else -3
    e = list(UNARY)
    if dtype == "bool":
        e += ["~x", "np.invert(x)"]
    else:
        e += ["-x", "np.negative(x)", "np.sign(x)", "+x", "np.positive(x)", "np.clip(x, 0, 2)", "x.clip(1, 2)",
              "np.clip(x, None, 1)", "np.clip(x, 1, None)", "x.round()"]
    if dtype in FLOATS:
        e += ["np.reciprocal(x)", "np.round(x, 1)", "np.fabs(x)", "np.clip(x, -0.5, 0.5)"]
    if dtype in INTS:
        e += ["np.invert(x)", "np.bitwise_not(x)", "np.reciprocal(np.abs(x) + 1)"]
    if dtype == "bfloat16":  # NumPy has no round for it that keeps the dtype
        e = [i for i in e if "round" not in i]
    for shape in SHAPES:
        check(e, [("x", dtype, shape, lo, 3)])


@pytest.mark.parametrize("dtype", ALL)
def test_astype(dtype):
    lo = 0 if dtype[0] in "ub" else -3
    signed = ["bool", "ml_dtypes.bfloat16", "np.float16", "'float32'", "np.float64", "int", "np.int8", "'i2'", "np.dtype('int32')"]
    check([f"x.astype({t})" for t in signed] + ["np.astype(x, np.int32)"], [("x", dtype, (3, 4), lo, 9)])
    check([f"x.astype(np.{t})" for t in ("uint8", "uint16", "uint32")], [("x", dtype, (3, 4), 0, 9)])


SUMS = ["np.sum(x)", "np.sum(x, axis=0)", "x.sum(-1)", "np.sum(x, axis=(0, -1))", "np.sum(x, axis=1, keepdims=True)",
        "x.sum(keepdims=True)", "np.sum(x, axis=())", "np.sum(x, dtype=np.float32)", "np.sum(x, initial=3)",
        "np.add.reduce(x)", "np.mean(x)", "x.mean(axis=1)", "np.mean(x, axis=(0, 1), keepdims=True)",
        "np.mean(x, axis=-1, dtype=np.float32)", "np.any(x)", "np.any(x, axis=0)", "np.all(x, axis=1, keepdims=True)",
        "x.any()", "x.all(axis=(0, 1))", "np.count_nonzero(x, axis=0)", "np.count_nonzero(x, axis=1, keepdims=True)",
        "np.max(x)", "x.max(axis=0)", "np.amax(x, axis=(0, 1))", "np.min(x, axis=-1, keepdims=True)", "x.min()", "np.amin(x)",
        "np.argmax(x)", "np.argmin(x)", "np.argmax(x, axis=0)", "x.argmin(axis=-1)", "np.argmax(x, axis=1, keepdims=True)",
        "np.argmin(x, keepdims=True)", "np.maximum.reduce(x, axis=1)"]


@pytest.mark.parametrize("dtype", [d for d in ALL if d != "bfloat16"])
@pytest.mark.parametrize("shape", [(4, 6), (1, 1), (2, 3, 5)])
def test_reductions(dtype, shape):
    check(SUMS, [("x", dtype, shape, 0 if dtype[0] in "ub" else -3, 3)])


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "float16", "float32"])
def test_products_variances(dtype):
    e = ["np.prod(x)", "x.prod(axis=0)", "np.prod(x, axis=1, keepdims=True)", "np.var(x)", "x.var(axis=0)", "np.std(x, axis=-1)",
         "np.std(x, axis=1, keepdims=True, ddof=1)", "np.var(x, axis=(0, 1))", "np.var(x, dtype=np.float32)", "x.std()"]
    check(e, [("x", dtype, (3, 4), 0, 2)])


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sums_of_16_bit_floats_are_rounded_once(dtype):
    x = np.random.default_rng(0).uniform(0, 1, (200, 30)).astype(getattr(ml_dtypes, dtype, dtype))
    kernel = xla.trace("import numpy as np\ndef k(x): return np.sum(x, axis=0), np.mean(x)", inputs=[("x", x.shape, dtype)])
    sums, mean = xla.run(kernel["proto"], [x])
    for got, want in (sums, x.astype(np.float64).sum(0)), (mean, x.astype(np.float64).mean()):
        want = np.asarray(want).astype(x.dtype)
        np.testing.assert_allclose(got.astype(float), want.astype(float), rtol=float(ml_dtypes.finfo(x.dtype).eps))


def test_arg_extremes_with_ties_and_nans():
    source = """
import numpy as np
from nkipy.core.compile import trace
@trace
def kernel(x):
    return np.argmax(x, axis=1), np.argmin(x, axis=1), np.argmax(x), np.max(x, axis=1), np.min(x)
kernel(np.array([[1, 3, 3], [np.nan, 1, 2], [2, np.nan, np.nan], [5, 5, 5]], np.float32))
"""
    xla.check(source)


MATMUL = [((64, 12), (12, 8)), ((2, 3), (3, 4)), ((1, 2, 8, 5), (5, 4)), ((8, 5), (1, 2, 5, 8)), ((2, 3, 4, 5), (2, 3, 5, 6)),
          ((1, 3, 4, 5), (2, 1, 5, 6)), ((5,), (2, 5, 3)), ((2, 3, 5), (5,)), ((5,), (2, 3, 5, 4)), ((5,), (5,)), ((1, 1), (1, 1)),
          ((5,), (5, 3)), ((3, 5), (5,))]


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "float16", "float32"])
def test_matmul(dtype):
    for a, b in MATMUL:
        check(["x @ y", "np.matmul(x, y)"], [("x", dtype, a, 0 if dtype[0] in "ub" else -2, 2), ("y", dtype, b, 0, 2)])


@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_dot_and_outer(dtype):
    for a, b in [((1, 1), (1, 1)), ((2, 3), (3, 4)), ((3,), (3,)), ((2, 6, 7), (3, 7, 4)), ((), (3, 4)), ((3, 4), ()), ((5, 3), (3,)),
                 ((3,), (2, 3, 4))]:
        check(["np.dot(x, y)", "x.dot(y)", "np.outer(x, y)"], [("x", dtype, a, -2, 2), ("y", dtype, b, -2, 2)])


def test_matmul_promotes():
    check(["x @ y", "y.T @ x.T", "x @ np.ones((4, 2), np.float32)", "np.ones((2, 3), np.float32) @ x"],
          [("x", "float16", (3, 4), -1, 1), ("y", "float32", (4, 5), -1, 1)])


MOVES = ["x.reshape(4, 6)", "np.reshape(x, (2, -1))", "x.reshape((6, 4))", "x.reshape(-1)", "np.ravel(x)", "x.flatten()",
         "x.transpose()", "np.transpose(x, (2, 0, 1))", "x.transpose(1, 0, 2)", "np.transpose(x, (-1, 0, 1))", "x.T",
         "np.swapaxes(x, 0, -1)", "x.swapaxes(1, 2)", "np.moveaxis(x, 0, -1)", "np.moveaxis(x, (0, 1), (1, 2))",
         "np.expand_dims(x, 0)", "np.expand_dims(x, -1)", "np.expand_dims(x, (0, -1))", "np.expand_dims(x, [1, 3])",
         "np.squeeze(x[:, :1])", "np.squeeze(x[:, :1], axis=1)", "x[:1].squeeze()", "np.concatenate([x, x])",
         "np.concatenate((x, x, x), axis=-1)", "np.concatenate([x], axis=1)", "np.concatenate([x, x], axis=None)",
         "np.concatenate([x, np.ones((2, 1, 4), 'float32')], axis=1)", "np.stack([x, x])", "np.stack([x, x + x], axis=-1)",
         "np.stack((x, x), axis=1)", "np.split(x, 2)[1]", "np.split(x, 3, axis=1)[2]", "np.split(x, [1, 2], axis=-1)[1]",
         "np.split(x, [1, 9], axis=1)[2]", "np.split(x, [-1], axis=2)[0]", "np.array_split(x, 3, axis=2)[0]",
         "np.array_split(x, 3, axis=2)[2]", "np.broadcast_to(x, (5, 2, 3, 4))", "np.broadcast_to(x, x.shape)",
         "np.broadcast_to(x[:, :1], (2, 3, 4))", "np.repeat(x, 2)", "np.repeat(x, 3, axis=1)", "x.repeat(np.int64(2), axis=-1)",
         "np.zeros_like(x)", "np.ones_like(x)", "np.full_like(x, 1)", "np.zeros_like(x, dtype=np.float32)", "np.ones_like(x, shape=(2, 2))",
         "np.full_like(x, 1, dtype=np.int32)", "np.where(x > x[0], x, x[:, :1])", "np.where(x[0, 0] > 0, x, 0)",
         "np.where(np.array([True, False, True, False]), x, x + x)", "np.where(x, x, x)", "np.full_like(x, np.arange(4) > 1)"]


@pytest.mark.parametrize("dtype", ["bool", "int8", "int32", "float16", "float32"])
def test_shapes_and_selection(dtype):
    check(MOVES, [("x", dtype, (2, 3, 4), 0, 9)])


READS = ["x[0]", "x[-1]", "x[1, 2]", "x[1, 2, 3]", "x[1:]", "x[:-1]", "x[:, 1:3]", "x[..., 0]", "x[..., 1:3]", "x[0, ..., 2]",
         "x[::2]", "x[:, ::2, ::3]", "x[::-1]", "x[:, ::-1, 1]", "x[3:0:-1]", "x[:, 4:1:-2]", "x[-1:-9:-2]", "x[None]",
         "x[:, None]", "x[None, 1, None, :, None]", "x[..., None]", "x[1, None, ..., None]", "x[np.newaxis, ..., 0:3]", "x[...]",
         "x[:]", "x[2:2]", "x[5:100]", "x[np.int64(1)]", "x[[0, 2]]", "x[:, [1, 1, 0]]", "x[..., [0, -1]]", "x[[[0, 1], [2, 3]]]",
         "x[1, :, [0, 2]]", "x[1, ::-1, [0, 2]]", "x[1, [0, 2]]", "x[:, 1, [0, 2]]", "x[1, None, :, [0, 1]]", "x[[0, 1], :, 1]",
         "x[None, [0, 1]]", "x[np.array([1, 0]), 1:3]", "x[1][2:4][::-1]", "np.take(x, [0, 2], axis=1)", "np.take(x, 1, axis=0)",
         "np.take(x, [[0, -1], [1, 1]])", "x.take([0], axis=-1)", "np.take(x, -1, axis=2)", "x[()]"]


def test_reading_by_index():
    for dtype in ["float32", "int8", "bool"]:
        check(READS, [("x", dtype, (4, 5, 6), 0, 9)])


def test_reading_by_traced_index():
    e = ["x[i]", "x[:, i]", "x[..., i]", "x[i - 3]", "x[1, :, i]", "x[:, 1, i]", "np.take(x, i, axis=1)", "np.take(x, i)", "x[j]",
         "x[j, ::2]", "x[0, j]", "x[i[0]]", "x[:, i[1], 0]", "x[1:, i, None]", "np.take(x, j, axis=-1)"]
    check(e, [("x", "float32", (4, 5, 6), -9, 9), ("i", "int32", (3,), 0, 2), ("j", "int8", (2, 2), 0, 3)])


WRITES = ["x[0] = y[0]", "x[1, 2] = 7", "x[1:3] = y[1:3]", "x[:, 1] = 3", "x[..., 0] = y[..., 1]", "x[:] = 1", "x[...] = y",
          "x[1:3, ::2] = 5", "x[::2] = y[::2]", "x[::-1] = y", "x[:, 4:1:-2] = y[:, :2]", "x[0, :, ::3] = 1", "x[-1, -1, -1] = 9",
          "x[2:2] = 4", "x[0:99] = y", "x[1, None, 2:4] = y[0, 2:4]", "x[[0, 2]] = y[:2]", "x[:, [1, 3]] = 0", "x[1:3] = np.arange(6)",
          "x[:, 1, :] = np.ones((1, 6))", "x[0] = np.float64(2)", "x[::2, 1, ::5] = y[:2, 0, :2]", "x[np.array([3])] = y[0]",
          "x += y", "x -= 1", "x *= y", "x += y[0]", "np.add(x, y, out=x)"]


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_writing_by_index(dtype):
    for statement in WRITES:
        source = f"""{HEAD}
def kernel(x, y):
    a = x + 0
    x = a
    {statement}
    return a, a + 1
trace(kernel).specialize(arr({dtype!r}, (4, 5, 6), -9, 9, 0), arr({dtype!r}, (4, 5, 6), -9, 9, 1))
"""
        xla.check(source)


def test_writing_by_traced_index():
    for statement in ["x[1, i] = y[0, :2]", "x[1:3, i] = y[:2, :2]", "x[0, :, i] = y[:2, :, 0]", "x[i, 1] = 3", "x[:, 2, i] = y[:, 1, :2]",
                      "x[2, 1:4, i] = y[0, 0, 0]", "x[:0, i] = 1", "x[1, ..., i] = 0", "x[i, 1:3, 5] = y[:2, :2, 0]", "x[i] = y[:2]", "x[:, i] = 0", "x[..., i] = y[..., :2]", "x[i[0]] = y[0]", "x[:, i - 3] = y[:, :2]", "x[i] = y[0]",
                      "x[1:3, None, i] = y[:2, None, :2]", "x[None, :, i, None] = y[None, :, :2, None]", "x[:, None, 0, i] = y[:, :1, :2]"]:
        source = f"""{HEAD}
def kernel(x, y, i):
    {statement}
    return x + 1
trace(kernel).specialize(arr("float32", (4, 5, 6), -9, 9, 0), arr("float32", (4, 5, 6), -9, 9, 1), np.array([1, 3], np.int32))
"""
        xla.check(source)


def test_precise_near_zero():
    source = """
import numpy as np
from nkipy.core.compile import trace
@trace
def kernel(x):
    return np.log1p(x), np.expm1(x)
kernel(np.array([1e-10, -1e-8, 1e-5, 0, 0.2, -0.2, 0.3, 0.6, -0.4, -0.9, 50, np.inf, -1, np.nan], np.float32))
"""
    kernel = xla.trace(source, evaluate=True)
    for g, w in zip(xla.run(kernel["proto"], kernel["input_values"]), kernel["expected"]):
        np.testing.assert_allclose(g, w, rtol=3e-6)


def test_special_values():
    source = """
import numpy as np
from nkipy.core.compile import trace
v = np.array([-np.inf, -2.5, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2.5, np.inf, np.nan], np.float32)
@trace
def kernel(x):
    y = x[:, None]
    return (x // y, x % y, np.fmod(x, y), np.maximum(x, y), np.minimum(x, y), np.logaddexp(x, y), np.rint(x), np.trunc(x), np.sign(x),
            x < y, x == y, x != y, np.isnan(x), np.isinf(x), np.isfinite(x), np.zeros_like(x), np.where(x > 0, x, 0), np.clip(x, -1, 1),
            np.max(x), np.sum(x), np.round(x, 1), np.logical_not(x), np.any(x), x.astype(bool),
            1 / np.rint(x), 1 / np.round(x), 1 / np.trunc(x))
kernel(v)
"""
    xla.check(source)


def test_integers_divided_by_zero():
    source = """
import numpy as np
from nkipy.core.compile import trace
@trace
def kernel(x):
    y = x[:, None]
    return x // y, x % y, np.fmod(x, y), x / y
kernel(np.array([-7, -2, -1, 0, 1, 2, 7], np.int32))
"""
    xla.check(source)


def test_zero_sized():
    check(["x + 1", "np.sum(x)", "np.sum(x, axis=0)", "x[:, 1:]", "np.concatenate([x, x], axis=1)", "x @ np.ones((3, 2), np.float32)",
           "x.reshape(3, 0)", "np.any(x)", "np.prod(x, axis=1)", "np.rot90(x)", "np.rot90(x, 2)", "np.rot90(x, 3)"], [("x", "float32", (0, 3), 0, 1)])


# ---- promotion: the table of NKIPy's HLO back end, 64 bits narrowed to 32

FLOAT_NAMES = {"float16", "bfloat16", "float32"}


def promoted(a, b):
    if a == b or b == "bool":
        return a
    if a == "bool":
        return b
    floats = {a, b} & FLOAT_NAMES
    if floats:
        return floats.pop() if len(floats) == 1 else "float32"
    return NARROW.get(np.promote_types(a, b).name, np.promote_types(a, b).name)


def test_promotion_of_tensors():
    names = [f"a{i}" for i in range(len(ALL))]
    pairs = [(i, j) for i in range(len(ALL)) for j in range(len(ALL))]
    source = f"def kernel({', '.join(names)}):\n    return [" + ", ".join(f"a{i} + a{j}" for i, j in pairs) + "]\n"
    kernel = xla.trace(source, inputs=[(n, (3,), d) for n, d in zip(names, ALL)], evaluate=True)
    for (i, j), out in zip(pairs, kernel["outputs"]):
        assert out["dtype"] == promoted(ALL[i], ALL[j]), (ALL[i], ALL[j])
    for got, want in zip(xla.run(kernel["proto"], kernel["input_values"]), kernel["expected"]):
        xla.assert_close(got, want, "promotion")


@pytest.mark.parametrize("dtype", ALL)
def test_promotion_with_python_numbers_and_arrays(dtype):
    expressions = {"x + 1": "int32" if dtype == "bool" else dtype, "1.5 * x": dtype if dtype in FLOAT_NAMES else "float32",
                   "x + True": dtype, "x * np.float32(2)": "float32", "x * np.float64(2)": dtype if dtype == "float32" else "float32",
                   "x + np.ones(3)": "float32", "x + np.arange(3)": promoted(dtype, "int32"), "[1, 2, 3] + x": promoted(dtype, "int32"),
                   "np.int8(1) + x": promoted(dtype, "int8")}
    source = "import numpy as np\ndef kernel(x):\n    return [" + ", ".join(expressions) + "]\n"
    kernel = xla.trace(source, inputs=[("x", (3,), dtype)])
    for (e, want), out in zip(expressions.items(), kernel["outputs"]):
        if "uint" in dtype and want.startswith("int") and out["dtype"].startswith("int"):
            continue  # unsigned with signed: NumPy's own rule, checked above
        assert out["dtype"] == want, e


def test_eight_bit_floats():
    pairs = [("float8_e5m2", "float16", "float16"), ("float8_e4m3", "bfloat16", "bfloat16"), ("float8_e4m3fn", "float32", "float32"),
             ("float8_e5m2", "int32", "float8_e5m2"), ("float8_e4m3", "bool", "float8_e4m3")]
    for a, b, want in pairs:
        assert xla.trace("def k(x, y): return x + y", inputs=[("x", (3,), a), ("y", (3,), b)])["outputs"][0]["dtype"] == want
    result = xla._nkx.trace_source("def k(x, y): return x + y", inputs=[("x", (3,), "float8_e5m2"), ("y", (3,), "float8_e4m3")])
    assert result["diagnostics"][0]["code"] == "dtype-promotion"


def test_limits_of_a_float_without_infinity():
    source = """
import numpy as np, ml_dtypes
from nkipy.core.compile import trace
@trace
def kernel(x, y):
    return np.isclose(x, y, atol=1), np.allclose(x, y, atol=9), np.nanmax(x, axis=0), np.nanmin(x, axis=1), np.isfinite(x)
v = np.arange(-6, 6).reshape(3, 4)
kernel(np.where(v == 2, np.nan, v).astype(ml_dtypes.float8_e4m3fn), (v / 2).astype(ml_dtypes.float8_e4m3fn))
"""
    kernel = xla.trace(source, evaluate=True)
    close, all_close, most, least, finite = xla.run(kernel["proto"], kernel["input_values"])
    x, y = (np.asarray(v).astype(np.float32) for v in kernel["input_values"])
    np.testing.assert_array_equal(close, np.isclose(x, y, atol=1))
    assert not all_close and close.any() and not close.all()
    np.testing.assert_array_equal(np.asarray(most).astype(np.float32), np.nanmax(x, axis=0))
    np.testing.assert_array_equal(np.asarray(least).astype(np.float32), np.nanmin(x, axis=1))
    np.testing.assert_array_equal(finite, np.isfinite(x))


TOPK = """from nkipy.core import tensor_apis
import numpy as np, ml_dtypes
from nkipy.core.compile import trace
def kernel(x):
    return *tensor_apis.topk(x, 4, axis=1), *tensor_apis.topk(x, 3, axis=-1, is_ascend=True)
"""


def test_topk_is_the_custom_call_that_nkipy_makes():
    kernel = xla.trace(TOPK + "trace(kernel).specialize(np.zeros((5, 9), np.float32))")
    text = xla.read(kernel["proto"])
    lines = [line.strip() for line in text[text.index("ENTRY"):].splitlines() if " = " in line]
    assert [line for line in lines if "parameter" not in line and "ROOT" not in line] == [
        'op1 = (f32[5,4]{1,0}, u32[5,4]{1,0}) custom-call(x), custom_call_target="AwsNeuronTopK", backend_config="4"',
        "op2 = f32[5,4]{1,0} get-tuple-element(op1), index=0",
        "op3 = u32[5,4]{1,0} get-tuple-element(op1), index=1",
        "op4 = f32[5,9]{1,0} negate(x)",
        'op5 = (f32[5,3]{1,0}, u32[5,3]{1,0}) custom-call(op4), custom_call_target="AwsNeuronTopK", backend_config="3"',
        "op6 = f32[5,3]{1,0} get-tuple-element(op5), index=0",
        "op7 = f32[5,3]{1,0} negate(op6)",
        "op8 = u32[5,3]{1,0} get-tuple-element(op5), index=1",
    ]


@pytest.mark.parametrize("dtype", ALL)
def test_topk_orders_as_numpy_does(dtype):
    """Ties in order, the ends of every integer type, zeros of both signs, and NaN."""
    x = np.random.default_rng(4).integers(-3, 4, (5, 9))
    if dtype in FLOATS:
        some = [np.nan, 2.5, -0.0, 0.0, np.inf, -np.inf, 1, 1.5, -2]
    elif dtype == "bool":
        some = [0, 1, 1, 0, 0, 1, 0, 1, 1]
    else:
        low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
        some = [low, high, 0, 1, low, high, high - 1, low + 1, 0]
    values = [some[k % 9] for k in (x + 9).ravel()]
    xla.check(f"{TOPK}from numpy import inf, nan\n"
              f"trace(kernel).specialize(np.array({values!r}).reshape(5, 9).astype({dtype!r}))")
