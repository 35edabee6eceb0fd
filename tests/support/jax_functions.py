"""Ordinary functions as people write them with JAX, by name: (function, shapes or example arguments).

As a program (PYTHONPATH=tests python3 -m support.jax_functions), writes jax_hlo/NAME.hlo (text, with metadata) for each, and jax_hlo/expected.npz with inputs and what XLA
computes from them.
"""

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax, nn

from support.paths import ROOT, TESTS

F, I, B, U, C = jnp.float32, jnp.int32, jnp.bool_, jnp.uint32, jnp.complex64
FUNCTIONS = {}
DIRECTORY = TESTS / "conformance/jax_hlo"


def example(*shapes):
    """shapes: (shape, dtype) or a shape of f32."""

    def add(f):
        specs = [jax.ShapeDtypeStruct(*s) if s and isinstance(s[0], tuple) else jax.ShapeDtypeStruct(s, F) for s in shapes]
        FUNCTIONS[f.__name__] = (f, specs)
        return f

    return add


# --- networks ---------------------------------------------------------------------------------------------------


@example((8, 16), (16, 32), (32,), (32, 4), (4,))
def mlp(x, w1, b1, w2, b2):
    return jnp.tanh(x @ w1 + b1) @ w2 + b2


@example((8, 16), (16, 32), (32, 16))
def mlp_gelu(x, w1, w2):
    return nn.gelu(x @ w1) @ w2


@example((8, 16), (16, 32), (32, 16))
def mlp_erf_gelu(x, w1, w2):
    return nn.gelu(x @ w1, approximate=False) @ w2


@example((8, 16), (16, 32), (16, 32), (32, 16))
def swiglu(x, gate, up, down):
    return (nn.silu(x @ gate) * (x @ up)) @ down


@example((8, 16), (16, 4), ((8,), I))
def loss_and_gradient(x, w, labels):
    def loss(w):
        logp = nn.log_softmax(x @ w)
        return -jnp.mean(jnp.take_along_axis(logp, (labels % 4)[:, None], 1))

    return jax.value_and_grad(loss)(w)


@example((8, 16), (16, 32), (32, 4))
def mlp_gradient(x, w1, w2):
    return jax.grad(lambda a, b: jnp.sum(nn.relu(x @ a) @ b), (0, 1))(w1, w2)


@example((2, 4, 8, 16), (2, 4, 8, 16), (2, 4, 8, 16))
def attention(q, k, v):
    s = jnp.einsum("bhqd,bhkd->bhqk", q, k) / 4
    s = jnp.where(jnp.tril(jnp.ones((8, 8), bool)), s, -1e9)
    return jnp.einsum("bhqk,bhkd->bhqd", nn.softmax(s), v)


@example((2, 8, 4, 16), (2, 8, 2, 16), (2, 8, 2, 16))
def grouped_attention(q, k, v):
    return nn.dot_product_attention(q, jnp.repeat(k, 2, 2), jnp.repeat(v, 2, 2))


@example((8, 32), (32,))
def layer_norm(x, scale):
    y = x - x.mean(-1, keepdims=True)
    return y * lax.rsqrt(jnp.mean(y * y, -1, keepdims=True) + 1e-5) * scale


@example((8, 32), (32,))
def rms_norm(x, scale):
    return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6) * scale


@example((8, 32))
def softmax(x):
    return nn.softmax(x)


@example((8, 32))
def log_sum_exp(x):
    return nn.logsumexp(x, -1)


@example((16, 8), ((5,), I))
def embedding(table, ids):
    return table[ids]


@example((16, 8), ((5,), I))
def embedding_gradient(table, ids):
    return jax.grad(lambda t: jnp.sum(jnp.sin(t[ids])))(table)


@example((4, 8, 16))
def rope(x):
    angle = jnp.arange(8)[:, None] / 10000 ** (jnp.arange(8) / 8)
    a, b = x[..., :8], x[..., 8:]
    return jnp.concatenate([a * jnp.cos(angle) - b * jnp.sin(angle), a * jnp.sin(angle) + b * jnp.cos(angle)], -1)


