"""Random calls of an operation: an expression over arrays of drawn dtypes, ranks, sizes and values.

A row of table.py gives a generator: a function of a Draw that returns an expression; the arrays that it asked for are the
call's inputs.  Two kinds of choice are kept apart:

    d.one(…), d.dtype(…)      forms of a call and dtypes.  calls() of an operation go on until each value of a choice has come
                              together with each value of every other: every form with every dtype, every dtype with every
                              dtype of the other operand
    d.shape(), d.axis(), …    sizes and numbers, at random: ranks 0 to 5, sizes 0 and 1, odd sizes, broadcasting

Values keep away from where float32 and NumPy's float64 must differ (ties of sums, arguments next to poles); shapes do not.
"""
import collections
import random
import zlib

import ml_dtypes
import numpy as np

INTS = ["int8", "uint8", "int16", "uint16", "int32", "uint32"]
FLOATS = ["float16", "float32"]
COMPLEX = ["complex64"]
PARTED = COMPLEX + ["int32", "float32"]  # what has a real and an imaginary part
NUMBERS = INTS + FLOATS
ALL = ["bool"] + NUMBERS
# A call whose dtypes may be floats may compute in one of these only: what they give together with other types is
# said by the promotion table (tests/trace/test_promotion.py), not by NumPy.
NARROW = ["bfloat16", "float8_e4m3", "float8_e4m3fn", "float8_e5m2"]

CALLS_MAX = 600  # of one operation: a choice that never ends is a fault of its generator
CALLS_MIN = 8
QUIET = 20  # calls in a row that bring nothing new together end it

Call = collections.namedtuple("Call", "op expression arrays helpers")


class Cover:
    """Choices of one operation's calls, so that every two values of two choices come together."""

    def __init__(self, rng):
        self.rng, self.seen = rng, set()
        self.used, self.stale = collections.Counter(), collections.Counter()  # how often; since how many calls without anything new

    def begin(self):
        self.path, self.scope, self.n_new = [], (), 0

    def choose(self, n):
        """A number below n: the one that meets the most of what it has not met; of those, one that brought new things last."""
        at = (self.scope, len(self.path), n)

        def new(c):
            return ({(at, c)} | {(p, (at, c)) for p in self.path}) - self.seen
        scores = [(len(new(c)), -self.stale[at, c], -self.used[at, c]) for c in range(n)]
        c = self.rng.choice([c for c in range(n) if scores[c] == max(scores)])
        self.n_new += len(new(c))
        self.seen |= new(c)
        self.path.append((at, c))
        return c

    def end(self):
        """True if the call brought two values together that had not met."""
        for p in self.path:
            self.used[p] += 1
            self.stale[p] = 0 if self.n_new else self.stale[p] + 1
        return self.n_new > 0


class Draw:
    def __init__(self, rng, prefix, cover):
        self.random, self.prefix, self.cover = rng, prefix, cover
        self.arrays, self.helpers, self.narrow = {}, {}, None

    def one(self, *choices):
        """One of these; each comes, with each value of the other choices."""
        return choices[self.cover.choose(len(choices))]

    def any_of(self, *makers):
        """The expression of one of these generators."""
        c = self.cover.choose(len(makers))
        self.cover.scope += (c,)
        return makers[c](self)

    def dtype(self, among=NUMBERS):
        """One of these, or one of the narrow ones where floats may be: then every float of the call is of it."""
        if "float32" not in among:
            return self.one(*among)
        if self.narrow is None:
            t = self.one(*among, *NARROW)
            self.narrow = t if t in NARROW else ""
            return t
        return self.narrow or self.one(*among)

    def shape(self, low=0, high=5, empty=True):
        rank = self.random.randint(low, high)
        sizes = [1, 2, 3, 3, 5, 7] if rank < 4 else [1, 2, 3]
        shape = [self.random.choice(sizes) for _ in range(rank)]
        if empty and rank and self.random.randint(0, 11) == 0:
            shape[self.random.randrange(rank)] = 0
        return tuple(shape)

    def array(self, dtype=None, shape=None, low=-4, high=4, values=None):
        """The name of a new input."""
        dtype = dtype or self.dtype()
        shape = self.shape() if shape is None else shape
        if dtype[0] in "u" or dtype == "bool":
            low = max(low, 0)
        rng = np.random.default_rng(self.random.randrange(1 << 30))
        if values is not None:
            a = values(rng, shape)
        elif dtype == "complex64":
            a = rng.uniform(low, high, shape) + 1j * rng.uniform(low, high, shape)
        elif dtype == "bool":
            a = rng.integers(0, 2, shape)
        elif "int" in dtype:
            a = rng.integers(int(low), int(high) + 1, shape)
        else:
            a = rng.uniform(low, high, shape)
        name = f"{self.prefix}{chr(ord('a') + len(self.arrays))}"
        self.arrays[name] = np.asarray(a).astype(getattr(ml_dtypes, dtype, dtype))
        return name

    def of(self, name):
        return self.arrays[name].shape

    def thin(self, shape):
        """The shape with some sizes 1, so that another one may stretch it."""
        return tuple(1 if self.random.randint(0, 3) == 0 else n for n in shape)

    def partner(self, shape):
        """A shape that broadcasts with `shape`."""
        other = self.thin(shape)
        return other[self.random.randint(0, len(other)):] if self.random.randint(0, 2) == 0 else other

    def axis(self, rank):
        return self.random.randrange(-rank, rank)

    def axes(self, rank):
        """For a reduction: None, one axis, or several."""
        if rank == 0 or self.random.randint(0, 3) == 0:
            return None
        if self.random.randint(0, 1):
            return self.axis(rank)
        some = self.random.sample(range(rank), self.random.randint(0, rank))
        return tuple(a - rank if self.random.randint(0, 1) else a for a in some)

    def helper(self, text):
        """The name of a function of the source; {name} in the text stands for it."""
        name = f"{self.prefix}f{len(self.helpers)}"
        self.helpers[name] = text.format(name=name)
        return name


