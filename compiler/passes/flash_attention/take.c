/* take: parts of values that a block of an attention reads, and members repeated on a block.  See rewrite.h. */
#include <assert.h>
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "nisa/nisa.h"
#include "passes/flash_attention/rewrite.h"
#include "passes/lib/edit.h"
#include "passes/lib/layout.h"

/* ---- parts ------------------------------------------------------------------------------------------------------- */

MlirValue take_part(struct ir_builder *b, const struct writer *w, const struct block *at, MlirValue v,
                    enum role const *roles, enum role *kept, int *n) {
  int64_t dims[STRUCTURED_LOOPS_MAX], offsets[STRUCTURED_LOOPS_MAX] = {0}, sizes[STRUCTURED_LOOPS_MAX];
  int64_t left[STRUCTURED_LOOPS_MAX];
  MlirValue dynamic[STRUCTURED_LOOPS_MAX] = {{NULL}};
  const int rank = ir_shape(v, STRUCTURED_LOOPS_MAX, dims);
  bool is_whole = true;

  *n = 0;
  assert(rank >= 0 && rank <= STRUCTURED_LOOPS_MAX);
  for (int d = 0; d < rank; d++) {
    sizes[d] = dims[d];
    if (roles[d] < ROLE_ROW) {
      dynamic[d] = w->batch[roles[d]];
      sizes[d] = 1;
    } else if (roles[d] == ROLE_ROW) {
      dynamic[d] = at->row;
      sizes[d] = at->rows;
    } else if (roles[d] == ROLE_KEY) {
      dynamic[d] = at->key;
      sizes[d] = at->keys;
    }
    is_whole &= sizes[d] == dims[d] && mlirValueIsNull(dynamic[d]) && roles[d] >= ROLE_ROW;
    if (roles[d] < ROLE_ROW || (d < rank - 2 && roles[d] == ROLE_ONE))
      continue;
    left[*n] = sizes[d];
    kept[(*n)++] = roles[d];
  }
  if (is_whole && *n == rank)
    return v;
  struct ir_slice s = {.rank = rank, .offsets = offsets, .sizes = sizes, .dynamic = dynamic};
  return ir_extract_slice(b, v, &s, ir_tensor_of(ir_value_element(v), *n, left));
}

void take_product_roles(const struct product *p, int o, enum role n_role, enum role k_role, enum role *roles) {
  for (int r = 0; r < mlirAffineMapGetNumResults(p->s.maps[o]); r++) {
    const int loop = structured_map_loop(p->s.maps[o], r);
    roles[r] = loop == p->m   ? ROLE_ROW
               : loop == p->n ? n_role
               : loop == p->k ? k_role
                              : (enum role)product_dim(p, 2, loop);
  }
}

MlirValue take_untransposed(MlirValue v, enum role *roles) {
  MlirOperation def = ir_defining_op(v);
  enum role given[STRUCTURED_LOOPS_MAX];

  if (mlirOperationIsNull(def) || !ir_is(def, "linalg.transpose"))
    return v;
  MlirAttribute by = ir_attr(def, "permutation");
  const intptr_t rank = mlirDenseArrayGetNumElements(by);
  memcpy(given, roles, sizeof given);
  for (intptr_t d = 0; d < rank; d++)
    roles[mlirDenseI64ArrayGetElement(by, d)] = given[d];
  return mlirOperationGetOperand(def, 0);
}

/* A map of the loops (row, key) for an operand with these dimensions.  In a member that has one element for each query,
 * a single column is loop 1. */
static MlirAffineMap map_of(struct ir_builder *b, const struct member *x, int n, enum role const *roles) {
  const bool is_column = x->is_row && x->s.kind != SK_REDUCTION;
  int64_t results[STRUCTURED_LOOPS_MAX];

  for (int d = 0; d < n; d++) {
    assert(roles[d] == ROLE_ROW || roles[d] == ROLE_KEY || roles[d] == ROLE_ONE);
    results[d] = roles[d] == ROLE_ROW ? 0 : roles[d] == ROLE_KEY || (is_column && d == n - 1) ? 1 : IR_CONST(0);
  }
  return ir_map(b, 2, n, results);
}

/* ---- annotations ------------------------------------------------------------------------------------------------- */

