/* unary: operations of one operand, and clip, round, astype and copy.
 *
 * Results have NumPy's dtypes (narrowed to 32 bits): exp of int32 is float32, floor of an integer stays an integer.
 */
#include <math.h>

#include "trace/compose.h"

static hlo_val within(struct tracer *tr, hlo_val x, double limit) { /* |x| < limit */
  return hlo_compare(&tr->b, HLO_LT, un(tr, HLO_ABS, x), like(tr, x, limit));
}

/* Near 0, 1 + x has rounded x's digits away, so log(1 + x) must not be used: 2 artanh(x / (2 + x)) there, four terms of
 * the series, exact to float32 for |x| < 1/4.  (Dividing by (1 + x) - 1 as Kahan does would be shorter, but XLA's
 * simplifier folds that to x.) */
static hlo_val log1p_val(struct tracer *tr, hlo_val x) {
  static const double c[] = {1.0 / 5, 1.0 / 3, 1};
  hlo_val s = bin(tr, HLO_DIVIDE, x, bin(tr, HLO_ADD, x, like(tr, x, 2))), z = bin(tr, HLO_MULTIPLY, s, s);
  hlo_val p = like(tr, x, 1.0 / 7);
  for (size_t i = 0; i < sizeof c / sizeof *c; i++)
    p = bin(tr, HLO_ADD, bin(tr, HLO_MULTIPLY, p, z), like(tr, x, c[i]));
  hlo_val near = bin(tr, HLO_MULTIPLY, bin(tr, HLO_ADD, s, s), p);
  return hlo_select(&tr->b, within(tr, x, 0.25), near, un(tr, HLO_LOG, bin(tr, HLO_ADD, x, like(tr, x, 1))));
}

/* Likewise exp(x) - 1 is 2 t / (1 - t) with t = tanh(x / 2) near 0. */
static hlo_val expm1_val(struct tracer *tr, hlo_val x) {
  hlo_val one = like(tr, x, 1), t = un(tr, HLO_TANH, bin(tr, HLO_MULTIPLY, x, like(tr, x, 0.5)));
  hlo_val near = bin(tr, HLO_DIVIDE, bin(tr, HLO_ADD, t, t), bin(tr, HLO_SUBTRACT, one, t));
  return hlo_select(&tr->b, within(tr, x, 0.5), near, bin(tr, HLO_SUBTRACT, un(tr, HLO_EXP, x), one));
}

/* To the nearest whole number, ties to even: below, plus one when the rest is over a half, or is a half and below is
 * odd.  Of |x|, so that -0.25 becomes -0. */
static hlo_val rint_val(struct tracer *tr, hlo_val signed_x) {
  hlo_val x = un(tr, HLO_ABS, signed_x), sign = un(tr, HLO_SIGN, signed_x);
  hlo_val down = un(tr, HLO_FLOOR, x), rest = bin(tr, HLO_SUBTRACT, x, down), half = like(tr, x, 0.5);
  hlo_val halved = bin(tr, HLO_MULTIPLY, down, half);
  hlo_val odd = hlo_compare(&tr->b, HLO_NE, un(tr, HLO_FLOOR, halved), halved);
  hlo_val tie = bin(tr, HLO_AND, hlo_compare(&tr->b, HLO_EQ, rest, half), odd);
  hlo_val up = bin(tr, HLO_OR, hlo_compare(&tr->b, HLO_GT, rest, half), tie);
  return bin(tr, HLO_MULTIPLY, sign, hlo_select(&tr->b, up, bin(tr, HLO_ADD, down, like(tr, x, 1)), down));
}

/* exp(|x|) - 1 keeps sinh's digits near 0. */
static hlo_val sinh_val(struct tracer *tr, hlo_val x) {
  hlo_val t = expm1_val(tr, un(tr, HLO_ABS, x));
  hlo_val v = bin(tr, HLO_ADD, t, bin(tr, HLO_DIVIDE, t, bin_k(tr, HLO_ADD, t, 1)));
  v = sel(tr, cmp_k(tr, HLO_EQ, t, HUGE_VAL), t, v);
  return bin(tr, HLO_MULTIPLY, un(tr, HLO_SIGN, x), bin_k(tr, HLO_MULTIPLY, v, 0.5));
}

static hlo_val cosh_val(struct tracer *tr, hlo_val x) {
  hlo_val e = un(tr, HLO_EXP, un(tr, HLO_ABS, x));
  return bin_k(tr, HLO_MULTIPLY, bin(tr, HLO_ADD, e, bin(tr, HLO_DIVIDE, like(tr, e, 1), e)), 0.5);
}

