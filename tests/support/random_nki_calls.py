"""Statements of random NKI kernels: calls of nki.isa and functions of nki.language, with random operands, types and engines."""
import numpy as np

from support.nki_model import ARITH, BITS, COMPARE, DTYPES, FUNCTIONS, STARTS, Unsuitable, is_certain
from support.random_nki import FLOATS, INTS, by_index


def folded(f, x):
    """The running results of f over the last axis."""
    out = np.empty_like(x)
    out[:, 0] = x[:, 0]
    for k in range(1, x.shape[1]):
        out[:, k] = f(out[:, k - 1], x[:, k])
    return out


class Calls:
    def __init__(self, kernel):
        self.k = kernel
        self.kinds = [getattr(self, n) for n in sorted(dir(self)) if n.startswith("call_")]

    def draw(self):
        self.k.pick(self.kinds)()

    def engine(self, *views, scalar=True, gpsimd=True):
        """An argument that names one of the engines that can do it."""
        may = ["vector"] + ["scalar"] * scalar + ["gpsimd"] * (gpsimd and all(v.buffer == "sbuf" for v in views))
        name = self.k.pick(may)
        return self.k.pick(["", f", engine=nisa.engine.{name}", f", engine=nisa.{name}_engine"])

    def one_of_psum(self, v):
        """A second operand, in SBUF if the first is in PSUM."""
        return self.k.like(v, psum=v.buffer == "sbuf")

    # ---- copies

    def call_dma_copy(self):
        k = self.k
        t = k.known(lambda t: t.buffer == "sbuf" and t.is_float) or k.tile()
        d = k.result(t.partitions, t.free, t.dtype if k.chance(0.5) else None)
        k.emit(f"nisa.dma_copy(dst={d}, src={t})", lambda m: m.transfer(d, t))

    def call_transpose_by_dma(self):
        k = self.k
        t = k.known(lambda t: t.buffer == "sbuf" and len(t.shape) == 2 and t.free <= 128 and DTYPES[t.dtype].itemsize in (2, 4)) or k.tile(dtype="float32", columns=6)
        if len(t.shape) > 2:
            return
        d = k.make((t.free, t.partitions), t.dtype)
        k.tiles.append(d)
        k.emit(f"nisa.dma_transpose({d}, {t})", lambda m: m.put(d, m.raw(t).T, [t], bits=True))

    def call_tensor_copy(self):
        k = self.k
        v = k.operand(lambda t: True)
        d = k.result(v.partitions, v.free, k.pick(FLOATS + INTS), psum=True)
        k.emit(f"nisa.tensor_copy(dst={d}, src={v}{self.engine(d, v)})", lambda m: m.copy(d, v))

    def call_tensor_copy_predicated(self):
        k = self.k
        v = k.operand(lambda t: t.buffer == "sbuf")
        mask = k.like(v, k.pick(["uint8", "uint16", "uint32"]), psum=False)
        d = k.like(v, v.dtype, psum=False)
        if d.base == v.base or d.base == mask.base:
            return
        reverse = k.chance(0.3)
        if k.chance(0.3):
            n = k.number() if d.is_float else "3"
            k.emit(f"nisa.tensor_copy_predicated({d}, {n}, {mask}{', reverse_pred=True' if reverse else ''})",
                   lambda m: m.put(d, np.where((m.raw(mask) != 0) ^ reverse, m.stored(np.float32(m.value(n)), DTYPES[d.dtype]), m.raw(d)), [d, mask], bits=True))
        else:
            k.emit(f"nisa.tensor_copy_predicated(dst={d}, src={v}, predicate={mask}{', reverse_pred=True' if reverse else ''})",
                   lambda m: m.put(d, np.where((m.raw(mask) != 0) ^ reverse, m.raw(v), m.raw(d)), [v, mask, d], bits=True))

    def call_shuffle(self):
        k = self.k
        v = k.known(lambda t: t.buffer == "sbuf" and t.partitions % 32 == 0 and len(t.shape) == 2) or k.tile(rows=32)
        d = k.make(v.shape, v.dtype)
        k.tiles.append(d)
        mask = [int(i) for i in k.rng.integers(0, 32, 32)]
        rows = np.arange(v.partitions)
        k.emit(f"nisa.nc_stream_shuffle(src={v}, dst={d}, shuffle_mask={mask})",
               lambda m: m.put(d, m.raw(v)[rows // 32 * 32 + np.array(mask)[rows % 32]], [v], bits=True))

    def call_rows_by_number(self):
        k = self.k
        if k.in_helper:
            return
        rows, columns = k.pick([8, 32, 64]), k.pick([4, 12])
        numbers = k.make((rows, 1), "int32")
        start, by = k.of_loops(["{i}", "3", "2 * {i}"]), int(k.rng.integers(1, 3))
        k.emit(f"nisa.iota({numbers}, [[1, 1]], offset={start}, channel_multiplier={by})",
               lambda m: m.put(numbers, m.value(start) + np.arange(rows)[:, None] * by, []))
        at = k.place(96, columns)
        source = k.hbm["x"].at((256, columns), by_index(f":, {at}:{at} + {columns}"))
        d = k.make((rows, columns), "float32")
        k.tiles.append(d)
        k.emit(f"nisa.dma_copy({d}, {source}.vector_select(0, {numbers}))",
               lambda m: m.put(d, m.view(source).of[m.raw(numbers)[:, 0]], [], bits=True))

    # ---- element by element

    def call_tensor_tensor(self):
        k = self.k
        v = k.operand()
        w = self.one_of_psum(v)
        op = k.pick([*ARITH, *ARITH, *COMPARE])
        d = k.result(v.partitions, v.free, psum=True)
        sharp = op in COMPARE
        k.emit(f"nisa.tensor_tensor(dst={d}, data1={v}, data2={w}, op=nl.{op}{self.engine(d, v, w, scalar=False)})",
               lambda m: m.put(d, m.operator(op, m.f32(v, sharp), m.f32(w, sharp)), [v, w]))

    def call_tensor_tensor_of_integers(self):
        k = self.k
        dtype = k.pick(INTS)
        v = k.known(lambda t: t.dtype == dtype) or k.tile(dtype=dtype)
        w = k.like(v, dtype, psum=v.buffer == "sbuf")
        d = k.result(v.partitions, v.free, dtype)
        if k.chance(0.5):
            op = k.pick(list(BITS))
            k.emit(f"nisa.tensor_tensor({d}, {v}, {w}, nl.{op})", lambda m: m.put(d, BITS[op](m.raw(v), m.raw(w)), [v, w], bits=True))
        else:
            op = k.pick(list(ARITH))
            k.emit(f"nisa.tensor_tensor({d}, {v}, {w}, op=nl.{op})", lambda m: m.put(d, m.operator(op, m.f32(v), m.f32(w)), [v, w]))

    def call_tensor_scalar(self):
        k = self.k
        v = k.operand()
        d = v if v.buffer == "sbuf" and str(v) == v.base and k.chance(0.2) else k.result(v.partitions, v.free, psum=True)
        ops, text, steps = [], "", []
        for i in range(2 if k.chance(0.4) else 1):
            op = k.pick([*ARITH, *ARITH, *COMPARE])
            n = k.number() if k.chance(0.6) else k.column(v)
            reverse = k.chance(0.2)
            text += f", op{i}=nl.{op}, operand{i}={n}" + (f", reverse{i}=True" if reverse else "")
            steps.append((op, n, reverse))
            ops.append(n)

        def run(m):
            sharp = any(op in COMPARE for op, _, _ in steps)
            x = m.f32(v, sharp)
            for op, n, reverse in steps:
                y = m.number(n, sharp)
                x = m.operator(op, y, x) if reverse else m.operator(op, x, y)
            m.put(d, x, [v, *ops])

        columns = [n for n in ops if not isinstance(n, str)]
        k.emit(f"nisa.tensor_scalar(dst={d}, data={v}{text}{self.engine(d, v, *columns, scalar=False)})", run)

    def call_tensor_scalar_on_scalar(self):
        k = self.k
        v = k.operand()
        d, n, w = k.result(v.partitions, v.free), k.number(), k.number()
        k.emit(f"nisa.tensor_scalar({d}, {v}, nl.multiply, {n}, op1=nl.add, operand1={w}, engine=nisa.engine.scalar)",
               lambda m: m.put(d, m.f32(v) * m.number(n) + m.number(w), [v]))

    def call_bits_by_number(self):
        k = self.k
        dtype = k.pick(INTS)
        v = k.known(lambda t: t.dtype == dtype and t.buffer == "sbuf") or k.tile(dtype=dtype)
        d, n, op = k.result(v.partitions, v.free, dtype), int(k.rng.integers(0, 16)), k.pick(list(BITS))
        k.emit(f"nisa.tensor_scalar({d}, {v}, nl.{op}, {n})", lambda m: m.put(d, BITS[op](m.raw(v), DTYPES[dtype].type(n)), [v], bits=True))

    def call_scalar_tensor_tensor(self):
        k = self.k
        v = k.operand()
        w = self.one_of_psum(v)
        op0, op1, n = k.pick(list(ARITH)), k.pick(list(ARITH)), k.number() if k.chance(0.6) else k.column(v)
        d = k.result(v.partitions, v.free)
        reverse = k.chance(0.3)

        def run(m):
            x = m.operator(op0, m.f32(v), m.number(n))
            m.put(d, m.operator(op1, m.f32(w), x) if reverse else m.operator(op1, x, m.f32(w)), [v, w, n])

        k.emit(f"nisa.scalar_tensor_tensor(dst={d}, data={v}, op0=nl.{op0}, operand0={n}, op1=nl.{op1}, operand1={w}{', reverse1=True' if reverse else ''})", run)

    def function(self, name, x):
        f, limits, certain = FUNCTIONS[name]
        if limits and not ((limits[0] <= x) & (x <= limits[1])).all():
            raise Unsuitable("the function is not certain there")
        return f(x.astype(np.float64)).astype(np.float32), certain

    def call_activation(self):
        k = self.k
        v, name = k.operand(), k.pick(list(FUNCTIONS))
        scale = k.pick([None, None, "0.5", k.column(v)])
        bias = k.pick([None, None, k.column(v), k.number()])
        d = k.result(v.partitions, v.free, psum=True)
        text = "".join(f", {n}={x}" for n, x in (("bias", bias), ("scale", scale)) if x)

        def run(m):
            x = m.f32(v) * (m.number(scale) if scale else np.float32(1))
            x, certain = self.function(name, x + (m.number(bias) if bias else np.float32(0)))
            m.put(d, x, [n for n in (v, scale, bias) if n], rough=not certain, exact=certain)

        k.emit(f"nisa.activation(dst={d}, op=nl.{name}, data={v}{text})", run)

    def call_activation_with_a_sum(self):
        k = self.k
        v, name = k.operand(), k.pick(["copy", "square", "abs", "relu", "tanh"])
        d, total = k.result(v.partitions, v.free), k.make((v.partitions, 1), "float32")
        k.tiles.append(total)
        call = k.pick(["activation", "activation_reduce"])

        def run(m):
            x, certain = self.function(name, m.f32(v))
            m.put(d, x, [v], rough=not certain, exact=certain)
            s, _, exact = m.reduced("add", x)
            m.put(total, s[:, None], [v], rough=True, exact=exact and certain)

        k.emit(f"nisa.{call}(dst={d}, op=nl.{name}, data={v}, reduce_op=nl.add, reduce_res={total})", run)

    def call_reciprocal(self):
        k = self.k
        v = k.operand()
        d = k.result(v.partitions, v.free)

        def run(m):
            x, _ = self.function("reciprocal", np.abs(m.f32(v)))
            m.put(d, x * np.sign(m.f32(v)), [v], rough=True, exact=False)

        k.emit(f"nisa.reciprocal({d}, {v})", run)

    def call_select_reduce(self):
        k = self.k
        v = k.operand(lambda t: t.is_float and t.buffer == "sbuf")
        mask = k.like(v, k.pick(["uint8", "uint16"]), psum=False)
        n, d = k.number(), k.result(v.partitions, v.free)
        top = k.make((v.partitions, 1), "float32")
        k.tiles.append(top)

        def run(m):
            x = np.where(m.raw(mask) != 0, m.f32(v), m.number(n))
            m.put(d, x, [v, mask])
            m.put(top, x.max(1)[:, None], [v, mask])

        k.emit(f"nisa.select_reduce(dst={d}, predicate={mask}, on_true={v}, on_false={n}, reduce_res={top}, "
               "reduce_cmd=nisa.reduce_cmd.reset_reduce, reduce_op=nl.maximum)", run)

    def call_affine_select(self):
        k = self.k
        v = k.known(lambda t: t.is_float and t.buffer == "sbuf") or k.tile()
        d, n, by, start = k.result(v.partitions, v.free), k.number(), int(k.rng.integers(-2, 3)), k.of_loops(["{i}", "-2", "0"])
        op = k.pick(["equal", "greater", "less_equal", "less", "greater_equal", "not_equal"])

        def run(m):
            numbers = m.value(start) + by * np.arange(v.partitions)[:, None] - np.arange(v.free)
            m.put(d, np.where(COMPARE[op](numbers, 0), m.f32(v), m.number(n)), [v])

        k.emit(f"nisa.affine_select(dst={d}, pattern=[[-1, {v.free}]], channel_multiplier={by}, on_true_tile={v}, on_false_value={n}, "
               f"cmp_op=nl.{op}, offset={start})", run)

    def call_range_select(self):
        k = self.k
        v = k.operand(lambda t: t.is_float and t.buffer == "sbuf")
        low, high, d, first = k.column(v), k.number(), k.result(v.partitions, v.free, "float32"), int(k.rng.integers(3))
        op0, op1 = k.pick(["greater", "greater_equal"]), k.pick(["less", "less_equal"])

        def run(m):
            i = np.arange(first, first + v.free, dtype=np.float32)
            where = COMPARE[op0](i, m.f32(low, True)) & COMPARE[op1](i, m.number(high) + np.float32(3))
            m.put(d, np.where(where, m.f32(v), np.float32(-9)), [v, low])

        k.emit(f"nisa.range_select(dst={d}, on_true_tile={v}, comp_op0=nl.{op0}, comp_op1=nl.{op1}, bound0={low}, bound1={high} + 3.0, "
               f"range_start={float(first)}, on_false_value=-9.0)", run)

    # ---- along axes

    def call_tensor_reduce(self):
        k = self.k
        v, op = k.operand(), k.pick(["add", "maximum", "minimum"])
        n = int(k.rng.integers(1, len(v.shape))) if len(v.shape) > 1 else 1
        rest = int(np.prod(v.shape[1:len(v.shape) - n]))
        axis = list(range(len(v.shape) - n, len(v.shape))) if k.chance(0.5) else list(range(-n, 0))
        negate = k.chance(0.3)
        d = k.result(v.partitions, rest, psum=True)

        def run(m):
            x, rough, exact = m.reduced(op, m.f32(v).reshape(v.partitions * rest, -1))
            m.put(d, (-x if negate else x).reshape(v.partitions, rest), [v], rough=rough, exact=exact)

        k.emit(f"nisa.tensor_reduce(dst={d}, op=nl.{op}, data={v}, axis={axis if n > 1 else axis[0]}{', negate=True' if negate else ''})", run)

    def call_tensor_partition_reduce(self):
        k = self.k
        v = k.operand(lambda t: t.is_float and t.buffer == "sbuf")
        d, op = k.make((1, v.free), "float32"), k.pick(["add", "maximum"])
        k.tiles.append(d)

        def run(m):
            x, rough, exact = m.reduced(op, m.f32(v).T)
            m.put(d, x[None], [v], rough=rough, exact=exact)

        k.emit(f"nisa.tensor_partition_reduce({d}, nl.{op}, {v})", run)

    def call_tensor_scalar_reduce(self):
        k = self.k
        v, op, n, reduce_op = k.operand(), k.pick(list(ARITH)), k.number(), k.pick(["add", "maximum", "minimum"])
        d, total = k.result(v.partitions, v.free), k.make((v.partitions, 1), "float32")
        k.tiles.append(total)

        def run(m):
            x = m.operator(op, m.f32(v), m.number(n))
            m.put(d, x, [v])
            s, rough, exact = m.reduced(reduce_op, x)
            m.put(total, s[:, None], [v], rough=rough, exact=exact)

        k.emit(f"nisa.tensor_scalar_reduce(dst={d}, data={v}, op0=nl.{op}, operand0={n}, reduce_op=nl.{reduce_op}, reduce_res={total})", run)

    def call_scan(self):
        k = self.k
        v = k.operand(lambda t: t.is_float and t.free <= 16)
        w, start = self.one_of_psum(v), k.pick(["0.0", "1.0", k.column(v)])
        op0, op1 = k.pick(["multiply", "maximum", "add"]), k.pick(["add", "subtract", "minimum"])
        d = k.result(v.partitions, v.free, "float32")

        def run(m):
            x, y = m.f32(v), m.f32(w)
            r, out = np.broadcast_to(m.number(start).reshape(-1, 1)[:, 0], x.shape[:1]), np.empty_like(x)
            for i in range(x.shape[1]):
                r = out[:, i] = m.operator(op1, m.operator(op0, x[:, i], r), y[:, i])
            m.put(d, out, [v, w, start], rough=True, exact=is_certain(out))

        k.emit(f"nisa.tensor_tensor_scan({d}, {v}, {w}, initial={start}, op0=nl.{op0}, op1=nl.{op1})", run)

    def call_cumulative(self):
        k = self.k
        v, n = k.operand(lambda t: t.is_float and t.free <= 16), k.number()
        op0, op1 = k.pick(["add", "multiply"]), k.pick(["add", "maximum", "minimum"])
        d = k.result(v.partitions, v.free, "float32")

        def run(m):
            x = m.operator(op0, m.f32(v), m.number(n))
            out = folded(ARITH[op1], np.hstack([np.full((len(x), 1), STARTS[op1], np.float32), x]))[:, 1:]
            m.put(d, out, [v], rough=True, exact=is_certain(out))

        k.emit(f"nisa.tensor_scalar_cumulative({d}, {v}, nl.{op0}, nl.{op1}, {n})", run)

    def call_statistics(self):
        k = self.k
        v = k.operand(lambda t: t.is_float and t.free >= 2)
        if v.free < 2:
            return
        stats, d = k.make((v.partitions, 6), "float32"), k.make((v.partitions, 2), "float32")
        k.tiles.append(d)
        k.emit(f"nisa.bn_stats({stats}, {v})", lambda m: m.put(stats, np.zeros((v.partitions, 6)), [v], rough=True, exact=False))
        k.emit(f"nisa.bn_aggr({d}, {stats})", lambda m: m.put(
            d, np.stack([m.f32(v).mean(1, dtype=np.float64), m.f32(v).var(1, dtype=np.float64)], 1), [v], rough=True, exact=False))

    def call_eight(self):
        k = self.k
        v = k.operand(lambda t: t.is_float and t.free >= 8)
        if v.free < 8:
            return
        top, d = k.make((v.partitions, 8), "float32"), k.result(v.partitions, v.free)
        places = k.make((v.partitions, 8), "uint32")
        k.tiles += [top, places]
        k.emit(f"nisa.max8(dst={top}, src={v})", lambda m: m.put(top, -np.sort(-m.f32(v, True), 1)[:, :8], [v]))

        def first_places(x, values, order):
            at = np.zeros(values.shape, np.uint32)
            for p in range(len(x)):
                taken = set()
                for j in order:
                    at[p, j] = next(i for i in range(x.shape[1]) if x[p, i] == values[p, j] and i not in taken)
                    taken.add(at[p, j])
            return at

        if k.chance(0.5):
            k.emit(f"nisa.nc_find_index8(dst={places}, data={v}, vals={top})",
                   lambda m: m.put(places, first_places(m.f32(v), m.f32(top), range(8)), [v], bits=True))
            k.tiles.remove(d) if d in k.tiles else None
            return

        def run(m):
            x = m.f32(v).copy()
            at = first_places(x, m.f32(top), range(7, -1, -1))
            np.put_along_axis(x, at.astype(np.int64), np.float32(-9), 1)
            m.put(d, x, [v])
            m.put(places, at, [v], bits=True)

        k.emit(f"nisa.nc_match_replace8(dst={d}, data={v}, vals={top}, imm=-9.0, dst_idx={places})", run)

    def call_gather(self):
        k = self.k
        v = k.operand(lambda t: t.is_float and t.buffer == "sbuf")
        n, by = k.pick([1, 4, 6]), k.pick([1, 2, 3])
        ordered, indices = k.make((v.partitions, n), "uint32"), np.arange(n) * by % v.free
        k.emit(f"nisa.memset({ordered}, 0)", lambda m: m.put(ordered, np.zeros((1, n)), []))
        for i, at in enumerate(indices):
            cell = ordered.at((v.partitions, 1), by_index(f":, {i}:{i + 1}"))
            k.emit(f"nisa.memset({cell}, {at})", lambda m, cell=cell, at=at: m.put(cell, np.float32(at), []))
        d = k.result(v.partitions, n, v.dtype)
        k.emit(f"nisa.nc_n_gather({d}, {v}, {ordered})",
               lambda m: m.put(d, np.take_along_axis(m.f32(v), m.raw(ordered).astype(np.int64), 1), [v]))

    # ---- the Tensor engine

    def call_product(self):
        k = self.k
        depth, rows, columns = k.pick([1, 16, 32, 64, 128]), k.pick([1, 8, 32, 40]), k.pick([1, 6, 24, 60])
        dtype = k.pick(["float32", "bfloat16", "float16"])
        total = k.make((rows, *k.sizes(columns)), "float32", "psum")
        zero = k.chance(0.2)
        if zero:
            k.emit(f"nisa.memset({total}, 0.0)", lambda m: m.put(total, np.float32(0), []))
        how = None if zero else k.pick([None, None, "first"])

        def factors():
            other = dtype if dtype == "float32" else k.pick(["bfloat16", "float16"])
            return k.tile(depth, rows, dtype), k.tile(depth, columns, other)

        def product(i):
            x, y = factors()
            text = f", accumulate={i} > 0" if how else ""
            k.emit(f"nisa.nc_matmul(dst={total}, stationary={x}, moving={y}{text})",
                   lambda m: m.product(total, x, y, m.value(f"{i} > 0") if how else None))

        if k.chance(0.6) and not k.in_helper:
            i, trips = k.new("i"), int(k.rng.integers(1, 5))
            k.loop_of(i, f"for {i} in nl.affine_range({trips}):", range(trips), k.block(i, lambda: product(i)))
        else:
            for i in range(int(k.rng.integers(1, 3))):
                product(str(i))
        k.tiles.append(total)

    def call_transpose(self):
        k = self.k
        v = k.known(lambda t: t.is_float and t.buffer == "sbuf" and len(t.shape) == 2 and t.free <= 128) or k.tile(columns=12)
        d = k.make((v.free, v.partitions), v.dtype, "psum")
        k.tiles.append(d)
        k.emit(f"nisa.nc_transpose({d}, {v})", lambda m: m.put(d, m.raw(v).T, [v], bits=True, products=True))

    def call_small_transpose(self):
        k = self.k
        v = k.tile(k.pick([3, 16, 32]), k.pick([1, 6, 24]))
        d = k.make((v.free, v.partitions), v.dtype, "sbuf")
        k.tiles.append(d)
        k.emit(f"nisa.nc_transpose({d}, {v}, engine=nisa.engine.vector)", lambda m: m.put(d, m.raw(v).T, [v], bits=True))

    # ---- nki.language

    def new_tile(self, like, text, run, shape=None, dtype=None):
        """name = text, a function of nki.language that makes a tile."""
        from support.nki_model import Tensor
        from support.random_nki import View
        k, name = self.k, self.k.new("t")
        d = View(name, shape or like.shape, dtype or like.dtype, "sbuf")

        def made(m):
            m.names[name] = Tensor(d.shape, d.dtype, "sbuf")
            run(m, d)

        k.emit(f"{name} = {text}", made)
        k.tiles.append(d)
        return d

    def call_nl_binary(self):
        k = self.k
        v = k.known(lambda t: t.is_float and t.buffer == "sbuf" and len(t.shape) == 2) or k.tile()
        op = k.pick([*ARITH, "less", "equal", "logical_or"])
        w = k.known(lambda t: t.shape == v.shape and t.dtype == v.dtype and t.buffer == "sbuf")
        w = w or k.number()
        self.new_tile(v, f"nl.{op}({v}, {w})",
                      lambda m, d: m.put(d, m.operator(op, m.f32(v, op in COMPARE), m.number(w, op in COMPARE)), [v, w]))

    def call_nl_unary(self):
        k = self.k
        v = k.known(lambda t: t.is_float and t.buffer == "sbuf") or k.tile()
        name = k.pick([n for n in FUNCTIONS if n not in ("copy", "reciprocal", "sin")])

        def run(m, d):
            x, certain = self.function(name, m.f32(v))
            m.put(d, x, [v], rough=not certain, exact=certain)

        self.new_tile(v, f"nl.{name}({v})", run)

    def call_nl_reduce(self):
        k = self.k
        v = k.known(lambda t: t.dtype == "float32" and t.buffer == "sbuf" and len(t.shape) == 2) or k.make_2d()
        name, op = k.pick([("sum", "add"), ("max", "maximum"), ("min", "minimum")])

        def run(m, d):
            x, rough, exact = m.reduced(op, m.f32(v))
            m.put(d, x[:, None], [v], rough=rough, exact=exact)

        self.new_tile(v, f"nl.{name}({v}, axis=1, keepdims=True)", run, (v.partitions, 1))

    def call_nl_where(self):
        k = self.k
        v = k.known(lambda t: t.dtype == "float32" and t.buffer == "sbuf") or k.tile(dtype="float32")
        n = k.number()
        self.new_tile(v, f"nl.where(nl.greater({v}, {n}), {v}, {n})",
                      lambda m, d: m.put(d, np.where(m.f32(v, True) > m.number(n), m.f32(v), m.number(n)), [v]))

    def call_nl_copy(self):
        k = self.k
        v, dtype = k.known(lambda t: t.is_float) or k.tile(), k.pick(FLOATS)
        self.new_tile(v, f"nl.copy({v}, dtype=nl.{dtype})", lambda m, d: m.copy(d, v), dtype=dtype)

    def call_nl_softmax(self):
        k = self.k
        v = k.known(lambda t: t.dtype == "float32" and t.buffer == "sbuf" and len(t.shape) == 2) or k.make_2d()

        def run(m, d):
            e = np.exp(m.f32(v).astype(np.float64) - m.f32(v).max(1, keepdims=True))
            m.put(d, e / e.sum(1, keepdims=True), [v], rough=True, exact=False)

        self.new_tile(v, f"nl.softmax({v}, axis=-1)", run)
