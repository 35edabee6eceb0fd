"""Arrays for the reference run of a check: they round where the trace rounds.

An operation on float16, bfloat16 or fp8 arrays computes in float32 and is rounded to the type that the trace gives it;
NumPy itself would return float32 for `x + 1.0`.  The elements have their narrow type, so that views, indexing and
`x.dtype` are NumPy's own.  Integers have 32 bits where the trace gives them 32 bits and NumPy 64, as in sums, so that they
wrap around alike.

In a perturbed run, every result that was rounded moves by about one unit in the last place, and the terms of sums and
products move as well.  The difference from the plain run tells how much each element of an output depends on rounding
and on the order of sums.  Results that are exact, such as comparisons, selections and small whole numbers, stay.
"""
import ml_dtypes
import numpy as np

_EIGHT = tuple(np.dtype(t) for t in (ml_dtypes.float8_e4m3, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2))
_HALF = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))
_NARROW = _EIGHT + _HALF
_F32 = np.dtype(np.float32)
_F64 = np.dtype(np.float64)

# Functions of one element whose result needs no rounding.
_EXACT_UFUNCS = {
    "negative", "positive", "absolute", "fabs", "maximum", "minimum", "fmax", "fmin", "sign", "floor", "ceil", "rint",
    "trunc", "copysign", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "isnan", "isinf",
    "isfinite", "conjugate", "logical_and", "logical_or", "logical_not", "logical_xor", "signbit",
}
# The compiler multiplies by a reciprocal, so a result may be rounded although the quotient is exact.
_NEVER_EXACT = {"divide", "true_divide", "reciprocal", "power", "float_power"}
# Functions that move elements, or choose among them.
_MOVING = {
    "where", "concatenate", "stack", "hstack", "vstack", "dstack", "column_stack", "reshape", "transpose", "permute_dims",
    "squeeze", "expand_dims", "broadcast_to", "broadcast_arrays", "swapaxes", "moveaxis", "rollaxis", "ravel", "take",
    "take_along_axis", "repeat", "tile", "roll", "flip", "fliplr", "flipud", "rot90", "pad", "split", "array_split",
    "hsplit", "vsplit", "dsplit", "sort", "argsort", "argmax", "argmin", "max", "min", "amax", "amin", "copy", "tril",
    "triu", "diag", "diagonal", "diagflat", "choose", "select", "compress", "extract", "delete", "insert", "append",
    "clip", "full_like", "zeros_like", "ones_like", "empty_like", "atleast_1d", "atleast_2d", "atleast_3d", "searchsorted",
    "digitize", "nonzero", "flatnonzero", "argwhere", "count_nonzero", "any", "all", "array_equal", "isclose", "allclose",
    "partition", "argpartition", "unique", "resize", "round", "around", "fix", "meshgrid", "real", "nan_to_num", "block", "imag",
    "fftshift", "ifftshift", "iscomplex", "isreal",
}
# Functions that ask for types and shapes, or that write into an argument: they take the arrays as they are.
_NATIVE = {
    "shape", "ndim", "size", "result_type", "can_cast", "min_scalar_type", "common_type", "iscomplexobj", "isrealobj",
    "copyto", "put", "place", "putmask", "put_along_axis", "fill_diagonal", "may_share_memory", "shares_memory",
    "array_repr", "array_str", "array2string", "save", "savez", "ndindex", "broadcast_shapes", "einsum_path",
}

_noise = None  # the generator of a perturbed run
_terms = 4  # by how many units in the last place of float32 terms and results move


def _is_float(d):
    return d.kind == "f" or d in _NARROW


def _is_inexact(d):
    return d.kind == "c" or _is_float(d)


def _promote(x, y):
    """The type that the trace gives to an operation on two floats."""
    if x is None or x == y:
        return y
    if x in _EIGHT:
        return y
    if y in _EIGHT:
        return x
    return _F32


def _leaves(x):
    if isinstance(x, (list, tuple)):
        for y in x:
            yield from _leaves(y)
    elif isinstance(x, (np.ndarray, np.generic)):
        yield x


def _float_type(*args):
    """The type of the floats of an operation on these, None when none of them has floats; complex numbers have two float32."""
    t = None
    for x in _leaves(args):
        if _is_inexact(x.dtype):
            t = _F32 if x.dtype.kind == "c" else _promote(t, _traced(x.dtype))
            if x.dtype.kind == "c":
                break
    return t


