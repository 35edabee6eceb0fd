"""Random NumPy kernels: sources that the product either compiles to the values of NumPy or refuses with a diagnostic.

    source(seed, count)   ->  the text of a file with `count` kernels; the same seed gives the same text

    PYTHONPATH=tests python3 -m support.random_kernels SEED [COUNT]      prints a source; shrink.py makes a failing one small

A kernel is grown value by value.  Every value has a shape, a dtype and a bound of its size, so that no exponential
overflows and no sum loses the digits that the comparison looks at.  Values whose last bit may differ between two right
computations are never compared, rounded or converted to integers: a difference would not be a fault.
"""
import dataclasses
import random
import sys

HEAD = """import numpy as np
from nkigen import trace, knob
from nkipy import knob as mark
from nkipy_kernelgen.knob import knob as annotate
"""

DIMS = [1, 1, 2, 3, 4, 5, 7, 8, 16, 31, 64, 128, 130, 517]
SHAPES = [(130, 517), (1000, 128), (7,), (1,), (130,), (1000,), (0,), (0, 5), (3, 0, 2)]  # beyond what DIMS makes
ELEMENTS_MAX = 130_000
INTEGERS = ("i32", "i8", "u8")
NUMPY = {"f32": "np.float32", "f16": "np.float16", "i32": "np.int32", "i8": "np.int8", "u8": "np.uint8", "bool": "np.bool_"}


@dataclasses.dataclass
class Value:
    name: str
    shape: tuple
    dtype: str
    size: float  # no element is larger
    exact: bool = True  # every right computation gives these very bits
    loops: tuple = ()  # of the operation that makes it, () for a parameter or a view
    reduced: tuple = ()  # which of them are reduced
    depth: int = 0


def elements(shape):
    n = 1
    for d in shape:
        n *= d
    return n


def broadcast(a, b):
    """The common shape, or None."""
    n = max(len(a), len(b))
    a, b = (1,) * (n - len(a)) + tuple(a), (1,) * (n - len(b)) + tuple(b)
    if any(x != y and 1 not in (x, y) for x, y in zip(a, b)):
        return None
    return tuple(max(x, y) if 0 not in (x, y) else 0 for x, y in zip(a, b))


