/* banks: transposes fill a bank of PSUM before an instruction reads it.  See coalesce_transfers.c.
 *
 *     scf.for %k = %c0 to %c4 step %c1 {                      %t = alloc [128, 4, 128]
 *       %t = alloc [128, 128] in PSUM                         scf.for %k = %c0 to %c4 step %c1 {
 *       nisa.matmul(%t[d0, d1], …, is_transpose=true)           nisa.matmul(%t[d0, %k, d1], …, is_transpose=true)
 *       nisa.tensor_copy(%b[d0, %k, d1], %t[d0, d1])    ==>   }
 *       release %t                                            nisa.tensor_copy(%b[d0, d1, d2], %t[d0, d1, d2])
 *     }                                                       release %t
 *
 * The Tensor engine transposes at most 128 by 128 elements at a time, for which the engine that moves them out of PSUM takes
 * about as long to start as to move them.  A bank holds four such results in f32, eight in bf16.  A loop with more rounds stays
 * around the part that fills a bank.
 *
 * What reads a bank waits until it is full, while two engines could move single results out.  That costs more than it saves unless
 * the next bank is filled in the meantime, so a bank that is one of few stays as it is.  So does a result whose place the kernel
 * has chosen (address): all rounds have that one place.
 *
 * Only transposes: the products of an accumulation group share the state of their bank.  Safe because what moves the elements out
 * writes another place in each round and another buffer than the transposes read.  Linear in the operations of the loop.
 */
#include <inttypes.h>

#include "mlir-c/BuiltinTypes.h"

#include "passes/coalesce_transfers/coalesce_transfers.h"
#include "passes/lib/buffers.h"
#include "passes/lib/busy.h"

/* With fewer banks in the function's loops, the wait for a full one is not hidden. */
enum { BANKS_LEAST = 4 };

/* What the loop does in each round. */
struct turns {
  MlirOperation alloc, release;
  MlirValue psum;
  struct nisa_instr turn;
  int source; /* the operand of repeated.in, which moves the result out, that reads psum */
};

/* True if the operand is all of the buffer, in its order. */
static bool is_whole(const struct nisa_access *x) {
  MlirType t = mlirValueGetType(x->base);
  if (x->n_indices || x->par_dims != 1 || mlirShapedTypeGetRank(t) != x->n_dims || !mlirAffineMapIsIdentity(x->map) ||
      !mlirTypeIsNull(x->type))
    return false;
  for (int d = 0; d < x->n_dims; d++)
    if (mlirShapedTypeGetDimSize(t, d) != x->tile[d])
      return false;
  return true;
}

static bool is_turn(const struct nisa_instr *in) {
  MlirAttribute passes = ir_attr(in->op, "is_transpose");
  return in->def->kind == NISA_MATMUL && !mlirAttributeIsNull(passes) && mlirBoolAttrGetValue(passes);
}

/* The loop's body is arithmetic and, in this order, an allocation in PSUM, a transpose that writes it, an instruction that reads it,
 * and its release. */
static bool read_turns(struct repeated *r, struct turns *t) {
  MlirBlock body = ir_body(r->loop);
  MlirOperation v[4];
  int n = 0;

  for (MlirOperation op = mlirBlockGetFirstOperation(body); !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op)) {
    if (ir_is_of(op, "arith.") || ir_is(op, "scf.yield"))
      continue;
    if (n == 4)
      return false;
    v[n++] = op;
  }
  const bool is_placed = n && !mlirAttributeIsNull(ir_attr(v[0], "address"));
  if (n != 4 || !ir_is(v[0], "nisa.alloc") || is_placed || !ir_is(v[1], "nisa.matmul") ||
      !ir_is(v[3], "nisa.release") || !nisa_op_of(v[2]))
    return false;
  *t = (struct turns){v[0], v[3], mlirOperationGetResult(v[0], 0), {.op = v[1]}, -1};
  return nisa_type_space(mlirValueGetType(t->psum)) == MEM_PSUM && nisa_read(v[1], &t->turn, NULL) &&
         is_turn(&t->turn) && nisa_read(v[2], &r->in, NULL) && coalesce_is_elementwise(&r->in) &&
         mlirValueEqual(mlirOperationGetOperand(v[3], 0), t->psum);
}

/* Reads what moves the result out.  side: of its operands that have an element for each of dst. */
static bool read_move(const struct repeated *r, struct turns *t, struct side *side) {
  const struct nisa_access *dst = &r->in.operand[0];

  for (int k = 0; k < r->in.def->n_operands; k++) {
    const struct nisa_access *x = &r->in.operand[k];
    if (nisa_is_absent(x))
      continue;
    if (k && mlirValueEqual(x->base, t->psum)) {
      if (t->source >= 0 || !coalesce_is_wide(&r->in, k) || !is_whole(x))
        return false;
      t->source = k;
    } else if (k && (nisa_is_scalar(x) || !coalesce_is_wide(&r->in, k))) {
      if (!coalesce_is_the_same(r, x) ||
          (!nisa_is_scalar(x) && mlirValueEqual(buffer_root(x->base), buffer_root(dst->base))))
        return false;
    } else if (!coalesce_read_side(r, x, &side[k]) || nisa_access_space(x) != MEM_SBUF || side[k].at[0].per_counter ||
               (k && mlirValueEqual(buffer_root(x->base), buffer_root(dst->base)))) {
      return false;
    }
  }
  return t->source >= 0 && coalesce_is_apart(r, &side[0]);
}

