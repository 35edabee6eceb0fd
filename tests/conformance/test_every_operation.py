"""Every operation of the front end reaches NISA and computes there what NumPy computes, or is listed here as refused.

    NKX_OPERATIONS=all pytest tests/conformance/test_every_operation.py     # every form and shape on every target

Otherwise trn1 and trn3 get each operation's first form, and shapes of whole tiles are left out.  The instructions are run
by tests/passes/nisa_eval.py.
"""
import os

import numpy as np
import pytest

import kernels
import operations

ALL = os.environ.get("NKX_OPERATIONS") == "all"
AT_ONCE = 40  # kernels per process

# What the machine cannot do: kernel -> what the diagnostic says.
FLOAT_SORTS = ("sort", "argsort", "median", "topk")  # their comparator tells -0 from 0 and NaNs apart by bits
REFUSED = {f"{op}_0_f32_{r}x{c}": "arith.bitcast" for op in FLOAT_SORTS for r, c in operations.SHAPES}


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
    result = kernels.compile(source, "--target", target)
    plain, bad = kernels.functions(source), []
    refused = {batch[d["kernel"]].name: d for d in result["diagnostics"] if d["severity"] == "error"}
    for k in result["kernels"]:
        name = k["name"]
        if name in refused:
            d = refused[name]
            if name not in REFUSED or REFUSED[name] not in d["message"] or "range" not in d:
                bad.append((name, d["code"], d["message"]))
            continue
        assert name not in REFUSED, f"{name} is no longer refused"
        inputs = operations.inputs(k, np.random.default_rng(3))
        try:
            kernels.assert_nisa(k, inputs, kernels.call(plain[name], k, inputs))
        except Exception as e:
            bad.append((name, type(e).__name__, str(e)[:600]))
    assert len(result["kernels"]) == len(batch)
    assert not bad, "\n".join(map(str, bad))
