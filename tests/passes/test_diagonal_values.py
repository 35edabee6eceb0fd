"""Diagonals and traces of arguments, which are read with a stride, are what NumPy says; all stages are compared."""
import numpy as np
import pytest
from support import runs
from support.compiler import compile, is_checked

BODIES = {
    "diagonal": ("return np.diagonal(x)", True),
    "above": ("return np.diagonal(x, 3)", True),
    "far above": ("return np.diagonal(x, 60) * 2", True),
    "below": ("return np.diagonal(x, -2) + 1", True),
    "far below": ("return np.diag(x, -36)", True),
    "trace": ("return np.trace(x)", True),
    "trace above": ("return np.trace(x, 5)", True),
    "both": ("return np.diagonal(x[:37, :37]) + np.trace(x)", True),
    "einsum": ("return np.einsum('bii->bi', y)", True),
    "traces": ("return np.trace(y, axis1=1, axis2=2)", True),
    "leading dimensions, which are turned first": ("return np.diagonal(z)", False),
    "trace of leading dimensions": ("return np.trace(z, -1)", True),
    "integers": ("return np.trace(i), np.diagonal(i, 1)", True),
    "two of them": ("return np.diagonal(x, 1)[:30] - np.diagonal(x)[7:], np.diagonal(x)", True),
    "computed": ("return np.diagonal(x * 2)", False),
}


@pytest.mark.parametrize("name", BODIES, ids=lambda n: n.replace(" ", "-"))
def test_a_diagonal_is_what_numpy_says(name):
    body, is_read = BODIES[name]
    inputs = ("x=37x64:f32", "y=3x20x20:f32", "z=5x5x9:f32", "i=40x33:i32")
    used = [i for i in inputs if f"({i[0]}" in body or f"{i[0]})" in body]
    source = f"import numpy as np\n\n\ndef f({', '.join(i[0] for i in used)}):\n    {body}\n"
    result = compile(source, *(a for i in used for a in ("--input", i)), check=True)
    (kernel,) = result["kernels"]
    assert result["status"] == "ok" and all(is_checked(s) for s in kernel["stages"] if s["name"] != "trace")
    said = {r["rule"] for s in kernel["stages"] for r in s.get("remarks", [])}
    assert ("diagonal" in said) == is_read


@pytest.mark.parametrize("name", ["infinities", "not a number"])
def test_other_elements_do_not_matter(name):
    """They are not even read."""
    source = "import numpy as np\n\n\ndef f(x):\n    return np.diagonal(x), np.trace(x)\n"
    x = np.full((130, 130), np.inf if name == "infinities" else np.nan, np.float32)
    np.fill_diagonal(x, np.arange(130, dtype=np.float32))
    got, _ = runs.simulated(source, {"x": x})
    diagonal, trace = got.values()
    assert np.array_equal(diagonal, np.arange(130)) and trace == 130 * 129 / 2
