#include "sim/step.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static int width(enum sim_type t) {
  return t == SIM_I1 ? 1 : 8 * sim_type_bytes(t);
}

static uint64_t mask(enum sim_type t) {
  return width(t) == 64 ? ~(uint64_t)0 : ((uint64_t)1 << width(t)) - 1;
}

/* The low bits of v as a value of type t: sign-extended, i1 as 0 or 1. */
static int64_t wrap(uint64_t v, enum sim_type t) {
  v &= mask(t);
  if (t != SIM_I1 && v >> (width(t) - 1))
    v |= ~mask(t);
  return (int64_t)v;
}

static double as_double(int64_t bits) {
  double v;
  memcpy(&v, &bits, sizeof v);
  return v;
}

/* v as a value of type t holds it. */
static int64_t as_bits(double v, enum sim_type t) {
  int64_t bits;
  if (t != SIM_F64)
    v = (double)(float)v;
  memcpy(&bits, &v, sizeof bits);
  return bits;
}

static bool compare_ints(int predicate, int64_t x, int64_t y, uint64_t ux, uint64_t uy) {
  switch (predicate) { /* arith::CmpIPredicate */
  case 0:
    return x == y;
  case 1:
    return x != y;
  case 2:
    return x < y;
  case 3:
    return x <= y;
  case 4:
    return x > y;
  case 5:
    return x >= y;
  case 6:
    return ux < uy;
  case 7:
    return ux <= uy;
  case 8:
    return ux > uy;
  default:
    return ux >= uy;
  }
}

/* arith::CmpFPredicate: bits 0 … 2 of an ordered one are equal, greater, less; adding 7 makes it unordered. */
static bool compare_floats(int predicate, double x, double y) {
  const bool is_unordered = isnan(x) || isnan(y);
  if (predicate == 0 || predicate == 15)
    return predicate == 15;
  if (predicate == 7)
    return !is_unordered;
  if (predicate == 14)
    return is_unordered;
  const int bits = predicate < 7 ? predicate : predicate - 7;
  if (is_unordered)
    return predicate > 7;
  return ((bits & 1) && x == y) || ((bits & 2) && x > y) || ((bits & 4) && x < y);
}

static int64_t floor_div(int64_t x, int64_t y) {
  return x / y - (x % y != 0 && (x < 0) != (y < 0));
}

static bool step_int(const struct sim_node *n, int64_t *regs) {
  const int64_t x = regs[n->b], y = n->c < 0 ? 0 : regs[n->c];
  const uint64_t ux = (uint64_t)x & mask(n->from), uy = (uint64_t)y & mask(n->from);
  int64_t *r = &regs[n->a];
  switch (n->step) {
  case SIM_STEP_DIVUI:
  case SIM_STEP_DIVSI:
  case SIM_STEP_CEILDIVUI:
  case SIM_STEP_CEILDIVSI:
  case SIM_STEP_FLOORDIVSI:
  case SIM_STEP_REMUI:
  case SIM_STEP_REMSI:
    if (!y || (y == -1 && x == INT64_MIN))
      return false;
    break;
  default:
    break;
  }
  switch (n->step) {
  case SIM_STEP_ADDI:
    return *r = wrap(ux + uy, n->type), true;
  case SIM_STEP_SUBI:
    return *r = wrap(ux - uy, n->type), true;
  case SIM_STEP_MULI:
    return *r = wrap(ux * uy, n->type), true;
  case SIM_STEP_DIVUI:
    return *r = wrap(ux / uy, n->type), true;
  case SIM_STEP_DIVSI:
    return *r = wrap((uint64_t)(x / y), n->type), true;
  case SIM_STEP_CEILDIVUI:
    return *r = wrap(ux / uy + (ux % uy != 0), n->type), true;
  case SIM_STEP_CEILDIVSI:
    return *r = wrap((uint64_t)-floor_div(-x, y), n->type), true;
  case SIM_STEP_FLOORDIVSI:
    return *r = wrap((uint64_t)floor_div(x, y), n->type), true;
  case SIM_STEP_REMUI:
    return *r = wrap(ux % uy, n->type), true;
  case SIM_STEP_REMSI:
    return *r = wrap((uint64_t)(x % y), n->type), true;
  case SIM_STEP_MINSI:
    return *r = x < y ? x : y, true;
  case SIM_STEP_MAXSI:
    return *r = x > y ? x : y, true;
  case SIM_STEP_MINUI:
    return *r = ux < uy ? x : y, true;
  case SIM_STEP_MAXUI:
    return *r = ux > uy ? x : y, true;
  case SIM_STEP_ANDI:
    return *r = x & y, true;
  case SIM_STEP_ORI:
    return *r = x | y, true;
  case SIM_STEP_XORI:
    return *r = x ^ y, true;
  case SIM_STEP_SHLI:
    return *r = uy < 64 ? wrap(ux << uy, n->type) : 0, true;
  case SIM_STEP_SHRSI:
    return *r = x >> (uy < 63 ? uy : 63), true;
  case SIM_STEP_SHRUI:
    return *r = uy < 64 ? wrap(ux >> uy, n->type) : 0, true;
  case SIM_STEP_CMPI:
    return *r = compare_ints(n->predicate, x, y, ux, uy), true;
  case SIM_STEP_INDEX_CAST:
  case SIM_STEP_EXTSI:
  case SIM_STEP_TRUNCI:
    return *r = n->from == SIM_I1 && n->type != SIM_I1 ? -x : wrap((uint64_t)x, n->type), true;
  case SIM_STEP_INDEX_CASTUI:
  case SIM_STEP_EXTUI:
    return *r = wrap(ux, n->type), true;
  default:
    assert(!"an operation on integers");
    return false;
  }
}

