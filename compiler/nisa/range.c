#include "nisa/range.h"

#include "ir/query.h"
#include "ir/structured.h"

enum { DEPTH_MAX = 16 };

int64_t nisa_gcd(int64_t a, int64_t b) {
  while (b) {
    int64_t r = a % b;
    a = b;
    b = r;
  }
  return a == INT64_MIN ? 1 : a < 0 ? -a : a; /* 2^63 is no int64_t */
}

/* Returns the loop with counter v; null if v is not a counter. */
static MlirOperation loop_of(MlirValue v) {
  if (!mlirValueIsABlockArgument(v) || mlirBlockArgumentGetArgNumber(v) != 0)
    return (MlirOperation){NULL};
  MlirOperation loop = mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(v));
  return ir_is(loop, "scf.for") ? loop : (MlirOperation){NULL};
}

static int64_t divisor(MlirValue v, int depth) {
  int64_t c, d;

  if (ir_int_constant(v, &c))
    return nisa_gcd(c, 0);
  if (depth == DEPTH_MAX)
    return 1;
  MlirOperation op = loop_of(v);
  if (!mlirOperationIsNull(op))
    return nisa_gcd(divisor(mlirOperationGetOperand(op, 0), depth + 1),
                    divisor(mlirOperationGetOperand(op, 2), depth + 1));
  op = ir_defining_op(v);
  if (mlirOperationIsNull(op))
    return 1;
  if (ir_is(op, "arith.muli")) {
    c = divisor(mlirOperationGetOperand(op, 0), depth + 1);
    d = divisor(mlirOperationGetOperand(op, 1), depth + 1);
    return __builtin_mul_overflow(c, d, &c) ? 1 : c;
  }
  if (ir_is(op, "arith.addi") || ir_is(op, "arith.subi"))
    return nisa_gcd(divisor(mlirOperationGetOperand(op, 0), depth + 1),
                    divisor(mlirOperationGetOperand(op, 1), depth + 1));
  return 1;
}

int64_t nisa_divisor(MlirValue v) {
  return divisor(v, 0);
}

struct bounds {
  int64_t low, high;
};

static bool bounds(MlirValue v, int depth, struct bounds *out);

static bool loop_bounds(MlirOperation loop, int depth, struct bounds *out) {
  struct bounds lower, upper;
  int64_t step;

  if (!bounds(mlirOperationGetOperand(loop, 0), depth + 1, &lower) ||
      !bounds(mlirOperationGetOperand(loop, 1), depth + 1, &upper) ||
      !ir_int_constant(mlirOperationGetOperand(loop, 2), &step) || step < 1)
    return false;
  /* with constant bounds the last iteration is known exactly */
  int64_t last, span;
  if (__builtin_sub_overflow(upper.high, 1, &last) || __builtin_sub_overflow(last, lower.low, &span))
    return false;
  if (lower.low == lower.high && upper.low == upper.high && span >= 0)
    last -= span % step;
  *out = (struct bounds){lower.low, last < lower.low ? lower.low : last};
  return true;
}

static bool add_bounds(struct bounds a, struct bounds b, struct bounds *out) {
  return !__builtin_add_overflow(a.low, b.low, &out->low) && !__builtin_add_overflow(a.high, b.high, &out->high);
}

/* Computes the bounds of v without the terms of its sum that are multiples of n. */
static bool rest_bounds(MlirValue v, int64_t n, int depth, struct bounds *out) {
  struct bounds a, b;
  if (depth == DEPTH_MAX)
    return false;
  if (divisor(v, depth) % n == 0) {
    *out = (struct bounds){0, 0};
    return true;
  }
  MlirOperation op = ir_defining_op(v);
  if (mlirOperationIsNull(op) || !ir_is(op, "arith.addi"))
    return bounds(v, depth, out);
  return rest_bounds(mlirOperationGetOperand(op, 0), n, depth + 1, &a) &&
         rest_bounds(mlirOperationGetOperand(op, 1), n, depth + 1, &b) && add_bounds(a, b, out);
}

static bool bounds(MlirValue v, int depth, struct bounds *out) {
  struct bounds a, b;
  int64_t c;

  if (ir_int_constant(v, &c)) {
    *out = (struct bounds){c, c};
    return true;
  }
  if (depth == DEPTH_MAX)
    return false;
  MlirOperation op = loop_of(v);
  if (!mlirOperationIsNull(op))
    return loop_bounds(op, depth, out);
  op = ir_defining_op(v);
  if (mlirOperationIsNull(op) || mlirOperationGetNumOperands(op) != 2 ||
      !bounds(mlirOperationGetOperand(op, 0), depth + 1, &a) || !bounds(mlirOperationGetOperand(op, 1), depth + 1, &b))
    return false;
  if (ir_is(op, "arith.addi"))
    return add_bounds(a, b, out);
  if (ir_is(op, "arith.subi"))
    return !__builtin_sub_overflow(a.low, b.high, &out->low) && !__builtin_sub_overflow(a.high, b.low, &out->high);
  if (a.low < 0 || b.low < 0)
    return false;
  if (ir_is(op, "arith.muli"))
    return !__builtin_mul_overflow(a.low, b.low, &out->low) && !__builtin_mul_overflow(a.high, b.high, &out->high);
  if (b.low != b.high || b.low == 0)
    return false;
  if (ir_is(op, "arith.divui") || ir_is(op, "arith.divsi")) {
    *out = (struct bounds){a.low / b.low, a.high / b.low};
    return true;
  }
  if (ir_is(op, "arith.remui") || ir_is(op, "arith.remsi")) {
    /* a multiple of g has a remainder that is a multiple of gcd(g, n) */
    int64_t unit = nisa_gcd(divisor(mlirOperationGetOperand(op, 0), depth + 1), b.low);
    if (a.high < b.low)
      *out = a;
    else if (!rest_bounds(mlirOperationGetOperand(op, 0), b.low, depth + 1, out) || out->low < 0 || out->high >= b.low)
      *out = (struct bounds){0, b.low - unit};
    return true;
  }
  return false;
}

bool nisa_bounds(MlirValue v, int64_t *low, int64_t *high) {
  struct bounds b;
  if (!bounds(v, 0, &b))
    return false;
  *low = b.low;
  *high = b.high;
  return true;
}
