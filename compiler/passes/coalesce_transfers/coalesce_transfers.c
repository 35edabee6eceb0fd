/* coalesce_transfers: a loop that only repeats a transfer, or an element-wise instruction, becomes a larger one.
 *
 *     scf.for %j = %c0 to %c8 step %c1 {
 *       scf.for %k = %c0 to %c2 step %c1 {                          scf.for %j = %c0 to %c8 step %c1 {
 *         nisa.dma_copy(dst<128| 512> %b[d0, %j, %k, d1],     ==>     nisa.dma_copy(dst<128| 2 512> %b[d0, %j, d1, d2],
 *           src<128| 512> %x[%j*128 + d0, %k*512 + d1])                 src<128| 1024> %x[%j*128 + d0, d1])
 *       }                                                           }
 *     }
 *
 * Every transfer has to be started, which takes an engine about half a microsecond whatever its size, so small transfers
 * leave the DMA engines idle.  The loop's counter becomes one more dimension of the access patterns, the outermost free
 * one; of the source of a transpose, whose rows are the free dimension of dst, the outermost row.  Dimensions that follow
 * each other without a gap become one, so that a descriptor gets a longer run.
 *
 * So do instructions that compute each element of dst from the same element of their sources: one starts in about the time that it
 * takes for a hundred elements.  What they read as a scalar or a column must be the same in all rounds, and what they read may be
 * what they overwrite.  Only short ones: with longer ones the engine that reads the result overlaps with the loop, which saves more.
 * They become no longer than INSTRUCTION_ELEMENTS for the same reason, and stay out of PSUM, whose banks they would cross.
 *
 * Before, loops of loads are exchanged if what reads them takes their parts in another order (reading_order.c).
 *
 * A loop of several short transfers and instructions becomes one of each, with the memory of all rounds (rounds.c).  At the end, a
 * loop of loads or products goes round with the one that reads what it writes (follow.c), and copies on the chip that are only read are read
 * where they come from (in_place.c).
 *
 * Transposes on the Tensor engine fill a bank of PSUM before one instruction moves them out (banks.c).
 *
 * What is loaded is used only when all of it has arrived.  So a transfer is not made larger than TRANSFER_BYTES: a loop
 * whose rounds together move more keeps the largest part of its rounds that fits.  If that is less than a quarter of it, because
 * their number has no larger divisor, all of them become one up to twice that size.  What an engine begins its work with comes
 * in smaller parts (parts.c).
 *
 * Safe because no two rounds write the same element, and no round reads what another one writes: the sides are
 * different buffers, or the same elements of one, and in one dimension of dst each round begins after the end of the one before.  Inner loops come
 * first.  Linear in the operations.
 */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "mlir-c/BuiltinTypes.h"

#include "passes/coalesce_transfers/coalesce_transfers.h"
#include "passes/lib/buffers.h"
#include "passes/lib/busy.h"
#include "passes/lib/price.h"

/* A transfer of this size takes twice as long to move as to start. */
static const int64_t TRANSFER_BYTES = 512 << 10;
/* A shorter one takes less time to move than the next one to start. */
static const int64_t SHORT_BYTES = 64 << 10;
/* For so many elements of a partition an instruction takes 1 to 4 us; for up to so many, as long as it takes to start. */
static const int64_t INSTRUCTION_ELEMENTS = 2048, SHORT_ELEMENTS = 128;
/* In a loop that does more than that, engines work on different rounds: shorter instructions leave more rounds. */
static const int64_t MIXED_ELEMENTS = 256;

/* ---- what may be merged ----------------------------------------------------------------------------------------- */

/* True if dst has at each place what the same place of the sources gives. */
bool coalesce_is_elementwise(const struct nisa_instr *in) {
  switch (in->def->kind) {
  case NISA_TENSOR_COPY:
  case NISA_TENSOR_TENSOR_ARITH:
  case NISA_TENSOR_SCALAR_ARITH:
  case NISA_SCALAR_TENSOR_TENSOR:
  case NISA_RECIPROCAL:
  case NISA_MEMSET:
    return true;
  case NISA_ACTIVATION:
    return !nisa_operand(in, "reduce_res");
  default:
    return false;
  }
}

