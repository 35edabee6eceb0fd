"""Cumulative sum along the rows"""
import numpy as np
from nkigen import trace


@trace(input_specs=[((128, 2048), "f32")])
def cumsum(x):
    return np.cumsum(x, axis=1)
