"""HLO that JAX wrote (jax_hlo/) reaches NISA and computes there what XLA computes, or is listed here as refused.

    NKX_JAX_NISA=all pytest tests/conformance/test_jax_nisa.py     # every module

Otherwise those with convolutions, windows, reductions of several operands, sorts, and a while.  The instructions are run by
tests/passes/nisa_eval.py.
"""
import json
import os
import subprocess

import numpy as np
import pytest

from support import compiler, jax_functions, reference
from support.paths import NKX

# module -> what the diagnostic says
REFUSED = {"while_grows": "not supported on NISA: scf.while: how often this loop runs depends on data"}
FEW = ("argmax_and_argmin", "average_pool", "convolution", "convolution_depthwise_gradient", "convolution_transposed",
       "gather_points", "integers", "max_pool", "max_pool_gradient", "random_normal", "reflect_pad", "sort", "top_k", "while_grows")
NAMES = sorted(p.stem for p in jax_functions.DIRECTORY.glob("*.hlo")) if os.environ.get("NKX_JAX_NISA") == "all" else FEW


@pytest.fixture(scope="module")
def expected():
    return jax_functions.load_expected()


@pytest.mark.parametrize("name", NAMES)
def test_a_module_of_jax_computes_on_nisa_what_xla_computes(expected, name):
    done = subprocess.run([NKX, "compile", jax_functions.DIRECTORY / f"{name}.hlo", "--quiet", "--json", "-"],
                          capture_output=True)
    result = json.loads(done.stdout)
    errors = [d for d in result["diagnostics"] if d["severity"] == "error"]
    if name in REFUSED:
        assert REFUSED[name] in errors[0]["message"] and all("range" in d for d in errors), errors
        stages, all_stages = result["kernels"][0]["stages"], compiler.pipeline()
        assert f'"{errors[0]["stage"]}"' in all_stages[len(stages)] and all(stage["text"] for stage in stages)
        return
    assert not errors, errors
    inputs, want = expected[name]
    for g, w in zip(reference.run_nisa(result["kernels"][0], [np.array(a) for a in inputs]), want, strict=True):
        if w.dtype.kind in "iub":
            np.testing.assert_array_equal(g, w)
            continue
        tolerance = 2e-2 if w.dtype.itemsize == 2 else 2e-4
        g, w = g.astype(np.float64), w.astype(np.float64)
        np.testing.assert_allclose(g, w, tolerance, tolerance * max(1, np.nanmax(np.abs(w), initial=0)))