void take_tiles(struct ir_builder *b, MlirValue v, const int64_t tile[2], int n_loops, const int64_t *loops) {
  struct layout l = {.space = MEM_SBUF, .partition_dim = 0, .n_tile = 2, .n_loop = n_loops};
  memcpy(l.tile, tile, 2 * sizeof *tile);
  memcpy(l.loop, loops, (size_t)n_loops * sizeof *loops);
  layout_write(v, &l, b->loc);
}

void take_block_tiles(struct ir_builder *b, MlirValue v) {
  int64_t dims[2];
  const int rank = ir_shape(v, 2, dims);
  assert(rank == 2);
  (void)rank;
  const int64_t tile[] = {rewrite_min(dims[0], NISA_PARTITIONS), dims[1] == 1 ? 1 : rewrite_free_tile(dims[1])};
  take_tiles(b, v, tile, 2, tile);
}

static void take_scores_tiles(struct ir_builder *b, MlirValue v) {
  int64_t dims[2];
  ir_shape(v, 2, dims);
  const int64_t rows = rewrite_min(dims[0], NISA_PARTITIONS);
  take_tiles(b, v, (int64_t[]){rows, rewrite_free_tile(dims[1])}, 2,
             (int64_t[]){rows, rewrite_min(dims[1], PSUM_COLUMNS)});
}

/* ---- members ----------------------------------------------------------------------------------------------------- */

MlirValue take_value(const struct writer *w, const struct members *m, MlirValue v) {
  const struct member *in = attention_member(w->a, v);
  if (in)
    return m->now[in - w->a->member];
  return mlirOperationEqual(ir_defining_op(v), w->a->scores.op) ? m->scores : (MlirValue){NULL};
}

/* What result r of the map of operand o goes over, of the loops of a member. */
static enum role role_of(const struct writer *w, const struct member *x, int o, int r) {
  const int loop = structured_map_loop(x->s.maps[o], r), n_batch = w->a->mixed.n_batch;
  if (loop < 0 || (loop > n_batch && x->is_row && x->s.kind != SK_REDUCTION))
    return ROLE_ONE;
  return loop < n_batch ? (enum role)loop : loop == n_batch ? ROLE_ROW : ROLE_KEY;
}

/* Returns operand o of a member in the block, and its map. */
static MlirValue take_operand(struct ir_builder *b, const struct writer *w, const struct members *m,
                              const struct member *x, int o, MlirAffineMap *map) {
  MlirValue v = mlirOperationGetOperand(x->op, o), known = take_value(w, m, v);
  enum role roles[STRUCTURED_LOOPS_MAX] = {0}, kept[STRUCTURED_LOOPS_MAX];
  int n = (int)mlirAffineMapGetNumResults(x->s.maps[o]);

  for (int r = 0; r < n; r++)
    roles[r] = role_of(w, x, o, r);
  if (!mlirTypeIsARankedTensor(mlirValueGetType(v)))
    known = v;
  else if (mlirValueIsNull(known))
    known = take_part(b, w, &m->at, v, roles, kept, &n);
  else
    memcpy(kept, roles + n - 2, 2 * sizeof *kept), n = 2;
  *map = map_of(b, x, n, kept);
  return known;
}

static MlirType type_of_result(const struct members *m, const struct member *x) {
  const int64_t dims[] = {m->at.rows, x->is_row ? 1 : m->at.keys};
  return ir_tensor_of(ir_value_element(ir_result(x->op)), 2, dims);
}

/* A broadcast without the batch dimensions; no operation at all if nothing else is repeated. */
static MlirValue repeat_broadcast(struct ir_builder *b, const struct writer *w, const struct members *m,
                                  const struct member *x) {
  MlirAttribute added = ir_attr(x->op, "dimensions");
  enum role roles[STRUCTURED_LOOPS_MAX] = {0}, kept[STRUCTURED_LOOPS_MAX];
  int64_t missing[2];
  int n_in = 0, n = 0, n_missing = 0;

  for (int d = 0; d < w->a->mixed.rank; d++) {
    bool is_added = false;
    for (intptr_t k = 0; k < mlirDenseArrayGetNumElements(added); k++)
      is_added |= mlirDenseI64ArrayGetElement(added, k) == d;
    const int n_batch = w->a->mixed.n_batch;
    if (!is_added)
      roles[n_in++] = d < n_batch ? (enum role)d : d == n_batch ? ROLE_ROW : x->is_row ? ROLE_ONE : ROLE_KEY;
    else if (d >= n_batch)
      missing[n_missing++] = d - n_batch;
  }
  MlirValue part = take_part(b, w, &m->at, mlirOperationGetOperand(x->op, 0), roles, kept, &n);
  if (!n_missing)
    return part;
  MlirNamedAttribute attr = ir_named(b, "dimensions", ir_i64_array(b, n_missing, missing));
  return ir_result(ir_linalg_copying(b, "linalg.broadcast", part, ir_empty_of(b, type_of_result(m, x)), attr));
}

