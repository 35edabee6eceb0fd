/* rearrange: operations that consist of slices, reshapes and concatenations: tile, roll, pad, diff, hstack, meshgrid,
 * …
 */
#include <assert.h>
#include <string.h>

#include "trace/args.h"
#include "trace/compose.h"
#include "trace/refuse.h"
#include "trace/tensor.h"
#include "trace/trace.h"

/* ---- tile, flip, roll, rot90 ----------------------------------------------------------------------------------- */

/* A broadcast adds an axis of size reps[i] before each axis; a reshape then merges both. */
static hlo_val tile_val(struct tracer *tr, hlo_val x, int n, const int64_t *reps) {
  int64_t dims[HLO_RANK_MAX], wide[2 * HLO_RANK_MAX], place[HLO_RANK_MAX];
  int w = 0;
  bool once = true;
  for (; x && x->shape.rank < n; x = val_expand(tr, x, 0)) {
  }
  if (!x)
    return NULL;
  int rank = x->shape.rank, lead = rank - n;
  for (int i = 0; i < rank; i++) {
    int64_t r = i < lead ? 1 : reps[i - lead];
    if (r < 0 || __builtin_mul_overflow(x->shape.dims[i], r, &dims[i]))
      return trace_refuse(DG_BAD_ARGUMENT, NULL, "%lld repetitions are not possible", (long long)r);
    once = once && r == 1;
    if (r != 1)
      wide[w++] = r;
    place[i] = w;
    wide[w++] = x->shape.dims[i];
  }
  if (once)
    return un(tr, HLO_COPY, x);
  if (w > HLO_RANK_MAX)
    return trace_refuse(DG_BAD_ARGUMENT, "tile fewer axes at once", "at most %d dimensions are supported",
                        HLO_RANK_MAX);
  return hlo_reshape(&tr->b, hlo_broadcast(&tr->b, x, w, wide, place), rank, dims);
}

PyObject *op_tile(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"A", "reps", NULL};
  PyObject *a, *reps;
  int64_t n_reps[HLO_RANK_MAX];
  int n = 0;
  (void)op;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "OO", names, &a, &reps) || !args_dims(reps, "reps", &n, n_reps))
    return NULL;
  return tensor_wrap(tr, tile_val(tr, operand_alone(tr, a), n, n_reps));
}

/* arg: 0 flip(m, axis=None), 1 fliplr, 2 flipud */
PyObject *op_flip(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"m", "axis", NULL};
  PyObject *a, *axis = NULL;
  bool mask[HLO_RANK_MAX] = {0};
  if (!PyArg_ParseTupleAndKeywords(args, kw, op->arg.n ? "O" : "O|O", op->arg.n ? (char *[]){"m", NULL} : names, &a,
                                   &axis))
    return NULL;
  hlo_val x = operand_alone(tr, a);
  if (!x || (!op->arg.n && !args_axes(axis, x->shape.rank, mask)))
    return NULL;
  if (op->arg.n) {
    int at = op->arg.n == 1;
    if (x->shape.rank <= at)
      return trace_refuse(DG_BAD_ARGUMENT, NULL, "%s: input must have at least %d dimensions", op->name, at + 1);
    mask[at] = true;
  }
  hlo_val v = un(tr, HLO_COPY, x);
  for (int i = 0; v && i < x->shape.rank; i++)
    if (mask[i] && x->shape.dims[i] > 1)
      v = val_reverse(tr, v, i);
  return tensor_wrap(tr, v);
}

static hlo_val roll_axis(struct tracer *tr, hlo_val x, int axis, int64_t shift) {
  int64_t size = x ? x->shape.dims[axis] : 0;
  if (!x || size == 0)
    return x;
  int64_t cut = (size - shift % size) % size; /* the first element of the result */
  cut = cut < 0 ? cut + size : cut;
  if (cut == 0)
    return x;
  hlo_val parts[] = {val_slice(tr, x, axis, cut, size), val_slice(tr, x, axis, 0, cut)};
  return parts[0] && parts[1] ? hlo_concatenate(&tr->b, 2, parts, axis) : NULL;
}

