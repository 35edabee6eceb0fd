"""Attention weights in a loop over heads

fori_loop is traced once: one loop over the heads in every stage, down to the instructions.
"""
import numpy as np
from nkigen import trace
from nkigen.apis import fori_loop, knob

HEADS, SEQ, DIM = 8, 128, 128


@trace(input_specs=[((HEADS, SEQ, DIM), "f32"), ((HEADS, DIM, SEQ), "f32")])
def attention_loop(q, kT):
    def head(i, weights):
        scores = q[i] @ kT[i]
        knob(scores).tile_op(tile_size=[128, 128, 128]).layout(mem_space="Sbuf")
        scores = scores * np.float32(1.0 / np.sqrt(DIM))
        knob(scores).tile_op(tile_size=[128, 128]).layout(mem_space="Sbuf")
        e = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
        knob(e).tile_op(tile_size=[128, 128]).layout(mem_space="Sbuf")
        softmax = e / np.sum(e, axis=-1, keepdims=True)
        knob(softmax).tile_op(tile_size=[128, 128]).layout(mem_space="SharedHbm")
        weights[i] = softmax
        return weights

    return fori_loop(0, HEADS, head, np.zeros((HEADS, SEQ, SEQ), np.float32))
