/* insert_spill_reload_large: loops over buffers that do not fit into SBUF together.
 *
 *     %x = memref.alloc() : …<128x64x1x512xf32, 3 : i32>        %x = memref.alloc() : …, 1 : i32
 *     scf.for %i {                                        ==>   scf.for %i {
 *       linalg.exp ins(%x[0, %i, 0, 0]) outs(%y[…]) }             %t = memref.alloc() : …<128x512xf32, 3 : i32>
 *                                                                 memref.copy %x[0, %i, 0, 0], %t
 *                                                                 linalg.exp ins(%t) outs(%y[…]) }
 *
 * Spilling helps between operations, not within one: a loop needs all that it touches.  As long as one needs more than
 * the capacity, that buffer of those it touches moves to HBM for good which saves most, its size less the largest tile
 * that a computation takes.  See insert_spill_reload.c.
 */
#include <inttypes.h>

#include "mlir-c/BuiltinTypes.h"

#include "hlo/hlo.h"
#include "passes/buffers.h"
#include "passes/insert_spill_reload.h"
#include "passes/legalize_layout.h"
#include "passes/memrefs.h"

struct search {
  struct pass_run *run;
  MlirOperation best; /* the allocation that saves most, or null */
  int64_t saving;
};

static bool uses(struct pass_run *run, MlirOperation alloc, MlirOperation op) {
  MlirBlock block = mlirOperationGetBlock(alloc);
  struct buffer_uses all = buffer_find_uses(run->arena, mlirOperationGetResult(alloc, 0));

  for (int k = 0; k < all.n; k++)
    if (mlirOperationEqual(buffer_ancestor_in(all.v[k].op, block), op))
      return true;
  return mlirOperationEqual(alloc, op);
}

/* What moving the buffer to HBM saves; 0 if it cannot move. */
static int64_t saving(struct pass_run *run, MlirOperation alloc) {
  MlirValue v = mlirOperationGetResult(alloc, 0);
  int64_t dims[LEGAL_RANK_MAX], largest = 0;
  const int rank = ir_shape(v, LEGAL_RANK_MAX, dims);

  if (rank > LEGAL_RANK_MAX ||
      !memrefs_can_retype(v, memrefs_type(run->ir->ctx, memrefs_element(v), rank, dims, MEM_HBM)))
    return 0;
  struct buffer_uses all = buffer_find_uses(run->arena, v);
  for (int k = 0; k < all.n; k++) {
    struct tiled_op t;
    MlirValue part = mlirOperationGetOperand(all.v[k].op, all.v[k].operand);
    if (!tiled_read(all.v[k].op, &t))
      return 0;
    const int64_t bytes = spill_bytes(part);
    if (!t.is_copy && bytes > largest)
      largest = bytes;
  }
  return spill_bytes(v) - largest;
}

static void consider(struct search *s, MlirOperation alloc) {
  const int64_t n = saving(s->run, alloc);
  if (n > s->saving) {
    s->saving = n;
    s->best = alloc;
  }
}

/* The least that an operation of the block needs for the worst of its operations; with `s`, looks for what to move in
 * the first one that needs more than the capacity. */
static int64_t block_need(struct search *s, MlirBlock block, int64_t capacity, bool collect) {
  int64_t worst = 0;

  for (MlirOperation op = mlirBlockGetFirstOperation(block); !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op)) {
    int64_t used = 0, inside = 0;
    for (MlirOperation a = mlirBlockGetFirstOperation(block); !mlirOperationIsNull(a);
         a = mlirOperationGetNextInBlock(a))
      if (spill_is_sbuf_alloc(a) && uses(s->run, a, op))
        used += spill_bytes(mlirOperationGetResult(a, 0));
    for (intptr_t r = 0; r < mlirOperationGetNumRegions(op); r++)
      for (MlirBlock b = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, r)); !mlirBlockIsNull(b);
           b = mlirBlockGetNextInRegion(b)) {
        const int64_t n = block_need(s, b, capacity - used, collect);
        inside = n > inside ? n : inside;
      }
    worst = used + inside > worst ? used + inside : worst;
    if (!collect || used + inside <= capacity)
      continue;
    for (MlirOperation a = mlirBlockGetFirstOperation(block); !mlirOperationIsNull(a);
         a = mlirOperationGetNextInBlock(a))
      if (spill_is_sbuf_alloc(a) && uses(s->run, a, op))
        consider(s, a);
  }
  return worst;
}

static void move(struct pass_run *run, MlirOperation alloc) {
  MlirValue v = mlirOperationGetResult(alloc, 0);
  int64_t dims[LEGAL_RANK_MAX];
  const int rank = ir_shape(v, LEGAL_RANK_MAX, dims);
  struct buffer_uses all = buffer_find_uses(run->arena, v);

  pass_remark(run, alloc, "moved to HBM: a loop needs more than there is, %" PRId64 " bytes per partition of it here",
              spill_bytes(v));
  mlirValueSetType(v, memrefs_type(run->ir->ctx, memrefs_element(v), rank, dims, MEM_HBM));
  memrefs_retype_views(v);
  for (int k = 0; k < all.n; k++) {
    bool is_first = true;
    for (int j = 0; j < k; j++)
      is_first &= !mlirOperationEqual(all.v[j].op, all.v[k].op);
    if (!is_first)
      continue;
    if (ir_is(all.v[k].op, "linalg.transpose"))
      legal_stage_transpose(run, all.v[k].op);
    else
      legal_stage(run, all.v[k].op);
  }
}

void spill_move_large(struct pass_run *run, MlirBlock body, int64_t capacity) {
  for (;;) {
    struct search s = {.run = run};
    if (block_need(&s, body, capacity, true) <= capacity || mlirOperationIsNull(s.best))
      return;
    move(run, s.best);
  }
}
