"""Index tiles and masks of NKI beta 1.

nl.arange and nl.mgrid give index tiles: arrays of integers of which only the affine form is kept.  Loops of a kernel are
unrolled, so that loop variables are ordinary integers.

    Index(shape, offset, steps)     the integer at (i0, i1, …) is offset + i0 * steps[0] + i1 * steps[1] + …
    Mask([e, …])                    True where every e, an Index, is 0 or more

A mask cuts the part of a tile that an instruction works on, if each of its conditions restricts one axis.
"""
import functools
import operator

import _nkx
from nkx.nki_names import refuse
from nkx.nki_unknown import goes_on
from nkx.nki_written import mask_text, text

_NOT = {"<": ">=", ">=": "<", "<=": ">", ">": "<=", "==": "!="}


def is_integer(x):
    return not isinstance(x, bool) and hasattr(x, "__index__")


# Rounds of a loop ask for the same again and again.  What is kept depends on the arguments only.
KEPT_MAX = 4096


@functools.lru_cache(KEPT_MAX)
def broadcast_shapes(*shapes):
    """The shape that NumPy broadcasts these tuples to, or None."""
    rank = max(map(len, shapes), default=0)
    result = []
    for sizes in zip(*((1,) * (rank - len(s)) + tuple(s) for s in shapes)):
        most = max(sizes)
        if any(n not in (1, most) for n in sizes):
            return None
        result.append(most)
    return tuple(result)


@functools.lru_cache(KEPT_MAX)
def _sum(offset, steps, shape):
    terms = [] if offset == 0 and any(steps) else [str(offset)]
    for d, (s, n) in enumerate(zip(steps, shape)):
        if s:
            axes = f"[{', '.join(':' if k == d else 'None' for k in range(len(shape)))}]" if len(shape) > 1 else ""
            terms.append(f"{'' if s == 1 else f'{s}*'}nl.arange({n}){axes}")
    return " + ".join(terms)


@functools.lru_cache(KEPT_MAX)
def _negated(steps):
    return tuple([-s for s in steps])


