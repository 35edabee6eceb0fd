"""Root mean square normalisation over the last axis, with a weight"""
import numpy as np
from nkigen import trace

ROWS, COLS = 4096, 2048


@trace(input_specs=[((ROWS, COLS), "f32"), ((COLS,), "f32")])
def rmsnorm(x, weight):
    return x / np.sqrt(np.mean(np.square(x), axis=-1, keepdims=True) + 1e-5) * weight
