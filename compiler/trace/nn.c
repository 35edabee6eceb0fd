/* nn: functions of neural networks that NumPy lacks (softmax, rms_norm, topk, convolutions), sorting, constants and
 * collectives.
 *
 * The functions that NumPy lacks are in nkipy.core.ops, with NKIPy's arguments.  Collectives are recorded as
 * collectives; later stages decide what they compute on one device.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "trace/args.h"
#include "trace/compose.h"
#include "trace/refuse.h"
#include "trace/tensor.h"

/* ---- normalisation ---------------------------------------------------------------------------------------------- */

static enum dtype wide(enum dtype t) {
  return dtype_size(t) < 4 ? DT_F32 : t;
}

/* Reads the array to be normalised, as a float, and the axis.  False with an exception. */
static bool normalised(struct tracer *tr, const struct op_def *op, PyObject *o, PyObject *axis, hlo_val *x, int *at) {
  *x = as_float(tr, operand_alone(tr, o));
  if (!*x)
    return false;
  *at = (*x)->shape.rank - 1;
  if ((*x)->shape.rank == 0) {
    trace_refuse(DG_BAD_ARGUMENT, NULL, "%s needs at least one dimension", op->name);
    return false;
  }
  return !axis || args_axis(axis, (*x)->shape.rank, at);
}

/* exp(x - max) / sum, in float32 for narrower types. */
PyObject *op_softmax(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"x", "axis", NULL};
  PyObject *a, *axis = NULL;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|O", names, &a, &axis))
    return NULL;
  hlo_val x;
  int at;
  if (!normalised(tr, op, a, axis, &x, &at))
    return NULL;
  enum dtype t = x->shape.dtype;
  x = cast(tr, x, wide(t));
  hlo_val e = un(tr, HLO_EXP, val_arith(tr, OP_SUBTRACT, x, x ? val_reduce_axis(tr, HLO_MAXIMUM, x, at, true) : NULL));
  hlo_val v = val_arith(tr, OP_DIVIDE, e, e ? val_reduce_axis(tr, HLO_ADD, e, at, true) : NULL);
  return tensor_wrap(tr, cast(tr, v, t));
}

/* rms_norm(x, weight, axis=-1, eps=1e-6): x / sqrt(mean(x²) + eps) * weight */
PyObject *op_rms_norm(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"x", "weight", "axis", "eps", NULL};
  PyObject *a, *weight = NULL, *axis = NULL;
  double eps = 1e-6;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|OOd", names, &a, &weight, &axis, &eps))
    return NULL;
  hlo_val x;
  int at;
  if (!normalised(tr, op, a, axis, &x, &at))
    return NULL;
  enum dtype t = x->shape.dtype;
  double n = (double)x->shape.dims[at];
  x = cast(tr, x, wide(t));
  hlo_val sum = x ? val_reduce_axis(tr, HLO_ADD, bin(tr, HLO_MULTIPLY, x, x), at, true) : NULL;
  hlo_val root = un(tr, HLO_SQRT, bin_k(tr, HLO_ADD, bin_k(tr, HLO_DIVIDE, sum, n), eps));
  hlo_val v = cast(tr, val_arith(tr, OP_DIVIDE, x, root), t);
  if (weight && weight != Py_None)
    v = val_arith(tr, OP_MULTIPLY, v, operand_alone(tr, weight));
  return tensor_wrap(tr, v);
}

/* ---- order
 * --------------------------------------------------------------------------------------------------------- */

static hlo_val sorted(struct tracer *tr, hlo_val x, int axis, bool want_positions) {
  hlo_val xs[2] = {x, want_positions ? val_positions(tr, x, axis) : NULL};
  if (!x)
    return NULL;
  if (!want_positions)
    return hlo_sort(&tr->b, 1, xs, axis, false);
  hlo_val pair = xs[1] ? hlo_sort(&tr->b, 2, xs, axis, false) : NULL;
  return pair ? hlo_tuple_element(&tr->b, pair, 1) : NULL;
}

