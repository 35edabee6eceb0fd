"""Parameters that a kernel writes or returns: as results, in place, from a NumPy kernel, and with arrays."""
import os
import subprocess
import sys

import numpy as np
import pytest

from support import compiler, nki_checks
from support.nki_kernels import HEAD
from support.paths import BUILD
from support.runs import simulated

KERNELS = HEAD + """
from nkigen import trace

@nki.jit
def add_to(a: nl.mutable_tensor, b):
    x, y = nl.load(a), nl.load(b)
    nisa.tensor_tensor(dst=x, data1=x, data2=y, op=nl.add)
    nl.store(a, x)
    return a

@nki.jit
def into(a, out):
    nl.store(out, nl.load(a))

@nki.jit
def same(a):
    return a

@nki.jit
def both(a, b):
    out = nl.ndarray(b.shape, b.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.load(b))
    nl.store(a, nl.load(b))
    return out, a
"""
A = "np.ones((128, 64), np.float32)"

# call: (kernel, outputs with the input that they are, or None)
ALONE = {
    f"add_to({A}, {A})": ("add_to", [("a", 0)]),
    f"into({A}, {A})": ("into", [("out", 1)]),
    f"same({A})": ("same", [("a", None)]),
    f"both({A}, {A})": ("both", [("out", None), ("a", 0)]),
}


@pytest.mark.parametrize("call", ALONE)
def test_a_result_that_is_a_parameter_is_written_in_place(call):
    name, outputs = ALONE[call]
    result = compiler.compile(f"{KERNELS}\n{call}\n", "--kernel", name, check=True)
    assert result["status"] == "ok", result["diagnostics"]
    [kernel] = result["kernels"]
    assert [(t["name"], t.get("alias_of")) for t in kernel["outputs"]] == outputs
    assert nki_checks.all_pass(kernel)


def test_calls_with_arrays_write_the_callers_arrays():
    source = KERNELS + """
a, b, c = np.full((8, 8), 3, np.float32), np.ones((8, 8), np.float32), np.zeros((8, 8), np.float32)
assert (add_to(a, b) == 4).all() and (a == 4).all() and (b == 1).all()
assert into(a, c) is None and (c == 4).all()
assert (same(a) == 4).all()
x, y = both(a, b)
assert (x == 1).all() and (y == 1).all() and (a == 1).all()
"""
    result = compiler.compile(source)
    assert result["status"] == "ok", result["diagnostics"]


# what a NumPy kernel of a and b does, and NumPy's formula for its results: those it returns, then the parameters that it wrote
MIXED = {
    "c = a * 2; d = add_to(c, b); return d + c": lambda a, b: [2 * (2 * a + b)],
    "into(a, b); return b + a": lambda a, b: [a + a, a],
    "into(a * 2, b); return a + 1": lambda a, b: [a + 1, a * 2],
    "e = same(a); return e, a + 1, e + b": lambda a, b: [a, a + 1, a + b],
    "add_to(a, b); add_to(a, b); return a @ b.T": lambda a, b: [(a + 2 * b) @ b.T, a + 2 * b],
    "x, y = both(a, b); return x + a, y": lambda a, b: [b + b, b],
    "c = a + b; x, y = both(c, b); return a - c": lambda a, b: [a - b],
}


@pytest.mark.parametrize("body", MIXED)
def test_a_numpy_kernel_goes_on_with_what_was_written(body, rng):
    source = f"{KERNELS}\n@trace(input_specs=[((128, 64), 'f32')] * 2)\ndef model(a, b):\n    {body}\n"
    result = compiler.compile(source, check=True)
    assert result["status"] == "ok", result["diagnostics"]
    [kernel] = result["kernels"]
    assert {s["check"]["status"] for s in kernel["stages"]} == {"pass"}
    arrays = {n: rng.uniform(-1, 1, (128, 64)).astype(np.float32) for n in ("a", "b")}
    got, _ = simulated(source, arrays)
    want = MIXED[body](**arrays)
    names = [t["name"] for t in kernel["outputs"]]
    assert len(names) >= len(want) - 1
    for name, w in zip(names, want):
        np.testing.assert_allclose(got[name], w, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("body, message", [
    ("nl.store(a, nl.load(b)); return b", "the kernel writes to the parameter a, but does not return it"),
    ("nl.load(a)", "the kernel returns nothing"),
    ("return a[0:64]", "a part of a is returned"),
])
def test_results_that_no_kernel_may_have_are_refused(body, message):
    source = f"{HEAD}\n@nki.jit\ndef kernel(a: nl.tensor[128, 64], b: nl.tensor[128, 64]):\n    {body}\n"
    [d] = [d for d in compiler.compile(source)["diagnostics"] if d["severity"] == "error"]
    assert d["code"] == "nki-output" and message in d["message"]


def test_a_named_tuple_that_is_an_argument_keeps_its_class():
    source = HEAD + """
from typing import NamedTuple

class Tile(NamedTuple):
    rows: int
    columns: int
    others: tuple = ()

@nki.jit
def part(x, tile, more=Tile(1, 2)):
    out = nl.ndarray((tile.rows, tile.columns), x.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.load(x[0:tile.rows, more.columns:more.columns + tile.columns]))
    return out

part(np.ones((128, 64), np.float32), Tile(rows=16, columns=8, others=(np.zeros(2, np.float32), 3)))
"""
    result = compiler.compile(source, check=True)
    assert result["status"] == "ok", result["diagnostics"]
    assert result["kernels"][0]["outputs"][0]["shape"] == [16, 8]


TUPLES = HEAD + """
from typing import NamedTuple

class Pair(NamedTuple):
    a: object
    b: object

@nki.jit
def mixed(operands, scales, bias=None):
    (x, y), (s, (t,)) = operands, scales
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    r = nl.add(nl.multiply(nl.load(x), s), nl.multiply(nl.load(y), nl.load(t)))
    nl.store(out, r if bias is None else nl.add(r, nl.load(bias[0])))
    return out

p, q = np.arange(128 * 8, dtype=np.float32).reshape(128, 8), np.ones((128, 8), np.float32)
"""


def test_tensors_in_tuples_are_inputs_with_names_of_their_own():
    result = compiler.compile(TUPLES + "print(np.array_equal(mixed(Pair(p, q), (3.0, (p,)), bias=(q,)), 3 * p + p * q + q))\n", check=True)
    [kernel] = result["kernels"]
    assert result["status"] == "ok" and [d["message"] for d in result["diagnostics"]] == ["True\n"]
    assert [i["name"] for i in kernel["inputs"]] == ["operands_0", "operands_1", "scales_1_0", "bias_0"]
    assert {s["check"]["status"] for s in kernel["stages"]} == {"pass"}


def test_tensors_in_tuples_run_in_an_ordinary_python(tmp_path):
    program = TUPLES + "r = nki.simulate(mixed)(Pair(p, q), (3.0, (p,)), bias=(q,))\nassert np.array_equal(r, 3 * p + p * q + q)\n" \
                       "assert np.array_equal(mixed((q, p), scales=(1.0, (q,))), q + p)\n"
    path = os.pathsep.join(map(str, (BUILD / "python", BUILD / "python/nkx/stubs")))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, cwd=tmp_path,
                          env={"PATH": os.environ["PATH"], "PYTHONPATH": path})
    assert done.returncode == 0, done.stderr
