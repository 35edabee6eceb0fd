"""A small kernel, or a few, for every operation of compiler/trace/ops.def.

    for kernel in operations.kernels(): kernel.name, kernel.op, kernel.source

Each is there in f32 and i32 where NumPy has the operation on both, on 130×7 (two tiles of partitions, the second one short)
and on 256×33.  What operations() finds in the table and FORMS lacks fails the test that uses it.
"""
import collections
import re

from support.paths import ROOT

HEAD = """import numpy as np
import nkipy.distributed.collectives as cc
from nkigen import trace
from nkipy.core import ops


def stored(write, x):
    y = x + 0
    write(y)
    return y


"""
SHAPES = ((130, 7), (256, 33))

Kernel = collections.namedtuple("Kernel", "name op source")


def operations():
    text = (ROOT / "compiler/trace/ops.def").read_text()
    return re.findall(r'^TRACE_OP\(\w+, "([\w.]+)"', text, re.M)


# operation -> expressions over x and y (shape R×C), p (positive), c and d (bool), s (1×C), t (R×1), i (C indices below R)
# a leading "f:" or "i:" restricts an expression to f32 or i32
FORMS = {
    "add": ["x + y", "x + s", "3 - (x + t)"],
    "subtract": ["x - y", "t - x"],
    "multiply": ["x * y", "x * 3"],
    "divide": ["x / p", "x / 4", "f:1.0 / p"],
    "power": ["f:p ** y", "f:x ** 3", "i:x ** 2", "i:2 ** p"],
    "maximum": ["np.maximum(x, y)", "np.maximum(x, 0)"],
    "minimum": ["np.minimum(x, t)"],
    "floor_divide": ["x // p", "i:x // y", "i:x // -3"],
    "remainder": ["x % p", "i:x % y", "i:x % 3"],
    "fmod": ["np.fmod(x, p)"],
    "logaddexp": ["f:np.logaddexp(x, y)"],
    "arctan2": ["f:np.arctan2(x, y)", "f:np.arctan2(x, 0.5)", "f:np.arctan2(np.trunc(x), np.trunc(y))"],
    "bitwise_and": ["i:x & y", "c & d"],
    "bitwise_or": ["i:x | 5", "c | d"],
    "bitwise_xor": ["i:x ^ y", "c ^ d"],
    "left_shift": ["i:x << 3", "i:x << (y & 31)", "i:1 << i"],
    "right_shift": ["i:x >> 2", "i:x >> (y & 31)"],
    "logical_and": ["np.logical_and(x, c)"],
    "logical_or": ["np.logical_or(c, y)"],
    "logical_xor": ["np.logical_xor(x, y)"],
    "equal": ["x == y", "x == 1"],
    "not_equal": ["x != y"],
    "less": ["x < y", "x < t"],
    "less_equal": ["x <= s"],
    "greater": ["x > y"],
    "greater_equal": ["0 >= x"],
    "abs": ["np.abs(x)"],
    "fabs": ["f:np.fabs(x)"],
    "negative": ["-x"],
    "positive": ["+x"],
    "sign": ["np.sign(x)"],
    "exp": ["f:np.exp(x)", "f:np.exp(x * 0.5 - 1.0)"],
    "expm1": ["f:np.expm1(x)"],
    "log": ["f:np.log(p)"],
    "log1p": ["f:np.log1p(p)"],
    "log2": ["f:np.log2(p)"],
    "sqrt": ["f:np.sqrt(p)"],
    "sin": ["f:np.sin(x)"],
    "cos": ["f:np.cos(x)"],
    "tan": ["f:np.tan(x)"],
    "tanh": ["f:np.tanh(x)"],
    "arctan": ["f:np.arctan(x)"],
    "square": ["np.square(x)"],
    "reciprocal": ["f:np.reciprocal(p)"],
    "ceil": ["f:np.ceil(x)"],
    "floor": ["f:np.floor(x)"],
    "trunc": ["f:np.trunc(x)"],
    "rint": ["f:np.rint(x)"],
    "invert": ["i:~x", "~c"],
    "logical_not": ["np.logical_not(x)", "np.logical_not(c)"],
    "isnan": ["f:np.isnan(np.log(x))"],
    "isinf": ["f:np.isinf(1.0 / np.maximum(x, 0.0))"],
    "isfinite": ["f:np.isfinite(1.0 / np.maximum(x, 0.0))"],
    "round": ["f:np.round(x)", "f:np.round(x, 1)"],
    "clip": ["np.clip(x, -1, 2)"],
    "astype": ["x.astype(np.float16)", "x.astype(np.int32)", "i:x.astype(np.int8)", "x.astype(np.bool_)",
               "c.astype(np.float32)", "i:p.astype(np.uint8)", "x.astype(np.float64)", "x.astype(np.int64)"],
    "copy": ["np.copy(x)"],
    "sum": ["np.sum(x, axis=0)", "np.sum(x, axis=1)", "np.sum(x)"],
    "prod": ["f:np.prod(1 + 0.001 * x, axis=0)", "f:np.prod(1 + 0.001 * x, axis=1)", "f:np.prod(1 + 0.0001 * x)",
             "i:np.prod(x, axis=0)", "i:np.prod(x, axis=1)"],
    "max": ["np.max(x, axis=0)", "np.max(x, axis=1)", "x.max()"],
    "min": ["np.min(x, axis=0)", "np.min(x, axis=1)", "x.min()"],
    "mean": ["np.mean(x, axis=0)", "f:np.mean(x, axis=1, keepdims=True)"],
    "var": ["f:np.var(x, axis=0)", "f:np.var(x, axis=1)"],
    "std": ["f:np.std(x, axis=0)"],
    "any": ["np.any(c, axis=0)", "np.any(x > 1, axis=1)"],
    "all": ["np.all(c, axis=0)", "np.all(x > -1, axis=1)", "np.all(c)"],
    "count_nonzero": ["np.count_nonzero(x, axis=0)", "np.count_nonzero(c, axis=1)"],
    "argmax": ["np.argmax(x, axis=0)", "np.argmax(x, axis=1)", "np.argmax(x)", "np.argmax(np.round(x), axis=0)",
               "np.argmax(np.round(x), axis=1)"],
    "argmin": ["np.argmin(x, axis=0)", "np.argmin(x, axis=1)", "np.argmin(np.round(x), axis=0)"],
    "matmul": ["f:np.matmul(x, y.T)", "x.T @ y", "i:x @ y.T + 1"],
    "dot": ["f:np.dot(x.T, y)"],
    "outer": ["np.outer(t, s)"],
    "reshape": ["np.reshape(x, (C, R))", "np.reshape(x, (R // 2, 2 * C)) + 1"],
    "ravel": ["np.ravel(x)"],
    "transpose": ["x.T", "np.transpose(x + y) * 2"],
    "swapaxes": ["np.swapaxes(x, 0, 1)"],
    "moveaxis": ["np.moveaxis(np.reshape(x, (R // 2, 2, C)), 0, -1)"],
    "expand_dims": ["np.expand_dims(x, 1)"],
    "squeeze": ["np.squeeze(s)"],
    "concatenate": ["np.concatenate([x, y], axis=0)", "np.concatenate([x, t], axis=1)"],
    "stack": ["np.stack([x, y])", "np.stack([x, y], axis=-1)"],
    "split": ["np.split(x, 2, axis=0)[1] + 1"],
    "array_split": ["np.array_split(x, 3, axis=1)[2]"],
    "broadcast_to": ["np.broadcast_to(s, (5, C))", "np.broadcast_to(t, (R, 4)) * 2"],
    "repeat": ["np.repeat(x, 2, axis=1)", "np.repeat(t, 3, axis=0)"],
    "where": ["np.where(c, x, y)", "np.where(x > y, x, 0)"],
    "take": ["np.take(x, i, axis=0)", "np.take(x, i % C, axis=1)", "np.take(x + 1, i % C, axis=1) * 2",
             "np.take(np.reshape(x, (2, R // 2, C)), i % (R // 2), axis=1)", "np.take(x, np.reshape(i, (1, C)), axis=0)"],
    "logaddexp2": ["f:np.logaddexp2(x, y)"],
    "hypot": ["f:np.hypot(x, y)"],
    "copysign": ["f:np.copysign(x, y)"],
    "heaviside": ["f:np.heaviside(x, y)"],
    "ldexp": ["f:np.ldexp(x, 3)"],
    "fmax": ["np.fmax(x, y)"],
    "fmin": ["np.fmin(x, y)"],
    "float_power": ["f:np.float_power(p, y)"],
    "isclose": ["f:np.isclose(x, y, atol=1)"],
    "allclose": ["f:np.allclose(x, y, atol=9)"],
    "array_equal": ["i:np.array_equal(x, y)"],
    "array_equiv": ["i:np.array_equiv(x, s)"],
    "exp2": ["f:np.exp2(x)"],
    "log10": ["f:np.log10(p)"],
    "cbrt": ["f:np.cbrt(x)"],
    "sinh": ["f:np.sinh(x)"],
    "cosh": ["f:np.cosh(x)"],
    "arcsin": ["f:np.arcsin(x * 0.25)"],
    "arccos": ["f:np.arccos(x * 0.25)"],
    "arcsinh": ["f:np.arcsinh(x)"],
    "arccosh": ["f:np.arccosh(1 + p)"],
    "arctanh": ["f:np.arctanh(x * 0.25)"],
    "radians": ["f:np.radians(x)"],
    "degrees": ["f:np.degrees(x)"],
    "sinc": ["f:np.sinc(x * 0.25)"],
    "signbit": ["f:np.signbit(x)"],
    "isposinf": ["f:np.isposinf(1.0 / np.maximum(x, 0.0))"],
    "isneginf": ["f:np.isneginf(1.0 / np.maximum(x, 0.0))"],
    "nan_to_num": ["f:np.nan_to_num(1.0 / np.maximum(x, 0.0), posinf=7.0)"],
    "modf": ["f:np.modf(x)[0]"],
    "ptp": ["np.ptp(x, axis=1)"],
    "average": ["f:np.average(x, axis=1)"],
    "nansum": ["f:np.nansum(np.log(x), axis=1)"],
    "nanprod": ["f:np.nanprod(np.log(x), axis=1)"],
    "nanmax": ["f:np.nanmax(np.log(x), axis=1)"],
    "nanmin": ["f:np.nanmin(np.log(x), axis=1)"],
    "nanmean": ["f:np.nanmean(np.log(x), axis=1)"],
    "nanvar": ["f:np.nanvar(np.log(x), axis=1)"],
    "nanstd": ["f:np.nanstd(np.log(x), axis=1)"],
    "cumsum": ["np.cumsum(x, axis=1)"],
    "cumprod": ["i:np.cumprod(x, axis=1)"],
    "nancumsum": ["f:np.nancumsum(np.log(x), axis=1)"],
    "nancumprod": ["f:np.nancumprod(np.log(p), axis=1)"],
    "cumulative_sum": ["np.cumulative_sum(x, axis=1)"],
    "cumulative_prod": ["i:np.cumulative_prod(x, axis=1)"],
    "inner": ["f:np.inner(x, y)"],
    "vdot": ["f:np.vdot(x, y)"],
    "vecdot": ["f:np.vecdot(x, y)"],
    "tensordot": ["f:np.tensordot(x, y, axes=([1], [1]))"],
    "einsum": ["f:np.einsum('ij,kj->ik', x, y)", "f:np.einsum('ij->j', x)"],
    "kron": ["np.kron(s, np.ones((2, 1), np.int32))"],
    "cross": ["f:np.cross(x[:, :3], y[:, 3:6])"],
    "linalg.matrix_power": ["f:np.linalg.matrix_power(0.1 * x[:C], 3)"],
    "linalg.multi_dot": ["f:np.linalg.multi_dot([x.T, y, x.T])"],
    "linalg.norm": ["f:np.linalg.norm(x)", "f:np.linalg.norm(x, 1, axis=1)", "f:np.linalg.norm(x, np.inf)"],
    "linalg.vector_norm": ["f:np.linalg.vector_norm(x, axis=1)"],
    "diagonal": ["np.diagonal(x)"],
    "trace": ["np.trace(x)"],
    "linalg.diagonal": ["np.linalg.diagonal(x)"],
    "linalg.trace": ["np.linalg.trace(x)"],
    "diag": ["np.diag(x)", "np.diag(np.ravel(s))"],
    "diagflat": ["np.diagflat(s)"],
    "tril": ["np.tril(x)"],
    "triu": ["np.triu(x, 1)"],
    "tile": ["np.tile(x, (1, 2))"],
    "flip": ["np.flip(x, 1)"],
    "fliplr": ["np.fliplr(x)"],
    "flipud": ["np.flipud(x)"],
    "roll": ["np.roll(x, 3, axis=1)"],
    "rot90": ["np.rot90(x)"],
    "pad": ["np.pad(x, ((0, 0), (1, 2)))"],
    "diff": ["np.diff(x, axis=1)"],
    "atleast_1d": ["np.atleast_1d(x) + 1"],
    "atleast_2d": ["np.atleast_2d(x) + 1"],
    "atleast_3d": ["np.atleast_3d(x)"],
    "hstack": ["np.hstack([x, y])"],
    "vstack": ["np.vstack([x, y])"],
    "dstack": ["np.dstack([x, y])"],
    "column_stack": ["np.column_stack([x, t])"],
    "hsplit": ["np.hsplit(x, [2])[1]"],
    "vsplit": ["np.vsplit(x, 2)[1]"],
    "dsplit": ["np.dsplit(np.reshape(x, (R // 2, 2, C)), [1])[1]"],
    "unstack": ["np.unstack(x, axis=1)[2]"],
    "append": ["np.append(x, y, axis=1)"],
    "broadcast_arrays": ["np.broadcast_arrays(x, s)[1]"],
    "meshgrid": ["np.meshgrid(s, t)[0]"],
    "rollaxis": ["np.rollaxis(x, 1)"],
    "matrix_transpose": ["np.matrix_transpose(x)"],
    "take_along_axis": ["np.take_along_axis(x, np.reshape(i, (1, C)), axis=0)"],
    "put_along_axis": ["stored(lambda z: np.put_along_axis(z, np.reshape(i, (1, C)), 2, axis=0), x)"],
    "copyto": ["stored(lambda z: np.copyto(z, 3, where=c), x)"],
    "putmask": ["stored(lambda z: np.putmask(z, c, 3), x)"],
    "fill_diagonal": ["stored(lambda z: np.fill_diagonal(z, 3), x)"],
    "select": ["np.select([c, d], [x, y])"],
    "compress": ["np.compress([True, False, True], x, axis=1)"],
    "searchsorted": ["i:np.searchsorted(np.array([-3, 0, 2]), x)"],
    "digitize": ["f:np.digitize(x, [-1.0, 0.5, 2.0])"],
    "isin": ["i:np.isin(x, [1, 3])"],
    "sort": ["np.sort(x, axis=1)"],
    "argsort": ["np.argsort(x, axis=1, kind='stable')"],
    "median": ["f:np.median(x, axis=1)"],
    "topk": ["f:ops.topk(x, 4, axis=1)[0]"],
    "zeros": ["x + ops.zeros((C,), np.int32)"],
    "ones": ["x + ops.ones((C,), np.int32)"],
    "full": ["x + ops.full((R, 1), 3, np.int32)"],
    "constant": ["x + ops.constant(np.ones((1, C), np.int32))"],
    "softmax": ["f:ops.softmax(x)"],
    "rms_norm": ["f:ops.rms_norm(x, s)"],
    "conv2d": ["f:ops.conv2d(np.reshape(x[:128], (1, 2, 64, C)), np.reshape(y[:6, :3], (1, 2, 3, 3)))",
               "f:ops.conv2d(np.reshape(x[:128], (2, 4, 16, C)), np.reshape(y[:24, :2], (8, 2, 3, 1)), stride=(2, 1), padding=1, "
               "groups=2)",
               "f:ops.conv2d(np.reshape(x[:128], (8, 1, 16, C)), np.reshape(y[:6, :3], (3, 1, 2, 3)), dilation=(3, 1))"],
    "conv3d": ["f:ops.conv3d(np.reshape(x[:128], (1, 2, 8, 8, C)), np.reshape(y[:18, :3], (1, 2, 3, 3, 3)))"],
    "all_gather": ["cc.all_gather(x, 1, [[0, 1]])"],
    "all_reduce": ["cc.all_reduce(x, [[0, 1]])"],
    "reduce_scatter": ["cc.reduce_scatter(x, 0, [[0, 1]])"],
    "all_to_all": ["cc.all_to_all(x, 0, 0, [[0, 1]])", "cc.all_to_all(x, -2, 1, [[0, 1]])"],
    "zeros_like": ["np.zeros_like(x)"],
    "ones_like": ["np.ones_like(x) + x"],
    "empty_like": ["np.zeros_like(np.empty_like(x))"],
    "full_like": ["np.full_like(x, 3)"],
    "shape": ["x + x.shape[0]"],
    "ndim": ["x * x.ndim"],
    "size": ["x - np.size(x)"],
}