PyObject *op_roll(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "shift", "axis", NULL};
  PyObject *a, *shift, *axis = NULL;
  int64_t shifts[HLO_RANK_MAX], axes[HLO_RANK_MAX] = {0};
  int n = 0, m = 1;
  (void)op;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "OO|O", names, &a, &shift, &axis) ||
      !args_dims(shift, "shift", &n, shifts) || (axis && axis != Py_None && !args_dims(axis, "axis", &m, axes)))
    return NULL;
  hlo_val x = operand_alone(tr, a), v;
  if (!x)
    return NULL;
  bool all = !axis || axis == Py_None;
  if (n != m && n != 1 && m != 1)
    return trace_refuse(DG_BAD_ARGUMENT, NULL, "roll: %d shifts and %d axes do not fit together", n, m);
  v = all ? val_flat(tr, x) : x;
  for (int i = 0; v && i < (n > m ? n : m); i++) {
    int64_t at = axes[m == 1 ? 0 : i];
    if (at < -v->shape.rank || at >= v->shape.rank)
      return trace_refuse_axis((long long)at, v->shape.rank);
    v = roll_axis(tr, v, (int)(at < 0 ? at + v->shape.rank : at), shifts[n == 1 ? 0 : i]);
  }
  v = v && all ? hlo_reshape(&tr->b, v, x->shape.rank, x->shape.dims) : v;
  return tensor_wrap(tr, v == x ? un(tr, HLO_COPY, x) : v);
}

static hlo_val swap(struct tracer *tr, hlo_val x, int i, int j) {
  int64_t p[HLO_RANK_MAX];
  for (int d = 0; x && d < x->shape.rank; d++)
    p[d] = d == i ? j : d == j ? i : d;
  return x ? val_transpose(tr, x, p) : NULL;
}

PyObject *op_rot90(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"m", "k", "axes", NULL};
  PyObject *a, *axes = NULL;
  int64_t at[HLO_RANK_MAX] = {0, 1};
  int k = 1, n = 2;
  (void)op;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|iO", names, &a, &k, &axes) ||
      (axes && !args_dims(axes, "axes", &n, at)))
    return NULL;
  hlo_val x = operand_alone(tr, a);
  if (!x)
    return NULL;
  int rank = x->shape.rank;
  for (int i = 0; i < 2; i++)
    at[i] += at[i] < 0 ? rank : 0;
  if (n != 2 || at[0] == at[1] || at[0] < 0 || at[1] < 0 || at[0] >= rank || at[1] >= rank)
    return trace_refuse(DG_BAD_ARGUMENT, NULL, "rot90 needs two different axes of the array");
  int i = (int)at[0], j = (int)at[1];
  k = (k % 4 + 4) % 4;
  hlo_val v = k == 0 ? un(tr, HLO_COPY, x) : x;
  if (k == 2)
    v = val_reverse(tr, val_reverse(tr, x, i), j);
  else if (k == 1)
    v = swap(tr, val_reverse(tr, x, j), i, j);
  else if (k == 3)
    v = val_reverse(tr, swap(tr, x, i, j), j);
  return tensor_wrap(tr, v);
}

/* ---- pad -------------------------------------------------------------------------------------------------------- */

enum pad_mode { PAD_CONSTANT, PAD_EDGE, PAD_REFLECT, PAD_SYMMETRIC, PAD_WRAP };

/* Reads pad_width: one number, (before, after), or one pair or (number,) per axis, with NumPy's broadcasting. */
static bool read_widths(PyObject *o, const char *what, int rank, int64_t (*width)[2]) {
  PyArrayObject *a = (PyArrayObject *)PyArray_FROMANY(o, NPY_INT64, 0, 2, NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED);
  if (!a)
    return false;
  npy_intp rows = PyArray_NDIM(a) == 2 ? PyArray_DIM(a, 0) : 1,
           cols = PyArray_NDIM(a) == 0 ? 1 : PyArray_DIM(a, PyArray_NDIM(a) - 1);
  const int64_t *p = PyArray_DATA(a);
  bool ok = (rows == 1 || rows == rank) && (cols == 1 || cols == 2);
  for (int i = 0; ok && i < rank; i++)
    for (int s = 0; ok && s < 2; s++)
      width[i][s] = p[(rows == 1 ? 0 : i) * cols + (cols == 1 ? 0 : s)];
  for (int i = 0; ok && i < rank; i++)
    ok = width[i][0] >= 0 && width[i][1] >= 0;
  Py_DECREF(a);
  if (!ok)
    trace_refuse(DG_BAD_ARGUMENT, "one (before, after) pair per axis", "%s does not fit %d axes, or is negative", what,
                 rank);
  return ok;
}

