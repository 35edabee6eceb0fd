/* unary: operations with one operand, and clip, round, astype and copy.
 *
 * Results have NumPy's dtypes, narrowed to 32 bits: exp of int32 is float32, and floor of an integer is an integer.
 */
#include <math.h>

#include "trace/args.h"
#include "trace/complex.h"
#include "trace/compose.h"
#include "trace/refuse.h"
#include "trace/tensor.h"

static bool is_float(hlo_val x) {
  return dtype_is_float(x->shape.dtype);
}

static bool is_inexact(hlo_val x) {
  return dtype_is_inexact(x->shape.dtype);
}

static bool is_bool(hlo_val x) {
  return x->shape.dtype == DT_BOOL;
}

static hlo_val refuse_bool(const char *name, const char *hint) {
  return trace_refuse(DG_UNSUPPORTED_DTYPE, hint, "%s is not defined for bool", name);
}

/* ---- one HLO operation ------------------------------------------------------------------------------------------- */

#define DIRECT(name, op) \
  hlo_val unary_##name(struct tracer *tr, hlo_val x) { \
    return un(tr, op, x); \
  }
DIRECT(fabs, HLO_ABS)
DIRECT(exp, HLO_EXP)
DIRECT(log, HLO_LOG)
DIRECT(sqrt, HLO_SQRT)
DIRECT(sin, HLO_SIN)
DIRECT(cos, HLO_COS)

hlo_val unary_tanh(struct tracer *tr, hlo_val x) {
  return val_is_complex(x) ? val_complex_tanh(tr, x) : un(tr, HLO_TANH, x);
}

/* ---- operations that keep integers ------------------------------------------------------------------------------- */

/* Rounding an integer copies it. */
#define ROUNDING(name, op) \
  hlo_val unary_##name(struct tracer *tr, hlo_val x) { \
    return un(tr, is_float(x) ? op : HLO_COPY, x); \
  }
ROUNDING(ceil, HLO_CEIL)
ROUNDING(floor, HLO_FLOOR)

hlo_val unary_trunc(struct tracer *tr, hlo_val x) {
  if (!is_float(x))
    return un(tr, HLO_COPY, x);
  hlo_val positive = cmp_k(tr, HLO_GE, x, 0);
  return sel(tr, positive, un(tr, HLO_FLOOR, x), un(tr, HLO_CEIL, x));
}

static bool has_sign(hlo_val x) {
  return is_inexact(x) || dtype_kind(x->shape.dtype) == DK_SIGNED;
}

hlo_val unary_abs(struct tracer *tr, hlo_val x) {
  return un(tr, has_sign(x) ? HLO_ABS : HLO_COPY, x);
}

hlo_val unary_negative(struct tracer *tr, hlo_val x) {
  return is_bool(x) ? refuse_bool("negative", "use ~x or np.logical_not") : un(tr, HLO_NEGATE, x);
}

hlo_val unary_positive(struct tracer *tr, hlo_val x) {
  return is_bool(x) ? refuse_bool("positive", NULL) : un(tr, HLO_COPY, x);
}

hlo_val unary_sign(struct tracer *tr, hlo_val x) {
  if (is_bool(x))
    return refuse_bool("sign", NULL);
  return has_sign(x) ? un(tr, HLO_SIGN, x) : bin_k(tr, HLO_MINIMUM, x, 1);
}

/* As in NumPy, arithmetic on bool is computed in int8. */
static hlo_val as_number(struct tracer *tr, hlo_val x) {
  return is_bool(x) ? hlo_convert(&tr->b, x, DT_I8) : x;
}

hlo_val unary_square(struct tracer *tr, hlo_val x) {
  x = as_number(tr, x);
  return bin(tr, HLO_MULTIPLY, x, x);
}

/* 1 / x of integers is 1, 0 or -1.  NumPy leaves 1 / 0 undefined; here it is 0. */
static hlo_val reciprocal_int(struct tracer *tr, hlo_val x) {
  hlo_val one = val_like(tr, x, 1), zero = cmp_k(tr, HLO_EQ, x, 0);
  hlo_val q = bin(tr, HLO_DIVIDE, one, sel(tr, zero, one, x));
  return sel(tr, zero, val_like(tr, x, 0), q);
}

hlo_val unary_reciprocal(struct tracer *tr, hlo_val x) {
  if (is_inexact(x))
    return bin(tr, HLO_DIVIDE, val_like(tr, x, 1), x);
  x = as_number(tr, x);
  return x ? reciprocal_int(tr, x) : NULL;
}

