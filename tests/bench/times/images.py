"""Images with the channels first, without a batch"""
import numpy as np
from nkigen import trace

C, H, W = 96, 28, 28
IMAGE = ((C, H, W), "f32")


def normalised(x, scale):
    return (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-6) * scale[:, None, None]


@trace(input_specs=[IMAGE, ((C,), "f32")])
def norm_of_channels(x, scale):
    return normalised(x, scale)


@trace(input_specs=[IMAGE])
def softmax_of_channels(x):
    e = np.exp(x - x.max(0))
    return e / e.sum(0)


@trace(input_specs=[IMAGE, ((C, 7, 7), "f32"), ((C,), "f32"), ((C,), "f32"), ((C, 4 * C), "f32"), ((4 * C, C), "f32")])
def large_kernel_block(x, w, bias, scale, up, down):
    padded = np.pad(x, ((0, 0), (3, 3), (3, 3)))
    y = np.zeros_like(x)
    for i in range(7):
        for j in range(7):
            y = y + padded[:, i:i + H, j:j + W] * w[:, i, j][:, None, None]
    h = np.einsum("chw,cd->dhw", normalised(y + bias[:, None, None], scale), up)
    h = h / (1.0 + np.exp(-1.702 * h))
    return x + np.einsum("dhw,dc->chw", h, down)
