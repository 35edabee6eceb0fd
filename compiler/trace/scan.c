/* scan: running sums and products, and reductions that are made of others: ptp, average, and those that skip NaN. */
#include <math.h>
#include <string.h>

#include "trace/compose.h"

/* ---- running results ---------------------------------------------------------------------------------------------- */

/* The product with an upper triangle of ones: what the tensor engine is made for. */
static hlo_val cumsum_dot(struct tracer *tr, hlo_val x, int axis) {
  int64_t n = x->shape.dims[axis], dims[] = {n, n}, p[HLO_RANK_MAX], contracting = axis, rows = 0;
  hlo_val row = hlo_iota(&tr->b, DT_I32, 2, dims, 0), col = hlo_iota(&tr->b, DT_I32, 2, dims, 1);
  hlo_val triangle = cast(tr, cmp(tr, HLO_LE, row, col), x->shape.dtype);
  struct hlo_dot_dims d = {.lhs_contracting = hlo_ints_dup(tr->a, 1, &contracting),
                           .rhs_contracting = hlo_ints_dup(tr->a, 1, &rows)};
  int rank = x->shape.rank;
  hlo_val v = dot_of(tr, x, triangle, &d); /* the axis is now the last */
  for (int i = 0; i < rank; i++)
    p[i] = i < axis ? i : i == axis ? rank - 1 : i - 1;
  return v ? transpose_by(tr, v, p) : NULL;
}

/* Combines with what is 1, 2, 4, … places before; places before the first are not touched. */
static hlo_val doubling(struct tracer *tr, int which, hlo_val x, int axis) {
  for (int64_t n = x->shape.dims[axis], step = 1; x && step < n; step *= 2) {
    hlo_val head = slice_axis(tr, x, axis, 0, step), tail = slice_axis(tr, x, axis, step, n);
    hlo_val before = slice_axis(tr, x, axis, 0, n - step);
    hlo_val parts[] = {head, tail && before ? binary_emit(tr, which, tail, before) : NULL};
    x = parts[0] && parts[1] ? hlo_concatenate(&tr->b, 2, parts, axis) : NULL;
  }
  return x;
}

/* arg: BIN_ADD for cumsum, BIN_MUL for cumprod; with 256 added, NaN counts as nothing */
static PyObject *running(struct tracer *tr, const char *name, int arg, PyObject *a, PyObject *axis, PyObject *dtype) {
  int at = 0, which = arg & 255;
  enum dtype t = DT_NONE;
  hlo_val x = operand_alone(tr, a);
  if (!x || (dtype && dtype != Py_None && (t = dtype_from_py(dtype)) == DT_NONE))
    return NULL;
  if (!axis || axis == Py_None)
    x = flat(tr, x);
  else if (!axis_parse(axis, x->shape.rank, &at))
    return NULL;
  if (!x || x->shape.rank == 0)
    return refuse(DG_BAD_ARGUMENT, NULL, "%s needs at least one dimension", name);
  bool sums = which == BIN_ADD || which == BIN_MUL;
  if (t == DT_NONE)
    t = sums ? promote_sum(x->shape.dtype) : x->shape.dtype;
  if (arg & 256 && dtype_is_float(x->shape.dtype))
    x = sel(tr, cmp(tr, HLO_NE, x, x), like(tr, x, which == BIN_MUL), x);
  bool half = dtype_is_float(t) && dtype_size(t) < 4 && sums;
  hlo_val v = cast(tr, x, half ? DT_F32 : t);
  if (!v)
    return NULL;
  bool by_dot = which == BIN_ADD && dtype_is_float(t) && v->shape.dims[at] > 1;
  v = by_dot ? cumsum_dot(tr, v, at) : doubling(tr, which, v, at);
  return tensor_wrap(tr, v == x ? un(tr, HLO_COPY, x) : cast(tr, v, t));
}

PyObject *op_cumulative(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "axis", "dtype", "out", NULL};
  PyObject *a, *axis = NULL, *dtype = NULL, *out = NULL;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|OOO", names, &a, &axis, &dtype, &out) ||
      !only_none(out, op->name, "out"))
    return NULL;
  return running(tr, op->name, op->arg, a, axis, dtype);
}

/* cumulative_sum(x, *, axis=None, dtype=None, out=None, include_initial=False): an axis is needed above one dimension. */
PyObject *op_cumulative_array(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"x", "axis", "dtype", "include_initial", NULL};
  PyObject *a, *axis = NULL, *dtype = NULL, *initial = NULL;
  bool include = false;
  int at = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|$OOO", names, &a, &axis, &dtype, &initial) ||
      !flag_parse(initial, &include))
    return NULL;
  PyObject *r = running(tr, op->name, op->arg, a, axis, dtype);
  if (!r || !include)
    return r;
  hlo_val v = tensor_val(tr, r);
  Py_DECREF(r);
  if (!v || (axis && axis != Py_None && !axis_parse(axis, v->shape.rank, &at)))
    return NULL;
  struct hlo_pad_dim d[HLO_RANK_MAX] = {{0}};
  d[at].low = 1;
  return tensor_wrap(tr, hlo_pad(&tr->b, v, hlo_scalar(&tr->b, v->shape.dtype, op->arg == BIN_MUL), d));
}

