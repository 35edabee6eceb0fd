"""Every operation of the front end reaches NISA and computes there what NumPy computes.

    NKX_OPERATIONS=all pytest tests/conformance/test_every_operation.py     # every form and shape on every target

Otherwise trn1 and trn3 get each operation's first form, and shapes of whole tiles are left out.  The instructions are run
by tests/passes/nisa_eval.py.
"""
import os

import numpy as np
import pytest

from support import compiler, reference
from support.operations import forms as operations

ALL = os.environ.get("NKX_OPERATIONS") == "all"
AT_ONCE = 40  # kernels per process


def wanted(target):
    for kernel in operations.kernels(operations.SHAPES if ALL else operations.SHAPES[:1]):
        if ALL or target == "trn2" or kernel.name.split("_")[-3] == "0":
            yield kernel


BATCHES = [(target, some[k:k + AT_ONCE]) for target in ("trn1", "trn2", "trn3")
           for some in [list(wanted(target))] for k in range(0, len(some), AT_ONCE)]


def test_the_table_of_forms_has_every_operation():
    assert sorted(operations.FORMS) == sorted(operations.operations())


@pytest.mark.parametrize("target, batch", BATCHES, ids=[f"{t}-{b[0].name}" for t, b in BATCHES])
def test_operations_compute_on_nisa_what_numpy_computes(target, batch):
    source = operations.HEAD + "\n".join(k.source for k in batch)
    result = compiler.compile(source, "--target", target)
    plain, bad = reference.functions(source), []
    refused = {batch[d["kernel"]].name: d for d in result["diagnostics"] if d["severity"] == "error"}
    for k in result["kernels"]:
        name = k["name"]
        if name in refused:
            bad.append((name, refused[name]["code"], refused[name]["message"]))
            continue
        inputs = operations.inputs(k, np.random.default_rng(3))
        try:
            reference.assert_nisa(k, inputs, reference.call(plain[name], k, inputs))
        except Exception as e:
            bad.append((name, type(e).__name__, str(e)[:600]))
    assert len(result["kernels"]) == len(batch)
    assert not bad, "\n".join(map(str, bad))


SORTS = """
@trace(input_specs=[((33, 9), "{t}")])
def sort_{t}(x):
    return np.sort(x, axis=1, kind="stable"), np.argsort(x, axis=0, kind="stable"), np.median(x, axis=1)


@trace(input_specs=[((33, 9), "{t}")])
def top_{t}(x):
    return *ops.topk(x, 5), *ops.topk(x, 4, is_ascend=True)
"""


def test_sorts_on_nisa_keep_zeros_apart_and_nan_last_as_numpy_does():
    source = operations.HEAD + "".join(SORTS.format(t=t) for t in ("float32", "float16"))
    rng, plain = np.random.default_rng(5), reference.functions(source)
    some = np.array([-0.0, 0.0, np.nan, -np.nan, np.inf, -np.inf, 1, -1, 1e-40], np.float32)
    result = compiler.compile(source)
    assert not result["diagnostics"] and len(result["kernels"]) == 4
    for k in result["kernels"]:
        x = rng.choice(some, (33, 9)).astype(k["inputs"][0]["dtype"])
        for g, w in zip(reference.run_nisa(k, [x.copy()]), reference.call(plain[k["name"]], k, [x]), strict=True):
            np.testing.assert_array_equal(g, w, k["name"])
            signed = ~np.isnan(w) & (w.ndim > 1)  # a mean of one -0 may be 0
            np.testing.assert_array_equal(np.signbit(g[signed]), np.signbit(w[signed]), k["name"])
