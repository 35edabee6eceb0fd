"""Evaluates the record of an NKI kernel with NumPy, call by call.

This is the reference for the instructions that become of the calls.  It is written from the public description of
the calls, not from our instructions: operands are converted to float32, computed in float32, and the result is converted to
the type of dst.

In a run with other roundings, which nkx.rounding explains, sums and functions move by some units in the last place of
float32; what they round to in narrower types may then be a neighbour.  A second such run moves each the other way, so that
every number near the middle of two neighbours becomes the other one in one of the runs.  Whole numbers stay: they may count
or select.
"""
import numpy as np
from ml_dtypes import float8_e4m3fn, float8_e5m2
from numpy.lib.stride_tricks import as_strided

_UNINITIALISED = 4  # of integers; floats are NaN
_UNITS = 4 * 2.0 ** -24  # by how much of itself a sum or a function moves in a run with other roundings

# ---- memory ---------------------------------------------------------------------------------------------------------


def _storage(tensor):
    """The memory of a tensor: on chip (partitions, elements), in HBM its elements."""
    _, memory, dtype, shape, *_ = tensor
    n = int(np.prod(shape))
    if tensor[6] is not None:
        return np.frombuffer(tensor[6], dtype)
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
        size, dtype = storage.itemsize, storage.dtype
        storage = storage.view(f"u{size}")  # NumPy strides no type that it cannot name, such as float8_e5m2
        if storage.ndim == 2:
            steps = [storage.strides[0]] + [size] * (len(dims) - 1)
            start = storage[partition:, offset:]
        else:
            steps, start = [size] * len(dims), storage[offset:]
        return as_strided(start, [n for n, _ in dims], [s * step for (_, s), step in zip(dims, steps)]).view(dtype)

    def storage_of(self, view):
        """The elements of its tensor, as those of the view's type."""
        storage = self.storage[view[0]]
        return storage if len(view) < 6 or storage.dtype == view[5] else storage.view(view[5])

    def type_of(self, view):
        return self.tensors[view[0]][5] if len(view) == 4 else view[6]

    def placed(self, view):
        """A view that registers move, at the place where it is now."""
        if len(view) == 4:
            return view
        tensor, partition, offset, dims, terms = view[:5]
        offset += sum(int(self.storage[register].flat[0]) * elements for register, _, _, elements in terms)
        storage = self.storage_of(view)
        free = dims[1:] if storage.ndim == 2 else dims
        if offset < 0 or offset + sum((n - 1) * s for n, s in free) >= storage.shape[-1]:
            raise IndexError(f"a register moves a view out of {self.tensors[tensor][0]}")
        return tensor, partition, offset, dims

    def at(self, view):
        return self._of(self.storage_of(view), self.placed(view))

    def products_at(self, view):
        return self._of(self.has_products[view[0]], self.placed(view))


# ---- numbers --------------------------------------------------------------------------------------------------------


def _f32(x):
    return np.asarray(x).astype(np.float32)


def _to(dtype, x):
    """float32 to an element of memory: the nearest, of two the even one; NaN is 0 as an integer."""
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        x = np.where(np.isnan(x), 0, np.rint(np.asarray(x, np.float64)))
        return np.clip(x, limits.min, limits.max).astype(dtype)
    if dtype.kind == "b":
        return np.asarray(x) > 0.5
    return np.asarray(x).astype(dtype)


def _tfloat32(x):
    """The nearest numbers with 10 bits after the point of the mantissa, of two the even one."""
    fraction, exponent = np.frexp(x.astype(np.float64))
    return _f32(np.ldexp(np.rint(fraction * 2.0 ** 11), exponent - 11))


def _snake(x):
    """The elements of 16 partitions in one row: down the even columns, up the odd ones."""
    columns = x.T.copy()
    columns[1::2] = columns[1::2, ::-1]
    return columns.reshape(-1)


def _snake_back(x):
    columns = x.reshape(-1, 16).copy()
    columns[1::2] = columns[1::2, ::-1]
    return columns.T


def _rows(x):
    """(partitions, elements)"""
    return x.reshape(x.shape[0], -1)


