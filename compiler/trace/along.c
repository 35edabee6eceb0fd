/* along: functions that read elements at arrays of indices (take_along_axis) and functions that store (put_along_axis,
 * copyto, putmask, fill_diagonal); also select, choose, compress, comparisons of arrays, searching, and modf.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "trace/args.h"
#include "trace/complex.h"
#include "trace/array.h"
#include "trace/compose.h"
#include "trace/loop.h"
#include "trace/refuse.h"
#include "trace/tensor.h"

hlo_val val_wrap_indices(struct tracer *tr, hlo_val i, int64_t size) {
  if (i && !dtype_is_int(i->shape.dtype))
    return trace_refuse(DG_UNSUPPORTED_INDEX, "convert them: idx.astype(np.int32)", "indices must be integers, not %s",
                        dtype_numpy_name(i->shape.dtype));
  bool is_signed = i && dtype_kind(i->shape.dtype) == DK_SIGNED;
  i = cast(tr, i, DT_I32);
  if (!i || i->op == HLO_CONSTANT || i->op == HLO_IOTA || size == 0 || !is_signed)
    return i;
  return sel(tr, cmp_k(tr, HLO_LT, i, 0), bin_k(tr, HLO_ADD, i, (double)size), i);
}

/* Returns the index arrays as one array, with a new last axis over them.  A single index array is returned as it is. */
static hlo_val index_vectors(struct tracer *tr, int n, hlo_val const *indices) {
  hlo_val xs[HLO_RANK_MAX];
  if (n == 1)
    return indices[0];
  for (int i = 0; i < n; i++)
    if (!(xs[i] = indices[i] ? val_expand(tr, indices[i], indices[i]->shape.rank) : NULL))
      return NULL;
  return hlo_concatenate(&tr->b, n, xs, xs[0]->shape.rank - 1);
}

/* Sets window to the positions in the result of the axes that are not indexed; the indices' axes are inserted at
 * `place`.  Sets sizes to the size of each axis, 1 for an indexed axis.  Returns the number of axes not indexed. */
static int window_axes(const struct hlo_shape *s, int n, const int *axes, int index_rank, int place, int64_t *window,
                       int64_t *sizes) {
  int w = 0;
  for (int d = 0; d < s->rank; d++) {
    bool indexed = false;
    for (int i = 0; i < n; i++)
      indexed = indexed || axes[i] == d;
    sizes[d] = indexed ? 1 : s->dims[d];
    if (!indexed) {
      window[w] = w < place ? w : w + index_rank;
      w++;
    }
  }
  return w;
}

/* Merges adjacent axes into one, and their indices into one linear index, because most hardware gathers along one axis.
 * Returns false if the axes are not adjacent. */
static bool merge_axes(struct tracer *tr, hlo_val *x, int n, const int *axes, hlo_val const *indices, hlo_val *index) {
  int64_t dims[HLO_RANK_MAX];
  int rank = 0;
  for (int i = 1; i < n; i++)
    if (axes[i] != axes[0] + i)
      return false;
  *index = indices[0];
  for (int i = 1; i < n; i++)
    *index = bin(tr, HLO_ADD, bin_k(tr, HLO_MULTIPLY, *index, (double)(*x)->shape.dims[axes[i]]), indices[i]);
  for (int d = 0; d < (*x)->shape.rank; d++)
    if (d > axes[0] && d < axes[0] + n)
      dims[rank - 1] *= (*x)->shape.dims[d];
    else
      dims[rank++] = (*x)->shape.dims[d];
  *x = hlo_reshape(&tr->b, *x, rank, dims);
  return true;
}

