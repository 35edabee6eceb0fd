"""prepare-arithmetic's parts of few long rows (row_parts.c): values at every stage, with special values where NumPy defines them."""
import os
import random

import numpy as np
import pytest

from support import compiler

HEAD = "import ml_dtypes\nimport numpy as np\nfrom nkigen import knob, trace\n\n\n"
SOFTMAX = "e = np.exp(x - x.max(axis=-1, keepdims=True))\n    return e / e.sum(axis=-1, keepdims=True)"
NORM = "return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + 1e-6) * g"
LAYER = ("m = x.mean(axis=-1, keepdims=True)\n    v = ((x - m) ** 2).mean(axis=-1, keepdims=True)\n"
         "    return (x - m) / np.sqrt(v + 1e-5) * g + g")
KERNELS = {
    "rows that divide": ({"x": ((8, 32000), "f32")}, SOFTMAX),
    "a tail of one element": ({"x": ((8, 32001), "f32")}, SOFTMAX),
    "a prime length": ({"x": ((2, 20011), "f32")}, SOFTMAX),
    "one row of a prime length": ({"x": ((1, 20011), "f32")}, SOFTMAX),
    "more parts than a divisor of 128": ({"x": ((3, 4096), "f32")}, SOFTMAX),
    "two leading dimensions": ({"x": ((2, 3, 8191), "f32")}, SOFTMAX),
    "bf16, reduced as it is and as f32": ({"x": ((4, 8193), "bf16")}, "y = (x - x.max(-1, keepdims=True)).astype(np.float32)\n    return (y / np.abs(y).sum(-1, keepdims=True)).astype(x.dtype)"),
    "f16": ({"x": ((4, 8000), "f16")}, "return x - x.min(-1, keepdims=True)"),
    "a factor for each column": ({"x": ((8, 4096), "f32"), "g": ((4096,), "f32")}, NORM),
    "a factor for each column, with a tail": ({"x": ((5, 4099), "f32"), "g": ((4099,), "f32")}, LAYER),
    "a factor for each row": ({"x": ((4, 8193), "f32"), "a": ((4, 1), "f32")}, "y = x * a\n    return y - y.max(1, keepdims=True)"),
    "numbers for each row are returned": ({"x": ((8, 8191), "f32")}, "m = x.max(axis=1)\n    s = np.exp(x - m[:, None]).sum(axis=1)\n    return np.log(s) + m, m, x - m[:, None]"),
    "a product and a smallest": ({"x": ((4, 6007), "f32")}, "return np.prod(np.abs(x) * 0 + 1.001, axis=1), x.min(axis=1)"),
    "quantised rows": ({"x": ((4, 10007), "f32")}, "s = np.abs(x).max(axis=-1, keepdims=True) / 127\n    return np.clip(np.rint(x / s), -127, 127).astype(np.int8), s"),
    "images as rows": ({"x": ((4, 3, 40, 41), "f32"), "y": ((4, 3, 40, 41), "f32")}, "return (x * y).sum((1, 2, 3)), np.abs(x - y).max((1, 2, 3))"),
    "images with a tail": ({"x": ((3, 5, 31, 37), "f32")}, "m = x.mean((1, 2, 3), keepdims=True)\n    return (x - m) / x.std((1, 2, 3), keepdims=True)"),
    "a norm over the last two": ({"x": ((2, 3, 64, 65), "f32")}, "return x / np.sqrt((x * x).sum((2, 3), keepdims=True) + 1)"),
    "all of four dimensions": ({"x": ((4, 3, 150, 151), "f32"), "y": ((4, 3, 150, 151), "f32")}, "return np.mean((x - y) ** 2), np.max(np.abs(x))"),
    "a dimension of one element": ({"x": ((16, 1, 64, 48), "f32")}, "return x.sum((1, 2, 3)) + x.max((1, 2, 3))"),
    "a value for each element of an image": ({"x": ((4, 64, 66), "f32"), "g": ((64, 66), "f32")}, "return x / np.abs(x).max((1, 2), keepdims=True) * g"),
    "two inputs": ({"x": ((4, 8192), "f32"), "y": ((4, 8192), "f32")}, "return (x * y).sum(1), (x - y).max(1)"),
}
NOT_IN_PARTS = {
    "a knob": ({"x": ((8, 32000), "f32")}, "m = x.max(axis=-1, keepdims=True)\n    knob(m, tile_size=[8, 1])\n    return m"),
    "a product reads the rows": ({"x": ((8, 4096), "f32"), "w": ((4096, 64), "f32")}, "return (x / x.max(1, keepdims=True)) @ w"),
    "a value for each column of an image": ({"x": ((4, 64, 66), "f32"), "g": ((66,), "f32")}, "return (x * g).sum((1, 2))"),
    "all of few elements": ({"x": ((4, 3, 20, 21), "f32")}, "return np.mean(x ** 2)"),
    "all, of which one dimension fills the partitions": ({"x": ((16, 128, 200), "f32")}, "return np.max(x)"),
    "rows of images, too": ({"x": ((4, 64, 66), "f32")}, "return (x - x.max((1, 2), keepdims=True)) - x.max(2, keepdims=True)"),
    "many elements of a first dimension that fills the partitions": ({"x": ((4, 256, 4096), "f32")}, "return x.max((1, 2))"),
    "integers": ({"x": ((8, 32000), "int32")}, "return x.max(axis=1)"),
    "short rows": ({"x": ((8, 256), "f32")}, SOFTMAX),
}


