/* rounds_make: the instructions of several rounds of a loop.  See rounds.c. */
#include <string.h>

#include "mlir-c/BuiltinTypes.h"

#include "passes/coalesce_transfers/rounds.h"

enum { DST, SRC, COLUMN, COLUMN_2 }; /* tensor_scalar_arith */

static MlirType type_of_all(MlirType one, int64_t rounds) {
  int64_t dims[NISA_RANK_MAX] = {mlirShapedTypeGetDimSize(one, 0), rounds};
  const intptr_t rank = mlirShapedTypeGetRank(one);
  for (intptr_t k = 1; k < rank; k++)
    dims[k + 1] = mlirShapedTypeGetDimSize(one, k);
  return mlirMemRefTypeContiguousGet(mlirShapedTypeGetElementType(one), rank + 1, dims,
                                     mlirMemRefTypeGetMemorySpace(one));
}

void rounds_allocate(struct body *b) {
  for (int k = 0; k < b->n_tiles; k++) {
    MlirOperation one = ir_defining_op(b->tile[k]);
    MlirOperation all =
        nisa_create_alloc(mlirOperationGetLocation(one), type_of_all(mlirValueGetType(b->tile[k]), b->r.rounds),
                          ir_int_attr(one, "alignment", 0));
    b->wide[k] = mlirOperationGetResult(all, 0);
  }
}

/* Makes x, an access to a tile of the loop, one to round `at` in the memory of all rounds. */
static bool put_in_round(struct nisa_access *x, MlirValue all, MlirValue at) {
  MlirAffineExpr results[NISA_RANK_MAX];
  MlirContext ctx = mlirAffineMapGetContext(x->map);
  const intptr_t rank = mlirAffineMapGetNumResults(x->map);

  if (x->n_indices == NISA_RANK_MAX)
    return false;
  for (intptr_t k = 0; k < rank; k++)
    results[k + (k > 0)] = mlirAffineMapGetResult(x->map, k);
  results[1] = mlirAffineSymbolExprGet(ctx, x->n_indices);
  x->map = mlirAffineMapGet(ctx, x->n_dims, x->n_indices + 1, rank + 1, results);
  x->indices[x->n_indices++] = at;
  x->base = all;
  return true;
}

/* ---- one instruction ------------------------------------------------------------------------------------------------ */

bool rounds_may_be_tensors(const struct nisa_instr *in) {
  static const char *const ops[] = {"add",   "subtract", "multiply", "max",   "min",   "is_eq",
                                    "is_ne", "is_gt",    "is_ge",    "is_lt", "is_le", "divide"};
  if (in->def->kind != NISA_TENSOR_SCALAR_ARITH || !nisa_is_data(&in->operand[COLUMN]) ||
      !nisa_is_absent(&in->operand[COLUMN_2]) || !mlirAttributeIsNull(ir_attr(in->op, "unsigned")) ||
      in->operand[COLUMN].n_dims != in->operand[COLUMN].par_dims + 1)
    return false;
  for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
    if (!strcmp(nisa_text_attr(in->op, "op0"), ops[k]))
      return true;
  return false;
}

static bool column_is_first(const struct nisa_instr *in) {
  const char *reversed = nisa_text_attr(in->op, "reverse_operands");
  return !strcmp(reversed, "first") || !strcmp(reversed, "both");
}

/* The column's one element for all of a partition's `n`. */
static void repeat(MlirContext ctx, struct nisa_access *x, int64_t n) {
  MlirAffineExpr results[NISA_RANK_MAX];
  const intptr_t rank = mlirAffineMapGetNumResults(x->map);
  for (intptr_t d = 0; d < rank; d++) {
    struct nisa_index index;
    (void)nisa_access_index(x, (int)d, &index);
    index.dim[x->n_dims - 1] = 0;
    results[d] = nisa_index_expr(ctx, x, &index);
  }
  x->map = mlirAffineMapGet(ctx, x->n_dims, x->n_indices, rank, results);
  x->tile[x->n_dims - 1] = n;
}

struct nisa_instr rounds_as_tensors(MlirContext ctx, const struct nisa_instr *in) {
  const bool is_first = column_is_first(in);
  struct nisa_instr out = {.def = nisa_op_def(NISA_TENSOR_TENSOR_ARITH), .op = in->op, .engine = in->engine};
  out.operand[0] = in->operand[DST];
  out.operand[is_first ? 2 : 1] = in->operand[SRC];
  out.operand[is_first ? 1 : 2] = in->operand[COLUMN];
  repeat(ctx, &out.operand[is_first ? 1 : 2], nisa_free_elements(&in->operand[DST]));
  return out;
}

