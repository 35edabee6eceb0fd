"""Llama decoder layer: 128 positions, width 512, 8 heads, f32"""
import numpy as np
from nkigen import trace

SEQ, WIDTH, HEADS, INNER = 128, 512, 8, 1408
DIM = WIDTH // HEADS
FLOPS = 2 * SEQ * (4 * WIDTH * WIDTH + 3 * WIDTH * INNER) + 2 * 2 * SEQ * SEQ * WIDTH
EPS = 1e-5


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
    mixed = softmax(q @ k.transpose(0, 2, 1) * DIM**-0.5 + mask) @ v
    return mixed.transpose(1, 0, 2).reshape(SEQ, WIDTH) @ wo


def t(*shape):
    return shape, "f32"


@trace(input_specs=[
    t(SEQ, WIDTH), t(SEQ, DIM // 2), t(SEQ, DIM // 2), t(SEQ, SEQ),
    t(WIDTH), t(WIDTH, WIDTH), t(WIDTH, WIDTH), t(WIDTH, WIDTH), t(WIDTH, WIDTH),
    t(WIDTH), t(WIDTH, INNER), t(WIDTH, INNER), t(INNER, WIDTH),
])
def decoder_128(x, cos, sin, mask, norm_1, wq, wk, wv, wo, norm_2, w_gate, w_up, w_down):
    x = x + attention(rmsnorm(x, norm_1), cos, sin, mask, wq, wk, wv, wo)
    y = rmsnorm(x, norm_2)
    return x + (silu(y @ w_gate) * (y @ w_up)) @ w_down
