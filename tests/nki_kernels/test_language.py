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
    "nl.copy(x.slice(1, 2, 20, 3))": lambda x: x[:, 2:20:3],
    "nl.add(x, float(x.is_contiguous() + 2 * x.slice(1, 0, 24, 2).is_contiguous()))": lambda x: x + 1,
    "nl.add(x, float(sum(nl.static_range(4)) + sum(nl.sequential_range(1, 3))))": lambda x: x + 9,
    "nl.add(x, float(nl.program_id(0) + nl.num_programs(0) + nl.program_ndim()))": lambda x: x + 1,
    "nl.add(x, float(nl.is_sbuf(x.buffer) + 2 * nl.is_psum(x.buffer) + 4 * nl.is_on_chip(x.buffer) + 8 * nl.is_hbm(a.buffer)))":
        lambda x: x + 13,
    "nl.add(x, float(nisa.get_nc_version() == nisa.nc_version.gen3))": lambda x: x + 1,
    "nl.add(x, float(1 + nisa.get_nc_sub_version()))": lambda x: x + 1,
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
        assert {s["check"]["status"] for s in kernel_["stages"] if s["dialect"] == "nisa"} == {"pass"}, expression


BETA1 = """import numpy as np
import neuronxcc.nki as nki
import neuronxcc.nki.language as nl
import neuronxcc.nki.typing as nt

@nki.jit
def beta1(a: nt.tensor[256, 512]):
    out = nl.ndarray(a.shape, dtype=nl.bfloat16, buffer=nl.shared_hbm)
    tiles = nl.ndarray((2, nl.par_dim(128), 512), dtype=nl.float32)
    for k in nl.affine_range(2):
        p, f = nl.arange(128)[:, None], nl.arange(512)[None, :]
        tiles[k, p, f] = nl.maximum(nl.load(a[k * 128 + p, f]), nl.fp32.min + nl.finfo(nl.float32).max)
        i = nl.mgrid[0:128, 0:512]
        nl.store(out[k * 128 + i.p, i.x], nl.static_cast(tiles[k], nl.bfloat16))
    return out
"""


def test_the_names_that_only_beta_1_has():
    result = compiler.compile(BETA1, check=True)
    errors = [d for d in result["diagnostics"] if d["severity"] == "error"]
    assert result["status"] == "ok" and not errors, errors
    [kernel_] = result["kernels"]
    assert {s["check"]["status"] for s in kernel_["stages"] if s["dialect"] == "nisa"} == {"pass"}


def test_a_type_is_its_name_and_the_type_of_a_tensor():
    source = HEAD + """
BYTES = {nl.float32: 4, nl.bfloat16: 2, nl.float8_e4m3: 1, nl.int32: 4, nl.uint8: 1}

@nki.jit
def kernel(a: nl.tensor[nl.bfloat16, (128, 64)]):
    out = nl.ndarray(a.shape, "float32", buffer=nl.shared_hbm)
    assert BYTES[a.dtype] == 2 and BYTES[out.dtype] == 4 and [str(t) for t in (nl.float32, nl.bfloat16)] == ["float32", "bfloat16"]
    assert nl.float32 == "float32" and out.dtype == nl.float32 and a.dtype == "bfloat16" and nl.bfloat16 == np.dtype(ml_dtypes.bfloat16)
    assert f"{nl.float8_e4m3}" == "float8_e4m3" and np.zeros(3, nl.int32).dtype == nl.int32
    nl.store(out, nl.load(a, dtype=nl.float32))
    return out
"""
    result = compiler.compile(source)
    assert result["status"] == "ok", result["diagnostics"]


@pytest.mark.parametrize("package", ["nki", "neuronxcc.nki"])
def test_the_constants_of_nki_isa_are_a_module(package):
    source = f"""
import {package} as nki
import {package}.isa.constants
from {package}.isa.constants import dge_mode, engine, oob_mode
import {package}.isa as nisa
import {package}.language as nl

@nki.jit
def kernel(a: nl.tensor[64, 24]):
    assert engine.vector == nisa.vector_engine and nisa.constants.oob_mode.skip == oob_mode.skip
    out = nl.ndarray(a.shape, dtype=a.dtype, buffer=nl.shared_hbm)
    nisa.dma_copy(dst=out, src=a, dge_mode=dge_mode.none, oob_mode=nisa.constants.oob_mode.error)
    return out
"""
    result = compiler.compile(source)
    assert result["status"] == "ok", result["diagnostics"]