class Index:
    """An index tile."""

    __array_ufunc__ = None  # np.int64(2) * index calls __rmul__
    _text = None

    def __init__(self, shape, offset, steps):
        self.shape, self.offset = tuple(shape), offset
        self.steps = tuple([s if n > 1 else 0 for s, n in zip(steps, shape)])

    def _with(self, offset, steps):
        """Another one of the same shape; steps is a tuple with 0 for each axis of size 1."""
        other = Index.__new__(Index)
        other.shape, other.offset, other.steps = self.shape, offset, steps
        return other

    ndim = property(lambda self: len(self.shape))

    def __repr__(self):
        terms = [f"{s}*i{d}" for d, s in enumerate(self.steps) if s]
        return " + ".join([str(self.offset)] * (self.offset != 0 or not terms) + terms)

    def nki_text(self):
        """As a sum of nl.arange: "128 + nl.arange(64)[:, None]"."""
        self._text = self._text or _sum(self.offset, self.steps, self.shape)
        return self._text

    def __getitem__(self, key):
        """[:, None] and [None, :] add axes of size 1."""
        key, shape, steps, axis = key if isinstance(key, tuple) else (key,), [], [], 0
        for k in key:
            if k is None:
                shape.append(1)
                steps.append(0)
            elif k in (slice(None), Ellipsis) and axis < self.ndim:
                more = self.ndim - axis - sum(1 for x in key if x == slice(None)) if k is Ellipsis else 1
                shape += self.shape[axis:axis + more]
                steps += self.steps[axis:axis + more]
                axis += more
            else:
                refuse(_nkx.NkiBounds, f"an index tile of {self.ndim} axes cannot be indexed by {k!r}",
                       "index tiles take : and None")
        return Index(shape + list(self.shape[axis:]), self.offset, steps + list(self.steps[axis:]))

    def to(self, shape):
        """Broadcast to a shape, which has at least as many axes."""
        if self.shape == shape:
            return self
        more = len(shape) - self.ndim
        return Index(shape, self.offset, (0,) * more + self.steps)

    def reach(self):
        """The least and the largest integer."""
        ends = [s * (n - 1) for s, n in zip(self.steps, self.shape)]
        return self.offset + sum(min(e, 0) for e in ends), self.offset + sum(max(e, 0) for e in ends)

    def _plus(self, other, sign):
        if is_integer(other):
            return self._with(self.offset + sign * operator.index(other), self.steps)
        if not isinstance(other, Index):
            return NotImplemented
        shape = broadcast_shapes(self.shape, other.shape)
        if shape is None:
            refuse(_nkx.NkiShapeMismatch, f"index tiles of the shapes {self.shape} and {other.shape} cannot be combined",
                   "give each its own axis: i[:, None] + j[None, :]")
        x, y = self.to(shape), other.to(shape)
        return Index(shape, x.offset + sign * y.offset, [a + sign * b for a, b in zip(x.steps, y.steps)])

    def __add__(self, other):
        return self._with(self.offset + other, self.steps) if type(other) is int else self._sum(other)

    __radd__ = __add__

    def _sum(self, other):
        return self._plus(other, 1)

    def __sub__(self, other):
        return self._plus(other, -1)

    def _to(self, other):
        """other - self"""
        return self._with(other - self.offset, _negated(self.steps)) if type(other) is int else other - self

    def __neg__(self):
        return self * -1

    def __rsub__(self, other):
        return -self + other

    def __mul__(self, other):
        if isinstance(other, Index):
            refuse(_nkx.NkiMask, "the product of two index tiles is not affine", "multiply index tiles by integers")
        if not is_integer(other):
            return NotImplemented
        n = operator.index(other)
        return self._with(self.offset * n, tuple([s * n for s in self.steps]))

    __rmul__ = __mul__

    def __floordiv__(self, other):
        if is_integer(other) and other and not any(x % other for x in (self.offset, *self.steps)):
            return Index(self.shape, self.offset // other, [s // other for s in self.steps])
        refuse(_nkx.NkiMask, f"({self}) // {other} is not affine", "use index tiles with several axes: i * 4 + j")

    def __mod__(self, other):
        if is_integer(other) and other and not any(s % other for s in self.steps):
            return Index(self.shape, self.offset % other, [0] * self.ndim)
        refuse(_nkx.NkiMask, f"({self}) % {other} is not affine", "use index tiles with several axes: i * 4 + j")

    def __lt__(self, other):
        if type(other) is int:
            return Mask.of(self, "<", other, [self._with(other - self.offset - 1, _negated(self.steps))])
        return Mask.of(self, "<", other, [self._to(other) - 1])

    def __le__(self, other):
        return Mask.of(self, "<=", other, [self._to(other)])

    def __gt__(self, other):
        return Mask.of(self, ">", other, [self - other - 1])

    def __ge__(self, other):
        return Mask.of(self, ">=", other, [self - other])

    def __eq__(self, other):
        return Mask.of(self, "==", other, [self - other, other - self])

    def __ne__(self, other):
        refuse(_nkx.NkiMask, "a mask cannot be !=", "use < and > in two instructions")

    __hash__ = None

    def __bool__(self):
        refuse(_nkx.NkiTensorTruth, "an index tile has no truth value", "compare loop variables, which are integers")


class Mask:
    """A conjunction of affine conditions."""

    def __init__(self, conditions, said=()):
        self.conditions, self.said = list(conditions), said

    @classmethod
    def of(cls, x, symbol, y, conditions):
        """A comparison, with what it was written as."""
        return cls(conditions, ((x, symbol, y),))

    def nki_text(self):
        one = [f"({text(x)} {symbol} {text(y)})" for x, symbol, y in self.said]
        return " & ".join(one) or "False"

    def __and__(self, other):
        if isinstance(other, bool):
            return self if other else Mask([Index((1,), -1, (0,))])
        return Mask(self.conditions + other.conditions, self.said + other.said) if isinstance(other, Mask) else NotImplemented

    __rand__ = __and__

    def __or__(self, other):
        refuse(_nkx.NkiMask, "masks are combined by & only", "use two instructions, one for each mask")

    __ror__ = __or__

    def __invert__(self):
        if len(self.conditions) > 1:
            refuse(_nkx.NkiMask, "~ of several conditions is no mask", "use one instruction for each part")
        return Mask([-self.conditions[0] - 1], tuple((x, _NOT[symbol], y) for x, symbol, y in self.said))

    def __bool__(self):
        if all(not any(c.steps) for c in self.conditions):
            return all(c.offset >= 0 for c in self.conditions)
        refuse(_nkx.NkiTensorTruth, "a comparison of index tiles has no truth value",
               "pass it as mask=, and combine masks by &")

    def cut(self, shape):
        """Resolves the mask on a tile: (box, rest, what is said of it).  box: ((first, end), …) of the axes, () if nothing is cut,
        or None if nothing remains; rest: the conditions that restrict no single axis."""
        return _cut(shape, *[(c.shape, c.offset, c.steps) for c in self.conditions])


@functools.lru_cache(KEPT_MAX)
def _cut(shape, *conditions_of):
    box, rest = _box_and_rest(shape, conditions_of)
    said = mask_text(box, rest, shape)
    return (() if box == tuple([(0, n) for n in shape]) else box), rest, said


def _box_and_rest(shape, conditions_of):
    box, conditions = [(0, n) for n in shape], []
    for one in conditions_of:
        c = Index(*one)
        if broadcast_shapes(c.shape, shape) != shape:
            refuse(_nkx.NkiMask, f"a mask of the shape {c.shape} does not fit to a tile of the shape {shape}",
                   "make the mask from the index tiles of the access", argument="mask")
        conditions.append(c.to(shape))
    for c in conditions:
        axes = [d for d, s in enumerate(c.steps) if s]
        if len(axes) == 1:
            (d,), (first, end) = axes, box[axes[0]]
            s = c.steps[d]
            box[d] = (max(first, -(c.offset // s)), end) if s > 0 else (first, min(end, c.offset // -s + 1))
    if any(first >= end for first, end in box):
        return None, ()
    rest = []
    for c in conditions:
        inside = Index([end - first for first, end in box], c.offset + sum(s * f for s, (f, _) in zip(c.steps, box)), c.steps)
        least, most = inside.reach()
        if most < 0:
            return None, ()
        if least < 0:
            rest.append(inside)
    return tuple(box), tuple(rest)


goes_on(Index, "__getitem__", "_sum", "__sub__", "__rsub__", "__mul__", "__rmul__", "__floordiv__", "__mod__", "__ne__")
goes_on(Mask, "__or__", "__ror__", "__invert__")


def arange(start, stop=None, step=1):
    """The integers start, start + step, … below stop, as an index tile of one axis."""
    start, stop = (0, start) if stop is None else (start, stop)
    if not all(map(is_integer, (start, stop, step))) or step < 1 or stop <= start:
        refuse(_nkx.NkiCall, f"arange({start}, {stop}, {step}) has no integers", "write nl.arange(128)[:, None]")
    return Index((len(range(start, stop, step)),), start, (step,))


class Grid(tuple):
    """What nl.mgrid gives: one index tile for each axis, also as the fields p, x, y, z, w and v."""

    def __getattr__(self, name):
        n = "pxyzwv".find(name) if len(name) == 1 else -1
        if not 0 <= n < len(self):
            raise AttributeError(f"an mgrid of {len(self)} axes has no field {name}")
        return self[n]


class MGrid:
    def __getitem__(self, key):
        one = [arange(k.start or 0, k.stop, k.step or 1) for k in (key if isinstance(key, tuple) else (key,))]
        shape = [i.shape[0] for i in one]
        return Grid(Index(shape, i.offset, [i.steps[0] if d == axis else 0 for d in range(len(one))])
                    for axis, i in enumerate(one))


mgrid = MGrid()
