"""Loads of neighbouring columns that became one: every reader finds its own columns."""
import pytest

from support import runs
from support.compiler import stage

KERNELS = {
    "halves": ("return np.exp(x[:, 32:]) * x[:, :32]", (512, 64), "f32"),
    "parts that overlap": ("return np.exp(x[:, :32]) * x[:, 33:65] - x[:, 32:64]", (128, 96), "f32"),  # of several tiles fuse-row-tiles reads such parts from one
    "three parts": ("return np.exp(x[:, :32]) * x[:, 64:] - x[:, 32:64]", (512, 96), "bf16"),
    "heads": ("return np.concatenate([x[..., :32] - x[..., 32:], x[..., :32] + x[..., 32:]], -1)", (300, 4, 64), "f32"),
}


@pytest.mark.parametrize("name", KERNELS)
def test_readers_of_a_wide_load_find_their_columns(name):
    body, shape, dtype = KERNELS[name]
    source = f"import numpy as np\nfrom nkigen import trace\n\n\n@trace(input_specs=[({shape}, '{dtype}')])\ndef f(x):\n    {body}\n"
    _, kernel = runs.simulated(source)
    said = [r["text"] for r in stage(kernel, "linalg-to-nisa")["remarks"] if r["rule"] == "widen-load"]
    assert said and all(x == "loaded with its neighbour, 64 columns" for x in said), said