@example((6, 8), (8, 4))
def moe_gate(x, w):
    p, i = lax.top_k(nn.softmax(x @ w), 2)
    return p / p.sum(-1, keepdims=True), i


@example((6, 5))
def one_hot_argmax(x):
    return nn.one_hot(jnp.argmax(x, -1), 5)


# --- convolution and windows ------------------------------------------------------------------------------------


@example((1, 8, 8, 3), (3, 3, 3, 4))
def convolution(x, w):
    return lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))


@example((1, 3, 9, 8), (4, 3, 3, 2))
def convolution_strided(x, w):
    return lax.conv_general_dilated(x, w, (2, 1), ((1, 0), (2, 1)), rhs_dilation=(1, 2))


@example((1, 8, 8, 4), (3, 3, 1, 8))
def convolution_depthwise(x, w):
    numbers = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, w, (1, 1), "VALID", dimension_numbers=numbers, feature_group_count=4)


@example((1, 6, 6, 4), (3, 3, 4, 3))
def convolution_transposed(x, w):
    return lax.conv_transpose(x, w, (2, 2), "SAME")


@example((1, 8, 8, 3), (3, 3, 3, 4))
def convolution_gradients(x, w):
    numbers = ("NHWC", "HWIO", "NHWC")
    f = lambda x, w: jnp.sum(jnp.sin(lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=numbers)))
    return jax.grad(f, (0, 1))(x, w)


@example((2, 6, 8), (3, 1, 8))
def convolution_depthwise_gradient(x, w):
    numbers = ("NWC", "WIO", "NWC")
    f = lambda w: jnp.sum(jnp.sin(lax.conv_general_dilated(x, w, (1,), "SAME", dimension_numbers=numbers, feature_group_count=8)))
    return jax.grad(f)(w)


@example((1, 2, 4, 4, 4), (3, 2, 2, 2, 2))
def convolution_3d(x, w):
    return lax.conv(x, w, (1, 1, 1), "SAME")


@example((1, 8, 8, 3))
def max_pool(x):
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


@example((1, 8, 8, 3))
def average_pool(x):
    return lax.reduce_window(x, 0.0, lax.add, (1, 3, 3, 1), (1, 1, 1, 1), "SAME") / 9


@example((1, 8, 8, 3))
def max_pool_gradient(x):
    pool = lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
    return jax.grad(lambda x: jnp.sum(pool(x) ** 2))(x)


# --- loops ------------------------------------------------------------------------------------------------------


@example((10, 4), (4, 4))
def scan_rnn(xs, w):
    return lax.scan(lambda h, x: (jnp.tanh(h @ w + x),) * 2, jnp.zeros(4), xs)


@example((4, 4))
def fori(x):
    return lax.fori_loop(0, 5, lambda i, x: x * 0.5 + i, x)


@example(())
def while_grows(x):
    return lax.while_loop(lambda x: x < 100, lambda x: x * 2 + 1, jnp.abs(x) + 1)


@example((4,), ((), B))
def conditional(x, p):
    return lax.cond(p, jnp.sin, jnp.cos, x)


@example((4,), ((), I))
def switch(x, i):
    return lax.switch(i, [jnp.sin, jnp.cos, jnp.tanh], x)


@example((6, 4))
def scan_gradient(xs):
    return jax.grad(lambda xs: lax.scan(lambda h, x: (jnp.sin(h + x), None), jnp.zeros(4), xs)[0].sum())(xs)


@example((8,))
def map_rows(x):
    return lax.map(lambda v: v * v + 1, x)


@example((6, 4))
def associative_scan(x):
    return lax.associative_scan(jnp.multiply, x)


@example((5, 5))
def power_iteration(a):
    return lax.fori_loop(0, 8, lambda _, v: (a @ v) / jnp.linalg.norm(a @ v), jnp.ones(5))