/* The transposes write all of psum, and read nothing that is written where their results go. */
static bool is_separate(const struct repeated *r, const struct turns *t) {
  if (!mlirValueEqual(t->turn.operand[0].base, t->psum) || !is_whole(&t->turn.operand[0]) ||
      mlirShapedTypeGetRank(mlirValueGetType(t->psum)) != 2)
    return false;
  for (int k = 1; k < t->turn.def->n_operands; k++) {
    const struct nisa_access *x = &t->turn.operand[k];
    if (!nisa_is_absent(x) && !nisa_is_scalar(x) &&
        mlirValueEqual(buffer_root(x->base), buffer_root(r->in.operand[0].base)))
      return false;
  }
  return true;
}

/* The elements of a partition that each result gets: a power of two, so that none crosses the border of a bank wherever the first one
 * lies. */
static int64_t columns_of(const struct turns *t) {
  const int64_t columns = mlirShapedTypeGetDimSize(mlirValueGetType(t->psum), 1);
  int64_t n = 1;
  while (n < columns)
    n *= 2;
  return n;
}

static int64_t bytes_of(const struct turns *t) {
  return columns_of(t) * nisa_element_bytes(mlirShapedTypeGetElementType(mlirValueGetType(t->psum)));
}

/* The most rounds, of which `trips` is a multiple, whose results fit into a bank. */
static int64_t rounds_in_bank(const struct pass_run *run, const struct repeated *r, const struct turns *t) {
  const int64_t most = nisa_machine(run->target)->psum_bank_bytes / bytes_of(t);
  for (int64_t n = most < r->trips ? most : r->trips; n > 1; n--)
    if (r->trips % n == 0)
      return n;
  return 1;
}

/* How many banks the loop and those around it fill, as far as their bounds are known. */
static int64_t banks_of(const struct repeated *r) {
  int64_t n = r->trips / r->rounds;
  struct repeated around;

  for (MlirOperation op = mlirOperationGetParentOperation(r->loop); ir_is(op, "scf.for") && n < BANKS_LEAST;
       op = mlirOperationGetParentOperation(op))
    n *= coalesce_read_bounds(op, &around) ? around.trips : BANKS_LEAST;
  return n;
}

/* The operands of the instruction that moves all rounds out; false if it gets too many dimensions. */
static bool widen(const struct pass_run *run, const struct repeated *r, const struct turns *t, struct side *side,
                  struct nisa_instr *out) {
  *out = r->in;
  for (int k = 0; k < out->def->n_operands; k++) {
    struct nisa_access *x = &out->operand[k];
    if (nisa_is_absent(x) || k == t->source || (k && (nisa_is_scalar(x) || !coalesce_is_wide(&r->in, k))))
      continue;
    if (!coalesce_make_side(r, x, &side[k], x->par_dims) ||
        x->n_dims - x->par_dims > nisa_machine(run->target)->free_dims)
      return false;
  }
  return true;
}

/* What x, all of a result, is in `psum`, whose dimension 1 are the rounds: of one round if `at` is not null, else of all n. */
static struct nisa_access in_bank(const struct nisa_access *x, MlirValue psum, int64_t n, MlirValue at) {
  MlirContext ctx = mlirAffineMapGetContext(x->map);
  if (mlirValueIsNull(at))
    return (struct nisa_access){.base = psum,
                                .map = mlirAffineMapMultiDimIdentityGet(ctx, 3),
                                .n_dims = 3,
                                .tile = {x->tile[0], n, x->tile[1]},
                                .par_dims = 1};
  MlirAffineExpr to[] = {mlirAffineDimExprGet(ctx, 0), mlirAffineSymbolExprGet(ctx, 0), mlirAffineDimExprGet(ctx, 1)};
  return (struct nisa_access){.base = psum,
                              .n_indices = 1,
                              .indices = {at},
                              .map = mlirAffineMapGet(ctx, 2, 1, 3, to),
                              .n_dims = 2,
                              .tile = {x->tile[0], x->tile[1]},
                              .par_dims = 1};
}

static void remark(struct pass_run *run, const struct repeated *r, const struct turns *t) {
  const int64_t bytes = bytes_of(t);
  struct remark *m = pass_remark(run, r->in.op, RULE_FILL_BANK,
                                 "%" PRId64 " transposes fill a bank of PSUM before one instruction reads it%s",
                                 r->rounds, r->rounds < r->trips ? "; the loop around it stays" : "");
  remark_limit(m, "bank of PSUM", "bytes per partition", r->rounds * bytes, nisa_machine(run->target)->psum_bank_bytes);
  const double start = busy_start_ns(&r->in, r->in.engine);
  remark_cost(m, "%.2f us to start", start / 1000);
  remark_reject_for(m, "an instruction after each transpose", NULL,
                    arena_printf(run->arena, "%.2f us to start", (double)r->rounds * start / 1000),
                    "each takes its start besides its elements");
}

