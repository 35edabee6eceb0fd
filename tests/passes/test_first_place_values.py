"""prepare-arithmetic's places of the largest and smallest elements (first.c): values at every stage, with ties, NaN, infinities and zeros of both signs."""
import numpy as np
import pytest

from support import compiler

HEAD = "import ml_dtypes\nimport numpy as np\nfrom nkigen import knob, trace\n\n\n"
KERNELS = {
    "the last axis": ((300, 257), "f32", "return x.argmax(axis=-1), x.argmin(axis=-1)"),
    "few long rows": ((4, 20011), "f32", "return x.argmax(axis=-1)"),
    "few long rows and their largest": ((8, 16000), "f32", "return x.argmin(axis=-1), x.min(axis=-1)"),
    "a row that is too long for a constant": ((2, 70001), "f32", "return x.argmax(axis=1)"),
    "one row": ((1, 5000), "f32", "return x.argmax(axis=-1)"),
    "short rows": ((4096, 21), "f32", "return x.argmax(axis=1)"),
    "the first axis": ((70, 500), "f32", "return x.argmax(axis=0), x.argmin(axis=0)"),
    "an axis before others": ((1, 130, 5, 40), "f32", "return x.argmax(axis=1)"),
    "all elements": ((40, 60), "f32", "return x.argmax()"),
    "bf16": ((64, 500), "bf16", "return x.argmax(axis=1), x.argmin(axis=1)"),
    "f16": ((64, 500), "f16", "return x.argmax(axis=1), x.argmin(axis=1)"),
    "integers": ((64, 500), "int32", "return x.argmax(axis=1), x.argmin(axis=0)"),
    "bytes": ((64, 500), "int8", "return x.argmax(axis=1)"),
    "computed": ((256, 64), "f32", "y = x * x - x @ x.T[:, :64]\n    return y.argmin(axis=1)"),
}


def compiled(tmp_path, shape, t, body, x=None):
    source = f"{HEAD}@trace(input_specs=[({shape}, '{t}')])\ndef f(x):\n    {body}\n"
    arguments = []
    if x is not None:
        np.savez(tmp_path / "in.npz", x=x)
        arguments = ["--inputs", str(tmp_path / "in.npz")]
    result = compiler.compile(source, *arguments, check=True, timeout=300)
    errors = [d for d in result["diagnostics"] if d["severity"] == "error"]
    assert not errors, f"{errors}\n{source}"
    kernel = result["kernels"][0]
    assert not [s["name"] for s in kernel["stages"] if s["check"]["status"] == "fail"], source
    return kernel


@pytest.mark.parametrize("name", KERNELS)
def test_every_stage_computes_what_numpy_computes(name, tmp_path):
    assert "first-place" in compiler.rules(compiled(tmp_path, *KERNELS[name]))


@pytest.mark.parametrize("shape", [(64, 600), (4, 12289)])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_the_first_of_equal_ones_and_the_first_nan_are_found(shape, name, tmp_path):
    rng = np.random.default_rng(5)
    x = rng.integers(-3, 4, shape).astype(np.float32)
    x[:, ::7] *= -1  # zeros of both signs are equal
    n = shape[1]
    x[0, n // 2:] = np.inf
    x[1, [9, n - 1]], x[1, 3], x[1, 5] = np.nan, np.inf, -np.inf
    x[2, :] = -np.inf
    x[3, :] = np.nan
    if shape[0] > 8:
        x[4, 1:] = np.inf
        x[5, :], x[5, 8] = -np.inf, np.nan
        x[6, :] = 0.0
        x[7, :] = np.finfo(np.float32).tiny / 4 * rng.integers(-2, 3, n)
        x[8, :], x[8, 4], x[8, 6] = np.inf, np.nan, -np.nan
    kernel = compiled(tmp_path, shape, "f32", f"return x.{name}(axis=1)", x)
    assert "first-place" in compiler.rules(kernel)


def test_columns_of_several_matrices_and_masks_of_another_kind_stay_as_they_are(tmp_path):
    assert "first-place" not in compiler.rules(compiled(tmp_path, (3, 130, 40), "f32", "return x.argmax(axis=1)"))
    body = "m = x.max(axis=1, keepdims=True)\n    return np.where(x == m, np.arange(64), 64).min(axis=1)"
    assert "first-place" not in compiler.rules(compiled(tmp_path, (128, 64), "f32", body))
    body = ("m = x.min(axis=1, keepdims=True) - np.arange(64, dtype=np.int32)[:, None] % 2\n"
            "    return np.where(x == m, np.arange(500, dtype=np.int32), np.int32(500)).min(axis=1)")
    compiled(tmp_path, (64, 500), "int32", body)
