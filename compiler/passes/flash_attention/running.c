/* running: a block of queries with its keys in blocks, for rows that do not fit into SBUF.
 *
 *     for each block of keys:
 *       new = max(old, rowmax(scores))
 *       e   = exp(scores - new)            scale = exp(old - new)
 *       sum = sum * scale + rowsum(e)      acc = acc * scale + e @ values
 *
 * The largest score so far starts at the lowest number, not at -inf: rows whose first keys are all masked by -inf would
 * compute -inf - -inf.  exp of such a difference is 0, as long as another key is not masked; a row without one gets
 * 0 / 0 = NaN, as in NumPy.
 */
#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "passes/flash_attention/rewrite.h"

enum { LARGEST, SUM, ACCUMULATED, N_CARRIED };

struct running {
  const struct writer *w;
  int n;
  const struct block *tile; /* of rows */
};

static MlirValue narrow(struct ir_builder *b, MlirValue const *args, void *user) {
  (void)user;
  MlirType f32 = mlirF32TypeGet(b->ctx);
  MlirValue x = args[0], y = args[1];
  if (!mlirTypeEqual(mlirValueGetType(x), f32)) {
    x = ir_op1(b, "arith.extf", f32, 1, &x);
    y = ir_op1(b, "arith.extf", f32, 1, &y);
  }
  return ir_binary(b, "arith.subf", x, y);
}

/* exp(old - new) in f32 */
static MlirValue scale_of(struct ir_builder *b, MlirValue old, MlirValue new, int64_t rows) {
  MlirAffineMap same = ir_identity_map(b, 2);
  MlirType type = ir_tensor_of(mlirF32TypeGet(b->ctx), 2, (int64_t[]){rows, 1});
  struct ir_generic g = {.n_loops = 2,
                         .n_inputs = 2,
                         .inputs = (MlirValue[]){old, new},
                         .maps = (MlirAffineMap[]){same, same, same},
                         .output = ir_empty_of(b, type),
                         .body = narrow};
  MlirValue difference = ir_result(ir_linalg_generic(b, &g));
  take_block_tiles(b, difference);
  MlirValue scale = ir_result(ir_linalg_named(b, "linalg.exp", 1, &difference, ir_empty_of(b, type), 0, NULL));
  take_block_tiles(b, scale);
  return scale;
}

static MlirValue scaled(struct ir_builder *b, MlirValue x, MlirValue scale) {
  MlirValue made = take_binary(b, "arith.mulf", x, scale);
  take_block_tiles(b, made);
  return made;
}

/* What one member adds to a tile: the largest score and the sum run along. */
static void add_member(struct ir_builder *b, const struct writer *w, struct members *m, int k, MlirValue const *carried,
                       MlirValue *scale) {
  const struct attention *a = w->a;
  const struct member *x = &a->member[k];

  if (x->after_sum && k != a->sum && !x->is_dropped)
    return;
  m->now[k] = x->is_dropped ? take_value(w, m, a->weights) : take_member(b, w, m, k);
  if (k != a->max)
    return;
  m->now[k] = take_binary(b, "arith.maximumf", m->now[k], carried[LARGEST]);
  *scale = scale_of(b, carried[LARGEST], m->now[k], m->at.rows);
}

/* One block of keys for each tile of rows. */
static void step(struct ir_builder *b, const struct running *r, MlirValue key, int64_t keys, MlirValue *carried) {
  const struct writer *w = r->w;
  const struct attention *a = w->a;
  struct members *m = arena_new_array(b->arena, struct members, (size_t)r->n);
  MlirValue scale[ATTENTION_TILES_MAX];

  for (int t = 0; t < r->n; t++) {
    m[t].at = r->tile[t];
    m[t].at.key = key;
    m[t].at.keys = keys;
  }
  const struct operands with = rewrite_operands(b, w, &m[0].at);
  for (int t = 0; t < r->n; t++)
    m[t].scores = rewrite_scores(b, w, &m[t].at, with.keys);
  for (int k = 0; k < a->n; k++)
    for (int t = 0; t < r->n; t++)
      add_member(b, w, &m[t], k, carried + t * N_CARRIED, &scale[t]);
  for (int t = 0; t < r->n; t++) {
    MlirValue part = rewrite_mixed(b, w, &m[t], with.values), *c = carried + t * N_CARRIED;
    c[SUM] = take_binary(b, "arith.addf", scaled(b, c[SUM], scale[t]), m[t].now[a->sum]);
    c[ACCUMULATED] = take_binary(b, "arith.addf", scaled(b, c[ACCUMULATED], scale[t]), part);
    c[LARGEST] = m[t].now[a->max];
  }
}

static void key_loop(struct ir_builder *b, MlirValue const *at, MlirValue *carried, void *user) {
  const struct running *r = user;
  const int64_t keys = r->w->p->step;
  step(b, r, ir_binary(b, "arith.muli", at[0], ir_index(b, keys)), keys, carried);
}

/* The lowest finite number of a type of floats. */
static MlirValue lowest(struct ir_builder *b, MlirType t) {
  return ir_float(b, t, mlirTypeIsAF32(t) ? -0x1.fffffep127 : mlirTypeIsABF16(t) ? -0x1.fep127 : -65504.0);
}

static MlirValue filled(struct ir_builder *b, MlirValue like, int64_t rows, int64_t columns, bool is_lowest) {
  MlirType t = ir_value_element(like);
  MlirValue scalar = is_lowest ? lowest(b, t) : ir_float(b, t, 0);
  return ir_fill(b, scalar, ir_empty_of(b, ir_tensor_of(t, 2, (int64_t[]){rows, columns})));
}

/* The result of a tile when all its keys were added. */
static MlirValue end(struct ir_builder *b, const struct writer *w, const struct block *tile, MlirValue const *carried) {
  const struct attention *a = w->a;
  struct members m = {.at = *tile};

  m.now[a->max] = carried[LARGEST];
  m.now[a->sum] = carried[SUM];
  for (int k = 0; k < a->n; k++)
    if (a->member[k].is_row && a->member[k].after_sum && k != a->sum)
      m.now[k] = take_member(b, w, &m, k);
  return rewrite_end(b, w, &m, carried[ACCUMULATED]);
}

void running_rows(struct ir_builder *b, const struct writer *w, int n, const struct block *tile, MlirValue *out) {
  const struct attention *a = w->a;
  const int64_t n_steps = w->p->keys / w->p->step, rest = w->p->keys % w->p->step;
  struct running r = {.w = w, .n = n, .tile = tile};
  MlirValue carried[ATTENTION_TILES_MAX * N_CARRIED];

  for (int t = 0; t < n; t++) {
    MlirValue *c = carried + t * N_CARRIED;
    c[LARGEST] = filled(b, ir_result(a->member[a->max].op), tile[t].rows, 1, true);
    c[SUM] = filled(b, ir_result(a->member[a->sum].op), tile[t].rows, 1, false);
    c[ACCUMULATED] = filled(b, ir_result(a->mixed.op), tile[t].rows, w->p->width, false);
  }
  ir_loop_nest(
      b, &(struct ir_loops){.n = 1, .extents = &n_steps, .n_carried = n * N_CARRIED, .body = key_loop, .user = &r},
      carried);
  if (rest)
    step(b, &r, ir_index(b, n_steps * w->p->step), rest, carried);
  for (int t = 0; t < n; t++)
    out[t] = end(b, w, &tile[t], carried + t * N_CARRIED);
}
