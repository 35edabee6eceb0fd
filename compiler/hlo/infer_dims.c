/* infer_dims: shape rules of dot, gather and scatter (XLA's operation semantics).
 *
 * gather and scatter index an operand with vectors.  Dimension index_vector_dim of `indices` runs along a vector; if it
 * equals the rank, every element is a vector of length one.  The other dimensions of `indices` are batch dimensions.
 */
#include "hlo/infer.h"

#define REFUSE(...) return fail(err, ST_INPUT, __VA_ARGS__)
#define TEXT(x) hlo_shape_text(a, &(x)->shape)
#define INTS(v) hlo_infer_ints_text(a, v)

/* ---- dot --------------------------------------------------------------------------------------------- */

static enum status check_dot_side(struct arena *a, const char *side, const struct hlo_instr *x, struct hlo_ints batch,
                                  struct hlo_ints contracting, struct error *err) {
  int64_t all[2 * HLO_RANK_MAX];
  int n = 0;
  bool fits = batch.n + contracting.n <= x->shape.rank;
  for (int k = 0; fits && k < batch.n; k++)
    all[n++] = batch.v[k];
  for (int k = 0; fits && k < contracting.n; k++)
    all[n++] = contracting.v[k];
  if (!fits || !hlo_infer_is_distinct_below((struct hlo_ints){n, all}, x->shape.rank))
    REFUSE("dot: batch %s and contracting %s are not different dimensions of %s %s", INTS(batch), INTS(contracting),
           side, TEXT(x));
  return ST_OK;
}

static enum status check_dot_pairs(struct arena *a, const char *what, const struct hlo_instr *l, struct hlo_ints lv,
                                   const struct hlo_instr *r, struct hlo_ints rv, struct error *err) {
  if (lv.n != rv.n)
    REFUSE("dot: lhs %s and rhs %s %s %d and %d dimensions", TEXT(l), TEXT(r), what, lv.n, rv.n);
  for (int k = 0; k < lv.n; k++) {
    int64_t x = l->shape.dims[lv.v[k]], y = r->shape.dims[rv.v[k]];
    if (x != y)
      REFUSE("dot: lhs %s and rhs %s %s dimensions of size %lld and %lld", TEXT(l), TEXT(r), what, (long long)x,
             (long long)y);
  }
  return ST_OK;
}

static int add_free_dims(const struct hlo_shape *s, struct hlo_ints batch, struct hlo_ints contracting, int64_t *dims,
                         int n) {
  for (int k = 0; k < s->rank; k++)
    if (!hlo_infer_contains(batch, k) && !hlo_infer_contains(contracting, k))
      dims[n++] = s->dims[k];
  return n;
}

enum status hlo_infer_dot(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out, struct error *err) {
  const struct hlo_instr *l = i->operands[0], *r = i->operands[1];
  const struct hlo_dot_dims *d = i->attrs->dot;
  int64_t dims[2 * HLO_RANK_MAX];
  enum status st;
  int n = 0;

  if (!d)
    REFUSE("dot: no dimension numbers");
  if ((st = check_dot_side(a, "lhs", l, d->lhs_batch, d->lhs_contracting, err)) ||
      (st = check_dot_side(a, "rhs", r, d->rhs_batch, d->rhs_contracting, err)) ||
      (st = check_dot_pairs(a, "have batch", l, d->lhs_batch, r, d->rhs_batch, err)) ||
      (st = check_dot_pairs(a, "contract", l, d->lhs_contracting, r, d->rhs_contracting, err)))
    return st;
  enum dtype t = i->shape.dtype;
  for (int k = 0; k < 2; k++) {
    enum dtype x = i->operands[k]->shape.dtype;
    if (dtype_kind(x) != dtype_kind(t) || dtype_size(x) > dtype_size(t))
      REFUSE("dot: operands %s and %s do not add up to %s", TEXT(l), TEXT(r), dtype_hlo_name(t));
  }
  for (int k = 0; k < d->lhs_batch.n; k++)
    dims[n++] = l->shape.dims[d->lhs_batch.v[k]];
  n = add_free_dims(&l->shape, d->lhs_batch, d->lhs_contracting, dims, n);
  n = add_free_dims(&r->shape, d->rhs_batch, d->rhs_contracting, dims, n);
  if (n > HLO_RANK_MAX)
    REFUSE("dot: the result has %d dimensions; at most %d are possible", n, HLO_RANK_MAX);
  *out = hlo_shape_array(a, t, n, dims);
  return ST_OK;
}

/* Batching dimensions of the operand and of the indices, pairwise of one size. */
static enum status check_batching(struct arena *a, const char *op, const struct hlo_instr *x, struct hlo_ints xs,
                                  const struct hlo_instr *idx, struct hlo_ints is, int64_t vector_dim,
                                  struct error *err) {
  bool fits = xs.n == is.n && hlo_infer_is_distinct_below(is, idx->shape.rank) && !hlo_infer_contains(is, vector_dim);
  for (int k = 0; fits && k < xs.n; k++)
    fits = x->shape.dims[xs.v[k]] == idx->shape.dims[is.v[k]];
  if (!fits)
    REFUSE("%s: batching dimensions %s of %s do not fit %s of indices %s", op, INTS(xs), TEXT(x), INTS(is), TEXT(idx));
  return ST_OK;
}

