"""infer-layout annotates and canonicalize-partition-dim turns: the numbers stay, and every operation ends annotated.

prepare-arithmetic comes first, as in the pipeline: it leaves a dimension for the partitions.
"""
import re

import numpy as np
import pytest

from support import values

PASSES = ["prepare-arithmetic", "infer-layout", "canonicalize-partition-dim"]
NAMES = "abcdef"


def shaped(dims, kind="f32"):
    return "tensor<" + "".join(f"{d}x" for d in dims) + kind + ">"


def space(n):
    return ", ".join(NAMES[:n])


class Module:
    """Writes one function: arguments, operations on random dimensions, annotations."""

    def __init__(self, kind="f32"):
        self.kind, self.arguments, self.lines, self.n = kind, [], [], 0

    def name(self):
        self.n += 1
        return f"%v{self.n}"

    def argument(self, dims):
        v = f"%arg{len(self.arguments)}"
        self.arguments.append(f"{v}: {shaped(dims, self.kind)}")
        return v, tuple(dims)

    def empty(self, dims):
        v = self.name()
        self.lines.append(f"{v} = tensor.empty() : {shaped(dims, self.kind)}")
        return v

    def named(self, op, *operands):
        dims, r = operands[0][1], self.name()
        e, t = self.empty(dims), shaped(dims, self.kind)
        self.lines.append(f"{r} = linalg.{op} ins({', '.join(v for v, _ in operands)} : {', '.join([t] * len(operands))})"
                          f" outs({e} : {t}) -> {t}")
        return r, dims

    def generic(self, operands, maps, dims, out_map, iterators, init, body):
        r, n = self.name(), len(iterators)
        every = ", ".join(f"affine_map<({space(n)}) -> ({m})>" for m in [*maps, out_map])
        ins = f"ins({', '.join(v for v, _ in operands)} : {', '.join(shaped(d, self.kind) for _, d in operands)}) "
        arguments = ", ".join(f"%i{k}: {self.kind}" for k in range(len(operands)))
        kinds = ", ".join(f'"{i}"' for i in iterators)
        self.lines += [f"{r} = linalg.generic {{indexing_maps = [{every}], iterator_types = [{kinds}]}} {ins}"
                       f"outs({init} : {shaped(dims, self.kind)}) {{", f"^bb0({arguments}, %o: {self.kind}):", *body,
                       f"}} -> {shaped(dims, self.kind)}"]
        return r, tuple(dims)

    def times(self, x, y):
        """x * y, where extents of 1 in y are broadcast."""
        n = len(x[1])
        narrow = ", ".join("0" if e == 1 else NAMES[k] for k, e in enumerate(y[1]))
        return self.generic([x, y], [space(n), narrow], x[1], space(n), ["parallel"] * n, self.empty(x[1]),
                            [f"%m = arith.mulf %i0, %i1 : {self.kind}", f"linalg.yield %m : {self.kind}"])

    def reduce(self, x, axes, keep):
        n = len(x[1])
        dims = [1 if k in axes else d for k, d in enumerate(x[1]) if keep or k not in axes]
        out = ", ".join("0" if k in axes else NAMES[k] for k in range(n) if keep or k not in axes)
        zero, f, e = self.name(), self.name(), self.empty(dims)
        t = shaped(dims, self.kind)
        self.lines += [f"{zero} = arith.constant 0.0 : {self.kind}",
                       f"{f} = linalg.fill ins({zero} : {self.kind}) outs({e} : {t}) -> {t}"]
        return self.generic([x], [space(n)], dims, out, ["reduction" if k in axes else "parallel" for k in range(n)], f,
                            [f"%q = arith.mulf %i0, %i0 : {self.kind}", f"%m = arith.addf %o, %q : {self.kind}",
                             f"linalg.yield %m : {self.kind}"])

    def matmul(self, x, y):
        dims, r = (x[1][0], y[1][1]), self.name()
        zero, f, e, t = self.name(), self.name(), self.empty(dims), shaped(dims, self.kind)
        self.lines += [f"{zero} = arith.constant 0.0 : {self.kind}",
                       f"{f} = linalg.fill ins({zero} : {self.kind}) outs({e} : {t}) -> {t}",
                       f"{r} = linalg.matmul ins({x[0]}, {y[0]} : {shaped(x[1], self.kind)}, {shaped(y[1], self.kind)})"
                       f" outs({f} : {t}) -> {t}"]
        return r, dims

    def layout(self, x, **what):
        parts = [f"{k} = {v} : i32" for k, v in what.items()]
        self.lines.append(f'"nkipy.layout"({x[0]}) {{{", ".join(parts)}}} : ({shaped(x[1], self.kind)}) -> ()')

    def text(self, *results):
        types = ", ".join(shaped(d, self.kind) for _, d in results)
        return "\n".join([f"func.func @f({', '.join(self.arguments)}) -> ({types}) {{", *self.lines,
                          f"return {', '.join(v for v, _ in results)} : {types}", "}"])