def _traced(d):
    """The trace has no 64-bit types."""
    return _F32 if d == _F64 else d


def _map(x, f):
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*(_map(y, f) for y in x))
    if isinstance(x, (list, tuple)):
        return type(x)(_map(y, f) for y in x)
    return f(x) if isinstance(x, (np.ndarray, np.generic)) else x


def _bare(x):
    return x.view(np.ndarray) if isinstance(x, Rounded) else x


def _wide(x):
    """A plain array in which NumPy can compute: float32 for narrower floats."""
    x = _bare(x)
    return x.astype(np.float32) if x.dtype in _NARROW else x


def _double(x):
    x = _bare(x)
    return x.astype(np.complex128) if x.dtype.kind == "c" else x.astype(np.float64) if _is_float(x.dtype) else x


def _random(shape):
    return _noise.random(shape, dtype=np.float32) * np.float32(2) - np.float32(1)


def _step(t):
    """How far a rounded result of this type moves, relative to it."""
    return _terms * 2.0**-24 if t == _F32 else 2.0**-53 if t == _F64 else float(ml_dtypes.finfo(t).eps) / 2


def _length(inputs):
    """The number of terms of a sum, as far as the shapes tell."""
    return max((x.shape[-1] for x in _leaves(inputs) if x.ndim), default=1)


def _shake_terms(x, scale):
    x = _wide(x)
    if x.dtype != _F32 and x.dtype != _F64 and x.dtype.kind != "c":
        return x
    most = np.float32(scale * _terms * 2.0**-24)
    factor = _noise.random(x.shape, dtype=np.float32)  # in place: matrices of weights are large
    factor *= 2 * most
    factor += 1 - most
    return np.multiply(factor, x, out=factor) if x.dtype == _F32 else factor * x


def _shake_result(r, t, exact, scale=1.0):
    if r.dtype.kind == "c":  # each part moves by the magnitude: products and rotations mix them
        moved = r + np.abs(r) * (_random(np.shape(r)) + 1j * _random(np.shape(r))) * (scale * _step(t))
        return np.where(exact, r, moved)
    moved = r * (1 + _random(np.shape(r)) * (scale * _step(t)))
    return np.where(exact, r, moved)


def _is_whole(r):
    return (r == np.rint(r)) & (np.abs(r) < 2**24)


def _give(x, t):
    """A result in the type that the trace gives it."""
    if not isinstance(x, (np.ndarray, np.generic)):
        return x
    if x.dtype.kind == "c":
        return np.asarray(x).astype(np.complex64, copy=False).view(Rounded)
    if _is_float(x.dtype):
        return np.asarray(x).astype(t, copy=False).view(Rounded)
    return np.asarray(x).view(Rounded) if x.dtype.kind in "iu" else x


_SUMS = {"sum", "prod", "cumsum", "cumprod", "add", "multiply"}  # the last two reduce and accumulate


def _narrow_sum(name, r, dtype, inputs):
    """NumPy sums integers of 32 bits and fewer in 64 bits, the trace in 32."""
    if name not in _SUMS or dtype is not None or not isinstance(r, (np.ndarray, np.generic)) or r.dtype.itemsize != 8:
        return r
    if r.dtype.kind not in "iu" or any(x.dtype.kind in "iu" and x.dtype.itemsize == 8 for x in _leaves(inputs)):
        return r
    return np.asarray(r).astype(f"{r.dtype.kind}4")


def _elementwise(ufunc, inputs, kwargs, t):
    name = ufunc.__name__
    if _noise is None or name in _EXACT_UFUNCS or t is None:
        return ufunc(*_map(inputs, _wide), **kwargs)
    wide = _map(inputs, _double)
    if name in ("floor_divide", "remainder", "mod"):
        q = np.true_divide(*wide)
        q = np.floor(_shake_result(q, t, _is_whole(q) & (name == "remainder"), 2))
        return q if name == "floor_divide" else wide[0] - q * wide[1]
    r = ufunc(*wide, **kwargs)

    def shake(y):
        if not _is_inexact(y.dtype):
            return y
        exact = y.astype(np.complex64 if y.dtype.kind == "c" else t).astype(y.dtype) == y
        never = name in _NEVER_EXACT
        return _shake_result(y, t, exact & ((y == 0) | (y == 1)) if never else exact, 2 if never else 1)

    return _map(r, shake)


