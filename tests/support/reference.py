"""What a kernel computes as plain Python with NumPy, and whether the product's stages compute the same.

    want = reference.run_numpy(source, kernel, inputs)
    reference.assert_nisa(kernel, inputs, want)
"""
import builtins
import functools
import warnings

import numpy as np

from support import compiler
from support.compiler import output_types
from support.oracles import nisa_eval

# The same numbers as compiler/driver/check.c states, per output dtype: (relative, absolute).
TOLERANCE = {"float32": (1e-4, 1e-5), "float16": (1e-2, 1e-2), "bfloat16": (1e-2, 1e-2)}


@functools.lru_cache(8)
def functions(source):
    """The source's names, run as plain Python."""
    names = {}
    exec(builtins.compile(source, "kernel.py", "exec"), names)
    return names


def run_numpy(source, kernel, inputs):
    """Runs the kernel's Python function on copies of the inputs with plain NumPy; results of the outputs' dtypes."""
    return call(functions(source)[kernel["name"]], kernel, inputs)


def call(function, kernel, inputs):
    """The same, of a function of functions().  Outputs that it does not return are parameters that it assigned to."""
    arrays = [a.copy() for a in inputs]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # means of nothing
        got = getattr(function, "__wrapped__", function)(*arrays)
    got = [] if got is None else list(got) if isinstance(got, (tuple, list)) else [got]
    got += [arrays[t["alias_of"]] for t in kernel["outputs"][len(got):]]
    return [_paired(np.asarray(g)).astype(t) for g, (_, t) in zip(got, output_types(kernel))]


def _paired(a):
    """Complex numbers are pairs of reals where a kernel returns them."""
    return np.stack([a.real, a.imag], -1) if a.dtype.kind == "c" else a


def run_nisa(kernel, inputs):
    """The instructions of a compiled kernel, evaluated one by one in program order."""
    got = nisa_eval.run(compiler.stage(kernel, "linalg-to-nisa")["text"], [a.copy() for a in inputs])
    return [g.view(t) for g, (_, t) in zip(got, output_types(kernel))]  # NISA knows no unsigned types


def run_simulated(simulator, kernel, inputs, seed=1):
    """(stage, results) of each stage of NISA, run by the product's simulator; engine programs in a random order of their
    streams.  Nothing if a text has its constants shortened, so that it cannot be run."""
    stages = [s for s in kernel["stages"] if s["dialect"] == "nisa"]
    if any("__elided__" in s["text"] for s in stages):
        return
    for s in stages:
        got = simulator.run(s["text"], inputs, schedule="random", seed=seed)
        yield s["name"], [g.view(t) for g, (_, t) in zip(got, output_types(kernel), strict=True)]


def assert_nisa(kernel, inputs, want):
    assert_close(run_nisa(kernel, inputs), want, f"{kernel['name']} on NISA")


def assert_nisa_is_function(kernel, inputs, function):
    """The same against a function of functions().  Of sums in bf16 and f16 NumPy rounds every step, which the machine does
    not: there, NumPy's result in f32 is right, too."""
    got = run_nisa(kernel, inputs)
    try:
        assert_close(got, call(function, kernel, inputs), f"{kernel['name']} on NISA")
    except AssertionError:
        narrow = [a.dtype.itemsize == 2 and a.dtype.kind not in "iu" for a in inputs]
        if not any(narrow):
            raise
        wide = [a.astype(np.float32) if is_narrow else a for a, is_narrow in zip(inputs, narrow)]
        assert_close(got, call(function, kernel, wide), f"{kernel['name']} on NISA")


def exactly(function, inputs):
    """What it computes in f64."""
    exact = getattr(function, "__wrapped__", function)(*[a.astype(np.float64) for a in inputs])
    return exact if isinstance(exact, tuple) else [exact]


def assert_as_exact_as(plain, got, exact, what):
    """For kernels so long that f32 itself is off by more than the tolerance: the largest error, measured in f64, is at most
    twice that of NumPy's own result in f32, `plain`."""
    for g, p, e in zip(got, plain, exact, strict=True):
        assert e.dtype == np.float64
        ours, numpys = np.abs(g - e).max(), np.abs(p - e).max()
        assert ours <= 2 * numpys, f"{what}: off by {ours}, NumPy by {numpys}"


def assert_close(got, want, what):
    assert len(got) == len(want), what
    for i, (g, w) in enumerate(zip(got, want)):
        assert g.shape == w.shape, (what, i, g.shape, w.shape)
        if w.dtype.kind in "iub":
            assert np.array_equal(g, w), f"{what}: output {i}"
        else:
            rtol, atol = TOLERANCE.get(str(w.dtype), (1e-2, 1e-2))
            w32 = w.astype(np.float32)
            finite = np.abs(w32[np.isfinite(w32)])
            atol *= max(1.0, finite.max(initial=0.0))
            np.testing.assert_allclose(g.astype(np.float32), w32, rtol, atol, err_msg=f"{what}: output {i}")
