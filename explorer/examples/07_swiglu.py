"""SwiGLU feed-forward

Gate and up projections share one matmul and are split behind it.
"""
import numpy as np
from nkigen import trace, knob

TOKENS, HIDDEN, INNER = 256, 256, 256


def silu(x):
    return x / (1.0 + np.exp(-x))


@trace(input_specs=[((TOKENS, HIDDEN), "f32"), ((HIDDEN, 2 * INNER), "f32"), ((INNER, HIDDEN), "f32")])
def swiglu(x, w_gate_up, w_down):
    both = x @ w_gate_up
    knob.knob(both).tile_op(tile_size=[128, 512, 128]).layout(mem_space="Sbuf")
    gate, up = np.split(both, 2, axis=-1)
    hidden = silu(gate) * up
    knob.knob(hidden).tile_op(tile_size=[128, 256]).layout(mem_space="Sbuf")
    out = hidden @ w_down
    knob.knob(out).tile_op(tile_size=[128, 256, 128]).layout(mem_space="SharedHbm")
    return out
