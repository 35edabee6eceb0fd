/* index: x[key] and x[key] = value.
 *
 * A key is normalised to one entry per axis of x (an integer, a slice, or an array of integers) and a list of the
 * result's axes.  A constant mask is the arrays of its places.  Integers and slice bounds may be a fori_loop's index.
 * Reading: dynamic-slice for those, slice, one gather for all arrays (or for a negative step), reshape.  Writing: the
 * value is broadcast to the result's shape, as in NumPy, converted to x's dtype and stored with dynamic-update-slice when
 * all steps are 1, and with scatter otherwise; a traced mask selects.
 */
#include <string.h>

#include "trace/compose.h"

enum entry_kind { ENTRY_INT, ENTRY_SLICE, ENTRY_ARRAY };
struct entry {
  enum entry_kind kind;
  int64_t start, step, count; /* elements start, start + step, … */
  hlo_val indices;
  hlo_val at; /* or NULL: a 0-d value that is added to start */
};
struct key {
  int rank; /* of x */
  struct entry axis[HLO_RANK_MAX];
  int n_arrays, arrays[HLO_RANK_MAX]; /* their axes of x; their shapes are broadcast together */
  bool separated;           /* something stands between integers and arrays: the arrays' axes go first (NumPy's rule) */
  int n_new;                /* axes of size 1 from None */
  int new_at[HLO_RANK_MAX]; /* in the result, before the array's axes replace their entry */
};

static bool refuse_index(const char *hint, const char *what) {
  refuse(DG_UNSUPPORTED_INDEX, hint, "%s", what);
  return false;
}

static bool read_int(PyObject *o, int axis, int64_t size, struct entry *e) {
  int64_t i = 0;
  if (!int_parse(o, "index", &i))
    return false;
  if (i < -size || i >= size) {
    refuse(DG_BAD_ARGUMENT, NULL, "index %lld is out of bounds for axis %d with size %lld", (long long)i, axis,
           (long long)size);
    return false;
  }
  *e = (struct entry){ENTRY_INT, i < 0 ? i + size : i, 1, 1, NULL, NULL};
  return true;
}

/* One element, or a slice of constant size, whose place depends on a loop's index.  Every iteration has to stay
 * inside: NumPy would raise, or cut the slice short. */
static bool read_moving(struct tracer *tr, PyObject *o, int axis, int64_t size, int64_t extent, struct entry *e) {
  int64_t low, high, back = 0;
  if (!loop_index_range(tr, o, &low, &high))
    return false;
  if (high < 0 && high + extent <= 0) /* counted from the end, in every iteration */
    back = size;
  if (low + back < 0 || high + back + extent > size) {
    refuse(DG_BAD_ARGUMENT, "every iteration of the loop must stay inside the axis",
           "this index runs from %lld to %lld, which is out of bounds for axis %d with size %lld", (long long)low,
           (long long)(high + extent - 1), axis, (long long)size);
    return false;
  }
  e->start = back;
  e->at = loop_index_val(tr, o);
  return e->at;
}

static bool read_moving_slice(struct tracer *tr, PySliceObject *s, int axis, int64_t size, struct entry *e) {
  PyObject *zero = PyLong_FromLong(0), *end = PyLong_FromLongLong(size);
  int64_t extent = 0, step = 1;
  bool ok = zero && end && (s->step == Py_None || int_parse(s->step, "step", &step));
  if (ok && step < 1)
    ok = refuse_index("read it with a step of 1 and use np.flip",
                      "a slice that moves with a loop needs a positive step");
  PyObject *start = s->start == Py_None ? zero : s->start, *stop = s->stop == Py_None ? end : s->stop;
  if (ok && !loop_index_distance(start, stop, &extent))
    ok = refuse_index("write it as x[i * T : (i + 1) * T], with the same T",
                      "the size of this slice is not the same in every iteration of the loop");
  const int64_t count = extent > 0 ? (extent + step - 1) / step : 0;
  *e = (struct entry){.kind = ENTRY_SLICE, .step = count > 1 ? step : 1, .count = count};
  if (ok && count)
    ok = read_moving(tr, start, axis, size, (count - 1) * step + 1, e);
  Py_XDECREF(zero);
  Py_XDECREF(end);
  return ok;
}

