"""Generators of single operations that no common one of draw.py fits."""
import numpy as np

from support.operations.draw import ALL, INTS, NUMBERS


def reshape(d, x, rank):
    n = int(np.prod(d.of(x)))
    if n and n % 2 == 0:
        return d.one(f"np.reshape({x}, (2, -1))", f"{x}.reshape(-1, 2)", f"{x}.reshape({n // 2}, 1, 2)")
    return f"{x}.reshape({n})"


def permuted(d, rank):
    p = list(range(rank))
    d.random.shuffle(p)
    return tuple(a - rank if d.random.randint(0, 1) else a for a in p)


def pair_axes(rank, d):
    return d.random.sample(range(rank), 2)


def several(d, n, dtype=None, low=1):
    """n arrays of one shape."""
    shape = d.shape(low, 4)
    t = dtype or d.dtype(ALL)
    return [d.array(t, shape) for _ in range(n)]


# ---- products --------------------------------------------------------------------------------------------------------


def matmul(d):
    t = d.dtype(["int32", "int8", "uint8", "float32", "float16", "bool"])
    m, k, n = (d.random.choice([1, 2, 3, 7]) for _ in range(3))
    batch = d.shape(0, 2, empty=False)
    x = d.array(t, d.one((k,), (m, k), d.thin(batch) + (m, k)), -2, 2)
    y = d.array(t, d.one((k,), (k, n), d.partner(batch) + (k, n)), -2, 2)
    return d.one(f"np.matmul({x}, {y})", f"{x} @ {y}")


def dot(d):
    t = d.dtype(["int32", "float32"])
    k = d.random.choice([1, 2, 5])
    x = d.array(t, d.shape(0, 2, False) + (k,), -2, 2)
    y = d.array(t, d.one((k,), (k, 3), (2, k, 3)), -2, 2)
    return d.one(f"np.dot({x}, {y})", f"{x}.dot({y})", f"np.dot({x}, 2)")


EINSUMS = (
    ("ij,jk->ik", "ij jk"), ("ij,kj", "ij kj"), ("bij,bjk->bik", "bij bjk"), ("ii->i", "ii"), ("ii", "ii"), ("ij->ji", "ij"),
    ("ij->", "ij"), ("i,j->ij", "i j"), ("i,i", "i i"), ("bhqd,bhkd->bhqk", "bhqd bhkd"), ("bqhd,bkhd->bhqk", "bqhd bkhd"),
    ("ij,j->i", "ij j"), ("...j,jk->...k", "abj jk"), ("...ij->...ji", "aij"), ("ij,jk,kl->il", "ij jk kl"),
    ("abc,cd->abd", "abc cd"), ("i...->...", "iab"), ("ijj->i", "ijj"), ("ij,ij->ij", "ij ij"), ("ij,ij->j", "ij ij"),
    ("a,b,c->cba", "a b c"), ("ba", "ba"), ("i,ij->", "i ij"), ("...i,...i->...", "abi abi"))


def einsum(d):
    text, operands = d.one(*EINSUMS)
    size = {c: d.random.choice([1, 2, 3, 5]) for c in "abcdefghijklmnopqrstuvwxyz"}
    t = d.dtype(["int32", "float32"])
    names = [d.array(t, tuple(size[c] for c in s), -2, 2) for s in operands.split()]
    return f"np.einsum({text!r}, {', '.join(names)})"


def tensordot(d):
    t = d.dtype(["int32", "float32"])
    shape, axes = d.one(((3, 5, 2), 2), ((5, 4), 1), ((5, 4, 2), ([0, -1], [2, 0])), ((3,), 0), ((4, 3), ([1], [1])))
    form = d.one("np.tensordot({x}, {y}, {axes})", "np.tensordot({x}, {y}, axes={axes})", "np.linalg.tensordot({x}, {y}, axes={axes})")
    return form.format(x=d.array(t, (2, 3, 5), -2, 2), y=d.array(t, shape, -2, 2), axes=axes)


