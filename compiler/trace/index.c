/* index: x[key] and x[key] = value, for keys that key.c has read.
 *
 * A read is a dynamic-slice for entries that depend on a loop's index, a slice, one gather for all arrays (and one for
 * each negative step), and a reshape.  For a write, the value is broadcast to the result's shape as in NumPy and
 * converted to x's dtype.  It is stored with dynamic-update-slice if all steps are 1 or divide their axes, with select
 * for a traced mask, and with scatter otherwise.
 */
#include "trace/index.h"

#include <assert.h>
#include <string.h>

#include "trace/args.h"
#include "trace/compose.h"
#include "trace/key.h"
#include "trace/loop.h"
#include "trace/refuse.h"
#include "trace/view.h"

/* ---- reading -------------------------------------------------------------------------------------------------- */

hlo_val val_reverse(struct tracer *tr, hlo_val x, int axis) {
  int64_t n = x ? x->shape.dims[axis] : 0;
  if (n < 2) /* there is nothing to gather from an empty axis */
    return x;
  int32_t *idx = arena_new_array(tr->a, int32_t, (size_t)n);
  for (int64_t i = 0; i < n; i++)
    idx[i] = (int32_t)(n - 1 - i);
  struct hlo_shape s = hlo_shape_array(tr->a, DT_I32, 1, &n);
  return val_take(tr, x, hlo_constant(&tr->b, s, idx), axis);
}

/* Returns the first position of an entry. */
static hlo_val entry_start(struct tracer *tr, const struct entry *e) {
  hlo_val start = hlo_scalar(&tr->b, DT_I32, (double)e->start);
  return !e->at ? start : e->start ? hlo_binary(&tr->b, HLO_ADD, e->at, start) : e->at;
}

/* Applies all integers and slices with one dynamic-slice, because some of them depend on a loop's index.  Sets *rest to
 * the key that remains to be applied to the result. */
static hlo_val slice_moving(struct tracer *tr, hlo_val x, const struct key *k, struct key *rest) {
  hlo_val starts[HLO_RANK_MAX];
  int64_t sizes[HLO_RANK_MAX];
  *rest = *k;
  for (int i = 0; i < k->rank; i++) {
    struct entry *e = &rest->axis[i];
    if (e->kind == ENTRY_ARRAY || e->step < 1 || !e->count) {
      starts[i] = hlo_scalar(&tr->b, DT_I32, 0);
      sizes[i] = x->shape.dims[i];
      continue;
    }
    starts[i] = entry_start(tr, e);
    sizes[i] = (e->count - 1) * e->step + 1;
    e->start = 0;
    e->at = NULL;
  }
  return hlo_dynamic_slice(&tr->b, x, starts, sizes);
}

hlo_val index_slice(struct tracer *tr, hlo_val x, const struct key *k) {
  struct hlo_slice_dim d[HLO_RANK_MAX];
  struct key rest;
  bool trivial = true;
  if (key_moves(k)) {
    x = slice_moving(tr, x, k, &rest);
    k = &rest;
    if (!x)
      return NULL;
  }
  for (int i = 0; i < k->rank; i++) {
    const struct entry *e = &k->axis[i];
    int64_t size = x->shape.dims[i], last = e->start + (e->count - 1) * e->step,
            step = e->step < 0 ? -e->step : e->step;
    int64_t first = e->step < 0 ? last : e->start; /* a negative step is read forward, then reversed */
    if (e->kind == ENTRY_ARRAY)
      d[i] = (struct hlo_slice_dim){0, size, 1};
    else if (e->count == 0)
      d[i] = (struct hlo_slice_dim){0, 0, 1};
    else
      d[i] = (struct hlo_slice_dim){first, first + (e->count - 1) * step + 1, e->count == 1 ? 1 : step};
    trivial = trivial && d[i].start == 0 && d[i].limit == size && d[i].stride == 1;
  }
  if (!trivial)
    x = hlo_slice(&tr->b, x, d);
  for (int i = 0; x && i < k->rank; i++)
    if (k->axis[i].kind == ENTRY_SLICE && k->axis[i].step < 0 && k->axis[i].count > 1)
      x = val_reverse(tr, x, i);
  return x;
}

static void index_arrays(const struct key *k, hlo_val *indices) {
  for (int i = 0; i < k->n_arrays; i++)
    indices[i] = k->axis[k->arrays[i]].indices;
}

