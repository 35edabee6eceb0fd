/* explain: the remarks of infer-layout: the tiles, the memory and the partition dimension of every value, with the limits
 * that they respect, other choices, and the knob that takes them.
 *
 * A knob is for the value of a Python expression.  An expression such as np.mean(x) becomes several operations; its value
 * is the result of the last one.  So a knob is offered for an operation only if no other operation of the same place
 * computes with its result.
 */
#include <inttypes.h>

#include "mlir-c/BuiltinTypes.h"

#include "hlo/hlo.h"
#include "ir/internal.h"
#include "passes/infer_layout/infer_layout.h"

/* What the remarks of one operation share. */
struct subject {
  struct infer *f;
  const struct tiled *t;
  const struct layout *l; /* complete */
  const struct src_loc *at;
  bool has_knob;    /* the value is that of a Python expression */
  bool is_reshaped; /* the expression reshapes the result, so that its dimensions may have other numbers */
  int n_batch;      /* 1 in the loop of a batched matrix product, whose tile_size has one more entry, else 0 */
};

/* ---- the expression ---------------------------------------------------------------------------------------------- */

static const struct src_loc *place_of(const struct infer *f, MlirOperation op) {
  return ir_first_place(f->run->arena, mlirOperationGetLocation(op));
}

/* Looks at the operations of the same place that use v, through views. */
static void look_at_uses(struct subject *s, MlirValue v) {
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation op = mlirOpOperandGetOwner(u);
    if (layout_is_annotation(op) || ir_is(op, "nkipy.fuse_op") || !src_loc_equal(place_of(s->f, op), s->at))
      continue;
    if (ir_is_of(op, "linalg."))
      s->has_knob = false;
    else if (ir_is(op, "tensor.expand_shape") || ir_is(op, "tensor.collapse_shape")) {
      s->is_reshaped = true;
      look_at_uses(s, mlirOperationGetResult(op, 0));
    }
  }
}

/* True if op is in the loop that decompose-batch-matmul made around it: the loop has the place of the product. */
static bool is_in_batch_loop(const struct subject *s) {
  MlirOperation parent = mlirOperationGetParentOperation(s->t->op);
  return s->t->s.kind == SK_MATMUL && ir_is(parent, "scf.for") && src_loc_equal(place_of(s->f, parent), s->at);
}

static struct subject subject_of(struct infer *f, const struct tiled *t, const struct layout *l) {
  struct subject s = {.f = f, .t = t, .l = l, .at = place_of(f, t->op)};
  s.has_knob = s.at != NULL && t->s.kind != SK_BROADCAST;
  if (!s.has_knob)
    return s;
  look_at_uses(&s, t->value);
  s.n_batch = is_in_batch_loop(&s);
  return s;
}

/* ---- tiles ------------------------------------------------------------------------------------------------------- */

static int64_t tiles_with(const struct tiled *t, int loop, int64_t size) {
  int64_t n = 1;
  for (int i = 0; i < t->s.n_loops; i++) {
    const int64_t tile = i == loop ? size : t->at.loop[i];
    n *= tile > 0 ? (t->s.extents[i] + tile - 1) / tile : 1;
  }
  return n;
}

/* The tile_size of tile_op with another size in one loop: "[1, 128, 512, 128]" in a batch. */
static const char *tile_text(const struct subject *s, int loop, int64_t size) {
  const char *text = s->n_batch ? "[1" : "[";
  for (int i = 0; i < s->t->s.n_loops; i++)
    text = arena_printf(s->f->run->arena, "%s%s%" PRId64, text, i || s->n_batch ? ", " : "",
                        i == loop ? size : s->l->loop[i]);
  return arena_printf(s->f->run->arena, "%s]", text);
}

/* Offers another size for one loop. */
static void offer_tile(const struct subject *s, struct remark *r, int loop, int64_t size, const char *reason) {
  const char *text = tile_text(s, loop, size);
  const int64_t n = tiles_with(s->t, loop, size), now = tiles_with(s->t, -1, 0);
  const char *cost =
      arena_printf(s->f->run->arena, "%" PRId64 " tile%s instead of %" PRId64, n, n == 1 ? "" : "s", now);
  remark_reject_for(r, text, s->has_knob ? text : NULL, cost, reason);
}