/* Returns the position in the array whose element is at position i of the padded axis.  i counts from the array's start
 * and may be negative. */
static int64_t padded_from(enum pad_mode mode, int64_t i, int64_t n) {
  int64_t period = mode == PAD_REFLECT ? 2 * (n - 1) : mode == PAD_SYMMETRIC ? 2 * n : n;
  if (mode == PAD_EDGE || n == 1)
    return i < 0 ? 0 : i >= n ? n - 1 : i;
  i = (i % period + period) % period;
  return i < n ? i : mode == PAD_REFLECT ? period - i : period - 1 - i;
}

static hlo_val pad_by_index(struct tracer *tr, hlo_val x, int axis, const int64_t w[2], enum pad_mode mode) {
  int64_t n = x->shape.dims[axis], total = n + w[0] + w[1];
  int32_t *at = arena_new_array(tr->a, int32_t, (size_t)total);
  if (n == 0)
    return trace_refuse(DG_BAD_ARGUMENT, "use mode=\"constant\"", "pad: an empty axis cannot be extended");
  for (int64_t i = 0; i < total; i++)
    at[i] = (int32_t)padded_from(mode, i - w[0], n);
  return val_take(tr, x, hlo_constant(&tr->b, hlo_shape_array(tr->a, DT_I32, 1, &total), at), axis);
}

static hlo_val pad_constant(struct tracer *tr, hlo_val x, int64_t (*w)[2], PyObject *values) {
  struct hlo_pad_dim d[HLO_RANK_MAX];
  double v[2 * HLO_RANK_MAX];
  int rank = x->shape.rank;
  PyArrayObject *a =
      values ? (PyArrayObject *)PyArray_FROMANY(values, NPY_FLOAT64, 0, 2, NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED)
             : NULL;
  if (values && !a)
    return NULL;
  npy_intp rows = a && PyArray_NDIM(a) == 2 ? PyArray_DIM(a, 0) : 1,
           cols = a && PyArray_NDIM(a) ? PyArray_DIM(a, PyArray_NDIM(a) - 1) : 1;
  bool ok = (rows == 1 || rows == rank) && (cols == 1 || cols == 2), same = true;
  for (int i = 0; ok && i < 2 * rank; i++) {
    v[i] = a ? ((double *)PyArray_DATA(a))[(rows == 1 ? 0 : i / 2) * cols + (cols == 1 ? 0 : i % 2)] : 0;
    same = same && v[i] == v[0];
  }
  Py_XDECREF(a);
  if (!ok)
    return trace_refuse(DG_BAD_ARGUMENT, NULL, "constant_values does not fit %d axes", rank);
  for (int i = 0; i < rank; i++)
    d[i] = (struct hlo_pad_dim){w[i][0], w[i][1], 0};
  if (same)
    return hlo_pad(&tr->b, x, hlo_scalar(&tr->b, x->shape.dtype, rank ? v[0] : 0), d);
  for (int i = 0; x && i < 2 * rank; i++) { /* axis by axis, because NumPy fills the corners in this order */
    memset(d, 0, sizeof d);
    d[i / 2] = (struct hlo_pad_dim){i % 2 ? 0 : w[i / 2][0], i % 2 ? w[i / 2][1] : 0, 0};
    x = hlo_pad(&tr->b, x, hlo_scalar(&tr->b, x->shape.dtype, v[i]), d);
  }
  return x;
}

PyObject *op_pad(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"array", "pad_width", "mode", "constant_values", NULL};
  static const char *const modes[] = {"constant", "edge", "reflect", "symmetric", "wrap"};
  PyObject *a, *widths, *values = NULL;
  const char *mode = "constant";
  int64_t w[HLO_RANK_MAX][2];
  size_t m = 0;
  (void)op;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "OO|sO", names, &a, &widths, &mode, &values))
    return NULL;
  while (m < sizeof modes / sizeof *modes && strcmp(modes[m], mode) != 0)
    m++;
  if (m == sizeof modes / sizeof *modes)
    return trace_refuse(DG_UNSUPPORTED_OP, "use mode=\"constant\", \"edge\", \"reflect\", \"symmetric\" or \"wrap\"",
                        "np.pad with mode=\"%s\" is not supported", mode);
  hlo_val x = operand_alone(tr, a);
  if (!x || !read_widths(widths, "pad_width", x->shape.rank, w))
    return NULL;
  hlo_val v = m == PAD_CONSTANT ? pad_constant(tr, x, w, values) : x;
  for (int i = 0; m != PAD_CONSTANT && v && i < x->shape.rank; i++)
    if (w[i][0] || w[i][1])
      v = pad_by_index(tr, v, i, w[i], (enum pad_mode)m);
  return tensor_wrap(tr, v == x ? un(tr, HLO_COPY, x) : v);
}

