"""A transposed matrix plus one"""
from nkigen import trace


@trace(input_specs=[((2048, 2048), "f32")])
def transpose_add(x):
    return x.T + 1.0
