"""Functions of nki.language that the other tests do not call: each value against NumPy, and every stage of its kernel."""
import numpy as np
import pytest

import nkipy  # noqa: F401  (it adds nki where the vendor's package is not installed)
import nki
import nki.isa as nisa
import nki.language as nl
from support import compiler
from support.nki_kernels import HEAD

X = np.random.default_rng(3).uniform(-2, 2, (64, 24)).astype(np.float32)

# the expression, and NumPy's formula on x
CASES = {
    "nl.full((64, 24), 2.5, nl.float32)": lambda x: np.full_like(x, 2.5),
    "nl.ones((64, 24), nl.float32)": np.ones_like,
    "nl.add(nl.zeros_like(x), x)": lambda x: x,
    "nl.add(x, nl.broadcast_to(x[:, 0:1], x.shape))": lambda x: x + x[:, :1],
    "nl.add(nl.expand_dims(x, 1).reshape((64, 24)), 1.0)": lambda x: x + 1,
    "nl.negative(x)": np.negative,
    "nl.prod(x[:, 0:4], axis=1)": lambda x: x[:, :4].prod(1, keepdims=True),
    "nl.sum(x, axis=1)": lambda x: x.sum(1, keepdims=True),
    "nl.mean(x, axis=1)": lambda x: x.mean(1, keepdims=True),
    "nl.max(x, axis=1)": lambda x: x.max(1, keepdims=True),
    "nl.min(x, y)": lambda x: np.minimum(x, 1),
    "nl.matmul(x, x, transpose_x=True)": lambda x: x.T @ x,
    "nl.cos(x)": np.cos,
    "nl.tan(nl.multiply(x, 0.5))": lambda x: np.tan(x / 2),
    "nl.copy(x[:, nl.ds(4, 8)])": lambda x: x[:, 4:12],
    "nl.add(x, float(sum(nl.static_range(4)) + sum(nl.sequential_range(1, 3))))": lambda x: x + 9,
    "nl.add(x, float(nl.program_id(0) + nl.num_programs(0) + nl.program_ndim()))": lambda x: x + 1,
    "nl.add(x, float(nl.is_sbuf(x.buffer) + 2 * nl.is_psum(x.buffer) + 4 * nl.is_on_chip(x.buffer) + 8 * nl.is_hbm(a.buffer)))":
        lambda x: x + 13,
    "nl.add(x, float(nisa.get_nc_version() == nisa.nc_version.gen3))": lambda x: x + 1,
}


def kernel(number, expression, shape):
    return f"""
@nki.jit
def k{number}(a: nl.tensor[nl.float32, (64, 24)]):
    out = nl.ndarray({shape}, nl.float32, buffer=nl.shared_hbm)
    x = nl.load(a)
    y = nl.ones(x.shape, nl.float32)
    result = nl.empty_like(out, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src={expression})
    nl.store(out, result)
    return out
"""


SOURCE = HEAD + "".join(kernel(i, e, f(X).shape) for i, (e, f) in enumerate(CASES.items()))


@pytest.mark.parametrize("number", range(len(CASES)), ids=list(CASES))
def test_a_function_gives_what_numpy_gives(number):
    names = {"nki": nki, "nl": nl, "nisa": nisa}
    expression, formula = list(CASES.items())[number]
    exec(compile(kernel(number, expression, formula(X).shape), "kernel.py", "exec"), names)
    got = nki.simulate(names[f"k{number}"])(X)
    assert got.shape == formula(X).shape and np.allclose(got, formula(X), rtol=1e-4, atol=1e-5)


def test_every_stage_computes_what_the_calls_compute():
    result = compiler.compile(SOURCE, check=True)
    assert result["status"] == "ok", result["diagnostics"]
    for kernel_, expression in zip(result["kernels"], CASES):
        assert [s["check"]["status"] for s in kernel_["stages"]][2:] == ["pass"] * (len(kernel_["stages"]) - 2), expression
