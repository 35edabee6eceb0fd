/* scan: running sums and products, and reductions that are based on others: ptp, average, and those that skip NaN. */
#include <math.h>
#include <string.h>

#include "trace/args.h"
#include "trace/complex.h"
#include "trace/compose.h"
#include "trace/refuse.h"
#include "trace/tensor.h"

/* ---- running results
 * ---------------------------------------------------------------------------------------------- */

/* Computes cumsum as a product with an upper triangle of ones, which runs on the tensor engine. */
static hlo_val cumsum_dot(struct tracer *tr, hlo_val x, int axis) {
  int64_t n = x->shape.dims[axis], dims[] = {n, n}, p[HLO_RANK_MAX], contracting = axis, rows = 0;
  hlo_val row = hlo_iota(&tr->b, DT_I32, 2, dims, 0), col = hlo_iota(&tr->b, DT_I32, 2, dims, 1);
  hlo_val triangle = cast(tr, cmp(tr, HLO_LE, row, col), x->shape.dtype);
  struct hlo_dot_dims d = {.lhs_contracting = hlo_ints_dup(tr->a, 1, &contracting),
                           .rhs_contracting = hlo_ints_dup(tr->a, 1, &rows)};
  int rank = x->shape.rank;
  hlo_val v = val_dot(tr, x, triangle, &d); /* the axis is the last one now */
  for (int i = 0; i < rank; i++)
    p[i] = i < axis ? i : i == axis ? rank - 1 : i - 1;
  return v ? val_transpose(tr, v, p) : NULL;
}

/* Computes a running result by doubling: step k combines every element with the element 2^k places before it, if there
 * is one. */
static hlo_val doubling(struct tracer *tr, enum op_id which, hlo_val x, int axis) {
  for (int64_t n = x->shape.dims[axis], step = 1; x && step < n; step *= 2) {
    hlo_val head = val_slice(tr, x, axis, 0, step), tail = val_slice(tr, x, axis, step, n);
    hlo_val before = val_slice(tr, x, axis, 0, n - step);
    hlo_val parts[] = {head, tail && before ? val_binary(tr, which, tail, before) : NULL};
    x = parts[0] && parts[1] ? hlo_concatenate(&tr->b, 2, parts, axis) : NULL;
  }
  return x;
}

/* Computes a running result.  which is OP_ADD for cumsum, OP_MULTIPLY for cumprod, or another ufunc's operation.  If
 * skip_nan, NaN is replaced by the neutral element. */
static PyObject *running(struct tracer *tr, const char *func, enum op_id which, bool skip_nan, PyObject *a,
                         PyObject *axis, PyObject *dtype) {
  int at = 0;
  enum dtype t = DT_NONE;
  hlo_val x = operand_alone(tr, a);
  if (!x || (dtype && dtype != Py_None && (t = dtype_from_py(dtype)) == DT_NONE))
    return NULL;
  if (val_is_complex(x) && t != DT_NONE && !dtype_is_complex(t))
    return trace_refuse(DG_DTYPE_PROMOTION, "take a part first: x.real, x.imag or np.abs(x)",
                        "%s of complex numbers cannot have dtype=%s", func, dtype_numpy_name(t));
  if (!axis || axis == Py_None)
    x = val_flat(tr, x);
  else if (!args_axis(axis, x->shape.rank, &at))
    return NULL;
  if (!x || x->shape.rank == 0)
    return trace_refuse(DG_BAD_ARGUMENT, NULL, "%s needs at least one dimension", func);
  bool sums = which == OP_ADD || which == OP_MULTIPLY;
  if (t == DT_NONE)
    t = sums ? promote_sum(x->shape.dtype) : x->shape.dtype;
  if (skip_nan && dtype_is_float(x->shape.dtype))
    x = sel(tr, cmp(tr, HLO_NE, x, x), val_like(tr, x, which == OP_MULTIPLY), x);
  bool half = dtype_is_float(t) && dtype_size(t) < 4 && sums;
  hlo_val v = cast(tr, x, half ? DT_F32 : t);
  if (!v)
    return NULL;
  bool by_dot = which == OP_ADD && dtype_is_inexact(t) && v->shape.dims[at] > 1;
  if (by_dot && val_is_complex(v)) {
    hlo_val re = val_real(tr, v), im = val_imag(tr, v);
    v = re && im ? val_complex(tr, cumsum_dot(tr, re, at), cumsum_dot(tr, im, at)) : NULL;
  } else {
    v = by_dot ? cumsum_dot(tr, v, at) : doubling(tr, which, v, at);
  }
  return tensor_wrap(tr, v == x ? un(tr, HLO_COPY, x) : cast(tr, v, t));
}