_OPERATORS = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "max": np.maximum, "min": np.minimum, "pow": np.power,
    "is_eq": np.equal, "is_ne": np.not_equal, "is_gt": np.greater, "is_ge": np.greater_equal, "is_lt": np.less,
    "is_le": np.less_equal, "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor}


def _abs_max(x, y):
    return np.where((np.abs(x) >= np.abs(y)) | np.isnan(x), x, y)


def _abs_min(x, y):
    return np.where((np.abs(x) <= np.abs(y)) | np.isnan(x), x, y)


_OPERATORS |= {"abs_max": _abs_max, "abs_min": _abs_min, "mod": np.fmod}
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


def _fold(f, x):
    """f over the last axis."""
    if isinstance(f, np.ufunc):
        return f.reduce(x, axis=-1)
    r = x[..., 0]
    for k in range(1, x.shape[-1]):
        r = f(r, x[..., k])
    return r


# ---- packed elements ------------------------------------------------------------------------------------------------

_FORMATS = {"float8_e4m3fn_x4": (float8_e4m3fn, 8), "float8_e5m2_x4": (float8_e5m2, 15)}


def _unpack(x, scale, name):
    """(4 * partitions, elements): the packed elements times their scales."""
    if name == "float4_e2m1fn_x4":
        table = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
        parts = [x >> np.uint16(4 * j) & np.uint16(15) for j in range(4)]
        parts = [np.where(v & 8, -1, 1).astype(np.float32) * table[v & 7] for v in parts]
    else:
        parts = [(x >> np.uint32(8 * j)).astype(np.uint8).view(_FORMATS[name][0]).astype(np.float32) for j in range(4)]
    p = np.arange(len(x))
    s = scale[p // 32 * 32 + p % 32 // 8].astype(np.int64)
    factor = np.where(s == 255, np.nan, np.ldexp(1.0, s - 127)).astype(np.float32)
    return np.stack([v * factor for v in parts], 1).reshape(4 * len(x), -1)


# ---- random numbers -------------------------------------------------------------------------------------------------


def _spread(x):
    x = (x ^ (x >> np.uint32(16))) * np.uint32(0x85ebca6b)
    x = (x ^ (x >> np.uint32(13))) * np.uint32(0xc2b2ae35)
    return x ^ (x >> np.uint32(16))


class _Generators:
    """XORWOW for each partition; nisa/nisa.h says how a seed makes the words."""

    def __init__(self, n, seed=0):
        lane, k, w = np.ogrid[0:128, 0:n, 0:6]
        self.words = _spread(np.uint32(seed) + np.uint32(0x9e3779b9) * (1 + w + 6 * (k + 4 * lane)).astype(np.uint32))

    def next(self, partitions, elements):
        out = np.empty((partitions, elements), np.uint32)
        for i in range(elements):
            w = self.words[:partitions, i % self.words.shape[1]]
            t = w[:, 0] ^ (w[:, 0] >> np.uint32(2))
            w[:, :4] = w[:, 1:5].copy()
            w[:, 4] = (w[:, 4] ^ (w[:, 4] << np.uint32(4))) ^ (t ^ (t << np.uint32(1)))
            w[:, 5] += np.uint32(362437)
            out[:, i] = w[:, 4] + w[:, 5]
        return out


# ---- the calls ------------------------------------------------------------------------------------------------------


class _Evaluation:
    noise = None  # in a run with other roundings the generator of the directions, and
    direction = 1  # 1 or -1, by which they are multiplied

    def __init__(self, memory):
        self.m = memory
        self.generators = {"vector": _Generators(4), "gpsimd": _Generators(1)}
        self.registers = {"scalar": np.full((128, 1), np.nan, np.float32), "vector": np.full((128, 1), np.nan, np.float32)}

    def _read(self, view, op=None):
        x = _rows(self.m.at(view))
        return x if op in _BITS else _f32(x)

    def _operand(self, value, like, op=None):
        """A number, or a column of one element per partition."""
        if isinstance(value, tuple):
            return self._read(value, op)
        return np.asarray(value, like.dtype if op in _BITS else np.float32)

    def _moved(self, x, size=None):
        """A result of sums and functions, moved in a run with other roundings by a share of its size: the sum of the
        magnitudes of its terms, or its own."""
        if self.noise is None:
            return x
        size = np.abs(x) if size is None else size
        moved = x + _UNITS * self.direction * size * self.noise.choice((-1.0, 1.0), np.shape(x))
        return np.where((x == np.rint(x)) & (np.abs(x) < 2 ** 24) | ~np.isfinite(moved), x, moved).astype(np.float32)

    def _sum(self, x, axis):
        return self._moved(np.sum(x, axis, np.float32), None if self.noise is None else np.sum(np.abs(x), axis))

    def _product(self, x, y):
        """x.T @ y"""
        product = x.T @ y
        if self.noise is None:
            return product
        terms = _f32(x != 0).T @ _f32(y != 0)  # one term, as in a transpose by a product with an identity, is exact
        return np.where(terms > 1, self._moved(product, np.abs(x).T @ np.abs(y)), product)

    def _write(self, view, x):
        dst = self.m.at(view)
        if self.m.tensors[view[0]][1] == "psum":
            self.m.products_at(view)[...] = False
        x = x if np.asarray(x).dtype == dst.dtype else _to(dst.dtype, x)
        dst[...] = np.broadcast_to(x, (dst.shape[0], dst.size // dst.shape[0])).reshape(dst.shape)

    def _rows_at(self, view, index, oob_mode):
        """The parts of HBM that the row numbers name, one for each partition; None for one that is skipped."""
        tensor, partition, offset, dims = self.m.placed(view)
        shape = self.m.tensors[tensor][3]
        step = self.m.storage_of(view).size // shape[0]
        for at in self.m.at(index).reshape(-1).tolist():
            if not 0 <= at < shape[0] and oob_mode != "skip":
                raise IndexError(f"row {at} of {self.m.tensors[tensor][0]}, which has {shape[0]}")
            yield self.m.at((tensor, partition, offset + at * step, dims[1:], [], *view[5:])) if 0 <= at < shape[0] else None

    def dma_copy(self, on, dst, src, dst_index=None, src_index=None, oob_mode=None, **_):
        if src_index is not None:
            for to, row in zip(self.m.at(dst), list(self._rows_at(src, src_index, oob_mode))):
                if row is not None:
                    to[...] = row.reshape(to.shape)
            return
        if dst_index is not None:
            for row, x in zip(self._rows_at(dst, dst_index, oob_mode), self.m.at(src)):
                if row is not None:
                    row[...] = x.reshape(row.shape)
            return
        to, x = self.m.at(dst), self.m.at(src)
        x = x if x.dtype == to.dtype else _to(to.dtype, _f32(x))
        to[...] = x.reshape(to.shape)

    def dma_compute(self, on, dst, src, other, reduce_op, oob_mode, dst_index, src_index):
        if dst_index is not None:
            for row, x in zip(self._rows_at(dst, dst_index, oob_mode), self.m.at(src)):
                if row is not None:
                    row[...] = _to(row.dtype, _f32(row) + _f32(x).reshape(row.shape))
            return
        to = self.m.at(dst)
        x = np.stack(list(self._rows_at(src, src_index, oob_mode))) if src_index is not None else self.m.at(src)
        to[...] = _to(to.dtype, _f32(x).reshape(to.shape) + _f32(self.m.at(other)).reshape(to.shape))

    def dma_transpose(self, on, dst, src, **_):
        x = self.m.at(src)
        self.m.at(dst)[...] = np.swapaxes(x, 0, x.ndim - 1)

    def nc_transpose(self, on, dst, data, **_):
        to = self.m.at(dst)
        to[...] = _rows(self.m.at(data)).copy().T.reshape(to.shape)
        if self.m.tensors[dst[0]][1] == "psum":
            self.m.products_at(dst)[...] = on == "tensor"

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

    def nc_matmul(self, on, dst, stationary, moving, accumulate, is_transpose=False, perf_mode=None, **_):
        x, y = self._read(stationary), self._read(moving)
        if not is_transpose:
            x, y = (_tfloat32(v) if self.m.type_of(view) == "tfloat32" else v for v, view in ((x, stationary), (y, moving)))
        if perf_mode == "double_row":
            x, y = (v.reshape(len(v), 2, -1).swapaxes(0, 1).reshape(2 * len(v), -1) for v in (x, y))
        self._add_product(dst, x.T if is_transpose else self._product(x, y), accumulate)

    def _add_product(self, dst, product, accumulate):
        to = self.m.at(dst)
        adds = self.m.products_at(dst).copy() if accumulate is None else np.full(to.shape, bool(accumulate))
        product = product.reshape(to.shape)
        to[...] = np.where(adds, _f32(to) + product, product).astype(to.dtype)
        self.m.products_at(dst)[...] = True

    def quantize_mx(self, on, dst, src, dst_scale):
        x = self._read(src)
        small, most = _FORMATS[self.m.type_of(dst)]
        groups = x.reshape(len(x) // 8, 8, -1, 4)
        a = np.abs(groups).max((1, 3))
        exponent = np.where(a > 0, np.floor(np.log2(a.astype(np.float64))) - (most - 1), -127)
        scale = np.where(np.isfinite(a), np.maximum(exponent, -127) + 127, 255).astype(np.uint8)
        by = np.where(scale == 255, 1, np.ldexp(1.0, scale.astype(np.int64) - 127))[:, None, :, None]
        bits = (groups / by).astype(np.float32).astype(small).view(np.uint8).reshape(len(x), -1, 4)
        to, scales = self.m.at(dst), _rows(self.m.at(dst_scale))
        to[...] = np.ascontiguousarray(bits).view(np.uint32).reshape(to.shape)
        for k, row in enumerate(scale):
            scales[k // 4 * 32 + k % 4] = row
        self.m.at(dst_scale)[...] = scales.reshape(self.m.at(dst_scale).shape)

    def nc_matmul_mx(self, on, dst, stationary, moving, stationary_scale, moving_scale, accumulate, **_):
        x, y = (_unpack(_rows(self.m.at(v)), _rows(self.m.at(s)), self.m.type_of(v))
                for v, s in ((stationary, stationary_scale), (moving, moving_scale)))
        self._add_product(dst, self._product(x, y), accumulate)

    def tensor_tensor(self, on, dst, data1, data2, op, **_):
        x, y = _rows(self.m.at(data1)), _rows(self.m.at(data2))
        exact = ("add", "subtract", "multiply") if x.dtype.kind != y.dtype.kind else ("add", "subtract", "multiply", "max", "min")
        if on == "gpsimd" and x.dtype.kind in "iu" and y.dtype.kind in "iu" and op in exact:
            self._write(dst, _OPERATORS[op](x, y).astype(self.m.at(dst).dtype))
        else:
            self._write(dst, _apply(op, self._read(data1, op), self._read(data2, op)))

    def tensor_scalar(self, on, dst, data, op0, operand0, reverse0, op1, operand1, reverse1, **_):
        x = self._read(data, op0)
        for op, operand, reverse in ((op0, operand0, reverse0), (op1, operand1, reverse1)):
            if op in _FUNCTIONS:
                x = self._function(op, x)
            elif op is not None:
                y = self._operand(operand, x, op)
                x = _apply(op, y, x) if reverse else _apply(op, x, y)
        self._write(dst, x)

    def tensor_reduce(self, on, dst, op, data, axis, negate, **_):
        x = self.m.at(data) if op in _BITS else _f32(self.m.at(data))
        f = _BITS.get(op) or _OPERATORS[op]
        axes = tuple(a + x.ndim if a < 0 else a for a in axis)
        if op == "add":
            r = self._sum(x, axes)
        else:
            r = x.reshape(*x.shape[:x.ndim - len(axes)], -1)
            r = _fold(f, r)
        r = _rows(np.asarray(r).reshape(x.shape[0], -1))
        self._write(dst, -r if negate else r)

    def tensor_partition_reduce(self, on, dst, op, data):
        x = self._read(data, op)
        f = _BITS.get(op) or _OPERATORS[op]
        self._write(dst, (self._sum(x, 0) if op == "add" else f.reduce(x, axis=0))[None])

    def _function(self, op, x):
        r = _f32(_FUNCTIONS[op](x))
        return r if op in ("copy", "abs", "relu", "sign", "floor", "ceil", "trunc") else self._moved(r)

    def activation(self, on, dst, op, data, bias, scale, reduce_op, reduce_res, reduce_cmd=None):
        x = self._read(data)
        x = _f32(x * self._operand(1.0 if scale is None else scale, x))
        x = self._function(op, _f32(x + self._operand(0.0 if bias is None else bias, x)))
        self._write(dst, x)
        self._accumulate("scalar", data, "add", x, reduce_cmd or ("idle" if reduce_res is None else "reset_reduce"), reduce_res)

    def activation_reduce(self, on, **values):
        self.activation(on, reduce_cmd="reset_reduce", **values)

    def _accumulate(self, engine, like, op, x, cmd, result, init=None, negate=False):
        """The accumulator registers of the partitions of `like`."""
        at = like[1] if self.m.tensors[like[0]][1] in ("sbuf", "psum") else 0
        registers = self.registers[engine][at:at + len(x)]
        if cmd != "idle":
            f, start = _OPERATORS[op], {"multiply": 1, "max": -np.inf, "min": np.inf, "abs_min": np.inf}.get(op, 0)
            r = self._sum(x, 1) if op == "add" else _fold(f, x)
            if cmd == "reset":
                registers[...] = start
            elif cmd == "reset_reduce":
                registers[:, 0] = r
            else:
                registers[:, 0] = f(registers[:, 0], r) if cmd == "reduce" else f(r, np.float32(init))
        if result is not None:
            self._write(result, -registers if negate else registers.copy())

    def reciprocal(self, on, dst, data):
        self._write(dst, self._moved(np.float32(1) / self._read(data)))

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

    def tensor_scalar_reduce(self, on, dst, data, op0, operand0, reduce_op, reduce_res, reverse0, reduce_cmd, reduce_init, reduce_res_negate):
        x = self._read(data)
        y = self._operand(operand0, x)
        x = _apply(op0, y, x) if reverse0 else _apply(op0, x, y)
        self._write(dst, x)
        self._accumulate("vector", dst, reduce_op, x, reduce_cmd or "reset_reduce", reduce_res, reduce_init, reduce_res_negate)

    def select_reduce(self, on, dst, predicate, on_true, on_false, reduce_res, reduce_cmd, reduce_op, reverse_pred):
        where = (_rows(self.m.at(predicate)) != 0) ^ bool(reverse_pred)
        x, y = (self._read(v) if isinstance(v, tuple) else np.float32(v) for v in (on_true, on_false))
        x = np.where(where, x, y)
        self._write(dst, x)
        self._accumulate("vector", dst, "max", x, reduce_cmd or ("idle" if reduce_res is None else "reset_reduce"), reduce_res)

    def range_select(self, on, dst, on_true_tile, comp_op0, comp_op1, bound0, bound1, reduce_cmd, reduce_res, reduce_op, range_start, on_false_value):
        x = self._read(on_true_tile)
        i = np.arange(x.shape[1], dtype=np.float32) + np.float32(range_start or 0)
        where = _OPERATORS[comp_op0](i, self._operand(bound0, x)) & _OPERATORS[comp_op1](i, self._operand(bound1, x))
        x = np.where(where, x, np.float32(np.finfo(np.float32).min if on_false_value is None else on_false_value))
        self._write(dst, x)
        self._accumulate("vector", dst, "max", x, reduce_cmd or "reset_reduce", reduce_res)

    def exponential(self, on, dst, src, max_value, reduce_res, reduce_cmd, reduce_init):
        x = self._read(src)
        x = self._function("exp", x - self._operand(max_value or 0.0, x))
        self._write(dst, x)
        self._accumulate("vector", dst, "add", x, reduce_cmd or ("idle" if reduce_res is None else "reset_reduce"), reduce_res, reduce_init or 0)

    def activate2(self, on, dst, op, data, imm0, imm1, op0, op1, relu_param, reverse0, reverse1, reduce_op, reduce_res, reduce_cmd):
        x = self._read(data)
        for f, y, reverse in ((op0, imm0, reverse0), (op1, imm1, reverse1)):
            if f != "bypass":
                y = self._operand(y, x)
                x = _apply(f, y, x) if reverse else _apply(f, x, y)
        x = np.where(x > 0, x, np.float32(relu_param or 0) * x) if op == "prelu" else self._function(op, x)
        self._write(dst, x)
        self._accumulate("scalar", dst, reduce_op or "add", x, reduce_cmd or ("idle" if reduce_res is None else "reset_reduce"), reduce_res)

    def dropout(self, on, dst, data, prob):
        x = _rows(self.m.at(data))
        u = _f32(self.generators["vector"].next(*x.shape) >> np.uint32(8)) / np.float32(2 ** 24)
        self._write(dst, np.where(u >= self._operand(prob, u), x, np.zeros_like(x)))

    def rng(self, on, dst):
        to = self.m.at(dst)
        bits = self.generators[on].next(to.shape[0], to.size // to.shape[0])
        to[...] = bits.astype(to.dtype).reshape(to.shape)

    def rand2(self, on, dst, min, max):
        to = self.m.at(dst)
        u = _f32(self.generators[on].next(to.shape[0], to.size // to.shape[0]) >> np.uint32(8)) / np.float32(2 ** 24)
        low, high = self._operand(min, u), self._operand(max, u)
        self._write(dst, low + u * (high - low))

    def set_rng_seed(self, on, src_seeds):
        self.generators[on] = _Generators(self.generators[on].words.shape[1], int(self.m.at(src_seeds).reshape(-1).view(np.uint32)[0]))

    def rand_set_state(self, on, src_seeds):
        x = _rows(self.m.at(src_seeds))
        self.generators[on].words[:len(x)] = x.reshape(len(x), -1, 6)

    def rand_get_state(self, on, dst):
        to = self.m.at(dst)
        to[...] = self.generators[on].words[:len(to)].reshape(to.shape)

    def nc_stream_shuffle(self, on, dst, src, shuffle_mask):
        x, to = _rows(self.m.at(src)).copy(), self.m.at(dst)
        for p in range(len(x)):
            if shuffle_mask[p % 32] != 255:
                to[p] = x[p // 32 * 32 + shuffle_mask[p % 32]].reshape(to[p].shape)

    def nc_n_gather(self, on, dst, data, indices):
        self._write(dst, np.take_along_axis(_rows(self.m.at(data)), _rows(self.m.at(indices)).astype(np.int64), 1))

    def local_gather(self, on, dst, src_buffer, index, num_elem_per_idx, num_valid_indices):
        x, i = _rows(self.m.at(src_buffer)), _rows(self.m.at(index))
        run = (num_elem_per_idx or [1])[0]
        parts = []
        for p in range(0, len(x), 16):
            flat = i[p:p + 16].flatten(order="F").astype(np.int64)[:(num_valid_indices or [None])[0]]
            parts.append(x[p:p + 16].reshape(16, -1, run)[:, flat].reshape(16, -1))
        self._write(dst, np.concatenate(parts))

    def sequence_bounds(self, on, dst, segment_ids):
        ids = self._read(segment_ids)[0]
        n, first, last = len(ids), [], []
        for k, v in enumerate(ids):
            a = b = k
            while a and ids[a - 1] == v:
                a -= 1
            while b < n and ids[b] == v:
                b += 1
            first.append(a if v else n)
            last.append(b if v else -1)
        self._write(dst, np.array([first + last], np.float32))

    def nonzero_with_count(self, on, dst, src, index_offset, padding_val):
        x, to = self._read(src), self.m.at(dst)
        for p in range(0, len(x), 16):
            places = np.flatnonzero(x[p]) + (index_offset or [0])[0]
            row = np.full(x.shape[1] + 1, (padding_val or [-1])[0], np.int64)
            row[:len(places)], row[-1] = places, len(places)
            to[p] = row.astype(to.dtype).reshape(to[p].shape)

    def topk(self, on, val_dst, idx_dst, src, n):
        x, values, numbers = self._read(src), self.m.at(val_dst), self.m.at(idx_dst)
        values, numbers = _rows(values), _rows(numbers)
        for g in range(0, len(x), 16):
            v = _snake(x[g:g + 16])[:n[0]]
            nan = np.isnan(v)
            best = np.lexsort((-np.arange(n[0]), np.where(nan, 0, v), ~nan))[n[0] - 16 * values.shape[1]:]
            values[g:g + 16] = _snake_back(v[best]).astype(values.dtype)
            numbers[g:g + 16] = _snake_back(best).astype(numbers.dtype)

    def core_barrier(self, on, data, cores):
        pass

    def sendrecv(self, on, src, dst, **_):
        self._write(dst, _rows(self.m.at(src)).copy())

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
        registers = self.registers["vector"][dst[1]:dst[1] + len(x)]
        start = {"multiply": 1.0, "max": -np.inf, "min": np.inf}.get(op1, 0.0) if imm1 is None else imm1
        r = registers[:, 0].copy() if reduce_cmd == "reduce" else self._operand(start, x).reshape(-1, 1)[:, 0]
        r, out = np.broadcast_to(r, x.shape[:1]), np.empty_like(x)
        for k in range(x.shape[1]):
            r = out[:, k] = _apply(op1, r, x[:, k])
        registers[:, 0] = r
        self._write(dst, out)

    def bn_stats(self, on, dst, data):
        x = self._read(data).astype(np.float64)
        parts = []
        for half in (x[:, 0::2], x[:, 1::2]):
            n = half.shape[1]
            mean, var = (half.mean(1), half.var(1)) if n else (np.zeros(len(x)), np.zeros(len(x)))
            parts += [np.full(len(x), n), mean, var * n]
        self._write(dst, self._moved(_f32(np.stack(parts, 1))))

    def bn_aggr(self, on, dst, data):
        x = self._read(data).astype(np.float64)
        count, mean, squares = x[:, 0::3], x[:, 1::3], x[:, 2::3]
        total = count.sum(1, keepdims=True)
        center = (count * mean).sum(1, keepdims=True) / total
        var = (squares + count * (mean - center) ** 2).sum(1, keepdims=True) / total
        self._write(dst, self._moved(_f32(np.hstack([center, var]))))

    def max8(self, on, dst, src):
        self._write(dst, -np.sort(-self._read(src), axis=1)[:, :8])

    def _places(self, data, vals, slots):
        """Where the values are; each slot takes the first place that no slot before it has.  -1: nowhere."""
        places = np.full(vals.shape, -1, np.int64)
        free = np.ones(data.shape, bool)
        for k in slots:
            fits = free & (data == vals[:, k:k + 1])
            p = np.flatnonzero(fits.any(1))
            places[p, k] = fits[p].argmax(1)
            free[p, places[p, k]] = False
        return places

    def _write_places(self, view, places):
        to = self.m.at(view)
        to[...] = places.astype(to.dtype).reshape(to.shape)

    def nc_find_index8(self, on, dst, data, vals):
        self._write_places(dst, self._places(self._read(data), self._read(vals), range(8)))

    def nc_match_replace8(self, on, dst, data, vals, imm, dst_idx):
        x = self._read(data).copy()
        places = self._places(x, self._read(vals), range(7, -1, -1))
        p, k = np.nonzero(places >= 0)
        x[p, places[p, k]] = imm
        self._write(dst, x)
        if dst_idx is not None:
            self._write_places(dst_idx, places)


# ---- registers, and loops and branches on the device ----------------------------------------------------------------


def _wrapped(dtype, x):
    """An integer as a register of this type has it: its lowest 32 bits."""
    x = int(x) & 0xffffffff
    return dtype.type(x - (1 << 32) if dtype.kind == "i" and x >> 31 else x)


class _Sequencer(_Evaluation):
    """Runs the calls one after another: those of a loop again and again."""
    _INTEGERS = {"add": lambda x, y: x + y, "subtract": lambda x, y: x - y, "multiply": lambda x, y: x * y,
                 "bitwise_and": lambda x, y: x & y, "bitwise_or": lambda x, y: x | y, "bitwise_xor": lambda x, y: x ^ y,
                 "shift_left": lambda x, y: x << y, "shift_right_logical": lambda x, y: x >> y}

    def __init__(self, memory, calls):
        super().__init__(memory)
        self.calls = calls

    def _number(self, value):
        """A parameter that is a register or a number."""
        return self.m.storage[value[0]].flat[0] if isinstance(value, tuple) else value

    def _set(self, register, value):
        self.m.storage[register[0]].flat[0] = value

    def register_load(self, on, dst, src):
        self._set(dst, self.m.at(src).reshape(()))

    def register_store(self, on, dst, src):
        to, x = self.m.at(dst), self._number(src)
        to[...] = x if to.dtype.kind == "f" else np.array(int(x) & (1 << 8 * to.itemsize) - 1, np.uint64).astype(to.dtype)

    def register_move(self, on, dst, src):
        self._set(dst, self._number(src))

    def register_alu(self, on, dst, op, x, y):
        kind = self.m.storage[(x if isinstance(x, tuple) else y)[0]].dtype
        x, y = self._number(x), self._number(y)
        if kind.kind == "f":
            x, y = np.float32(x), np.float32(y)
            self._set(dst, _OPERATORS[op](x, y))
        elif op in self._INTEGERS:
            self._set(dst, _wrapped(kind, self._INTEGERS[op](int(x), int(y))))
        else:
            self._set(dst, _OPERATORS[op](int(x), int(y)))

    def _part(self, begin):
        """The places of what belongs to the loop or branch: its middle, or None, and its end."""
        depth, middle = 0, None
        for i in range(begin, len(self.calls)):
            name = self.calls[i][1]
            depth += (name in ("device_for", "device_while", "device_if")) - (name == "device_end")
            if name in ("device_do", "device_else") and depth == 1:
                middle = i
            if not depth:
                return middle, i
        raise ValueError("a loop on the device has no end")

    def step(self, at):
        """Makes the call, or the loop or branch that begins there.  Returns the place of the next one."""
        _, name, engine, values = self.calls[at]
        if name in ("device_for", "device_while", "device_if"):
            middle, last = self._part(at)
            getattr(self, name)(at, middle, last)
            return last + 1
        getattr(self, name)(engine, **{k: v for k, v in values.items() if k != "engine"})
        return at + 1

    def run(self, first, end):
        while first < end:
            first = self.step(first)

    def device_for(self, begin, _, end):
        values = self.calls[begin][3]
        for i in range(int(self._number(values["lower"])), int(self._number(values["upper"])), values["step"][0]):
            self._set(values["dst"], i)
            self.run(begin + 1, end)

    def device_while(self, begin, middle, end):
        while True:
            self.run(begin + 1, middle)
            if not self._number(self.calls[middle][3]["condition"]):
                return
            self.run(middle + 1, end)

    def device_if(self, begin, middle, end):
        if self._number(self.calls[begin][3]["condition"]):
            self.run(begin + 1, end if middle is None else middle)
        elif middle is not None:
            self.run(middle + 1, end)


# ---- cores -----------------------------------------------------------------------------------------------------------

_MEETINGS = ("core_barrier", "sendrecv")


class _Core(_Sequencer):
    """The sequencer of a core, which meets the other one."""
    at = 0

    def run_to_meeting(self):
        """Makes the calls before the next one in which the cores meet, and returns that one; None at the end."""
        while self.at < len(self.calls):
            _, name, _, values = self.calls[self.at]
            if name in _MEETINGS:
                self.at += 1
                return name, values
            self.at = self.step(self.at)
        return None


def _exchange(memory, values):
    """dst of each core gets src of the other, as it was before."""
    sent = [_rows(memory.at(v["src"])).copy() for v in values]
    for k, v in enumerate(values):
        to = memory.at(v["dst"])
        to[...] = sent[1 - k].reshape(to.shape)


def _run_cores(memory, calls):
    """Two cores, each of which runs to its next meeting with the other; then they meet."""
    cores = [_Core(memory, [c for c in calls if c[0] == k]) for k in (0, 1)]
    while True:
        met = [core.run_to_meeting() for core in cores]
        if met == [None, None]:
            return
        if None in met or met[0][0] != met[1][0]:
            raise ValueError("the cores wait for each other for ever")
        if met[0][0] == "sendrecv":
            _exchange(memory, [values for _, values in met])


def evaluate(record, arrays, seed=0):
    """record: (tensors, calls, outputs) of compiler/trace/nki/run.c.  seed: 1 and 2 are the runs with other roundings.  Returns
    the outputs as arrays."""
    tensors, calls, outputs = record
    memory = _Memory(tensors, arrays)
    _Evaluation.noise, _Evaluation.direction = np.random.default_rng(1) if seed else None, 1 if seed < 2 else -1
    with np.errstate(all="ignore"):
        if any(core for core, *_ in calls):
            _run_cores(memory, calls)
        else:
            _Sequencer(memory, calls).run(0, len(calls))
    _Evaluation.noise = None
    return [memory.storage[i].reshape(tensors[i][3]).copy() for i in outputs]