/* The loop over the free dimension: the longest tile of a parallel loop other than the partitions'; -1 if none. */
static int free_loop(const struct subject *s) {
  int best = -1;
  for (int i = 0; i < s->t->s.n_loops; i++)
    if (i != s->t->part && (best < 0 || s->l->loop[i] >= s->l->loop[best]))
      best = i;
  return best;
}

static void explain_matmul_tile(const struct subject *s, struct remark *r) {
  const int m = s->t->s.n_loops - 3, n = m + 1;
  const int64_t *tile = s->l->loop, rows = tile[m], columns = tile[n];

  remark_limit(r, "partitions", "rows of the product", rows, NISA_PARTITIONS);
  remark_limit(r, "PSUM bank", "f32 columns of the product", columns, NISA_BANK_F32);
  if (columns > 1)
    offer_tile(s, r, n, (columns + 1) / 2, "a product would fill less of a PSUM bank; its buffers would be smaller");
  if (rows > 1)
    offer_tile(s, r, m, (rows + 1) / 2, "partitions of the product would stay empty");
  if (columns < NISA_BANK_F32 && columns < s->t->s.extents[n]) {
    const int64_t most = s->t->s.extents[n] < 2 * columns ? s->t->s.extents[n] : 2 * columns;
    if (most <= NISA_BANK_F32)
      offer_tile(s, r, n, most, "a product would fill more of a PSUM bank; its buffers would be larger");
  } else if (columns < s->t->s.extents[n]) {
    remark_reject(r, tile_text(s, n, 2 * columns), "a PSUM bank holds 512 numbers of f32");
  }
}

static void explain_vector_tile(const struct subject *s, struct remark *r) {
  const int part = s->t->part, run = free_loop(s);
  const int64_t *tile = s->l->loop, *extents = s->t->s.extents;

  if (part >= 0)
    remark_limit(r, "partitions", "partitions", tile[part], NISA_PARTITIONS);
  if (run >= 0) {
    const int64_t longest = s->t->s.kind == SK_TRANSPOSE ? NISA_PARTITIONS : FREE_TILE_MAX;
    remark_limit(r, "free size", "elements per partition", tile[run], longest);
    if (tile[run] > 1)
      offer_tile(s, r, run, (tile[run] + 1) / 2, "more instructions, with half of the work in each; smaller buffers");
    if (tile[run] < extents[run] && s->t->s.kind != SK_TRANSPOSE)
      offer_tile(s, r, run, extents[run] < 2 * tile[run] ? extents[run] : 2 * tile[run],
                 "its buffers would take more of SBUF");
  }
  if (part >= 0 && tile[part] > 1)
    offer_tile(s, r, part, (tile[part] + 1) / 2, "lanes of the engines would be idle");
  if (part >= 0 && tile[part] == NISA_PARTITIONS && extents[part] > NISA_PARTITIONS)
    remark_reject(r, tile_text(s, part, 2 * tile[part]), "there are 128 partitions");
}

