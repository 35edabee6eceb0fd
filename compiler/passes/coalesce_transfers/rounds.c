/* rounds: all rounds of a loop of several short transfers and instructions become one of each.  See coalesce_transfers.c.
 *
 *     scf.for %i = %c0 to %c8 step %c1 {                            %a = nisa.alloc : memref<128x8x64xf32, sbuf>
 *       %a = nisa.alloc : memref<128x64xf32, sbuf>                  nisa.dma_copy(dst<128| 8, 64> %a[d0, d1, d2],
 *       nisa.dma_copy(dst<128| 64> %a[d0, d1],                        src<128| 512> %x[d0, d1])
 *         src<128| 64> %x[d0, %i*64 + d1])                 ==>      nisa.dma_copy(dst<128| 8, 64> %y[d1, d0, d2],
 *       nisa.dma_copy(dst<128| 64> %y[%i, d0, d1],                    src<128| 8, 64> %a[d0, d1, d2])
 *         src<128| 64> %a[d0, d1])                                  nisa.release %a
 *       nisa.release %a
 *     }
 *
 * If all rounds are too much, the loop stays with fewer rounds, each of which is several.
 *
 * Each transfer takes an engine half a microsecond to start and each instruction a tenth, whatever they move and compute.
 * The memory of a round gets one more dimension, after the partitions: the round.
 *
 * Reductions and copies with a predicate may be in the loop, too.  A column that is another one in each round, such as what a row is
 * divided by, becomes an operand with an element for each of dst, if that is not slower.  What cannot be one instruction for all
 * rounds, such as an activation with a bias of its own row, gets a loop of its own in its place (rounds_make.c).
 *
 * The price is that no round overlaps with another one any more.  So it is done only if every transfer takes less time than
 * its start, every instruction is short, the united ones stay within the limits for other loops, and SBUF has room for the
 * memory of all rounds.
 *
 * Safe because the order of two instructions of different rounds does not matter: memory of the loop is that of one round, and
 * of other memory that the loop writes, each round has a part of its own, in one dimension.  Linear in the operations of
 * the loop and of the blocks around it, for the room; the pairs of accesses to what a loop writes are compared.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "mlir-c/BuiltinTypes.h"

#include "passes/coalesce_transfers/rounds.h"
#include "passes/lib/buffers.h"
#include "passes/lib/busy.h"

enum { PARTS_LEAST = 4 };
enum { TRIPS_MANY = 8 }; /* starts of so many transfers take longer than the engines that read them can do without */

/* ---- what may be taken apart ------------------------------------------------------------------------------------ */

int rounds_tile_of(const struct body *b, MlirValue v) {
  for (int k = 0; k < b->n_tiles; k++)
    if (mlirValueEqual(b->tile[k], v))
      return k;
  return -1;
}

static bool take_tile(struct body *b, MlirOperation alloc) {
  MlirValue v = mlirOperationGetResult(alloc, 0);
  MlirType type = mlirValueGetType(v);
  if (b->n_tiles == TILES_MAX || nisa_type_space(type) != MEM_SBUF || !mlirShapedTypeHasStaticShape(type) ||
      mlirShapedTypeGetRank(type) + 1 > NISA_RANK_MAX || !mlirAttributeIsNull(ir_attr(alloc, "address")))
    return false;
  b->tile[b->n_tiles++] = v;
  return true;
}

/* Reads the operations of the loop; false if there is one that is not understood. */
static bool read_body(struct body *b) {
  for (MlirOperation op = mlirBlockGetFirstOperation(ir_body(b->r.loop)); !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op)) {
    if (ir_is_of(op, "arith.") || ir_is(op, "scf.yield"))
      continue;
    if (ir_is(op, "nisa.alloc")) {
      if (!take_tile(b, op))
        return false;
    } else if (ir_is(op, "nisa.release")) {
      if (rounds_tile_of(b, mlirOperationGetOperand(op, 0)) < 0)
        return false;
    } else if (b->n == INSTRS_MAX || !nisa_op_of(op) || nisa_keeps_order(op) || mlirOperationGetNumResults(op) ||
               !nisa_read(op, &b->v[b->n++], NULL)) {
      return false;
    }
  }
  return b->n > 1;
}

