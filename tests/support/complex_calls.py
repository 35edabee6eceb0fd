"""Random calls on complex numbers, and kernels of them.

    for call in calls(random.Random(3), 40): source([call])

EXPRESSIONS are over x and y (complex), r (float32), i (integers) and b (bool), all R×C, and T, a constant complex table of
this shape.  FOURIER are the transforms of np.fft, with their axes, lengths and norms drawn.
"""
import collections
import re

import numpy as np

Call = collections.namedtuple("Call", "expression arrays")

EXPRESSIONS = """
x + y|x - y|x * y|x / y|x * 2|2 * x|x + 1j|x * (2 - 1j)|x / 3|1 / x|x ** 2|x ** -3|x ** 0|x ** y|x ** 0.5|x == y|x != y|x == x
x + r|r * x|r + 1j|x * b + i|i * 1j|b * 1j|T + x|T[-1] * r|-x|+x|abs(x)|np.sign(x)|np.exp(x)|np.log(x)|np.log2(x)|np.log10(x)
np.exp2(x)|np.sqrt(x)|np.sqrt(-np.abs(x) + 0j)|np.sin(x)|np.cos(x)|np.tan(x)|np.tanh(x)|np.tanh(40 * x)|np.sinh(x)|np.cosh(x)|np.square(x)
np.reciprocal(x)|np.logical_not(x * b)|np.logical_and(x, b * y)|np.isnan(x / b)|np.isinf(x)|np.isfinite(x)|np.round(x)|x.round(1)
x.astype(np.complex128)|r.astype(complex)|i.astype(np.complex64)|(x * b).astype(bool)|np.copy(x)|x.real * x.imag|np.real(x)|np.imag(r)
np.conj(x) * x|x.conj()|np.angle(x)|np.angle(x, deg=True)|np.iscomplex(x)|np.isreal(r + 0j)|np.sum(x)|np.sum(x, axis=0)
x.sum(-1, keepdims=True)|np.sum(r, dtype=complex)|np.sum(x, initial=2j)|np.prod(x)|np.prod(x, axis=1)|np.prod(x, axis=0, keepdims=True)
np.mean(x)|x.mean(axis=1)|np.var(x, axis=0)|np.std(x, axis=1)|np.any(x * b)|np.all(x * b, axis=0)|np.count_nonzero(x * b)
np.cumsum(x, axis=1)|np.cumprod(x, axis=0)|x @ y.T|np.matmul(x, r.T)|np.dot(x, y.T)|np.outer(x, y)|np.inner(x, y)|np.vdot(x, y)
np.vecdot(x, y)|np.tensordot(x, y, axes=([1], [1]))|np.einsum('ij,kj->ik', x, y)|np.einsum('ij->ji', x)|np.einsum('ij,ij->i', x, y)
np.kron(x, y)|np.linalg.matrix_power(x @ y.T, 3)|np.linalg.norm(x)|np.linalg.norm(x, axis=1)|np.linalg.norm(x, ord=1)
np.linalg.multi_dot([x, y.T, x])|np.diagonal(x)|np.trace(x)|np.diag(x[0])|np.tril(x)|np.triu(x, 1)|x.reshape(-1)|x.T
np.swapaxes(x, 0, 1)|np.concatenate([x, y])|np.concatenate([x, r], axis=1)|np.stack([x, i], 1)|np.broadcast_to(x[0], (3,) + x[0].shape)
np.repeat(x, 2, axis=0)|np.tile(x, (2, 1))|np.flip(x, 1)|np.roll(x, 1)|np.rot90(x)|np.pad(x, 1)|np.pad(x, 1, mode='edge')|np.diff(x)
np.where(b, x, y)|np.where(b, x, 1j)|np.where(b, r, x)|np.take(x, [-1, 0], axis=0)|x[-1]|x[:, ::2]|x[::-1]|x[i % x.shape[0], 0]
np.take_along_axis(x, i % x.shape[0], axis=0)|np.select([r > 0, r < -1], [x, y], 1j)|np.zeros_like(x)|np.full_like(x, 1 + 2j)
np.isclose(x, x + 1e-7)|np.isclose(x, y)|np.array_equal(x, x)|np.fft.fftfreq(x.shape[1]) * x|np.fft.irfft(np.fft.rfft(r))
stored(x, lambda z: z.__setitem__(0, z[-1] * 1j))|stored(x, lambda z: z.__setitem__((slice(None), slice(None, None, 2)), 1 - 1j))
stored(x, lambda z: z.__setitem__(b, 2j))|stored(x, lambda z: z.__iadd__(r))|stored(x, lambda z: z.__imul__(1j))
filled(x, r)|np.multiply(r, 1j, out=np.zeros(r.shape, complex))
""".replace("\n", "|").strip("|").split("|")

