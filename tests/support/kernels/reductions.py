"""Reductions, and what is made of them: means, norms, softmax."""
import numpy as np

from support.kernels.suite import ALL_FORMS, SBUF, SHARED, formulas, kernel

# ---- every reduction over every axis ---------------------------------------------------------------------------------

TILES_2D, TILES_3D = [64, 128], [32, 64, 32]
for _f in ("sum", "mean", "max", "min"):
    for _axis in (-1, 0, 1):
        for _keep in (True, False):
            _name = f"{_f}_axis{_axis}{'_keep' if _keep else ''}".replace("-1", "_last")
            _call = f"np.{_f}(x, axis={_axis}, keepdims={_keep})"
            # the value that mean makes is a division after the sum: its knob would be about that
            formulas(1, {_name: _call}, "128x256", prefix="matrix_", tile=TILES_2D if _f != "mean" else None)
            formulas(1, {_name: _call}, "64x128x64", prefix="cube_", tile=TILES_3D if _f != "mean" else None)
    formulas(1, {_f: f"np.{_f}(x)"}, "128x256", prefix="full_")
    formulas(1, {_f + "_keep": f"np.{_f}(x, keepdims=True)"}, "64x128x64", prefix="full_cube_")

formulas(1, {"prod": "np.prod(x, axis=-1, keepdims=True)"}, "128x256 0.9:1.1", prefix="auto_")
formulas(1, {"prod_rows": "np.prod(x, axis=0, keepdims=True)"}, "128x256 0.9:1.1", prefix="auto_")
formulas(1, {"argmax": "np.argmax(x, axis=-1)", "argmin": "np.argmin(x, axis=-1)", "argmax_rows": "np.argmax(x, axis=0)",
             "std": "np.std(x, axis=-1, keepdims=True)", "var": "np.var(x, axis=-1)",
             "mean_rows": "np.mean(x, axis=0)", "any": "np.any(x > 0.9, axis=1)", "all": "np.all(x > -0.9, axis=1)",
             "count": "np.count_nonzero(x > 0.0, axis=1)"}, "128x256", prefix="auto_")
formulas(2, {"minus_sum": "x - np.sum(x, axis=-1, keepdims=True)", "minus_max": "x - np.max(x, axis=-1, keepdims=True)"},
         "128x256", prefix="auto_")
formulas(2, {"log_sum_exp": "np.log(np.sum(np.exp(x - np.max(x, axis=-1, keepdims=True)), axis=-1, keepdims=True))"
             " + np.max(x, axis=-1, keepdims=True)",
             "standardise": "(x - np.mean(x, axis=-1, keepdims=True)) / np.std(x, axis=-1, keepdims=True)"},
         "128x256", prefix="auto_")
formulas(2, {"cosine_similarity": "np.sum(x * y, axis=-1) / (np.sqrt(np.sum(x * x, axis=-1)) * np.sqrt(np.sum(y * y, axis=-1)))"},
         "128x256", "128x256", prefix="auto_")
formulas(2, {"weighted_average": "y / np.sum(y) @ x"}, "64x128 -1:1", "64 0.1:1", prefix="auto_")


@kernel(2, "256x256", forms=ALL_FORMS)
def reduce_sum(x):
    squares = np.square(x)
    put(squares, [128, 128], SBUF)
    total = np.sum(squares, axis=-1, keepdims=True)
    put(total, [128], SHARED, reduction=[128])
    return total


@kernel(2, "256x256", N=256)
def reduce_mean(x):
    squares = np.square(x)
    put(squares, [128, 128], SBUF)
    total = np.sum(squares, axis=-1, keepdims=True)
    put(total, [128], SBUF, reduction=[128])
    mean = total * (1.0 / N)
    put(mean, [128, 1], SHARED)
    return mean


@kernel(2, "256x256")
def mean_of_squares(x):
    return np.mean(np.square(x), -1, keepdims=True)


# ---- softmax ---------------------------------------------------------------------------------------------------------

def softmax_last(x):
    top = np.max(x, axis=-1, keepdims=True)
    e = np.exp(x - top)
    return e / np.sum(e, axis=-1, keepdims=True)


@kernel(3, "128x128", name="softmax_128x128", forms=ALL_FORMS)
@kernel(3, "128x256", name="softmax_128x256")
@kernel(3, "256x256", name="softmax_256x256")
def softmax(x):
    top = np.max(x, axis=-1, keepdims=True)
    put(top, [128], SBUF, reduction=[128])
    shifted = x - top
    put(shifted, [128, 128], SBUF)
    e = np.exp(shifted)
    put(e, [128, 128], SBUF)
    total = np.sum(e, axis=-1, keepdims=True)
    put(total, [128], SBUF, reduction=[128])
    r = e / total
    put(r, [128, 128], SHARED)
    return r


@kernel(2, "32x128")
def spec_softmax(x):
    top = np.max(x, axis=-1, keepdims=True)
    e = np.exp(x - top)
    total = np.sum(e, axis=-1, keepdims=True)
    return e / total


@kernel(2, "128x256")
def softmax_two_results(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    total = np.sum(e, axis=-1, keepdims=True)
    return e / total, total


# ---- norms -----------------------------------------------------------------------------------------------------------

def rms_normed(x, w):
    return x / np.sqrt(np.mean(np.square(x), axis=-1, keepdims=True) + np.float32(1e-6)) * w


@kernel(3, "256x256", "256x1", forms=ALL_FORMS, N=256)
def rmsnorm(x, w):
    squares = np.square(x.astype(np.float32))
    put(squares, [128, 128], SBUF)
    total = np.sum(squares, axis=-1, keepdims=True)
    put(total, [128], SBUF, reduction=[128])
    mean = total * (1.0 / N)
    put(mean, [128, 1], SBUF)
    normed = x / np.sqrt(mean + np.float32(1e-6))
    put(normed, [128, 128], SBUF)
    r = normed * w
    put(r, [128, 128], SHARED)
    return r


@kernel(2, "128x256")
def auto_rmsnorm(x):
    return x / np.sqrt(np.mean(np.square(x), axis=-1, keepdims=True) + 1e-6)


@kernel(2, "128x256", "128x256", uses=[rms_normed])
def auto_rmsnorm_full_weight(x, w):
    return rms_normed(x, w)


@kernel(2, "128x256", "256", uses=[rms_normed])
def auto_rmsnorm_vector_weight(x, w):
    return rms_normed(x, w)


@kernel(3, "128x256", "128x1", "128x1")
def layernorm_over_rows(x, gain, bias):
    centred = x - np.mean(x, axis=0, keepdims=True)
    deviation = np.sqrt(np.mean(np.square(centred), axis=0, keepdims=True) + 1e-5)
    return centred / deviation * gain + bias