/* True if the same elements are read several times, such as a row for all partitions: a dimension of the tile is in no index. */
static bool is_repeated(const struct nisa_access *x) {
  for (int k = 0; k < x->n_dims; k++) {
    struct nisa_index index;
    bool is_used = x->tile[k] == 1;
    for (int d = 0; !is_used && d < (int)mlirAffineMapGetNumResults(x->map); d++)
      is_used = !nisa_access_index(x, d, &index) || index.dim[k];
    if (!is_used)
      return true;
  }
  return false;
}

/* True if the instruction does nothing but write its dst, or add to it, from its other operands, and one may take the rounds of a
 * loop before another one. */
static bool is_pure(const struct nisa_instr *in) {
  switch (in->def->kind) {
  case NISA_TENSOR_COPY_PREDICATED:
  case NISA_TENSOR_REDUCE_ARITH:
  case NISA_TENSOR_TENSOR_SCAN:
  case NISA_TENSOR_SCALAR_CUMULATIVE:
  case NISA_ACTIVATION:
  case NISA_BN_STATS:
  case NISA_BN_AGGR:
  case NISA_MAX8:
  case NISA_FIND_INDEX8:
  case NISA_MATCH_REPLACE8:
    return true;
  default:
    return coalesce_is_elementwise(in);
  }
}

/* True if rounds of it may become one: dst has in each round what the same round of the sources gives. */
static bool is_by_round(const struct nisa_instr *in) {
  return coalesce_is_elementwise(in) || in->def->kind == NISA_TENSOR_COPY_PREDICATED ||
         in->def->kind == NISA_TENSOR_REDUCE_ARITH;
}

/* All rounds together are not longer than an instruction or a transfer should be, and each is short.  One is also short if it takes as long
 * to move as to start where it is a row for all partitions, which reads little, and in a loop of many rounds in another one, whose
 * next round is loaded meanwhile. */
static bool is_short(const struct body *b, int k) {
  const struct nisa_instr *in = &b->v[k];
  const struct nisa_access *dst = &in->operand[0];
  const int64_t most = b->is_mixed ? b->limits->mixed_elements : b->limits->instruction_elements;
  if (coalesce_is_transfer(in)) {
    const int64_t bytes = nisa_partitions(dst) * nisa_free_elements(dst) * nisa_element_bytes(nisa_access_element(dst));
    const bool may_be_as_long =
        is_repeated(nisa_operand(in, "src")) ||
        (b->r.trips >= TRIPS_MANY && !b->is_mixed && ir_is(mlirOperationGetParentOperation(b->r.loop), "scf.for"));
    const int64_t least_long = b->limits->short_bytes + may_be_as_long;
    return bytes < least_long && bytes * b->r.rounds <= b->limits->transfer_bytes;
  }
  return b->how[k] == HOW_APART ||
         (busy_elements(in) <= b->limits->short_elements && busy_elements(in) * b->r.rounds <= most);
}

/* True if operand k may become that of all rounds. */
static bool is_possible_as_one(const struct body *b, const struct nisa_instr *in, int k) {
  const struct nisa_access *x = &in->operand[k];
  if (nisa_is_absent(x) || !k)
    return true;
  if (nisa_is_scalar(x) || !coalesce_is_wide(in, k))
    return coalesce_is_the_same(&b->r, x);
  return true;
}

/* Chooses what becomes of v[k]. */
static enum how how_of(struct body *b, int k) {
  const struct nisa_instr *in = &b->v[k];
  struct nisa_instr tensors;
  bool as_one = coalesce_is_transfer(in) || is_by_round(in);

  for (int i = 0; as_one && i < in->def->n_operands; i++)
    as_one = is_possible_as_one(b, in, i);
  if (as_one)
    return HOW_ONE;
  if (!rounds_may_be_tensors(in) || !is_possible_as_one(b, in, 0) || !is_possible_as_one(b, in, 1))
    return HOW_APART;
  tensors = rounds_as_tensors(b->run->ir->ctx, in);
  const enum target t = b->run->target;
  return busy_ns(&tensors, in->engine, t) - busy_start_ns(&tensors, in->engine) <= busy_ns(in, in->engine, t)
             ? HOW_TENSORS
             : HOW_APART;
}

