/* arith: operations on rows of elements, and rows to and from memory.
 *
 * Where MLIR leaves a result undefined, this file does what machine code of x86 does: a float that an integer type
 * cannot hold becomes the smallest value of int32 or int64, truncated to the type.  Integer division by zero gives -1,
 * its remainder the dividend; a shift by the width or more gives 0, or -1 for a negative number shifted right.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "hlo/literal.h"
#include "interp/internal.h"

/* ---- narrow floats ----------------------------------------------------------------------------------------------- */

static uint32_t bits_of(float x) {
  uint32_t u;
  memcpy(&u, &x, sizeof u);
  return u;
}
static float float_of(uint32_t u) {
  float x;
  memcpy(&x, &u, sizeof x);
  return x;
}
static uint16_t to_bf16(float x) {
  const uint32_t u = bits_of(x);
  if (x != x)
    return (uint16_t)(u >> 16 | 0x40);
  return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
static float from_bf16(uint16_t h) {
  return float_of((uint32_t)h << 16);
}
static uint16_t to_f16(float x) {
  const _Float16 h = (_Float16)x;
  uint16_t u;
  memcpy(&u, &h, sizeof u);
  return u;
}
static float from_f16(uint16_t u) {
  _Float16 h;
  memcpy(&h, &u, sizeof h);
  return (float)h;
}
static float round_float(enum dtype t, float x) {
  return (float)hlo_literal_decode_float(t, hlo_literal_encode_float(t, (double)x));
}

/* Rounds a row of floats to type t. */
static void round_row(enum dtype t, int n, float *row) {
  if (t == DT_BF16)
    for (int k = 0; k < n; k++)
      row[k] = from_bf16(to_bf16(row[k]));
  else if (t == DT_F16)
    for (int k = 0; k < n; k++)
      row[k] = from_f16(to_f16(row[k]));
  else if (t != DT_F32)
    for (int k = 0; k < n; k++)
      row[k] = round_float(t, row[k]);
}

/* ---- integers ---------------------------------------------------------------------------------------------------- */

static int64_t wrap(enum dtype t, int64_t x) {
  switch (t) {
  case DT_BOOL:
    return x & 1;
  case DT_I8:
    return (int8_t)x;
  case DT_I16:
    return (int16_t)x;
  case DT_I32:
    return (int32_t)x;
  default:
    return x;
  }
}
static void wrap_row(enum dtype t, int n, int64_t *row) {
  if (t == DT_I32)
    for (int k = 0; k < n; k++)
      row[k] = (int32_t)row[k];
  else if (t != DT_I64)
    for (int k = 0; k < n; k++)
      row[k] = wrap(t, row[k]);
}
static unsigned width_of(enum dtype t) {
  return t == DT_BOOL ? 1 : 8 * (unsigned)dtype_size(t);
}
static uint64_t unsigned_of(enum dtype t, int64_t x) {
  const unsigned w = width_of(t);
  return w == 64 ? (uint64_t)x : (uint64_t)x & ((UINT64_C(1) << w) - 1);
}

static int64_t divide(int64_t x, int64_t y) {
  return y == 0 ? -1 : y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y;
}
static int64_t remainder_of(int64_t x, int64_t y) {
  return y == 0 ? x : y == -1 ? 0 : x % y;
}
int64_t interp_power(int64_t x, int64_t n) {
  uint64_t base = (uint64_t)x, r = 1;
  if (n < 0)
    return x == 1 ? 1 : x == -1 ? (n & 1 ? -1 : 1) : 0;
  for (; n; n >>= 1, base *= base)
    if (n & 1)
      r *= base;
  return (int64_t)r;
}
static int64_t shift_left(unsigned w, int64_t x, uint64_t by) {
  return by >= w ? 0 : (int64_t)((uint64_t)x << by);
}
static int64_t shift_right(unsigned w, int64_t x, uint64_t by) {
  return x >> (by >= w ? 63 : by);
}

/* One integer operation; a and b are sign-extended, ua and ub are not. */
static int64_t int_op(const struct arith *x, int64_t a, int64_t b) {
  const enum dtype t = x->from;
  const unsigned w = width_of(t);
  const uint64_t ua = unsigned_of(t, a), ub = unsigned_of(t, b);
  switch (x->op) {
  case A_DIVSI:
    return divide(a, b);
  case A_DIVUI:
    return ub ? (int64_t)(ua / ub) : -1;
  case A_REMSI:
    return remainder_of(a, b);
  case A_REMUI:
    return ub ? (int64_t)(ua % ub) : a;
  case A_FLOORDIVSI:
    return divide(a, b) - (remainder_of(a, b) != 0 && (a < 0) != (b < 0));
  case A_CEILDIVSI:
    return divide(a, b) + (remainder_of(a, b) != 0 && (a < 0) == (b < 0));
  case A_MAXUI:
    return ua > ub ? a : b;
  case A_MINUI:
    return ua < ub ? a : b;
  case A_SHLI:
    return shift_left(w, a, ub);
  case A_SHRSI:
    return shift_right(w, a, ub);
  case A_SHRUI:
    return ub >= w ? 0 : (int64_t)(ua >> ub);
  case A_IPOWI:
    return interp_power(a, b);
  case A_ABSI:
    return a < 0 ? (int64_t)(0 - (uint64_t)a) : a;
  case A_CTPOP:
    return __builtin_popcountll(ua);
  case A_CTLZ:
    return ua ? __builtin_clzll(ua) - (int64_t)(64 - w) : (int64_t)w;
  case A_CTTZ:
    return ua ? __builtin_ctzll(ua) : (int64_t)w;
  default:
    assert(!"an operation on integers");
    return 0;
  }
}

static bool compare_ints(const struct arith *x, int64_t a, int64_t b) {
  const uint64_t ua = unsigned_of(x->from, a), ub = unsigned_of(x->from, b);
  switch (x->predicate) {
  case 0:
    return a == b;
  case 1:
    return a != b;
  case 2:
    return a < b;
  case 3:
    return a <= b;
  case 4:
    return a > b;
  case 5:
    return a >= b;
  case 6:
    return ua < ub;
  case 7:
    return ua <= ub;
  case 8:
    return ua > ub;
  default:
    return ua >= ub;
  }
}

/* Predicates of arith.cmpf, in bits: equal, greater, less, unordered. */
static bool compare_floats(int predicate, double a, double b) {
  const int is = a == b ? 1 : a > b ? 2 : a < b ? 4 : 8;
  return predicate & is;
}

/* ---- floats ------------------------------------------------------------------------------------------------------ */

// clang-format off: it alternates between two layouts of this list
#define UNARY(x) \
  X(A_ACOS, acos) X(A_ACOSH, acosh) X(A_ASIN, asin) X(A_ASINH, asinh) \
  X(A_ATAN, atan) X(A_ATANH, atanh) X(A_CBRT, cbrt) X(A_CEIL, ceil) \
  X(A_COS, cos) X(A_COSH, cosh) X(A_ERF, erf) X(A_EXP, exp) \
  X(A_EXP2, exp2) X(A_EXPM1, expm1) X(A_FLOOR, floor) X(A_LOG, log) \
  X(A_LOG10, log10) X(A_LOG1P, log1p) X(A_LOG2, log2) X(A_ROUND, round) \
  X(A_ROUNDEVEN, rint) X(A_SIN, sin) X(A_SINH, sinh) X(A_SQRT, sqrt) \
  X(A_TAN, tan) X(A_TANH, tanh) X(A_TRUNC, trunc)
// clang-format on

/* NaN if one is NaN; +0 is larger than -0. */
#define MAXIMUM(a, b) ((a) != (a) ? (a) : (b) != (b) ? (b) : (a) > (b) ? (a) : (a) < (b) ? (b) : signbit(a) ? (b) : (a))
#define MINIMUM(a, b) ((a) != (a) ? (a) : (b) != (b) ? (b) : (a) < (b) ? (a) : (a) > (b) ? (b) : signbit(a) ? (a) : (b))

#define EACH(expression) \
  for (int k = 0; k < n; k++) \
    out[k] = (expression); \
  return

#define FLOAT_OPS(T, SUFFIX) \
  switch (x->op) { \
  case A_ADDF: \
    EACH(a[k] + b[k]); \
  case A_SUBF: \
    EACH(a[k] - b[k]); \
  case A_MULF: \
    EACH(a[k] * b[k]); \
  case A_DIVF: \
    EACH(a[k] / b[k]); \
  case A_NEGF: \
    EACH(-a[k]); \
  case A_ABSF: \
    EACH(fabs##SUFFIX(a[k])); \
  case A_REMF: \
    EACH(fmod##SUFFIX(a[k], b[k])); \
  case A_MAXIMUMF: \
    EACH(MAXIMUM(a[k], b[k])); \
  case A_MINIMUMF: \
    EACH(MINIMUM(a[k], b[k])); \
  case A_MAXNUMF: \
    EACH(fmax##SUFFIX(a[k], b[k])); \
  case A_MINNUMF: \
    EACH(fmin##SUFFIX(a[k], b[k])); \
  case A_POWF: \
    EACH(pow##SUFFIX(a[k], b[k])); \
  case A_ATAN2: \
    EACH(atan2##SUFFIX(a[k], b[k])); \
  case A_COPYSIGN: \
    EACH(copysign##SUFFIX(a[k], b[k])); \
  case A_RSQRT: \
    EACH(1 / sqrt##SUFFIX(a[k])); \
  case A_FMA: \
    EACH(fma##SUFFIX(a[k], b[k], c[k])); \
    UNARY(SUFFIX) \
  default: \
    assert(!"an operation on floats"); \
  }

static void f32_row(const struct arith *x, int n, float *out, const float *a, const float *b, const float *c) {
#define X(op, fn) \
  case op: \
    EACH(fn##f(a[k]));
  FLOAT_OPS(float, f)
#undef X
}

static void f64_row(const struct arith *x, int n, double *out, const double *a, const double *b, const double *c) {
#define X(op, fn) \
  case op: \
    EACH(fn(a[k]));
  FLOAT_OPS(double, )
#undef X
}

/* ---- conversions ------------------------------------------------------------------------------------------------- */

static double float_at(enum dtype t, const void *row, int k) {
  return form_of(t) == FORM_F64 ? ((const double *)row)[k] : (double)((const float *)row)[k];
}

static int64_t to_int(enum dtype t, double v) {
  if (t == DT_I64)
    return v >= (double)INT64_MIN && v < -(double)INT64_MIN ? (int64_t)v : INT64_MIN;
  return wrap(t, v > -0x1p31 - 1 && v < 0x1p31 ? (int64_t)v : INT32_MIN);
}
static int64_t to_unsigned(enum dtype t, double v) {
  if (t == DT_I64)
    return v >= 0x1p63 && v < 0x1p64 ? (int64_t)(uint64_t)v : to_int(DT_I64, v);
  return wrap(t, to_int(t == DT_I32 ? DT_I64 : DT_I32, v));
}

static void float_to_float(const struct arith *x, int n, void *out, const void *a) {
  if (form_of(x->to) == FORM_F64) {
    for (int k = n; k--;) /* backwards: out may be a */
      ((double *)out)[k] = float_at(x->from, a, k);
    return;
  }
  for (int k = 0; k < n; k++)
    ((float *)out)[k] = (float)float_at(x->from, a, k);
  round_row(x->to, n, out);
}

static void int_to_float(const struct arith *x, int n, void *out, const int64_t *a) {
  for (int k = 0; k < n; k++) {
    const uint64_t u = unsigned_of(x->from, a[k]);
    const bool is_unsigned = x->op == A_UITOFP;
    if (form_of(x->to) == FORM_F64)
      ((double *)out)[k] = is_unsigned ? (double)u : (double)a[k];
    else
      ((float *)out)[k] = is_unsigned ? (float)u : (float)a[k];
  }
  if (form_of(x->to) == FORM_F32)
    round_row(x->to, n, out);
}

static void convert_row(const struct arith *x, int n, void *out, const void *a) {
  int64_t *ints = out;
  switch (x->op) {
  case A_EXTF:
  case A_TRUNCF:
    float_to_float(x, n, out, a);
    return;
  case A_SITOFP:
  case A_UITOFP:
    int_to_float(x, n, out, a);
    return;
  case A_FPTOSI:
    for (int k = n; k--;)
      ints[k] = to_int(x->to, float_at(x->from, a, k));
    return;
  case A_FPTOUI:
    for (int k = n; k--;)
      ints[k] = to_unsigned(x->to, float_at(x->from, a, k));
    return;
  case A_EXTUI:
  case A_INDEX_CASTUI:
    for (int k = 0; k < n; k++)
      ints[k] = wrap(x->to, (int64_t)unsigned_of(x->from, ((const int64_t *)a)[k]));
    return;
  case A_EXTSI: /* of i1: true is -1 */
  case A_INDEX_CAST:
    for (int k = 0; k < n; k++) {
      const int64_t v = ((const int64_t *)a)[k];
      ints[k] = x->from == DT_BOOL ? wrap(x->to, -v) : wrap(x->to, v);
    }
    return;
  default: /* trunci */
    for (int k = 0; k < n; k++)
      ints[k] = wrap(x->to, ((const int64_t *)a)[k]);
  }
}

/* ---- one operation ----------------------------------------------------------------------------------------------- */

static void int_row(const struct arith *x, int n, int64_t *out, const int64_t *a, const int64_t *b) {
  switch (x->op) {
  case A_ADDI:
    for (int k = 0; k < n; k++)
      out[k] = (int64_t)((uint64_t)a[k] + (uint64_t)b[k]);
    break;
  case A_SUBI:
    for (int k = 0; k < n; k++)
      out[k] = (int64_t)((uint64_t)a[k] - (uint64_t)b[k]);
    break;
  case A_MULI:
    for (int k = 0; k < n; k++)
      out[k] = (int64_t)((uint64_t)a[k] * (uint64_t)b[k]);
    break;
  case A_ANDI:
    for (int k = 0; k < n; k++)
      out[k] = a[k] & b[k];
    break;
  case A_ORI:
    for (int k = 0; k < n; k++)
      out[k] = a[k] | b[k];
    break;
  case A_XORI:
    for (int k = 0; k < n; k++)
      out[k] = a[k] ^ b[k];
    break;
  case A_MAXSI: /* of i1: true is -1 */
    for (int k = 0; k < n; k++)
      out[k] = x->from == DT_BOOL ? a[k] & b[k] : a[k] > b[k] ? a[k] : b[k];
    break;
  case A_MINSI:
    for (int k = 0; k < n; k++)
      out[k] = x->from == DT_BOOL ? a[k] | b[k] : a[k] < b[k] ? a[k] : b[k];
    break;
  default:
    for (int k = 0; k < n; k++)
      out[k] = int_op(x, a[k], b ? b[k] : 0);
  }
  wrap_row(x->to, n, out);
}

static void select_row(const struct arith *x, int n, void *out, const int64_t *is_first, const void *a, const void *b) {
  if (form_of(x->to) == FORM_F32)
    for (int k = 0; k < n; k++)
      ((float *)out)[k] = is_first[k] ? ((const float *)a)[k] : ((const float *)b)[k];
  else
    for (int k = 0; k < n; k++)
      ((int64_t *)out)[k] = is_first[k] ? ((const int64_t *)a)[k] : ((const int64_t *)b)[k];
}

static void test_row(const struct arith *x, int n, int64_t *out, const void *a, const void *b) {
  for (int k = n; k--;) { /* backwards: out may be a row of narrower elements */
    if (x->op == A_CMPI) {
      out[k] = compare_ints(x, ((const int64_t *)a)[k], ((const int64_t *)b)[k]);
      continue;
    }
    const double v = float_at(x->from, a, k);
    out[k] = x->op == A_CMPF    ? compare_floats(x->predicate, v, float_at(x->from, b, k))
             : x->op == A_ISNAN ? v != v
             : x->op == A_ISINF ? isinf(v) != 0
                                : isfinite(v) != 0;
  }
}

static void bitcast_row(const struct arith *x, int n, void *out, const void *a) {
  char element[8];
  for (int k = n; k--;) {
    row_store(x->from, element, 1, 1, (const char *)a + (size_t)k * form_bytes(x->from));
    row_load(x->to, element, 1, 1, (char *)out + (size_t)k * form_bytes(x->to));
  }
}

void arith_row(const struct arith *x, int n, void *out, const void *a, const void *b, const void *c) {
  switch (x->op) {
  case A_SELECT:
    select_row(x, n, out, a, b, c);
    return;
  case A_CMPF:
  case A_CMPI:
  case A_ISNAN:
  case A_ISINF:
  case A_ISFINITE:
    test_row(x, n, out, a, b);
    return;
  case A_BITCAST:
    bitcast_row(x, n, out, a);
    return;
  case A_EXTF:
  case A_TRUNCF:
  case A_SITOFP:
  case A_UITOFP:
  case A_FPTOSI:
  case A_FPTOUI:
  case A_EXTSI:
  case A_EXTUI:
  case A_TRUNCI:
  case A_INDEX_CAST:
  case A_INDEX_CASTUI:
    convert_row(x, n, out, a);
    return;
  default:
    break;
  }
  if (form_of(x->to) == FORM_INT) {
    int_row(x, n, out, a, b);
  } else if (form_of(x->to) == FORM_F64) {
    f64_row(x, n, out, a, b, c);
  } else {
    f32_row(x, n, out, a, b, c);
    round_row(x->to, n, out);
  }
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

#define LOAD(T, R, expression) \
  for (int k = 0; k < n; k++) { \
    T v; \
    memcpy(&v, at + k * step * (int64_t)sizeof v, sizeof v); \
    ((R *)row)[k] = (expression); \
  } \
  return

void row_load(enum dtype t, const char *at, int64_t step, int n, void *row) {
  switch (t) {
  case DT_F32:
    if (step == 1) {
      memcpy(row, at, (size_t)n * sizeof(float));
      return;
    }
    LOAD(float, float, v);
  case DT_F64:
    LOAD(double, double, v);
  case DT_BF16:
    LOAD(uint16_t, float, from_bf16(v));
  case DT_F16:
    LOAD(uint16_t, float, from_f16(v));
  case DT_BOOL:
    LOAD(uint8_t, int64_t, v & 1);
  case DT_I8:
    LOAD(int8_t, int64_t, v);
  case DT_I16:
    LOAD(int16_t, int64_t, v);
  case DT_I32:
    LOAD(int32_t, int64_t, v);
  case DT_I64:
    LOAD(int64_t, int64_t, v);
  default:
    LOAD(uint8_t, float, (float)hlo_literal_decode_float(t, v));
  }
}

#define STORE(T, R, expression) \
  for (int k = 0; k < n; k++) { \
    const R x = ((const R *)row)[k]; \
    const T v = (T)(expression); \
    memcpy(at + k * step * (int64_t)sizeof v, &v, sizeof v); \
  } \
  return

void row_store(enum dtype t, char *at, int64_t step, int n, const void *row) {
  switch (t) {
  case DT_F32:
    if (step == 1) {
      memcpy(at, row, (size_t)n * sizeof(float));
      return;
    }
    STORE(float, float, x);
  case DT_F64:
    STORE(double, double, x);
  case DT_BF16:
    STORE(uint16_t, float, to_bf16(x));
  case DT_F16:
    STORE(uint16_t, float, to_f16(x));
  case DT_BOOL:
  case DT_I8:
    STORE(int8_t, int64_t, x);
  case DT_I16:
    STORE(int16_t, int64_t, x);
  case DT_I32:
    STORE(int32_t, int64_t, x);
  case DT_I64:
    STORE(int64_t, int64_t, x);
  default:
    STORE(uint8_t, float, hlo_literal_encode_float(t, (double)x));
  }
}

void row_fill(enum dtype t, int n, void *row, const void *scalar) {
  if (form_of(t) == FORM_F32)
    for (int k = 0; k < n; k++)
      memcpy((float *)row + k, scalar, sizeof(float));
  else
    for (int k = 0; k < n; k++)
      memcpy((int64_t *)row + k, scalar, sizeof(int64_t));
}
