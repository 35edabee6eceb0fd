"""Instructions of NKI beta 1: what a mask leaves of them, results, assignments, and operations element by element.

A result that is assigned at once, t[…] = nisa.activation(…), is written to t by the call itself (nki_redirect); a value
that a variable holds is copied.
"""
import functools
import sys

import _nkx
import numpy as np
from nki import isa
from nkx.nki_beta1 import Tensor, dtype_of, new, of, par_dim  # noqa: F401
from nkx.nki_beta1_index import KEPT_MAX, Index, Mask, broadcast_shapes
from nkx import nki_unknown, nki_written
from nkx.nki_names import refuse


_NUMPY = {"amax": "maximum", "amin": "minimum"}


def operator_of(o):
    """Beta 1 takes NumPy's functions as operators, too."""
    return _NUMPY.get(getattr(o, "__name__", o), getattr(o, "__name__", o)) if isinstance(o, np.ufunc) or callable(o) and getattr(
        o, "__module__", "") == "numpy" else o


# ---- instructions ---------------------------------------------------------------------------------------------------


def box_of(mask, shape):
    """What a mask leaves of a tile: (box, rest) as Mask.cut has them."""
    if mask is None or mask is True:
        return (), ()
    if mask is False:
        _nkx.nki_written_note(nki_written.mask_text(None, (), shape))
        return None, ()
    if not isinstance(mask, Mask):
        refuse(_nkx.NkiMask, f"a mask is a comparison of index tiles, not {type(mask).__name__}", "mask=(i_p < n)", argument="mask")
    box, rest, said = mask.cut(shape)
    _nkx.nki_written_note(said)
    return box, rest


def part_of(t, box, shape):
    """The view of an operand where the instruction goes over the box of a tile of this shape."""
    if not box:
        return t.view()
    if t.shape == shape:
        return t.view(box)
    more = len(shape) - t.ndim
    own = [(0, 1) if n == 1 else box[d + more] for d, n in enumerate(t.shape)]
    return t.view(own)


def intersection(box, other, shape):
    """Of two boxes of a tile; () is all of it, None nothing."""
    if box is None or other is None:
        return None
    if not other or box == other:
        return box
    both = tuple([(max(a, c), min(b, d)) for (a, b), (c, d) in zip(box or [(0, n) for n in shape], other)])
    if any([a >= b for a, b in both]):
        return None
    return () if both == tuple([(0, n) for n in shape]) else both


def valid_box(t, shape):
    """The part of an instruction's tile where its operand is defined; () for all."""
    if t.is_whole and t.shape == shape:
        return t.memory.valid or ()
    return _valid_box(tuple(shape), t.shape, tuple(t.maps), t.memory.valid or ())


