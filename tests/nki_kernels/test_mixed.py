"""NumPy kernels that call NKI kernels, compiled as a whole: every stage computes what NumPy and the NKI calls compute, and the
simulated program computes NumPy's formula."""

import numpy as np
import pytest

from support import compiler
from support.nki_kernels import HEAD, TARGETS
from support.runs import simulated

SOFTMAX = HEAD + """
from nkigen import CustomOp, trace
from nkipy.core import nki_op
from typing import NamedTuple

class Rest(NamedTuple):
    factor: float
    b: object

@nki.jit
def softmax(x):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    for first in range(0, x.shape[0], 128):
        rows = slice(first, min(first + 128, x.shape[0]))
        t = nl.load(x[rows])
        m, s = nl.ndarray((t.shape[0], 1), nl.float32), nl.ndarray((t.shape[0], 1), nl.float32)
        e = nl.ndarray(t.shape, nl.float32)
        nisa.tensor_reduce(dst=m, op=nl.maximum, data=t, axis=1, negate=True)
        nisa.activation(dst=e, op=nl.exp, data=t, bias=m)
        nisa.tensor_reduce(dst=s, op=nl.add, data=e, axis=1)
        nisa.reciprocal(dst=s, data=s)
        nisa.tensor_scalar(dst=e, data=e, op0=nl.multiply, operand0=s)
        nl.store(out[rows], e)
    return out

@nki.jit
def mean_and_largest(x, factor=1.0):
    mean = nl.ndarray((x.shape[0], 1), nl.float32, buffer=nl.shared_hbm)
    largest = nl.ndarray((x.shape[0], 1), nl.float32, buffer=nl.shared_hbm)
    t, r = nl.load(x), nl.ndarray((x.shape[0], 1), nl.float32)
    nisa.tensor_reduce(dst=r, op=nl.add, data=t, axis=1)
    nisa.tensor_scalar(dst=r, data=r, op0=nl.multiply, operand0=factor / x.shape[1])
    nl.store(mean, r)
    nisa.tensor_reduce(dst=r, op=nl.maximum, data=t, axis=1)
    nl.store(largest, r)
    return mean, largest

@nki.jit
def sum_of(pair, rest):
    out = nl.ndarray(rest.b.shape, rest.b.dtype, buffer=nl.shared_hbm)
    t = nl.load(pair[0])
    for x in (pair[1], rest.b):
        nisa.tensor_tensor(dst=t, data1=t, data2=nl.load(x), op=nl.add)
    nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=rest.factor)
    nl.store(out, t)
    return out

@nki.jit
def turned(x):
    # a view that steps over both dimensions of x at once: it reads x as one row of elements
    out = nl.ndarray((64, 128), x.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray((64, 128), x.dtype)
    nisa.dma_copy(dst=t, src=x.ap([[128, 64], [1, 128]]))
    nisa.dma_copy(dst=out, src=t)
    return out
"""


def softmax(x):
    e = np.exp(x.astype(np.float32) - x.max(1, keepdims=True).astype(np.float32))
    return e / e.sum(1, keepdims=True)


AB = "a=128x64:f32", "b=64x128:f32"

