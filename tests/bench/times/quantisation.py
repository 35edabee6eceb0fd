"""Quantisation"""
import numpy as np
from nkigen import trace


@trace(input_specs=[((256, 512), "f32")])
def rows_to_int8(x):
    scale = np.max(np.abs(x), axis=1, keepdims=True) / 127.0
    return np.rint(x / scale).astype(np.int8), scale


@trace(input_specs=[((256, 512), "f32")])
def columns_to_int8(x):
    scale = np.max(np.abs(x), axis=0) / 127.0
    return np.rint(x / scale).astype(np.int8), scale


@trace(input_specs=[((128, 512), "bf16"), ((512, 256), "int8"), ((256,), "f32")])
def int8_weights(x, w, scale):
    return (x @ w.astype(x.dtype)).astype(np.float32) * scale


@trace(input_specs=[((256, 512), "f32"), ((512,), "f32")])
def fake_quantised(x, scale):
    return np.clip(np.rint(x / scale), -128.0, 127.0) * scale


@trace(input_specs=[((256, 512), "f32")])
def blocks_of_32(x):
    blocks = x.reshape(256, 16, 32)
    scale = np.max(np.abs(blocks), axis=-1, keepdims=True) / 7.0 + 1e-12
    return (np.rint(blocks / scale) * scale).reshape(256, 512)


@trace(input_specs=[((256, 512), "f32"), ((512, 256), "f32")])
def smoothed(x, w):
    scale = np.sqrt(np.max(np.abs(x), axis=0) / np.max(np.abs(w), axis=1))
    return x / scale, w * scale[:, None]


@trace(input_specs=[((4, 256, 64), "f32")])
def cache_to_int8(k):
    low, high = np.min(k, axis=-1, keepdims=True), np.max(k, axis=-1, keepdims=True)
    step = (high - low) / 255.0
    return np.rint((k - low) / step - 128.0).astype(np.int8), step, low


@trace(input_specs=[((512, 512), "f32")])
def to_bf16_with_error(x):
    import ml_dtypes

    y = x.astype(ml_dtypes.bfloat16)
    return y, x - y.astype(np.float32)
