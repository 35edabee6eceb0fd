"""nki.language: tensors, loops, and functions that consist of calls of nki.isa."""
import _nkx
import ml_dtypes as _ml
import numpy as _np
from nki import isa as _isa
from nki.typing import immutable, mutable, mutable_tensor, tensor  # noqa: F401
from nkx import nki_names, nki_registers, nki_unknown, nki_written
from nkx.nki_grid import num_programs, program_id, program_ndim  # noqa: F401

_Tensor = _nkx.NkiTensor

# a type equals its name, and the dtype of a tensor, also as a key of a dict
bool_, int8, int16, int32, uint8, uint16, uint32, float16, float32 = map(_np.dtype, (
    _np.bool_, _np.int8, _np.int16, _np.int32, _np.uint8, _np.uint16, _np.uint32, _np.float16, _np.float32))
bfloat16, float8_e4m3, float8_e4m3fn, float8_e5m2 = map(_np.dtype, (_ml.bfloat16, _ml.float8_e4m3, _ml.float8_e4m3fn, _ml.float8_e5m2))

tfloat32 = nki_names.named_type("tfloat32")

# packed elements and their scales, of trn3
float8_e4m3fn_x4, float8_e5m2_x4, float4_e2m1fn_x4, float8_e8m0fnu = (
    "float8_e4m3fn_x4", "float8_e5m2_x4", "float4_e2m1fn_x4", "float8_e8m0fnu")

# ---- memories and sizes ---------------------------------------------------------------------------------------------

sbuf, psum, hbm, private_hbm, shared_hbm = "sbuf", "psum", "hbm", "private_hbm", "shared_hbm"


def is_sbuf(buffer):
    return buffer == sbuf


def is_psum(buffer):
    return buffer == psum


def is_hbm(buffer):
    return buffer in (hbm, private_hbm, shared_hbm)


def is_on_chip(buffer):
    return is_sbuf(buffer) or is_psum(buffer)


class _TileSize:
    """nl.tile_size: limits of tiles, in partitions, elements and bytes."""
    pmax = 128
    psum_fmax = psum_bank_fmax = 512
    psum_bank_fmax_bytes = 2048
    gemm_stationary_fmax = 128
    gemm_moving_fmax = 512
    bn_stats_fmax = 512
    psum_min_align = 4
    sbuf_min_align = 1
    psum_num_banks = 8

    @property
    def sbuf_fmax(self):
        return self.sbuf_fmax_bytes // 4

    @property
    def sbuf_size_bytes(self):
        return self.pmax * self.sbuf_fmax_bytes

    @property
    def sbuf_fmax_bytes(self):
        return {"trn1": 180224, "trn2": 212984, "trn3": 245752}[_nkx.nki_target()]

    total_available_sbuf_size = sbuf_fmax_bytes


tile_size = _TileSize()


class no_reorder:
    """with no_reorder(): each engine executes the calls of the block, and starts their transfers, in their order.  Engines wait
    for each other's data only."""

    def __enter__(self):
        _nkx.nki_in_order(True)

    def __exit__(self, *exception):
        _nkx.nki_in_order(False)
        return False


def device_print(print_prefix, tensor):
    """Prints nothing: the simulated machine shows each value (Values, in the page)."""


class NKIObject:
    """The base of classes that kernels use."""


# ---- loops and programs ---------------------------------------------------------------------------------------------


def affine_range(start, stop=None, step=1):
    """A loop whose rounds are independent.  The loop is unrolled."""
    return range(start) if stop is None else range(start, stop, step)


sequential_range = static_range = affine_range


def dynamic_range(start, stop=None, step=1):
    """A loop on the device.  Its bounds may be registers, its index is one, and its body is recorded once."""
    return nki_registers.DynamicRange(0, start, step) if stop is None else nki_registers.DynamicRange(start, stop, step)


def fori_loop(lower, upper, body, step=1):
    """body(i) for i from lower to upper - 1 by step, on the device: the bounds may be registers, and i is one."""
    nki_registers.fori_loop(lower, upper, body, step)


def while_loop(init, body):
    """A loop on the device: while the register is not 0, it becomes body(register).  At first it is init."""
    nki_registers.while_loop(init, body)


def ds(start, size):
    """The slice of `size` elements from start on.  start may be a register."""
    if isinstance(start, nki_registers.Register):
        return nki_registers.Moving(start, size)
    return slice(start, start + size)