def annotated(text):
    """Each value of an operation that is tiled has exactly one layout, with everything said, and one tile_op."""
    for v in re.findall(r"(%\w+) = linalg\.(?!fill)", text):
        (layout,) = re.findall(rf'"nkipy\.layout"\({v}\) \{{(.*?)\}} :', text)
        (tile,) = re.findall(rf'"nkipy\.tile_op"\({v}\) \{{loop_tile_size = array<i64(?:: (.*?))?>\}}', text)
        assert {"mem_space", "partition_dim", "tile_size"} <= set(re.findall(r"(\w+) =", layout)), (v, layout)
        assert all(int(t) >= 1 for t in tile.split(", "))
        assert int(re.search(r"tile_size = array<i64: (\d+)", layout).group(1)) <= 128 or "partition_dim = 0" not in layout


def in_order(text):
    """The partition dimension is the first one, or a tile has one element along each dimension before it."""
    for p, tile in re.findall(r"partition_dim = ([1-9]).*?tile_size = array<i64: (.*?)>", text):
        sizes = [int(t) for t in tile.split(", ")]
        assert set(sizes[:int(p)]) == {1} and int(p) < len(sizes) - 1, text


def check(text, rng, tol=1e-5):
    after = values.check(text, PASSES, rng, tol)
    annotated(after)
    in_order(after)
    assert after == values.opt(text, *PASSES), "the result depends on more than the input"
    return after


DIMS = [1, 2, 3, 5, 7, 8, 17, 64, 100, 128, 130, 200]


def random_dims(rng, rank):
    return [int(d) for d in rng.choice(DIMS[: 12 if rank < 3 else 9], rank)]


@pytest.mark.parametrize("seed", range(12))
def test_element_wise_chains_with_a_partition_dim_keep_their_values(seed, rng):
    rank = int(rng.integers(2, 5))
    dims, p = random_dims(rng, rank), int(rng.integers(0, rank))
    m = Module()
    x, y = m.argument(dims), m.argument([1 if rng.random() < 0.4 else d for d in dims])
    a = m.named("tanh", x)
    b = m.times(a, y)
    c = m.named("add", b, a)
    m.layout([a, b, c][int(rng.integers(0, 3))], partition_dim=p)
    check(m.text(c) if rng.random() < 0.5 else m.text(c, a), rng)


@pytest.mark.parametrize("seed", range(16))
def test_reductions_of_any_axes_keep_their_values(seed, rng):
    rank = int(rng.integers(2, 5))
    dims = random_dims(rng, rank)
    axes = {int(a) for a in rng.choice(rank, int(rng.integers(1, rank)), replace=False)}
    m = Module()
    a = m.named("abs", m.argument(dims))
    s = m.reduce(a, axes, keep=bool(rng.random() < 0.6))
    after = check(m.text(s) if rng.random() < 0.5 else m.text(m.named("sqrt", s), a), rng, 1e-4)
    for v, line in re.findall(r"(%\w+) = linalg\.generic.*iterator_types = \[(.*?)\]", after):
        kinds = re.findall(r"\w+", line)
        p, tile = re.search(rf'"nkipy\.layout"\({v}\).*?partition_dim = (\d+).*?array<i64: (.*?)>', after).groups()
        kept = range(len(kinds)) if tile.count(",") + 1 == len(kinds) else [k for k, i in enumerate(kinds) if i == "parallel"]
        assert kinds[kept[int(p)]] == "parallel", f"reduces across partitions: {dims} over {axes}\n{after}"