hlo_val val_gather(struct tracer *tr, hlo_val x, int n, const int *axes, hlo_val const *indices, int place) {
  int64_t window[HLO_RANK_MAX], sizes[HLO_RANK_MAX], at[HLO_RANK_MAX];
  if (!x || !indices[0])
    return NULL;
  assert(n >= 1 && place >= 0 && place <= x->shape.rank - n);
  int rank = indices[0]->shape.rank;
  hlo_val one;
  if (x->shape.rank - n + rank > HLO_RANK_MAX)
    return trace_refuse(DG_BAD_ARGUMENT, NULL, "at most %d dimensions are supported", HLO_RANK_MAX);
  if (n > 1 && merge_axes(tr, &x, n, axes, indices, &one))
    return val_gather(tr, x, 1, axes, &one, place);
  int w = window_axes(&x->shape, n, axes, rank, place, window, sizes);
  for (int i = 0; i < n; i++)
    at[i] = axes[i];
  struct hlo_gather_dims d = {.offset_dims = hlo_ints_dup(tr->a, w, window),
                              .collapsed_slice_dims = hlo_ints_dup(tr->a, n, at),
                              .start_index_map = hlo_ints_dup(tr->a, n, at),
                              .slice_sizes = hlo_ints_dup(tr->a, x->shape.rank, sizes),
                              .index_vector_dim = rank};
  return hlo_gather(&tr->b, x, index_vectors(tr, n, indices), &d);
}

hlo_val val_scatter(struct tracer *tr, hlo_val x, int n, const int *axes, hlo_val const *indices, int place,
                    hlo_val v) {
  int64_t window[HLO_RANK_MAX], sizes[HLO_RANK_MAX], at[HLO_RANK_MAX];
  if (!x || !v || !indices[0])
    return NULL;
  int w = window_axes(&x->shape, n, axes, indices[0]->shape.rank, place, window, sizes);
  for (int i = 0; i < n; i++)
    at[i] = axes[i];
  struct hlo_scatter_dims d = {.update_window_dims = hlo_ints_dup(tr->a, w, window),
                               .inserted_window_dims = hlo_ints_dup(tr->a, n, at),
                               .scatter_dims_to_operand_dims = hlo_ints_dup(tr->a, n, at),
                               .index_vector_dim = indices[0]->shape.rank};
  return hlo_scatter_assign(&tr->b, x, index_vectors(tr, n, indices), v, &d);
}

/* ---- one index per element
 * ---------------------------------------------------------------------------------------- */

/* Sets the coordinates in x for every element of idx: the index along `axis`, and the element's position along the
 * other axes.  Sizes of 1 in idx or x are broadcast as in NumPy; *x becomes the broadcast array. */
static bool along_coordinates(struct tracer *tr, hlo_val *x, hlo_val idx, int axis, bool may_widen_x, int *axes,
                              hlo_val *coordinates) {
  int64_t dims[HLO_RANK_MAX], wide[HLO_RANK_MAX] = {0};
  int rank = (*x)->shape.rank;
  if (idx->shape.rank != rank) {
    trace_refuse(DG_SHAPE_MISMATCH, "add axes to the indices with np.expand_dims",
                 "`indices` and `arr` must have the same number of dimensions");
    return false;
  }
  for (int i = 0; i < rank; i++) {
    int64_t a = (*x)->shape.dims[i], b = idx->shape.dims[i];
    dims[i] = i == axis ? b : a == 1 && may_widen_x ? b : a;
    wide[i] = i == axis ? a : dims[i];
    if (i != axis && a != b && b != 1 && !(a == 1 && may_widen_x)) {
      trace_refuse(DG_SHAPE_MISMATCH, NULL, "the indices do not broadcast to the array along axis %d", i);
      return false;
    }
  }
  *x = val_broadcast(tr, *x, rank, wide);
  idx = val_broadcast(tr, val_wrap_indices(tr, idx, wide[axis]), rank, dims);
  if (!*x || !idx)
    return false;
  for (int i = 0; i < rank; i++) {
    axes[i] = i;
    coordinates[i] = i == axis ? idx : val_positions(tr, idx, i);
  }
  return true;
}

/* Reads the indices.  Constant indices are checked and made non-negative. */
static hlo_val read_indices(struct tracer *tr, PyObject *o, int axis, int64_t size) {
  return tensor_check(o) ? tensor_val(tr, o) : val_known_indices(tr, o, axis, size);
}

