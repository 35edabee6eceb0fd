/* assign_linalg_op_ids: numbers the linalg operations.
 *
 *     linalg.exp …    ==>    linalg.exp {nkipy.op_id = 3 : i64} …
 *
 * knob-driven-tiling finds each operation by its number.  Numbers are given in program order from 0, to fills,
 * transposes and broadcasts, too.  An operation that has a number keeps it, and no other operation gets that number:
 * the tile of one would otherwise be applied to both.  Linear in operations.
 */
#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "passes/lib/edit.h"

static const char op_id[] = "nkipy.op_id";

static bool is_linalg(MlirOperation op, void *user) {
  (void)user;
  return structured_read(op, &(struct structured){0});
}

/* Returns the number of op, or -1 if it has none. */
static int64_t id_of(MlirOperation op) {
  MlirAttribute a = ir_attr(op, op_id);
  return mlirAttributeIsNull(a) || !mlirAttributeIsAInteger(a) ? -1 : mlirIntegerAttrGetValueInt(a);
}

static enum status run_pass(struct pass_run *run) {
  struct ir_ops ops = ir_collect(run->arena, run->module, is_linalg, NULL);
  MlirType i64 = mlirIntegerTypeGet(run->ir->ctx, 64);
  bool *taken = arena_new_array(run->arena, bool, (size_t)ops.n + 1);
  int64_t next = 0;

  for (int i = 0; i < ops.n; i++) {
    int64_t id = id_of(ops.v[i]);
    if (id >= 0 && id < ops.n)
      taken[id] = true;
  }
  for (int i = 0; i < ops.n; i++) {
    if (id_of(ops.v[i]) >= 0)
      continue;
    while (next < ops.n && taken[next])
      next++;
    pass_step(run, ops.v[i], "number-operation");
    mlirOperationSetDiscardableAttributeByName(ops.v[i], ir_str(op_id), mlirIntegerAttrGet(i64, next++));
  }
  return ST_OK;
}

const struct pass_def assign_linalg_op_ids = {
    .name = "assign-linalg-op-ids",
    .run = run_pass,
};
