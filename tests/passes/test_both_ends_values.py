"""prepare-arithmetic's reductions of the first and the last dimensions (ends.c): values at every stage, and which take two steps."""
import pytest

from support import compiler

HEAD = "import ml_dtypes\nimport numpy as np\nfrom nkigen import knob, trace\n\n\n"
IN_TWO = {
    "a sum for each channel": (((4, 3, 20, 21), "f32"), "return x.sum((0, 2, 3))"),
    "a normalised batch": (((4, 5, 16, 18), "f32"), "return (x - x.mean((0, 2, 3), keepdims=True)) / (x.std((0, 2, 3), keepdims=True) + 1)"),
    "the largest and the smallest": (((7, 6, 130), "bf16"), "return x.max((0, 2)), x.min((0, 2), keepdims=True)"),
    "a sum of bf16, in f32": (((4, 3, 20, 21), "bf16"), "return x.sum((0, 2, 3))"),
    "integers": (((5, 2, 9, 33), "int32"), "return x.sum((0, 2, 3)), x.max((0, 2, 3))"),
    "from another value": (((5, 2, 9, 33), "f32"), "return x.sum((0, 2, 3), initial=3), x.max((0, 2, 3), initial=100)"),
    "squares": (((2, 63, 16, 9), "f32"), "return (x * x).sum((0, 2, 3))"),
    "a mask": (((3, 4, 150), "f32"), "return np.any(x > 3, axis=(0, 2)), np.all(x > -2, axis=(0, 2))"),
    "three dimensions at the end": (((3, 4, 5, 6, 7), "f32"), "return np.prod(np.abs(x) * 0 + 1.001, axis=(0, 2, 3, 4))"),
}
IN_ONE = {
    "many channels": (((4, 64, 20, 21), "f32"), "return x.sum((0, 2, 3))"),
    "short rows": (((4, 3, 9), "f32"), "return x.sum((0, 2))"),
    "a knob": (((4, 3, 20, 21), "f32"), "s = x.sum((0, 2, 3))\n    knob.knob(s).layout(mem_space='Hbm')\n    return s"),
}


def rules(what, body):
    shape, t = what
    source = f"{HEAD}@trace(input_specs=[({shape}, '{t}')])\ndef f(x):\n    {body}\n"
    kernel = compiler.checked_kernel(source)
    return [r["text"] for s in kernel["stages"] for r in s.get("remarks", []) if r["rule"] == "reduce-in-two-steps"]


@pytest.mark.parametrize("name", IN_TWO)
def test_two_steps_compute_what_numpy_computes(name):
    assert any("numbers for each result" in text for text in rules(*IN_TWO[name]))


@pytest.mark.parametrize("name", IN_ONE)
def test_what_fills_the_partitions_or_has_a_knob_takes_one(name):
    assert not any("numbers for each result" in text for text in rules(*IN_ONE[name]))