PyObject *op_take_along_axis(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"arr", "indices", "axis", NULL};
  PyObject *a, *o, *axis = NULL;
  int at = 0, axes[HLO_RANK_MAX];
  hlo_val coordinates[HLO_RANK_MAX];
  if (!PyArg_ParseTupleAndKeywords(args, kw, "OO|O", names, &a, &o, &axis))
    return NULL;
  hlo_val x = operand_alone(tr, a);
  if (!x || !args_axis_or_flat(tr, op->name, axis, &x, &at))
    return NULL;
  hlo_val idx = read_indices(tr, o, at, x->shape.dims[at]);
  if (!idx || !along_coordinates(tr, &x, idx, at, true, axes, coordinates))
    return NULL;
  return tensor_wrap(tr, val_gather(tr, x, x->shape.rank, axes, coordinates, 0));
}

/* Returns the tensor that a function stores into, or NULL with an exception if o is no array. */
static struct tensor *written(struct tracer *tr, const struct op_def *op, PyObject *o) {
  if (!tensor_check(o) && PyArray_Check(o) && !(o = array_become(tr, o)))
    return NULL;
  if (!tensor_check(o))
    return trace_refuse(DG_BAD_ARGUMENT, NULL, "%s: the first argument must be an array, not %s", op->name,
                        Py_TYPE(o)->tp_name);
  return tensor_val(tr, o) && loop_may_write(tr, (struct tensor *)o) ? (struct tensor *)o : NULL;
}

static PyObject *store(struct tracer *tr, struct tensor *t, hlo_val v) {
  return v && tensor_store(tr, t, v, true) ? Py_NewRef(Py_None) : NULL;
}

PyObject *op_put_along_axis(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"arr", "indices", "values", "axis", NULL};
  PyObject *a, *o, *values, *axis;
  int at = 0, axes[HLO_RANK_MAX];
  hlo_val coordinates[HLO_RANK_MAX];
  if (!PyArg_ParseTupleAndKeywords(args, kw, "OOOO", names, &a, &o, &values, &axis))
    return NULL;
  struct tensor *t = written(tr, op, a);
  hlo_val x = t ? t->v : NULL, whole = x;
  if (!x)
    return NULL;
  if (axis == Py_None)
    x = val_flat(tr, x);
  else if (!args_axis(axis, x->shape.rank, &at))
    return NULL;
  hlo_val idx = x ? read_indices(tr, o, at, x->shape.dims[at]) : NULL;
  if (!idx || !along_coordinates(tr, &x, idx, at, false, axes, coordinates))
    return NULL;
  hlo_val v = val_stored(tr, values, x->shape.dtype, idx->shape.rank, coordinates[0]->shape.dims);
  v = val_scatter(tr, x, x->shape.rank, axes, coordinates, 0, v);
  return store(tr, t, v ? hlo_reshape(&tr->b, v, whole->shape.rank, whole->shape.dims) : NULL);
}

/* ---- stores by condition
 * ------------------------------------------------------------------------------------------- */

/* copyto(dst, src, casting=…, where=True) */
PyObject *op_copyto(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"dst", "src", "casting", "where", NULL};
  PyObject *a, *src, *casting, *where = NULL;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "OO|OO", names, &a, &src, &casting, &where))
    return NULL;
  struct tensor *t = written(tr, op, a);
  hlo_val x = t ? t->v : NULL;
  hlo_val v = x ? val_stored(tr, src, x->shape.dtype, x->shape.rank, x->shape.dims) : NULL;
  if (v && where && where != Py_True) {
    hlo_val c = operand_alone(tr, where);
    v = c ? sel(tr, val_broadcast(tr, val_nonzero(tr, c), x->shape.rank, x->shape.dims), v, x) : NULL;
  }
  return store(tr, t, v);
}

