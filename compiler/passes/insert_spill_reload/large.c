/* large: handles loops over buffers that do not fit into SBUF together.
 *
 *     %x = memref.alloc() : …<128x64x1x512xf32, 3 : i32>        %x = memref.alloc() : …, 1 : i32
 *     scf.for %i {                                        ==>   scf.for %i {
 *       linalg.exp ins(%x[0, %i, 0, 0]) outs(%y[…]) }             %t = memref.alloc() : …<128x512xf32, 3 : i32>
 *                                                                 memref.copy %x[0, %i, 0, 0], %t
 *                                                                 linalg.exp ins(%t) outs(%y[…]) }
 *
 * Spilling helps between operations, but not within one: a loop needs all buffers that it uses.  While an operation
 * needs more than the capacity, one buffer moves permanently to HBM: each of its tiles is stored when it is computed
 * and loaded when it is used.  The pass chooses the buffer that removes the most excess, summed over all operations
 * that use it, per byte of HBM traffic.  So in a chain of steps it is enough to move every other value, and a buffer
 * that a loop reads many times stays.  Moving a buffer saves its size minus the largest tile that a computation uses.
 * Each round moves one buffer, so the rounds end.  See insert_spill_reload.c.
 */
#include <inttypes.h>
#include <string.h>

#include "mlir-c/BuiltinTypes.h"

#include "passes/lib/buffers.h"
#include "passes/lib/edit.h"
#include "base/array.h"
#include "passes/insert_spill_reload/insert_spill_reload.h"
#include "passes/legalize_layout/legalize_layout.h"
#include "passes/lib/memrefs.h"
#include "passes/lib/price.h"

struct excess {
  MlirBlock block;
  MlirOperation op; /* operation of the block that needs too much */
  int64_t bytes;    /* bytes above the capacity */
};
struct search {
  struct pass_run *run;
  struct {
    struct excess *v;
    int n, cap;
  } excess;
};

/* Returns the bytes per partition that moving the buffer to HBM saves, or 0 if it cannot move. */
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

/* ---- what is too much ------------------------------------------------------------------------------------------ */

static bool is_pinned(const struct buffer_uses *uses) {
  for (int k = 0; k < uses->n; k++)
    if (spill_is_handed_on(uses->v[k].op) || !mlirValueIsNull(buffer_passed_on(uses->v[k].op, uses->v[k].operand)))
      return true;
  return false;
}

/* Adds the buffer to the need of the operations of the block that use it.  If the buffer cannot be spilled, adds it
 * to the need of all operations in its lifetime. */
static void add_buffer(struct search *s, int n, MlirOperation const *ops, int alloc, int64_t *need, int *last_seen) {
  MlirValue v = mlirOperationGetResult(ops[alloc], 0);
  struct buffer_uses uses = buffer_find_uses(s->run->arena, v);
  int last = alloc;

  last_seen[alloc] = alloc;
  need[alloc] += spill_bytes(v);
  for (int k = 0; k < uses.n; k++) {
    MlirOperation here = ir_ancestor_in(uses.v[k].op, mlirOperationGetBlock(ops[alloc]));
    if (mlirOperationIsNull(here))
      continue;
    const int at = spill_position(n, ops, here);
    last = at > last ? at : last;
    if (last_seen[at] != alloc)
      need[at] += spill_bytes(v);
    last_seen[at] = alloc;
  }
  for (int at = alloc; is_pinned(&uses) && at <= last; at++)
    need[at] += last_seen[at] != alloc ? spill_bytes(v) : 0;
}

static int64_t block_need(struct search *s, MlirBlock block, int64_t capacity);

static int64_t inner_need(struct search *s, MlirOperation op, int64_t capacity) {
  int64_t most = 0;
  for (intptr_t r = 0; r < mlirOperationGetNumRegions(op); r++)
    for (MlirBlock b = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, r)); !mlirBlockIsNull(b);
         b = mlirBlockGetNextInRegion(b)) {
      const int64_t n = block_need(s, b, capacity);
      most = n > most ? n : most;
    }
  return most;
}

/* Returns the least capacity that the block needs for its most demanding operation.  Records all operations that need
 * more than the capacity. */
static int64_t block_need(struct search *s, MlirBlock block, int64_t capacity) {
  int64_t worst = 0;
  int n;
  MlirOperation *ops = spill_operations(s->run->arena, block, &n);
  int64_t *need = arena_new_array(s->run->arena, int64_t, (size_t)n + 1);
  int *last_seen = arena_new_array(s->run->arena, int, (size_t)n + 1);

  for (int k = 0; k < n; k++) {
    need[k] = 0;
    last_seen[k] = -1;
  }
  for (int k = 0; k < n; k++)
    if (spill_is_sbuf_alloc(ops[k]))
      add_buffer(s, n, ops, k, need, last_seen);
  for (int k = 0; k < n; k++) {
    need[k] += inner_need(s, ops[k], capacity - need[k]);
    worst = need[k] > worst ? need[k] : worst;
    if (need[k] > capacity)
      array_push(s->run->arena, &s->excess, (struct excess){block, ops[k], need[k] - capacity});
  }
  return worst;
}