/* add.accumulate(array, axis=0, dtype=None) and its kin; arg is the ufunc's BIN_… */
PyObject *accumulate_call(struct tracer *tr, int which, PyObject *args, PyObject *kw) {
  static char *names[] = {"array", "axis", "dtype", NULL};
  PyObject *a, *axis = NULL, *dtype = NULL, *zero = PyLong_FromLong(0), *r = NULL;
  if (zero && PyArg_ParseTupleAndKeywords(args, kw, "O|OO", names, &a, &axis, &dtype))
    r = running(tr, "accumulate", which, a, axis ? axis : zero, dtype);
  Py_XDECREF(zero);
  return r;
}

/* ---- reductions made of others -------------------------------------------------------------------------------------- */

static bool array_and_axes(struct tracer *tr, PyObject *a, PyObject *axis, PyObject *keep, hlo_val *x,
                           bool mask[HLO_RANK_MAX], bool *keepdims) {
  *keepdims = false;
  *x = operand_alone(tr, a);
  return *x && axes_parse(axis, (*x)->shape.rank, mask) && flag_parse(keep, keepdims);
}

PyObject *op_ptp(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "axis", "out", "keepdims", NULL};
  PyObject *a, *axis = NULL, *out = NULL, *keep = NULL;
  bool mask[HLO_RANK_MAX], keepdims;
  hlo_val x;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|OOO", names, &a, &axis, &out, &keep) ||
      !only_none(out, op->name, "out") || !array_and_axes(tr, a, axis, keep, &x, mask, &keepdims))
    return NULL;
  if (hlo_shape_elements(&x->shape) == 0)
    return refuse(DG_BAD_ARGUMENT, NULL, "zero-size array to reduction operation ptp which has no identity");
  if (x->shape.dtype == DT_BOOL)
    return refuse(DG_UNSUPPORTED_DTYPE, "convert to int32 first", "ptp is not defined for bool");
  return tensor_wrap(tr, bin(tr, HLO_SUBTRACT, reduce_axes(tr, HLO_MAXIMUM, x, mask, keepdims),
                             reduce_axes(tr, HLO_MINIMUM, x, mask, keepdims)));
}

/* average(a, axis=None, weights=None, returned=False, *, keepdims=False) */
PyObject *op_average(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "axis", "weights", "returned", "keepdims", NULL};
  PyObject *a, *axis = NULL, *weights = NULL, *returned = NULL, *keep = NULL;
  bool mask[HLO_RANK_MAX], keepdims, both = false;
  int64_t shape[HLO_RANK_MAX];
  hlo_val x, w = NULL;
  (void)op;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|OOO$O", names, &a, &axis, &weights, &returned, &keep) ||
      !flag_parse(returned, &both) || !array_and_axes(tr, a, axis, keep, &x, mask, &keepdims))
    return NULL;
  if (weights && weights != Py_None && !(w = operand_alone(tr, weights)))
    return NULL;
  int rank = x->shape.rank, n = 0;
  for (int i = 0; i < rank; i++)
    n += mask[i];
  if (w && !hlo_shape_same_dims(&w->shape, &x->shape)) { /* one weight per place along the axes */
    if (!axis || axis == Py_None || w->shape.rank != n)
      return refuse(DG_SHAPE_MISMATCH, "give axis=, or weights of the array's shape",
                    "average: the shapes of the array and its weights do not fit together");
    for (int i = 0, k = 0; i < rank; i++)
      shape[i] = mask[i] ? w->shape.dims[k++] : 1;
    w = hlo_reshape(&tr->b, w, rank, shape);
  }
  if (dtype_kind(x->shape.dtype) != DK_FLOAT)
    x = cast(tr, x, w && dtype_is_float(w->shape.dtype) ? promote(w->shape.dtype, DT_F32) : DT_F32);
  hlo_val ones = like(tr, x, 1);
  hlo_val weight =
      w ? broadcast_val(tr, cast(tr, w, x ? promote(x->shape.dtype, w->shape.dtype) : DT_F32), rank, x->shape.dims)
        : ones;
  hlo_val sum = sum_axes(tr, arith(tr, BIN_MUL, x, weight), mask, keepdims);
  hlo_val scale = sum_axes(tr, weight, mask, keepdims), mean = arith(tr, BIN_DIV, sum, scale);
  PyObject *m = tensor_wrap(tr, mean);
  if (!both || !m)
    return m;
  PyObject *s = tensor_wrap(tr, scale), *pair = s ? PyTuple_Pack(2, m, s) : NULL;
  Py_DECREF(m);
  Py_XDECREF(s);
  return pair;
}

