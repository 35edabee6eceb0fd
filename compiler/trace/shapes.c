/* shapes: operations that only move elements. */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "trace/args.h"
#include "trace/compose.h"
#include "trace/refuse.h"
#include "trace/tensor.h"
#include "trace/trace.h"

static bool c_order(PyObject *order) {
  if (!order || order == Py_None || (PyUnicode_Check(order) && PyUnicode_CompareWithASCIIString(order, "F") != 0))
    return true;
  trace_refuse(DG_UNSUPPORTED_OP, "transpose first: x.T.reshape(…)", "order='F' is not supported");
  return false;
}

/* Replaces a -1 in the shape, and refuses a shape with a different number of elements. */
static bool complete_shape(const struct hlo_shape *from, int n, int64_t *dims) {
  int64_t total = hlo_shape_elements(from), known = 1;
  int hole = -1;
  char a[DIMS_TEXT_MAX], b[DIMS_TEXT_MAX];
  bool ok = true;
  for (int i = 0; i < n && ok; i++)
    if (dims[i] == -1 && hole < 0)
      hole = i;
    else
      ok = dims[i] >= 0 && !__builtin_mul_overflow(known, dims[i], &known);
  if (ok && hole >= 0 && known > 0 && total % known == 0)
    dims[hole] = total / known;
  else
    ok = ok && hole < 0 && known == total;
  if (!ok)
    trace_refuse(DG_SHAPE_MISMATCH, NULL, "cannot reshape array of shape %s into shape %s",
                 dims_text(from->rank, from->dims, a), dims_text(n, dims, b));
  return ok;
}

PyObject *op_reshape(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "shape", "order", "newshape", "copy", NULL};
  PyObject *a, *shape = NULL, *order = NULL, *newshape = NULL, *copy = NULL;
  int64_t dims[HLO_RANK_MAX];
  int n = 0;
  (void)op;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|OO$OO", names, &a, &shape, &order, &newshape, &copy) || !c_order(order))
    return NULL;
  shape = shape ? shape : newshape;
  if (!shape)
    return trace_refuse(DG_BAD_ARGUMENT, NULL, "reshape needs a shape");
  hlo_val x = operand_alone(tr, a);
  if (!x || !args_dims(shape, "shape", &n, dims) || !complete_shape(&x->shape, n, dims))
    return NULL;
  return tensor_wrap(tr, hlo_reshape(&tr->b, x, n, dims));
}

hlo_val val_flat(struct tracer *tr, hlo_val x) {
  int64_t n = x ? hlo_shape_elements(&x->shape) : 0;
  return x ? hlo_reshape(&tr->b, x, 1, &n) : NULL;
}

bool args_axis_or_flat(struct tracer *tr, const char *name, PyObject *axis, hlo_val *x, int *at) {
  *at = (*x)->shape.rank - 1;
  if (axis == Py_None) {
    *x = val_flat(tr, *x);
    *at = 0;
  } else if (axis && !args_axis(axis, (*x)->shape.rank, at)) {
    return false;
  }
  if (*x && (*x)->shape.rank == 0)
    trace_refuse(DG_BAD_ARGUMENT, NULL, "%s needs at least one dimension", name);
  return *x && (*x)->shape.rank > 0;
}

PyObject *op_ravel(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "order", NULL};
  PyObject *a, *order = NULL;
  (void)op;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|O", names, &a, &order) || !c_order(order))
    return NULL;
  return tensor_wrap(tr, val_flat(tr, operand_alone(tr, a)));
}

hlo_val val_transpose(struct tracer *tr, hlo_val x, const int64_t *permutation) {
  bool same = true;
  for (int i = 0; x && i < x->shape.rank; i++)
    same = same && permutation[i] == i;
  return !x || same ? x : hlo_transpose(&tr->b, x, permutation);
}

