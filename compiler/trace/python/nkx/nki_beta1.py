"""Tensors of NKI beta 1, over the tensors of the record (compiler/nki/nki.h).  nki_beta1_ops.py has the operators.

A Tensor is memory and an affine map for each of its axes, from the axes that an instruction goes over to an index:

    t[i_p, 64 * k + i_f]    axis 0: i0,   axis 1: 64 * k + i1

Nothing is recorded for an access.  An instruction asks for its view, which is cut to the instruction's mask first, and
only then compared with the memory's bounds.

Memory on chip may have block dimensions, the axes before nl.par_dim: one tensor of the record for each block.
"""
import functools
import itertools
import math

import _nkx
import numpy as np
from nki import isa
from nkx.nki_beta1_index import KEPT_MAX, Index, broadcast_shapes, is_integer
from nkx.nki_beta1_rows import select
from nkx import nki_unknown
from nkx.nki_names import NamedType, refuse
from nkx.nki_written import key_text, text


class par_dim(int):
    """The size of the axis that counts partitions."""

    def nki_text(self):
        return f"nl.par_dim({int(self)})"


def dtype_of(d):
    """A NumPy dtype for what beta 1 takes as one: a type, a dtype or a name."""
    if isinstance(d, (np.dtype, NamedType)):
        return d
    try:
        return np.dtype(getattr(d, "name", d) if not isinstance(d, type) else d)
    except TypeError:
        return refuse(_nkx.NkiDtype, f"{d!r} is not a data type", "use a type of nl, such as nl.float32", argument="dtype")


# ---- memory ---------------------------------------------------------------------------------------------------------


class Memory:
    """One tensor of the record, or one for each block.  shape: block dimensions, partitions, others; partition: the axis
    that counts partitions, or -1 in HBM.

    A result that an instruction with a mask has written is undefined elsewhere.  valid: the box ((first, end), …) that is
    defined, or None if all is; rest: conditions besides (Mask.cut).  Instructions on it leave out what is undefined.

    parameter: of an argument of the kernel, its Parameter.
    view: the view of the record that it is made of, or None."""

    def __init__(self, shape, partition, parts):
        self.shape, self.partition, self.parts = shape, partition, parts
        self.is_on_chip = partition >= 0
        for first in parts.values():
            self.dtype, self.buffer, self.name = first.dtype, first.buffer, first.name
            break

    has_products, valid, rest, parameter, view = False, None, (), None, None  # a tile that has none needs no place for them

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
        if self.is_mutable and not any(_nkx.nki_program()[0]):  # the elements that are not written stay; instances share them
            isa.dma_copy(dst=self.result, src=old)
        memory.parts = {(): self.result}


def _is_hbm(buffer):
    return "hbm" in str(getattr(buffer, "name", buffer))


def new(shape, dtype, buffer="sbuf", name=""):
    """A new Tensor.  A size that is a par_dim is the axis of partitions; axes before it count blocks."""
    shape = (shape,) if is_integer(shape) else tuple(shape)
    if buffer == "sbuf" and len(shape) > 1 and all([type(n) is int for n in shape]):
        return whole(Memory(shape, 0, {(): _nkx.nki_ndarray(shape, dtype, buffer, name)}))
    if not shape or not all(map(is_integer, shape)):
        refuse(_nkx.NkiCall, f"the shape {shape} has no sizes", "write (nl.par_dim(128), 512)", argument="shape")
    if _is_hbm(buffer):
        shape = tuple(map(int, shape))
        return whole(Memory(shape, -1, {(): _nkx.nki_ndarray(shape, dtype, buffer, name)}))
    marked = [d for d, n in enumerate(shape) if isinstance(n, par_dim)]
    if len(marked) > 1:
        refuse(_nkx.NkiCall, "a shape has more than one nl.par_dim", "one axis counts partitions", argument="shape")
    p = marked[0] if marked else 0
    one = (*shape[p:], 1) if p == len(shape) - 1 else shape[p:]
    shape, one, blocks = tuple(map(int, shape)), tuple(map(int, one)), itertools.product(*map(range, shape[:p]))
    if not hasattr(buffer, "address"):
        return whole(Memory(shape, p, {b: _nkx.nki_ndarray(one, dtype, buffer, name) for b in blocks}))
    return whole(Memory(shape, p, {b: _nkx.nki_ndarray(one, dtype, buffer.name, name, functools.partial(buffer.address, b))
                                   for b in blocks}))


