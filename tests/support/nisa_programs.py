"""Random programs of NISA with one instruction each, in the readable form.

    p = Program(rng, "trn2")
    src = p.operand("src", 128, [4, 8], "bf16")               # loaded from an argument
    dst = p.operand("dst", 128, [32], "f32", is_written=True) # all of its buffer is a result
    p.instr("tensor_copy", [dst, src], "vector")
    text, arrays = p.text(), p.arrays

Operands get buffers that are larger than the tile, offsets, steps, and tiles that are cut in other ways; what is written
starts with other data, so that a test sees what an instruction must not touch."""
import ml_dtypes  # noqa: F401  (dtypes of nisa_eval)
import numpy as np

from support.oracles.nisa_eval import DTYPES

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.5, np.inf, -np.inf, np.nan, 1e-40, 3e38, -3e38, 255.0, 256.5, 65535.0, 2.0**31, -2.0**31]
TINY, INTS, FLOATS = "i1", ("i8", "i16", "i32"), ("f32", "bf16", "f16", "f8E4M3", "f8E5M2")


def draw(rng, t, shape, low=None, high=None, special=0.0):
    """Random elements of type t: integers over their whole range or low … high, floats of several sizes."""
    d = DTYPES[t]
    if d.kind == "b":
        return rng.integers(0, 2, shape).astype(d)
    if d.kind == "i":
        limits = np.iinfo(d)
        low, high = (limits.min, limits.max) if low is None else (low, high)
        return _with(rng, special, [low, high, max(low, 0)], rng.integers(low, high, shape, endpoint=True)).astype(d)
    if low is not None:
        return rng.uniform(low, high, shape).astype(np.float32).astype(d)
    x = rng.standard_normal(shape, np.float32) * np.exp(7 * rng.random(shape, np.float32) - 3)
    with np.errstate(over="ignore"):
        return _with(rng, special, SPECIAL, x).astype(d)


def _with(rng, share, values, x):
    """x, which is changed, with this share of its elements drawn from the values."""
    if share:
        at = rng.random(x.shape, np.float32) < share
        x[at] = rng.choice(values, np.count_nonzero(at))
    return x


def memref(shape, t, space):
    return f"memref<{'x'.join(map(str, shape))}x{t}, #nisa.mem<{space}>>"


