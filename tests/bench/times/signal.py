"""Signal processing"""
import numpy as np
from nkigen import trace

N = 256
PHASE = -2.0 * np.pi * np.outer(np.arange(N), np.arange(N)) / N
COS, SIN = np.cos(PHASE).astype(np.float32), np.sin(PHASE).astype(np.float32)
WINDOW = np.hanning(N).astype(np.float32)
SIGNALS = [((128, N), "f32")]


@trace(input_specs=SIGNALS)
def power_spectrum(x):
    return np.square(x @ COS) + np.square(x @ SIN)


@trace(input_specs=[((128 * 65,), "f32")])
def short_time_spectrum(x):
    frames = np.stack([x[128 * k : 128 * k + N] for k in range(64)]) * WINDOW
    return np.sqrt(np.square(frames @ COS) + np.square(frames @ SIN))


@trace(input_specs=SIGNALS + [((8,), "f32")])
def fir(x, taps):
    padded = np.pad(x, ((0, 0), (7, 0)))
    return sum(padded[:, k : k + N] * taps[k] for k in range(8))


@trace(input_specs=SIGNALS)
def haar(x):
    pairs = x.reshape(128, N // 2, 2)
    return np.concatenate([pairs[..., 0] + pairs[..., 1], pairs[..., 0] - pairs[..., 1]], axis=1) * 0.70710678


@trace(input_specs=SIGNALS)
def median_of_three(x):
    a, b, c = x[:, :-2], x[:, 1:-1], x[:, 2:]
    return np.maximum(np.minimum(a, b), np.minimum(np.maximum(a, b), c))


@trace(input_specs=SIGNALS)
def autocorrelation(x):
    return np.stack([np.sum(x[:, : N - 8] * x[:, k : k + N - 8], axis=1) for k in range(8)], axis=1)


@trace(input_specs=[((128, N), "f32"), ((128, N), "f32")])
def complex_product(re, im):
    return re * re - im * im, 2.0 * re * im


@trace(input_specs=SIGNALS)
def decibels(x):
    return 10.0 * np.log(np.maximum(x * x, 1e-10)) / np.log(10.0)


@trace(input_specs=[((32, 512), "f32")])
def moving_average(x):
    y = np.zeros_like(x)
    y[0] = x[0]
    for t in range(1, 32):
        y[t] = 0.25 * x[t] + 0.75 * y[t - 1]
    return y


@trace(input_specs=[((1024, 2048), "f32")])
def backwards_in_time(x):
    return np.flip(x, 1)


@trace(input_specs=[((262144,), "f32")])
def one_long_signal_backwards(x):
    return x[::-1]