/* ---- gather ------------------------------------------------------------------------------------------ */

/* The batch dimensions of indices, and the length of its vectors. */
static enum status split_indices(struct arena *a, const char *op, const struct hlo_instr *idx, int64_t vector_dim,
                                 int *n_batch, int64_t *batch, int64_t *vector, struct error *err) {
  if (!dtype_is_int(idx->shape.dtype))
    REFUSE("%s: indices %s must be integers", op, TEXT(idx));
  if (vector_dim < 0 || vector_dim > idx->shape.rank)
    REFUSE("%s: index_vector_dim %lld does not exist in indices %s", op, (long long)vector_dim, TEXT(idx));
  *vector = 1;
  *n_batch = 0;
  for (int k = 0; k < idx->shape.rank; k++)
    if (k == vector_dim)
      *vector = idx->shape.dims[k];
    else
      batch[(*n_batch)++] = idx->shape.dims[k];
  return ST_OK;
}

static enum status check_gather_sizes(struct arena *a, const struct hlo_instr *x, const struct hlo_gather_dims *g,
                                      struct error *err) {
  if (g->slice_sizes.n != x->shape.rank)
    REFUSE("gather: %s needs %d slice sizes, not %s", TEXT(x), x->shape.rank, INTS(g->slice_sizes));
  if (!hlo_infer_is_distinct_below(g->collapsed_slice_dims, x->shape.rank) ||
      !hlo_infer_is_ascending(g->collapsed_slice_dims))
    REFUSE("gather: collapsed_slice_dims %s must ascend and exist in %s", INTS(g->collapsed_slice_dims), TEXT(x));
  if (!hlo_infer_is_distinct_below(g->operand_batching_dims, x->shape.rank) ||
      !hlo_infer_is_ascending(g->operand_batching_dims))
    REFUSE("gather: operand_batching_dims %s must ascend and exist in %s", INTS(g->operand_batching_dims), TEXT(x));
  if (!hlo_infer_is_distinct_below(g->start_index_map, x->shape.rank))
    REFUSE("gather: start_index_map %s are not different dimensions of %s", INTS(g->start_index_map), TEXT(x));
  for (int k = 0; k < x->shape.rank; k++) {
    int64_t size = g->slice_sizes.v[k];
    if (size < 0 || size > x->shape.dims[k])
      REFUSE("gather: slice sizes %s do not fit %s", INTS(g->slice_sizes), TEXT(x));
    if (hlo_infer_contains(g->operand_batching_dims, k) &&
        (hlo_infer_contains(g->collapsed_slice_dims, k) || hlo_infer_contains(g->start_index_map, k)))
      REFUSE("gather: batching dimension %d of %s has another role as well", k, TEXT(x));
    if (size > 1 && (hlo_infer_contains(g->collapsed_slice_dims, k) || hlo_infer_contains(g->operand_batching_dims, k)))
      REFUSE("gather: collapsed dimension %d of %s has slice size %lld instead of 1", k, TEXT(x), (long long)size);
  }
  return ST_OK;
}

enum status hlo_infer_gather(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out, struct error *err) {
  const struct hlo_instr *x = i->operands[0], *idx = i->operands[1];
  const struct hlo_gather_dims *g = i->attrs->gather;
  int64_t batch[HLO_RANK_MAX] = {0}, dims[2 * HLO_RANK_MAX], vector = 0;
  int n_batch, at_batch = 0, at_offset = 0;
  enum status st;

  if (!g)
    REFUSE("gather: no dimension numbers");
  if ((st = split_indices(a, "gather", idx, g->index_vector_dim, &n_batch, batch, &vector, err)) ||
      (st = check_gather_sizes(a, x, g, err)) ||
      (st = check_batching(a, "gather", x, g->operand_batching_dims, idx, g->start_indices_batching_dims,
                           g->index_vector_dim, err)))
    return st;
  if (vector != g->start_index_map.n)
    REFUSE("gather: indices %s hold vectors of %lld, start_index_map %s has %d entries", TEXT(idx), (long long)vector,
           INTS(g->start_index_map), g->start_index_map.n);
  int rank = g->offset_dims.n + n_batch;
  if (rank > HLO_RANK_MAX)
    REFUSE("gather: the result has %d dimensions; at most %d are possible", rank, HLO_RANK_MAX);
  if (!hlo_infer_is_distinct_below(g->offset_dims, rank) || !hlo_infer_is_ascending(g->offset_dims) ||
      g->offset_dims.n + g->collapsed_slice_dims.n + g->operand_batching_dims.n != x->shape.rank)
    REFUSE("gather: offset_dims %s do not fit a result of %d dimensions from %s", INTS(g->offset_dims), rank, TEXT(x));
  for (int k = 0; k < rank; k++) {
    if (!hlo_infer_contains(g->offset_dims, k)) {
      dims[k] = batch[at_batch++];
      continue;
    }
    while (hlo_infer_contains(g->collapsed_slice_dims, at_offset) ||
           hlo_infer_contains(g->operand_batching_dims, at_offset))
      at_offset++;
    dims[k] = g->slice_sizes.v[at_offset++];
  }
  *out = hlo_shape_array(a, x->shape.dtype, rank, dims);
  return ST_OK;
}

