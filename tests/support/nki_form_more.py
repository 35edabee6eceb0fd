"""The forms of calls that reduce, scan, select and multiply, and of transfers, and their models (nki_forms.py)."""
import math

import numpy as np

from support.nki_form_cases import ARITH, BITS, IN_SBUF, ON_CHIP, READ, SHAPE, column, one, rounded, tile
from support.nki_forms import FLOATS, INTS, LATER, TYPES, Form, Out, Tile, dtype, f32, random, stored

P, F = SHAPE
FOLDS = {"add": np.sum, "multiply": np.prod, "maximum": np.max, "minimum": np.min}


def reductions():
    deep = (32, 4, 6)
    for op, fold in FOLDS.items():
        for name in TYPES:
            x = tile(f"r{op}", name, shape=deep) if op != "multiply" else Tile(f32(random("r", "int8", deep) % 3).astype(dtype(name)))
            yield one("tensor_reduce", lambda x, f=fold: f(x, axis=2), {"op": f"nl.{op}", "data": x, "axis": "2"}, "float32", error=1e-5, shape=(32, 4))
        x = tile("float", "float32", shape=deep, low=0.5, high=1.5)
        yield one("tensor_reduce", lambda x, f=fold: f(x, axis=(1, 2)).reshape(32, 1, 1), {"op": f"nl.{op}", "data": x, "axis": "(1, 2)", "keepdims": "True"},
                  error=1e-4, shape=(32, 1, 1))
        if op != "multiply":
            yield one("tensor_reduce", lambda x, f=fold: -f(x, axis=2), {"op": f"nl.{op}", "data": x, "axis": "-1", "negate": "True"}, error=1e-5, shape=(32, 4))
    for form in READ:
        yield one("tensor_reduce", lambda x: x.max(1, keepdims=True), {"op": "nl.maximum", "data": tile("r", "float32", form), "axis": "1" if form != "swapped" else "(1, 2)"},
                  shape=(32, 1))
    for form in ("part", "offset", "stride", "psum", "psum stride"):
        yield one("tensor_reduce", lambda x: x.sum(2), {"op": "nl.add", "data": tile("d", "float32", shape=deep), "axis": "2"}, "float32", form, 1e-5, shape=(32, 4))
    for name in INTS:
        a = random("a" + name, name, SHAPE)
        for op in ("bitwise_and", "bitwise_or"):
            yield Form("tensor_reduce", {"dst": Out((32, 1), name), "op": f"nl.{op}", "data": Tile(a), "axis": "1"}, {"dst": BITS[op].reduce(a, axis=1)[:, None]})
    for name in TYPES:
        for op, fold in (("add", np.sum), ("maximum", np.max)):
            yield one("tensor_partition_reduce", lambda x, f=fold: f(x, axis=0, keepdims=True), {"op": f"nl.{op}", "data": tile("p" + op, name)}, error=1e-5, shape=(1, F))
    for form in IN_SBUF:
        yield one("tensor_partition_reduce", lambda x: x.sum(0, keepdims=True), {"op": "nl.add", "data": tile("p", "float32", form)}, error=1e-5, shape=(1, F))
    for name in INTS:
        a = random("a" + name, name, SHAPE)
        for op in ("bitwise_and", "bitwise_or"):
            yield Form("tensor_partition_reduce", {"dst": Out((1, F), name), "op": f"nl.{op}", "data": Tile(a)}, {"dst": BITS[op].reduce(a, axis=0)[None]})


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


FUNCTIONS = {"copy": lambda x: x, "exp": np.exp, "square": np.square, "abs": np.abs, "tanh": np.tanh, "sin": np.sin, "sign": np.sign, "arctan": np.arctan,
             "erf": np.vectorize(math.erf), "sigmoid": sigmoid, "relu": lambda x: np.maximum(x, 0), "silu": lambda x: x * sigmoid(x),
             "gelu": lambda x: x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2, "softplus": lambda x: np.log1p(np.exp(x)),
             "mish": lambda x: x * np.tanh(np.log1p(np.exp(x)))}
