/* reading_order: loads come in the order in which what they bring is read.  See coalesce_transfers.c.
 *
 *     scf.for %k = %c0 to %c8 step %c1 {                            scf.for %n = %c0 to %c2 step %c1 {
 *       scf.for %n = %c0 to %c2 step %c1 {                            scf.for %k = %c0 to %c8 step %c1 {
 *         nisa.dma_copy(dst %b[d0, %k, %n, d1], …)           ==>        nisa.dma_copy(dst %b[d0, %k, %n, d1], …)
 *       }                                                             }
 *     }                                                             }
 *     … scf.for %n … scf.for %k … nisa.matmul(… moving %b[d0, %k, %n, d1])
 *
 * The products of the first %n read every %k: with the loads in order of %k they wait for the whole operand, in order of
 * %n for its first part.  The exchange costs length of runs, because rounds of %n often lie side by side in HBM: it is
 * made if what is loaded needs several transfers anyway, and if each run alone is at least RUN_BYTES long, for which a
 * descriptor takes no longer than for its bytes.
 *
 * Safe because no two rounds of the loops write the same element: the same transfers are made in another order.  Those that
 * keep their order (nisa/nisa.h) are left alone.
 */
#include <inttypes.h>

#include "passes/coalesce_transfers/coalesce_transfers.h"
#include "passes/lib/buffers.h"
#include "passes/lib/price.h"

static const int64_t RUN_BYTES = 1024;

static bool read_index(const struct nisa_access *x, int d, struct nisa_index *index, struct linear *of) {
  *of = (struct linear){0};
  if (!nisa_access_index(x, d, index))
    return false;
  for (int k = 0; k < x->n_indices; k++)
    if (index->sym[k] && !linear_add(of, x->indices[k], index->sym[k]))
      return false;
  return true;
}

int coalesce_dimension_of(const struct repeated *loop, const struct nisa_access *x) {
  int found = -1;
  for (int d = 0; d < (int)mlirAffineMapGetNumResults(x->map); d++) {
    struct nisa_index index;
    struct linear of;
    int64_t factor = 0, width = 1;
    if (!read_index(x, d, &index, &of))
      return -1;
    for (int k = 0; k < of.n; k++)
      factor += mlirValueEqual(of.term[k].v, loop->counter) ? of.term[k].factor : 0;
    if (!factor)
      continue;
    for (int k = 0; k < x->n_dims; k++)
      width += index.dim[k] * (x->tile[k] - 1);
    if (found >= 0 || factor * loop->step < width)
      return -1;
    found = d;
  }
  return found;
}

static int depth_of(MlirOperation op) {
  int n = 0;
  for (; !mlirOperationIsNull(op); op = mlirOperationGetParentOperation(op))
    n++;
  return n;
}

int coalesce_depth_of_index(const struct nisa_access *x, int d) {
  struct nisa_index index;
  struct linear of;
  int deepest = 0;
  if (d >= (int)mlirAffineMapGetNumResults(x->map) || !read_index(x, d, &index, &of))
    return 0;
  for (int k = 0; k < of.n; k++)
    if (mlirValueIsABlockArgument(of.term[k].v)) {
      const int depth = depth_of(mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(of.term[k].v)));
      deepest = depth > deepest ? depth : deepest;
    }
  return deepest;
}

bool coalesce_is_only_read(MlirOperation load, MlirValue buffer, bool (*is)(const struct nisa_access *x, void *user),
                           void *user) {
  for (MlirOpOperand u = mlirValueGetFirstUse(buffer); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation op = mlirOpOperandGetOwner(u);
    struct nisa_instr in;
    if (mlirOperationEqual(op, load) || ir_is(op, "nisa.release"))
      continue;
    if (!nisa_read(op, &in, NULL))
      return false;
    for (int k = 0; k < in.def->n_operands; k++) {
      const struct nisa_access *x = &in.operand[k];
      if (nisa_is_data(x) && mlirValueEqual(x->base, buffer) && (!k || !is(x, user)))
        return false;
    }
  }
  return true;
}

struct order {
  int outer, inner; /* dimensions of the buffer */
  int n;            /* reads */
};

