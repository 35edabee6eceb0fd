"""Every NumPy operation of the front end: one table (support/operations/table.py), one sweep.

Of each operation the calls of its row, in every form and dtype and on drawn shapes, have NumPy's dtypes and shapes, and
XLA and the product's check compute NumPy's values from their HLO.  Its forms, on whole tiles, go through the whole
pipeline: the product's check on every stage and an evaluator of NISA on the last one compute what NumPy does.

    NKX_OPERATIONS=all pytest tests/conformance/test_operations.py
        the product's check runs all calls, on every stage down to linalg; every form and shape on every target
    NKX_OPERATION_CALLS=20000       so many more calls, drawn at random

Otherwise trn1 and trn3 get each operation's first form, shapes of whole tiles are left out, and the product's check runs
a third of the calls, on their first stage, and the first form of each operation.
"""
import os
import re
import warnings

import ml_dtypes
import numpy as np
import pytest

from support import compiler, reference
from support.marks import few
from support.operations import draw, sources
from support.operations.table import INDEXING, TABLE
from support.oracles import xla

ALL = os.environ.get("NKX_OPERATIONS") == "all"
MORE = int(os.environ.get("NKX_OPERATION_CALLS", "0"))
ROWS = TABLE | INDEXING
PARTS = 24
AT_ONCE = 100  # calls in one program for XLA, and in one process of ours
GROUP = 10  # calls in one kernel of ours: what compiles a function to machine code takes more than linear time
FORMS_AT_ONCE = 20
CHECKED = 1 if ALL or MORE else 3  # the product's check runs one call of so many
LAST = "hlo-to-linalg" if ALL or MORE else "trace"  # the stage up to which the product checks calls
DOWN = {"complex128": "complex64", "float64": "float32", "int64": "int32", "uint64": "uint32"}


# ---- the table ------------------------------------------------------------------------------------------------------


def test_the_table_has_every_operation_of_the_front_end_and_no_other():
    assert sorted(TABLE) == sorted(name for name, *_ in sources.operations())
    assert all(row.forms for row in TABLE.values())


@pytest.fixture(scope="module")
def all_calls():
    return {op: draw.calls(op, row.calls, f"x{k}_") for k, (op, row) in enumerate(ROWS.items())}


def test_every_name_that_numpy_has_for_an_operation_and_every_method_is_called(all_calls):
    missing = []
    for op, callables, method, _ in sources.operations():
        text = "\n".join([c.expression for c in all_calls[op]] + list(TABLE[op].forms))
        missing += [f"np.{name}" for name in callables.split() if f"np.{name}(" not in text]
        missing += [f"x.{method}" for method in [method] if method and not re.search(rf"\w\.{method}\(", text)]
    assert missing == []


# ---- calls ----------------------------------------------------------------------------------------------------------


def is_narrow(dtype):
    return dtype.name in draw.NARROW


def numpy_results(source, arrays):
    space = {}
    exec(source, space)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # means of nothing
        return [np.asarray(r) for r in space["kernel"](*[a.copy() for a in arrays.values()])]


def expected(call):
    """What NumPy gives, and the dtypes that it may have.  NumPy rounds every step of a sum to ml_dtypes' types, which loses
    long ones: values come from float32, rounded once."""
    source, arrays = sources.kernel([call])
    wide = {n: a.astype(np.float32) if is_narrow(a.dtype) else a for n, a in arrays.items()}
    (want,) = numpy_results(source, wide)
    dtypes = {DOWN.get(want.dtype.name, want.dtype.name)}
    narrow = {a.dtype.name for a in arrays.values() if is_narrow(a.dtype)}
    if narrow and "float32" in dtypes:  # NumPy leaves them where a function has constants of its own; ours do not
        dtypes |= narrow
    return want, dtypes


def assert_close(got, want, what, room=1):
    """room: for sums and products longer than those of the table."""
    assert got.shape == want.shape, what
    if want.dtype.kind not in "fc" and not is_narrow(want.dtype):
        np.testing.assert_array_equal(got, want, err_msg=what)
        return
    rtol, atol = {"float16": (4e-3, 4e-3), "float32": (2e-5, 5e-6), "complex64": (2e-5, 2e-5)}.get(want.dtype.name) or (2 * float(ml_dtypes.finfo(want.dtype).eps),) * 2
    rtol, atol = rtol * room, atol * room
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    np.testing.assert_allclose(got.astype(wide), want.astype(wide), rtol, atol, equal_nan=True, err_msg=what)