/* Moves the arithmetic of a round into the loop over a bank, whose counter is `at` in terms of the old one. */
static void take_arithmetic(const struct repeated *r, const struct turns *t, struct ir_builder *inside, MlirValue at) {
  MlirOperation next;

  for (MlirOperation op = mlirBlockGetFirstOperation(ir_body(r->loop)); !mlirOperationEqual(op, t->turn.op);
       op = next) {
    next = mlirOperationGetNextInBlock(op);
    if (!ir_is_of(op, "arith."))
      continue;
    mlirOperationRemoveFromParent(op);
    mlirBlockInsertOwnedOperationBefore(inside->block, inside->before, op);
    mlirOperationReplaceUsesOfWith(op, r->counter, at);
  }
}

/* Puts the rounds of a bank, and what reads it, at the builder's place.  The transposes and their arithmetic move there. */
static void emit(struct ir_builder *b, const struct repeated *r, const struct turns *t, struct nisa_instr *out) {
  struct nisa_instr turn = t->turn;
  struct ir_builder inside;
  MlirType one = mlirValueGetType(t->psum);
  const int64_t dims[] = {mlirShapedTypeGetDimSize(one, 0), r->rounds, columns_of(t)};
  MlirType all =
      mlirMemRefTypeContiguousGet(mlirShapedTypeGetElementType(one), 3, dims, mlirMemRefTypeGetMemorySpace(one));
  MlirOperation made = nisa_create_alloc(mlirOperationGetLocation(t->alloc), all, 64);
  MlirValue psum = mlirOperationGetResult(made, 0);

  mlirBlockInsertOwnedOperationBefore(b->block, b->before, made);
  MlirValue round = ir_count_loop(b, r->rounds, &inside);
  MlirValue number = r->rounds < r->trips
                         ? ir_binary(&inside, "arith.addi",
                                     ir_binary(&inside, "arith.muli", r->counter, ir_index(&inside, r->rounds)), round)
                         : round;
  MlirValue at = r->step == 1 ? number : ir_binary(&inside, "arith.muli", number, ir_index(&inside, r->step));
  at = r->lower ? ir_binary(&inside, "arith.addi", at, ir_index(&inside, r->lower)) : at;
  take_arithmetic(r, t, &inside, at);
  turn.operand[0] = in_bank(&t->turn.operand[0], psum, r->rounds, round);
  made = nisa_create_like(b->arena, &turn, t->turn.op);
  mlirBlockInsertOwnedOperationBefore(inside.block, inside.before, made);
  mlirOperationReplaceUsesOfWith(made, r->counter, at);

  out->operand[t->source] = in_bank(&t->turn.operand[0], psum, r->rounds, (MlirValue){NULL});
  mlirBlockInsertOwnedOperationBefore(b->block, b->before, nisa_create_like(b->arena, out, r->in.op));
  mlirBlockInsertOwnedOperationBefore(b->block, b->before,
                                      nisa_create_release(mlirOperationGetLocation(t->release), psum));
}

/* Removes what was done in each round; users come before what they use. */
static void clear(struct arena *a, const struct repeated *r, const struct turns *t) {
  mlirOperationDestroy(t->release);
  mlirOperationDestroy(r->in.op);
  mlirOperationDestroy(t->turn.op);
  mlirOperationDestroy(t->alloc);
  coalesce_sweep(a, r->loop);
}

bool coalesce_banks(struct pass_run *run, const struct repeated *loop) {
  struct repeated r = *loop;
  struct turns t;
  struct side side[NISA_OPERANDS_MAX];
  struct nisa_instr out;

  if (!read_turns(&r, &t) || !is_separate(&r, &t) || !read_move(&r, &t, side))
    return false;
  r.rounds = rounds_in_bank(run, &r, &t);
  if (r.rounds < 2 || banks_of(&r) < BANKS_LEAST || !widen(run, &r, &t, side, &out))
    return false;
  remark(run, &r, &t);
  const bool stays = r.rounds < r.trips;
  struct ir_builder b = {.ctx = run->ir->ctx,
                         .block = stays ? ir_body(r.loop) : mlirOperationGetBlock(r.loop),
                         .before = stays ? mlirBlockGetTerminator(ir_body(r.loop)) : r.loop,
                         .loc = mlirOperationGetLocation(r.loop),
                         .arena = run->arena};
  emit(&b, &r, &t, &out);
  if (!stays) {
    mlirOperationDestroy(r.loop);
    return true;
  }
  clear(run->arena, &r, &t);
  coalesce_set_parts(run, &r);
  return true;
}