bool coalesce_is_transfer(const struct nisa_instr *in) {
  return in->def->kind == NISA_DMA_COPY || in->def->kind == NISA_DMA_TRANSPOSE;
}

bool coalesce_read_body(struct repeated *r) {
  MlirBlock body = ir_body(r->loop);
  MlirOperation only = {NULL};
  for (MlirOperation op = mlirBlockGetFirstOperation(body); !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op)) {
    if (ir_is_of(op, "arith.") || ir_is(op, "scf.yield"))
      continue;
    if (!mlirOperationIsNull(only) || !nisa_op_of(op))
      return false;
    only = op;
  }
  return !mlirOperationIsNull(only) && nisa_read(only, &r->in, NULL) &&
         (coalesce_is_transfer(&r->in) || coalesce_is_elementwise(&r->in));
}

bool coalesce_read_bounds(MlirOperation loop, struct repeated *r) {
  int64_t upper;
  *r = (struct repeated){.loop = loop};
  if (mlirOperationGetNumResults(loop) || !ir_int_constant(mlirOperationGetOperand(loop, 0), &r->lower) ||
      !ir_int_constant(mlirOperationGetOperand(loop, 1), &upper) ||
      !ir_int_constant(mlirOperationGetOperand(loop, 2), &r->step) || r->step <= 0 || r->lower < 0 || upper <= r->lower)
    return false;
  r->counter = mlirBlockGetArgument(ir_body(loop), 0);
  r->trips = (upper - r->lower - 1) / r->step + 1;
  return true;
}

/* On chip, rounds that go on to other partitions have no one pattern for all partitions. */
static bool stays_in_partition(const struct nisa_access *x, const struct side *s) {
  return !mem_is_on_chip(nisa_access_space(x)) || !s->at[0].per_counter;
}

bool coalesce_is_beside(const struct nisa_access *dst, const struct nisa_access *src) {
  if (!mlirValueEqual(buffer_root(dst->base), buffer_root(src->base)))
    return true;
  if (!mlirValueEqual(dst->base, src->base) || !mlirAffineMapEqual(dst->map, src->map) || dst->n_dims != src->n_dims ||
      dst->par_dims != src->par_dims || memcmp(dst->tile, src->tile, (size_t)dst->n_dims * sizeof *dst->tile) != 0 ||
      dst->n_indices != src->n_indices)
    return false;
  for (int k = 0; k < dst->n_indices; k++)
    if (!mlirValueEqual(dst->indices[k], src->indices[k]))
      return false;
  return true;
}

static int64_t bytes_of(const struct nisa_access *x) {
  return nisa_partitions(x) * nisa_free_elements(x) * nisa_element_bytes(nisa_access_element(x));
}

/* The most rounds, of which `trips` is a multiple, that move no more than a transfer should, or compute no more than an
 * instruction should.  If those are few because of the number of rounds, such as 11, a transfer of all may be larger. */
static int64_t rounds_of(const struct repeated *r) {
  const struct nisa_access *dst = &r->in.operand[0];
  const bool moves = coalesce_is_transfer(&r->in);
  const int64_t most = moves ? TRANSFER_BYTES / bytes_of(dst) : INSTRUCTION_ELEMENTS / nisa_free_elements(dst);
  int64_t n = most < r->trips ? most : r->trips;
  while (n > 1 && r->trips % n)
    n--;
  if (moves && n * 4 <= most && r->trips <= 2 * most)
    n = r->trips;
  return n > 1 ? n : 1;
}

/* ---- making the transfer ---------------------------------------------------------------------------------------- */

/* What computed the indices of the transfer before; users come before what they use. */
void coalesce_sweep(struct arena *a, MlirOperation loop) {
  struct ir_ops ops = ir_collect(a, loop, NULL, NULL);
  while (ops.n--)
    if (ir_is_of(ops.v[ops.n], "arith.") && !ir_is_used(ir_result(ops.v[ops.n])))
      mlirOperationDestroy(ops.v[ops.n]);
}