static bool bound_ok(PyObject *o) {
  if (!tensor_check(o))
    return true;
  return refuse_index("use np.take with a tensor of indices, or np.where with a mask",
                      "a slice bound is a traced tensor: the result's size depends on data");
}

static bool read_slice(struct tracer *tr, PyObject *o, int axis, int64_t size, struct entry *e) {
  PySliceObject *s = (PySliceObject *)o;
  Py_ssize_t start, stop, step;
  if (loop_index_check(s->start) || loop_index_check(s->stop))
    return read_moving_slice(tr, s, axis, size, e);
  if (!bound_ok(s->start) || !bound_ok(s->stop) || !bound_ok(s->step) || PySlice_Unpack(o, &start, &stop, &step) < 0)
    return false;
  Py_ssize_t n = PySlice_AdjustIndices((Py_ssize_t)size, &start, &stop, step);
  *e = (struct entry){ENTRY_SLICE, n ? start : 0, step, n, NULL, NULL};
  return true;
}

/* Integer arrays and lists: in range and non-negative. */
static bool read_array(struct tracer *tr, PyObject *o, int axis, int64_t size, struct entry *e) {
  *e = (struct entry){.kind = ENTRY_ARRAY, .step = 1};
  if (!tensor_check(o)) {
    e->indices = constant_indices(tr, o, axis, size);
    return e->indices;
  }
  hlo_val i = tensor_val(tr, o);
  if (i && i->shape.dtype == DT_BOOL)
    return refuse_index("use np.where(mask, x, y)",
                        "a boolean mask is not supported: the result's size depends on data");
  if (i && !dtype_is_int(i->shape.dtype))
    return refuse_index("convert it: idx.astype(np.int32)", "an index tensor must hold integers");
  e->indices = wrap_indices(tr, i, size);
  return e->indices;
}

/* A constant array of booleans as an array, a new reference; NULL (without an exception) for anything else. */
static PyArrayObject *constant_mask(PyObject *o) {
  if (tensor_check(o) || !(PyArray_Check(o) || PyList_Check(o)))
    return NULL;
  PyArrayObject *a = (PyArrayObject *)PyArray_FROM_O(o);
  PyErr_Clear();
  if (a && PyArray_ISBOOL(a) && PyArray_NDIM(a) > 0)
    return a;
  Py_XDECREF(a);
  return NULL;
}

static int axes_of(PyObject *o) {
  PyArrayObject *mask = constant_mask(o);
  int n = mask ? PyArray_NDIM(mask) : 1;
  Py_XDECREF(mask);
  return n;
}

/* Checks that are about the key as a whole; counts the entries that use up an axis. */
static bool survey(PyObject *items, int rank, int *n_axes) {
  int dots = 0;
  *n_axes = 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items); i++) {
    PyObject *o = PyTuple_GET_ITEM(items, i);
    if (PyBool_Check(o) || PyArray_IsScalar(o, Bool))
      return refuse_index("use None to add an axis", "indexing with True or False is not supported");
    dots += o == Py_Ellipsis;
    *n_axes += o != Py_Ellipsis && o != Py_None ? axes_of(o) : 0;
  }
  if (dots > 1) {
    refuse(DG_BAD_ARGUMENT, NULL, "an index can only have a single ellipsis ('...')");
    return false;
  }
  if (*n_axes > rank) {
    refuse(DG_BAD_ARGUMENT, NULL, "too many indices for array: array is %d-dimensional, but %d were indexed", rank,
           *n_axes);
    return false;
  }
  return true;
}

static bool is_plain_int(PyObject *o) {
  return PyLong_Check(o) || PyArray_IsScalar(o, Integer);
}

static bool read_entry(struct tracer *tr, struct key *k, PyObject *o, int axis, int64_t size) {
  struct entry *e = &k->axis[axis];
  if (PySlice_Check(o))
    return read_slice(tr, o, axis, size, e);
  if (loop_index_check(o)) {
    *e = (struct entry){ENTRY_INT, 0, 1, 1, NULL, NULL};
    return read_moving(tr, o, axis, size, 1, e);
  }
  if (is_plain_int(o))
    return read_int(o, axis, size, e);
  if (!tensor_check(o) && !PyArray_Check(o) && !PyList_Check(o) && !PyTuple_Check(o))
    return PyIndex_Check(o)
               ? read_int(o, axis, size, e)
               : refuse_index(NULL, "only integers, slices, None, ... and integer arrays are valid indices");
  k->arrays[k->n_arrays++] = axis;
  return read_array(tr, o, axis, size, e);
}