# name: (function, inputs, NumPy's formula, largest error)
KERNELS = {
    "between two products": (
        "def model(a, b):\n    return softmax(a @ b) @ a\n", AB, lambda a, b: softmax(a @ b) @ a, 1e-5),
    "with different shapes": (
        "def model(a, b):\n    return softmax(a), softmax(b) + softmax(x=b * 2), softmax(np.concatenate([a, a, a * 3], axis=0))\n", AB,
        lambda a, b: (softmax(a), softmax(b) + softmax(b * 2), softmax(np.concatenate([a, a, a * 3]))), 1e-5),
    "a result used twice": (
        "def model(a, b):\n    y = softmax(a)\n    return y @ b, y - a\n", AB, lambda a, b: (softmax(a) @ b, softmax(a) - a), 1e-5),
    "two results": (
        "def model(a, b):\n    mean, largest = mean_and_largest(a @ b, factor=2.0)\n    return (a - mean) / largest\n", AB,
        lambda a, b: (a - 2 * (a @ b).mean(1, keepdims=True)) / (a @ b).max(1, keepdims=True), 1e-4),
    "in bf16": (
        "def model(a, b):\n    return softmax(a @ b) @ a\n", ("a=128x64:bf16", "b=64x128:bf16"),
        lambda a, b: softmax(a.astype(np.float32) @ b.astype(np.float32)) @ a.astype(np.float32), 2e-2),
    "alone": ("def model(a):\n    return softmax(a)\n", AB[:1], softmax, 1e-5),
    "of its own result": ("def model(a):\n    return softmax(softmax(softmax(a) * 8))\n", AB[:1],
                          lambda a: softmax(softmax(softmax(a) * 8)), 1e-5),
    "that needs its array without gaps": (
        "def model(a, b):\n    return turned((a @ b)[:, 64:] * 2) + b\n", AB, lambda a, b: ((a @ b)[:, 64:] * 2).reshape(64, 128) + b, 1e-5),
    "wrapped": (
        "soft = nki_op.wrap_nki_kernel(softmax, [np.zeros((128, 64), np.float32)])\ndef model(a):\n    softmax\n    return soft(a * 2) + 1\n",
        AB[:1], lambda a: softmax(a * 2) + 1, 1e-5),
    "as a custom op": (
        "soft = nki_op.nki_custom_op(nki_kernel=softmax)\ndef model(a):\n    softmax\n    return soft(a * 2) + 1\n", AB[:1],
        lambda a: softmax(a * 2) + 1, 1e-5),
    "with tensors in tuples": (
        "def model(a, b):\n    return sum_of((a, a * 2), Rest(3.0, b.T)) @ b\n", AB, lambda a, b: 3 * (3 * a + b.T) @ b, 1e-5),
    "with a constant": (
        "def model(a):\n    return softmax(np.eye(64, dtype=np.float32)) @ softmax(a.T)\n", AB[:1],
        lambda a: softmax(np.eye(64, dtype=np.float32)) @ softmax(a.T), 1e-5),
    "decorated": (
        "@trace(input_specs=[((128, 64), 'f32'), ((64, 128), 'f32')])\ndef model(a, b):\n    return softmax(a @ b) @ a\n", (),
        lambda a, b: softmax(a @ b) @ a, 1e-5),
}


def inputs_of(name):
    return [x for spec in KERNELS[name][1] for x in ("--input", spec)]


@pytest.mark.parametrize("name", KERNELS)
def test_every_stage_computes_what_the_whole_computes(name):
    result = compiler.compile(SOFTMAX + KERNELS[name][0], *inputs_of(name), check=True)
    assert result["status"] == "ok", result["diagnostics"]
    [kernel] = result["kernels"]  # the NKI kernels are parts of it
    assert kernel["name"] == "model" and kernel["pipeline"] == "hlo" and len(kernel["stages"]) == len(compiler.pipeline())
    assert {s["name"]: s["check"] for s in kernel["stages"] if s["check"]["status"] != "pass"} == {}
    last = compiler.stage(kernel, "linalg-to-nisa")["text"]
    assert "func.call" not in last and "nki." not in last.replace("nki.output_names", "") and last.count("func.func") == 1


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", KERNELS)
def test_both_parts_are_simulated_together_and_compute_numpys_formula(name, target):
    function, _, formula, error = KERNELS[name]
    [compiled] = compiler.compile(SOFTMAX + function, *inputs_of(name), "--stop-after", "trace")["kernels"]
    arrays = {t["name"]: a for t, a in zip(compiled["inputs"], compiler.random_inputs(compiled))}
    outputs, ran = simulated(SOFTMAX + function, arrays, *inputs_of(name), "--target", target)
    assert ran["simulation"]["reference"] == "numpy"
    want = formula(*arrays.values())
    for t, w in zip(compiled["outputs"], want if isinstance(want, tuple) else (want,), strict=True):
        got = np.asarray(outputs[t["name"]], np.float64)
        assert got.shape == w.shape and np.abs(got - w).max() <= error * max(1.0, np.abs(w).max())


def test_the_hlo_names_the_kernel_and_equal_calls_share_one_record():
    source = SOFTMAX + "def model(a, b):\n    return softmax(a) + softmax(a * 2), softmax(b), mean_and_largest(b), mean_and_largest(b, 2.0)[0]\n"
    source = source.replace("mean_and_largest(b),", "*mean_and_largest(b),")
    [kernel] = compiler.compile(source, "--input", "a=128x64:f32", "--input", "b=64x128:f32")["kernels"]
    text = kernel["stages"][0]["text"]
    targets = [line.split('custom_call_target="')[1].split('"')[0] for line in text.splitlines() if "custom_call_target" in line]
    assert sorted(targets) == ["nki.mean_and_largest", "nki.mean_and_largest.2", "nki.softmax", "nki.softmax", "nki.softmax.2"]
    linalg = compiler.stage(kernel, "hlo-to-linalg")["text"]
    assert linalg.count("func.func private @nki.") == 4 and "call @nki.softmax(" in linalg