def of(view):
    """The Tensor of a tensor of the record, or of a view of one."""
    memory = Memory(view.shape, -1 if _is_hbm(view.buffer) else 0, {(): view})
    memory.view = view
    return whole(memory)


def whole(memory):
    t = Tensor.__new__(Tensor)
    t.memory, t.shape, t.is_whole = memory, memory.shape, True
    t.maps = _identity(len(memory.shape))
    return t


@functools.cache
def _identity(n):
    return tuple((0, tuple(int(d == a) for d in range(n))) for a in range(n))


@functools.lru_cache(KEPT_MAX)
def _reaches(sizes, by_axis):
    """For each axis the least and the largest of the sums of steps."""
    return [(sum([s * (n - 1) for s, n in zip(steps, sizes) if s < 0]), sum([s * (n - 1) for s, n in zip(steps, sizes) if s > 0]))
            for steps in by_axis]


# ---- tensors --------------------------------------------------------------------------------------------------------


class Tensor:
    """maps: for each axis of the memory (offset, steps over the axes of `shape`)."""

    __array_ufunc__ = None
    __hash__ = object.__hash__
    is_product = False  # what nisa.nc_matmul returns
    is_whole = False  # maps are the identity
    written = None  # (the tile that it is an access to, its index)
    spelt = None  # a function that gives the expression of which it is the result

    def __init__(self, memory, shape, maps):
        self.memory, self.shape, self.maps = memory, tuple(map(int, shape)), tuple(maps)

    dtype = property(lambda self: self.memory.dtype)
    buffer = property(lambda self: self.memory.buffer)
    name = property(lambda self: self.memory.name)
    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: math.prod(self.shape))

    def nki_text(self):
        """As an index of another tile, or as a view of the record."""
        if self.is_whole:
            return self.name if self.memory.view is None else text(self.memory.view)
        if self.spelt:
            return self.spelt()
        if self.written:
            tile, key = self.written
            return f"{text(tile)}[{key_text(key)}]"
        try:
            return _nkx.nki_written_view(self.view())
        except Exception:  # noqa: BLE001: an access over several blocks, or beyond the memory, is no view
            return f"{self.name}[…]"

    def __repr__(self):
        return f"{self.name}: {self.dtype}{self.shape} in {self.buffer}"

    def __len__(self):
        return self.shape[0]

    def __iter__(self):
        refuse(_nkx.NkiTensorOperator, "a tensor is no sequence", "iterate over a range, and index the tensor")

    def __bool__(self):
        try:
            refuse(_nkx.NkiTensorTruth, "a tensor has no truth value while the kernel is compiled",
                   "compare sizes or other Python values; use nl.where for data")
        except _nkx.NkiTensorTruth as e:
            return nki_unknown.reported(e, True)  # the kernel goes on with the first branch

    # ---- accesses

    def __getitem__(self, key):
        if key is Ellipsis:
            return self
        if nki_unknown.among((key,), {}):
            return nki_unknown.UNKNOWN
        keys = _expanded(self, key)
        if any(isinstance(k, Tensor) for k in keys):
            return select(self, keys, Tensor)
        shape, entries = _entries(self, keys)
        if self.is_whole:
            t = Tensor(self.memory, shape, [(e.offset, e.steps) for e in entries])
            t.written = self, key
            return t
        maps = []
        for offset, steps in self.maps:
            for a, s in enumerate(steps):
                offset += s * entries[a].offset
            maps.append((offset, tuple(sum(s * e.steps[d] for s, e in zip(steps, entries)) for d in range(len(shape)))))
        t = Tensor(self.memory, shape, maps)
        t.written = self, key
        return t

    def _with_axes(self, shape, order):
        """The same elements with other axes; order: for each new axis the old one, or None for one without steps."""
        return Tensor(self.memory, shape, [(o, tuple(0 if a is None else s[a] for a in order)) for o, s in self.maps])

    def broadcast_to(self, shape):
        shape = tuple(shape)
        if broadcast_shapes(self.shape, shape) != shape:
            refuse(_nkx.NkiShapeMismatch, f"{self.name} has the shape {self.shape}, which is not broadcast to {shape}")
        if self.memory.is_on_chip and len(shape) == self.ndim and self.shape[0] == 1 != shape[0]:
            return self.spread(shape[0]).broadcast_to(shape)
        if shape == self.shape:
            return self
        more = len(shape) - self.ndim
        t = self._with_axes(shape, [None if d < more or self.shape[d - more] == 1 != n else d - more
                                    for d, n in enumerate(shape)])
        t.spelt = lambda: f"{text(self)}.broadcast_to({shape})"
        return t

    def with_last(self, axes):
        """The axes in this list last, in their order."""
        order = [a for a in range(self.ndim) if a not in axes] + list(axes)
        return self._with_axes([self.shape[a] for a in order], order)

    def reshape(self, shape, *more):
        shape = (shape, *more) if is_integer(shape) else shape
        return of(self.view().reshape(tuple(map(int, shape))))

    def expand_dims(self, axis):
        axis += self.ndim + 1 if axis < 0 else 0
        order = list(range(self.ndim))
        t = self._with_axes((*self.shape[:axis], 1, *self.shape[axis:]), [*order[:axis], None, *order[axis:]])
        t.spelt = lambda: f"nl.expand_dims({text(self)}, {axis})"
        return t

    # ---- views

    def view(self, box=None):
        """The view of the record that these elements are.  box: the part [(first, end), …] of the axes."""
        m = self.memory
        p = m.partition if m.partition > 0 else 0
        self.check_is_one_block()
        part = m.parts.get(tuple([o for o, _ in self.maps[:p]]) if p else ())
        if part is None:
            _refuse(_out_of_bounds(self.shape, self.maps, m.shape), m)
        if self.is_whole and box is None and p == 0 and len(part.shape) == len(self.shape):
            return part
        if m.is_on_chip:
            if self.is_whole and p == 0 and m.view is None:
                return _part_of_tile(part, self.shape, tuple(box))
            return _on_chip(part, m, p, self.shape, self.maps, None if box is None else tuple(box))
        sizes, maps = _boxed(self.shape, self.maps, box)
        fault = None if self.is_whole and box is None else _out_of_bounds(sizes, maps, m.shape)
        if fault:
            _refuse(fault, m)
        return _in_hbm(part, m, sizes, maps)

    def check_is_one_block(self):
        m = self.memory
        if m.partition <= 0:
            return
        for _, steps in self.maps[:m.partition]:
            if any(s and n > 1 for s, n in zip(steps, self.shape)):
                refuse(_nkx.NkiView, f"{m.name} has {m.partition} block dimensions, but an instruction works on one block",
                       "index the block dimensions by loop variables", about=m)


