"""Tensors of NKI beta 1, over the tensors of the record (compiler/nki/nki.h).

A Tensor is memory and an affine map for each of its axes, from the axes that an instruction goes over to an index:

    t[i_p, 64 * k + i_f]    axis 0: i0,   axis 1: 64 * k + i1

Nothing is recorded for an access.  An instruction asks for its view, which is cut to the instruction's mask first, and
only then compared with the memory's bounds.

Memory on chip may have block dimensions, the axes before nl.par_dim: one tensor of the record for each block.

A result that is assigned at once, t[…] = nisa.activation(…), is written to t by the call itself (nki_redirect); a value
that a variable holds is copied.
"""
import inspect
import itertools
import math
import sys

import _nkx
import numpy as np
from nki import isa
from nkx.nki_beta1_index import Index, Mask, broadcast_shapes, is_integer
from nkx.nki_names import refuse


class par_dim(int):
    """The size of the axis that counts partitions."""


def dtype_of(d):
    """A NumPy dtype for what beta 1 takes as one: a type, a dtype or a name."""
    try:
        return np.dtype(getattr(d, "name", d) if not isinstance(d, type) else d)
    except TypeError:
        return refuse(_nkx.NkiDtype, f"{d!r} is not a data type", "use a type of nl, such as nl.float32")


# ---- memory ---------------------------------------------------------------------------------------------------------


class Memory:
    """One tensor of the record, or one for each block.  shape: block dimensions, partitions, others; partition: the axis
    that counts partitions, or -1 in HBM.

    A result that an instruction with a mask has written is undefined elsewhere.  valid: the box [(first, end), …] that is
    defined, or None if all is; rest: conditions besides (Mask.cut).  Instructions on it leave out what is undefined.

    parameter: of an argument of the kernel, its Parameter."""

    def __init__(self, shape, partition, parts):
        self.shape, self.partition, self.parts = tuple(shape), partition, parts
        first = next(iter(parts.values()))
        self.dtype, self.buffer, self.name = first.dtype, first.buffer, first.name
        self.has_products = False
        self.valid, self.rest = None, []
        self.parameter = None

    @property
    def is_on_chip(self):
        return self.partition >= 0


    def begin_writing(self):
        """Called before a write.  What a kernel writes to an argument goes to a new tensor, which becomes a result."""
        if self.parameter and self.parameter.result is None:
            self.parameter.begin_writing(self)


class Parameter:
    """An argument that is a tensor: its name, whether it is annotated as mutable, and the result that has taken its
    place."""

    def __init__(self, name, is_mutable):
        self.name, self.is_mutable, self.result = name, is_mutable, None

    def begin_writing(self, memory):
        (old,) = memory.parts.values()
        self.result = _nkx.nki_ndarray(old.shape, old.dtype, "shared_hbm", self.name + "_result")
        if self.is_mutable:  # the elements that are not written stay
            isa.dma_copy(dst=self.result, src=old)
        memory.parts = {(): self.result}


def _is_hbm(buffer):
    return "hbm" in str(getattr(buffer, "name", buffer))


def new(shape, dtype, buffer="sbuf", name=""):
    """A new Tensor.  A size that is a par_dim is the axis of partitions; axes before it count blocks."""
    shape = (shape,) if is_integer(shape) else tuple(shape)
    if not shape or not all(map(is_integer, shape)):
        refuse(_nkx.NkiCall, f"the shape {shape} has no sizes", "write (nl.par_dim(128), 512)")
    if _is_hbm(buffer):
        return whole(Memory(shape, -1, {(): _nkx.nki_ndarray(shape, dtype, buffer, name)}))
    marked = [d for d, n in enumerate(shape) if isinstance(n, par_dim)]
    if len(marked) > 1:
        refuse(_nkx.NkiCall, "a shape has more than one nl.par_dim", "one axis counts partitions")
    p = marked[0] if marked else 0
    one = (*shape[p:], 1) if p == len(shape) - 1 else shape[p:]
    blocks = itertools.product(*map(range, shape[:p]))
    return whole(Memory(shape, p, {b: _nkx.nki_ndarray(tuple(map(int, one)), dtype, buffer, name) for b in blocks}))


