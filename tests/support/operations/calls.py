"""Random calls of every operation: expressions over arrays of drawn dtypes, ranks, sizes and values.

    case = draw(random, "cumsum")       # case.expression, case.arrays: {name: array}

CASES has one generator per operation of compiler/trace/ops.def.  A generator is given a Draw and returns an expression; the
arrays that it asked for are the case's inputs.  Values keep away from where float32 and NumPy's float64 must differ
(ties of sums, arguments next to poles), shapes do not: ranks 0 to 5, sizes 0 and 1, odd sizes, broadcasting.
"""
import collections

import ml_dtypes
import numpy as np

INTS = ["int8", "uint8", "int16", "uint16", "int32", "uint32"]
FLOATS = ["float16", "float32", "float32", "float32"]
NUMBERS = INTS + FLOATS
ALL = ["bool"] + NUMBERS
# One case in four whose dtypes may be floats computes in one of these only: what they give together with other types is
# the promotion table's matter, not NumPy's.
NARROW = ["bfloat16", "bfloat16", "float8_e4m3", "float8_e4m3fn", "float8_e5m2"]

ZEROS = ["int32", "float32"]  # of these any two give what NumPy gives, rounded to 32 bits

Case = collections.namedtuple("Case", "op expression arrays")


class Draw:
    def __init__(self, random, prefix):
        self.random, self.prefix, self.arrays = random, prefix, {}
        self.narrow = random.choice(NARROW) if random.randint(0, 3) == 0 else None

    def one(self, *choices):
        return self.random.choice(choices)

    def dtype(self, among=NUMBERS):
        return self.narrow if self.narrow and "float32" in among else self.random.choice(among)

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

    def partner(self, shape):
        """A shape that broadcasts with `shape`."""
        other = [1 if self.random.randint(0, 3) == 0 else n for n in shape]
        return tuple(other[self.random.randint(0, len(other)):] if self.random.randint(0, 2) == 0 else other)

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


def binary(call, dtypes=NUMBERS, low=-4, high=4, right=None, other=None):
    def make(d):
        t = d.dtype(dtypes)
        u = t if other is None else d.dtype(other)
        if "float16" in (t, u) and t != u:  # with integers float16 stays: test_promotion.py
            t = u = "float16"
        shape = d.shape()
        x, y = d.array(t, shape, low, high), d.array(u, d.partner(shape), *(right or (low, high)))
        return d.one(*call).format(x=x, y=y) if not isinstance(call, str) else call.format(x=x, y=y)
    return make


def np2(name, *more, **options):
    return binary((f"np.{name}({{x}}, {{y}})",) + more, **options)


def unary(*calls, dtypes=NUMBERS, low=-4, high=4):
    def make(d):
        return d.one(*calls).format(x=d.array(d.dtype(dtypes), None, low, high))
    return make


def np1(name, *more, **options):
    return unary(f"np.{name}({{x}})", *more, **options)


def reduction(name, dtypes=NUMBERS, empty=True, low=-3, high=3, method=True, several=True, rank=0):
    def make(d):
        x = d.array(d.dtype(dtypes), d.shape(rank, empty=empty), low, high)
        n = len(d.of(x))
        axis = d.axes(n) if several else None if n == 0 or d.random.randint(0, 3) == 0 else d.axis(n)
        keep = d.one("", ", keepdims=True")
        return d.one(f"np.{name}({x}, axis={axis}{keep})", f"{x}.{name}(axis={axis}{keep})" if method else f"np.{name}({x}, {axis}{keep})")
    return make


def scan(name, method=True):
    def make(d):
        x = d.array(d.dtype(INTS + ["float32"]), d.shape(1), 0.5 if "prod" in name else -3, 2)
        axis = d.one(None, d.axis(len(d.of(x))))
        return d.one(f"np.{name}({x}, axis={axis})", f"{x}.{name}({axis})" if method else f"np.{name}({x}, {axis})")
    return make


def moving(make, low=1, dtypes=ALL, high=5, empty=True):
    """make(d, x, rank) with an array of any dtype."""
    def made(d):
        x = d.array(d.dtype(dtypes), d.shape(low, high, empty))
        return make(d, x, len(d.of(x)))
    return made


def several(d, n, dtype=None, low=1):
    """n arrays of one shape."""
    shape = d.shape(low, 4)
    t = dtype or d.dtype(ALL)
    return [d.array(t, shape) for _ in range(n)]


