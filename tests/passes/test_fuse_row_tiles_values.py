"""fuse-row-tiles keeps what a kernel computes: odd sizes, types, several readers, reductions along either axis, long rows.

Each kernel is compiled to the stage before, and the values before and after the pass are compared on random inputs; some are also
compiled whole and run on the simulated machine, and compared with NumPy.
"""
import numpy as np
import pytest

from support import compiler, runs, values, warm

HEAD = """import ml_dtypes
import numpy as np
from nkigen import knob, trace

bf16 = ml_dtypes.bfloat16


"""
NORM = """c = x - x.mean(-1, keepdims=True)
return c / np.sqrt((c * c).mean(-1, keepdims=True) + np.float32(1e-5)) * y[:1] + y[-1:]"""
SOFTMAX = "e = np.exp(x - x.max(-1, keepdims=True))\nreturn e / e.sum(-1, keepdims=True)"
BODIES = {
    "a chain": "z = np.maximum(x + y, 0) * x\nreturn z - y",
    "a softmax": SOFTMAX,
    "a normalisation": NORM,
    "several readers": "z = x * y\nreturn z, z + x, np.maximum(z, y), z.sum(-1)",
    "a sum along the rows": "z = x * y\nreturn z - z.sum(0, keepdims=True)",
    "both axes": "z = x * y\nreturn (z - z.max(0)) * z.sum(-1, keepdims=True) + z.sum(0)",
    "a transpose": "z = np.exp(x) * y\nreturn z.T, z + 1",
    "a transposed softmax": "e = np.exp(x - x.max(-1, keepdims=True))\nreturn (e / e.sum(-1, keepdims=True)).T",
    "a column": "return (x - y[:, :1]) * y[:, -1:] + x[:, :1]",
    "one that never fuses": "z = x * y\nknob.fuse(z, never=True)\nreturn np.maximum(z + x, 0) * z",
    "named ones between": "a = x + y\nb = a * x\nc = b - y\nknob.fuse(a, c)\nreturn c * x",
}
SHAPES = [(130, 517), *(pytest.param(s, marks=pytest.mark.nightly) for s in [(1, 517), (1, 1), (257, 1), (300, 3), (128, 64), (640, 40)])]
FLOATS = {"f32": 1e-4, "bf16": 5e-2, "f16": 1e-2}


def source(body, shapes, dtype="f32"):
    names = "xy"[:len(shapes)]
    specs = ", ".join(f"({tuple(s)}, '{dtype}')" for s in shapes)
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return f"{HEAD}@trace(input_specs=[{specs}])\ndef kernel({', '.join(names)}):\n{lines}"


def before(tmp_path, body, shapes, dtype="f32", stage="canonicalize-partition-dim"):
    path = tmp_path / "kernel.py"
    path.write_text(source(body, shapes, dtype))
    done = warm.run("compile", str(path), *compiler.CONSTANTS, "--stop-after", stage, "--remarks")
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def after(tmp_path, rng, body, shapes, dtype="f32", tol=1e-4):
    text = before(tmp_path, body, shapes, dtype)
    return values.check(text, "fuse-row-tiles", rng, tol)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("body", BODIES, ids=lambda b: b.replace(" ", "-"))
def test_sizes_that_no_tile_divides_keep_their_values(tmp_path, rng, body, shape):
    after(tmp_path, rng, BODIES[body], [shape, shape])


@pytest.mark.parametrize("dtype", ["bf16", *(pytest.param(t, marks=pytest.mark.nightly) for t in ("f32", "f16"))])
@pytest.mark.parametrize("body", ["a chain", "a softmax", "a normalisation", "several readers"], ids=lambda b: b.replace(" ", "-"))
def test_types_of_floats_keep_their_values(tmp_path, rng, body, dtype):
    text = after(tmp_path, rng, BODIES[body], [(300, 330)] * 2, dtype, FLOATS[dtype])
    assert text.count("materialize_in_destination") > 0


