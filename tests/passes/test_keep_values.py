"""What goes through HBM between the same partitions stays in SBUF; all stages are compared with NumPy."""
import re

import pytest
from support.compiler import compile, is_checked, rules, stage

ROPE = """def rope(x, c, s):
    a, b = x[..., :16], x[..., 16:]
    return np.concatenate([a * c - b * s, a * s + b * c], axis=-1)


"""
# body, inputs
KERNELS = {
    "heads": ("return np.exp(x.reshape(128, 4, 32).transpose(1, 0, 2)) * y.reshape(128, 4, 32).transpose(1, 0, 2)[::-1]", ["128x128", "128x128"]),
    "heads of a product": ("q = (x @ y).reshape(128, 4, 32).transpose(1, 0, 2)\n    return np.tanh(q[:, :, ::2]) - q[:, :, 1::2]", ["128x96", "96x128"]),
    "rope of a product": ("return rope((x @ y).reshape(96, 4, 32).transpose(1, 0, 2), x[:, :16], x[:, 16:32])", ["96x64", "64x128"]),
    "few rows": ("q = (x @ y).reshape(50, 3, 40).transpose(1, 0, 2)\n    return q / np.sum(np.abs(q), axis=-1, keepdims=True)", ["50x40", "40x120"]),
    "several tiles": ("q = (x @ y).reshape(300, 4, 32).transpose(1, 0, 2)\n    return np.exp(q) + q[:, :, ::-1]", ["300x64", "64x128"]),
    "a state that is returned": ("z = x @ y\n    c = np.tanh(z[:, :48]) * x[:, :48] + np.exp(-np.abs(z[:, 48:]))\n    return np.tanh(c) * z[:, :48], c", ["64x64", "64x96"]),
    "steps": ("h = x[:, 0] * 0\n    for t in range(5):\n        h = np.tanh(h @ y + x[:, t])\n    return h", ["64x5x48", "48x48"]),
}


@pytest.mark.parametrize("dtype", ["f32", pytest.param("bf16", marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", KERNELS, ids=lambda n: n.replace(" ", "-"))
def test_what_stays_on_chip_is_what_numpy_says(name, dtype):
    body, (x, y) = KERNELS[name]
    result = compile(f"import numpy as np\n\n\n{ROPE}def f(x, y):\n    {body}\n", "--input", f"x={x}:{dtype}", "--input", f"y={y}:{dtype}", check=True)
    (kernel,) = result["kernels"]
    assert result["status"] == "ok" and all(is_checked(s) for s in kernel["stages"] if s["name"] != "trace")
    if name not in ("several tiles", "a state that is returned") and dtype == "f32":
        assert "keep-on-chip" in rules(kernel)


def heads(knob):
    return ("import numpy as np\nfrom nkigen import trace, knob\n\n\n@trace(input_specs=[((128, 8, 64), 'f32')])\ndef f(x):\n"
            f"    y = {knob}\n    return np.tanh(y.transpose(1, 0, 2)[:, :, ::2])\n")


@pytest.mark.parametrize("knob, is_kept", [("np.exp(x)", True), ("knob.knob(np.exp(x), mem_space='Hbm')", False)], ids=["no-knob", "knob"])
def test_a_value_that_the_user_put_into_hbm_is_there(knob, is_kept):
    result = compile(heads(knob), check=True)
    (kernel,) = result["kernels"]
    text = stage(kernel, "linalg-to-nisa")["text"]
    assert ("keep-on-chip" in rules(kernel)) == is_kept
    assert is_kept or re.search(r"nisa.alloc .*#nisa.mem<hbm>", text)
    assert "keeps_hbm" not in text
