"""nki.language of beta 1: functions on tiles with broadcasting, masks, and index tiles.  They become calls of nki.isa."""
from collections.abc import Sequence

import _nkx
import numpy as np
from neuronxcc.nki import isa as _isa
from nki import isa as _ga_isa
from nki import language as _ga
from nki.language import (NKIObject, bfloat16, bool_, ds, float8_e4m3, float8_e4m3fn, float8_e5m2, float16,  # noqa: F401
                          float32, hbm, int8, int16, int32, no_reorder, num_programs, private_hbm, program_id, program_ndim, psum, sbuf,
                          sequential_range, shared_hbm, static_range, tfloat32, tile_size, uint8, uint16, uint32)
from nki.typing import mutable_tensor, tensor  # noqa: F401
from nkx import nki_beta1_ops as _b
from nkx import nki_names, nki_written
from nkx.nki_beta1 import par_dim  # noqa: F401
from nkx.nki_beta1_index import arange, mgrid  # noqa: F401
from nkx.nki_beta1_rows import Rows
from nkx.nki_grid import nc, spmd_dim  # noqa: F401
from nkx.nki_names import refuse

_Tensor = _b.Tensor


class _FloatInfo:
    min, max = float(np.finfo(np.float32).min), float(np.finfo(np.float32).max)


class affine_range(Sequence):  # noqa: N801
    """A loop whose rounds are independent: no two of them overwrite the same place.  The loop is unrolled."""

    nkx_is_independent = True

    def __init__(self, start, stop=None, step=1):
        self._range = range(start) if stop is None else range(start, stop, step)

    def __len__(self):
        return len(self._range)

    def __getitem__(self, i):
        return self._range[i]

    def __iter__(self):
        return iter(self._range)


fp32 = _FloatInfo()


def finfo(dtype):
    from ml_dtypes import finfo as f
    return f(_b.dtype_of(dtype))


# ---- tensors --------------------------------------------------------------------------------------------------------


def ndarray(shape, dtype, *, buffer=None, name="", **kwargs):
    """A tensor that is not initialised.  Axes before nl.par_dim count blocks."""
    return _b.new(shape, _b.dtype_of(dtype), buffer or sbuf, name)


def full(shape, fill_value, dtype, *, buffer=None, name="", **kwargs):
    t = ndarray(shape, dtype, buffer=buffer, name=name)
    for part in t.memory.parts.values():
        _ga_isa.memset(dst=part, value=fill_value)
    return t


def zeros(shape, dtype, *, buffer=None, name="", **kwargs):
    return full(shape, 0, dtype, buffer=buffer, name=name)


def ones(shape, dtype, *, buffer=None, name="", **kwargs):
    return full(shape, 1, dtype, buffer=buffer, name=name)


def zeros_like(x, dtype=None, *, buffer=None, name="", **kwargs):
    return zeros(x.shape, dtype or x.dtype, buffer=buffer or x.buffer, name=name)


def empty_like(x, dtype=None, *, buffer=None, name="", **kwargs):
    return ndarray(x.shape, dtype or x.dtype, buffer=buffer or x.buffer, name=name)


def shared_constant(constant, dtype=None, **kwargs):
    """A tensor in HBM that has the elements of an array, converted to dtype if it is given."""
    if isinstance(constant, str):
        refuse(_nkx.NkiUnsupported, "a constant in a file is not compiled here yet", "give the array itself", argument="constant")
    return _b.of(_nkx.nki_constant(constant if dtype is None else np.asarray(constant).astype(_b.dtype_of(dtype))))


def shared_identity_matrix(n, dtype=uint8, **kwargs):
    """The identity matrix of n rows as a constant in HBM."""
    return shared_constant(np.identity(n), dtype)


def _in_hbm(what, x):
    if not isinstance(x, (_Tensor, Rows)):
        refuse(_nkx.NkiCall, f"{what} must be a tensor, not {type(x).__name__}", argument=what)
    if x.memory.is_on_chip:
        refuse(_nkx.NkiMemory, f"{x.name} is in {x.buffer}, but {what} must be in hbm", "nl.copy copies a tile", argument=what)
    return x


