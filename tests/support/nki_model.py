"""What a random NKI kernel means: a model of tensors and calls in NumPy, written from the public description of NKI.

It evaluates the generator's program (support/random_nki.py), never our record or our instructions.  Operands are converted to
float32, computed in float32, and the result is converted to the type of its destination.  A program whose meaning is not certain,
or differs between a sum in one order and another, is Unsuitable: the generator draws another.
"""
import math

import ml_dtypes
import numpy as np

DTYPES = {"float32": np.dtype(np.float32), "float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16),
          **{name: np.dtype(name) for name in ("int32", "int16", "int8", "uint32", "uint16", "uint8")}}
LARGEST = 2.0 ** 14  # of all values: far from what any of the float types overflows at


class Unsuitable(Exception):
    """The generator draws another statement."""


def is_float(dtype):
    return dtype.name not in DTYPES or dtype.kind not in "iu"


class Tensor:
    """Storage: `of` is an array of the tensor's shape.  Views are NumPy's views of it."""

    def __init__(self, shape, dtype, buffer):
        self.buffer, self.dtype = buffer, DTYPES[dtype]
        self.of = np.full(shape, np.nan, self.dtype) if is_float(self.dtype) else np.full(shape, 77, self.dtype)
        self.is_set = np.zeros(shape, bool)  # elements that were written
        self.products = np.zeros(shape, bool)  # elements of PSUM that a product wrote last
        self.rough = False  # another order of a sum, or another exp, gives other last bits for some inputs
        self.exact = True  # for these inputs, each order of each sum gives these bits


class Operand:
    """A view: the tensor and the same part of its arrays."""

    def __init__(self, tensor, f):
        self.tensor, self.of, self.is_set, self.products = tensor, f(tensor.of), f(tensor.is_set), f(tensor.products)

    def rows(self):
        """(partitions, elements)"""
        return self.of.reshape(self.of.shape[0], -1)


def indexed(a, key, on_chip):
    """a[key] with the dimensions that NKI keeps: partitions, and at least two on chip, one in HBM."""
    key = list(key if isinstance(key, tuple) else (key,))
    named = sum(k is not None and k is not Ellipsis for k in key)
    if Ellipsis not in key:
        key.append(Ellipsis)
    at = key.index(Ellipsis)
    key[at:at + 1] = [slice(None)] * (a.ndim - named)
    drop, full, d, rank = [], [], 0, sum(k is None for k in key) + a.ndim
    for n, k in enumerate(key):
        if isinstance(k, (int, np.integer)):
            if not -a.shape[d] <= k < a.shape[d]:
                raise Unsuitable("an index outside")
            full.append(slice(k % a.shape[d], k % a.shape[d] + 1))
            if not (on_chip and d == 0):
                drop.append(n)
        else:
            full.append(k)
        d += k is not None
    drop = drop[:max(0, rank - (2 if on_chip else 1))]
    part = a[tuple(full)]
    if 0 in part.shape:
        raise Unsuitable("an empty slice")
    return np.squeeze(part, tuple(drop)) if drop else part


# ---- numbers --------------------------------------------------------------------------------------------------------


def erf(x):
    return np.vectorize(math.erf, otypes=[np.float64])(x)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


ARITH = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum}
COMPARE = {"equal": np.equal, "not_equal": np.not_equal, "greater": np.greater, "greater_equal": np.greater_equal,
           "less": np.less, "less_equal": np.less_equal, "logical_and": np.logical_and, "logical_or": np.logical_or,
           "logical_xor": np.logical_xor}