TRANSFORMS = ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft"]
OVER_AXES = ["fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn", "rfftn", "irfftn"]
OF_REALS = ("rfft", "ihfft")

HEAD = """import numpy as np

def stored(x, write):
    z = x + 0
    write(z)
    return z

def filled(x, r):
    z = np.zeros(x.shape, np.complex64)
    z[0] = x[0]
    z[-1, -1] = 2 - 1j
    z[:, 0] += r[:, 0]
    return z

"""


def draw(rng, shape, dtype):
    """Values away from 0, so that quotients and logarithms are well conditioned."""
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype == "int32":
        return rng.integers(-5, 6, shape).astype(np.int32)
    if dtype == "float32":
        return (rng.uniform(0.3, 2, shape) * rng.choice([-1, 1], shape)).astype(np.float32)
    return (rng.uniform(0.3, 1.5, shape) * np.exp(1j * rng.uniform(-np.pi, np.pi, shape))).astype(np.complex64)


def arrays(expression, shape, rng):
    kinds = {"x": "complex64", "y": "complex64", "r": "float32", "i": "int32", "b": "bool"}
    return {n: draw(rng, shape, t) for n, t in kinds.items() if re.search(rf"\b{n}\b", expression.replace("lambda z", ""))}


def every_expression(shape, seed=0):
    rng = np.random.default_rng(seed)
    table = f"(np.arange({shape[0] * shape[1]}).reshape{shape} * np.complex64(0.5 + 0.25j))"
    return [Call(re.sub(r"(?<!\.)\bT\b", table, e), arrays(e, shape, rng)) for e in EXPRESSIONS]


def _norm(random):
    return random.choice(["", ", norm='ortho'", ", norm='forward'", ", norm='backward'"])


def fourier(random, lengths=(1, 2, 3, 4, 5, 7, 8, 12, 30)):
    """A transform of an array of a drawn shape; of every length that it needs."""
    name = random.choice(TRANSFORMS + OVER_AXES)
    rank = random.randint(1 if name in TRANSFORMS else 2, 4)
    shape = tuple(random.choice([1, 2, 3, 5, 6]) if random.randint(0, 2) else random.choice(lengths) for _ in range(rank))
    if "irfft" in name or name == "hfft":  # the default length of the last axis is 2 (n - 1)
        shape = tuple(max(n, 2) for n in shape)
    if random.randint(0, 15) == 0 and name in TRANSFORMS:
        shape = (0,) + shape
    kind = "float32" if name.startswith(OF_REALS) else random.choice(["complex64", "complex64", "float32", "int32"])
    v = {"complex64": "x", "float32": "r", "int32": "i"}[kind]
    if name in TRANSFORMS:
        axis = random.randrange(len(shape)) if shape[0] else -1
        more = random.choice(["", f", n={random.choice(lengths)}"]) + random.choice(["", f", axis={axis}"])
    else:
        axes = tuple(random.sample(range(rank), random.randint(1, min(rank, 3))))
        more = random.choice(["", f", axes={axes}", f", axes={axes}, s={tuple(random.choice(lengths) for _ in axes)}"])
    rng = np.random.default_rng(random.randrange(1 << 30))
    return Call(f"np.fft.{name}({v}{more}{_norm(random)})", {v: draw(rng, shape, kind)})


def calls(random, n):
    """Drawn expressions of drawn shapes, and transforms."""
    made = []
    for _ in range(n):
        if random.randint(0, 1):
            made.append(fourier(random))
            continue
        shape = (random.choice([1, 2, 3, 5, 8]), random.choice([1, 2, 3, 4, 7]))
        made.append(random.choice(every_expression(shape, random.randrange(1 << 30))))
    return made


def source(group):
    """A kernel for each call, and the inputs of each."""
    text = "from nkigen import trace\n" + HEAD
    for k, c in enumerate(group):
        specs = [(a.shape, a.dtype.name) for a in c.arrays.values()]
        text += f"@trace(input_specs={specs!r})\ndef k{k}({', '.join(c.arrays)}):\n    return {c.expression}\n\n"
    return text


def expected(call):
    space = {}
    exec(HEAD, space)
    with np.errstate(all="ignore"):
        return np.asarray(eval(call.expression, space | {n: a.copy() for n, a in call.arrays.items()}))