static void explain_tile(const struct subject *s, bool is_given) {
  struct arena *a = s->f->run->arena;
  const struct tiled *t = s->t;
  struct remark *r = pass_remark(s->f->run, t->op, RULE_TILE_SIZE, "TILE=%s%s",
                                 layout_ints(a, s->l->n_loop, s->l->loop), is_given ? " (as given)" : "");
  int dims[STRUCTURED_LOOPS_MAX + 1], n = 0;

  if (s->has_knob)
    remark_knob(r, "tile_op", "tile_size", tile_text(s, -1, 0));
  if (s->n_batch)
    dims[n++] = 0;
  for (int d = 0; d < t->rank; d++) {
    const int loop = infer_result_loop(t, d);
    dims[n++] = loop < 0 ? -1 : loop + s->n_batch;
  }
  if (s->has_knob && !s->is_reshaped)
    remark_knob_dims(r, n, dims);
  if (t->s.kind == SK_MATMUL)
    explain_matmul_tile(s, r);
  else
    explain_vector_tile(s, r);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static const char *quoted_space(const struct subject *s, int space) {
  return arena_printf(s->f->run->arena, "\"%s\"", hlo_mem_space_name((enum mem_space)space));
}

static int64_t bytes_of(const struct tiled *t) {
  int64_t dims[STRUCTURED_LOOPS_MAX];
  int64_t bytes = nisa_element_bytes(mlirShapedTypeGetElementType(mlirValueGetType(t->value)));
  const int rank = ir_shape(t->value, STRUCTURED_LOOPS_MAX, dims);
  for (int d = 0; d < rank; d++)
    bytes *= dims[d];
  return bytes;
}

static void explain_space(const struct subject *s) {
  struct arena *a = s->f->run->arena;
  const struct tiled *t = s->t;
  const int64_t sbuf = nisa_machine(s->f->run->target)->sbuf_bytes, bytes = infer_partition_bytes(s->f, t);
  const bool has_knob = s->has_knob && !t->is_space_fixed && !s->n_batch;
  struct remark *r = pass_remark(s->f->run, t->op, RULE_VALUE_MEMORY, "in %s%s%s%s", layout_space_name(t->at.space),
                                 t->is_user_space ? " (as given)" : "", t->why_space && !t->is_user_space ? ": " : "",
                                 t->why_space && !t->is_user_space ? t->why_space : "");

  remark_limit(r, "half of SBUF", "bytes per partition", bytes, sbuf / 2);
  if (has_knob)
    remark_knob(r, "layout", "mem_space", quoted_space(s, t->at.space));
  if (t->at.space == MEM_SBUF)
    remark_reject_for(r, "HBM", has_knob ? "\"Hbm\"" : NULL,
                      arena_printf(a, "%" PRId64 " bytes stored and loaded again", bytes_of(t)),
                      "its readers would load it from there, tile by tile");
  else if (t->is_space_fixed)
    remark_reject(r, "SBUF", t->why_space);
  else if (bytes > sbuf / 2)
    remark_reject(r, "SBUF", "it would leave no room for its readers");
  else
    remark_reject_for(r, "SBUF", has_knob ? "\"Sbuf\"" : NULL, NULL,
                      t->is_user_space ? "a knob asks for other memory"
                                       : "its readers do not take it tile by tile and would need copies");
}

/* ---- partitions -------------------------------------------------------------------------------------------------- */

/* The number of tiles with `part` on the partitions: limit_vector in tiles.c says how long the others are. */
static int64_t tiles_across(const struct tiled *t, int part) {
  const int last = t->s.n_loops - 1 == part ? part - 1 : t->s.n_loops - 1;
  const int64_t run = part > last ? NISA_PARTITIONS : FREE_TILE_MAX;
  int64_t n = 1;
  for (int i = 0; i < t->s.n_loops; i++) {
    const int64_t tile = i == part ? NISA_PARTITIONS : i == last ? run : 1;
    n *= (t->s.extents[i] + tile - 1) / tile;
  }
  return n;
}

static void explain_partition(const struct subject *s) {
  struct arena *a = s->f->run->arena;
  const struct tiled *t = s->t;
  const int now = s->l->partition_dim;

  if (t->rank < 2 || t->part < 0)
    return;
  struct remark *r = pass_remark(s->f->run, t->op, RULE_PARTITION_DIM, "dimension %d across the partitions", now);
  remark_limit(r, "partitions", "partitions", s->l->loop[t->part], NISA_PARTITIONS);
  const bool has_knob = s->has_knob && !s->is_reshaped && infer_may_turn(t, t->part);
  if (has_knob)
    remark_knob(r, "layout", "partition_dim", arena_printf(a, "%d", now));
  for (int d = 0; d < t->rank; d++) {
    const int loop = infer_result_loop(t, d);
    if (d == now || loop < 0 || t->s.extents[loop] < 2)
      continue;
    const char *choice = arena_printf(a, "dimension %d", d), *value = arena_printf(a, "%d", d);
    if (t->s.kind == SK_MATMUL)
      remark_reject(r, choice, "the tensor engine leaves the rows of a product on the partitions");
    else if (infer_may_turn(t, loop))
      remark_reject_for(r, choice, has_knob ? value : NULL, arena_printf(a, "%" PRId64 " tiles", tiles_across(t, loop)),
                        "what lies across the partitions in its operands and readers would be transposed");
    else
      remark_reject(r, choice, "this operation leaves the order of dimensions as it is");
  }
}

void infer_explain(struct infer *f, struct tiled *t, const struct layout *l, bool is_given) {
  if (!f->run->remarks)
    return;
  const struct subject s = subject_of(f, t, l);
  explain_tile(&s, is_given);
  explain_space(&s);
  explain_partition(&s);
}