# ---- tensors --------------------------------------------------------------------------------------------------------


def ndarray(shape, dtype, buffer=sbuf, name="", address=None):
    """A tensor that is not initialised; on chip at address = (first partition, byte in each partition), if it is given."""
    try:
        return _nkx.nki_ndarray(shape, dtype, buffer, name, address)
    except Exception as e:  # noqa: BLE001: what is no refusal is raised again
        if _nkx.nki_is_writing():
            raise
        return nki_unknown.reported(e)


def full(shape, fill_value, dtype, buffer=sbuf, name=""):
    t = _nkx.nki_ndarray(shape, dtype, buffer, name)
    _isa.memset(dst=t, value=fill_value)
    return t


def zeros(shape, dtype, buffer=sbuf, name=""):
    return full(shape, 0, dtype, buffer, name)


def ones(shape, dtype, buffer=sbuf, name=""):
    return full(shape, 1, dtype, buffer, name)


def empty_like(x, dtype=None, buffer=None, name=""):
    return ndarray(x.shape, dtype or x.dtype, buffer or x.buffer, name)


def zeros_like(x, dtype=None, buffer=None, name=""):
    return zeros(x.shape, dtype or x.dtype, buffer or x.buffer, name)


def shared_constant(constant):
    """A tensor in HBM that has the elements of an array."""
    if isinstance(constant, str):
        nki_names.refuse(_nkx.NkiUnsupported, "a constant in a file is not compiled here yet", "give the array itself", argument="constant")
    return _nkx.nki_constant(constant)


def load(src, dtype=None):
    """A copy in SBUF of a part of HBM."""
    shape = src.shape if src.ndim > 1 else (src.shape[0], 1)
    t = ndarray(shape, dtype or src.dtype, sbuf)
    _isa.dma_copy(dst=t, src=src)
    return t


def store(dst, value):
    _isa.dma_copy(dst=dst, src=value)


# ---- element by element ---------------------------------------------------------------------------------------------


def _like(x, dtype):
    return ndarray(x.shape, dtype or x.dtype, sbuf)


def _shapes_differ(name, x, y):
    nki_names.refuse(_nkx.NkiShapeMismatch, f"nl.{name}: {x.name} has the shape {x.shape}, but {y.name} has {y.shape}",
                     "there is no broadcasting: use .broadcast, or nisa.tensor_scalar with a column", argument="y")


def _binary(name):
    def f(x, y, dtype=None):
        if not isinstance(x, _Tensor):
            t = _like(y, dtype)
            _isa.tensor_scalar(dst=t, data=y, op0=f, operand0=x, reverse0=True)
            return t
        t = _like(x, dtype)
        if isinstance(y, _Tensor) and y.shape == x.shape:
            _isa.tensor_tensor(dst=t, data1=x, data2=y, op=f)
        elif isinstance(y, _Tensor) and y.size != y.shape[0]:
            _shapes_differ(name, x, y)
        else:
            _isa.tensor_scalar(dst=t, data=x, op0=f, operand0=y)
        return t

    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"{name}(x, y, dtype=None), element by element; also an operator of nki.isa."
    return f


def _unary(name):
    def f(x, dtype=None):
        t = _like(x, dtype)
        _isa.activation(dst=t, op=f, data=x)
        return t

    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"{name}(x, dtype=None), element by element; also a function of nisa.activation."
    return f


for _name, _is_binary in _nkx.nki_operators().items():
    globals()[_name] = _binary(_name) if _is_binary else _unary(_name)


class _OnlyAnOperand:
    """A value of op= that is no function of tensors."""

    def __init__(self, name, takes):
        self.__name__, self._takes = name, takes

    def __call__(self, *args, **kwargs):
        nki_names.refuse(_nkx.NkiOperator, f"nl.{self.__name__} is no function of tensors", self._takes)


bypass = _OnlyAnOperand("bypass", "pass it as op0 or op1 of nisa.activate2")
prelu = _OnlyAnOperand("prelu", "pass it as op of nisa.activate2, with relu_param")
average = _OnlyAnOperand("average", "use nl.mean")


def copy(x, dtype=None):
    t = _like(x, dtype)
    _isa.tensor_copy(dst=t, src=x)
    return t


def reciprocal(x, dtype=None):
    t = _like(x, dtype)
    _isa.reciprocal(dst=t, data=x)
    return t


