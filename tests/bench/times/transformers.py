"""Parts of transformers"""
import numpy as np
from nkigen import trace

SEQ, DIM, HEADS = 256, 64, 4


def softmax(x):
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return e / np.sum(e, axis=-1, keepdims=True)


def attend(q, k, v, bias=0.0):
    return softmax(q @ np.swapaxes(k, -1, -2) * DIM**-0.5 + bias) @ v


def f32(*shape):
    return shape, "f32"


def bf16(*shape):
    return shape, "bf16"


@trace(input_specs=[bf16(512, 1024), bf16(1024)])
def rms_norm(x, weight):
    return x / np.sqrt(np.mean(np.square(x), axis=-1, keepdims=True) + 1e-5) * weight


@trace(input_specs=[f32(512, 768), f32(768), f32(768)])
def layer_norm(x, scale, shift):
    centred = x - np.mean(x, axis=-1, keepdims=True)
    return centred / np.sqrt(np.mean(centred * centred, axis=-1, keepdims=True) + 1e-5) * scale + shift


@trace(input_specs=[f32(SEQ, DIM), f32(SEQ, DIM), f32(SEQ, DIM), f32(SEQ, SEQ)])
def masked_attention(q, k, v, mask):
    return attend(q, k, v, mask)


@trace(input_specs=[f32(HEADS, SEQ, DIM)] * 3 + [f32(SEQ, SEQ)])
def many_heads(q, k, v, mask):
    return attend(q, k, v, mask)


@trace(input_specs=[bf16(HEADS, SEQ, DIM), bf16(1, SEQ, DIM), bf16(1, SEQ, DIM)])
def shared_keys(q, k, v):
    return np.concatenate([attend(q[h], k[0], v[0])[None] for h in range(HEADS)])


@trace(input_specs=[f32(HEADS, SEQ, DIM)] * 3 + [f32(HEADS, 1, 1), f32(SEQ, SEQ)])
def alibi(q, k, v, slope, distance):
    return attend(q, k, v, slope * distance)


@trace(input_specs=[f32(SEQ, 32), f32(32, HEADS * DIM), f32(32, HEADS * DIM), f32(SEQ, HEADS * DIM)])
def latent_attention(latent, up_k, up_v, q):
    split = [t.reshape(SEQ, HEADS, DIM).transpose(1, 0, 2) for t in (q, latent @ up_k, latent @ up_v)]
    return attend(*split).transpose(1, 0, 2).reshape(SEQ, HEADS * DIM)


@trace(input_specs=[f32(SEQ, HEADS, DIM), f32(SEQ, DIM // 2), f32(SEQ, DIM // 2)])
def rope_halves(x, cos, sin):
    cos, sin = cos[:, None, :], sin[:, None, :]
    first, second = x[..., : DIM // 2], x[..., DIM // 2 :]
    return np.concatenate([first * cos - second * sin, first * sin + second * cos], axis=-1)


@trace(input_specs=[f32(HEADS, SEQ, DIM), f32(SEQ, DIM // 2), f32(SEQ, DIM // 2)])
def rope_by_head(x, cos, sin):
    first, second = x[..., : DIM // 2], x[..., DIM // 2 :]
    return np.concatenate([first * cos - second * sin, first * sin + second * cos], axis=-1)


@trace(input_specs=[bf16(256, 512), bf16(512, 1024), bf16(512, 1024), bf16(1024, 512)])
def gated_feed_forward(x, w_gate, w_up, w_down):
    gate = x @ w_gate
    return (gate / (1.0 + np.exp(-gate)) * (x @ w_up)) @ w_down


@trace(input_specs=[f32(256, 512), f32(512, 1024), f32(1024)])
def gelu_of_a_product(x, w, bias):
    y = x @ w + bias
    return 0.5 * y * (1.0 + np.tanh(0.7978845608 * (y + 0.044715 * y * y * y)))


@trace(input_specs=[f32(512, 1000), f32(512, 1000)])
def cross_entropy(logits, target):
    shifted = logits - np.max(logits, axis=-1, keepdims=True)
    return np.mean(np.log(np.sum(np.exp(shifted), axis=-1)) - np.sum(shifted * target, axis=-1))


@trace(input_specs=[f32(HEADS, 1, DIM), f32(HEADS, 1024, DIM), f32(HEADS, 1024, DIM)])
def one_token(q, keys, values):
    return attend(q, keys, values)


@trace(input_specs=[f32(256, 256), f32(256, 8)])
def route_to_two(x, router):
    p = softmax(x @ router)
    best = np.max(p, axis=-1, keepdims=True)
    second = np.max(np.where(p >= best, 0.0, p), axis=-1, keepdims=True)
    chosen = np.where(p >= second, p, 0.0)
    return chosen / np.sum(chosen, axis=-1, keepdims=True)


@trace(input_specs=[f32(8, 64, 512), f32(512), f32(512)])
def layer_norm_of_short_sequences(x, scale, bias):
    centred = x - np.mean(x, axis=-1, keepdims=True)
    return centred / np.sqrt(np.mean(centred * centred, axis=-1, keepdims=True) + 1e-5) * scale + bias


@trace(input_specs=[f32(512, 8192), ((512,), "i32")])
def cross_entropy_of_labels(logits, labels):
    most = np.max(logits, axis=-1, keepdims=True)
    total = np.log(np.sum(np.exp(logits - most), axis=-1)) + most[:, 0]
    return np.mean(total - np.take_along_axis(logits, labels[:, None], axis=-1)[:, 0])


@trace(input_specs=[bf16(8, 1, 128), bf16(8, 1024, 128), bf16(8, 1024, 128)])
def one_token_with_a_long_cache(q, keys, values):
    scores = (q @ np.swapaxes(keys, -1, -2)).astype(np.float32) * 128**-0.5
    return softmax(scores) @ values


@trace(input_specs=[f32(64, 128, 256), f32(256)])
def attention_pool(x, q):
    weights = softmax(x @ q)
    return np.sum(weights[:, :, None] * x, axis=1)


@trace(input_specs=[f32(256, 512), f32(512, 512), f32(512, 16), f32(16, 512)])
def low_rank_adapter(x, w, a, b):
    return x @ w + (x @ a) @ b * 2.0
