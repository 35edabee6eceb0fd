"""Reductions of dimensions before the last ones keep what a kernel computes when they get rows: odd sizes, types, what reads them.

Each kernel is compiled to the stage before prepare-arithmetic, and the values before and after the pass are compared on random inputs;
some are also compiled whole and run on the simulated machine, and compared with NumPy.
"""
import pytest

from support import compiler, runs, values, warm

HEAD = """import ml_dtypes
import numpy as np
from nkigen import knob, trace

bf16 = ml_dtypes.bfloat16


"""
SOFTMAX = "e = np.exp(x - x.max(1, keepdims=True))\nreturn e / e.sum(1, keepdims=True)"
BODIES = {
    "a softmax": SOFTMAX,
    "a logarithm of a softmax": "z = x - x.max(1, keepdims=True)\nreturn z - np.log(np.exp(z).sum(1, keepdims=True))",
    "a norm with a scale": """c = x - x.mean(1, keepdims=True)
c = c / np.sqrt((c * c).mean(1, keepdims=True) + np.float32(1e-3))
return c * y[0, :, 0, 0].reshape(1, -1, 1, 1) + y[-1, :, 1, 0].reshape(1, -1, 1, 1)""",
    "a factor for each image and channel": "return (x - x.min(1, keepdims=True)) * y[:, :, :1, :1]",
    "numbers for each row leave": "m = x.max(1)\nreturn m, m * 2 - x.min(1), x.mean(1), (x - m[:, None]) * y",
    "positions": "return np.argmax(x, 1), np.argmin(y, 1), x.max(1, keepdims=True)",
    "a mask that is passed on": "z = x > x.mean(1, keepdims=True)\nreturn np.where(z, x, y), z.sum(1)",
    "all before the last": "return (x - x.max((0, 1))) * 2, y.prod((0, 1))",
    "two of them": "return x - x.max((1, 2), keepdims=True), y.min((1, 2))",
    "a value that others read": "e = np.exp(x - x.max(1, keepdims=True))\nreturn e.sum((2, 3)), e / e.sum(1, keepdims=True)",
    "a product after it": "e = np.exp(x - x.max(1, keepdims=True))\nreturn e[0].reshape(x.shape[1], -1).T @ y[0].reshape(x.shape[1], -1)",
    "a knob": "m = x.max(1)\nknob.knob(m).layout(mem_space='Hbm')\nreturn m + 1",
}
SHAPES = [(3, 130, 5, 7), *(pytest.param(s, marks=pytest.mark.nightly) for s in
                            [(1, 130, 17, 31), (2, 96, 8, 16), (2, 257, 7, 9), (2, 3, 40, 5), (1, 1, 6, 6), (130, 5, 6, 6)])]
BANDS = [(4, 3, 48, 40), *(pytest.param(s, marks=pytest.mark.nightly) for s in [(3, 5, 41, 24), (16, 64, 28, 28), (2, 21, 64, 66), (90, 7, 16, 9)])]
FLOATS = {"f32": 1e-4, "bf16": 5e-2, "f16": 1e-2}


def source(body, shape, dtype="f32"):
    specs = ", ".join(f"({tuple(shape)}, '{dtype}')" for _ in range(2))
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return f"{HEAD}@trace(input_specs=[{specs}])\ndef kernel(x, y):\n{lines}"


def after(tmp_path, rng, body, shape, dtype="f32", with_pass="prepare-arithmetic"):
    path = tmp_path / "kernel.py"
    path.write_text(source(body, shape, dtype))
    done = warm.run("compile", str(path), *compiler.CONSTANTS, "--stop-after", "recognize-activations")
    assert done.returncode == 0, done.stderr.decode()
    return values.check(done.stdout.decode(), with_pass, rng, FLOATS.get(dtype, 0))


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("body", BODIES, ids=lambda b: b.replace(" ", "-"))
def test_dimensions_that_change_places_keep_their_values(tmp_path, rng, body, shape):
    after(tmp_path, rng, BODIES[body], shape)


@pytest.mark.parametrize("dtype", ["bf16", *(pytest.param(t, marks=pytest.mark.nightly) for t in ("f16", "i8", "i32"))])
@pytest.mark.parametrize("body", ["numbers for each row leave", "positions"], ids=lambda b: b.replace(" ", "-"))
def test_types_keep_their_values(tmp_path, rng, body, dtype):
    body = BODIES[body].replace(", x.mean(1)", "") if dtype[0] == "i" else BODIES[body]
    text = after(tmp_path, rng, body, (3, 130, 5, 7), dtype)
    assert ("permutation = [0, 2, 1]" in text) == (dtype[0] != "i"), "the Tensor engine transposes floats only"


@pytest.mark.parametrize("shape", BANDS, ids=str)
@pytest.mark.parametrize("body", BODIES, ids=lambda b: b.replace(" ", "-"))
def test_bands_keep_their_values(tmp_path, rng, body, shape):
    after(tmp_path, rng, BODIES[body], shape)


@pytest.mark.parametrize("each", [2, *(pytest.param(n, marks=pytest.mark.nightly) for n in (1, 8, 48, 1920))])
@pytest.mark.parametrize("body", BODIES, ids=lambda b: b.replace(" ", "-"))
def test_bands_that_are_asked_for_keep_their_values(tmp_path, rng, body, each):
    after(tmp_path, rng, BODIES[body], (4, 3, 48, 40), with_pass=f"prepare-arithmetic=bands={each}")


@pytest.mark.parametrize("dtype", ["i32", *(pytest.param(t, marks=pytest.mark.nightly) for t in ("f16", "bf16", "i8"))])
@pytest.mark.parametrize("body", ["numbers for each row leave", "positions"], ids=lambda b: b.replace(" ", "-"))
def test_types_in_bands_keep_their_values(tmp_path, rng, body, dtype):
    body = BODIES[body].replace(", x.mean(1)", "") if dtype[0] in "iu" else BODIES[body]
    assert "permutation = [0, 2, 1, 3]" in after(tmp_path, rng, body, (4, 3, 48, 40), dtype)


def test_a_softmax_of_few_channels_is_in_bands(tmp_path, rng):
    assert after(tmp_path, rng, SOFTMAX, (4, 3, 48, 40)).count("permutation = [0, 2, 1, 3]") == 2
    assert "permutation = [0, 2, 1, 3]" not in after(tmp_path, rng, BODIES["a knob"], (4, 3, 48, 40))


def test_a_softmax_has_rows_and_a_knob_keeps_the_dimensions(tmp_path, rng):
    assert after(tmp_path, rng, SOFTMAX, (3, 130, 5, 7)).count("permutation = [0, 2, 1]") == 2
    assert "permutation = [0, 2, 1]" not in after(tmp_path, rng, BODIES["a knob"], (3, 130, 5, 7))


@pytest.mark.parametrize("dtype", ["f32", pytest.param("bf16", marks=pytest.mark.nightly)])
@pytest.mark.parametrize("shape", [(3, 130, 5, 7), (4, 3, 48, 40), *(pytest.param(s, marks=pytest.mark.nightly) for s in [(1, 130, 17, 31), (2, 300, 13, 10), (16, 64, 14, 14), (3, 5, 41, 24)])],
                         ids=str)
@pytest.mark.parametrize("body", ["a softmax", "a norm with a scale", "numbers for each row leave", "positions", "a value that others read"],
                         ids=lambda b: b.replace(" ", "-"))
def test_instructions_compute_what_numpy_does(body, shape, dtype):
    runs.simulated(source(BODIES[body], shape, dtype))
