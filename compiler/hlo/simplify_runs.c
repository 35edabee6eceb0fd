/* hlo_simplify_runs: a gather by constant places that follow each other, as np.pad with a mode, np.take of a range or x[:, [0, 1, 2]]
 * are traced.
 *
 *     gather(x, {1, 0, 0, 1, 2, …, 511, 511, 510})  ==>  concatenate(reverse(slice(x)), slice(x), reverse(slice(x)))
 *
 * A run is places with one distance from each to the next: a slice if that is positive, the reverse of one if it is negative, and
 * copies of one place if it is 0.  DMA moves a slice in descriptors of whole rows, and what a gather takes in descriptors of as many
 * elements as follow one place: one, along the last axis.
 *
 * A gather of long rows by many short runs stays: a list of places costs it nothing more.
 */
#include "hlo/simplify.h"

#include "hlo/literal.h"
#include "hlo/rewrite.h"

enum {
  RUNS_MAX = 8,     /* each is a transfer or two */
  LONG_BYTES = 512, /* that follow a place: for a descriptor of DMA a gather of them is as good as a slice */
  COPIES_MAX = 4    /* of one place, before they are a broadcast */
};

/* Places from, from + step, …: n of them. */
struct run {
  int64_t from, step, n;
};

/* ---- what rules make ----------------------------------------------------------------------------------------------- */

struct hlo_instr *hlo_simplify_reshaped(struct hlo_instr *i, struct hlo_instr *x, int rank, const int64_t *dims) {
  const struct hlo_shape shape = hlo_shape_array(i->parent->module->arena, x->shape.dtype, rank, dims);
  return hlo_shape_equal(&shape, &x->shape) ? x : hlo_simplify_new(i, HLO_RESHAPE, shape, 1, &x);
}

struct hlo_instr *hlo_simplify_part(struct hlo_instr *i, struct hlo_instr *x, int axis, struct hlo_slice_dim part) {
  struct arena *a = i->parent->module->arena;
  struct hlo_slice_dim *all = arena_new_array(a, struct hlo_slice_dim, (size_t)x->shape.rank);
  int64_t dims[HLO_RANK_MAX];

  if (part.start == 0 && part.limit == x->shape.dims[axis] && part.stride == 1)
    return x;
  for (int d = 0; d < x->shape.rank; d++) {
    all[d] = d == axis ? part : (struct hlo_slice_dim){0, x->shape.dims[d], 1};
    dims[d] = (all[d].limit - all[d].start + all[d].stride - 1) / all[d].stride;
  }
  struct hlo_instr *s = hlo_simplify_new(i, HLO_SLICE, hlo_shape_array(a, x->shape.dtype, x->shape.rank, dims), 1, &x);
  hlo_set_attrs(s, &(struct hlo_attrs){.slice = all});
  return s;
}

struct hlo_instr *hlo_simplify_joined(struct hlo_instr *i, int axis, int n, struct hlo_instr *const *parts) {
  struct arena *a = i->parent->module->arena;
  const struct hlo_shape *first = &parts[0]->shape;
  int64_t dims[HLO_RANK_MAX];

  if (n == 1)
    return parts[0];
  for (int d = 0; d < first->rank; d++)
    dims[d] = first->dims[d];
  for (int k = 1; k < n; k++)
    dims[axis] += parts[k]->shape.dims[axis];
  struct hlo_instr *c =
      hlo_simplify_new(i, HLO_CONCATENATE, hlo_shape_array(a, first->dtype, first->rank, dims), n, parts);
  hlo_set_attrs(c, &(struct hlo_attrs){.dimensions = hlo_ints_dup(a, 1, (int64_t[]){axis})});
  return c;
}

/* ---- the gather ---------------------------------------------------------------------------------------------------- */

int hlo_simplify_gathered_axis(const struct hlo_instr *i) {
  const struct hlo_gather_dims *g = i->attrs->gather;
  const struct hlo_instr *at = i->operands[1];
  const struct hlo_shape *x = &i->operands[0]->shape;

  if (at->op != HLO_CONSTANT || at->shape.rank != 1 || at->shape.dtype != DT_I32 || i->shape.rank != x->rank ||
      g->collapsed_slice_dims.n != 1 || g->start_index_map.n != 1 || g->operand_batching_dims.n ||
      g->index_vector_dim != 1 || g->offset_dims.n != x->rank - 1)
    return -1;
  const int axis = (int)g->collapsed_slice_dims.v[0];
  if (g->start_index_map.v[0] != axis)
    return -1;
  for (int d = 0; d < x->rank; d++)
    if (g->slice_sizes.v[d] != (d == axis ? 1 : x->dims[d]) ||
        (d != axis && g->offset_dims.v[d < axis ? d : d - 1] != d))
      return -1;
  return axis;
}

