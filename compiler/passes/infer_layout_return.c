/* infer_layout_return: returned values that the user puts into SBUF.  See infer_layout.c.
 *
 * Results are always in HBM.  If such a value is read as well, it stays in SBUF for its readers and a copy is returned:
 *
 *     layout(%v) {mem_space = 3}         %c = linalg.copy ins(%v)
 *     %w = linalg.abs ins(%v)      ==>   layout(%c) {mem_space = 4}
 *     return %v, %w                      return %c, %w
 *
 * If nobody else reads it no copy is made: its tiles are computed in SBUF all the same (infer_layout_space.c warns).
 */
#include "linalg/emit.h"
#include "passes/infer_layout.h"

static bool is_read_elsewhere(MlirValue v, MlirOperation ret) {
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation user = mlirOpOperandGetOwner(u);
    if (!layout_is_annotation(user) && !ir_is(user, "nkipy.fuse_op") && !mlirOperationEqual(user, ret))
      return true;
  }
  return false;
}

static MlirValue copy_of(struct pass_run *run, MlirOperation ret, MlirOperation def, MlirValue v,
                         const struct layout *l) {
  struct emit e = {.ctx = run->ir->ctx,
                   .block = mlirOperationGetBlock(ret),
                   .before = ret,
                   .loc = mlirOperationGetLocation(def),
                   .arena = run->arena};
  MlirValue empty = emit_op1(&e, "tensor.empty", mlirValueGetType(v), 0, NULL);
  MlirValue copy = emit_result(emit_linalg_named(&e, "linalg.copy", 1, &v, empty, 0, NULL));
  const struct layout at = {.space = SPACE_SHARED_HBM, .partition_dim = l->partition_dim};

  layout_write(copy, &at, mlirOperationGetLocation(l->layout_op));
  pass_remark(run, def, "returned as a copy: the value itself is read from SBUF");
  return copy;
}

void infer_copy_returned(struct pass_run *run) {
  struct ir_ops ops = ir_collect_named(run->arena, run->module, "func.return");

  for (int i = 0; i < ops.n; i++)
    for (intptr_t k = 0; k < mlirOperationGetNumOperands(ops.v[i]); k++) {
      MlirValue v = mlirOperationGetOperand(ops.v[i], k);
      MlirOperation def = ir_defining_op(v);
      struct structured s;
      const struct layout l = layout_read(v);
      if (l.space == SPACE_SBUF && !mlirOperationIsNull(def) && structured_read(def, &s) &&
          structured_is_annotatable(&s) && is_read_elsewhere(v, ops.v[i]))
        mlirOperationSetOperand(ops.v[i], k, copy_of(run, ops.v[i], def, v, &l));
    }
}
