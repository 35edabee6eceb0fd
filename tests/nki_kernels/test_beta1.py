"""NKI beta 1: kernels written like the public ones compute NumPy's formula, on three targets and on arrays; and the same
kernel in both generations becomes the same instructions."""
import re

import numpy as np
import pytest

from support import compiler
from support.nki_kernels import TARGETS
from support.nki_beta1 import HEAD, KERNELS
from support.nki_pairs import PAIRS, source_of
from support.runs import simulated


def close(got, want, error):
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    scale = max(1.0, float(np.abs(want).max()))
    return got.shape == want.shape and float(np.abs(got - want).max()) <= error * scale


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", KERNELS)
def test_every_stage_computes_what_the_calls_compute(name, target):
    result = compiler.compile(HEAD + KERNELS[name][0], "--target", target, check=True)
    assert result["status"] == "ok", result["diagnostics"]
    [kernel] = result["kernels"]
    assert kernel["pipeline"] == "nki"
    assert all(s["check"]["status"] == "pass" for s in kernel["stages"] if s["dialect"] == "nisa"), kernel["stages"]


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_of_beta_1_on_the_simulated_machine_computes_numpys_formula(name):
    """With its loops rolled, and with the same bits unrolled."""
    source, formula, error = KERNELS[name]
    [compiled] = compiler.compile(HEAD + source)["kernels"]
    inputs = {t["name"]: a for t, a in zip(compiled["inputs"], compiler.random_inputs(compiled))}
    rolled, unrolled = (simulated(HEAD + source, inputs, *a)[0] for a in ([], ["--unroll"]))
    [t] = compiled["outputs"]
    assert close(rolled[t["name"]], formula(*inputs.values()), error)
    assert rolled[t["name"]].tobytes() == unrolled[t["name"]].tobytes()


# ---- pairs ----------------------------------------------------------------------------------------------------------


def plain(text):
    """The text with names that count: those of values, in the order of their first use, and no names of outputs."""
    names = {}
    text = re.sub(r'attributes \{nki\.output_names = .*?\} ', "", text)
    return re.sub(r"%[\w#]+", lambda m: names.setdefault(m[0], f"%{len(names)}"), text)


def instructions(source):
    result = compiler.compile(source, "--stop-after", "nki-to-nisa")
    assert result["status"] == "ok", result["diagnostics"]
    [kernel] = result["kernels"]
    return plain(compiler.stage(kernel, "nki-to-nisa")["text"])


@pytest.mark.parametrize("name", PAIRS)
def test_both_spellings_of_a_kernel_are_the_same_instructions(name):
    assert instructions(source_of(name, 1)) == instructions(source_of(name, 2))


@pytest.mark.parametrize("name", PAIRS)
def test_both_generations_stand_in_one_file(name):
    older = re.sub(r" as (nki|nisa|nl)\n", r" as \1_1\n", source_of(name, 1))
    older = re.sub(r"(?<![\w.])(nki|nisa|nl)\.", r"\1_1.", older)
    both = older.replace("def kernel(", "def older(") + source_of(name, 2).replace("def kernel(", "def newer(")
    result = compiler.compile(both, "--stop-after", "nki-to-nisa")
    assert result["status"] == "ok", result["diagnostics"]
    older, newer = (plain(compiler.stage(k, "nki-to-nisa")["text"]).replace(f"@{k['name']}", "@kernel") for k in result["kernels"])
    assert older == newer