/* ---- scatter ----------------------------------------------------------------------------------------- */

static enum status check_scatter_numbers(struct arena *a, const struct hlo_instr *x, const struct hlo_instr *u,
                                         const struct hlo_scatter_dims *s, struct error *err) {
  if (!hlo_infer_is_distinct_below(s->update_window_dims, u->shape.rank) ||
      !hlo_infer_is_ascending(s->update_window_dims))
    REFUSE("scatter: update_window_dims %s must ascend and exist in updates %s", INTS(s->update_window_dims), TEXT(u));
  if (!hlo_infer_is_distinct_below(s->inserted_window_dims, x->shape.rank) ||
      !hlo_infer_is_ascending(s->inserted_window_dims))
    REFUSE("scatter: inserted_window_dims %s must ascend and exist in %s", INTS(s->inserted_window_dims), TEXT(x));
  if (!hlo_infer_is_distinct_below(s->scatter_dims_to_operand_dims, x->shape.rank))
    REFUSE("scatter: scatter_dims_to_operand_dims %s are not different dimensions of %s",
           INTS(s->scatter_dims_to_operand_dims), TEXT(x));
  if (!hlo_infer_is_distinct_below(s->input_batching_dims, x->shape.rank) ||
      !hlo_infer_is_ascending(s->input_batching_dims))
    REFUSE("scatter: input_batching_dims %s must ascend and exist in %s", INTS(s->input_batching_dims), TEXT(x));
  for (int k = 0; k < s->input_batching_dims.n; k++)
    if (hlo_infer_contains(s->inserted_window_dims, s->input_batching_dims.v[k]) ||
        hlo_infer_contains(s->scatter_dims_to_operand_dims, s->input_batching_dims.v[k]))
      REFUSE("scatter: batching dimension %lld of %s has another role as well", (long long)s->input_batching_dims.v[k],
             TEXT(x));
  if (s->update_window_dims.n + s->inserted_window_dims.n + s->input_batching_dims.n != x->shape.rank)
    REFUSE("scatter: update_window_dims %s and inserted_window_dims %s do not make up %s", INTS(s->update_window_dims),
           INTS(s->inserted_window_dims), TEXT(x));
  return ST_OK;
}

enum status hlo_infer_scatter(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out, struct error *err) {
  const struct hlo_instr *x = i->operands[0], *idx = i->operands[1], *u = i->operands[2];
  const struct hlo_scatter_dims *s = i->attrs->scatter;
  int64_t batch[HLO_RANK_MAX] = {0}, vector = 0;
  int n_batch, at_batch = 0, at_window = 0;
  enum status st;

  if (!s)
    REFUSE("scatter: no dimension numbers");
  if (u->shape.dtype != x->shape.dtype)
    REFUSE("scatter: updates %s must have the data type of %s", TEXT(u), TEXT(x));
  if ((st = split_indices(a, "scatter", idx, s->index_vector_dim, &n_batch, batch, &vector, err)) ||
      (st = check_scatter_numbers(a, x, u, s, err)) ||
      (st = check_batching(a, "scatter", x, s->input_batching_dims, idx, s->scatter_indices_batching_dims,
                           s->index_vector_dim, err)))
    return st;
  if (vector != s->scatter_dims_to_operand_dims.n)
    REFUSE("scatter: indices %s hold vectors of %lld, scatter_dims_to_operand_dims %s has %d entries", TEXT(idx),
           (long long)vector, INTS(s->scatter_dims_to_operand_dims), s->scatter_dims_to_operand_dims.n);
  if (u->shape.rank != n_batch + s->update_window_dims.n)
    REFUSE("scatter: updates %s must have %d dimensions", TEXT(u), n_batch + s->update_window_dims.n);
  for (int k = 0; k < u->shape.rank; k++) {
    bool fits;
    if (hlo_infer_contains(s->update_window_dims, k)) {
      while (hlo_infer_contains(s->inserted_window_dims, at_window) ||
             hlo_infer_contains(s->input_batching_dims, at_window))
        at_window++;
      fits = u->shape.dims[k] <= x->shape.dims[at_window++];
    } else {
      fits = u->shape.dims[k] == batch[at_batch++];
    }
    if (!fits)
      REFUSE("scatter: dimension %d of updates %s does not fit %s with indices %s", k, TEXT(u), TEXT(x), TEXT(idx));
  }
  *out = x->shape;
  return hlo_infer_combiner(i, x->shape.dtype, err);
}