static double step_float(const struct sim_node *n, double x, double y) {
  switch (n->step) {
  case SIM_STEP_ADDF:
    return x + y;
  case SIM_STEP_SUBF:
    return x - y;
  case SIM_STEP_MULF:
    return x * y;
  case SIM_STEP_DIVF:
    return x / y;
  case SIM_STEP_REMF:
    return fmod(x, y);
  case SIM_STEP_MAXIMUMF:
    return isnan(x) || isnan(y) ? (double)NAN : fmax(x, y);
  case SIM_STEP_MINIMUMF:
    return isnan(x) || isnan(y) ? (double)NAN : fmin(x, y);
  case SIM_STEP_MAXNUMF:
    return fmax(x, y);
  case SIM_STEP_MINNUMF:
    return fmin(x, y);
  case SIM_STEP_NEGF:
    return -x;
  case SIM_STEP_EXTF:
  case SIM_STEP_TRUNCF:
    return x;
  default:
    assert(!"an operation on floats");
    return 0;
  }
}

/* Truncated; what is out of range gives the nearest value, as on the engines. */
static int64_t to_int(double v, enum sim_type t, bool is_unsigned) {
  const double top = ldexp(1, width(t) - !is_unsigned);
  if (isnan(v))
    return 0;
  if (is_unsigned)
    return wrap(v <= 0 ? 0 : v >= top ? mask(t) : (uint64_t)v, t);
  return v >= top ? (int64_t)(mask(t) >> 1) : v <= -top ? (int64_t)~(mask(t) >> 1) : (int64_t)v;
}

bool sim_step(const struct sim_node *n, int64_t *regs) {
  const int64_t x = regs[n->b];
  int64_t *r = &regs[n->a];
  switch (n->step) {
  case SIM_STEP_SELECT:
    *r = x ? regs[n->c] : regs[n->d];
    return true;
  case SIM_STEP_CMPF:
    *r = compare_floats(n->predicate, as_double(x), as_double(regs[n->c]));
    return true;
  case SIM_STEP_SITOFP:
    *r = as_bits((double)(n->from == SIM_I1 ? -x : x), n->type);
    return true;
  case SIM_STEP_UITOFP:
    *r = as_bits((double)((uint64_t)x & mask(n->from)), n->type);
    return true;
  case SIM_STEP_FPTOSI:
  case SIM_STEP_FPTOUI:
    *r = to_int(as_double(x), n->type, n->step == SIM_STEP_FPTOUI);
    return true;
  default:
    if (!sim_type_is_float(n->from))
      return step_int(n, regs);
    *r = as_bits(step_float(n, as_double(x), n->c < 0 ? 0 : as_double(regs[n->c])), n->type);
    return true;
  }
}
