"""Tiling, bufferization and memory spaces keep what a module computes, for shapes and tiles that do not fit each other.

Every module runs before and after each of the passes from knob-driven-tiling to annotate-memory-space, through LLVM only.
"""
import re

import numpy as np
import pytest

from support import values

PASSES = ["knob-driven-tiling", "apply-and-strip-transforms", "one-shot-bufferize", "canonicalize",
          "eliminate-uninitialized-copies", "annotate-memory-space"]


def through(text, rng, first=2, tol=1e-3):
    """Results after every step from the first on (the tiled loops) are the module's own; returns the last text."""
    inputs = values.random_inputs(text, rng)
    want = values.run(text, inputs)
    after = text
    for k in range(first, len(PASSES) + 1):
        after = values.opt(text, *PASSES[:k])
        values.same(values.run(after, inputs), want, tol)
    return after


def spaces(text):
    """Every memref has a memory space, and only accumulators of matmuls are in PSUM."""
    for t in re.findall(r"memref<[^<>]*(?:<[^<>]*>[^<>]*)*>", text):
        assert re.search(r", [1-5] : i32>$", t), t
    assert not re.search(r"memref\.copy .* to memref<[^>]*2 : i32>", text), "an accumulator is written by a copy"
    assert "nkipy.tile_op" not in text and "tensor<" not in text
    return text


def shape(dims, kind="f32", what="tensor"):
    return f"{what}<{'x'.join(map(str, dims))}x{kind}>"


def ints(v):
    return "array<i64: " + ", ".join(map(str, v)) + ">"


def notes(value, t, tile, loop, space):
    """The annotations of a value."""
    return (f'"nkipy.layout"({value}) {{mem_space = {space} : i32, partition_dim = 0 : i32, tile_size = {ints(tile)}}}'
            f' : ({t}) -> ()\n  "nkipy.tile_op"({value}) {{loop_tile_size = {ints(loop)}}} : ({t}) -> ()')


def tile_for(rng, extent, limit):
    return int(rng.integers(1, min(extent, limit) + 1)) if rng.random() < 0.5 else min(extent, limit)


@pytest.mark.parametrize("k", range(6))
def test_elementwise_chains_of_any_shape_keep_their_values(rng, k):
    rank = 2 + k % 2
    dims = [int(rng.integers(1, 150)), int(rng.integers(1, 90))] if rank == 2 else [
        int(rng.integers(1, 140)), int(rng.integers(1, 5)), int(rng.integers(1, 40))]
    one = [tile_for(rng, d, 128 if i == 0 else 64) for i, d in enumerate(dims)]
    t = shape(dims)
    text = f"""
func.func @f(%a: {t}, %b: {t}) -> ({t}, {t}) {{
  %e0 = tensor.empty() : {t}
  %s = linalg.add {{nkipy.op_id = 0 : i64}} ins(%a, %b : {t}, {t}) outs(%e0 : {t}) -> {t}
  {notes("%s", t, one, one, 3)}
  %e1 = tensor.empty() : {t}
  %r = linalg.mul {{nkipy.op_id = 1 : i64}} ins(%s, %a : {t}, {t}) outs(%e1 : {t}) -> {t}
  {notes("%r", t, one, one, 4)}
  return %r, %s : {t}, {t}
}}"""
    # the second result is in SBUF and is copied out at the end
    after = spaces(through(text, rng))
    assert re.search(rf"memref.copy %\w+, %\w+ : {re.escape(shape(dims, 'f32, 3 : i32', 'memref'))} "
                     rf"to {re.escape(shape(dims, 'f32, 4 : i32', 'memref'))}\n\s*return", after)


