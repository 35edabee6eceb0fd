/* follow: what computes with the result of a reduction alone has the reduction's dimensions.
 *
 *     %s = sum of x[8,512,14,14] over the last two : 8x512x1x1          %s = sum : 8x512x1x1
 *     %c = collapse_shape %s : 8x512                              ==>   %m = f(%s) : 8x512x1x1
 *     %m = f(%c) : 8x512                                                %c = collapse_shape %m : 8x512
 *
 * The reduction may put 512 across the partitions, in tiles of one image.  An operation with two dimensions chooses for itself, and
 * the two then meet in HBM; with the same dimensions they are one loop.  Other operands are single numbers, or results of other
 * reductions with the same dimensions.  A result of one dimension has a form of its own, see shapes.c.  Linear in operands.
 */
#include "mlir-c/BuiltinAttributes.h"

#include "passes/lib/edit.h"
#include "passes/prepare_arithmetic/prepare_arithmetic.h"

/* On an operation that has got the dimensions of a reduction. */
#define FOLLOWED "nkx.followed"

/* The result of a reduction that v is, without the dimensions of one element that were reduced; null if it is something else. */
static MlirValue reduced(MlirValue v) {
  MlirOperation op = ir_defining_op(v);
  const MlirValue none = {NULL};
  struct structured s;

  if (mlirOperationIsNull(op) || !ir_is(op, "tensor.collapse_shape") || prepare_has_knob(v))
    return none;
  MlirValue from = mlirOperationGetOperand(op, 0);
  MlirOperation def = ir_defining_op(from);
  if (mlirOperationIsNull(def) || !structured_read(def, &s))
    return none;
  return s.kind == SK_REDUCTION || prepare_is_marked(def, FOLLOWED) ? from : none;
}

/* True if `from` has the dimensions of v, and then some of one element. */
static bool only_adds_ones(MlirValue from, MlirValue v) {
  int64_t a[STRUCTURED_LOOPS_MAX], b[STRUCTURED_LOOPS_MAX];
  const int n = ir_shape(from, STRUCTURED_LOOPS_MAX, a), rank = ir_shape(v, STRUCTURED_LOOPS_MAX, b);

  for (int d = 0; d < n; d++)
    if (a[d] != (d < rank ? b[d] : 1))
      return false;
  return n > rank;
}

/* The dimensions that op takes: those of the reductions that it reads; null if it stays as it is. */
static MlirValue shape_for(struct pass_run *run, MlirOperation op, struct structured *s) {
  MlirValue like = {NULL};

  if (!prepare_may_change(run, op, s) || !structured_is_elementwise(s) || s->n_loops < 2 ||
      prepare_has_op(run, op, "linalg.index"))
    return like;
  for (int o = 0; o < s->n_inputs; o++) {
    MlirValue v = mlirOperationGetOperand(op, o), from = reduced(v);
    if (mlirValueIsNull(from) && prepare_elements(v) == 1 && ir_is(op, "linalg.generic"))
      continue;
    if (mlirValueIsNull(from) || !mlirAffineMapIsIdentity(s->maps[o]) || !only_adds_ones(from, v) ||
        (!mlirValueIsNull(like) && !mlirTypeEqual(mlirValueGetType(from), mlirValueGetType(like))))
      return (MlirValue){NULL};
    like = from;
  }
  return mlirAffineMapIsIdentity(s->maps[s->n_inputs]) ? like : (MlirValue){NULL};
}

static void give_dimensions(struct pass_run *run, MlirOperation op, const struct structured *s, MlirValue like) {
  int64_t dims[STRUCTURED_LOOPS_MAX], ones[STRUCTURED_LOOPS_MAX], zeros[STRUCTURED_LOOPS_MAX];
  const int rank = ir_shape(like, STRUCTURED_LOOPS_MAX, dims);
  struct ir_builder b = edit_before(run, op);
  MlirAffineMap maps[STRUCTURED_OPERANDS_MAX];

  for (int d = 0; d < rank; d++) {
    ones[d] = 1;
    zeros[d] = IR_CONST(0);
  }
  for (int o = 0; o < s->n_inputs; o++) {
    MlirValue v = mlirOperationGetOperand(op, o), from = reduced(v);
    maps[o] = ir_identity_map(&b, rank);
    if (mlirValueIsNull(from)) { /* a number */
      from = edit_reshape(&b, v, rank, ones);
      maps[o] = ir_map(&b, rank, rank, zeros);
    }
    mlirOperationSetOperand(op, o, from);
  }
  maps[s->n_inputs] = ir_identity_map(&b, rank);
  prepare_result(run, op, s, 0, rank, dims);
  ir_set_attr(op, FOLLOWED, mlirUnitAttrGet(mlirOperationGetContext(op)));
  if (!ir_is(op, "linalg.generic"))
    return;
  edit_set_maps(op, s->n_inputs + 1, maps);
  edit_set_iterators(op, rank, (bool[STRUCTURED_LOOPS_MAX]){false});
}

void prepare_follow(struct pass_run *run) {
  const struct ir_ops all = prepare_candidates(run);

  for (int i = 0; i < all.n; i++) {
    struct structured s;
    MlirValue like = shape_for(run, all.v[i], &s);
    if (mlirValueIsNull(like))
      continue;
    pass_step(run, all.v[i], "follow-reduction");
    give_dimensions(run, all.v[i], &s, like);
  }
  prepare_unmark(all, FOLLOWED);
}
