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
#include "passes/lib/price.h"

/* What the remarks of one operation share. */
struct subject {
  struct infer *f;
  const struct tiled *t;
  const struct layout *l; /* complete */
  const struct src_loc *at;
  bool has_knob;                  /* the value is that of a Python expression */
  MlirValue value;                /* that value: the result, or a reshape of it by the same expression */
  int rank;                       /* of that value; -1 if its dimensions are not those of the result */
  int loop[STRUCTURED_LOOPS_MAX]; /* the loop over each of its dimensions; -1 for one of length 1 */
  bool is_batch;                  /* in the loop of a batched matrix product, whose tile_size has one more entry */
};

/* ---- the expression ---------------------------------------------------------------------------------------------- */

static const struct src_loc *place_of(const struct infer *f, MlirOperation op) {
  return ir_first_place(f->run->arena, mlirOperationGetLocation(op));
}

/* Looks at the operations of the same place that use v, through reshapes. */
static void look_at_uses(struct subject *s, MlirValue v) {
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation op = mlirOpOperandGetOwner(u);
    if (layout_is_annotation(op) || ir_is(op, "nkipy.fuse_op") || !src_loc_equal(place_of(s->f, op), s->at))
      continue;
    if (ir_is_of(op, "linalg."))
      s->has_knob = false;
    else if (ir_is(op, "tensor.expand_shape") || ir_is(op, "tensor.collapse_shape")) {
      s->value = mlirOperationGetResult(op, 0);
      look_at_uses(s, s->value);
    }
  }
}

/* Finds the loop over each dimension of the expression's value.  A reshape may only add and remove dimensions of
 * length 1. */
static void match_dims(struct subject *s) {
  int64_t dims[STRUCTURED_LOOPS_MAX], own[STRUCTURED_LOOPS_MAX];
  const int rank = ir_shape(s->value, STRUCTURED_LOOPS_MAX, dims), n = ir_shape(s->t->value, STRUCTURED_LOOPS_MAX, own);
  int from = 0;

  s->rank = -1;
  for (int d = 0; d < rank; d++) {
    s->loop[d] = -1;
    if (rank == n) {
      s->loop[d] = infer_result_loop(s->t, d);
      if (own[d] != dims[d])
        return;
      continue;
    }
    if (dims[d] == 1)
      continue;
    while (from < n && own[from] == 1)
      from++;
    if (from == n || own[from] != dims[d])
      return;
    s->loop[d] = infer_result_loop(s->t, from++);
  }
  while (from < n && own[from] == 1)
    from++;
  if (rank == n || from == n)
    s->rank = rank;
}

/* True if op is in the loop that decompose-batch-matmul made around it: the loop has the place of the product. */
static bool is_in_batch_loop(const struct subject *s) {
  MlirOperation parent = mlirOperationGetParentOperation(s->t->op);
  return s->t->s.kind == SK_MATMUL && ir_is(parent, "scf.for") && src_loc_equal(place_of(s->f, parent), s->at);
}

static struct subject subject_of(struct infer *f, const struct tiled *t, const struct layout *l) {
  struct subject s = {.f = f, .t = t, .l = l, .at = place_of(f, t->op), .value = t->value};
  const bool is_scalar = t->s.kind == SK_REDUCTION && (t->part < 0 || t->s.extents[t->part] == 1);
  s.has_knob = s.at != NULL && t->s.kind != SK_BROADCAST && !is_scalar; /* a scalar is reduced in loops of our own */
  if (s.has_knob)
    look_at_uses(&s, t->value);
  match_dims(&s);
  s.is_batch = s.has_knob && is_in_batch_loop(&s);
  return s;
}

