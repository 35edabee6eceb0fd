/* rewrite: writes an attention as loops over its batch and over blocks of queries.  See rewrite.h. */
#include "passes/flash_attention/rewrite.h"

#include <assert.h>
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "nisa/nisa.h"
#include "passes/lib/edit.h"
#include "passes/lib/layout.h"

enum { FREE_MOST = 2048 };

int64_t rewrite_free_tile(int64_t n) {
  return n <= PSUM_COLUMNS ? n : n % PSUM_COLUMNS ? PSUM_COLUMNS : rewrite_min(n, FREE_MOST);
}

/* ---- products ---------------------------------------------------------------------------------------------------- */

/* Order of an operand's two dimensions over the loops (m, n, k) of linalg.matmul. */
static MlirAttribute matrix_map(struct ir_builder *b, int first, int second) {
  return mlirAffineMapAttrGet(ir_map(b, 3, 2, (int64_t[]){first, second}));
}

/* left @ right: `result` has their rows and columns.  is_left_turned: left is [k, m]. */
static MlirValue multiply(struct ir_builder *b, MlirValue left, bool is_left_turned, MlirValue right, MlirType result) {
  MlirValue inputs[] = {left, right};
  MlirAttribute maps[] = {is_left_turned ? matrix_map(b, 2, 0) : matrix_map(b, 0, 2), matrix_map(b, 2, 1),
                          matrix_map(b, 0, 1)};
  MlirNamedAttribute attr = ir_named(b, "indexing_maps", mlirArrayAttrGet(b->ctx, 3, maps));
  return ir_result(ir_linalg_named(b, "linalg.matmul", 2, inputs, ir_empty_of(b, result), 1, &attr));
}

/* One operand of a product, of the two dimensions `first` and `second` in one order or the other. */
static MlirValue operand(struct ir_builder *b, const struct writer *w, const struct block *at, const struct product *p,
                         int o, enum role n_role, enum role k_role, enum role first, bool *is_turned) {
  enum role roles[STRUCTURED_LOOPS_MAX] = {0}, kept[STRUCTURED_LOOPS_MAX];
  int n;

  take_product_roles(p, o, n_role, k_role, roles);
  MlirValue v = take_untransposed(mlirOperationGetOperand(p->op, o), roles);
  v = take_part(b, w, at, v, roles, kept, &n);
  assert(n == 2);
  *is_turned = kept[0] != first;
  return v;
}

/* The part of a matrix in SBUF that a block reads: rows or columns of keys. */
static MlirValue part_of(struct ir_builder *b, MlirValue kept, const struct block *at, int dim, int64_t all) {
  int64_t offsets[2] = {0}, sizes[2];
  MlirValue dynamic[2] = {{NULL}};

  if (at->keys == all)
    return kept;
  ir_shape(kept, 2, sizes);
  sizes[dim] = at->keys;
  dynamic[dim] = at->key;
  struct ir_slice s = {.rank = 2, .offsets = offsets, .sizes = sizes, .dynamic = dynamic};
  return ir_extract_slice(b, kept, &s, ir_tensor_of(ir_value_element(kept), 2, sizes));
}

/* ---- keys and values in SBUF ------------------------------------------------------------------------------------- */

/* v in SBUF, as it is. */
static MlirValue load(struct ir_builder *b, MlirValue v) {
  int64_t dims[2];

  ir_shape(v, 2, dims);
  MlirValue out = ir_empty_of(b, ir_tensor_of(ir_value_element(v), 2, dims));
  v = ir_result(ir_linalg_named(b, "linalg.copy", 1, &v, out, 0, NULL));
  const int64_t tile[] = {rewrite_min(dims[0], NISA_PARTITIONS), rewrite_free_tile(dims[1])};
  take_tiles(b, v, tile, 2, tile);
  return v;
}