def load(src, *, mask=None, dtype=None, **kwargs):
    """A copy in SBUF of a part of HBM; the first axis of the access counts partitions."""
    x = _in_hbm("src", src)
    box, rest = _b.box_of(mask, x.shape)
    if rest:  # elements outside of the mask are undefined: all are read, if all exist
        box, mask = (), None
    return _b.result(x.shape, _b.dtype_of(dtype or x.dtype), mask,
                     lambda to, box: _ga_isa.dma_copy(dst=to, src=_b.part_of(x, box, x.shape)), ())


def store(dst, value, *, mask=None, **kwargs):
    to = _in_hbm("dst", dst)
    if not isinstance(value, _Tensor):
        refuse(_nkx.NkiCall, f"nl.store stores a tile, not {type(value).__name__}", "make one with nl.full", argument="value")
    if value.shape != to.shape:
        if value.size != to.size and _b.broadcast_shapes(value.shape, to.shape) != to.shape:
            refuse(_nkx.NkiShapeMismatch, f"a tile of the shape {value.shape} is stored to a part of the shape {to.shape}")
        if value.size != to.size:
            value = value.broadcast_to(to.shape)
    box, rest = _b.cut(mask, to.shape, (value,) if value.shape == to.shape else ())
    if rest:
        refuse(_nkx.NkiMask, "a mask over several axes together cannot restrict a store", "restrict one axis in each store", argument="mask")
    if box is None:
        return
    to.memory.begin_writing()
    x = _b.part_of(value, box, to.shape) if value.shape == to.shape else value.view()
    if x.buffer == "psum" or x.dtype.kind in "iu" and to.dtype.kind in "iu" and x.dtype != to.dtype:
        t = _nkx.nki_ndarray(x.shape, to.dtype, sbuf, "")
        _ga_isa.tensor_copy(dst=t, src=x)
        x = t
    _ga_isa.dma_copy(dst=_b.part_of(to, box, to.shape), src=x)


def atomic_rmw(dst, value, op, *, mask=None, **kwargs):
    """dst = dst + value, for a part of HBM, also for rows that numbers select."""
    to = _in_hbm("dst", dst)
    if getattr(_b.operator_of(op), "__name__", _b.operator_of(op)) != "add":
        refuse(_nkx.NkiOperator, "nl.atomic_rmw adds", "pass op=np.add", argument="op")
    box, rest = _b.cut(mask, to.shape, (value,))
    if rest:
        refuse(_nkx.NkiMask, "a mask over several axes together cannot restrict atomic_rmw", "restrict one axis in each call", argument="mask")
    if box is None:
        return
    to.memory.begin_writing()
    x = _b.part_of(value, box, to.shape)
    part = _b.part_of(to, box, to.shape)
    _ga_isa.dma_compute(part, [part, x], "add")


def load_transpose2d(src, *, mask=None, dtype=None):
    return _b.of(_ga.load_transpose2d(_in_hbm("src", src).view(), dtype))


def copy(src, *, mask=None, dtype=None, **kwargs):
    return _b.copied(src, dtype, mask)


def static_cast(x, dtype):
    return _b.copied(x, dtype)


def broadcast_to(src, *, shape):
    return src.broadcast_to(shape)


def expand_dims(data, axis):
    return data.expand_dims(axis)


# ---- element by element ---------------------------------------------------------------------------------------------


def _binary(name):
    def f(x, y, *, dtype=None, mask=None, **kwargs):
        return _b.arith(name, x, y, dtype, mask)

    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"{name}(x, y), element by element; free axes are broadcast.  Also an operator of nki.isa."
    return f


def _unary(name):
    def f(x, *, dtype=None, mask=None, **kwargs):
        return _b.unary(name, x, dtype, mask)

    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"{name}(x), element by element; also a function of nisa.activation."
    return f


for _name, _is_binary in _nkx.nki_operators().items():
    if _name not in ("copy", "reciprocal", "max", "min", "sin", "bypass", "prelu"):
        globals()[_name] = _binary(_name) if _is_binary else _unary(_name)


def reciprocal(x, *, dtype=None, mask=None, **kwargs):
    return _b.reciprocal(x, dtype, mask)


def divide(x, y, *, dtype=None, mask=None, **kwargs):
    return _b.divide(x, y, None if dtype is None else _b.dtype_of(dtype), mask)


def negative(x, *, dtype=None, mask=None, **kwargs):
    return _b.arith("multiply", x, -1.0, dtype or x.dtype, mask)