@pytest.mark.parametrize("m,n,tm,tn", [(130, 517, 128, 512), (7, 1, 7, 1), (1, 1, 1, 1), (128, 300, 64, 128), (5, 9, 2, 4)])
def test_broadcast_operands_and_reductions_keep_their_values(rng, m, n, tm, tn):
    x, col, row = shape([m, n]), shape([m, 1]), shape([n])
    text = f"""
#id = affine_map<(d0, d1) -> (d0, d1)>
#col = affine_map<(d0, d1) -> (d0, 0)>
#row = affine_map<(d0, d1) -> (d1)>
func.func @f(%x: {x}, %w: {row}) -> ({x}, {col}) {{
  %zero = arith.constant 0.0 : f32
  %e0 = tensor.empty() : {col}
  %z = linalg.fill {{nkipy.op_id = 0 : i64}} ins(%zero : f32) outs(%e0 : {col}) -> {col}
  %sum = linalg.generic {{indexing_maps = [#id, #col], iterator_types = ["parallel", "reduction"]}}
    ins(%x : {x}) outs(%z : {col}) attrs = {{nkipy.op_id = 1 : i64}} {{
    ^bb0(%i: f32, %o: f32):
      %a = arith.addf %o, %i : f32
      linalg.yield %a : f32
  }} -> {col}
  {notes("%sum", col, [tm, 1], [tm, tn], 3)}
  %e1 = tensor.empty() : {x}
  %wide = linalg.broadcast ins(%w : {row}) outs(%e1 : {x}) dimensions = [0] {{nkipy.op_id = 2 : i64}}
  {notes("%wide", x, [tm, tn], [tm, tn], 3)}
  %e2 = tensor.empty() : {x}
  %y = linalg.generic {{indexing_maps = [#id, #col, #id, #id], iterator_types = ["parallel", "parallel"]}}
    ins(%x, %sum, %wide : {x}, {col}, {x}) outs(%e2 : {x}) attrs = {{nkipy.op_id = 3 : i64}} {{
    ^bb0(%i: f32, %s: f32, %v: f32, %o: f32):
      %a = arith.subf %i, %s : f32
      %b = arith.mulf %a, %v : f32
      linalg.yield %b : f32
  }} -> {x}
  {notes("%y", x, [tm, tn], [tm, tn], 4)}
  return %y, %sum : {x}, {col}
}}"""
    spaces(through(text, rng))


@pytest.mark.parametrize("m,n,tm,tn", [(9, 12, 4, 5), (130, 20, 128, 20)])
def test_a_reduction_over_the_leading_dimension_keeps_its_values(rng, m, n, tm, tn):
    x, r = shape([m, n]), shape([1, n])
    text = f"""
#id = affine_map<(d0, d1) -> (d0, d1)>
#r = affine_map<(d0, d1) -> (0, d1)>
func.func @f(%x: {x}) -> {r} {{
  %low = arith.constant 0xFF800000 : f32
  %e0 = tensor.empty() : {r}
  %z = linalg.fill {{nkipy.op_id = 0 : i64}} ins(%low : f32) outs(%e0 : {r}) -> {r}
  %max = linalg.generic {{indexing_maps = [#id, #r], iterator_types = ["reduction", "parallel"]}}
    ins(%x : {x}) outs(%z : {r}) attrs = {{nkipy.op_id = 1 : i64}} {{
    ^bb0(%i: f32, %o: f32):
      %a = arith.maximumf %o, %i : f32
      linalg.yield %a : f32
  }} -> {r}
  {notes("%max", r, [1, tn], [tm, tn], 4)}
  return %max : {r}
}}"""
    spaces(through(text, rng))


@pytest.mark.parametrize("dims,perm,tile", [([130, 70], [1, 0], [64, 128]), ([2, 12, 9], [0, 2, 1], [1, 4, 5]),
                                            ([3, 5, 4], [2, 0, 1], [3, 1, 2])])
def test_a_transpose_keeps_its_values(rng, dims, perm, tile):
    x, y = shape(dims), shape([dims[p] for p in perm])
    text = f"""
func.func @f(%x: {x}) -> {y} {{
  %e = tensor.empty() : {y}
  %r = linalg.transpose ins(%x : {x}) outs(%e : {y}) permutation = {perm} {{nkipy.op_id = 0 : i64}}
  {notes("%r", y, tile, tile, 4)}
  return %r : {y}
}}"""
    spaces(through(text, rng))


def matmul(m, n, k, tile, space, init, a="f32", out="f32"):
    ta, tb, tc = shape([m, k], a), shape([k, n], a), shape([m, n], out)
    maps = ("indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d2, d1)>, "
            "affine_map<(d0, d1, d2) -> (d0, d1)>]") if a != out else ""
    from_c = f"%c: {tc}, " if init == "value" else ""
    zero = f"""%zero = arith.constant 0.0 : {out}
  %init = linalg.fill {{nkipy.op_id = 7 : i64}} ins(%zero : {out}) outs(%e : {tc}) -> {tc}""" if init == "fill" else ""
    start = {"value": "%c", "fill": "%init", "empty": "%e"}[init]
    return f"""
func.func @f({from_c}%a: {ta}, %b: {tb}) -> {tc} {{
  %e = tensor.empty() : {tc}
  {zero}
  %r = linalg.matmul {maps} {{nkipy.op_id = 3 : i64}} ins(%a, %b : {ta}, {tb}) outs({start} : {tc}) -> {tc}
  {notes("%r", tc, tile[:2], tile, space)}
  return %r : {tc}
}}"""