/* ---- diff ------------------------------------------------------------------------------------------------------- */

/* Returns the value of prepend= or append=.  A number becomes a slice of size 1. */
static hlo_val boundary(struct tracer *tr, PyObject *o, const struct hlo_shape *s, int axis) {
  int64_t dims[HLO_RANK_MAX];
  hlo_val v = operand_alone(tr, o);
  if (!v || v->shape.rank)
    return v;
  hlo_dims_copy(s->rank, dims, s->dims);
  dims[axis] = 1;
  return val_broadcast(tr, v, s->rank, dims);
}

/* Concatenates at most three values of different dtypes. */
static hlo_val join(struct tracer *tr, int n, hlo_val *xs, int axis) {
  struct operand ops[3] = {0};
  assert(n <= 3);
  for (int i = 0; i < n; i++) {
    if (!xs[i])
      return NULL;
    ops[i] = operand_of(xs[i]);
  }
  enum dtype t = promote_operands(n, ops);
  for (int i = 0; t != DT_NONE && i < n; i++)
    xs[i] = cast(tr, xs[i], t);
  return t == DT_NONE ? NULL : val_concat(tr, n, xs, axis);
}

PyObject *op_diff(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "n", "axis", "prepend", "append", NULL};
  PyObject *a, *axis = NULL, *prepend = NULL, *append = NULL;
  hlo_val parts[3];
  int n = 1, at = 0, k = 0;
  (void)op;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|iOOO", names, &a, &n, &axis, &prepend, &append))
    return NULL;
  hlo_val x = operand_alone(tr, a);
  if (!x)
    return NULL;
  if (x->shape.rank == 0)
    return trace_refuse(DG_BAD_ARGUMENT, NULL, "diff requires input that is at least one dimensional");
  at = x->shape.rank - 1;
  if (axis && !args_axis(axis, x->shape.rank, &at))
    return NULL;
  if (n < 0)
    return trace_refuse(DG_BAD_ARGUMENT, NULL, "order must be non-negative but got %d", n);
  if (prepend && prepend != Py_None)
    parts[k++] = boundary(tr, prepend, &x->shape, at);
  parts[k++] = x;
  if (append && append != Py_None)
    parts[k++] = boundary(tr, append, &x->shape, at);
  hlo_val v = k > 1 ? join(tr, k, parts, at) : n == 0 ? un(tr, HLO_COPY, x) : x;
  for (int i = 0; v && i < n; i++) {
    int64_t size = v->shape.dims[at], less = size > 0 ? size - 1 : 0;
    hlo_val hi = val_slice(tr, v, at, size - less, size), lo = val_slice(tr, v, at, 0, less);
    v = v->shape.dtype == DT_BOOL ? bin(tr, HLO_XOR, hi, lo) : bin(tr, HLO_SUBTRACT, hi, lo);
  }
  return tensor_wrap(tr, v);
}

/* ---- atleast_1d and similar, and stacks
 * ---------------------------------------------------------------------------- */

/* Adds axes of size 1 until x has `rank` axes.  atleast_3d adds one axis before and one after a vector, and one axis
 * after a matrix. */
static hlo_val atleast(struct tracer *tr, hlo_val x, int rank) {
  while (x && x->shape.rank < rank)
    x = val_expand(tr, x, rank == 3 && x->shape.rank == 2 ? 2 : 0);
  return x;
}

PyObject *op_atleast(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  Py_ssize_t n = PyTuple_GET_SIZE(args);
  if (kw && PyDict_GET_SIZE(kw))
    return trace_refuse(DG_BAD_ARGUMENT, NULL, "%s takes no keyword arguments", op->name);
  PyObject *all = n == 1 ? NULL : PyTuple_New(n);
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject *t = tensor_wrap(tr, atleast(tr, operand_alone(tr, PyTuple_GET_ITEM(args, i)), op->arg.n));
    if (n == 1)
      return t;
    if (!t) {
      Py_XDECREF(all);
      return NULL;
    }
    PyTuple_SET_ITEM(all, i, t);
  }
  return all;
}

