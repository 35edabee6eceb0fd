"""Images with the channels first; a batch has the normalisations of groups and of instances, and the kernels at the end"""
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


BATCH = ((8, 256, 28, 28), "f32")


@trace(input_specs=[BATCH])
def softmax_of_channels_of_a_batch(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


@trace(input_specs=[((8, 256, 28, 28), "bf16")])
def softmax_of_channels_in_bf16(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


@trace(input_specs=[BATCH])
def most_of_channels(x):
    return x.max(1)


@trace(input_specs=[BATCH])
def channel_of_most(x):
    return np.argmax(x, axis=1)


@trace(input_specs=[BATCH])
def variance_of_channels(x):
    return x.var(1)


@trace(input_specs=[((3, 130, 7, 5), "f32"), ((130,), "f32"), ((130,), "f32")])
def norm_of_odd_channels(x, scale, bias):
    c = x - x.mean(1, keepdims=True)
    return c / np.sqrt((c * c).mean(1, keepdims=True) + 1e-5) * scale[:, None, None] + bias[:, None, None]


@trace(input_specs=[((16, 128, 28, 28), "f32")])
def norm_of_images(x):
    c = x - x.mean((1, 2, 3), keepdims=True)
    return c / np.sqrt((c * c).mean((1, 2, 3), keepdims=True) + 1e-5)


@trace(input_specs=[((16, 256, 256), "f32"), ((16, 256, 256), "f32")])
def overlap_of_masks(x, mask):
    p = 1 / (1 + np.exp(-x))
    return 1 - 2 * np.sum(p * mask, axis=(1, 2)) / (np.sum(p, axis=(1, 2)) + np.sum(mask, axis=(1, 2)) + 1)


@trace(input_specs=[((4, 256, 32, 32), "f32")])
def pixel_shuffle(x):
    n, c, h, w = x.shape
    return x.reshape(n, c // 4, 2, 2, h, w).transpose(0, 1, 4, 2, 5, 3).reshape(n, c // 4, 2 * h, 2 * w)


@trace(input_specs=[((8, 256, 56, 56), "bf16")])
def channels_last(x):
    return x.transpose(0, 2, 3, 1)


@trace(input_specs=[((64, 224, 224), "f32")])
def mirrored(x):
    return x[:, :, ::-1]


@trace(input_specs=[((224, 224, 3), "f32")])
def half_turn(x):
    return np.rot90(x, 2)


@trace(input_specs=[((8, 21, 64, 64), "f32")])
def softmax_of_classes(x):
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


@trace(input_specs=[((8, 21, 64, 64), "f32")])
def class_of_each_pixel(x):
    return np.argmax(x, axis=1)


@trace(input_specs=[((4, 3, 224, 224), "f32")])
def unit_colours(x):
    return x / np.sqrt(np.sum(x * x, axis=1, keepdims=True) + 1e-6)


@trace(input_specs=[((16, 3, 64, 64), "f32"), ((16, 3, 64, 64), "f32")])
def error_of_each_image(x, y):
    return np.mean((x - y) ** 2, axis=(1, 2, 3))


@trace(input_specs=[((16, 3, 64, 64), "f32")])
def normalised_colours(x):
    return (x - np.mean(x, axis=(0, 2, 3), keepdims=True)) / np.std(x, axis=(0, 2, 3), keepdims=True)


@trace(input_specs=[((8, 3, 64, 64), "f32")])
def total_variation(x):
    return np.sum(np.abs(x[:, :, 1:] - x[:, :, :-1])) + np.sum(np.abs(x[..., 1:] - x[..., :-1]))


@trace(input_specs=[((32, 64, 256), "f32")])
def frames_backwards(x):
    return x[:, ::-1]


@trace(input_specs=[((32, 128, 64), "f32")])
def variance_over_time(x):
    return np.var(x, axis=1)
