"""NKI kernels from the source to engine programs: their own evaluation equals NumPy's formula, and every stage computes
the same on three targets."""

import numpy as np
import pytest

from support import compiler, nki_checks
from support.nki_kernels import HEAD, KERNELS, TARGETS
from support.runs import simulated

STAGES = ["nki-ast", "nki-trace", "nki-canonicalize", "nki-reroll", "nki-to-nisa", "allocate-memory", "engine-programs"]


def close(got, want, error):
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    scale = max(1.0, float(np.abs(want).max()))
    return got.shape == want.shape and float(np.abs(got - want).max()) <= error * scale


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("target", TARGETS)
def test_every_stage_computes_what_the_calls_compute(name, target):
    source, _, _ = KERNELS[name]
    result = compiler.compile(HEAD + source, "--target", target, check=True)
    assert result["status"] == "ok", result["diagnostics"]
    [kernel] = result["kernels"]
    assert kernel["pipeline"] == "nki" and [s["name"] for s in kernel["stages"]] == STAGES
    assert nki_checks.all_pass(kernel), [s["check"] for s in kernel["stages"]]


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_run_on_the_simulated_machine_computes_numpys_formula(name, rng):
    """`nkx run` simulates the engine programs; its outputs are compared with the formula, not with our evaluation."""
    source, formula, error = KERNELS[name]
    [compiled] = compiler.compile(HEAD + source)["kernels"]
    inputs = {t["name"]: a for t, a in zip(compiled["inputs"], compiler.random_inputs(compiled))}
    got, _ = simulated(HEAD + source, inputs)
    want = formula(*inputs.values())
    for t, w in zip(compiled["outputs"], want if isinstance(want, tuple) else (want,)):
        assert close(got[t["name"]], w, error)


def test_a_call_with_arrays_gives_the_shapes_and_runs_the_kernel():
    source = HEAD + KERNELS["add"][0].replace(": nl.tensor[256, 512]", "") + """
if __name__ == "__main__":
    a, b = np.arange(256 * 8, dtype=np.float32).reshape(256, 8), np.ones((256, 8), np.float32)
    c = nki.simulate(add)(a, b)
    assert isinstance(c, np.ndarray) and (c == a + b).all()
    assert (add(a, c) == a + c).all()
"""
    # the first call gives the shapes, simulate or not
    result = compiler.compile(source)
    assert result["status"] == "ok", result["diagnostics"]
    assert [t["shape"] for t in result["kernels"][0]["inputs"]] == [[256, 8], [256, 8]]


def test_lines_of_every_stage_lead_to_the_calls():
    source = HEAD + KERNELS["matmul"][0]
    [kernel] = compiler.compile(source)["kernels"]
    at = next(i + 1 for i, line in enumerate(source.splitlines()) if "nc_matmul" in line)
    trace = compiler.stage(kernel, "nki-trace")
    lines = trace["text"].splitlines()
    products = [i for i, line in enumerate(lines) if "nisa.nc_matmul" in line]
    assert len(products) == 8
    for stage in kernel["stages"][1:]:  # nki-ast has the product once, in its loop
        what = "nc_matmul" if stage["name"].startswith("nki-") and stage["name"] != "nki-to-nisa" else "nisa.matmul"
        found = [stage["lines"][i] for i, line in enumerate(stage["text"].splitlines()) if what in line]
        assert found and all(place["line"] == at for line in found for place in line["src"])


def test_tensors_are_called_as_in_the_source_and_a_loop_numbers_them():
    [kernel] = compiler.compile(HEAD + KERNELS["add"][0])["kernels"]
    names = [line.split(" = ")[0].strip() for line in compiler.stage(kernel, "nki-canonicalize")["text"].splitlines() if "nl.ndarray" in line]
    assert names == ["out", "x", "y", "x_1", "y_1"]


def test_a_tensor_in_psum_serves_several_groups_of_products():
    [kernel] = compiler.compile(HEAD + KERNELS["matmul_one_tile"][0])["kernels"]
    lines = compiler.stage(kernel, "nki-reroll")["text"].splitlines()
    assert [line.split(" = ")[0].strip() for line in lines if "nl.psum" in line] == ["acc", "acc_1"]


@pytest.mark.parametrize("name", KERNELS)
def test_the_texts_of_the_first_stages_are_run_as_kernels(name):
    """nki-ast and nki-trace are Python: run by themselves they compute what the kernel computes."""
    [kernel] = compiler.compile(HEAD + KERNELS[name][0], check=True)["kernels"]
    assert [s["check"]["status"] for s in kernel["stages"][:2]] == ["pass"] * 2, [s["check"] for s in kernel["stages"][:2]]


def test_a_text_that_leaves_rounds_out_says_so():
    source = HEAD + """
@nki.jit
def kernel(x: nl.tensor[128, 64]):
    t = nl.load(x)
    for i in range(600):
        nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=1.0)
        nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=0.5)
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    nl.store(out, t)
    return out
"""
    [kernel] = compiler.compile(source, check=True)["kernels"]
    of_source, of_calls = (s["check"] for s in kernel["stages"][:2])
    assert of_source["status"] == "pass"
    assert of_calls["status"] == "skipped" and of_calls["reason"].startswith("rounds of loops are left out of its text")