class Program:
    def __init__(self, rng, target="trn2"):
        self.rng, self.target = rng, target
        self.args, self.arrays, self.body, self.results, self.releases, self.n = [], [], [], [], [], 0

    def name(self):
        self.n += 1
        return f"%v{self.n}"

    def line(self, text):
        self.body.append(text)

    def argument(self, array, t):
        name = self.name()
        self.args.append(f"{name}: {memref(array.shape, t, 'shared_hbm')}")
        self.arrays.append(array)
        return name

    def whole(self, role, name, shape, t, space):
        """An operand that is all of a buffer: its first dimension is the partition."""
        indices = ", ".join(f"d{k}" for k in range(len(shape)))
        return f"{role}<{shape[0]}| {', '.join(map(str, shape[1:]))}>={memref(shape, t, space)} {name}[{indices}]"

    def copy(self, dst, src, shape, t, spaces, engine="dma", op="dma_copy"):
        self.line(f"nisa.{op}({self.whole('dst', dst, shape, t, spaces[0])}, {self.whole('src', src, shape, t, spaces[1])}) engine={engine}")

    def buffer(self, array, t, space="sbuf"):
        """A buffer on chip that holds the array."""
        made = []
        for s in ("sbuf", "psum") if space == "psum" else ("sbuf",):
            made.append(self.name())
            self.line(f"{made[-1]} = nisa.alloc : {memref(array.shape, t, s)}")
            self.releases.append(f"nisa.release {made[-1]} : {memref(array.shape, t, s)}")
        self.copy(made[0], self.argument(array, t), array.shape, t, ("sbuf", "shared_hbm"))
        if space == "psum":
            self.copy(made[1], made[0], array.shape, t, ("psum", "sbuf"), "vector", "tensor_copy")
        return made[-1]

    def give(self, name, shape, t, space="sbuf"):
        """All of a buffer on chip is a result."""
        self.results.append((name, shape, t, space))

    def constant(self, value, t):
        name = self.name()
        if t == "index" or t[0] == "i":
            text = {"i1": {0: "false", 1: "true"}}.get(t, {}).get(int(value), str(int(value)))
            self.line(f"{name} = arith.constant {text}" + ("" if t == "i1" else f" : {t}"))
        else:
            value = DTYPES[t].type(value)
            bits = value.view(f"u{value.itemsize}")
            self.line(f"{name} = arith.constant 0x{int(bits):0{2 * value.itemsize}X} : {t}")
        return name

    def index(self, expression, offset):
        """expression + offset, which is sometimes in a register."""
        if offset and self.rng.random() < 0.3:
            return f"{self.constant(offset, 'index')} + {expression}"
        return f"{expression} + {offset}" if offset else expression

    def cut(self, dims):
        """The same number of elements in other dimensions."""
        dims, out = list(dims), []
        for d in dims:
            if out and self.rng.random() < 0.4:
                out[-1] *= d
            else:
                out.append(d)
        return out

    def operand(self, role, partitions, free, t, is_written=False, space="sbuf", data=None, repeats=False):
        """A tile of a buffer.  data: of the tile, as [partitions, elements]; else drawn.  repeats: a dimension may be read
        again and again, so that data must be None."""
        rng = self.rng
        tile = self.cut(free)
        start = int(rng.choice([0] if partitions > 64 else [0, 64] if partitions > 32 else [0, 32, 64, 96]))
        shape, at, indices = [min(128, start + partitions + int(rng.integers(0, 3)))], [slice(start, start + partitions)], []
        indices.append(self.index("d0", start))
        for k, n in enumerate(tile, 1):
            if repeats and n > 1 and rng.random() < 0.3:
                extent = int(rng.integers(1, 4))
                c = int(rng.integers(0, extent))
                indices.append(str(c))
                at.append(slice(c, c + 1))
            else:
                step, c = int(rng.choice([1, 1, 1, 2, 3])), int(rng.choice([0, 0, 1, 5]))
                extent = c + step * (n - 1) + 1 + int(rng.choice([0, 0, 2]))
                indices.append(self.index(f"d{k}" + (f"*{step}" if step > 1 else ""), c))
                at.append(slice(c, c + step * (n - 1) + 1, step))
            shape.append(extent)
        array = draw(rng, t, shape, special=0.02)
        if data is not None:
            array[tuple(at)] = data.reshape([partitions, *tile])
        name = self.buffer(array, t, space)
        if is_written:
            self.give(name, shape, t, space)
        return f"{role}<{partitions}| {', '.join(map(str, tile))}>={memref(shape, t, space)} {name}[{', '.join(indices)}]"

    def instr(self, name, operands, engine, **attributes):
        words = [*operands, *(k if v is True else f"{k}={v}" for k, v in attributes.items() if v is not None)]
        self.line(f"nisa.{name}({', '.join(words)}) engine={engine}")

    def text(self):
        out, names = [], []
        for name, shape, t, space in self.results:
            result = self.name()
            names.append((result, memref(shape, t, "shared_hbm")))
            out.append(f"{result} = nisa.alloc : {names[-1][1]}")
            at, self.body = self.body, []
            if space == "psum":
                moved = self.name()
                self.line(f"{moved} = nisa.alloc : {memref(shape, t, 'sbuf')}")
                self.copy(moved, name, shape, t, ("sbuf", "psum"), "vector", "tensor_copy")
                self.releases.append(f"nisa.release {moved} : {memref(shape, t, 'sbuf')}")
                name, space = moved, "sbuf"
            self.copy(result, name, shape, t, ("shared_hbm", space))
            out, self.body = out + self.body, at
        types = ", ".join(t for _, t in names)
        return "\n".join([
            f"module attributes {{nisa.target = #nisa.target<{self.target}>}} {{",
            f"func.func @k({', '.join(self.args)}) -> ({types}) {{" if len(names) != 1 else
            f"func.func @k({', '.join(self.args)}) -> {types} {{",
            *self.body, *out, *self.releases,
            f"return {', '.join(n for n, _ in names)} : {types}", "}", "}", ""])
