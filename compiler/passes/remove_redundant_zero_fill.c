/* remove_redundant_zero_fill: removes fills with zero that initialize a matmul, which starts from zero anyway.
 *
 *     %f = linalg.fill ins(0) outs(%empty)
 *     %c = linalg.matmul … outs(%f)          ==>    %c = linalg.matmul … outs(%empty)
 *
 * On the hardware the first matmul of an accumulation group overwrites PSUM.  From this pass on, a matmul whose init is
 * tensor.empty starts from zero, so an interpreter of the IR must zero tensor.empty.  -0.0 counts as zero.
 *
 * Every user of the fill must be a matmul that takes it as its init.  A zero that a matmul reads as a factor stays, and
 * so does one that is written over a tensor with contents.  Each matmul gets its own tensor.empty directly before it,
 * so that bufferization cannot give it a buffer with the result of another operation, or, in a loop, with its own
 * result of the previous iteration (CSE merges equal fills inside and before a loop).
 *
 * An operation with a loop of 0 iterations computes nothing: its users read its init instead (an empty sum is the zero
 * it starts from), and its annotations are erased.  So no later pass sees a tile of a dimension that is 0.  This is
 * done before the fills are removed, because these users need the fill of such a matmul.  The pass runs first; linear
 * in uses.
 */
#include "mlir-c/BuiltinAttributes.h"

#include "passes/lib/edit.h"
#include "passes/lib/price.h"

static bool is_matmul_init(MlirOpOperand use) {
  struct structured s;
  return structured_read(mlirOpOperandGetOwner(use), &s) && (s.kind == SK_MATMUL || s.kind == SK_BATCH_MATMUL) &&
         (int)mlirOpOperandGetOperandNumber(use) >= s.n_inputs;
}

static bool is_redundant(MlirOperation fill) {
  MlirOperation dest = ir_defining_op(mlirOperationGetOperand(fill, 1));

  if (mlirOperationGetNumResults(fill) != 1 || mlirOperationIsNull(dest) || !ir_is(dest, "tensor.empty") ||
      !ir_is_zero(mlirOperationGetOperand(fill, 0)))
    return false;
  for (MlirOpOperand u = mlirValueGetFirstUse(ir_result(fill)); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
    if (!is_matmul_init(u))
      return false;
  return true;
}

/* ---- loops without an iteration ---------------------------------------------------------------------------------- */

static bool is_over_nothing(MlirOperation op, void *user) {
  struct structured s;

  (void)user;
  if (!mlirOperationGetNumResults(op) || !structured_read(op, &s) || s.n_inits != mlirOperationGetNumResults(op))
    return false;
  for (int k = 0; k < s.n_loops; k++)
    if (s.extents[k] == 0)
      return true;
  return false;
}

static void forward_inits(struct pass_run *run, MlirOperation op) {
  const intptr_t results = mlirOperationGetNumResults(op), inputs = mlirOperationGetNumOperands(op) - results;

  for (intptr_t r = 0; r < results; r++) {
    MlirValue v = mlirOperationGetResult(op, r);
    MlirOpOperand next;
    for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = next) {
      next = mlirOpOperandGetNextUse(u);
      MlirOperation by = mlirOpOperandGetOwner(u);
      if (!ir_is_of(by, "nkipy."))
        continue;
      while (!mlirOpOperandIsNull(next) && mlirOperationEqual(mlirOpOperandGetOwner(next), by))
        next = mlirOpOperandGetNextUse(next);
      mlirOperationDestroy(by);
    }
    mlirValueReplaceAllUsesOfWith(v, mlirOperationGetOperand(op, inputs + r));
  }
  pass_remark(run, op, RULE_NOTHING_TO_COMPUTE, "a dimension is 0: nothing to compute");
  edit_erase_unused(run->arena, op);
}

/* ---- the pass ---------------------------------------------------------------------------------------------------- */

static enum status run_pass(struct pass_run *run) {
  struct ir_ops nothing = ir_collect(run->arena, run->module, is_over_nothing, NULL);

  for (int i = 0; i < nothing.n; i++) {
    pass_step(run, nothing.v[i], "forward-initial-value");
    forward_inits(run, nothing.v[i]);
  }

  struct ir_ops fills = ir_collect_named(run->arena, run->module, "linalg.fill");

  for (int i = 0; i < fills.n; i++) {
    if (!is_redundant(fills.v[i]))
      continue;
    pass_step(run, fills.v[i], "drop-zero-fill");
    MlirOpOperand u;
    while (u = mlirValueGetFirstUse(ir_result(fills.v[i])), !mlirOpOperandIsNull(u)) {
      struct ir_builder b = edit_before(run, mlirOpOperandGetOwner(u));
      b.loc = mlirOperationGetLocation(fills.v[i]);
      MlirValue fresh = ir_empty_of(&b, mlirValueGetType(ir_result(fills.v[i])));
      struct remark *r = pass_remark(run, mlirOpOperandGetOwner(u), RULE_ZERO_IN_PSUM,
                                     "starts from zero in PSUM: the fill is not needed");
      const struct price_shape s = price_shape_of(ir_result(fills.v[i]));
      price_chosen(r, 0);
      price_instead(r, "a buffer of zeros", price_rows_ns(run->target, SIM_COST_VECTOR_MEMSET, s.rows, s.columns),
                    "the first product overwrites what is in PSUM");
      mlirOperationSetOperand(mlirOpOperandGetOwner(u), mlirOpOperandGetOperandNumber(u), fresh);
    }
    edit_erase_unused(run->arena, fills.v[i]);
  }
  return ST_OK;
}

const struct pass_def remove_redundant_zero_fill = {
    .name = "remove-redundant-zero-fill",
    .run = run_pass,
};
