"""Loads of neighbouring columns that became one: every reader finds its own columns."""
import pytest

from support import runs
from support.compiler import stage

# Of several rows fuse-row-tiles reads parts that are shorter together from one tile.
KERNELS = {
    "halves": ("return np.exp(x[:, 100:]) * x[:, :100]", (512, 200), "f32"),
    "parts that overlap": ("return np.exp(x[:, :32]) * x[:, 33:65] - x[:, 32:64]", (20, 96), "f32"),
    "three parts": ("return np.exp(x[:, :128]) * x[:, 256:] - x[:, 128:256]", (512, 384), "bf16"),
    "heads": ("return np.concatenate([x[..., :32] - x[..., 32:], x[..., :32] + x[..., 32:]], -1)", (300, 4, 64), "f32"),
}


@pytest.mark.parametrize("name", KERNELS)
def test_readers_of_a_wide_load_find_their_columns(name):
    body, shape, dtype = KERNELS[name]
    source = f"import numpy as np\nfrom nkigen import trace\n\n\n@trace(input_specs=[({shape}, '{dtype}')])\ndef f(x):\n    {body}\n"
    _, kernel = runs.simulated(source)
    said = [r["text"] for r in stage(kernel, "linalg-to-nisa")["remarks"] if r["rule"] == "widen-load"]
    columns = {"halves": 200, "three parts": 256}.get(name, 64)
    assert said and all(x == f"loaded with its neighbour, {columns} columns" for x in said), said