# --- order ------------------------------------------------------------------------------------------------------


@example((5, 9))
def sort(x):
    return jnp.sort(x)


@example((5, 9))
def argsort(x):
    return jnp.argsort(x, 0)


@example(((17,), I), (17,))
def sort_by_key(k, v):
    return lax.sort((k, v), num_keys=1)


@example((5, 9))
def top_k(x):
    return lax.top_k(x, 3)


@example((3, 9))
def median(x):
    return jnp.median(x, 1)


@example((9,), (4,))
def searchsorted(x, v):
    return jnp.searchsorted(jnp.sort(x), v)


@example((6, 7))
def argmax_and_argmin(x):
    return jnp.argmax(x, 0), jnp.argmin(x, 1)


@example((6, 7))
def cumulative(x):
    return jnp.cumsum(x, 1), jnp.cumprod(x, 0), lax.cummax(x, 1)


# --- indexing ---------------------------------------------------------------------------------------------------


@example((8, 6), ((4, 2), I))
def gather_points(x, i):
    return x[i[:, 0], i[:, 1]]


@example((3, 8), ((3, 4), I))
def gather_batched(x, i):
    return jax.vmap(lambda x, i: x[i])(x, i)


@example((8, 6), ((4,), I), (4, 6))
def scatter_set(x, i, u):
    return x.at[jnp.array([3, 0, 7, 5])].set(u)


@example((8, 6), ((4,), I), (4, 6))
def scatter_add(x, i, u):
    return x.at[i].add(u)


@example((8,), ((5,), I), (5,))
def scatter_max(x, i, u):
    return x.at[i].max(u)


@example((3, 8), ((3, 4), I), (3, 4))
def scatter_batched(x, i, u):
    return jax.vmap(lambda x, i, u: x.at[i].add(u))(x, i, u)


@example((8, 6), ((), I))
def dynamic_slice(x, i):
    return lax.dynamic_slice(x, (i, 1), (3, 2))


@example((8, 6), (2, 6), ((), I))
def dynamic_update(x, u, i):
    return lax.dynamic_update_slice(x, u, (i, 0))


@example((4, 6))
def shapes(x):
    y = jnp.flip(x, 1)[::2, 1:5].T
    return jnp.pad(y, ((1, 0), (0, 2)), constant_values=3), jnp.roll(x, 2, 1), jnp.stack([x, x], 1), jnp.tile(x, (2, 1))


@example((4, 6))
def reflect_pad(x):
    return jnp.pad(x, 2, mode="reflect")


@example((6, 6))
def triangles(x):
    return jnp.tril(x, -1) + jnp.triu(x, 2), jnp.diag(x), jnp.trace(x)


@example(((12,), I), (12,))
def segment_sum(i, x):
    return jax.ops.segment_sum(x, i, 8)


@example(((9,), I))
def histogram(x):
    return jnp.bincount(x, length=8)


# --- element by element -------------------------------------------------------------------------------------------


@example((4, 5))
def elementwise(x):
    return (jnp.log1p(abs(x)), jnp.expm1(x), jnp.cbrt(x), jnp.tan(x), lax.erf(x), nn.sigmoid(x), jnp.round(3 * x),
            lax.round(3 * x), jnp.sign(x), jnp.isfinite(1 / x), jnp.arctan2(x, 2.0), jnp.clip(x, -0.5, 0.5))  # fmt: skip


@example((4, 5))
def special(x):
    return nn.softplus(x), jnp.logaddexp(x, 0.5), jnp.sinc(x), jnp.sinh(x), jnp.arcsinh(x), lax.erf_inv(x)


@example(((4, 5), I), ((4, 5), I))
def integers(x, y):
    return x // (y + 1), x % (y + 1), x << y, x >> 1, x & y, x | y, x ^ y, ~x, lax.population_count(x), lax.clz(x), x**2