@functools.lru_cache(KEPT_MAX)
def _valid_box(shape, own, maps, valid):
    box, more = [(0, n) for n in shape], len(shape) - len(own)
    for (o, steps), (least, end) in zip(maps, valid):
        axes = [d for d, s in enumerate(steps) if s and own[d] > 1]
        if len(axes) == 1 and steps[axes[0]] > 0:
            (d,), s = axes, steps[axes[0]]
            box[d + more] = max(box[d + more][0], -((o - least) // s)), min(box[d + more][1], (end - 1 - o) // s + 1)
    return intersection((), tuple(box), shape)


def cut(mask, shape, operands):
    """box_of, without what is undefined in the operands."""
    box, rest = box_of(mask, shape)
    for t in operands:
        if isinstance(t, Tensor) and t.memory.valid:
            box = intersection(box, valid_box(t, shape), shape)
    return box, rest


def result(shape, dtype, mask, emit, operands, buffer="sbuf", dst=None):
    """A new tile, or dst.  emit(view of the tile, box) records the instruction that writes it."""
    box, rest = cut(mask, shape, operands)
    if dst is None:
        dst = new(shape if len(shape) > 1 else (*shape, 1), dtype, buffer)
        mark(dst, box, rest)
    elif rest:
        refuse(_nkx.NkiMask, "a mask over several axes together cannot restrict this instruction", "assign its result: t[…] = …", argument="mask")
    if box is not None:
        emit(dst.view(box or None) if dst.ndim == len(shape) else dst.view(), box)
    return dst


def mark(t, box, rest=()):
    """Notes what is defined of a new tile."""
    t.memory.valid, t.memory.rest = ((0, 0),) * t.ndim if box is None else tuple(box) or None, rest


def _redirect(dst, value, accumulate):
    m = value.memory
    if value.shape != dst.shape or len(m.parts) > 1 or m.shape != value.shape or m.rest:
        return False
    box = valid_box(value, value.shape)
    return box is not None and _nkx.nki_redirect(m.parts[()], dst.view(box or None), accumulate)


def assign(dst, value, is_temporary=False):
    """dst[…] = value, a tile, a number or a bool."""
    if isinstance(value, Tensor) and value.memory is dst.memory and value.maps == dst.maps and value.shape == dst.shape:
        return  # what t[…] += x assigns
    if not isinstance(value, Tensor):
        if not isinstance(value, (int, float, bool, np.number, np.bool_)):
            refuse(_nkx.NkiCall, f"a tile cannot be set to {type(value).__name__}", "assign a tile or a number")
        isa.memset(dst=dst.view(), value=value)
        return
    if not dst.memory.is_on_chip:
        refuse(_nkx.NkiMemory, f"{dst.name} is in {dst.buffer}, and cannot be assigned to", "use nl.store")
    while dst.ndim < value.ndim:  # t[:, k] = a column
        dst = dst.expand_dims(dst.ndim)
    if broadcast_shapes(value.shape, dst.shape) != dst.shape:
        refuse(_nkx.NkiShapeMismatch, f"a tile of the shape {value.shape} is assigned to one of the shape {dst.shape}")
    m = dst.memory
    if is_temporary and _redirect(dst, value, False if m.has_products else None):
        m.has_products = m.buffer == "psum"
        return
    value, rest = value.broadcast_to(dst.shape), value.memory.rest
    box = valid_box(value, dst.shape)
    if box is None:
        return
    to, source = part_of(dst, box, dst.shape), part_of(value, box, dst.shape)
    if rest:
        isa.tensor_copy_predicated(dst=to, src=_converted(source, to.dtype), predicate=predicate(rest, to.shape))
    elif not value.memory.is_on_chip:
        isa.dma_copy(dst=to, src=source)
    else:
        isa.tensor_copy(dst=to, src=source)


def _converted(view, dtype):
    if view.dtype == dtype:
        return view
    t = _nkx.nki_ndarray(view.shape, dtype, "sbuf", "")
    isa.tensor_copy(dst=t, src=view)
    return t


def numbers(index, dtype, view=None):
    """A view that holds the integers of an index tile; its first axis counts partitions."""
    shape = index.shape if index.ndim > 1 else (*index.shape, 1)
    steps = index.steps if index.ndim > 1 else (*index.steps, 0)
    view = _nkx.nki_ndarray(shape, dtype, "sbuf", "") if view is None else view
    isa.iota(dst=view, pattern=[[s, n] for s, n in zip(steps[1:], shape[1:])], offset=index.offset, channel_multiplier=steps[0])
    return view


def predicate(conditions, shape):
    """A uint8 tile that is 1 where all conditions hold."""
    all_of = None
    for c in conditions:
        one = _nkx.nki_ndarray(shape, "uint8", "sbuf", "")
        isa.tensor_scalar(dst=one, data=numbers(c, "float32"), op0="greater_equal", operand0=0.0)
        if all_of is not None:
            isa.tensor_tensor(dst=one, data1=all_of, data2=one, op="multiply")
        all_of = one
    return all_of


def spread(t, partitions):
    """A tile of one partition, repeated in all: a product with a row of ones, which is exact."""
    dtype = t.dtype if t.dtype.kind not in "iub" else refuse(
        _nkx.NkiDtype, f"{t.name} is {t.dtype}, and partitions are repeated for floats only", "load it once for each partition")
    r, row = new((partitions, *t.shape[1:]), dtype), t.view()
    ones = _nkx.nki_ndarray((1, partitions), dtype, "sbuf", "")
    isa.memset(dst=ones, value=1.0)
    flat = (1, t.size)
    row, to = row.reshape(flat), r.view().reshape((partitions, t.size))
    for start in range(0, t.size, 512):
        columns = slice(start, min(start + 512, t.size))
        product = _nkx.nki_ndarray((partitions, columns.stop - start), "float32", "psum", "")
        isa.nc_matmul(dst=product, stationary=ones, moving=row[:, columns])
        isa.tensor_copy(dst=to[:, columns], src=product)
    return r


# ---- element by element ---------------------------------------------------------------------------------------------

_KINDS = {bool: np.dtype("uint8"), int: np.dtype("int32"), float: np.dtype("float32")}


def _number_dtype(x):
    return x.dtype if isinstance(x, (Tensor, np.generic)) else next(d for t, d in _KINDS.items() if isinstance(x, t))


def _is_float(d):
    return d.kind == "f" or d.name.startswith(("bfloat", "float"))


def promote(x, y):
    """The dtype of x op y, by beta 1's table of promotion.  Numbers of Python are uint8, int32 and float32."""
    return _promoted(_number_dtype(x), _number_dtype(y))


@functools.lru_cache(256)
def _promoted(a, b):
    a, b = (np.dtype("uint8") if d.kind == "b" else d for d in (a, b))
    if a == b:
        return a
    if _is_float(a) != _is_float(b):
        return a if _is_float(a) else b
    if not _is_float(a):
        wide = np.result_type(a, b)
        return wide if wide.itemsize <= 4 else np.dtype("float32")
    if a.itemsize != b.itemsize:
        return a if a.itemsize > b.itemsize else b
    return np.dtype("float32" if a.itemsize > 1 else "bfloat16")


_COMPARES = {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and", "logical_or", "logical_xor"}


def is_column(x):
    """True for a tile with one element in each partition."""
    return isinstance(x, Tensor) and x.memory.is_on_chip and x.size == x.shape[0]


def _shape_of(op, x, y):
    x, y = (t.shape if isinstance(t, Tensor) else () for t in (x, y))
    shape = broadcast_shapes(x, y)
    if shape is None or (len(x) == len(y) and x and x[0] != y[0]):
        refuse(_nkx.NkiShapeMismatch, f"nl.{op}: the shapes {x} and {y} are not broadcast to each other",
               "free axes of size 1 are repeated; partitions with .broadcast_to")
    return shape


def check_operand(op, x):
    if isinstance(x, Tensor):
        if not x.memory.is_on_chip:
            refuse(_nkx.NkiMemory, f"{x.name} is in {x.buffer}, but engines work on SBUF and PSUM", "load it first: nl.load(x[…])", about=x)
        x.check_is_one_block()
    elif not isinstance(x, (int, float, bool, np.number, np.bool_)):
        refuse(_nkx.NkiCall, f"nl.{op} takes tiles and numbers, not {type(x).__name__}", about=x)


def arith(op, x, y, dtype=None, mask=None, dst=None, engine=None):
    """x op y.  Free axes of size 1 are broadcast."""
    check_operand(op, x)
    check_operand(op, y)
    if not isinstance(x, Tensor) and not isinstance(y, Tensor):
        refuse(_nkx.NkiCall, f"nl.{op} has no tile", "compute with numbers in Python")
    shape = _shape_of(op, x, y)
    first = x if isinstance(x, Tensor) else y
    dtype = dtype_of(dtype) if dtype is not None else first.dtype if op in _COMPARES else promote(x, y)
    if op == "divide":
        return divide(x, y, dtype, mask, dst)

    def emit(to, box):
        if isinstance(x, Tensor) and x.shape == shape and (not isinstance(y, Tensor) or is_column(y) and y.size != x.size):
            other = part_of(y, box, shape) if isinstance(y, Tensor) else y
            isa.tensor_scalar(dst=to, data=part_of(x, box, shape), op0=op, operand0=other)
        elif isinstance(y, Tensor) and y.shape == shape and (not isinstance(x, Tensor) or is_column(x) and x.size != y.size):
            other = part_of(x, box, shape) if isinstance(x, Tensor) else x
            isa.tensor_scalar(dst=to, data=part_of(y, box, shape), op0=op, operand0=other, reverse0=True)
        else:
            a, b = (part_of(t if t.shape == shape else t.broadcast_to(shape), box, shape) for t in (x, y))
            if a.buffer == b.buffer == "psum":
                b = in_sbuf(b)
            isa.tensor_tensor(dst=to, data1=a, data2=b, op=op)

    return result(shape, dtype, mask, emit, (x, y), dst=dst)


def in_sbuf(view):
    """The view, or a copy of it if it is in PSUM: for engines that do not reach that, or read only one operand from there."""
    if view.buffer != "psum":
        return view
    t = _nkx.nki_ndarray(view.shape, view.dtype, "sbuf", "")
    isa.tensor_copy(dst=t, src=view)
    return t


def unary(op, x, dtype=None, mask=None):
    """A function of nisa.activation."""
    check_operand(op, x)
    if not isinstance(x, Tensor):
        refuse(_nkx.NkiCall, f"nl.{op} takes a tile, not {type(x).__name__}", about=x)
    return result(x.shape, dtype_of(dtype or x.dtype), mask,
                  lambda to, box: isa.activation(dst=to, op=op, data=part_of(x, box, x.shape)), (x,))


def reciprocal(x, dtype=None, mask=None):
    check_operand("reciprocal", x)
    return result(x.shape, dtype_of(dtype or x.dtype), mask,
                  lambda to, box: isa.reciprocal(dst=to, data=part_of(x, box, x.shape)), (x,))


def divide(x, y, dtype=None, mask=None, dst=None):
    """x * (1 / y): no engine divides."""
    check_operand("divide", x)
    check_operand("divide", y)
    dtype = promote(x, y) if dtype is None else dtype
    if not isinstance(y, Tensor):
        return arith("multiply", x, 1.0 / y, dtype, mask, dst)
    return arith("multiply", x, reciprocal(y, "float32", mask), dtype, mask, dst)


def copied(x, dtype=None, mask=None, engine=None):
    check_operand("copy", x)
    return result(x.shape, dtype_of(dtype or x.dtype), mask,
                  lambda to, box: isa.tensor_copy(dst=to, src=part_of(x, box, x.shape), **({"engine": engine} if engine else {})), (x,))


# ---- operators of tensors -------------------------------------------------------------------------------------------


class _Probe:
    """Finds how many references a value has that only the interpreter's stack holds."""

    def __setitem__(self, key, value):
        self.set = sys.getrefcount(value)

    def __iadd__(self, value):
        self.add = sys.getrefcount(value)
        return self


_probe = _Probe()
_probe[0] = object()
_probe += object()


def _set(t, key, value):
    is_temporary = sys.getrefcount(value) == _probe.set
    if nki_unknown.among((value, key), {}):
        return
    nki_written.statement("tile[…] =", lambda: f"{nki_written.text(t)}[{nki_written.key_text(key)}] = {nki_written.text(value)}",
                          assign, t[key], value, is_temporary)


def _add_to(t, value):
    is_temporary = sys.getrefcount(value) == _probe.add
    nki_written.statement("tile +=", lambda: f"{nki_written.text(t)} += {nki_written.text(value)}", _add, t, value, is_temporary)
    return t


def _add(t, value, is_temporary):
    if is_temporary and t.memory.buffer == "psum" and getattr(value, "is_product", False) and _redirect(t, value, None):
        t.memory.has_products = True  # the product itself adds
    else:
        arith("add", t, value, dst=t)


def _operator(name):
    return lambda x, y: arith(name, x, y)


def _reflected(name):
    return lambda x, y: arith(name, y, x)


def _in_place(name):
    return lambda x, y: arith(name, x, y, dst=x)


def _equal(name, same):
    symbol = "==" if same else "!="
    compare = nki_written.operator_of(f"tile {symbol}", symbol, _operator(name))

    def f(x, y):
        if isinstance(y, (Tensor, int, float, np.number)):
            return compare(x, y)
        return (x is y) == same  # with None and other objects: identity
    return f


def _matmul(x, y):
    refuse(_nkx.NkiTensorOperator, "@ is no operator of tiles", "use nl.matmul or nisa.nc_matmul")


for _dunder, _name, _symbol in (
        ("add", "add", "+"), ("sub", "subtract", "-"), ("mul", "multiply", "*"), ("truediv", "divide", "/"), ("pow", "power", "**"),
        ("and", "bitwise_and", "&"), ("or", "bitwise_or", "|"), ("xor", "bitwise_xor", "^"), ("lshift", "left_shift", "<<"),
        ("rshift", "right_shift", ">>")):
    setattr(Tensor, f"__{_dunder}__", nki_written.operator_of(f"tile {_symbol}", _symbol, _operator(_name)))
    setattr(Tensor, f"__r{_dunder}__", nki_written.wrapped(
        f"tile {_symbol}", _reflected(_name), lambda _, x, kw, s=_symbol: f"{nki_written.text(x[1])} {s} {nki_written.text(x[0])}", True))
    setattr(Tensor, f"__i{_dunder}__", nki_written.operator_of(f"tile {_symbol}=", f"{_symbol}=", _in_place(_name), True))
for _dunder, _name, _symbol in (("lt", "less", "<"), ("le", "less_equal", "<="), ("gt", "greater", ">"), ("ge", "greater_equal", ">=")):
    setattr(Tensor, f"__{_dunder}__", nki_written.operator_of(f"tile {_symbol}", _symbol, _operator(_name)))
Tensor.__setitem__, Tensor.__iadd__ = _set, _add_to
Tensor.__eq__, Tensor.__ne__ = _equal("equal", True), _equal("not_equal", False)
Tensor.__matmul__ = Tensor.__rmatmul__ = nki_written.operator_of("tile @", "@", _matmul)
Tensor.__neg__ = nki_written.wrapped("-tile", lambda x: arith("multiply", x, -1.0, dtype=x.dtype), lambda _, x, kw: f"-{nki_written.text(x[0])}", True)
Tensor.__invert__ = nki_written.wrapped("~tile", lambda x: arith("bitwise_xor", x, -1, dtype=x.dtype),
                                        lambda _, x, kw: f"~{nki_written.text(x[0])}", True)
Tensor.astype = nki_written.method("astype", copied)
Tensor.spread = nki_written.method("broadcast_to", spread, lambda t, n: f"broadcast_to({(n, *t.shape[1:])})")
