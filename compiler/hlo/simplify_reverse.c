/* hlo_simplify_reverse: an axis that is taken backwards, x[:, ::-1], which is traced as a gather by constant places.
 *
 *     2 to 4 places     concatenate(slice(x), slice(x)), which later passes read and write as rows
 *     short rows        reverse([before, n, within]), for which the engines copy rows; `before` lies across the partitions
 *     long runs         gather([before * n, within]), for which DMA moves runs by a list of their places
 *     long rows         both: gather takes parts of a row from the last one to the first, and reverse what is in each of them; what is
 *                       left of the row is reversed by itself and put in front
 *
 * The form is taken that needs the least time.
 */
#include "hlo/simplify.h"

#include "hlo/literal.h"
#include "hlo/rewrite.h"

enum {
  SLICES_MAX = 4,
  RUN_BYTES = 512,   /* a descriptor of DMA with fewer takes as long */
  PARTITIONS = 128,  /* rows of a tile */
  COLUMNS = 2048,    /* elements in a row of a tile */
  TILE = 2200,       /* cycles besides those of the elements */
  AWAY = 6000,       /* cycles, about, between a store to HBM and the end of the load of what was stored */
  PLACES_MAX = 65536 /* of a gather: they are a constant */
};

/* x seen from an axis: [before, n, within]. */
struct seen {
  struct hlo_instr *x;
  int64_t before, n, within;
};

static bool see(struct hlo_instr *x, int axis, struct seen *out) {
  *out = (struct seen){x, 1, x->shape.dims[axis], 1};
  for (int d = 0; d < x->shape.rank; d++)
    if (d != axis)
      *(d < axis ? &out->before : &out->within) *= x->shape.dims[d];
  return out->before > 0 && out->n > 1 && out->within > 0;
}

/* ---- what is taken backwards ------------------------------------------------------------------------------------- */

/* Returns the axis of a gather that takes its places from the last one to the first; -1 for any other gather. */
static int reversed_axis(const struct hlo_instr *i) {
  const int axis = hlo_simplify_gathered_axis(i);
  const struct hlo_instr *at = i->operands[1];

  if (axis < 0 || at->shape.dims[0] != i->operands[0]->shape.dims[axis])
    return -1;
  const int32_t *places = at->attrs->literal->data;
  for (int64_t k = 0; k < at->shape.dims[0]; k++)
    if (places[k] != at->shape.dims[0] - 1 - k)
      return -1;
  return axis;
}

/* ---- the forms --------------------------------------------------------------------------------------------------- */

static struct hlo_instr *in_slices(struct hlo_instr *i, struct hlo_instr *x, int axis) {
  struct hlo_instr *parts[SLICES_MAX];
  const int64_t n = x->shape.dims[axis];

  for (int64_t k = 0; k < n; k++)
    parts[k] = hlo_simplify_part(i, x, axis, (struct hlo_slice_dim){n - 1 - k, n - k, 1});
  return hlo_simplify_joined(i, axis, (int)n, parts);
}

static struct hlo_instr *reverse(struct hlo_instr *i, struct hlo_instr *x, int axis) {
  struct hlo_instr *r = hlo_simplify_new(i, HLO_REVERSE, x->shape, 1, &x);
  hlo_set_attrs(r, &(struct hlo_attrs){.dimensions = hlo_ints_dup(i->parent->module->arena, 1, (int64_t[]){axis})});
  return r;
}

/* Of how many rows a partition has one after the other. */
static int64_t rows_together(int64_t rows, int64_t row) {
  int64_t best = 1;
  for (int64_t g = 2; g * row <= COLUMNS && rows / g >= PARTITIONS; g++)
    if (rows % g == 0)
      best = g;
  return best;
}

/* x, of [before, n, within] elements, with each n of them backwards, as engines do that: the first dimension lies across the
 * partitions, and the others in their rows.  Returns i if it is that. */
static struct hlo_instr *reverse_rows(struct hlo_instr *i, struct hlo_instr *x, int64_t before, int64_t n,
                                      int64_t within) {
  const int64_t together = rows_together(before, n * within);
  int64_t dims[4];
  int rank = 0;

  dims[rank++] = before / together;
  if (together > 1)
    dims[rank++] = together;
  const int axis = rank;
  dims[rank++] = n;
  if (within > 1)
    dims[rank++] = within;
  struct hlo_instr *rows = hlo_simplify_reshaped(i, x, rank, dims);
  return rows == x && i->op == HLO_REVERSE && x == i->operands[0] ? i : reverse(i, rows, axis);
}

