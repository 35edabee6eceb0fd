"""LayerNorm

One helper function normalises; each of its lines knows who called it.
"""
import numpy as np
from nkigen import trace


def normalise(x, eps=1e-5):
    centred = x - np.mean(x, axis=-1, keepdims=True)
    variance = np.mean(centred * centred, axis=-1, keepdims=True)
    return centred / np.sqrt(variance + eps)


@trace(input_specs=[((128, 768), "f32"), ((768,), "f32"), ((768,), "f32")])
def layernorm(x, gamma, beta):
    return normalise(x) * gamma + beta
