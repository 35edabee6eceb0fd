"""Single-head attention

Scores, softmax and the weighted sum, for one head.
"""
import numpy as np
from nkigen import trace

SEQ, DIM = 128, 64


def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


@trace(input_specs=[((SEQ, DIM), "f32"), ((SEQ, DIM), "f32"), ((SEQ, DIM), "f32")])
def attention(q, k, v):
    scores = q @ k.T * np.float32(1.0 / np.sqrt(DIM))
    return softmax(scores) @ v