def matmul(d):
    t = d.dtype(["int32", "int8", "float32", "float32", "float16", "bool"])
    m, k, n = (d.random.choice([1, 2, 3, 7]) for _ in range(3))
    batch = d.shape(0, 2, empty=False)
    x = d.array(t, d.one((k,), (m, k), batch + (m, k)), -2, 2)
    y = d.array(t, d.one((k,), (k, n), d.partner(batch) + (k, n)), -2, 2)
    return d.one(f"np.matmul({x}, {y})", f"{x} @ {y}")


def dot(d):
    t = d.dtype(["int32", "float32"])
    k = d.random.choice([1, 2, 5])
    x = d.array(t, d.shape(0, 2, False) + (k,), -2, 2)
    y = d.array(t, d.one((k,), (k, 3), (2, k, 3)), -2, 2)
    return d.one(f"np.dot({x}, {y})", f"{x}.dot({y})", f"np.dot({x}, 2)")


def einsum(d):
    text, shapes = d.one(
        ("ij,jk->ik", "ij jk"), ("ij,kj", "ij kj"), ("bij,bjk->bik", "bij bjk"), ("ii->i", "ii"), ("ii", "ii"), ("ij->ji", "ij"),
        ("ij->", "ij"), ("i,j->ij", "i j"), ("i,i", "i i"), ("bhqd,bhkd->bhqk", "bhqd bhkd"), ("bqhd,bkhd->bhqk", "bqhd bkhd"),
        ("ij,j->i", "ij j"), ("...j,jk->...k", "abj jk"), ("...ij->...ji", "aij"), ("ij,jk,kl->il", "ij jk kl"),
        ("abc,cd->abd", "abc cd"), ("i...->...", "iab"), ("ijj->i", "ijj"), ("ij,ij->ij", "ij ij"), ("ij,ij->j", "ij ij"),
        ("a,b,c->cba", "a b c"), ("ba", "ba"), ("i,ij->", "i ij"), ("...i,...i->...", "abi abi"))
    size = {c: d.random.choice([1, 2, 3, 5]) for c in "abcdefghijklmnopqrstuvwxyz"}
    t = d.dtype(["int32", "float32", "float32"])
    names = [d.array(t, tuple(size[c] for c in s), -2, 2) for s in shapes.split()]
    return f"np.einsum({text!r}, {', '.join(names)})"


def tensordot(d):
    t = d.dtype(["int32", "float32"])
    x = d.array(t, (2, 3, 5), -2, 2)
    return d.one(f"np.tensordot({x}, {d.array(t, (3, 5, 2), -2, 2)})", f"np.tensordot({x}, {d.array(t, (5, 4), -2, 2)}, 1)",
                 f"np.tensordot({x}, {d.array(t, (5, 4, 2), -2, 2)}, axes=([0, -1], [2, 0]))",
                 f"np.tensordot({x}, {d.array(t, (3,), -2, 2)}, axes=0)",
                 f"np.tensordot({x}, {d.array(t, (4, 3), -2, 2)}, ([1], [1]))")


def inner(name, batch=True):
    def make(d):
        t, k = d.dtype(["int32", "float32"]), d.random.choice([1, 3, 7])
        if name == "vdot":
            shape = d.shape(1, 3)
            return f"np.vdot({d.array(t, shape, -2, 2)}, {d.array(t, shape, -2, 2)})"
        left = d.shape(0, 2, False)
        x = d.array(t, left + (k,), -2, 2)
        return f"np.{name}({x}, {d.array(t, (d.partner(left) if name == 'vecdot' else d.shape(0, 2, False)) + (k,), -2, 2)})"
    return make


def norm(d):
    x = d.array(d.dtype(["float32", "int32"]), d.shape(1, 3, False))
    n = len(d.of(x))
    if n == 1 or d.random.randint(0, 1):
        return f"np.linalg.norm({x}, {d.one(None, 1, 2, 3, 'np.inf', '-np.inf', 0)}, axis={d.axis(n)}{d.one('', ', keepdims=True')})"
    a = d.random.sample(range(n), 2)
    order = d.one(None, "'fro'", 1, -1, "np.inf", "-np.inf")
    return f"np.linalg.norm({x}, {order}, axis={tuple(a)}{d.one('', ', keepdims=True')})" if d.random.randint(0, 3) else f"np.linalg.norm({x})"