@example(((4, 5), U))
def hash_bits(x):
    x = (x ^ (x >> 16)) * jnp.uint32(0x45D9F3B)
    return (x ^ (x >> 16)) * jnp.uint32(0x45D9F3B), lax.bitcast_convert_type(x & 0x3FFFFFFF, F)


@example(((2,), U))
def random_normal(key):
    return jax.random.normal(key, (3, 4))


@example(((2,), U), (8, 16))
def dropout(key, x):
    return jnp.where(jax.random.bernoulli(key, 0.75, x.shape), x / 0.75, 0)


@example(((2,), U))
def random_integers(key):
    return jax.random.randint(key, (7,), 0, 100), jax.random.permutation(key, 10), jax.random.categorical(key, jnp.ones((3, 5)))


@example((4, 5))
def gamma_functions(x):
    return lax.lgamma(abs(x) + 1), lax.digamma(abs(x) + 1), jax.scipy.special.i0e(x)


@example((4, 5), (4, 5), (4, 5))
def values_that_change_places(x, y, z):
    """Each round hands them on to the next place, one of them negated."""
    return lax.fori_loop(0, 5, lambda i, c: (c[1], -c[2], c[0], c[3] + c[0][:1]), (x, y, z, z))


@example(((4, 8), jnp.bfloat16), ((8, 4), jnp.bfloat16))
def bfloat16(x, w):
    return (nn.relu(x @ w) + 1).astype(jnp.bfloat16), x.astype(F).sum(1)


@example((3, 4), (3, 4))
def statistics(x, y):
    return jnp.var(x, 0), jnp.std(x), jnp.cov(x, y), jnp.any(x > 0.5), jnp.all(x < 2, 1), jnp.prod(x)


@example((4, 4), (4,))
def newton(a, b):
    f = lambda x: a @ jnp.tanh(x) - b
    x = b
    for _ in range(2):
        j = jax.jacfwd(f)(x)
        x = x - 0.1 * j.T @ f(x)
    return x


@example((8, 3))
def distances(x):
    d = x[:, None] - x[None]
    return jnp.sqrt(jnp.sum(d * d, -1) + 1e-6)


@example((5,), (5,))
def checkpointed(x, y):
    return jax.grad(jax.checkpoint(lambda x: jnp.sum(jnp.sin(x) * jnp.cos(y * x))))(x)


# --- loops whose trips depend on data -----------------------------------------------------------------------------


@example((8, 8))
def conjugate_gradients(a):
    a, b = a @ a.T + 8 * jnp.eye(8), jnp.ones(8)

    def step(s):
        x, r, p, k = s
        ap = a @ p
        alpha = (r @ r) / (p @ ap)
        rest = r - alpha * ap
        return x + alpha * p, rest, rest + (rest @ rest) / (r @ r) * p, k + 1

    return lax.while_loop(lambda s: (s[1] @ s[1] > 1e-3) & (s[3] < 20), step, (jnp.zeros(8), b, b, 0))[0]


@example(((), I))
def collatz(n):
    step = lambda s: (jnp.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1)
    return lax.while_loop(lambda s: s[0] != 1, step, (n + 7, jnp.int32(0)))


@example((6,), ((), I))
def fori_to_a_limit_from_data(x, n):
    return lax.fori_loop(0, n, lambda i, c: c * 0.5 + i, x)


@example((5,))
def while_in_while(x):
    outer = lambda c: lax.while_loop(lambda d: d.max() < c.sum(), lambda d: d * 2, c) + 1
    return lax.while_loop(lambda c: c.sum() < 100, outer, abs(x) + 1)


@example((5,))
def while_in_for(x):
    return lax.fori_loop(0, 3, lambda i, x: lax.while_loop(lambda c: c.sum() < 20 * (i + 1), lambda c: c * 1.3, x), abs(x) + 1)


# --- systems of equations -----------------------------------------------------------------------------------------