/* sort(a, axis=-1) and argsort (arg 1).  The sort is always stable; kind= is ignored. */
PyObject *op_sort(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "axis", "kind", "order", "stable", NULL};
  PyObject *a, *axis = NULL, *kind, *order = NULL, *stable;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|OOO$O", names, &a, &axis, &kind, &order, &stable) ||
      !args_only_none(order, op->name, "order"))
    return NULL;
  hlo_val x = operand_alone(tr, a);
  int at = 0;
  if (!x || !args_axis_or_flat(tr, op->name, axis, &x, &at))
    return NULL;
  return tensor_wrap(tr, sorted(tr, x, at, op->arg.n));
}

/* median: the middle of the sorted elements along one axis.  Several axes are merged first. */
PyObject *op_median(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "axis", "out", "overwrite_input", "keepdims", NULL};
  PyObject *a, *axis = NULL, *out = NULL, *over, *keep = NULL;
  bool mask[HLO_RANK_MAX], keepdims = false;
  int64_t p[HLO_RANK_MAX], dims[HLO_RANK_MAX], kept[HLO_RANK_MAX], n = 1;
  int rest = 0, k = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|OOOO", names, &a, &axis, &out, &over, &keep) ||
      !args_only_none(out, op->name, "out") || !args_flag(keep, &keepdims))
    return NULL;
  hlo_val x = operand_alone(tr, a);
  if (!x || !args_axes(axis, x->shape.rank, mask))
    return NULL;
  if (!dtype_is_float(x->shape.dtype))
    x = cast(tr, x, DT_F32);
  int rank = x ? x->shape.rank : 0;
  for (int i = 0; i < rank; i++) {
    kept[i] = mask[i] ? 1 : x->shape.dims[i];
    if (!mask[i]) {
      dims[rest] = x->shape.dims[i];
      p[rest++] = i;
    } else {
      n *= x->shape.dims[i];
    }
  }
  for (int i = 0, at = rest; i < rank; i++)
    if (mask[i])
      p[at++] = i, k++;
  if (!x || n == 0)
    return x ? trace_refuse(DG_BAD_ARGUMENT, NULL, "the median of nothing is not defined") : NULL;
  dims[rest] = n;
  x = hlo_reshape(&tr->b, val_transpose(tr, x, p), rest + 1, dims);
  hlo_val s = sorted(tr, x, rest, false), nan = x ? cmp(tr, HLO_NE, x, x) : NULL;
  hlo_val low = s ? val_slice(tr, s, rest, (n - 1) / 2, (n - 1) / 2 + 1) : NULL;
  hlo_val high = s ? val_slice(tr, s, rest, n / 2, n / 2 + 1) : NULL;
  hlo_val v = bin_k(tr, HLO_MULTIPLY, bin(tr, HLO_ADD, low, high), 0.5);
  hlo_val any = nan ? val_reduce_axis(tr, HLO_OR, nan, rest, true) : NULL;
  v = sel(tr, any, val_like(tr, v, NAN), v);
  return tensor_wrap(tr, v ? hlo_reshape(&tr->b, v, keepdims ? rank : rest, keepdims ? kept : dims) : NULL);
}

/* Reverses the order of values: -x of floats, and ~x of integers, which cannot overflow.  Applied twice it returns
 * x. */
static hlo_val reversed(struct tracer *tr, hlo_val x) {
  return x ? un(tr, dtype_is_float(x->shape.dtype) ? HLO_NEGATE : HLO_NOT, x) : NULL;
}

