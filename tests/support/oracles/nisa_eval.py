"""What a program in the readable form of NISA computes, by NumPy and none of our code.

    import nisa_eval
    outputs = nisa_eval.run(text, inputs)        # the first function's results; arrays that it writes to are changed

Text in, as `nkx compile` shows the last stage and `nkx opt --print-nisa` prints it.  What the instructions mean is
said in compiler/nisa/nisa.h; this follows those sentences and is kept apart from everything that emits or runs NISA, so
that it can be held against both.  It is strict where a machine would be silent: memory that nobody wrote reads as NaN (or
an odd integer), an access outside its buffer or to a released one fails, a gather's index must be inside its limit.

One instruction at a time, in program order; engines and time do not exist here.
"""
import math
import operator
import re

import ml_dtypes
import numpy as np
from numpy.lib.stride_tricks import as_strided

F32 = np.dtype(np.float32)
DTYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16, "i64": np.int64,
          "i32": np.int32, "i16": np.int16, "i8": np.int8, "i1": np.bool_, "index": np.int64,
          "f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E4M3": ml_dtypes.float8_e4m3, "f8E5M2": ml_dtypes.float8_e5m2,
          "f8E3M4": ml_dtypes.float8_e3m4}
DTYPES = {name: np.dtype(t) for name, t in DTYPES.items()}


class Error(Exception):
    """The program does something that it must not, or says something that this does not know."""


def is_int(t):
    return t.kind in "iub"


# ---- memory ---------------------------------------------------------------------------------------------------------


class Buffer:
    """One allocation.  written: the elements that a matmul has written to (PSUM)."""

    def __init__(self, data, space):
        self.data, self.space, self.alive, self.written = data, space, True, None
        if space == "psum":
            self.written = np.zeros(data.shape, bool)


class Memref:
    """A buffer as a type shows it: an array that shares the buffer's memory."""

    def __init__(self, buffer, array):
        self.buffer, self.array = buffer, array


def poison(shape, t):
    if t.kind == "b":
        return np.ones(shape, np.uint8).view(np.bool_)
    return np.full(shape, 0x5A if is_int(t) else np.nan, t)


def parse_memref(text):
    """(shape, dtype, strides or None, offset, space) of a memref type."""
    m = re.fullmatch(r"memref<((?:\d+x)*)(\w+)(?:, strided<\[([^\]]*)\](?:, offset: ([?\d]+))?>)?"
                     r"(?:, #nisa\.mem<(\w+)>)?>", text)
    if not m:
        raise Error(f"not a static memref: {text}")
    shape = tuple(int(d) for d in m[1].split("x")[:-1])
    strides = None if m[3] is None else [s.strip() for s in m[3].split(",") if s.strip()]
    return shape, DTYPES[m[2]], strides, m[4], m[5] or "hbm"


class Access:
    """An operand that is data: TYPE %base[index, …] with a tile."""

    def __init__(self, name, tile, par_dims, base, indices):
        self.name, self.tile, self.par_dims, self.base = name, tile, par_dims, base
        self.indices = indices  # per base dimension: (constant, {d: factor}, [(value, factor)])
        self.shape = (math.prod(tile[:par_dims]), math.prod(tile[par_dims:]))
        reach = [[f * (tile[d] - 1) for d, f in dims.items()] for _, dims, _ in indices]
        self.below = [sum(min(0, r) for r in row) for row in reach]  # how far the tile goes from its start
        self.above = [sum(max(0, r) for r in row) for row in reach]
        self.factors = [[dims.get(k, 0) for _, dims, _ in indices] for k in range(len(tile))]

    def starts(self, env):
        memref = env[self.base]
        if not memref.buffer.alive:
            raise Error(f"{self.name}: {self.base} has been released")
        if len(self.indices) != memref.array.ndim:
            raise Error(f"{self.name}: {len(self.indices)} indices for {memref.array.ndim} dimensions")
        starts = []
        for (start, _, values), below, above, extent in zip(self.indices, self.below, self.above, memref.array.shape):
            for v, f in values:
                start += int(env[v]) * f
            low, high = start + below, start + above
            if low < 0 or high >= extent:
                raise Error(f"{self.name}: index {low}…{high} of {self.base} is outside 0…{extent - 1}")
            starts.append(start)
        return memref, starts

    def tile_of(self, array, starts):
        steps = [sum(map(operator.mul, factors, array.strides)) for factors in self.factors]
        part = array[(*(slice(s, s + 1) for s in starts), ...)]  # with "…" a single element is a view too
        return as_strided(part.view(f"u{array.itemsize}"), self.tile, steps).view(array.dtype)  # it knows no 8-bit floats

    def view(self, env):
        """An array of the tile's shape, in the buffer."""
        memref, starts = self.starts(env)
        return self.tile_of(memref.array, starts)

    def read(self, env):
        return self.view(env).reshape(self.shape)

    def write(self, env, data):
        view = self.view(env)
        view[...] = data.reshape(self.tile)

    def gather(self, env, dim, offsets, limit):
        """The tile, its index in dimension `dim` increased by one offset per partition."""
        memref, starts = self.starts(env)
        at = []
        for (_, dims, _), start in zip(self.indices, starts):
            index = np.full(self.tile, start, np.int64)
            for d, f in dims.items():
                index += f * np.arange(self.tile[d]).reshape([-1 if k == d else 1 for k in range(len(self.tile))])
            at.append(index.reshape(self.shape))
        at[dim] = at[dim] + offsets
        if offsets.min() < 0 or offsets.max() >= limit or at[dim].max() >= memref.array.shape[dim]:
            raise Error(f"{self.name}: an index of the gather is outside 0…{limit - 1}")
        return memref.array[tuple(at)]


