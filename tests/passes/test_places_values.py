"""Triangles, and what else is counted from row and column numbers, are what NumPy says; all stages are compared."""
import pytest
from support.compiler import compile, is_checked

BODIES = {
    "upper": "return np.triu(x)",
    "lower": "return np.tril(x, -1)",
    "both": "return np.triu(x, 2) + np.tril(x, -3) * 2",
    "of a batch": "return np.triu(y) - np.tril(y, -1)",
    "computed": "return np.triu(x * 2 + 1) @ np.tril(x.T)",
    "a band": "return np.where(np.abs(np.arange(150)[:, None] - np.arange(200)[None, :]) < 4, x, 0)",
    "numbers that are returned": "return np.triu(x), np.arange(150)[:, None] - np.arange(200)[None, :] + (x > 0)",
    "sums": "return np.tril(x).sum(1), np.triu(x).max(0)",
}


@pytest.mark.parametrize("name", BODIES, ids=lambda n: n.replace(" ", "-"))
def test_a_triangle_is_what_numpy_says(name):
    body = BODIES[name]
    inputs = [i for i in ("x=150x200:f32", "y=3x20x33:f32") if f"({i[0]}" in body or f" {i[0]})" in body]
    inputs = inputs or ["x=150x200:f32"]
    source = f"import numpy as np\n\n\ndef f({', '.join(i[0] for i in inputs)}):\n    {body}\n"
    result = compile(source, *(a for i in inputs for a in ("--input", i)), check=True)
    (kernel,) = result["kernels"]
    assert result["status"] == "ok" and all(is_checked(s) for s in kernel["stages"] if s["name"] != "trace")


def test_a_triangle_is_counted_at_once():
    source = "import numpy as np\n\n\ndef f(x):\n    return np.triu(x) + np.tril(x, -1) * 2\n"
    (kernel,) = compile(source, "--input", "x=300x200:f32")["kernels"]
    (said,) = [r["text"] for s in kernel["stages"] for r in s.get("remarks", []) if r["rule"] == "count-at-once"]
    assert said == "counted by one operation instead of 3"