/* Notes operand k, if it is in memory that is older than the loop; false if it may not be taken apart. */
static bool read_operand(struct body *b, const struct nisa_instr *in, int k) {
  const struct nisa_access *x = &in->operand[k];

  if (!nisa_is_data(x))
    return true;
  if (!coalesce_is_transfer(in) && nisa_access_space(x) != MEM_SBUF)
    return false;
  if (rounds_tile_of(b, x->base) >= 0)
    return true;
  if (b->n_outer == OUTER_MAX)
    return false;
  struct outer *o = &b->outer[b->n_outer++];
  *o = (struct outer){.x = x, .writes = in->def->operand[k].writes};
  return coalesce_read_side(&b->r, x, &o->side) &&
         (!mem_is_on_chip(nisa_access_space(x)) || !o->side.at[0].per_counter);
}

static int64_t width_of(const struct outer *o, int d) {
  int64_t width = 1;
  for (int k = 0; k < o->x->n_dims; k++)
    width += o->side.index[d].dim[k] * (o->x->tile[k] - 1);
  return width;
}

static bool has_same_terms(const struct linear *x, const struct linear *y) {
  int64_t sum;
  for (int side = 0; side < 2; side++, y = x)
    for (int k = 0; k < x->n; k++) {
      sum = 0;
      for (int i = 0; i < x->n; i++)
        sum += mlirValueEqual(x->term[i].v, x->term[k].v) ? x->term[i].factor : 0;
      for (int i = 0; i < y->n; i++)
        sum -= mlirValueEqual(y->term[i].v, x->term[k].v) ? y->term[i].factor : 0;
      if (sum)
        return false;
    }
  return true;
}

/* In dimension d both stay within the same part of their own in each round. */
static bool is_apart_in(const struct body *b, const struct outer *x, const struct outer *y, int d) {
  const int64_t period = x->side.at[d].per_counter * b->r.step;
  const struct linear *of_x = &x->side.at[d].of, *of_y = &y->side.at[d].of;
  const int64_t from = of_x->constant < of_y->constant ? of_x->constant : of_y->constant,
                to_x = of_x->constant + width_of(x, d), to_y = of_y->constant + width_of(y, d);
  return period && y->side.at[d].per_counter == x->side.at[d].per_counter && has_same_terms(of_x, of_y) &&
         has_same_terms(of_y, of_x) && (to_x > to_y ? to_x : to_y) - from <= period;
}

static bool is_apart(const struct body *b, const struct outer *x, const struct outer *y) {
  if (!mlirValueEqual(x->x->base, y->x->base))
    return !mlirValueEqual(buffer_root(x->x->base), buffer_root(y->x->base));
  for (int d = 0; d < x->side.rank; d++)
    if (is_apart_in(b, x, y, d))
      return true;
  return false;
}

/* What the loop writes has a part for each round. */
static bool is_independent(const struct body *b) {
  for (int k = 0; k < b->n_outer; k++)
    for (int i = 0; b->outer[k].writes && i < b->n_outer; i++)
      if (!is_apart(b, &b->outer[k], &b->outer[i]))
        return false;
  return true;
}

/* ---- room in SBUF ----------------------------------------------------------------------------------------------- */

static int64_t bytes_in_sbuf(MlirValue v) {
  MlirType type = mlirValueGetType(v);
  int64_t bytes;
  if (nisa_type_space(type) != MEM_SBUF || !mlirShapedTypeHasStaticShape(type))
    return 0;
  bytes = nisa_element_bytes(mlirShapedTypeGetElementType(type));
  for (intptr_t k = 1; k < mlirShapedTypeGetRank(type); k++)
    bytes *= mlirShapedTypeGetDimSize(type, k);
  return bytes;
}

/* What op adds to the bytes that are alive. */
static int64_t change(MlirOperation op) {
  return ir_is(op, "nisa.alloc")     ? bytes_in_sbuf(mlirOperationGetResult(op, 0))
         : ir_is(op, "nisa.release") ? -bytes_in_sbuf(mlirOperationGetOperand(op, 0))
                                     : 0;
}

