#include "sim/row.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__)
#define PER_MACHINE __attribute__((target_clones("arch=x86-64-v3", "default"), optimize("O3")))
#else /* the choice is made before a sanitizer's runtime is ready */
#define PER_MACHINE
#endif

#define EACH(value) \
  for (int64_t k = 0; k < n; k++) \
    out[k] = (value); \
  return

PER_MACHINE void sim_arith_f32(enum sim_operator op, int64_t n, const float *x, const float *y, float *out) {
  switch (op) {
  case SIM_ADD:
    EACH(x[k] + y[k]);
  case SIM_SUBTRACT:
    EACH(x[k] - y[k]);
  case SIM_MULTIPLY:
    EACH(x[k] * y[k]);
  case SIM_DIVIDE:
    EACH(x[k] / y[k]);
  case SIM_MAX: /* NaN wins */
    EACH(x[k] > y[k] || x[k] != x[k] ? x[k] : y[k]);
  case SIM_MIN:
    EACH(x[k] < y[k] || x[k] != x[k] ? x[k] : y[k]);
  case SIM_MOD:
    EACH(fmodf(x[k], y[k]));
  case SIM_POW:
    EACH(powf(x[k], y[k]));
  case SIM_DIVIDE_INT:
    EACH(truncf(truncf(x[k]) / truncf(y[k])));
  case SIM_MOD_INT:
    EACH(fmodf(truncf(x[k]), truncf(y[k])));
  case SIM_IS_EQ:
    EACH((float)(x[k] == y[k]));
  case SIM_IS_NE:
    EACH((float)(x[k] != y[k]));
  case SIM_IS_GT:
    EACH((float)(x[k] > y[k]));
  case SIM_IS_GE:
    EACH((float)(x[k] >= y[k]));
  case SIM_IS_LT:
    EACH((float)(x[k] < y[k]));
  case SIM_IS_LE:
    EACH((float)(x[k] <= y[k]));
  case SIM_LOGICAL_AND:
    EACH((float)((x[k] != 0) & (y[k] != 0)));
  case SIM_LOGICAL_OR:
    EACH((float)((x[k] != 0) | (y[k] != 0)));
  case SIM_LOGICAL_XOR:
    EACH((float)((x[k] != 0) ^ (y[k] != 0)));
  default:
    assert(!"an operator on f32");
  }
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

PER_MACHINE void sim_arith_int(enum sim_operator op, int64_t n, const int64_t *x, const int64_t *y, int64_t *out) {
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

PER_MACHINE void sim_function_f32(enum sim_operator op, int64_t n, float *x) {
  float *out = x;
  switch (op) {
  case SIM_COPY:
    return;
  case SIM_EXP:
    EACH(expf(x[k]));
  case SIM_LOG:
    EACH(logf(x[k]));
  case SIM_SQRT:
    EACH(sqrtf(x[k]));
  case SIM_RSQRT:
    EACH(1 / sqrtf(x[k]));
  case SIM_SQUARE:
    EACH(x[k] * x[k]);
  case SIM_ABS:
    EACH(fabsf(x[k]));
  case SIM_TANH:
    EACH(tanhf(x[k]));
  case SIM_SIN:
    EACH(sinf(x[k]));
  case SIM_ERF:
    EACH(erff(x[k]));
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
  default:
    assert(!"a function of f32");
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