/* sqrt(1 - x²), as a product that does not cancel near 1. */
static hlo_val cosine_of_sine(struct tracer *tr, hlo_val x) {
  hlo_val one = like(tr, x, 1);
  return un(tr, HLO_SQRT, bin(tr, HLO_MULTIPLY, bin(tr, HLO_SUBTRACT, one, x), bin(tr, HLO_ADD, one, x)));
}

/* sign(x) log1p(|x| + x² / (1 + sqrt(1 + x²))); beyond 1e4 (where x² may overflow) log(2 |x|). */
static hlo_val arcsinh_val(struct tracer *tr, hlo_val x) {
  hlo_val a = un(tr, HLO_ABS, x), large = cmp_k(tr, HLO_GT, a, x && x->shape.dtype == DT_F16 ? 100 : 1e4);
  hlo_val b = sel(tr, large, like(tr, a, 1), a), z = bin(tr, HLO_MULTIPLY, b, b);
  hlo_val root = bin_k(tr, HLO_ADD, un(tr, HLO_SQRT, bin_k(tr, HLO_ADD, z, 1)), 1);
  hlo_val near = log1p_val(tr, bin(tr, HLO_ADD, b, bin(tr, HLO_DIVIDE, z, root)));
  hlo_val far = bin_k(tr, HLO_ADD, un(tr, HLO_LOG, a), log(2.0));
  return bin(tr, HLO_MULTIPLY, un(tr, HLO_SIGN, x), sel(tr, large, far, near));
}

/* log1p(t + sqrt(t² + 2 t)) with t = x - 1; far out log(2 x). */
static hlo_val arccosh_val(struct tracer *tr, hlo_val x) {
  hlo_val large = cmp_k(tr, HLO_GT, x, x && x->shape.dtype == DT_F16 ? 100 : 1e4);
  hlo_val t = bin_k(tr, HLO_SUBTRACT, sel(tr, large, like(tr, x, 1), x), 1);
  hlo_val root = un(tr, HLO_SQRT, bin(tr, HLO_MULTIPLY, t, bin_k(tr, HLO_ADD, t, 2)));
  hlo_val far = bin_k(tr, HLO_ADD, un(tr, HLO_LOG, x), log(2.0));
  return sel(tr, large, far, log1p_val(tr, bin(tr, HLO_ADD, t, root)));
}

static hlo_val arctanh_val(struct tracer *tr, hlo_val x) {
  hlo_val a = un(tr, HLO_ABS, x), rest = bin(tr, HLO_SUBTRACT, like(tr, a, 1), a);
  hlo_val v = log1p_val(tr, bin(tr, HLO_DIVIDE, bin(tr, HLO_ADD, a, a), rest));
  return bin(tr, HLO_MULTIPLY, un(tr, HLO_SIGN, x), bin_k(tr, HLO_MULTIPLY, v, 0.5));
}

static hlo_val cbrt_val(struct tracer *tr, hlo_val x) {
  return bin(tr, HLO_MULTIPLY, un(tr, HLO_SIGN, x), bin_k(tr, HLO_POWER, un(tr, HLO_ABS, x), 1.0 / 3));
}

static hlo_val sinc_val(struct tracer *tr, hlo_val x) {
  hlo_val zero = cmp_k(tr, HLO_EQ, x, 0), y = bin_k(tr, HLO_MULTIPLY, sel(tr, zero, like(tr, x, 1), x), acos(-1.0));
  return sel(tr, zero, like(tr, x, 1), bin(tr, HLO_DIVIDE, un(tr, HLO_SIN, y), y));
}

static hlo_val trunc_val(struct tracer *tr, hlo_val x) {
  hlo_val positive = hlo_compare(&tr->b, HLO_GE, x, like(tr, x, 0));
  return hlo_select(&tr->b, positive, un(tr, HLO_FLOOR, x), un(tr, HLO_CEIL, x));
}

/* 1 / x on integers: 1, 0 or -1; NumPy leaves 1 / 0 undefined, here it is 0. */
static hlo_val reciprocal_int(struct tracer *tr, hlo_val x) {
  hlo_val one = like(tr, x, 1), zero = hlo_compare(&tr->b, HLO_EQ, x, like(tr, x, 0));
  hlo_val q = bin(tr, HLO_DIVIDE, one, hlo_select(&tr->b, zero, one, x));
  return hlo_select(&tr->b, zero, like(tr, x, 0), q);
}

