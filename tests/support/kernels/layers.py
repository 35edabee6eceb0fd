"""Attention, feed-forward and the whole layer made of them."""
import numpy as np

from support.kernels.reductions import rms_normed, softmax_last
from support.kernels.suite import ALL_FORMS, SBUF, SHARED, kernel


# ---- feed-forward ----------------------------------------------------------------------------------------------------

@kernel(4, "256x256", "256x512", "256x256", name="feedforward_all", forms=ALL_FORMS)
def feedforward_all(x, w_gate_up, w_down):
    both = np.matmul(x, w_gate_up)
    put(both, [128, 128], SBUF, reduction=[128])
    gate, up = np.split(both, 2, axis=both.ndim - 1)
    negated = -gate
    put(negated, [128, 128], SBUF)
    e = np.exp(negated)
    put(e, [128, 128], SBUF)
    below = e + 1.0
    put(below, [128, 128], SBUF)
    silu = gate / below
    put(silu, [128, 128], SBUF)
    gated = silu * up
    put(gated, [128, 128], SBUF)
    r = np.matmul(gated, w_down)
    put(r, [128, 128], SHARED, reduction=[128])
    return r


@kernel(4, "256x256", "256x512", "256x256", name="feedforward_gated")
def feedforward_gated(x, w_gate_up, w_down):
    both = np.matmul(x, w_gate_up)
    put(both, [128, 128], SBUF, reduction=[128])
    gate, up = np.split(both, 2, axis=-1)
    gated = gate / (1.0 + np.exp(-gate)) * up
    put(gated, [128, 128], SBUF)
    r = np.matmul(gated, w_down)
    put(r, [128, 128], SHARED, reduction=[128])
    return r


@kernel(4, "512x256", "512x256", "256", "256x512")
def mlp_vector(w_gate, w_up, x, w_down):
    row = np.reshape(x, (1, 256))
    gate = np.matmul(row, np.transpose(w_gate))
    up = np.matmul(row, np.transpose(w_up))
    hidden = np.multiply(gate * (1.0 / (1.0 + np.exp(-gate))), up)
    return np.reshape(np.matmul(hidden, np.transpose(w_down)), (256,))


# ---- attention -------------------------------------------------------------------------------------------------------

def layer_softmax(x, space=SBUF):
    top = np.max(x, axis=-1, keepdims=True)
    put(top, [1, 128], SBUF, reduction=[128], dim=1)
    shifted = x - top
    put(shifted, [1, 128, 128], SBUF, dim=1)
    e = np.exp(shifted)
    put(e, [1, 128, 128], SBUF, dim=1)
    total = np.sum(e, axis=-1, keepdims=True)
    put(total, [1, 128], SBUF, reduction=[128], dim=1)
    r = e / total
    put(r, [1, 128, 128], space, dim=1)
    return r


@kernel(4, "8x256x256", "8x256x256", heavy=True, uses=[layer_softmax])
def attention_bmm(q, k_turned):
    scores = np.matmul(q, k_turned)
    put(scores, [1, 128, 128], SBUF, reduction=[128], dim=1)
    scaled = scores * np.float32(0.0625)
    put(scaled, [1, 128, 128], SBUF, dim=1)
    return layer_softmax(scaled, SHARED)


@kernel(4, "2x128x128", "2x128x128", "2x128x128", uses=[softmax_last])
def attention_whole(q, k, v):
    return softmax_last(q @ np.swapaxes(k, -1, -2) * 0.088) @ v


# ---- the layer of a Qwen3-like decoder -------------------------------------------------------------------------------

def layer_norm(x, weight):
    squares = np.square(x)
    put(squares, [128, 128], SBUF)
    total = np.sum(squares, axis=-1, keepdims=True)
    put(total, [128], SBUF, reduction=[128])
    mean = total * np.float32(1.0 / 256)
    put(mean, [128, 1], SBUF)
    normed = x / np.sqrt(mean + np.float32(1e-6))
    put(normed, [128, 128], SBUF)
    r = normed * weight
    put(r, [128, 128], SBUF)
    return r