@pytest.mark.parametrize("dtype", ["i8", *(pytest.param(t, marks=pytest.mark.nightly) for t in ("i32", "i16", "u8"))])
def test_integers_keep_their_values(tmp_path, rng, dtype):
    after(tmp_path, rng, "z = np.maximum(x, y)\nreturn z + x, np.minimum(z, x) - y, z > x, z.max(-1)", [(300, 33)] * 2, dtype)


def test_three_dimensions_keep_their_values(tmp_path, rng):
    after(tmp_path, rng, SOFTMAX, [(200, 3, 40)])
    after(tmp_path, rng, "z = x * y\nreturn z + z.sum((1, 2), keepdims=True)", [(200, 3, 40)] * 2)


PLANES = """z = x * y[:1, :, :1, :1] + 1
return z / (z - z.max((2, 3), keepdims=True) - 1), z.sum((0, 2, 3), keepdims=True), np.maximum(z, y[:, :1])"""


@pytest.mark.parametrize("channels", [130, pytest.param(96, marks=pytest.mark.nightly), pytest.param(300, marks=pytest.mark.nightly)])
def test_planes_before_the_partitions_keep_their_values(tmp_path, rng, channels):
    text = after(tmp_path, rng, PLANES, [(3, channels, 5, 7)] * 2)
    assert "partition_dim = 1" in text and "tensor<1x" in text


def test_rows_that_are_cut_keep_their_values(tmp_path, rng):
    """One iteration has a part of the columns, and the last part is shorter."""
    text = after(tmp_path, rng, "z = np.maximum(x + y[:1], 0) * x\nreturn z - y[:1]", [(700, 9001), (700, 9001)])
    assert text.count("scf.for") >= 2 and "tensor<128x9001xf32>" not in text


@pytest.mark.parametrize("rows", [(256, 509), pytest.param((200, 512), marks=pytest.mark.nightly)], ids=str)
def test_rows_of_two_dimensions_that_are_cut_keep_their_values(tmp_path, rng, rows):
    """The second dimension is cut, into equal parts or with a shorter last one; the third one is reduced."""
    text = after(tmp_path, rng, "z = (x[:, None, :] - y[None, :, :]) ** 2\nreturn np.exp(-z.sum(-1)), z.max(-1)", [(rows[0], 64), (rows[1], 64)])
    assert "tensor<128x32x64xf32>" in text and f"tensor<128x{rows[1]}x64xf32>" not in text


def test_a_loop_of_tiles_and_a_tail_are_one_loop(tmp_path, rng):
    text = after(tmp_path, rng, BODIES["a softmax"], [(1000, 160)])
    assert text.count("scf.for") == 1 and "tensor<104x160xf32>" in text


