"""Outer products of many short vectors, in rows that fill the partitions, are what NumPy says; all stages are compared."""
import pytest
from support.compiler import compile, is_checked

BODIES = {
    "a product": "return np.einsum('bi,bj->bij', a, b)",
    "a product in another spelling": "return a[:, :, None] @ b[:, None, :]",
    "columns first": "return np.einsum('bi,bj->bji', b, a)",
    "a difference": "return b[:, None, :] - a[:, :, None]",
    "a maximum": "return np.maximum(a[:, :, None], b[:, None, :])",
    "of computed vectors": "return (a * 2)[:, :, None] * np.exp(b)[:, None, :] + 1",
    "that is summed": "return np.einsum('bi,bj->bij', a, b).sum(0)",
}


@pytest.mark.parametrize("sizes", [(64, 96, 40), (130, 33, 17), pytest.param((300, 8, 128), marks=pytest.mark.nightly),
                                   pytest.param((97, 7, 5), marks=pytest.mark.nightly)], ids=str)
@pytest.mark.parametrize("body", BODIES, ids=lambda b: b.replace(" ", "-"))
def test_an_outer_product_is_what_numpy_says(body, sizes):
    batch, rows, columns = sizes
    source = f"import numpy as np\n\n\ndef f(a, b):\n    {BODIES[body]}\n"
    result = compile(source, "--input", f"a={batch}x{rows}:f32", "--input", f"b={batch}x{columns}:f32", check=True)
    (kernel,) = result["kernels"]
    assert result["status"] == "ok" and all(is_checked(s) for s in kernel["stages"] if s["name"] != "trace")
    said = [r["rule"] for s in kernel["stages"] for r in s.get("remarks", [])]
    assert "outer-in-rows" in said
