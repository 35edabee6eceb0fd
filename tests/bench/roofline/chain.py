"""A chain of eight elementwise operations on two matrices"""
import numpy as np
from nkigen import trace

N = 4096


@trace(input_specs=[((N, N), "f32"), ((N, N), "f32")])
def chain(x, y):
    z = x + y
    z = z * 0.5
    z = np.maximum(z, 0.0)
    z = z * x
    z = z - 1.0
    z = np.exp(z)
    z = z + y
    return np.minimum(z, 6.0)
