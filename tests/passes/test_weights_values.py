"""Weighted sums over rows that become products, and products with one column that become sums, compute what NumPy does.

Each kernel is compiled whole, to a program that has the rewrite, and run on the simulated machine.
"""
import json

import pytest
from support import runs, warm

HEAD = """import numpy as np
from nkigen import knob, trace


@trace(input_specs=[((3, 130, 70), 'f32'), ((3, 130), 'f32'), ((70,), 'f32'), ((130, 70), 'f32')])
def kernel(x, w, q, y):
"""
PRODUCT, ROWS = "weigh-by-product", "column-by-rows"
KERNELS = {
    "weights for each matrix": ("return (w[:, :, None] * x).sum(1)", {PRODUCT}),
    "kept dimensions": ("return (x * w[:, :, None]).sum(1, keepdims=True)", {PRODUCT}),
    "the same weights for all": ("return (x * w[0][None, :, None]).sum(1)", {PRODUCT}),
    "one matrix": ("return (y * w[1][:, None]).sum(0)", {PRODUCT}),
    "two dimensions at once": ("return (x * w[:, :, None]).sum((0, 1))", {PRODUCT}),
    "computed weights": ("e = np.exp(w - w.max(1, keepdims=True))\nreturn ((e / e.sum(1, keepdims=True))[:, :, None] * x).sum(1)", {PRODUCT}),
    "one column": ("return x @ q", {ROWS}),
    "few rows of one matrix": ("return y @ q[:, None]", set()),
    "attention to one query": ("s = x @ q\ne = np.exp(s - s.max(1, keepdims=True))\nreturn ((e / e.sum(1, keepdims=True))[:, :, None] * x).sum(1)", {PRODUCT, ROWS}),
    "a loop keeps the product": ("r = q\nfor _ in range(2):\n    r = (y[:70] @ r) * 0.1\nreturn r", set()),
    "the weighted rows are read": ("z = y * w[1][:, None]\nreturn z.sum(0), z", set()),
    "a knob": ("z = (y * w[1][:, None]).sum(0)\nknob.knob(z).layout(mem_space='Hbm')\nreturn z + 1", set()),
}


@pytest.mark.parametrize("name", KERNELS, ids=lambda n: n.replace(" ", "-"))
def test_instructions_compute_what_numpy_does(tmp_path, name):
    body, rules = KERNELS[name]
    text = HEAD + "".join(f"    {line}\n" for line in body.splitlines())
    path = tmp_path / "kernel.py"
    path.write_text(text)
    kernel = json.loads(warm.run("compile", str(path), "--json", "-", "--stop-after", "prepare-arithmetic").stdout)["kernels"][0]
    assert {r["rule"] for s in kernel["stages"] for r in s.get("remarks", [])} & {PRODUCT, ROWS} == rules
    runs.simulated(text)
