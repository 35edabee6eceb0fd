/* key: reads x[key].
 *
 * Every axis of x gets one entry: an integer, a slice, or an array of integers.  A constant mask is replaced by the
 * arrays of the positions where it is true.  Integers and slice bounds may be the index of a fori_loop.
 */
#include "trace/key.h"

#include <assert.h>

#include "trace/args.h"
#include "trace/compose.h"
#include "trace/loop.h"
#include "trace/refuse.h"

static bool refuse_index(const char *hint, const char *what) {
  trace_refuse(DG_UNSUPPORTED_INDEX, hint, "%s", what);
  return false;
}

static bool read_int(PyObject *o, int axis, int64_t size, struct entry *e) {
  int64_t i = 0;
  if (!args_int(o, "index", &i))
    return false;
  if (i < -size || i >= size) {
    trace_refuse(DG_BAD_ARGUMENT, NULL, "index %lld is out of bounds for axis %d with size %lld", (long long)i, axis,
                 (long long)size);
    return false;
  }
  *e = (struct entry){ENTRY_INT, i < 0 ? i + size : i, 1, 1, NULL, NULL};
  return true;
}

/* Reads one element, or a slice of constant size (extent), whose place depends on a loop's index.  It must be inside
 * the axis in every iteration; otherwise NumPy would raise an exception or shorten the slice. */
static bool read_moving(struct tracer *tr, PyObject *o, int axis, int64_t size, int64_t extent, struct entry *e) {
  int64_t low, high, back = 0;
  if (!loop_index_range(tr, o, &low, &high))
    return false;
  if (high < 0 && high + extent <= 0) /* it counts from the end in every iteration */
    back = size;
  if (low + back < 0 || high + back + extent > size) {
    trace_refuse(DG_BAD_ARGUMENT, "every iteration of the loop must stay inside the axis",
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
  bool ok = zero && end && (s->step == Py_None || args_int(s->step, "step", &step));
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

/* Reads an array or list of integers.  Integers that are known are checked and made non-negative. */
static bool read_array(struct tracer *tr, PyObject *o, int axis, int64_t size, struct entry *e) {
  *e = (struct entry){.kind = ENTRY_ARRAY, .step = 1};
  if (!tensor_check(o)) {
    e->indices = val_known_indices(tr, o, axis, size);
    return e->indices;
  }
  hlo_val i = tensor_val(tr, o);
  if (i && i->shape.dtype == DT_BOOL)
    return refuse_index("use np.where(mask, x, y)",
                        "a boolean mask is not supported: the result's size depends on data");
  if (i && !dtype_is_int(i->shape.dtype))
    return refuse_index("convert it: idx.astype(np.int32)", "an index tensor must hold integers");
  e->indices = val_wrap_indices(tr, i, size);
  return e->indices;
}

/* Returns a constant array or list of booleans as a NumPy array, a new reference.  For any other object, returns NULL
 * without an exception. */
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

/* Checks the key as a whole.  Sets *n_axes to the number of axes that its entries index. */
static bool survey(PyObject *items, int rank, int *n_axes) {
  int dots = 0;
  *n_axes = 0;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(items); i++) {
    PyObject *o = PyTuple_GET_ITEM(items, i);
    if (PyBool_Check(o) || PyArray_IsScalar(o, Bool))
      return refuse_index("use None to add an axis", "Boolean scalar indexing (x[True], x[False]) is not supported");
    dots += o == Py_Ellipsis;
    *n_axes += o != Py_Ellipsis && o != Py_None ? axes_of(o) : 0;
  }
  if (dots > 1) {
    trace_refuse(DG_BAD_ARGUMENT, NULL, "an index can only have a single ellipsis ('...')");
    return false;
  }
  if (*n_axes > rank) {
    trace_refuse(DG_BAD_ARGUMENT, NULL, "too many indices for array: array is %d-dimensional, but %d were indexed",
                 rank, *n_axes);
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

/* Replaces a mask by the positions where it is true: one array of integers per axis. */
static bool read_mask(struct tracer *tr, struct key *k, PyArrayObject *mask, const struct hlo_shape *s, int axis) {
  int n = PyArray_NDIM(mask);
  for (int i = 0; i < n; i++)
    if (PyArray_DIM(mask, i) != s->dims[axis + i]) {
      trace_refuse(
          DG_BAD_ARGUMENT, NULL,
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

/* Broadcasts all index arrays to their common shape. */
static bool broadcast_arrays(struct tracer *tr, struct key *k) {
  struct operand xs[HLO_RANK_MAX];
  int rank = 0;
  int64_t dims[HLO_RANK_MAX];
  for (int i = 0; i < k->n_arrays; i++)
    xs[i] = operand_of(k->axis[k->arrays[i]].indices);
  if (k->n_arrays < 2)
    return true;
  if (!operand_broadcast_named(k->n_arrays, xs, &rank, dims, "shape mismatch: indexing arrays"))
    return false;
  for (int i = 0; i < k->n_arrays; i++) {
    hlo_val *v = &k->axis[k->arrays[i]].indices;
    if (!(*v = val_broadcast(tr, *v, rank, dims)))
      return false;
  }
  return true;
}

/* Sets k->separated if the key has arrays, and its arrays and integers are not adjacent. */
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

bool key_read(struct tracer *tr, const struct hlo_shape *s, PyObject *key, struct key *k) {
  *k = (struct key){.rank = s->rank};
  PyObject *items = PyTuple_Check(key) ? Py_NewRef(key) : PyTuple_Pack(1, key);
  int n_axes = 0, axis = 0, out = 0;
  bool ok = items && survey(items, s->rank, &n_axes), dots = false;
  Py_ssize_t n = items ? PyTuple_GET_SIZE(items) : 0;
  for (Py_ssize_t i = 0; ok && i <= n; i++) {
    PyObject *o = i < n  ? PyTuple_GET_ITEM(items, i)
                  : dots ? NULL
                         : Py_Ellipsis; /* a key without an ellipsis ends with an implicit one */
    if (!o)
      break;
    if (o == Py_None) {
      ok = k->n_new < HLO_RANK_MAX && out < HLO_RANK_MAX;
      if (!ok)
        trace_refuse(DG_BAD_ARGUMENT, NULL, "at most %d dimensions are supported", HLO_RANK_MAX);
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

bool key_moves(const struct key *k) {
  for (int i = 0; i < k->rank; i++)
    if (k->axis[i].at)
      return true;
  return false;
}

bool key_is_strided(const struct key *k) {
  bool strided = false;
  for (int i = 0; i < k->rank; i++)
    strided = strided || (k->axis[i].kind == ENTRY_SLICE && k->axis[i].step != 1 && k->axis[i].count > 1);
  return strided;
}

int key_result(const struct key *k, const int64_t *sizes, int64_t dims[2 * HLO_RANK_MAX], int array_at[HLO_RANK_MAX]) {
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
    dims[n++] = sizes[i];
  }
  assert(n <= 2 * HLO_RANK_MAX && next_new == k->n_new && arrays == k->n_arrays);
  return n;
}