OF_POSITIVE = {"log": np.log, "sqrt": np.sqrt, "rsqrt": lambda x: x ** -0.5, "reciprocal": lambda x: 1 / x}


def wide(f):
    return lambda *x: f(*(np.asarray(v, np.float64) for v in x))


def activations():
    for op, f in {**FUNCTIONS, **OF_POSITIVE}.items():
        for name in FLOATS[:3]:
            x = tile(f"x{op}", name, low=0.25 if op in OF_POSITIVE else -3)
            yield one("activation", wide(f), {"op": f"nl.{op}", "data": x}, name, error=rounded(name, 1e-5))
    for name in ("int8", "uint8", "int16", "uint16", "int32", "uint32"):
        yield one("activation", np.square, {"op": "nl.square", "data": tile("i", name)}, "float32")
        yield one("activation", lambda x: x * np.float32(1.5), {"op": "nl.copy", "data": tile("i", name), "scale": "1.5"}, name)
    x = tile("x", "float32")
    for form in READ:
        yield one("activation", wide(np.tanh), {"op": "nl.tanh", "data": tile("x", "float32", form)}, error=1e-5)
        yield one("reciprocal", lambda x: 1 / x, {"data": tile("x", "float32", form, low=0.5)}, error=1e-6)
    for form in ON_CHIP:
        yield one("activation", wide(np.exp), {"op": "nl.exp", "data": x}, "bfloat16", form, 0.01)
        yield one("reciprocal", lambda x: 1 / x, {"data": tile("x", "float32", low=0.5)}, "float16", form, 0.002)
    for form in ("sbuf", "part", "offset", "stride", "psum"):
        for bias in ("float32", "bfloat16", "float16"):
            yield one("activation", wide(lambda x, b: np.tanh(x + b)), {"op": "nl.tanh", "data": x, "bias": column("b", bias, form)}, error=1e-5)
        yield one("activation", wide(lambda x, s: np.tanh(x * s)), {"op": "nl.tanh", "data": x, "scale": column("s", form=form)}, error=1e-5)
        total = Out((P, 1), "float32", form, error=1e-5)
        for call, more in (("activation", {"reduce_cmd": "nisa.reduce_cmd.reset_reduce"}), ("activation_reduce", {})):
            value = np.square(x.array)
            yield Form(call, {"dst": Out(SHAPE, "float32"), "op": "nl.square", "data": x, "reduce_op": "nl.add", "reduce_res": total, **more},
                       {"dst": value, "reduce_res": value.sum(1, keepdims=True)})
    for form in ON_CHIP:
        value = x.array * np.float32(0.5) + column("b").array
        yield Form("activation_reduce", {"dst": Out(SHAPE, "float32", form), "op": "nl.copy", "data": tile("x", "float32", "psum"), "reduce_op": "nl.add",
                                         "reduce_res": Out((P, 1), "float32", error=1e-5), "bias": column("b"), "scale": "0.5"},
                   {"dst": value, "reduce_res": value.sum(1, keepdims=True)})
    yield one("activation", wide(lambda x: np.tanh(x * 0.5 + 0.25)), {"op": "nl.tanh", "data": x, "bias": "0.25", "scale": "0.5"}, error=1e-5, targets=LATER)
    for form in ("sbuf", "psum"):
        value = x.array * column("s").array + column("b").array
        yield Form("activation_reduce", {"dst": Out(SHAPE, "float32", error=1e-6), "op": "nl.copy", "data": x, "reduce_op": "nl.add", "bias": column("b", form=form),
                                         "reduce_res": Out((P, 1), "float32", error=1e-5), "scale": column("s", form=form)},
                   {"dst": value, "reduce_res": value.sum(1, keepdims=True)})
    scaled = x.array * column("s").array
    yield Form("activation_reduce", {"dst": Out(SHAPE, "float32", error=1e-6), "op": "nl.copy", "data": x, "reduce_op": "nl.add",
                                     "reduce_res": Out((P, 1), "float32", error=1e-5), "scale": column("s")}, {"dst": scaled, "reduce_res": scaled.sum(1, keepdims=True)})


