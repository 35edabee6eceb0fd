/* eliminate_uninitialized_copies: removes copies of buffers that were never written.
 *
 *     %c = memref.alloc()                                          %c = memref.alloc()
 *     scf.for … { %s = memref.subview %c[%m, %n]                   scf.for … { %s = memref.subview %c[%m, %n]
 *       %acc = memref.alloc() : memref<…, 2 : i32>          ==>      %acc = memref.alloc() : memref<…, 2 : i32>
 *       memref.copy %s, %acc                                         … matmul into %acc …
 *       … matmul into %acc …                                         memref.copy %acc, %s }
 *       memref.copy %acc, %s }
 *
 * The most common case is the copy of a result's slice into the PSUM accumulator, which then starts from zero.
 *
 * A copy is removed if its source is (a view of) an allocation to which no write can come before the copy, and the same
 * holds for its target: undefined contents count as zero, so an older value must not become visible.  A later write in
 * a loop around both comes before the next iteration's copy, so it counts (comparing positions alone would remove
 * copies of loop-carried values), unless the loop's counter makes both slices different in each iteration.  A write to
 * another part of the allocation does not count; the tails of a tiled matmul are such writes.  Linear in the uses of
 * the copied allocations.
 */
#include "passes/lib/buffers.h"
#include "passes/lib/price.h"

static enum status run_pass(struct pass_run *run) {
  struct ir_ops copies = ir_collect_named(run->arena, run->module, "memref.copy");

  for (int k = 0; k < copies.n; k++) {
    MlirValue from = mlirOperationGetOperand(copies.v[k], 0), to = mlirOperationGetOperand(copies.v[k], 1);
    if (!buffer_is_undefined(run->arena, copies.v[k], from) || !buffer_is_undefined(run->arena, copies.v[k], to))
      continue;
    pass_step(run, copies.v[k], "drop-undefined-copy");
    struct remark *r =
        pass_remark(run, copies.v[k], RULE_DROP_UNDEFINED_COPY, "removed a copy of an uninitialized buffer");
    price_chosen(r, 0);
    price_instead(r, "the copy", price_copy_ns(run->target, to), "nothing was written to what it reads");
    mlirOperationDestroy(copies.v[k]);
  }
  return ST_OK;
}

const struct pass_def eliminate_uninitialized_copies = {
    .name = "eliminate-uninitialized-copies",
    .run = run_pass,
};
