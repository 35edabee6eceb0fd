"""Complex numbers and Fourier transforms on every stage: the product's check compares each with NumPy.

NKX_COMPLEX_CALLS=n: so many drawn calls, and every expression of complex_calls.py; otherwise a few of both.
"""
import os
import random

import numpy as np
import pytest

from support import compiler, complex_calls

N = int(os.environ.get("NKX_COMPLEX_CALLS", "0"))
AT_ONCE = 30
EVERY = complex_calls.every_expression((3, 4))
DRAWN = complex_calls.calls(random.Random(7), N or 10)
CALLS = (EVERY if N else EVERY[::12]) + DRAWN
TARGETS = ("trn2", "trn1", "trn3")


@pytest.mark.parametrize("k", range(-(-len(CALLS) // AT_ONCE)))
def test_complex_numbers_and_transforms_are_on_every_stage_what_numpy_computes(k):
    calls = CALLS[k * AT_ONCE:(k + 1) * AT_ONCE]
    result = compiler.compile(complex_calls.source(calls), "--target", TARGETS[k % 3], check=True, timeout=300)
    wrong = {}
    for call, kernel in zip(calls, result["kernels"], strict=True):
        bad = [s["name"] for s in kernel["stages"] if s["check"]["status"] != "pass"]
        if bad or kernel["stages"][-1]["name"] != "engine-programs":
            wrong[f"{call.expression} of {[a.shape for a in call.arrays.values()]}"] = bad[:1]
    assert not wrong, (wrong, result["diagnostics"])


FAULTS = {
    "a part": "np.fft.fft(x) + (1e-3j if isinstance(x, np.ndarray) else 0)",
    "a sign": "np.fft.ifft(np.conj(x) if isinstance(x, np.ndarray) else x)",
    "a norm": "np.fft.fft(x, norm='ortho' if isinstance(x, np.ndarray) else None)",
    "an order": "np.fft.fftshift(x) if isinstance(x, np.ndarray) else np.fft.ifftshift(x)",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_check_finds_a_wrong(fault):
    source = f"import numpy as np\nfrom nkigen import trace\n@trace(input_specs=[((3, 5), 'c64')])\ndef k(x):\n    return {FAULTS[fault]}\n"
    result = compiler.compile(source, check=True)
    assert result["kernels"][0]["stages"][0]["check"]["status"] == "fail"


def test_complex_inputs_and_outputs_are_passed_as_pairs_of_reals(tmp_path):
    source = "import numpy as np\ndef k(x, y):\n    x[0] = y[1] * 1j\n    return np.sum(x, axis=0)\n"
    x = complex_calls.draw(np.random.default_rng(1), (3, 4), "complex64")
    np.savez(tmp_path / "in.npz", x=x, y=x * 2)
    result = compiler.compile(source, "--inputs", str(tmp_path / "in.npz"), check=True)
    (kernel,) = result["kernels"]
    assert [(t["name"], t["shape"], t["dtype"]) for t in kernel["inputs"]] == [("x", [3, 4, 2], "float32"), ("y", [3, 4, 2], "float32")]
    assert [t["shape"] for t in kernel["outputs"]] == [[4, 2], [3, 4, 2]]
    assert all(compiler.is_checked(s) for s in kernel["stages"])