def prove_calls(calls, room):
    """Dtypes, shapes and values of calls, by NumPy and by XLA on our HLO."""
    source, arrays = sources.kernel(calls)
    kernel = xla.trace(source, inputs=[(n, a.shape, a.dtype.name) for n, a in arrays.items()])
    got, wrong = xla.run(kernel["proto"], list(arrays.values())), []
    for call, g, out in zip(calls, got, kernel["outputs"], strict=True):
        what = f"{call.expression} of { {n: (a.dtype.name, a.shape) for n, a in call.arrays.items()} } {''.join(call.helpers.values())}"
        want, dtypes = expected(call)
        try:
            assert out["dtype"] in dtypes and out["shape"] == want.shape, (what, out["dtype"], dtypes, out["shape"], want.shape)
            assert_close(g, want.astype(g.dtype), what, room)
        except AssertionError as e:
            wrong.append(str(e)[:1200])
    assert not wrong, f"{len(wrong)} of {len(calls)}:\n" + "\n".join(wrong)


def prove_by_the_check(calls, tmp):
    """The product's own check of the same calls, stage by stage."""
    source, inputs = sources.kernels([calls[k:k + GROUP] for k in range(0, len(calls), GROUP)])
    path = tmp / "inputs.npz"
    np.savez(path, **{n: a.astype(np.float32) if is_narrow(a.dtype) else a for n, a in inputs.items()})
    result = compiler.compile(source, "--inputs", str(path), "--stop-after", LAST, check=True, timeout=300)
    assert result["diagnostics"] == [], result["diagnostics"]
    for k in result["kernels"]:
        assert [s["name"] for s in k["stages"]][-1] == LAST
        assert all(compiler.is_checked(s) for s in k["stages"]), [s["check"] for s in k["stages"]]
    assert len(result["kernels"]) == -(-len(calls) // GROUP)


def prove_all(calls, tmp, room=1):
    for k in range(0, len(calls), AT_ONCE):
        prove_calls(calls[k:k + AT_ONCE], room)
        prove_by_the_check(calls[k:k + AT_ONCE:CHECKED], tmp)


@pytest.mark.parametrize("part", few(range(PARTS), 12))
def test_calls_have_numpys_dtypes_shapes_and_values(part, all_calls, tmp_path):
    prove_all([c for calls in all_calls.values() for c in calls][part::PARTS], tmp_path)


@pytest.mark.parametrize("op", ROWS if MORE else [])
def test_more_drawn_calls_have_numpys_dtypes_shapes_and_values(op, tmp_path):
    n = -(-MORE // len(ROWS))
    prove_all(draw.calls(op, ROWS[op].calls, "x", more=n)[-n:], tmp_path, room=5)


# ---- forms ----------------------------------------------------------------------------------------------------------


def batches():
    """[(target, whether the product's check runs every stage, forms)]"""
    made = []
    forms = sources.forms(sources.SHAPES if ALL else sources.SHAPES[:1])
    first, more = [f for f in forms if f.number == 0], [f for f in forms if f.number]
    for target in ("trn2", "trn1", "trn3"):
        for some in (first, more if ALL or target == "trn2" else []):
            checked = target == "trn2" and (ALL or some is first)
            made += [(target, checked, some[k:k + FORMS_AT_ONCE]) for k in range(0, len(some), FORMS_AT_ONCE)]
    return made


@pytest.mark.parametrize("target, checked, batch", few(batches(), 28, lambda b: f"{b[0]}-{b[2][0].name}"))
def test_forms_compute_on_every_stage_what_numpy_computes(target, checked, batch):
    source = sources.FORMS_HEAD + "\n".join(f.source for f in batch)
    result = compiler.compile(source, "--target", target, check=checked, timeout=600)
    plain, wrong = reference.functions(source), []
    refused = {batch[d["kernel"]].name: d for d in result["diagnostics"] if d["severity"] == "error"}
    for form, kernel in zip(batch, result["kernels"], strict=True):
        if form.name in refused:
            wrong.append((form.name, refused[form.name]["code"], refused[form.name]["message"]))
            continue
        wrong += [(form.name, s["name"], s["check"]) for s in kernel["stages"] if checked and not compiler.is_checked(s)]
        inputs = sources.form_inputs(kernel, np.random.default_rng(3))
        try:
            reference.assert_nisa(kernel, inputs, reference.call(plain[form.name], kernel, inputs))
        except Exception as e:
            wrong.append((form.name, type(e).__name__, str(e)[:600]))
    assert not wrong, "\n".join(map(str, wrong))


SORTS = """
@trace(input_specs=[((33, 9), "{t}")])
def sort_{t}(x):
    return np.sort(x, axis=1, kind="stable"), np.argsort(x, axis=0, kind="stable"), np.median(x, axis=1)


@trace(input_specs=[((33, 9), "{t}")])
def top_{t}(x):
    return *ops.topk(x, 5), *ops.topk(x, 4, is_ascend=True)
"""


def test_sorts_on_nisa_keep_zeros_apart_and_nan_last_as_numpy_does():
    source = sources.FORMS_HEAD + "".join(SORTS.format(t=t) for t in ("float32", "float16"))
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
