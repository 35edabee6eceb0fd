"""The forms of calls that compute element by element, and their models (nki_forms.py)."""
import numpy as np

from support.nki_forms import FLOATS, INTS, LATER, TARGETS, TYPES, Form, Out, Tile, dtype, f32, random, stored

ARITH = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
         "equal": np.equal, "not_equal": np.not_equal, "greater": np.greater, "greater_equal": np.greater_equal, "less": np.less,
         "less_equal": np.less_equal, "logical_and": lambda x, y: (x != 0) & (y != 0), "logical_or": lambda x, y: (x != 0) | (y != 0),
         "logical_xor": lambda x, y: (x != 0) ^ (y != 0)}
OF_TRN3 = {"abs_max": lambda x, y: np.where(np.abs(y) > np.abs(x), y, x), "abs_min": lambda x, y: np.where(np.abs(y) < np.abs(x), y, x)}
BITS = {"bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor}
SHIFTS = {"left_shift": np.left_shift, "right_shift": np.right_shift}

SHAPE = (32, 24)
ON_CHIP = ("part", "offset", "stride", "swapped", "psum", "psum stride")
READ = (*ON_CHIP, "broadcast")
IN_SBUF = ("part", "offset", "stride", "swapped")


def tile(label, name, form="sbuf", shape=SHAPE, **kw):
    return Tile(random(label, name, shape, **kw), form)


def column(label, name="float32", form="sbuf"):
    return tile(label, name, form, (SHAPE[0], 1))


def seen(v):
    return v.seen() if isinstance(v, Tile) else v


def one(call, model, arguments, name="float32", form="sbuf", error=0.0, targets=TARGETS, shape=SHAPE, dst="dst"):
    """A form with one result, of this type: model(*operands as float32) rounded."""
    operands = [f32(seen(v)) for v in arguments.values() if isinstance(v, Tile)]
    with np.errstate(all="ignore"):
        want = stored(np.broadcast_to(model(*operands), shape), name)
    return Form(call, {dst: Out(shape, name, form, error=error), **arguments}, {dst: want}, targets)


def rounded(name, error):
    """The error that is allowed for results that are rounded to this type."""
    return {"float32": error, "bfloat16": 0.01, "float16": 0.002, "float8_e4m3": 0.13, "float8_e5m2": 0.26}.get(name, 1.0 if error else 0.0)


def copies():
    for a in TYPES:
        for b in TYPES:
            wide = Tile(random(f"{a} {b}", a, SHAPE, -300, 300) if a in ("float32", "bfloat16") else random(a, a, SHAPE))
            yield one("tensor_copy", lambda x: x, {"src": wide}, b)
    for form in READ:
        yield one("tensor_copy", lambda x: x, {"src": tile("c", "bfloat16", form)})
    for form in ON_CHIP:
        yield one("tensor_copy", lambda x: x, {"src": tile("c", "bfloat16")}, "float16", form)
    for name in TYPES:
        for engine, targets in (("vector", TARGETS), ("gpsimd", TARGETS), ("scalar", LATER)):
            for to in (name, "float32", "bfloat16", "int8", "uint16", "int32"):
                big = Tile((np.arange(32 * 24).reshape(32, 24) * 97 % 611 - 300).astype(np.float32).astype(dtype(name)) if name in ("float32", "int16", "int32")
                           else random(name, name, SHAPE))
                yield one("tensor_copy", lambda x: x, {"src": big, "engine": f"nisa.engine.{engine}"}, to, targets=targets)
    exact = Tile((np.arange(32 * 24).reshape(32, 24) * 2796203 + 2**30 + 1).astype(np.int32))
    for engine, targets in (("vector", TARGETS), ("gpsimd", TARGETS), ("scalar", LATER)):  # the bits of equal types remain
        yield Form("tensor_copy", {"dst": Out(SHAPE, "int32"), "src": exact, "engine": f"nisa.engine.{engine}"}, {"dst": exact.array}, targets)
    for name in TYPES:
        for engine in ("vector", "gpsimd"):
            value = 3 if name in INTS else -1.5
            want = np.full(SHAPE, value).astype(dtype(name))
            yield Form("memset", {"dst": Out(SHAPE, name), "value": str(value), "engine": f"nisa.engine.{engine}"}, {"dst": want})
    for form in ON_CHIP:
        yield Form("memset", {"dst": Out(SHAPE, "float32", form), "value": "2.5"}, {"dst": np.full(SHAPE, 2.5, np.float32)})


def predicated():
    for p in ("uint8", "uint16", "uint32"):
        for name in TYPES:
            yield from _predicated(name, p)
    for form in READ:
        yield from _predicated("float32", "uint8", src=form)
        yield from _predicated("float32", "uint16", predicate=form)
    for form in ON_CHIP:
        yield from _predicated("bfloat16", "uint8", dst=form)
    for flag in ("True", "False"):
        yield from _predicated("float32", "uint32", reverse=flag)
        yield from _predicated("int16", "uint8", reverse=flag, number=7)
    yield from _predicated("float32", "uint8", number=-2.5)


def _predicated(name, p, src="sbuf", predicate="sbuf", dst="sbuf", reverse=None, number=None):
    x, old = tile("src" + name, name, src), random("old" + name, name, SHAPE)
    where = Tile(random("p" + p, p, SHAPE) % 3 * (random("p" + p, p, SHAPE) % 2), predicate)
    chosen = (where.seen() != 0) ^ (reverse == "True")
    value = x.seen() if number is None else np.full(SHAPE, number).astype(dtype(name))
    arguments = {"dst": Out(SHAPE, name, dst, old), "src": x if number is None else str(number), "predicate": where}
    if reverse:
        arguments["reverse_pred"] = reverse
    yield Form("tensor_copy_predicated", arguments, {"dst": np.where(chosen, value, old)})


def tensor_tensor():
    x, y = {"data1": tile("x", "float32")}, {"data2": tile("y", "float32")}
    for op, f in {**ARITH, **OF_TRN3}.items():
        targets = ("trn3",) if op in OF_TRN3 else TARGETS
        for name in TYPES:
            arguments = {"data1": tile(f"x{op}", name), "data2": tile(f"y{op}", name), "op": f"nl.{op}", "engine": "nisa.engine.vector"}
            yield one("tensor_tensor", f, arguments, name, targets=targets)
        for name in ("float32", "bfloat16", "int32", "uint32"):
            if name == "uint32" and op == "subtract":
                continue  # below zero it wraps around on GpSimd: see exact_integers
            arguments = {"data1": tile(f"x{op}", name), "data2": tile(f"y{op}", name), "op": f"nl.{op}", "engine": "nisa.engine.gpsimd"}
            yield one("tensor_tensor", f, arguments, name, targets=targets)
    for form in READ:
        yield one("tensor_tensor", np.add, {"data1": tile("x", "float32", form), **y, "op": "nl.add"})
        yield one("tensor_tensor", np.subtract, {**x, "data2": tile("y", "bfloat16", form), "op": "nl.subtract"})
    for form in ON_CHIP:
        yield one("tensor_tensor", np.multiply, {**x, **y, "op": "nl.multiply"}, "bfloat16", form)
    for a, b, to in (("float32", "bfloat16", "float16"), ("int8", "float32", "float32"), ("uint8", "int16", "int32"), ("int32", "float32", "bfloat16")):
        yield one("tensor_tensor", np.add, {"data1": tile("x", a), "data2": tile("y", b), "op": "nl.add"}, to)
    exact = {n: random(n, "int32", SHAPE) * 50000017 for n in ("a", "b")}
    for name in ("int32", "uint32"):
        a, b = exact["a"].astype(name), exact["b"].astype(name)
        for op in ("add", "subtract", "multiply"):
            with np.errstate(over="ignore"):
                want = ARITH[op](a, b)
            for engine in ({}, {"engine": "nisa.engine.gpsimd"}):
                yield Form("tensor_tensor", {"dst": Out(SHAPE, name), "data1": Tile(a), "data2": Tile(b), "op": f"nl.{op}", **engine}, {"dst": want})
    for name in INTS:
        a, b = random("a" + name, name, SHAPE), random("b" + name, name, SHAPE)
        for op, f in BITS.items():
            yield Form("tensor_tensor", {"dst": Out(SHAPE, name), "data1": Tile(a), "data2": Tile(b), "op": f"nl.{op}"}, {"dst": f(a, b)})
    for name in ("uint8", "uint16", "uint32"):
        a, b = random("a" + name, name, SHAPE), random("b" + name, name, SHAPE) % 8
        for op, f in SHIFTS.items():
            yield Form("tensor_tensor", {"dst": Out(SHAPE, name), "data1": Tile(a), "data2": Tile(b), "op": f"nl.{op}"}, {"dst": f(a, b)})
    for name in FLOATS[:3]:
        base = tile("base", name, low=0.2, high=3)
        yield one("tensor_tensor", np.power, {"data1": base, "data2": tile("y", name), "op": "nl.power"}, name, error=rounded(name, 1e-5))


def tensor_scalar():
    for op, f in {**ARITH, **OF_TRN3}.items():
        targets = ("trn3",) if op in OF_TRN3 else TARGETS
        for name in TYPES:
            for engine in ("vector", "gpsimd"):
                if engine == "gpsimd" and name in INTS:
                    continue
                fixed = {"op0": f"nl.{op}", "engine": f"nisa.engine.{engine}"}
                x, c = tile(f"x{op}", name), column(f"c{op}")
                yield one("tensor_scalar", lambda x, f=f: f(x, np.float32(1.5)), {"data": x, **fixed, "operand0": "1.5"}, name, targets=targets)
                yield one("tensor_scalar", f, {"data": x, "operand0": c, **fixed}, name, targets=targets)
    x = tile("x", "float32")
    for form in READ:
        yield one("tensor_scalar", np.add, {"data": tile("x", "float32", form), "operand0": column("c"), "op0": "nl.add"})
    for form in ("part", "offset", "stride", "psum"):
        yield one("tensor_scalar", np.subtract, {"data": x, "operand0": column("c", form=form), "op0": "nl.subtract"})
        yield one("tensor_scalar", lambda x, c: (x + np.float32(0.5)) * c,
                  {"data": x, "op0": "nl.add", "operand0": "0.5", "op1": "nl.multiply", "operand1": column("c", form=form)})
    for form in ON_CHIP:
        yield one("tensor_scalar", np.multiply, {"data": x, "operand0": column("c"), "op0": "nl.multiply"}, "bfloat16", form)
    for r0 in (False, True):
        for r1 in (False, True):
            for op0, op1 in (("subtract", "subtract"), ("less", "subtract"), ("multiply", "greater")):
                yield one("tensor_scalar", lambda x, c, a=ARITH[op0], b=ARITH[op1], r0=r0, r1=r1: _turned(b, f32(_turned(a, x, c, r0)), np.float32(2), r1),
                          {"data": x, "operand0": column("c"), "op0": f"nl.{op0}", "reverse0": str(r0), "op1": f"nl.{op1}", "operand1": "2.0", "reverse1": str(r1)})
    for name in FLOATS:
        c, d = column("c"), column("d")
        for arguments, f in (({"op0": "nl.multiply", "operand0": c, "op1": "nl.add", "operand1": d}, lambda x, c, d: x * c + d),
                             ({"op0": "nl.multiply", "operand0": "1.5"}, lambda x: x * np.float32(1.5)), ({"op0": "nl.add", "operand0": d}, np.add)):
            yield one("tensor_scalar", f, {"data": tile("x", name), **arguments, "engine": "nisa.engine.scalar"}, name, error=rounded(name, 1e-6), targets=LATER)
    yield one("tensor_scalar", lambda x: x ** np.float32(-0.5), {"data": tile("x", "float32", low=0.5), "op0": "nl.rsqrt", "engine": "nisa.engine.gpsimd"}, error=1e-6)
    yield one("tensor_scalar", np.abs, {"data": x, "op0": "nl.abs"})
    for op, f in (("square", np.square), ("relu", lambda x: np.maximum(x, 0))):
        yield one("tensor_scalar", f, {"data": x, "op0": f"nl.{op}"}, targets=("trn3",))
    for name in INTS:
        a = random("a" + name, name, SHAPE)
        for op, f in BITS.items():
            yield Form("tensor_scalar", {"dst": Out(SHAPE, name), "data": Tile(a), "op0": f"nl.{op}", "operand0": "5", "op1": "nl.bitwise_or", "operand1": "64"},
                       {"dst": f(a, dtype(name).type(5)) | dtype(name).type(64)})


def _turned(f, x, y, reverse):
    return f(y, x) if reverse else f(x, y)


def elementwise():
    yield from copies()
    yield from predicated()
    yield from tensor_tensor()
    yield from tensor_scalar()
