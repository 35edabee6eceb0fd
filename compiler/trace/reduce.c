/* reduce: sums, extremes, means, and operations that are based on them.
 *
 * A sum of float16 or bfloat16 is accumulated in float32 and rounded once at the end, as in NumPy's float16 sum and the
 * hardware's accumulator.  Rounding at each step would give a less accurate result.
 */
#include <assert.h>
#include <string.h>

#include "trace/args.h"
#include "trace/complex.h"
#include "trace/compose.h"
#include "trace/refuse.h"
#include "trace/tensor.h"

/* The arguments that reductions share. */
struct reduction {
  hlo_val x;
  bool mask[HLO_RANK_MAX];
  bool keepdims;
  enum dtype dtype; /* DT_NONE: not given */
  PyObject *initial;
};

hlo_val val_reduce(struct tracer *tr, enum hlo_op op, hlo_val x, const bool mask[HLO_RANK_MAX], bool keepdims) {
  if (!x)
    return NULL;
  int64_t axes[HLO_RANK_MAX], kept[HLO_RANK_MAX];
  int n = 0, rank = x->shape.rank;
  for (int i = 0; i < rank; i++) {
    kept[i] = mask[i] ? 1 : x->shape.dims[i];
    if (mask[i])
      axes[n++] = i;
  }
  enum dtype t = x->shape.dtype;
  hlo_val init = op == HLO_MAXIMUM || op == HLO_MINIMUM ? hlo_extreme(&tr->b, t, op == HLO_MAXIMUM)
                                                        : hlo_scalar(&tr->b, t, op == HLO_MULTIPLY || op == HLO_AND);
  hlo_val r = n ? hlo_reduce(&tr->b, op, x, init, n, axes) : hlo_unary(&tr->b, HLO_COPY, x);
  return keepdims ? hlo_reshape(&tr->b, r, rank, kept) : r;
}

static int64_t reduced_count(const struct reduction *r) {
  int64_t n = 1;
  for (int i = 0; i < r->x->shape.rank; i++)
    n *= r->mask[i] ? r->x->shape.dims[i] : 1;
  return n;
}

/* Reads the common arguments; an argument that is not given is NULL.  False with an exception. */
static bool common(struct tracer *tr, const struct op_def *op, PyObject *a, PyObject *axis, PyObject *dtype,
                   PyObject *out, PyObject *keepdims, PyObject *where, struct reduction *r) {
  *r = (struct reduction){0};
  if (!args_only_none(out, op->name, "out") || !args_only_none(where, op->name, "where"))
    return false;
  if (dtype && dtype != Py_None && (r->dtype = dtype_from_py(dtype)) == DT_NONE)
    return false;
  r->x = operand_alone(tr, a);
  if (val_is_complex(r->x) && r->dtype != DT_NONE && r->dtype != DT_BOOL && !dtype_is_complex(r->dtype))
    return trace_refuse(DG_DTYPE_PROMOTION, "reduce a part: x.real, x.imag or np.abs(x)",
                        "%s of complex numbers cannot have dtype=%s", op->name, dtype_numpy_name(r->dtype));
  return r->x && args_axes(axis, r->x->shape.rank, r->mask) && args_flag(keepdims, &r->keepdims);
}

static bool is_half(enum dtype t) {
  return dtype_is_float(t) && dtype_size(t) < 4;
}

static hlo_val complex_product(struct tracer *tr, const struct reduction *r, hlo_val x) {
  int64_t kept[HLO_RANK_MAX];
  int n = 0;
  for (int i = 0; x && i < x->shape.rank; i++) {
    x = r->mask[i] ? val_complex_product(tr, x, i) : x;
    if (!r->mask[i] || r->keepdims)
      kept[n++] = x ? x->shape.dims[i] : 0;
  }
  return x ? hlo_reshape(&tr->b, un(tr, HLO_COPY, x), n, kept) : NULL;
}

