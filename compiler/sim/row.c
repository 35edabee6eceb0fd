#include "sim/row.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "sim/simd.h"

#define EACH(value) \
  SIM_EACH_ALONE \
  for (int64_t k = 0; k < n; k++) \
    out[k] = (value); \
  return

/* The operators on the elements X and Y, which are expressions in k. */
#define OPERATORS(X, Y) \
  switch (op) { \
  case SIM_ADD: \
    EACH(X + Y); \
  case SIM_SUBTRACT: \
    EACH(X - Y); \
  case SIM_MULTIPLY: \
    EACH(X * Y); \
  case SIM_DIVIDE: \
    EACH(X / Y); \
  case SIM_MAX: /* NaN wins */ \
    EACH(((X > Y) | (X != X)) ? X : Y); \
  case SIM_MIN: \
    EACH(((X < Y) | (X != X)) ? X : Y); \
  case SIM_MOD: \
    EACH(fmodf(X, Y)); \
  case SIM_POW: \
    EACH(powf(X, Y)); \
  case SIM_DIVIDE_INT: \
    EACH(truncf(truncf(X) / truncf(Y))); \
  case SIM_MOD_INT: \
    EACH(fmodf(truncf(X), truncf(Y))); \
  case SIM_IS_EQ: \
    EACH((float)(X == Y)); \
  case SIM_IS_NE: \
    EACH((float)(X != Y)); \
  case SIM_IS_GT: \
    EACH((float)(X > Y)); \
  case SIM_IS_GE: \
    EACH((float)(X >= Y)); \
  case SIM_IS_LT: \
    EACH((float)(X < Y)); \
  case SIM_IS_LE: \
    EACH((float)(X <= Y)); \
  case SIM_LOGICAL_AND: \
    EACH((float)((X != 0) & (Y != 0))); \
  case SIM_LOGICAL_OR: \
    EACH((float)((X != 0) | (Y != 0))); \
  case SIM_LOGICAL_XOR: \
    EACH((float)((X != 0) ^ (Y != 0))); \
  case SIM_ABS_MAX: \
    EACH(((fabsf(X) >= fabsf(Y)) | (X != X)) ? X : Y); \
  case SIM_ABS_MIN: \
    EACH(((fabsf(X) <= fabsf(Y)) | (X != X)) ? X : Y); \
  default: \
    assert(!"an operator on f32"); \
  }

SIM_PER_MACHINE void sim_arith_f32(enum sim_operator op, int64_t n, const float *x, const float *y,
                                   float *out){OPERATORS(x[k], y[k])}

SIM_PER_MACHINE
    static void arith_with(enum sim_operator op, int64_t n, const float *x, float y, float *out){OPERATORS(x[k], y)}

SIM_PER_MACHINE static void arith_reversed(enum sim_operator op, int64_t n, const float *x, float y, float *out) {
  OPERATORS(y, x[k])
}

void sim_arith_scalar_f32(enum sim_operator op, bool is_reversed, int64_t n, const float *x, float y, float *out) {
  if (is_reversed)
    arith_reversed(op, n, x, y, out);
  else
    arith_with(op, n, x, y, out);
}

SIM_PER_MACHINE void sim_scale_f32(int64_t n, const float *x, float scale, float bias, float *out) {
  SIM_EACH_ALONE
  for (int64_t k = 0; k < n; k++)
    out[k] = x[k] * scale + bias; /* rounded twice: without the option, C does not fuse them */
}

/* ---- reductions ------------------------------------------------------------------------------------------------------ */

enum { SUMS = 32 }; /* running at the same time: fast, and rounding errors as small as with NumPy's pairwise sums */

SIM_PER_MACHINE float sim_sum_f32(int64_t n, const float *x) {
  float sums[SUMS] = {0};
  int64_t k = 0;
  for (; k + SUMS <= n; k += SUMS)
    for (int i = 0; i < SUMS; i++)
      sums[i] += x[k + i];
  for (; k < n; k++)
    sums[k % SUMS] += x[k];
  for (int w = SUMS / 2; w; w /= 2)
    for (int i = 0; i < w; i++)
      sums[i] += sums[i + w];
  return sums[0];
}

float sim_fold_f32(enum sim_operator op, int64_t n, const float *x) {
  float run[SUMS], r;
  if (op == SIM_ADD)
    return sim_sum_f32(n, x);
  if (n < 2 * SUMS) {
    r = x[0];
    for (int64_t k = 1; k < n; k++)
      sim_arith_f32(op, 1, &r, x + k, &r);
    return r;
  }
  memcpy(run, x, sizeof run);
  for (int64_t k = SUMS; k < n; k += SUMS)
    sim_arith_f32(op, n - k < SUMS ? n - k : SUMS, run, x + k, run);
  r = run[0];
  for (int i = 1; i < SUMS; i++)
    sim_arith_f32(op, 1, &r, &run[i], &r);
  return r;
}

