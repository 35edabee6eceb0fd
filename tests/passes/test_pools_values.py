"""prepare-arithmetic's windows of images (pools.c): values at every stage, and which get rows of all images."""
import pytest

from support import compiler

HEAD = "import ml_dtypes\nimport numpy as np\nfrom nkigen import knob, trace\n\n\n"
JOINED = {
    "the largest of windows": (((4, 28, 12, 33), "f32"), "return x.reshape(4, 14, 2, 6, 2, 33).max((2, 4))"),
    "a mean of windows": (((8, 20, 9, 40), "f32"), "return x.reshape(8, 10, 2, 3, 3, 40).mean((2, 4))"),
    "windows of one dimension": (((6, 24, 130), "bf16"), "return x.reshape(6, 8, 3, 130).min(2)"),
    "three dimensions before them": (((3, 5, 10, 6, 17), "int32"), "return x.sum(3), x.max(3)"),
    "with the dimension kept": (((5, 7, 4, 31), "f32"), "return x.max(2, keepdims=True), x.prod(2)"),
    "read by others, too": (((4, 6, 3, 50), "f32"), "m = x.max(2)\n    return m * 2, m.sum(-1)"),
}
APART = {
    "one dimension that fills the partitions": (((2, 64, 4, 31), "f32"), "return x.max(2)"),
    "a value that is computed": (((4, 6, 3, 50), "f32"), "return np.exp(x).max(2)"),
    "a knob": (((4, 6, 3, 50), "f32"), "m = x.max(2)\n    knob.knob(m).layout(mem_space='Hbm')\n    return m"),
}


def joined(what, body):
    """Whether dimensions became one, after all stages computed what NumPy computes."""
    shape, t = what
    source = f"{HEAD}@trace(input_specs=[({shape}, '{t}')])\ndef f(x):\n    {body}\n"
    return "rows" in compiler.rules(compiler.checked_kernel(source))


@pytest.mark.parametrize("name", JOINED)
def test_windows_in_rows_of_all_images_have_their_values(name):
    assert joined(*JOINED[name])


@pytest.mark.parametrize("name", APART)
def test_what_fills_the_partitions_or_is_computed_stays(name):
    assert not joined(*APART[name])