PyObject *op_transpose(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "axes", NULL};
  PyObject *a, *axes = NULL;
  int64_t p[HLO_RANK_MAX];
  bool seen[HLO_RANK_MAX] = {0};
  int n = 0;
  (void)op;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|O", names, &a, &axes))
    return NULL;
  hlo_val x = operand_alone(tr, a);
  if (!x)
    return NULL;
  int rank = x->shape.rank;
  if (!axes || axes == Py_None) {
    for (int i = 0; i < rank; i++)
      p[i] = rank - 1 - i;
    return tensor_wrap(tr, val_transpose(tr, x, p));
  }
  if (!args_dims(axes, "axes", &n, p))
    return NULL;
  if (n != rank)
    return trace_refuse(DG_BAD_ARGUMENT, NULL, "axes don't match array: %d axes given for %d dimensions", n, rank);
  for (int i = 0; i < n; i++) {
    if (p[i] < -rank || p[i] >= rank)
      return trace_refuse_axis((long long)p[i], rank);
    p[i] += p[i] < 0 ? rank : 0;
    if (seen[p[i]])
      return trace_refuse(DG_BAD_ARGUMENT, NULL, "repeated axis in transpose");
    seen[p[i]] = true;
  }
  return tensor_wrap(tr, val_transpose(tr, x, p));
}

PyObject *op_swapaxes(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "axis1", "axis2", NULL};
  PyObject *a, *o1, *o2;
  int64_t p[HLO_RANK_MAX];
  int i, j;
  (void)op;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "OOO", names, &a, &o1, &o2))
    return NULL;
  hlo_val x = operand_alone(tr, a);
  if (!x || !args_axis(o1, x->shape.rank, &i) || !args_axis(o2, x->shape.rank, &j))
    return NULL;
  for (int d = 0; d < x->shape.rank; d++)
    p[d] = d == i ? j : d == j ? i : d;
  return tensor_wrap(tr, val_transpose(tr, x, p));
}

hlo_val val_reshape(struct tracer *tr, hlo_val x, int rank, const int64_t *dims) {
  return x && args_rank(rank) ? hlo_reshape(&tr->b, x, rank, dims) : NULL;
}

PyObject *op_moveaxis(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "source", "destination", NULL};
  PyObject *a, *src, *dst;
  int64_t from[HLO_RANK_MAX], to[HLO_RANK_MAX], p[HLO_RANK_MAX];
  int n = 0, m = 0;
  (void)op;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "OOO", names, &a, &src, &dst))
    return NULL;
  hlo_val x = operand_alone(tr, a);
  if (!x || !args_axis_list(src, x->shape.rank, &n, from) || !args_axis_list(dst, x->shape.rank, &m, to))
    return NULL;
  if (n != m)
    return trace_refuse(DG_BAD_ARGUMENT, NULL, "moveaxis needs as many destinations as sources");
  bool taken[HLO_RANK_MAX] = {0};
  for (int i = 0; i < x->shape.rank; i++)
    p[i] = -1;
  for (int i = 0; i < n; i++) {
    p[to[i]] = from[i];
    taken[from[i]] = true;
  }
  for (int i = 0, next = 0; i < x->shape.rank; i++)
    if (p[i] < 0) {
      while (taken[next])
        next++;
      p[i] = next++;
    }
  return tensor_wrap(tr, val_transpose(tr, x, p));
}

static hlo_val expand(struct tracer *tr, hlo_val x, int n, const int64_t *axes) {
  int64_t dims[HLO_RANK_MAX];
  int rank = x->shape.rank + n;
  for (int i = 0, from = 0; i < rank; i++) {
    bool is_new = false;
    for (int j = 0; j < n; j++)
      is_new = is_new || axes[j] == i;
    dims[i] = is_new ? 1 : x->shape.dims[from++];
  }
  return hlo_reshape(&tr->b, x, rank, dims);
}

hlo_val val_expand(struct tracer *tr, hlo_val x, int axis) {
  int64_t at = axis;
  assert(axis >= 0 && (!x || axis <= x->shape.rank));
  return x && args_rank(x->shape.rank + 1) ? expand(tr, x, 1, &at) : NULL;
}

