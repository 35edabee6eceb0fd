/* function: the functions of the scalar engine, on rows of f32.
 *
 * Those that take most of the time in kernels are computed 16 elements at a time, with polynomials that are within some
 * units in the last place of the exact value (tests/sim/test_functions.py measures it); the C library computes the
 * others.  The usual scheme: reduce the argument to a small interval, evaluate a polynomial there, and put the parts
 * together; comparisons give masks of all ones or zeros, and pick() takes one of two values by them. */
#include "sim/function.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "sim/simd.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define INLINE static inline __attribute__((always_inline))
#else
#define INLINE static inline
#endif
#ifndef __clang__
#pragma GCC diagnostic ignored \
    "-Wpsabi" /* how lanes are passed to functions does not matter: all of them are inlined */
#endif
#define VECTOR SIM_PER_MACHINE_WITH("O3", "no-math-errno", "no-trapping-math", "fp-contract=fast")

typedef sim_lanes lanes;
typedef sim_ints ints;

INLINE lanes pick(ints mask, lanes yes, lanes no) {
  return (lanes)((mask & (ints)yes) | (~mask & (ints)no));
}

INLINE lanes magnitude(lanes x) {
  return (lanes)((ints)x & 0x7fffffff);
}

INLINE lanes with_sign(lanes x, lanes sign) {
  return (lanes)(((ints)x & 0x7fffffff) | ((ints)sign & (int32_t)0x80000000));
}

/* Adding and taking away 1.5 * 2^23 rounds to a whole number, for |x| < 2^22. */
INLINE lanes whole(lanes x) {
  const float big = 12582912.0f;
  return (x + big) - big;
}

/* 2^n for whole n in -126 … 127 */
INLINE lanes power_of_two(lanes n) {
  return (lanes)((__builtin_convertvector(n, ints) + 127) << 23);
}

INLINE lanes constant(float c) {
  return (lanes){0} + c;
}

/* ---- exp -------------------------------------------------------------------------------------------------------- */

/* e^x = 2^n e^r with n whole and |r| <= ln(2) / 2.  2^n is applied in two parts, so that results that are subnormal or
 * infinite come out right. */
INLINE lanes exp_lanes(lanes x) {
  const lanes bounded = pick(x > 89.0f, constant(89), pick(x < -104.0f, constant(-104), x));
  const lanes v = pick(x == x, bounded, constant(0));
  const lanes n = whole(v * 1.44269504f);
  const lanes r = (v - n * 0.693359375f) + n * 2.12194440e-4f;
  lanes p = r * 1.9875691500e-4f + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = p * (r * r) + r + 1.0f;
  const lanes half = whole(n * 0.5f);
  return pick(x == x, p * power_of_two(half) * power_of_two(n - half), x);
}

/* ---- log -------------------------------------------------------------------------------------------------------- */

/* log(x) = e log(2) + log(1 + m), with sqrt(1/2) <= 1 + m < sqrt(2). */
INLINE lanes log_lanes(lanes x) {
  const ints is_tiny = x < 1.17549435e-38f;
  const lanes scaled = pick(is_tiny, x * 8388608.0f, x);
  const lanes fraction = (lanes)(((ints)scaled & 0x007fffff) | 0x3f000000); /* in [1/2, 1) */
  lanes e =
      __builtin_convertvector(((ints)scaled >> 23 & 0xff) - 126, lanes) + pick(is_tiny, constant(-23), constant(0));
  const ints is_low = fraction < 0.70710678f;
  const lanes m = pick(is_low, fraction + fraction, fraction) - 1.0f, z = m * m;
  e += pick(is_low, constant(-1), constant(0));
  lanes p = m * 7.0376836292e-2f - 1.1514610310e-1f;
  p = p * m + 1.1676998740e-1f;
  p = p * m - 1.2420140846e-1f;
  p = p * m + 1.4249322787e-1f;
  p = p * m - 1.6668057665e-1f;
  p = p * m + 2.0000714765e-1f;
  p = p * m - 2.4999993993e-1f;
  p = p * m + 3.3333331174e-1f;
  const lanes y = p * m * z - e * 2.12194440e-4f - z * 0.5f;
  const lanes infinity = constant(INFINITY), nothing = constant(NAN);
  lanes r = m + y + e * 0.693359375f;
  r = pick(x == infinity, x, r);
  r = pick(x == 0.0f, -infinity, r);
  return pick(x == x, pick(x < 0.0f, nothing, r), x);
}

