"""Loops that stay loops, and bodies written in instructions: what needs features of the front end beyond NumPy."""
import numpy as np

from support.kernels.suite import SBUF, SHARED, kernel


@kernel(3, "10", needs=["fori_loop"])
def loop_sum(x):
    return fori_loop(0, 10, lambda i, acc: acc + x[i], np.float32(0.0))


@kernel(3, "8", needs=["fori_loop"])
def loop_scaled(x):
    return fori_loop(0, 5, lambda i, acc: acc * 0.5 + x, x)


@kernel(3, "8", needs=["fori_loop"])
def loop_two_accumulators(x):
    def body(i, state):
        total, product = state
        return total + x, product * 0.5 + x

    return fori_loop(0, 4, body, (x * 0.0, x))


@kernel(3, "4x6", needs=["fori_loop"])
def loop_row_sums(x):
    def body(i, acc):
        return acc + x[i]

    return fori_loop(0, 4, body, np.zeros((6,), np.float32))


@kernel(3, "8", needs=["fori_loop"])
def loop_tiles(x):
    def body(i, acc):
        return acc + x[i * 2 : (i + 1) * 2]

    return fori_loop(0, 4, body, np.zeros((2,), np.float32))


@kernel(3, "4x8 f16", needs=["fori_loop"])
def loop_chunks_f16(x):
    def body(i, acc):
        return acc + x[:, i * 2 : (i + 1) * 2]

    return fori_loop(0, 4, body, np.zeros((4, 2), np.float16))


@kernel(3, "4x8", "8", needs=["fori_loop"])
def loop_rmsnorm(x, w):
    def body(i, acc):
        part = x[:, i * 4 : (i + 1) * 4]
        return acc + np.sum(part * part, axis=1, keepdims=True)

    total = fori_loop(0, 2, body, np.zeros((4, 1), np.float32))
    return x / np.sqrt(total / 8.0 + 1e-6) * w


@kernel(3, "4x8 f16", "8x5 f16", needs=["fori_loop"])
def loop_matmul_chunks(a, b):
    def body(i, acc):
        return acc + a[:, i * 4 : (i + 1) * 4] @ b[i * 4 : (i + 1) * 4, :]

    return fori_loop(0, 2, body, np.zeros((4, 5), np.float16))


@kernel(3, "4", needs=["fori_loop"])
def loop_once(x):
    return fori_loop(0, 1, lambda i, acc: acc + x, x)


@kernel(3, "4x4", needs=["fori_loop"])
def loop_matrix(x):
    return fori_loop(0, 3, lambda i, acc: acc + x, np.zeros((4, 4), np.float32))


@kernel(4, "8x256x256", "8x256x256", needs=["fori_loop"], heavy=True)
def attention_loop(q, k_turned):
    def body(i, acc):
        scores = np.matmul(q[i], k_turned[i])
        put(scores, [128, 128], SBUF, reduction=[128])
        scaled = scores * np.float32(0.0625)
        put(scaled, [128, 128], SBUF)
        top = np.max(scaled, axis=-1, keepdims=True)
        put(top, [128], SBUF, reduction=[128])
        e = np.exp(scaled - top)
        put(e, [128, 128], SBUF)
        total = np.sum(e, axis=-1, keepdims=True)
        put(total, [128], SBUF, reduction=[128])
        r = e / total
        put(r, [128, 128], SHARED)
        acc[i] = r
        return acc

    return fori_loop(0, 8, body, np.empty((8, 256, 256), np.float32))