/* Returns the sum or product in dtype t. */
static hlo_val accumulate(struct tracer *tr, enum hlo_op op, const struct reduction *r, hlo_val x, enum dtype t) {
  enum dtype acc = is_half(t) && op == HLO_ADD ? DT_F32 : t;
  if (dtype_is_complex(t) && op == HLO_MULTIPLY)
    return complex_product(tr, r, cast(tr, x, t));
  if (t == DT_BOOL) { /* with dtype=bool, a sum is `any` and a product is `all` */
    op = op == HLO_ADD ? HLO_OR : HLO_AND;
    x = val_nonzero(tr, x);
  }
  return hlo_convert(&tr->b, val_reduce(tr, op, hlo_convert(&tr->b, x, acc), r->mask, r->keepdims), t);
}

hlo_val val_reduce_axis(struct tracer *tr, enum hlo_op op, hlo_val x, int axis, bool keepdims) {
  bool mask[HLO_RANK_MAX] = {0};
  assert(axis >= 0 && (!x || axis < x->shape.rank));
  mask[axis] = true;
  return val_reduce(tr, op, x, mask, keepdims);
}

hlo_val val_sum(struct tracer *tr, hlo_val x, const bool mask[HLO_RANK_MAX], bool keepdims) {
  if (!x)
    return NULL;
  struct reduction r = {.keepdims = keepdims};
  memcpy(r.mask, mask, sizeof r.mask);
  return accumulate(tr, HLO_ADD, &r, x, x->shape.dtype);
}

hlo_val val_positions(struct tracer *tr, hlo_val x, int axis) {
  assert(axis >= 0 && (!x || axis < x->shape.rank));
  return x ? hlo_iota(&tr->b, DT_I32, x->shape.rank, x->shape.dims, axis) : NULL;
}

/* Combines a result with initial=. */
static hlo_val with_initial(struct tracer *tr, hlo_val v, PyObject *initial, int which) {
  struct operand x;
  if (!v || !initial || initial == Py_None)
    return v;
  if (!operand_read(tr, initial, &x))
    return NULL;
  hlo_val y = operand_at(tr, &x, v->shape.dtype, v->shape.rank, v->shape.dims);
  operand_clear(&x);
  return val_binary(tr, which, v, y);
}

PyObject *op_sum(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "axis", "dtype", "out", "keepdims", "initial", "where", NULL};
  PyObject *a, *axis = NULL, *dtype = NULL, *out = NULL, *keep = NULL, *initial = NULL, *where = NULL;
  struct reduction r;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|OOOOOO", names, &a, &axis, &dtype, &out, &keep, &initial, &where) ||
      !common(tr, op, a, axis, dtype, out, keep, where, &r))
    return NULL;
  enum dtype t = r.dtype != DT_NONE ? r.dtype : promote_sum(r.x->shape.dtype);
  hlo_val v = accumulate(tr, (enum hlo_op)op->arg.n, &r, r.x, t);
  return tensor_wrap(tr, with_initial(tr, v, initial, op->arg.n == HLO_ADD ? OP_ADD : OP_MULTIPLY));
}

PyObject *op_extreme(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "axis", "out", "keepdims", "initial", "where", NULL};
  PyObject *a, *axis = NULL, *out = NULL, *keep = NULL, *initial = NULL, *where = NULL;
  struct reduction r;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|OOOOO", names, &a, &axis, &out, &keep, &initial, &where) ||
      !common(tr, op, a, axis, NULL, out, keep, where, &r))
    return NULL;
  bool has_initial = initial && initial != Py_None;
  if (reduced_count(&r) == 0 && !has_initial)
    return trace_refuse(DG_BAD_ARGUMENT,
                        "give initial=", "zero-size array to reduction operation %s which has no identity", op->name);
  enum hlo_op which = (enum hlo_op)op->arg.n;
  if (r.x->shape.dtype == DT_BOOL)
    which = which == HLO_MAXIMUM ? HLO_OR : HLO_AND;
  hlo_val v = val_reduce(tr, which, r.x, r.mask, r.keepdims);
  return tensor_wrap(tr, with_initial(tr, v, initial, op->arg.n == HLO_MAXIMUM ? OP_MAXIMUM : OP_MINIMUM));
}

