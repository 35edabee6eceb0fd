"""Parts of whole models at reduced sizes: linear attention, mixtures of experts, sinks and windows, sampling, drafting."""
import numpy as np

from support.kernels.reductions import rms_normed, softmax_last
from support.kernels.suite import kernel


@kernel(5, "256x256 f16", "256x256 f16")
def playground(a, b):
    return a.T @ b


# ---- linear attention: a state that every position updates, the loop over positions unrolled -------------------------

@kernel(5, "1x4x4x32", "1x4x4x32", "1x4x4x32", "1x4x4 0.1:0.9", "1x4x4 0.5:1")
def delta_net(q, k, v, beta, decay):
    k = k / np.maximum(np.sqrt(np.sum(k * k, axis=-1, keepdims=True)), 1e-6)
    state = np.zeros((1, 4, 32, 32), np.float32)
    rows = []
    for t in range(4):
        kt = np.expand_dims(k[:, :, t], -1)
        vt = np.expand_dims(v[:, :, t], -1)
        bt = np.expand_dims(np.expand_dims(beta[:, :, t], -1), -1)
        state = state * np.expand_dims(np.expand_dims(decay[:, :, t], -1), -1)
        old = np.matmul(state, kt)
        state = state + np.matmul(bt * (vt - old), np.swapaxes(kt, -1, -2))
        out = np.matmul(state, np.expand_dims(q[:, :, t], -1))
        rows.append(np.expand_dims(out[:, :, :, 0], 2))
    return np.concatenate(rows, axis=2)


# ---- mixture of experts ----------------------------------------------------------------------------------------------

def swiglu(x, w_gate_up, w_down):
    gate, up = np.split(x @ w_gate_up, 2, axis=-1)
    return (gate / (1.0 + np.exp(-gate)) * up) @ w_down


@kernel(5, "16x64", "64x4", "4x64x64 -0.2:0.2", "4x32x64 -0.2:0.2", uses=[softmax_last, swiglu])
def experts_dense(x, router, w_gate_up, w_down):
    """Every expert on every token, weighted; the best two found by comparing with the maxima."""
    weights = softmax_last(x @ router)
    first = np.max(weights, axis=-1, keepdims=True)
    others = np.where(weights >= first, 0.0, weights)
    second = np.max(others, axis=-1, keepdims=True)
    chosen = np.where(weights >= second, weights, 0.0)
    chosen = chosen / np.sum(chosen, axis=-1, keepdims=True)
    total = np.zeros((16, 64), np.float32)
    for e in range(4):
        total = total + chosen[:, e : e + 1] * swiglu(x, w_gate_up[e], w_down[e])
    return total


@kernel(5, "4x64", "4 i32 0:4", "4 0.1:1", "4x64x64 -0.2:0.2", "4x32x64 -0.2:0.2", uses=[swiglu])
def experts_one_by_one(x, expert, weight, w_gate_up, w_down):
    """Each token's expert is a traced index into the weights."""
    out = np.empty_like(x)
    for t in range(4):
        out[t] = (swiglu(np.expand_dims(x[t], 0), w_gate_up[expert[t]], w_down[expert[t]]) * weight[t])[0]
    return out


@kernel(5, "8x64", "8 i32 0:4", "4x64x64 -0.2:0.2", "4x32x64 -0.2:0.2", uses=[swiglu])
def experts_batched_take(x, expert, w_gate_up, w_down):
    gate_up = np.take(w_gate_up, expert, axis=0)
    down = np.take(w_down, expert, axis=0)
    return np.reshape(swiglu(np.expand_dims(x, 1), gate_up, down), (8, 64))


@kernel(5, "8x64", "8 i32 0:4", "4x64x64 -0.2:0.2", "4x32x64 -0.2:0.2", uses=[swiglu])
def experts_one_hot(x, expert, w_gate_up, w_down):
    chosen = np.equal(np.expand_dims(expert, -1), np.arange(4, dtype=np.int32)).astype(np.float32)
    total = np.zeros((8, 64), np.float32)
    for e in range(4):
        total += swiglu(x, w_gate_up[e], w_down[e]) * chosen[:, e : e + 1]
    return total


# ---- attention with sinks, windows, caches ---------------------------------------------------------------------------

@kernel(5, "16x128", "128x192 -0.1:0.1", "192", "2", "128x128 -0.1:0.1", "128", uses=[softmax_last])
def sink_attention(x, w_qkv, bias, sinks, w_out, bias_out):
    """Two heads of 64 over one key head; a logit per head that takes part in the softmax and is dropped."""
    qkv = x @ np.concatenate([w_qkv, w_qkv[:, :64]], axis=1) + np.concatenate([bias, bias[:64]])
    q, k, v = np.split(qkv, [128, 192], axis=-1)
    q = np.transpose(np.reshape(q, (16, 2, 64)), (1, 0, 2))
    window = np.tril(np.ones((16, 16), np.float32)) - np.tril(np.ones((16, 16), np.float32), -8)
    scores = q @ np.transpose(k) * 0.125 + np.where(window > 0, 0.0, -1e4).astype(np.float32)
    sink = np.broadcast_to(np.reshape(sinks, (2, 1, 1)), (2, 16, 1))
    weights = softmax_last(np.concatenate([scores, sink], axis=-1))[..., :-1]
    context = np.reshape(np.transpose(weights @ v, (1, 0, 2)), (16, 128))
    return context @ w_out + bias_out


