"""Every operation of the front end on drawn dtypes, ranks, sizes and values: NumPy against XLA on our HLO, and against the
linalg that it is lowered to, in the MLIR engine (the product's own check).

    NKX_OPERATION_CASES=20000 pytest tests/conformance/test_operation_cases.py

With more than 2,000 cases every stage up to hlo-to-linalg is checked; otherwise the unoptimised HLO only.
"""
import os
import pathlib
import random
import sys
import warnings

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings, strategies as st

from support import compiler
from support.operations import calls as operation_cases, forms as operations
from support.oracles import xla

TOTAL = int(os.environ.get("NKX_OPERATION_CASES", "2000"))
PARTS = 4  # files of work for pytest-xdist
BATCH = 100  # cases in one program for XLA, and in one process of ours
GROUP = 10  # cases in one kernel of ours: what compiles a function to machine code takes more than linear time
LAST = "trace" if TOTAL <= 2000 else "hlo-to-linalg"
DOWN = {"float64": "float32", "int64": "int32", "uint64": "uint32"}
NAMES = sorted(operation_cases.CASES)


def test_every_operation_has_cases():
    assert NAMES == sorted(operations.operations())


def is_narrow(dtype):
    return dtype.name in operation_cases.NARROW


def numpy_results(source, arrays):
    space = {}
    exec(source, space)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # means of nothing
        return [np.asarray(r) for r in space["kernel"](*[a.copy() for a in arrays.values()])]


def expected(case):
    """What NumPy gives, and the dtypes that it may have.  NumPy rounds every step of a sum to ml_dtypes' types, which loses
    long ones: values come from float32, rounded once."""
    source, arrays = operation_cases.kernel([case])
    wide = {n: a.astype(np.float32) if is_narrow(a.dtype) else a for n, a in arrays.items()}
    (want,) = numpy_results(source, wide)
    dtypes = {DOWN.get(want.dtype.name, want.dtype.name)}
    narrow = {a.dtype.name for a in arrays.values() if is_narrow(a.dtype)}
    if narrow and "float32" in dtypes:  # NumPy leaves them where a function has constants of its own; ours do not
        dtypes |= narrow
    return want, dtypes


def through_the_engine(cases, tmp):
    """The result of a compilation up to the linalg stage, checked there with these inputs."""
    source, inputs = operation_cases.kernels([cases[k:k + GROUP] for k in range(0, len(cases), GROUP)])
    path = tmp / "inputs.npz"
    np.savez(path, **{n: a.astype(np.float32) if is_narrow(a.dtype) else a for n, a in inputs.items()})
    return compiler.compile(source, "--inputs", str(path), "--stop-after", LAST, check=True, timeout=300)


def close(got, want, what):
    """As xla.assert_close, with room for the rounding of a chain of operations."""
    assert got.shape == want.shape, what
    if want.dtype.kind != "f" and not is_narrow(want.dtype):
        np.testing.assert_array_equal(got, want, err_msg=what)
        return
    rtol, atol = {"float16": (1e-2, 1e-2), "float32": (1e-4, 2e-5)}.get(want.dtype.name) or (4 * float(ml_dtypes.finfo(want.dtype).eps),) * 2
    np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol, atol, equal_nan=True, err_msg=what)


def check(cases, tmp):
    source, arrays = operation_cases.kernel(cases)
    kernel = xla.trace(source, inputs=[(n, a.shape, a.dtype.name) for n, a in arrays.items()])
    got = xla.run(kernel["proto"], list(arrays.values()))
    for case, g, out in zip(cases, got, kernel["outputs"], strict=True):
        what = f"{case.expression} of { {n: (a.dtype.name, a.shape) for n, a in case.arrays.items()} }"
        want, dtypes = expected(case)
        assert out["dtype"] in dtypes and out["shape"] == want.shape, what
        close(g, want.astype(g.dtype), what)
    result = through_the_engine(cases, tmp)
    assert result["diagnostics"] == [], result["diagnostics"]
    for k in result["kernels"]:
        assert [s["name"] for s in k["stages"]][-1] == LAST
        assert all(compiler.is_checked(s) for s in k["stages"]), [s["check"] for s in k["stages"]]
    assert len(result["kernels"]) == -(-len(cases) // GROUP)


@pytest.mark.parametrize("part", range(PARTS))
def test_drawn_calls(part, tmp_path):
    @seed(part)
    @settings(max_examples=max(1, TOTAL // PARTS // BATCH), deadline=None, database=None,
              phases=[Phase.generate],  # a failing batch names its case: nothing to shrink
              suppress_health_check=list(HealthCheck))
    @given(st.integers(0, 1 << 40))
    def drawn(start):
        r = random.Random(start)
        order = r.sample(NAMES, BATCH) if BATCH <= len(NAMES) else r.choices(NAMES, k=BATCH)
        check([operation_cases.draw(r, op, f"x{k}") for k, op in enumerate(order)], tmp_path)

    drawn()
