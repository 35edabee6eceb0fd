"""Kernels of odd shapes and tiles through the pipeline up to memory spaces, then through the passes that make buffers
physical: the numbers stay, and what is on the chip afterwards is what the machine has."""
import re

import pytest

from support import values

BEFORE = ["remove-redundant-zero-fill", "prepare-arithmetic", "decompose-batch-matmul", "infer-layout",
          "canonicalize-partition-dim", "assign-linalg-op-ids", "knob-driven-tiling", "apply-and-strip-transforms",
          "knob-driven-fusion", "canonicalize-loop-step", "one-shot-bufferize", "canonicalize",
          "eliminate-uninitialized-copies", "canonicalize", "annotate-memory-space"]
AFTER = ["canonicalize-reshape", "eliminate-same-memspace-copy", "canonicalize", "legalize-layout", "canonicalize",
         "simplify-linalg", "insert-spill-reload", "insert-memref-dealloc", "cse", "canonicalize"]


def shape(*dims):
    return "x".join(map(str, dims)) + "xf32"


def knob(value, dims, tile=None, loop=None, space=None):
    """The annotations of a value of this shape."""
    said = [f"tile_size = array<i64: {', '.join(map(str, tile))}>"] if tile else []
    said += [f"mem_space = {space} : i32"] if space else []
    text = f'"nkipy.layout"({value}) {{{", ".join(said)}}} : (tensor<{shape(*dims)}>) -> ()\n' if said else ""
    if loop:
        text += (f'"nkipy.tile_op"({value}) {{loop_tile_size = array<i64: {", ".join(map(str, loop))}>}} : '
                 f"(tensor<{shape(*dims)}>) -> ()\n")
    return text


def apply(name, result, dims, *inputs, batch=""):
    """A named operation into an empty tensor; matmuls accumulate onto zero."""
    out, kinds = shape(*dims), ", ".join(f"tensor<{shape(*d)}>" for _, d in inputs)
    start = f"{result}_e = tensor.empty() : tensor<{out}>\n"
    init = f"{result}_e"
    if "matmul" in name:
        start += (f"{result}_z = arith.constant 0.0 : f32\n{result}_f = linalg.fill ins({result}_z : f32) "
                  f"outs({result}_e : tensor<{out}>) -> tensor<{out}>\n")
        init = f"{result}_f"
    return (f"{start}{result} = linalg.{name} ins({', '.join(v for v, _ in inputs)} : {kinds}) "
            f"outs({init} : tensor<{out}>) -> tensor<{out}>\n")


def function(arguments, results, body):
    taken = ", ".join(f"{v}: tensor<{shape(*d)}>" for v, d in arguments)
    given = ", ".join(f"tensor<{shape(*d)}>" for _, d in results)
    return f"func.func @f({taken}) -> ({given}) {{\n{body}return {', '.join(v for v, _ in results)} : {given}\n}}\n"


def check_lifetimes(text):
    """Nothing uses a buffer, or a view of it, after its end."""
    root, freed = {}, set()
    for line in text.splitlines():
        used = re.findall(r"%[\w]+", line)
        view = re.match(r"\s*(%\w+) = memref\.(?:subview|collapse_shape|expand_shape|cast) (%\w+)", line)
        if view:
            root[view.group(1)] = root.get(view.group(2), view.group(2))
            freed.discard(view.group(1))
        elif " = memref.alloc()" in line:
            freed.discard(used[0])
        for v in used:
            assert root.get(v, v) not in freed, line
        if "memref.dealloc" in line:
            freed.add(used[0])


def check(text, rng, tol=1e-4):
    """Runs it; looks at every on-chip buffer and every operand of an operation on the chip."""
    placed = values.opt(text, *BEFORE)
    after = values.check(placed, AFTER, rng, tol)
    assert "nkipy.layout" not in after
    check_lifetimes(after)
    allocs = re.findall(r"memref\.alloc\(\).* : memref<([\dx]+)x\w+, ([23]) : i32>", after)
    assert allocs or "linalg" not in after
    for dims, space in allocs:
        dims = [int(d) for d in dims.split("x")]
        assert len(dims) >= 2 and dims[0] <= 128, dims
    assert not re.search(r"memref\.alloc\(\)[^:]*: memref<[^,<>]*>$", after, re.M), "a buffer without memory space"
    for line in after.splitlines():
        if re.search(r"linalg\.(?!yield|index)", line):
            for kind in re.findall(r"memref<([\dx]+)x\w+[^>]*(?:<[^>]*>[^>]*)?, [23] : i32>", line):
                assert int(kind.split("x")[0]) <= 128 and kind.count("x") <= 3, line
    return after


MATMULS = [(256, 256, 512, (128, 512, 128)), (130, 200, 517, (128, 256, 64)), (7, 300, 5, None), (1, 1, 130, None),
           (64, 129, 96, (32, 96, 100)), (257, 33, 70, (128, 70, 33))]


@pytest.mark.parametrize("m, k, n, tile", MATMULS)
def test_a_matmul_in_sbuf_and_an_add_keep_their_values(rng, m, k, n, tile):
    body = apply("matmul", "%c", (m, n), ("%a", (m, k)), ("%b", (k, n)))
    body += knob("%c", (m, n), tile[:2] if tile else None, tile, 3)
    body += apply("add", "%r", (m, n), ("%c", (m, n)), ("%d", (m, n)))
    check(function([("%a", (m, k)), ("%b", (k, n)), ("%d", (m, n))], [("%r", (m, n))], body), rng)