def fused():
    x, y = tile("x", "float32"), tile("y", "float32")
    for op0, f in ARITH.items():
        for op1, g in (("add", np.add), ("maximum", np.maximum), (op0, f)):
            yield one("scalar_tensor_tensor", lambda x, c, y, f=f, g=g: g(f32(f(x, c)), y),
                      {"data": x, "op0": f"nl.{op0}", "operand0": column("c"), "op1": f"nl.{op1}", "operand1": y})
    for name in TYPES:
        yield one("scalar_tensor_tensor", lambda x, y: (x + np.float32(2)) * y, {"data": tile("x", name), "op0": "nl.add", "operand0": "2.0", "op1": "nl.multiply", "operand1": tile("y", name)}, name)
    for form in READ:
        fixed = {"op0": "nl.subtract", "operand0": "1.5", "op1": "nl.subtract"}
        yield one("scalar_tensor_tensor", lambda x, y: y - (np.float32(1.5) - x), {"data": tile("x", "float32", form), **fixed, "operand1": y, "reverse0": "True", "reverse1": "True"})
        yield one("scalar_tensor_tensor", lambda x, y: x - np.float32(1.5) - y, {"data": x, **fixed, "operand1": tile("y", "float32", form)})
    for form in ON_CHIP:
        yield one("scalar_tensor_tensor", lambda x, y: x * np.float32(3) + y, {"data": x, "op0": "nl.multiply", "operand0": "3.0", "op1": "nl.add", "operand1": y}, "float32", form, 1e-6)
    for form in ("part", "offset", "stride", "psum"):
        yield one("scalar_tensor_tensor", lambda x, c, y: x * c + y, {"data": x, "op0": "nl.multiply", "operand0": column("c", form=form), "op1": "nl.add", "operand1": y}, error=1e-6)
    for op, fold in FOLDS.items():
        for name in FLOATS[:3]:
            a = tile("a" + op, name, low=0.5, high=1.5)
            value = f32(a.array) * np.float32(1.25)
            for form in ("sbuf", "psum"):
                yield Form("tensor_scalar_reduce", {"dst": Out(SHAPE, name), "data": a, "op0": "nl.multiply", "operand0": "1.25", "reduce_op": f"nl.{op}",
                                                    "reduce_res": Out((P, 1), "float32", form, error=1e-4)},
                           {"dst": stored(value, name), "reduce_res": fold(value, axis=1, keepdims=True)})
    for form in ("psum", "part", "offset", "stride"):
        value = x.array + column("c").array
        beside = "sbuf" if form == "psum" else form  # not both are in PSUM
        yield Form("tensor_scalar_reduce", {"dst": Out(SHAPE, "float32", form), "data": tile("x", "float32", form), "op0": "nl.add", "operand0": column("c", form=beside),
                                            "reduce_op": "nl.maximum", "reduce_res": Out((P, 1), "float32")}, {"dst": value, "reduce_res": value.max(1, keepdims=True)})
    value = x.array + column("c").array
    yield Form("tensor_scalar_reduce", {"dst": Out(SHAPE, "float32"), "data": x, "op0": "nl.add", "operand0": column("c", form="psum"), "reduce_op": "nl.maximum",
                                        "reduce_res": Out((P, 1), "float32")}, {"dst": value, "reduce_res": value.max(1, keepdims=True)})


