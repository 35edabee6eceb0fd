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


_FUNCTIONS = {
    "copy": lambda x: x, "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x.astype(np.float64)),
    "square": np.square, "abs": np.abs, "tanh": np.tanh, "sin": np.sin, "erf": _erf, "sign": np.sign, "arctan": np.arctan}


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

    def iota(self, on, dst, pattern, offset, channel_multiplier):
        to = self.m.at(dst)
        x = np.zeros([to.shape[0], *pattern[1::2]], np.int64) + (offset or [0])[0]
        x += np.arange(to.shape[0]).reshape(-1, *[1] * (x.ndim - 1)) * (channel_multiplier or [0])[0]
        for k, (step, n) in enumerate(zip(pattern[::2], pattern[1::2])):
            x += np.arange(n).reshape(-1, *[1] * (x.ndim - 2 - k)) * step
        to[...] = x.reshape(to.shape).astype(to.dtype)


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
