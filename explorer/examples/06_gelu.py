"""GELU, the tanh form
"""
import numpy as np
from nkigen import trace

C = np.float32(np.sqrt(2.0 / np.pi))


@trace(input_specs=[((128, 1024), "f32")])
def gelu(x):
    inner = C * (x + 0.044715 * x**3)
    return 0.5 * x * (1.0 + np.tanh(inner))
