/* insert_memref_dealloc: on-chip buffers are freed after their last use.
 *
 *     %a = memref.alloc() : memref<128x512xf32, 3 : i32>        %a = memref.alloc() : memref<128x512xf32, 3 : i32>
 *     … last operation that uses %a, or a view of it …    ==>   … last operation that uses %a, or a view of it …
 *                                                               memref.dealloc %a
 *
 * The dealloc is put into the block of the allocation: a use inside a loop counts as a use by that loop.  Uses of views
 * and of loop-carried values count as uses of the buffer.  A buffer without uses is freed after its allocation.
 *
 * HBM is not freed: results and scratch buffers live as long as the kernel.  Every allocation must have a memory space.
 * A buffer that leaves the block of its allocation (a loop yields it) is an error, unless the function returns it.
 * Buffers that are already freed are not changed.  Linear in uses.
 */
#include "passes/lib/buffers.h"
#include "passes/lib/edit.h"
#include "passes/lib/memrefs.h"

struct extent {
  MlirBlock block;
  MlirOperation last;              /* null: no use yet */
  bool is_freed, leaves, returned; /* leaves: the block itself yields it */
};

static void visit(struct extent *x, MlirValue v) {
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation op = mlirOpOperandGetOwner(u), here = ir_ancestor_in(op, x->block);

    x->returned |= ir_is(op, "func.return");
    x->is_freed |= ir_is(op, "memref.dealloc");
    if (mlirOperationIsNull(here))
      x->leaves = true;
    else if (mlirOperationIsNull(x->last) || buffer_is_before(x->last, here))
      x->last = here;
    MlirValue next = buffer_passed_on(op, mlirOpOperandGetOperandNumber(u));
    if ((ir_is(op, "scf.yield") || ir_is(op, "scf.condition")) && mlirBlockEqual(mlirOperationGetBlock(op), x->block))
      x->leaves = true;
    else if (!mlirValueIsNull(next))
      visit(x, next);
  }
}

static enum status free_alloc(struct pass_run *run, MlirOperation alloc) {
  MlirValue v = mlirOperationGetResult(alloc, 0);
  struct extent x = {.block = mlirOperationGetBlock(alloc)};

  if (memrefs_space(v) == MEM_NONE)
    return pass_fail(run, alloc, "memref.alloc must have a memory space annotation: it is not known where it lies");
  if (!memrefs_is_on_chip(v))
    return ST_OK;
  visit(&x, v);
  if (x.is_freed || x.returned)
    return ST_OK;
  if (x.leaves)
    return pass_fail(run, alloc, "an on-chip buffer is handed out of the loop that allocates it, so it never ends");
  MlirOperation after = mlirOperationIsNull(x.last) ? alloc : x.last;
  struct ir_builder b = edit_before(run, after);
  b.before = mlirOperationGetNextInBlock(after);
  b.loc = mlirOperationGetLocation(alloc);
  memrefs_dealloc(&b, v);
  return ST_OK;
}

static enum status run_pass(struct pass_run *run) {
  struct ir_ops allocs = ir_collect_named(run->arena, run->module, "memref.alloc");
  enum status st = ST_OK;

  for (int k = 0; !st && k < allocs.n; k++) {
    pass_step(run, allocs.v[k], "free-buffer");
    st = free_alloc(run, allocs.v[k]);
  }
  struct ir_ops functions = ir_collect_named(run->arena, run->module, "func.func");
  for (int k = 0; !st && k < functions.n; k++)
    pass_remark(run, functions.v[k], RULE_FREE_BUFFERS, "buffers freed: %d",
                ir_collect_named(run->arena, functions.v[k], "memref.dealloc").n);
  return st;
}

const struct pass_def insert_memref_dealloc = {
    .name = "insert-memref-dealloc",
    .run = run_pass,
};
