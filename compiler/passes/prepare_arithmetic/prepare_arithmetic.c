/* prepare_arithmetic: rewrites arithmetic to operations that the engines support.
 *
 * Functions (expand.c): log1p, the number of bits set and others are written as arithmetic that the engines have.
 *
 * Division (divide.c): no engine divides a tensor by a tensor; the division becomes a reciprocal and a
 * multiplication.
 *
 * Windows (windows.c, convolution.c): a convolution becomes a matrix product of slices.
 *
 * Parts (parts.c): what is computed of a value joined of equal parts is computed part by part.
 *
 * Borders (border.c): only the border of what a slice is put into is filled or copied.
 *
 * Taps (taps.c): a column of a matrix that is read along rows becomes a row of the transposed matrix.
 *
 * First places (first.c): that of the largest element of a row is found by one operation and a minimum.
 *
 * Swapped operands (swap.c): a product takes images as its right operand and makes images.
 * Diagonals (diagonal.c): a mask that leaves one diagonal of an argument becomes a strided read.
 *
 * Places (places.c): differences of row and column numbers, of which masks are made, are counted by one operation.
 *
 * Weights (weights.c): a weighted sum over rows is a matrix product, and a product with one column a sum along rows.
 *
 * Outer products (outer.c): those of many short vectors are computed in rows that fill the partitions.
 *
 * Both ends (ends.c): what reduces the first and the last dimensions is reduced along the last ones first.
 *
 * Columns as rows (middle.c): a softmax or a norm over the channels of images is computed in transposed images, or in bands.
 *
 * Parts of rows (row_parts.c): those of few long rows lie across the partitions together.
 *
 * Rows (rows.c): the leading dimensions of a normalisation over the others become one.
 *
 * Windows of images (pools.c): what reduces them has rows of all images.
 *
 * Products of vectors (dots.c): that of long ones is a sum of products.
 *
 * Short rows (short.c): a partition holds several rows that follow each other.
 *
 * Rows and columns (spread.c): a long row or column that only element-wise operations read is spread.
 *
 * Interleaved rows (interleave.c, strides.c): every second element of rows is a slice of transposed pairs.
 *
 * Turns (turns.c): a transpose that keeps its first dimensions copies each row in another order.
 *
 * Shapes (shapes.c, reduce.c): engines work on two and more dimensions, of which the first is the partitions.
 *
 * Results of reductions (follow.c): what computes with them alone has their dimensions.
 *
 *     tensor<N>            ==>  a column [N,1], a row [1,N] or [P,N/P], then tensor.collapse_shape
 *     x[M,N] + bias[N]     ==>  x + bias[1,N]
 *     x[M,N] * scale[M]    ==>  x * scale[M,1]            one number per partition needs no copy
 *     sum of x[M,N]        ==>  sum over N to [M,1], transpose, sum to [1,1]
 *
 * The conditions of loops with data-dependent trip counts (scf.while) pass on all carried values, so that later
 * passes have to handle only one form.
 *
 * The pass runs before layouts are inferred, so that new values get a layout.  Quotients change by the rounding of
 * the reciprocal, and sums by their order; all other values are exact.  The time is linear in the number of
 * operations, except for the users that are read to choose a shape.
 */
#include "passes/prepare_arithmetic/prepare_arithmetic.h"
#include "passes/lib/carried.h"
#include "passes/lib/edit.h"

static bool is_linalg(MlirOperation op, void *user) {
  (void)user;
  return structured_read(op, &(struct structured){0});
}

static enum status run_pass(struct pass_run *run) {
  struct ir_ops ops = ir_collect_named(run->arena, run->module, "linalg.generic");

  for (int i = 0; i < ops.n; i++) {
    pass_step(run, ops.v[i], "write-out-function");
    prepare_expand(run, ops.v[i]);
  }
  ops = ir_collect(run->arena, run->module, is_linalg, NULL);
  for (int i = 0; i < ops.n; i++) {
    pass_step(run, ops.v[i], "multiply-by-reciprocal");
    prepare_divide(run, ops.v[i]);
  }
  ops = ir_collect_named(run->arena, run->module, "linalg.generic");
  for (int i = 0; i < ops.n; i++) {
    pass_step(run, ops.v[i], "windows-as-slices");
    prepare_windows(run, ops.v[i]);
  }
  prepare_parts(run);
  prepare_first(run);
  prepare_dots(run);
  prepare_border(run);
  prepare_taps(run);
  prepare_diagonal(run);
  prepare_places(run);
  prepare_weights(run);
  prepare_outer(run);
  prepare_ends(run);
  prepare_middle(run);
  prepare_swap(run);
  prepare_row_parts(run);
  prepare_rows(run);
  prepare_pools(run);
  prepare_spread(run);
  prepare_strides(run);
  prepare_interleave(run);
  prepare_turns(run);
  prepare_short(run);
  prepare_shapes(run);
  prepare_follow(run);
  pass_step(run, run->module, "pass-on-all-values");
  carried_make_square(run);
  pass_step(run, run->module, "drop-unused");
  edit_sweep(run);
  return ST_OK;
}

const struct pass_def prepare_arithmetic = {
    .name = "prepare-arithmetic",
    .run = run_pass,
};