def negative(x, dtype=None):
    t = _like(x, dtype)
    _isa.tensor_scalar(dst=t, data=x, op0="multiply", operand0=-1.0)
    return t


def divide(x, y, dtype=None):
    """x * (1 / y): no engine divides."""
    if not isinstance(y, _Tensor):
        return multiply(x, 1.0 / y, dtype)  # noqa: F821
    r = reciprocal(y, float32)
    return multiply(x, r, dtype) if isinstance(x, _Tensor) else multiply(r, x, dtype or y.dtype)  # noqa: F821


def mod(x, y, dtype=None):
    """The remainder of x / y with the sign of y, as Python's."""
    like = x if isinstance(x, _Tensor) else y
    dtype = dtype or like.dtype
    r = fmod(x, y, float32)  # noqa: F821
    differ = less(multiply(r, y, float32), 0.0, float32)  # noqa: F821
    return where(differ, add(r, y, float32), r, dtype)  # noqa: F821


def logical_not(x, dtype=None):
    return equal(x, 0.0, dtype)  # noqa: F821


def invert(x, dtype=None):
    return bitwise_xor(x, -1, dtype)  # noqa: F821


def where(condition, x, y, dtype=None):
    """x where condition is not 0, else y.  x and y are tensors of the shape of condition, or numbers."""
    if dtype is None:
        dtype = next((v.dtype for v in (x, y) if isinstance(v, _Tensor)), float32)
    mask = ndarray(condition.shape, uint8, sbuf)
    _isa.tensor_scalar(dst=mask, data=condition, op0="not_equal", operand0=0.0)
    t = ndarray(condition.shape, dtype, sbuf)
    _isa.select_reduce(dst=t, predicate=mask, on_true=x, on_false=y)
    return t


# Adding and taking away 1.5 * 2^23 rounds f32 to a whole number, for numbers below 2^22.
_ROUND = 12582912.0
_PI = 3.141592653589793
_TWO_PI = 6.28125, 2 * _PI - 6.28125  # the first part has few digits, so that its product with a whole number is exact


def _sine(x, shift, dtype):
    """sin(x + shift), with the argument brought into the range of the Scalar engine's table, which is -pi … pi."""
    turns, rest, t = _like(x, float32), _like(x, float32), _like(x, dtype)
    _isa.tensor_scalar(dst=turns, data=x, op0="multiply", operand0=0.5 / _PI, op1="add", operand1=shift * 0.5 / _PI)
    _isa.tensor_scalar(dst=turns, data=turns, op0="add", operand0=_ROUND, op1="subtract", operand1=_ROUND)
    _isa.scalar_tensor_tensor(dst=rest, data=turns, op0="multiply", operand0=-_TWO_PI[0], op1="add", operand1=x)
    _isa.scalar_tensor_tensor(dst=rest, data=turns, op0="multiply", operand0=-_TWO_PI[1], op1="add", operand1=rest)
    if shift:
        _isa.tensor_scalar(dst=rest, data=rest, op0="add", operand0=shift)
    _isa.activation(dst=t, op="sin", data=rest)
    return t


def sin(x, dtype=None):
    return _sine(x, 0.0, dtype)


def cos(x, dtype=None):
    return _sine(x, _PI / 2, dtype)


def tan(x, dtype=None):
    return divide(_sine(x, 0.0, float32), _sine(x, _PI / 2, float32), dtype or x.dtype)


# ---- random numbers -------------------------------------------------------------------------------------------------


def random_seed(seed):
    """The random numbers of the Vector engine begin anew.  seed: a tensor of one element of 32 bits, or a number."""
    if not isinstance(seed, _Tensor):
        seed = full((1, 1), seed, uint32)
    _isa.set_rng_seed(src_seeds=seed)


def rand(shape, dtype=float32, buffer=sbuf, name=""):
    """Random numbers from 0 to 1: the high 24 bits of a random number of 32 bits, divided by 2^24."""
    bits = ndarray(shape, uint32, sbuf)
    _isa.rng(dst=bits)
    _isa.tensor_scalar(dst=bits, data=bits, op0="right_shift", operand0=8)
    t = ndarray(shape, dtype, buffer, name)
    _isa.tensor_scalar(dst=t, data=bits, op0="multiply", operand0=2.0 ** -24)
    return t


def dropout(x, rate, dtype=None):
    """x, with 0 for each element with the probability `rate`."""
    t = _like(x, dtype)
    _isa.dropout(dst=t, data=x if t.dtype == x.dtype else copy(x, t.dtype), prob=rate)
    return t