/* topk(x, k, axis, is_ascend=False) returns values and u32 positions along the last axis. */
PyObject *op_topk(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"x", "k", "axis", "is_ascend", NULL};
  PyObject *a, *axis = NULL, *ascend = NULL;
  bool is_ascend = false;
  int k, at;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "Oi|OO", names, &a, &k, &axis, &ascend) || !args_flag(ascend, &is_ascend))
    return NULL;
  hlo_val x = operand_alone(tr, a);
  if (!x)
    return NULL;
  at = x->shape.rank - 1;
  if (axis && !args_axis(axis, x->shape.rank, &at))
    return NULL;
  if (x->shape.rank == 0 || at != x->shape.rank - 1)
    return trace_refuse(DG_UNSUPPORTED_OP, "bring the axis to the end with np.swapaxes", "%s only supports last axis",
                        op->name);
  if (k < 1 || k > x->shape.dims[at])
    return trace_refuse(DG_BAD_ARGUMENT, NULL, "k = %d is out of range for an axis of size %lld", k,
                        (long long)x->shape.dims[at]);
  hlo_val pair = hlo_topk(&tr->b, is_ascend ? reversed(tr, x) : x, k);
  hlo_val values = pair ? hlo_tuple_element(&tr->b, pair, 0) : NULL;
  PyObject *v = tensor_wrap(tr, is_ascend ? reversed(tr, values) : values);
  PyObject *i = v ? tensor_wrap(tr, hlo_tuple_element(&tr->b, pair, 1)) : NULL;
  PyObject *r = i ? PyTuple_Pack(2, v, i) : NULL;
  Py_XDECREF(v);
  Py_XDECREF(i);
  return r;
}

/* ---- constants
 * ------------------------------------------------------------------------------------------------------ */

/* zeros(shape, dtype) (arg 0), ones (arg 1), full(shape, fill_value, dtype) (arg 2) */
PyObject *op_filled(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"shape", "dtype", NULL}, *full[] = {"shape", "fill_value", "dtype", NULL};
  PyObject *shape, *value = NULL, *dtype = NULL;
  int64_t dims[HLO_RANK_MAX];
  int n = 0;
  if (op->arg.n == 2 ? !PyArg_ParseTupleAndKeywords(args, kw, "OO|O", full, &shape, &value, &dtype)
                     : !PyArg_ParseTupleAndKeywords(args, kw, "O|O", names, &shape, &dtype))
    return NULL;
  enum dtype t = dtype && dtype != Py_None ? dtype_from_py(dtype) : DT_F32;
  if (t == DT_NONE || !args_dims(shape, "shape", &n, dims))
    return NULL;
  for (int i = 0; i < n; i++)
    if (dims[i] < 0)
      return trace_refuse(DG_BAD_ARGUMENT, NULL, "negative dimensions are not allowed");
  if (op->arg.n != 2)
    return tensor_wrap(tr, hlo_full(&tr->b, t, n, dims, op->arg.n));
  hlo_val v = operand_alone(tr, value);
  if (!dtype || dtype == Py_None)
    t = v ? v->shape.dtype : t;
  return tensor_wrap(tr, val_broadcast(tr, cast(tr, v, t), n, dims));
}

PyObject *op_constant(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"value", "dtype", NULL};
  PyObject *a, *dtype = NULL;
  (void)op;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|O", names, &a, &dtype))
    return NULL;
  enum dtype t = dtype && dtype != Py_None ? dtype_from_py(dtype) : DT_NONE;
  if (t == DT_NONE && PyErr_Occurred())
    return NULL;
  hlo_val v = operand_alone(tr, a);
  return tensor_wrap(tr, v && t != DT_NONE ? cast(tr, v, t) : v);
}

/* ---- convolution
 * ------------------------------------------------------------------------------------------------------ */

/* Reads one number, or one per spatial dimension. */
static bool per_dimension(PyObject *o, const char *what, int n, int64_t by_default, int64_t least, int64_t *out) {
  int64_t given[HLO_RANK_MAX] = {by_default};
  int m = 1;
  if (o && !args_dims(o, what, &m, given))
    return false;
  bool ok = m == 1 || m == n;
  for (int i = 0; ok && i < n; i++)
    ok = (out[i] = given[m == 1 ? 0 : i]) >= least;
  if (!ok)
    trace_refuse(DG_BAD_ARGUMENT, NULL, "%s must be one number or %d, each at least %lld", what, n, (long long)least);
  return ok;
}

/* conv2d(input NCHW, weight OIHW, bias=None, stride=1, padding=0, dilation=1, groups=1).  arg is the number of spatial
 * dimensions. */
