"""Mean and variance of rows become bn_stats and bn_aggr, in every spelling and width, and compute what NumPy computes."""
import re

import numpy as np
import pytest

from support import runs
from support.compiler import compile, is_checked, stage

NORMS = {
    "np.var": "m = np.mean(x, axis=-1, keepdims=True)\nreturn (x - m) / np.sqrt(np.var(x, axis=-1, keepdims=True) + 1e-5)",
    "squares": "c = x - np.mean(x, axis=-1, keepdims=True)\nreturn c / np.sqrt(np.mean(c * c, axis=-1, keepdims=True) + 1e-5)",
    "np.square": "c = x - x.mean(1)[:, None]\nreturn c * (np.square(c).mean(1, keepdims=True) + 1e-5) ** -0.5",
    "unbiased": "return (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True, ddof=1)",
    "variance only": "return x.var(1)",
    "sum of squares": "c = x - x.mean(1, keepdims=True)\nreturn c + np.sum(c * c, axis=1, keepdims=True)",
}
OTHERS = {
    "another factor": "c = x - np.sum(x, axis=1, keepdims=True) * 0.01\nreturn c + np.mean(c * c, axis=1, keepdims=True)",
    "of other data": "c = y - np.mean(x, axis=1, keepdims=True)\nreturn c + np.mean(c * c, axis=1, keepdims=True)",
    "no square": "c = x - np.mean(x, axis=1, keepdims=True)\nreturn c + np.mean(c * np.abs(c), axis=1, keepdims=True)",
}


def source(body, names="x"):
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return f"import numpy as np\n\n\ndef f({', '.join(names)}):\n{lines}"


def instructions(body, shape, names="x"):
    """All stages are checked against NumPy."""
    result = compile(source(body, names), *(a for n in names for a in ("--input", f"{n}={shape[0]}x{shape[1]}:f32")), check=True)
    (kernel,) = result["kernels"]
    assert all(is_checked(s) for s in kernel["stages"] if s["name"] != "trace")
    return re.findall(r"nisa\.(\w+)\(", stage(kernel, "linalg-to-nisa")["text"]), kernel


@pytest.mark.parametrize("name", NORMS)
def test_each_spelling_reads_the_rows_once(name):
    found, kernel = instructions(NORMS[name], (130, 700))
    assert found.count("bn_stats") == 4 and found.count("bn_aggr") == 2 and "tensor_reduce_arith" not in found, found
    said = [r["text"] for r in stage(kernel, "linalg-to-nisa")["remarks"] if r["rule"] == "moments"]
    assert said == ["mean and variance of 700 elements by bn_stats, in 2 parts"] * 2


@pytest.mark.parametrize("columns", [2, 513, *(pytest.param(n, marks=pytest.mark.nightly) for n in [1, 3, 511, 512, 1025])])
def test_every_width_is_divided_into_parts_that_fit(columns):
    found, _ = instructions(NORMS["squares"].replace("-1", "1"), (5, columns))
    assert found.count("bn_stats") == (columns > 1) * -(-columns // 512), found


@pytest.mark.parametrize("name", OTHERS)
def test_what_is_no_variance_keeps_its_sums(name):
    found, _ = instructions(OTHERS[name], (128, 96), "xy")
    assert "bn_stats" not in found and found.count("bn_aggr") == 0, found


def test_a_mean_far_from_zero_keeps_the_digits_of_the_variance():
    x = (np.random.default_rng(1).standard_normal((128, 1000)) + 1000).astype(np.float32)
    got, _ = runs.simulated(source("return x.var(1)"), {"x": x})
    (y,) = got.values()
    np.testing.assert_allclose(y, x.astype(np.float64).var(1), rtol=1e-5)