hlo_val unary_invert(struct tracer *tr, hlo_val x) {
  if (is_float(x))
    return trace_refuse(DG_UNSUPPORTED_DTYPE, "use np.logical_not", "invert is not defined for %s",
                        dtype_numpy_name(x->shape.dtype));
  return un(tr, HLO_NOT, x);
}

hlo_val unary_logical_not(struct tracer *tr, hlo_val x) {
  return is_bool(x) ? un(tr, HLO_NOT, x) : cmp_k(tr, HLO_EQ, x, 0);
}

/* ---- questions about floats, which have one answer for all integers ---------------------------------------------- */

static hlo_val everywhere(struct tracer *tr, hlo_val x, bool answer) {
  return hlo_full(&tr->b, DT_BOOL, x->shape.rank, x->shape.dims, answer);
}

hlo_val unary_isnan(struct tracer *tr, hlo_val x) {
  return is_inexact(x) ? cmp(tr, HLO_NE, x, x) : everywhere(tr, x, false);
}

hlo_val unary_isinf(struct tracer *tr, hlo_val x) {
  if (val_is_complex(x)) {
    hlo_val re = val_real(tr, x), im = val_imag(tr, x);
    return re && im ? bin(tr, HLO_OR, unary_isinf(tr, re), unary_isinf(tr, im)) : NULL;
  }
  return is_float(x) ? cmp(tr, HLO_EQ, un(tr, HLO_ABS, x), val_like(tr, x, HUGE_VAL)) : everywhere(tr, x, false);
}

hlo_val unary_isposinf(struct tracer *tr, hlo_val x) {
  return is_float(x) ? cmp_k(tr, HLO_EQ, x, HUGE_VAL) : everywhere(tr, x, false);
}

hlo_val unary_isneginf(struct tracer *tr, hlo_val x) {
  return is_float(x) ? cmp_k(tr, HLO_EQ, x, -HUGE_VAL) : everywhere(tr, x, false);
}

hlo_val unary_isfinite(struct tracer *tr, hlo_val x) {
  if (!is_inexact(x))
    return everywhere(tr, x, true);
  hlo_val d = bin(tr, HLO_SUBTRACT, x, x);
  return cmp(tr, HLO_EQ, d, val_like(tr, x, 0));
}

hlo_val unary_signbit(struct tracer *tr, hlo_val x) {
  return val_sign_bit(tr, x);
}

/* ---- exponentials and logarithms --------------------------------------------------------------------------------- */

static hlo_val within(struct tracer *tr, hlo_val x, double limit) { /* |x| < limit */
  return cmp(tr, HLO_LT, un(tr, HLO_ABS, x), val_like(tr, x, limit));
}

/* Near 0 the sum 1 + x loses digits of x, so log(1 + x) is not used there.  2 artanh(x / (2 + x)) is used instead, with
 * four terms of the series, which is exact to float32 for |x| < 1/4.  (Division by (1 + x) - 1, as Kahan does, would be
 * shorter, but XLA's simplifier folds that to x.) */
hlo_val unary_log1p(struct tracer *tr, hlo_val x) {
  static const double c[] = {1.0 / 5, 1.0 / 3, 1};
  hlo_val s = bin(tr, HLO_DIVIDE, x, bin_k(tr, HLO_ADD, x, 2)), z = bin(tr, HLO_MULTIPLY, s, s);
  hlo_val p = val_like(tr, x, 1.0 / 7);
  for (size_t i = 0; i < sizeof c / sizeof *c; i++)
    p = bin(tr, HLO_ADD, bin(tr, HLO_MULTIPLY, p, z), val_like(tr, x, c[i]));
  hlo_val near = bin(tr, HLO_MULTIPLY, bin(tr, HLO_ADD, s, s), p);
  return sel(tr, within(tr, x, 0.25), near, un(tr, HLO_LOG, bin_k(tr, HLO_ADD, x, 1)));
}

/* Near 0, exp(x) - 1 is computed as 2 t / (1 - t) with t = tanh(x / 2). */
hlo_val unary_expm1(struct tracer *tr, hlo_val x) {
  hlo_val one = val_like(tr, x, 1), t = un(tr, HLO_TANH, bin_k(tr, HLO_MULTIPLY, x, 0.5));
  hlo_val near = bin(tr, HLO_DIVIDE, bin(tr, HLO_ADD, t, t), bin(tr, HLO_SUBTRACT, one, t));
  return sel(tr, within(tr, x, 0.5), near, bin(tr, HLO_SUBTRACT, un(tr, HLO_EXP, x), one));
}