def gather_flattened(data, indices, axis=0, dtype=None):
    """data[p, indices[p, i]] for each partition p; the free dimensions of data are one."""
    t = ndarray(indices.shape, data.dtype, sbuf)
    _isa.nc_n_gather(dst=t, data=data, indices=indices)
    return t if dtype in (None, data.dtype) else copy(t, dtype)


# ---- over axes ------------------------------------------------------------------------------------------------------


def _axes(x, axis, parameter="axis"):
    """The axes from the first on, which must be the last of x; parameter: what a refusal is about."""
    axes = sorted((a + x.ndim if a < 0 else a, a) for a in ((axis,) if isinstance(axis, int) else axis))
    for want, (a, given) in enumerate(axes, x.ndim - len(axes)):
        if a != want or a < 1:
            nki_names.refuse(_nkx.NkiOperand, f"axis {given} of a tensor of {x.ndim} dimensions cannot be reduced alone",
                   "reduce the last axes; tensor_partition_reduce reduces partitions", argument=parameter)
    return tuple(a for a, _ in axes)


def _reduced(op, x, axis, dtype, keepdims, parameter="axis"):
    axes = _axes(x, axis, parameter)
    shape = [1 if d in axes else n for d, n in enumerate(x.shape)]
    if not keepdims:
        shape = [n for d, n in enumerate(shape) if d not in axes]
    t = ndarray(shape if len(shape) > 1 else (x.shape[0], 1), dtype or x.dtype, sbuf)
    _isa.tensor_reduce(dst=t, op=op, data=x, axis=axes)
    return t


def _reduce(name, op):
    def f(x, axis, dtype=None, keepdims=False):
        return _reduced(op, x, axis, dtype, keepdims)

    f.__name__ = f.__qualname__ = name
    return f


sum = _reduce("sum", "add")  # noqa: A001
prod = _reduce("prod", "multiply")
max, min = globals()["max"], globals()["min"]  # noqa: A001


def _with_reduction(binary, op):
    """nl.max and nl.min are operators, and reductions if they get an axis."""
    def f(x, y=None, dtype=None, keepdims=False, *, axis=None):
        if axis is None and isinstance(y, (int, tuple, list)):
            return _reduced(op, x, y, dtype, keepdims, "y")
        if axis is not None:
            return _reduced(op, x, axis, dtype, keepdims)
        if y is None or keepdims:
            nki_names.refuse(_nkx.NkiCall, f"nl.{f.__name__} takes two tensors, or one and an axis")
        return binary(x, y, dtype)

    f.__name__ = f.__qualname__ = binary.__name__
    return f


max = _with_reduction(max, "maximum")  # noqa: A001
min = _with_reduction(min, "minimum")  # noqa: A001


def mean(x, axis, dtype=None, keepdims=False):
    n = 1
    for a in _axes(x, axis):
        n *= x.shape[a]
    s = sum(x, axis, float32, keepdims)
    t = ndarray(s.shape, dtype or x.dtype, sbuf)
    _isa.tensor_scalar(dst=t, data=s, op0="multiply", operand0=1.0 / n)
    return t


def all(x, axis, dtype=None, keepdims=False):  # noqa: A001
    return min(not_equal(x, 0.0, float32), axis, dtype or x.dtype, keepdims)  # noqa: F821


def _centered(x, axis):
    """x without its mean over the axes, and the number of elements of a mean."""
    m = mean(x, axis, float32, keepdims=True)
    d = _like(x, float32)
    _isa.tensor_tensor(dst=d, data1=x, data2=broadcast_to(m, x.shape), op="subtract")
    return d, x.size // m.size


def var(x, axis, dtype=None, keepdims=False):
    """The mean of the squares of x minus its mean.  The dimensions that are reduced stay, with size 1."""
    d, n = _centered(x, axis)
    s = sum(multiply(d, d), axis, float32, keepdims=True)  # noqa: F821
    return multiply(s, 1.0 / n, dtype or x.dtype)  # noqa: F821