/* True if tile_op of the value has an entry for each of its dimensions, and not for each loop. */
static bool has_entry_per_dim(const struct subject *s) {
  return structured_is_elementwise(&s->t->s) || s->t->s.kind == SK_TRANSPOSE;
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
  struct arena *a = s->f->run->arena;
  const bool by_dim = has_entry_per_dim(s) && s->rank >= 0;
  const char *text = s->is_batch ? "[1" : "[";
  const int n = by_dim ? s->rank : s->t->s.n_loops;

  for (int k = 0; k < n; k++) {
    const int i = by_dim ? s->loop[k] : k;
    const int64_t tile = i < 0 ? 1 : i == loop ? size : s->l->loop[i];
    text = arena_printf(a, "%s%s%" PRId64, text, k || s->is_batch ? ", " : "", tile);
  }
  return arena_printf(a, "%s]", text);
}

static bool has_tile_knob(const struct subject *s) {
  return s->has_knob && (s->rank >= 0 || !has_entry_per_dim(s));
}

static const char *tiles_text(const struct subject *s, int64_t n) {
  return price_count(s->f->run->arena, n, "tile");
}

/* Offers another size for one loop. */
static void offer_tile(const struct subject *s, struct remark *r, int loop, int64_t size, const char *reason) {
  const char *text = tile_text(s, loop, size);
  remark_reject_for(r, text, has_tile_knob(s) ? text : NULL, tiles_text(s, tiles_with(s->t, loop, size)), reason);
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

/* Says which entry of tile_size is for which dimension of the value, if that is known. */
static void tell_dims(const struct subject *s, struct remark *r) {
  int dims[STRUCTURED_LOOPS_MAX + 1], n = 0;

  if (s->rank < 0)
    return;
  if (s->is_batch)
    dims[n++] = 0;
  for (int d = 0; d < s->rank; d++)
    dims[n++] = has_entry_per_dim(s) ? d : s->loop[d] < 0 ? -1 : s->loop[d] + s->is_batch;
  remark_knob_dims(r, n, dims);
}

static void explain_tile(const struct subject *s, bool is_given) {
  struct arena *a = s->f->run->arena;
  const struct tiled *t = s->t;
  struct remark *r = pass_remark(s->f->run, t->op, RULE_TILE_SIZE, "TILE=%s%s",
                                 layout_ints(a, s->l->n_loop, s->l->loop), is_given ? " (as given)" : "");

  remark_cost(r, "%s", tiles_text(s, tiles_with(t, -1, 0)));
  if (has_tile_knob(s)) {
    remark_knob(r, "tile_op", "tile_size", tile_text(s, -1, 0));
    tell_dims(s, r);
  }
  if (t->s.kind == SK_MATMUL)
    explain_matmul_tile(s, r);
  else
    explain_vector_tile(s, r);
  if (r && !r->rejected)
    remark_forced(r, "One element is one tile.");
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

static const char *quoted_space(const struct subject *s, int space) {
  return arena_printf(s->f->run->arena, "\"%s\"", hlo_mem_space_name((enum mem_space)space));
}

static void explain_space(const struct subject *s) {
  struct arena *a = s->f->run->arena;
  const struct tiled *t = s->t;
  const int64_t sbuf = nisa_machine(s->f->run->target)->sbuf_bytes, bytes = infer_partition_bytes(s->f, t);
  const bool has_knob = s->has_knob && !t->is_space_fixed && !s->is_batch;
  struct remark *r = pass_remark(s->f->run, t->op, RULE_VALUE_MEMORY, "in %s%s%s%s", layout_space_name(t->at.space),
                                 t->is_user_space ? " (as given)" : "", t->why_space && !t->is_user_space ? ": " : "",
                                 t->why_space && !t->is_user_space ? t->why_space : "");

  const enum target target = s->f->run->target;
  const struct price_shape shape = price_shape_of(t->value);
  const double moved = price_transfer_ns(target, price_bytes(&shape), shape.columns * shape.element_bytes);
  price_chosen(r, t->at.space == MEM_SBUF ? 0 : t->at.space == MEM_SHARED_HBM ? moved : 2 * moved);
  remark_limit(r, "half of SBUF", "bytes per partition", bytes, sbuf / 2);
  if (has_knob)
    remark_knob(r, "layout", "mem_space", quoted_space(s, t->at.space));
  if (t->at.space == MEM_SBUF)
    remark_reject_for(r, "HBM", has_knob ? "\"Hbm\"" : NULL, price_text(a, 2 * moved),
                      "its readers would load it from there, tile by tile");
  else if (t->is_space_fixed)
    price_instead(r, "SBUF", 0, t->why_space ? arena_printf(a, "it is %s", t->why_space) : "its memory is fixed");
  else if (bytes > sbuf / 2)
    price_instead(r, "SBUF", 0, "it would leave no room for its readers");
  else
    remark_reject_for(r, "SBUF", has_knob ? "\"Sbuf\"" : NULL, price_text(a, t->is_user_space ? 0 : moved),
                      t->is_user_space ? "a knob asks for other memory"
                                       : "its readers do not take it tile by tile and would need copies, which would "
                                         "take room in SBUF besides");
}

/* ---- partitions -------------------------------------------------------------------------------------------------- */

/* The dimension of the expression's value that the loop goes over; -1 if that is not known. */
static int dim_of_loop(const struct subject *s, int loop) {
  for (int d = 0; d < s->rank; d++)
    if (s->loop[d] == loop)
      return d;
  return -1;
}

/* What the operation takes with this loop across the partitions: of a product the time, of others the tiles. */
static const char *cost_across(const struct subject *s, int loop) {
  struct arena *a = s->f->run->arena;
  const struct tiled *t = s->t;
  if (t->s.kind != SK_MATMUL)
    return price_count(a, (int64_t)infer_steps(t, loop), "tile");
  const int m = t->s.n_loops - 3;
  const struct price_shape shape = price_shape_of(t->value);
  const int64_t other = t->s.extents[loop == m ? m + 1 : m];
  return price_text(
      a, price_product_ns(s->f->run->target, t->s.extents[loop], t->s.extents[m + 2], other, shape.element_bytes));
}

static void explain_partition(const struct subject *s) {
  struct arena *a = s->f->run->arena;
  const struct tiled *t = s->t;
  const int now = s->l->partition_dim;

  if (t->rank < 2 || t->part < 0)
    return;
  struct remark *r = pass_remark(s->f->run, t->op, RULE_PARTITION_DIM, "dimension %d across the partitions", now);
  const int64_t rows = s->l->loop[t->part];
  remark_cost(r, "%s", cost_across(s, t->part));
  remark_limit(r, "partitions", "partitions", rows < NISA_PARTITIONS ? rows : NISA_PARTITIONS, NISA_PARTITIONS);
  const int present = dim_of_loop(s, t->part);
  const bool has_knob = s->has_knob && s->rank >= 0 && infer_may_turn(t, t->part) && present >= 0;
  if (has_knob)
    remark_knob(r, "layout", "partition_dim", arena_printf(a, "%d", present));
  for (int d = 0; d < t->rank; d++) {
    const int loop = infer_result_loop(t, d);
    const bool is_last = d == t->rank - 1 - (now == t->rank - 1) && r && !r->rejected;
    if (d == now || loop < 0 || (t->s.extents[loop] < 2 && !is_last))
      continue;
    const int of_value = dim_of_loop(s, loop);
    const char *choice = arena_printf(a, "dimension %d", d), *cost = cost_across(s, loop);
    if (t->s.kind == SK_MATMUL)
      remark_reject_for(r, choice, NULL, cost, "the tensor engine leaves the rows of a product on the partitions");
    else if (!infer_may_turn(t, loop))
      remark_reject_for(r, choice, NULL, cost, "this operation leaves the order of dimensions as it is");
    else if (infer_given_tile(s->f, t, loop) > NISA_PARTITIONS)
      remark_reject_for(r, choice, NULL, cost, "a knob asks for longer tiles there than there are partitions");
    else
      remark_reject_for(r, choice, has_knob && of_value >= 0 ? arena_printf(a, "%d", of_value) : NULL, cost,
                        "what lies across the partitions in its operands and readers would be transposed");
  }
  if (r && !r->rejected)
    remark_forced(r, "No other dimension is that of a loop.");
}

/* Why an operation with one row in a tile has no more. */
static const char *why_one_row(const struct infer *f, const struct tiled *t) {
  int64_t n = 1, n_kept = 1;

  for (int i = 0; i < t->s.n_loops; i++) {
    n *= t->s.extents[i];
    n_kept *= t->s.reduction[i] ? 1 : t->s.extents[i];
  }
  if (n == 1)
    return "it has one element";
  if (t->s.extents[t->part] > 1)
    return infer_given_tile(f, t, t->part) ? "a knob asks for tiles of one row"
                                           : "an operation that shares its tiles takes one row at a time";
  if (t->s.kind == SK_MATMUL)
    return "the left operand has one row";
  return n_kept == 1 ? "all of its elements are reduced to one" : "the value is a row, and a row lies in one partition";
}

/* Says that 127 lanes are idle. */
static void explain_one_row(const struct subject *s) {
  const struct tiled *t = s->t;

  if (t->part < 0 || s->l->loop[t->part] != 1 || t->s.kind == SK_TRANSPOSE || t->s.kind == SK_BROADCAST)
    return;
  struct remark *r = pass_remark(s->f->run, t->op, RULE_ONE_PARTITION, "runs on 1 of %d partitions: %s",
                                 NISA_PARTITIONS, why_one_row(s->f, t));
  remark_limit(r, "partitions", "partitions", 1, NISA_PARTITIONS);
  const enum target target = s->f->run->target;
  const struct price_shape shape = price_shape_of(t->value);
  const int64_t rows = t->s.extents[t->part];
  int64_t columns = 1;
  for (int i = 0; i < t->s.n_loops; i++)
    if (i != t->part && __builtin_mul_overflow(columns, t->s.extents[i], &columns))
      columns = INT32_MAX;
  if (t->s.kind == SK_MATMUL) {
    const int64_t n = t->s.extents[t->s.n_loops - 2], k = t->s.extents[t->s.n_loops - 1];
    const int64_t row = (n + NISA_PARTITIONS - 1) / NISA_PARTITIONS * shape.element_bytes;
    price_chosen(r, price_product_ns(target, rows, k, n, shape.element_bytes));
    price_instead(r, "more partitions",
                  price_product_ns(target, n, k, rows, shape.element_bytes) +
                      2 * price_transfer_ns(target, price_bytes(&shape), row),
                  "the elements would be moved there and back by DMA");
    return;
  }
  price_chosen(r, price_instructions_ns(target, SIM_COST_VECTOR_SCALAR, rows, columns));
  if (rows > 1) {
    price_instead(r, "128 rows in a tile", price_rows_ns(target, SIM_COST_VECTOR_SCALAR, rows, columns),
                  why_one_row(s->f, t));
    return;
  }
  const int64_t each = (columns + NISA_PARTITIONS - 1) / NISA_PARTITIONS * shape.element_bytes;
  price_instead(r, "more partitions",
                2 * price_transfer_ns(target, columns * shape.element_bytes, each) +
                    price_rows_ns(target, SIM_COST_VECTOR_SCALAR, NISA_PARTITIONS, each / shape.element_bytes),
                "the elements would be moved there and back by DMA");
}

void infer_explain(struct infer *f, struct tiled *t, const struct layout *l, bool is_given) {
  if (!f->run->remarks)
    return;
  const struct subject s = subject_of(f, t, l);
  explain_tile(&s, is_given);
  explain_space(&s);
  explain_partition(&s);
  explain_one_row(&s);
}