static void remark(struct pass_run *run, const struct repeated *r) {
  const bool moves = coalesce_is_transfer(&r->in);
  const struct nisa_access *dst = &r->in.operand[0];
  const int64_t each = moves ? bytes_of(dst) : nisa_free_elements(dst);
  const char *what = moves ? "transfers" : "instructions", *unit = moves ? "bytes" : "elements per partition";
  struct remark *m = pass_remark(run, r->in.op, RULE_COALESCE,
                                 "%" PRId64 " %s of %" PRId64 " %s become one of %" PRId64 "%s", r->rounds, what, each,
                                 unit, r->rounds * each, r->rounds < r->trips ? "; the loop around it stays" : "");
  remark_limit(m, moves ? "transfer" : "instruction", unit, r->rounds * each,
               moves ? TRANSFER_BYTES : INSTRUCTION_ELEMENTS);
  const double start = moves ? busy_trigger_ns(NISA_ENGINE_SYNC, nisa_partitions(dst), run->target)
                             : busy_start_ns(&r->in, r->in.engine);
  remark_cost(m, "%.2f us to start", start / 1000);
  remark_reject_for(m, arena_printf(run->arena, "%" PRId64 " %s", r->rounds, what), NULL,
                    arena_printf(run->arena, "%.2f us to start", (double)r->rounds * start / 1000),
                    moves ? "an engine starts each by a trigger" : "each takes its start besides its elements");
  if (r->rounds < r->trips)
    remark_reject(m, arena_printf(run->arena, "one of %" PRId64 " %s", r->trips * each, unit),
                  moves ? "what reads it would wait until all of it has arrived"
                        : "what reads it would wait until all of it is computed");
}

void coalesce_set_parts(struct pass_run *run, const struct repeated *r) {
  struct ir_builder b = {.ctx = run->ir->ctx,
                         .block = mlirOperationGetBlock(r->loop),
                         .loc = mlirOperationGetLocation(r->loop),
                         .arena = run->arena,
                         .before = r->loop};
  mlirOperationSetOperand(r->loop, 0, ir_index(&b, 0));
  mlirOperationSetOperand(r->loop, 1, ir_index(&b, r->trips / r->rounds));
  mlirOperationSetOperand(r->loop, 2, ir_index(&b, 1));
}

/* Puts `made` in the place of the loop, or of the instruction in it. */
static void put(struct pass_run *run, const struct repeated *r, MlirOperation made) {
  if (r->rounds == r->trips) {
    mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(r->loop), r->loop, made);
    mlirOperationDestroy(r->loop);
    return;
  }
  mlirBlockInsertOwnedOperationBefore(ir_body(r->loop), r->in.op, made);
  mlirOperationDestroy(r->in.op);
  coalesce_sweep(run->arena, r->loop);
  coalesce_set_parts(run, r);
}

/* Reads the operands, and chooses how many rounds become one. */
static bool read_operands(struct repeated *r, struct side *sides) {
  const struct nisa_access *dst = &r->in.operand[0];
  const bool moves = coalesce_is_transfer(&r->in);

  for (int k = 0; k < r->in.def->n_operands; k++) {
    const struct nisa_access *x = &r->in.operand[k];
    if (nisa_is_absent(x))
      continue;
    if (k && (nisa_is_scalar(x) || !coalesce_is_wide(&r->in, k))) {
      if (!coalesce_is_the_same(r, x) ||
          (nisa_is_data(x) && mlirValueEqual(buffer_root(x->base), buffer_root(dst->base))))
        return false;
      continue;
    }
    if (!coalesce_read_side(r, x, &sides[k]) || !stays_in_partition(x, &sides[k]) ||
        (!moves && nisa_access_space(x) != MEM_SBUF))
      return false;
    if (k && (moves ? mlirValueEqual(buffer_root(dst->base), buffer_root(x->base)) : !coalesce_is_beside(dst, x)))
      return false;
  }
  if (!coalesce_is_apart(r, &sides[0]) || (!moves && nisa_free_elements(dst) > SHORT_ELEMENTS))
    return false;
  r->rounds = rounds_of(r);
  return r->rounds > 1 || r->trips == 1;
}