class Scalar:
    """An operand that is one number."""

    def __init__(self, name, dtype, value):
        self.name, self.dtype, self.value, self.shape = name, dtype, value, (1, 1)

    def read(self, env):
        return np.full((1, 1), env[self.value], self.dtype)


# ---- numbers --------------------------------------------------------------------------------------------------------

UNSIGNED = {np.dtype(np.int8): np.uint8, np.dtype(np.int16): np.uint16, np.dtype(np.int32): np.uint32}


def to_f32(x, unsigned):
    if unsigned and x.dtype in UNSIGNED:
        x = x.view(UNSIGNED[x.dtype])
    return x.astype(F32)


def from_f32(x, t, unsigned):
    """Rounded to a float; to the nearest integer, of two the even one, out of range the nearest value."""
    if not is_int(t):
        return x.astype(t)
    if t.kind == "b":
        return np.rint(np.nan_to_num(x, nan=0)) >= 1
    kind = np.dtype(UNSIGNED.get(t, t)) if unsigned else t
    limits = np.iinfo(kind)
    wide = np.clip(np.nan_to_num(np.rint(x.astype(np.float64)), nan=0), limits.min, limits.max)
    return wide.astype(np.int64).astype(kind).view(t)


def to_int(x, unsigned):
    if unsigned and x.dtype in UNSIGNED:
        x = x.view(UNSIGNED[x.dtype])
    return x.astype(np.int64)


def from_int(x, t, unsigned):
    """Wraps around in integers."""
    if t.kind == "b":
        return (x & 1).astype(bool)
    if is_int(t):
        return x.astype(t)
    return (x.astype(np.int32).view(np.uint32) if unsigned else x.astype(np.int32)).astype(F32).astype(t)


def convert(x, t, unsigned, integers):
    if x.dtype == t:
        return x
    if integers and is_int(x.dtype):
        return from_int(to_int(x, unsigned), t, unsigned)
    return from_f32(to_f32(x, unsigned), t, unsigned)


def int_pow(x, y):
    """Modulo 2^64; a negative power is 1/x, truncated."""
    x, y = np.broadcast_arrays(x, y)
    out = np.ones(x.shape, np.int64)
    base, power = x.copy(), np.maximum(y, 0)
    while power.any():
        out = np.where(power & 1, out * base, out)
        base, power = base * base, power >> 1
    odd = np.where(y & 1, -1, 1)
    return np.where(y >= 0, out, np.where(x == 1, 1, np.where(x == -1, odd, 0)))


def truncating(x, y):
    q = np.abs(x) // np.maximum(np.abs(y), 1)
    return np.where((x < 0) != (y < 0), -q, q)


def truth(f):
    return lambda x, y: f(x, y).astype(x.dtype)


ARITH = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "max": np.maximum,
    "divide": lambda x, y: truncating(x, y) if is_int(x.dtype) else np.divide(x, y), "min": np.minimum, "mod": np.fmod, "pow": lambda x, y: int_pow(x, y) if is_int(x.dtype) else np.power(x, y),
    "divide_int": truncating, "mod_int": lambda x, y: x - truncating(x, y) * y,
    "is_eq": truth(np.equal), "is_ne": truth(np.not_equal), "is_gt": truth(np.greater),
    "is_ge": truth(np.greater_equal), "is_lt": truth(np.less), "is_le": truth(np.less_equal),
    "abs_max": lambda x, y: np.where((np.abs(x) >= np.abs(y)) | (x != x), x, y),
    "abs_min": lambda x, y: np.where((np.abs(x) <= np.abs(y)) | (x != x), x, y),
    "logical_and": truth(np.logical_and), "logical_or": truth(np.logical_or), "logical_xor": truth(np.logical_xor),
}
BITS = {"bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
        "shift_left": np.left_shift, "shift_right_arith": np.right_shift, "shift_right_logical": np.right_shift}


def bits_of(x):
    return x if is_int(x.dtype) else x.view(f"i{x.dtype.itemsize}")


def arith(op, x, y, integers, unsigned):
    """The operator on two arrays, in f32 or in integers; what comes out is f32 or integers."""
    if op in BITS:
        x, y = bits_of(x), bits_of(y)
        return BITS[op](to_int(x, unsigned or op == "shift_right_logical"), to_int(y, unsigned))
    if integers and is_int(x.dtype) and is_int(y.dtype):
        return ARITH[op](to_int(x, unsigned), to_int(y, unsigned))
    return ARITH[op](to_f32(x, unsigned), to_f32(y, unsigned)).astype(F32)


def store(x, t, unsigned):
    return from_f32(x, t, unsigned) if x.dtype == F32 else from_int(x, t, unsigned)