def inner(name):
    def make(d):
        t, k = d.dtype(["int32", "float32"]), d.random.choice([1, 3, 7])
        if name == "vdot":
            shape = d.shape(1, 3)
            return f"np.vdot({d.array(t, shape, -2, 2)}, {d.array(t, shape, -2, 2)})"
        left = d.shape(0, 2, False)
        x = d.array(t, left + (k,), -2, 2)
        called = d.one("np.vecdot", "np.linalg.vecdot") if name == "vecdot" else f"np.{name}"
        return f"{called}({x}, {d.array(t, (d.partner(left) if name == 'vecdot' else d.shape(0, 2, False)) + (k,), -2, 2)})"
    return make


def square(d, n):
    return d.array(d.dtype(["int32", "float32"]), (n, n), -1, 1)


def norm(d):
    x = d.array(d.dtype(["float32", "int32"]), d.shape(1, 3, False))
    n, keep = len(d.of(x)), d.one("", ", keepdims=True")
    if n == 1 or d.one(True, False):
        return f"np.linalg.norm({x}, {d.one(None, 1, 2, 3, 'np.inf', '-np.inf', 0)}, axis={d.axis(n)}{keep})"
    order = d.one("all", None, "'fro'", 1, -1, "np.inf", "-np.inf")
    return f"np.linalg.norm({x})" if order == "all" else f"np.linalg.norm({x}, {order}, axis={tuple(pair_axes(n, d))}{keep})"


def diagonal(name):
    def make(d):
        x = d.array(d.dtype(INTS + ["float32"]), d.shape(2, 4, False))
        k = d.random.randint(-2, 2)
        if name.startswith("linalg"):
            return f"np.{name}({x}, offset={k})"
        i, j = pair_axes(len(d.of(x)), d)
        return d.one(f"np.{name}({x}, {k}, {i}, {j})", f"{x}.{name}(offset={k})")
    return make


# ---- joining, splitting, moving --------------------------------------------------------------------------------------


def concatenate(d):
    shape = list(d.shape(1, 4))
    axis = d.axis(len(shape))
    names = []
    for _ in range(d.random.randint(1, 3)):
        part = list(shape)
        part[axis] = d.random.randint(0, 3)
        names.append(d.array(d.random.choice(["float32", "int16"]), tuple(part)))
    return f"np.concatenate([{', '.join(names)}], axis={axis})"


def stacked(name):
    def make(d):
        xs = several(d, d.random.randint(1, 3), low=0)
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


def padded(d, x, rank):
    mode = d.one("constant", "edge", "reflect", "symmetric", "wrap")
    w = d.one("1", "(2, 1)", str([(d.random.randint(0, 2), d.random.randint(0, 3)) for _ in range(rank)]))
    values = d.one("", ", constant_values=1", ", constant_values=(1, 0)") if mode == "constant" else ""
    return f"np.pad({x}, {w}, mode={mode!r}{values})"


def diffed(d, x, rank):
    return f"np.diff({x}, n={d.one(1, 2)}, axis={d.axis(rank)}{d.one('', ', prepend=1', ', append=0')})"


# ---- choosing and finding --------------------------------------------------------------------------------------------


def indices(d, shape, size, low=None):
    return d.array(d.one("int32", "int16", "int8"), shape, -size if low is None else low, size - 1)


def take(d):
    x = d.array(d.dtype(ALL), d.shape(1, 4, False))
    axis = d.axis(len(d.of(x)))
    i = indices(d, d.shape(0, 2), d.of(x)[axis])
    return d.one(f"np.take({x}, {i}, axis={axis})", f"{x}.take({i}, {axis})", f"np.take({x}, {i})", f"np.take({x}, [0, -1], axis={axis})",
                 f"np.take({x}, -1, axis={axis})", f"np.take({x}, [[0, -1], [-1, 0]])")


def take_along(d):
    x = d.array(d.dtype(ALL), d.shape(1, 4, False))
    axis = d.axis(len(d.of(x)))
    shape = list(d.of(x))
    size, shape[axis] = shape[axis], d.random.randint(1, 3)
    return f"np.take_along_axis({x}, {indices(d, tuple(shape), size)}, axis={axis})"


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
    if "float16" in (t, u):  # with integers float16 stays: tests/trace/test_promotion.py
        t = u = "float16"
    other = d.one(d.array(u, d.partner(s)), "0", "0.5")
    return f"np.where({d.array(d.one('bool', 'int32'), d.partner(s))}, {d.array(t, s)}, {other})"


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
        def holes(rng, s):
            return np.where(rng.uniform(size=s) < 0.3, np.nan, rng.uniform(0.5, 2, s))
        x = d.array("float32", d.shape(1, 4, False), values=holes)
        axis = d.one(None, d.axis(len(d.of(x))))
        return f"np.{name}({x}, axis={axis}{d.one('', ', keepdims=True') if 'cum' not in name else ''})"
    return make