static PyObject *cumulative(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw, bool skip_nan) {
  static char *names[] = {"a", "axis", "dtype", "out", NULL};
  PyObject *a, *axis = NULL, *dtype = NULL, *out = NULL;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|OOO", names, &a, &axis, &dtype, &out) ||
      !args_only_none(out, op->name, "out"))
    return NULL;
  return running(tr, op->name, (enum op_id)op->arg.n, skip_nan, a, axis, dtype);
}

PyObject *op_cumulative(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  return cumulative(tr, op, args, kw, false);
}

PyObject *op_nan_cumulative(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  return cumulative(tr, op, args, kw, true);
}

/* cumulative_sum(x, *, axis=None, dtype=None, include_initial=False) */
PyObject *op_cumulative_array(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"x", "axis", "dtype", "include_initial", NULL};
  PyObject *a, *axis = NULL, *dtype = NULL, *initial = NULL;
  bool include = false;
  int at = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|$OOO", names, &a, &axis, &dtype, &initial) ||
      !args_flag(initial, &include))
    return NULL;
  PyObject *r = running(tr, op->name, (enum op_id)op->arg.n, false, a, axis, dtype);
  if (!r || !include)
    return r;
  hlo_val v = tensor_val(tr, r);
  Py_DECREF(r);
  if (!v || (axis && axis != Py_None && !args_axis(axis, v->shape.rank, &at)))
    return NULL;
  struct hlo_pad_dim d[HLO_RANK_MAX] = {{0}};
  d[at].low = 1;
  return tensor_wrap(tr, hlo_pad(&tr->b, v, hlo_scalar(&tr->b, v->shape.dtype, op->arg.n == OP_MULTIPLY), d));
}

/* add.accumulate(array, axis=0, dtype=None) and those of other ufuncs. */
PyObject *op_accumulate(struct tracer *tr, enum op_id which, PyObject *args, PyObject *kw) {
  static char *names[] = {"array", "axis", "dtype", NULL};
  PyObject *a, *axis = NULL, *dtype = NULL, *zero = PyLong_FromLong(0), *r = NULL;
  if (zero && PyArg_ParseTupleAndKeywords(args, kw, "O|OO", names, &a, &axis, &dtype))
    r = running(tr, "accumulate", which, false, a, axis ? axis : zero, dtype);
  Py_XDECREF(zero);
  return r;
}

/* ---- reductions made of others
 * -------------------------------------------------------------------------------------- */

static bool array_and_axes(struct tracer *tr, PyObject *a, PyObject *axis, PyObject *keep, hlo_val *x,
                           bool mask[HLO_RANK_MAX], bool *keepdims) {
  *keepdims = false;
  *x = operand_alone(tr, a);
  return *x && args_axes(axis, (*x)->shape.rank, mask) && args_flag(keep, keepdims);
}

