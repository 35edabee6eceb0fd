"""Knobs that are right compile, and every stage computes what NumPy computes; wrong ones are refused at their place."""
import pytest

from support import compiler, reference
from support.kernels import matrix

HEAD = "import numpy as np\nfrom nkigen import trace, knob\n"


def kernel(body, *shapes):
    names = "xyzw"[: len(shapes)]
    specs = ", ".join(f"({s}, 'f32')" for s in shapes)
    lines = "\n".join("    " + line for line in body.split("; "))
    return f"{HEAD}@trace(input_specs=[{specs}])\ndef k({', '.join(names)}):\n{lines}\n"


def right(body, *shapes):
    """Compiles the kernel; all its stages are as NumPy, its MLIR is read by mlir-opt.  The kernel and the diagnostics."""
    source = kernel(body, *shapes)
    result = compiler.compile(source, check=True)
    assert result["status"] == "ok", result["diagnostics"]
    (k,) = result["kernels"]
    assert all(compiler.is_checked(s) for s in k["stages"]), [(s["name"], s["check"]) for s in k["stages"]]
    matrix.verify([result])
    inputs = compiler.random_inputs(k)
    reference.assert_nisa(k, inputs, reference.run_numpy(source, k, inputs))
    return k, result["diagnostics"]


def text_of(k, stage):
    return [s["text"] for s in k["stages"] if s["name"] == stage][-1]


# ---- tiles of reductions ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", ["sum", "max", "mean"])
@pytest.mark.parametrize("axis, keepdims, tile, loops", [
    (-1, True, "[128, 1, 64]", "128, 64"),
    (-1, True, "[128, 64]", "128, 64"),
    (0, True, "[1, 64, 128]", "128, 64"),
    (0, True, "[128, 64]", "128, 64"),
    (-1, False, "[128, 64]", "128, 64"),
])
def test_a_tile_of_a_reduction_may_say_its_result_first(function, axis, keepdims, tile, loops):
    k, diagnostics = right(f"y = np.{function}(x, axis={axis}, keepdims={keepdims}); "
                           f"knob.knob(y).tile_op(tile_size={tile}); return y", (256, 256))
    assert f"loop_tile_size = array<i64: {loops}>" in text_of(k, "hlo-to-linalg")
    assert not diagnostics


def test_a_reduction_of_two_dimensions_has_two_entries_after_those_of_its_result():
    k, _ = right("y = np.sum(x, axis=(1, 2), keepdims=True); knob.knob(y).tile_op(tile_size=[32, 1, 1, 2, 16]); return y",
                 (64, 4, 32))
    assert "loop_tile_size = array<i64: 32, 2, 16>" in text_of(k, "hlo-to-linalg")


@pytest.mark.parametrize("tile", ["[128, 2, 128]", "[128, 1, 512]", "[128, 1, 1, 128]"])
def test_another_tile_of_a_reduction_is_refused_at_the_knob(tile):
    source = kernel(f"y = np.sum(x, axis=-1, keepdims=True); knob.knob(y).tile_op(tile_size={tile}); return y", (256, 256))
    result = compiler.compile(source)
    (d,) = result["diagnostics"]
    assert d["code"] == "bad-knob" and tile in d["message"] and d["range"]["line"] == 6


# ---- partition_dim -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape, tile", [
    ((256, 128), [256, 128]), ((300, 128), [300, 128]), ((450, 100), [200, 100]), ((502, 128), [251, 128]),
    ((130, 517), [130, 128]), ((4, 256, 128), [1, 256, 128]),
])
@pytest.mark.parametrize("result", ["y", "(y + 1.0) * np.sum(y, axis=-1, keepdims=True)"])
def test_a_tile_along_partition_dim_may_have_more_rows_than_there_are_partitions(shape, tile, result):
    right(f"y = np.exp(x); knob.knob(y).tile_op(tile_size={tile}).layout(mem_space='Sbuf', partition_dim={len(shape) - 1}); "
          f"return {result}", shape)


@pytest.mark.parametrize("first, z, second", [
    (".tile_op(tile_size=[128, 512])", "np.log(y)", ".layout(partition_dim=1)"),
    (".layout(partition_dim=1)", "np.log(y) + x", ".tile_op(tile_size=[64, 256])"),
    (".tile_op(tile_size=[256, 128]).layout(partition_dim=1)", "y.T", ".layout(partition_dim=1)"),
    (".tile_op(tile_size=[64, 512]).layout(mem_space='Sbuf')", "(y + 1.0) * x", ".layout(partition_dim=1)"),
])
def test_two_knobs_whose_values_share_tiles_are_both_obeyed(first, z, second):
    """A partition_dim does not spread to a value whose own tile is longer than the partitions there, and the other way round."""
    k, diagnostics = right(f"y = np.exp(np.abs(x)); knob.knob(y){first}; z = {z}; knob.knob(z){second}; return z", (256, 512))
    assert diagnostics == []


@pytest.mark.parametrize("second", [".tile_op(tile_size=[128, 512]).layout(partition_dim=1)", ".tile_op(tile_size=[256, 64])"])
def test_of_two_knobs_the_one_that_cannot_be_obeyed_is_refused(second):
    result = compiler.compile(kernel(f"y = np.exp(x); knob.knob(y).tile_op(tile_size=[128, 512]); z = np.log(y); knob.knob(z){second}; return z",
                                     (256, 512)))
    (d,) = result["diagnostics"]
    assert (d["code"], d["range"]["line"]) == ("bad-knob", 8)


def test_partition_dim_of_a_matmul_warns_at_the_knob():
    k, diagnostics = right("p = x @ y; knob.knob(p).layout(mem_space='Sbuf', partition_dim=1); return np.exp(p)", (256, 128), (128, 512))
    (d,) = diagnostics
    assert (d["severity"], d["code"], d["range"]["line"]) == ("warning", "knob-ignored", 6) and "matmul" in d["message"]
    assert right("p = x @ y; knob.knob(p).layout(mem_space='Sbuf', partition_dim=0); return np.exp(p)", (256, 128), (128, 512))[1] == []