nki_unknown.goes_on(Tensor, "__getitem__", "reshape", "expand_dims")
Tensor.__name__ = "tile of NKI beta 1"  # in messages


# ---- indices --------------------------------------------------------------------------------------------------------


def _expanded(t, key):
    """The index with one entry for each axis."""
    key = list(key) if isinstance(key, tuple) else [key]
    if len(key) == t.ndim and not any(k is Ellipsis for k in key):
        return key
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


def _entries(t, keys):
    """The shape of the access, and one Index of that shape for each axis of t."""
    tiles = [k for k in keys if isinstance(k, Index)]
    for k in keys:
        if not (isinstance(k, (Index, slice)) or is_integer(k)):
            refuse(_nkx.NkiBounds, f"an index must be an integer, a slice or an index tile, not {type(k).__name__}")
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
    if any(isinstance(k, slice) and t.shape[a] > 1 for a, k in enumerate(keys)):
        refuse(_nkx.NkiView, "an index mixes slices and index tiles", "write all axes with nl.arange, or all with slices")
    entries = []
    for a, k in enumerate(keys):
        k = 0 if isinstance(k, slice) else k
        entries.append(k.to(shape) if isinstance(k, Index) else Index(shape, _integer(k, t.shape[a], a), (0,) * len(shape)))
    return shape, entries


# ---- views of the record --------------------------------------------------------------------------------------------


@functools.lru_cache(KEPT_MAX)
def _steps(sizes, by_axis, strides):
    """The pairs of stride and size of an access pattern; None if it goes backwards."""
    pairs = [[sum(steps[d] * stride for steps, stride in zip(by_axis, strides)) if n > 1 else 0, n] for d, n in enumerate(sizes)]
    return None if any(step < 0 for step, _ in pairs) else pairs


@functools.lru_cache(KEPT_MAX)
def _free_pairs(sizes, by_axis, strides):
    """The same on chip, where the first pair counts partitions."""
    pairs = _steps(sizes[1:], tuple([s[1:] for s in by_axis[1:]]), strides[1:])
    return None if pairs is None else [[strides[0], sizes[0] if sizes else 1], *(pairs or [[1, 1]])]


# A fault: the class of a refusal, what is wrong, with {name} for the tensor's name, and what to do instead.
_BACKWARDS = (_nkx.NkiView, "an access to {name} goes backwards", "use index tiles that grow")


def _refuse(fault, memory):
    what, message, remedy = fault
    refuse(what, message.format(name=memory.name), remedy, about=memory)