def test_a_line_of_the_kernels_instructions_leads_to_its_python_line_and_to_the_call():
    source = SOFTMAX + KERNELS["between two products"][0]
    lines = source.splitlines()
    inside = next(i + 1 for i, line in enumerate(lines) if "op=nl.exp" in line)
    call = next(i + 1 for i, line in enumerate(lines) if "softmax(a @ b)" in line)
    [kernel] = compiler.compile(source, *inputs_of("between two products"))["kernels"]
    for name in ("linalg-to-nisa", "allocate-memory", "engine-programs"):
        stage = compiler.stage(kernel, name)
        at = [k for k, text in enumerate(stage["text"].splitlines()) if "nisa.activation" in text]
        assert at, name
        for k in at:
            assert [place["line"] for place in stage["lines"][k]["src"]] == [inside, call], name
    stages = kernel["stages"]
    at = next(i for i, s in enumerate(stages) if s["name"] == "linalg-to-nisa")
    text, before = stages[at]["text"].splitlines(), stages[at - 1]
    op = stages[at]["lines"][next(k for k, line in enumerate(text) if "nisa.activation" in line)]["op"]
    [source_op] = stages[at]["from"][str(op)]
    [line] = [k for k, x in enumerate(before["lines"]) if x.get("op") == source_op]
    assert "call @nki.softmax" in before["text"].splitlines()[line]


def test_an_error_inside_the_kernel_has_its_place_and_that_of_the_call():
    source = SOFTMAX.replace("op=nl.exp, data=t, bias=m", "op=nl.exp, data=t, bias=e") + KERNELS["alone"][0]
    result = compiler.compile(source, *inputs_of("alone"))
    [d] = [d for d in result["diagnostics"] if d["severity"] == "error"]
    lines = source.splitlines()
    assert d["code"].startswith("nki-") and "op=nl.exp" in lines[d["range"]["line"] - 1]
    assert ["softmax(a)" in lines[c["line"] - 1] for c in d["calls"]] == [True]


def test_a_function_is_chosen_by_name_or_by_the_inputs():
    source = SOFTMAX + KERNELS["between two products"][0]
    names = lambda *arguments: [k["name"] for k in compiler.compile(source, *arguments, "--stop-after", "trace")["kernels"]]
    assert names("--input", "a=128x64:f32", "--input", "b=64x128:f32") == ["model"]
    assert names("--input", "x=128x64:f32", "--kernel", "softmax") == ["softmax"]
    annotated = source.replace("def softmax(x)", "def softmax(x: nl.tensor[128, 64])")
    result = compiler.compile(annotated)
    assert [k["name"] for k in result["kernels"]] == ["softmax"]  # it has shapes of its own


def kernels_of(driver, *arguments):
    source = SOFTMAX + "def model(a, b):\n    return softmax(a @ b) @ a\n" + driver
    result = compiler.compile(source, *arguments)
    assert result["status"] == "ok", result["diagnostics"]
    return [k["name"] for k in result["kernels"]], result


AT_ONCE = "model(np.ones((128, 64), np.float32), np.full((64, 128), 2, np.float32))\n"


@pytest.mark.parametrize("driver", [AT_ONCE, "if __name__ == '__main__':\n    " + AT_ONCE, "softmax(np.ones((128, 128), np.float32))\n" + AT_ONCE,
                                    "def main():\n    print(" + AT_ONCE.strip() + ")\nmain()\n"])
def test_a_function_that_the_file_calls_with_arrays_is_compiled_beside_the_kernels_that_it_calls(driver):
    names, result = kernels_of(driver, "--check")
    assert names == ["softmax", "model"]
    assert [x["shape"] for x in result["kernels"][1]["inputs"]] == [[128, 64], [64, 128]]
    assert [s["name"] for k in result["kernels"] for s in k["stages"] if s["check"]["status"] != "pass"] == []


@pytest.mark.parametrize("function", ["def only(a):\n    return softmax(x=a)\nonly", "def nothing(a):\n    softmax(a)\nnothing"])
def test_a_function_that_adds_nothing_is_left_out(function):
    names, result = kernels_of(function + "(np.ones((128, 64), np.float32))\n")
    assert names == ["softmax"] and not result["diagnostics"]


def test_a_test_of_a_kernel_is_none_and_a_note_says_so():
    test = "def test(a):\n    y = softmax(a)\n    np.testing.assert_allclose(y.sum(1), 1, rtol=1e-5)\n    return y\n"
    names, result = kernels_of(test + "test(np.ones((128, 64), np.float32))\n")
    [note] = result["diagnostics"]
    assert names == ["softmax"] and note["severity"] == "note" and '"test", which calls NKI kernels' in note["message"]
    assert note["range"]["line"] == SOFTMAX.count("\n") + 5
