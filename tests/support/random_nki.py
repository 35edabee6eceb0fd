"""Random NKI kernels, and what they compute: a program of tiles, views, loops, branches, functions and calls of nki.isa.

A program is a tree of lines and blocks, each with its text and with what it does to the model (support/nki_model.py).  The
statements are in random_nki_calls.py; those that break a rule in random_nki_illegal.py.
"""
import copy

import numpy as np

from support.nki_model import DTYPES, LARGEST, Model, Tensor, Unsuitable, indexed, is_float
from support.random_views import Chain, _Ds

HEAD = """import ml_dtypes
import numpy as np
import nki
import nki.isa as nisa
import nki.language as nl
"""
FLOATS, INTS = ["float32", "float32", "bfloat16", "float16"], ["int32", "int16", "int8", "uint8", "uint16", "uint32"]
PARTITIONS, FREE = [1, 3, 16, 32, 33, 64, 100, 128], [1, 2, 3, 4, 6, 8, 12, 16, 24, 40, 60]
# of the rounds of a loop: of a place, which is taken modulo what there is, and of a number
PLACES = ["{i}", "{i}", "{i}", "7 - {i}", "2 * {i}", "{i} + 1", "3", "{i} * {i}", "{i} % 3", "{i} // 2", "(5 if {i} == 1 else {i})"]
NUMBERS = ["2.0", "2.0", "0.5", "-1.0", "float({i} + 1)", "(0.5 if {i} == 0 else 2.0)", "min(2.0, float({i}))"]
CONDITIONS = ["{i} % 2 == 0", "{i} > 0", "{i} == 1 or {i} == 3", "not {i} < 2", "0 <= {i} < 2", "{i} in (0, 2)"]


class View:
    """A tensor of the program, by the Python expression of it, and the steps to a view: (text, f(model, array, is on chip))."""

    def __init__(self, base, shape, dtype, buffer, steps=()):
        self.base, self.shape, self.dtype, self.buffer = base, tuple(shape), dtype, buffer
        self.texts, self.steps = [t for t, _ in steps], [f for _, f in steps]

    def __str__(self):
        return self.base + "".join(self.texts)

    def at(self, shape, *steps):
        return View(self.base, shape, self.dtype, self.buffer, [*zip(self.texts, self.steps), *steps])

    partitions = property(lambda self: self.shape[0])
    free = property(lambda self: int(np.prod(self.shape[1:])))
    is_float = property(lambda self: is_float(DTYPES[self.dtype]))


def by_index(text):
    """The step t[text], whose numbers may be those of loops."""
    return f"[{text}]", lambda m, a, on_chip: indexed(a, eval(f"key[{text}]", {"key": np.s_, "nl": _Ds}, m.names), on_chip)


class Line:
    def __init__(self, text, run):
        self.text, self.run = text, run

    def lines(self, depth):
        return ["    " * depth + self.text]


class Block:
    """A compound statement: several (header, nodes), and run(model, *lists of nodes)."""

    def __init__(self, parts, run):
        self.parts, self.run_parts = parts, run

    def run(self, m):
        self.run_parts(m, *(nodes for _, nodes in self.parts))

    def lines(self, depth):
        return [line for header, nodes in self.parts
                for line in ["    " * depth + header, *(x for n in nodes for x in n.lines(depth + 1))]]


def run_all(m, nodes):
    for n in nodes:
        n.run(m)