@example((2, 5, 5))
def cholesky(x):
    a = x @ x.mT + jnp.eye(5)
    return jnp.linalg.cholesky(a), jnp.linalg.cholesky(a[0], upper=True), jnp.linalg.cholesky(a[1] - 3 * jnp.eye(5))


@example((4, 4), (4, 3), (2, 4))
def triangular_solves(a, b, c):
    a, solve = a + 4 * jnp.eye(4), lax.linalg.triangular_solve
    flags = [(lower, trans) for lower in (False, True) for trans in (False, True)]
    return ([solve(a, b, left_side=True, lower=lower, transpose_a=trans) for lower, trans in flags]
            + [solve(a, c, lower=lower, transpose_a=trans, unit_diagonal=True) for lower, trans in flags])


@example((6, 4), (6,))
def gaussian_process(x, y):
    def likelihood(scale):
        d = x[:, None] - x[None]
        k = jnp.exp(-scale * jnp.sum(d * d, -1)) + 0.1 * jnp.eye(6)
        factor = jnp.linalg.cholesky(k)
        return -0.5 * y @ jax.scipy.linalg.cho_solve((factor, True), y) - jnp.sum(jnp.log(jnp.diag(factor)))

    return jax.value_and_grad(likelihood)(0.3)


# --- bits ---------------------------------------------------------------------------------------------------------


@example(((4,), U))
def random_bits_philox(key):
    return *lax.rng_bit_generator(key, (3, 5)), lax.rng_bit_generator(key, (7,), jnp.uint8)[1]


@example(((4,), U))
def random_bits_threefry(key):
    make = lambda *a: lax.rng_bit_generator(key, *a, algorithm=lax.RandomAlgorithm.RNG_THREE_FRY)
    return *make((3, 5)), make((), jnp.uint16)[1]


@example((4, 5), ((4, 5), jnp.bfloat16))
def reduced_precision(x, y):
    return (lax.reduce_precision(x, 5, 10), lax.reduce_precision(x * 1e5, 4, 3), lax.reduce_precision(jnp.sqrt(x), 8, 7),
            lax.reduce_precision(y, 3, 2))  # fmt: skip


@example(((3, 4), U), ((3, 2), jnp.uint16))
def bits_of_other_widths(x, y):
    return lax.bitcast_convert_type(x, jnp.uint8), lax.bitcast_convert_type(y, F), lax.bitcast_convert_type(x, jnp.int16)


@example((1, 8, 8, 3))
def max_pool_windows_in_padding(x):
    window = (1, 3, 3, 1), (1, 2, 2, 1), ((0, 0), (1, 1), (0, 1), (0, 0))
    y = lax.reduce_window(x, -jnp.inf, lax.max, *window)
    return jax._src.lax.windowed_reductions._select_and_scatter(x, lax.ge, *window, y * y, jnp.float32(0.5), lax.add)


# --- complex numbers ------------------------------------------------------------------------------------------------


@example(((3, 8), C), ((3, 8), C))
def complex_arithmetic(x, y):
    return (x + y, x - y, x * y, x / y, -x, jnp.conj(x), abs(x), x.real, x.imag, jnp.angle(x), x == y, jnp.where(x.real > 0, x, y),
            jnp.exp(x), jnp.log(x), jnp.sqrt(x), lax.rsqrt(x), jnp.sin(x), jnp.cos(x), jnp.sign(x), x ** (0.5 + 1j))  # fmt: skip


@example(((3, 8), C), ((8, 4), C), ((), I))
def complex_arrays(x, y, i):
    return (x @ y, x.sum(0), x.T.reshape(4, 6)[1:, ::2], jnp.concatenate([x, 2j * x], 1), jnp.pad(x, 1), x[:, ::-1],
            lax.dynamic_slice(x, (i, 0), (1, 4)), x.at[1].set(1j), x[jnp.array([2, 0])], x.at[jnp.array([0, 0])].add(1 + 1j))  # fmt: skip


