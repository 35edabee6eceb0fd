"""knob.fuse of values of which one is computed from the other: one loop nest, intermediate values as large as a tile, and
what NumPy computes at every stage; or a refusal that names the dimension.
"""
import math
import re

import pytest

from support import compiler, reference
from support.kernels import matrix
from support.marks import few

HEAD = "import numpy as np\nfrom nkigen import trace, knob\n"
SHAPES = {"even": ((256, 512), [128, 256]), "tails": ((130, 517), [128, 256]), "one tile": ((64, 100), [64, 100]),
          "rows": ((300, 70), [100, 70])}

# name: body; {t} is the tile, {r} a tile of whole rows
CHAINS = {
    "chain": "c = x + y; d = np.exp(c); e = d * x; TILES(c, d, e); knob.fuse(c, d, e); return e",
    "chain_backwards": "c = x + y; d = np.exp(c); e = d * x; TILES(c, d, e); knob.fuse(e, d, c); return e",
    "chain_by_its_ends": "c = x + y; d = np.exp(c); e = d * x; TILES(c, d, e); knob.fuse(c, e); return e",
    "chain_of_five": "a = x + y; b = a * 2.0; c = b - x; d = np.abs(c); e = np.sqrt(d); TILES(a, b, c, d, e); "
                     "knob.fuse(a, b, c, d, e); return e",
    "read_twice": "c = x + y; d = c * c; e = d + c; TILES(c, d, e); knob.fuse(c, d, e); return e",
    "shared": "c = x + y; d = np.exp(c); e = c * x; TILES(c, d, e); knob.fuse(c, d, e); return d, e",
    "broadcasts": "c = x + z; d = c * w; e = d - 2.0; TILES(c, d, e); knob.fuse(c, d, e); return e",
    "two_groups_that_overlap": "a = x + y; b = np.exp(a); c = b - y; TILES(a, b, c); knob.fuse(a, b); knob.fuse(b, c); return c",
    "siblings_and_reader": "a = x + y; b = x * y; c = a - b; TILES(a, b, c); knob.fuse(a, b, c); return c",
    "without_tiles": "c = x + y; d = np.exp(c); e = d * x; knob.fuse(c, d, e); return e",
}
KEPT = {  # a value that others read, too, stays as it is
    "shared_with_another": "c = x + y; d = np.exp(c); e = np.abs(c); TILES(c, d, e); knob.fuse(c, d); return d, e",
    "returned": "c = x + y; d = np.exp(c); TILES(c, d); knob.fuse(c, d); return c, d",
    "written_to_an_argument": "c = x + y; d = np.exp(c); TILES(c, d); knob.fuse(c, d); x[...] = d; return c",
}
SOFTMAX = ("m = np.max(x, axis=-1, keepdims=True); s = x - m; e = np.exp(s); t = np.sum(e, axis=-1, keepdims=True); "
           "r = e / t; ")
ROWS = {
    "softmax": SOFTMAX + "ROWS(m, s, e, t, r); knob.fuse(m, s, e, t, r); return r",
    "softmax_in_narrow_tiles": SOFTMAX + "TILES(m, s, e, t, r); knob.fuse(m, s, e, t, r); return r",
    "softmax_by_its_ends": SOFTMAX + "ROWS(m, s, e, t, r); knob.fuse(m, r); return r",
    "rmsnorm": "q = x * x; m = np.mean(q, axis=-1, keepdims=True); n = x / np.sqrt(m + 1e-5); r = n * y; "
               "ROWS(q, m, n, r); knob.fuse(q, m, n, r); return r",
    "layernorm": "m = np.mean(x, axis=-1, keepdims=True); c = x - m; v = np.mean(c * c, axis=-1, keepdims=True); "
                 "r = c / np.sqrt(v + 1e-5); knob.fuse(m, r); return r",
    "into_a_sum": "e = np.exp(x); t = np.sum(e, axis=-1, keepdims=True); TILES(e, t); knob.fuse(e, t); return t",
    "into_a_sum_without_keepdims": "e = np.exp(x); t = np.sum(e, axis=-1); TILES(e, t); knob.fuse(e, t); return t",
}
ROWS_KEPT = {"softmax_with_its_parts": SOFTMAX + "knob.fuse(m, s, e, t, r); return r, e, t"}