def special(*forms, dtypes=("float32", "float16", "bfloat16")):
    """Forms of a float array {x} with NaN, infinities and zeros of both signs."""
    def make(d):
        def values(rng, s):
            return rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.0], s)
        return d.one(*forms).format(x=d.array(d.one(*dtypes), None, values=values))
    return make


def sorted_(form, dtypes=NUMBERS):
    """Of an array that is not empty, along {axis}."""
    def make(d):
        x = d.array(d.dtype(dtypes), d.shape(1, 4, False))
        return form.format(x=x, axis=d.axis(len(d.of(x))))
    return make


# ---- the rest --------------------------------------------------------------------------------------------------------


def rms_norm(d):
    s = d.shape(1, 4, False)
    return f"ops.rms_norm({d.array('float32', s)}, {d.array('float32', s[-1:])})"


def conv2d(d):
    g = d.one(1, 2)
    bias = d.one(None, d.array("float32", (2 * g,)))
    return (f"ops.conv2d({d.array('float32', (2, 2 * g, 6, 7))}, {d.array('float32', (2 * g, 2, 3, 2))}, {bias}, "
            f"stride={d.one(1, 2, (2, 1))}, padding={d.one(0, 1, (1, 0))}, dilation={d.one(1, 2)}, groups={g})")


WRITES = ["x[0] = y[0]", "x[1, 2] = 7", "x[1:3] = y[1:3]", "x[:, 1] = 3", "x[..., 0] = y[..., 1]", "x[:] = 1", "x[...] = y",
          "x[1:3, ::2] = 5", "x[::2] = y[::2]", "x[::-1] = y", "x[:, 4:1:-2] = y[:, :2]", "x[0, :, ::3] = 1", "x[-1, -1, -1] = 9",
          "x[2:2] = 4", "x[0:99] = y", "x[1, None, 2:4] = y[0, 2:4]", "x[[0, 2]] = y[:2]", "x[:, [1, 3]] = 0", "x[1:3] = np.arange(6)",
          "x[:, 1, :] = np.ones((1, 6))", "x[0] = np.float64(2)", "x[::2, 1, ::5] = y[:2, 0, :2]", "x[np.array([3])] = y[0]",
          "x += y", "x -= 1", "x *= y", "x += y[0]", "np.add(x, y, out=x)"]
WRITES_BY_INDEX = [
    "x[1, i] = y[0, :2]", "x[1:3, i] = y[:2, :2]", "x[0, :, i] = y[:2, :, 0]", "x[i, 1] = 3", "x[:, 2, i] = y[:, 1, :2]",
    "x[2, 1:4, i] = y[0, 0, 0]", "x[:0, i] = 1", "x[1, ..., i] = 0", "x[i, 1:3, 5] = y[:2, :2, 0]", "x[i] = y[:2]", "x[:, i] = 0",
    "x[..., i] = y[..., :2]", "x[i[0]] = y[0]", "x[:, i - 3] = y[:, :2]", "x[i] = y[0]", "x[1:3, None, i] = y[:2, None, :2]",
    "x[None, :, i, None] = y[None, :, :2, None]", "x[:, None, 0, i] = y[:, :1, :2]"]


def written(d):
    """An array of 4 by 5 by 6 after an assignment to a part of it."""
    statement, t = d.one(*WRITES), d.one("float32", "int32")
    write = d.helper(f"def {{name}}(z, y):\n    x = z\n    {statement}\n    return z, z + 1\n")
    part = d.one(0, 1)  # what was written, and what is computed of it
    return f"{write}({d.array(t, (4, 5, 6), -9, 9)} + 0, {d.array(t, (4, 5, 6), -9, 9)})[{part}]"