hlo_val val_store_masked(struct tracer *tr, hlo_val x, hlo_val mask, PyObject *value) {
  int64_t dims[HLO_RANK_MAX], rest[HLO_RANK_MAX];
  int rank = x->shape.rank, n = mask->shape.rank;
  for (int i = 0; i < rank; i++) {
    dims[i] = i < n ? mask->shape.dims[i] : 1;
    if (i < n && mask->shape.dims[i] != x->shape.dims[i])
      return trace_refuse(DG_SHAPE_MISMATCH, NULL, "the mask does not have the array's shape along axis %d", i);
  }
  hlo_val v = operand_alone(tr, value);
  for (int i = 0; v && i < v->shape.rank; i++)
    rest[i] = x->shape.dims[rank - v->shape.rank + i >= 0 ? rank - v->shape.rank + i : 0];
  bool fits = v && v->shape.rank <= rank - n; /* one value for every element of the mask */
  for (int i = 0; fits && i < v->shape.rank; i++)
    fits = v->shape.dims[i] == 1 || v->shape.dims[i] == rest[i];
  if (!v || !fits)
    return v ? trace_refuse(
                   DG_UNSUPPORTED_INDEX, "use x[...] = np.where(mask, values, x)",
                   "writing an array at a boolean mask is not supported: how much of it is used depends on data")
             : NULL;
  v = val_stored(tr, value, x->shape.dtype, rank, x->shape.dims);
  mask = hlo_reshape(&tr->b, mask, rank, dims);
  return sel(tr, val_broadcast(tr, mask, rank, x->shape.dims), v, x);
}

/* putmask(a, mask, values).  NumPy repeats values if there are fewer than a has elements.  Here values must have one
 * element, or as many as a. */
PyObject *op_putmask(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "mask", "values", NULL};
  PyObject *a, *mask, *values;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "OOO", names, &a, &mask, &values))
    return NULL;
  struct tensor *t = written(tr, op, a);
  hlo_val x = t ? t->v : NULL, c = x ? operand_alone(tr, mask) : NULL;
  hlo_val v = c ? operand_alone(tr, values) : NULL;
  if (!v)
    return NULL;
  if (hlo_shape_elements(&v->shape) != 1 && hlo_shape_elements(&v->shape) != hlo_shape_elements(&x->shape))
    return trace_refuse(DG_UNSUPPORTED_OP, "use np.copyto(a, values, where=mask)",
                        "%s with values that repeat is not supported", op->name);
  v = hlo_shape_elements(&v->shape) == 1 ? hlo_reshape(&tr->b, v, 0, NULL)
                                         : hlo_reshape(&tr->b, v, x->shape.rank, x->shape.dims);
  v = val_broadcast(tr, cast(tr, v, x->shape.dtype), x->shape.rank, x->shape.dims);
  return store(tr, t, sel(tr, val_broadcast(tr, val_nonzero(tr, c), x->shape.rank, x->shape.dims), v, x));
}

PyObject *op_fill_diagonal(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "val", "wrap", NULL};
  PyObject *a, *value, *wrap = NULL;
  bool wraps = false;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "OO|O", names, &a, &value, &wrap) || !args_flag(wrap, &wraps))
    return NULL;
  struct tensor *t = written(tr, op, a);
  hlo_val x = t ? t->v : NULL, v = x ? operand_alone(tr, value) : NULL;
  if (!v)
    return NULL;
  if (x->shape.rank != 2 || v->shape.rank || wraps)
    return trace_refuse(DG_UNSUPPORTED_OP, "use np.where(np.eye(n, dtype=bool), value, a)",
                        "fill_diagonal is only supported for a matrix and one value");
  v = val_broadcast(tr, cast(tr, v, x->shape.dtype), 2, x->shape.dims);
  return store(tr, t, sel(tr, cmp(tr, HLO_EQ, val_positions(tr, x, 0), val_positions(tr, x, 1)), v, x));
}

/* ---- choosing
 * -------------------------------------------------------------------------------------------------------- */