def scans():
    x, y = tile("x", "float32", low=-1, high=1), tile("y", "float32", low=-1, high=1)

    def scan(f, a, b, r):
        out = np.empty(SHAPE, np.float32)
        for k in range(F):
            r = out[:, k] = f(a[:, k], b[:, k], r)
        return out

    def form(error=1e-5, name="float32", dst="sbuf", initial="0.5", data0=x, data1=y, start=np.float32(0.5)):
        want = stored(scan(lambda a, b, r: a * r + b, f32(data0.seen()), f32(data1.seen()), np.broadcast_to(start, (P,))), name)
        return Form("tensor_tensor_scan", {"dst": Out(SHAPE, name, dst, error=error), "data0": data0, "data1": data1, "initial": initial, "op0": "nl.multiply", "op1": "nl.add"}, {"dst": want})

    for at in READ:
        yield form(data0=tile("x", "float32", at, low=-1, high=1))
        yield form(data1=tile("y", "float32", at, low=-1, high=1))
    for at in ON_CHIP:
        yield form(dst=at)
    for at in ("sbuf", "part", "psum"):
        c = column("c", form=at)
        yield form(initial=c, start=c.array[:, 0])
    for name in FLOATS[:3]:
        yield form(data0=tile("x", name, low=-1, high=1), data1=tile("y", name, low=-1, high=1), name=name, error=rounded(name, 1e-5))
    runs = {"add": np.cumsum, "multiply": np.cumprod, "maximum": np.maximum.accumulate, "minimum": np.minimum.accumulate}
    for op, f in runs.items():
        for name in (*FLOATS[:3], "int8", "uint8", "int16", "uint16"):
            a = tile("x", name, low=0.5, high=1.5) if op == "multiply" and name in FLOATS else Tile(random("x", name, SHAPE) % dtype(name).type(3) if name in INTS else random("x", name, SHAPE))
            yield one("tensor_scalar_cumulative", lambda x, f=f: f(x * np.float32(0.5), axis=1), {"src": a, "op0": "nl.multiply", "op1": f"nl.{op}", "imm0": "0.5"}, error=1e-5)
    for at in READ:
        yield one("tensor_scalar_cumulative", lambda x, c: np.cumsum(x + c, axis=1), {"src": tile("x", "float32", at), "op0": "nl.add", "op1": "nl.add", "imm0": column("c")}, error=1e-5)
    for at in ON_CHIP:
        yield one("tensor_scalar_cumulative", lambda x: np.cumsum(x, axis=1), {"src": x, "op0": "nl.multiply", "op1": "nl.add", "imm0": "1.0"}, "float32", at, 1e-5)
    for at in ("part", "psum"):
        yield one("tensor_scalar_cumulative", lambda x, c, d: d + np.cumsum(x * c, axis=1),
                  {"src": x, "op0": "nl.multiply", "op1": "nl.add", "imm0": column("c", form=at), "imm1": column("d", form=at), "reduce_cmd": "nisa.reduce_cmd.load_reduce"}, error=1e-5)


def statistics():
    x = tile("x", "float32", shape=(32, 25))

    def parts(a):
        return np.hstack([np.stack([np.full(P, h.shape[1]), h.mean(1), h.var(1) * h.shape[1]], 1) for h in (a[:, ::2], a[:, 1::2])])
    for name in FLOATS[:3]:
        yield one("bn_stats", parts, {"data": tile("s", name)}, error=1e-5, shape=(P, 6))
        yield one("max8", lambda a: -np.sort(-a, axis=1)[:, :8], {"src": tile("m", name)}, name, shape=(P, 8))
    for at in ("part", "offset", "stride", "psum", "psum stride"):
        yield one("bn_stats", parts, {"data": Tile(x.array, at)}, error=1e-5, shape=(P, 6))
        yield one("bn_stats", parts, {"data": x}, "float32", at, 1e-5, shape=(P, 6))
        yield one("max8", lambda a: -np.sort(-a, axis=1)[:, :8], {"src": Tile(x.array, at)}, shape=(P, 8))
        yield one("max8", lambda a: -np.sort(-a, axis=1)[:, :8], {"src": x}, "float32", at, shape=(P, 8))
        stats = Tile(np.stack([np.stack([h.shape[1] + 0 * h[:, 0], h.mean(1), h.var(1) * h.shape[1]], 1) for h in (x.array[:, :10], x.array[:, 10:])], 1).reshape(P, 6).astype(np.float32))
        whole = np.stack([x.array.mean(1), x.array.var(1)], 1).astype(np.float32)
        yield Form("bn_aggr", {"dst": Out((P, 2), "float32", error=1e-4), "data": Tile(stats.array, at)}, {"dst": whole})
        yield Form("bn_aggr", {"dst": Out((P, 2), "float32", at, error=1e-4), "data": stats}, {"dst": whole})
    a = (np.arange(P * F).reshape(P, F) * 7 % 997).astype(np.float32)  # no two are equal in a row
    v = np.ascontiguousarray(a[:, 3:19:2])
    v[:, 5] = -1
    found = np.broadcast_to(np.arange(3, 19, 2).astype(np.uint32), (P, 8)).copy()
    found[:, 5] = 2**32 - 1
    replaced = a.copy()
    replaced[:, [3, 5, 7, 9, 11, 15, 17]] = -4
    for at in ("sbuf", "part", "offset", "stride", "psum", "psum stride"):
        for kind in ("uint16", "uint32"):
            yield Form("nc_find_index8", {"dst": Out((P, 8), kind, at if at != "psum stride" else "sbuf"), "data": Tile(a, at), "vals": Tile(v, at)}, {"dst": found.astype(kind)})
        yield Form("nc_match_replace8", {"dst": Out(SHAPE, "float32", at), "data": Tile(a, at), "vals": Tile(v, at), "imm": "-4.0"}, {"dst": replaced})
        yield Form("nc_match_replace8", {"dst": Out(SHAPE, "float32"), "data": Tile(a), "vals": Tile(v), "imm": "-4.0", "dst_idx": Out((P, 8), "uint32", at)},
                   {"dst": replaced, "dst_idx": found})