/* Modulo 2^64; a negative power is 1/x, truncated; 1/0 is 0 here. */
static int64_t power(int64_t x, int64_t y) {
  uint64_t r = 1, base = (uint64_t)x;
  if (y < 0)
    return x == 1 ? 1 : x == -1 ? (y & 1 ? -1 : 1) : 0;
  for (; y; y >>= 1, base *= base)
    if (y & 1)
      r *= base;
  return (int64_t)r;
}

/* Truncated; x / 0 is 0. */
static int64_t quotient(int64_t x, int64_t y) {
  return !y ? 0 : y == -1 ? (int64_t)(0 - (uint64_t)x) : x / y;
}

/* A shift by a negative number, or by the width or more, is left undefined by the hardware's description; here all bits
 * go out. */
static int64_t shift_left(int64_t x, int64_t y) {
  return y < 0 || y > 63 ? 0 : (int64_t)((uint64_t)x << y);
}
static int64_t shift_right(int64_t x, int64_t y) {
  return x >> (y < 0 || y > 63 ? 63 : y);
}

static uint64_t magnitude(int64_t x) {
  return x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
}

SIM_PER_MACHINE void sim_arith_int(enum sim_operator op, int64_t n, const int64_t *x, const int64_t *y, int64_t *out) {
  switch (op) {
  case SIM_ADD:
    EACH((int64_t)((uint64_t)x[k] + (uint64_t)y[k]));
  case SIM_SUBTRACT:
    EACH((int64_t)((uint64_t)x[k] - (uint64_t)y[k]));
  case SIM_MULTIPLY:
    EACH((int64_t)((uint64_t)x[k] * (uint64_t)y[k]));
  case SIM_MAX:
    EACH(x[k] > y[k] ? x[k] : y[k]);
  case SIM_MIN:
    EACH(x[k] < y[k] ? x[k] : y[k]);
  case SIM_POW:
    EACH(power(x[k], y[k]));
  case SIM_DIVIDE:
  case SIM_DIVIDE_INT:
    EACH(quotient(x[k], y[k]));
  case SIM_MOD:
  case SIM_MOD_INT:
    EACH((int64_t)((uint64_t)x[k] - (uint64_t)quotient(x[k], y[k]) * (uint64_t)y[k]));
  case SIM_IS_EQ:
    EACH(x[k] == y[k]);
  case SIM_IS_NE:
    EACH(x[k] != y[k]);
  case SIM_IS_GT:
    EACH(x[k] > y[k]);
  case SIM_IS_GE:
    EACH(x[k] >= y[k]);
  case SIM_IS_LT:
    EACH(x[k] < y[k]);
  case SIM_IS_LE:
    EACH(x[k] <= y[k]);
  case SIM_LOGICAL_AND:
    EACH(x[k] && y[k]);
  case SIM_LOGICAL_OR:
    EACH(x[k] || y[k]);
  case SIM_LOGICAL_XOR:
    EACH(!x[k] != !y[k]);
  case SIM_ABS_MAX:
    EACH(magnitude(x[k]) >= magnitude(y[k]) ? x[k] : y[k]);
  case SIM_ABS_MIN:
    EACH(magnitude(x[k]) <= magnitude(y[k]) ? x[k] : y[k]);
  case SIM_BITWISE_AND:
    EACH(x[k] & y[k]);
  case SIM_BITWISE_OR:
    EACH(x[k] | y[k]);
  case SIM_BITWISE_XOR:
    EACH(x[k] ^ y[k]);
  case SIM_SHIFT_LEFT:
    EACH(shift_left(x[k], y[k]));
  case SIM_SHIFT_RIGHT_ARITH:
  case SIM_SHIFT_RIGHT_LOGICAL: /* the operand was extended with zeros */
    EACH(shift_right(x[k], y[k]));
  default:
    assert(!"an operator on integers");
  }
}

void sim_row_to_f32(struct sim_row *r, int64_t n, bool is_unsigned) {
  if (!r->is_int)
    return;
  for (int64_t k = 0; k < n; k++) { /* forwards: f32[k] lies at or before ints[k] */
    const int64_t v = r->ints[k];
    r->f32[k] = is_unsigned ? (float)(uint64_t)v : (float)v;
  }
  r->is_int = false;
}

void sim_row_to_bits(struct sim_row *r, int64_t n, bool is_unsigned) {
  if (r->is_int)
    return;
  for (int64_t k = n - 1; k >= 0; k--) {
    uint32_t bits;
    memcpy(&bits, &r->f32[k], sizeof bits);
    r->ints[k] = is_unsigned ? (int64_t)bits : (int64_t)(int32_t)bits;
  }
  r->is_int = true;
}
