"""Evaluates the record of an NKI kernel with NumPy, call by call.

This is the reference for the instructions that become of the calls.  It is written from the description of the calls
(nki-frontend.md, sections 7 and 8), not from our instructions: operands are converted to float32, computed in float32,
and the result is converted to the type of dst.
"""
import numpy as np
from numpy.lib.stride_tricks import as_strided

_UNINITIALISED = 4  # of integers; floats are NaN

# ---- memory ---------------------------------------------------------------------------------------------------------


def _storage(tensor):
    """The memory of a tensor: on chip (partitions, elements), in HBM its elements."""
    _, memory, dtype, shape, _ = tensor
    n = int(np.prod(shape))
    value = np.nan if dtype.kind == "f" or dtype.name.startswith(("bfloat", "float")) else _UNINITIALISED
    flat = np.full(n, value).astype(dtype)
    return flat.reshape(shape[0], -1) if memory in ("sbuf", "psum") else flat


class _Memory:
    def __init__(self, tensors, arrays):
        self.tensors = tensors
        self.storage = [_storage(t) if t[4] < 0 else np.array(arrays[t[4]], dtype=t[2]).reshape(-1) for t in tensors]
        self.has_products = [np.zeros(s.shape, bool) if t[1] == "psum" else None for t, s in zip(tensors, self.storage)]

    def _of(self, storage, view):
        tensor, partition, offset, dims = view
        size = storage.itemsize
        if storage.ndim == 2:
            steps = [storage.strides[0]] + [size] * (len(dims) - 1)
            start = storage[partition:, offset:]
        else:
            steps, start = [size] * len(dims), storage[offset:]
        return as_strided(start, [n for n, _ in dims], [s * step for (_, s), step in zip(dims, steps)])

    def at(self, view):
        return self._of(self.storage[view[0]], view)

    def products_at(self, view):
        return self._of(self.has_products[view[0]], view)


# ---- numbers --------------------------------------------------------------------------------------------------------


def _f32(x):
    return np.asarray(x).astype(np.float32)


def _to(dtype, x):
    """float32 to an element of memory."""
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        x = np.where(np.isnan(x), 0, np.trunc(np.asarray(x, np.float64)))
        return np.clip(x, limits.min, limits.max).astype(dtype)
    if dtype.kind == "b":
        return np.asarray(x) != 0
    return np.asarray(x).astype(dtype)


def _rows(x):
    """(partitions, elements)"""
    return x.reshape(x.shape[0], -1)


_OPERATORS = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "max": np.maximum, "min": np.minimum, "pow": np.power,
    "is_eq": np.equal, "is_ne": np.not_equal, "is_gt": np.greater, "is_ge": np.greater_equal, "is_lt": np.less,
    "is_le": np.less_equal, "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor}
_BITS = {"bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
         "shift_left": np.left_shift, "shift_right_logical": None}


def _erf(x):
    from math import erf
    return np.vectorize(erf, otypes=[np.float64])(x.astype(np.float64))


def _in_double(f):
    return lambda x: f(x.astype(np.float64))


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _normal(x):
    return (1 + _erf(x / np.sqrt(2))) / 2


def _softplus(x):
    return np.logaddexp(0, x)


_FUNCTIONS = {
    "copy": lambda x: x, "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x.astype(np.float64)),
    "square": np.square, "abs": np.abs, "tanh": np.tanh, "sin": np.sin, "erf": _erf, "sign": np.sign, "arctan": np.arctan,
    "floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "reciprocal": lambda x: 1 / x, "relu": lambda x: np.maximum(x, 0), "sigmoid": _in_double(_sigmoid),
    "gelu": _in_double(lambda x: x * _normal(x)),
    "gelu_dx": _in_double(lambda x: _normal(x) + x * np.exp(-x * x / 2) / np.sqrt(2 * np.pi)),
    "gelu_apprx_tanh": _in_double(lambda x: x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))),
    "gelu_apprx_sigmoid": _in_double(lambda x: x * _sigmoid(1.702 * x)),
    "gelu_apprx_sigmoid_dx": _in_double(lambda x: _sigmoid(1.702 * x) * (1 + 1.702 * x * (1 - _sigmoid(1.702 * x)))),
    "silu": _in_double(lambda x: x * _sigmoid(x)), "silu_dx": _in_double(lambda x: _sigmoid(x) * (1 + x * (1 - _sigmoid(x)))),
    "softplus": _in_double(_softplus), "mish": _in_double(lambda x: x * np.tanh(_softplus(x))),
    "erf_dx": _in_double(lambda x: 2 / np.sqrt(np.pi) * np.exp(-x * x))}