BITS = {"bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor}
# f64 to f64, where it may be used, whether the bits are certain
FUNCTIONS = {
    "copy": (lambda x: x, None, True), "square": (np.square, None, True), "abs": (np.abs, None, True),
    "relu": (lambda x: np.maximum(x, 0), None, True), "exp": (np.exp, (-20, 6), False), "tanh": (np.tanh, None, False),
    "sigmoid": (sigmoid, (-50, 50), False), "sin": (np.sin, (-3.1, 3.1), False), "erf": (erf, None, False),
    "arctan": (np.arctan, None, False), "silu": (lambda x: x * sigmoid(x), (-50, 50), False),
    "gelu": (lambda x: x * (1 + erf(x / math.sqrt(2))) / 2, None, False),
    "softplus": (lambda x: np.logaddexp(0, x), (-50, 50), False), "sqrt": (np.sqrt, (0.01, 1e4), False),
    "rsqrt": (lambda x: 1 / np.sqrt(x), (0.01, 1e4), False), "log": (np.log, (0.01, 1e4), False),
    "reciprocal": (lambda x: 1 / x, (0.05, 1e4), False)}
STARTS = {"add": 0.0, "subtract": 0.0, "multiply": 1.0, "maximum": -np.inf, "minimum": np.inf}


def is_certain(x):
    """Sums of these numbers are the same in each order: whole multiples of 2^-8 that are small enough together."""
    scaled = np.asarray(x, np.float64) * 256
    return bool((scaled == np.rint(scaled)).all() and np.abs(scaled).sum() < 2 ** 24)


class Model:
    """The memory of one run.  `names` are Python's: tensors, lists of them, rounds of loops, numbers."""

    def __init__(self, inputs):
        self.names = {}
        for name, array in inputs.items():
            t = Tensor(array.shape, array.dtype.name, "hbm")
            t.of[...], t.is_set[...] = array, True
            self.names[name] = t

    def value(self, text):
        return eval(text, {"__builtins__": {"float": float, "min": min, "max": max}}, self.names)  # our own text

    def view(self, v):
        tensor = self.value(v.base)
        on_chip = tensor.buffer != "hbm"

        def apply(a):
            for step in v.steps:
                a = step(self, a, on_chip)
            return a

        return Operand(tensor, apply)

    # ---- reading

    def raw(self, v):
        """The elements as they are stored, (partitions, elements)."""
        o = self.view(v)
        if not o.is_set.all():
            raise Unsuitable("it is not set")
        return o.rows()

    def f32(self, v, sharp=False):
        """As float32, (partitions, elements); sharp: the next bit of it matters."""
        o = self.view(v)
        x = self.raw(v).astype(np.float32)
        if sharp and (o.tensor.rough or not o.tensor.exact):
            raise Unsuitable("its last bits are not certain")
        if not (np.abs(x) <= LARGEST).all():
            raise Unsuitable("it is too large")
        return x

    def number(self, n, sharp=False):
        """A Python expression, or a column of one element for each partition."""
        return np.float32(self.value(n)) if isinstance(n, str) else self.f32(n, sharp)

    # ---- writing

    def put(self, dst, x, reads, rough=False, exact=True, bits=False, products=False):
        """Writes x, (partitions, elements): numbers of float32, or bits of dst's type.  `reads` are the views that it comes from."""
        o = self.view(dst)
        sources = [self.view(v) for v in reads if not isinstance(v, str)]
        for s in sources:
            same = s.of.__array_interface__ == o.of.__array_interface__
            if np.shares_memory(s.of, o.of) and not same:
                raise Unsuitable("it is read while it is written")
        if not bits:
            x = self.stored(x, o.tensor.dtype)
        x = np.broadcast_to(x, (o.of.shape[0], o.of.size // o.of.shape[0]))
        o.of[...] = x.reshape(o.of.shape)
        o.is_set[...] = True
        o.products[...] = products
        t = o.tensor
        t.rough = t.rough or rough or any(s.tensor.rough for s in sources)
        t.exact = t.exact and exact and all(s.tensor.exact for s in sources)

    def stored(self, x, dtype):
        x = np.asarray(x, np.float32)
        if not (np.abs(x) <= LARGEST).all():
            raise Unsuitable("it is too large")
        if is_float(dtype):
            return x.astype(dtype)
        limits = np.iinfo(dtype)  # to the nearest, ties to even, saturating
        return np.clip(np.rint(x.astype(np.float64)), limits.min, limits.max).astype(dtype)

    # ---- calls

    def operator(self, op, x, y):
        return {**ARITH, **COMPARE}[op](x, y).astype(np.float32)

    def copy(self, dst, src):
        x = self.raw(src)
        same = self.view(src).tensor.dtype == self.view(dst).tensor.dtype
        self.put(dst, x if same else self.f32(src), [src], bits=same)

    def transfer(self, dst, src):
        """A DMA: elements in their order, whatever the shapes are."""
        x, o = self.view(src), self.view(dst)
        if not x.is_set.all():
            raise Unsuitable("it is not set")
        same = x.tensor.dtype == o.tensor.dtype
        values = x.of.reshape(o.of.shape[0], -1)
        self.put(dst, values if same else values.astype(np.float32), [src], bits=same)

    def product(self, dst, stationary, moving, accumulate):
        x, y = self.f32(stationary), self.f32(moving)
        o = self.view(dst)
        adds = o.products.reshape(o.of.shape[0], -1) if accumulate is None else np.full((o.of.shape[0], 1), accumulate)
        if accumulate and not o.is_set.all():
            raise Unsuitable("nothing is there yet")
        with np.errstate(all="ignore"):
            total = np.where(adds, o.rows(), 0).astype(np.float64) + x.T.astype(np.float64) @ y
        certain = is_certain(np.abs(x).T.astype(np.float64) @ np.abs(y)) and is_certain(total)
        self.put(dst, total.astype(np.float32), [stationary, moving], rough=True, exact=certain, products=True)

    def reduced(self, op, x):
        """Over the last axis, and whether the order can matter: (values, rough, exact)."""
        if op == "add":
            return x.sum(-1, dtype=np.float64).astype(np.float32), True, is_certain(x)
        return {"maximum": np.max, "minimum": np.min}[op](x, -1), False, True
