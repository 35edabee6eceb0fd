"""Kernels with the structure of those that people publish compute NumPy's formula on the simulated machine, with their loops
rolled and unrolled; no public kernel is without one of ours."""
import os
import re

import numpy as np
import pytest

from support import compiler, nki_beta1, nki_beta1_calls, nki_kernels, nki_matmuls
from support.nki_pairs import PAIRS
from support.paths import ROOT
from support.public_kernels import CASES, FOLDER, ROWS, product
from support.runs import simulated

IS_NIGHTLY = os.environ.get("NKX_NKI") == "all"
# These have their documented sizes in every run, the others nightly.
QUICK = ["cumsum", "cascaded_max", "topk", "indexed_flatten", "find_nonzero_indices", "depthwise_conv1d", "rope_hf", "maxpool", "bilinear",
         "average pool", "layout loop", "tensor add tiled", "tensor add SPMD"]
IMPORTS = """import ml_dtypes
import numpy as np
import neuronxcc.nki.language as nl1
import nki.language as nl
from library.utils.common_types import ActFnType, NormType
"""
KERNELS = {"beta 1": nki_beta1.KERNELS, "kernel": nki_kernels.KERNELS, "product": nki_matmuls.MATMULS, "pair": PAIRS, "call": [c[1] for c in nki_beta1_calls.CASES],
           "example": [p.stem for p in (ROOT / "explorer/examples/nki").glob("*.py")]}


GENERATIONS = {"beta 1": {1}, "call": {1}, "pair": {1, 2}, "kernel": {2}, "product": {2}, "example": {2}}


def generations_of(name):
    where, _, kernel = name.partition(": ")
    if where in KERNELS:
        assert kernel in KERNELS[where], name
        return GENERATIONS[where]
    return {1 if "neuronxcc" in (FOLDER / CASES[name].file).read_text() else 2}


@pytest.mark.parametrize("row", ROWS)
def test_no_public_kernel_is_without_one_of_ours_in_each_of_its_generations(row):
    published, names = ROWS[row]
    assert published <= set().union(*map(generations_of, names))


def test_each_case_covers_a_public_kernel():
    assert set(CASES) <= {name for _, names in ROWS.values() for name in names}


def test_fifteen_kernels_are_written_in_both_generations():
    assert len(PAIRS) >= 15


def source_of(case, inputs):
    """The kernel's file, or one that launches the kernel; and the files and folders that it imports."""
    path = FOLDER / case.file
    if not case.launch and not case.given and path.parent == FOLDER:
        return path.read_text(), [FOLDER / "mx_helpers.py"]
    module = case.file.removesuffix(".py").replace("/", ".")
    arrays = ", ".join(f"{n}=np.zeros({a.shape}, {'ml_dtypes' if a.dtype.kind == 'V' else 'np'}.{a.dtype})" for n, a in inputs.items())
    shape = next(iter(inputs.values())).shape
    rows, columns = (n // t for n, t in zip(shape, (128, 512)))
    launch = f"[{case.launch.format(first=shape[0], rows=rows, columns=columns)}]" if case.launch else ""
    source = f"{IMPORTS}from {module} import {case.kernel}\n{case.kernel}{launch}({arrays}, {case.given})\n"
    return source, [FOLDER / "library"] + [path] * (path.parent == FOLDER)


def is_close(got, want, error):
    got = got.view(want.dtype) if got.dtype.kind == "V" and got.dtype.name == "void8" else got  # NumPy's format has no fp8
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    return got.shape == want.shape and np.abs(got - want).max() <= error * max(1.0, np.abs(want).max())


def same_bits(a, b):
    return {n: x.tobytes() for n, x in a.items()} == {n: x.tobytes() for n, x in b.items()}


@pytest.mark.parametrize("name, size", [(n, "small") for n in CASES] + [(n, "documented") for n in (CASES if IS_NIGHTLY else QUICK)])
def test_a_kernel_computes_numpys_formula_rolled_and_unrolled(name, size):
    case = CASES[name]
    sizes = getattr(case, size)
    if sizes is None:
        pytest.skip("its small size is that of the documentation")
    inputs = case.inputs(*sizes)
    source, beside = source_of(case, inputs)
    arguments = ["--kernel", case.kernel, "--target", case.target]
    rolled, _ = simulated(source, inputs, *arguments, timeout=400, beside=beside)
    want = case.formula(*inputs.values())
    want = want if isinstance(want, tuple) else (want,)
    assert len(rolled) == len(want)
    for got, w in zip(rolled.values(), want):
        assert is_close(got, w, case.error)
    unrolled, _ = simulated(source, inputs, *arguments, "--unroll", timeout=400, beside=beside)
    assert same_bits(rolled, unrolled)


def test_more_partitions_than_there_are_is_refused_with_the_limit():
    source = (FOLDER / "basics.py").read_text() + "\nimport numpy as np\nlayout_violation(np.zeros((256, 64), np.float32))\n"
    d = compiler.compile(source, "--kernel", "layout_violation")["diagnostics"][0]
    assert d["code"] == "nki-size-limit" and "256" in d["message"] and "128" in d["message"]


@pytest.mark.skipif(not IS_NIGHTLY, reason="nightly")
@pytest.mark.parametrize("name", [f"product: {n}" for n in nki_matmuls.MATMULS if n != "basic"] + [
    f"beta 1: {n}" for n in nki_beta1.KERNELS if n.startswith("matmul_") and n != "matmul_basic"])
def test_matrix_products_of_the_documented_size_compute_the_product(name):
    where, _, kernel = name.partition(": ")
    source = nki_kernels.HEAD + nki_matmuls.MATMULS[kernel] if where == "product" else nki_beta1.HEAD + nki_beta1.KERNELS[kernel][0]
    source = re.sub(r": (nl\.)?tensor\[nl\.bfloat16, \(.*?\)\]", "", source)
    rng = np.random.default_rng(5)
    inputs = {n: rng.uniform(-1, 1, s).astype("f4").astype(compiler.dtype("bfloat16")) for n, s in (("lhsT", (1536, 4096)), ("rhs", (1536, 2048)))}  # blocks of two, three and four tiles
    got, unrolled = (simulated(source, inputs, "--kernel", kernel, *a, timeout=400)[0] for a in ([], ["--unroll"]))
    assert is_close(got["out"], product(*inputs.values()), 0.01) and same_bits(got, unrolled)