def source(bodies, shape, tile):
    types = [shape, shape, (shape[1],), (shape[0], 1)]
    kernels = []
    for name, body in bodies.items():
        used = [k for k, v in enumerate("xyzw") if re.search(rf"\b{v}\b", body)]
        lines = []
        for line in body.split("; "):
            values = re.fullmatch(r"(TILES|ROWS)\((.*)\)", line)
            lines.append(f"for v in ({values[2]}): knob.knob(v).tile_op(tile_size={tile if values[1] == 'TILES' else [tile[0], shape[1]]})"
                         if values else line)
        kernels.append(f"@trace(input_specs=[{', '.join(f'({types[k]}, {chr(39)}f32{chr(39)})' for k in used)}])\n"
                       f"def {name}({', '.join('xyzw'[k] for k in used)}):\n" + "\n".join("    " + line for line in lines))
    return HEAD + "\n\n".join(kernels) + "\n"


def right(text, *arguments):
    """Compiles the kernels of a source; all stages are as NumPy, also NISA, and mlir-opt reads the MLIR."""
    result = compiler.compile(text, *arguments, check=True, timeout=300)
    assert result["status"] == "ok", result["diagnostics"]
    for k in result["kernels"]:
        assert all(compiler.is_checked(s) for s in k["stages"]), (k["name"], [(s["name"], s["check"]) for s in k["stages"]])
        inputs = compiler.random_inputs(k)
        reference.assert_nisa(k, inputs, reference.run_numpy(text, k, inputs))
    matrix.verify([result])
    return {k["name"]: k for k in result["kernels"]}


def text_of(k, stage):
    return [s["text"] for s in k["stages"] if s["name"] == stage][-1]


def loops(k):
    """Of the fused loops: (loops that are in no other, carried values of each)."""
    tops = re.findall(r"^    (?:%\S+ = )?scf\.for .*", text_of(k, "knob-driven-fusion"), re.M)
    return [len(re.findall(r"tensor<", t.split("->")[1])) if "->" in t else 0 for t in tops]


def buffers(k, memory):
    """The shapes of the buffers in a memory."""
    found = re.findall(rf"nisa\.alloc .*: memref<([0-9x]+)x\w+, #nisa\.mem<{memory}>>", text_of(k, "linalg-to-nisa"))
    return [tuple(map(int, f.split("x"))) for f in found]


@pytest.mark.parametrize("shape, tile", few(SHAPES.values(), 2, list(SHAPES)))
def test_chains_are_one_loop_nest_with_values_of_one_tile(shape, tile):
    for name, k in right(source(CHAINS, shape, tile)).items():
        rows, columns = (128, shape[1]) if name == "without_tiles" else tile
        if name != "broadcasts":  # a row is spread over the partitions by loops of its own
            assert len(loops(k)) == (2 if shape[0] > rows and shape[0] % rows else 1), text_of(k, "knob-driven-fusion")
            assert max(math.prod(b[1:]) for b in buffers(k, "sbuf")) <= columns, (name, buffers(k, "sbuf"))
        assert not buffers(k, "hbm"), name


FEW = ["even", "tails"]


@pytest.mark.parametrize("shape, tile", [SHAPES[n] for n in FEW], ids=FEW)
def test_a_fused_value_that_others_read_is_kept(shape, tile):
    right(source(KEPT | ROWS_KEPT, shape, tile))