def pair_axes(rank, d):
    return d.random.sample(range(rank), 2)


def diagonal(name):
    def make(d):
        low = 2
        x = d.array(d.dtype(INTS + ["float32"]), d.shape(low, 4, False))
        k = d.random.randint(-2, 2)
        if name.startswith("linalg"):
            return f"np.{name}({x}, offset={k})"
        i, j = pair_axes(len(d.of(x)), d)
        return d.one(f"np.{name}({x}, {k}, {i}, {j})", f"{x}.{name}(offset={k})")
    return make


def square(d, n):
    return d.array(d.dtype(["int32", "float32"]), (n, n), -1, 1)


def reshape(d, x, rank):
    n = int(np.prod(d.of(x)))
    if n and n % 2 == 0:
        return d.one(f"np.reshape({x}, (2, -1))", f"{x}.reshape(-1, 2)", f"{x}.reshape({n // 2}, 1, 2)")
    return f"{x}.reshape({n})"


def permuted(d, rank):
    p = list(range(rank))
    d.random.shuffle(p)
    return tuple(a - rank if d.random.randint(0, 1) else a for a in p)


def joined(name):
    def make(d):
        shape = list(d.shape(1, 4))
        axis = d.axis(len(shape))
        names = []
        for _ in range(d.random.randint(1, 3)):
            part = list(shape)
            part[axis] = d.random.randint(0, 3)
            names.append(d.array("float32" if d.random.randint(0, 1) else "int16", tuple(part)))
        return f"np.concatenate([{', '.join(names)}], axis={axis})"
    return make


def stacked(name):
    def make(d):
        low = 0
        xs = several(d, d.random.randint(1, 3), low=low)
        axis = f", axis={d.axis(len(d.of(xs[0])) + 1)}" if name == "stack" else ""
        return f"np.{name}([{', '.join(xs)}]{axis})"
    return make


def split(name):
    def make(d):
        low = {"dsplit": 3, "vsplit": 2}.get(name, 1)
        x = d.array(d.dtype(ALL), tuple(6 if name != "array_split" else 7 for _ in range(low)) + d.one((), (6,)))
        axis = f", axis={d.axis(low)}" if name in ("split", "array_split") else ""
        return f"np.{name}({x}, {d.one(3, 2, [1, 4], [-2]) if name != 'array_split' else d.one(3, 4)}{axis})[{d.one(0, 1, -1)}]"
    return make


def indices(d, shape, size, low=None):
    return d.array(d.one("int32", "int16", "int8"), shape, -size if low is None else low, size - 1) if size else None


def take(d):
    x = d.array(d.dtype(ALL), d.shape(1, 4, False))
    axis = d.axis(len(d.of(x)))
    i = indices(d, d.shape(0, 2), d.of(x)[axis])
    return d.one(f"np.take({x}, {i}, axis={axis})", f"{x}.take({i}, {axis})", f"np.take({x}, {i})", f"np.take({x}, [0, -1], axis={axis})")


def along(d, x_shape=None):
    x = d.array(d.dtype(ALL), d.shape(1, 4, False))
    axis = d.axis(len(d.of(x)))
    shape = list(d.of(x))
    size = shape[axis]
    shape[axis] = d.random.randint(1, 3)
    return x, axis, indices(d, tuple(shape), size), tuple(shape)


def take_along(d):
    x, axis, i, _ = along(d)
    return f"np.take_along_axis({x}, {i}, axis={axis})"


def put_along(d):
    x = d.array(d.dtype(NUMBERS), d.shape(1, 3, False))
    axis = d.axis(len(d.of(x)))
    shape = list(d.of(x))
    size, shape[axis] = shape[axis], 1  # one per row: several could meet in one place
    return f"stored(lambda x: np.put_along_axis(x, {indices(d, tuple(shape), size)}, {d.one('1', d.array('int8', (1,)))}, {axis}), {x})"


def selected(d):
    xs = several(d, 2, d.dtype(NUMBERS), low=0)
    shape = d.of(xs[0])
    c, e = d.array("bool", d.partner(shape)), d.array("bool", shape)
    return f"np.select([{c}, {e}], [{xs[0]}, {xs[1]}]{d.one('', ', 3')})"


