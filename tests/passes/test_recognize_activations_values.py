"""Functions of the Scalar engine: every spelling becomes one activation, and computes what NumPy computes."""
import re

import ml_dtypes
import numpy as np
import pytest

from support import runs
from support.compiler import compile, is_checked, stage

STABLE = "np.where(x >= 0, 1 / (1 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))))"
FORMS = {
    "sigmoid": ["1 / (1 + np.exp(-x))", "np.exp(x) / (np.exp(x) + 1)", "0.5 * np.tanh(x / 2) + 0.5", STABLE, "1 - 1 / (1 + np.exp(x))",
                "np.exp(-np.logaddexp(0, -x))", "1 / (1 + np.exp(-(2 * x + 1)))"],
    "silu": ["x / (1 + np.exp(-x))", "x * np.exp(x) / (1 + np.exp(x))"],
    "gelu_apprx_tanh": ["0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))",
                        "x * 0.5 * (np.tanh(0.79788456 * x * (1 + 0.044715 * x * x)) + 1)"],
    "gelu_apprx_sigmoid": ["x / (1 + np.exp(-1.702 * x))"],
    "softplus": ["np.log(1 + np.exp(x))", "np.log1p(np.exp(x))", "np.logaddexp(0, x)", "np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))"],
    "mish": ["x * np.tanh(np.log1p(np.exp(x)))"],
    "rsqrt": ["1 / np.sqrt(x * x + 1)", "(x * x + 1) ** -0.5"],
}


def source(expression):
    return f"import numpy as np\n\n\ndef f(x):\n    return {expression}\n"


def computing(result):
    """The instructions of linalg-to-nisa that compute."""
    (kernel,) = result["kernels"]
    assert all(is_checked(s) for s in kernel["stages"] if s["name"] != "trace"), [s["name"] for s in kernel["stages"] if not is_checked(s)]
    return re.findall(r"nisa\.(\w+)\(.*engine=(?:vector|scalar|gpsimd)", stage(kernel, "linalg-to-nisa")["text"]), stage(kernel, "linalg-to-nisa")["text"]


@pytest.mark.parametrize("name", FORMS)
def test_each_spelling_becomes_one_activation(name):
    for k, form in enumerate(FORMS[name]):
        shape = ["7x33:f32", "128x40:bf16", "3x5:f16"][k % 3]
        instructions, text = computing(compile(source(form), "--input", f"x={shape}", "--stop-after", "linalg-to-nisa", check=True))
        assert f"op={name})" in text and instructions.count("activation") == 1, (form, instructions)
        assert len(instructions) == 1 or name == "rsqrt", (form, instructions)


@pytest.mark.parametrize("expression", ["1 / (1.01 + np.exp(-x))", "x / (1 + np.exp(-1.71 * x))", "x * np.tanh(np.log(2 + np.exp(x)))",
                                        "np.where(x > 0, 1 / (1 + np.exp(-x)), 1 / (1 + np.exp(x)))"])
def test_an_expression_that_is_close_to_a_function_is_not_taken_for_it(expression):
    _, text = computing(compile(source(expression), "--input", "x=7x33:f32", "--stop-after", "linalg-to-nisa", check=True))
    for name in ("silu", "gelu_apprx_sigmoid", "mish"):
        assert f"op={name})" not in text


def test_infinities_and_nan_come_out_as_in_numpy():
    x = np.array([[0, -0.0, np.inf, -np.inf, np.nan, 1e-30, -1e-30, 80, -80, 3e38, -3e38, 17]], np.float32)
    for form in ("1 / (1 + np.exp(-x))", "x / (1 + np.exp(-x))", "np.logaddexp(0, x)", FORMS["gelu_apprx_tanh"][0], STABLE):
        with np.errstate(all="ignore"):
            want = eval(form, {"np": np, "x": x})
        got, _ = runs.simulated(source(form), {"x": x})
        (y,) = got.values()
        np.testing.assert_allclose(y, want, rtol=1e-5, atol=1e-6, err_msg=form)


def test_rint_is_one_activation_and_exact(rng):
    halves = np.arange(-9, 10, dtype=np.float32) / 2
    x = np.concatenate([halves, [0, -0.0, -0.25, np.inf, -np.inf, np.nan, 8388607.5, -8388609, 3e38, 1e-40], rng.uniform(-99, 99, 35)]).astype(np.float32)
    x = x.reshape(8, 8)
    instructions, text = computing(compile(source("np.rint(x)"), "--input", "x=8x8:f32", "--stop-after", "linalg-to-nisa", check=True))
    assert instructions == ["activation"] and "op=round_even)" in text
    got, _ = runs.simulated(source("np.rint(x)"), {"x": x})
    (y,) = got.values()
    np.testing.assert_array_equal(y, np.rint(x))
    numbers = ~np.isnan(x)
    np.testing.assert_array_equal(np.signbit(y)[numbers], np.signbit(np.rint(x))[numbers])


def test_a_narrow_float_is_rounded_once(rng):
    x = rng.uniform(-4, 4, (9, 70)).astype(ml_dtypes.bfloat16)
    got, _ = runs.simulated(source("x / (1 + np.exp(-x))"), {"x": x})
    (y,) = got.values()
    exact = x.astype(np.float64) / (1 + np.exp(-x.astype(np.float64)))
    np.testing.assert_allclose(y.astype(np.float64), exact, rtol=2.0**-8)


@pytest.mark.parametrize("name, exact", [("sigmoid", lambda x: 1 / (1 + np.exp(-x))), ("silu", lambda x: x / (1 + np.exp(-x))),
                                         ("softplus", lambda x: np.logaddexp(0, x)),
                                         ("gelu_apprx_tanh", lambda x: 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))))])
def test_the_error_of_a_table_is_what_the_pass_says(rng, name, exact):
    x = rng.uniform(-20, 20, (128, 256)).astype(np.float32)
    got, _ = runs.simulated(source(FORMS[name][0]), {"x": x})
    (y,) = got.values()
    want = exact(x.astype(np.float64))
    assert (np.abs(y - want) <= 2e-6 * np.maximum(1, np.abs(want))).all()