def logical_not(x, *, dtype=None, mask=None, **kwargs):
    return _b.arith("equal", x, 0.0, dtype, mask)


def invert(x, *, dtype=None, mask=None, **kwargs):
    return _b.arith("bitwise_xor", x, -1, dtype or x.dtype, mask)


def where(condition, x, y, *, dtype=None, mask=None, **kwargs):
    """x where condition is not 0, else y."""
    _b.check_operand("where", condition)
    shape = condition.shape
    like = lambda v, box: _b.part_of(v.broadcast_to(shape), box, shape) if isinstance(v, _Tensor) else v
    dtype = _b.dtype_of(dtype) if dtype is not None else _b.promote(x, y)

    def emit(to, box):
        flags = _nkx.nki_ndarray(to.shape, "uint8", sbuf, "")
        _ga_isa.tensor_scalar(dst=flags, data=_b.part_of(condition, box, shape), op0="not_equal", operand0=0.0)
        _ga_isa.select_reduce(dst=to, predicate=flags, on_true=like(x, box), on_false=like(y, box))

    return _b.result(shape, dtype, mask, emit, (condition, x, y))


def _composed(name):
    """A function of today's nki.language that consists of several calls."""
    def f(x, *args, dtype=None, mask=None, **kwargs):
        _b.check_operand(name, x)
        box, rest = _b.cut(mask, x.shape, (x, *args))
        if box is None:
            return _b.new(x.shape, dtype or x.dtype)
        views = [_b.part_of(a, box, x.shape) if isinstance(a, _Tensor) else a for a in (x, *args)]
        views, kwargs = views, {k: _b.part_of(v, box, x.shape) if isinstance(v, _Tensor) else v for k, v in kwargs.items()}
        kwargs |= {} if dtype is None else {"dtype": _b.dtype_of(dtype)}
        r = _b.of(getattr(_ga, name)(*views, **kwargs))
        if not box:
            return r
        return _b.result(x.shape, r.dtype, mask, lambda to, box: _ga_isa.tensor_copy(dst=to, src=r.view()), (x, *args))

    f.__name__ = f.__qualname__ = name
    return f


def mod(x, y, *, dtype=None, mask=None, **kwargs):
    """The remainder of x / y with the sign of y, as Python's."""
    r = _b.arith("fmod", x, y, float32, mask)
    differ = _b.arith("less", _b.arith("multiply", r, y, float32, mask), 0.0, float32, mask)
    return where(differ, _b.arith("add", r, y, float32, mask), r, dtype=dtype or _b.promote(x, y), mask=mask)


for _name in ("sin", "cos", "tan", "softmax"):
    globals()[_name] = _composed(_name)


# ---- over axes ------------------------------------------------------------------------------------------------------


def _reduction(name, op):
    def f(x, axis, *, dtype=None, mask=None, keepdims=False, **kwargs):
        return _isa.reduced(op, x, axis, dtype, mask, False, keepdims)

    f.__name__ = f.__qualname__ = name
    f.__doc__ = f"{name}(x, axis) over free axes."
    return f


sum, prod = _reduction("sum", "add"), _reduction("prod", "multiply")  # noqa: A001
max, min = _reduction("max", "maximum"), _reduction("min", "minimum")  # noqa: A001


def loop_reduce(x, op, loop_indices, *, dtype=None, mask=None, **kwargs):
    """t = loop_reduce(x, op, …) and t[…] = loop_reduce(x, op, …) in a loop: t = op(t, x), beginning with the t before the
    loop.  rounds.py adds a function that gives t to the call, as `into`."""
    try:
        into = kwargs["into"]()
    except (KeyError, NameError):  # not assigned, or to a name that has no value yet
        into = None
    if not isinstance(into, _Tensor):
        refuse(_nkx.NkiCall, "the result of nl.loop_reduce is not assigned to a tile",
               "make t before the loop, and write t = nl.loop_reduce(…) or t[…] = nl.loop_reduce(…)")
    dtype = into.dtype if dtype is None else _b.dtype_of(dtype)
    return _b.arith(_b.operator_of(op), into, x, dtype, mask, into if dtype == into.dtype else None)


def _count(x, axis):
    n = 1
    for a in [axis] if isinstance(axis, int) else axis:
        n *= x.shape[a]
    return n