@pytest.mark.parametrize("shape, tile", [SHAPES[n] for n in FEW], ids=FEW)
def test_reductions_of_rows_are_fused_over_row_tiles(shape, tile):
    for name, k in right(source(ROWS, shape, tile)).items():
        assert not buffers(k, "hbm")
        assert max(math.prod(b[1:]) for b in buffers(k, "sbuf")) <= -(-shape[1] // tile[1]) * tile[1], (name, buffers(k, "sbuf"))


MATMULS = {"even": (256, 256, 512, [128, 256]), "large": (512, 384, 1024, [128, 512]), "tails": (130, 200, 517, [128, 256])}


@pytest.mark.parametrize("m, k, n, tile", few(MATMULS.values(), 2, list(MATMULS)))
def test_what_follows_a_matmul_is_computed_from_its_tiles(m, k, n, tile):
    types = f"[(({m}, {k}), 'f32'), (({k}, {n}), 'f32'), (({n},), 'f32'), (({m}, {n}), 'f32')]"
    matmul = f"    p = x @ y\n    knob.knob(p).tile_op(tile_size={[*tile, min(k, 128)]})\n"
    text = HEAD + f"""@trace(input_specs={types})
def epilogue(x, y, z, w):
{matmul}    b = p + z
    r = np.maximum(b, 0.0)
    d = r + w
    for v in (b, r, d): knob.knob(v).tile_op(tile_size={tile})
    knob.fuse(p, b, r, d)
    return d

@trace(input_specs={types})
def shared(x, y, z, w):
{matmul}    d = np.abs(p)
    knob.knob(d).tile_op(tile_size={tile})
    knob.fuse(d, p)
    return d, p, z + w

@trace(input_specs={types})
def row_sum(x, y, z, w):
{matmul}    s = np.sum(p, axis=-1, keepdims=True)
    d = p - s
    for v in (s, d): knob.knob(v).tile_op(tile_size={tile})
    knob.fuse(p, s, d)
    return d + z + w

@trace(input_specs={types})
def prologue(x, y, z, w):
    c = np.exp(x)
    knob.knob(c).tile_op(tile_size={[128, min(k, 128)]})
    p = c @ y
    knob.knob(p).tile_op(tile_size={[*tile, min(k, 128)]})
    knob.fuse(c, p)
    return p + z + w
"""
    kernels = right(text)
    products = [b for b in buffers(kernels["epilogue"], "sbuf") if b[-1] == tile[1] and len(b) == 2]
    assert products and not buffers(kernels["epilogue"], "hbm")
    assert (m, n) not in buffers(kernels["epilogue"], "sbuf")


def test_narrow_types_three_dimensions_and_the_other_partitions_are_fused():
    right(HEAD + """
@trace(input_specs=[((256, 512), "bf16"), ((256, 512), "bf16")])
def bf16(x, y):
    c = x + y
    d = np.exp(c)
    for v in (c, d): knob.knob(v).tile_op(tile_size=[128, 256])
    knob.fuse(c, d)
    return d

@trace(input_specs=[((256, 512), "i32"), ((256, 512), "i32")])
def integers(x, y):
    c = x + y
    d = c * 3
    for v in (c, d): knob.knob(v).tile_op(tile_size=[128, 256])
    knob.fuse(c, d)
    return d

@trace(input_specs=[((4, 130, 64), "f32"), ((4, 130, 64), "f32")])
def cube(x, y):
    c = x + y
    d = np.exp(c)
    for v in (c, d): knob.knob(v).tile_op(tile_size=[2, 128, 64])
    knob.fuse(c, d)
    return d

@trace(input_specs=[((4, 128, 64), "f32")])
def cube_softmax(x):
    m = np.max(x, axis=-1, keepdims=True)
    s = x - m
    e = np.exp(s)
    t = np.sum(e, axis=-1, keepdims=True)
    r = e / t
    knob.fuse(m, s, e, t, r)
    return r

@trace(input_specs=[((256, 128), "f32"), ((256, 128), "f32")])
def columns_on_partitions(x, y):
    c = x + y
    d = np.exp(c)
    for v in (c, d): knob.knob(v).tile_op(tile_size=[256, 128]).layout(mem_space="Sbuf", partition_dim=1)
    knob.fuse(c, d)
    return d + 1.0
""")


REFUSED = {
    "c = x + y; d = np.exp(c); knob.knob(c).tile_op(tile_size=[128, 256]); knob.knob(d).tile_op(tile_size=[64, 256]); "
    "knob.fuse(c, d); return d": "dimension 0 goes from 0 to 256 in steps of 64 here, but from 0 to 256 in steps of 128",
    "c = x + y; d = np.exp(c); knob.knob(c).tile_op(tile_size=[128, 256]); knob.knob(d).tile_op(tile_size=[128, 128]); "
    "knob.fuse(c, d); return d": "dimension 1 goes from 0 to 512 in steps of 128 here, but from 0 to 512 in steps of 256",
    "c = x + y; t = np.sum(c, axis=0, keepdims=True); knob.fuse(c, t); return t": "dimension 0 goes from 0 to 512",
    "c = np.exp(y); p = x @ np.transpose(c); knob.fuse(c, p); return p": "in between",
    "c = x + y; d = np.transpose(c) + 1.0; knob.fuse(c, d); return d": "dimension 0",
}


@pytest.mark.parametrize("body, why", REFUSED.items())
def test_loops_that_cannot_be_one_are_refused_with_the_dimension(body, why):
    result = compiler.compile(source({"k": body}, (256, 512), [128, 256]))
    (d,) = result["diagnostics"]
    assert (d["code"], d["stage"]) == ("pass-failed", "knob-driven-fusion")
    assert "fuse: " in d["message"] and why in d["message"] and d["range"]["line"] > 3