TAILS = [(256, 256, 256, [128, 128, 128]), (384, 40, 20, [128, 20, 20]), (130, 517, 133, [128, 512, 128]), (7, 1, 1, [7, 1, 1]),
         (11, 13, 17, [3, 4, 5]), (640, 33, 9, [128, 16, 4]), (5, 600, 200, [5, 200, 64]), (12, 12, 12, [2, 3, 4])]


# every start with one shape, every shape with one start
@pytest.mark.parametrize("m,n,k,tile,init", [(*t, init) for i, t in enumerate(TAILS) for j, init in enumerate(("empty", "fill", "value"))
                                             if i == 2 or i % 3 == j])
def test_a_matmul_keeps_its_values_with_every_kind_of_tail(rng, m, n, k, tile, init):
    spaces(through(matmul(m, n, k, tile, 4, init), rng))


def test_a_matmul_of_bf16_accumulates_in_f32(rng):
    spaces(through(matmul(20, 30, 40, [16, 16, 16], 3, "fill", "bf16"), rng))


@pytest.mark.parametrize("fill", [False, True])
def test_a_loop_over_a_batch_keeps_its_values(rng, fill):
    zero = """%z = arith.constant 0.0 : f32
  %init = linalg.fill {nkipy.op_id = 9 : i64} ins(%z : f32) outs(%e : tensor<3x20x18xf32>) -> tensor<3x20x18xf32>"""
    text = f"""
func.func @f(%a: tensor<3x20x17xf32>, %b: tensor<3x17x18xf32>) -> tensor<3x20x18xf32> {{
  %e = tensor.empty() : tensor<3x20x18xf32>
  {zero if fill else ""}
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%acc = %{"init" if fill else "e"}) -> (tensor<3x20x18xf32>) {{
    %x = tensor.extract_slice %a[%i, 0, 0] [1, 20, 17] [1, 1, 1] : tensor<3x20x17xf32> to tensor<20x17xf32>
    %y = tensor.extract_slice %b[%i, 0, 0] [1, 17, 18] [1, 1, 1] : tensor<3x17x18xf32> to tensor<17x18xf32>
    %o = tensor.extract_slice %acc[%i, 0, 0] [1, 20, 18] [1, 1, 1] : tensor<3x20x18xf32> to tensor<20x18xf32>
    %m = linalg.matmul {{nkipy.op_id = 0 : i64}} ins(%x, %y : tensor<20x17xf32>, tensor<17x18xf32>)
      outs(%o : tensor<20x18xf32>) -> tensor<20x18xf32>
    {notes("%m", "tensor<20x18xf32>", [8, 8], [8, 8, 8], 3)}
    %s = tensor.insert_slice %m into %acc[%i, 0, 0] [1, 20, 18] [1, 1, 1] : tensor<20x18xf32> into tensor<3x20x18xf32>
    scf.yield %s : tensor<3x20x18xf32>
  }}
  {notes("%r", "tensor<3x20x18xf32>", [1, 8, 8], [1, 8, 8], 4)}
  return %r : tensor<3x20x18xf32>
}}"""
    after = spaces(through(text, rng))
    assert "memref<20x18xf32, 3 : i32>" in after, "the product of one iteration lies in SBUF"


def test_products_that_are_added_up_in_a_loop_keep_their_values(rng):
    text = f"""
func.func @f(%a: tensor<4x6x5xf32>, %b: tensor<5x7xf32>) -> tensor<6x7xf32> {{
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x7xf32>
  %init = linalg.fill {{nkipy.op_id = 9 : i64}} ins(%z : f32) outs(%e : tensor<6x7xf32>) -> tensor<6x7xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%acc = %init) -> (tensor<6x7xf32>) {{
    %x = tensor.extract_slice %a[%i, 0, 0] [1, 6, 5] [1, 1, 1] : tensor<4x6x5xf32> to tensor<6x5xf32>
    %m = linalg.matmul {{nkipy.op_id = 0 : i64}} ins(%x, %b : tensor<6x5xf32>, tensor<5x7xf32>)
      outs(%acc : tensor<6x7xf32>) -> tensor<6x7xf32>
    {notes("%m", "tensor<6x7xf32>", [4, 4], [4, 4, 4], 3)}
    scf.yield %m : tensor<6x7xf32>
  }}
  return %r : tensor<6x7xf32>
}}"""
    spaces(through(text, rng, first=3))  # LLVM alone does not bufferize a loop that yields a new value