def selections():
    x, y = tile("x", "float32"), tile("y", "float32")
    for at in ON_CHIP:
        for kind in ("uint8", "int8", "uint16", "int16"):
            p = Tile(random("p", kind, SHAPE) % dtype(kind).type(2), at)
            yield Form("select_reduce", {"dst": Out(SHAPE, "float32"), "predicate": p, "on_true": x, "on_false": y}, {"dst": np.where(p.array, x.array, y.array)})
        p = Tile(random("p", "uint8", SHAPE) % 2)
        for names in ("on_true", "on_false", "dst"):
            where = {n: at if n == names else "sbuf" for n in ("on_true", "on_false", "dst")}
            value = np.where(p.array, x.array, y.array)
            yield Form("select_reduce", {"dst": Out(SHAPE, "float32", where["dst"]), "predicate": p, "on_true": Tile(x.array, where["on_true"]),
                                         "on_false": Tile(y.array, where["on_false"]), "reduce_res": Out((P, 1), "float32", "psum" if at == "psum" else "sbuf"),
                                         "reduce_cmd": "nisa.reduce_cmd.reset_reduce", "reduce_op": "nl.maximum"}, {"dst": value, "reduce_res": value.max(1, keepdims=True)})
    i, row = np.arange(F), np.arange(P)[:, None]
    for at in ("sbuf", *IN_SBUF):
        for op in ("equal", "not_equal", "greater", "greater_equal", "less", "less_equal"):
            want = np.where(ARITH[op](3 + 2 * row - i, 0), x.array, np.float32(-1.5))
            yield Form("affine_select", {"dst": Out(SHAPE, "float32", at if at != "swapped" else "sbuf"), "pattern": f"[[-1, {F}]]", "channel_multiplier": "2",
                                         "on_true_tile": Tile(x.array, at), "on_false_value": "-1.5", "cmp_op": f"nl.{op}", "offset": "3"}, {"dst": want})
    for at in ON_CHIP:
        want = np.where((i >= 3) & (i < 11), x.array, np.float32(-1))
        fixed = {"comp_op0": "nl.greater_equal", "comp_op1": "nl.less", "on_false_value": "-1.0"}
        yield Form("range_select", {"dst": Out(SHAPE, "float32"), "on_true_tile": Tile(x.array, at), "bound0": "3.0", "bound1": "11.0", **fixed}, {"dst": want}, LATER)
        yield Form("range_select", {"dst": Out(SHAPE, "float32", at), "on_true_tile": x, "bound0": Tile(np.full((P, 1), 3, np.float32)),
                                    "bound1": Tile(np.full((P, 1), 11, np.float32), "psum"), **fixed}, {"dst": want}, LATER)
    for at in ("sbuf", "psum"):
        yield Form("range_select", {"dst": Out(SHAPE, "float32"), "on_true_tile": x, "bound0": Tile(np.full((P, 1), 3, np.float32), "psum"),
                                    "bound1": Tile(np.full((P, 1), 11, np.float32)), "reduce_res": Out((P, 1), "float32", at), "reduce_op": "nl.maximum", **fixed},
                   {"dst": want, "reduce_res": want.max(1, keepdims=True)}, LATER)