@pytest.mark.parametrize("dims", [(130, 70, 99, 517), (300, 128, 64, 3)])
def test_a_chain_of_matmuls_keeps_its_values(rng, dims):
    m, k, n, p = dims
    body = apply("matmul", "%c", (m, n), ("%a", (m, k)), ("%b", (k, n))) + knob("%c", (m, n), space=3)
    body += apply("tanh", "%t", (m, n), ("%c", (m, n)))
    body += apply("matmul", "%r", (m, p), ("%t", (m, n)), ("%d", (n, p)))
    check(function([("%a", (m, k)), ("%b", (k, n)), ("%d", (n, p))], [("%r", (m, p))], body), rng)


@pytest.mark.parametrize("rows, cols, first, second", [
    (256, 256, (128, 128), (64, 64)), (256, 256, (64, 64), (128, 128)), (256, 130, (128, 130), (128, 65)),
    (130, 517, (128, 512), (128, 512)), (1, 300, (1, 150), (1, 300)),
])
def test_values_with_different_tiles_keep_their_contents(rng, rows, cols, first, second):
    d = (rows, cols)
    body = apply("exp", "%x", d, ("%a", d)) + knob("%x", d, first, first, 3)
    body += apply("add", "%r", d, ("%x", d), ("%b", d)) + knob("%r", d, second, second)
    check(function([("%a", d), ("%b", d)], [("%r", d)], body), rng)


@pytest.mark.parametrize("d, tile", [((256, 2, 256), (128, 1, 128)), ((130, 3, 70), (128, 1, 70)),
                                     ((128, 4, 64), (128, 4, 64)), ((3, 200, 64), (1, 128, 64)),
                                     ((2, 3, 130, 20), (1, 1, 128, 20))])
def test_values_of_three_dimensions_and_more_keep_their_contents(rng, d, tile):
    body = apply("exp", "%x", d, ("%a", d)) + knob("%x", d, tile, tile, 3)
    body += apply("mul", "%r", d, ("%x", d), ("%b", d)) + knob("%r", d, tile, tile)
    check(function([("%a", d), ("%b", d)], [("%r", d)], body), rng)


@pytest.mark.parametrize("b, m, k, n", [(3, 130, 70, 65), (2, 256, 128, 256)])
def test_batches_keep_their_values(rng, b, m, k, n):
    body = apply("batch_matmul", "%c", (b, m, n), ("%a", (b, m, k)), ("%b", (b, k, n)))
    body += apply("exp", "%r", (b, m, n), ("%c", (b, m, n)))
    check(function([("%a", (b, m, k)), ("%b", (b, k, n))], [("%r", (b, m, n))], body), rng)


@pytest.mark.parametrize("dims, permutation", [((130, 517), [1, 0]), ((2, 130, 3, 64), [0, 2, 1, 3]),
                                               ((40, 5, 130), [2, 1, 0]), ((4, 5, 6, 7), [3, 1, 2, 0])])
def test_transposes_keep_their_values(rng, dims, permutation):
    out = [dims[p] for p in permutation]
    body = apply("exp", "%x", dims, ("%a", dims)) + knob("%x", dims, space=3)
    body += f"%e = tensor.empty() : tensor<{shape(*out)}>\n"
    body += (f"%r = linalg.transpose ins(%x : tensor<{shape(*dims)}>) outs(%e : tensor<{shape(*out)}>) "
             f"permutation = {permutation}\n")
    check(function([("%a", dims)], [("%r", out)], body), rng)


@pytest.mark.parametrize("part", ["[3, 7] [100, 33]", "[128, 0] [2, 64]", "[0, 1] [130, 1]", "[64, 0] [64, 64]"])
def test_slices_of_what_is_in_sbuf_keep_their_values(rng, part):
    d, to = (130, 64), tuple(int(n) for n in part.split("] [")[1][:-1].split(", "))
    body = apply("exp", "%x", d, ("%a", d)) + knob("%x", d, (128, 64), (128, 64), 3)
    body += f"%s = tensor.extract_slice %x{part} [1, 1] : tensor<{shape(*d)}> to tensor<{shape(*to)}>\n"
    body += apply("mul", "%r", to, ("%s", to), ("%s", to))
    check(function([("%a", d)], [("%r", to)], body), rng)


@pytest.mark.parametrize("to, groups", [((16384,), "[[0, 1]]"), ((64, 16, 16), "[[0], [1, 2]]"),
                                        ((2, 32, 256), "[[0, 1], [2]]"), ((1, 64, 256), "[[0, 1], [2]]")])
def test_reshapes_of_what_is_in_sbuf_keep_their_values(rng, to, groups):
    d = (64, 256)
    body = apply("exp", "%x", d, ("%a", d)) + knob("%x", d, (64, 256), (64, 256), 3)
    if len(to) == 1:
        body += f"%s = tensor.collapse_shape %x {groups} : tensor<{shape(*d)}> into tensor<{shape(*to)}>\n"
    else:
        body += (f"%s = tensor.expand_shape %x {groups} output_shape {list(to)} : tensor<{shape(*d)}> into "
                 f"tensor<{shape(*to)}>\n")
    body += apply("mul", "%r", to, ("%s", to), ("%s", to))
    check(function([("%a", d)], [("%r", to)], body), rng)
