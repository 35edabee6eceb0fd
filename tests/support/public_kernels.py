"""The kernels that people publish, row by row, and our kernels of the same structure (tests/nki_kernels/public).

ROWS is the list of the public kernels: those of the samples, the tutorials and the production library.  Each row names
the cases that cover it: a case of CASES here, which is run on small sizes always and on those of the documentation
nightly, or a test elsewhere.  The formulas are NumPy's and know nothing of tiles.
"""
import dataclasses
import math

import ml_dtypes
import numpy as np

from support import nki_beta1_calls
from support.paths import ROOT

FOLDER = ROOT / "tests/nki_kernels/public"
BF16 = ml_dtypes.bfloat16


@dataclasses.dataclass
class Case:
    """file: in FOLDER; kernel: its function.  inputs(size): {parameter: array}, with the size `small` or `documented`, which is
    None where the small one is.  formula: of the arrays, gives the results.  error: the largest, as a share of the largest
    result.  launch: the grid; {first}: the first dimension of the first input; {rows}, {columns}: its tiles.  given: other
    arguments."""
    file: str
    kernel: str
    inputs: object
    formula: object
    error: float
    small: tuple = ()
    documented: tuple = None
    launch: str = ""
    given: str = ""
    target: str = "trn2"


def _rng():
    return np.random.default_rng(11)


def _draw(*shape, dtype=np.float32, scale=1.0):
    return (_rng().uniform(-1, 1, shape) * scale).astype(np.float32).astype(dtype)


def _several(names, shapes, dtype=np.float32, scale=1.0):
    rng = _rng()
    return {n: (rng.uniform(-1, 1, s) * scale).astype(np.float32).astype(dtype) for n, s in zip(names, shapes)}


def _f32(*arrays):
    return tuple(a.astype(np.float32) for a in arrays)


# ---- attention ------------------------------------------------------------------------------------------------------


def _weights(scores):
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def _qkv(d, s):
    return _several("qkv", [(d, s)] * 3)


def attention(q, k, v):
    return _weights(q.T @ k) @ v.T


def _in_bf16(x):
    return x.astype(BF16).astype(np.float32)


def attention_in_bf16(q, k, v):
    """What the Tensor engine reads is rounded to bf16, so the division comes last; sums are f32."""
    scores = _in_bf16(q).T @ _in_bf16(k)
    e = np.exp(scores - scores.max(1, keepdims=True))
    return _in_bf16(e) @ _in_bf16(v).T / e.sum(1, keepdims=True)


def attention_of_bf16_scores(q, k, v):
    """The same, and the scores are kept as bf16: of one of 8 or more, that is an error of up to 1/32, and so of a weight up to
    3 %.  The maximum is that of the scores before."""
    exact = _in_bf16(q).T @ _in_bf16(k)
    e = np.exp(_in_bf16(exact) - exact.max(1, keepdims=True))
    return _in_bf16(e) @ _in_bf16(v).T / e.sum(1, keepdims=True)


def attention_of_heads(q, k, v):
    """q: (heads, d, s), k: (heads, d, s), v: (heads, s, d); the result (heads, s, d)."""
    return np.stack([_weights(a.T @ b / math.sqrt(len(a))) @ c for a, b, c in zip(q, k, v)])


def _causal(q, k, v, window=None):
    """The same with fewer heads of keys, no scale, and a mask."""
    q, k, v = _f32(q, k, v)
    i, j = np.ogrid[0:q.shape[2], 0:q.shape[2]]
    allowed = (j <= i) if window is None else (j <= i) & (j > i - window)
    group, out, lse = len(q) // len(k), [], []
    for h in range(len(q)):
        scores = np.where(allowed, q[h].T @ k[h // group], -np.inf)
        out.append(_weights(scores) @ v[h // group])
        top = scores.max(1, keepdims=True)
        lse.append(np.log(np.exp(scores - top).sum(1, keepdims=True)) + top)
    return np.stack(out), np.stack(lse)


def _backward_inputs(heads, d, s):
    x = _several(["q", "k", "v", "grad"], [(heads, d, s)] * 4)
    o, lse = _causal(x["q"], x["k"], x["v"].transpose(0, 2, 1))
    return {"q": x["q"], "k": x["k"], "v": x["v"], "o": o.transpose(0, 2, 1).copy(), "grad": x["grad"], "lse": lse}


def _attention_backward(q, k, v, o, grad, lse):
    """The gradients by their definition, one head after the other."""
    results = [[], [], []]
    for q, k, v, g in zip(q.astype("f8"), k.astype("f8"), v.astype("f8"), grad.astype("f8")):
        s = q.shape[1]
        p = _weights(np.where(np.tri(s, dtype=bool), q.T @ k, -np.inf))
        dp = g.T @ v
        ds = p * (dp - (dp * p).sum(1, keepdims=True))
        for r, x in zip(results, (k @ ds.T, q @ ds, g @ p)):
            r.append(x)
    return tuple(np.stack(r).astype("f4") for r in results)


# ---- pictures -------------------------------------------------------------------------------------------------------


def _maxpool(x):
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1)), constant_values=-np.inf)
    return np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))[:, ::2, ::2].max((3, 4))