class Kernel:
    def __init__(self, rng, name):
        self.rng = rng
        self.name = name
        self.parameters = []
        self.values = []
        self.body = []
        self.kind = rng.choices(["f32", "f16", "bf16", "i32", "i8", "u8"], [14, 2, 2, 2, 1, 1])[0]
        self.knobs = rng.choices(["", "builder", "function", "old"], [5, 2, 1, 1])[0]

    # ---- the pieces ----------------------------------------------------------------------------------------------

    def limit(self):
        return {"f32": 64.0, "i32": 1e6, "i8": 60.0, "u8": 120.0}.get(self.kind, 8.0)

    def shape(self, rank=None):
        rng = self.rng
        if rank is None and rng.random() < 0.06:
            return rng.choice(SHAPES)
        rank = rng.choices([0, 1, 2, 3, 4], [1, 3, 10, 4, 2])[0] if rank is None else rank
        while True:
            shape = tuple(rng.choice(DIMS) for _ in range(rank))
            if elements(shape) <= (ELEMENTS_MAX if rng.random() < 0.1 else 6000):
                return shape

    def parameter(self, shape, dtype=None):
        dtype = dtype or self.kind
        v = Value(f"p{len(self.parameters)}", tuple(shape), dtype, 8.0 if dtype in INTEGERS else 1.0)
        self.parameters.append(v)
        self.values.append(v)
        return v

    def let(self, text, shape, size, *operands, dtype=None, exact=False, loops=None, reduced=()):
        """A new value; `loops` None: one per dimension."""
        v = Value(f"v{len(self.body)}", tuple(shape), dtype or operands[0].dtype, size, exact,
                  tuple(shape) if loops is None else tuple(loops), tuple(reduced),
                  1 + max((o.depth for o in operands), default=0))
        self.body.append(f"{v.name} = {text}")
        self.values.append(v)
        return v

    def pick(self, dtype=None):
        """One of the values, rather a late one; a smaller copy if it is large."""
        dtype = dtype or self.kind
        some = [v for v in self.values if v.dtype == dtype]
        if not some:
            return self.parameter(self.shape(), dtype)
        v = some[-1 - min(int(self.rng.expovariate(0.9)), len(some) - 1)]
        if v.size > self.limit():
            if dtype in INTEGERS:
                low = 0 if dtype == "u8" else -9
                text = self.rng.choice(["np.minimum(np.maximum({0}, {1}), 9)", "np.clip({0}, {1}, 9)"])
                return self.let(text.format(v.name, low), v.shape, 9.0, v, exact=True)
            return self.let(f"{v.name} * {self.limit() / 4 / v.size:.6g}", v.shape, self.limit() / 4, v)
        return v

    def partner(self, v):
        """A value that broadcasts with v: an old one, or a new parameter with some dimensions 1 or missing."""
        rng = self.rng
        fitting = [w for w in self.values if w.dtype == v.dtype and w.size <= self.limit()
                   and (s := broadcast(v.shape, w.shape)) is not None and elements(s) <= ELEMENTS_MAX]
        if fitting and rng.random() < 0.6:
            return rng.choice(fitting)
        shape = [1 if rng.random() < 0.3 else d for d in v.shape]
        shape = shape[rng.randint(0, len(shape)):] if rng.random() < 0.35 else shape
        return self.parameter(shape, v.dtype)

    # ---- one step of each sort -----------------------------------------------------------------------------------

    def unary(self):
        v = self.pick()
        if self.kind in INTEGERS:
            forms = ["np.abs({0})", "np.square({0} % 7)", "{0} & 6", "{0} // 3", "np.minimum({0}, 5)"]
            forms += ["-{0}", "{0} ^ 3"] if self.kind != "u8" else []
            return self.let(self.rng.choice(forms).format(v.name), v.shape, max(v.size, 49.0), v, exact=True)
        forms = [("np.tanh({0})", 1.0), ("np.negative({0})", v.size), ("np.abs({0})", v.size),
                 ("np.square({0})", v.size**2), ("np.sqrt(np.abs({0}) + 0.25)", v.size + 1),
                 ("1.0 / (1.0 + np.exp(-np.tanh({0})))", 1.0), ("np.sin({0})", 1.0), ("np.maximum({0}, 0.0)", v.size),
                 ("np.log(np.abs({0}) + 1.5)", v.size + 1), ("np.exp(np.minimum({0}, 1.0))", 3.0),
                 ("{0} * 0.5 - 1.0", v.size + 1), ("2.0 - {0}", v.size + 2), ("0.75 / (np.abs({0}) + 1.0)", 1.0)]
        form, size = self.rng.choice(forms)
        return self.let(form.format(v.name), v.shape, size, v)

    def binary(self):
        v = self.pick()
        w = self.partner(v)
        if self.rng.random() < 0.4:
            v, w = w, v
        shape = broadcast(v.shape, w.shape)
        forms = [("{0} + {1}", v.size + w.size), ("{0} - {1}", v.size + w.size), ("{0} * {1}", v.size * w.size),
                 ("np.maximum({0}, {1})", max(v.size, w.size)), ("np.minimum({0}, {1})", max(v.size, w.size))]
        if self.kind not in INTEGERS:
            forms.append(("{0} / (np.abs({1}) + 1.0)", v.size))
        else:
            forms += [("{0} | {1}", v.size + w.size), ("{0} & {1}", v.size + w.size)]
        if self.kind == "u8":
            forms.pop(1)
        forms = [f for f in forms if f[1] <= {"i8": 120, "u8": 250}.get(self.kind, 1e30)] or [("np.maximum({0}, {1})", v.size)]
        form, size = self.rng.choice(forms)
        return self.let(form.format(v.name, w.name), shape, size, v, w, exact=v.exact and w.exact and v.dtype in INTEGERS)

    def reduce(self):
        rng, v = self.rng, self.pick()
        if not v.shape or not elements(v.shape):
            return self.unary()
        axes = sorted(rng.sample(range(len(v.shape)), rng.choice([1, 1, 1, 2, len(v.shape)]) % (len(v.shape) + 1) or 1))
        keep = rng.random() < 0.5
        spelled = str(axes[0] if rng.random() < 0.5 else axes[0] - len(v.shape)) if len(axes) == 1 else \
            "None" if len(axes) == len(v.shape) and rng.random() < 0.5 else str(tuple(axes))
        n = elements(tuple(v.shape[a] for a in axes))
        shape = tuple(1 if i in axes else d for i, d in enumerate(v.shape) if keep or i not in axes)
        forms = [("max", v.size), ("min", v.size)]
        if self.kind not in ("i8", "u8"):  # NumPy sums those in 64 bits
            forms.append(("sum", v.size * n))
        if self.kind not in INTEGERS:
            forms += [("mean", v.size)] * 2
        form, size = rng.choice(forms)
        loops, reduced = v.shape, tuple(i in axes for i in range(len(v.shape)))
        if form == "mean":  # what makes the value is the division after the sum
            loops, reduced = shape, ()
        return self.let(f"np.{form}({v.name}, axis={spelled}{', keepdims=True' if keep else ''})", shape, size, v,
                        exact=v.exact and (self.kind in INTEGERS or form in ("max", "min")), loops=loops, reduced=reduced)

    def softmax(self):
        v = self.pick()
        if not v.shape or not elements(v.shape) or self.kind in INTEGERS:
            return self.binary()
        axis = self.rng.choice([-1, -1, 0])
        e = self.let(f"np.exp({v.name} - np.max({v.name}, axis={axis}, keepdims=True))", v.shape, 1.0, v)
        return self.let(f"{e.name} / np.sum({e.name}, axis={axis}, keepdims=True)", v.shape, 1.0, e)

    def matmul(self):
        rng, v = self.rng, self.pick()
        if len(v.shape) < 2 or not elements(v.shape) or self.kind in INTEGERS:
            return self.unary() if rng.random() < 0.5 else self.binary()
        batch, (m, k) = v.shape[:-2], v.shape[-2:]
        n = rng.choice([d for d in DIMS if elements(batch) * m * d <= ELEMENTS_MAX and k * d <= ELEMENTS_MAX])
        which = rng.random()
        if which > 0.85 and elements(v.shape) < 20_000:  # the right operand is a transposed one
            w = self.parameter((n, k), v.dtype)
            text = rng.choice(["{0} @ {1}.T", "np.matmul({0}, np.transpose({1}))"]).format(v.name, w.name)
        elif which < 0.2 and elements(batch) * m * m <= 20_000:
            text, n = f"{v.name} @ np.swapaxes({v.name}, -1, -2)", m
            w = v
        else:
            old = [x for x in self.values if x.dtype == v.dtype and x.shape[-2:] == (k, n) and x.shape[:-2] in ((), batch)
                   and x.size <= self.limit()]
            w = rng.choice(old) if old and which < 0.5 else \
                self.parameter(((batch if rng.random() < 0.6 else ()) + (k, n)), v.dtype)
            text = rng.choice(["np.matmul({0}, {1})", "{0} @ {1}"]).format(v.name, w.name)
        return self.let(text, batch + (m, n), v.size * w.size * k, v, w, loops=batch + (m, n, k),
                        reduced=(False,) * (len(batch) + 2) + (True,))

    def reshape(self):
        rng, v = self.rng, self.pick()
        n = elements(v.shape)
        if not n:
            return self.unary()
        forms = [(n,), (1, n), (n, 1)]
        for f in (2, 3, 4, 5, 7, 8, 16, 31, 64, 128):
            if n % f == 0:
                forms += [(f, n // f), (n // f, f)] + ([(2, f // 2, n // f)] if f % 2 == 0 else [])
        if len(v.shape) == 3:
            forms += [(v.shape[0] * v.shape[1], v.shape[2]), (v.shape[0], v.shape[1] * v.shape[2])] * 3
        shape = rng.choice(forms)
        text = f"np.expand_dims({v.name}, {len(v.shape)})" if rng.random() < 0.15 else None
        if text and len(v.shape) < 4:
            shape = v.shape + (1,)
        else:
            text = f"np.reshape({v.name}, {shape})"
        return self.let(text, shape, v.size, v, exact=v.exact, loops=())

    def transpose(self):
        rng, v = self.rng, self.pick()
        if len(v.shape) < 2:
            return self.binary()
        perm = list(range(len(v.shape)))
        if rng.random() < 0.3:
            i, j = rng.sample(perm, 2)
            perm[i], perm[j] = perm[j], perm[i]
            return self.let(f"np.swapaxes({v.name}, {i}, {j - len(perm)})", tuple(v.shape[p] for p in perm), v.size, v,
                            exact=v.exact)
        rng.shuffle(perm)
        shape = tuple(v.shape[p] for p in perm)
        return self.let(f"np.transpose({v.name}, {tuple(perm)})", shape, v.size, v, exact=v.exact)

    def slice(self):
        rng, v = self.rng, self.pick()
        if not v.shape or not elements(v.shape):
            return self.unary()
        parts, shape = [], []
        for d in v.shape:
            lo = rng.randint(0, d - 1)
            hi = rng.randint(lo + 1, d)
            step = rng.choice([1, 1, 1, 2])
            kind = rng.random()
            if kind < 0.45:
                parts.append(":")
                shape.append(d)
            elif kind < 0.55 and len(v.shape) > 1:
                parts.append(str(lo - d if rng.random() < 0.3 else lo))
            elif kind < 0.63:  # backwards, from hi - 1 down to lo
                parts.append(f"{hi - 1}:{lo - 1 if lo else ''}:-{step}" if rng.random() < 0.6 else f"::-{step}")
                if parts[-1].startswith("::"):
                    lo, hi = 0, d
                shape.append((hi - lo + step - 1) // step)
            else:
                parts.append(f"{lo}:{hi}" + (f":{step}" if step > 1 else ""))
                shape.append((hi - lo + step - 1) // step)
        return self.let(f"{v.name}[{', '.join(parts)}]", shape, v.size, v, exact=v.exact, loops=())

    def concatenate(self):
        rng, v = self.rng, self.pick()
        if not v.shape or elements(v.shape) > 20_000:
            return self.unary()
        if rng.random() < 0.3 and len(v.shape) < 4:
            w = rng.choice([w for w in self.values if w.dtype == v.dtype and w.shape == v.shape and w.size <= self.limit()])
            axis = rng.choice([0, 0, len(v.shape)])
            return self.let(f"np.stack([{v.name}, {w.name}], axis={axis})", v.shape[:axis] + (2,) + v.shape[axis:],
                            max(v.size, w.size), v, w, exact=v.exact and w.exact, loops=())
        axis = rng.randrange(len(v.shape))
        same = [w for w in self.values if w.dtype == v.dtype and w.shape[:axis] == v.shape[:axis] and w.size <= self.limit()
                and w.shape[axis + 1:] == v.shape[axis + 1:] and len(w.shape) == len(v.shape) and elements(w.shape) < 20_000]
        w = rng.choice(same)
        shape = list(v.shape)
        shape[axis] += w.shape[axis]
        return self.let(f"np.concatenate([{v.name}, {w.name}], axis={axis})", shape, max(v.size, w.size), v, w,
                        exact=v.exact and w.exact, loops=())

    def select(self):
        """where, on a comparison of values that are the same bits everywhere, or on a bool parameter."""
        rng, v = self.rng, self.pick()
        w = self.partner(v)
        shape = broadcast(v.shape, w.shape)
        exact = [x for x in self.values if x.exact and x.dtype != "bool"
                 and (s := broadcast(shape, x.shape)) is not None and elements(s) <= ELEMENTS_MAX]
        bools = [x for x in self.values if x.dtype == "bool" and broadcast(shape, x.shape) == shape]
        if bools and rng.random() < 0.6:
            c = rng.choice(bools)
        elif not exact or rng.random() < 0.3:
            c = self.parameter([1 if rng.random() < 0.2 else d for d in shape], "bool")
        else:
            x = rng.choice(exact)
            same = [y for y in exact if y.dtype == x.dtype and y is not x and broadcast(x.shape, y.shape) is not None]
            other = rng.choice(same).name if same and rng.random() < 0.4 else "3" if x.dtype in INTEGERS else "0.25"
            s = next((broadcast(x.shape, y.shape) for y in same if y.name == other), x.shape)
            if broadcast(shape, s) is None or elements(broadcast(shape, s)) > ELEMENTS_MAX:
                other, s = ("3" if x.dtype in INTEGERS else "0.25"), x.shape
            op = rng.choice(["<", ">", "<=", ">=", "==", "!="])
            c = self.let(f"{x.name} {op} {other}", s, 1.0, x, dtype="bool", exact=True)
            if rng.random() < 0.3:
                c = self.let(rng.choice(["np.logical_not({0})", "~{0}"]).format(c.name), s, 1.0, c, exact=True)
            with_c = [b for b in self.values if b.dtype == "bool" and broadcast(b.shape, s) == s]
            if rng.random() < 0.4:
                f = rng.choice(["np.logical_and({0}, {1})", "np.logical_or({0}, {1})", "{0} & {1}", "{0} | {1}", "{0} ^ {1}"])
                c = self.let(f.format(c.name, rng.choice(with_c).name), s, 1.0, c, exact=True)
        shape = broadcast(shape, c.shape)
        return self.let(f"np.where({c.name}, {v.name}, {w.name})", shape, max(v.size, w.size), v, w,
                        exact=v.exact and w.exact)

    def convert(self):
        """astype there and back, or of a comparison."""
        rng, v = self.rng, self.pick()
        if self.kind == "i32" and v.size < 120 and rng.random() < 0.4:
            b = self.let(f"{v.name}.astype(np.int8)", v.shape, v.size, v, dtype="i8", exact=True)
            return self.let(f"{b.name}.astype(np.int32)", v.shape, v.size, b, dtype="i32", exact=True)
        if self.kind in ("f16", *INTEGERS):
            if v.size > 2000:
                return self.unary()
            f = self.let(f"{v.name}.astype(np.float32)", v.shape, v.size, v, dtype="f32", exact=v.exact)
            if self.kind in INTEGERS:
                self.let(f"{f.name} * 0.5 + 1.0", v.shape, v.size + 1, f, exact=v.exact)
                return f
            g = self.let(f"np.tanh({f.name})", v.shape, 1.0, f)
            return self.let(f"{g.name}.astype({NUMPY[self.kind]})", v.shape, 1.0, g, dtype=self.kind)
        exact = [x for x in self.values if x.exact and x.dtype == "f32"]
        if self.kind == "f32" and exact and rng.random() < 0.6:
            x = rng.choice(exact)
            c = self.let(f"{x.name} >= 0.0", x.shape, 1.0, x, dtype="bool", exact=True)
            return self.let(f"{c.name}.astype(np.float32)", x.shape, 1.0, c, dtype="f32", exact=True)
        if self.kind == "f32" and v.size < 500:
            h = self.let(f"{v.name}.astype(np.float16)", v.shape, v.size, v, dtype="f16")
            # what a half loses must not count: the way back is a value of its own, mostly constant
            return self.let(f"{h.name}.astype(np.float32) * 0.0 + {v.name}", v.shape, v.size, v)
        return self.unary()

    def gather(self):
        """Elements by computed places, along any axis."""
        rng, v = self.rng, self.pick()
        if not v.shape or not elements(v.shape) or elements(v.shape) > 20_000:
            return self.unary()
        axis = rng.randrange(len(v.shape))
        n = v.shape[axis]
        rows = rng.choice([(1,), (3,), (5,), (16,), (130,), (2, 3)])
        shape = v.shape[:axis] + rows + v.shape[axis + 1:]
        if elements(shape) > ELEMENTS_MAX or len(shape) > 4:
            return self.binary()
        places = self.parameter(rows, "i32")
        at = f"{places.name} % {n}"
        text = f"np.take({v.name}, {at}, axis={axis})" if axis or rng.random() < 0.5 else f"{v.name}[{at}]"
        return self.let(text, shape, v.size, v, exact=v.exact, loops=())

    def widen(self):
        """broadcast_to and repeat: shapes that grow."""
        rng, v = self.rng, self.pick()
        if elements(v.shape) > 6000 or len(v.shape) > 3:
            return self.unary()
        if v.shape and rng.random() < 0.4:
            axis, n = rng.randrange(len(v.shape)), rng.choice([2, 3])
            shape = tuple(d * n if i == axis else d for i, d in enumerate(v.shape))
            return self.let(f"np.repeat({v.name}, {n}, axis={axis})", shape, v.size, v, exact=v.exact, loops=())
        shape = (rng.choice([1, 2, 5]), *(rng.choice([3, 8]) if d == 1 else d for d in v.shape))
        return self.let(f"np.broadcast_to({v.name}, {shape})", shape, v.size, v, exact=v.exact, loops=())

    # ---- knobs ---------------------------------------------------------------------------------------------------

    def tile(self, extent, partition):
        top = self.rng.choice([32, 64, 128, 128]) if partition else self.rng.choice([16, 64, 128, 512])
        return min(extent, top)

    def knob(self, v):
        if not v.loops or not v.shape or not elements(v.shape) or self.rng.random() < 0.4:
            return
        rng = self.rng
        space = rng.choice(["Sbuf", "Sbuf", "SharedHbm", "Hbm"])
        loops = list(v.loops)
        matrices = len(loops) > len(v.shape) and v.reduced and v.reduced[-1] and len(v.reduced) - 1 == len(v.shape)
        if matrices and "@" not in self.body[int(v.name[1:])] and "matmul" not in self.body[int(v.name[1:])]:
            matrices = False
        tiles = [self.tile(d, i == 0) for i, d in enumerate(loops)]
        if matrices:
            tiles = [1] * (len(loops) - 3) + [self.tile(loops[-3], True), self.tile(loops[-2], False), self.tile(loops[-1], True)]
        elif len(loops) > 2:
            tiles = [1] * (len(loops) - 2) + [self.tile(loops[-2], True), self.tile(loops[-1], False)]
        reduced = v.reduced or (False,) * len(loops)
        across = rng.randrange(len(v.shape))  # whatever its neighbours say
        dim = f", partition_dim={across}" if max(tiles) <= 128 and rng.random() < 0.5 else ""
        if self.knobs == "builder":
            text = f"knob.knob({v.name})"
            if rng.random() < 0.7:
                text += f".tile_op(tile_size={tiles})"
            if rng.random() < 0.7 or text.endswith(")") and "tile_op" not in text:
                text += f".layout(mem_space={space!r}{dim})"
        else:
            tile, rest = [t for t, r in zip(tiles, reduced) if not r], [t for t, r in zip(tiles, reduced) if r]
            f = "mark" if self.knobs == "function" else "annotate"
            text = f"{f}({v.name}, mem_space={space!r}{dim}"
            fits = len(tile) == len(v.shape) or len(tile) + len(rest) == len(v.shape)
            if tile and fits and rng.random() < 0.7:
                text += f", tile_size={tile}" + (f", reduction_tile={rest}" if rest else "")
            text += ")"
        self.body.append(text)

    # ---- the whole -----------------------------------------------------------------------------------------------

    def grow(self):
        rng = self.rng
        self.parameter(self.shape())
        steps = [(self.unary, 4), (self.binary, 6), (self.reduce, 4), (self.softmax, 1), (self.matmul, 4), (self.reshape, 2),
                 (self.transpose, 2), (self.slice, 2), (self.concatenate, 1), (self.select, 2), (self.convert, 1), (self.gather, 1),
                 (self.widen, 0.5)]
        for _ in range(rng.randint(1, 4 if self.kind in ("f16", "bf16") else 7)):
            v = rng.choices([s for s, _ in steps], [w for _, w in steps])[0]()
            if self.knobs and v.name.startswith("v"):
                at = len(self.body)
                self.knob(v)
                if len(self.body) > at:  # names count lines of the body
                    self.values[-1] = v
        made = [v for v in self.values if v.name.startswith("v") and v.dtype != "f16" or v.dtype == self.kind and v.depth]
        last = made[-1]
        out = [last] + [v for v in made[:-1] if rng.random() < 0.12][:2]
        return list({v.name: v for v in out}.values())

    def text(self):
        out = self.grow()
        specs = ", ".join(f"({v.shape!r}, {v.dtype!r})" for v in self.parameters)
        lines = "\n    ".join(self.body)
        return (f"@trace(input_specs=[{specs}])\ndef {self.name}({', '.join(v.name for v in self.parameters)}):\n"
                f"    {lines}\n    return {', '.join(v.name for v in out)}\n")


def source(seed, count):
    rng = random.Random(seed)
    return HEAD + "".join("\n\n" + Kernel(rng, f"k{seed}_{i}").text() for i in range(count))


if __name__ == "__main__":
    print(source(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 5))