def where(d):
    s, t, u = d.shape(), d.dtype(), d.dtype()
    if "float16" in (t, u):  # as in binary
        t = u = "float16"
    other = d.one(d.array(u, d.partner(s)), "0", "0.5")
    return f"np.where({d.array(d.one('bool', 'int32'), d.partner(s))}, {d.array(t, s)}, {other})"


def padded(d, x, rank):
    mode = d.one("constant", "constant", "edge", "reflect", "symmetric", "wrap")
    w = d.one("1", "(2, 1)", str([(d.random.randint(0, 2), d.random.randint(0, 3)) for _ in range(rank)]))
    values = d.one("", ", constant_values=1", ", constant_values=(1, 0)") if mode == "constant" else ""
    return f"np.pad({x}, {w}, mode={mode!r}{values})"


def diffed(d, x, rank):
    return f"np.diff({x}, n={d.one(1, 1, 2)}, axis={d.axis(rank)}{d.one('', ', prepend=1', ', append=0')})"


def searched(d):
    t = d.dtype(["int32", "float32"])
    a = d.array(t, (d.random.randint(1, 9),), values=lambda rng, s: np.sort(rng.integers(-5, 6, s)))
    return f"np.searchsorted({a}, {d.array(t, d.shape(0, 3), -6, 6)}, side={d.one('left', 'right')!r})"


def average(d):
    x = d.array("float32", d.shape(1, 4, False))
    axis = d.axis(len(d.of(x)))
    w = d.array("float32", (d.of(x)[axis],), 0.5, 2)
    return d.one(f"np.average({x}, axis={axis}, weights={w})", f"np.average({x}, axis={axis})", f"np.average({x})",
                 f"np.average({x}, axis={axis}, weights={w}, returned=True)[1]")


def nans(name):
    def make(d):
        holes = lambda rng, s: np.where(rng.uniform(size=s) < 0.3, np.nan, rng.uniform(0.5, 2, s))
        x = d.array("float32", d.shape(1, 4, False), values=holes)
        axis = d.one(None, d.axis(len(d.of(x))))
        return f"np.{name}({x}, axis={axis}{d.one('', ', keepdims=True') if 'cum' not in name else ''})"
    return make


def special(d):
    values = lambda rng, s: rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.0], s)
    return d.array(d.one("float32", "float16"), None, values=values)


def whole(d, dtypes=NUMBERS):
    return d.array(d.dtype(dtypes))


def choice(*texts, **options):
    def make(d):
        return d.one(*texts).format(x=d.array(d.dtype(options.get("dtypes", NUMBERS)), d.shape(options.get("low", 0), options.get("high", 5), options.get("empty", True))))
    return make


