"""Steps of optimisers"""
import numpy as np
from nkigen import trace

P = ((512, 512), "f32")


@trace(input_specs=[P] * 3)
def momentum(w, g, m):
    m = 0.9 * m + g
    return w - 0.01 * m, m


@trace(input_specs=[P] * 4)
def adam_w(w, g, m, v):
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    return w - 1e-3 * (m / (np.sqrt(v) + 1e-8) + 0.01 * w), m, v


@trace(input_specs=[P] * 3)
def lion(w, g, m):
    return w - 1e-4 * np.sign(0.9 * m + 0.1 * g), 0.99 * m + 0.01 * g


@trace(input_specs=[P])
def clipped(g):
    return g * np.minimum(1.0, 1.0 / np.sqrt(np.sum(g * g)))


@trace(input_specs=[((256, 256), "bf16")])
def newton_schulz(g):
    a = g @ g.T
    return 3.4445 * g + (-4.775 * a + 2.0315 * (a @ a)) @ g


@trace(input_specs=[P] * 2)
def ada_factor(w, g):
    square = g * g + 1e-30
    row, column = np.mean(square, axis=1, keepdims=True), np.mean(square, axis=0, keepdims=True)
    return w - 1e-2 * g / np.sqrt(row * column / np.mean(row))


@trace(input_specs=[((512, 512), "bf16"), P])
def running_average(w, average):
    return 0.999 * average + 0.001 * w.astype(np.float32)
