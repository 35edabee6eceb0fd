"""Arrays of which one side is long and the other short: classes of many samples, a few sequences, pixels."""
import numpy as np

from nkigen import trace


@trace(input_specs=[((65536, 10), "f32")])
def softmax_of_ten_classes(x):
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


@trace(input_specs=[((65536, 10), "f32"), ((65536, 10), "f32")])
def mean_squared_error(x, y):
    return np.mean((x - y) ** 2)


@trace(input_specs=[((262144, 16), "f32")])
def squares_of_columns(x):
    return np.sum(x * x, axis=0)


@trace(input_specs=[((4, 65536), "f32"), ((65536,), "f32")])
def shift_of_few_rows(x, b):
    return np.maximum(x + b, 0.0)


@trace(input_specs=[((8, 32000), "f32")])
def softmax_of_few_rows(x):
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


@trace(input_specs=[((16, 50257), "f32")])
def softmax_of_a_vocabulary(x):
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


@trace(input_specs=[((8, 4096), "f32"), ((4096,), "f32")])
def root_mean_square_of_few_rows(x, g):
    return x / np.sqrt(np.mean(x * x, axis=1, keepdims=True) + 1e-6) * g


@trace(input_specs=[((8, 65536), "f32")])
def without_the_mean_of_few_rows(x):
    return x - np.mean(x, axis=0)


@trace(input_specs=[((2, 3, 512, 512), "f32")])
def norm_of_images(x):
    m = np.mean(x, axis=(2, 3), keepdims=True)
    v = np.mean((x - m) ** 2, axis=(2, 3), keepdims=True)
    return (x - m) / np.sqrt(v + 1e-5)


@trace(input_specs=[((16, 224, 224, 3), "f32"), ((3,), "f32"), ((3,), "f32")])
def pixels_to_channels_first(x, mean, deviation):
    return ((x - mean) / deviation).transpose(0, 3, 1, 2)


@trace(input_specs=[((3, 65536), "f32")])
def columns_of_three(x):
    return x.T


@trace(input_specs=[((1048576,), "f32"), ((1048576,), "f32")])
def product_of_long_vectors(a, b):
    return a @ b
