/* columns: a sum over the leading dimensions becomes a matrix product with ones.
 *
 *     sum of x[R,N] over R       ==>  ones[R,1]ᵀ · x[R,N], which is [1,N]
 *     sum of x[A,R,N] over R     ==>  the same for each of A matrices
 *
 * The vector engine reduces along the free dimension only.  Otherwise N, the last dimension, would have to lie across the
 * partitions, and all of x would be transposed on its way.  The tensor engine sums over the partitions: x is its moving
 * operand as it is, and PSUM sums over the tiles of R.
 *
 * Any other reduction over the leading dimensions gets two dimensions, [R,N]: N is transposed in whole tiles then.
 *
 * A dimension in front of the last one that stays can lie across the partitions without a transpose.  The reduction is left
 * alone if such a dimension is in front of the rows, as in [A,R,N], and fills a fourth as many partitions as they do, or
 * is between them and the last one, as the rows of the images in [R,H,W], and fills more.  So is one with knobs, of its result
 * or of its operand: they give the rows tiles that a product might not take.  Only f32: the sum stays in that type from the
 * first element to the last.  A product with 1 is exact, so the result differs from another order of the sum by rounding only.
 */
#include <inttypes.h>
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "nisa/nisa.h"
#include "passes/lib/edit.h"
#include "passes/lib/layout.h"
#include "passes/prepare_arithmetic/prepare_arithmetic.h"
#include "passes/lib/price.h"

/* A sum in the form [A, R, N] -> [A, N]. */
struct columns {
  int64_t batch, rows, columns;
};

/* A leading dimension with a fourth of the partitions, or of the rows if they are fewer, keeps the reduction as it is. */
enum { WORTH_LEAVING = 4 };

bool prepare_is_plain(MlirOperation op, const char *name) {
  MlirBlock body = ir_body(op);
  MlirOperation first = mlirBlockGetFirstOperation(body), end = mlirBlockGetTerminator(body);

  if (!ir_is(first, name) || !mlirOperationEqual(mlirOperationGetNextInBlock(first), end) ||
      !mlirValueEqual(mlirOperationGetOperand(end, 0), ir_result(first)))
    return false;
  MlirValue x = mlirOperationGetOperand(first, 0), y = mlirOperationGetOperand(first, 1);
  return mlirValueIsABlockArgument(x) && mlirValueIsABlockArgument(y) && !mlirValueEqual(x, y);
}

/* True if v, or the value that it is a reshape of, has a knob. */
static bool has_knob(MlirValue v) {
  MlirOperation def = ir_defining_op(v);
  if (!mlirOperationIsNull(def) && (ir_is(def, "tensor.collapse_shape") || ir_is(def, "tensor.expand_shape")) &&
      has_knob(mlirOperationGetOperand(def, 0)))
    return true;
  return prepare_has_knob(v);
}

bool prepare_keeps_order(const struct structured *s) {
  int last = -1;
  for (int d = 0; d < mlirAffineMapGetNumResults(s->maps[1]); d++) {
    const int loop = structured_map_loop(s->maps[1], d);
    if (loop >= 0 && loop <= last)
      return false;
    last = loop >= 0 ? loop : last;
  }
  return true;
}

static bool read_columns(const struct structured *s, struct columns *c) {
  int l = 0;
  int64_t leading = 1, between = 1; /* the longest dimensions that could lie across the partitions */

  *c = (struct columns){1, 1, 1};
  for (; l < s->n_loops && !s->reduction[l]; l++) {
    c->batch *= s->extents[l];
    leading = s->extents[l] > leading ? s->extents[l] : leading;
  }
  for (; l < s->n_loops && s->reduction[l]; l++)
    c->rows *= s->extents[l];
  for (; l < s->n_loops && !s->reduction[l]; l++) {
    c->columns *= s->extents[l];
    if (l < s->n_loops - 1)
      between = s->extents[l] > between ? s->extents[l] : between;
  }
  const int64_t rows = c->rows < NISA_PARTITIONS ? c->rows : NISA_PARTITIONS;
  return l == s->n_loops && c->columns > 1 && c->rows > 1 && leading * WORTH_LEAVING <= rows && between <= rows;
}

static MlirValue multiply_add(struct ir_builder *b, MlirValue const *args, void *user) {
  (void)user;
  return ir_binary(b, "arith.addf", args[2], ir_binary(b, "arith.mulf", args[0], args[1]));
}

MlirValue prepare_product(struct ir_builder *b, MlirValue weights, MlirValue x, MlirValue init) {
  MlirAttribute maps[] = {mlirAffineMapAttrGet(ir_map(b, 3, 2, (int64_t[]){2, 0})),
                          mlirAffineMapAttrGet(ir_map(b, 3, 2, (int64_t[]){2, 1})),
                          mlirAffineMapAttrGet(ir_map(b, 3, 2, (int64_t[]){0, 1}))};
  MlirNamedAttribute attr = ir_named(b, "indexing_maps", mlirArrayAttrGet(b->ctx, 3, maps));
  return ir_result(ir_linalg_named(b, "linalg.matmul", 2, (MlirValue[]){weights, x}, init, 1, &attr));
}