class Kernel:
    """Draws a legal kernel.  `inputs` are its arrays, in the order of its parameters; results() gives what it must return."""

    def __init__(self, rng, name, statements=6):
        from support import random_nki_calls  # it needs the names of this module
        self.rng, self.name, self.n, self.depth, self.loops, self.helpers = rng, name, 0, 0, [], []
        self.inputs = self.draw_inputs()
        self.model, self.nodes, self.tiles, self.outs, self.in_helper = Model(self.inputs), [], [], [], False
        self.hbm = {n: View(n, a.shape, a.dtype.name, "hbm") for n, a in self.inputs.items()}
        self.calls = random_nki_calls.Calls(self)
        out = self.new_out((256, 96), "float32")
        self.emit(f"nisa.dma_copy(dst={out}, src=x)", lambda m: m.transfer(out, self.hbm["x"]))
        run_all(self.model, self.nodes)
        self.out = out
        for _ in range(statements):
            self.attempt(self.statement)
        for t in [t for t in reversed(self.tiles) if t.base.isidentifier()][:3]:
            self.attempt(lambda t=t: self.store_whole(t))

    # ---- what there is

    def draw_inputs(self):
        r = self.rng
        eighths = lambda low, high, shape: (r.integers(low, high, shape) / 8).astype(np.float32)
        return {"x": eighths(-24, 25, (256, 96)), "b": eighths(-24, 25, (128, 96)).astype(DTYPES["bfloat16"]),
                "p": eighths(1, 25, (64, 6, 16)), "n": r.integers(-20, 20, (128, 64)).astype(np.int32),
                "u": r.integers(0, 6, (64, 96)).astype(np.uint8)}

    def pick(self, choices):
        return choices[int(self.rng.integers(len(choices)))]

    def chance(self, p):
        return self.rng.random() < p

    def new(self, prefix):
        self.n += 1
        return f"{prefix}{self.n}"

    def emit(self, text, run):
        self.nodes.append(Line(text, run))

    def of_loops(self, choices):
        return self.pick(choices).format(i=self.pick(self.loops) if self.loops else "1")

    def number(self):
        return self.of_loops(NUMBERS)

    def place(self, total, size, unit=1):
        """The start of a part of `size` among `total`, at a multiple of `unit`."""
        most = (total - size) // unit + 1
        parts = " + ".join(self.of_loops(PLACES) for _ in range(self.rng.integers(1, 3)))
        if self.loops:
            return f"{unit} * (({parts}) % {most})" if unit > 1 else f"({parts}) % {most}"
        return str(unit * int(self.rng.integers(most)))

    def part(self, array, rows, columns):
        r, c = self.place(array.shape[0], rows), self.place(array.shape[1], columns)
        return array.at((rows, columns), by_index(f"{r}:{r} + {rows}, {c}:{c} + {columns}"))

    # ---- tensors

    def make(self, shape, dtype, buffer="sbuf"):
        name = self.new("t")
        where = "" if buffer == "sbuf" and self.chance(0.5) else f", buffer=nl.{buffer}"
        t = View(name, shape, dtype, buffer)
        self.emit(f"{name} = nl.ndarray({tuple(shape)}, nl.{dtype}{where})", lambda m: m.names.update({name: Tensor(shape, dtype, buffer)}))
        return t

    def fill(self, t):
        """Gives every element a value."""
        rows, columns = t.partitions, t.free
        kind = self.rng.integers(4)
        if kind == 0 or self.in_helper or rows > 64 and columns > 64:
            value = self.pick(["1", "2", "0"]) if not t.is_float else self.number()
            self.emit(f"nisa.memset({t}, {value})", lambda m: m.put(t, np.float32(m.value(value)), []))
        elif kind == 1 and t.dtype in ("int32", "float32"):
            start, by = self.of_loops(["{i} * 5", "7", "-3"]), int(self.rng.integers(-2, 3))
            self.emit(f"nisa.iota({t}, [[1, {columns}]], offset={start}, channel_multiplier={by})",
                      lambda m: m.put(t, m.value(start) + np.arange(rows)[:, None] * by + np.arange(columns), []))
        else:
            source = self.hbm[{"bfloat16": "b", "int32": "n", "uint8": "u"}.get(t.dtype, "x")]
            if not t.is_float and source.dtype != t.dtype or rows > source.shape[0] or columns > source.shape[1]:
                self.emit(f"nisa.memset(dst={t}, value=3)", lambda m: m.put(t, np.float32(3), []))
            else:
                part = self.part(source, rows, columns)
                self.emit(f"nisa.dma_copy({t}, {part})", lambda m: m.transfer(t, part))

    def sizes(self, free):
        """Free dimensions with this product."""
        if free % 2 == 0 and self.chance(0.3):
            return (2, free // 2) if self.chance(0.5) else (free // 2, 2)
        return (free,)

    def tile(self, rows=None, columns=None, dtype=None, buffer="sbuf"):
        """A new tile with values."""
        rows, columns = rows or self.pick(PARTITIONS), columns or self.pick(FREE)
        t = self.make((rows, *self.sizes(columns)), dtype or self.pick(FLOATS), buffer)
        self.fill(t)
        self.tiles.append(t)
        return t

    def make_2d(self):
        t = self.make((self.pick(PARTITIONS), self.pick(FREE)), "float32")
        self.fill(t)
        self.tiles.append(t)
        return t

    def known(self, fits):
        found = [t for t in self.tiles if fits(t)]
        return self.pick(found) if found and self.chance(0.7) else None

    def seen(self, t):
        """A random view of it that engines can read."""
        if self.chance(0.4):
            return t
        view, steps = Chain(self.rng, True, "engine", retypes=False).steps(np.empty(t.shape), most=4)
        if view.ndim > 4 or view.size == 0:
            return t
        return t.at(view.shape, *((text, lambda m, a, on_chip, f=f: f(a)) for text, f in steps))

    def operand(self, fits=lambda t: t.is_float, dtype=None):
        return self.seen(self.known(fits) or self.tile(dtype=dtype))

    def like(self, v, dtype=None, psum=True):
        """An operand with the sizes of v."""
        fits = lambda t: (t.partitions, t.free) == (v.partitions, v.free) and (t.dtype == dtype if dtype else t.is_float) and (
            psum or t.buffer == "sbuf")
        return self.known(fits) or self.tile(v.partitions, v.free, dtype)

    def column(self, v, dtype="float32"):
        """One element for each partition of v."""
        t = self.known(lambda t: t.partitions == v.partitions and t.dtype == dtype and t.buffer == "sbuf")
        if t and t.free > 1:
            at = self.place(t.free, 1)
            return t.at((t.partitions, 1), (f".reshape(({t.partitions}, {t.free}))", lambda m, a, on: a.reshape(len(a), -1)),
                        by_index(f":, {at}:{at} + 1"))
        return t or self.tile(v.partitions, 1, dtype)

    def result(self, rows, columns, dtype=None, psum=False):
        """What a call writes: a new tile, or a part of one that is filled."""
        dtype = dtype or self.pick(FLOATS)
        buffer = "psum" if psum and self.chance(0.15) and columns * DTYPES[dtype].itemsize <= 2048 else "sbuf"
        if self.chance(0.75) or buffer == "psum" or columns > 24:
            t = self.make((rows, *self.sizes(columns)), dtype, buffer)
            self.tiles.append(t)
            return t
        wide = self.make((rows, 2 * columns + 3), dtype)
        self.fill(wide)
        self.tiles.append(wide)
        if self.chance(0.5):
            at = self.place(wide.free, columns)
            return wide.at((rows, columns), by_index(f":, {at}:{at} + {columns}"))
        at = int(self.rng.integers(3))
        return wide.at((rows, columns), by_index(f":, {at}:{at + 2 * columns}:2"))

    # ---- results

    def new_out(self, shape, dtype):
        name = self.new("out")
        self.outs.append(name)
        self.emit(f"{name} = nl.ndarray({tuple(shape)}, nl.{dtype}, buffer=nl.shared_hbm)",
                  lambda m: m.names.update({name: Tensor(shape, dtype, "hbm")}))
        return View(name, shape, dtype, "hbm")

    def store_whole(self, t):
        out = self.new_out(t.shape, t.dtype)
        if t.buffer == "psum":
            plain = self.make(t.shape, t.dtype)
            self.emit(f"nisa.tensor_copy({plain}, {t})", lambda m: m.copy(plain, t))
            t = plain
        if self.chance(0.3):
            self.emit(f"nl.store({out}, {t})", lambda m: m.transfer(out, t))
        else:
            self.emit(f"nisa.dma_copy(dst={out}, src={t})", lambda m: m.transfer(out, t))

    def store_part(self, t):
        """Into the common result; only float32 and types that DMA converts."""
        if t.buffer == "psum" or not t.is_float or t.free > 96:
            return
        to = self.part(self.out, t.partitions, t.free)
        self.emit(f"nisa.dma_copy(dst={to}, src={t})", lambda m: m.transfer(to, t))

    # ---- statements

    def attempt(self, draw):
        """Draws, and runs what was drawn; forgets it if it is not suitable."""
        before = (list(self.nodes), list(self.tiles), list(self.outs), list(self.helpers), self.n)
        names, n = copy.deepcopy(self.model.names), len(self.nodes)
        try:
            draw()
            run_all(self.model, self.nodes[n:])
            return True
        except Unsuitable:
            self.nodes, self.tiles, self.outs, self.helpers, self.n = before
            self.model.names = names
            self.depth, self.loops, self.in_helper = 0, [], False
            return False

    def statement(self):
        kinds = [self.loop, self.loop, self.branch, self.function, self.tiles_in_a_list, self.carried, self.while_loop]
        if self.depth < 3 and self.chance(0.3) and not self.in_helper:
            self.pick(kinds)()
        else:
            self.calls.draw()

    def block(self, loop, statements=None):
        """The nodes of statements; tensors that they make are not seen outside of it."""
        nodes, tiles = self.nodes, list(self.tiles)
        self.nodes, self.depth = [], self.depth + 1
        self.loops += [loop] if loop else []
        (statements or self.body)()
        made, self.nodes, self.tiles, self.depth = self.nodes, nodes, tiles, self.depth - 1
        self.loops = self.loops[:-1] if loop else self.loops
        return made

    def body(self):
        for _ in range(self.rng.integers(1, 3)):
            self.statement()
        if self.tiles and self.chance(0.8):
            self.store_part(self.tiles[-1])
        if not self.nodes:
            self.emit("pass", lambda m: None)

    def header(self, i, trips):
        """(text, its rounds)"""
        kind = self.rng.integers(6)
        if kind == 0:
            return f"for {i} in range({trips}, 0, -1):", range(trips, 0, -1)
        if kind == 1:
            return f"for {i} in (2, 0, 5):", (2, 0, 5)
        name = ("range", "nl.affine_range", "nl.sequential_range", "nl.static_range")[kind - 2]
        start = int(self.rng.integers(3))
        return (f"for {i} in {name}({start}, {start + trips}):", range(start, start + trips)) if start else (
            f"for {i} in {name}({trips}):", range(trips))

    def loop_of(self, i, header, rounds, nodes):
        def run(m, body):
            for k in rounds:
                m.names[i] = k
                run_all(m, body)

        self.nodes.append(Block([(header, nodes)], run))

    def loop(self):
        i = self.new("i")
        header, rounds = self.header(i, int(self.rng.integers(1, 5)))
        self.loop_of(i, header, rounds, self.block(i))

    def branch(self):
        if not self.loops:
            return self.loop()
        condition = self.of_loops(CONDITIONS)
        parts = [(f"if {condition}:", self.block(None))] + ([("else:", self.block(None))] if self.chance(0.5) else [])
        self.nodes.append(Block(parts, lambda m, yes, no=(): run_all(m, yes if m.value(condition) else no)))

    def while_loop(self):
        k, trips = self.new("k"), int(self.rng.integers(1, 4))
        self.emit(f"{k} = {trips}", lambda m: m.names.update({k: trips}))
        nodes = self.block(k)
        nodes.append(Line(f"{k} -= 1", lambda m: m.names.update({k: m.names[k] - 1})))

        def run(m, body):
            for _ in range(m.names[k]):  # a line that is gone, in what is made small, may be the one that ends it
                run_all(m, body)
            if m.names[k]:
                raise Unsuitable("it does not end")

        self.nodes.append(Block([(f"while {k} > 0:", nodes)], run))

    def function(self):
        """A function beside the kernel: a tile comes in, another one comes out."""
        t = self.known(lambda t: t.buffer == "sbuf" and t.is_float) or self.tile()
        name, parameter, to = self.new("helper"), self.new("h"), self.new("t")
        nodes, tiles, loops = self.nodes, self.tiles, self.loops
        self.nodes, self.tiles, self.loops, self.in_helper = [], [View(parameter, t.shape, t.dtype, t.buffer)], [], True
        for _ in range(self.rng.integers(1, 4)):
            self.calls.draw()
        self.in_helper = False
        result = next((r for r in reversed(self.tiles) if r.buffer == "sbuf"))
        body, self.nodes, self.tiles, self.loops = self.nodes, nodes, tiles, loops
        self.helpers.append("\n".join([f"def {name}({parameter}):", *(x for n in body for x in n.lines(1)), f"    return {result.base}"]))

        def run(m):
            outside, argument = m.names, m.names[t.base] if t.base in m.names else m.value(t.base)
            m.names = {parameter: argument}
            run_all(m, body)
            made, m.names = m.names[result.base], outside
            m.names[to] = made

        self.emit(f"{to} = {name}({t.base})", run)
        self.tiles.append(View(to, result.shape, result.dtype, "sbuf"))

    def tiles_in_a_list(self):
        """Loaded in one loop or comprehension, used in another one."""
        name, trips, i, k = self.new("v"), int(self.rng.integers(2, 6)), self.new("i"), self.new("i")
        rows, columns = self.pick([16, 32, 64]), self.pick([8, 12])
        inner = lambda: self.part(self.hbm["x"], rows, columns)
        if self.chance(0.3):
            self.loops.append(i)
            part = inner()
            self.loops.pop()

            def run(m):
                m.names[name] = []
                for j in range(trips):
                    m.names[i] = j
                    t = Tensor((rows, columns), "float32", "sbuf")
                    m.names[name].append(t)
                    m.transfer(View(f"{name}[-1]", (rows, columns), "float32", "sbuf"), part)

            self.emit(f"{name} = [nl.load({part}) for {i} in range({trips})]", run)
        else:
            self.emit(f"{name} = []", lambda m: m.names.update({name: []}))

            def fill():
                t = self.make((rows, columns), "float32")
                self.fill(t)
                self.emit(f"{name}.append({t})", lambda m: m.names[name].append(m.names[t.base]))

            self.loop_of(i, f"for {i} in range({trips}):", range(trips), self.block(i, fill))

        def use():
            index = self.pick(["{i}", "{last} - {i}", "{i} * {i} % {last}", "-1 - {i}"]).format(i=k, last=trips - 1)
            v = View(f"{name}[{index}]", (rows, columns), "float32", "sbuf")
            if self.chance(0.5):
                self.store_part(v)
            else:
                self.tiles.append(v)
                self.body()

        # a list made in a loop over one shape has it in each entry
        self.loop_of(k, f"for {k} in nl.affine_range({trips}):", range(trips), self.block(k, use))

    def carried(self):
        """Each round reads the tensor of the round before."""
        first = self.known(lambda t: t.buffer == "sbuf" and t.is_float and len(t.shape) == 2 and t.base.isidentifier()) or self.tile()
        name, i, trips = self.new("c"), self.new("i"), int(self.rng.integers(2, 5))
        self.emit(f"{name} = {first.base}", lambda m: m.names.update({name: m.names[first.base]}))
        v = View(name, first.shape, first.dtype, "sbuf")

        def body():
            t = self.make(first.shape, first.dtype)
            self.fill(t)
            self.emit(f"nisa.tensor_tensor(dst={t}, data1={t}, data2={v}, op=nl.subtract)",
                      lambda m: m.put(t, m.operator("subtract", m.f32(t), m.f32(v)), [t, v]))
            self.emit(f"{name} = {t}", lambda m: m.names.update({name: m.names[t.base]}))

        self.loop_of(i, f"for {i} in nl.sequential_range({trips}):", range(trips), self.block(i, body))
        self.tiles.append(v)

    # ---- the whole

    def results(self):
        """[(name, array, whether the bits are certain)]"""
        return [(o, self.model.names[o].of, self.model.names[o].exact) for o in self.outs]

    def body_lines(self):
        return [line for n in self.nodes for line in n.lines(1)]

    def source(self):
        params = ", ".join(f"{n}: nl.tensor[nl.{a.dtype.name}, {a.shape}]" for n, a in self.inputs.items())
        body = "\n".join(self.body_lines())
        helpers = "".join(f"\n\n{h}\n" for h in self.helpers if h[4:h.index("(") + 1] in body).replace("def helper", f"def {self.name}_helper")
        body = body.replace("= helper", f"= {self.name}_helper")
        return (f"{helpers}\n\n@nki.jit\ndef {self.name}({params}):\n{body}\n    return {', '.join(self.outs)}\n")


def kernel(seed, name):
    """The kernel of a seed: the first suitable one that computes something beside its copy."""
    for again in range(20):
        k = Kernel(np.random.default_rng([*seed, again]), name)
        if len(k.nodes) > 8:
            return k
    raise AssertionError(f"no kernel for {seed}: the largest number is {LARGEST}")