hlo_val unary_exp2(struct tracer *tr, hlo_val x) {
  return bin(tr, HLO_POWER, val_like(tr, x, 2), x);
}

hlo_val unary_log2(struct tracer *tr, hlo_val x) {
  return bin(tr, HLO_DIVIDE, un(tr, HLO_LOG, x), val_like(tr, x, log(2.0)));
}

hlo_val unary_log10(struct tracer *tr, hlo_val x) {
  return bin_k(tr, HLO_DIVIDE, un(tr, HLO_LOG, x), log(10.0));
}

hlo_val unary_cbrt(struct tracer *tr, hlo_val x) {
  return bin(tr, HLO_MULTIPLY, un(tr, HLO_SIGN, x), bin_k(tr, HLO_POWER, un(tr, HLO_ABS, x), 1.0 / 3));
}

/* ---- trigonometry ------------------------------------------------------------------------------------------------ */

hlo_val unary_tan(struct tracer *tr, hlo_val x) {
  if (val_is_complex(x))
    return val_complex_tan(tr, x);
  return bin(tr, HLO_DIVIDE, un(tr, HLO_SIN, x), un(tr, HLO_COS, x));
}

hlo_val unary_arctan(struct tracer *tr, hlo_val x) {
  return bin(tr, HLO_ATAN2, x, val_like(tr, x, 1));
}

/* sqrt(1 - x²), as a product that has no cancellation near 1. */
static hlo_val cosine_of_sine(struct tracer *tr, hlo_val x) {
  hlo_val one = val_like(tr, x, 1);
  return un(tr, HLO_SQRT, bin(tr, HLO_MULTIPLY, bin(tr, HLO_SUBTRACT, one, x), bin(tr, HLO_ADD, one, x)));
}

hlo_val unary_arcsin(struct tracer *tr, hlo_val x) {
  return bin(tr, HLO_ATAN2, x, cosine_of_sine(tr, x));
}

hlo_val unary_arccos(struct tracer *tr, hlo_val x) {
  return bin(tr, HLO_ATAN2, cosine_of_sine(tr, x), x);
}

hlo_val unary_radians(struct tracer *tr, hlo_val x) {
  return bin_k(tr, HLO_MULTIPLY, x, acos(-1.0) / 180);
}

hlo_val unary_degrees(struct tracer *tr, hlo_val x) {
  return bin_k(tr, HLO_MULTIPLY, x, 180 / acos(-1.0));
}

hlo_val unary_sinc(struct tracer *tr, hlo_val x) {
  hlo_val zero = cmp_k(tr, HLO_EQ, x, 0), y = bin_k(tr, HLO_MULTIPLY, sel(tr, zero, val_like(tr, x, 1), x), acos(-1.0));
  return sel(tr, zero, val_like(tr, x, 1), bin(tr, HLO_DIVIDE, un(tr, HLO_SIN, y), y));
}

/* Uses exp(|x|) - 1, which preserves the digits of sinh near 0. */
hlo_val unary_sinh(struct tracer *tr, hlo_val x) {
  if (val_is_complex(x))
    return val_complex_sinh(tr, x);
  hlo_val t = unary_expm1(tr, un(tr, HLO_ABS, x));
  hlo_val v = bin(tr, HLO_ADD, t, bin(tr, HLO_DIVIDE, t, bin_k(tr, HLO_ADD, t, 1)));
  v = sel(tr, cmp_k(tr, HLO_EQ, t, HUGE_VAL), t, v);
  return bin(tr, HLO_MULTIPLY, un(tr, HLO_SIGN, x), bin_k(tr, HLO_MULTIPLY, v, 0.5));
}

hlo_val unary_cosh(struct tracer *tr, hlo_val x) {
  if (val_is_complex(x))
    return val_complex_cosh(tr, x);
  hlo_val e = un(tr, HLO_EXP, un(tr, HLO_ABS, x));
  return bin_k(tr, HLO_MULTIPLY, bin(tr, HLO_ADD, e, bin(tr, HLO_DIVIDE, val_like(tr, e, 1), e)), 0.5);
}

/* True if x² may overflow. */
static hlo_val is_large(struct tracer *tr, hlo_val x) {
  return cmp_k(tr, HLO_GT, x, x && x->shape.dtype == DT_F16 ? 100 : 1e4);
}

