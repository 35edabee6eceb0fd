"""A kernel as users write them: two helpers, of which one is called twice, a loop, two statements on a line."""

SOURCE = """import numpy as np
from nkigen import trace

T, H, F = 128, 256, 512

def norm(x, eps):
    ms = np.mean(x * x, axis=-1, keepdims=True)
    return x / np.sqrt(ms + eps)

def gate(u, v):
    return u * (1.0 / (1.0 + np.exp(-u))) * v

@trace(input_specs=[((T, H), "f32"), ((H, F), "f32"), ((F, H), "f32")])
def block(x, w1, w2):
    for i in range(2):
        h = norm(x, 1e-5) @ w1; g = gate(h, h)
        x = x + g @ w2
    return norm(x, 1e-6)
"""