/* arg: 'h', 'v', 'd' or 'c' for hstack, vstack, dstack and column_stack */
PyObject *op_xstack(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"tup", "dtype", "casting", NULL};
  PyObject *arrays, *dtype = NULL, *casting;
  hlo_val *xs = NULL;
  int n = 0, axis = op->arg.n == 'v' ? 0 : op->arg.n == 'd' ? 2 : 1;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|$OO", names, &arrays, &dtype, &casting) ||
      !operand_read_list(tr, op->name, arrays, dtype, &n, &xs))
    return NULL;
  for (int i = 0; i < n; i++) {
    if (op->arg.n == 'c' && xs[i]->shape.rank < 2)
      xs[i] = val_expand(tr, atleast(tr, xs[i], 1), 1);
    else
      xs[i] = atleast(tr, xs[i], op->arg.n == 'h' ? 1 : op->arg.n == 'd' ? 3 : 2);
    if (!xs[i])
      return NULL;
  }
  if (op->arg.n == 'h' && xs[0]->shape.rank == 1)
    axis = 0;
  return tensor_wrap(tr, val_concat(tr, n, xs, axis));
}

PyObject *op_append(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"arr", "values", "axis", NULL};
  PyObject *a, *b, *axis = NULL;
  int at = 0;
  (void)op;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "OO|O", names, &a, &b, &axis))
    return NULL;
  hlo_val xs[2] = {operand_alone(tr, a), operand_alone(tr, b)};
  if (!xs[0] || !xs[1])
    return NULL;
  if (!axis || axis == Py_None) {
    xs[0] = val_flat(tr, xs[0]);
    xs[1] = val_flat(tr, xs[1]);
  } else if (!args_axis(axis, xs[0]->shape.rank, &at)) {
    return NULL;
  }
  return tensor_wrap(tr, join(tr, 2, xs, at));
}

/* hsplit, vsplit and dsplit split along the axis in arg; hsplit splits a vector along its only axis. */
PyObject *op_xsplit(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"ary", "indices_or_sections", NULL};
  PyObject *a, *where;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "OO", names, &a, &where))
    return NULL;
  hlo_val x = operand_alone(tr, a);
  int least = op->arg.n == 0 ? 2 : op->arg.n == 1 ? 1 : 3;
  if (!x || x->shape.rank < least)
    return x ? trace_refuse(DG_BAD_ARGUMENT, NULL, "%s only works on arrays of %d or more dimensions", op->name, least)
             : NULL;
  PyObject *all = Py_BuildValue("(OOi)", a, where, op->arg.n == 1 && x->shape.rank == 1 ? 0 : op->arg.n);
  PyObject *r = all ? op_split(tr, &op_table[OP_SPLIT], all, NULL) : NULL;
  Py_XDECREF(all);
  return r;
}

/* ---- several arrays of one shape
 * ---------------------------------------------------------------------------------- */

static PyObject *wrap_all(struct tracer *tr, int n, hlo_val *xs, bool as_list) {
  PyObject *all = as_list ? PyList_New(n) : PyTuple_New(n);
  for (int i = 0; all && i < n; i++) {
    PyObject *t = tensor_wrap(tr, xs[i]);
    if (!t) {
      Py_CLEAR(all);
      break;
    }
    if (as_list)
      PyList_SET_ITEM(all, i, t);
    else
      PyTuple_SET_ITEM(all, i, t);
  }
  return all;
}

PyObject *op_broadcast_arrays(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  Py_ssize_t n = PyTuple_GET_SIZE(args);
  int rank = 0;
  int64_t dims[HLO_RANK_MAX];
  hlo_val *xs = arena_new_array(tr->a, hlo_val, (size_t)n + 1);
  struct operand *ops = arena_new_array(tr->a, struct operand, (size_t)n + 1);
  (void)op, (void)kw;
  for (Py_ssize_t i = 0; i < n; i++) {
    if (!(xs[i] = operand_alone(tr, PyTuple_GET_ITEM(args, i))))
      return NULL;
    ops[i] = operand_of(xs[i]);
  }
  if (!operand_broadcast((int)n, ops, &rank, dims))
    return NULL;
  for (Py_ssize_t i = 0; i < n; i++)
    xs[i] = val_broadcast(tr, xs[i], rank, dims);
  return wrap_all(tr, (int)n, xs, false);
}