/* sign(x) log1p(|x| + x² / (1 + sqrt(1 + x²))); log(2 |x|) for a large x. */
hlo_val unary_arcsinh(struct tracer *tr, hlo_val x) {
  hlo_val a = un(tr, HLO_ABS, x), large = is_large(tr, a);
  hlo_val b = sel(tr, large, val_like(tr, a, 1), a), z = bin(tr, HLO_MULTIPLY, b, b);
  hlo_val root = bin_k(tr, HLO_ADD, un(tr, HLO_SQRT, bin_k(tr, HLO_ADD, z, 1)), 1);
  hlo_val near = unary_log1p(tr, bin(tr, HLO_ADD, b, bin(tr, HLO_DIVIDE, z, root)));
  hlo_val far = bin_k(tr, HLO_ADD, un(tr, HLO_LOG, a), log(2.0));
  return bin(tr, HLO_MULTIPLY, un(tr, HLO_SIGN, x), sel(tr, large, far, near));
}

/* log1p(t + sqrt(t² + 2 t)) with t = x - 1; log(2 x) for a large x. */
hlo_val unary_arccosh(struct tracer *tr, hlo_val x) {
  hlo_val large = is_large(tr, x);
  hlo_val t = bin_k(tr, HLO_SUBTRACT, sel(tr, large, val_like(tr, x, 1), x), 1);
  hlo_val root = un(tr, HLO_SQRT, bin(tr, HLO_MULTIPLY, t, bin_k(tr, HLO_ADD, t, 2)));
  hlo_val far = bin_k(tr, HLO_ADD, un(tr, HLO_LOG, x), log(2.0));
  return sel(tr, large, far, unary_log1p(tr, bin(tr, HLO_ADD, t, root)));
}

hlo_val unary_arctanh(struct tracer *tr, hlo_val x) {
  hlo_val a = un(tr, HLO_ABS, x), rest = bin(tr, HLO_SUBTRACT, val_like(tr, a, 1), a);
  hlo_val v = unary_log1p(tr, bin(tr, HLO_DIVIDE, bin(tr, HLO_ADD, a, a), rest));
  return bin(tr, HLO_MULTIPLY, un(tr, HLO_SIGN, x), bin_k(tr, HLO_MULTIPLY, v, 0.5));
}

/* Rounds to the nearest whole number, ties to even: |x| is rounded down, and 1 is added if the rest is more than a
 * half, or is a half and the number below is odd.  The result is multiplied by the sign at the end, so that -0.25
 * becomes -0. */
hlo_val unary_rint(struct tracer *tr, hlo_val signed_x) {
  hlo_val x = un(tr, HLO_ABS, signed_x), sign = un(tr, HLO_SIGN, signed_x);
  hlo_val down = un(tr, HLO_FLOOR, x), rest = bin(tr, HLO_SUBTRACT, x, down), half = val_like(tr, x, 0.5);
  hlo_val halved = bin(tr, HLO_MULTIPLY, down, half);
  hlo_val odd = cmp(tr, HLO_NE, un(tr, HLO_FLOOR, halved), halved);
  hlo_val tie = bin(tr, HLO_AND, cmp(tr, HLO_EQ, rest, half), odd);
  hlo_val up = bin(tr, HLO_OR, cmp(tr, HLO_GT, rest, half), tie);
  return bin(tr, HLO_MULTIPLY, sign, sel(tr, up, bin_k(tr, HLO_ADD, down, 1), down));
}

/* ---- the operations ---------------------------------------------------------------------------------------------- */

static PyObject *unary(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw, bool as_floats) {
  static char *names[] = {"", "out", "where", "dtype", "casting", "order", "subok", NULL};
  PyObject *o, *out = NULL, *where = NULL, *dtype = NULL, *ignored;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|OOOOOO", names, &o, &out, &where, &dtype, &ignored, &ignored, &ignored))
    return NULL;
  if (!args_only_none(out, op->name, "out") || !args_only_none(where, op->name, "where"))
    return NULL;
  enum dtype as = DT_NONE;
  if (dtype && dtype != Py_None && (as = dtype_from_py(dtype)) == DT_NONE)
    return NULL;
  hlo_val x = operand_alone(tr, o);
  if (!x)
    return NULL;
  if (as != DT_NONE && is_inexact(x) && dtype_kind(as) < dtype_kind(x->shape.dtype))
    return trace_refuse(DG_DTYPE_PROMOTION, "convert the result instead: .astype(…)",
                        "cannot cast a %s operand to dtype %s", dtype_numpy_name(x->shape.dtype), dtype_numpy_name(as));
  if (as != DT_NONE)
    x = hlo_convert(&tr->b, x, as);
  if (as_floats)
    x = as_float(tr, x);
  return x ? tensor_wrap(tr, op->arg.unary(tr, x)) : NULL;
}