PyObject *op_expand_dims(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "axis", NULL};
  PyObject *a, *axis;
  int64_t axes[HLO_RANK_MAX];
  int n = 0;
  (void)op;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "OO", names, &a, &axis))
    return NULL;
  hlo_val x = operand_alone(tr, a);
  if (!x || !args_dims(axis, "axis", &n, axes) || !args_rank(x->shape.rank + n) ||
      !args_axis_list(axis, x->shape.rank + n, &n, axes))
    return NULL;
  return tensor_wrap(tr, expand(tr, x, n, axes));
}

PyObject *op_squeeze(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "axis", NULL};
  PyObject *a, *axis = NULL;
  int64_t dims[HLO_RANK_MAX];
  bool mask[HLO_RANK_MAX];
  int n = 0;
  (void)op;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|O", names, &a, &axis))
    return NULL;
  hlo_val x = operand_alone(tr, a);
  if (!x || !args_axes(axis, x->shape.rank, mask))
    return NULL;
  bool all = !axis || axis == Py_None;
  for (int i = 0; i < x->shape.rank; i++) {
    bool is_one = x->shape.dims[i] == 1;
    if (mask[i] && !is_one && !all)
      return trace_refuse(DG_BAD_ARGUMENT, NULL,
                          "cannot select an axis to squeeze out which has size not equal to one: axis %d has size %lld",
                          i, (long long)x->shape.dims[i]);
    if (!(mask[i] && is_one))
      dims[n++] = x->shape.dims[i];
  }
  return tensor_wrap(tr, hlo_reshape(&tr->b, x, n, dims));
}

/* ---- joining ---------------------------------------------------------------------------------------------- */

hlo_val val_concat(struct tracer *tr, int n, hlo_val const *xs, int axis) {
  char a[DIMS_TEXT_MAX], b[DIMS_TEXT_MAX];
  for (int i = 1; i < n; i++)
    for (int d = 0; d < xs[0]->shape.rank; d++)
      if (xs[i]->shape.rank != xs[0]->shape.rank || (d != axis && xs[i]->shape.dims[d] != xs[0]->shape.dims[d]))
        return trace_refuse(DG_SHAPE_MISMATCH, "all axes but the one that is joined must be equal",
                            "concatenate: shapes %s and %s do not fit together along axis %d",
                            dims_text(xs[0]->shape.rank, xs[0]->shape.dims, a),
                            dims_text(xs[i]->shape.rank, xs[i]->shape.dims, b), axis);
  return n == 1 ? hlo_unary(&tr->b, HLO_COPY, xs[0]) : hlo_concatenate(&tr->b, n, xs, axis);
}

PyObject *op_concatenate(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"arrays", "axis", "out", "dtype", "casting", NULL};
  PyObject *arrays, *axis = NULL, *out = NULL, *dtype = NULL, *casting;
  int n = 0, at = 0;
  hlo_val *xs = NULL;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|OO$OO", names, &arrays, &axis, &out, &dtype, &casting) ||
      !args_only_none(out, op->name, "out") || !operand_read_list(tr, op->name, arrays, dtype, &n, &xs))
    return NULL;
  if (axis == Py_None) {
    for (int i = 0; i < n; i++)
      xs[i] = val_flat(tr, xs[i]);
  } else {
    if (xs[0]->shape.rank == 0)
      return trace_refuse(DG_BAD_ARGUMENT, "use np.stack", "zero-dimensional arrays cannot be concatenated");
    if (axis && !args_axis(axis, xs[0]->shape.rank, &at))
      return NULL;
  }
  return tensor_wrap(tr, val_concat(tr, n, xs, at));
}

