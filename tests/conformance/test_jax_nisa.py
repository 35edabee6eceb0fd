"""HLO that JAX wrote (jax_hlo/) reaches NISA and computes there what XLA computes.

    NKX_JAX_NISA=all pytest tests/conformance/test_jax_nisa.py     # every module

Otherwise those with convolutions, windows, reductions of several operands, sorts, loops whose trips depend on data, random
bits, and systems of equations.  The instructions are run by tests/support/oracles/nisa_eval.py, and each stage of NISA in the
product's simulator.  The modules are compiled for trn1, trn2 and trn3 in turn (NKX_JAX_TARGETS=all: each for each).
"""
import json
import os

import numpy as np
import pytest

from support import compiler, jax_functions, reference, warm
from support.simulator import Simulator

FEW = ("argmax_and_argmin", "average_pool", "convolution", "convolution_depthwise_gradient", "convolution_transposed",
       "gather_points", "integers", "max_pool", "max_pool_gradient", "random_normal", "reflect_pad", "sort", "top_k", "while_grows",
       "cholesky", "complex_control", "fourier", "conjugate_gradients", "max_pool_windows_in_padding", "random_bits_philox", "random_bits_threefry",
       "reduced_precision", "triangular_solves", "while_in_for")
NAMES = sorted(p.stem for p in jax_functions.DIRECTORY.glob("*.hlo")) if os.environ.get("NKX_JAX_NISA") == "all" else FEW
MACHINES = ("trn2", "trn1", "trn3")
CASES = [(name, target) for k, name in enumerate(NAMES)
         for target in (MACHINES if os.environ.get("NKX_JAX_TARGETS") == "all" else (MACHINES[k % 3],))]


@pytest.fixture(scope="module")
def simulator():
    with Simulator() as s:
        yield s


@pytest.fixture(scope="module")
def expected():
    return jax_functions.load_expected()


def assert_close(got, want):
    for g, w in zip(got, want, strict=True):
        if w.dtype.kind in "iub":
            np.testing.assert_array_equal(g, w)
            continue
        tolerance = 2e-2 if w.dtype.itemsize == 2 else 2e-4
        g, w = g.astype(np.float64), w.astype(np.float64)
        np.testing.assert_allclose(g, w, tolerance, tolerance * max(1, np.nanmax(np.abs(w), initial=0)))


@pytest.mark.parametrize("name, target", CASES)
def test_a_module_of_jax_computes_on_nisa_what_xla_computes(expected, simulator, name, target):
    done = warm.run("compile", jax_functions.DIRECTORY / f"{name}.hlo", "--quiet", "--json", "-", "--target", target, *compiler.CONSTANTS, timeout=300)
    result = json.loads(done.stdout)
    errors = [d for d in result["diagnostics"] if d["severity"] == "error"]
    assert not errors, errors
    if "__elided__" in compiler.stage(result["kernels"][0], "linalg-to-nisa")["text"]:
        pytest.skip("the text has its constants shortened, so that it cannot be run")
    inputs, want = ([jax_functions.as_reals(np.array(a)) for a in arrays] for arrays in expected[name])
    assert_close(reference.run_nisa(result["kernels"][0], inputs), want)
    for _, got in reference.run_simulated(simulator, result["kernels"][0], inputs):
        assert_close(got, want)