def calls(op, make, prefix, more=0):
    """The calls of an operation that bring every two choices together, and so many more; the same in every run."""
    rng = random.Random(zlib.crc32(op.encode()))
    cover, made, quiet = Cover(rng), [], 0

    def one():
        cover.begin()
        d = Draw(rng, f"{prefix}{len(made)}", cover)
        expression = make(d)
        return Call(op, expression, {n: a for n, a in d.arrays.items() if n in expression}, d.helpers)
    while quiet < QUIET:
        call = one()
        quiet = 0 if cover.end() else quiet + 1
        if not quiet:
            made.append(call)
        assert len(made) < CALLS_MAX, op
    for _ in range(max(more, CALLS_MIN - len(made))):
        made.append(one())
    return made


# ---- generators, for rows of the table ------------------------------------------------------------------------------


def texts(*forms, dtypes=NUMBERS, low=-4, high=4, shape=None, rank=(0, 5), empty=True):
    """Forms of one array {x}."""
    def make(d):
        s = d.shape(*rank, empty) if shape is None else shape
        return d.one(*forms).format(x=d.array(d.dtype(dtypes), s, low, high))
    return make


def binary(*forms, dtypes=NUMBERS, low=-4, high=4, right=None, other=None):
    """Forms of {x} and {y}, which broadcast; other: the dtypes of y, where they are drawn apart."""
    def make(d):
        t = d.dtype(dtypes)
        u = t if other is None else d.dtype(other)
        if "float16" in (t, u) and t != u:  # with integers float16 stays: tests/trace/test_promotion.py
            t = u = "float16"
        shape = d.shape()
        x, y = d.array(t, d.thin(shape), low, high), d.array(u, d.partner(shape), *(right or (low, high)))
        return d.one(*forms).format(x=x, y=y)
    return make


def np2(name, *more, **options):
    return binary(f"np.{name}({{x}}, {{y}})", *more, **options)


def np1(name, *more, **options):
    return texts(f"np.{name}({{x}})", *more, **options)


def also(*makers):
    """Any of several generators."""
    return lambda d: d.any_of(*makers)


def reduction(name, dtypes=NUMBERS, empty=True, low=-3, high=3, method=True, several=True, rank=0):
    def make(d):
        x = d.array(d.dtype(dtypes), d.shape(rank, empty=empty), low, high)
        n = len(d.of(x))
        axis = d.axes(n) if several else None if n == 0 or d.random.randint(0, 3) == 0 else d.axis(n)
        keep = d.one("", ", keepdims=True")
        return d.one(f"np.{name}({x}, axis={axis}{keep})", f"{x}.{name}(axis={axis}{keep})" if method else f"np.{name}({x}, {axis}{keep})")
    return make


def scan(name):
    def make(d):
        x = d.array(d.dtype(INTS + ["float32"]), d.shape(1), 0.5 if "prod" in name else -3, 2)
        axis = d.one(None, d.axis(len(d.of(x))))
        return d.one(f"np.{name}({x}, axis={axis})", f"{x}.{name}({axis})")
    return make


def moving(make, low=1, dtypes=ALL, high=5, empty=True):
    """make(d, x, rank) with an array of any dtype."""
    def made(d):
        x = d.array(d.dtype(dtypes), d.shape(low, high, empty))
        return make(d, x, len(d.of(x)))
    return made


def moved(*forms):
    """Forms of an array of 2 by 3 by 4, of any dtype."""
    return texts(*forms, dtypes=ALL, shape=(2, 3, 4), low=0, high=9)


def shapes(forms, pairs, dtypes, low=-2, high=2):
    """Forms of {x} and {y} of these pairs of shapes."""
    def make(d):
        t, (a, b) = d.dtype(dtypes), d.one(*pairs)
        return d.one(*forms).format(x=d.array(t, a, low, high), y=d.array(t, b, low, high))
    return make