def products():
    for left, right in (*((t, t) for t in FLOATS), ("bfloat16", "float16"), ("float8_e4m3", "bfloat16"), ("float8_e5m2", "float8_e4m3")):
        for k, m, n in ((32, 24, 24), (128, 128, 64), (7, 1, 5)):
            l, r = tile("l", left, shape=(k, m)), tile("r", right, shape=(k, n))
            want = f32(l.array).T @ f32(r.array)
            for accumulate in ({}, {"accumulate": "False"}):
                yield Form("nc_matmul", {"dst": Out((m, n), "float32", "psum", error=1e-4), "stationary": l, "moving": r, **accumulate}, {"dst": want})
    for at in ("part", "offset", "stride"):
        l, r = tile("l", "bfloat16"), tile("r", "bfloat16")
        want = f32(l.array).T @ f32(r.array)
        yield Form("nc_matmul", {"dst": Out((F, F), "float32", "psum", error=1e-4), "stationary": Tile(l.array, at), "moving": Tile(r.array, at)}, {"dst": want})
        yield Form("nc_matmul", {"dst": Out((F, F), "float32", "psum stride", error=1e-4), "stationary": l, "moving": r}, {"dst": want})
    for name in FLOATS[:3]:
        for at in ("sbuf", "part", "offset", "stride"):
            x = tile("t", name, at)
            yield Form("nc_transpose", {"dst": Out((F, P), name, "psum"), "data": x, "engine": "nisa.engine.tensor"}, {"dst": x.array.T})
    for name in TYPES:
        for source, to in (("sbuf", "sbuf"), ("psum", "sbuf"), ("sbuf", "psum"), ("stride", "part")):
            x = tile("t", name, source)
            yield Form("nc_transpose", {"dst": Out((F, P), name, to), "data": x, "engine": "nisa.engine.vector"}, {"dst": x.array.T})


def transfers():
    for name in TYPES:
        x = tile("d", name)
        for source in ("sbuf", "hbm"):
            for to in ("sbuf", "hbm"):
                yield Form("dma_copy", {"dst": Out(SHAPE, name, to), "src": Tile(x.array, source)}, {"dst": x.array})
    for source in (*IN_SBUF, "broadcast"):
        for to in ("sbuf", "hbm"):
            x = tile("d", "float32", source)
            if source != "swapped":
                yield Form("dma_copy", {"dst": Out(SHAPE, "float32", to), "src": x}, {"dst": x.seen()})
    for to in ("part", "offset", "stride"):
        for source in ("sbuf", "hbm"):
            x = tile("d", "bfloat16", source)
            yield Form("dma_copy", {"dst": Out(SHAPE, "bfloat16", to), "src": x}, {"dst": x.array})
    for a in FLOATS[:3]:
        for b in (*FLOATS[:3], "int32", "uint8"):
            yield one("dma_copy", lambda x: x, {"src": tile("c", a, "hbm")}, b)
    for mode in ("none", "swdge", "hwdge", "unknown"):
        x = tile("d", "float32", "hbm")
        yield Form("dma_copy", {"dst": Out(SHAPE, "float32"), "src": x, "dge_mode": f"nisa.dge_mode.{mode}"}, {"dst": x.array})
    for a, b, to in (("sbuf", "sbuf", "sbuf"), ("hbm", "sbuf", "hbm"), ("sbuf", "hbm", "sbuf"), ("hbm", "hbm", "hbm")):
        for name in FLOATS[:3]:
            x, y = tile("x", name, a), tile("y", name, b)
            yield Form("dma_compute", {"dst": Out(SHAPE, name, to), "srcs": [x, y], "reduce_op": "nl.add"}, {"dst": stored(f32(x.array) + f32(y.array), name)})
    for name in ("float32", "bfloat16", "float16", "int32", "uint32", "int16", "uint16"):
        for source in ("sbuf", "hbm", "offset", "part"):
            x = tile("t", name, source)
            yield Form("dma_transpose", {"dst": Out((F, P), name), "src": x}, {"dst": x.array.T})