def _twice(x, axis):
    """Twice as many elements along an axis: of each and its neighbours, 3/4 and 1/4; the border repeats."""
    x = np.moveaxis(x, axis, 0)
    before, after = np.concatenate([x[:1], x[:-1]]), np.concatenate([x[1:], x[-1:]])
    r = np.stack([0.75 * x + 0.25 * before, 0.75 * x + 0.25 * after], 1)
    return np.moveaxis(r.reshape(-1, *x.shape[1:]), 0, axis)


def _between(x, axis):
    """The elements along an axis, and between two their mean."""
    x = np.moveaxis(x, axis, 0)
    r = np.zeros((2 * len(x) - 1, *x.shape[1:]), x.dtype)
    r[::2], r[1::2] = x, (x[:-1] + x[1:]) / 2
    return np.moveaxis(r, 0, axis)


# ---- the library ----------------------------------------------------------------------------------------------------


def _rope_inputs(d, heads, s):
    at = np.arange(s) / 10000 ** (np.arange(d // 2)[:, None] / (d // 2))
    return {"x": _draw(d, 1, heads, s), "cos": np.cos(at)[:, None].astype("f4"), "sin": np.sin(at)[:, None].astype("f4")}


def _rope(x, cos, sin):
    a, b = np.split(x, 2)
    c, s = cos[:, :, None], sin[:, :, None]
    return np.concatenate([a * c - b * s, b * c + a * s])


def _rope_of_pairs(x, cos, sin):
    c, s = cos[:, :, None], sin[:, :, None]
    r = np.empty_like(x)
    r[0::2], r[1::2] = x[0::2] * c - x[1::2] * s, x[1::2] * c + x[0::2] * s
    return r


def _hf_inputs(heads, kv_heads, s, d):
    at = np.arange(s)[:, None] / 10000 ** (np.arange(d // 2) / (d // 2))
    both = np.concatenate([at, at], 1)
    x = _several("qk", [(1, heads, s, d), (1, kv_heads, s, d)])
    return {**x, "cos": np.cos(both).astype("f4"), "sin": np.sin(both).astype("f4")}


def _rope_hf(q, k, cos, sin):
    def turned(x):
        a, b = np.split(x, 2, -1)
        return np.concatenate([-b, a], -1)
    return q * cos + turned(q) * sin, k * cos + turned(k) * sin


def _rmsnorm_quant(hidden, w):
    x, g = _f32(hidden, w)
    y = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * g
    scale = np.maximum(np.abs(y).max(-1, keepdims=True), 0.01) / 240
    return (y / scale).astype(ml_dtypes.float8_e4m3), scale


def _conv1d(x, filters, bias):
    taps = len(filters)
    return sum(np.einsum("bcl,co->bol", x[:, :, k:x.shape[2] - taps + 1 + k], filters[k]) for k in range(taps)) + bias[None, :, None]


def _conv1d_strided(x, filters):
    """stride 2, padding (2, 1), dilation 2, then silu"""
    x = np.pad(x, ((0, 0), (0, 0), (2, 1)))
    span = 2 * (len(filters) - 1)
    r = sum(np.einsum("bcl,co->bol", x[:, :, 2 * k:x.shape[2] - span + 2 * k:2], filters[k]) for k in range(len(filters)))
    return r / (1 + np.exp(-r))


def _depthwise(x, filters):
    n = x.shape[2] - filters.shape[1] + 1
    return sum(x[:, :, k:k + n] * filters[:, k, None] for k in range(filters.shape[1]))


def _logits(positions, vocabulary):
    return {"logits": _draw(positions, vocabulary, scale=4), "targets": _rng().integers(0, vocabulary, (positions, 1)).astype("i4")}


def _cross_entropy(logits, targets):
    top = logits.max(1, keepdims=True)
    lse = np.log(np.exp(logits - top).sum(1, keepdims=True)) + top
    return lse - np.take_along_axis(logits, targets, 1), lse


def _gradient_inputs(positions, vocabulary):
    x = _logits(positions, vocabulary)
    return {**x, "lse": _cross_entropy(**x)[1], "grad": _draw(positions, 1)}


def _cross_entropy_backward(logits, targets, lse, grad):
    p = _weights(logits)
    np.put_along_axis(p, targets, np.take_along_axis(p, targets, 1) - 1, 1)
    return p * grad


def _nonzero_inputs(rows, n):
    return {"x": (_rng().integers(0, 4, (rows, n)) == 0).astype("i4")}


def _nonzero(x):
    indices = np.full(x.shape, -1, "i4")
    for row, to in zip(x, indices):
        at = np.flatnonzero(row)
        to[:len(at)] = at
    return indices, (x != 0).sum(1, keepdims=True).astype("i4")


def _flatten_inputs(groups, f):
    at = _rng().permutation(groups + 3)[:groups].astype("i4")  # some numbers are out of range
    return {"x": _rng().integers(0, 1000, (groups, f)).astype("i4"), "row_of": at[:, None]}


def _indexed_flatten(x, row_of):
    out = np.full(x.shape, -1, "i4")
    for row, (at,) in zip(x, row_of):
        if at < len(x):
            out[at] = row
    return out.reshape(-1)


def _topk(k):
    def formula(x):
        at = np.argsort(-x, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(x, at, 1), at.astype("u4")
    return formula


def _qkv_projection(hidden, weights, gain):
    x, w, g = _f32(hidden, weights, gain)
    return (x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * g) @ w


def _qkv_with_residual(hidden, weights, bias, residual):
    x = hidden + residual
    centered = x - x.mean(-1, keepdims=True)
    return centered / np.sqrt(x.var(-1, keepdims=True) + 1e-6) @ weights + bias, x


def _output_projection(attention, weights, bias=0):
    a, w = _f32(attention, weights)
    return np.einsum("bnds,ndh->bsh", a, w.reshape(a.shape[1], a.shape[2], -1)) + np.asarray(bias, "f4")


def _silu(x):
    return x / (1 + np.exp(-x))


def _mlp(hidden, up, down, gate):
    x, u, d, g = _f32(hidden, up, down, gate)
    return (_silu(x @ g) * (x @ u)) @ d


def _mlp_with_norm(hidden, up, down, gain, residual):
    """RMS norm before, the square as activation, no gate."""
    x, u, d, g, r = _f32(hidden, up, down, gain, residual)
    return ((x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * g) @ u) ** 2 @ d + r


def _moe_inputs(tokens, h, i):
    rng = _rng()
    blocks = np.full((3, 128), tokens + 1000, "i4")
    chosen = rng.permutation(tokens)
    first = min(128, tokens)
    blocks[0, :first] = chosen[:first]
    rest = np.concatenate([chosen[first:], chosen[:20]])  # 20 tokens have two experts
    for b in (1, 2):
        part = rest[(b - 1) * 128:b * 128]
        blocks[b, :len(part)] = part
    x = _several(["hidden", "gate_up", "down", "affinities"], [(tokens, h), (2, h, 2 * i), (2, i, h), (tokens, 2)], BF16, 0.5)
    return {**x, "affinities": np.abs(x["affinities"].astype("f4")), "rows_of_block": blocks}


def _moe(hidden, gate_up, down, affinities, rows_of_block):
    x, w, d = _f32(hidden, gate_up, down)
    out = np.zeros(x.shape, "f4")
    for expert, rows in zip((0, 1, 1), rows_of_block):
        rows = rows[rows < len(x)]
        gate, up = np.split(x[rows] @ w[expert], 2, 1)
        out[rows] += affinities[rows, expert, None] * ((_silu(gate) * up) @ d[expert])
    return out


# ---- the tutorials --------------------------------------------------------------------------------------------------


def _mamba_inputs(channels, states, length):
    x = _several(["delta", "u", "A", "B", "C"], [(1, channels, length), (1, channels, length), (channels, states), (1, states, length), (1, states, length)])
    return {**x, "delta": np.abs(x["delta"]), "A": -np.abs(x["A"])}


def _mamba(delta, u, A, B, C):
    out = np.zeros_like(delta)
    for s in range(A.shape[1]):
        h = np.zeros(delta.shape[:2], np.float32)
        for t in range(delta.shape[2]):
            h = np.exp(delta[:, :, t] * A[:, s]) * h + delta[:, :, t] * u[:, :, t] * B[:, s, t, None]
            out[:, :, t] += h * C[:, s, t, None]
    return out


def product(lhsT, rhs):
    l, r = _f32(lhsT, rhs)
    return l.T @ r


def _weights_inputs(m, n):
    rng = _rng()
    numbers = rng.uniform(-200, 200, (128, m, 4)).astype(np.float32).astype(ml_dtypes.float8_e4m3fn)
    return {"weights": np.ascontiguousarray(numbers.view(np.uint8)).view(np.uint32)[:, :, 0],
            "scales": rng.integers(118, 122, (16, m)).astype(np.uint8), "rhs": _draw(512, n, dtype=BF16)}


def _product_of_weights(weights, scales, rhs):
    """Number k of the summed axis is number k // 128 of the packed element of partition k % 128."""
    numbers = np.ascontiguousarray(weights)[:, :, None].view(np.uint8).view(ml_dtypes.float8_e4m3fn).astype(np.float32)
    left = numbers * np.exp2(np.repeat(scales, 8, axis=0).astype(np.float32) - 127)[:, :, None]
    return np.einsum("pmj,jpn->mn", left, rhs.astype(np.float32).reshape(4, 128, -1))


LIBRARY = "library/core/"
CASES = {f"attention v{n}": Case("attention_ladder.py", f"attention_v{n}", _qkv, attention, 1e-5, (64, 512), (128, 4096)) for n in range(3, 7)}
CASES["attention v7"] = Case("attention_ladder.py", "attention_v7", _qkv, attention_in_bf16, 5e-4, (64, 512), (128, 4096))
CASES |= {f"attention v{n}": Case("attention_ladder.py", f"attention_v{n}", _qkv, attention_of_bf16_scores, 5e-4, (64, 512), (128, 4096))
          for n in range(8, 12)}
CASES |= {
    "attention v2": Case("attention_ladder.py", "attention_v2", _qkv, attention, 1e-5, (128, 128)),
    "pipelined attention": Case(
        "attention_pipelined.py", "attention_pipelined", lambda n, d, s, t: _several("qkv", [(n, d, s), (n, d, t), (n, t, d)]),
        attention_of_heads, 0.02, (2, 64, 128, 2048), (1, 128, 512, 8192), launch="{first}"),
    "maxpool": Case("pooling.py", "maxpool2d", lambda *s: {"x": _draw(*s)}, _maxpool, 0, (130, 14, 19), (64, 112, 112)),
    "bilinear": Case("pooling.py", "bilinear2x", lambda *s: {"x": _draw(*s)}, lambda x: _twice(_twice(x, 1), 2), 1e-6, (48, 8, 10), (96, 32, 32)),
    "trilinear": Case("pooling.py", "trilinear2x", lambda *s: {"x": _draw(*s)},
                      lambda x: _between(_between(_between(x, 1), 2), 3), 1e-6, (130, 3, 5, 6), (256, 8, 16, 16)),
    "cumsum": Case(LIBRARY + "cumsum.py", "cumsum", lambda *s: {"x": _draw(*s)}, lambda x: np.cumsum(x, -1), 1e-4, (3, 50, 700), (512, 2048)),
    "cumsum on two cores": Case(LIBRARY + "cumsum.py", "cumsum", lambda *s: {"x": _draw(*s)}, lambda x: np.cumsum(x, -1), 1e-4, (150, 600),
                                launch="2"),
    "rope": Case(LIBRARY + "rope.py", "rope", _rope_inputs, _rope, 1e-5, (64, 2, 300), (128, 8, 2048)),
    "rope of pairs": Case(LIBRARY + "rope.py", "rope", _rope_inputs, _rope_of_pairs, 1e-5, (64, 2, 100), launch="2",
                          given="contiguous_layout=False, lnc_shard=True"),
    "rope_hf": Case(LIBRARY + "rope.py", "rope_hf", _hf_inputs, _rope_hf, 1e-5, (4, 2, 160, 64), (8, 2, 1024, 128)),
    "cascaded_max": Case(LIBRARY + "cascaded_max.py", "cascaded_max", lambda *s: {"x": _draw(*s)},
                         lambda x: (x.max(1, keepdims=True), x.argmax(1)[:, None].astype("u4")), 0, (40, 5000), (128, 16384)),
    "rmsnorm_quant": Case(LIBRARY + "rmsnorm_quant.py", "rmsnorm_quant", lambda b, s, h: _several(["hidden", "w"], [(b, s, h), (h,)], BF16),
                          _rmsnorm_quant, 0.07, (2, 70, 256), (1, 512, 2048)),
    "conv1d": Case(LIBRARY + "conv1d.py", "conv1d", lambda b, c, l, k, o: _several(["x", "filters", "bias"], [(b, c, l), (k, c, o), (o,)]),
                   _conv1d, 1e-5, (2, 140, 60, 3, 40), (1, 256, 1500, 3, 512)),
    "conv1d with strides": Case(LIBRARY + "conv1d.py", "conv1d", lambda b, c, l, k, o: _several(["x", "filters"], [(b, c, l), (k, c, o)]),
                                _conv1d_strided, 1e-5, (1, 24, 61, 3, 40),
                                given="stride=2, padding=(2, 1), dilation=2, activation_fn=nl.silu"),
    "depthwise_conv1d": Case(LIBRARY + "conv1d.py", "depthwise_conv1d", lambda b, c, l, k: _several(["x", "filters"], [(b, c, l), (c, k)]),
                             _depthwise, 1e-5, (2, 130, 60, 4), (1, 1024, 2048, 4)),
    "cross_entropy forward": Case(LIBRARY + "cross_entropy.py", "cross_entropy_forward", _logits, _cross_entropy, 1e-5, (140, 1500), (128, 32000)),
    "cross_entropy backward": Case(LIBRARY + "cross_entropy.py", "cross_entropy_backward", _gradient_inputs, _cross_entropy_backward, 1e-5,
                                   (140, 1500), (128, 32000), launch="2"),
    "find_nonzero_indices": Case(LIBRARY + "indices.py", "find_nonzero_indices", _nonzero_inputs, _nonzero, 0, (4, 200), (8, 4096)),
    "indexed_flatten": Case(LIBRARY + "indices.py", "indexed_flatten", _flatten_inputs, _indexed_flatten, 0, (60, 32), (128, 512)),
    "topk": Case(LIBRARY + "topk.py", "topk", lambda *s: {"x": _draw(*s)}, _topk(20), 0, (140, 300), (128, 8192), given="k=20"),
    "qkv": Case(LIBRARY + "projections.py", "qkv", lambda b, s, h, n: _several(["hidden", "weights", "gain"], [(b, s, h), (h, n), (h,)], BF16),
                _qkv_projection, 0.02, (1, 160, 256, 640), (1, 2048, 2048, 1536)),
    "qkv with residual": Case(
        LIBRARY + "projections.py", "qkv", lambda b, s, h, n: _several(["hidden", "weights", "bias", "residual"], [(b, s, h), (h, n), (n,), (b, s, h)]),
        _qkv_with_residual, 1e-4, (1, 130, 256, 200), launch="2", given="norm=NormType.LAYER_NORM"),
    "output projection": Case(LIBRARY + "projections.py", "output_projection",
                              lambda n, d, s, h: _several(["attention", "weights"], [(1, n, d, s), (n * d, h)], BF16), _output_projection, 0.02,
                              (4, 64, 160, 640), (8, 128, 2048, 2048), launch="2"),
    "attention cte": Case(LIBRARY + "attention.py", "attention_cte",
                          lambda n, d, s: _several("qkv", [(n, d, s), (n // 2, d, s), (n // 2, s, d)], BF16), lambda *x: _causal(*x)[0], 0.02,
                          (2, 64, 256), (4, 128, 4096)),
    "attention cte with a window": Case(
        LIBRARY + "attention.py", "attention_cte", lambda n, d, s: _several("qkv", [(n, d, s), (n // 2, d, s), (n // 2, s, d)]),
        lambda *x: _causal(*x, window=100), 1e-4, (2, 64, 256), launch="2", given="sliding_window=100, save_lse=True"),
    "attention bwd": Case(LIBRARY + "attention.py", "attention_bwd", _backward_inputs, _attention_backward, 1e-4, (1, 64, 256), (1, 128, 2048)),
    "mlp": Case(LIBRARY + "mlp.py", "mlp", lambda s, h, i: _several(["hidden", "up", "down", "gate"], [(1, s, h), (h, i), (i, h), (h, i)], BF16, 0.5),
                _mlp, 0.03, (160, 256, 384), (1024, 1024, 2048)),
    "mlp with norm": Case(
        LIBRARY + "mlp.py", "mlp",
        lambda s, h, i: _several(["hidden", "up", "down", "gain", "residual"], [(1, s, h), (h, i), (i, h), (h,), (1, s, h)], scale=0.5),
        _mlp_with_norm, 1e-4, (140, 128, 256), launch="2", given="norm=NormType.RMS_NORM, activation=ActFnType.Square"),
    "moe": Case(LIBRARY + "mlp.py", "moe", _moe_inputs, _moe, 0.03, (200, 256, 256), (340, 1024, 512)),
}
CASES |= {
    "getting started": Case("basics.py", "getting_started_add", lambda *s: _several("ab", [s, s]), np.add, 0, (128, 100)),
    "tensor add tiled": Case("basics.py", "tiled_add", lambda *s: _several("ab", [s, s]), np.add, 0, (256, 1024), (512, 2048)),
    "tensor add SPMD": Case("basics_beta1.py", "spmd_add", lambda *s: _several("ab", [s, s]), np.add, 0, (256, 1024), (512, 2048),
                            launch="{rows}, {columns}"),
    "tensor add multi-core": Case("basics_beta1.py", "spmd_add", lambda *s: _several("ab", [s, s]), np.add, 0, (512, 512), (512, 2048),
                                  launch="nl1.spmd_dim(nl1.nc(2), {rows} // 2), {columns}"),
    "index case 1": Case("basics.py", "even_and_odd", lambda *s: {"x": _draw(*s)}, lambda x: (x[:, ::2], x[:, 1::2]), 0, (64, 30), (128, 512)),
    "index case 3": Case("basics.py", "maxpool_by_slices", lambda *s: {"x": _draw(*s)},
                         lambda x: x.reshape(len(x), x.shape[1] // 2, 2, -1, 2).max((2, 4)), 0, (64, 6, 10), (128, 16, 32)),
    "layout pass": Case("basics.py", "layout_pass", lambda *s: {"x": _draw(*s)}, lambda x: np.exp(x).T, 1e-6, (200, 128), (512, 128)),
    "layout loop": Case("basics.py", "layout_loop", lambda *s: {"x": _draw(*s)}, np.exp, 1e-6, (300, 64), (1000, 512)),
    "transpose2d": Case("basics.py", "transpose2d", lambda p, r, c: {"x": _draw(p, r * c)},
                        lambda x: x.reshape(len(x), 4, 6).transpose(0, 2, 1).reshape(x.shape), 0, (100, 4, 6), given="rows=4, columns=6"),
    "average pool": Case("basics.py", "average_pool", lambda *s: {"x": _draw(*s)},
                         lambda x: x.reshape(len(x), x.shape[1] // 2, 2, -1, 2).mean((2, 4)), 1e-6, (32, 8, 12), (128, 32, 48), given="pool=2"),
    "mx matmul": Case("mx_matmul.py", "mx_matmul", lambda m, n: _several(["lhsT", "rhs"], [(512, m), (512, n)], BF16), product, 0.06,
                      (64, 96), (128, 512), target="trn3"),
    "mx matmul tiled": Case("mx_matmul.py", "mx_matmul_tiled", lambda k, m, n: _several(["lhsT", "rhs"], [(k, m), (k, n)], BF16), product, 0.12,
                            (1024, 256, 64), (4096, 1024, 512), target="trn3"),
    "mx matmul of weights": Case("mx_matmul.py", "mx_matmul_of_weights", _weights_inputs, _product_of_weights, 0.05, (64, 96), (128, 512),
                                 target="trn3"),
}
CASES |= {f"mamba {v}": Case("mamba.py", f"mamba_{v}", _mamba_inputs, _mamba, 1e-5, (256, 3, 128), (256, 16, 512)) for v in ("v1", "v2", "v3")}

# Each row of the public kernels, with the generations of NKI in which it is published: 1 is beta 1, 2 what came later.  Its kernels
# are the cases above, or those of other tests: of nki_beta1.py ("beta 1: …"), nki_kernels.py ("kernel: …"), nki_matmuls.py
# ("product: …"), nki_pairs.py ("pair: …"), nki_beta1_calls.py ("call: …") or the product's examples ("example: …").
_PRODUCTS = ["basic", "tiled", "hoisted", "blocked", "optimised"]
ROWS = {
    "tensor add (getting started)": ({2}, ["getting started", "pair: add"]),
    "simulate example": ({2}, ["getting started", "example: 01_vector_add"]),
    "tensor add tiled": ({2}, ["tensor add tiled", "kernel: add"]),
    "tensor add SPMD, multi-core": ({1}, ["tensor add SPMD", "tensor add multi-core", "beta 1: tensor_add"]),
    "index cases 1 and 3": ({2}, ["index case 1", "index case 3"]),
    "layout pass, violation, loop": ({2}, ["layout pass", "layout loop"]),
    "transpose2d": ({1, 2}, ["transpose2d", "beta 1: transpose2d", "kernel: transpose", "pair: transpose2d"]),
    "average pool": ({1, 2}, ["average pool", "beta 1: average_pool", "kernel: average_pool", "pair: average pool"]),
    "matmul basic, tiled, hoisted, blocked, optimised": ({1, 2}, [f"product: {n}" for n in _PRODUCTS] + [f"beta 1: matmul_{n}" for n in _PRODUCTS]),
    "attention v1": ({1}, ["beta 1: attention_v1"]),
    "attention v2 to v7": ({1}, [f"attention v{n}" for n in range(2, 8)]),
    "attention v8 to v11": ({1}, [f"attention v{n}" for n in range(8, 12)]),
    "fused mamba v1 to v3": ({1, 2}, ["mamba v1", "mamba v2", "mamba v3", "beta 1: mamba", "beta 1: mamba_v2", "beta 1: mamba_v3"]),
    "MX matmul": ({2}, ["mx matmul", "mx matmul tiled", "mx matmul of weights"]),
    "maxpool": ({1}, ["maxpool", "beta 1: maxpool"]),
    "bilinear": ({1}, ["bilinear", "beta 1: bilinear"]),
    "trilinear": ({1}, ["trilinear"]),
    "pipelined flash attention": ({1}, ["pipelined attention"]),
    "kernels of one call": ({1}, [f"call: {c[1]}" for c in nki_beta1_calls.CASES] + ["pair: scan", "pair: causal mask", "pair: eight largest", "pair: softmax"]),
    "library: cumsum": ({2}, ["cumsum", "cumsum on two cores"]),
    "library: rope": ({2}, ["rope", "rope of pairs"]),
    "library: rope_hf": ({2}, ["rope_hf"]),
    "library: cascaded_max": ({2}, ["cascaded_max"]),
    "library: rmsnorm_quant": ({2}, ["rmsnorm_quant"]),
    "library: conv1d": ({2}, ["conv1d", "conv1d with strides"]),
    "library: depthwise_conv1d": ({2}, ["depthwise_conv1d"]),
    "library: cross_entropy forward and backward": ({2}, ["cross_entropy forward", "cross_entropy backward"]),
    "library: find_nonzero_indices": ({2}, ["find_nonzero_indices"]),
    "library: indexed_flatten": ({2}, ["indexed_flatten"]),
    "library: topk": ({2}, ["topk"]),
    "library: output projection": ({2}, ["output projection"]),
    "library: qkv": ({2}, ["qkv", "qkv with residual"]),
    "library: attention cte and bwd": ({2}, ["attention cte", "attention cte with a window", "attention bwd"]),
    "library: mlp": ({2}, ["mlp", "mlp with norm"]),
    "library: moe": ({2}, ["moe"]),
    "rmsnorm, layernorm, attention, product of the open front end's tests": ({2}, [
        "kernel: rmsnorm", "beta 1: rmsnorm", "beta 1: layernorm_v1", "beta 1: layernorm_v2", "pair: attention", "kernel: matmul"]),
}