bool rounds_widen(struct body *b, int k) {
  struct side side;
  bool is_tile[NISA_OPERANDS_MAX] = {false};

  if (b->how[k] == HOW_APART)
    return true;
  if (b->how[k] == HOW_TENSORS)
    b->v[k] = rounds_as_tensors(b->run->ir->ctx, &b->v[k]);
  struct nisa_instr *in = &b->v[k];
  const bool moves = coalesce_is_transfer(in), is_turn = in->def->kind == NISA_DMA_TRANSPOSE;
  for (int i = 0; i < in->def->n_operands; i++) {
    struct nisa_access *x = &in->operand[i];
    if (!nisa_is_data(x))
      continue;
    const int tile = rounds_tile_of(b, x->base);
    is_tile[i] = tile >= 0;
    if (is_tile[i] && !put_in_round(x, b->wide[tile], b->r.counter))
      return false;
  }
  b->r.in = *in;
  for (int i = 1; i < in->def->n_operands; i++)
    if (nisa_is_data(&in->operand[i]) && coalesce_is_wide(in, i) &&
        !coalesce_is_beside(&in->operand[0], &in->operand[i]))
      return false;
  for (int i = 0; i < in->def->n_operands; i++) {
    struct nisa_access *x = &in->operand[i];
    if (!nisa_is_data(x) || (i && !coalesce_is_wide(&b->r.in, i)))
      continue;
    struct repeated r = b->r;
    r.trips = is_tile[i] ? r.rounds : r.trips; /* memory of a part: its rounds count from 0 */
    if (!coalesce_read_side(&r, x, &side) || (mem_is_on_chip(nisa_access_space(x)) && side.at[0].per_counter) ||
        (!i && !coalesce_is_apart(&r, &side)) || !coalesce_make_side(&r, x, &side, is_turn && i ? 0 : x->par_dims) ||
        (!moves && x->n_dims - x->par_dims > nisa_machine(b->run->target)->free_dims))
      return false;
  }
  return true;
}

/* ---- a loop of one instruction -------------------------------------------------------------------------------------- */

/* What v, which the loop computes from its counter, is in the round of number `counter`; computed there again. */
static MlirValue in_round(const struct body *b, struct ir_builder *at, MlirValue v, MlirValue counter) {
  if (mlirValueEqual(v, b->r.counter))
    return counter;
  if (coalesce_is_before(&b->r, v))
    return v;
  MlirOperation made = mlirOperationClone(ir_defining_op(v));
  for (intptr_t k = 0; k < mlirOperationGetNumOperands(made); k++)
    mlirOperationSetOperand(made, k, in_round(b, at, mlirOperationGetOperand(made, k), counter));
  return ir_result(ir_place(at, made));
}

static void emit_apart(const struct body *b, struct nisa_instr in, MlirOperation op, struct ir_builder *at) {
  struct ir_builder inside;
  at->loc = mlirOperationGetLocation(op);
  MlirValue round = ir_count_loop(at, b->r.rounds, &inside), counter = round;

  if (b->r.rounds < b->r.trips)
    counter = ir_binary(&inside, "arith.addi",
                        ir_binary(&inside, "arith.muli", b->r.counter, ir_index(&inside, b->r.rounds)), round);
  for (int k = 0; k < in.def->n_operands; k++) {
    struct nisa_access *x = &in.operand[k];
    if (nisa_is_absent(x))
      continue;
    for (int i = 0; i < x->n_indices; i++)
      x->indices[i] = in_round(b, &inside, x->indices[i], counter);
    const int tile = nisa_is_data(x) ? rounds_tile_of(b, x->base) : -1;
    if (tile >= 0)
      (void)put_in_round(x, b->wide[tile], round);
    else if (nisa_is_scalar(x))
      x->base = in_round(b, &inside, x->base, counter);
  }
  ir_place(&inside, nisa_create_like(b->run->arena, &in, op));
}

/* ---- all of them ---------------------------------------------------------------------------------------------------- */

static MlirOperation create(struct body *b, int k, MlirOperation op) {
  if (b->how[k] == HOW_ONE)
    return nisa_create_like(b->run->arena, &b->v[k], op);
  const struct ir_builder at = {.ctx = b->run->ir->ctx, .arena = b->run->arena};
  const MlirNamedAttribute attr = ir_named(&at, "op", ir_attr(op, "op0"));
  return nisa_create(&b->v[k], mlirOperationGetLocation(op), 1, &attr);
}

static bool is_nisa(MlirOperation op, void *user) {
  (void)user;
  return ir_is_of(op, "nisa.");
}

void rounds_emit(struct body *b) {
  const bool stays = b->r.rounds < b->r.trips;
  MlirBlock body = ir_body(b->r.loop);
  struct ir_builder at = {.ctx = b->run->ir->ctx,
                          .block = stays ? body : mlirOperationGetBlock(b->r.loop),
                          .arena = b->run->arena,
                          .before = stays ? mlirBlockGetTerminator(body) : b->r.loop};
  struct ir_ops ops = ir_collect(b->run->arena, b->r.loop, is_nisa, NULL);
  int next = 0;

  for (int k = 0; k < ops.n; k++) {
    MlirOperation op = ops.v[k];
    if (ir_is(op, "nisa.alloc")) {
      ir_place(&at, ir_defining_op(b->wide[rounds_tile_of(b, mlirOperationGetResult(op, 0))]));
    } else if (ir_is(op, "nisa.release")) {
      MlirValue tile = b->wide[rounds_tile_of(b, mlirOperationGetOperand(op, 0))];
      ir_place(&at, nisa_create_release(mlirOperationGetLocation(op), tile));
    } else if (b->how[next] == HOW_APART) {
      emit_apart(b, b->v[next++], op, &at);
    } else {
      ir_place(&at, create(b, next++, op));
    }
  }
  if (!stays) {
    mlirOperationDestroy(b->r.loop);
    return;
  }
  while (ops.n--) /* users come before what they use */
    mlirOperationDestroy(ops.v[ops.n]);
  coalesce_sweep(b->run->arena, b->r.loop);
  coalesce_set_parts(b->run, &b->r);
}