def tables():
    for name in (*FLOATS[:3], *INTS):
        want = 3 + 2 * np.arange(P)[:, None] + 5 * np.repeat(np.arange(4), 6) + np.tile(np.arange(6), 4)
        for at in ("sbuf", "offset", "part"):
            yield Form("iota", {"dst": Out(SHAPE, name, at), "pattern": "[[5, 4], [1, 6]]", "offset": "3", "channel_multiplier": "2"}, {"dst": stored(want, name)})
        x = tile("s", name)
        mask = [(7 * k + 3) % 32 for k in range(32)]
        for at in ("sbuf", "offset", "stride", "psum", "psum stride"):
            yield Form("nc_stream_shuffle", {"dst": Out(SHAPE, name), "src": Tile(x.array, at), "shuffle_mask": str(mask)}, {"dst": x.array[mask]})
            yield Form("nc_stream_shuffle", {"dst": Out(SHAPE, name, at), "src": x, "shuffle_mask": str(mask)}, {"dst": x.array[mask]})
        i = (np.arange(P * 10).reshape(P, 10) * 7 % F).astype(np.uint32)
        for at in ("sbuf", "offset", "part"):
            yield Form("nc_n_gather", {"dst": Out((P, 10), name, at), "data": Tile(x.array, at), "indices": Tile(i, at)}, {"dst": np.take_along_axis(x.array, i.astype(int), 1)})


def newest():
    x, y = tile("x", "float32"), column("m")
    for at in READ:
        yield one("exponential", wide(lambda x, m: np.exp(x - m)), {"src": tile("x", "float32", at), "max_value": y}, error=1e-5, targets=("trn3",))
        yield one("activate2", wide(lambda x, m: np.tanh(x * m + 0.5)), {"op": "nl.tanh", "data": tile("x", "float32", at), "imm0": y, "imm1": "0.5", "op0": "nl.multiply",
                                                                          "op1": "nl.add"}, error=1e-5, targets=("trn3",))
    for at in ON_CHIP:
        yield one("exponential", wide(np.exp), {"src": x}, "bfloat16", at, 0.01, ("trn3",))
        yield one("activate2", wide(lambda x: np.tanh(x + 0.5)), {"op": "nl.tanh", "data": x, "imm0": "0.5", "imm1": "0.0", "op0": "nl.add", "op1": "nl.bypass"}, "float16", at, 0.002, ("trn3",))
    for at, beside in (("sbuf", "psum"), ("psum", "sbuf")):
        value = np.exp(x.array - y.array)
        yield Form("exponential", {"dst": Out(SHAPE, "float32", error=1e-5), "src": x, "max_value": Tile(y.array, beside), "reduce_res": Out((P, 1), "float32", at, error=1e-5),
                                   "reduce_cmd": "nisa.reduce_cmd.reset_reduce"}, {"dst": value, "reduce_res": value.sum(1, keepdims=True)}, ("trn3",))
        value = np.tanh(x.array * y.array + column("d").array)
        yield Form("activate2", {"dst": Out(SHAPE, "float32", error=1e-5), "op": "nl.tanh", "data": x, "imm0": Tile(y.array, beside), "imm1": column("d", form=beside),
                                 "op0": "nl.multiply", "op1": "nl.add", "reduce_op": "nl.maximum", "reduce_res": Out((P, 1), "float32", at, error=1e-5),
                                 "reduce_cmd": "nisa.reduce_cmd.reset_reduce"}, {"dst": value, "reduce_res": value.max(1, keepdims=True)}, ("trn3",))


GROUPS = (reductions, activations, fused, scans, statistics, selections, products, transfers, tables, newest)