/* v in SBUF.  is_turned: transposed, after a load of its own, which is large and does not wait for the tensor engine. */
static MlirValue keep(struct ir_builder *b, MlirValue v, bool is_turned) {
  int64_t dims[2];

  v = load(b, v);
  if (!is_turned)
    return v;
  v = ir_result(ir_transpose(b, v, 2, (int64_t[]){1, 0}));
  ir_shape(v, 2, dims);
  const int64_t loops[] = {rewrite_min(dims[0], NISA_PARTITIONS), rewrite_min(dims[1], NISA_PARTITIONS)};
  const int64_t free = rewrite_free_tile(dims[1]); /* one tile of memory holds a whole number of those of the loops */
  take_tiles(b, v, (int64_t[]){loops[0], (free + loops[1] - 1) / loops[1] * loops[1]}, 2, loops);
  return v;
}

/* The second operand of a product, [first, other], for blocks of the same keys: in SBUF if it must be turned. */
static MlirValue loaded(struct ir_builder *b, const struct writer *w, const struct block *at, const struct product *p,
                        enum role n_role, enum role k_role, enum role first) {
  bool is_turned;
  MlirValue v = operand(b, w, at, p, 1, n_role, k_role, first, &is_turned);
  return is_turned ? keep(b, v, true) : v;
}

struct operands rewrite_operands(struct ir_builder *outer, const struct writer *w, const struct block *at) {
  const struct product *s = &w->a->scores, *p = &w->a->mixed;
  struct operands made;
  struct ir_builder b = *outer;

  b.loc = mlirOperationGetLocation(s->op);
  made.keys = mlirValueIsNull(w->keys) ? loaded(&b, w, at, s, ROLE_KEY, ROLE_FEATURE, ROLE_FEATURE)
                                       : part_of(&b, w->keys, at, 1, w->p->keys);
  b.loc = mlirOperationGetLocation(p->op);
  made.values = mlirValueIsNull(w->values) ? loaded(&b, w, at, p, ROLE_WIDTH, ROLE_KEY, ROLE_KEY)
                                           : part_of(&b, w->values, at, 0, w->p->keys);
  return made;
}

MlirValue rewrite_scores(struct ir_builder *outer, const struct writer *w, const struct block *at, MlirValue keys) {
  const struct product *p = &w->a->scores;
  struct ir_builder here = *outer, *b = &here;
  bool is_left_turned;

  b->loc = mlirOperationGetLocation(p->op);
  MlirValue left = operand(b, w, at, p, 0, ROLE_KEY, ROLE_FEATURE, ROLE_ROW, &is_left_turned);
  MlirType type = ir_tensor_of(ir_value_element(ir_result(p->op)), 2, (int64_t[]){at->rows, at->keys});
  MlirValue made = multiply(b, left, is_left_turned, keys, type);
  const int64_t rows = rewrite_min(at->rows, NISA_PARTITIONS);
  const int64_t loops[] = {rows, rewrite_min(at->keys, PSUM_COLUMNS), rewrite_min(w->p->features, NISA_PARTITIONS)};
  take_tiles(b, made, (int64_t[]){rows, rewrite_free_tile(at->keys)}, 3, loops);
  return made;
}

MlirValue rewrite_mixed(struct ir_builder *outer, const struct writer *w, const struct members *m, MlirValue values) {
  const struct product *p = &w->a->mixed;
  struct ir_builder here = *outer, *b = &here;

  b->loc = mlirOperationGetLocation(p->op);
  MlirType type = ir_tensor_of(ir_value_element(ir_result(p->op)), 2, (int64_t[]){m->at.rows, w->p->width});
  MlirValue made = multiply(b, take_value(w, m, mlirOperationGetOperand(p->op, 0)), false, values, type);
  const int64_t rows = rewrite_min(m->at.rows, NISA_PARTITIONS), columns = rewrite_min(w->p->width, PSUM_COLUMNS);
  take_tiles(b, made, (int64_t[]){rows, columns}, 3,
             (int64_t[]){rows, columns, rewrite_min(m->at.keys, NISA_PARTITIONS)});
  return made;
}

