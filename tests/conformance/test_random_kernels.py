"""Random kernels (support/random_kernels.py): every stage equals NumPy, or a stage refuses with a documented diagnostic.

All stages are run by the product's check, those of NISA in its simulator; and NISA in program order by the tests' own
evaluator (support/oracles/nisa_eval.py).  The batches are compiled for trn1, trn2 and trn3 in turn.

    NKX_RANDOM_KERNELS=2000 NKX_RANDOM_SEED=5 pytest tests/conformance/test_random_kernels.py
    NKX_RANDOM_TARGETS=all …    # each batch for each machine; a machine's name: all batches for that one

A refusal is counted and printed; wrong values, a fault of ours (internal) and a process that died are failures.
"""
import collections
import os

import pytest

from support import compiler, random_kernels, reference, shrink
from support.paths import TESTS

COUNT = int(os.environ.get("NKX_RANDOM_KERNELS", "200"))
SEED = int(os.environ.get("NKX_RANDOM_SEED", "1"))
AT_ONCE = 10  # kernels per process
MACHINES = ("trn2", "trn1", "trn3")
WANTED = os.environ.get("NKX_RANDOM_TARGETS", "")
BATCHES = [(batch, target) for batch in range((COUNT + AT_ONCE - 1) // AT_ONCE)
           for target in (MACHINES if WANTED == "all" else (WANTED or MACHINES[batch % 3],))]
REFUSED_SHARE_MAX = 0.1


def check(source, seed, target="trn2"):
    """Compiles and runs everything; fails if something is wrong.  The result, and what was refused."""
    result = compiler.compile(source, "--target", target, check=True, timeout=300)
    bad, refused = shrink.faults(result)
    assert not bad, "\n".join(map(str, bad)) + "\n" + source
    plain = reference.functions(source)
    for k in result["kernels"]:
        if any(s["dialect"] == "nisa" for s in k["stages"]):
            inputs = compiler.random_inputs(k, seed=seed)
            reference.assert_nisa_is_function(k, inputs, plain[k["name"]])
    return result, refused


def test_kernels_that_once_failed_are_right():
    source = (TESTS / "conformance/pinned_kernels.py").read_text()
    result, refused = check(source, 1)
    assert not refused
    assert len(result["kernels"]) == source.count("@trace")


@pytest.mark.parametrize("batch, target", BATCHES)
def test_random_kernels_equal_numpy_at_every_stage(batch, target, record_property):
    n = min(AT_ONCE, COUNT - batch * AT_ONCE)
    source = random_kernels.source(SEED * 100_000 + batch, n)
    result, refused = check(source, batch, target)
    for code, times in collections.Counter(r[2] for r in refused).items():
        record_property(f"refused with {code}", times)
    record_property("kernels", n)
    record_property("equal to NumPy at every stage", n - len({r[0] for r in refused}))
    assert len(result["kernels"]) == n, (len(result["kernels"]), source)
    # a batch is small: what is too much shows over all of them, this only catches that everything is refused
    assert len(refused) <= max(4, 4 * REFUSED_SHARE_MAX * n), refused