PyObject *op_conv(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"input", "weight", "bias", "stride", "padding", "dilation", "groups", NULL};
  PyObject *a, *b, *bias = NULL, *o_stride = NULL, *o_padding = NULL, *o_dilation = NULL;
  int64_t stride[3], padding[3], dilation[3], groups = 1, spatial[] = {2, 3, 4}, dims[5] = {1};
  int n = op->arg.n;
  hlo_val xy[2];
  assert(n == 2 || n == 3);
  if (!PyArg_ParseTupleAndKeywords(args, kw, "OO|OOOOL", names, &a, &b, &bias, &o_stride, &o_padding, &o_dilation,
                                   &groups) ||
      !per_dimension(o_stride, "stride", n, 1, 1, stride) || !per_dimension(o_padding, "padding", n, 0, 0, padding) ||
      !per_dimension(o_dilation, "dilation", n, 1, 1, dilation) || !operand_read_pair(tr, a, b, DT_NONE, xy))
    return NULL;
  if (xy[0]->shape.rank != n + 2 || xy[1]->shape.rank != n + 2)
    return trace_refuse(DG_SHAPE_MISMATCH, "the input is N, C, …; the weight is O, I, …",
                        "%s needs arrays of %d dimensions", op->name, n + 2);
  struct hlo_window_dim *w = arena_new_array(tr->a, struct hlo_window_dim, (size_t)n);
  for (int i = 0; i < n; i++)
    w[i] = (struct hlo_window_dim){.size = xy[1]->shape.dims[2 + i],
                                   .stride = stride[i],
                                   .low = padding[i],
                                   .high = padding[i],
                                   .base_dilation = 1,
                                   .window_dilation = dilation[i]};
  struct hlo_window window = {.n = n, .v = w};
  struct hlo_conv_dims d = {.input_batch = 0,
                            .input_feature = 1,
                            .kernel_input_feature = 1,
                            .kernel_output_feature = 0,
                            .output_batch = 0,
                            .output_feature = 1,
                            .input_spatial = hlo_ints_dup(tr->a, n, spatial),
                            .kernel_spatial = hlo_ints_dup(tr->a, n, spatial),
                            .output_spatial = hlo_ints_dup(tr->a, n, spatial),
                            .feature_group_count = groups,
                            .batch_group_count = 1};
  hlo_val v = hlo_convolution(&tr->b, xy[0], xy[1], &window, &d, xy[0]->shape.dtype);
  if (v && bias && bias != Py_None) {
    hlo_val c = operand_alone(tr, bias);
    for (int i = 0; i < n + 2; i++)
      dims[i] = i == 1 && c ? hlo_shape_elements(&c->shape) : 1;
    v = val_arith(tr, OP_ADD, v, val_reshape(tr, c, n + 2, dims));
  }
  return tensor_wrap(tr, v);
}

/* ---- collectives
 * -------------------------------------------------------------------------------------------------------- */

/* Reads replica_groups: a list of lists of device numbers, all of the same length. */
static bool read_groups(struct tracer *tr, PyObject *o, struct hlo_groups *g) {
  PyArrayObject *a = (PyArrayObject *)PyArray_FROMANY(o, NPY_INT64, 2, 2, NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED);
  if (!a) {
    PyErr_Clear();
    trace_refuse(DG_BAD_ARGUMENT, "write replica_groups=[[0, 1], [2, 3]]",
                 "replica_groups must be a list of lists of one length");
    return false;
  }
  struct hlo_ints *v = arena_new_array(tr->a, struct hlo_ints, (size_t)PyArray_DIM(a, 0));
  for (npy_intp i = 0; i < PyArray_DIM(a, 0); i++)
    v[i] = hlo_ints_dup(tr->a, (int)PyArray_DIM(a, 1), (int64_t *)PyArray_DATA(a) + i * PyArray_DIM(a, 1));
  *g = (struct hlo_groups){.n = (int)PyArray_DIM(a, 0), .v = v};
  Py_DECREF(a);
  return true;
}

