"""Element-wise add with a bias

A rank-1 bias broadcasts over the rows, as in NumPy; no knobs.
"""
import numpy as np
from nkigen import trace


@trace(input_specs=[((128, 512), "f32"), ((128, 512), "f32"), ((512,), "f32")])
def add_bias(a, b, bias):
    return np.add(a, b) + bias