/* ---- tanh, erf ---------------------------------------------------------------------------------------------------- */

/* An odd polynomial near 0, and 1 - 2 / (e^2|x| + 1) elsewhere. */
INLINE lanes tanh_lanes(lanes x) {
  const lanes s = x * x, size = magnitude(x);
  lanes p = s * -5.70498872745e-3f + 2.06390887954e-2f;
  p = p * s - 5.37397155531e-2f;
  p = p * s + 1.33314422036e-1f;
  p = p * s - 3.33332819422e-1f;
  const lanes near = p * s * x + x, far = 1.0f - 2.0f / (exp_lanes(size + size) + 1.0f);
  return with_sign(pick(size < 0.625f, near, far), x);
}

/* A quotient of polynomials for |x| < 4; beyond, erf is 1 in f32. */
INLINE lanes erf_lanes(lanes x) {
  const lanes v = pick(magnitude(x) > 4.0f, with_sign(constant(4), x), x), s = v * v;
  lanes p = s * -2.72614225801306e-10f + 2.77068142495902e-08f, q = s * -1.45660718464996e-05f - 2.13374055278905e-04f;
  p = p * s - 2.10102402082508e-06f;
  p = p * s - 5.69250639462346e-05f;
  p = p * s - 7.34990630326855e-04f;
  p = p * s - 2.95459980854025e-03f;
  p = p * s - 1.60960333262415e-02f;
  q = q * s - 1.68282697438203e-03f;
  q = q * s - 7.37332916720468e-03f;
  q = q * s - 1.42647390514189e-02f;
  return v * (p / q);
}

/* ---- functions of exp, log and erf -------------------------------------------------------------------------------- */

/* e / (1 + e) with e = exp(-|x|), or 1 minus that: nothing overflows. */
INLINE lanes sigmoid_lanes(lanes x) {
  const lanes e = exp_lanes(-magnitude(x));
  return pick(x < 0.0f, e, constant(1)) / (1.0f + e);
}

/* The distribution function of the standard normal distribution. */
INLINE lanes normal_lanes(lanes x) {
  return 0.5f + 0.5f * erf_lanes(x * 0.70710678f);
}

INLINE lanes gelu_lanes(lanes x) {
  return x * normal_lanes(x);
}

INLINE lanes gelu_dx_lanes(lanes x) {
  return normal_lanes(x) + x * 0.39894228f * exp_lanes(x * x * -0.5f);
}

/* (1 + tanh(y)) / 2 is the sigmoid of 2y. */
INLINE lanes gelu_apprx_tanh_lanes(lanes x) {
  return x * sigmoid_lanes(1.59576912f * (x + 0.044715f * x * x * x));
}

INLINE lanes gelu_apprx_sigmoid_lanes(lanes x) {
  return x * sigmoid_lanes(1.702f * x);
}

INLINE lanes silu_lanes(lanes x) {
  return x * sigmoid_lanes(x);
}

INLINE lanes silu_dx_lanes(lanes x) {
  const lanes s = sigmoid_lanes(x);
  return s * (1.0f + x * sigmoid_lanes(-x));
}

INLINE lanes gelu_apprx_sigmoid_dx_lanes(lanes x) {
  return silu_dx_lanes(1.702f * x);
}

/* max(x, 0) + log(1 + e) with e = exp(-|x|).  What rounding takes from u = 1 + e is made good by e / (u - 1). */
INLINE lanes softplus_lanes(lanes x) {
  const lanes e = exp_lanes(-magnitude(x)), u = 1.0f + e;
  const lanes log1p = pick(u == 1.0f, e, log_lanes(u) * (e / (u - 1.0f)));
  return pick(x > 0.0f, x, constant(0)) + log1p;
}

