"""Running results: every form becomes scans, and computes what NumPy computes, in NumPy's order."""
import re

import ml_dtypes
import numpy as np
import pytest

from support import runs
from support.compiler import compile, is_checked, stage


def source(expression):
    return f"import numpy as np\n\n\ndef f(x):\n    return {expression}\n"


def scans(expression, shape):
    """How many scans the kernel has, each counted once in its loops; every stage is compared with NumPy."""
    (kernel,) = compile(source(expression), "--input", f"x={shape}", "--stop-after", "linalg-to-nisa", check=True)["kernels"]
    assert all(is_checked(s) for s in kernel["stages"] if s["name"] != "trace"), [s["name"] for s in kernel["stages"] if not is_checked(s)]
    return len(re.findall(r"nisa\.tensor_tensor_scan", stage(kernel, "linalg-to-nisa")["text"]))


# odd shapes, every dimension, several tiles of rows and columns
FORMS = [("np.cumsum(x, axis=1)", "7x33:f32", 1), ("np.cumsum(x, axis=-1)", "3x5000:f32", 2), ("np.cumsum(x, axis=0)", "130x7:f32", 1),
         ("np.cumsum(x, axis=-2)", "3x50x7:bf16", 1), ("np.cumsum(x)", "301:f16", 1), ("np.cumprod(x, axis=1)", "2x9:bf16", 1),
         ("np.cumprod(x, axis=-3)", "33x3x5:f32", 1), ("np.maximum.accumulate(x, axis=1)", "140x3:bf16", 2),
         ("np.minimum.accumulate(x, axis=0)", "17x130:f16", 2), ("np.maximum.accumulate(x, axis=1)", "1x131x2x5:f32", 1),
         ("np.cumsum(np.cumprod(x, axis=0), axis=1)", "20x6:f32", 2), ("np.exp(np.cumsum(x * 2, axis=1) / 40)", "9x40:f32", 1)]


@pytest.mark.parametrize("expression, shape, n", FORMS)
def test_running_results_become_scans(expression, shape, n):
    assert scans(expression, shape) == n


@pytest.mark.parametrize("expression, shape", [("np.cumsum(x, axis=1)", "7x33:i32"), ("np.cumprod(x, axis=0)", "3x4:i32"),
                                               ("np.maximum.accumulate(x, axis=1)", "3x5:i32"), ("np.cumsum(x, axis=1)", "4x1:f32"),
                                               ("np.cumsum(x, axis=1)", "0x3:f32"), ("np.cumprod(x, axis=1)", "3x0:f32")])
def test_integers_and_what_has_one_element_stay(expression, shape):
    assert scans(expression, shape) == 0


@pytest.mark.parametrize("expression, shape", [("np.maximum.accumulate(x, axis=0)", "8x6x40:f32"), ("np.cumprod(x, axis=1)", "3x64x5:f32")])
def test_doubling_stays_where_transposes_would_take_longer(expression, shape):
    assert scans(expression, shape) == 0


def test_a_sum_is_added_in_numpys_order(rng):
    x = (rng.standard_normal((3, 2500)) * 10.0 ** rng.integers(-6, 6, (3, 2500))).astype(np.float32)
    got, _ = runs.simulated(source("np.cumsum(x, axis=1)"), {"x": x})
    (y,) = got.values()
    np.testing.assert_array_equal(y, np.cumsum(x, axis=1))


@pytest.mark.parametrize("expression", ["np.cumsum(x, axis=1)", "np.cumprod(x, axis=1)", "np.maximum.accumulate(x, axis=1)",
                                        "np.minimum.accumulate(x, axis=1)"])
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_infinities_nan_and_signs_of_zero_come_out_as_in_numpy(expression, dtype):
    x = np.array([[-0.0, -0.0, 0.0, 2], [1, np.inf, 3, -np.inf], [-np.inf, 1, 2, 0.5], [1, np.nan, 2, 3], [3, -1, 4, -1.5]]).astype(dtype)
    with np.errstate(all="ignore"):
        want = eval(expression, {"np": np, "x": x.astype(np.float32)}).astype(dtype)
    got, _ = runs.simulated(source(expression), {"x": x})
    (y,) = got.values()
    np.testing.assert_array_equal(y.astype(np.float32), want.astype(np.float32))
    np.testing.assert_array_equal(np.signbit(y.astype(np.float32))[0], np.signbit(want.astype(np.float32))[0])