/* What the operation, which has one input, computes element by element from v, a matrix. */
static MlirValue repeat(struct ir_builder *outer, MlirOperation old, MlirValue v) {
  struct ir_builder here = *outer, *b = &here;
  MlirOperation made = mlirOperationClone(old);
  MlirAffineMap same = ir_identity_map(b, 2);
  int64_t dims[2];

  b->loc = mlirOperationGetLocation(old);
  ir_shape(v, 2, dims);
  MlirType type = ir_tensor_of(ir_value_element(ir_result(old)), 2, dims);
  MlirValue out = ir_empty_of(b, type);
  ir_place(b, made);
  mlirOperationSetOperand(made, 0, v);
  mlirOperationSetOperand(made, 1, out);
  mlirValueSetType(ir_result(made), type);
  if (ir_is(made, "linalg.generic")) {
    edit_set_maps(made, 2, (MlirAffineMap[]){same, same});
    edit_set_iterators(made, 2, (bool[]){false, false});
  }
  return ir_result(made);
}

static void keep_operands(struct ir_builder *outer, struct writer *w) {
  const struct block all = {.keys = w->p->keys};
  struct ir_builder b = *outer;
  bool is_turned;

  if (w->p->keeps_keys) {
    b.loc = mlirOperationGetLocation(w->a->scores.op);
    MlirValue v = operand(&b, w, &all, &w->a->scores, 1, ROLE_KEY, ROLE_FEATURE, ROLE_FEATURE, &is_turned);
    w->keys = keep(&b, v, is_turned);
    if (w->p->scale >= 0) {
      w->keys = repeat(&b, w->a->member[w->p->scale].op, w->keys);
      take_block_tiles(&b, w->keys);
    }
  }
  if (w->p->keeps_values) {
    b.loc = mlirOperationGetLocation(w->a->mixed.op);
    MlirValue v = operand(&b, w, &all, &w->a->mixed, 1, ROLE_WIDTH, ROLE_KEY, ROLE_KEY, &is_turned);
    w->values = keep(&b, v, is_turned);
  }
}

/* ---- the end of a block ------------------------------------------------------------------------------------------ */

static MlirValue convert(struct ir_builder *b, MlirValue const *args, void *user) {
  MlirType to = *(const MlirType *)user;
  const bool widens = mlirTypeIsAF32(to);
  return ir_op1(b, widens ? "arith.extf" : "arith.truncf", to, 1, args);
}

/* x in another type of floats. */
static MlirValue converted(struct ir_builder *b, MlirValue x, MlirType to) {
  int64_t dims[2];
  MlirAffineMap same = ir_identity_map(b, 2);

  if (mlirTypeEqual(ir_value_element(x), to))
    return x;
  ir_shape(x, 2, dims);
  struct ir_generic g = {.n_loops = 2,
                         .n_inputs = 1,
                         .inputs = &x,
                         .maps = (MlirAffineMap[]){same, same},
                         .output = ir_empty_of(b, ir_tensor_of(to, 2, dims)),
                         .body = convert,
                         .user = &to};
  return ir_result(ir_linalg_generic(b, &g));
}

static void tile_result(struct ir_builder *b, MlirValue v) {
  int64_t dims[2];
  ir_shape(v, 2, dims);
  const int64_t tile[] = {rewrite_min(dims[0], NISA_PARTITIONS), rewrite_min(dims[1], PSUM_COLUMNS)};
  take_tiles(b, v, tile, 2, tile);
}