PyObject *op_unary(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  return unary(tr, op, args, kw, false);
}

PyObject *op_unary_float(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  return unary(tr, op, args, kw, true);
}

/* Rounds floats to so many decimals. */
static hlo_val round_to(struct tracer *tr, hlo_val x, int64_t n) {
  if (n == 0)
    return unary_rint(tr, x);
  hlo_val scale = val_like(tr, x, pow(10, (double)(n < 0 ? -n : n)));
  enum hlo_op up = n > 0 ? HLO_MULTIPLY : HLO_DIVIDE, down = n > 0 ? HLO_DIVIDE : HLO_MULTIPLY;
  return bin(tr, down, unary_rint(tr, bin(tr, up, x, scale)), scale);
}

/* round(a, decimals=0): halves are rounded to even, and decimals= scales by a power of ten, both as in NumPy. */
PyObject *op_round(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "decimals", "out", NULL};
  PyObject *o, *places = NULL, *out = NULL;
  int64_t n = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|OO", names, &o, &places, &out) ||
      !args_only_none(out, op->name, "out") || (places && !args_int(places, "decimals", &n)))
    return NULL;
  hlo_val x = operand_alone(tr, o);
  if (!x)
    return NULL;
  if (val_is_complex(x)) {
    hlo_val re = val_real(tr, x), im = val_imag(tr, x);
    return re && im ? tensor_wrap(tr, val_complex(tr, round_to(tr, re, n), round_to(tr, im, n))) : NULL;
  }
  if (!is_float(x) && x->shape.dtype != DT_BOOL && n >= 0)
    return tensor_wrap(tr, un(tr, HLO_COPY, x));
  if (!is_float(x) && n < 0)
    return trace_refuse(DG_UNSUPPORTED_DTYPE, "convert to float32 first",
                        "round with negative decimals is not supported for %s", dtype_numpy_name(x->shape.dtype));
  x = as_float(tr, x);
  return tensor_wrap(tr, round_to(tr, x, n));
}

/* Applies one bound of clip and returns a new reference.  None leaves x unchanged. */
static PyObject *bound(struct tracer *tr, PyObject *x, PyObject *limit, enum op_id which) {
  struct operand xy[2];
  if (!limit || limit == Py_None)
    return Py_NewRef(x);
  if (!operand_read(tr, x, &xy[0]))
    return NULL;
  if (!operand_read(tr, limit, &xy[1])) {
    operand_clear(&xy[0]);
    return NULL;
  }
  hlo_val v = operand_binary(tr, which, xy, DT_NONE);
  operand_clear(&xy[0]);
  operand_clear(&xy[1]);
  return tensor_wrap(tr, v);
}

PyObject *op_clip(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "a_min", "a_max", "out", "min", "max", "dtype", NULL};
  PyObject *x, *lo = NULL, *hi = NULL, *out = NULL, *min = NULL, *max = NULL, *dtype = NULL;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|OOO$OOO", names, &x, &lo, &hi, &out, &min, &max, &dtype) ||
      !args_only_none(out, op->name, "out") || !args_only_none(dtype, op->name, "dtype"))
    return NULL;
  lo = min ? min : lo;
  hi = max ? max : hi;
  if ((!lo || lo == Py_None) && (!hi || hi == Py_None))
    return tensor_wrap(tr, un(tr, HLO_COPY, operand_alone(tr, x)));
  PyObject *low = bound(tr, x, lo, OP_MAXIMUM);
  PyObject *r = low ? bound(tr, low, hi, OP_MINIMUM) : NULL;
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
  if (val_is_complex(x) && t != DT_BOOL && !dtype_is_complex(t)) /* NumPy drops the imaginary part, and warns */
    x = val_real(tr, x);
  if (!x)
    return NULL;
  return tensor_wrap(tr, x->shape.dtype == t ? un(tr, HLO_COPY, x)
                         : t == DT_BOOL      ? val_nonzero(tr, x)
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

/* nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None): None means the largest finite number. */
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
    v = sel(tr, hit, val_like(tr, x, to[i]), v);
  }
  return tensor_wrap(tr, v);
}