/* A mask stands for the places where it is true: one array of integers per axis. */
static bool read_mask(struct tracer *tr, struct key *k, PyArrayObject *mask, const struct hlo_shape *s, int axis) {
  int n = PyArray_NDIM(mask);
  for (int i = 0; i < n; i++)
    if (PyArray_DIM(mask, i) != s->dims[axis + i]) {
      refuse(DG_BAD_ARGUMENT, NULL,
             "boolean index did not match indexed array along axis %d; size of axis is %lld but size of corresponding "
             "boolean axis is %lld",
             axis + i, (long long)s->dims[axis + i], (long long)PyArray_DIM(mask, i));
      return false;
    }
  PyObject *places = PyArray_Nonzero(mask);
  bool ok = places;
  for (int i = 0; ok && i < n; i++) {
    k->arrays[k->n_arrays++] = axis + i;
    ok = read_array(tr, PyTuple_GET_ITEM(places, i), axis + i, s->dims[axis + i], &k->axis[axis + i]);
  }
  Py_XDECREF(places);
  return ok;
}

/* Gives all index arrays their common shape. */
static bool broadcast_arrays(struct tracer *tr, struct key *k) {
  struct operand xs[HLO_RANK_MAX];
  int rank = 0;
  int64_t dims[HLO_RANK_MAX];
  for (int i = 0; i < k->n_arrays; i++)
    xs[i] = operand_of(k->axis[k->arrays[i]].indices);
  if (k->n_arrays < 2)
    return true;
  if (!broadcast_dims(k->n_arrays, xs, &rank, dims))
    return false;
  for (int i = 0; i < k->n_arrays; i++) {
    hlo_val *v = &k->axis[k->arrays[i]].indices;
    if (!(*v = broadcast_val(tr, *v, rank, dims)))
      return false;
  }
  return true;
}

static void find_separation(struct key *k, PyObject *items) {
  int first = -1, last = -1, count = 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items); i++) {
    PyObject *o = PyTuple_GET_ITEM(items, i);
    if (PySlice_Check(o) || o == Py_None || o == Py_Ellipsis)
      continue;
    first = first < 0 ? (int)i : first;
    last = (int)i;
    count++;
  }
  k->separated = k->n_arrays > 0 && last - first + 1 != count;
}

static bool read_key(struct tracer *tr, const struct hlo_shape *s, PyObject *key, struct key *k) {
  *k = (struct key){.rank = s->rank};
  PyObject *items = PyTuple_Check(key) ? Py_NewRef(key) : PyTuple_Pack(1, key);
  int n_axes = 0, axis = 0, out = 0;
  bool ok = items && survey(items, s->rank, &n_axes), dots = false;
  Py_ssize_t n = items ? PyTuple_GET_SIZE(items) : 0;
  for (Py_ssize_t i = 0; ok && i <= n; i++) {
    PyObject *o = i < n ? PyTuple_GET_ITEM(items, i) : dots ? NULL : Py_Ellipsis; /* a missing rest is an ellipsis */
    if (!o)
      break;
    if (o == Py_None) {
      ok = k->n_new < HLO_RANK_MAX && out < HLO_RANK_MAX;
      if (!ok)
        refuse(DG_BAD_ARGUMENT, NULL, "at most %d dimensions are supported", HLO_RANK_MAX);
      else
        k->new_at[k->n_new++] = out++;
    } else if (o == Py_Ellipsis) {
      dots = true;
      for (int fill = s->rank - n_axes; fill > 0; fill--, axis++, out++)
        k->axis[axis] = (struct entry){ENTRY_SLICE, 0, 1, s->dims[axis], NULL, NULL};
    } else {
      PyArrayObject *mask = constant_mask(o);
      int n_used = mask ? PyArray_NDIM(mask) : 1;
      ok = mask ? read_mask(tr, k, mask, s, axis) : read_entry(tr, k, o, axis, s->dims[axis]);
      out += ok && k->axis[axis].kind != ENTRY_INT ? n_used : 0;
      axis += n_used;
      Py_XDECREF(mask);
    }
  }
  if (ok)
    find_separation(k, items);
  ok = ok && broadcast_arrays(tr, k);
  Py_XDECREF(items);
  return ok;
}

