"""legalize-layout (align.c): rows of a value on the chip that begin where no engine starts, in computations, products and copies
from PSUM; values at every stage."""
import pytest

from support import compiler

HEAD = "import numpy as np\nfrom nkigen import knob, trace\n\n\n"
PARTS = ["1:2:2", "1:2", "25:29", "63:64", "1:33", "31:64:3", "32:40", "5:64:2"]
USES = {
    "choices": "np.where(v[{s}] > 0, v[{s}], 1.0)",
    "columns": "v[{s}, 21:52] * 2",
    "a transpose": "v[{s}].T * 2",
    "a sum": "v[{s}].sum(axis=0), v[{s}].sum(axis=1)",
    "both factors": "v[{s}].T @ v[{s}]",
    "the second factor": "np.exp(a[{s}, :3]).T @ v[{s}]",
    "a concatenation": "np.concatenate([v[{s}], v[{s}][::-1]], axis=0) + 1",
}
VALUES = {
    "a product": ("a @ b", "knob.knob(v).tile_op(tile_size=[32, 16, 32]).layout(mem_space='Sbuf')"),
    "a sum of products": ("(a[:, :7, None] * b[None, :7]).sum(1)", "knob.knob(v).layout(mem_space='Sbuf')"),
}


def kernel(name, value, part, use):
    made, knobs = VALUES[value]
    return (f"@trace(input_specs=[((64, 64), 'f32'), ((64, 96), 'f32')])\ndef {name}(a, b):\n    v = {made}\n    {knobs}\n"
            f"    return {USES[use].format(s=part)}\n\n\n")


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("use", USES)
def test_rows_at_any_partition_are_read(use, value):
    compiler.assert_equal_at_every_stage(HEAD + "".join(kernel(f"k{i}", value, s, use) for i, s in enumerate(PARTS)), len(PARTS))


@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
def test_a_product_whose_rows_lie_one_by_one_leaves_psum_through_a_buffer_with_its_partitions(target):
    result = compiler.compile(HEAD + """@trace(input_specs=[((2, 64), "f32"), ((64, 96), "f32"), ((1, 31), "f32")])
def kernel(a, b, z):
    v = a @ b
    knob.knob(v).tile_op(tile_size=[2, 64, 2]).layout(mem_space="Sbuf")
    return np.where(z > 0, v[1:2:2, 42:73], z)
""", "--target", target, check=True)
    assert result["status"] == "ok", result["diagnostics"]
    (k,) = result["kernels"]
    assert all(s["check"]["status"] == "pass" for s in k["stages"])
    said = [r["text"] for r in compiler.stage(k, "legalize-layout")["remarks"] if r["rule"] == "align-partitions"]
    assert said == ["from PSUM through a buffer with its partitions"] * len(said) and said


def test_rows_of_what_a_knob_puts_into_psum_are_read_at_any_partition():
    uses = ["v[1:2] + 1", "v[25:29] * 2, v[:, 5:9].sum(0)", "np.where(v[3:7, 2:5] > 0, 1.0, v[3:7, 2:5])", "v[31:64].T @ v[31:64]"]
    text = "".join(f"""@trace(input_specs=[((64, 64), "f32"), ((64, 96), "f32")])
def k{i}(a, b):
    v = a @ b
    knob.knob(v).layout(mem_space="Psum")
    return {use}
""" for i, use in enumerate(uses))
    compiler.assert_equal_at_every_stage(HEAD + text, len(uses))
