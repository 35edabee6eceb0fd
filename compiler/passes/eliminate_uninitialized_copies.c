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
 * A copy goes if what it reads is (a view of) an allocation and no write to that allocation can come before it, and
 * the same holds for what it writes: undefined counts as zero, so it must not bring back an older value.  A write
 * further down in a loop around both comes before the next iteration's copy, so it counts (positions alone would
 * drop copies of loop-carried values), unless both are slices that move apart with
 * that loop's counter.  A write to another part of the allocation does not count, as with the tails of a tiled matmul.
 * Linear in the uses of the copied allocations.
 */
#include "passes/lib/buffers.h"

static enum status run_pass(struct pass_run *run) {
  struct ir_ops copies = ir_collect_named(run->arena, run->module, "memref.copy");

  for (int k = 0; k < copies.n; k++) {
    MlirValue from = mlirOperationGetOperand(copies.v[k], 0), to = mlirOperationGetOperand(copies.v[k], 1);
    if (!buffer_is_undefined(run->arena, copies.v[k], from) || !buffer_is_undefined(run->arena, copies.v[k], to))
      continue;
    pass_remark(run, copies.v[k], "removed a copy of an uninitialized buffer");
    mlirOperationDestroy(copies.v[k]);
  }
  return ST_OK;
}

const struct pass_def eliminate_uninitialized_copies = {
    .name = "eliminate-uninitialized-copies",
    .run = run_pass,
};
