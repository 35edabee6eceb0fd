/* eliminate_uninitialized_copies: a copy of something that was never written moves nothing.
 *
 *     %c = memref.alloc()                                          %c = memref.alloc()
 *     scf.for … { %s = memref.subview %c[%m, %n]                   scf.for … { %s = memref.subview %c[%m, %n]
 *       %acc = memref.alloc() : memref<…, 2 : i32>          ==>      %acc = memref.alloc() : memref<…, 2 : i32>
 *       memref.copy %s, %acc                                         … matmul into %acc …
 *       … matmul into %acc …                                         memref.copy %acc, %s }
 *       memref.copy %acc, %s }
 *
 * Most of all this is the copy of a result's slice into the PSUM accumulator, which then starts from zero.
 *
 * A copy goes if what it reads is (a view of) an allocation and no write to that allocation can come before it.  A write
 * further down in a loop around both comes before the next iteration's copy, so it counts (positions alone, which is all
 * the reference looks at, would drop copies of loop-carried values), unless both are slices that move apart with that
 * loop's counter.  A write to another part of the allocation does not count, as with the tails of a tiled matmul.  Linear in the uses of the copied allocations.
 */
#include "passes/buffers.h"

/* True if the write may come before the copy.  Both access `alloc`. */
static bool may_precede(MlirValue alloc, MlirOperation write, MlirValue written, MlirOperation copy, MlirValue read) {
  MlirBlock home = mlirOperationGetBlock(ir_defining_op(alloc));
  MlirBlock block = mlirOperationGetBlock(copy);

  if (buffer_disjoint(alloc, written, read))
    return false;
  /* the innermost block that has both */
  while (mlirOperationIsNull(buffer_ancestor_in(write, block))) {
    MlirOperation parent = mlirBlockGetParentOperation(block);
    if (mlirOperationIsNull(parent) || mlirOperationIsNull(mlirOperationGetParentOperation(parent)))
      return true;
    block = mlirOperationGetBlock(parent);
  }
  MlirOperation w = buffer_ancestor_in(write, block), c = buffer_ancestor_in(copy, block);
  if (mlirOperationEqual(w, c) || buffer_is_before(w, c))
    return true;
  /* below the copy: only an earlier iteration of a loop that the allocation is outside of */
  for (; !mlirBlockEqual(block, home); block = mlirOperationGetBlock(mlirBlockGetParentOperation(block))) {
    MlirOperation loop = mlirBlockGetParentOperation(block);
    if (mlirOperationIsNull(loop) || ir_is(loop, "func.func"))
      return true;
    if (!buffer_disjoint_across(loop, alloc, written, read) && !ir_is(loop, "scf.if"))
      return true;
  }
  return false;
}

static bool is_uninitialized(struct pass_run *run, MlirOperation copy) {
  MlirValue read = mlirOperationGetOperand(copy, 0), alloc = buffer_root(read);
  MlirOperation def = ir_defining_op(alloc);

  if (mlirOperationIsNull(def) || !ir_is(def, "memref.alloc"))
    return false;
  struct buffer_uses uses = buffer_find_uses(run->arena, alloc);
  for (int k = 0; k < uses.n; k++) {
    const struct buffer_use *u = &uses.v[k];
    if ((u->access & BUFFER_WRITES) && !mlirOperationEqual(u->op, copy) &&
        may_precede(alloc, u->op, mlirOperationGetOperand(u->op, u->operand), copy, read))
      return false;
  }
  return true;
}

static enum status run_pass(struct pass_run *run) {
  struct ir_ops copies = ir_collect_named(run->arena, run->module, "memref.copy");

  for (int k = 0; k < copies.n; k++) {
    if (!is_uninitialized(run, copies.v[k]))
      continue;
    pass_remark(run, copies.v[k], "removed a copy of an uninitialized buffer");
    mlirOperationDestroy(copies.v[k]);
  }
  return ST_OK;
}

const struct pass_def eliminate_uninitialized_copies = {
    .name = "eliminate-uninitialized-copies",
    .summary = "Removes copies out of buffers that were never written, above all into matmul accumulators, which start "
               "from zero.",
    .run = run_pass,
};