/* select(condlist, choicelist, default=0): the first true condition determines the choice. */
PyObject *op_select(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"condlist", "choicelist", "default", NULL};
  PyObject *conditions, *choices, *other = NULL, *zero = NULL, *all = NULL;
  hlo_val *xs = NULL, v = NULL;
  int n = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "OO|O", names, &conditions, &choices, &other))
    return NULL;
  PyObject *cs = PySequence_Fast(conditions, "select needs a list of conditions"),
           *list = cs ? PySequence_List(choices) : NULL;
  zero = PyLong_FromLong(0);
  if (list && PyList_GET_SIZE(list) != PySequence_Fast_GET_SIZE(cs))
    trace_refuse(DG_BAD_ARGUMENT, NULL, "list of cases must be same length as list of conditions");
  else if (list && zero && PyList_Append(list, other ? other : zero) == 0 && (all = Py_NewRef(list)) &&
           operand_read_list(tr, op->name, all, NULL, &n, &xs)) {
    v = xs[n - 1];
    for (int i = n - 1; v && i-- > 0;) {
      hlo_val c = operand_alone(tr, PySequence_Fast_GET_ITEM(cs, i));
      v = val_where(tr, c, xs[i], v);
    }
  }
  Py_XDECREF(all);
  Py_XDECREF(zero);
  Py_XDECREF(list);
  Py_XDECREF(cs);
  return tensor_wrap(tr, v);
}

/* choose(a, choices, out=None, mode="raise"): each element of a is the number of the array to read from.  A traced
 * index that is out of range cannot raise an exception; it selects the nearest array, as mode="clip" does. */
PyObject *op_choose(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "choices", "out", "mode", NULL};
  PyObject *a, *choices, *out = NULL;
  const char *mode = "raise";
  hlo_val *xs = NULL;
  int n = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "OO|Os", names, &a, &choices, &out, &mode) ||
      !args_only_none(out, op->name, "out") || !operand_read_list(tr, op->name, choices, NULL, &n, &xs))
    return NULL;
  if (strcmp(mode, "raise") && strcmp(mode, "clip"))
    return trace_refuse(DG_UNSUPPORTED_OP, "take the remainder first: np.choose(a % n, choices)",
                        "%s with mode=\"%.20s\" is not supported", op->name, mode);
  hlo_val i = operand_alone(tr, a);
  if (i && !dtype_is_int(i->shape.dtype) && i->shape.dtype != DT_BOOL)
    return trace_refuse(DG_BAD_ARGUMENT, "convert them: a.astype(np.int32)", "%s: the indices must be integers, not %s",
                        op->name, dtype_numpy_name(i->shape.dtype));
  i = cast(tr, i, DT_I32);
  hlo_val v = i ? val_where(tr, cmp_k(tr, HLO_GE, i, n - 1), xs[n - 1], xs[n - 1]) : NULL;
  for (int k = n - 1; v && k-- > 0;)
    v = val_where(tr, cmp_k(tr, HLO_LE, i, k), xs[k], v);
  return tensor_wrap(tr, v);
}

/* compress(condition, a, axis=None).  The condition must be known while tracing. */
PyObject *op_compress(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"condition", "a", "axis", "out", NULL};
  PyObject *c, *a, *axis = NULL, *out = NULL;
  int at = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "OO|OO", names, &c, &a, &axis, &out) ||
      !args_only_none(out, op->name, "out"))
    return NULL;
  if (tensor_check(c))
    return trace_refuse(DG_UNSUPPORTED_OP, "use np.where(condition, x, y)",
                        "%s with a traced condition is not supported: the result's size depends on data", op->name);
  hlo_val x = operand_alone(tr, a);
  if (!x)
    return NULL;
  if (!axis || axis == Py_None)
    x = val_flat(tr, x);
  else if (!args_axis(axis, x->shape.rank, &at))
    return NULL;
  PyObject *numpy = PyImport_ImportModule("numpy"),
           *where = numpy ? PyObject_CallMethod(numpy, "flatnonzero", "O", c) : NULL;
  hlo_val idx = where && x ? val_known_indices(tr, where, at, x->shape.dims[at]) : NULL;
  Py_XDECREF(numpy);
  Py_XDECREF(where);
  return tensor_wrap(tr, val_take(tr, x, idx, at));
}

