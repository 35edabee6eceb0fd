"""Writes kernels as NISA text.

A Kernel collects lines; its methods are instructions on tiles.  A tile is (buffer, indices): one index expression per
dimension, in which d0 is the partition and d1, … are the free dimensions of `shape`.  Nothing here knows about time.
"""

from contextlib import contextmanager


class Buffer:
    def __init__(self, name, shape, dtype, space):
        self.name, self.shape, self.dtype, self.space = name, shape, dtype, space

    @property
    def type(self):
        return f"memref<{'x'.join(map(str, self.shape))}x{self.dtype}, #nisa.mem<{self.space}>>"

    def tile(self, partitions, free, index):
        """A tile of `partitions` × free extents at the index expressions, "d0, %i * 512 + d1"."""
        free = free if isinstance(free, tuple) else (free,)
        return f"<{partitions}| {', '.join(map(str, free))}>={self.type} {self.name}[{index}]"


class Kernel:
    def __init__(self, target):
        self.target = target
        self.args, self.lines, self.scopes = [], [], [[]]
        self.names = 0
        self.constants = {}

    def _name(self, stem):
        self.names += 1
        return f"%{stem}{self.names}"

    def _constant(self, value):
        if value not in self.constants:
            self.constants[value] = f"%c{value}"
        return self.constants[value]

    def hbm(self, *shape, dtype="f32"):
        b = Buffer(self._name("arg"), shape, dtype, "shared_hbm")
        self.args.append(b)
        return b

    def _alloc(self, shape, dtype, space):
        b = Buffer(self._name(space), shape, dtype, space)
        self.lines.append(f"{b.name} = nisa.alloc : {b.type}")
        self.scopes[-1].append(b)
        return b

    def sbuf(self, *shape, dtype="f32"):
        return self._alloc(shape, dtype, "sbuf")

    def psum(self, *shape, dtype="f32"):
        return self._alloc(shape, dtype, "psum")

    def _release(self):
        for b in self.scopes.pop():
            self.lines.append(f"nisa.release {b.name} : {b.type}")

    @contextmanager
    def loop(self, n):
        """A loop of n rounds; the value is its variable.  What is allocated in it is released at its end."""
        i = self._name("i")
        self.lines.append(f"scf.for {i} = {self._constant(0)} to {self._constant(n)} step {self._constant(1)} {{")
        self.scopes.append([])
        yield i
        self._release()
        self.lines.append("}")

    def _op(self, name, operands, attributes, engine):
        text = ", ".join([f"{k}{v}" for k, v in operands] + [f"{k}={v}" for k, v in attributes])
        self.lines.append(f"nisa.{name}({text}) engine={engine}")

    def dma(self, dst, src):
        self._op("dma_copy", [("dst", dst), ("src", src)], [], "dma")

    def matmul(self, dst, stationary, moving, transposes=False):
        zero = self._constant(0)
        self._op(
            "matmul",
            [("dst", dst), ("stationary", stationary), ("moving", moving)],
            [("row_pos", f"index {zero}"), ("col_pos", f"index {zero}"), ("is_transpose", str(transposes).lower()),
             ("perf_opt", "none_"), ("psum_zero_region", "size2048")],
            "tensor",
        )

    def copy(self, dst, src, engine="vector"):
        self._op("tensor_copy", [("dst", dst), ("src", src)], [], engine)

    def reduce(self, dst, src, op="add"):
        self._op("tensor_reduce_arith", [("dst", dst), ("src", src)],
                 [("op", op), ("negated", "false"), ("num_r_dim", "1")], "vector")

    def tensor(self, dst, lhs, rhs, op="add", engine="vector"):
        self._op("tensor_tensor_arith", [("dst", dst), ("lhs", lhs), ("rhs", rhs)], [("op", op)], engine)

    def scalar(self, dst, src, operand=None, op="multiply", engine="vector"):
        operands = [("dst", dst), ("src", src)]
        attributes = [("op0", op), ("reverse_operands", "none")]
        if operand:
            operands.append(("operand0", operand))
        else:
            attributes.insert(0, ("operand0", "f32 %one"))
        self._op("tensor_scalar_arith", operands, attributes, engine)

    def activation(self, dst, src, op, bias=None):
        operands, attributes = [("dst", dst), ("src", src)], [("scale", "f32 %one"), ("op", op)]
        if bias:
            operands.append(("bias", bias))
        else:
            attributes.insert(0, ("bias", "f32 %zero"))
        self._op("activation", operands, attributes, "scalar")

    def reciprocal(self, dst, src):
        self._op("reciprocal", [("dst", dst), ("src", src)], [], "vector")

    def barrier(self):
        """All engines and transfers come to an end: what a dependence on a whole array in HBM means."""
        flag = self.sbuf(1, 1, dtype="i32")
        self.lines.append(f"{self._name('flag')} = nisa.register_load(src{flag.tile(1, 1, 'd0, d1')}) engine=sync : i32")

    def text(self):
        self._release()
        args = ", ".join(f"{b.name}: {b.type}" for b in self.args)
        head = [f"module attributes {{nisa.target = #nisa.target<{self.target}>}} {{", f"func.func @k({args}) {{",
                "%one = arith.constant 1.0 : f32", "%zero = arith.constant 0.0 : f32"]
        head += [f"{name} = arith.constant {value} : index" for value, name in self.constants.items()]
        return "\n".join(["// nisa text 1"] + head + self.lines + ["return", "}", "}"]) + "\n"