def of(view):
    """The Tensor of a tensor of the record, or of a view of one."""
    return whole(Memory(view.shape, -1 if _is_hbm(view.buffer) else 0, {(): view}))


def whole(memory):
    n = len(memory.shape)
    return Tensor(memory, memory.shape, [(0, tuple(int(d == a) for d in range(n))) for a in range(n)])


# ---- tensors --------------------------------------------------------------------------------------------------------


class Tensor:
    """maps: for each axis of the memory (offset, steps over the axes of `shape`)."""

    __array_ufunc__ = None
    __hash__ = object.__hash__
    is_product = False  # what nisa.nc_matmul returns

    def __init__(self, memory, shape, maps):
        self.memory, self.shape, self.maps = memory, tuple(int(n) for n in shape), maps

    dtype = property(lambda self: self.memory.dtype)
    buffer = property(lambda self: self.memory.buffer)
    name = property(lambda self: self.memory.name)
    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: math.prod(self.shape))

    def __repr__(self):
        return f"{self.name}: {self.dtype}{self.shape} in {self.buffer}"

    def __len__(self):
        return self.shape[0]

    def __iter__(self):
        refuse(_nkx.NkiTensorOperator, "a tensor is no sequence", "iterate over a range, and index the tensor")

    def __bool__(self):
        refuse(_nkx.NkiTensorTruth, "a tensor has no truth value while the kernel is compiled",
               "compare sizes or other Python values; use nl.where for data")

    # ---- accesses

    def __getitem__(self, key):
        shape, entries = _entries(self, key)
        maps = []
        for offset, steps in self.maps:
            for a, s in enumerate(steps):
                offset += s * entries[a].offset
            maps.append((offset, tuple(sum(s * e.steps[d] for s, e in zip(steps, entries)) for d in range(len(shape)))))
        return Tensor(self.memory, shape, maps)

    def _with_axes(self, shape, order):
        """The same elements with other axes; order: for each new axis the old one, or None for one without steps."""
        return Tensor(self.memory, shape, [(o, tuple(0 if a is None else s[a] for a in order)) for o, s in self.maps])

    def broadcast_to(self, shape):
        shape = tuple(shape)
        if broadcast_shapes(self.shape, shape) != shape:
            refuse(_nkx.NkiShapeMismatch, f"{self.name} has the shape {self.shape}, which is not broadcast to {shape}")
        if self.memory.is_on_chip and len(shape) == self.ndim and self.shape[0] == 1 != shape[0]:
            return spread(self, shape[0]).broadcast_to(shape)
        more = len(shape) - self.ndim
        return self._with_axes(shape, [None if d < more or self.shape[d - more] == 1 != n else d - more
                                       for d, n in enumerate(shape)])

    def with_last(self, axes):
        """The axes in this list last, in their order."""
        order = [a for a in range(self.ndim) if a not in axes] + list(axes)
        return self._with_axes([self.shape[a] for a in order], order)

    def reshape(self, shape, *more):
        shape = (shape, *more) if is_integer(shape) else shape
        return of(self.view().reshape(tuple(map(int, shape))))

    def astype(self, dtype):
        r = new(self.shape, dtype_of(dtype))
        isa.tensor_copy(dst=r.view(), src=self.view())
        return r

    def expand_dims(self, axis):
        axis += self.ndim + 1 if axis < 0 else 0
        order = list(range(self.ndim))
        return self._with_axes((*self.shape[:axis], 1, *self.shape[axis:]), [*order[:axis], None, *order[axis:]])

    # ---- views

    def view(self, box=None):
        """The view of the record that these elements are.  box: the part [(first, end), …] of the axes."""
        m = self.memory
        sizes, maps = list(self.shape), self.maps
        if box is not None:
            maps = [(o + sum(s * f for s, (f, _) in zip(steps, box)), steps) for o, steps in maps]
            sizes = [end - first for first, end in box]
        self._check_bounds(sizes, maps)
        p = m.partition if m.is_on_chip else 0
        for o, steps in maps[:p]:
            if any(s and n > 1 for s, n in zip(steps, sizes)):
                refuse(_nkx.NkiView, f"{m.name} has {p} block dimensions, but an instruction works on one block",
                       "index the block dimensions by loop variables")
        part = m.parts[tuple(o for o, _ in maps[:p])]
        if p == 0 and sizes == list(m.shape) == list(part.shape) and all(
                o == 0 and steps[a] == (1 if sizes[a] > 1 else steps[a]) and not any(
                    s and sizes[d] > 1 for d, s in enumerate(steps) if d != a) for a, (o, steps) in enumerate(maps)):
            return part
        return _on_chip(part, sizes, maps[p:], m) if m.is_on_chip else _in_hbm(part, sizes, maps)

    def _check_bounds(self, sizes, maps):
        for a, (o, steps) in enumerate(maps):
            ends = [s * (n - 1) for s, n in zip(steps, sizes)]
            least, most = o + sum(min(e, 0) for e in ends), o + sum(max(e, 0) for e in ends)
            if least < 0 or most >= self.memory.shape[a]:
                refuse(_nkx.NkiBounds, f"the indices {least} to {most} are not inside of dimension {a} of {self.name}, which has "
                       f"{self.memory.shape[a]} elements", "a mask restricts an access to the part that exists")

    # ---- assignment

    def __setitem__(self, key, value):
        is_temporary = sys.getrefcount(value) == _TEMPORARY_SET
        assign(self[key], value, is_temporary)

    def _in_place(self, op, value, is_temporary):
        if is_temporary and self.memory.buffer == "psum" and isinstance(value, Tensor) and _redirect(self, value, None):
            self.memory.has_products = True
            return self
        arith(op, self, value, dst=self)
        return self

    def __iadd__(self, value):
        is_temporary = sys.getrefcount(value) == _TEMPORARY_ADD
        return self._in_place("add", value, is_temporary and getattr(value, "is_product", False))

    def __isub__(self, value):
        return self._in_place("subtract", value, False)

    def __imul__(self, value):
        return self._in_place("multiply", value, False)

    # ---- operators

    def __neg__(self):
        return arith("multiply", self, -1.0, dtype=self.dtype)

    def __truediv__(self, other):
        return divide(self, other)

    def __rtruediv__(self, other):
        return divide(other, self)

    def __invert__(self):
        return arith("bitwise_xor", self, -1, dtype=self.dtype)

    def __matmul__(self, other):
        refuse(_nkx.NkiTensorOperator, "@ is no operator of tiles", "use nl.matmul or nisa.nc_matmul")