PyObject *op_ptp(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "axis", "out", "keepdims", NULL};
  PyObject *a, *axis = NULL, *out = NULL, *keep = NULL;
  bool mask[HLO_RANK_MAX], keepdims;
  hlo_val x;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|OOO", names, &a, &axis, &out, &keep) ||
      !args_only_none(out, op->name, "out") || !array_and_axes(tr, a, axis, keep, &x, mask, &keepdims))
    return NULL;
  if (hlo_shape_elements(&x->shape) == 0)
    return trace_refuse(DG_BAD_ARGUMENT, NULL, "zero-size array to reduction operation ptp which has no identity");
  if (x->shape.dtype == DT_BOOL)
    return trace_refuse(DG_UNSUPPORTED_DTYPE, "convert to int32 first", "ptp is not defined for bool");
  return tensor_wrap(tr, bin(tr, HLO_SUBTRACT, val_reduce(tr, HLO_MAXIMUM, x, mask, keepdims),
                             val_reduce(tr, HLO_MINIMUM, x, mask, keepdims)));
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
      !args_flag(returned, &both) || !array_and_axes(tr, a, axis, keep, &x, mask, &keepdims))
    return NULL;
  if (weights && weights != Py_None && !(w = operand_alone(tr, weights)))
    return NULL;
  int rank = x->shape.rank, n = 0;
  for (int i = 0; i < rank; i++)
    n += mask[i];
  if (w && !hlo_shape_same_dims(&w->shape, &x->shape)) { /* one weight per position along the axes */
    if (!axis || axis == Py_None || w->shape.rank != n)
      return trace_refuse(DG_SHAPE_MISMATCH, "give axis=, or weights of the array's shape",
                          "average: the shapes of the array and its weights do not fit together");
    for (int i = 0, k = 0; i < rank; i++)
      shape[i] = mask[i] ? w->shape.dims[k++] : 1;
    w = hlo_reshape(&tr->b, w, rank, shape);
  }
  if (dtype_kind(x->shape.dtype) != DK_FLOAT)
    x = cast(tr, x, w && dtype_is_float(w->shape.dtype) ? promote_pair(w->shape.dtype, DT_F32) : DT_F32);
  hlo_val ones = val_like(tr, x, 1);
  hlo_val weight =
      w ? val_broadcast(tr, cast(tr, w, x ? promote_pair(x->shape.dtype, w->shape.dtype) : DT_F32), rank, x->shape.dims)
        : ones;
  hlo_val sum = val_sum(tr, val_arith(tr, OP_MULTIPLY, x, weight), mask, keepdims);
  hlo_val scale = val_sum(tr, weight, mask, keepdims), mean = val_arith(tr, OP_DIVIDE, sum, scale);
  PyObject *m = tensor_wrap(tr, mean);
  if (!both || !m)
    return m;
  PyObject *s = tensor_wrap(tr, scale), *pair = s ? PyTuple_Pack(2, m, s) : NULL;
  Py_DECREF(m);
  Py_XDECREF(s);
  return pair;
}

/* ---- reductions that skip NaN ------------------------------------------------------------------------------------ */

/* The common arguments of these reductions. */
struct nan_args {
  hlo_val x, there; /* there: true where x is not NaN */
  bool mask[HLO_RANK_MAX], keepdims;
};

/* Converts x to dtype t, unless t is DT_NONE, and sets `there`. */
static bool nan_prepare(struct tracer *tr, struct nan_args *r, enum dtype t) {
  r->x = t == DT_NONE ? r->x : cast(tr, r->x, t);
  if (!r->x)
    return false;
  r->there = dtype_is_float(r->x->shape.dtype) ? cmp(tr, HLO_EQ, r->x, r->x)
                                               : hlo_full(&tr->b, DT_BOOL, r->x->shape.rank, r->x->shape.dims, 1);
  return r->there;
}

/* Returns x with every NaN replaced by a number. */
static hlo_val nan_replaced(struct tracer *tr, const struct nan_args *r, double by) {
  return dtype_is_float(r->x->shape.dtype) ? sel(tr, r->there, r->x, val_like(tr, r->x, by)) : r->x;
}

/* (a, axis=None, dtype=None, out=None, keepdims=False, ddof=0) */
static bool nan_parse(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw, struct nan_args *r,
                      double *ddof) {
  static char *names[] = {"a", "axis", "dtype", "out", "keepdims", "ddof", NULL};
  PyObject *a, *axis = NULL, *dtype = NULL, *out = NULL, *keep = NULL;
  return PyArg_ParseTupleAndKeywords(args, kw, "O|OOOOd", names, &a, &axis, &dtype, &out, &keep, ddof) &&
         args_only_none(out, op->name, "out") && args_only_none(dtype, op->name, "dtype") &&
         array_and_axes(tr, a, axis, keep, &r->x, r->mask, &r->keepdims);
}