@kernel(5, "16x64 -3:3", "64x256 -0.5:0.5", "128x64 -0.5:0.5")
def clamped_swiglu(x, w_gate_up, w_down):
    h = x @ w_gate_up
    gate, up = h[:, ::2], h[:, 1::2]
    gate = np.minimum(gate, 7.0)
    up = np.clip(up, -7.0, 7.0)
    return (gate / (1.0 + np.exp(-1.702 * gate)) * (up + 1.0)) @ w_down


@kernel(5, "2x1x128 bf16", "128x128 bf16 -0.1:0.1", "128x64 bf16 -0.1:0.1", "128x64 bf16 -0.1:0.1", "128x128 bf16 -0.1:0.1",
        "2x32x1x64 bf16", "2x32x1x64 bf16", "128 bf16 0.5:1", uses=[rms_normed, softmax_last])
def cached_attention_bf16(x, wq, wk, wv, wo, cache_k, cache_v, norm):
    """One position of grouped-query attention; the tables of the rotary embedding are constants."""
    h = rms_normed(x.astype(np.float32), norm.astype(np.float32)).astype(x.dtype)
    q = np.reshape(h @ wq, (2, 1, 2, 64))
    k = np.reshape(h @ wk, (2, 1, 1, 64))
    v = np.reshape(h @ wv, (2, 1, 1, 64))
    angle = 5.0 / 10000.0 ** (np.arange(32, dtype=np.float32) / 32)
    c, s = np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32)
    k32 = k.astype(np.float32)
    k = np.concatenate([k32[..., :32] * c - k32[..., 32:] * s, k32[..., :32] * s + k32[..., 32:] * c], axis=-1).astype(x.dtype)
    cache_k[:, 5:6] = k
    cache_v[:, 5:6] = v
    keys = np.transpose(np.repeat(cache_k, 2, axis=2), (0, 2, 3, 1))
    values = np.transpose(np.repeat(cache_v, 2, axis=2), (0, 2, 1, 3))
    scores = np.matmul(np.transpose(q, (0, 2, 1, 3)), keys).astype(np.float32) * 0.125
    mask = np.where(np.arange(32) <= 5, 0.0, -1e4).astype(np.float32)
    context = np.matmul(softmax_last(scores + mask).astype(x.dtype), values)
    return np.reshape(np.transpose(context, (0, 2, 1, 3)), (2, 1, 128)) @ wo, cache_k, cache_v


@kernel(5, "32 i32 0:500", "500x128")
def embedding_and_mask(ids, table):
    mask = np.triu(np.full((32, 32), -1e4, np.float32), 1)[None, None]
    return table[ids, :] * 11.3, np.broadcast_to(mask, (1, 2, 32, 32)) + table[0, 0]


# ---- drafting: stacked weights, aliased caches, the next token -------------------------------------------------------

@kernel(5, "1x128", "3x128x128 -0.1:0.1", "3x128 0.5:1", "4x128", "4x128", "4x128", "128x200 -0.1:0.1",
        uses=[rms_normed])
def drafter(x, weights, norms, cache_0, cache_1, cache_2, head):
    caches = [cache_0, cache_1, cache_2]
    for i in range(3):
        h = rms_normed(x, norms[i]) @ weights[i]
        caches[i][1:2] = h
        x = x + np.maximum(h, 0.0)
    logits = x @ head
    return np.argmax(logits, axis=-1), logits, cache_0, cache_1, cache_2


@kernel(5, "4x200", "200x64")
def greedy_step(logits, table):
    ids = np.argmax(logits, axis=1).astype(np.int32)
    return ids, np.take(table, ids, axis=0)


@kernel(5, "4x200", "1x4 i32 0:200", needs=["topk"])
def top_tokens(logits, previous):
    from nkipy.core.tensor_apis import topk

    best, ids = topk(logits, 3, axis=1)
    return best, ids.astype(np.int32) + previous[0, 0]


@kernel(5, "4x128", "128x64 -0.1:0.1", needs=["collectives"])
def sharded_product(x, w):
    import nkipy.distributed.collectives as cc

    return cc.all_reduce(x @ w, replica_groups=[[0, 1]], reduce_op=np.add)


@kernel(5, "2x4x10", "4x10", "4x10")
def rotary_interleaved(x, cos, sin):
    out = np.empty_like(x)
    out[:, :, ::2] = x[:, :, ::2] * cos[:, ::2] - x[:, :, 1::2] * sin[:, ::2]
    out[:, :, 1::2] = x[:, :, 1::2] * cos[:, 1::2] + x[:, :, ::2] * sin[:, 1::2]
    return out