/* ---- what to move ---------------------------------------------------------------------------------------------- */

enum { TRIPS_GUESS = 8 }; /* assumed iterations of a loop with an unknown number of iterations */

/* Returns how often op runs in one run of its function. */
static double runs(MlirOperation op) {
  double n = 1;
  for (op = mlirOperationGetParentOperation(op); !mlirOperationIsNull(op); op = mlirOperationGetParentOperation(op)) {
    int64_t low, high, step;
    n *= ir_is(op, "scf.while") ? TRIPS_GUESS : 1;
    if (!ir_is(op, "scf.for"))
      continue;
    const bool known = ir_int_constant(mlirOperationGetOperand(op, 0), &low) &&
                       ir_int_constant(mlirOperationGetOperand(op, 1), &high) &&
                       ir_int_constant(mlirOperationGetOperand(op, 2), &step) && step > 0;
    n *= !known ? TRIPS_GUESS : high > low ? (double)((high - low + step - 1) / step) : 0;
  }
  return n;
}

/* Returns the bytes per partition that are copied from and to HBM if the buffer is there. */
static double traffic(struct search *s, MlirOperation alloc) {
  struct buffer_uses uses = buffer_find_uses(s->run->arena, mlirOperationGetResult(alloc, 0));
  double sum = 1;

  for (int k = 0; k < uses.n; k++) {
    MlirOperation op = uses.v[k].op;
    sum += runs(op) * (double)spill_bytes(mlirOperationGetOperand(op, uses.v[k].operand));
  }
  return sum;
}

/* Returns the total excess that is removed if the buffer moves. */
static int64_t gain(struct search *s, MlirOperation alloc) {
  struct buffer_uses uses = buffer_find_uses(s->run->arena, mlirOperationGetResult(alloc, 0));
  MlirBlock home = mlirOperationGetBlock(alloc);
  const int64_t most = saving(s->run, alloc);
  int64_t sum = 0;

  for (int k = 0; most > 0 && k < s->excess.n; k++) {
    bool touches = mlirOperationEqual(s->excess.v[k].op, alloc);
    for (int j = 0; !touches && mlirBlockEqual(s->excess.v[k].block, home) && j < uses.n; j++)
      touches = mlirOperationEqual(ir_ancestor_in(uses.v[j].op, home), s->excess.v[k].op);
    if (touches)
      sum += most < s->excess.v[k].bytes ? most : s->excess.v[k].bytes;
  }
  return sum;
}

/* Returns the allocation to move, or null.  *second: the best of those that were looked at before it, or null. */
static MlirOperation choose(struct search *s, MlirOperation *second) {
  MlirOperation best = {NULL};
  double most = 0;

  *second = best;

  for (int k = 0; k < s->excess.n; k++) {
    bool is_new = true;
    for (int j = 0; j < k; j++)
      is_new &= !mlirBlockEqual(s->excess.v[j].block, s->excess.v[k].block);
    if (!is_new)
      continue;
    for (MlirOperation op = mlirBlockGetFirstOperation(s->excess.v[k].block); !mlirOperationIsNull(op);
         op = mlirOperationGetNextInBlock(op)) {
      const int64_t g = spill_is_sbuf_alloc(op) ? gain(s, op) : 0;
      if (g > 0 && (double)g / traffic(s, op) > most) {
        *second = best;
        most = (double)g / traffic(s, op);
        best = op;
      }
    }
  }
  return best;
}

/* What the traffic takes if the buffer is in HBM. */
static double moved_ns(struct search *s, MlirOperation alloc) {
  return price_transfer_ns(s->run->target, (int64_t)traffic(s, alloc) * NISA_PARTITIONS,
                           spill_bytes(mlirOperationGetResult(alloc, 0)));
}

/* second: what could move instead, or null.  capacity: of SBUF, in bytes per partition. */
static void move(struct search *s, MlirOperation alloc, MlirOperation second, int64_t capacity) {
  struct pass_run *run = s->run;
  MlirValue v = mlirOperationGetResult(alloc, 0);
  int64_t dims[LEGAL_RANK_MAX];
  const int rank = ir_shape(v, LEGAL_RANK_MAX, dims);
  struct buffer_uses all = buffer_find_uses(run->arena, v);

  struct remark *r = pass_remark(
      run, alloc, RULE_MOVE_TO_HBM,
      "moved to HBM: a loop needs more than there is, %" PRId64 " bytes per partition of it here", spill_bytes(v));
  remark_limit(r, "SBUF", "bytes per partition", spill_bytes(v), capacity);
  price_chosen(r, moved_ns(s, alloc));
  price_instead(r, "SBUF", 0, "the buffers of the loop do not fit together");
  if (!mlirOperationIsNull(second))
    price_instead(r, "another buffer of the loop", moved_ns(s, second),
                  "moving it would save less for each byte of traffic");
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
    block_need(&s, body, capacity);
    MlirOperation second, alloc = choose(&s, &second);
    if (mlirOperationIsNull(alloc))
      return;
    pass_step(run, alloc, "move-to-hbm");
    move(&s, alloc, second, capacity);
  }
}