MlirValue prepare_batch_product(struct ir_builder *b, MlirValue weights, MlirValue x, MlirValue init) {
  static const bool reduction[] = {false, false, false, true};
  MlirAffineMap maps[] = {ir_map(b, 4, 2, (int64_t[]){3, 1}), ir_map(b, 4, 3, (int64_t[]){0, 3, 2}),
                          ir_map(b, 4, 3, (int64_t[]){0, 1, 2})};
  return ir_result(ir_linalg_generic(b, &(struct ir_generic){.n_loops = 4,
                                                             .reduction = reduction,
                                                             .n_inputs = 2,
                                                             .inputs = (MlirValue[]){weights, x},
                                                             .maps = maps,
                                                             .output = init,
                                                             .body = multiply_add}));
}

MlirValue prepare_start_of(struct ir_builder *b, MlirValue init, int rank, const int64_t *dims) {
  MlirOperation def = ir_defining_op(init);
  if (!mlirOperationIsNull(def) && ir_is(def, "linalg.fill") && ir_is_zero(mlirOperationGetOperand(def, 0)))
    return ir_empty_of(b, ir_tensor_of(ir_value_element(init), rank, dims));
  return edit_reshape_init(b, init, rank, dims);
}

/* Ones in SBUF: a column of as many tiles as the operand has. */
static MlirValue ones_of(struct ir_builder *b, MlirType element, int64_t rows) {
  MlirValue empty = ir_empty_of(b, ir_tensor_of(element, 2, (int64_t[]){rows, 1}));
  MlirValue ones = ir_fill(b, ir_float(b, element, 1), empty);
  struct layout at = {.space = MEM_SBUF, .partition_dim = 0, .n_tile = 2, .tile = {rows, 1}};

  at.tile[0] = rows < NISA_PARTITIONS ? rows : NISA_PARTITIONS;
  layout_write(ones, &at, b->loc);
  return ones;
}

/* Makes op reduce the first of two dimensions. */
static void flatten(struct pass_run *run, MlirOperation op, struct structured *s, const struct columns *c) {
  struct ir_builder b = edit_before(run, op);
  const int64_t in[] = {c->rows, c->columns}, out[] = {1, c->columns};

  mlirOperationSetOperand(op, 0, edit_reshape(&b, mlirOperationGetOperand(op, 0), 2, in));
  s->n_loops = 2;
  s->extents[0] = c->rows;
  s->extents[1] = c->columns;
  s->reduction[0] = true;
  s->reduction[1] = false;
  s->maps[0] = ir_identity_map(&b, 2);
  s->maps[1] = ir_map(&b, 2, 2, (int64_t[]){IR_CONST(0), 1});
  prepare_result(run, op, s, 0, 2, out);
  edit_set_iterators(op, 2, s->reduction);
  edit_set_maps(op, 2, s->maps);
}

bool prepare_columns(struct pass_run *run, MlirOperation op, struct structured *s) {
  MlirValue result = ir_result(op);
  struct columns c;
  int64_t old[STRUCTURED_LOOPS_MAX];

  if (s->n_inputs != 1 || s->n_inits != 1 || !mlirAffineMapIsIdentity(s->maps[0]) || !prepare_keeps_order(s) ||
      !read_columns(s, &c) || has_knob(result) || has_knob(mlirOperationGetOperand(op, 0)))
    return false;
  if (!prepare_is_plain(op, "arith.addf") || !mlirTypeIsAF32(ir_value_element(result)) ||
      !mlirTypeIsAF32(ir_value_element(mlirOperationGetOperand(op, 0)))) {
    if (c.batch == 1 && s->n_loops > 2 && !prepare_has_op(run, op, "linalg.index"))
      flatten(run, op, s, &c);
    return false;
  }
  const int old_rank = ir_shape(result, STRUCTURED_LOOPS_MAX, old);
  struct ir_builder b = edit_before(run, op);
  MlirValue ones = ones_of(&b, ir_value_element(result), c.rows);
  const bool is_batch = c.batch > 1;
  const int64_t in[] = {c.batch, c.rows, c.columns}, out[] = {c.batch, 1, c.columns};
  MlirValue x = edit_reshape(&b, mlirOperationGetOperand(op, 0), 2 + is_batch, in + !is_batch);
  MlirValue old_init = mlirOperationGetOperand(op, 1);
  MlirValue init = is_batch ? edit_reshape_init(&b, old_init, 3, out) : prepare_start_of(&b, old_init, 2, out + 1);
  MlirValue sum = is_batch ? prepare_batch_product(&b, ones, x, init) : prepare_product(&b, ones, x, init);
  struct remark *r = pass_remark(run, op, RULE_SUM_BY_PRODUCT, "summed over the partitions by a product with ones");
  const enum target t = run->target;
  const double batch = (double)c.batch;
  price_chosen(r, batch * price_product_ns(t, 1, c.rows, c.columns, 4));
  price_instead(r, "a reduction on the vector engine",
                batch * price_transpose_ns(t, c.rows, c.columns, 4) +
                    price_rows_ns(t, SIM_COST_VECTOR_REDUCE, c.batch * c.columns, c.rows),
                "it reduces along the free dimension, so the operand would be transposed");
  mlirValueReplaceAllUsesOfWith(result, edit_reshape(&b, sum, old_rank, old));
  edit_erase_unused(run->arena, op);
  return true;
}