/* Returns the dtype in which a mean or variance is computed.  Sets *result to the dtype of the result. */
static enum dtype mean_dtype(const struct reduction *r, enum dtype *result) {
  enum dtype t = r->x->shape.dtype;
  *result = r->dtype != DT_NONE ? r->dtype : dtype_is_inexact(t) ? t : DT_F32;
  return is_half(*result) ? DT_F32 : *result;
}

static hlo_val divide_by(struct tracer *tr, hlo_val v, double n) {
  return val_is_complex(v) ? val_complex(tr, divide_by(tr, val_real(tr, v), n), divide_by(tr, val_imag(tr, v), n))
                           : hlo_binary(&tr->b, HLO_DIVIDE, v, val_like(tr, v, n));
}

PyObject *op_mean(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "axis", "dtype", "out", "keepdims", "where", NULL};
  PyObject *a, *axis = NULL, *dtype = NULL, *out = NULL, *keep = NULL, *where = NULL;
  struct reduction r;
  enum dtype result;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|OOOOO", names, &a, &axis, &dtype, &out, &keep, &where) ||
      !common(tr, op, a, axis, dtype, out, keep, where, &r))
    return NULL;
  enum dtype t = mean_dtype(&r, &result);
  if (!dtype_is_inexact(t))
    return trace_refuse(DG_UNSUPPORTED_DTYPE, "leave dtype= out and convert the result",
                        "mean with dtype=%s is not supported", dtype_numpy_name(t));
  hlo_val sum = accumulate(tr, HLO_ADD, &r, r.x, t);
  return tensor_wrap(tr, hlo_convert(&tr->b, divide_by(tr, sum, (double)reduced_count(&r)), result));
}

static PyObject *variance(struct tracer *tr, const struct reduction *given, double ddof, bool root) {
  struct reduction r = *given;
  enum dtype result, t = mean_dtype(&r, &result);
  if (!dtype_is_inexact(t))
    return trace_refuse(DG_UNSUPPORTED_DTYPE, "leave dtype= out and convert the result",
                        "var with dtype=%s is not supported", dtype_numpy_name(t));
  double n = (double)reduced_count(&r);
  hlo_val x = hlo_convert(&tr->b, r.x, t);
  r.keepdims = true;
  hlo_val mean = divide_by(tr, accumulate(tr, HLO_ADD, &r, x, t), n);
  if (!mean)
    return NULL;
  hlo_val d = hlo_binary(&tr->b, HLO_SUBTRACT, x, val_broadcast(tr, mean, x->shape.rank, x->shape.dims));
  r.keepdims = given->keepdims;
  hlo_val square = hlo_binary(&tr->b, HLO_MULTIPLY, d, d);
  if (val_is_complex(d)) { /* |d|² */
    hlo_val re = val_real(tr, d), im = val_imag(tr, d);
    square = bin(tr, HLO_ADD, bin(tr, HLO_MULTIPLY, re, re), bin(tr, HLO_MULTIPLY, im, im));
    t = result = DT_F32;
  }
  hlo_val sum = accumulate(tr, HLO_ADD, &r, square, t);
  hlo_val v = divide_by(tr, sum, n - ddof > 0 ? n - ddof : 0);
  if (root)
    v = hlo_unary(&tr->b, HLO_SQRT, v);
  return tensor_wrap(tr, hlo_convert(&tr->b, v, result));
}