def mean(x, axis, *, dtype=None, mask=None, keepdims=False, **kwargs):
    s = sum(x, axis, dtype=float32, mask=mask, keepdims=keepdims)
    return _b.arith("multiply", s, 1.0 / _count(x, axis), dtype or x.dtype)


def var(x, axis, *, dtype=None, mask=None, **kwargs):
    """The mean of the squares of x minus its mean.  The axes that are reduced stay, with size 1."""
    d = _b.arith("subtract", x, mean(x, axis, dtype=float32, mask=mask, keepdims=True), float32, mask)
    s = sum(_b.arith("multiply", d, d, float32, mask), axis, dtype=float32, mask=mask, keepdims=True)
    return _b.arith("multiply", s, 1.0 / _count(x, axis), dtype or x.dtype)


def all(x, axis, *, dtype=None, mask=None, **kwargs):  # noqa: A001
    return min(_b.arith("not_equal", x, 0.0, float32, mask), axis, dtype=dtype or x.dtype, mask=mask)


def rms_norm(x, w, axis, n, epsilon=1e-6, *, dtype=None, compute_dtype=None, mask=None, **kwargs):
    """x / sqrt(sum of x * x / n + epsilon) * w"""
    compute = compute_dtype or float32
    s = sum(_b.arith("multiply", x, x, compute, mask), axis, dtype=float32, mask=mask, keepdims=True)
    s = _isa.tensor_scalar(s, "multiply", 1.0 / n, op1="add", operand1=epsilon)
    t = _b.arith("multiply", x, _b.unary("rsqrt", s), compute, mask)
    return _b.arith("multiply", t, w, dtype or x.dtype, mask)


# ---- random numbers and gathers -------------------------------------------------------------------------------------


def random_seed(seed, *, mask=None, **kwargs):
    """The random numbers begin anew.  seed: a tile of one element, or a number."""
    _ga.random_seed(seed.view() if isinstance(seed, _Tensor) else seed)


def rand(shape, dtype=float32, **kwargs):
    """Random numbers from 0 to 1."""
    return _b.of(_ga.rand(tuple(map(int, shape)), _b.dtype_of(dtype)))


def dropout(x, rate, *, dtype=None, mask=None, **kwargs):
    """x, with 0 for each element with the probability `rate`."""
    return _isa.dropout(x, rate, dtype=dtype, mask=mask)


def gather_flattened(data, indices, *, dtype=None, mask=None, **kwargs):
    """data[p, indices[p, i]] for each partition p."""
    for name, x in (("data", data), ("indices", indices)):
        _b.check_operand(name, x)
    return _b.result(indices.shape, _b.dtype_of(dtype or data.dtype), mask, lambda to, box: _ga_isa.nc_n_gather(
        dst=to, data=data.view([box[0], *[(0, n) for n in data.shape[1:]]] if box else None),
        indices=_b.part_of(indices, box, indices.shape)), (indices,))


def device_print(print_prefix, x, *, mask=None, **kwargs):
    """Prints nothing: the simulated machine shows each value (Values, in the page)."""


# ---- products -------------------------------------------------------------------------------------------------------


def _in_sbuf(x):
    return _b.copied(x) if x.buffer == psum else x


def transpose(x, *, dtype=None, mask=None, **kwargs):
    return _isa.nc_transpose(_in_sbuf(x), mask=mask, dtype=dtype)


def matmul(x, y, *, transpose_x=False, mask=None, **kwargs):
    """x @ y in PSUM, or x.T @ y.  The Tensor engine wants x transposed, and does that first."""
    for name, t in (("x", x), ("y", y)):
        _b.check_operand("matmul", t)
        if not isinstance(t, _Tensor):
            refuse(_nkx.NkiCall, f"{name} of nl.matmul must be a tile, not {type(t).__name__}", argument=name)
    x = x if transpose_x else _b.copied(_isa.nc_transpose(_in_sbuf(x)))
    return _isa.nc_matmul(_in_sbuf(x), _in_sbuf(y), mask=mask)


nki_written.install(globals(), "nl", {"refuse", "finfo", "arange", "ds", "par_dim", "nc", "spmd_dim", "program_id", "num_programs",
                                      "program_ndim", "sequential_range", "static_range", "expand_dims"}, goes_on=True)
__getattr__ = nki_names.attribute_of(
    __name__)
