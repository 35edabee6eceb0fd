"""Convolutions, and what stands around them, NCHW"""
import numpy as np
from nkigen import trace

N, C, H, W = 2, 64, 16, 16
IMAGE = [((N, C, H, W), "f32")]


@trace(input_specs=[((4, 256, 128), "f32"), ((4, 128), "f32")])
def causal_1d(x, w):
    padded = np.pad(x, ((0, 0), (3, 0), (0, 0)))
    return sum(padded[:, k : k + 256] * w[k] for k in range(4))


@trace(input_specs=IMAGE + [((9, C, C), "f32")])
def conv_3x3(x, w):
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    y = 0.0
    for k in range(9):
        part = padded[:, :, k // 3 : k // 3 + H, k % 3 : k % 3 + W]
        y = y + np.einsum("ncp,cd->ndp", part.reshape(N, C, H * W), w[k])
    return y.reshape(N, C, H, W)


@trace(input_specs=IMAGE + [((C, 9), "f32")])
def depthwise_3x3(x, w):
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    return sum(padded[:, :, k // 3 : k // 3 + H, k % 3 : k % 3 + W] * w[None, :, k, None, None] for k in range(9))


@trace(input_specs=IMAGE + [((C,), "f32")])
def bias_and_relu(x, bias):
    return np.maximum(x + bias[None, :, None, None], 0.0)


@trace(input_specs=IMAGE + [((C,), "f32")] * 4)
def batch_norm_inference(x, mean, variance, scale, shift):
    factor = scale / np.sqrt(variance + 1e-5)
    return x * factor[None, :, None, None] + (shift - mean * factor)[None, :, None, None]


@trace(input_specs=IMAGE)
def batch_norm_training(x):
    mean = np.mean(x, axis=(0, 2, 3), keepdims=True)
    variance = np.mean(np.square(x - mean), axis=(0, 2, 3), keepdims=True)
    return (x - mean) / np.sqrt(variance + 1e-5)


@trace(input_specs=IMAGE + [((C,), "f32"), ((C,), "f32")])
def group_norm(x, scale, shift):
    g = x.reshape(N, 8, C // 8 * H * W)
    g = (g - np.mean(g, axis=-1, keepdims=True)) / np.sqrt(np.var(g, axis=-1, keepdims=True) + 1e-5)
    return g.reshape(N, C, H, W) * scale[None, :, None, None] + shift[None, :, None, None]


@trace(input_specs=IMAGE)
def max_pool(x):
    return np.max(x.reshape(N, C, H // 2, 2, W // 2, 2), axis=(3, 5))


@trace(input_specs=IMAGE)
def average_pool(x):
    return np.mean(x, axis=(2, 3))


@trace(input_specs=IMAGE + [((C, C // 4), "f32"), ((C // 4, C), "f32")])
def squeeze_and_excite(x, down, up):
    gate = np.maximum(np.mean(x, axis=(2, 3)) @ down, 0.0) @ up
    return x * (1.0 / (1.0 + np.exp(-gate)))[:, :, None, None]


@trace(input_specs=IMAGE)
def upsample(x):
    return np.repeat(np.repeat(x, 2, axis=2), 2, axis=3)


@trace(input_specs=[((4, 128, 28, 28), "f32"), ((256, 128), "f32")])
def conv_1x1(x, w):
    return np.einsum("nchw,oc->nohw", x, w)


@trace(input_specs=[((1, 64, 30, 30), "f32"), ((64, 64, 3, 3), "f32")])
def windows_3x3(x, w):
    columns = np.stack([x[:, :, i:i + 28, j:j + 28] for i in range(3) for j in range(3)], axis=2)
    return np.einsum("nckhw,ock->nohw", columns, w.reshape(64, 64, 9))


@trace(input_specs=[((8, 512, 256), "f32"), ((256, 4), "f32")])
def causal_taps_in_columns(x, w):
    padded = np.pad(x, ((0, 0), (3, 0), (0, 0)))
    return sum(padded[:, k:k + 512] * w[:, k] for k in range(4))


@trace(input_specs=[((512, 256), "f32"), ((256, 2), "f32")])
def scale_and_shift(x, w):
    return x * w[:, 0] + w[:, 1]


@trace(input_specs=[((1024, 1024), "f32")])
def heat_step(x):
    y = x.copy()
    y[1:-1, 1:-1] = x[1:-1, 1:-1] + 0.1 * (x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2] - 4.0 * x[1:-1, 1:-1])
    return y


@trace(input_specs=[((8, 512, 14, 14), "f32")])
def global_average(x):
    return x.mean(axis=(2, 3))


@trace(input_specs=[((8, 28, 28, 256), "f32")])
def max_pool_of_channels_last(x):
    return np.max(x.reshape(8, 14, 2, 14, 2, 256), axis=(2, 4))