/* There is room for the memory of all rounds beside what is alive at the loop. */
static bool has_room(const struct body *b) {
  int64_t alive = 0, in_loop = 0, most = 0;
  for (MlirOperation at = b->r.loop; !mlirOperationIsNull(at) && !ir_is(at, "func.func");
       at = mlirOperationGetParentOperation(at))
    for (MlirOperation op = mlirBlockGetFirstOperation(mlirOperationGetBlock(at)); !mlirOperationEqual(op, at);
         op = mlirOperationGetNextInBlock(op))
      alive += change(op);
  for (MlirOperation op = mlirBlockGetFirstOperation(ir_body(b->r.loop)); !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op)) {
    in_loop += change(op);
    most = in_loop > most ? in_loop : most;
  }
  return alive + most * b->r.rounds <= nisa_machine(b->run->target)->sbuf_bytes;
}

/* True if the rounds of each instruction can come before those of the next one. */
static bool is_possible(struct body *b) {
  for (int k = 0; k < b->n; k++) {
    b->r.in = b->v[k];
    if (!coalesce_is_transfer(&b->v[k]) && !is_pure(&b->v[k]))
      return false;
    for (int i = 0; i < b->v[k].def->n_operands; i++)
      if (!read_operand(b, &b->v[k], i))
        return false;
    b->how[k] = how_of(b, k);
    if (b->how[k] == HOW_APART && coalesce_is_transfer(&b->v[k]))
      return false;
    b->is_mixed |= b->how[k] != HOW_ONE || (!coalesce_is_transfer(&b->v[k]) && !coalesce_is_elementwise(&b->v[k]));
  }
  return is_independent(b);
}

static bool fits(const struct body *b) {
  for (int k = 0; k < b->n; k++)
    if (!is_short(b, k))
      return false;
  return has_room(b);
}

/* Chooses the most rounds that fit, of which the number of all is a multiple; false if there are none.  A loop that also reduces, or
 * in which something is apart, keeps PARTS_LEAST rounds, in which engines work at the same time. */
static bool choose_rounds(struct body *b) {
  for (b->r.rounds = b->r.trips; b->r.rounds > 1; b->r.rounds--)
    if (b->r.trips % b->r.rounds == 0 && (!b->is_mixed || b->r.rounds * PARTS_LEAST <= b->r.trips) && fits(b))
      return true;
  return false;
}

static void remark(const struct body *b) {
  int64_t each = b->n; /* what is executed for b->r.rounds rounds */
  for (int k = 0; k < b->n; k++)
    each += b->how[k] == HOW_APART ? b->r.rounds - 1 : 0;
  struct remark *m = pass_remark(b->run, b->r.loop, RULE_ROUNDS,
                                 "%" PRId64 " rounds of %d transfers and instructions become one: %" PRId64
                                 " instead of %" PRId64 "%s",
                                 b->r.rounds, b->n, b->r.trips / b->r.rounds * each, b->r.trips * b->n,
                                 b->r.rounds < b->r.trips ? "; the loop around them stays" : "");
  remark_cost(m, "%" PRId64 " starts", b->r.trips / b->r.rounds * each);
  remark_reject_for(m, "the loop", NULL, arena_printf(b->run->arena, "%" PRId64 " starts", b->r.trips * b->n),
                    "an engine would take half a microsecond to start each transfer, a tenth for each instruction");
}

static bool make_rounds(struct body *b) {
  bool is_made = true;

  if (!read_body(b) || !is_possible(b) || !choose_rounds(b))
    return false;
  rounds_allocate(b);
  for (int k = 0; is_made && k < b->n; k++)
    is_made = rounds_widen(b, k);
  if (!is_made) {
    for (int k = 0; k < b->n_tiles; k++)
      mlirOperationDestroy(ir_defining_op(b->wide[k]));
    return false;
  }
  remark(b);
  rounds_emit(b);
  return true;
}

bool coalesce_rounds(struct pass_run *run, const struct repeated *loop, const struct coalesce_limits *limits) {
  if (loop->trips < 2 || loop->trips > ROUNDS_MAX || loop->lower || loop->step != 1)
    return false;
  struct body *b = malloc(sizeof *b); /* it has room for many instructions: one of each loop would fill the arena */
  if (!b)
    arena_oom(sizeof *b);
  b->run = run;
  b->r = *loop;
  b->limits = limits;
  b->n = b->n_tiles = b->n_outer = 0;
  b->is_mixed = false;
  const bool is_made = make_rounds(b);
  free(b);
  return is_made;
}