def test_a_gather_reads_a_table_that_is_not_moved(rng):
    text = f"""
#id = affine_map<(d0, d1) -> (d0, d1)>
#i = affine_map<(d0, d1) -> (d0, 0)>
func.func @f(%table: tensor<50x24xf32>, %at: tensor<37x1xi32>) -> tensor<37x24xf32> {{
  %e = tensor.empty() : tensor<37x24xf32>
  %r = linalg.generic {{indexing_maps = [#i, #id], iterator_types = ["parallel", "parallel"]}}
    ins(%at : tensor<37x1xi32>) outs(%e : tensor<37x24xf32>) attrs = {{nkipy.op_id = 0 : i64}} {{
    ^bb0(%k: i32, %o: f32):
      %c = linalg.index 1 : index
      %row = arith.index_cast %k : i32 to index
      %v = tensor.extract %table[%row, %c] : tensor<50x24xf32>
      linalg.yield %v : f32
  }} -> tensor<37x24xf32>
  {notes("%r", "tensor<37x24xf32>", [16, 10], [16, 10], 4)}
  return %r : tensor<37x24xf32>
}}"""
    table = rng.standard_normal((50, 24)).astype(np.float32)
    at = rng.integers(0, 50, (37, 1)).astype(np.int32)
    for k in range(2, len(PASSES) + 1):
        after = values.opt(text, *PASSES[:k])
        (got,) = values.run(after, [table, at])
        assert np.array_equal(got, table[at[:, 0]]), PASSES[k - 1]
    spaces(after)


def test_two_users_of_one_empty_tensor_do_not_share_its_memory(rng):
    """Even if the first value is dead when the second is made, the second must not start from it."""
    text = f"""
func.func @f(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {{
  %e = tensor.empty() : tensor<8x8xf32>
  %p = linalg.matmul {{nkipy.op_id = 0 : i64}} ins(%a, %b : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  {notes("%p", "tensor<8x8xf32>", [4, 4], [4, 4, 4], 3)}
  %e1 = tensor.empty() : tensor<8x8xf32>
  %x = linalg.exp {{nkipy.op_id = 1 : i64}} ins(%p : tensor<8x8xf32>) outs(%e1 : tensor<8x8xf32>) -> tensor<8x8xf32>
  {notes("%x", "tensor<8x8xf32>", [4, 4], [4, 4], 4)}
  %q = linalg.matmul {{nkipy.op_id = 2 : i64}} ins(%b, %a : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) -> tensor<8x8xf32>
  {notes("%q", "tensor<8x8xf32>", [4, 4], [4, 4, 4], 4)}
  return %x, %q : tensor<8x8xf32>, tensor<8x8xf32>
}}"""
    spaces(through(text, rng))


ALIAS = """
func.func @f(%x: tensor<9x6xf32> {nkipy.alias = 1 : i64}, %y: tensor<9x6xf32>)
    -> (tensor<9x6xf32>, tensor<9x6xf32>, tensor<9x6xf32>) {
  %e = tensor.empty() : tensor<9x6xf32>
  %s = linalg.add {nkipy.op_id = 0 : i64} ins(%x, %y : tensor<9x6xf32>, tensor<9x6xf32>) outs(%e : tensor<9x6xf32>) -> tensor<9x6xf32>
  NOTES
  return %x, %s, %s : tensor<9x6xf32>, tensor<9x6xf32>, tensor<9x6xf32>
}"""


@pytest.mark.parametrize("space", [3, 4])
def test_an_aliased_argument_is_what_is_returned_and_its_old_value_is_kept(rng, space):
    text = ALIAS.replace("NOTES", notes("%s", "tensor<9x6xf32>", [4, 6], [4, 6], space))
    after = spaces(through(text, rng))
    returned = re.search(r"return (.*) :", after).group(1).split(", ")
    assert returned[1] == "%arg0" and "%arg0" not in (returned[0], returned[2])


def test_a_matmul_whose_k_is_too_long_for_blocks_keeps_its_values(rng):
    after = spaces(through(matmul(7, 5, 8191, [3, 5, 1], 4, "empty"), rng))
    assert not re.search(r"memref<8\d\d\dx\d+xf32, 3 : i32>", after), "a block with all of K is kept in SBUF"
