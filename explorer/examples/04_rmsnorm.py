"""RMSNorm

The kernel is specialised with real arrays, as NKIPy does it; the weight has rank 1.
"""
import numpy as np
from nkipy.core.compile import trace

EPS = 1e-5


@trace
def rmsnorm(x, weight):
    mean_square = np.mean(np.square(x), axis=-1, keepdims=True)
    return x / np.sqrt(mean_square + EPS) * weight


rmsnorm.specialize(np.zeros((256, 512), np.float32), np.ones(512, np.float32))
