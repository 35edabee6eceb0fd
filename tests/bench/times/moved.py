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