WINDOWS = """p = np.pad(x, ((0, 0), (2, 1), (1, 2)))
z = x * 0.5
for i in range(3):
    for j in range(4):
        z = z + p[:, i:i + x.shape[1], j:j + x.shape[2]] * y[:, i, j][:, None, None]
return z, np.maximum(z, x)"""
CHANNELS = """c = x - x.mean(0)
e = np.exp(y - y.max(0))
return c / np.sqrt(x.var(0) + np.float32(1e-5)), e / e.sum(0), np.minimum(x * y, y.min(0)), x.prod(0), np.argmax(y, 0)"""
SIMULATED = {
    "windows and weights in one tile": (WINDOWS, [(96, 11, 9), (96, 3, 4)]), "windows and weights in two tiles": (WINDOWS, [(130, 5, 7), (130, 3, 4)]),
    "channels, rows fewer than they": (CHANNELS, [(96, 12, 9)] * 2), "channels, more of them than partitions": (CHANNELS, [(130, 5, 17)] * 2),
    "channels, fewer than the rows": (CHANNELS, [(3, 40, 6)] * 2),
    "a softmax": (SOFTMAX, [(130, 517)]), "a normalisation": (NORM, [(385, 200)] * 2), "several readers": (BODIES["several readers"], [(300, 65)] * 2),
    "both axes": (BODIES["both axes"], [(257, 130)] * 2), "one row": (NORM, [(1, 517)] * 2), "one column": (BODIES["a chain"], [(517, 1)] * 2),
    "rows that are cut": ("z = np.maximum(x + y[:1], 0) * x\nreturn z - y[:1]", [(200, 9001)] * 2),
    "rows that do not fit": (NORM, [(130, 13000)] * 2),
    "parts side by side": ("z = np.exp(x) * y\nreturn np.concatenate([z + 1, z - y, x], 1), z", [(512, 65)] * 2),
    "parts of each other's rows": ("z = np.exp(x) * y\nreturn np.concatenate([z + 1, z - y], 0)", [(384, 65)] * 2),
    "a transpose": (BODIES["a transpose"], [(300, 256)] * 2), "a transposed softmax": (BODIES["a transposed softmax"], [(200, 96)] * 2),
    "a transpose of rows that are cut": ("return (np.maximum(x, 0) + y).T", [(256, 8192)] * 2),
    "rows of two dimensions": ("return ((x[:, None, :] - y) ** 2).sum(-1), np.abs(x[:, None, :] - y).max(-1)", [(130, 40), (421, 40)]),
    "planes": (PLANES, [(3, 130, 5, 7)] * 2),
    "a product before and after": ("z = x @ y\nz = np.maximum(z, 0) * z - x\nreturn z @ x", [(256, 256)] * 2),
}


@pytest.mark.parametrize("dtype", ["f32", pytest.param("bf16", marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", SIMULATED, ids=lambda b: b.replace(" ", "-"))
def test_instructions_of_fused_loops_compute_what_numpy_does(name, dtype):
    body, shapes = SIMULATED[name]
    runs.simulated(source(body, shapes, dtype))


REASONS = {
    "dimension 0": ("z = x * y\ns = z.sum(0, keepdims=True)\nknob.knob(s).layout(mem_space='Sbuf')\nreturn (z - s) * x", "an operation between them needs all rows of dimension 0"),
    "a knob": ("z = x * y\nknob.knob(z).tile_op(tile_size=[128, 64])\nreturn z + x", "a knob or an earlier pass gives its tile or its memory"),
    "never": (BODIES["one that never fuses"], "knob.fuse forbids it"),
    "named": (BODIES["named ones between"], "knob.fuse names its value"),
}


@pytest.mark.parametrize("name", REASONS)
def test_an_operation_that_is_not_fused_has_a_remark_with_the_reason(tmp_path, name):
    body, why = REASONS[name]
    text = before(tmp_path, body, [(512, 128)] * 2)
    done = warm.run("opt", "--remarks", "--fuse-row-tiles", "-", input=text.encode())
    assert why in done.stderr.decode()


def test_rows_that_do_not_fit_have_a_remark_that_names_the_last_dimension(tmp_path):
    text = before(tmp_path, NORM, [(256, 13000)] * 2)
    said = warm.run("opt", "--remarks", "--fuse-row-tiles", "-", input=text.encode()).stderr.decode()
    assert "whole rows, 13000 elements in the last dimension, take" in said or "along the last dimension, do not fit into SBUF" in said
    assert "operations in one loop" in said


def test_a_group_has_a_remark_with_what_it_saves(tmp_path):
    text = before(tmp_path, BODIES["a softmax"], [(4096, 4096)])
    said = warm.run("opt", "--remarks", "--fuse-row-tiles", "-", input=text.encode()).stderr.decode()
    assert "6 operations in one loop over 32 tiles of 128 rows, two at a time: 134.22 MB to and from HBM" in said


def test_the_reference_has_no_such_stage():
    done = warm.run("compile", "explorer/examples/03_softmax.py", "--pipeline", "reference", "--quiet", "--json", "-")
    assert b"fuse-row-tiles" not in done.stdout and b"knob-driven-tiling" in done.stdout