def reduce(op, x, axis, integers, unsigned, negated=False):
    f = {"add": np.add, "multiply": np.multiply, "max": np.maximum, "min": np.minimum,
         "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor}[op]
    if op in BITS:
        return f.reduce(to_int(bits_of(x), unsigned), axis=axis)
    x = to_int(x, unsigned) if integers and is_int(x.dtype) else to_f32(x, unsigned)
    x = -x if negated else x
    return np.sum(x, axis=axis, dtype=x.dtype) if op == "add" else f.reduce(x, axis=axis)


def erf(x):
    return np.vectorize(math.erf, otypes=[F32])(x)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def silu_dx(x):
    return sigmoid(x) * (1 + x * (1 - sigmoid(x)))


def normal(x):
    """The distribution function of the standard normal distribution."""
    return np.vectorize(math.erfc, otypes=[np.float64])(-x / math.sqrt(2)) / 2


FUNCTIONS = {
    "copy": lambda x: x, "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x),
    "square": np.square, "abs": np.abs, "tanh": np.tanh, "sin": np.sin, "erf": erf,
    "sign": lambda x: np.where((x == 0) | np.isnan(x), x, np.copysign(1, x)), "floor": np.floor, "ceil": np.ceil,
    "round": lambda x: np.copysign(np.floor(np.abs(x) + F32.type(0.5)), x), "round_even": np.rint, "trunc": np.trunc,
    "arctan": np.arctan, "reciprocal": lambda x: 1 / x, "relu": lambda x: np.maximum(x, 0),
    "sigmoid": lambda x: sigmoid(x.astype(np.float64)),
    "gelu": lambda x: x * normal(x.astype(np.float64)),
    "gelu_dx": lambda x: normal(x.astype(np.float64)) + x * np.exp(-x.astype(np.float64) ** 2 / 2) / math.sqrt(2 * math.pi),
    "gelu_apprx_tanh": lambda x: x * sigmoid(math.sqrt(8 / math.pi) * (x.astype(np.float64) + 0.044715 * x.astype(np.float64) ** 3)),
    "gelu_apprx_sigmoid": lambda x: x * sigmoid(1.702 * x.astype(np.float64)),
    "gelu_apprx_sigmoid_dx": lambda x: silu_dx(1.702 * x.astype(np.float64)),
    "silu": lambda x: x * sigmoid(x.astype(np.float64)), "silu_dx": lambda x: silu_dx(x.astype(np.float64)),
    "softplus": lambda x: np.logaddexp(0, x.astype(np.float64)), "mish": lambda x: x * np.tanh(np.logaddexp(0, x.astype(np.float64))),
    "erf_dx": lambda x: 2 / math.sqrt(math.pi) * np.exp(-x.astype(np.float64) ** 2),
}

# ---- instructions ---------------------------------------------------------------------------------------------------


class Instr:
    """name(operands, attributes) engine=…"""

    def __init__(self, text):
        m = re.match(r"(?:(%\S+) = )?nisa\.(\w+)\((.*)\) engine=(\w+)(?: : \w+)?$", text)
        if not m:
            raise Error(f"not an instruction: {text}")
        self.result, self.name, self.engine = m[1], m[2], m[4]
        self.operands, self.attrs = {}, {}
        for part in split(m[3]):
            operand = parse_operand(part)
            if operand:
                self.operands[operand.name] = operand
            else:
                name, _, value = part.partition("=")
                self.attrs[name] = value
        self.integers = self.engine == "gpsimd"
        self.unsigned = "unsigned" in self.attrs
        self.run = getattr(self, self.name, None)
        if self.run is None:
            raise Error(f"no such instruction: {self.name}")

    def get(self, env, name):
        return self.operands[name].read(env)

    def put(self, env, data, name="dst"):
        """Writes f32 or integers, whatever the destination holds."""
        dst = self.operands[name]
        if data.size != np.prod(dst.shape):
            raise Error(f"{self.name}: {data.size} elements for {dst.tile}")
        t = env[dst.base].array.dtype
        if not is_int(t) and (self.attrs.get("op1") or self.attrs.get("op") or self.attrs.get("op0")) in BITS:
            dst.write(env, data.astype(f"i{t.itemsize}").view(t))
        else:
            dst.write(env, store(data, t, self.unsigned))

    def same_shape(self, *names):
        shapes = {self.operands[n].shape for n in names if isinstance(self.operands[n], Access)}
        if len(shapes) > 1:
            raise Error(f"{self.name}: operands of shapes {shapes}")

    def dma_copy(self, env):
        x = self.get(env, "src")
        self.same_shape("dst", "src")
        dst = self.operands["dst"]
        dst.write(env, convert(x, env[dst.base].array.dtype, self.unsigned, self.integers))

    tensor_copy = dma_copy

    def dma_transpose(self, env):
        dst, src = self.operands["dst"], self.operands["src"]
        x = self.get(env, "src")
        if self.attrs["permutation"] != "[1, 0]" or x.T.shape != dst.shape:
            raise Error(f"dma_transpose of {src.tile} to {dst.tile}")
        dst.write(env, x.T)

    def dma_copy_indirect(self, env):
        dst, src = self.operands["dst"], self.operands["src"]
        offsets = self.get(env, "src_index").astype(np.int64)
        dim, limit = int(self.attrs["src_index_dim"]), int(self.attrs["src_indirect_max_index"])
        dst.write(env, convert(src.gather(env, dim, offsets, limit), env[dst.base].array.dtype, False, False))

    def whole(self, name):
        """All of an array in HBM, in its own shape and order."""
        x = self.operands[name]

        def of(env):
            memref = env[x.base]
            view = x.view(env)
            if memref.buffer.space not in ("hbm", "shared_hbm") or view.size != memref.array.size:
                raise Error(f"{self.name}: {name} is not a whole array in HBM")
            return view.reshape(memref.array.shape)

        return of

    def devices(self, src, dst):
        """How many exchange data: as many as a row of replica_groups has, or as the shapes say."""
        m = re.search(r"tensor<\d+x(\d+)xi64>", self.attrs.get("replica_groups", ""))
        if m:
            return int(m[1])
        dim = int(self.attrs.get("dim", -1))
        return 1 if dim < 0 else max(src.shape[dim], dst.shape[dim]) // min(src.shape[dim], dst.shape[dim])

    def combined(self, x, n):
        """In its own type, one device after the other."""
        kind = UNSIGNED.get(x.dtype) if self.unsigned else None
        x = x.view(kind) if kind else x
        f = {"add": np.add, "multiply": np.multiply, "max": np.maximum, "min": np.minimum,
             "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or}[self.attrs["op"]]
        r = x
        for _ in range(n - 1):
            r = f(r, x).astype(x.dtype)
        return r

    def collective(self, env, compute):
        """As if every device of a group had the same data."""
        memref, src = env[self.operands["dst"].base], self.whole("src")(env)
        self.whole("dst")(env)
        x = compute(src, self.devices(src, memref.array))
        if x.shape != memref.array.shape or src.dtype != memref.array.dtype:
            raise Error(f"{self.name}: {x.dtype}{list(x.shape)} for {memref.array.dtype}{list(memref.array.shape)}")
        self.operands["dst"].write(env, x.view(memref.array.dtype))

    def all_gather(self, env):
        self.collective(env, lambda x, n: np.concatenate([x] * n, int(self.attrs["dim"])))

    def all_reduce(self, env):
        self.collective(env, self.combined)

    def reduce_scatter(self, env):
        self.collective(env, lambda x, n: np.split(self.combined(x, n), n, int(self.attrs["dim"]))[0])

    def all_to_all(self, env):
        self.collective(env, lambda x, n: np.concatenate(np.split(x, n, int(self.attrs["dim"])), int(self.attrs["dim"])))

    def collective_permute(self, env):
        self.collective(env, lambda x, n: x)

    def matmul(self, env):
        dst = self.operands["dst"]
        product = self.get(env, "stationary").astype(F32).T @ self.get(env, "moving").astype(F32)
        if self.attrs.get("is_transpose") == "true":
            product = self.get(env, "stationary").astype(F32).T
        memref, starts = dst.starts(env)
        if memref.buffer.space != "psum" or product.shape != dst.shape:
            raise Error(f"matmul: {product.shape} into {dst.shape} in {memref.buffer.space}")
        started = dst.tile_of(memref.buffer.written, starts)
        old = dst.view(env).astype(F32)
        self.put(env, np.where(started, old, 0).astype(F32) + product.reshape(dst.tile))
        started[...] = True

    def tensor_copy_predicated(self, env):
        dst = self.operands["dst"]
        self.same_shape("dst", "src", "predicate")
        where = (self.get(env, "predicate") != 0) != (self.attrs.get("reverse_pred") == "true")
        x = convert(self.get(env, "src"), env[dst.base].array.dtype, self.unsigned, self.integers)
        dst.write(env, np.where(where, x, dst.read(env)))

    def tensor_tensor_arith(self, env):
        self.same_shape("dst", "lhs", "rhs")
        x, y = self.get(env, "lhs"), self.get(env, "rhs")
        self.put(env, arith(self.attrs["op"], x, y, self.integers, self.unsigned))

    def tensor_tensor_power(self, env):
        self.same_shape("dst", "lhs", "rhs")
        self.put(env, arith("pow", self.get(env, "lhs"), self.get(env, "rhs"), self.integers, self.unsigned))

    def tensor_scalar_arith(self, env):
        self.same_shape("dst", "src")
        r = self.get(env, "src")
        for k, side in enumerate(("first", "second")):
            if f"op{k}" not in self.attrs:
                continue
            y = self.get(env, f"operand{k}")
            if y.shape[1] != 1 or y.shape[0] not in (1, r.shape[0]):
                raise Error(f"tensor_scalar_arith: operand{k} of shape {y.shape}")
            turned = self.attrs["reverse_operands"] in (side, "both")
            r = arith(self.attrs[f"op{k}"], *((y, r) if turned else (r, y)), self.integers, self.unsigned)
        self.put(env, np.broadcast_to(r, self.operands["dst"].shape))

    def scalar_tensor_tensor(self, env):
        self.same_shape("dst", "src", "operand1")
        x, turned = to_f32(self.get(env, "src"), self.unsigned), self.attrs["reverse_operands"]
        c, y = self.column(env, "operand0", x)[:, None], to_f32(self.get(env, "operand1"), self.unsigned)
        x = arith(self.attrs["op0"], *((c, x) if turned in ("first", "both") else (x, c)), False, False)
        self.put(env, arith(self.attrs["op1"], *((y, x) if turned in ("second", "both") else (x, y)), False, False))

    def tensor_reduce_arith(self, env):
        src = self.operands["src"]
        x, n = self.get(env, "src"), int(self.attrs["num_r_dim"])
        kept = src.tile[src.par_dims:len(src.tile) - n]
        x = x.reshape(src.shape[0], int(np.prod(kept)), -1)
        negated = self.attrs["negated"] == "true"
        self.put(env, reduce(self.attrs["op"], x, 2, self.integers, self.unsigned, negated))

    def cross_lane_reduce_arith(self, env):
        self.put(env, reduce(self.attrs["reduce_op"], self.get(env, "src"), 0, self.integers, self.unsigned))

    def activation(self, env):
        self.same_shape("dst", "src")
        x = to_f32(self.get(env, "src"), self.unsigned)
        scale, bias = to_f32(self.get(env, "scale"), False), to_f32(self.get(env, "bias"), False)
        for y in (scale, bias):
            if y.shape[1] != 1 or y.shape[0] not in (1, x.shape[0]):
                raise Error(f"activation: scale or bias of shape {y.shape}")
        y = FUNCTIONS[self.attrs["op"]](x * scale + bias).astype(F32)
        self.put(env, y)
        if "reduce_res" in self.operands:
            self.put(env, self.get(env, "reduce_res").astype(F32) + y.sum(axis=1, keepdims=True), "reduce_res")

    def reciprocal(self, env):
        self.same_shape("dst", "src")
        self.put(env, F32.type(1) / to_f32(self.get(env, "src"), self.unsigned))

    def column(self, env, name, like):
        x = to_f32(self.get(env, name), False)
        if x.shape[1] != 1 or x.shape[0] not in (1, like.shape[0]):
            raise Error(f"{self.name}: {name} of shape {x.shape}")
        return np.broadcast_to(x[:, 0], like.shape[:1])

    def tensor_tensor_scan(self, env):
        self.same_shape("dst", "lhs", "rhs")
        x, y = to_f32(self.get(env, "lhs"), self.unsigned), to_f32(self.get(env, "rhs"), self.unsigned)
        r, out, turned = self.column(env, "initial", x), np.empty_like(x), self.attrs["reverse_operands"]
        for k in range(x.shape[1]):
            r = arith(self.attrs["op0"], *((r, x[:, k]) if turned in ("first", "both") else (x[:, k], r)), False, False)
            r = arith(self.attrs["op1"], *((y[:, k], r) if turned in ("second", "both") else (r, y[:, k])), False, False)
            out[:, k] = r
        self.put(env, out)

    def tensor_scalar_cumulative(self, env):
        self.same_shape("dst", "src")
        x = to_f32(self.get(env, "src"), self.unsigned)
        r, c, out = self.column(env, "initial", x), self.column(env, "operand0", x), np.empty_like(x)
        for k in range(x.shape[1]):
            r = out[:, k] = arith(self.attrs["op1"], r, arith(self.attrs["op0"], x[:, k], c, False, False), False, False)
        self.put(env, out)

    def bn_stats(self, env):
        x = to_f32(self.get(env, "src"), self.unsigned).astype(np.float64)
        out = np.zeros((len(x), 6))
        for at, half in ((0, x[:, 0::2]), (3, x[:, 1::2])):
            if half.shape[1]:
                out[:, at:at + 3] = np.stack([np.full(len(x), half.shape[1]), half.mean(1), half.var(1) * half.shape[1]], 1)
        self.put(env, out.astype(F32))

    def bn_aggr(self, env):
        x = to_f32(self.get(env, "src"), self.unsigned).astype(np.float64)
        count, mean, squares = x[:, 0::3], x[:, 1::3], x[:, 2::3]
        center = (count * mean).sum(1) / count.sum(1)
        var = (squares + count * (mean - center[:, None]) ** 2).sum(1) / count.sum(1)
        self.put(env, np.stack([center, var], 1).astype(F32))

    def max8(self, env):
        self.put(env, -np.sort(-to_f32(self.get(env, "src"), self.unsigned), axis=1)[:, :8])

    def places(self, x, values, slots):
        """Each slot takes the first place of its value that no slot before it has; -1: there is none."""
        out = np.full(values.shape, -1, np.int64)
        for p in range(len(x)):
            for k in slots:
                free = np.setdiff1d(np.flatnonzero(x[p] == values[p, k]), out[p])
                out[p, k] = free[0] if free.size else -1
        return out

    def write_places(self, env, name, places):
        dst = self.operands[name]
        dst.write(env, places.astype(env[dst.base].array.dtype))

    def find_index8(self, env):
        x, values = (to_f32(self.get(env, n), self.unsigned) for n in ("src", "values"))
        self.write_places(env, "dst", self.places(x, values, range(8)))

    def match_replace8(self, env):
        x, values = (to_f32(self.get(env, n), self.unsigned) for n in ("src", "values"))
        places, x = self.places(x, values, range(7, -1, -1)), x.copy()
        for p, k in zip(*np.nonzero(places >= 0)):
            x[p, places[p, k]] = to_f32(self.get(env, "replacement"), False)[0, 0]
        self.put(env, x)
        if "dst_index" in self.operands:
            self.write_places(env, "dst_index", places)

    # ---- shuffles, gathers, random numbers

    def stream_shuffle(self, env):
        self.same_shape("dst", "src")
        x, dst = self.get(env, "src"), self.operands["dst"]
        mask = [int(v) for v in self.attrs["shuffle_mask"].strip("[]").split(",")]
        old = self.get(env, "dst").copy()
        for p in range(len(x)):
            if mask[p % 32] != 255:
                old[p] = x[p - p % 32 + mask[p % 32]]
        dst.write(env, old)

    def transpose(self, env):
        self.operands["dst"].write(env, self.get(env, "src").T)

    def gather(self, env):
        i = self.get(env, "src_index")
        i = i.view(i.dtype.str.replace("i", "u")) if i.dtype.kind == "i" else i
        self.operands["dst"].write(env, np.take_along_axis(self.get(env, "src"), i.astype(np.int64), 1))

    def local_gather(self, env):
        x, i = self.get(env, "src"), self.get(env, "src_index").astype(np.int64)
        run, n = int(self.attrs["elements_per_index"]), int(self.attrs["n_indices"])
        out = np.empty((len(x), n * run), x.dtype)
        for p in range(len(x)):
            for k in range(n):
                at = i[p - p % 16 + k % 16, k // 16]
                out[p, k * run:(k + 1) * run] = x[p, at * run:(at + 1) * run]
        self.operands["dst"].write(env, out)

    def sequence_bounds(self, env):
        ids = to_f32(self.get(env, "src"), self.unsigned)[0]
        n = len(ids)
        change = np.flatnonzero(np.diff(ids)) + 1
        begin, end = np.zeros(n), np.full(n, n)
        for k in range(n):
            begin[k] = max([c for c in change if c <= k], default=0)
            end[k] = min([c for c in change if c > k], default=n)
        begin[ids == 0], end[ids == 0] = n, -1
        self.put(env, np.concatenate([begin, end])[None].astype(F32))

    def nonzero_with_count(self, env):
        x, dst = to_f32(self.get(env, "src"), self.unsigned), self.get(env, "dst").copy()
        for p in range(0, len(x), 16):
            found = np.flatnonzero(x[p])
            dst[p, :-1] = int(self.attrs["padding"])
            dst[p, :len(found)] = found + int(self.attrs["index_offset"])
            dst[p, -1] = len(found)
        self.operands["dst"].write(env, dst)

    def topk(self, env):
        x, values, numbers = to_f32(self.get(env, "src"), False), self.get(env, "dst").copy(), self.get(env, "dst_index").copy()
        n = int(self.attrs["n_elements"])
        place = [(c, r if c % 2 == 0 else 15 - r) for c in range(x.shape[1]) for r in range(16)]
        for g in range(0, len(x), 16):
            order = sorted(range(n), key=lambda k: (x[g + place[k][1], place[k][0]], -k))[n - 16 * values.shape[1]:]
            for (c, r), k in zip(place, order):
                values[g + r, c], numbers[g + r, c] = x[g + place[k][1], place[k][0]], k
        self.operands["dst"].write(env, values)
        self.operands["dst_index"].write(env, numbers)

    def memset(self, env):
        dst = self.operands["dst"]
        x = convert(self.get(env, "value"), env[dst.base].array.dtype, self.unsigned, self.integers)
        dst.write(env, np.broadcast_to(x, dst.shape))

    def iota(self, env):
        dst = self.operands["dst"]
        coefficients = [int(c) for c in self.attrs["coefficients"].strip("[]").split(",")]
        x = np.full(dst.tile, int(self.get(env, "offset")[0, 0]), np.int64)
        for k, (c, n) in enumerate(zip(coefficients, dst.tile)):
            x += c * np.arange(n).reshape([-1 if j == k else 1 for j in range(len(dst.tile))])
        self.put(env, x)

    def register_load(self, env):
        env[self.result] = self.get(env, "src").reshape(()).item()

    def register_store(self, env):
        self.put(env, np.asarray(self.get(env, "value")))


# ---- reading text ---------------------------------------------------------------------------------------------------


MARKS = re.compile(r'"[^"]*"|->|[(\[{<>}\]),]')  # strings and arrows as wholes


def split(text):
    """At commas outside brackets and strings."""
    parts, depth, start = [], 0, 0
    for m in MARKS.finditer(text):
        c = m[0]
        if c in "([{<":
            depth += 1
        elif c in ")]}>":
            depth -= 1
        elif c == "," and not depth:
            parts.append(text[start:m.start()].strip())
            start = m.end()
    return [p for p in [*parts, text[start:].strip()] if p]


def parse_index(text):
    """A sum such as  %i*2 + d1*64 - 3."""
    constant, dims, values = 0, {}, []
    words = ["+", *text.split()]
    for sign, term in zip(words[::2], words[1::2]):
        name, _, factor = term.partition("*")
        factor = int(factor or 1) * (-1 if sign == "-" else 1)
        if name[0] == "-" and name[1] in "%d":
            name, factor = name[1:], -factor
        if name[0] == "%":
            values.append((name, factor))
        elif name[0] == "d":
            d = int(name[1:])
            dims[d] = dims.get(d, 0) + factor
        else:
            constant += int(name) * factor
    return constant, dims, values


def parse_operand(text):
    m = re.match(r"(\w+)<([\d, ]+)\| ([\d, ]+)>=memref<.*> (%[\w$.#-]+)\[(.*)\]$", text)
    if m:
        par, free = ([int(v) for v in m[k].split(",")] for k in (2, 3))
        return Access(m[1], par + free, len(par), m[4], [parse_index(i) for i in split(m[5])])
    m = re.match(r"(\w+)=(\w+) (%[\w$.#-]+)$", text)
    return Scalar(m[1], DTYPES[m[2]], m[3]) if m else None


def parse_number(text, t):
    if text in ("true", "false"):
        return int(text == "true")
    if is_int(t):
        return int(text, 0)
    if text.startswith("0x"):
        return np.frombuffer(int(text, 16).to_bytes(t.itemsize, "little"), t)[0]
    return t.type(float(text))


def parse_dense(text, t, shape):
    """dense<…> of a constant."""
    inner = text[len("dense<"):-1]
    if inner.startswith('"0x'):
        raw = bytes.fromhex(inner[3:-1])
        if t.kind == "b":
            return np.unpackbits(np.frombuffer(raw, np.uint8), bitorder="little")[:int(np.prod(shape))] \
                .astype(bool).reshape(shape)
        return np.frombuffer(raw, t).reshape(shape).copy()
    values = [parse_number(v, t) for v in re.findall(r"[^\s,\[\]]+", inner)]
    return np.array(values, t).reshape(shape) if len(values) > 1 else np.full(shape, values[0], t)


def wrap(v, name):
    """An integer as the type holds it."""
    if name == "index":
        return int(v)
    bits = int(name[1:])
    v = int(v) & ((1 << bits) - 1)
    return v - (1 << bits) if bits > 1 and v >> (bits - 1) else v


PREDICATES = {"eq": "==", "ne": "!=", "slt": "<", "sle": "<=", "sgt": ">", "sge": ">=", "oeq": "==", "olt": "<",
              "ole": "<=", "ogt": ">", "oge": ">=", "une": "!="}
SCALARS = {
    "addi": lambda x, y: x + y, "subi": lambda x, y: x - y, "muli": lambda x, y: x * y,
    "divui": lambda x, y: x // y, "remui": lambda x, y: x % y, "floordivsi": lambda x, y: x // y,
    "ceildivsi": lambda x, y: -(-x // y), "divsi": lambda x, y: int(truncating(np.int64(x), np.int64(y))),
    "remsi": lambda x, y: int(np.fmod(x, y)), "minsi": min, "maxsi": max, "minui": min, "maxui": max,
    "andi": lambda x, y: x & y, "ori": lambda x, y: x | y, "xori": lambda x, y: x ^ y,
    "shli": lambda x, y: x << y, "shrsi": lambda x, y: x >> y, "shrui": lambda x, y: x >> y,
    "addf": lambda x, y: x + y, "subf": lambda x, y: x - y, "mulf": lambda x, y: x * y, "divf": lambda x, y: x / y,
    "maximumf": np.maximum, "minimumf": np.minimum,
}


def arith_op(name, rest):
    """An arith operation on scalars, as a function of the environment."""
    if name == "constant":
        m = re.match(r"(\S+)(?: : (\w+))?$", rest)
        t = m[2] or "i1"
        value = parse_number(m[1], DTYPES[t])
        return lambda env: value
    if name in ("cmpi", "cmpf"):
        m = re.match(r"(\w+), (%\S+), (%\S+) : (\w+)$", rest)
        sign, x, y = PREDICATES[m[1].replace("u", "s") if name == "cmpi" and m[1][0] == "u" else m[1]], m[2], m[3]
        test = {"==": lambda a, b: a == b, "!=": lambda a, b: a != b, "<": lambda a, b: a < b,
                "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b}[sign]
        return lambda env: int(test(env[x], env[y]))
    if name == "select":
        c, x, y = re.match(r"(%\S+), (%\S+), (%\S+) : ", rest).groups()
        return lambda env: env[x] if env[c] else env[y]
    m = re.match(r"(%\S+) : (\w+) to (\w+)$", rest)
    if m:
        x, source, t = m.groups()
        if is_int(DTYPES[t]):
            unsigned = name in ("index_castui", "extui")
            mask = (1 << int(source[1:])) - 1 if unsigned and source != "index" else -1
            return lambda env: wrap(int(env[x]) & mask, t)
        return lambda env: DTYPES[t].type(env[x])
    m = re.match(r"(%\S+)(?:, (%\S+))? : (\w+)$", rest.replace(" overflow<nsw>", ""))
    if not m:
        raise Error(f"arith.{name} {rest}")
    x, y, t = m.groups()
    if name == "negf":
        return lambda env: -env[x]
    f = SCALARS[name]
    if is_int(DTYPES[t]):
        return lambda env: wrap(f(env[x], env[y]), t)
    return lambda env: DTYPES[t].type(f(F32.type(env[x]), F32.type(env[y])))


def groups_of(text):
    return [[int(d) for d in g.split(",") if d.strip()] for g in re.findall(r"\[([\d, ]*)\]", text[1:-1])]


def reshaped(array, shape):
    """The same memory in another shape; never a copy."""
    view = array.view()
    view.shape = shape
    return view


def memref_op(name, rest, module):
    """A view of memory, as a function of the environment."""
    if name == "get_global":
        symbol = re.match(r"@(\S+) : ", rest)[1]
        return lambda env: module.globals[symbol]
    m = re.match(r"(%\S+) ?(.*?) : (memref<.*>) (?:into|to) (memref<.*>)$", rest)
    source, middle = m[1], m[2]
    if name == "cast":
        return lambda env: env[source]
    shape, _, strides, offset, _ = parse_memref(m[4])
    if name in ("collapse_shape", "expand_shape"):
        return lambda env: Memref(env[source].buffer, reshaped(env[source].array, shape))
    if name == "reinterpret_cast":
        steps = [int(s) for s in re.search(r"strides: \[([\d, ]*)\]", middle)[1].split(",") if s.strip()]
        first = int(re.search(r"offset: \[(\d+)\]", middle)[1])

        def cast(env):
            array = env[source].array
            flat = array.reshape(-1)
            if flat.base is None or not np.shares_memory(flat, array):
                raise Error("reinterpret_cast of memory with gaps")
            return Memref(env[source].buffer, as_strided(flat[first:], shape, [s * array.itemsize for s in steps]))

        return cast
    if name == "subview":
        m = re.match(r"(%[\w$.#-]+)\[(.*?)\] ?\[(.*?)\] ?\[(.*?)\]$", source + middle)
        starts, sizes, steps = ([t.strip() for t in m[k].split(",") if t.strip()] for k in (2, 3, 4))

        def slice_of(env):
            value = lambda t: int(env[t]) if t[0] == "%" else int(t)
            array = env[m[1]].array
            for s, n, d, extent in zip(starts, sizes, steps, array.shape):
                if value(s) < 0 or value(s) + (value(n) - 1) * value(d) >= extent:
                    raise Error(f"subview of {m[1]} reaches outside")
            part = array[(*(slice(value(s), value(s) + (value(n) - 1) * value(d) + 1, value(d))
                            for s, n, d in zip(starts, sizes, steps)), ...)]
            return Memref(env[m[1]].buffer, reshaped(part, shape))

        return slice_of
    raise Error(f"memref.{name}")


class Module:
    """The first function of a text, ready to run."""

    def __init__(self, text):
        self.lines = [line.strip() for line in text.split("\n")]
        self.lines = [line for line in self.lines if line and not line.startswith("//")]
        self.globals, self.at = {}, 0
        while not self.lines[self.at].startswith("func.func"):
            self.global_(self.lines[self.at])
            self.at += 1
        self.args = re.findall(r"(%[\w$.-]+): (memref<[^%]*?>)(?: \{[^}]*\})?(?:, (?=%)|\) )", self.lines[self.at])
        self.at += 1
        self.body = self.block()
        for line in self.lines[self.at:]:
            self.global_(line)

    def global_(self, line):
        m = re.match(r'memref\.global .*?@(\S+) : (memref<.*>) = (dense.*>)(?: \{.*\})?$', line)
        if m:
            shape, t, *_ = parse_memref(m[2])
            self.globals[m[1]] = Memref(*[(b := Buffer(parse_dense(m[3], t, shape), "hbm")), b.data])

    def block(self):
        """Steps up to the closing brace, which is consumed.  A step: a function of the environment that returns None,
        or the operands of a terminator."""
        steps = []
        while not self.lines[self.at].startswith("}"):
            line = self.lines[self.at]
            self.at += 1
            try:
                steps.append(self.step(line))
            except Error:
                raise
            except Exception as e:
                raise Error(f"{type(e).__name__}: {e}: {line}") from e
        self.closing = self.lines[self.at]
        self.at += 1
        return steps

    def step(self, line):
        m = re.match(r"(%\S+) = nisa\.alloc(?: \w+=(?:\d+|\[[\d, ]+\]))* : (memref<.*>)$", line)
        if m:
            shape, t, _, _, space = parse_memref(m[2])
            return lambda env: alloc(env, m[1], shape, t, space)
        m = re.match(r"nisa\.release (%\S+) : ", line)
        if m:
            return lambda env: release(env, m[1])
        if re.match(r"(%\S+ = )?nisa\.", line):
            instr = Instr(line)
            return lambda env: execute(instr, env, line)
        m = re.match(r"(%\S+) = arith\.(\w+) (.*)$", line)
        if m:
            return self.assign(m[1], arith_op(m[2], re.sub(r" overflow<\w+>", "", m[3])))
        m = re.match(r"(%\S+) = memref\.(\w+) (.*)$", line)
        if m:
            return self.assign(m[1], memref_op(m[2], m[3], self))
        m = re.match(r"(?:return|scf\.yield)(?: (.*) : .*)?$", line)
        if m:
            names = split(m[1] or "")
            return lambda env: [env[n] for n in names]
        m = re.match(r"(?:(%[\w$.-]+)(?::(\d+))? = )?scf\.for (%\S+) = (%\S+) to (%\S+) step (%\S+)"
                     r"(?: iter_args\((.*?)\) -> \(.*\))?(?: *: \w+)? *\{$", line)
        if m:
            return self.loop(m)
        if re.match(r"scf\.while : \(\) -> \(\) \{$", line):
            return self.while_()
        m = re.match(r"scf\.condition\((%\S+)\)$", line)
        if m:
            name = m[1]
            return lambda env: bool(env[name])
        m = re.match(r"(?:(%[\w$.-]+)(?::(\d+))? = )?scf\.if (%\S+)(?: -> \(.*\))? \{$", line)
        if m:
            return self.branch(m)
        raise Error(f"unknown: {line}")

    @staticmethod
    def assign(name, f):
        def step(env):
            env[name] = f(env)

        return step

    @staticmethod
    def define(env, name, count, values):
        for k, v in enumerate(values):
            env[f"{name}#{k}" if count else name] = v

    def loop(self, m):
        pairs = [p.split(" = ") for p in split(m[7] or "")]
        body = self.block()

        def step(env):
            carried = [env[init] for _, init in pairs]
            for i in range(env[m[4]], env[m[5]], env[m[6]]):
                env[m[3]] = i
                for (name, _), v in zip(pairs, carried):
                    env[name] = v
                carried = run_block(body, env) or []
            self.define(env, m[1], m[2], carried)

        return step

    def while_(self):
        condition, body = self.block(), self.block()

        def step(env):
            while run_block(condition, env):
                run_block(body, env)

        return step

    def branch(self, m):
        yes, no = self.block(), []
        if self.closing.startswith("} else {"):
            no = self.block()

        def step(env):
            self.define(env, m[1], m[2], run_block(yes if env[m[3]] else no, env) or [])

        return step


def alloc(env, name, shape, t, space):
    data = np.zeros(shape, t) if space == "psum" else poison(shape, t)
    env[name] = Memref(*[(b := Buffer(data, space)), b.data])


def release(env, name):
    if not env[name].buffer.alive:
        raise Error(f"{name} is released twice")
    env[name].buffer.alive = False


def execute(instr, env, line):
    try:
        instr.run(env)
    except Error as e:
        raise Error(f"{e}: {line}") from None


def run_block(steps, env):
    result = None
    for step in steps:
        result = step(env)
    return result


def run(text, inputs):
    """The results of the first function on these arrays, which it may change."""
    module, env = Module(text), {}
    if len(module.args) != len(inputs):
        raise Error(f"{len(module.args)} arguments, {len(inputs)} given")
    for (name, t), a in zip(module.args, inputs):
        shape, dtype, *_ = parse_memref(t)
        if a.shape != shape or (a.dtype != dtype and not (is_int(dtype) and a.dtype.itemsize == dtype.itemsize)):
            raise Error(f"{name} is {t}, given {a.dtype}{list(a.shape)}")
        env[name] = Memref(*[(b := Buffer(a.view(dtype), "shared_hbm")), b.data])
    with np.errstate(all="ignore"):
        got = run_block(module.body, env) or []
    return [np.array(g.array) for g in got]