/* ---- reading -------------------------------------------------------------------------------------------------- */

hlo_val reverse_axis(struct tracer *tr, hlo_val x, int axis) {
  int64_t n = x ? x->shape.dims[axis] : 0;
  if (n < 2) /* and an empty axis has nothing to gather */
    return x;
  int32_t *idx = arena_new_array(tr->a, int32_t, (size_t)n);
  for (int64_t i = 0; i < n; i++)
    idx[i] = (int32_t)(n - 1 - i);
  struct hlo_shape s = hlo_shape_array(tr->a, DT_I32, 1, &n);
  return take_axis(tr, x, hlo_constant(&tr->b, s, idx), axis);
}

static bool moves(const struct key *k) {
  for (int i = 0; i < k->rank; i++)
    if (k->axis[i].at)
      return true;
  return false;
}

/* Where an entry begins: constant, or with the loop. */
static hlo_val entry_start(struct tracer *tr, const struct entry *e) {
  hlo_val start = hlo_scalar(&tr->b, DT_I32, (double)e->start);
  return !e->at ? start : e->start ? hlo_binary(&tr->b, HLO_ADD, e->at, start) : e->at;
}

/* What moves, and with it what is cut out anyway; *rest is the key of what is left to do. */
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

/* Slices and integers, every axis kept. */
static hlo_val slice_axes(struct tracer *tr, hlo_val x, const struct key *k) {
  struct hlo_slice_dim d[HLO_RANK_MAX];
  struct key rest;
  bool trivial = true;
  if (moves(k)) {
    x = slice_moving(tr, x, k, &rest);
    k = &rest;
    if (!x)
      return NULL;
  }
  for (int i = 0; i < k->rank; i++) {
    const struct entry *e = &k->axis[i];
    int64_t size = x->shape.dims[i], last = e->start + (e->count - 1) * e->step,
            step = e->step < 0 ? -e->step : e->step;
    int64_t first = e->step < 0 ? last : e->start; /* read forward, reversed afterwards */
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
      x = reverse_axis(tr, x, i);
  return x;
}

/* Drops the integers' axes and adds None's.  Sizes of the arrays' axes are left as they are in x; array_at says where
 * these are. */
static int result_dims(const struct hlo_shape *s, const struct key *k, int64_t *dims, int *array_at) {
  int n = 0, next_new = 0, arrays = 0;
  for (int i = 0; i <= k->rank; i++) {
    while (next_new < k->n_new && k->new_at[next_new] == n) {
      dims[n++] = 1;
      next_new++;
    }
    if (i == k->rank || k->axis[i].kind == ENTRY_INT)
      continue;
    if (k->axis[i].kind == ENTRY_ARRAY)
      array_at[arrays++] = n;
    dims[n++] = s->dims[i];
  }
  return n;
}

static void index_arrays(const struct key *k, hlo_val *indices) {
  for (int i = 0; i < k->n_arrays; i++)
    indices[i] = k->axis[k->arrays[i]].indices;
}

static bool rank_ok(int rank) {
  if (rank > HLO_RANK_MAX)
    refuse(DG_BAD_ARGUMENT, NULL, "at most %d dimensions are supported", HLO_RANK_MAX);
  return rank <= HLO_RANK_MAX;
}

PyObject *index_get(struct tracer *tr, struct tensor *t, PyObject *key) {
  struct key k;
  int64_t dims[2 * HLO_RANK_MAX];
  int array_at[HLO_RANK_MAX];
  hlo_val x = tensor_val(tr, (PyObject *)t), indices[HLO_RANK_MAX];
  if (!x || !read_key(tr, &x->shape, key, &k))
    return NULL;
  x = slice_axes(tr, x, &k);
  if (!x)
    return NULL;
  int n = result_dims(&x->shape, &k, dims, array_at);
  if (!rank_ok(n))
    return NULL;
  x = hlo_reshape(&tr->b, x, n, dims);
  index_arrays(&k, indices);
  if (k.n_arrays)
    x = gather_at(tr, x, k.n_arrays, array_at, indices, k.separated ? 0 : array_at[0]);
  return tensor_wrap(tr, x);
}

/* ---- writing -------------------------------------------------------------------------------------------------- */

hlo_val stored_value(struct tracer *tr, PyObject *value, enum dtype t, int rank, const int64_t *dims) {
  struct operand v;
  char a[256], b[256];
  if (!operand_read(tr, value, &v))
    return NULL;
  int lead = 0; /* NumPy ignores leading axes of size 1 that the target does not have */
  while (v.rank - lead > rank && v.dims[lead] == 1)
    lead++;
  bool ok = v.rank - lead <= rank;
  for (int i = lead; ok && i < v.rank; i++)
    ok = v.dims[i] == 1 || v.dims[i] == dims[rank - v.rank + i];
  hlo_val r = NULL;
  if (!ok) {
    refuse(DG_SHAPE_MISMATCH, NULL, "could not broadcast a value of shape %s into shape %s",
           dims_text(v.rank, v.dims, a, sizeof a), dims_text(rank, dims, b, sizeof b));
  } else {
    r = operand_val(tr, &v, t);
    if (r && lead)
      r = hlo_reshape(&tr->b, r, v.rank - lead, r->shape.dims + lead);
    r = broadcast_val(tr, r, rank, dims);
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

/* Axes that are not written whole become scatter axes, with one row of constant coordinates per combination; the others
 * are the window.  The value's scatter axes go first and are merged. */
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

/* The value for an index with arrays, as gather_at would give it from x with its integers' axes kept. */
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
  if (!rank_ok(n) || !rank_ok(w))
    return NULL;
  return hlo_reshape(&tr->b, stored_value(tr, value, x->shape.dtype, n, dims), w, wide);
}

static bool is_strided(const struct key *k) {
  bool strided = false;
  for (int i = 0; i < k->rank; i++)
    strided = strided || (k->axis[i].kind == ENTRY_SLICE && k->axis[i].step != 1 && k->axis[i].count > 1);
  return strided;
}

static hlo_val store_part(struct tracer *tr, hlo_val x, hlo_val v, const struct key *k) {
  bool strided = is_strided(k);
  if (strided && moves(k)) {
    refuse_index("write one element after the other, or with a step of 1",
                 "writing a stepped slice that moves with a loop is not supported");
    return NULL;
  }
  return strided ? store_strided(tr, x, v, k) : store_slice(tr, x, v, k);
}

/* x[…, indices, …] = v: a scatter along the arrays' axes.  Where other axes are written in part, it is done on that part,
 * which is then put back. */
static hlo_val store_arrays(struct tracer *tr, hlo_val x, PyObject *value, const struct key *k) {
  struct key part = *k;
  hlo_val indices[HLO_RANK_MAX];
  int place = 0;
  while (!k->separated && k->axis[place].kind != ENTRY_ARRAY)
    place++;
  hlo_val v = value_for_arrays(tr, x, value, k);
  hlo_val sub = v ? slice_axes(tr, x, k) : NULL;
  if (!sub || hlo_shape_elements(&v->shape) == 0)
    return sub ? x : NULL;
  index_arrays(k, indices);
  sub = scatter_at(tr, sub, k->n_arrays, k->arrays, indices, place, v);
  for (int i = 0; i < k->n_arrays; i++)
    part.axis[k->arrays[i]] = (struct entry){ENTRY_SLICE, 0, 1, x->shape.dims[k->arrays[i]], NULL, NULL};
  return sub ? store_part(tr, x, sub, &part) : NULL;
}

/* The traced mask that the whole key is, or NULL. */
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
    return store_masked(tr, x, mask, value);
  if (!read_key(tr, &x->shape, key, &k))
    return NULL;
  if (k.n_arrays)
    return store_arrays(tr, x, value, &k);
  for (int i = 0; i < k.rank; i++) {
    selected[i] = k.axis[i].count;
    total *= selected[i];
  }
  struct hlo_shape s = {.dtype = x->shape.dtype, .rank = k.rank, .dims = selected};
  int n = result_dims(&s, &k, dims, array_at);
  hlo_val v = rank_ok(n) ? stored_value(tr, value, x->shape.dtype, n, dims) : NULL;
  return !v ? NULL : total == 0 ? x : store_part(tr, x, v, &k);
}

int index_set(struct tracer *tr, struct tensor *t, PyObject *key, PyObject *value) {
  hlo_val r = loop_may_write(tr, t) ? store_key(tr, t->v, key, value) : NULL;
  if (!r)
    return -1;
  tensor_set(t, r);
  t->mutated = true;
  return 0;
}
