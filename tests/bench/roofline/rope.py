"""Rotary position embedding: 2048 positions, 8 heads of width 128, bf16"""
import numpy as np
from nkigen import trace

SEQ, HEADS, DIM = 2048, 8, 128


@trace(input_specs=[((SEQ, HEADS, DIM), "bf16"), ((SEQ, DIM // 2), "bf16"), ((SEQ, DIM // 2), "bf16")])
def rope(x, cos, sin):
    cos, sin = cos[:, None, :], sin[:, None, :]
    first, second = x[..., : DIM // 2], x[..., DIM // 2 :]
    return np.concatenate([first * cos - second * sin, first * sin + second * cos], axis=-1)
