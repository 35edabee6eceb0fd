"""Random NumPy kernels: sources that the product either compiles to the values of NumPy or refuses with a diagnostic.

    source(seed, count)   ->  the text of a file with `count` kernels; the same seed gives the same text

A kernel is grown value by value.  Every value has a shape, a dtype and a bound of its size, so that no exponential
overflows and no sum loses the digits that the comparison looks at.  Values whose last bit may differ between two right
computations are never compared, rounded or converted to integers: a difference would not be a fault.
"""
import dataclasses
import random

HEAD = """import numpy as np
from nkigen import trace, knob
from nkipy import knob as mark
from nkipy_kernelgen.knob import knob as annotate
"""

DIMS = [1, 1, 2, 3, 4, 5, 7, 8, 16, 31, 64, 128, 130, 517]
ELEMENTS_MAX = 70_000
FLOATS = ("f32", "f16", "bf16")
NUMPY = {"f32": "np.float32", "f16": "np.float16", "i32": "np.int32", "bool": "np.bool_"}


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
        self.kind = rng.choices(["f32", "f16", "bf16", "i32"], [14, 2, 2, 2])[0]
        self.knobs = rng.choices(["", "builder", "function", "old"], [5, 2, 1, 1])[0]

    # ---- the pieces ----------------------------------------------------------------------------------------------

    def limit(self):
        return {"f32": 64.0, "i32": 1e6}.get(self.kind, 8.0)

    def shape(self, rank=None):
        rng = self.rng
        rank = rng.choices([0, 1, 2, 3, 4], [1, 3, 10, 4, 2])[0] if rank is None else rank
        while True:
            shape = tuple(rng.choice(DIMS) for _ in range(rank))
            if elements(shape) <= (ELEMENTS_MAX if rng.random() < 0.1 else 6000):
                return shape

    def parameter(self, shape, dtype=None):
        dtype = dtype or self.kind
        v = Value(f"p{len(self.parameters)}", tuple(shape), dtype, {"i32": 8.0}.get(dtype, 1.0))
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
            if dtype == "i32":
                return self.let(f"np.minimum(np.maximum({v.name}, -9), 9)", v.shape, 9.0, v, exact=True)
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
        if self.kind == "i32":
            return self.let(self.rng.choice(["-{0}", "np.abs({0})", "np.square({0} % 7)"]).format(v.name), v.shape,
                            max(v.size, 49.0), v, exact=True)
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
        if self.kind != "i32":
            forms.append(("{0} / (np.abs({1}) + 1.0)", v.size))
        form, size = self.rng.choice(forms)
        return self.let(form.format(v.name, w.name), shape, size, v, w, exact=v.exact and w.exact and v.dtype == "i32")

    def reduce(self):
        rng, v = self.rng, self.pick()
        if not v.shape:
            return self.unary()
        axes = sorted(rng.sample(range(len(v.shape)), rng.choice([1, 1, 1, 2, len(v.shape)]) % (len(v.shape) + 1) or 1))
        keep = rng.random() < 0.5
        spelled = str(axes[0] if rng.random() < 0.5 else axes[0] - len(v.shape)) if len(axes) == 1 else \
            "None" if len(axes) == len(v.shape) and rng.random() < 0.5 else str(tuple(axes))
        n = elements(tuple(v.shape[a] for a in axes))
        shape = tuple(1 if i in axes else d for i, d in enumerate(v.shape) if keep or i not in axes)
        forms = [("sum", v.size * n), ("max", v.size), ("min", v.size)]
        if self.kind != "i32":
            forms += [("mean", v.size)] * 2
        form, size = rng.choice(forms)
        loops, reduced = v.shape, tuple(i in axes for i in range(len(v.shape)))
        if form == "mean":  # what makes the value is the division behind the sum
            loops, reduced = shape, ()
        return self.let(f"np.{form}({v.name}, axis={spelled}{', keepdims=True' if keep else ''})", shape, size, v,
                        exact=v.exact and (self.kind == "i32" or form in ("max", "min")), loops=loops, reduced=reduced)

    def softmax(self):
        v = self.pick()
        if not v.shape or self.kind == "i32":
            return self.binary()
        axis = self.rng.choice([-1, -1, 0])
        e = self.let(f"np.exp({v.name} - np.max({v.name}, axis={axis}, keepdims=True))", v.shape, 1.0, v)
        return self.let(f"{e.name} / np.sum({e.name}, axis={axis}, keepdims=True)", v.shape, 1.0, e)

    def matmul(self):
        rng, v = self.rng, self.pick()
        if len(v.shape) < 2 or self.kind == "i32":
            return self.unary() if rng.random() < 0.5 else self.binary()
        batch, (m, k) = v.shape[:-2], v.shape[-2:]
        n = rng.choice([d for d in DIMS if elements(batch) * m * d <= ELEMENTS_MAX and k * d <= ELEMENTS_MAX])
        which = rng.random()
        if which < 0.2 and elements(batch) * m * m <= 20_000:
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
        rng.shuffle(perm)
        shape = tuple(v.shape[p] for p in perm)
        return self.let(f"np.transpose({v.name}, {tuple(perm)})", shape, v.size, v, exact=v.exact)

    def slice(self):
        rng, v = self.rng, self.pick()
        if not v.shape:
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
            else:
                parts.append(f"{lo}:{hi}" + (f":{step}" if step > 1 else ""))
                shape.append((hi - lo + step - 1) // step)
        return self.let(f"{v.name}[{', '.join(parts)}]", shape, v.size, v, exact=v.exact, loops=())

    def concatenate(self):
        rng, v = self.rng, self.pick()
        if not v.shape or elements(v.shape) > 20_000:
            return self.unary()
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
            other = rng.choice(same).name if same and rng.random() < 0.4 else "0" if x.dtype == "i32" else "0.25"
            s = next((broadcast(x.shape, y.shape) for y in same if y.name == other), x.shape)
            if broadcast(shape, s) is None or elements(broadcast(shape, s)) > ELEMENTS_MAX:
                other, s = ("0" if x.dtype == "i32" else "0.25"), x.shape
            op = rng.choice(["<", ">", "<=", ">=", "==", "!="])
            c = self.let(f"{x.name} {op} {other}", s, 1.0, x, dtype="bool", exact=True)
            if rng.random() < 0.3:
                c = self.let(f"np.logical_not({c.name})", s, 1.0, c, exact=True)
        shape = broadcast(shape, c.shape)
        return self.let(f"np.where({c.name}, {v.name}, {w.name})", shape, max(v.size, w.size), v, w,
                        exact=v.exact and w.exact)

    def convert(self):
        """astype there and back, or of a comparison."""
        rng, v = self.rng, self.pick()
        if self.kind in ("f16", "i32"):
            if v.size > 2000:
                return self.unary()
            f = self.let(f"{v.name}.astype(np.float32)", v.shape, v.size, v, dtype="f32", exact=v.exact)
            if self.kind == "i32":
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

    # ---- knobs ---------------------------------------------------------------------------------------------------

    def tile(self, extent, partition):
        top = self.rng.choice([32, 64, 128, 128]) if partition else self.rng.choice([16, 64, 128, 512])
        return min(extent, top)

    def knob(self, v):
        if not v.loops or not v.shape or self.rng.random() < 0.4:
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
        across = max(0, len(v.shape) - 2)
        kept = len(reduced) != len(v.shape) or not reduced[across]
        dim = f", partition_dim={across}" if kept and rng.random() < 0.5 else ""
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
                 (self.transpose, 2), (self.slice, 2), (self.concatenate, 1), (self.select, 2), (self.convert, 1)]
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
    import sys

    print(source(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 5))
