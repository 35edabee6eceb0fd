"""tfloat32: float32 in memory, of which the Tensor engine reads 10 bits of the mantissa, in the time of 16-bit floats."""
import numpy as np
import pytest

from support import compiler
from support.nki_kernels import HEAD, TARGETS
from support.runs import simulated

KERNEL = HEAD + """
@nki.jit
def product(a: nl.tensor[nl.float32, (64, 32)], b: nl.tensor[nl.float32, (64, 96)]):
    out = nl.ndarray((32, 96), nl.float32, buffer=nl.shared_hbm)
    x, y = nl.ndarray(a.shape, nl.{}), nl.ndarray(b.shape, nl.{})
    assert x.dtype == nl.{}
    nisa.dma_copy(dst=x, src=a)
    nisa.dma_copy(dst=y, src=b)
    p = nl.ndarray((32, 96), nl.float32, buffer=nl.psum)
    nisa.nc_matmul(dst=p, stationary=x, moving=y)
    r = nl.ndarray((32, 96), nl.float32)
    nisa.tensor_copy(dst=r, src=p)
    nisa.dma_copy(dst=out, src=r)
    return out
"""


def rounded(x):
    """The nearest number with 10 bits after the point, of two the even one, by adding and taking away a large one."""
    large = np.ldexp(3.0, np.frexp(x.astype(np.float64))[1] - 1 + 52 - 11)
    return (x + large) - large


def inputs(rng):
    a, b = rng.uniform(-2, 2, (64, 32)).astype(np.float32), rng.uniform(-2, 2, (64, 96)).astype(np.float32)
    a[0, :4] = [1 + 2.0 ** -11, 1 + 3 * 2.0 ** -11, 2 - 2.0 ** -12, 0]  # in the middle of two neighbours, and next to a power of 2
    return {"a": a, "b": b}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("x, y", [("tfloat32", "tfloat32"), ("tfloat32", "float32"), ("float32", "tfloat32")])
def test_the_operands_of_a_product_are_rounded_to_10_bits(x, y, target, rng):
    given = inputs(rng)
    source = KERNEL.format(x, y, x)
    [kernel] = compiler.compile(source, "--target", target, check=True)["kernels"]
    assert [s["check"]["status"] for s in kernel["stages"][2:]] == ["pass"] * 5
    a, b = (rounded(v) if t == "tfloat32" else v.astype(np.float64) for t, v in zip((x, y), given.values()))
    got = simulated(source, given, "--target", target)[0]["out"]
    np.testing.assert_allclose(got, a.T @ b, rtol=1e-5, atol=1e-5)
    exact = given["a"].astype(np.float64).T @ given["b"]
    assert np.abs(got - exact).max() > 1e-4, "the operands were not rounded"


def tensor_busy_us(x, y, rng):
    profile = simulated(KERNEL.format(x, y, x), inputs(rng))[1]["profile"]
    return next(lane["busy_us"] for lane in profile["lanes"] if lane["name"] == "tensor")


def test_products_of_tfloat32_are_faster_only_if_both_operands_are(rng):
    assert tensor_busy_us("tfloat32", "tfloat32", rng) < tensor_busy_us("tfloat32", "float32", rng) == tensor_busy_us("float32", "float32", rng)


def refusal(body):
    result = compiler.compile(HEAD + f"""
@nki.jit
def kernel(a: nl.tensor[nl.float32, (128, 64)]):
    out = nl.ndarray((128, 64), nl.float32, buffer=nl.shared_hbm)
    x, y, c = nl.load(a), nl.ndarray((128, 64), nl.bfloat16), nl.ndarray((128, 1), nl.tfloat32)
    t = nl.ndarray((128, 64), nl.tfloat32)
    p = nl.ndarray((64, 64), nl.float32, buffer=nl.psum)
    nisa.tensor_copy(dst=t, src=x)
    nisa.tensor_copy(dst=y, src=x)
    nisa.memset(dst=c, value=0.0)
    {body}
    nl.store(out, x)
    return out
""")
    return [d["code"] for d in result["diagnostics"] if d["severity"] == "error"]


@pytest.mark.parametrize("body, code", [
    ("nisa.nc_matmul(dst=p, stationary=t, moving=x)", None), ("nisa.nc_matmul(dst=p, stationary=t, moving=y)", "nki-dtype"),
    ("nisa.activation(dst=x, op=nl.exp, data=t, bias=0.5)", None), ("nisa.activation(dst=x, op=nl.exp, data=x, bias=c)", "nki-dtype")])
def test_what_goes_with_tfloat32(body, code):
    assert refusal(body) == ([code] if code else [])


def test_beta_1_has_it_and_a_sum_with_float32_is_float32():
    [kernel] = compiler.compile("""
import neuronxcc.nki as nki, neuronxcc.nki.language as nl, neuronxcc.nki.isa as nisa, neuronxcc.nki.typing as nt
@nki.jit
def product(a: nt.tensor[64, 32], b: nt.tensor[64, 96]):
    out = nl.ndarray((32, 96), dtype=nl.float32, buffer=nl.shared_hbm)
    x, y = nl.load(a, dtype=nl.tfloat32), nl.load(b, dtype=nl.tfloat32)
    z = nl.load(a) + x
    assert z.dtype == nl.float32 and (x + x).dtype == nl.tfloat32
    nl.store(out, nisa.nc_matmul(x, y))
    return out
""", check=True)["kernels"]
    assert [s["check"]["status"] for s in kernel["stages"][2:]] == ["pass"] * 5
    assert "perf_opt=tf32," in compiler.stage(kernel, "nki-to-nisa")["text"]
