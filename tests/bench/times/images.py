"""Images with the channels first; without a batch, but for the normalisations of groups and of instances"""
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


@trace(input_specs=[((4, 64, 32, 32), "f32"), ((64,), "f32"), ((64,), "f32")])
def norm_of_groups(x, scale, bias):
    groups = x.reshape(4, 8, 8, 32, 32)
    mean, var = groups.mean((2, 3, 4), keepdims=True), groups.var((2, 3, 4), keepdims=True)
    return ((groups - mean) / np.sqrt(var + 1e-5)).reshape(x.shape) * scale[:, None, None] + bias[:, None, None]


@trace(input_specs=[((4, 64, 28, 28), "f32"), ((64,), "f32")])
def norm_of_instances(x, scale):
    mean, var = x.mean((2, 3), keepdims=True), x.var((2, 3), keepdims=True)
    return (x - mean) / np.sqrt(var + 1e-5) * scale[:, None, None]