def _boxed(shape, maps, box):
    """The sizes and maps of the part [(first, end), …] of the axes; box: None for all."""
    if box is None:
        return shape, maps
    if any([first for first, _ in box]):
        maps = tuple([(o + sum([s * f for s, (f, _) in zip(steps, box)]), steps) for o, steps in maps])
    return tuple([end - first for first, end in box]), maps


def _out_of_bounds(sizes, maps, memory):
    """The fault of an access that leaves the memory of this shape; None if it does not."""
    reaches = _reaches(sizes, tuple([steps for _, steps in maps]))
    for a, ((o, _), (least, most), n) in enumerate(zip(maps, reaches, memory)):
        least, most = o + least, o + most
        if least < 0 or most >= n:
            return (_nkx.NkiBounds, f"the indices {least} to {most} are not inside of dimension {a} of {{name}}, which has {n} elements",
                    "a mask restricts an access to the part that exists")
    return None


def _pairs(memory, sizes, maps, strides):
    """The pairs of stride and size of an access pattern, and its offset."""
    pairs, offset = _steps(sizes, tuple([steps for _, steps in maps]), strides), 0
    if pairs is None:
        _refuse(_BACKWARDS, memory)
    for (o, _), stride in zip(maps, strides):
        offset += o * stride
    return pairs, offset


def _in_hbm(part, memory, sizes, maps):
    pairs, offset = _pairs(memory, sizes, maps, tuple(part.strides))
    return part.ap(pairs or [[1, 1]], offset=offset)


def _first_axis_is_partitions(sizes, by_axis):
    steps, free, n = by_axis[0], by_axis[1:], sizes[0] if sizes else 1
    return not (any(s and size > 1 for s, size in zip(steps[1:], sizes[1:])) or (n > 1 and any(s[0] for s in free)))


def _part_of_tile(tile, shape, box):
    """The part of a tile without block dimensions, whose elements in a partition lie one after another."""
    first, n, pairs, offset = _box_of_tile(shape, box)
    if n != tile.shape[0]:
        tile = tile[first:first + n]
    return tile.ap(pairs, offset=offset)


@functools.lru_cache(KEPT_MAX)
def _box_of_tile(shape, box):
    """(first partition, partitions, pairs of stride and size, offset)"""
    (first, end), strides = box[0], [math.prod(shape[d + 1:]) for d in range(1, len(shape))]
    sizes = [b - a for a, b in box[1:]]
    pairs = _free_pairs((end - first, *sizes), tuple([tuple([int(d == a) for d in range(len(shape))]) for a in range(len(shape))]),
                        (math.prod(shape[1:]), *strides))
    return first, end - first, pairs, sum([a * s for (a, _), s in zip(box[1:], strides)])


def _on_chip(part, memory, p, shape, maps, box):
    """The view of a tile, or of one block of it; p: how many axes count blocks."""
    fault, first, n, pairs, offset = _access_on_chip(shape, maps, box, memory.shape, p, part.shape, part.strides)
    if fault:
        _refuse(fault, memory)
    if first or n != part.shape[0]:
        part = part[first:first + n]
    return part.ap(pairs, offset=offset)


@functools.lru_cache(KEPT_MAX)
def _access_on_chip(shape, maps, box, memory, p, part, strides):
    """(fault, first partition, partitions, pairs of stride and size, offset) of a part of a tile.

    Rounds of a loop make tiles of the same shapes and access them alike, so that this is computed once for many of them.
    memory, part: the shapes of the whole and of the block."""
    sizes, maps = _boxed(shape, maps, box)
    fault = _out_of_bounds(sizes, maps, memory)
    maps = maps[p:]
    first, steps = maps[0]
    n, by_axis, pairs = sizes[0] if sizes else 1, tuple([s for _, s in maps]), None
    if fault:
        pass
    elif not _first_axis_is_partitions(sizes, by_axis):
        fault = (_nkx.NkiView, "the partitions of {name} are not the first axis of an access",
                 "the first axis of a tile counts partitions: give its index tile the first axis, i_p[:, None]")
    elif n > 1 and steps[0] != 1:
        fault = (_nkx.NkiAddress, f"an access to {{name}} steps over partitions by {steps[0]}",
                 "the partitions of an operand are neighbours")
    else:
        pairs = _free_pairs(sizes, by_axis, strides)
        fault = _BACKWARDS if pairs is None else None
    return fault, first, n, pairs, sum([o * stride for (o, _), stride in zip(maps[1:], strides[1:])])