def _shift_right(x, y):
    unsigned = x.astype(x.dtype.str.replace("i", "u")) if x.dtype.kind == "i" else x
    return (unsigned >> y.astype(unsigned.dtype)).astype(x.dtype)


def _apply(op, x, y):
    if op in _BITS:
        return _shift_right(x, y) if op == "shift_right_logical" else _BITS[op](x, y)
    return _f32(_OPERATORS[op](x, y))


# ---- the calls ------------------------------------------------------------------------------------------------------


class _Evaluation:
    def __init__(self, memory):
        self.m = memory

    def _read(self, view, op=None):
        x = _rows(self.m.at(view))
        return x if op in _BITS else _f32(x)

    def _operand(self, value, like, op=None):
        """A number, or a column of one element per partition."""
        if isinstance(value, tuple):
            return self._read(value, op)
        return np.asarray(value, like.dtype if op in _BITS else np.float32)

    def _write(self, view, x):
        dst = self.m.at(view)
        if self.m.tensors[view[0]][1] == "psum":
            self.m.products_at(view)[...] = False
        x = x if np.asarray(x).dtype == dst.dtype else _to(dst.dtype, x)
        dst[...] = np.broadcast_to(x, (dst.shape[0], dst.size // dst.shape[0])).reshape(dst.shape)

    def dma_copy(self, on, dst, src, **_):
        to, x = self.m.at(dst), self.m.at(src)
        x = x if x.dtype == to.dtype else _to(to.dtype, _f32(x))
        to[...] = x.reshape(to.shape)

    def dma_transpose(self, on, dst, src, **_):
        self.m.at(dst)[...] = self.m.at(src).T

    def nc_transpose(self, on, dst, data, **_):
        to = self.m.at(dst)
        to[...] = _rows(self.m.at(data)).T.reshape(to.shape)
        self.m.products_at(dst)[...] = True

    def tensor_copy(self, on, dst, src, **_):
        x = _rows(self.m.at(src))
        self._write(dst, x if x.dtype == self.m.at(dst).dtype else _f32(x))

    def tensor_copy_predicated(self, on, dst, src, predicate, reverse_pred):
        where = (_rows(self.m.at(predicate)) != 0) ^ bool(reverse_pred)
        old = _rows(self.m.at(dst))
        new = _rows(self.m.at(src)) if isinstance(src, tuple) else _to(old.dtype, np.float32(src))
        self._write(dst, np.where(where, new, old))

    def memset(self, on, dst, value, **_):
        to = self.m.at(dst)
        to[...] = np.asarray(value).astype(to.dtype)
        if self.m.tensors[dst[0]][1] == "psum":
            self.m.products_at(dst)[...] = False

    def nc_matmul(self, on, dst, stationary, moving, accumulate, **_):
        product = self._read(stationary).T @ self._read(moving)
        to = self.m.at(dst)
        adds = self.m.products_at(dst).copy() if accumulate is None else np.full(to.shape, bool(accumulate))
        product = product.reshape(to.shape)
        to[...] = np.where(adds, _f32(to) + product, product).astype(to.dtype)
        self.m.products_at(dst)[...] = True

    def tensor_tensor(self, on, dst, data1, data2, op, **_):
        x, y = _rows(self.m.at(data1)), _rows(self.m.at(data2))
        if on == "gpsimd" and x.dtype.kind in "iu" and y.dtype.kind in "iu" and op in ("add", "subtract", "multiply", "max", "min"):
            self._write(dst, _OPERATORS[op](x, y).astype(self.m.at(dst).dtype))
        else:
            self._write(dst, _apply(op, self._read(data1, op), self._read(data2, op)))

    def tensor_scalar(self, on, dst, data, op0, operand0, reverse0, op1, operand1, reverse1, **_):
        x = self._read(data, op0)
        for op, operand, reverse in ((op0, operand0, reverse0), (op1, operand1, reverse1)):
            if op is not None:
                y = self._operand(operand, x, op)
                x = _apply(op, y, x) if reverse else _apply(op, x, y)
        self._write(dst, x)

    def tensor_reduce(self, on, dst, op, data, axis, negate, **_):
        x = self.m.at(data) if op in _BITS else _f32(self.m.at(data))
        f = _BITS.get(op) or _OPERATORS[op]
        axes = tuple(a + x.ndim if a < 0 else a for a in axis)
        if op == "add":
            r = np.sum(x, axes, dtype=np.float32)
        else:
            r = x.reshape(*x.shape[:x.ndim - len(axes)], -1)
            r = f.reduce(r, axis=-1)
        r = _rows(np.asarray(r).reshape(x.shape[0], -1))
        self._write(dst, -r if negate else r)

    def tensor_partition_reduce(self, on, dst, op, data):
        x = self._read(data, op)
        f = _BITS.get(op) or _OPERATORS[op]
        self._write(dst, f.reduce(x, axis=0)[None])

    def activation(self, on, dst, op, data, bias, scale, reduce_op, reduce_res, **_):
        x = self._read(data)
        x = _f32(x * self._operand(1.0 if scale is None else scale, x))
        x = _f32(_FUNCTIONS[op](_f32(x + self._operand(0.0 if bias is None else bias, x))))
        self._write(dst, x)
        if reduce_res is not None:
            self._write(reduce_res, np.sum(x, axis=1, keepdims=True, dtype=np.float32))

    activation_reduce = activation

    def reciprocal(self, on, dst, data):
        self._write(dst, np.float32(1) / self._read(data))

    def _affine(self, partitions, pattern, offset, channel_multiplier):
        x = np.zeros([partitions, *pattern[1::2]], np.int64) + (offset or [0])[0]
        x += np.arange(partitions).reshape(-1, *[1] * (x.ndim - 1)) * (channel_multiplier or [0])[0]
        for k, (step, n) in enumerate(zip(pattern[::2], pattern[1::2])):
            x += np.arange(n).reshape(-1, *[1] * (x.ndim - 2 - k)) * step
        return x

    def iota(self, on, dst, pattern, offset, channel_multiplier):
        to = self.m.at(dst)
        to[...] = self._affine(to.shape[0], pattern, offset, channel_multiplier).reshape(to.shape).astype(to.dtype)

    def scalar_tensor_tensor(self, on, dst, data, op0, operand0, op1, operand1, reverse0, reverse1):
        x, z = self._read(data), self._read(operand1)
        y = self._operand(operand0, x)
        x = _apply(op0, y, x) if reverse0 else _apply(op0, x, y)
        self._write(dst, _apply(op1, z, x) if reverse1 else _apply(op1, x, z))

    def _reduce_rows(self, view, op, x):
        if view is not None:
            self._write(view, np.sum(x, 1, np.float32, keepdims=True) if op == "add" else _OPERATORS[op].reduce(x, axis=1)[:, None])

    def tensor_scalar_reduce(self, on, dst, data, op0, operand0, reduce_op, reduce_res, reverse0, **_):
        x = self._read(data)
        y = self._operand(operand0, x)
        x = _apply(op0, y, x) if reverse0 else _apply(op0, x, y)
        self._write(dst, x)
        self._reduce_rows(reduce_res, reduce_op, x)

    def select_reduce(self, on, dst, predicate, on_true, on_false, reduce_res, reverse_pred, **_):
        where = (_rows(self.m.at(predicate)) != 0) ^ bool(reverse_pred)
        x, y = (self._read(v) if isinstance(v, tuple) else np.float32(v) for v in (on_true, on_false))
        x = np.where(where, x, y)
        self._write(dst, x)
        self._reduce_rows(reduce_res, "max", x)

    def affine_select(self, on, dst, pattern, channel_multiplier, on_true_tile, on_false_value, cmp_op, offset):
        x = self._read(on_true_tile)
        numbers = self._affine(x.shape[0], pattern, offset, channel_multiplier)
        self._write(dst, np.where(_OPERATORS[cmp_op or "is_eq"](numbers, 0).reshape(x.shape), x, np.float32(on_false_value)))

    def tensor_tensor_scan(self, on, dst, data0, data1, initial, op0, op1, reverse0, reverse1):
        x, y = self._read(data0), self._read(data1)
        r, out = np.broadcast_to(self._operand(initial, x).reshape(-1, 1)[:, 0], x.shape[:1]), np.empty_like(x)
        for k in range(x.shape[1]):
            r = _apply(op0, r, x[:, k]) if reverse0 else _apply(op0, x[:, k], r)
            r = _apply(op1, y[:, k], r) if reverse1 else _apply(op1, r, y[:, k])
            out[:, k] = r
        self._write(dst, out)

    def tensor_scalar_cumulative(self, on, dst, src, op0, op1, imm0, imm1, reduce_cmd):
        x = self._read(src)
        x = _apply(op0, x, self._operand(imm0, x))
        start = {"multiply": 1.0, "max": -np.inf, "min": np.inf}.get(op1, 0.0) if imm1 is None else imm1
        r, out = np.broadcast_to(self._operand(start, x).reshape(-1, 1)[:, 0], x.shape[:1]), np.empty_like(x)
        for k in range(x.shape[1]):
            r = out[:, k] = _apply(op1, r, x[:, k])
        self._write(dst, out)

    def bn_stats(self, on, dst, data):
        x = self._read(data).astype(np.float64)
        parts = []
        for half in (x[:, 0::2], x[:, 1::2]):
            n = half.shape[1]
            mean, var = (half.mean(1), half.var(1)) if n else (np.zeros(len(x)), np.zeros(len(x)))
            parts += [np.full(len(x), n), mean, var * n]
        self._write(dst, _f32(np.stack(parts, 1)))

    def bn_aggr(self, on, dst, data):
        x = self._read(data).astype(np.float64)
        count, mean, squares = x[:, 0::3], x[:, 1::3], x[:, 2::3]
        total = count.sum(1, keepdims=True)
        center = (count * mean).sum(1, keepdims=True) / total
        var = (squares + count * (mean - center) ** 2).sum(1, keepdims=True) / total
        self._write(dst, _f32(np.hstack([center, var])))

    def max8(self, on, dst, src):
        self._write(dst, -np.sort(-self._read(src), axis=1)[:, :8])

    def _places(self, data, vals, slots):
        """Where the values are; each slot takes the first place that no slot before it has.  -1: nowhere."""
        places = np.full(vals.shape, -1, np.int64)
        for p in range(len(data)):
            for k in slots:
                free = [i for i in np.flatnonzero(data[p] == vals[p, k]) if i not in places[p]]
                places[p, k] = free[0] if free else -1
        return places

    def _write_places(self, view, places):
        to = self.m.at(view)
        to[...] = places.astype(to.dtype).reshape(to.shape)

    def nc_find_index8(self, on, dst, data, vals):
        self._write_places(dst, self._places(self._read(data), self._read(vals), range(8)))

    def nc_match_replace8(self, on, dst, data, vals, imm, dst_idx):
        x = self._read(data).copy()
        places = self._places(x, self._read(vals), range(7, -1, -1))
        for p, k in zip(*np.nonzero(places >= 0)):
            x[p, places[p, k]] = imm
        self._write(dst, x)
        if dst_idx is not None:
            self._write_places(dst_idx, places)


def evaluate(record, arrays):
    """record: (tensors, calls, outputs) of compiler/trace/nki/run.c.  Returns the outputs as arrays."""
    tensors, calls, outputs = record
    memory = _Memory(tensors, arrays)
    evaluation = _Evaluation(memory)
    with np.errstate(all="ignore"):
        for name, engine, values in calls:
            values.pop("engine", None)
            getattr(evaluation, name)(engine, **values)
    return [memory.storage[i].reshape(tensors[i][3]).copy() for i in outputs]
