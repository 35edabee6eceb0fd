"""Convolutions and stencils that are written as sums of shifted slices, of odd shapes, down to NISA: each element of a tile is loaded
once, and every stage computes what NumPy does."""
import numpy as np
import pytest

from support import compiler, reference

HEAD = "import numpy as np\nfrom nkigen import trace\n"
# name: (body, shapes, overlapping slices that are read from one tile)
KERNELS = {
    "depthwise": ("""
    p = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    y = np.zeros_like(x)
    for i in range(3):
        for j in range(3):
            y = y + p[:, :, i : i + 7, j : j + 11] * w[None, :, i, j, None, None]
    return y""", [(3, 33, 7, 11), (33, 3, 3)], True),
    "uneven_edges": ("""
    p = np.pad(x, ((0, 0), (0, 0), (2, 0), (0, 3)), constant_values=1.5)
    return p[:, :, :5, 3:] * w[None, :, 0, None, None] + p[:, :, 2:, :6] * w[None, :, 1, None, None] + p[:, :, 1:6, 2:8]""",
                     [(3, 40, 5, 6), (40, 2)], True),
    "many_channels": ("""
    return (x[:, :, 1:] - x[:, :, :-1]) * w[None, :, :1]""", [(3, 200, 19), (200, 2)], True),
    "rows": ("""
    return np.exp(x[:, 2:] - 2 * x[:, 1:-1] + x[:, :-2]) * w""", [(300, 37), (300, 1)], True),
    "halves": ("""
    return np.exp(x[:, :150] - x[:, 150:]) * w""", [(300, 300), (300, 1)], False),
    "short_halves": ("""
    return np.exp(x[:, :18] - x[:, 18:]) * w""", [(300, 36), (300, 1)], True),
    "one_tile": ("""
    return np.exp(x[:, 2:] - 2 * x[:, 1:-1] + x[:, :-2]) * w[:, :1] + w[:, 1:]""", [(100, 37), (100, 2)], True),
    "slices_of_a_result": ("""
    e = np.exp(x)
    return (e[:, 1:] + e[:, :-1]) * w""", [(300, 21), (300, 1)], None),
}


@pytest.mark.parametrize("name", KERNELS)
def test_shifted_slices_are_read_from_one_tile(name):
    body, shapes, shares = KERNELS[name]
    specs = ", ".join(f"({s}, 'f32')" for s in shapes)
    source = f"{HEAD}@trace(input_specs=[{specs}])\ndef {name}(x, w):{body}\n"
    result = compiler.compile(source, check=True)
    assert not [d for d in result["diagnostics"] if d["severity"] == "error"], result["diagnostics"]
    (kernel,) = result["kernels"]
    said = [r["text"] for s in kernel["stages"] for r in s.get("remarks", []) if r.get("rule") == "fuse-windows"]
    assert shares is None or bool(said) == shares
    rng = np.random.default_rng(3)
    inputs = [rng.standard_normal(s).astype(np.float32) for s in shapes]
    plain = reference.functions(source)[name]
    for got, want in zip(reference.run_nisa(kernel, [x.copy() for x in inputs]), reference.call(plain, kernel, inputs), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