static hlo_val refuse_bool(const char *name, const char *hint) {
  return refuse(DG_UNSUPPORTED_DTYPE, hint, "%s is not defined for bool", name);
}

/* Operations that keep integers. */
static hlo_val emit_any(struct tracer *tr, const struct op_def *op, hlo_val x) {
  enum dtype t = x->shape.dtype;
  bool is_float = dtype_is_float(t), is_signed = dtype_kind(t) == DK_SIGNED;
  switch (op->arg) {
  case UN_ABS:
    return un(tr, is_float || is_signed ? HLO_ABS : HLO_COPY, x);
  case UN_NEGATIVE:
    return t == DT_BOOL ? refuse_bool("negative", "use ~x or np.logical_not") : un(tr, HLO_NEGATE, x);
  case UN_POSITIVE:
    return t == DT_BOOL ? refuse_bool("positive", NULL) : un(tr, HLO_COPY, x);
  case UN_SIGN:
    if (t == DT_BOOL)
      return refuse_bool("sign", NULL);
    return is_float || is_signed ? un(tr, HLO_SIGN, x) : bin(tr, HLO_MINIMUM, x, like(tr, x, 1));
  case UN_SQUARE:
    x = t == DT_BOOL ? hlo_convert(&tr->b, x, DT_I8) : x;
    return bin(tr, HLO_MULTIPLY, x, x);
  case UN_RECIPROCAL:
    x = t == DT_BOOL ? hlo_convert(&tr->b, x, DT_I8) : x;
    return is_float ? bin(tr, HLO_DIVIDE, like(tr, x, 1), x) : reciprocal_int(tr, x);
  case UN_CEIL:
    return un(tr, is_float ? HLO_CEIL : HLO_COPY, x);
  case UN_FLOOR:
    return un(tr, is_float ? HLO_FLOOR : HLO_COPY, x);
  case UN_TRUNC:
    return is_float ? trunc_val(tr, x) : un(tr, HLO_COPY, x);
  case UN_INVERT:
    if (is_float)
      return refuse(DG_UNSUPPORTED_DTYPE, "use np.logical_not", "invert is not defined for %s", dtype_numpy_name(t));
    return un(tr, HLO_NOT, x);
  case UN_LOGICAL_NOT:
    return t == DT_BOOL ? un(tr, HLO_NOT, x) : hlo_compare(&tr->b, HLO_EQ, x, like(tr, x, 0));
  case UN_ISNAN:
    return is_float ? hlo_compare(&tr->b, HLO_NE, x, x) : hlo_full(&tr->b, DT_BOOL, x->shape.rank, x->shape.dims, 0);
  case UN_ISINF:
    return is_float ? hlo_compare(&tr->b, HLO_EQ, un(tr, HLO_ABS, x), like(tr, x, HUGE_VAL))
                    : hlo_full(&tr->b, DT_BOOL, x->shape.rank, x->shape.dims, 0);
  case UN_ISPOSINF:
  case UN_ISNEGINF:
    return is_float ? cmp_k(tr, HLO_EQ, x, op->arg == UN_ISPOSINF ? HUGE_VAL : -HUGE_VAL)
                    : hlo_full(&tr->b, DT_BOOL, x->shape.rank, x->shape.dims, 0);
  case UN_ISFINITE: {
    if (!is_float)
      return hlo_full(&tr->b, DT_BOOL, x->shape.rank, x->shape.dims, 1);
    hlo_val d = bin(tr, HLO_SUBTRACT, x, x);
    return hlo_compare(&tr->b, HLO_EQ, d, like(tr, x, 0));
  }
  }
  return NULL;
}

