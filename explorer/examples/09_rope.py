"""Rotary position embedding (RoPE)

The tables are ordinary NumPy, computed while tracing: they become constants.
"""
import numpy as np
from nkigen import trace

SEQ, HEADS, DIM = 64, 4, 32

frequency = 10000.0 ** (-np.arange(0, DIM // 2) / (DIM // 2))
angle = np.outer(np.arange(SEQ), frequency).astype(np.float32)
COS, SIN = np.cos(angle), np.sin(angle)


@trace(input_specs=[((SEQ, HEADS, DIM), "f32")])
def rope(x):
    cos, sin = COS[:, None, :], SIN[:, None, :]
    first, second = x[..., : DIM // 2], x[..., DIM // 2 :]
    return np.concatenate([first * cos - second * sin, first * sin + second * cos], axis=-1)
