"""Selective scan of a state space model: 64 steps, 512 channels, 16 states a channel"""
import numpy as np
from nkigen import trace

STEPS, CHANNELS, STATES = 64, 512, 16


@trace(input_specs=[((STEPS, CHANNELS), "f32"), ((STEPS, CHANNELS), "f32"), ((CHANNELS, STATES), "f32"),
                    ((STEPS, STATES), "f32"), ((STEPS, STATES), "f32")])
def mamba_scan(x, delta, a, b, c):
    state = np.zeros((CHANNELS, STATES), np.float32)
    rows = []
    for t in range(STEPS):
        step = delta[t][:, None]
        state = np.exp(step * a) * state + step * b[t][None, :] * x[t][:, None]
        rows.append(np.sum(state * c[t][None, :], axis=1))
    return np.stack(rows)