static bool read_reduction(PyObject *o, enum hlo_op *op) {
  static const struct {
    const char *name;
    enum hlo_op op;
  } known[] = {{"add", HLO_ADD}, {"multiply", HLO_MULTIPLY}, {"maximum", HLO_MAXIMUM}, {"minimum", HLO_MINIMUM}};
  PyObject *name = o && o != Py_None ? PyObject_GetAttrString(o, "__name__") : PyUnicode_FromString("add");
  for (size_t i = 0; name && i < sizeof known / sizeof *known; i++)
    if (PyUnicode_CompareWithASCIIString(name, known[i].name) == 0) {
      *op = known[i].op;
      Py_DECREF(name);
      return true;
    }
  Py_XDECREF(name);
  trace_refuse(DG_UNSUPPORTED_OP, "use np.add, np.multiply, np.maximum or np.minimum", "reduce_op=%R is not supported",
               o);
  return false;
}

/* The result of an all-to-all has n parts that are concatenated along `from`.  Concatenates them along `to` instead. */
static hlo_val move_parts(struct tracer *tr, hlo_val x, int n, int from, int to) {
  int64_t dims[HLO_RANK_MAX + 1], order[HLO_RANK_MAX + 1];
  int rank = x->shape.rank, k = 0;
  assert(n > 0 && x->shape.dims[from] % n == 0);
  if (rank == HLO_RANK_MAX) {
    trace_refuse(DG_UNSUPPORTED_OP, NULL, "all_to_all of %d dimensions is not supported", rank);
    return NULL;
  }
  for (int d = 0; d < rank; d++) { /* […, n, from / n, …] */
    if (d == from)
      dims[k++] = n;
    dims[k++] = d == from ? x->shape.dims[d] / n : x->shape.dims[d];
  }
  x = hlo_reshape(&tr->b, x, rank + 1, dims);
  k = 0;
  for (int d = 0; d < rank; d++) { /* the axis of parts goes before `to`; axes from `from` on have moved by one */
    if (d == to)
      order[k++] = from;
    order[k++] = d < from ? d : d + 1;
  }
  x = x ? hlo_transpose(&tr->b, x, order) : NULL;
  if (!x)
    return NULL;
  k = 0;
  for (int d = 0; d < rank; d++, k++) {
    dims[d] = x->shape.dims[k];
    if (d == to)
      dims[d] *= x->shape.dims[++k];
  }
  return hlo_reshape(&tr->b, x, rank, dims);
}

PyObject *op_collective(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *gather[] = {"data", "all_gather_dim", "replica_groups", NULL};
  static char *reduce[] = {"data", "replica_groups", "reduce_op", NULL};
  static char *scatter[] = {"data", "reduce_scatter_dim", "replica_groups", "reduce_op", NULL};
  static char *exchange[] = {"data", "split_dimension", "concat_dimension", "replica_groups", NULL};
  PyObject *a, *dim = NULL, *concat = NULL, *groups = NULL, *with = NULL;
  enum hlo_op which = (enum hlo_op)op->arg.n, combine = HLO_ADD;
  struct hlo_groups g;
  int at = 0, to = 0;
  bool ok = which == HLO_ALL_GATHER   ? PyArg_ParseTupleAndKeywords(args, kw, "OOO", gather, &a, &dim, &groups)
            : which == HLO_ALL_REDUCE ? PyArg_ParseTupleAndKeywords(args, kw, "OO|O", reduce, &a, &groups, &with)
            : which == HLO_REDUCE_SCATTER
                ? PyArg_ParseTupleAndKeywords(args, kw, "OOO|O", scatter, &a, &dim, &groups, &with)
                : PyArg_ParseTupleAndKeywords(args, kw, "OOOO", exchange, &a, &dim, &concat, &groups);
  hlo_val x = ok ? operand_alone(tr, a) : NULL;
  if (!x || !read_groups(tr, groups, &g) || !read_reduction(with, &combine) ||
      (dim && !args_axis(dim, x->shape.rank, &at)) || (concat && !args_axis(concat, x->shape.rank, &to)))
    return NULL;
  hlo_val v = hlo_collective(&tr->b, which, x, &g, combine, at);
  return tensor_wrap(tr, v && concat && to != at ? move_parts(tr, v, (int)g.v[0].n, at, to) : v);
}