/* True if the key has one integer for every axis.  NumPy then returns a scalar, and otherwise a view. */
static bool is_element(PyObject *key, int rank) {
  if (!PyTuple_Check(key))
    return rank == 1 && key != Py_Ellipsis && key != Py_None && !PySlice_Check(key);
  bool all = PyTuple_GET_SIZE(key) == rank;
  for (Py_ssize_t i = 0; all && i < rank; i++) {
    PyObject *o = PyTuple_GET_ITEM(key, i);
    all = o != Py_Ellipsis && o != Py_None && !PySlice_Check(o);
  }
  return all;
}

PyObject *index_get(struct tracer *tr, struct tensor *t, PyObject *key) {
  struct key k;
  int64_t dims[2 * HLO_RANK_MAX];
  int array_at[HLO_RANK_MAX];
  hlo_val x = tensor_val(tr, (PyObject *)t), indices[HLO_RANK_MAX];
  if (!x || !key_read(tr, &x->shape, key, &k))
    return NULL;
  x = index_slice(tr, x, &k);
  if (!x)
    return NULL;
  int n = key_result(&k, x->shape.dims, dims, array_at);
  if (!args_rank(n))
    return NULL;
  x = hlo_reshape(&tr->b, x, n, dims);
  index_arrays(&k, indices);
  if (k.n_arrays)
    x = val_gather(tr, x, k.n_arrays, array_at, indices, k.separated ? 0 : array_at[0]);
  struct tensor *r = (struct tensor *)tensor_wrap(tr, x);
  if (r && k.n_arrays)
    view_order_of(r, t);
  else if (r)
    r->is_scalar = is_element(key, k.rank);
  if (r && !k.n_arrays && !r->is_scalar)
    view_link_key(tr, r, t, &k, key);
  return (PyObject *)r;
}

/* ---- writing -------------------------------------------------------------------------------------------------- */

hlo_val val_stored(struct tracer *tr, PyObject *value, enum dtype t, int rank, const int64_t *dims) {
  struct operand v;
  char a[DIMS_TEXT_MAX], b[DIMS_TEXT_MAX];
  if (!operand_read(tr, value, &v))
    return NULL;
  int lead = 0; /* NumPy ignores leading axes of size 1 that the target lacks */
  while (v.rank - lead > rank && v.dims[lead] == 1)
    lead++;
  bool ok = v.rank - lead <= rank;
  for (int i = lead; ok && i < v.rank; i++)
    ok = v.dims[i] == 1 || v.dims[i] == dims[rank - v.rank + i];
  hlo_val r = NULL;
  if (!ok) {
    trace_refuse(DG_SHAPE_MISMATCH, NULL, "could not broadcast input array from shape %s into shape %s",
                 dims_text(v.rank, v.dims, a), dims_text(rank, dims, b));
  } else {
    r = operand_val(tr, &v, t);
    if (r && lead)
      r = hlo_reshape(&tr->b, r, v.rank - lead, r->shape.dims + lead);
    r = val_broadcast(tr, r, rank, dims);
  }
  operand_clear(&v);
  return r;
}

static hlo_val store_slice(struct tracer *tr, hlo_val x, hlo_val v, const struct key *k) {
  hlo_val starts[HLO_RANK_MAX];
  int64_t dims[HLO_RANK_MAX] = {0};
  bool whole = true;
  for (int i = 0; i < k->rank; i++) {
    dims[i] = k->axis[i].count;
    whole = whole && dims[i] == x->shape.dims[i];
  }
  v = hlo_reshape(&tr->b, v, k->rank, dims);
  if (whole)
    return v;
  for (int i = 0; i < k->rank; i++)
    starts[i] = entry_start(tr, &k->axis[i]);
  return hlo_dynamic_update_slice(&tr->b, x, v, starts);
}

/* True if each axis with a step has a place in every group of that many elements: x[…, 1::2] of an even axis. */
static bool is_comb(hlo_val x, const struct key *k) {
  int rank = k->rank;
  for (int i = 0; i < k->rank; i++) {
    const struct entry *e = &k->axis[i];
    if (e->step == 1)
      continue;
    if (e->step < 1 || e->start >= e->step || e->count * e->step != x->shape.dims[i])
      return false;
    rank++;
  }
  return rank <= HLO_RANK_MAX;
}