/* The rows of the matrix x, with each `n` of them from the last one to the first. */
static struct hlo_instr *gather(struct hlo_instr *i, struct hlo_instr *x, int64_t n) {
  struct arena *a = i->parent->module->arena;
  const int64_t rows = x->shape.dims[0];
  int32_t *places = arena_new_array(a, int32_t, (size_t)rows);
  struct hlo_literal *l = arena_new(a, struct hlo_literal);
  struct hlo_gather_dims *g = arena_new(a, struct hlo_gather_dims);

  for (int64_t k = 0; k < rows; k++)
    places[k] = (int32_t)(k - k % n + n - 1 - k % n);
  *l = (struct hlo_literal){hlo_shape_array(a, DT_I32, 1, &rows), places, (size_t)rows * sizeof *places};
  struct hlo_instr *at = hlo_simplify_new(i, HLO_CONSTANT, l->shape, 0, NULL);
  hlo_set_attrs(at, &(struct hlo_attrs){.literal = l});
  *g = (struct hlo_gather_dims){.offset_dims = hlo_ints_dup(a, 1, (int64_t[]){1}),
                                .collapsed_slice_dims = hlo_ints_dup(a, 1, (int64_t[]){0}),
                                .start_index_map = hlo_ints_dup(a, 1, (int64_t[]){0}),
                                .slice_sizes = hlo_ints_dup(a, 2, (int64_t[]){1, x->shape.dims[1]}),
                                .index_vector_dim = 1};
  struct hlo_instr *r = hlo_simplify_new(i, HLO_GATHER, x->shape, 2, (struct hlo_instr *[]){x, at});
  hlo_set_attrs(r, &(struct hlo_attrs){.gather = g});
  return r;
}

/* ---- rows -------------------------------------------------------------------------------------------------------- */

static int64_t parts(int64_t n, int64_t of) {
  return (n + of - 1) / of;
}

/* About how many cycles a transfer of so many rows to the chip takes, and what is done with them there. */
static int64_t cycles(int64_t rows, int64_t row) {
  return parts(rows, PARTITIONS) * parts(row, COLUMNS) * (TILE + 2 * (row < COLUMNS ? row : COLUMNS));
}

static int64_t reverse_cycles(int64_t rows, int64_t row) {
  const int64_t together = rows_together(rows, row);
  return cycles(rows / together, row * together);
}

static int64_t gather_cycles(int64_t rows, int64_t row, int64_t least) {
  return cycles(rows, row > least ? row : least);
}

/* Returns how many places of the axis make a row: all of them if reverse takes them as they are, one if a gather does. */
static int64_t best_row(const struct seen *v) {
  const int64_t least = RUN_BYTES / (int64_t)dtype_size(v->x->shape.dtype);
  int64_t best = v->n, cost = reverse_cycles(v->before, v->n * v->within);

  for (int64_t row = 1; (row == 1 || row * v->within <= COLUMNS) && 2 * row <= v->n; row++) {
    const int64_t rows = v->n / row, over = v->n % row, run = row * v->within;
    if (v->before * rows > PLACES_MAX || (over && row & (row - 1)))
      continue;
    const int64_t c = gather_cycles(v->before * rows, run, least) +
                      (row > 1 ? AWAY + reverse_cycles(v->before * rows, run) : 0) +
                      (over ? AWAY + reverse_cycles(v->before, over * v->within) : 0);
    if (c < cost) {
      cost = c;
      best = row;
    }
  }
  return best;
}

/* [before, n, within] as rows of so many places. */
static struct hlo_instr *in_rows(struct hlo_instr *i, const struct seen *v, int64_t row) {
  const int64_t whole = v->n - v->n % row, rows = whole / row, over = v->n - whole;
  struct hlo_instr *x = v->x, *front = NULL;

  if (over) {
    x = hlo_simplify_reshaped(i, x, 3, (int64_t[]){v->before, v->n, v->within});
    front =
        reverse_rows(i, hlo_simplify_part(i, x, 1, (struct hlo_slice_dim){whole, v->n, 1}), v->before, over, v->within);
    front = hlo_simplify_reshaped(i, front, 3, (int64_t[]){v->before, over, v->within});
    x = hlo_simplify_part(i, x, 1, (struct hlo_slice_dim){0, whole, 1});
  }
  x = gather(i, hlo_simplify_reshaped(i, x, 2, (int64_t[]){v->before * rows, row * v->within}), rows);
  if (row > 1)
    x = reverse_rows(i, x, v->before * rows, row, v->within);
  if (!over)
    return x;
  x = hlo_simplify_reshaped(i, x, 3, (int64_t[]){v->before, whole, v->within});
  return hlo_simplify_joined(i, 1, 2, (struct hlo_instr *[]){front, x});
}

/* ---- the rule ---------------------------------------------------------------------------------------------------- */