PyObject *op_var(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "axis", "dtype", "out", "ddof", "keepdims", "where", "mean", "correction", NULL};
  PyObject *a, *axis = NULL, *dtype = NULL, *out = NULL, *keep = NULL, *where = NULL, *mean = NULL;
  double ddof = 0, correction = 0;
  struct reduction r;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|OOOdO$OOd", names, &a, &axis, &dtype, &out, &ddof, &keep, &where, &mean,
                                   &correction) ||
      !args_only_none(mean, op->name, "mean") || !common(tr, op, a, axis, dtype, out, keep, where, &r))
    return NULL;
  return variance(tr, &r, ddof + correction, op->arg.n);
}

PyObject *op_any(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "axis", "out", "keepdims", "where", NULL};
  PyObject *a, *axis = NULL, *out = NULL, *keep = NULL, *where = NULL;
  struct reduction r;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|OOO$O", names, &a, &axis, &out, &keep, &where) ||
      !common(tr, op, a, axis, NULL, out, keep, where, &r))
    return NULL;
  return tensor_wrap(tr, val_reduce(tr, (enum hlo_op)op->arg.n, val_nonzero(tr, r.x), r.mask, r.keepdims));
}

PyObject *op_count_nonzero(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "axis", "keepdims", NULL};
  PyObject *a, *axis = NULL, *keep = NULL;
  struct reduction r;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|O$O", names, &a, &axis, &keep) ||
      !common(tr, op, a, axis, NULL, NULL, keep, NULL, &r))
    return NULL;
  return tensor_wrap(tr, accumulate(tr, HLO_ADD, &r, val_nonzero(tr, r.x), DT_I32));
}

/* Returns the first position of the extreme value, which is the smallest position where x equals it.  In NumPy a NaN is
 * extreme.  The reduction then gives NaN, which equals no element, so x != x marks the positions of NaN. */
static hlo_val arg_positions(struct tracer *tr, hlo_val x, int axis, bool largest, bool keepdims) {
  bool mask[HLO_RANK_MAX] = {0};
  mask[axis] = true;
  const struct hlo_shape *s = &x->shape;
  hlo_val best = val_reduce(tr, largest ? HLO_MAXIMUM : HLO_MINIMUM, x, mask, true);
  hlo_val hit = hlo_compare(&tr->b, HLO_EQ, x, val_broadcast(tr, best, s->rank, s->dims));
  if (dtype_is_float(s->dtype))
    hit = hlo_binary(&tr->b, HLO_OR, hit, hlo_compare(&tr->b, HLO_NE, x, x));
  hlo_val at = hlo_iota(&tr->b, DT_I32, s->rank, s->dims, axis);
  hlo_val none = val_like(tr, at, (double)s->dims[axis]);
  return val_reduce(tr, HLO_MINIMUM, hlo_select(&tr->b, hit, at, none), mask, keepdims);
}

PyObject *op_argextreme(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "axis", "out", "keepdims", NULL};
  PyObject *a, *axis = NULL, *out = NULL, *keep = NULL;
  bool keepdims = false;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|OO$O", names, &a, &axis, &out, &keep) ||
      !args_only_none(out, op->name, "out") || !args_flag(keep, &keepdims))
    return NULL;
  hlo_val x = operand_alone(tr, a);
  if (!x)
    return NULL;
  int rank = x->shape.rank, at = 0;
  int64_t ones[HLO_RANK_MAX], n = hlo_shape_elements(&x->shape);
  if (x->shape.dtype == DT_BOOL)
    x = hlo_convert(&tr->b, x, DT_I32);
  bool flat = !axis || axis == Py_None;
  if (flat)
    x = hlo_reshape(&tr->b, x, 1, &n);
  else if (!args_axis(axis, rank, &at))
    return NULL;
  if (!x || x->shape.dims[at] == 0)
    return trace_refuse(DG_BAD_ARGUMENT, NULL, "attempt to get %s of an empty sequence", op->name);
  hlo_val v = arg_positions(tr, x, at, op->arg.n, keepdims && !flat);
  if (flat && keepdims) {
    for (int i = 0; i < rank; i++)
      ones[i] = 1;
    v = hlo_reshape(&tr->b, v, rank, ones);
  }
  return tensor_wrap(tr, v);
}
