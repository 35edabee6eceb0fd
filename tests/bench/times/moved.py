"""Views that are shifted, strided, reversed or continued at their ends, and images in other orders"""
import numpy as np
from nkigen import trace

IMAGE = [((1024, 1024), "f32")]


@trace(input_specs=IMAGE)
def pad_with_the_edge(x):
    return np.pad(x, 2, mode="edge")


@trace(input_specs=IMAGE)
def pad_by_reflection(x):
    return np.pad(x, 2, mode="reflect")


@trace(input_specs=[((1024, 512), "f32")])
def sobel(x):
    across = x[:-2, 2:] + 2 * x[1:-1, 2:] + x[2:, 2:] - x[:-2, :-2] - 2 * x[1:-1, :-2] - x[2:, :-2]
    down = x[2:, :-2] + 2 * x[2:, 1:-1] + x[2:, 2:] - x[:-2, :-2] - 2 * x[:-2, 1:-1] - x[:-2, 2:]
    return np.sqrt(across * across + down * down)


@trace(input_specs=IMAGE)
def box_of_nine(x):
    n, m = x.shape
    return sum(x[i : n - 2 + i, j : m - 2 + j] for i in range(3) for j in range(3)) / 9


@trace(input_specs=[((2048, 1024), "f32")])
def heat_inside(x):
    return x[1:-1, 1:-1] + 0.1 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] - 4 * x[1:-1, 1:-1])


@trace(input_specs=[((4, 16, 112, 112), "f32")])
def space_to_depth(x):
    n, c, h, w = x.shape
    return x.reshape(n, c, h // 2, 2, w // 2, 2).transpose(0, 1, 3, 5, 2, 4).reshape(n, c * 4, h // 2, w // 2)


@trace(input_specs=[((1024, 2048), "f32")])
def every_third_backwards(x):
    return x[:, 1000:40:-3] + 1


@trace(input_specs=[((8, 3, 224, 224), "f32")])
def half_the_size(x):
    return x[:, :, ::2, ::2]


@trace(input_specs=[((16, 3, 224, 224), "f32")])
def scaled_channels_last(x):
    return (x * (1 / 255)).transpose(0, 2, 3, 1)


@trace(input_specs=[((8, 512, 128), "f32"), ((512, 64), "f32"), ((512, 64), "f32")])
def rotary_halves_of_heads(x, cos, sin):
    a, b = x[..., :64], x[..., 64:]
    return np.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)


@trace(input_specs=[((8, 512, 128), "f32"), ((512, 64), "f32"), ((512, 64), "f32")])
def rotary_pairs_of_heads(x, cos, sin):
    a, b = x[..., ::2], x[..., 1::2]
    return np.stack([a * cos - b * sin, a * sin + b * cos], axis=-1).reshape(x.shape)


@trace(input_specs=[((8, 512, 128), "f32"), ((512, 128), "f32"), ((512, 128), "f32")])
def rotary_by_concatenation(x, cos, sin):
    return x * cos + np.concatenate([-x[..., 64:], x[..., :64]], axis=-1) * sin