def _summing(f, inputs, kwargs, t):
    """Sums, products and everything else that combines elements, in any order."""
    plain = f(*_map(inputs, _wide), **kwargs)
    if _noise is None or t is None:
        return plain
    # one term after the other, errors of partial sums add up to the number of terms, moved terms to its root
    scale = max(1.0, _length(inputs) ** 0.5 / 8)
    moved = f(*_map(inputs, lambda x: _shake_terms(x, scale)), **kwargs)

    def shake(y, z):
        if not isinstance(y, (np.ndarray, np.generic)) or not _is_inexact(y.dtype):
            return y
        return np.where(_is_whole(y), y, _shake_result(z, t, False))

    if isinstance(plain, (list, tuple)):
        return type(plain)(shake(y, z) for y, z in zip(plain, moved))
    return shake(plain, moved)


class Rounded(np.ndarray):
    def __array_ufunc__(self, ufunc, method, *inputs, out=None, where=True, **kwargs):
        dtype = kwargs.pop("dtype", None)
        t = _traced(np.dtype(dtype)) if dtype is not None else _float_type(*inputs)
        if t is not None and not _is_float(t):
            kwargs["dtype"] = dtype
        if where is not True:
            kwargs["where"] = _bare(where) if isinstance(where, np.ndarray) else where
        if method == "at":
            target = _wide(inputs[0]).copy()
            ufunc.at(target, *_map(inputs[1:], _wide))
            inputs[0].view(np.ndarray)[...] = target.astype(inputs[0].dtype)
            return None
        if where is not True and method == "__call__":
            base = [_wide(o).copy() for o in out] if out else None
            r = ufunc(*_map(inputs, _wide), **kwargs, **({"out": tuple(base)} if base else {}))
        elif method == "__call__" and ufunc.signature is None:
            r = _elementwise(ufunc, inputs, kwargs, t)
        elif ufunc.__name__ in _EXACT_UFUNCS:
            r = getattr(ufunc, method)(*_map(inputs, _wide), **kwargs)
        else:
            f = ufunc if method == "__call__" else getattr(ufunc, method)
            r = _summing(f, inputs, kwargs, t)
        if out:
            parts = r if isinstance(r, tuple) else (r,)
            for o, y in zip(out, parts):
                o.view(np.ndarray)[...] = np.asarray(y).astype(o.dtype)
            return out if isinstance(r, tuple) else out[0]
        if method in ("reduce", "accumulate"):
            r = _narrow_sum(ufunc.__name__, r, dtype, inputs)
        return _map(r, lambda y: _give(y, t if t is not None else _traced(y.dtype)))

    def __array_function__(self, func, types, args, kwargs):
        name = func.__name__
        if name in _NATIVE:
            return func(*_map(args, _bare), **{k: _map(v, _bare) for k, v in kwargs.items()})
        dtype = kwargs.get("dtype")
        t = _traced(np.dtype(dtype)) if dtype is not None else _float_type(args, tuple(kwargs.values()))
        if func.__module__ == "numpy.fft" and name not in _MOVING:
            t = _F32  # the trace transforms float32
        if dtype is not None and t in _NARROW:
            kwargs = {**kwargs, "dtype": np.float32}
        out = kwargs.get("out")
        if out is not None:
            kwargs = {k: v for k, v in kwargs.items() if k != "out"}
        kwargs = {k: _map(v, _wide) for k, v in kwargs.items()}
        if name in _MOVING or t is None:
            r = func(*_map(args, _wide), **kwargs)
        else:
            r = _summing(func, args, kwargs, t)
        if out is not None:
            out.view(np.ndarray)[...] = np.asarray(r).astype(out.dtype)
            return out
        r = _narrow_sum(name, r, dtype, args)
        return _map(r, lambda y: _give(y, t if t is not None and _is_float(t) else _traced(y.dtype)))


def _method(name):
    function = getattr(np, name)

    def method(self, *args, **kwargs):
        return function(self, *args, **kwargs)

    method.__name__ = name
    return method


for _name in ("mean", "std", "var", "dot", "clip", "round", "cumsum", "cumprod"):
    setattr(Rounded, _name, _method(_name))


def wrap(x):
    return x.view(Rounded) if _is_inexact(x.dtype) or x.dtype.kind in "iu" else x


def begin(seed):
    """Begins a run: perturbed if the seed is not 0."""
    global _noise
    _noise = np.random.Generator(np.random.SFC64(seed)) if seed else None


