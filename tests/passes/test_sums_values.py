"""Products that are added up share an accumulator: every stage computes what NumPy does, and what must stay apart does.

Each kernel is compiled whole; the rule says whether its products were added in PSUM.
"""
import pytest
from support import compiler

RULE = "accumulate-products"
TWO = "x=130x517:f32 h=130x261:f32 w=517x300:f32 u=261x300:f32"
ADAPTER = "x=130x200:f32 w=200x300:f32 a=200x16:f32 b=16x300:f32"
BF16 = TWO.replace("f32", "bf16")

KERNELS = {
    "two": (TWO, "return x @ w + h @ u", 1),
    "whole tiles": ("x=256x256:f32 h=256x128:f32 w=256x512:f32 u=128x512:f32", "return x @ w + h @ u", 1),
    "rows, columns and sums with tails": ("x=300x140:f32 h=300x7:f32 w=140x700:f32 u=7x700:f32", "return x @ w + h @ u", 1),
    "many blocks of columns": ("x=128x512:f32 h=128x512:f32 w=512x2100:f32 u=512x2100:f32", "return x @ w + h @ u", 1),
    "columns outside": ("x=1100x128:f32 h=1100x128:f32 w=128x80:f32 u=128x80:f32", "return x @ w + h @ u", 1),
    "one row": ("x=1x300:f32 h=1x200:f32 w=300x130:f32 u=200x130:f32", "return x @ w + h @ u", 1),
    "bf16 to f32": ("x=130x517:bf16 h=130x261:bf16 w=517x300:bf16 u=261x300:bf16",
                    "return np.matmul(x, w, dtype=np.float32) + np.matmul(h, u, dtype=np.float32)", 1),
    "f16 and f32": ("x=130x260:f16 h=130x130:f32 w=260x300:f16 u=130x300:f32",
                    "return np.matmul(x, w, dtype=np.float32) + h @ u", 1),
    "transposed on the left": ("x=200x130:f32 h=150x130:f32 w=200x300:f32 u=150x300:f32", "return x.T @ w + h.T @ u", 1),
    "one transposed": ("x=200x130:f32 h=130x150:f32 w=200x300:f32 u=300x150:f32", "return x.T @ w + h @ u.T", 1),
    "three and biases": ("x=130x200:f32 h=130x140:f32 w=200x300:f32 u=140x300:f32 b=300:f32 c=300:f32",
                         "return (x @ w + b) + (h @ u + c) + h[:, :128] @ u[:128]", 2),
    "functions of the sum": (TWO + " b=300:f32", "z = x @ w + h @ u + b\nreturn np.tanh(z[:, :150]) * (1 / (1 + np.exp(-z[:, 150:])))", 1),
    "a sum before": (TWO + " y=130x300:f32", "return y + x @ w + h @ u", 1),
    "a loop": ("a=5x130x140:f32 b=5x140x300:f32", "s = a[0] @ b[0]\nfor k in range(1, 5):\n    s += a[k] @ b[k]\nreturn s", 4),
    "a product of a product": ("x=130x200:f32 w=200x300:f32 a=200x16:f32 b=16x300:f32", "return (x @ a) @ b + x @ w", 1),
    "an adapter": (ADAPTER, "return x @ w + (x @ a) @ b * 2.0", 1),
    "an adapter on the right": (ADAPTER, "return x @ w + 0.3 * (x[:, :16] @ (a.T @ w))", 1),
    "an adapter with a large factor": (ADAPTER, "return x @ w + (x @ a) @ b * 1e6", 0),
    "an adapter whose product is read": (ADAPTER, "t = x @ a\nreturn x @ w + t @ b * 2.0, t", 0),
    "an adapter with a knob": (ADAPTER, "p = (x @ a) @ b\nknob.knob(p).layout(mem_space='Hbm')\nreturn x @ w + p * 2.0", 0),
    "a scaled product of bf16": (ADAPTER.replace("f32", "bf16"), "return x @ w + (x @ a) @ b * 2", 0),
    "batches": ("x=3x130x140:f32 h=3x130x70:f32 w=3x140x200:f32 u=3x70x200:f32", "return x @ w + h @ u", 1),
    "batches of bf16": ("x=3x130x140:bf16 h=3x130x70:bf16 w=3x140x200:bf16 u=3x70x200:bf16", "return x @ w + h @ u", 1),
    "three batches": ("x=2x130x40:f32 w=2x40x50:f32 h=2x130x60:f32 u=2x60x50:f32", "return x @ w + h @ u + x[:, :, :30] @ w[:, :30]", 2),
    "bf16": (BF16, "return x @ w + h @ u", 1),
    "f16": (BF16.replace("bf16", "f16"), "return x @ w + h @ u", 1),
    "a loop of bf16": ("a=4x130x140:bf16 b=4x140x300:bf16", "s = a[0] @ b[0]\nfor k in range(1, 4):\n    s += a[k] @ b[k]\nreturn s", 3),
    "bf16 with a bias": (BF16 + " b=300:bf16", "return (x @ w + b) + h @ u", 0),
    "bf16 that is read twice": (BF16, "p = x @ w\nreturn p + h @ u, p * 2", 0),
    "read twice": (TWO, "p = x @ w\nreturn p + h @ u, p * 2", 0),
    "the same product twice": (TWO, "p = x @ w\nreturn p + p", 0),
    "a difference": (TWO, "return x @ w - h @ u", 0),
    "integers": ("x=16x20:int32 h=16x12:int32 w=20x24:int32 u=12x24:int32", "return x @ w + h @ u", 0),
    "a knob on one product": (TWO, "p = x @ w\nknob.knob(p).tile_op(tile_size=[64, 100, 64])\nreturn p + h @ u", 0),
    "a knob on the sum": (TWO, "s = x @ w + h @ u\nknob.knob(s).tile_op(tile_size=[64, 100])\nreturn s", 0),
    "a knob on what reads the sum": (TWO, "s = np.exp(0.01 * (x @ w + h @ u))\nknob.knob(s).tile_op(tile_size=[64, 100])\nreturn s", 1),
    "a branch for each": (TWO, "p = x @ w\nq = np.where(p > 0, p, -p)\nreturn q + h @ u", 0),
    "the products wait for each other": (TWO + " v=300x300:f32", "p = x @ w\nreturn p + (p * 0.1) @ v", 0),
}


def source(specs, body):
    names, shapes = [], []
    for spec in specs.split():
        name, form = spec.split("=")
        shape, kind = form.split(":")
        names.append(name)
        shapes.append(f"(({', '.join(shape.split('x'))},), {kind!r})")
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return (f"import numpy as np\nfrom nkigen import knob, trace\n\n\n@trace(input_specs=[{', '.join(shapes)}])\n"
            f"def kernel({', '.join(names)}):\n{lines}")


@pytest.mark.parametrize("name", KERNELS, ids=lambda n: n.replace(" ", "-"))
def test_every_stage_computes_what_numpy_does(name):
    specs, body, _ = KERNELS[name]
    compiler.assert_equal_at_every_stage(source(specs, body), 1)


@pytest.mark.parametrize("name", KERNELS, ids=lambda n: n.replace(" ", "-"))
def test_only_products_that_are_read_by_their_sum_alone_share_an_accumulator(name):
    specs, body, n = KERNELS[name]
    (kernel,) = compiler.compile(source(specs, body))["kernels"]
    sums = [r for s in kernel["stages"] for r in s.get("remarks", []) if r["rule"] == RULE]
    assert len(sums) == n