def layer_product(a, b, space):
    r = np.matmul(a, b)
    put(r, [128, 128], space, reduction=[128])
    return r


def layer_heads(x):
    split = np.transpose(np.reshape(x, (2, 128, 2, 128)), (0, 2, 1, 3))
    return np.reshape(split, (4, 128, 128))


def layer_rope(x, cos, sin):
    x0, x1 = x[:, :, :64], x[:, :, 64:]
    a = x0 * cos - x1 * sin
    put(a, [1, 128, 64], SHARED)
    b = x0 * sin + x1 * cos
    put(b, [1, 128, 64], SHARED)
    return np.concatenate([a, b], axis=-1)


@kernel(5, "256x256", "256x1", "256x1", "256x256 -0.1:0.1", "256x256 -0.1:0.1", "256x256 -0.1:0.1", "256x256 -0.1:0.1",
        "1x128x64", "1x128x64", "256x256 -0.1:0.1", "256x256 -0.1:0.1", "256x256 -0.1:0.1", heavy=True,
        uses=[layer_norm, layer_product, layer_heads, layer_rope, layer_softmax])
def qwen3_layer(x, norm1, norm2, wq, wk, wv, wo, cos, sin, w_gate, w_up, w_down):
    h = layer_norm(x, norm1)
    q = layer_rope(layer_heads(layer_product(h, wq, SHARED)), cos, sin)
    k = layer_rope(layer_heads(layer_product(h, wk, SHARED)), cos, sin)
    v = layer_heads(layer_product(h, wv, SHARED))
    scores = np.matmul(q, np.transpose(k, (0, 2, 1)))
    put(scores, [1, 128, 128], SBUF, reduction=[128], dim=1)
    scaled = scores * np.float32(128**-0.5).item()
    put(scaled, [1, 128, 128], SBUF, dim=1)
    context = np.matmul(layer_softmax(scaled), v)
    put(context, [1, 128, 128], SHARED, reduction=[128], dim=1)
    merged = np.reshape(np.transpose(np.reshape(context, (2, 2, 128, 128)), (0, 2, 1, 3)), (256, 256))
    attended = x + layer_product(merged, wo, SBUF)
    put(attended, [128, 128], SBUF)
    h2 = layer_norm(attended, norm2)
    gate = layer_product(h2, w_gate, SBUF)
    up = layer_product(h2, w_up, SBUF)
    gated = gate / (1.0 + np.exp(-gate)) * up
    put(gated, [128, 128], SBUF)
    r = attended + layer_product(gated, w_down, SBUF)
    put(r, [128, 128], SHARED)
    return r


# ---- the forms that a graph exporter writes --------------------------------------------------------------------------

@kernel(3, "32 0.01:1", "1x7 i32 0:7")
def rope_tables(frequencies, positions):
    f = np.expand_dims(frequencies, (0, 2))
    p = np.expand_dims(positions, 1).astype(np.float32)
    angles = np.transpose(np.matmul(f, p), (0, 2, 1))
    whole = np.concatenate([angles, angles], axis=-1)
    return np.cos(whole) * 1.0, np.sin(whole) * 1.0


def rotate_half(x):
    half = x.shape[-1] // 2
    return np.concatenate([-x[..., half:], x[..., :half]], axis=-1)


def grouped(x, times):
    batch, heads, length, width = x.shape
    wide = np.broadcast_to(np.expand_dims(x, 2), (batch, heads, times, length, width))
    return np.reshape(wide, (batch, heads * times, length, width))


@kernel(5, "1x7x256", "256x256 -0.1:0.1", "256x128 -0.1:0.1", "256x128 -0.1:0.1", "256x256 -0.1:0.1", "1x7x64", "1x7x64",
        "1x2x16x64", "1x2x16x64", "7 i32 0:16", "1x1x7x16 -2:0", heavy=True, uses=[rotate_half, grouped, softmax_last])