@pytest.mark.parametrize("dims", [[64, 96], [1, 300], [300, 1], [3, 5, 7], [1, 1], [1, 4, 9], [7, 1, 130]], ids=str)
@pytest.mark.parametrize("keep", [True, False])
def test_a_reduction_to_one_element_ends_in_one_partition(dims, keep, rng):
    m = Module()
    s = m.reduce(m.argument(dims), set(range(len(dims))), keep)
    if s[1]:
        check(m.text(s), rng, 1e-4)
    else:
        in_order(values.check(m.text(s), PASSES, rng, 1e-4))


@pytest.mark.parametrize("shape", [(7, 5, 1, 3), (130, 517, 200, 64), (1, 128, 300, 1), (256, 256, 512, 128)], ids=str)
def test_chained_matmuls_without_knobs_are_laid_out(shape, rng):
    i, k, j, n = shape
    m = Module()
    x = m.matmul(m.argument((i, k)), m.argument((k, j)))
    r = m.matmul(m.named("tanh", x), m.argument((j, n)))
    after = check(m.text(r, m.reduce(r, {0}, True)), rng, 1e-3)
    assert after.count("linalg.matmul") == 2


def test_indices_and_gathers_follow_their_loops(rng):
    text = """
    func.func @f(%t: tensor<9x20xf32>, %i: tensor<6xi32>) -> tensor<6x20xf32> {
      %e = tensor.empty() : tensor<6x20xf32>
      %r = linalg.generic {indexing_maps = [affine_map<(a, b) -> (a)>, affine_map<(a, b) -> (a, b)>],
                           iterator_types = ["parallel", "parallel"]} ins(%i : tensor<6xi32>) outs(%e : tensor<6x20xf32>) {
      ^bb0(%k: i32, %o: f32):
        %row = arith.index_cast %k : i32 to index
        %col = linalg.index 1 : index
        %v = tensor.extract %t[%row, %col] : tensor<9x20xf32>
        linalg.yield %v : f32
      } -> tensor<6x20xf32>
      "nkipy.layout"(%r) {partition_dim = 1 : i32} : (tensor<6x20xf32>) -> ()
      return %r : tensor<6x20xf32>
    }"""
    table, index = values.random_inputs(text, rng)
    after = values.opt(text, *PASSES)
    in_order(after)
    values.same(values.run(after, [table, np.abs(index) % 9]), values.run(text, [table, np.abs(index) % 9]))


@pytest.mark.parametrize("dims", [(2, 64, 20), (3, 130, 7), (2, 2, 64, 9), (1, 8, 40, 16)], ids=str)
@pytest.mark.parametrize("kind", ["f32", "bf16"])
def test_softmax_over_short_batches_fills_partitions(dims, kind, rng):
    m = Module(kind)
    e = m.named("exp", m.argument(dims))
    s = m.named("reciprocal", m.reduce(e, {len(dims) - 1}, True))
    after = check(m.text(m.times(e, s)), rng)
    v, shape = re.search(r"(%\w+) = linalg\.exp .*-> tensor<([\dx]+)x\w+>", after).groups()
    p = int(re.search(rf'"nkipy\.layout"\({v}\).*?partition_dim = (\d+)', after).group(1))
    rows = [int(d) for d in shape.split("x")[:-1]]  # the leading dimensions, all of them as one, or as those of partitions and in them
    assert rows[p] == max(rows) >= min(max(dims[:-1]), 64)
    assert "linalg.transpose" not in after
