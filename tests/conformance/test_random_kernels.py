"""Random kernels (generator.py): every stage equals NumPy, or a stage refuses with a diagnostic that users are told of.

Stages up to NISA are run by the product's check, NISA by the tests' own evaluator (tests/passes/nisa_eval.py).

    NKX_RANDOM_KERNELS=2000 NKX_RANDOM_SEED=5 pytest tests/conformance/test_random_kernels.py

A refusal is counted and printed; wrong values, a fault of ours (internal) and a process that died are failures.
"""
import collections
import os
import re

import pytest

import generator
import kernels

COUNT = int(os.environ.get("NKX_RANDOM_KERNELS", "200"))
SEED = int(os.environ.get("NKX_RANDOM_SEED", "1"))
AT_ONCE = 10  # kernels per process
LISTED = set(re.findall(r'^DIAG\(\w+, "([\w-]+)"', (kernels.ROOT / "compiler/base/diag.def").read_text(), re.M))
FAULTS = {"internal", "check-failed", "worker-died", "python-exception", "ir-invalid", "hlo-invalid", "time-limit",
          "memory-limit"}
REFUSED_SHARE_MAX = 0.1


def faults(result):
    """What is wrong with a result: [(kernel, stage or None, what)]; and its refusals: [(kernel, stage, code, message)]."""
    bad, refused = [], []
    last = kernels.pipeline()
    names = [k["name"] for k in result["kernels"]]
    for d in result["diagnostics"]:
        if d["severity"] != "error":
            continue
        where = (names[d["kernel"]] if 0 <= d.get("kernel", -1) < len(names) else None, d.get("stage"))
        if d["code"] not in LISTED or d["code"] in FAULTS:
            bad.append((*where, f"{d['code']}: {d['message']}"))
        else:
            refused.append((*where, d["code"], d["message"]))
    for k in result["kernels"]:
        for stage in k["stages"]:
            if stage.get("check", {}).get("status") == "fail":
                bad.append((k["name"], stage["name"], str(stage["check"])))
            elif "check" in stage and not kernels.is_checked(stage):
                bad.append((k["name"], stage["name"], "unchecked: " + str(stage.get("check"))))
        if len(k["stages"]) < len(last) and not any(r[0] in (k["name"], None) for r in refused + bad):
            bad.append((k["name"], None, f"ends after {len(k['stages'])} stages without a word"))
    return bad, refused


def check(source, seed):
    """Compiles and runs everything; fails if something is wrong.  The result, and what was refused."""
    result = kernels.compile(source, check=True, timeout=300)
    bad, refused = faults(result)
    assert not bad, "\n".join(map(str, bad)) + "\n" + source
    plain = kernels.functions(source)
    for k in result["kernels"]:
        if k["stages"] and k["stages"][-1]["dialect"] == "nisa":
            inputs = kernels.random_inputs(k, seed=seed)
            kernels.assert_nisa_is_function(k, inputs, plain[k["name"]])
    return result, refused


def test_kernels_that_once_failed_are_right():
    source = (kernels.ROOT / "tests/conformance/pinned_kernels.py").read_text()
    result, refused = check(source, 1)
    assert not refused
    assert len(result["kernels"]) == source.count("@trace")


@pytest.mark.parametrize("batch", range((COUNT + AT_ONCE - 1) // AT_ONCE))
def test_random_kernels_equal_numpy_at_every_stage(batch, record_property):
    n = min(AT_ONCE, COUNT - batch * AT_ONCE)
    source = generator.source(SEED * 100_000 + batch, n)
    result, refused = check(source, batch)
    for code, times in collections.Counter(r[2] for r in refused).items():
        record_property(f"refused with {code}", times)
    record_property("kernels", n)
    record_property("equal to NumPy at every stage", n - len({r[0] for r in refused}))
    assert len(result["kernels"]) == n, (len(result["kernels"]), source)
    # a batch is small: what is too much shows over all of them, this only catches that everything is refused
    assert len(refused) <= max(4, 4 * REFUSED_SHARE_MAX * n), refused