/* Operations that compute in floats. */
static hlo_val emit_float(struct tracer *tr, const struct op_def *op, hlo_val x) {
  switch (op->arg) {
  case UN_FABS:
    return un(tr, HLO_ABS, x);
  case UN_EXP:
    return un(tr, HLO_EXP, x);
  case UN_EXPM1:
    return expm1_val(tr, x);
  case UN_LOG:
    return un(tr, HLO_LOG, x);
  case UN_LOG1P:
    return log1p_val(tr, x);
  case UN_LOG2:
    return bin(tr, HLO_DIVIDE, un(tr, HLO_LOG, x), like(tr, x, log(2.0)));
  case UN_SQRT:
    return un(tr, HLO_SQRT, x);
  case UN_SIN:
    return un(tr, HLO_SIN, x);
  case UN_COS:
    return un(tr, HLO_COS, x);
  case UN_TAN:
    return bin(tr, HLO_DIVIDE, un(tr, HLO_SIN, x), un(tr, HLO_COS, x));
  case UN_TANH:
    return un(tr, HLO_TANH, x);
  case UN_ARCTAN:
    return bin(tr, HLO_ATAN2, x, like(tr, x, 1));
  case UN_RINT:
    return rint_val(tr, x);
  case UN_SIGNBIT:
    return sign_bit(tr, x);
  case UN_EXP2:
    return bin(tr, HLO_POWER, like(tr, x, 2), x);
  case UN_LOG10:
    return bin_k(tr, HLO_DIVIDE, un(tr, HLO_LOG, x), log(10.0));
  case UN_CBRT:
    return cbrt_val(tr, x);
  case UN_SINH:
    return sinh_val(tr, x);
  case UN_COSH:
    return cosh_val(tr, x);
  case UN_ARCSIN:
    return bin(tr, HLO_ATAN2, x, cosine_of_sine(tr, x));
  case UN_ARCCOS:
    return bin(tr, HLO_ATAN2, cosine_of_sine(tr, x), x);
  case UN_ARCSINH:
    return arcsinh_val(tr, x);
  case UN_ARCCOSH:
    return arccosh_val(tr, x);
  case UN_ARCTANH:
    return arctanh_val(tr, x);
  case UN_RADIANS:
    return bin_k(tr, HLO_MULTIPLY, x, acos(-1.0) / 180);
  case UN_DEGREES:
    return bin_k(tr, HLO_MULTIPLY, x, 180 / acos(-1.0));
  case UN_SINC:
    return sinc_val(tr, x);
  }
  return NULL;
}

static bool computes_in_floats(int which) {
  switch (which) {
  case UN_ABS:
  case UN_NEGATIVE:
  case UN_POSITIVE:
  case UN_SIGN:
  case UN_SQUARE:
  case UN_RECIPROCAL:
  case UN_CEIL:
  case UN_FLOOR:
  case UN_TRUNC:
  case UN_INVERT:
  case UN_LOGICAL_NOT:
  case UN_ISNAN:
  case UN_ISINF:
  case UN_ISFINITE:
  case UN_ISPOSINF:
  case UN_ISNEGINF:
    return false;
  default:
    return true;
  }
}

PyObject *op_unary(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"", "out", "where", "dtype", "casting", "order", "subok", NULL};
  PyObject *o, *out = NULL, *where = NULL, *dtype = NULL, *ignored;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|OOOOOO", names, &o, &out, &where, &dtype, &ignored, &ignored, &ignored))
    return NULL;
  if (!only_none(out, op->name, "out") || !only_none(where, op->name, "where"))
    return NULL;
  enum dtype as = DT_NONE;
  if (dtype && dtype != Py_None && (as = dtype_from_py(dtype)) == DT_NONE)
    return NULL;
  hlo_val x = operand_alone(tr, o);
  if (!x)
    return NULL;
  if (as != DT_NONE && dtype_is_float(x->shape.dtype) && !dtype_is_float(as))
    return refuse(DG_DTYPE_PROMOTION, "convert the result instead: .astype(…)", "cannot cast a %s operand to dtype %s",
                  dtype_numpy_name(x->shape.dtype), dtype_numpy_name(as));
  if (as != DT_NONE)
    x = hlo_convert(&tr->b, x, as);
  if (!x)
    return NULL;
  return tensor_wrap(tr, computes_in_floats(op->arg) ? emit_float(tr, op, as_float(tr, x)) : emit_any(tr, op, x));
}

/* round(a, decimals=0): halves go to the even neighbour, as in NumPy, which also scales by the power of ten. */
PyObject *op_round(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "decimals", "out", NULL};
  PyObject *o, *places = NULL, *out = NULL;
  int64_t n = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|OO", names, &o, &places, &out) || !only_none(out, op->name, "out") ||
      (places && !int_parse(places, "decimals", &n)))
    return NULL;
  hlo_val x = operand_alone(tr, o);
  if (!x)
    return NULL;
  bool is_float = dtype_is_float(x->shape.dtype);
  if (!is_float && x->shape.dtype != DT_BOOL && n >= 0)
    return tensor_wrap(tr, un(tr, HLO_COPY, x));
  if (!is_float && n < 0)
    return refuse(DG_UNSUPPORTED_DTYPE, "convert to float32 first",
                  "round with negative decimals is not supported for %s", dtype_numpy_name(x->shape.dtype));
  x = as_float(tr, x);
  if (n == 0)
    return tensor_wrap(tr, rint_val(tr, x));
  hlo_val scale = like(tr, x, pow(10, (double)(n < 0 ? -n : n)));
  enum hlo_op up = n > 0 ? HLO_MULTIPLY : HLO_DIVIDE, down = n > 0 ? HLO_DIVIDE : HLO_MULTIPLY;
  return tensor_wrap(tr, bin(tr, down, rint_val(tr, bin(tr, up, x, scale)), scale));
}