def attention_prefill(x, wq, wk, wv, wo, cos, sin, cache_k, cache_v, where, mask):
    q = np.transpose(np.reshape(np.matmul(x, wq), (1, 7, 4, 64)), (0, 2, 1, 3))
    k = np.transpose(np.reshape(np.matmul(x, wk), (1, 7, 2, 64)), (0, 2, 1, 3))
    v = np.transpose(np.reshape(np.matmul(x, wv), (1, 7, 2, 64)), (0, 2, 1, 3))
    c, s = np.expand_dims(cos, 1), np.expand_dims(sin, 1)
    q = q * c + rotate_half(q) * s
    k = k * c + rotate_half(k) * s
    cache_k[:, :, where] = k
    cache_v[:, :, where] = v
    scores = np.matmul(q, np.transpose(grouped(cache_k, 2), (0, 1, 3, 2))) * 0.125 + mask
    context = np.matmul(softmax_last(scores), grouped(cache_v, 2))
    merged = np.reshape(np.transpose(context, (0, 2, 1, 3)), (1, 7, 256))
    return np.matmul(merged, wo)


@kernel(5, "1x7 i32 0:500", "500x256", "256", "256x256 -0.1:0.1", "256x128 -0.1:0.1", "256x128 -0.1:0.1", "256x256 -0.1:0.1",
        "32 0.01:1", "1x7 i32 0:7", "1x2x16x64", "1x2x16x64", "7 i32 0:16", "1x1x7x16 -2:0", "256", "256x512 -0.1:0.1",
        "256x512 -0.1:0.1", "512x256 -0.1:0.1", "256", heavy=True, uses=[rotate_half, grouped, softmax_last])
def llama_decoder(ids, table, norm1, wq, wk, wv, wo, frequencies, positions, cache_k, cache_v, where, mask, norm2, w_gate,
                  w_up, w_down, norm3):
    x = np.take(table, ids, axis=0)
    power = np.power(x, 2)
    h = x / np.sqrt(np.sum(power, axis=-1, keepdims=True) / 256 + 1e-5) * norm1
    angles = np.expand_dims(positions, -1).astype(np.float32) * np.expand_dims(frequencies, (0, 1))
    whole = np.expand_dims(np.concatenate([angles, angles], axis=-1), 1)
    c, s = np.cos(whole), np.sin(whole)
    q = np.transpose(np.reshape(np.matmul(h, wq), (1, 7, 4, 64)), (0, 2, 1, 3))
    k = np.transpose(np.reshape(np.matmul(h, wk), (1, 7, 2, 64)), (0, 2, 1, 3))
    v = np.transpose(np.reshape(np.matmul(h, wv), (1, 7, 2, 64)), (0, 2, 1, 3))
    q = q * c + rotate_half(q) * s
    k = k * c + rotate_half(k) * s
    kept_k, kept_v = np.copy(cache_k), np.copy(cache_v)
    kept_k[:, :, where] = k
    kept_v[:, :, where] = v
    scores = np.matmul(q, np.transpose(grouped(kept_k, 2), (0, 1, 3, 2))) * 0.125 + mask
    context = np.matmul(softmax_last(scores), grouped(kept_v, 2))
    attended = x + np.matmul(np.reshape(np.transpose(context, (0, 2, 1, 3)), (1, 7, 256)), wo)
    h2 = attended / np.sqrt(np.mean(np.power(attended, 2), axis=-1, keepdims=True) + 1e-5) * norm2
    gate = np.matmul(h2, w_gate)
    hidden = gate * (1.0 / (1.0 + np.exp(-gate))) * np.matmul(h2, w_up)
    out = attended + np.matmul(hidden, w_down)
    last = out / np.sqrt(np.mean(np.power(out, 2), axis=-1, keepdims=True) + 1e-5) * norm3
    return last, kept_k, kept_v


@kernel(4, "128x256", "256", "256x256", uses=[rms_normed])
def norm_and_project(x, w, m):
    return rms_normed(x, w) @ m
