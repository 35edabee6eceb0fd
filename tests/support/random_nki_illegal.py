"""Random NKI kernels with one mistake: a legal kernel (support/random_nki.py) and one statement that breaks one rule, at a random
place, with random sizes and types.  The mistake has a code and a range, which is between « and »."""
import numpy as np

from support import random_nki


class Mistakes:
    """Each method draws (statements before it, the line with its range, the code)."""

    def __init__(self, kernel):
        self.k = kernel
        self.kinds = [getattr(self, n) for n in sorted(dir(self)) if n.startswith("wrong_")]

    def draw(self):
        return self.k.pick(self.kinds)()

    def tile(self, shape, dtype="float32", buffer="sbuf"):
        """A tile with values: its name, and the statements that make it."""
        name = self.k.new("z")
        value = self.k.pick(["1", "0", "2"])
        return name, [f"{name} = nl.ndarray({tuple(shape)}, nl.{dtype}, buffer=nl.{buffer})", f"nisa.memset({name}, {value})"]

    def number(self, low, high):
        return int(self.k.rng.integers(low, high))

    def sizes(self):
        return self.number(1, 129), self.number(2, 65)

    # ---- sizes

    def wrong_partitions(self):
        rows, columns = self.number(129, 300), self.number(1, 40)
        return [], f"y = nl.{self.k.pick(['ndarray', 'zeros', 'ones'])}(«({rows}, {columns})», nl.float32)", "nki-size-limit"

    def wrong_free_size(self):
        return [], f"y = nl.ndarray(«({self.number(1, 129)}, {self.number(60000, 90000)})», nl.float32)", "nki-size-limit"

    def wrong_psum_size(self):
        return [], f"y = nl.ndarray(«({self.number(1, 129)}, {self.number(4097, 9000)})», nl.float32, buffer=nl.psum)", "nki-size-limit"

    def wrong_rank(self):
        return [], f"y = nl.ndarray(«({self.number(1, 129)},)», nl.float32)", "nki-size-limit"

    def wrong_empty(self):
        shape = self.k.pick([(0, 4), (4, 0), (4, -1), (8, 0, 2)])
        return [], f"y = nl.ndarray(«{shape}», nl.bfloat16)", "nki-size-limit"

    def wrong_stationary(self):
        depth, rows, columns = self.number(1, 129), self.number(129, 300), self.number(1, 40)
        x, a = self.tile((depth, rows))
        y, b = self.tile((depth, columns))
        p, c = self.tile((128, columns), buffer="psum")
        return a + b + c, f"nisa.nc_matmul({p}, «{x}», {y})", "nki-size-limit"

    def wrong_moving(self):
        depth, rows, columns = self.number(1, 129), self.number(1, 65), self.number(513, 700)
        x, a = self.tile((depth, rows))
        y, b = self.tile((depth, columns))
        p, c = self.tile((rows, 512), buffer="psum")
        return a + b + c, f"nisa.nc_matmul({p}, {x}, «{y}»)", "nki-size-limit"

    def wrong_transpose(self):
        rows, columns = self.number(33, 129), self.number(1, 60)
        x, a = self.tile((rows, columns))
        y, b = self.tile((columns, rows))
        return a + b, f"nisa.nc_transpose({y}, «{x}»)", "nki-size-limit"

    # ---- shapes

    def elementwise(self):
        """(text with x, y and the destination d, names of its operands in the order of their check)"""
        return self.k.pick([("nisa.tensor_tensor({d}, {x}, {y}, nl.add)", "xy"),
                            ("nisa.tensor_tensor(dst={d}, data1={x}, data2={y}, op=nl.maximum)", "xy"),
                            ("nisa.scalar_tensor_tensor({d}, {x}, nl.add, 1.0, nl.multiply, {y})", "xy"),
                            ("nisa.tensor_copy({d}, {x})", "x"), ("nisa.reciprocal(dst={d}, data={x})", "x"),
                            ("nisa.activation({d}, nl.exp, {x})", "x"), ("nisa.tensor_scalar({d}, {x}, nl.add, 2.0)", "x"),
                            ("nisa.tensor_tensor_scan({d}, {x}, {y}, 0.0, nl.add, nl.add)", "xy")])

    def mismatch(self, change):
        rows, columns = self.sizes()
        text, names = self.elementwise()
        wrong = self.k.pick(list(names))
        before, operands = [], {}
        for n in "dxy":
            operands[n], made = self.tile(change(rows, columns) if n == wrong else (rows, columns))
            before += made
        operands[wrong] = f"«{operands[wrong]}»"
        return before, text.format(**operands), "nki-shape-mismatch"

    def wrong_elements(self):
        by = self.number(1, 9)
        return self.mismatch(lambda rows, columns: (rows, columns + by))

    def wrong_rows(self):
        return self.mismatch(lambda rows, columns: (rows - 1 or 2, columns))

    def wrong_copy(self):
        rows, columns = self.sizes()
        x, a = self.tile((rows, columns))
        y, b = self.tile((rows, columns + self.number(1, 5)))
        return a + b, f"nisa.dma_copy({x}, «{y}»)", "nki-shape-mismatch"

    def wrong_product(self):
        depth, rows, columns = self.number(2, 129), self.number(1, 65), self.number(1, 65)
        x, a = self.tile((depth, rows))
        y, b = self.tile((depth - 1, columns))
        p, c = self.tile((rows, columns), buffer="psum")
        return a + b + c, f"nisa.nc_matmul({p}, «{x}», {y})", "nki-shape-mismatch"

    # ---- memories, engines

    def wrong_memory(self):
        rows, columns = self.sizes()
        x, a = self.tile((rows, columns))
        p, b = self.tile((rows, columns), buffer="psum")
        return a + b, self.k.pick([f"nisa.dma_copy({x}, «{p}»)", f"nisa.dma_copy(dst=«{p}», src={x})", f"nisa.tensor_copy({x}, «x»)",
                                   f"nisa.activation(dst=«out1», op=nl.exp, data={x})", f"nisa.tensor_scalar({x}, data=«b», op0=nl.add, operand0=1.0)",
                                   f"nisa.tensor_partition_reduce({x}[0:1], nl.add, «{p}»)", f"nisa.memset(«x», 0.0)",
                                   f"nisa.iota(«{p}», [[1, {columns}]])"]), "nki-memory"

    def wrong_product_memory(self):
        n = self.number(1, 65)
        x, a = self.tile((n, n))
        p, b = self.tile((n, n), buffer="psum")
        return a + b, self.k.pick([f"nisa.nc_matmul(«{x}», {x}, {x})", f"nisa.nc_matmul({p}, «{p}», {x})", f"nisa.nc_matmul({p}, {x}, moving=«x»)"]), "nki-memory"

    def wrong_both_in_psum(self):
        rows, columns = self.sizes()
        p, a = self.tile((rows, columns), buffer="psum")
        q, b = self.tile((rows, columns), buffer="psum")
        x, c = self.tile((rows, columns))
        return a + b + c, self.k.pick([f"nisa.tensor_tensor({x}, «{p}», {q}, nl.add)", f"nisa.scalar_tensor_tensor({x}, «{p}», nl.add, 1.0, nl.add, {q})"]), "nki-operand"

    def wrong_engine(self):
        x, a = self.tile(self.sizes())
        engine, call = self.k.pick([("tensor", "memset({x}, 0.0"), ("scalar", "memset({x}, 0.0"), ("scalar", "tensor_tensor({x}, {x}, {x}, nl.add"),
                                    ("tensor", "tensor_copy({x}, {x}"), ("dma", "tensor_scalar({x}, {x}, nl.add, 1.0")])
        return a, f"«nisa.{call.format(x=x)}, engine=nisa.engine.{engine})»", "nki-call"

    def wrong_gpsimd(self):
        p, a = self.tile(self.sizes(), buffer="psum")
        return a, self.k.pick([f"«nisa.memset({p}, 0.0, engine=nisa.engine.gpsimd)»", f"«nisa.tensor_copy({p}, {p}, engine=nisa.gpsimd_engine)»"]), "nki-memory"

    def wrong_address(self):
        columns = self.number(2, 40)
        x, a = self.tile((128, columns))
        start = self.number(1, 32)
        part = self.k.pick([f"{start}:{start + self.number(1, 32)}", f"32:{self.number(65, 129)}", f"0:128:{self.number(2, 4)}", "96:128:2",
                            f"64:{self.number(66, 128)}:2"])
        return a, f"nisa.memset(«{x}[{part}]», 0.0)", "nki-address"

    # ---- types and operators

    def wrong_type(self):
        rows, columns = self.sizes()
        x, a = self.tile((rows, columns))
        i, b = self.tile((rows, columns), self.k.pick(["int32", "int8", "uint16"]))
        return a + b, self.k.pick([f"nisa.tensor_tensor(«{x}», {x}, {x}, nl.bitwise_and)", f"nisa.tensor_scalar({i}, «{x}», nl.bitwise_or, 1)",
                                   f"nisa.tensor_copy_predicated({x}, {x}, «{x}»)", f"nisa.select_reduce({x}, «{x}», {x}, 0.0)",
                                   f"nisa.dropout({i}, «{x}», 0.5)", "y = nl.ndarray((4, 4), «'float7'»)", "y = nl.zeros((4, 4), dtype=«complex»)"]), "nki-dtype"

    def wrong_product_type(self):
        n = self.number(1, 65)
        x, a = self.tile((n, n))
        h, b = self.tile((n, n), "bfloat16")
        p, c = self.tile((n, n), buffer="psum")
        return a + b + c, self.k.pick([f"nisa.nc_matmul({p}, «{x}», {h})", f"nisa.nc_matmul({p}, «{h}», {x})"]), "nki-dtype"

    def wrong_operator(self):
        x, a = self.tile(self.sizes())
        return a, self.k.pick([f"nisa.activation({x}, «nl.add», {x})", f"nisa.tensor_tensor({x}, {x}, {x}, «nl.exp»)",
                               f"nisa.tensor_scalar({x}, {x}, «nl.tanh», 1.0)", f"nisa.tensor_tensor({x}, {x}, {x}, op=«'plus'»)",
                               f"nisa.activation({x}, «'exponent'», {x})"]), "nki-operator"

    def wrong_column(self):
        rows, columns = self.sizes()
        x, a = self.tile((rows, columns))
        return a, self.k.pick([f"nisa.tensor_scalar({x}, {x}, nl.add, «{x}»)", f"nisa.activation({x}, nl.exp, {x}, bias=«{x}»)",
                               f"nisa.activation({x}, nl.tanh, {x}, scale=«{x}»)", f"nisa.scalar_tensor_tensor({x}, {x}, nl.add, «{x}», nl.add, {x})"]), "nki-operand"

    def wrong_axis(self):
        rows, columns = self.sizes()
        x, a = self.tile((rows, 2, columns))
        return a, f"nisa.tensor_reduce({x}[:, 0:1, 0:1], nl.add, {x}, axis=«{self.k.pick(['0', '1', '3', '(0, 1)', '-3'])}»)", "nki-operand"

    # ---- indices and views

    def wrong_index(self):
        rows, columns = self.sizes()
        x, a = self.tile((rows, columns))
        n, m = columns + self.number(0, 9), self.number(1, 9)
        index = self.k.pick([f":, «{n}»", f":, «{-columns - m}»", f":, «0:{columns + m}»", f"«{rows + m - 1}»", f"«0:{rows + m}»", f":, «{columns}:»", ":, «1:1»",
                             f":, «{-columns - m}:»", f":, 0:{columns}:«0»", f":, {columns - 1}:0:«-1»", None, None])
        if index is None:
            return a, f"y = «{x}[{self.k.pick(['0, 0, 0', '..., ...'])}]»", "nki-bounds"
        return a, f"y = {x}[{index}]", "nki-bounds"

    def wrong_view(self):
        rows, half = self.number(2, 65) * 2, self.number(1, 20)
        x, a = self.tile((rows, 2 * half, 3))
        return a, "y = «" + x + self.k.pick([
            ".permute((1, 0, 2))", f".reshape(({rows // 2}, {2 * half}, 6))", f".reshape_dim(0, (2, {rows // 2}))", ".flatten_dims(0, 1)",
            f".reshape(({rows}, {half + 1}, 7))" if (half + 1) * 7 != 6 * half else ".permute((1, 0, 2))", ".broadcast(1, 4)",
            ".squeeze_dim(2)", ".expand_dim(0)", ".permute((0, 1, 1))", ".rearrange(('p', 'a', 'b'), ('a', 'p', 'b'))",
            f".permute((0, 2, 1)).reshape(({rows}, {6 * half}))"]) + "»", "nki-view"

    def wrong_pattern(self):
        rows, columns = self.number(2, 129), self.number(2, 40)
        x, a = self.tile((rows, columns))
        pattern, code = self.k.pick([(f"[[{columns}, {rows}], [1, {columns + 1}]]", "nki-bounds"), (f"[[{columns + 1}, {rows}], [1, {columns}]]", "nki-view"),
                                     (f"[[{columns}, {rows + 1}], [1, 1]]", "nki-bounds"), (f"[[{columns}, {rows}], [-1, 1]]", "nki-view")])
        return a, f"y = «{x}.ap({pattern})»", code

    # ---- calls

    def wrong_keyword(self):
        x, a = self.tile(self.sizes())
        return a, self.k.pick([f"nisa.memset({x}, 0.0, «valu=3»)", f"nisa.tensor_copy({x}, {x}, «sorce={x}»)", f"nisa.memset({x}, 0.0, «dst={x}»)",
                               f"nisa.memset({x}, «'zero'»)", f"nisa.memset(«3», 0.0)", f"nisa.tensor_copy({x}, «{x}.shape»)",
                               f"«nisa.memset({x})»", f"«nisa.tensor_tensor({x}, {x}, {x})»",
                               f"nisa.memset({x}, 0.0, None, «1», 2)"]), "nki-call"

    def wrong_mask(self):
        x, a = self.tile(self.sizes())
        return a, self.k.pick([f"nisa.tensor_tensor({x}, {x}, {x}, nl.add, «mask=True»)", f"nisa.memset({x}, 0.0, «mask=None»)", "y = «nl.arange»(4)",
                               "y = «nl.mgrid»[0:4, 0:5]"]), "nki-mask-removed"

    def wrong_older_name(self):
        return [], self.k.pick(["nki.baremetal(None)", "nki.benchmark(None)"]).join("«»"), "nki-removed-api"

    def wrong_name(self):
        x, a = self.tile(self.sizes())
        return a, self.k.pick([f"«nisa.tensor_tensr»({x}, {x}, {x}, nl.add)", f"«nl.sofmax»({x})", f"y = «nl.float33»", f"«nisa.activatoin»({x}, nl.exp, {x})"]), "nki-unknown-api"

    # ---- Python

    def wrong_python(self):
        x, a = self.tile(self.sizes())
        line, code = self.k.pick([(f"y = «{x} + {x}»", "nki-tensor-operator"), (f"y = «{x} * 2.0»", "nki-tensor-operator"), (f"«{x}[0:1]» = {x}", "nki-tile-assignment"),
                                  (f"if «{x}»: pass", "nki-tensor-truth"), ("y = «undefined_name»", "nki-name"), ("assert «x.shape[0] == 64», 'rows'", "nki-assert"),
                                  ("y = «1 / (x.shape[0] - 256)»", "nki-host-error"), (f"y = «{x}.sahpe»", "nki-name")])
        return a, line, code


class Kernel(random_nki.Kernel):
    """A kernel with one mistake: source(), and code and range in it."""

    def __init__(self, rng, name):
        super().__init__(rng, name, statements=2)
        before, line, self.code = Mistakes(self).draw()
        wrong = [*before, line]
        kind = self.rng.integers(4)
        if kind == 1:
            trips = int(self.rng.integers(1, 4))
            wrong = [f"for j in range({trips}):", *("    " + w for w in wrong)]
        elif kind == 2:
            at = int(self.rng.integers(3))
            wrong = ["for j in nl.affine_range(3):", f"    if j == {at}:", *("        " + w for w in wrong)]
        at = int(self.rng.integers(2, len(self.nodes) + 1))
        self.nodes[at:at] = [random_nki.Line(w, None) for w in wrong]

    def marked(self):
        return super().source()

    def source(self):
        return self.marked().replace("«", "").replace("»", "")

    def range(self):
        """(line, column, end of the column) in source(), from 1 on."""
        lines = self.marked().split("\n")
        line = next(i for i, text in enumerate(lines) if "«" in text)
        return line + 1, lines[line].index("«") + 1, lines[line].index("»")


def kernel(seed, name):
    return Kernel(np.random.default_rng(seed), name)