/* Stores v in x with the groups as an axis of their own, where it is a slice. */
static hlo_val store_comb(struct tracer *tr, hlo_val x, hlo_val v, const struct key *k) {
  hlo_val starts[HLO_RANK_MAX];
  int64_t whole[HLO_RANK_MAX] = {0}, part[HLO_RANK_MAX] = {0};
  int n = 0;

  for (int i = 0; i < k->rank; i++) {
    const struct entry *e = &k->axis[i];
    starts[n] = hlo_scalar(&tr->b, DT_I32, e->step == 1 ? (double)e->start : 0);
    whole[n] = x->shape.dims[i] / e->step;
    part[n++] = e->count;
    if (e->step == 1)
      continue;
    starts[n] = hlo_scalar(&tr->b, DT_I32, (double)e->start);
    whole[n] = e->step;
    part[n++] = 1;
  }
  hlo_val r =
      hlo_dynamic_update_slice(&tr->b, hlo_reshape(&tr->b, x, n, whole), hlo_reshape(&tr->b, v, n, part), starts);
  return hlo_reshape(&tr->b, r, x->shape.rank, x->shape.dims);
}

/* Stores v with a scatter.  Each axis that is not written as a whole becomes a scatter axis, and the other axes are the
 * window.  The indices have one row of constant coordinates for each combination.  In the value, the scatter axes are
 * moved to the front and merged. */
static hlo_val store_strided(struct tracer *tr, hlo_val x, hlo_val v, const struct key *k) {
  int64_t scattered[HLO_RANK_MAX] = {0}, window[HLO_RANK_MAX], perm[HLO_RANK_MAX], dims[HLO_RANK_MAX],
          shape[HLO_RANK_MAX], total = 1;
  int n = 0, w = 0;
  for (int i = 0; i < k->rank; i++) {
    const struct entry *e = &k->axis[i];
    dims[i] = e->count;
    if (e->step == 1 && e->count == x->shape.dims[i])
      perm[w] = i, window[w] = w + 1, shape[w + 1] = e->count, w++;
    else
      scattered[n++] = i, total *= e->count;
  }
  memmove(perm + n, perm, (size_t)w * sizeof *perm);
  memcpy(perm, scattered, (size_t)n * sizeof *perm);
  shape[0] = total;
  int32_t *at = arena_new_array(tr->a, int32_t, (size_t)(total * n));
  for (int64_t row = 0; row < total; row++) {
    int64_t rest = row;
    for (int j = n; j-- > 0;) {
      const struct entry *e = &k->axis[scattered[j]];
      at[row * n + j] = (int32_t)(e->start + rest % e->count * e->step);
      rest /= e->count;
    }
  }
  hlo_val idx = hlo_constant(&tr->b, hlo_shape_array(tr->a, DT_I32, 2, (int64_t[]){total, n}), at);
  bool sorted = true;
  for (int i = 0; i < k->rank; i++)
    sorted = sorted && perm[i] == i;
  v = hlo_reshape(&tr->b, v, k->rank, dims);
  v = sorted ? v : hlo_transpose(&tr->b, v, perm);
  v = hlo_reshape(&tr->b, v, w + 1, shape);
  struct hlo_scatter_dims d = {.update_window_dims = hlo_ints_dup(tr->a, w, window),
                               .inserted_window_dims = hlo_ints_dup(tr->a, n, scattered),
                               .scatter_dims_to_operand_dims = hlo_ints_dup(tr->a, n, scattered),
                               .index_vector_dim = 1,
                               .unique_indices = true};
  return hlo_scatter_assign(&tr->b, x, idx, v, &d);
}

/* Returns the value to store if the key has arrays.  Its shape is that of val_gather's result with the integers' axes
 * kept. */