/* What the member's output starts from. */
static MlirValue initial(struct ir_builder *b, const struct writer *w, const struct members *m,
                         const struct member *x) {
  MlirValue init = mlirOperationGetOperand(x->op, x->s.n_inputs);
  MlirOperation def = ir_defining_op(init);
  MlirAffineMap map;

  if (x->s.kind != SK_REDUCTION)
    return ir_empty_of(b, type_of_result(m, x));
  if (mlirOperationIsNull(def) || !ir_is(def, "linalg.fill"))
    return take_operand(b, w, m, x, x->s.n_inputs, &map);
  return ir_fill(b, mlirOperationGetOperand(def, 0), ir_empty_of(b, type_of_result(m, x)));
}

MlirValue take_member(struct ir_builder *outer, const struct writer *w, const struct members *m, int k) {
  const struct member *x = &w->a->member[k];
  MlirValue operands[STRUCTURED_OPERANDS_MAX];
  MlirAffineMap maps[STRUCTURED_OPERANDS_MAX];
  struct ir_builder at = *outer, *b = &at;

  if (k == w->p->scale)
    return take_value(w, m, mlirOperationGetOperand(x->op, 0));
  b->loc = mlirOperationGetLocation(x->op);
  if (x->s.kind == SK_BROADCAST)
    return repeat_broadcast(b, w, m, x);
  const int n = x->s.n_inputs;
  for (int o = 0; o < n; o++)
    operands[o] = take_operand(b, w, m, x, o, &maps[o]);
  operands[n] = initial(b, w, m, x);
  maps[n] = ir_map(b, 2, 2, (int64_t[]){0, x->s.kind == SK_REDUCTION ? IR_CONST(0) : 1});
  MlirOperation made = ir_place(b, mlirOperationClone(x->op));
  for (int o = 0; o <= n; o++)
    mlirOperationSetOperand(made, o, operands[o]);
  mlirValueSetType(ir_result(made), mlirValueGetType(operands[n]));
  if (ir_is(made, "linalg.generic")) {
    edit_set_maps(made, n + 1, maps);
    edit_set_iterators(made, 2, (bool[]){false, x->s.kind == SK_REDUCTION});
  }
  if (x->s.kind == SK_REDUCTION) {
    const int64_t rows = rewrite_min(m->at.rows, NISA_PARTITIONS);
    take_tiles(b, ir_result(made), (int64_t[]){rows, 1}, 2, (int64_t[]){rows, rewrite_free_tile(m->at.keys)});
  } else if (n == 1 && mlirValueEqual(operands[0], m->scores) &&
             !mlirTypeEqual(ir_value_element(operands[0]), ir_value_element(ir_result(made)))) {
    take_scores_tiles(b, ir_result(made)); /* the loops of the product, so that its rounding can join them */
  } else {
    take_block_tiles(b, ir_result(made));
  }
  return ir_result(made);
}

/* ---- arithmetic ---------------------------------------------------------------------------------------- */

static MlirValue two(struct ir_builder *b, MlirValue const *args, void *user) {
  return ir_binary(b, *(const char *const *)user, args[0], args[1]);
}

MlirValue take_binary(struct ir_builder *b, const char *name, MlirValue x, MlirValue y) {
  MlirValue inputs[] = {x, y};
  int64_t dims[2], other[2];
  MlirAffineMap same = ir_identity_map(b, 2);
  ir_shape(x, 2, dims);
  ir_shape(y, 2, other);
  const bool is_row = other[1] == 1 && dims[1] > 1;
  MlirAffineMap maps[] = {same, is_row ? ir_map(b, 2, 2, (int64_t[]){0, IR_CONST(0)}) : same, same};
  struct ir_generic g = {.n_loops = 2,
                         .n_inputs = 2,
                         .inputs = inputs,
                         .maps = maps,
                         .output = ir_empty_of(b, mlirValueGetType(x)),
                         .body = two,
                         .user = &name};
  return ir_result(ir_linalg_generic(b, &g));
}