PyObject *op_stack(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"arrays", "axis", "out", "dtype", "casting", NULL};
  PyObject *arrays, *axis = NULL, *out = NULL, *dtype = NULL, *casting;
  int n = 0, at = 0;
  hlo_val *xs = NULL;
  char a[DIMS_TEXT_MAX], b[DIMS_TEXT_MAX];
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|OO$OO", names, &arrays, &axis, &out, &dtype, &casting) ||
      !args_only_none(out, op->name, "out") || !operand_read_list(tr, op->name, arrays, dtype, &n, &xs) ||
      !args_rank(xs[0]->shape.rank + 1) || (axis && !args_axis(axis, xs[0]->shape.rank + 1, &at)))
    return NULL;
  for (int i = 0; i < n; i++) {
    if (!hlo_shape_same_dims(&xs[i]->shape, &xs[0]->shape))
      return trace_refuse(DG_SHAPE_MISMATCH, NULL, "stack: all arrays must have the same shape, not %s and %s",
                          dims_text(xs[0]->shape.rank, xs[0]->shape.dims, a),
                          dims_text(xs[i]->shape.rank, xs[i]->shape.dims, b));
    int64_t place = at;
    hlo_val e = i == 0 ? NULL : expand(tr, xs[i], 1, &place);
    if (i > 0 && !(xs[i] = e))
      return NULL;
  }
  int64_t place = at;
  if (!(xs[0] = expand(tr, xs[0], 1, &place)))
    return NULL;
  return tensor_wrap(tr, val_concat(tr, n, xs, at));
}

/* ---- splitting and repeating --------------------------------------------------------------------------------- */

hlo_val val_slice(struct tracer *tr, hlo_val x, int axis, int64_t start, int64_t stop) {
  assert(axis >= 0 && axis < x->shape.rank && start >= 0 && start <= stop);
  struct hlo_slice_dim d[HLO_RANK_MAX];
  for (int i = 0; i < x->shape.rank; i++)
    d[i] = i == axis ? (struct hlo_slice_dim){start, stop, 1} : (struct hlo_slice_dim){0, x->shape.dims[i], 1};
  return hlo_slice(&tr->b, x, d);
}

static int64_t clamp(int64_t i, int64_t size) {
  i += i < 0 ? size : 0;
  return i < 0 ? 0 : i > size ? size : i;
}

/* Returns the parts of x between n points, as Python slices would. */
static PyObject *cut(struct tracer *tr, hlo_val x, int axis, Py_ssize_t n, const int64_t *points) {
  PyObject *list = PyList_New(0);
  int64_t size = x->shape.dims[axis], from = 0;
  for (Py_ssize_t i = 0; list && i <= n; i++) {
    int64_t to = i < n ? clamp(points[i], size) : size;
    PyObject *part = tensor_wrap(tr, val_slice(tr, x, axis, from, to < from ? from : to));
    if (!part || PyList_Append(list, part) < 0)
      Py_CLEAR(list);
    Py_XDECREF(part);
    from = to;
  }
  return list;
}

PyObject *op_split(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"ary", "indices_or_sections", "axis", NULL};
  PyObject *a, *where, *axis = NULL;
  int at = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "OO|O", names, &a, &where, &axis))
    return NULL;
  hlo_val x = operand_alone(tr, a);
  if (!x || x->shape.rank == 0)
    return x ? trace_refuse(DG_BAD_ARGUMENT, NULL, "%s: a 0-d tensor has no axis to split", op->name) : NULL;
  if (axis && !args_axis(axis, x->shape.rank, &at))
    return NULL;
  if (!PyIndex_Check(where) || tensor_check(where)) {
    PyObject *seq = PySequence_Fast(where, "split needs a number of sections or a list of indices");
    Py_ssize_t n = seq ? PySequence_Fast_GET_SIZE(seq) : 0;
    int64_t *points = arena_new_array(tr->a, int64_t, (size_t)n);
    bool ok = seq;
    for (Py_ssize_t i = 0; ok && i < n; i++)
      ok = args_int(PySequence_Fast_GET_ITEM(seq, i), "a split index", &points[i]);
    Py_XDECREF(seq);
    return ok ? cut(tr, x, at, n, points) : NULL;
  }
  int64_t sections = 0, size = x->shape.dims[at];
  if (!args_int(where, "the number of sections", &sections))
    return NULL;
  if (sections <= 0 || sections > TRACE_OPS_MAX)
    return trace_refuse(DG_BAD_ARGUMENT, NULL, "number of sections must be larger than 0 (and at most %d)",
                        TRACE_OPS_MAX);
  if (size % sections && !op->arg.n)
    return trace_refuse(DG_BAD_ARGUMENT, "give the indices to cut at: np.split(x, [10, 20])",
                        "array split does not result in an equal division: %lld into %lld", (long long)size,
                        (long long)sections);
  int64_t *points = arena_new_array(tr->a, int64_t, (size_t)sections), each = size / sections, extra = size % sections;
  for (int64_t i = 0; i + 1 < sections; i++) /* in array_split the first sections are longer by one */
    points[i] = (i + 1) * each + (i + 1 < extra ? i + 1 : extra);
  return cut(tr, x, at, sections - 1, points);
}