/* x backwards along the axis; NULL if that is best said as i says it. */
static struct hlo_instr *backwards(struct hlo_instr *i, struct hlo_instr *x, int axis) {
  const bool is_reverse = i->op == HLO_REVERSE;
  struct seen v;

  if (!see(x, axis, &v))
    return NULL;
  if (v.n <= SLICES_MAX)
    return in_slices(i, x, axis);
  if (hlo_rewrite_is_pinned(i)) /* its dimensions are the user's */
    return is_reverse || !axis || v.within > 1 ? NULL : reverse(i, x, axis);
  const int64_t row = best_row(&v);
  if (row == 1 && !is_reverse && !axis && x->shape.rank == 2)
    return NULL;
  if (row < v.n)
    return hlo_simplify_reshaped(i, in_rows(i, &v, row), x->shape.rank, x->shape.dims);
  struct hlo_instr *r = reverse_rows(i, x, v.before, v.n, v.within);
  return r == i ? NULL : hlo_simplify_reshaped(i, r, x->shape.rank, x->shape.dims);
}

struct hlo_instr *hlo_simplify_reverse(struct hlo_simplifier *s, struct hlo_instr *i) {
  struct hlo_instr *x = i->operands[0];

  if (i->op == HLO_GATHER) {
    const int axis = reversed_axis(i);
    return axis < 0 ? hlo_simplify_runs(i) : backwards(i, x, axis);
  }
  const struct hlo_ints dims = i->attrs->dimensions;
  if (x->op == HLO_REVERSE && hlo_ints_equal(x->attrs->dimensions, dims) && hlo_simplify_skips(s, i, 0, HLO_REVERSE))
    return x->operands[0];
  return dims.n == 1 ? backwards(i, x, (int)dims.v[0]) : NULL;
}

struct hlo_instr *hlo_simplify_turned(struct hlo_instr *i, struct hlo_instr *x, int axis) {
  if (x->shape.dims[axis] < 2)
    return x;
  struct hlo_instr *r = backwards(i, x, axis);
  if (r)
    return r;
  return axis || x->shape.rank != 2 || !x->shape.dims[1] ? reverse(i, x, axis) : gather(i, x, x->shape.dims[0]);
}

/* Reads x as the reverse of y along an axis, in the form of y or in rows that lie together; NULL if it is none. */
static struct hlo_instr *reversed_of(struct hlo_instr *x, int *axis) {
  const int last = x->shape.rank - 1;
  struct hlo_instr *r = x->op == HLO_RESHAPE ? x->operands[0] : x;

  if (hlo_rewrite_is_pinned(x) || r->op != HLO_REVERSE || hlo_rewrite_is_pinned(r) || r->attrs->dimensions.n != 1)
    return NULL;
  *axis = (int)r->attrs->dimensions.v[0];
  struct hlo_instr *y = r->operands[0];
  if (x == r)
    return y;
  if (last < 0 || *axis != r->shape.rank - 1 || r->shape.dims[*axis] != x->shape.dims[last])
    return NULL;
  *axis = last;
  if (hlo_shape_equal(&y->shape, &x->shape))
    return y;
  return y->op == HLO_RESHAPE && !hlo_rewrite_is_pinned(y) && hlo_shape_equal(&y->operands[0]->shape, &x->shape)
             ? y->operands[0]
             : NULL;
}

struct hlo_instr *hlo_simplify_slice_of_reverse(struct hlo_simplifier *s, struct hlo_instr *i) {
  struct hlo_instr *x = i->operands[0];
  int axis;
  struct hlo_instr *y = hlo_rewrite_is_pinned(i) ? NULL : reversed_of(x, &axis);

  if (!y)
    return NULL;
  const struct hlo_slice_dim *was = &i->attrs->slice[axis];
  const int64_t n = i->shape.dims[axis], all = x->shape.dims[axis];
  if (n < 1 || n == all)
    return NULL;
  struct hlo_slice_dim *part = arena_new_array(s->m->arena, struct hlo_slice_dim, (size_t)x->shape.rank);
  for (int d = 0; d < x->shape.rank; d++)
    part[d] = i->attrs->slice[d];
  part[axis].start = all - 1 - was->start - (n - 1) * (n > 1 ? was->stride : 1);
  part[axis].limit = all - was->start;
  for (struct hlo_instr *t = x; t != y && s->n_skipped < SKIPPED_MAX; t = t->operands[0])
    s->skipped[s->n_skipped++] = t;
  struct hlo_instr *r = hlo_simplify_new(i, HLO_SLICE, i->shape, 1, &y);
  hlo_set_attrs(r, &(struct hlo_attrs){.slice = part});
  if (n == 1)
    return r;
  hlo_rewrite_inherit_places(r, i);
  return reverse(i, r, axis);
}
