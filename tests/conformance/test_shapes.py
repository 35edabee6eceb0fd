"""The examples' formulas on odd shapes and other dtypes: every stage equals NumPy, and XLA agrees on the HLO.

    NKX_SHAPES=all pytest tests/conformance/test_shapes.py      # every formula on every shape

Otherwise a formula gets every third shape, another third than the formula before it.
"""
import os
import random

import pytest

from support import compiler, reference
from support.oracles import xla

HEAD = "import numpy as np\nfrom nkigen import trace\n\n"

# name -> (parameters as functions of the shape, body); R is the tuple of leading dims, N the last one
FORMULAS = {
    "add_bias": ("a: R+(N,), b: R+(N,), bias: (N,)", "return np.add(a, b) + bias"),
    "softmax": ("x: R+(N,)", "e = np.exp(x - np.max(x, axis=-1, keepdims=True))\n    return e / np.sum(e, axis=-1, keepdims=True)"),
    "rmsnorm": ("x: R+(N,), w: (N,)", "return x / np.sqrt(np.mean(np.square(x), axis=-1, keepdims=True) + 1e-5) * w"),
    "layernorm": ("x: R+(N,), g: (N,), b: (N,)",
                  "c = x - np.mean(x, axis=-1, keepdims=True)\n    v = np.mean(c * c, axis=-1, keepdims=True)\n    return c / np.sqrt(v + 1e-5) * g + b"),
    "gelu": ("x: R+(N,)", "return 0.5 * x * (1.0 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))"),
    "column_statistics": ("x: R+(N,)", "return np.mean(x, axis=0), np.std(x, axis=0), np.min(x, axis=0), np.max(x, axis=0)"),
    "rope": ("x: R+(2*N,), c: (N,), s: (N,)",
             "h = x.shape[-1] // 2\n    a, b = x[..., :h], x[..., h:]\n    return np.concatenate([a * c - b * s, a * s + b * c], axis=-1)"),
    "matmul_bias_relu": ("x: R+(N,), w: (N, K), b: (K,)", "return np.maximum(np.matmul(x, w) + b, 0.0)"),
    "swiglu": ("x: R+(N,), w: (N, 2*K), d: (K, N)",
               "g, u = np.split(x @ w, 2, axis=-1)\n    return (g / (1.0 + np.exp(-g)) * u) @ d"),
    "attention": ("q: R+(N,), k: R+(N,), v: R+(N,)",
                  "s = q @ np.swapaxes(k, -1, -2) * 0.125\n    e = np.exp(s - np.max(s, axis=-1, keepdims=True))\n    return (e / np.sum(e, axis=-1, keepdims=True)) @ v"),
    "cache_update": ("cache: (R[0]+3,)+R[1:]+(N,), new: R+(N,)", "cache[2 : 2 + R0] = new * 2.0\n    return cache"),
}
ALL = os.environ.get("NKX_SHAPES") == "all"
ODD = [((130,), 517), ((1,), 1), ((7,), 3), ((1,), 129), ((128,), 1), ((2, 3), 5), ((129,), 4), ((3, 1, 2), 6)]


def kernel(name, index, lead, n, k, dtype):
    parameters, body = FORMULAS[name]
    specs, names = [], []
    for p in parameters.split(", "):
        if ":" not in p:  # a comma inside a shape
            specs[-1] += ", " + p
            continue
        a, shape = p.split(": ")
        names.append(a)
        specs.append(shape)
    shapes = [eval(s, {"R": lead, "N": n, "K": k}) for s in specs]
    listed = ", ".join(f"({s!r}, {dtype!r})" for s in shapes)
    return f"@trace(input_specs=[{listed}])\ndef {name}_{index}({', '.join(names)}):\n    {body.replace('R0', str(lead[0]))}\n"


def check(source):
    result = compiler.compile(source, check=True)
    assert result["status"] == "ok", result["diagnostics"]
    for k in result["kernels"]:
        for stage in k["stages"]:
            assert compiler.is_checked(stage), (k["name"], stage["name"], stage["check"])
        inputs = compiler.random_inputs(k)
        want = reference.run_numpy(source, k, inputs)
        for text in {s["text"] for s in k["stages"] if s["dialect"] == "hlo"}:
            reference.assert_close(xla.run_text(text, inputs), want, k["name"])


@pytest.mark.parametrize("name", FORMULAS)
def test_the_formulas_are_right_on_odd_shapes(name):
    shapes = ODD if ALL else ODD[list(FORMULAS).index(name) % 3 :: 3]
    check(HEAD + "\n".join(kernel(name, i, lead, n, 9, "f32") for i, (lead, n) in enumerate(shapes)))


@pytest.mark.parametrize("seed", range(60 if ALL else 3))
def test_the_formulas_are_right_on_random_shapes(seed):
    rng = random.Random(seed)
    sources = []
    for i in range(6):
        lead = tuple(rng.choice([1, 2, 3, 5, 8, 31, 64]) for _ in range(rng.choice([1, 1, 2])))
        sources.append(kernel(rng.choice(list(FORMULAS)), i, lead, rng.randint(1, 70), rng.randint(1, 40), "f32"))
    check(HEAD + "\n".join(sources))


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
def test_the_formulas_are_right_in_narrow_floats(dtype):
    names = [n for n in FORMULAS if n not in ("column_statistics",)]
    check(HEAD + "\n".join(kernel(n, i, (5,), 8, 6, dtype) for i, n in enumerate(names)))


def test_scalars_and_empty_tensors_are_right():
    check(HEAD + '''
@trace(input_specs=[((), "f32"), ((), "f32")])
def scalars(x, y):
    return np.exp(x) * y + np.maximum(x, 2.0), np.sqrt(np.abs(y)), -x

@trace(input_specs=[((0, 4), "f32"), ((4,), "f32")])
def empty(x, b):
    return x + b, np.sum(x, axis=0), np.exp(x).T

@trace(input_specs=[((3, 0), "f32"), ((0, 5), "f32")])
def empty_contraction(a, b):
    return a @ b

@trace(input_specs=[((4, 6), "i32"), ((6,), "i8"), ((4, 1), "bool")])
def integers(a, b, c):
    return a * b - 3, a // 2, np.sum(a, axis=1), a.max(), c & (a > b), a / 4
''')