def written_by_index(d):
    """The same where an index is an array of the kernel; of no two equal ones, which could meet in one place."""
    write = d.helper(f"def {{name}}(x, y, i):\n    {d.one(*WRITES_BY_INDEX)}\n    return x + 1\n")
    x, y = (d.array("float32", (4, 5, 6), -9, 9) for _ in range(2))
    return f"{write}({x} + 0, {y}, {d.array('int32', (2,), values=lambda rng, s: [1, 3])})"


READS = ["x[0]", "x[-1]", "x[1, 2]", "x[1, 2, 3]", "x[1:]", "x[:-1]", "x[:, 1:3]", "x[..., 0]", "x[..., 1:3]", "x[0, ..., 2]",
         "x[::2]", "x[:, ::2, ::3]", "x[::-1]", "x[:, ::-1, 1]", "x[3:0:-1]", "x[:, 4:1:-2]", "x[-1:-9:-2]", "x[None]",
         "x[:, None]", "x[None, 1, None, :, None]", "x[..., None]", "x[1, None, ..., None]", "x[np.newaxis, ..., 0:3]", "x[...]",
         "x[:]", "x[2:2]", "x[5:100]", "x[np.int64(1)]", "x[[0, 2]]", "x[:, [1, 1, 0]]", "x[..., [0, -1]]", "x[[[0, 1], [2, 3]]]",
         "x[1, :, [0, 2]]", "x[1, ::-1, [0, 2]]", "x[1, [0, 2]]", "x[:, 1, [0, 2]]", "x[1, None, :, [0, 1]]", "x[[0, 1], :, 1]",
         "x[None, [0, 1]]", "x[np.array([1, 0]), 1:3]", "x[1][2:4][::-1]", "x[()]"]
READS_BY_INDEX = ["x[i]", "x[:, i]", "x[..., i]", "x[i - 3]", "x[1, :, i]", "x[:, 1, i]", "np.take(x, i, axis=1)", "np.take(x, i)", "x[j]",
                  "x[j, ::2]", "x[0, j]", "x[i[0]]", "x[:, i[1], 0]", "x[1:, i, None]", "np.take(x, j, axis=-1)"]


def read(d):
    """A part of an array of 4 by 5 by 6."""
    return "(lambda x: {})({})".format(d.one(*READS), d.array(d.one("bool", "int8", "float32"), (4, 5, 6), 0, 9))


def read_by_index(d):
    x = d.array(d.one("int8", "float32"), (4, 5, 6), -9, 9)
    return "(lambda x, i, j: {})({}, {}, {})".format(d.one(*READS_BY_INDEX), x, d.array("int32", (3,), 0, 2), d.array("int8", (2, 2), 0, 3))


# ---- Fourier transforms ------------------------------------------------------------------------------------------------

NORMS = ("", ", norm='ortho'", ", norm='forward'", ", norm='backward'")


def _length(d):
    return d.random.choice([1, 2, 3, 5, 8, 12])


def fourier(name, dtypes):
    """One axis, without and with n= and axis=."""
    def make(d):
        shape = tuple(max(n, 2) for n in d.shape(1, 4, empty=False))
        x, n, axis = d.array(d.dtype(dtypes), shape), _length(d), d.axis(len(shape))
        return d.one(f"np.fft.{name}({x}{{}})", f"np.fft.{name}({x}, {n}{{}})", f"np.fft.{name}({x}, axis={axis}{{}})",
                     f"np.fft.{name}({x}, n={n}, axis={axis}{{}})").format(d.one(*NORMS))
    return make


def fourier_axes(name, dtypes, low=1):
    """Several axes, without and with s= and axes=."""
    def make(d):
        shape = tuple(max(n, 2) for n in d.shape(low, 4, empty=False))
        x = d.array(d.dtype(dtypes), shape)
        axes = tuple(d.random.sample(range(len(shape)), d.random.randint(1, len(shape))))
        s = tuple(_length(d) for _ in axes)
        return d.one(f"np.fft.{name}({x}{{}})", f"np.fft.{name}({x}, axes={axes}{{}})",
                     f"np.fft.{name}({x}, s={s}, axes={axes}{{}})").format(d.one(*NORMS))
    return make
