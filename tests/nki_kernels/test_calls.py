"""Every call of nki.isa that is compiled, over types, engines and operand forms: its value against a NumPy model written
here, and every stage of its program against that value on three targets."""
import math

import numpy as np
import pytest

import nkipy  # noqa: F401  (it adds nki where the vendor's package is not installed)
import ml_dtypes
import nki
import nki.isa as nisa
import nki.language as nl
from support import compiler, nki_checks
from support import nki_more_calls
from support.nki_kernels import HEAD
from support.paths import ROOT

BF16 = np.dtype(ml_dtypes.bfloat16)
FLOATS = {"float32": np.float32, "bfloat16": BF16, "float16": np.float16}
INTS = {"int32": np.int32, "int16": np.int16, "int8": np.int8, "uint8": np.uint8, "uint16": np.uint16, "uint32": np.uint32}
ALL = {**FLOATS, **INTS}

ARITH = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
         "equal": np.equal, "not_equal": np.not_equal, "greater": np.greater, "greater_equal": np.greater_equal,
         "less": np.less, "less_equal": np.less_equal, "logical_and": np.logical_and, "logical_or": np.logical_or,
         "logical_xor": np.logical_xor}
BITS = {"bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor}
FUNCTIONS = {"copy": lambda x: x, "exp": np.exp, "log": lambda x: np.log(np.abs(x) + 1), "sqrt": np.sqrt, "square": np.square, "abs": np.abs,
             "tanh": np.tanh, "sin": np.sin, "sign": np.sign, "arctan": np.arctan}


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def normal(x):
    """The distribution function of the standard normal distribution."""
    return np.vectorize(math.erfc)(-x / math.sqrt(2)) / 2


def derivative(f, h=1e-5):
    return lambda x: (f(x + h) - f(x - h)) / (2 * h)


def gelu(x):
    return x * normal(x)


def silu(x):
    return x * sigmoid(x)


# of float64
SMOOTH = {"sigmoid": sigmoid, "relu": lambda x: np.where(x > 0, x, 0), "reciprocal": lambda x: 1 / x, "gelu": gelu, "gelu_dx": derivative(gelu),
          "gelu_apprx_tanh": lambda x: x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3))),
          "gelu_apprx_sigmoid": lambda x: silu(1.702 * x) / 1.702, "gelu_apprx_sigmoid_dx": derivative(lambda x: silu(1.702 * x) / 1.702),
          "silu": silu, "silu_dx": derivative(silu), "softplus": lambda x: np.log1p(np.exp(x)), "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
          "erf_dx": derivative(np.vectorize(math.erf))}


def data(rng, dtype, shape, small=False):
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        low = 0 if dtype.kind == "u" else -100
        return rng.integers(0 if small else low, 5 if small else 100, shape).astype(dtype)
    return rng.uniform(-3, 3, shape).astype(np.float32).astype(dtype)


def as_float(x):
    return np.asarray(x).astype(np.float32)


def stored(x, dtype):
    """float32 as an element: integers are rounded to nearest even and saturated."""
    dtype = np.dtype(dtype)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return np.clip(np.rint(np.asarray(x, np.float64)), limits.min, limits.max).astype(dtype)
    return np.asarray(x).astype(np.float32).astype(dtype)


class Case:
    """One kernel: the text of its body, where x, y, … are inputs in SBUF and `out` is what is stored, its model, and the
    machines that have its calls."""

    def __init__(self, name, body, inputs, out, want, error=0.0, targets=("trn2", "trn1", "trn3")):
        self.name, self.body, self.inputs, self.out, self.want, self.error = name, body, inputs, out, want, error
        self.targets = targets

    def source(self, number):
        params = ", ".join(f"{n}_: nl.tensor[nl.{a.dtype.name}, {a.shape}]" for n, a in self.inputs.items())
        loads = "".join(f"    {n} = nl.load({n}_)\n" for n in self.inputs)
        shape, dtype = self.out
        body = "".join(f"    {line}\n" for line in self.body.splitlines())
        return (f"\n@nki.jit\ndef k{number}({params}):\n    result = nl.ndarray({shape}, nl.{dtype}, buffer=nl.shared_hbm)\n{loads}"
                f"    out = nl.ndarray({shape}, nl.{dtype})\n{body}    nl.store(result, out)\n    return result\n")

    def run(self):
        names = {"nki": nki, "nisa": nisa, "nl": nl, "np": np}
        exec(self.source(0), names)
        return nki.simulate(names["k0"])(*self.inputs.values())


