"""Checks of values that are large: long sums, and stages that no machine has the memory for."""
import pytest

from support import compiler

SUMS = {
    "all of two dimensions": ("0.5 * np.sum(x ** 2)", "2048x2048:f32"),
    "all of one dimension": ("np.abs(x).mean()", "4194304:f32"),
    "its root as a factor": ("x * np.minimum(1.0, 1.0 / (np.sqrt(np.sum(x * x)) + 1e-6))", "2048x1024:f32"),
    "of three dimensions two": ("(x * x).sum(axis=(0, 2))", "64x16x4096:f32"),
    "logarithms of wide ranges": ("np.log1p(np.exp(x)).mean()", "1024x512:f32"),
}


@pytest.mark.parametrize("name", SUMS)
def test_a_sum_of_millions_is_as_near_as_numpys_at_every_stage(name):
    expression, shape = SUMS[name]
    result = compiler.compile(f"import numpy as np\ndef f(x):\n    return {expression}\n", "--input", f"x={shape}", check=True)
    assert result["status"] == "ok", result["diagnostics"]
    assert all(compiler.is_checked(s) for s in result["kernels"][0]["stages"])


def test_a_stage_that_needs_more_memory_than_there_is_is_skipped_and_the_others_are_checked():
    """NKIPy traces a running sum of n elements as a product with a triangle of n by n: 4 TiB for a million."""
    result = compiler.compile("import numpy as np\ndef f(x):\n    return np.cumsum(np.abs(x))\n", "--input", "x=1048576:f32", check=True)
    assert result["status"] == "ok", result["diagnostics"]
    stages = result["kernels"][0]["stages"]
    assert stages[0]["check"]["status"] == "skipped" and "4096 GiB" in stages[0]["check"]["reason"]
    assert compiler.is_checked(stages[-1])