/* One bound of clip; None leaves x alone.  Steals nothing. */
static PyObject *bound(struct tracer *tr, PyObject *x, PyObject *limit, int which) {
  struct operand xy[2];
  if (!limit || limit == Py_None)
    return Py_NewRef(x);
  if (!operand_read(tr, x, &xy[0]))
    return NULL;
  if (!operand_read(tr, limit, &xy[1])) {
    operand_clear(&xy[0]);
    return NULL;
  }
  hlo_val v = binary_operands(tr, which, xy, DT_NONE);
  operand_clear(&xy[0]);
  operand_clear(&xy[1]);
  return tensor_wrap(tr, v);
}

PyObject *op_clip(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "a_min", "a_max", "out", "min", "max", "dtype", NULL};
  PyObject *x, *lo = NULL, *hi = NULL, *out = NULL, *min = NULL, *max = NULL, *dtype = NULL;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|OOO$OOO", names, &x, &lo, &hi, &out, &min, &max, &dtype) ||
      !only_none(out, op->name, "out") || !only_none(dtype, op->name, "dtype"))
    return NULL;
  lo = min ? min : lo;
  hi = max ? max : hi;
  if ((!lo || lo == Py_None) && (!hi || hi == Py_None))
    return tensor_wrap(tr, un(tr, HLO_COPY, operand_alone(tr, x)));
  PyObject *low = bound(tr, x, lo, BIN_MAX);
  PyObject *r = low ? bound(tr, low, hi, BIN_MIN) : NULL;
  Py_XDECREF(low);
  return r;
}

PyObject *op_astype(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"x", "dtype", "order", "casting", "subok", "copy", "device", NULL};
  PyObject *o, *dtype, *ignored;
  (void)op;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "OO|OOOOO", names, &o, &dtype, &ignored, &ignored, &ignored, &ignored,
                                   &ignored))
    return NULL;
  enum dtype t = dtype_from_py(dtype);
  hlo_val x = t == DT_NONE ? NULL : operand_alone(tr, o);
  if (!x)
    return NULL;
  return tensor_wrap(tr, x->shape.dtype == t ? un(tr, HLO_COPY, x)
                         : t == DT_BOOL      ? nonzero(tr, x)
                                             : hlo_convert(&tr->b, x, t));
}

PyObject *op_copy(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "order", "subok", NULL};
  PyObject *o, *ignored;
  (void)op;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|OO", names, &o, &ignored, &ignored))
    return NULL;
  return tensor_wrap(tr, un(tr, HLO_COPY, operand_alone(tr, o)));
}

/* nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None): None stands for the largest finite number. */
PyObject *op_nan_to_num(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"x", "copy", "nan", "posinf", "neginf", NULL};
  PyObject *o, *copy = NULL, *given[3] = {NULL, NULL, NULL};
  (void)op;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|OOOO", names, &o, &copy, &given[0], &given[1], &given[2]))
    return NULL;
  hlo_val x = operand_alone(tr, o), v = x;
  if (!x || !dtype_is_float(x->shape.dtype))
    return tensor_wrap(tr, x ? un(tr, HLO_COPY, x) : NULL);
  double most = dtype_largest(x->shape.dtype);
  double to[3] = {0, most, -most};
  for (int i = 0; i < 3; i++) {
    if (given[i] && given[i] != Py_None && (to[i] = PyFloat_AsDouble(given[i])) == -1 && PyErr_Occurred())
      return NULL;
    hlo_val hit = i == 0 ? cmp(tr, HLO_NE, x, x) : cmp_k(tr, HLO_EQ, x, i == 1 ? HUGE_VAL : -HUGE_VAL);
    v = sel(tr, hit, like(tr, x, to[i]), v);
  }
  return tensor_wrap(tr, v);
}