static void remark_apart(struct pass_run *run, const struct repeated *r) {
  const int64_t each = bytes_of(&r->in.operand[0]);
  struct remark *m = pass_remark(
      run, r->in.op, RULE_PARTS,
      "%" PRId64 " transfers of %" PRId64 " bytes stay apart: the first reader needs one of them", r->trips, each);
  remark_limit(m, "transfer", "bytes", each, TRANSFER_BYTES);
  const int64_t descriptor = each / nisa_partitions(&r->in.operand[0]);
  price_chosen(m, price_transfer_ns(run->target, each, descriptor));
  price_instead(m, arena_printf(run->arena, "transfers of %" PRId64 " bytes", r->rounds * each),
                price_transfer_ns(run->target, r->rounds * each, r->rounds * descriptor),
                "the first reader would wait until all of one has arrived");
}

/* Makes one instruction of several rounds. */
static void merge(struct pass_run *run, const struct coalesce_parts *parts, struct repeated *r) {
  const bool is_turn = r->in.def->kind == NISA_DMA_TRANSPOSE, moves = coalesce_is_transfer(&r->in);
  struct nisa_instr out = r->in;
  struct side sides[NISA_OPERANDS_MAX];

  if (!read_operands(r, sides))
    return;
  if (r->rounds > 1 && coalesce_stays_apart(parts, r, bytes_of(&r->in.operand[0]))) {
    remark_apart(run, r);
    return;
  }
  for (int k = 0; k < out.def->n_operands; k++) {
    struct nisa_access *x = &out.operand[k];
    if (nisa_is_absent(x) || (k && (nisa_is_scalar(x) || !coalesce_is_wide(&r->in, k))))
      continue;
    if (!coalesce_make_side(r, x, &sides[k], is_turn && k ? 0 : x->par_dims) ||
        (!moves && x->n_dims - x->par_dims > nisa_machine(run->target)->free_dims))
      return;
  }
  remark(run, r);
  put(run, r, nisa_create_like(run->arena, &out, r->in.op));
}

/* ---- the pass --------------------------------------------------------------------------------------------------- */

/* The loops are in pre-order: from the end on, inner ones come first. */
static enum status run_pass(struct pass_run *run) {
  struct ir_ops loops = ir_collect_named(run->arena, run->module, "scf.for");
  enum status st = pass_nisa_target(run, &run->target);
  const struct coalesce_limits limits = {SHORT_BYTES, TRANSFER_BYTES, SHORT_ELEMENTS, INSTRUCTION_ELEMENTS,
                                         MIXED_ELEMENTS};
  struct coalesce_parts parts;

  if (st)
    return st;
  for (int k = 0; k < loops.n; k++) {
    pass_step(run, loops.v[k], "reading-order");
    coalesce_take_reading_order(run, loops.v[k], TRANSFER_BYTES);
  }
  coalesce_find_parts(run->arena, run->module, &parts);
  for (int k = loops.n - 1; k >= 0; k--) {
    struct repeated r;
    pass_step(run, loops.v[k], "unite-transfers");
    if (coalesce_read_bounds(loops.v[k], &r) && !coalesce_banks(run, &r) && !coalesce_rounds(run, &r, &limits) &&
        coalesce_read_body(&r))
      merge(run, &parts, &r);
  }
  loops = ir_collect_named(run->arena, run->module, "scf.for");
  for (int k = 0; k < loops.n; k++) {
    pass_step(run, loops.v[k], "follow");
    coalesce_follow(run, loops.v[k]);
  }
  coalesce_read_in_place(run);
  const struct ir_ops copies = ir_collect_named(run->arena, run->module, "nisa.dma_copy");
  for (int k = 0; k < copies.n; k++) {
    pass_step(run, copies.v[k], "load-by-rows");
    coalesce_turn(run, copies.v[k]);
  }
  return ST_OK;
}

const struct pass_def coalesce_transfers = {
    .name = "coalesce-transfers",
    .run = run_pass,
};