@example(((4,), C), ((4, 4), C), ((), B))
def complex_control(x, m, p):
    y = lax.while_loop(lambda c: jnp.sum(abs(c)) < 100, lambda c: c * (1 + 1j), x + 1)
    z = lax.fori_loop(0, 5, lambda i, c: c @ m / 4 + 1j * i, m)
    return y, z, lax.cond(p, lambda x: x * 1j, jnp.conj, x)


@example(((6, 4, 10), C), (2, 9))
def fourier(x, y):
    f = jnp.fft
    return f.fft(x), f.ifft(x), f.fftn(x), f.ifft2(x), f.rfft(y), f.irfft(f.rfft(y), 9), f.rfftn(x.real), f.irfftn(f.rfftn(x.imag))


@example(((2, 300), C), (2, 300), (2, 255))
def fourier_in_steps(x, y, z):
    f = jnp.fft
    return f.fft(x), f.ifft(x), f.rfft(y), f.irfft(f.rfft(y)), f.rfft(z), f.irfft(f.rfft(z), 255)


@example((2, 131), (2, 128))
def fourier_by_large_matrices(x, y):
    return jnp.fft.rfft(x), jnp.fft.irfft(jnp.fft.rfft(x), 131), jnp.fft.fft(y)


@example((4, 16), (5,))
def fourier_convolution(x, k):
    loss = lambda x: jnp.sum(abs(jnp.fft.rfft(x, 32) * jnp.fft.rfft(k, 32)) ** 2)
    return jnp.fft.irfft(jnp.fft.rfft(x, 32) * jnp.fft.rfft(k, 32), 32), jax.grad(loss)(x)


def make_input(spec, rng):
    if spec.dtype == np.bool_:
        return rng.integers(0, 2, spec.shape).astype(bool)
    if np.issubdtype(spec.dtype, np.integer):
        return rng.integers(0, 6, spec.shape).astype(spec.dtype)
    if np.issubdtype(spec.dtype, np.complexfloating):
        return (rng.uniform(-2, 2, spec.shape) + 1j * rng.uniform(-2, 2, spec.shape)).astype(spec.dtype)
    return rng.uniform(-2, 2, spec.shape).astype(spec.dtype)


def as_reals(a):
    """Complex numbers as the pairs of reals that compiled modules take and give."""
    return a.view(a.real.dtype).reshape(*a.shape, 2) if a.dtype.kind == "c" else a


def load_expected():
    """By name: (inputs, results).  npz knows no bfloat16: those are kept as their bits."""
    stored, found = np.load(DIRECTORY / "expected.npz"), {}
    for name in FUNCTIONS:
        pair = []
        for kind in ("in", "out"):
            values = []
            while (key := f"{name}.{kind}{len(values)}") in stored or key + ".bf16" in stored:
                values.append(stored[key] if key in stored else stored[key + ".bf16"].view(ml_dtypes.bfloat16))
            pair.append(values)
        found[name] = tuple(pair)
    return found


def main():
    DIRECTORY.mkdir(exist_ok=True)
    here, rng, stored = f"{ROOT}/", np.random.default_rng(7), {}
    for name, (function, specs) in FUNCTIONS.items():
        lowered = jax.jit(function, keep_unused=True).lower(*specs)
        text = lowered.compiler_ir("hlo").as_hlo_text()
        (DIRECTORY / f"{name}.hlo").write_text(text.replace(here, ""))
        inputs = [make_input(s, rng) for s in specs]
        results = jax.tree_util.tree_leaves(lowered.compile()(*inputs))
        for kind, values in (("in", inputs), ("out", results)):
            for k, v in enumerate(map(np.asarray, values)):
                narrow = v.dtype == ml_dtypes.bfloat16
                stored[f"{name}.{kind}{k}" + (".bf16" if narrow else "")] = v.view(np.uint16) if narrow else v
    np.savez_compressed(DIRECTORY / "expected.npz", **stored)


if __name__ == "__main__":
    main()