Tensor.__name__ = "tile of NKI beta 1"  # for messages


def _operator(name, is_reflected=False):
    return (lambda x, y: arith(name, y, x)) if is_reflected else (lambda x, y: arith(name, x, y))


for _dunder, _name in {"add": "add", "sub": "subtract", "mul": "multiply", "pow": "power", "and": "bitwise_and", "or": "bitwise_or",
                       "xor": "bitwise_xor", "lshift": "left_shift", "rshift": "right_shift"}.items():
    setattr(Tensor, f"__{_dunder}__", _operator(_name))
    setattr(Tensor, f"__r{_dunder}__", _operator(_name, True))
for _dunder, _name in {"lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}.items():
    setattr(Tensor, f"__{_dunder}__", _operator(_name))


def _equal(name, same):
    def f(x, y):
        if isinstance(y, Tensor) and y is not x or is_integer(y) or isinstance(y, float):
            return arith(name, x, y)
        return (x is y) == same  # with None and other objects: identity
    return f


Tensor.__eq__, Tensor.__ne__ = _equal("equal", True), _equal("not_equal", False)


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
_TEMPORARY_SET, _TEMPORARY_ADD = _probe.set, _probe.add


# ---- indices --------------------------------------------------------------------------------------------------------


def _expanded(t, key):
    """The index with one entry for each axis."""
    key = list(key) if isinstance(key, tuple) else [key]
    dots = [i for i, k in enumerate(key) if k is Ellipsis]
    if len(dots) > 1 or len(key) - len(dots) > t.ndim:
        refuse(_nkx.NkiBounds, f"there are {len(key)} indices for {t.ndim} dimensions")
    at = dots[0] if dots else len(key)
    return key[:at] + [slice(None)] * (t.ndim - len(key) + len(dots)) + key[at + len(dots):]


def _integer(k, n, axis):
    k = int(k)
    if not -n <= k < n:
        refuse(_nkx.NkiBounds, f"the index {k} is not inside dimension {axis}, which has {n} elements")
    return k + n if k < 0 else k


def _bound(x, default, n):
    if x is None:
        return default
    if not is_integer(x):
        refuse(_nkx.NkiCall, f"a bound of a slice must be an integer, not {type(x).__name__}")
    return int(x) + (n if x < 0 else 0)


def _slice(k, n, axis):
    """The indices of a slice as an index tile.  An end after the last element is left for the mask, or for the check of
    bounds."""
    start, stop, step = _bound(k.start, 0, n), _bound(k.stop, n, n), 1 if k.step is None else k.step
    if step < 1 or stop <= start:
        refuse(_nkx.NkiBounds, f"the slice {start}:{stop}:{step} of dimension {axis} has no elements")
    return Index((len(range(start, stop, step)),), start, (step,))


def _entries(t, key):
    """The shape of the access, and one Index of that shape for each axis of t."""
    keys = _expanded(t, key)
    tiles = [k for k in keys if isinstance(k, Index)]
    for k in keys:
        if isinstance(k, Tensor):
            refuse(_nkx.NkiUnsupported, "an index that is a tensor is not compiled here yet")
        if not (isinstance(k, (Index, slice)) or is_integer(k)):
            refuse(_nkx.NkiBounds, f"an index must be an integer, a slice or an index tile, not {type(k).__name__}")
        if tiles and isinstance(k, slice) and k != slice(None):
            refuse(_nkx.NkiView, "an index mixes slices and index tiles", "write all axes with nl.arange, or all with slices")
    if tiles:
        return _entries_of_tiles(t, keys, tiles)
    shape, entries = [], []
    keeps = t.memory.is_on_chip and t.memory.partition == 0 and t.ndim == len(t.memory.shape)
    for a, (k, n) in enumerate(zip(keys, t.shape)):
        i = _slice(k, n, a) if isinstance(k, slice) else Index((1,), _integer(k, n, a), (0,))
        if isinstance(k, slice) or (a == 0 and keeps):
            entries.append((len(shape), i))
            shape += i.shape
        else:
            entries.append((None, i))
    return tuple(shape), [Index(shape, i.offset, [i.steps[0] if d == at else 0 for d in range(len(shape))]) for at, i in entries]


def _entries_of_tiles(t, keys, tiles):
    shape = broadcast_shapes(*(i.shape for i in tiles))
    if shape is None:
        refuse(_nkx.NkiShapeMismatch, f"the index tiles have the shapes {', '.join(str(i.shape) for i in tiles)}",
               "give each its own axis: i[:, None] and j[None, :]")
    more = [a for a, k in enumerate(keys) if isinstance(k, slice) and t.shape[a] > 1]  # t[i_p, k, :] in the middle of nothing
    if more:
        refuse(_nkx.NkiView, "an index mixes slices and index tiles", "write all axes with nl.arange, or all with slices")
    entries = []
    for a, k in enumerate(keys):
        k = 0 if isinstance(k, slice) else k
        entries.append(k.to(shape) if isinstance(k, Index) else Index(shape, _integer(k, t.shape[a], a), (0,) * len(shape)))
    return shape, entries


# ---- views of the record --------------------------------------------------------------------------------------------


def _pairs(part, sizes, maps, strides):
    """The pairs of stride and size of an access pattern, and its offset."""
    pairs = [[sum(steps[d] * stride for (_, steps), stride in zip(maps, strides)) if n > 1 else 0, n] for d, n in enumerate(sizes)]
    if any(step < 0 for step, _ in pairs):
        refuse(_nkx.NkiView, f"an access to {part.name} goes backwards", "use index tiles that grow")
    return pairs, sum(o * stride for (o, _), stride in zip(maps, strides))


def _in_hbm(part, sizes, maps):
    pairs, offset = _pairs(part, sizes, maps, part.strides)
    return part.ap(pairs or [[1, 1]], offset=offset)


def _on_chip(part, sizes, maps, memory):
    (first, steps), free = maps[0], maps[1:]
    n = sizes[0] if sizes else 1
    if any(s and size > 1 for s, size in zip(steps[1:], sizes[1:])) or (n > 1 and any(s[0] for _, s in free)):
        refuse(_nkx.NkiView, f"the partitions of {memory.name} are not the first axis of an access",
               "the first axis of a tile counts partitions: give its index tile the first axis, i_p[:, None]")
    if n > 1 and steps[0] != 1:
        refuse(_nkx.NkiAddress, f"an access to {memory.name} steps over partitions by {steps[0]}",
               "the partitions of an operand are neighbours")
    if first or n != part.shape[0]:
        part = part[first:first + n]
    pairs, offset = _pairs(part, sizes[1:], [(o, s[1:]) for o, s in free], part.strides[1:])
    return part.ap([[part.strides[0], n], *(pairs or [[1, 1]])], offset=offset)


# ---- instructions ---------------------------------------------------------------------------------------------------


def box_of(mask, shape):
    """What a mask leaves of a tile: (box, rest) as Mask.cut has them; the box is () where nothing is cut."""
    if mask is None or mask is True:
        return (), []
    if mask is False:
        return None, []
    if not isinstance(mask, Mask):
        refuse(_nkx.NkiMask, f"a mask is a comparison of index tiles, not {type(mask).__name__}", "mask=(i_p < n)")
    box, rest = mask.cut(shape)
    return ((), rest) if box == [(0, n) for n in shape] else (box, rest)


def part_of(t, box, shape):
    """The view of an operand where the instruction goes over the box of a tile of this shape."""
    if not box:
        return t.view()
    more = len(shape) - t.ndim
    own = [(0, 1) if n == 1 else box[d + more] for d, n in enumerate(t.shape)]
    return t.view(own)


def intersection(box, other, shape):
    """Of two boxes of a tile; () is all of it, None nothing."""
    if box is None or other is None:
        return None
    if not other:
        return box
    both = [(max(a, c), min(b, d)) for (a, b), (c, d) in zip(box or [(0, n) for n in shape], other)]
    if any(a >= b for a, b in both):
        return None
    return () if both == [(0, n) for n in shape] else both


def valid_box(t, shape):
    """The part of an instruction's tile where its operand is defined; () for all."""
    box, more = [(0, n) for n in shape], len(shape) - t.ndim
    for (o, steps), (least, end) in zip(t.maps, t.memory.valid or ()):
        axes = [d for d, s in enumerate(steps) if s and t.shape[d] > 1]
        if len(axes) == 1 and steps[axes[0]] > 0:
            (d,), s = axes, steps[axes[0]]
            box[d + more] = max(box[d + more][0], -((o - least) // s)), min(box[d + more][1], (end - 1 - o) // s + 1)
    return intersection((), box, shape)


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
        refuse(_nkx.NkiMask, "a mask over several axes together cannot restrict this instruction", "assign its result: t[…] = …")
    if box is not None:
        emit(dst.view(box or None) if dst.ndim == len(shape) else dst.view(), box)
    return dst


def mark(t, box, rest=()):
    """Notes what is defined of a new tile."""
    t.memory.valid, t.memory.rest = [(0, 0)] * t.ndim if box is None else box or None, list(rest)


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

_KINDS = {bool: "uint8", int: "int32", float: "float32"}


def _number_dtype(x):
    return x.dtype if isinstance(x, (Tensor, np.generic)) else np.dtype(next(d for t, d in _KINDS.items() if isinstance(x, t)))


def _is_float(d):
    return d.kind == "f" or d.name.startswith(("bfloat", "float"))


def promote(x, y):
    """The dtype of x op y (nki-frontend.md, section 6).  Numbers of Python are uint8, int32 and float32."""
    a, b = (np.dtype("uint8") if d.kind == "b" else d for d in (_number_dtype(x), _number_dtype(y)))
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
            refuse(_nkx.NkiMemory, f"{x.name} is in {x.buffer}, but engines work on SBUF and PSUM", "load it first: nl.load(x[…])")
    elif not isinstance(x, (int, float, bool, np.number, np.bool_)):
        refuse(_nkx.NkiCall, f"nl.{op} takes tiles and numbers, not {type(x).__name__}")


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
            a, b = (part_of(t.broadcast_to(shape), box, shape) for t in (x, y))
            if a.buffer == b.buffer == "psum":
                b = _converted_copy(b)
            isa.tensor_tensor(dst=to, data1=a, data2=b, op=op)

    return result(shape, dtype, mask, emit, (x, y), dst=dst)


def _converted_copy(view):
    t = _nkx.nki_ndarray(view.shape, view.dtype, "sbuf", "")
    isa.tensor_copy(dst=t, src=view)
    return t


def unary(op, x, dtype=None, mask=None):
    """A function of nisa.activation."""
    check_operand(op, x)
    if not isinstance(x, Tensor):
        refuse(_nkx.NkiCall, f"nl.{op} takes a tile, not {type(x).__name__}")
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


# ---- kernels --------------------------------------------------------------------------------------------------------


def _mutable(fn):
    """The parameters that are annotated as nt.mutable_tensor."""
    names = {}
    for p in inspect.signature(fn).parameters.values():
        names[p.name] = "mutable_tensor" in (str(p.annotation), getattr(p.annotation, "name", None)) or (
            isinstance(p.annotation, str) and "mutable_tensor" in p.annotation)
    return names


class Entry:
    """A function of tensors of the record around a kernel of beta 1.  After a call, written has the names of the arguments
    that the kernel wrote, one for each result, or None for a result that the kernel made."""

    def __init__(self, fn):
        self.fn, self.written = fn, []
        self.__name__ = getattr(fn, "__name__", "kernel")

    def __call__(self, *args, **kwargs):
        bound, mutable = inspect.signature(self.fn).bind(*args, **kwargs), _mutable(self.fn)
        parameters = {}
        for name, value in bound.arguments.items():
            if isinstance(value, _nkx.NkiTensor):
                bound.arguments[name] = t = of(value)
                t.memory.parameter = parameters[name] = Parameter(name, mutable.get(name, False))
        return self._results(self.fn(*bound.args, **bound.kwargs), [p for p in parameters.values() if p.result is not None])

    def _results(self, value, written):
        if value is None and written:  # outputs are parameters, as in the first versions
            self.written = [p.name for p in written]
            return written[0].result if len(written) == 1 else tuple(p.result for p in written)
        tiles = [value] if isinstance(value, Tensor) else list(value) if type(value) in (tuple, list) else []
        returned = [t.memory.parameter for t in tiles if isinstance(t, Tensor)]
        self.written = [p.name if p else None for p in returned]
        for p in written:
            if p not in returned:
                refuse(_nkx.NkiOutput, f"the parameter {p.name} is written, but not returned",
                       f"annotate it as {p.name}: nt.mutable_tensor, and return it")
        return unwrapped(value)


def entry(fn):
    return Entry(fn)


def unwrapped(value):
    if isinstance(value, Tensor):
        return value.view()
    return type(value)(map(unwrapped, value)) if type(value) in (tuple, list) else value