F, I = FLOATS, INTS
INT_DIV = dict(dtypes=["int8", "int16", "int32", "float32"])
CASES = {
    "add": np2("add", "{x} + {y}", dtypes=ALL, other=ALL), "subtract": np2("subtract", "{x} - {y}", other=NUMBERS),
    "multiply": np2("multiply", "{x} * {y}", dtypes=ALL, other=ALL), "divide": np2("divide", "{x} / {y}", right=(1, 4)),
    "power": binary(("{x} ** {y}", "np.power({x}, {y})", "{x} ** 2"), low=1, high=3, right=(0, 3)),
    "maximum": np2("maximum", dtypes=ALL, other=ALL), "minimum": np2("minimum", dtypes=ALL, other=ALL),
    "floor_divide": np2("floor_divide", "{x} // {y}", **INT_DIV), "remainder": np2("remainder", "{x} % {y}", **INT_DIV),
    "fmod": np2("fmod", **INT_DIV), "logaddexp": np2("logaddexp", dtypes=F), "logaddexp2": np2("logaddexp2", dtypes=["float32"]),
    "hypot": np2("hypot", dtypes=F), "copysign": np2("copysign", dtypes=F), "heaviside": np2("heaviside", dtypes=F),
    "ldexp": binary("np.ldexp({x}, {y})", dtypes=["float32"], other=["int32", "int16"]), "arctan2": np2("arctan2", dtypes=F, right=(1, 4)),
    "fmax": np2("fmax", dtypes=ALL), "fmin": np2("fmin", dtypes=ALL), "float_power": np2("float_power", low=1, high=3, dtypes=["float32", "int8"]),
    "bitwise_and": binary("{x} & {y}", dtypes=["bool"] + I), "bitwise_or": binary("{x} | {y}", dtypes=["bool"] + I),
    "bitwise_xor": binary("{x} ^ {y}", dtypes=["bool"] + I), "left_shift": binary(("{x} << {y}", "{x} << 3"), dtypes=["bool"] + I),
    "right_shift": binary(("{x} >> {y}", "{x} >> 1"), dtypes=["bool"] + I), "logical_and": np2("logical_and", dtypes=ALL, other=ALL),
    "logical_or": np2("logical_or", dtypes=ALL, other=ALL), "logical_xor": np2("logical_xor", dtypes=ALL, other=ALL),
    **{n: binary((f"np.{n}({{x}}, {{y}})", f"{{x}} {o} {{y}}", f"{{x}} {o} 1"), dtypes=I + F) for n, o in
       [("equal", "=="), ("not_equal", "!="), ("less", "<"), ("less_equal", "<="), ("greater", ">"), ("greater_equal", ">=")]},
    "isclose": np2("isclose", "np.isclose({x}, {y}, atol=1)", "np.isclose({x}, {x})", dtypes=["float32", "int32"]),
    "allclose": np2("allclose", "np.allclose({x}, {x})", "np.allclose({x}, {y}, atol=9)", dtypes=["float32"]),
    "array_equal": np2("array_equal", "np.array_equal({x}, {x})", dtypes=I), "array_equiv": np2("array_equiv", "np.array_equiv({x}, {x})", dtypes=I),
    "abs": np1("abs", "abs({x})"), "fabs": np1("fabs", dtypes=F), "negative": unary("-{x}", "np.negative({x})"), "positive": unary("+{x}"),
    "sign": np1("sign"), "exp": np1("exp"), "expm1": np1("expm1"), "log": np1("log", low=0.5), "log1p": np1("log1p", low=0, high=3),
    "log2": np1("log2", low=1.5), "log10": np1("log10", low=1.5), "exp2": np1("exp2"), "sqrt": np1("sqrt", low=0), "cbrt": np1("cbrt"),
    "sin": np1("sin"), "cos": np1("cos"), "tan": np1("tan", low=-1, high=1), "tanh": np1("tanh"), "arctan": np1("arctan"),
    "sinh": np1("sinh"), "cosh": np1("cosh"), "arcsin": np1("arcsin", low=-0.9, high=0.9, dtypes=F), "arccos": np1("arccos", low=-0.9, high=0.9, dtypes=F),
    "arcsinh": np1("arcsinh"), "arccosh": np1("arccosh", low=1.2), "arctanh": np1("arctanh", low=-0.9, high=0.9, dtypes=F),
    "radians": np1("radians", "np.deg2rad({x})"), "degrees": np1("degrees", "np.rad2deg({x})", dtypes=["float32"]),
    "sinc": np1("sinc", dtypes=["float32"], low=0, high=0.9), "signbit": lambda d: f"np.signbit({whole(d, F)})",
    "isposinf": lambda d: f"np.isposinf({special(d)})", "isneginf": lambda d: f"np.isneginf({special(d)})",
    "isnan": lambda d: f"np.isnan({special(d)})", "isinf": lambda d: f"np.isinf({special(d)})", "isfinite": lambda d: f"np.isfinite({special(d)})",
    "nan_to_num": lambda d: f"np.nan_to_num({special(d)}{d.one('', ', nan=2.0', ', posinf=7, neginf=-7')})", "modf": unary("np.modf({x})[0]", "np.modf({x})[1]", dtypes=F),
    "square": np1("square"), "reciprocal": np1("reciprocal", low=1), "ceil": np1("ceil"), "floor": np1("floor"), "trunc": np1("trunc", "np.fix({x})", dtypes=F),
    "rint": np1("rint"), "invert": unary("~{x}", dtypes=["bool"] + I), "logical_not": np1("logical_not", dtypes=ALL),
    "round": unary("np.round({x})", "{x}.round()", dtypes=F), "clip": unary("np.clip({x}, 0, 2)", "{x}.clip(1, None)", "np.clip({x}, None, 1)"),
    "astype": unary("{x}.astype(np.float32)", "{x}.astype(np.int32)", "{x}.astype(bool)", "{x}.astype('float16')", dtypes=ALL, low=0), "copy": unary("np.copy({x})", "{x}.copy()", dtypes=ALL),
    "sum": reduction("sum", ALL), "prod": reduction("prod", I + ["float32"], low=0.5, high=2), "max": reduction("max", ALL, empty=False), "min": reduction("min", ALL, empty=False),
    "mean": reduction("mean", ALL, empty=False), "var": reduction("var", ["int32", "float32", "bool"], empty=False), "std": reduction("std", ["int32", "float32"], empty=False),
    "any": reduction("any", ALL), "all": reduction("all", ALL), "count_nonzero": reduction("count_nonzero", ALL, method=False),
    "argmax": reduction("argmax", ALL, empty=False, several=False, rank=1), "argmin": reduction("argmin", ALL, empty=False, several=False, rank=1),
    "ptp": reduction("ptp", ["int32", "float32"], empty=False, method=False), "average": average,
    **{f"nan{n}": nans(f"nan{n}") for n in ("sum", "prod", "max", "min", "mean", "var", "std", "cumsum", "cumprod")},
    "cumsum": scan("cumsum"), "cumprod": scan("cumprod"),
    "cumulative_sum": lambda d: f"np.cumulative_sum({d.array('int32', (3, 5))}, axis={d.one(0, 1, -1)}{d.one('', ', include_initial=True')})",
    "cumulative_prod": lambda d: f"np.cumulative_prod({d.array('float32', (3, 5), 0.5, 2)}, axis={d.one(0, 1, -1)}{d.one('', ', include_initial=True')})",
    "matmul": matmul, "dot": dot, "outer": binary("np.outer({x}, {y})", dtypes=["int32", "float32"]), "inner": inner("inner"), "vdot": inner("vdot"), "vecdot": inner("vecdot"),
    "tensordot": tensordot, "einsum": einsum, "kron": lambda d: f"np.kron({d.array('int32', d.shape(0, 2))}, {d.array('float32', d.shape(0, 2))})",
    "cross": lambda d: f"np.cross({d.array('float32', (4, 3))}, {d.array('float32', d.one((3,), (4, 3), (2, 1, 3)))})",
    "linalg.matrix_power": lambda d: f"np.linalg.matrix_power({square(d, 3)}, {d.random.randint(0, 5)})",
    "linalg.multi_dot": lambda d: f"np.linalg.multi_dot([{d.array('float32', (2, 3))}, {d.array('float32', (3, 4))}, {d.array('float32', (4, 2))}])",
    "linalg.norm": norm, "linalg.vector_norm": lambda d: f"np.linalg.vector_norm({d.array('float32', d.shape(1, 4, False))}, ord={d.one(1, 2, 3, 'np.inf')})",
    "diagonal": diagonal("diagonal"), "trace": diagonal("trace"), "linalg.diagonal": diagonal("linalg.diagonal"), "linalg.trace": diagonal("linalg.trace"),
    "diag": moving(lambda d, x, n: f"np.diag({x}, {d.random.randint(-2, 2)})", 1, high=2, empty=False), "diagflat": moving(lambda d, x, n: f"np.diagflat({x}, {d.random.randint(-2, 2)})", 1, high=2, empty=False),
    "tril": moving(lambda d, x, n: f"np.tril({x}, {d.random.randint(-2, 2)})", 1), "triu": moving(lambda d, x, n: f"np.triu({x}, {d.random.randint(-2, 2)})", 1),
    "reshape": moving(reshape), "ravel": moving(lambda d, x, n: d.one(f"np.ravel({x})", f"{x}.flatten()"), 0),
    "transpose": moving(lambda d, x, n: d.one(f"{x}.T", f"np.transpose({x}, {permuted(d, n)})"), 0), "swapaxes": moving(lambda d, x, n: f"{x}.swapaxes({d.axis(n)}, {d.axis(n)})"),
    "moveaxis": moving(lambda d, x, n: f"np.moveaxis({x}, {d.axis(n)}, {d.axis(n)})"), "rollaxis": moving(lambda d, x, n: f"np.rollaxis({x}, {d.axis(n)}, {d.random.randint(0, n)})"),
    "matrix_transpose": moving(lambda d, x, n: f"np.matrix_transpose({x})", 2), "expand_dims": moving(lambda d, x, n: f"np.expand_dims({x}, {d.axis(n + 1)})", 0, high=4),
    "squeeze": moving(lambda d, x, n: f"np.squeeze({x})", 0), "concatenate": joined("concatenate"), "stack": stacked("stack"), "hstack": stacked("hstack"), "vstack": stacked("vstack"),
    "dstack": stacked("dstack"), "column_stack": lambda d: f"np.column_stack([{d.array('float32', (5,))}, {d.array('int32', d.one((5,), (5, 2)))}])",
    "split": split("split"), "array_split": split("array_split"), "hsplit": split("hsplit"), "vsplit": split("vsplit"), "dsplit": split("dsplit"),
    "unstack": moving(lambda d, x, n: f"np.unstack({x}, axis={d.axis(n)})[-1]", 1, empty=False), "append": lambda d: f"np.append({d.array('float32', (2, 3))}, {d.array('int32', (2, 1))}, axis={d.one(None, 1, -1)})",
    "broadcast_to": moving(lambda d, x, n: f"np.broadcast_to({x}, {(2,) + d.of(x)})", 0, high=4), "broadcast_arrays": binary("np.broadcast_arrays({x}, {y})[1]"),
    "meshgrid": lambda d: f"np.meshgrid({d.array('float32', (3,))}, {d.array('int32', (4,))}, {d.array('int8', (2,))}, indexing={d.one('xy', 'ij')!r}{d.one('', ', sparse=True')})[{d.one(0, 1, 2)}]",
    "repeat": moving(lambda d, x, n: d.one(f"np.repeat({x}, 3, axis={d.axis(n)})", f"np.repeat({x}, 2)"), high=4), "tile": moving(lambda d, x, n: f"np.tile({x}, {d.one(2, (2,), (3, 1, 2), (1, 2), 0)})", 0, high=4),
    "flip": moving(lambda d, x, n: f"np.flip({x}, {d.axes(n)})"), "fliplr": moving(lambda d, x, n: f"np.fliplr({x})", 2), "flipud": moving(lambda d, x, n: f"np.flipud({x})"),
    "roll": moving(lambda d, x, n: d.one(f"np.roll({x}, {d.random.randint(-9, 9)}, {d.axis(n)})", f"np.roll({x}, 4)", f"np.roll({x}, (1, -2), 0)")),
    "rot90": moving(lambda d, x, n: f"np.rot90({x}, {d.random.randint(-3, 5)}, {tuple(pair_axes(n, d))})", 2), "pad": moving(padded, 1, NUMBERS, 3, False), "diff": moving(diffed, 1, INTS + ["float32"], 4),
    "atleast_1d": choice("np.atleast_1d({x})"), "atleast_2d": choice("np.atleast_2d({x})"), "atleast_3d": choice("np.atleast_3d({x})"),
    "where": where,
    "take": take, "take_along_axis": take_along, "put_along_axis": put_along, "select": selected,
    "copyto": lambda d: f"stored(lambda x: np.copyto(x, {d.one('3', '1')}, where={d.array('bool', (3, 4))}), {d.array(None, (3, 4))})",
    "putmask": lambda d: f"stored(lambda x: np.putmask(x, {d.array('bool', (3, 4))}, {d.one('3', d.array('bool', (3, 4)))}), {d.array(None, (3, 4))})",
    "fill_diagonal": lambda d: f"stored(lambda x: np.fill_diagonal(x, 3), {d.array(None, d.one((4, 4), (3, 5)))})",
    "compress": moving(lambda d, x, n: f"np.compress([True, False, True][:{d.of(x)[0]}], {x}, axis=0)", 1, empty=False), "searchsorted": searched,
    "digitize": lambda d: f"np.digitize({d.array('float32', d.shape(0, 3))}, [-2, 0, 0.5, 3], right={d.one(True, False)})",
    "isin": lambda d: f"np.isin({d.array('int32')}, {d.one('[1, 2]', d.array('int32', (4,)))}{d.one('', ', invert=True')})",
    "sort": lambda d: (lambda x: f"np.sort({x}, axis={d.one(None, d.axis(len(d.of(x))))})")(d.array(d.dtype(NUMBERS), d.shape(1, 4, False))),
    "argsort": lambda d: (lambda x: f"np.argsort({x}, axis={d.axis(len(d.of(x)))}, kind='stable')")(d.array(d.dtype(NUMBERS), d.shape(1, 4, False))),
    "median": lambda d: (lambda x: f"np.median({x}, axis={d.axes(len(d.of(x)))}{d.one('', ', keepdims=True')})")(d.array("float32", d.shape(1, 4, False))),
    "topk": lambda d: f"ops.topk({d.array('float32', d.shape(0, 2, False) + (5,))}, {d.random.randint(1, 5)}, -1, {d.one(True, False)})[{d.one(0, 1)}]",
    "zeros": lambda d: f"ops.zeros((2, 3), np.{d.one(*ZEROS)}) + {d.array(d.one(*ZEROS), (3,))}", "ones": lambda d: f"ops.ones((2, 3)) + {d.array('float32', (3,))}",
    "full": lambda d: f"ops.full((2, 3), 2.5) + {d.array('float32', (3,))}", "constant": lambda d: f"ops.constant([1, 2, 3], np.int32) * {d.array('int32', (2, 3))}",
    "softmax": lambda d: (lambda x: f"ops.softmax({x}, axis={d.axis(len(d.of(x)))})")(d.array(d.dtype(F), d.shape(1, 4, False))),
    "rms_norm": lambda d: (lambda s: f"ops.rms_norm({d.array('float32', s)}, {d.array('float32', s[-1:])})")(d.shape(1, 4, False)),
    "conv2d": lambda d: (lambda g: f"ops.conv2d({d.array('float32', (2, 2 * g, 6, 7))}, {d.array('float32', (2 * g, 2, 3, 2))}, {d.one(None, d.array('float32', (2 * g,)))}, stride={d.one(1, 2, (2, 1))}, padding={d.one(0, 1, (1, 0))}, dilation={d.one(1, 2)}, groups={g})")(d.one(1, 2)),
    "conv3d": lambda d: f"ops.conv3d({d.array('float32', (1, 2, 4, 5, 4))}, {d.array('float32', (3, 2, 2, 3, 2))}, stride={d.one(1, 2)}, padding={d.one(0, 1)})",
    # XLA refuses to gather or scatter a dimension of size 0
    "all_gather": lambda d: f"ops.all_gather({d.array(None, (3, 4))}, 0, [[0]])", "all_reduce": choice("ops.all_reduce({x}, [[0]], np.maximum)"),
    "reduce_scatter": lambda d: f"ops.reduce_scatter({d.array(None, (3, 4))}, 0, [[0]])",
    "all_to_all": lambda d: f"ops.all_to_all({d.array(None, (3, 4, 2))}, {d.axis(3)}, {d.axis(3)}, [[0]])",
    "zeros_like": choice("np.zeros_like({x})"), "ones_like": choice("np.ones_like({x})"), "empty_like": choice("np.zeros_like(np.empty_like({x}))"), "full_like": choice("np.full_like({x}, 3)"),
    "shape": choice("{x} + {x}.ndim"), "ndim": choice("{x} * np.ndim({x})"), "size": choice("{x}.astype(np.float32) + np.size({x})"),
}