/* ---- comparing
 * ------------------------------------------------------------------------------------------------------- */

static hlo_val all_of(struct tracer *tr, hlo_val x) {
  bool mask[HLO_RANK_MAX];
  memset(mask, true, sizeof mask);
  return x ? val_reduce(tr, HLO_AND, x, mask, false) : NULL;
}

/* |a - b| <= atol + rtol |b|, or a == b, which covers infinities.  arg: 0 isclose, 1 allclose */
PyObject *op_isclose(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "b", "rtol", "atol", "equal_nan", NULL};
  PyObject *a, *b, *nan = NULL;
  double rtol = 1e-5, atol = 1e-8;
  bool equal_nan = false;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "OO|ddO", names, &a, &b, &rtol, &atol, &nan) ||
      !args_flag(nan, &equal_nan))
    return NULL;
  hlo_val x = operand_alone(tr, a), y = operand_alone(tr, b);
  if (!x || !y)
    return NULL;
  /* NumPy first converts integers and ml_dtypes' floats to float64; some of these types have no infinity */
  x = x->shape.dtype == DT_F16 || val_is_complex(x) ? x : cast(tr, x, DT_F32);
  y = y->shape.dtype == DT_F16 || val_is_complex(y) ? y : cast(tr, y, DT_F32);
  hlo_val d = un(tr, HLO_ABS, val_arith(tr, OP_SUBTRACT, x, y));
  hlo_val limit = bin_k(tr, HLO_ADD, bin_k(tr, HLO_MULTIPLY, un(tr, HLO_ABS, y), rtol), atol);
  hlo_val near = val_compare(tr, HLO_LE, d, limit), finite = y ? cmp_k(tr, HLO_LT, un(tr, HLO_ABS, y), HUGE_VAL) : NULL;
  hlo_val r = val_arith(tr, OP_MULTIPLY, near, finite); /* and */
  r = val_arith(tr, OP_ADD, r, val_compare(tr, HLO_EQ, x, y));
  if (equal_nan && x && y)
    r = val_arith(tr, OP_ADD, r, val_arith(tr, OP_MULTIPLY, cmp(tr, HLO_NE, x, x), cmp(tr, HLO_NE, y, y)));
  return tensor_wrap(tr, op->arg.n ? all_of(tr, r) : r);
}

/* arg: 0 array_equal, 1 array_equiv (shapes may broadcast) */
PyObject *op_array_equal(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a1", "a2", NULL};
  PyObject *a, *b;
  int rank = 0;
  int64_t dims[HLO_RANK_MAX];
  if (!PyArg_ParseTupleAndKeywords(args, kw, "OO", names, &a, &b))
    return NULL;
  hlo_val x = operand_alone(tr, a), y = operand_alone(tr, b);
  if (!x || !y)
    return NULL;
  struct operand xy[] = {operand_of(x), operand_of(y)};
  bool fit = op->arg.n ? operand_broadcast(2, xy, &rank, dims) : hlo_shape_same_dims(&x->shape, &y->shape);
  PyErr_Clear();
  return tensor_wrap(tr, fit ? all_of(tr, val_compare(tr, HLO_EQ, x, y)) : hlo_scalar(&tr->b, DT_BOOL, 0));
}

/* Returns, for each value, the number of elements of the sorted vector that are below it (HLO_LT), or below or equal to
 * it (HLO_LE). */
static hlo_val count_below(struct tracer *tr, hlo_val sorted, hlo_val v, enum hlo_direction d) {
  hlo_val hit = val_compare(tr, d, sorted, v ? val_expand(tr, v, v->shape.rank) : NULL);
  return hit ? val_reduce_axis(tr, HLO_ADD, cast(tr, hit, DT_I32), hit->shape.rank - 1, false) : NULL;
}

