"""Values and dtypes that need care: rounding, ties, NaN and infinity, division by zero, promotion.  XLA computes them from
our HLO.  The sweep over all operations is tests/conformance/test_operations.py.

A result's dtype must be NumPy's with 64 bits narrowed to 32; where the promotion table differs from NumPy's (Python floats
with bfloat16, which stays bfloat16), the table wins.
"""
import ml_dtypes
import numpy as np
import pytest

from support.oracles import xla

ALL = ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "float16", "bfloat16", "float32"]
FLOATS = ["float16", "bfloat16", "float32"]
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


def check(expressions, arrays):
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