static hlo_val value_for_arrays(struct tracer *tr, hlo_val x, PyObject *value, const struct key *k) {
  const struct hlo_shape *s = &k->axis[k->arrays[0]].indices->shape;
  int64_t dims[3 * HLO_RANK_MAX], wide[2 * HLO_RANK_MAX];
  int n = 0, w = 0, windows = 0, next_new = 0, seen = 0;
  if (k->separated)
    for (int j = 0; j < s->rank; j++)
      dims[n++] = wide[w++] = s->dims[j];
  for (int i = 0; i <= k->rank; i++) {
    while (next_new < k->n_new && k->new_at[next_new] == windows + seen) {
      dims[n++] = 1;
      next_new++;
      windows++;
    }
    if (i == k->rank)
      break;
    if (k->axis[i].kind == ENTRY_ARRAY) {
      for (int j = 0; !k->separated && seen == 0 && j < s->rank; j++)
        dims[n++] = wide[w++] = s->dims[j];
      seen++;
      continue;
    }
    wide[w++] = k->axis[i].count;
    if (k->axis[i].kind == ENTRY_INT)
      continue;
    dims[n++] = k->axis[i].count;
    windows++;
  }
  if (!args_rank(n) || !args_rank(w))
    return NULL;
  return hlo_reshape(&tr->b, val_stored(tr, value, x->shape.dtype, n, dims), w, wide);
}

hlo_val index_store(struct tracer *tr, hlo_val x, hlo_val v, const struct key *k) {
  bool strided = key_is_strided(k);
  if (strided && key_moves(k)) {
    return trace_refuse(DG_UNSUPPORTED_INDEX, "write one element after the other, or with a step of 1",
                        "writing a stepped slice that moves with a loop is not supported");
  }
  return !strided ? store_slice(tr, x, v, k) : is_comb(x, k) ? store_comb(tr, x, v, k) : store_strided(tr, x, v, k);
}

/* x[…, indices, …] = v: a scatter along the arrays' axes.  If other axes are written only in part, the scatter is
 * applied to that part, which is then stored in x. */
static hlo_val store_arrays(struct tracer *tr, hlo_val x, PyObject *value, const struct key *k) {
  struct key part = *k;
  hlo_val indices[HLO_RANK_MAX];
  int place = 0;
  while (!k->separated && k->axis[place].kind != ENTRY_ARRAY)
    place++;
  hlo_val v = value_for_arrays(tr, x, value, k);
  hlo_val sub = v ? index_slice(tr, x, k) : NULL;
  if (!sub || hlo_shape_elements(&v->shape) == 0)
    return sub ? x : NULL;
  index_arrays(k, indices);
  sub = val_scatter(tr, sub, k->n_arrays, k->arrays, indices, place, v);
  for (int i = 0; i < k->n_arrays; i++)
    part.axis[k->arrays[i]] = (struct entry){ENTRY_SLICE, 0, 1, x->shape.dims[k->arrays[i]], NULL, NULL};
  return sub ? index_store(tr, x, sub, &part) : NULL;
}

/* Returns the mask if the whole key is a traced mask, otherwise NULL. */
static hlo_val whole_mask(struct tracer *tr, PyObject *key) {
  PyObject *o = PyTuple_Check(key) && PyTuple_GET_SIZE(key) == 1 ? PyTuple_GET_ITEM(key, 0) : key;
  if (!tensor_check(o) || ((struct tensor *)o)->dtype != DT_BOOL)
    return NULL;
  return tensor_val(tr, o);
}

static hlo_val store_key(struct tracer *tr, hlo_val x, PyObject *key, PyObject *value) {
  struct key k;
  int64_t dims[2 * HLO_RANK_MAX], selected[HLO_RANK_MAX], total = 1;
  int array_at[HLO_RANK_MAX];
  hlo_val mask = whole_mask(tr, key);
  if (mask && mask->shape.rank <= x->shape.rank)
    return val_store_masked(tr, x, mask, value);
  if (!key_read(tr, &x->shape, key, &k))
    return NULL;
  if (k.n_arrays)
    return store_arrays(tr, x, value, &k);
  for (int i = 0; i < k.rank; i++) {
    selected[i] = k.axis[i].count;
    total *= selected[i];
  }
  int n = key_result(&k, selected, dims, array_at);
  hlo_val v = args_rank(n) ? val_stored(tr, value, x->shape.dtype, n, dims) : NULL;
  return !v ? NULL : total == 0 ? x : index_store(tr, x, v, &k);
}

int index_set(struct tracer *tr, struct tensor *t, PyObject *key, PyObject *value) {
  if (view_is_item(t, key, value)) { /* y[key] += z has already changed y through the view y[key] */
    for (struct tensor *x = t; x; x = (struct tensor *)x->base)
      x->mutated = true;
    return 0;
  }
  hlo_val r = tensor_val(tr, (PyObject *)t) && loop_may_write(tr, t) ? store_key(tr, t->v, key, value) : NULL;
  return r && tensor_store(tr, t, r, true) ? 0 : -1;
}