/* nansum and nanprod; arg: HLO_ADD or HLO_MULTIPLY */
PyObject *op_nan_sum(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  struct nan_args r;
  double ddof = 0;
  if (!nan_parse(tr, op, args, kw, &r, &ddof))
    return NULL;
  const enum dtype t = r.x->shape.dtype;
  if (!nan_prepare(tr, &r, dtype_is_float(t) ? DT_NONE : promote_sum(t)))
    return NULL;
  hlo_val y = nan_replaced(tr, &r, op->arg.n == HLO_MULTIPLY);
  return tensor_wrap(tr, op->arg.n == HLO_ADD ? val_sum(tr, y, r.mask, r.keepdims)
                                              : val_reduce(tr, HLO_MULTIPLY, y, r.mask, r.keepdims));
}

/* nanmax and nanmin; arg: HLO_MAXIMUM or HLO_MINIMUM.  The extreme of NaNs alone is NaN. */
PyObject *op_nan_extreme(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "axis", "out", "keepdims", NULL};
  PyObject *a, *axis = NULL, *out = NULL, *keep = NULL;
  struct nan_args r;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|OOO", names, &a, &axis, &out, &keep) ||
      !args_only_none(out, op->name, "out") || !array_and_axes(tr, a, axis, keep, &r.x, r.mask, &r.keepdims))
    return NULL;
  const enum dtype t = r.x->shape.dtype;
  if (hlo_shape_elements(&r.x->shape) == 0)
    return trace_refuse(DG_BAD_ARGUMENT, NULL, "zero-size array to reduction operation %s which has no identity",
                        op->name);
  if (!nan_prepare(tr, &r, DT_NONE))
    return NULL;
  const double end = t == DT_F8E4M3FN ? dtype_largest(t) : HUGE_VAL; /* that type has no infinity */
  enum hlo_op most = (enum hlo_op)op->arg.n;
  if (t == DT_BOOL)
    most = most == HLO_MAXIMUM ? HLO_OR : HLO_AND;
  hlo_val v = val_reduce(tr, most, nan_replaced(tr, &r, op->arg.n == HLO_MAXIMUM ? -end : end), r.mask, r.keepdims);
  if (dtype_is_float(t))
    v = sel(tr, val_reduce(tr, HLO_OR, r.there, r.mask, r.keepdims), v, val_like(tr, v, NAN));
  return tensor_wrap(tr, v);
}

/* Returns the mean: the sum of x, divided by the number of elements that are not NaN, minus ddof. */
static hlo_val nan_mean(struct tracer *tr, hlo_val x, const struct nan_args *r, bool keepdims, double ddof) {
  hlo_val sum = val_sum(tr, x, r->mask, keepdims), n = val_sum(tr, cast(tr, r->there, DT_F32), r->mask, keepdims);
  n = ddof != 0 ? bin_k(tr, HLO_SUBTRACT, n, ddof) : n;
  return sum && n ? bin(tr, HLO_DIVIDE, sum, cast(tr, n, sum->shape.dtype)) : NULL;
}

PyObject *op_nan_mean(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  struct nan_args r;
  double ddof = 0;
  if (!nan_parse(tr, op, args, kw, &r, &ddof) ||
      !nan_prepare(tr, &r, dtype_is_float(r.x->shape.dtype) ? DT_NONE : DT_F32))
    return NULL;
  return tensor_wrap(tr, nan_mean(tr, nan_replaced(tr, &r, 0), &r, r.keepdims, 0));
}

/* nanvar; arg 1: nanstd */
PyObject *op_nan_var(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  struct nan_args r;
  double ddof = 0;
  if (!nan_parse(tr, op, args, kw, &r, &ddof) ||
      !nan_prepare(tr, &r, dtype_is_float(r.x->shape.dtype) ? DT_NONE : DT_F32))
    return NULL;
  hlo_val x = nan_replaced(tr, &r, 0);
  hlo_val d = val_arith(tr, OP_SUBTRACT, x, nan_mean(tr, x, &r, true, 0));
  d = sel(tr, r.there, d, val_like(tr, d, 0));
  hlo_val v = nan_mean(tr, bin(tr, HLO_MULTIPLY, d, d), &r, r.keepdims, ddof);
  return tensor_wrap(tr, op->arg.n ? un(tr, HLO_SQRT, v) : v);
}
