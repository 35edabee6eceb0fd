"""Matmul, bias and ReLU

The knobs say how the work is cut into tiles and where each value lives.
"""
import numpy as np
from nkigen import trace, knob

M, K, N = 256, 256, 512


@trace(input_specs=[((M, K), "f32"), ((K, N), "f32"), ((N,), "f32")])
def matmul_bias_relu(x, w, bias):
    product = np.matmul(x, w)
    knob.knob(product).tile_op(tile_size=[128, 512, 128]).layout(mem_space="Sbuf")
    shifted = product + bias
    knob.knob(shifted).tile_op(tile_size=[128, 512]).layout(mem_space="Sbuf")
    result = np.maximum(shifted, 0.0)
    knob.knob(result).tile_op(tile_size=[128, 512]).layout(mem_space="SharedHbm")
    return result
