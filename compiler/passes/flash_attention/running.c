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
  struct block at; /* its rows */
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

/* One block of keys. */
static void step(struct ir_builder *b, const struct writer *w, const struct block *at, MlirValue *carried) {
  const struct attention *a = w->a;
  struct members m = {.at = *at};
  MlirValue scale = {NULL};

  m.scores = rewrite_scores(b, w, at);
  for (int k = 0; k < a->n; k++) {
    const struct member *x = &a->member[k];
    if (x->after_sum && k != a->sum && !x->is_dropped)
      continue;
    m.now[k] = x->is_dropped ? take_value(w, &m, a->weights) : take_member(b, w, &m, k);
    if (k != a->max)
      continue;
    m.now[k] = take_binary(b, "arith.maximumf", m.now[k], carried[LARGEST]);
    scale = scale_of(b, carried[LARGEST], m.now[k], at->rows);
  }
  MlirValue part = rewrite_mixed(b, w, &m);
  m.now[a->sum] = take_binary(b, "arith.addf", scaled(b, carried[SUM], scale), m.now[a->sum]);
  carried[ACCUMULATED] = take_binary(b, "arith.addf", scaled(b, carried[ACCUMULATED], scale), part);
  carried[LARGEST] = m.now[a->max];
  carried[SUM] = m.now[a->sum];
}

static void key_loop(struct ir_builder *b, MlirValue const *at, MlirValue *carried, void *user) {
  const struct running *r = user;
  struct block block = r->at;
  block.keys = r->w->p->step;
  block.key = ir_binary(b, "arith.muli", at[0], ir_index(b, block.keys));
  step(b, r->w, &block, carried);
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

MlirValue running_rows(struct ir_builder *b, const struct writer *w, const struct block *at) {
  const struct attention *a = w->a;
  const int64_t n = at->keys / w->p->step, rest = at->keys % w->p->step;
  struct running r = {.w = w, .at = *at};
  MlirValue carried[N_CARRIED] = {
      [LARGEST] = filled(b, ir_result(a->member[a->max].op), at->rows, 1, true),
      [SUM] = filled(b, ir_result(a->member[a->sum].op), at->rows, 1, false),
      [ACCUMULATED] = filled(b, ir_result(a->mixed.op), at->rows, w->p->width, false),
  };
  ir_loop_nest(b, &(struct ir_loops){.n = 1, .extents = &n, .n_carried = N_CARRIED, .body = key_loop, .user = &r},
               carried);
  if (rest) {
    struct block last = *at;
    last.key = ir_index(b, n * w->p->step);
    last.keys = rest;
    step(b, w, &last, carried);
  }
  struct members m = {.at = *at};
  m.now[a->max] = carried[LARGEST];
  m.now[a->sum] = carried[SUM];
  for (int k = 0; k < a->n; k++)
    if (a->member[k].is_row && a->member[k].after_sum && k != a->sum)
      m.now[k] = take_member(b, w, &m, k);
  return rewrite_end(b, w, &m, carried[ACCUMULATED]);
}
