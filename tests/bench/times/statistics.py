"""Statistics and classical machine learning"""
import numpy as np
from nkigen import trace

ROWS, COLS = 512, 128
DATA = [((ROWS, COLS), "f32")]


@trace(input_specs=DATA)
def covariance(x):
    centred = x - np.mean(x, axis=0)
    return centred.T @ centred / (ROWS - 1)


@trace(input_specs=DATA)
def correlation(x):
    centred = x - np.mean(x, axis=0)
    scaled = centred / np.sqrt(np.sum(centred * centred, axis=0))
    return scaled.T @ scaled


@trace(input_specs=DATA)
def standard_columns(x):
    return (x - np.mean(x, axis=0)) / np.std(x, axis=0)


@trace(input_specs=[((4096,), "f32"), ((16,), "f32")])
def histogram(x, edges):
    return np.sum((x[:, None] >= edges).astype(np.float32), axis=0)


@trace(input_specs=DATA + [((32, COLS), "f32")])
def nearest_centre(x, centres):
    distance = np.sum(x * x, axis=1, keepdims=True) - 2.0 * (x @ centres.T) + np.sum(centres * centres, axis=1)
    return np.argmin(distance, axis=1)


@trace(input_specs=DATA + [((COLS,), "f32"), ((COLS,), "f32")])
def gaussian_log_density(x, mean, deviation):
    z = (x - mean) / deviation
    return -0.5 * np.sum(z * z + 2.0 * np.log(deviation), axis=1)


@trace(input_specs=DATA + [((COLS, 1), "f32"), ((ROWS, 1), "f32")])
def logistic_gradient(x, w, y):
    return x.T @ (1.0 / (1.0 + np.exp(-(x @ w))) - y) / ROWS


@trace(input_specs=DATA + [((COLS, 8), "f32")])
def power_iteration(x, v):
    v = x.T @ (x @ v)
    return v / np.sqrt(np.sum(v * v, axis=0))


@trace(input_specs=DATA)
def log_sum_exp(x):
    m = np.max(x, axis=1, keepdims=True)
    return np.log(np.sum(np.exp(x - m), axis=1)) + m[:, 0]


@trace(input_specs=[((256, 32), "f32"), ((256, 32), "f32")])
def kernel_matrix(x, y):
    distance = np.sum(x * x, axis=1)[:, None] - 2.0 * (x @ y.T) + np.sum(y * y, axis=1)[None, :]
    return np.exp(-0.5 * distance)


@trace(input_specs=DATA + [((ROWS,), "f32")])
def weighted_mean(x, weight):
    return np.sum(x * weight[:, None], axis=0) / np.sum(weight)


@trace(input_specs=[((65536, 21), "f32")])
def class_of_most(x):
    return np.argmax(x, axis=-1)


@trace(input_specs=[((4, 32768), "f32")])
def word_of_most(x):
    return np.argmax(x, axis=-1)
@trace(input_specs=[((1024, 1024), "f32")])
def diagonal_and_trace(x):
    return np.diagonal(x) + np.trace(x)


@trace(input_specs=[((64, 128), "f32"), ((64, 128), "f32")])
def outer_products(a, b):
    return np.einsum("bi,bj->bij", a, b)


@trace(input_specs=[((512, 64), "f32"), ((512, 64), "f32")])
def radial_basis_functions(a, b):
    return np.exp(-0.5 * np.sum((a[:, None, :] - b[None, :, :]) ** 2, axis=-1))


@trace(input_specs=[((1024, 1024), "f32")])
def triangles(x):
    return np.triu(x) + np.tril(x, -1) * 2