PyObject *op_broadcast_to(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"array", "shape", "subok", NULL};
  PyObject *a, *shape, *subok;
  int64_t dims[HLO_RANK_MAX];
  int n = 0;
  char s[DIMS_TEXT_MAX], t[DIMS_TEXT_MAX];
  (void)op;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "OO|O", names, &a, &shape, &subok))
    return NULL;
  hlo_val x = operand_alone(tr, a);
  if (!x || !args_dims(shape, "shape", &n, dims))
    return NULL;
  bool ok = x->shape.rank <= n;
  for (int i = 0; ok && i < x->shape.rank; i++)
    ok = x->shape.dims[i] == 1 || x->shape.dims[i] == dims[n - x->shape.rank + i];
  for (int i = 0; ok && i < n; i++)
    ok = dims[i] >= 0;
  if (!ok)
    return trace_refuse(DG_SHAPE_MISMATCH, "the axes are matched from the right; each must be equal or 1",
                        "shape %s cannot be broadcast to %s", dims_text(x->shape.rank, x->shape.dims, s),
                        dims_text(n, dims, t));
  hlo_val v = val_broadcast(tr, x, n, dims);
  return tensor_wrap(tr, v == x ? hlo_unary(&tr->b, HLO_COPY, x) : v);
}

/* repeat: a broadcast adds an axis after the old one, and a reshape merges both.  One count per element is refused. */
PyObject *op_repeat(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "repeats", "axis", NULL};
  PyObject *a, *repeats, *axis = NULL;
  int64_t wide[HLO_RANK_MAX + 1], dims[HLO_RANK_MAX], place[HLO_RANK_MAX], count = 0;
  int at = 0;
  (void)op;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "OO|O", names, &a, &repeats, &axis))
    return NULL;
  if (!tensor_check(repeats) && PySequence_Check(repeats))
    return trace_refuse(DG_UNSUPPORTED_OP, "use np.take with a list of indices",
                        "repeat with one count per element is not supported");
  if (!args_int(repeats, "repeats", &count))
    return NULL;
  if (count < 0)
    return trace_refuse(DG_BAD_ARGUMENT, NULL, "repeats may not contain negative values");
  hlo_val x = operand_alone(tr, a);
  if (x && (!axis || axis == Py_None))
    x = val_flat(tr, x);
  else if (x && !args_axis(axis, x->shape.rank, &at))
    return NULL;
  if (!x || !args_rank(x->shape.rank + 1))
    return NULL;
  int rank = x->shape.rank;
  for (int i = 0; i < rank; i++) {
    place[i] = i + (i > at);
    wide[place[i]] = dims[i] = x->shape.dims[i];
  }
  wide[at + 1] = count;
  if (__builtin_mul_overflow(dims[at], count, &dims[at]))
    return trace_refuse(DG_BAD_ARGUMENT, NULL, "repeats is too large");
  return tensor_wrap(tr, hlo_reshape(&tr->b, hlo_broadcast(&tr->b, x, rank + 1, wide, place), rank, dims));
}

/* np.shape, np.ndim, np.size: plain Python values. */
PyObject *op_shape(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "axis", NULL};
  PyObject *a, *axis = NULL;
  int at = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|O", names, &a, &axis))
    return NULL;
  hlo_val x = operand_alone(tr, a);
  if (!x)
    return NULL;
  if (op->arg.n == 0)
    return PyArray_IntTupleFromIntp(x->shape.rank, x->shape.dims);
  if (op->arg.n == 1)
    return PyLong_FromLong(x->shape.rank);
  if (axis && axis != Py_None)
    return args_axis(axis, x->shape.rank, &at) ? PyLong_FromLongLong(x->shape.dims[at]) : NULL;
  return PyLong_FromLongLong(hlo_shape_elements(&x->shape));
}