MlirValue rewrite_end(struct ir_builder *outer, const struct writer *w, const struct members *m, MlirValue v) {
  struct ir_builder here = *outer, *b = &here;

  if (!mlirValueIsNull(w->a->divisor)) {
    b->loc = mlirOperationGetLocation(w->a->mixed.op);
    MlirValue by = converted(b, take_value(w, m, w->a->divisor), ir_value_element(v));
    v = take_binary(b, "arith.mulf", v, by);
    tile_result(b, v);
  }
  for (int k = 0; k < w->a->n_epilogue; k++) {
    v = repeat(b, w->a->epilogue[k], v);
    tile_result(b, v);
  }
  return v;
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

int rewrite_split(struct ir_builder *b, const struct block *rows, struct block *tile) {
  int n = 0;

  for (int64_t at = 0; at < rows->rows; at += NISA_PARTITIONS, n++) {
    assert(n < ATTENTION_TILES_MAX);
    tile[n] = *rows;
    tile[n].rows = rewrite_min(rows->rows - at, NISA_PARTITIONS);
    if (at)
      tile[n].row =
          mlirValueIsNull(rows->row) ? ir_index(b, at) : ir_binary(b, "arith.addi", rows->row, ir_index(b, at));
  }
  return n;
}

/* Repeats the members that the weights need, or the others. */
static void take_members(struct ir_builder *b, const struct writer *w, struct members *m, bool for_weights) {
  for (int k = 0; k < w->a->n; k++)
    if (w->a->member[k].for_weights == for_weights)
      m->now[k] = w->a->member[k].is_dropped ? take_value(w, m, w->a->weights) : take_member(b, w, m, k);
}

/* The results of tiles of rows whose scores are in SBUF, each of its own batch or of the same one.  Engines execute their
 * instructions in order.  So the scores of a tile come before the softmax of the tile before it, and this before the second
 * product of the one before that: the tensor engine computes one tile while the others work on the next one.  What only the
 * result needs, such as the sum, comes with the second product, when the weights are there. */
static void whole_rows(struct ir_builder *b, int n, struct writer const *const *w, const struct block *tile,
                       MlirValue *out) {
  struct members *m = arena_new_array(b->arena, struct members, (size_t)n);
  struct operands with[ATTENTION_TILES_MAX];

  for (int i = 0; i < n; i++)
    with[i] = i && w[i] == w[i - 1] ? with[i - 1] : rewrite_operands(b, w[i], &tile[i]);
  for (int i = 0; i < n + 2; i++) {
    if (i >= 1 && i - 1 < n)
      take_members(b, w[i - 1], &m[i - 1], true);
    if (i < n) {
      m[i].at = tile[i];
      m[i].scores = rewrite_scores(b, w[i], &tile[i], with[i].keys);
    }
    if (i >= 2) {
      take_members(b, w[i - 2], &m[i - 2], false);
      out[i - 2] = rewrite_end(b, w[i - 2], &m[i - 2], rewrite_mixed(b, w[i - 2], &m[i - 2], with[i - 2].values));
    }
  }
}

static MlirValue insert_rows(struct ir_builder *b, const struct writer *w, const struct block *at, MlirValue v,
                             MlirValue result) {
  const struct product *p = &w->a->mixed;
  int64_t offsets[STRUCTURED_LOOPS_MAX] = {0}, sizes[STRUCTURED_LOOPS_MAX];
  MlirValue dynamic[STRUCTURED_LOOPS_MAX] = {{NULL}};

  for (int d = 0; d < p->n_batch; d++) {
    dynamic[d] = w->batch[d];
    sizes[d] = 1;
  }
  dynamic[p->n_batch] = at->row;
  sizes[p->n_batch] = at->rows;
  sizes[p->n_batch + 1] = w->p->width;
  struct ir_slice s = {.rank = p->rank, .offsets = offsets, .sizes = sizes, .dynamic = dynamic};
  return ir_insert_slice(b, v, result, &s);
}

/* Computes a block of rows, and inserts it into the result. */
static void write_rows(struct ir_builder *b, const struct writer *w, MlirValue row, int64_t rows, MlirValue *result) {
  const struct block at = {.row = row, .rows = rows, .keys = w->p->keys};
  struct block tile[ATTENTION_TILES_MAX];
  MlirValue v[ATTENTION_TILES_MAX];
  const struct writer *same[ATTENTION_TILES_MAX] = {w, w};
  const int n = rewrite_split(b, &at, tile);

  if (w->p->step < w->p->keys)
    running_rows(b, w, n, tile, v);
  else
    whole_rows(b, n, same, tile, v);
  for (int t = 0; t < n; t++)
    *result = insert_rows(b, w, &tile[t], v[t], *result);
}

static void row_loop(struct ir_builder *b, MlirValue const *at, MlirValue *carried, void *user) {
  const struct writer *w = user;
  write_rows(b, w, ir_binary(b, "arith.muli", at[0], ir_index(b, w->p->rows)), w->p->rows, carried);
}

/* All rows of two batches that follow each other in the last batch dimension. */
static void pair_loop(struct ir_builder *b, MlirValue const *at, MlirValue *carried, void *user) {
  enum { N = ATTENTION_TILES_MAX };
  const struct writer *shared = user, *each[N];
  const int last = shared->a->mixed.n_batch - 1;
  struct writer w[N];
  struct block tile[N];
  MlirValue batch[N][STRUCTURED_LOOPS_MAX], v[N];

  MlirValue first = ir_binary(b, "arith.muli", at[last], ir_index(b, N));
  for (int i = 0; i < N; i++) {
    memcpy(batch[i], at, (size_t)last * sizeof *at);
    batch[i][last] = i ? ir_binary(b, "arith.addi", first, ir_index(b, i)) : first;
    w[i] = *shared;
    w[i].batch = batch[i];
    each[i] = &w[i];
    tile[i] = (struct block){.rows = w[i].p->rows, .keys = w[i].p->keys};
    keep_operands(b, &w[i]);
  }
  whole_rows(b, N, each, tile, v);
  for (int i = 0; i < N; i++)
    *carried = insert_rows(b, &w[i], &tile[i], v[i], *carried);
}

static void batch_loop(struct ir_builder *b, MlirValue const *at, MlirValue *carried, void *user) {
  struct writer w = *(const struct writer *)user;
  const int64_t n = w.p->queries / w.p->rows, rest = w.p->queries % w.p->rows;

  w.batch = at;
  keep_operands(b, &w);
  if (n == 1)
    write_rows(b, &w, (MlirValue){NULL}, w.p->rows, carried);
  else
    ir_loop_nest(b, &(struct ir_loops){.n = 1, .extents = &n, .n_carried = 1, .body = row_loop, .user = &w}, carried);
  if (rest)
    write_rows(b, &w, ir_index(b, n * w.p->rows), rest, carried);
}

/* Erases what the loops replace, the last operations first. */
static void erase(const struct attention *a) {
  for (int k = a->n_epilogue - 1; k >= 0; k--)
    mlirOperationDestroy(a->epilogue[k]);
  if (!mlirOperationIsNull(a->division))
    mlirOperationDestroy(a->division);
  mlirOperationDestroy(a->mixed.op);
  for (int k = a->n - 1; k >= 0; k--)
    if (!ir_is_used(ir_result(a->member[k].op)))
      mlirOperationDestroy(a->member[k].op);
  mlirOperationDestroy(a->scores.op);
}

void attention_rewrite(struct pass_run *run, const struct attention *a, const struct attention_plan *p) {
  MlirOperation last = a->n_epilogue                       ? a->epilogue[a->n_epilogue - 1]
                       : !mlirOperationIsNull(a->division) ? a->division
                                                           : a->mixed.op;
  struct ir_builder b = edit_before(run, last);
  struct writer w = {.run = run, .a = a, .p = p};
  int64_t extents[STRUCTURED_LOOPS_MAX];

  for (int d = 0; d < a->mixed.n_batch; d++)
    extents[d] = a->mixed.s.extents[structured_map_loop(a->mixed.s.maps[2], d)];
  MlirValue result = ir_empty_of(&b, mlirValueGetType(ir_result(last)));
  if (p->batches > 1)
    extents[a->mixed.n_batch - 1] /= p->batches;
  if (a->mixed.n_batch) {
    const struct ir_loops loops = {.n = a->mixed.n_batch,
                                   .extents = extents,
                                   .n_carried = 1,
                                   .body = p->batches > 1 ? pair_loop : batch_loop,
                                   .user = &w};
    ir_loop_nest(&b, &loops, &result);
  } else {
    batch_loop(&b, NULL, &result, &w);
  }
  mlirValueReplaceAllUsesOfWith(ir_result(last), result);
  erase(a);
}