/* Reads n places, each of an axis of so many, as at most RUNS_MAX runs, and returns the number of runs; 0 if there are more. */
static int read_runs(const int32_t *places, int64_t n, int64_t of, struct run *runs) {
  int count = 0;

  for (int64_t k = 0; k < n; k++) {
    struct run *last = count ? &runs[count - 1] : NULL;
    if (places[k] < 0 || places[k] >= of) /* a gather moves it to the nearest end */
      return 0;
    if (last && last->n == 1)
      last->step = places[k] - last->from;
    if (last && places[k] == last->from + last->n * last->step) {
      last->n++;
      continue;
    }
    if (count == RUNS_MAX)
      return 0;
    runs[count++] = (struct run){places[k], 1, 1};
  }
  return count;
}

/* The last place of a short run goes to the run after it where it begins that as well: 0, 0, 1, 2 is 0 and 0, 1, 2. */
static void lengthen_long(struct run *runs, int count) {
  for (int k = 0; k + 1 < count; k++) {
    struct run *a = &runs[k], *b = &runs[k + 1];
    const int64_t end = a->from + (a->n - 1) * a->step;
    if (a->n > 1 && a->n <= COPIES_MAX && b->n > 2 && end == b->from - b->step) {
      b->from = end;
      b->n++;
      a->n--;
    }
  }
}

static struct hlo_instr *copies(struct hlo_instr *i, struct hlo_instr *one, int axis, int64_t n) {
  struct arena *a = i->parent->module->arena;
  int64_t dims[HLO_RANK_MAX], kept[HLO_RANK_MAX], at[HLO_RANK_MAX];
  int rank = 0;

  for (int d = 0; d < one->shape.rank; d++) {
    dims[d] = d == axis ? n : one->shape.dims[d];
    if (d == axis)
      continue;
    at[rank] = d;
    kept[rank++] = dims[d];
  }
  one = hlo_simplify_reshaped(i, one, rank, kept);
  struct hlo_instr *b =
      hlo_simplify_new(i, HLO_BROADCAST, hlo_shape_array(a, one->shape.dtype, rank + 1, dims), 1, &one);
  hlo_set_attrs(b, &(struct hlo_attrs){.dimensions = hlo_ints_dup(a, rank, at)});
  return b;
}

/* Puts the parts of a run into parts, and returns how many they are. */
static int parts_of(struct hlo_instr *i, int axis, const struct run *r, struct hlo_instr **parts) {
  struct hlo_instr *x = i->operands[0];
  const int64_t end = r->from + (r->n - 1) * r->step, low = r->step < 0 ? end : r->from,
                stride = r->n == 1 || !r->step ? 1
                         : r->step < 0         ? -r->step
                                               : r->step;
  const struct hlo_slice_dim part = {low, (r->step < 0 ? r->from : end) + 1, stride};
  struct hlo_instr *one = hlo_simplify_part(i, x, axis, part);

  if (r->step || r->n == 1) {
    parts[0] = r->step < 0 && r->n > 1 ? hlo_simplify_turned(i, one, axis) : one;
    return 1;
  }
  if (r->n > COPIES_MAX) {
    parts[0] = copies(i, one, axis, r->n);
    return 1;
  }
  for (int64_t k = 0; k < r->n; k++)
    parts[k] = one;
  return (int)r->n;
}

struct hlo_instr *hlo_simplify_runs(struct hlo_instr *i) {
  const int axis = hlo_simplify_gathered_axis(i);
  struct hlo_instr *x = i->operands[0], *parts[RUNS_MAX * COPIES_MAX];
  struct run runs[RUNS_MAX];
  int64_t within = (int64_t)dtype_size(x->shape.dtype);
  int n = 0;

  if (axis < 0 || hlo_rewrite_is_pinned(i) || i->shape.dims[axis] < 2)
    return NULL;
  const int count = read_runs(i->operands[1]->attrs->literal->data, i->shape.dims[axis], x->shape.dims[axis], runs);
  for (int d = axis + 1; d < x->shape.rank; d++)
    within *= x->shape.dims[d];
  if (!count || i->shape.dims[axis] < (within < LONG_BYTES ? 2 : 8) * count)
    return NULL;
  lengthen_long(runs, count);
  for (int k = 0; k < count; k++)
    n += parts_of(i, axis, &runs[k], &parts[n]);
  return hlo_simplify_joined(i, axis, n, parts);
}