def _parameters(dtype, r, c):
    return (f'("x", ({r}, {c}), "{dtype}"), ("y", ({r}, {c}), "{dtype}"), ("p", ({r}, {c}), "{dtype}"), '
            f'("c", ({r}, {c}), "bool"), ("d", ({r}, {c}), "bool"), ("s", (1, {c}), "{dtype}"), '
            f'("t", ({r}, 1), "{dtype}"), ("i", ({c},), "i32")')


def kernels(shapes=SHAPES):
    """Every form; parameters that it does not use are left out."""
    made = []
    for op, forms in FORMS.items():
        for n, form in enumerate(forms):
            for r, c in shapes:
                only, text = re.match(r"(?:([fi]):)?(.*)$", form).groups()
                for dtype in ("f32", "i32"):
                    if only and only != dtype[0] or (dtype == "i32" and not re.search(r"\b[xypst]\b", text)):
                        continue
                    specs = {name: (shape, t) for name, shape, t in eval(_parameters(dtype, r, c))}
                    used = [v for v in specs if re.search(rf"\b{v}\b", text)]
                    name = f"{op.replace(chr(46), chr(95))}_{n}_{dtype}_{r}x{c}"
                    body = re.sub(r"\bR\b", str(r), re.sub(r"\bC\b", str(c), text))
                    made.append(Kernel(name, op, f"@trace(input_specs={[specs[v] for v in used]!r})\n"
                                                 f"def {name}({', '.join(used)}):\n    return {body}\n"))
    return made


def inputs(kernel, rng):
    """Values for a compiled kernel's parameters: ties in x, no zero in y and p, indices in range."""
    import numpy as np

    made = []
    for tensor in kernel["inputs"]:
        name, shape, t = tensor["name"], tensor["shape"], tensor["dtype"]
        if t == "bool":
            made.append(rng.integers(0, 2, shape).astype(bool))
        elif name == "i":
            made.append(rng.integers(-5, shape[0], shape).astype(np.int32))
        elif t == "int32":
            x = rng.integers(1 if name in "yp" else -7, 8, shape)
            made.append((x * (rng.choice([-1, 1], shape) if name == "y" else 1)).astype(np.int32))
        else:
            x = rng.uniform(0.25, 3, shape) * (1 if name == "p" else rng.choice([-1, 1], shape))
            made.append(x.astype(np.float32))
    return made