PyObject *op_searchsorted(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "v", "side", "sorter", NULL};
  PyObject *a, *v, *sorter = NULL;
  const char *side = "left";
  if (!PyArg_ParseTupleAndKeywords(args, kw, "OO|sO", names, &a, &v, &side, &sorter) ||
      !args_only_none(sorter, op->name, "sorter"))
    return NULL;
  hlo_val x = operand_alone(tr, a);
  if (x && x->shape.rank != 1)
    return trace_refuse(DG_BAD_ARGUMENT, NULL, "%s: the first array must have one dimension", op->name);
  return tensor_wrap(tr, count_below(tr, x, x ? operand_alone(tr, v) : NULL, side[0] == 'r' ? HLO_LE : HLO_LT));
}

/* digitize(x, bins, right=False).  The bins must be constant and must not decrease. */
PyObject *op_digitize(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"x", "bins", "right", NULL};
  PyObject *a, *bins, *o = NULL;
  bool right = false;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "OO|O", names, &a, &bins, &o) || !args_flag(o, &right))
    return NULL;
  if (tensor_check(bins))
    return trace_refuse(DG_UNSUPPORTED_OP, "use np.searchsorted with bins that rise",
                        "%s with traced bins is not supported: their order depends on data", op->name);
  PyObject *numpy = PyImport_ImportModule("numpy"), *d = numpy ? PyObject_CallMethod(numpy, "diff", "O", bins) : NULL;
  PyObject *least = d && PyObject_Size(d) > 0 ? PyObject_CallMethod(d, "min", NULL) : d ? PyFloat_FromDouble(0) : NULL;
  double smallest = least ? PyFloat_AsDouble(least) : -1;
  Py_XDECREF(numpy);
  Py_XDECREF(d);
  Py_XDECREF(least);
  if (PyErr_Occurred())
    return NULL;
  if (smallest < 0)
    return trace_refuse(DG_UNSUPPORTED_OP, "reverse the bins", "%s with falling bins is not supported", op->name);
  hlo_val x = operand_alone(tr, a), b = operand_alone(tr, bins);
  return tensor_wrap(tr, count_below(tr, b, x, right ? HLO_LT : HLO_LE));
}

/* isin(element, test_elements): every element is compared with every test element. */
PyObject *op_isin(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"element", "test_elements", "assume_unique", "invert", NULL};
  PyObject *a, *b, *unique = NULL, *o = NULL;
  bool invert = false;
  (void)op;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "OO|OO", names, &a, &b, &unique, &o) || !args_flag(o, &invert))
    return NULL;
  hlo_val x = operand_alone(tr, a), y = val_flat(tr, operand_alone(tr, b));
  hlo_val hit = val_compare(tr, HLO_EQ, x ? val_expand(tr, x, x->shape.rank) : NULL, y);
  hlo_val v = hit ? val_reduce_axis(tr, HLO_OR, hit, hit->shape.rank - 1, false) : NULL;
  return tensor_wrap(tr, invert ? un(tr, HLO_NOT, v) : v);
}

/* modf: returns (fraction, whole), both with x's sign. */
PyObject *op_modf(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  PyObject *a;
  (void)op, (void)kw;
  if (!PyArg_ParseTuple(args, "O", &a))
    return NULL;
  hlo_val x = as_float(tr, operand_alone(tr, a));
  hlo_val whole = x ? sel(tr, cmp_k(tr, HLO_GE, x, 0), un(tr, HLO_FLOOR, x), un(tr, HLO_CEIL, x)) : NULL;
  hlo_val rest =
      x ? sel(tr, cmp_k(tr, HLO_EQ, un(tr, HLO_ABS, x), HUGE_VAL), val_like(tr, x, 0), bin(tr, HLO_SUBTRACT, x, whole))
        : NULL;
  PyObject *f = tensor_wrap(tr, rest), *w = f ? tensor_wrap(tr, whole) : NULL, *r = w ? PyTuple_Pack(2, f, w) : NULL;
  Py_XDECREF(f);
  Py_XDECREF(w);
  return r;
}