/* nansum, nanprod, nanmax, nanmin, nanmean, nanvar, nanstd: NaN stands for nothing.  arg: which, in this order. */
enum { NAN_SUM, NAN_PROD, NAN_MAX, NAN_MIN, NAN_MEAN, NAN_VAR, NAN_STD };

static hlo_val nan_mean(struct tracer *tr, hlo_val x, hlo_val there, const bool mask[HLO_RANK_MAX], bool keepdims,
                        double ddof) {
  hlo_val sum = sum_axes(tr, x, mask, keepdims), n = sum_axes(tr, cast(tr, there, DT_F32), mask, keepdims);
  n = ddof != 0 ? bin_k(tr, HLO_SUBTRACT, n, ddof) : n;
  return sum && n ? bin(tr, HLO_DIVIDE, sum, cast(tr, n, sum->shape.dtype)) : NULL;
}

static hlo_val nan_var(struct tracer *tr, hlo_val x, hlo_val there, const bool mask[HLO_RANK_MAX], bool keepdims,
                       double ddof) {
  hlo_val mean = nan_mean(tr, x, there, mask, true, 0);
  hlo_val d = arith(tr, BIN_SUB, x, mean);
  d = sel(tr, there, d, like(tr, d, 0));
  return nan_mean(tr, bin(tr, HLO_MULTIPLY, d, d), there, mask, keepdims, ddof);
}

PyObject *op_nan_reduce(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "axis", "dtype", "out", "keepdims", "ddof", NULL};
  static char *extremes[] = {"a", "axis", "out", "keepdims", NULL};
  PyObject *a, *axis = NULL, *dtype = NULL, *out = NULL, *keep = NULL;
  bool mask[HLO_RANK_MAX], keepdims;
  double ddof = 0;
  hlo_val x, v;
  bool extreme = op->arg == NAN_MAX || op->arg == NAN_MIN;
  if (extreme ? !PyArg_ParseTupleAndKeywords(args, kw, "O|OOO", extremes, &a, &axis, &out, &keep)
              : !PyArg_ParseTupleAndKeywords(args, kw, "O|OOOOd", names, &a, &axis, &dtype, &out, &keep, &ddof))
    return NULL;
  if (!only_none(out, op->name, "out") || !only_none(dtype, op->name, "dtype") ||
      !array_and_axes(tr, a, axis, keep, &x, mask, &keepdims))
    return NULL;
  enum dtype t = x->shape.dtype;
  if (extreme && hlo_shape_elements(&x->shape) == 0)
    return refuse(DG_BAD_ARGUMENT, NULL, "zero-size array to reduction operation %s which has no identity", op->name);
  if (op->arg >= NAN_MEAN && !dtype_is_float(t))
    x = cast(tr, x, DT_F32);
  if (op->arg < NAN_MAX && !dtype_is_float(t))
    x = cast(tr, x, promote_sum(t));
  bool is_float = x && dtype_is_float(x->shape.dtype);
  hlo_val there = is_float ? cmp(tr, HLO_EQ, x, x)
                  : x      ? hlo_full(&tr->b, DT_BOOL, x->shape.rank, x->shape.dims, 1)
                           : NULL;
  const double end = x && x->shape.dtype == DT_F8E4M3FN ? 448 : HUGE_VAL; /* that type has no infinity */
  const double nothing[] = {0, 1, -end, end, 0, 0, 0};
  hlo_val y = is_float ? sel(tr, there, x, like(tr, x, nothing[op->arg])) : x;
  enum hlo_op most = op->arg == NAN_MAX ? HLO_MAXIMUM : HLO_MINIMUM;
  switch (op->arg) {
  case NAN_SUM:
    v = sum_axes(tr, y, mask, keepdims);
    break;
  case NAN_PROD:
    v = reduce_axes(tr, HLO_MULTIPLY, y, mask, keepdims);
    break;
  case NAN_MAX:
  case NAN_MIN: /* all NaN gives NaN */
    if (t == DT_BOOL)
      most = op->arg == NAN_MAX ? HLO_OR : HLO_AND;
    v = reduce_axes(tr, most, y, mask, keepdims);
    if (is_float)
      v = sel(tr, reduce_axes(tr, HLO_OR, there, mask, keepdims), v, like(tr, v, NAN));
    break;
  case NAN_MEAN:
    v = nan_mean(tr, y, there, mask, keepdims, 0);
    break;
  default:
    v = nan_var(tr, y, there, mask, keepdims, ddof);
    v = op->arg == NAN_STD ? un(tr, HLO_SQRT, v) : v;
  }
  return tensor_wrap(tr, v);
}