HEAD = '''import numpy as np
import ml_dtypes
from nkipy.core import ops

def stored(write, x):
    y = x + 0 if x.dtype != bool else x | False
    write(y)
    return y
'''


def draw(random, op, prefix="x"):
    d = Draw(random, prefix)
    expression = CASES[op](d)
    used = {n: a for n, a in d.arrays.items() if n in expression}
    return Case(op, expression, used)


def function(name, cases):
    """One function that returns what all cases give, and its inputs."""
    arrays = {n: a for c in cases for n, a in c.arrays.items()}
    lines = "".join(f"        {c.expression},\n" for c in cases)
    return f"def {name}({', '.join(arrays)}):\n    return (\n{lines}    )\n", arrays


def kernel(cases):
    """A source with one kernel, and its inputs."""
    text, arrays = function("kernel", cases)
    return f"{HEAD}\n{text}", arrays


def kernels(groups):
    """A source with a kernel for each group of cases, and the inputs of all."""
    source, inputs = f"{HEAD}from nkigen import trace\n", {}
    for k, cases in enumerate(groups):
        text, arrays = function(f"kernel_{k}", cases)
        source += f"\n\n@trace(input_specs={[(a.shape, a.dtype.name) for a in arrays.values()]!r})\n{text}"
        inputs |= arrays
    return source, inputs