/* tanh(log(1 + n)) = n (n + 2) / (n (n + 2) + 2), with n = e^x; from 20 on it is 1 in f32. */
INLINE lanes mish_lanes(lanes x) {
  const lanes n = exp_lanes(pick(x > 20.0f, constant(20), x)), m = n * (n + 2.0f);
  return x * (m / (m + 2.0f));
}

INLINE lanes erf_dx_lanes(lanes x) {
  return 1.12837917f * exp_lanes(-(x * x));
}

/* ---- rows ---------------------------------------------------------------------------------------------------------- */

#define ROWS(name) \
  VECTOR static void name##_row(int64_t n, const float *x, float *out) { \
    int64_t k = 0; \
    for (; k + SIM_LANES <= n; k += SIM_LANES) \
      *(lanes *)(out + k) = name##_lanes(*(const lanes *)(x + k)); \
    if (k < n) { \
      lanes rest = {0}; \
      memcpy(&rest, x + k, (size_t)(n - k) * sizeof *x); \
      rest = name##_lanes(rest); \
      memcpy(out + k, &rest, (size_t)(n - k) * sizeof *x); \
    } \
  }
ROWS(exp)
ROWS(log)
ROWS(tanh)
ROWS(erf)
ROWS(sigmoid)
ROWS(gelu)
ROWS(gelu_apprx_tanh)
ROWS(gelu_apprx_sigmoid)
ROWS(gelu_apprx_sigmoid_dx)
ROWS(gelu_dx)
ROWS(silu)
ROWS(silu_dx)
ROWS(softplus)
ROWS(mish)
ROWS(erf_dx)

#define EACH(value) \
  SIM_EACH_ALONE \
  for (int64_t k = 0; k < n; k++) \
    out[k] = (value); \
  return

SIM_PER_MACHINE static void simple_row(enum sim_operator op, int64_t n, const float *x, float *out) {
  switch (op) {
  case SIM_COPY:
    EACH(x[k]);
  case SIM_SQRT:
    EACH(sqrtf(x[k]));
  case SIM_RSQRT:
    EACH(1 / sqrtf(x[k]));
  case SIM_SQUARE:
    EACH(x[k] * x[k]);
  case SIM_ABS:
    EACH(fabsf(x[k]));
  case SIM_SIN:
    EACH(sinf(x[k]));
  case SIM_SIGN:
    EACH(x[k] == 0 || x[k] != x[k] ? x[k] : copysignf(1, x[k]));
  case SIM_FLOOR:
    EACH(floorf(x[k]));
  case SIM_CEIL:
    EACH(ceilf(x[k]));
  case SIM_ROUND:
    EACH(roundf(x[k]));
  case SIM_ROUND_EVEN:
    EACH(rintf(x[k]));
  case SIM_TRUNC:
    EACH(truncf(x[k]));
  case SIM_ARCTAN:
    EACH(atanf(x[k]));
  case SIM_RECIPROCAL:
    EACH(1 / x[k]);
  case SIM_RELU:
    EACH(x[k] < 0 ? 0 : x[k]);
  default:
    assert(!"a function of f32");
  }
}

void sim_function_f32(enum sim_operator op, int64_t n, const float *x, float *out) {
  static void (*const rows[])(int64_t n, const float *x, float *out) = {
      [SIM_EXP] = exp_row,
      [SIM_LOG] = log_row,
      [SIM_TANH] = tanh_row,
      [SIM_ERF] = erf_row,
      [SIM_SIGMOID] = sigmoid_row,
      [SIM_GELU] = gelu_row,
      [SIM_GELU_APPRX_TANH] = gelu_apprx_tanh_row,
      [SIM_GELU_APPRX_SIGMOID] = gelu_apprx_sigmoid_row,
      [SIM_GELU_APPRX_SIGMOID_DX] = gelu_apprx_sigmoid_dx_row,
      [SIM_GELU_DX] = gelu_dx_row,
      [SIM_SILU] = silu_row,
      [SIM_SILU_DX] = silu_dx_row,
      [SIM_SOFTPLUS] = softplus_row,
      [SIM_MISH] = mish_row,
      [SIM_ERF_DX] = erf_dx_row,
  };
  if (op < sizeof rows / sizeof *rows && rows[op])
    rows[op](n, x, out);
  else
    simple_row(op, n, x, out);
}
