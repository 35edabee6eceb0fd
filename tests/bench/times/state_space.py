"""Recurrent and state space models"""
import numpy as np
from nkigen import trace

STEPS, WIDTH, STATES = 16, 128, 16


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


@trace(input_specs=[((STEPS, WIDTH), "f32"), ((STEPS, WIDTH), "f32"), ((WIDTH, STATES), "f32"), ((STEPS, STATES), "f32"), ((STEPS, STATES), "f32")])
def selective_scan(x, delta, a, b, c):
    state, rows = np.zeros((WIDTH, STATES), np.float32), []
    for t in range(STEPS):
        step = delta[t][:, None]
        state = np.exp(step * a) * state + step * b[t][None, :] * x[t][:, None]
        rows.append(np.sum(state * c[t][None, :], axis=1))
    return np.stack(rows)


@trace(input_specs=[((4, 128, 32), "f32")] * 3 + [((4, 128), "f32")])
def chunk_of_ssd(c, b, x, log_decay):
    total = np.cumsum(log_decay, axis=1)
    decay = np.exp(np.minimum(total[:, :, None] - total[:, None, :], 0.0))
    return (np.tril(c @ b.transpose(0, 2, 1)) * decay) @ x


@trace(input_specs=[((4, 256, 64), "f32")] * 3)
def linear_attention(q, k, v):
    q, k = np.maximum(q, 0.0) + 1e-3, np.maximum(k, 0.0) + 1e-3
    state = k.transpose(0, 2, 1) @ v
    return q @ state / (q @ np.sum(k, axis=1)[:, :, None])


@trace(input_specs=[((256, 64), "f32")] * 3 + [((256, 256), "f32")])
def retention(q, k, v, decay):
    return (q @ k.T * decay) @ v


@trace(input_specs=[((8, 256), "f32"), ((256,), "f32"), ((256,), "f32"), ((8, 256), "f32")])
def rwkv(k, w, u, v):
    num, den, rows = np.zeros(256, np.float32), np.zeros(256, np.float32), []
    for t in range(8):
        e = np.exp(k[t])
        rows.append((num + np.exp(u) * e * v[t]) / (den + np.exp(u) * e))
        num, den = np.exp(-w) * num + e * v[t], np.exp(-w) * den + e
    return np.stack(rows)


@trace(input_specs=[((64, 128), "f32"), ((64, 128), "f32"), ((64, 128), "f32"), ((256, 512), "f32"), ((512,), "f32")])
def lstm_cell(x, h, c, w, bias):
    gates = np.concatenate([x, h], axis=1) @ w + bias
    i, f, g, o = (gates[:, k * 128 : (k + 1) * 128] for k in range(4))
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


@trace(input_specs=[((64, 128), "f32"), ((64, 128), "f32"), ((256, 256), "f32"), ((256, 128), "f32")])
def gru_cell(x, h, w_gates, w_new):
    gates = sigmoid(np.concatenate([x, h], axis=1) @ w_gates)
    reset, update = gates[:, :128], gates[:, 128:]
    new = np.tanh(np.concatenate([x, reset * h], axis=1) @ w_new)
    return update * h + (1.0 - update) * new


@trace(input_specs=[((4, 64, 64), "f32"), ((4, 64), "f32"), ((4, 64), "f32"), ((4, 1), "f32")])
def delta_rule(state, k, v, beta):
    old = (state @ k[:, :, None])[:, :, 0]
    return state + (beta * (v - old))[:, :, None] * k[:, None, :]


@trace(input_specs=[((128, 512), "f32")])
def running_sum(x):
    return np.cumsum(x, axis=1)


@trace(input_specs=[((4, 16, 256), "f32"), ((256,), "f32"), ((4, 16, 256), "f32")])
def gated_recurrence(x, decay, gate):
    state, rows = np.zeros((4, 256), np.float32), []
    for t in range(16):
        state = decay * state + x[:, t]
        rows.append(state * sigmoid(gate[:, t]))
    return np.stack(rows, axis=1), state


@trace(input_specs=[((8, 64, 256), "f32"), ((64, 256), "f32"), ((256, 256), "f32"), ((256, 256), "f32")])
def recurrent_network(x, h, w, u):
    for t in range(8):
        h = np.tanh(x[t] @ w + h @ u)
    return h


@trace(input_specs=[((4, 256, 128), "f32"), ((4, 128, 256), "f32")] * 2)
def sum_of_batched_products(x, w, h, u):
    return x @ w + h @ u
