"""Operations that NumPy lacks, on arrays outside a trace: NKIPy's "cpu" implementations.

A collective computes what it would if every device of a group held the same data.
"""
import numpy as np


def _wide(x):
    return np.asarray(x, np.float32) if np.asarray(x).dtype.itemsize < 4 else np.asarray(x)


def _float(x):
    x = np.asarray(x)
    return x.dtype if x.dtype.kind not in "biu" else np.dtype(np.float32)


def softmax(x, axis=-1):
    w = _wide(np.asarray(x).astype(_float(x)))
    e = np.exp(w - np.max(w, axis=axis, keepdims=True))
    return (e / np.sum(e, axis=axis, keepdims=True)).astype(_float(x))


def rms_norm(x, weight=None, axis=-1, eps=1e-6):
    w = _wide(np.asarray(x).astype(_float(x)))
    v = (w / np.sqrt(np.mean(w * w, axis=axis, keepdims=True) + eps)).astype(_float(x))
    return v if weight is None else v * weight


def _total_order(x):
    """Integers in the total order of the floats: -0 is below 0, and NaNs are the extremes."""
    if x.dtype.kind in "iub":
        return x
    bits = x.view(f"i{x.dtype.itemsize}")
    return np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)


def topk(x, k, axis=-1, is_ascend=False):
    x = np.asarray(x)
    assert axis in (-1, np.ndim(x) - 1) and 1 <= k <= np.shape(x)[-1]
    key = _total_order(x)
    if is_ascend:
        order = np.argsort(key, axis=-1, kind="stable")[..., :k]
    else:  # from the end; equal elements keep their order
        order = x.shape[-1] - 1 - np.argsort(key[..., ::-1], axis=-1, kind="stable")[..., ::-1][..., :k]
    return np.take_along_axis(x, order, axis=-1), order.astype(np.uint32)


def zeros(shape, dtype=np.float32):
    return np.zeros(shape, dtype)


def ones(shape, dtype=np.float32):
    return np.ones(shape, dtype)


def full(shape, fill_value, dtype=None):
    return np.full(shape, fill_value, dtype if dtype is not None else np.float32 if isinstance(fill_value, float) else None)


def constant(value, dtype=None):
    if dtype is None and isinstance(value, float):
        dtype = np.float32
    return np.asarray(value, dtype)


def _conv(x, w, bias, stride, padding, dilation, groups):
    n = np.ndim(w) - 2
    each = lambda v: (v,) * n if np.ndim(v) == 0 else tuple(v) * (n if len(v) == 1 else 1)
    stride, padding, dilation = each(stride), each(padding), each(dilation)
    x = np.pad(x, [(0, 0), (0, 0)] + [(p, p) for p in padding])
    size = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], dilation)]
    windows = np.lib.stride_tricks.sliding_window_view(x, size, axis=tuple(range(2, n + 2)))
    windows = windows[(slice(None), slice(None), *(slice(None, None, s) for s in stride),
                       *(slice(None, None, d) for d in dilation))]
    ci, co = w.shape[1], w.shape[0] // groups
    parts = [np.tensordot(windows[:, g * ci:(g + 1) * ci], w[g * co:(g + 1) * co],
                          axes=([1, *range(n + 2, 2 * n + 2)], [1, *range(2, n + 2)])) for g in range(groups)]
    out = np.moveaxis(np.concatenate(parts, axis=-1), -1, 1)
    return out if bias is None else out + np.reshape(bias, (1, -1) + (1,) * n)


def conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    return _conv(input, weight, bias, stride, padding, dilation, groups)


def conv3d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    return _conv(input, weight, bias, stride, padding, dilation, groups)


def all_gather(data, all_gather_dim, replica_groups):
    return np.concatenate([data] * len(replica_groups[0]), axis=all_gather_dim)


def all_reduce(data, replica_groups, reduce_op=np.add):
    r = data
    for _ in range(len(replica_groups[0]) - 1):
        r = reduce_op(r, data)
    return r


def reduce_scatter(data, reduce_scatter_dim, replica_groups, reduce_op=np.add):
    return np.split(all_reduce(data, replica_groups, reduce_op), len(replica_groups[0]), axis=reduce_scatter_dim)[0]


def all_to_all(data, split_dimension, concat_dimension, replica_groups):
    return np.concatenate(np.split(np.asarray(data), len(replica_groups[0]), axis=split_dimension), axis=concat_dimension)