def rms_norm(x, w, axis, n, epsilon=1e-6, dtype=None, compute_dtype=None):
    """x / sqrt(sum of x * x / n + epsilon) * w.  w has the shape of x; what is between is float32."""
    s = sum(multiply(x, x, compute_dtype or float32), axis, float32, keepdims=True)  # noqa: F821
    _isa.tensor_scalar(dst=s, data=s, op0="multiply", operand0=1.0 / n, op1="add", operand1=epsilon)
    _isa.activation(dst=s, op="rsqrt", data=s)
    t = _like(x, compute_dtype or float32)
    _isa.tensor_tensor(dst=t, data1=x, data2=broadcast_to(s, x.shape), op="multiply")
    return multiply(t, w, dtype or x.dtype)  # noqa: F821


def softmax(x, axis=-1, dtype=None):
    top = ndarray((x.shape[0], 1), float32, sbuf)
    _isa.tensor_reduce(dst=top, op="maximum", data=x, axis=axis, negate=True)
    e = _like(x, float32)
    total = ndarray((x.shape[0], 1), float32, sbuf)
    _isa.activation_reduce(dst=e, op="exp", data=x, reduce_op="add", reduce_res=total, bias=top)
    _isa.reciprocal(dst=total, data=total)
    t = _like(x, dtype)
    _isa.tensor_scalar(dst=t, data=e, op0="multiply", operand0=total)
    return t


def matmul(x, y, transpose_x=False):
    """x @ y in PSUM, or x.T @ y with transpose_x=True: then x is (K, M), y is (K, N), and x need not be transposed first."""
    rows, most = x.shape[1 if transpose_x else 0], tile_size.gemm_stationary_fmax
    if rows > most:
        nki_names.refuse(_nkx.NkiSizeLimit, f"the product has {rows} partitions, but at most {most} fit",
               "use tiles of nl.tile_size.gemm_stationary_fmax", argument="x")
    if not transpose_x and x.shape[1] != y.shape[0]:
        nki_names.refuse(_nkx.NkiShapeMismatch, f"x has {x.shape[1]} elements in each partition, but y has {y.shape[0]} partitions",
               "x @ y sums over the last axis of x and the first of y", argument="y")
    x = x if transpose_x else transpose(x)
    t = ndarray((rows, y.shape[1]), float32, psum)
    _isa.nc_matmul(dst=t, stationary=x, moving=y)
    return t


def transpose(x, dtype=None):
    """x.T in SBUF, by the Tensor engine; integers by DMA."""
    t = ndarray((x.shape[1], x.shape[0]), dtype or x.dtype, sbuf)
    if x.dtype.kind in "iu":
        _isa.dma_transpose(dst=t, src=x)
        return t
    p = ndarray(t.shape, x.dtype, psum)
    _isa.nc_transpose(dst=p, data=x)
    _isa.tensor_copy(dst=t, src=p)
    return t


def load_transpose2d(src, dtype=None):
    """src.T in SBUF, of elements of 2 or 4 bytes."""
    t = ndarray((src.shape[1], src.shape[0]), src.dtype, sbuf)
    _isa.dma_transpose(dst=t, src=src)
    return t if dtype is None or dtype == src.dtype else copy(t, dtype)


def shared_identity_matrix(n, dtype=uint8, dst=None):
    """The identity matrix of n rows, in SBUF."""
    t = ndarray((n, n), dtype, sbuf) if dst is None else dst
    numbers = ndarray((n, n), float32, sbuf)
    _isa.iota(dst=numbers, pattern=[[1, n]], channel_multiplier=-1)
    _isa.tensor_scalar(dst=t, data=numbers, op0="equal", operand0=0.0)
    return t


def broadcast_to(x, shape):
    """A view of x, repeated along the dimensions of size 1."""
    for d, n in enumerate(shape):
        if x.shape[d] != n:
            x = x.broadcast(d, n)
    return x


def expand_dims(x, axis):
    return x.expand_dim(axis)


nki_written.install(globals(), "nl", {
    "affine_range", "sequential_range", "static_range", "dynamic_range", "fori_loop", "while_loop", "ds", "ndarray", "empty_like",
    "is_sbuf", "is_psum", "is_hbm", "is_on_chip", "program_id", "num_programs", "program_ndim", "broadcast_to", "expand_dims"}, goes_on=True)
__getattr__ = nki_names.attribute_of(
    __name__,
    removed={"arange": "slice the tensor: t[0:128, 0:512]", "mgrid": "slice the tensor, or use .ap",
             "par_dim": "the first dimension counts partitions", "static_cast": "give dst the type",
             "loop_reduce": "accumulate into a tensor", "spmd_dim": "kernel[2] launches on two cores", "nc": "kernel[2]"})