def compiled(inputs, body, *arguments):
    specs = ", ".join(f"({shape}, '{t}')" for shape, t in inputs.values())
    source = f"{HEAD}@trace(input_specs=[{specs}])\ndef f({', '.join(inputs)}):\n    {body}\n"
    return compiler.checked_kernel(source, *arguments)


@pytest.mark.parametrize("name", KERNELS)
def test_every_stage_computes_what_numpy_computes(name):
    assert "row-parts" in compiler.rules(compiled(*KERNELS[name]))


@pytest.mark.parametrize("name", NOT_IN_PARTS)
def test_what_wants_rows_as_they_are_gets_them(name):
    assert "row-parts" not in compiler.rules(compiled(*NOT_IN_PARTS[name]))


@pytest.mark.parametrize("columns", [8192, 8191])
def test_a_nan_or_an_infinity_stays_in_its_row(columns, tmp_path):
    x = np.random.default_rng(3).standard_normal((8, columns)).astype(np.float32)
    x[1, 5], x[2, -1], x[3, 7], x[4, columns - 3], x[5, 100:] = np.nan, np.nan, np.inf, -np.inf, -np.inf
    x[6, 2], x[6, 4000] = np.inf, -np.inf
    np.savez(tmp_path / "in.npz", x=x)
    body = "return x.max(1), x.min(1), x.sum(1), x - x.max(1, keepdims=True)"
    kernel = compiled({"x": ((8, columns), "f32")}, body, "--inputs", str(tmp_path / "in.npz"))
    assert "row-parts" in compiler.rules(kernel)


def drawn(rng, name):
    rows = rng.choice(((2,), (3,), (4,), (5,), (8,), (2, 3), (1, 4), (16,), (31,), (2, 1)))
    columns = rng.choice((4096, 4001, 5000, 6007, 8192, 10000, 12289))
    steps = ("m = y.max(-1, keepdims=True)\n    y = y - m", "y = y / (np.abs(y).sum(-1, keepdims=True) + 1)", "y = np.exp(np.minimum(y, 1))",
             "y = y * c", "s = (y * y).mean(-1)\n    y = y * (1 / np.sqrt(s + 1))[..., None]", "y = y + r", "y = np.where(y > 0, y, c)",
             "y = y - y.min(-1, keepdims=True) * 0.5")
    body = "\n    ".join(rng.sample(steps, rng.randint(1, 4)) + ["m = y.max(-1, keepdims=True)"])
    out = rng.choice(("y", "y, m", "m + 1", "y.sum(-1)", "y, y.sum(-1), np.abs(m)"))
    specs = f"({rows + (columns,)}, 'f32'), (({columns},), 'f32'), ({rows + (1,)}, 'f32')"
    return f"@trace(input_specs=[{specs}])\ndef {name}(x, c, r):\n    y = x\n    {body}\n    return {out}\n"


@pytest.mark.parametrize("seed", range(int(os.environ.get("NKX_ROW_ROUNDS", 3))))
def test_drawn_kernels_compute_what_numpy_computes(seed):
    rng = random.Random(seed)
    compiler.assert_equal_at_every_stage(HEAD + "\n\n".join(drawn(rng, f"k{i}") for i in range(8)), 8)
