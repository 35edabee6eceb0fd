"""A kernel of two files that is refused for one of its statements, and a request with it."""
REFUSED = """import numpy as np
from nkigen import trace
from helper import scale


@trace(input_specs=[((128, 256), "bf16"), ((128, 256), "f32")])
def f(x, y):
    a = np.exp(x) + scale(y)
    b = np.convolve(a, a)
    return b * 2.0
"""
REQUEST = {"source": REFUSED, "files": [{"name": "helper.py", "source": "def scale(t):\n    return t * 0.5\n"}], "options": {"by_hand": ["without dce"]}}