PyObject *op_meshgrid(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"copy", "sparse", "indexing", NULL};
  const char *indexing = "xy";
  int n = (int)PyTuple_GET_SIZE(args), copy = 1, sparse = 0;
  int64_t dims[HLO_RANK_MAX], one[HLO_RANK_MAX];
  hlo_val xs[HLO_RANK_MAX];
  PyObject *none = PyTuple_New(0);
  bool ok = none && PyArg_ParseTupleAndKeywords(none, kw, "|$pps", names, &copy, &sparse, &indexing);
  Py_XDECREF(none);
  if (!ok)
    return NULL;
  if (n > HLO_RANK_MAX || (strcmp(indexing, "xy") && strcmp(indexing, "ij")))
    return trace_refuse(DG_BAD_ARGUMENT, "use indexing=\"xy\" or \"ij\"", "%s: wrong arguments", op->name);
  bool swapped = strcmp(indexing, "xy") == 0 && n > 1;
  for (int i = 0; i < n; i++) {
    if (!(xs[i] = val_flat(tr, operand_alone(tr, PyTuple_GET_ITEM(args, i)))))
      return NULL;
    dims[swapped && i < 2 ? 1 - i : i] = xs[i]->shape.dims[0];
  }
  for (int i = 0; i < n; i++) {
    int at = swapped && i < 2 ? 1 - i : i;
    for (int d = 0; d < n; d++)
      one[d] = d == at ? dims[d] : 1;
    xs[i] = hlo_reshape(&tr->b, xs[i], n, one);
    xs[i] = sparse ? xs[i] : val_broadcast(tr, xs[i], n, dims);
  }
  return wrap_all(tr, n, xs, false);
}

PyObject *op_unstack(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"x", "axis", NULL};
  PyObject *a, *axis = NULL;
  int at = 0;
  (void)op;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|$O", names, &a, &axis))
    return NULL;
  hlo_val x = operand_alone(tr, a);
  if (!x || (axis && !args_axis(axis, x->shape.rank, &at)))
    return NULL;
  if (x->shape.rank == 0)
    return trace_refuse(DG_BAD_ARGUMENT, NULL, "a 0-d tensor cannot be unstacked");
  int64_t n = x->shape.dims[at], dims[HLO_RANK_MAX];
  if (n > TRACE_OPS_MAX)
    return trace_refuse(DG_TOO_MANY_OPS, NULL, "unstack would make %lld tensors", (long long)n);
  hlo_val *xs = arena_new_array(tr->a, hlo_val, (size_t)n + 1);
  for (int d = 0, k = 0; d < x->shape.rank; d++)
    if (d != at)
      dims[k++] = x->shape.dims[d];
  for (int64_t i = 0; i < n; i++)
    xs[i] = val_reshape(tr, val_slice(tr, x, at, i, i + 1), x->shape.rank - 1, dims);
  return wrap_all(tr, (int)n, xs, false);
}

PyObject *op_rollaxis(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "axis", "start", NULL};
  PyObject *a, *axis;
  int start = 0, at = 0;
  int64_t p[HLO_RANK_MAX];
  (void)op;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "OO|i", names, &a, &axis, &start))
    return NULL;
  hlo_val x = operand_alone(tr, a);
  if (!x || !args_axis(axis, x->shape.rank, &at))
    return NULL;
  int rank = x->shape.rank;
  start += start < 0 ? rank : 0;
  if (start < 0 || start > rank)
    return trace_refuse(DG_BAD_ARGUMENT, NULL, "start %d is out of bounds for array of dimension %d", start, rank);
  start -= at < start;
  for (int i = 0, from = 0; i < rank; i++) {
    from += from == at;
    p[i] = i == start ? at : from++;
  }
  return tensor_wrap(tr, val_transpose(tr, x, p));
}

PyObject *op_matrix_transpose(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"x", NULL};
  PyObject *a;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O", names, &a))
    return NULL;
  hlo_val x = operand_alone(tr, a);
  if (x && x->shape.rank < 2)
    return trace_refuse(DG_BAD_ARGUMENT, NULL, "%s: input must have at least 2 dimensions", op->name);
  return x ? tensor_wrap(tr, swap(tr, x, x->shape.rank - 2, x->shape.rank - 1)) : NULL;
}
