"""Llama decoder layer

RMSNorm, rotary embedding, masked attention with eight heads and a SwiGLU feed-forward: hidden size 1024, 128 tokens.
"""
import numpy as np
from nkigen import trace

SEQ, HIDDEN, HEADS, INNER = 128, 1024, 8, 2816
DIM = HIDDEN // HEADS
EPS = np.float32(1e-5)


def rmsnorm(x, weight):
    return x / np.sqrt(np.mean(np.square(x), axis=-1, keepdims=True) + EPS) * weight


def rope(x, cos, sin):
    first, second = x[..., : DIM // 2], x[..., DIM // 2 :]
    return np.concatenate([first * cos - second * sin, first * sin + second * cos], axis=-1)


def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def silu(x):
    return x / (1.0 + np.exp(-x))


def heads(x):
    return x.reshape(SEQ, HEADS, DIM).transpose(1, 0, 2)


def attention(x, cos, sin, mask, wq, wk, wv, wo):
    q, k, v = rope(heads(x @ wq), cos, sin), rope(heads(x @ wk), cos, sin), heads(x @ wv)
    scores = q @ k.transpose(0, 2, 1) * np.float32(DIM**-0.5) + mask
    mixed = softmax(scores) @ v
    return mixed.transpose(1, 0, 2).reshape(SEQ, HIDDEN) @ wo


def feed_forward(x, w_gate, w_up, w_down):
    return (silu(x @ w_gate) * (x @ w_up)) @ w_down


def f32(*shape):
    return shape, "f32"


@trace(input_specs=[
    f32(SEQ, HIDDEN), f32(SEQ, DIM // 2), f32(SEQ, DIM // 2), f32(SEQ, SEQ),
    f32(HIDDEN), f32(HIDDEN, HIDDEN), f32(HIDDEN, HIDDEN), f32(HIDDEN, HIDDEN), f32(HIDDEN, HIDDEN),
    f32(HIDDEN), f32(HIDDEN, INNER), f32(HIDDEN, INNER), f32(INNER, HIDDEN),
])
def decoder_layer(x, cos, sin, mask, norm_1, wq, wk, wv, wo, norm_2, w_gate, w_up, w_down):
    x = x + attention(rmsnorm(x, norm_1), cos, sin, mask, wq, wk, wv, wo)
    return x + feed_forward(rmsnorm(x, norm_2), w_gate, w_up, w_down)