/* True if x takes one place of the dimension `inner` after another, with all places of `outer` at each. */
static bool is_inner_first(const struct nisa_access *x, void *user) {
  struct order *o = user;
  const int of_inner = coalesce_depth_of_index(x, o->inner);
  o->n++;
  return of_inner && coalesce_depth_of_index(x, o->outer) > of_inner;
}

/* True if there are reads of the buffer, and all take it in that order. */
static bool is_read_by(MlirOperation load, MlirValue buffer, int outer, int inner) {
  struct order o = {outer, inner, 0};
  return coalesce_is_only_read(load, buffer, is_inner_first, &o) && o.n > 0;
}

/* The loop that is all of the other one's body; null if there is more. */
static MlirOperation only_loop_in(MlirOperation loop) {
  MlirOperation op = mlirBlockGetFirstOperation(ir_body(loop));
  return ir_is(op, "scf.for") && ir_is(mlirOperationGetNextInBlock(op), "scf.yield") ? op : (MlirOperation){NULL};
}

static void exchange(struct pass_run *run, const struct repeated *outer, const struct repeated *inner) {
  struct ir_ops ops = ir_collect(run->arena, inner->loop, NULL, NULL);
  for (intptr_t k = 0; k < 3; k++) { /* the bounds and the step */
    MlirValue x = mlirOperationGetOperand(outer->loop, k);
    mlirOperationSetOperand(outer->loop, k, mlirOperationGetOperand(inner->loop, k));
    mlirOperationSetOperand(inner->loop, k, x);
  }
  for (int k = 0; k < ops.n; k++)
    for (intptr_t i = 0; i < mlirOperationGetNumOperands(ops.v[k]); i++) {
      MlirValue x = mlirOperationGetOperand(ops.v[k], i);
      if (mlirValueEqual(x, outer->counter))
        mlirOperationSetOperand(ops.v[k], i, inner->counter);
      else if (mlirValueEqual(x, inner->counter))
        mlirOperationSetOperand(ops.v[k], i, outer->counter);
    }
}

void coalesce_take_reading_order(struct pass_run *run, MlirOperation loop, int64_t transfer_bytes) {
  struct repeated outer, inner;
  MlirOperation nested = only_loop_in(loop);
  if (mlirOperationIsNull(nested) || !coalesce_read_bounds(loop, &outer) || !coalesce_read_bounds(nested, &inner) ||
      !coalesce_read_body(&inner) || inner.in.def->kind != NISA_DMA_COPY || nisa_keeps_order(inner.in.op))
    return;
  const struct nisa_access *dst = &inner.in.operand[0], *src = nisa_operand(&inner.in, "src");
  const int64_t element = nisa_element_bytes(nisa_access_element(dst)),
                run_bytes = dst->tile[dst->n_dims - 1] * element,
                part = inner.trips * nisa_partitions(dst) * nisa_free_elements(dst) * element;
  if (!mem_is_on_chip(nisa_access_space(dst)) || mem_is_on_chip(nisa_access_space(src)) || run_bytes < RUN_BYTES ||
      outer.trips * part <= transfer_bytes)
    return;
  const int of_inner = coalesce_dimension_of(&inner, dst), of_outer = coalesce_dimension_of(&outer, dst);
  if (of_inner < 0 || of_outer < 0 || of_inner == of_outer || !is_read_by(inner.in.op, dst->base, of_outer, of_inner))
    return;
  struct remark *m =
      pass_remark(run, inner.in.op, RULE_READING_ORDER,
                  "loaded in the order of reading: %" PRId64 " bytes are what the first reader needs, of %" PRId64,
                  outer.trips * part / inner.trips, outer.trips * part);
  remark_limit(m, "run", "bytes", run_bytes, RUN_BYTES);
  price_chosen(m, price_transfers_ns(run->target, outer.trips, part / inner.trips, run_bytes));
  price_instead(m, "the order of the loops",
                price_transfers_ns(run->target, outer.trips * inner.trips, part / inner.trips, run_bytes),
                "the first reader would wait for all of it");
  exchange(run, &outer, &inner);
}
