"""Helpers of the conformance tests: compile a source with the product, run it with plain NumPy, compare."""
import builtins
import json
import os
import pathlib
import subprocess
import sys

import ml_dtypes
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = ROOT / os.environ.get("BUILD", "build")
NKX = BUILD / "bin/nkx"

sys.path.append(str(ROOT / "tests/passes"))
import nisa_eval  # noqa: E402

# The same numbers as compiler/driver/check.c states, per output dtype: (relative, absolute).
TOLERANCE = {"float32": (1e-4, 1e-5), "float16": (1e-2, 1e-2), "bfloat16": (1e-2, 1e-2)}


def compile(source, *arguments, check=False, timeout=120):
    """The result object of `nkx compile`; raises only if the product itself fails (exit status 4, a crash)."""
    done = subprocess.run(
        [NKX, "compile", "-", "--quiet", "--json", "-", *(["--check"] if check else []), *arguments],
        input=source.encode(), capture_output=True, timeout=timeout,
    )
    assert done.returncode in (0, 1, 3), (done.returncode, done.stderr.decode()[-2000:])
    return json.loads(done.stdout)


def is_checked(stage):
    """True if the stage's check passed.  NISA is verified against the hardware's rules, but not run: see assert_nisa."""
    return stage["check"]["status"] == ("skipped" if stage["dialect"] == "nisa" else "pass")


def pipeline():
    text = (ROOT / "compiler/driver/stages.def").read_text()
    return [line for line in text.splitlines() if line.startswith("STAGE(")]


def dtype(name):
    return np.dtype(getattr(ml_dtypes, name)) if name == "bfloat16" or name.startswith("float8") else np.dtype(name)


def random_inputs(kernel, seed=7):
    rng = np.random.default_rng(seed)
    arrays = []
    for tensor in kernel["inputs"]:
        t = dtype(tensor["dtype"])
        if t.kind in "iu":
            arrays.append(rng.integers(0, 8, tensor["shape"]).astype(t))
        elif t.kind == "b":
            arrays.append(rng.integers(0, 2, tensor["shape"]).astype(t))
        else:
            arrays.append(rng.uniform(-1, 1, tensor["shape"]).astype(np.float32).astype(t))
    return arrays


def output_types(kernel):
    return [(tuple(t["shape"]), dtype(t["dtype"])) for t in kernel["outputs"]]


PLAIN = """
import json, sys, types
import numpy as np
source, name, path = sys.stdin.read(), sys.argv[1], sys.argv[2]
module = types.ModuleType("kernel")
exec(compile(source, "kernel.py", "exec"), module.__dict__)
f = module.__dict__[name]
f = getattr(f, "__wrapped__", f)
arrays = np.load(path, allow_pickle=True)["arrays"].tolist()
got = f(*arrays)
got = [] if got is None else list(got) if isinstance(got, (tuple, list)) else [got]
outputs = json.loads(sys.argv[3])
# outputs that the kernel did not return itself are parameters it assigned to
got = [g for g in got] + [arrays[i] for i in outputs[len(got):]]
np.savez(path + ".out.npz", *[np.asarray(g, np.float32) for g in got])
"""


def run_numpy(source, kernel, inputs):
    """Runs the kernel's Python function on copies of the inputs with plain NumPy; results as float32 arrays of the outputs' dtypes."""
    import tempfile

    with tempfile.TemporaryDirectory() as tmp:
        path = f"{tmp}/in.npz"
        boxed = np.empty(len(inputs), object)
        for i, a in enumerate(inputs):
            boxed[i] = a.copy()
        np.savez(path, arrays=boxed)
        env = {**os.environ, "PYTHONPATH": str(BUILD / "python"), "OPENBLAS_NUM_THREADS": "1"}
        alias = [t.get("alias_of", -1) for t in kernel["outputs"]]
        done = subprocess.run([sys.executable, "-c", PLAIN, kernel["name"], path, json.dumps(alias)],
                              input=source, text=True, capture_output=True, env=env)
        assert done.returncode == 0, done.stderr[-2000:]
        with np.load(path + ".out.npz") as z:
            got = [z[f"arr_{i}"] for i in range(len(z.files))]
    return [g.astype(t) for g, (_, t) in zip(got, output_types(kernel))]


def functions(source):
    """The source's names, run with plain NumPy in this process: for many small kernels, where run_numpy takes too long."""
    with_packages = str(BUILD / "python")
    sys.path.append(with_packages)
    names = {}
    try:
        exec(builtins.compile(source, "kernel.py", "exec"), names)
    finally:
        sys.path.remove(with_packages)  # it may not be the last any more: a package adds its stand-ins
    return names


def call(function, kernel, inputs):
    """What run_numpy returns, by a function of functions()."""
    arrays = [a.copy() for a in inputs]
    with np.errstate(all="ignore"):
        got = getattr(function, "__wrapped__", function)(*arrays)
    got = [] if got is None else list(got) if isinstance(got, (tuple, list)) else [got]
    got += [arrays[t["alias_of"]] for t in kernel["outputs"][len(got):]]
    return [np.asarray(g).astype(t) for g, (_, t) in zip(got, output_types(kernel))]


def run_nisa(kernel, inputs):
    """The instructions of a compiled kernel, evaluated one by one."""
    got = nisa_eval.run(kernel["stages"][-1]["text"], [a.copy() for a in inputs])
    return [g.view(t) for g, (_, t) in zip(got, output_types(kernel))]  # NISA knows no unsigned types


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


# Operations that hold a program together rather than compute or copy: they need no place in the source.
STRUCTURE = ("builtin.module", "func.func", "func.return", "linalg.yield", "scf.yield", "linalg.index", "HloModule")


def operations(stage):
    """(line text, entry) of every line that computes or moves data."""
    for text, entry in zip(stage["text"].split("\n"), stage["lines"]):
        body = text.strip()
        if "op" in entry and not body.startswith(("module", "func.func", "return", "linalg.yield", "scf.yield", "}")):
            yield body, entry


def unmapped(stage):
    return [body for body, entry in operations(stage) if not entry.get("src")]


def mapped_share(stage):
    all_ops = list(operations(stage))
    if stage["dialect"] == "hlo":  # parameters and the root stand for the signature and the return
        all_ops = [(b, e) for b, e in all_ops if " parameter(" not in b and not b.startswith("ROOT ")]
    return 1.0 if not all_ops else 1 - sum(not e.get("src") for _, e in all_ops) / len(all_ops)


def all_ids(stage):
    ids = {e["op"] for e in stage["lines"] if "op" in e}
    if stage["dialect"] != "hlo":  # operations of regions that are not printed have ids too
        ids |= set(range(max(ids, default=-1) + 1))
        ids |= set(range(len(ids), len(ids) + 4096))
    return ids