def close(got, want, error):
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    return got.shape == want.shape and np.allclose(got, want, rtol=error, atol=error, equal_nan=True)


def cases(rng):
    out = []

    def add(name, body, inputs, shape, dtype, want, error=0.0, *targets):
        out.append(Case(name, body, inputs, (shape, np.dtype(dtype).name), want, error, *targets))

    for name, t in ALL.items():
        x = data(rng, t, (64, 24))
        add(f"dma_copy {name}", "nisa.dma_copy(out, x)", {"x": x}, (64, 24), t, x)
        add(f"tensor_copy {name}", "nisa.tensor_copy(out, x)", {"x": x}, (64, 24), t, x)
        for other in ("float32", "bfloat16", "int8", "int32"):
            if other != name:
                add(f"tensor_copy {name} to {other}", "nisa.tensor_copy(dst=out, src=x)", {"x": x}, (64, 24), ALL[other],
                    stored(as_float(x), ALL[other]))
        value = 3 if np.dtype(t).kind in "iu" else -1.5
        add(f"memset {name}", f"nisa.memset(out, {value})", {"x": x}, (64, 24), t, np.full((64, 24), value).astype(t))
    x = np.tile(np.array([-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 126.5, 127.5, 255.5, 3e9, -3e9, np.nan], np.float32), (16, 1))
    ties = [-2, -2, 0, 0, 2, 2, 126, 128, 256, np.inf, -np.inf, 0]
    for t, low, high in (("int8", -128, 127), ("uint8", 0, 255), ("int16", -2**15, 2**15 - 1), ("int32", -2**31, 2**31 - 1)):
        want = np.tile(np.clip(ties, low, high), (16, 1)).astype(t)
        for call in ("tensor_copy(out, x)", "tensor_copy(out, x, engine=nisa.scalar_engine)", "activation(out, nl.copy, x)",
                     "tensor_scalar(out, x, nl.add, 0.0)", "dma_copy(out, x)"):
            add(f"ties to even, {t}: {call}", f"nisa.{call}", {"x": x}, (16, 12), t, want, 0.0, ("trn2", "trn3"))
    x = data(rng, np.float32, (128, 12))
    add("tensor_copy on Scalar", "nisa.tensor_copy(out, x, engine=nisa.scalar_engine)", {"x": x}, (128, 12), "float32", x)
    add("tensor_copy on GpSimd", "nisa.tensor_copy(out, x, engine=nisa.engine.gpsimd)", {"x": x}, (128, 12), "float32", x)
    for op, f in ARITH.items():
        for t in ("float32", "bfloat16", "int8"):
            x, y = data(rng, ALL[t], (32, 20), True), data(rng, ALL[t], (32, 20), True)
            want = stored(f(as_float(x), as_float(y)), ALL[t])
            add(f"tensor_tensor {op} {t}", f"nisa.tensor_tensor(out, x, y, op=nl.{op})", {"x": x, "y": y}, (32, 20), t, want)
    for op in ("add", "subtract", "multiply"):
        x, y = (rng.integers(-2**30, 2**30, (16, 9)).astype(np.int32) for _ in range(2))
        with np.errstate(over="ignore"):
            add(f"tensor_tensor {op} of exact integers", f"nisa.tensor_tensor(out, x, y, nl.{op})", {"x": x, "y": y}, (16, 9), "int32",
                ARITH[op](x, y))
    x, y = np.abs(data(rng, np.float32, (16, 9))) + 0.1, data(rng, np.float32, (16, 9))
    add("tensor_tensor power", "nisa.tensor_tensor(out, x, y, nl.power)", {"x": x, "y": y}, (16, 9), "float32", x ** y, 1e-5)
    for op, f in BITS.items():
        for t in INTS:
            x, y = data(rng, INTS[t], (32, 8)), data(rng, INTS[t], (32, 8))
            add(f"tensor_tensor {op} {t}", f"nisa.tensor_tensor(out, x, y, nl.{op})", {"x": x, "y": y}, (32, 8), t, f(x, y))
    x, y = data(rng, np.uint32, (8, 8)), data(rng, np.uint32, (8, 8), True)
    add("left_shift", "nisa.tensor_tensor(out, x, y, nl.left_shift)", {"x": x, "y": y}, (8, 8), "uint32", x << y)
    add("right_shift", "nisa.tensor_tensor(out, x, y, nl.right_shift)", {"x": x, "y": y}, (8, 8), "uint32", x >> y)
    x, y = data(rng, np.float32, (128, 30)), data(rng, np.float32, (128, 1))
    for op in ("add", "subtract", "multiply", "maximum", "less"):
        add(f"tensor_scalar {op}", f"nisa.tensor_scalar(out, x, nl.{op}, 1.5)", {"x": x}, (128, 30), "float32", as_float(ARITH[op](x, np.float32(1.5))))
        add(f"tensor_scalar {op} column", f"nisa.tensor_scalar(out, x, nl.{op}, y)", {"x": x, "y": y}, (128, 30), "float32", as_float(ARITH[op](x, y)))
    add("tensor_scalar reversed", "nisa.tensor_scalar(out, x, nl.subtract, 1.5, reverse0=True)", {"x": x}, (128, 30), "float32", np.float32(1.5) - x)
    add("tensor_scalar twice", "nisa.tensor_scalar(out, x, nl.multiply, y, op1=nl.add, operand1=2.0)", {"x": x, "y": y}, (128, 30), "float32", x * y + 2, 1e-6)
    add("tensor_scalar twice reversed", "nisa.tensor_scalar(out, x, nl.subtract, y, True, nl.subtract, 2.0, True)", {"x": x, "y": y}, (128, 30),
        "float32", 2 - (y - x), 1e-6)
    i = data(rng, np.int32, (64, 8))
    add("tensor_scalar bits", "nisa.tensor_scalar(out, x, nl.bitwise_and, 6, op1=nl.bitwise_or, operand1=1)", {"x": i}, (64, 8), "int32", (i & 6) | 1)
    x = data(rng, np.float32, (64, 4, 6))
    for op, f in {"add": np.sum, "maximum": np.max, "minimum": np.min, "multiply": np.prod}.items():
        add(f"tensor_reduce {op}", f"nisa.tensor_reduce(out, nl.{op}, x, axis=2)", {"x": x}, (64, 4), "float32", f(x, axis=2), 1e-5)
        add(f"tensor_reduce {op} of two axes", f"nisa.tensor_reduce(out, nl.{op}, x, axis=(1, 2))", {"x": x}, (64, 1), "float32",
            f(x, axis=(1, 2))[:, None], 1e-4)
    for op, f in {"add": np.sum, "maximum": np.max, "minimum": np.min}.items():
        add(f"tensor_reduce {op} negated", f"nisa.tensor_reduce(out, nl.{op}, x, axis=-1, negate=True)", {"x": x}, (64, 4), "float32", -f(x, axis=2), 1e-5)
    x = data(rng, np.float32, (4, 12))
    add("tensor_reduce of single elements with a step", "nisa.tensor_reduce(out, nl.add, x[:, 3:9:2, None], axis=-1)", {"x": x}, (4, 3), "float32", x[:, 3:9:2])
    i = data(rng, np.int32, (16, 12))
    add("tensor_reduce bits", "nisa.tensor_reduce(out, nl.bitwise_or, x, axis=1)", {"x": i}, (16, 1), "int32", np.bitwise_or.reduce(i, axis=1)[:, None])
    x = data(rng, np.float32, (128, 10))
    add("tensor_partition_reduce add", "nisa.tensor_partition_reduce(out, nl.add, x)", {"x": x}, (1, 10), "float32", x.sum(0, keepdims=True), 1e-4)
    add("tensor_partition_reduce max", "nisa.tensor_partition_reduce(out, nl.max, x)", {"x": x}, (1, 10), "float32", x.max(0, keepdims=True))
    for op, f in FUNCTIONS.items():
        x = np.abs(data(rng, np.float32, (48, 14))) if op in ("sqrt",) else data(rng, np.float32, (48, 14))
        if op == "log":
            x = np.abs(x) + 1
            add("activation log", "nisa.activation(out, nl.log, x)", {"x": x}, (48, 14), "float32", np.log(x), 1e-5)
            continue
        add(f"activation {op}", f"nisa.activation(out, nl.{op}, x)", {"x": x}, (48, 14), "float32", f(x), 1e-5)
        add(f"activation {op} bfloat16", f"nisa.activation(dst=out, op=nl.{op}, data=x)", {"x": x.astype(BF16)}, (48, 14), "bfloat16",
            stored(f(as_float(x.astype(BF16))), BF16), 0.01)
    for op, f in SMOOTH.items():
        x = data(rng, np.float32, (48, 14))
        x[:, :4] *= 5
        add(f"activation {op}", f"nisa.activation(out, nl.{op}, x)", {"x": x}, (48, 14), "float32", f(x.astype(np.float64)), 1e-5)
        add(f"nl.{op} bfloat16", f"nisa.tensor_copy(out, nl.{op}(x))", {"x": x.astype(BF16)}, (48, 14), "bfloat16",
            stored(f(as_float(x.astype(BF16)).astype(np.float64)), BF16), 0.01)
    x, y = np.abs(data(rng, np.float32, (64, 14))) + 0.5, data(rng, np.float32, (64, 1))
    add("activation rsqrt", "nisa.activation(out, nl.rsqrt, x)", {"x": x}, (64, 14), "float32", x ** -0.5, 1e-5)
    add("activation with scale and bias", "nisa.activation(out, nl.tanh, x, bias=y, scale=0.5)", {"x": x, "y": y}, (64, 14), "float32",
        np.tanh(x * np.float32(0.5) + y), 1e-5)
    add("activation with a column as scale", "nisa.activation(out, nl.exp, x, scale=y)", {"x": x, "y": y}, (64, 14), "float32", np.exp(x * y), 1e-5)
    add("activation_reduce", "e = nl.ndarray((64, 14), nl.float32)\nnisa.memset(out, 9.0)\nnisa.activation_reduce(e, nl.exp, x, nl.add, out)", {"x": x}, (64, 1),
        "float32", np.exp(x).sum(1, keepdims=True), 1e-5)
    add("reciprocal", "nisa.reciprocal(out, x)", {"x": x}, (64, 14), "float32", 1 / x, 1e-6)
    p = data(rng, np.uint8, (64, 14), True) % 2
    add("tensor_copy_predicated", "nisa.tensor_copy(out, x)\nnisa.tensor_copy_predicated(out, -7.0, p)", {"x": x, "p": p}, (64, 14), "float32", np.where(p, -7, x))
    add("tensor_copy_predicated reversed", "nisa.memset(out, 0.0)\nnisa.tensor_copy_predicated(out, x, p, reverse_pred=True)", {"x": x, "p": p}, (64, 14),
        "float32", np.where(p, 0, x))
    add("iota", "nisa.iota(out, [[10, 3], [1, 4]], offset=5, channel_multiplier=100)", {"x": x}, (64, 12), "int32",
        (5 + 100 * np.arange(64)[:, None, None] + 10 * np.arange(3)[:, None] + np.arange(4)).reshape(64, 12))
    add("iota of a part of several dimensions", "i = nl.ndarray((64, 3, 5), nl.int32)\nnisa.iota(i, [[2, 15]], offset=-4)\nnisa.tensor_copy(out, i)", {"x": x},
        (64, 15), "int32", np.tile(2 * np.arange(15) - 4, (64, 1)))
    for t in ("float32", "bfloat16", "int32", "float16"):
        x = data(rng, ALL[t], (96, 48))
        add(f"dma_transpose {t}", "nisa.dma_transpose(out, x)", {"x": x}, (48, 96), t, x.T)
        add(f"nl.transpose {t}", "nisa.tensor_copy(out, nl.transpose(x))", {"x": x}, (48, 96), t, x.T)
    x = data(rng, np.float32, (48, 96))
    add("dma_transpose from HBM", "nisa.dma_transpose(dst=out, src=x_, axes=(1, 0))", {"x": x}, (96, 48), "float32", x.T)
    add("nl.load_transpose2d", "nisa.tensor_copy(out, nl.load_transpose2d(x_))", {"x": x}, (96, 48), "float32", x.T)
    for t in FLOATS:
        x = data(rng, ALL[t], (64, 128))
        body = f"p = nl.ndarray((128, 64), nl.{t}, buffer=nl.psum)\nnisa.nc_transpose(p, x)\nnisa.tensor_copy(out, p)"
        add(f"nc_transpose {t}", body, {"x": x}, (128, 64), t, x.T)
    add("nc_transpose twice", "p = nl.ndarray((128, 64), nl.float32, buffer=nl.psum)\nnisa.nc_transpose(p, x)\nnisa.tensor_copy(out, p)\n"
        "y = nl.multiply(x, 2.0)\nnisa.nc_transpose(p, y)\nnisa.tensor_tensor(out, out, p, op=nl.add)", {"x": x.astype(np.float32)}, (128, 64), "float32",
        3 * x.astype(np.float32).T)
    x, y, z = data(rng, np.float32, (64, 20)), data(rng, np.float32, (64, 1)), data(rng, np.float32, (64, 20))
    stt = "nisa.scalar_tensor_tensor(out, x, nl.{}, {}, nl.{}, z{})"
    add("scalar_tensor_tensor", stt.format("multiply", 1.5, "add", ""), {"x": x, "z": z}, (64, 20), "float32", x * np.float32(1.5) + z, 1e-6)
    add("scalar_tensor_tensor column", stt.format("subtract", "y", "multiply", ""), {"x": x, "y": y, "z": z}, (64, 20), "float32", (x - y) * z, 1e-6)
    add("scalar_tensor_tensor reversed", stt.format("subtract", "y", "subtract", ", True, True"), {"x": x, "y": y, "z": z}, (64, 20), "float32", z - (y - x), 1e-6)
    add("scalar_tensor_tensor in place", "nisa.scalar_tensor_tensor(dst=x, data=x, op0=nl.add, operand0=y, op1=nl.maximum, operand1=x)\nnisa.tensor_copy(out, x)",
        {"x": x.astype(BF16), "y": y}, (64, 20), "bfloat16", stored(np.maximum(as_float(x.astype(BF16)) + y, as_float(x.astype(BF16))), BF16), 0.01)
    for op, f in {"add": np.sum, "maximum": np.max, "minimum": np.min, "multiply": np.prod}.items():
        for t in ("float32", "bfloat16"):
            body = f"d = nl.ndarray((64, 4, 5), nl.{t})\nnisa.tensor_scalar_reduce(d, x, nl.multiply, y, nl.{op}, out)"
            add(f"tensor_scalar_reduce {op} {t}", body, {"x": x.reshape(64, 4, 5), "y": y}, (64, 1), "float32", f(x * y, axis=1, keepdims=True), 1e-4)
    add("tensor_scalar_reduce without a result", "nisa.tensor_scalar_reduce(out, x, nl.add, 2.0, nl.add)", {"x": x}, (64, 20), "float32", x + 2)
    p = data(rng, np.uint8, (64, 20), True) % 2
    add("select_reduce", "nisa.select_reduce(out, p, x, z)", {"p": p, "x": x, "z": z}, (64, 20), "float32", np.where(p, x, z))
    add("select_reduce of a number", "nisa.select_reduce(x, p, x, -9.0)\nnisa.tensor_copy(out, x)", {"p": p, "x": x}, (64, 20), "float32", np.where(p, x, -9))
    add("select_reduce in place", "nisa.select_reduce(z, p, x, z, reverse_pred=True)\nnisa.tensor_copy(out, z)", {"p": p, "x": x, "z": z}, (64, 20), "float32",
        np.where(p, z, x))
    for t in ("float32", "bfloat16"):
        body = f"d = nl.ndarray((64, 20), nl.{t})\nnisa.select_reduce(d, p, x, z, out, nisa.reduce_cmd.reset_reduce, nl.maximum)"
        add(f"select_reduce with its maximum {t}", body, {"p": p, "x": x, "z": z}, (64, 1), "float32", np.where(p, x, z).max(1, keepdims=True))
    x = data(rng, np.float32, (64, 20))
    row, column = np.arange(64)[:, None], np.arange(20)
    add("affine_select", "nisa.affine_select(out, [[-1, 20]], 1, x, -1e9, cmp_op=nl.greater_equal)", {"x": x}, (64, 20), "float32",
        np.where(row - column >= 0, x, -1e9).astype(np.float32))
    add("affine_select of two dimensions", "nisa.affine_select(dst=out, pattern=[[7, 4], [-1, 5]], offset=-3, channel_multiplier=-1, on_true_tile=x, "
        "on_false_value=2.5, cmp_op=nl.not_equal)", {"x": x.astype(BF16)}, (64, 20), "bfloat16",
        np.where(7 * (column // 5) - column % 5 - row - 3 != 0, as_float(x.astype(BF16)), 2.5).astype(BF16))
    add("affine_select of an equal index", "nisa.affine_select(out, [[1, 20]], -1, x, 0.0)", {"x": x}, (64, 20), "float32", np.where(row == column, x, 0))
    functions(rng, add)
    along_partitions(rng, add)
    nki_more_calls.add_all(rng, add)
    for t in ("float32", "bfloat16"):
        l, r = data(rng, ALL[t], (96, 40)), data(rng, ALL[t], (96, 200))
        want = as_float(l).T @ as_float(r)
        body = "acc = nl.ndarray((40, 200), nl.float32, buffer=nl.psum)\n{}\nnisa.tensor_copy(out, acc)"
        add(f"nc_matmul {t}", body.format("nisa.nc_matmul(acc, l, r)"), {"l": l, "r": r}, (40, 200), "float32", want, 1e-4)
        add(f"nc_matmul {t} twice", body.format("nisa.nc_matmul(acc, l, r)\nnisa.nc_matmul(acc, l, r)"), {"l": l, "r": r}, (40, 200), "float32", 2 * want, 1e-4)
        add(f"nc_matmul {t} anew", body.format("nisa.nc_matmul(acc, l, r)\nnisa.nc_matmul(acc, l, r, accumulate=False)"), {"l": l, "r": r}, (40, 200),
            "float32", want, 1e-4)
        add(f"nc_matmul {t} onto zeros", body.format("nisa.memset(acc, 0.0)\nnisa.nc_matmul(acc, l, r, accumulate=True)"), {"l": l, "r": r}, (40, 200),
            "float32", want, 1e-4)
    return out


def functions(rng, add):
    """Functions of nl that consist of several calls."""
    x, y = data(rng, np.float32, (64, 24)), data(rng, np.float32, (64, 24))
    x[:, 0] = 0
    y[np.abs(y) < 0.1] = 1

    def one(text, want, error=1e-5, inputs=None, dtype="float32"):
        add(text, f"nisa.tensor_copy(out, {text})", inputs or {"x": x, "y": y}, want.shape, dtype, want.astype(dtype), error)

    one("nl.divide(x, y)", x / y)
    one("nl.divide(2.0, y)", 2 / y)
    one("nl.divide(x, y[:, 1:2])", x / y[:, 1:2])
    one("nl.divide(x, 8.0)", x / 8)
    one("nl.where(x, y, 3.0)", np.where(x, y, 3), 0)
    one("nl.where(nl.less(x, y), x, y)", np.where(x < y, x, y), 0)
    one("nl.logical_not(x)", x == 0, 0)
    one("nl.invert(x)", ~np.int32(x * 9), 0, {"x": np.int32(x * 9)}, "int32")
    for f in (np.floor, np.ceil, np.trunc):
        one(f"nl.{f.__name__}(x)", f(x * 9), 0, {"x": x * 9})
    for f in (np.sin, np.cos, np.tan):
        one(f"nl.{f.__name__}(x)", f((x * 20).astype(np.float64)), 1e-3 if f is np.tan else 1e-5, {"x": x * 20})
    one("nl.all(x, axis=1)", np.all(x, axis=1, keepdims=True), 0)
    one("nl.all(x, axis=-1, keepdims=True)", np.all(x, axis=1, keepdims=True), 0)
    one("nl.var(x, axis=1)", x.var(axis=1, keepdims=True))
    x3 = x.reshape(64, 4, 6)
    one("nl.var(x, axis=2)", x3.var(axis=2), 1e-5, {"x": x3})
    one("nl.rms_norm(x, y, axis=1, n=24)", x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-6) * y)
    one("nl.shared_identity_matrix(64, nl.float32)", np.eye(64), 0)
    one("nl.shared_identity_matrix(32)", np.eye(32), 0, dtype="uint8")


def scanned(f, x, y, r):
    out = np.empty_like(x)
    for k in range(x.shape[1]):
        r = out[:, k:k + 1] = f(x[:, k:k + 1], y[:, k:k + 1], r)
    return out


def first_places(x, values):
    """Where each value of a row is, each place for one of them; the largest integer if it is nowhere."""
    out = np.full(values.shape, 2**32 - 1, np.uint32)
    for row, want, to in zip(x, values, out):
        taken = set()
        for k, v in enumerate(want):
            free = [i for i, w in enumerate(row) if w == v and i not in taken]
            if free:
                to[k] = free[0]
                taken.add(free[0])
    return out


def along_partitions(rng, add):
    x, y, c = data(rng, np.float32, (64, 20)), data(rng, np.float32, (64, 20)), data(rng, np.float32, (64, 1))
    scan = "nisa.tensor_tensor_scan(out, x, y, {}, nl.{}, nl.{})"
    half = (x / 4).astype(np.float32)
    add("tensor_tensor_scan", scan.format("0.0", "multiply", "add"), {"x": half, "y": y}, (64, 20), "float32", scanned(lambda a, b, r: a * r + b, half, y, np.zeros((64, 1))), 1e-5)
    add("tensor_tensor_scan from a column", scan.format("c", "maximum", "subtract"), {"x": x, "y": y, "c": c}, (64, 20), "float32",
        scanned(lambda a, b, r: np.maximum(a, r) - b, x, y, c), 1e-5)
    add("tensor_tensor_scan reversed", "nisa.tensor_tensor_scan(dst=out, data0=x, data1=y, initial=1.0, op0=nl.subtract, op1=nl.subtract, reverse0=True, reverse1=True)",
        {"x": x, "y": y}, (64, 20), "float32", scanned(lambda a, b, r: b - (r - a), x, y, np.ones((64, 1))), 1e-4)
    cumulative = "nisa.tensor_scalar_cumulative(out, x, nl.multiply, nl.{}, 0.5{})"
    for op, f in {"add": np.cumsum, "multiply": np.cumprod, "maximum": np.maximum.accumulate, "minimum": np.minimum.accumulate}.items():
        add(f"tensor_scalar_cumulative {op}", cumulative.format(op, ""), {"x": x}, (64, 20), "float32", f(x / 2, axis=1), 1e-5)
    add("tensor_scalar_cumulative subtract", cumulative.format("subtract", ", reduce_cmd=nisa.reduce_cmd.reset_reduce"), {"x": x}, (64, 20), "float32",
        -np.cumsum(x / 2, axis=1), 1e-5)
    add("tensor_scalar_cumulative from a number", cumulative.format("add", ", 3.0, nisa.reduce_cmd.load_reduce"), {"x": x}, (64, 20), "float32",
        3 + np.cumsum(x / 2, axis=1), 1e-5)
    x = data(rng, np.float32, (64, 51))
    parts = [np.stack([np.full(64, h.shape[1]), h.mean(1), h.var(1) * h.shape[1]], 1) for h in (x[:, ::2], x[:, 1::2])]
    add("bn_stats", "nisa.bn_stats(out, x)", {"x": x}, (64, 6), "float32", np.hstack(parts), 1e-5)
    add("bn_aggr", "s = nl.ndarray((64, 2, 6), nl.float32)\nnisa.bn_stats(s[:, 0], x[:, 0:20])\nnisa.bn_stats(dst=s[:, 1], data=x[:, 20:51])\nnisa.bn_aggr(out, s)",
        {"x": x}, (64, 2), "float32", np.stack([x.mean(1), x.var(1)], 1), 1e-5)
    for t in ("float32", "bfloat16"):
        x = rng.integers(-30, 30, (64, 40)).astype(ALL[t])
        v = rng.integers(-30, 30, (64, 8)).astype(ALL[t])
        v[:, 3] = v[:, 1]
        add(f"max8 {t}", "nisa.max8(out, x)", {"x": x}, (64, 8), t, -np.sort(-as_float(x), axis=1)[:, :8])
        places = first_places(x, v)
        add(f"nc_find_index8 {t}", "nisa.nc_find_index8(out, x, v)", {"x": x, "v": v}, (64, 8), "uint32", places)
        add(f"nc_find_index8 {t} to uint16", "nisa.nc_find_index8(dst=out, data=x, vals=v)", {"x": x, "v": v}, (64, 8), "uint16", places.astype(np.uint16))
        want = as_float(x)
        back = first_places(x, v[:, ::-1])[:, ::-1]
        for row, at in zip(want, back):
            row[at[at < 40]] = -99
        add(f"nc_match_replace8 {t}", "nisa.nc_match_replace8(out, x, v, -99.0)", {"x": x, "v": v}, (64, 40), t, want)
        add(f"nc_match_replace8 {t} with its places", "r = nl.ndarray((64, 40), nl.float32)\nnisa.nc_match_replace8(r, x, v, imm=-99.0, dst_idx=out)", {"x": x, "v": v},
            (64, 8), "uint32", back)


def all_cases():
    return cases(np.random.default_rng(20261123))


@pytest.mark.parametrize("case", all_cases(), ids=lambda c: c.name)
def test_the_evaluation_of_a_call_is_the_models(case, monkeypatch):
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", case.targets[0])
    got = case.run()
    assert got.dtype.name == case.out[1]
    assert close(got, case.want, case.error), (got, case.want)


CHUNK = 60


@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
@pytest.mark.parametrize("chunk", range(-(-len(all_cases()) // CHUNK)))
def test_every_stage_of_each_call_computes_its_evaluation(target, chunk):
    some = [c for c in all_cases()[chunk * CHUNK:(chunk + 1) * CHUNK] if target in c.targets and not (target == "trn1" and "bias" in c.name)]
    if not some:
        return
    result = compiler.compile(HEAD + "".join(c.source(i) for i, c in enumerate(some)), "--target", target, check=True)
    assert result["status"] == "ok", result["diagnostics"]
    for case, kernel in zip(some, result["kernels"]):
        assert nki_checks.all_pass(kernel), (case.name, [s["check"] for s in kernel["stages"]])


def test_every_call_that_is_compiled_is_tested():
    text = "".join(c.body for c in all_cases())
    import _nkx
    text += (ROOT / "tests/nki_kernels/test_registers.py").read_text()
    missing = [name for name in _nkx.nki_isa() if f"nisa.{name}(" not in text]
    assert not missing
