/* elementwise: operations with two operands.
 *
 * The operands are promoted, broadcast and converted, then the operation is emitted.  Operations without an HLO opcode
 * are composed here.  They give NumPy's results, also for division by zero and for signs.
 */
#include <assert.h>
#include <math.h>

#include "trace/args.h"
#include "trace/complex.h"
#include "trace/compose.h"
#include "trace/refuse.h"
#include "trace/tensor.h"

hlo_val val_like(struct tracer *tr, hlo_val x, double v) {
  return x ? hlo_full(&tr->b, x->shape.dtype, x->shape.rank, x->shape.dims, v) : NULL;
}

hlo_val val_nonzero(struct tracer *tr, hlo_val x) {
  if (!x || x->shape.dtype == DT_BOOL)
    return x;
  return hlo_compare(&tr->b, HLO_NE, x, val_like(tr, x, 0));
}

/* True if the remainder r of a truncating division by y must be corrected to y's sign. */
static hlo_val sign_differs(struct tracer *tr, hlo_val r, hlo_val y) {
  hlo_val zero = val_like(tr, r, 0);
  hlo_val differ = bin(tr, HLO_XOR, cmp(tr, HLO_LT, r, zero), cmp(tr, HLO_LT, y, zero));
  return bin(tr, HLO_AND, cmp(tr, HLO_NE, r, zero), differ);
}

/* An integer divided by zero is 0 in NumPy, but undefined on the hardware and in LLVM.  A divisor of 0 is replaced by
 * 1, and the result by 0. */
static hlo_val int_divmod(struct tracer *tr, hlo_val x, hlo_val y, bool want_mod, bool truncate) {
  hlo_val zero = val_like(tr, y, 0), by_zero = cmp(tr, HLO_EQ, y, zero);
  hlo_val safe = sel(tr, by_zero, val_like(tr, y, 1), y);
  bool is_signed = x && dtype_kind(x->shape.dtype) == DK_SIGNED && !truncate;
  hlo_val q = bin(tr, HLO_DIVIDE, x, safe), r = NULL;
  if (is_signed || want_mod)
    r = bin(tr, HLO_SUBTRACT, x, bin(tr, HLO_MULTIPLY, q, safe));
  if (is_signed) {
    hlo_val fix = sign_differs(tr, r, safe);
    if (want_mod)
      r = sel(tr, fix, bin(tr, HLO_ADD, r, safe), r);
    else
      q = sel(tr, fix, bin(tr, HLO_SUBTRACT, q, val_like(tr, q, 1)), q);
  }
  return sel(tr, by_zero, zero, want_mod ? r : q);
}

/* Follows NumPy's algorithm (npy_divmod), which is also correct if x / y would be rounded up to a whole number. */
static hlo_val float_floor_divide(struct tracer *tr, hlo_val x, hlo_val y) {
  hlo_val rem = bin(tr, HLO_REMAINDER, x, y);
  hlo_val div = bin(tr, HLO_DIVIDE, bin(tr, HLO_SUBTRACT, x, rem), y);
  div = sel(tr, sign_differs(tr, rem, y), bin(tr, HLO_SUBTRACT, div, val_like(tr, div, 1)), div);
  hlo_val down = hlo_unary(&tr->b, HLO_FLOOR, div);
  hlo_val up = cmp(tr, HLO_GT, bin(tr, HLO_SUBTRACT, div, down), val_like(tr, div, 0.5));
  down = sel(tr, up, bin(tr, HLO_ADD, down, val_like(tr, down, 1)), down);
  return sel(tr, cmp(tr, HLO_EQ, y, val_like(tr, y, 0)), bin(tr, HLO_DIVIDE, x, y), down);
}

static hlo_val float_remainder(struct tracer *tr, hlo_val x, hlo_val y) {
  hlo_val rem = bin(tr, HLO_REMAINDER, x, y);
  return sel(tr, sign_differs(tr, rem, y), bin(tr, HLO_ADD, rem, y), rem);
}

/* max + log(1 + exp(-|x - y|)).  Equal operands, also infinities, give x + ln 2. */
hlo_val binary_logaddexp(struct tracer *tr, hlo_val x, hlo_val y) {
  hlo_val d = hlo_unary(&tr->b, HLO_ABS, bin(tr, HLO_SUBTRACT, x, y));
  hlo_val e = hlo_unary(&tr->b, HLO_EXP, hlo_unary(&tr->b, HLO_NEGATE, d));
  hlo_val r =
      bin(tr, HLO_ADD, bin(tr, HLO_MAXIMUM, x, y), hlo_unary(&tr->b, HLO_LOG, bin(tr, HLO_ADD, e, val_like(tr, e, 1))));
  return sel(tr, cmp(tr, HLO_EQ, x, y), bin(tr, HLO_ADD, x, val_like(tr, x, log(2.0))), r);
}

/* sqrt(x² + y²) without overflow: larger * sqrt(1 + (smaller / larger)²). */
hlo_val binary_hypot(struct tracer *tr, hlo_val x, hlo_val y) {
  hlo_val a = un(tr, HLO_ABS, x), b = un(tr, HLO_ABS, y);
  hlo_val most = bin(tr, HLO_MAXIMUM, a, b), least = bin(tr, HLO_MINIMUM, a, b), zero = cmp_k(tr, HLO_EQ, most, 0);
  hlo_val r = bin(tr, HLO_DIVIDE, least, sel(tr, zero, val_like(tr, most, 1), most));
  hlo_val v = bin(tr, HLO_MULTIPLY, most, un(tr, HLO_SQRT, bin_k(tr, HLO_ADD, bin(tr, HLO_MULTIPLY, r, r), 1)));
  hlo_val infinite = bin(tr, HLO_OR, cmp_k(tr, HLO_EQ, a, HUGE_VAL), cmp_k(tr, HLO_EQ, b, HUGE_VAL));
  return sel(tr, infinite, val_like(tr, v, HUGE_VAL), v);
}

/* True if the sign bit of a float is set.  1 / x distinguishes -0 from 0. */
hlo_val val_sign_bit(struct tracer *tr, hlo_val x) {
  hlo_val inverse = bin(tr, HLO_DIVIDE, val_like(tr, x, 1), x);
  return cmp_k(tr, HLO_LT, sel(tr, cmp_k(tr, HLO_EQ, x, 0), inverse, x), 0);
}

hlo_val binary_copysign(struct tracer *tr, hlo_val x, hlo_val y) {
  hlo_val size = un(tr, HLO_ABS, x);
  return sel(tr, val_sign_bit(tr, y), un(tr, HLO_NEGATE, size), size);
}

/* fmax and fmin: if one operand is NaN, the result is the other operand. */
static hlo_val ignoring_nan(struct tracer *tr, enum hlo_op op, hlo_val x, hlo_val y) {
  return sel(tr, cmp(tr, HLO_NE, x, x), y, sel(tr, cmp(tr, HLO_NE, y, y), x, bin(tr, op, x, y)));
}

hlo_val binary_heaviside(struct tracer *tr, hlo_val x, hlo_val at_zero) {
  hlo_val step = sel(tr, cmp_k(tr, HLO_LT, x, 0), val_like(tr, x, 0), val_like(tr, x, 1));
  return sel(tr, cmp(tr, HLO_NE, x, x), x, sel(tr, cmp_k(tr, HLO_EQ, x, 0), at_zero, step));
}

/* ---- what the table names ---------------------------------------------------------------------------------------- */

static bool is_bool(hlo_val x) {
  return x->shape.dtype == DT_BOOL;
}

static bool is_float(hlo_val x) {
  return dtype_is_float(x->shape.dtype);
}

#define DIRECT(name, op) \
  hlo_val binary_##name(struct tracer *tr, hlo_val x, hlo_val y) { \
    return bin(tr, op, x, y); \
  }
DIRECT(subtract, HLO_SUBTRACT)
DIRECT(divide, HLO_DIVIDE)
DIRECT(power, HLO_POWER)
DIRECT(arctan2, HLO_ATAN2)

/* Arithmetic on bool is logical. */
#define LOGICAL(name, op, of_bool) \
  hlo_val binary_##name(struct tracer *tr, hlo_val x, hlo_val y) { \
    return bin(tr, is_bool(x) ? of_bool : op, x, y); \
  }
LOGICAL(add, HLO_ADD, HLO_OR)
LOGICAL(multiply, HLO_MULTIPLY, HLO_AND)
LOGICAL(maximum, HLO_MAXIMUM, HLO_OR)
LOGICAL(minimum, HLO_MINIMUM, HLO_AND)

hlo_val binary_floor_divide(struct tracer *tr, hlo_val x, hlo_val y) {
  return is_float(x) ? float_floor_divide(tr, x, y) : int_divmod(tr, x, y, false, false);
}

hlo_val binary_remainder(struct tracer *tr, hlo_val x, hlo_val y) {
  return is_float(x) ? float_remainder(tr, x, y) : int_divmod(tr, x, y, true, false);
}

hlo_val binary_fmod(struct tracer *tr, hlo_val x, hlo_val y) {
  return is_float(x) ? bin(tr, HLO_REMAINDER, x, y) : int_divmod(tr, x, y, true, true);
}

hlo_val binary_logaddexp2(struct tracer *tr, hlo_val x, hlo_val y) {
  const double ln2 = log(2.0);
  hlo_val v = binary_logaddexp(tr, bin_k(tr, HLO_MULTIPLY, x, ln2), bin_k(tr, HLO_MULTIPLY, y, ln2));
  return bin_k(tr, HLO_DIVIDE, v, ln2);
}

hlo_val binary_ldexp(struct tracer *tr, hlo_val x, hlo_val y) {
  return bin(tr, HLO_MULTIPLY, x, bin(tr, HLO_POWER, val_like(tr, x, 2), y));
}

hlo_val binary_fmax(struct tracer *tr, hlo_val x, hlo_val y) {
  return is_float(x) ? ignoring_nan(tr, HLO_MAXIMUM, x, y) : binary_maximum(tr, x, y);
}

hlo_val binary_fmin(struct tracer *tr, hlo_val x, hlo_val y) {
  return is_float(x) ? ignoring_nan(tr, HLO_MINIMUM, x, y) : binary_minimum(tr, x, y);
}

hlo_val val_binary(struct tracer *tr, enum op_id which, hlo_val x, hlo_val y) {
  assert(op_table[which].call == op_binary);
  return x && y ? op_table[which].arg.binary.emit(tr, x, y) : NULL;
}

/* ---- the dtype to compute in ------------------------------------------------------------------------------------- */

enum dtype binary_as_promoted(enum dtype t, const struct operand xy[2]) {
  (void)xy;
  return t;
}

enum dtype binary_as_number(enum dtype t, const struct operand xy[2]) {
  (void)xy;
  return t == DT_BOOL ? DT_I8 : t;
}

enum dtype binary_as_float(enum dtype t, const struct operand xy[2]) {
  (void)xy;
  return promote_float(t);
}

enum dtype binary_as_subtract(enum dtype t, const struct operand xy[2]) {
  (void)xy;
  if (t == DT_BOOL)
    trace_refuse(DG_UNSUPPORTED_DTYPE, "use the ^ operator or np.logical_xor",
                 "subtraction of booleans is not supported");
  return t == DT_BOOL ? DT_NONE : t;
}

enum dtype binary_as_divide(enum dtype t, const struct operand xy[2]) {
  (void)xy;
  return dtype_is_inexact(t) ? t : DT_F32;
}

enum dtype binary_as_power(enum dtype t, const struct operand xy[2]) {
  if (!dtype_is_inexact(t) && xy[1].weak == WEAK_INT && !xy[1].v && xy[1].integer < 0) {
    trace_refuse(DG_BAD_ARGUMENT, "use a float base: x.astype(np.float32) ** n",
                 "integers to negative integer powers are not allowed");
    return DT_NONE;
  }
  return t == DT_BOOL ? DT_I8 : t;
}

/* The dtype depends only on the first operand, not on the exponent. */
enum dtype binary_as_ldexp(enum dtype t, const struct operand xy[2]) {
  (void)t;
  return promote_float(operand_dtype(&xy[0]));
}

/* NumPy computes these in float64. */
enum dtype binary_as_float32(enum dtype t, const struct operand xy[2]) {
  (void)t, (void)xy;
  return DT_F32;
}

/* Refuses the conversion of float operands to a dtype= that is not a float, as NumPy does. */
static bool cast_allowed(enum dtype from, enum dtype to) {
  if (dtype_is_inexact(from) && dtype_kind(to) < dtype_kind(from)) {
    trace_refuse(DG_DTYPE_PROMOTION, "convert the result instead: .astype(…)", "cannot cast %s operands to dtype %s",
                 dtype_numpy_name(from), dtype_numpy_name(to));
    return false;
  }
  return true;
}

/* As in NumPy, a complex number to a known whole power below 100 is a product. */
static bool is_whole_power(enum op_id which, enum dtype t, const struct operand *power) {
  return which == OP_POWER && dtype_is_complex(t) && power->weak == WEAK_INT && !power->v && power->integer > -100 &&
         power->integer < 100;
}

hlo_val operand_binary(struct tracer *tr, enum op_id which, struct operand xy[2], enum dtype as) {
  int rank = 0;
  int64_t dims[HLO_RANK_MAX];
  enum dtype t = promote_operands(2, xy);
  if (t == DT_NONE || !operand_broadcast(2, xy, &rank, dims))
    return NULL;
  if (as != DT_NONE) {
    if (!cast_allowed(t, as))
      return NULL;
    t = as;
  }
  t = op_table[which].arg.binary.as(t, xy);
  if (t == DT_NONE)
    return NULL;
  hlo_val x = operand_at(tr, &xy[0], t, rank, dims);
  if (is_whole_power(which, t, &xy[1]))
    return val_whole_power(tr, x, xy[1].integer);
  hlo_val y = x ? operand_at(tr, &xy[1], t, rank, dims) : NULL;
  return val_binary(tr, which, x, y);
}

/* Parses (x1, x2, /, out=None, where=True, dtype=None) into two operands.  The caller clears them. */
static bool parse_binary(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw, struct operand xy[2],
                         enum dtype *as) {
  static char *names[] = {"", "", "out", "where", "dtype", "casting", "order", "subok", NULL};
  PyObject *x, *y, *out = NULL, *where = NULL, *dtype = NULL, *ignored;
  *as = DT_NONE;
  if (PyTuple_GET_SIZE(args) == 2 && !kw) {
    x = PyTuple_GET_ITEM(args, 0);
    y = PyTuple_GET_ITEM(args, 1);
  } else if (!PyArg_ParseTupleAndKeywords(args, kw, "OO|OOOOOO", names, &x, &y, &out, &where, &dtype, &ignored,
                                          &ignored, &ignored)) {
    return false;
  }
  if (!args_only_none(out, op->name, "out") || !args_only_none(where, op->name, "where"))
    return false;
  if (dtype && dtype != Py_None && (*as = dtype_from_py(dtype)) == DT_NONE)
    return false;
  if (!operand_read(tr, x, &xy[0]))
    return false;
  if (!operand_read(tr, y, &xy[1])) {
    operand_clear(&xy[0]);
    return false;
  }
  return true;
}

static PyObject *finish(struct tracer *tr, struct operand xy[2], hlo_val v) {
  operand_clear(&xy[0]);
  operand_clear(&xy[1]);
  return tensor_wrap(tr, v);
}

PyObject *op_binary(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  struct operand xy[2];
  enum dtype as;
  if (!parse_binary(tr, op, args, kw, xy, &as))
    return NULL;
  return finish(tr, xy, operand_binary(tr, (enum op_id)(op - op_table), xy, as));
}

PyObject *op_bitwise(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  struct operand xy[2];
  enum dtype as;
  int rank = 0;
  int64_t dims[HLO_RANK_MAX];
  if (!parse_binary(tr, op, args, kw, xy, &as))
    return NULL;
  hlo_val v = NULL;
  enum dtype t = promote_operands(2, xy);
  enum hlo_op what = (enum hlo_op)op->arg.n;
  const bool is_shift = what == HLO_SHIFT_LEFT || what == HLO_SHIFT_RIGHT_ARITHMETIC;
  if (is_shift && t == DT_BOOL)
    t = DT_I8;
  if (what == HLO_SHIFT_RIGHT_ARITHMETIC && dtype_kind(t) == DK_UNSIGNED)
    what = HLO_SHIFT_RIGHT_LOGICAL;
  if (t != DT_NONE && dtype_is_float(t))
    trace_refuse(DG_UNSUPPORTED_DTYPE,
                 is_shift ? "multiply by a power of two: np.ldexp(x, n)" : "compare first: (x > 0) & (y > 0)",
                 "%s is not defined for %s", op->name, dtype_numpy_name(t));
  else if (t != DT_NONE && operand_broadcast(2, xy, &rank, dims))
    v = bin(tr, what, operand_at(tr, &xy[0], t, rank, dims), operand_at(tr, &xy[1], t, rank, dims));
  return finish(tr, xy, v);
}

/* Returns an operand as truth values.  Tensors are compared with 0; constants are converted by NumPy. */
static hlo_val truth(struct tracer *tr, const struct operand *x, int rank, const int64_t *dims) {
  if (x->v)
    return val_nonzero(tr, val_broadcast(tr, x->v, rank, dims));
  return operand_at(tr, x, DT_BOOL, rank, dims);
}

PyObject *op_logical(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  struct operand xy[2];
  enum dtype as;
  int rank = 0;
  int64_t dims[HLO_RANK_MAX];
  if (!parse_binary(tr, op, args, kw, xy, &as))
    return NULL;
  hlo_val v = NULL;
  if (operand_broadcast(2, xy, &rank, dims))
    v = bin(tr, (enum hlo_op)op->arg.n, truth(tr, &xy[0], rank, dims), truth(tr, &xy[1], rank, dims));
  return finish(tr, xy, v);
}

/* True for a Python integer that the tensor's integer type cannot hold.  Its comparison has the same result with every
 * element. */
static bool out_of_range(const struct operand *x, enum dtype t, bool *above) {
  if (x->weak != WEAK_INT || x->v || !dtype_is_int(t))
    return false;
  int bits = (int)dtype_size(t) * 8;
  bool is_signed = dtype_kind(t) == DK_SIGNED;
  long long hi = (1LL << (bits - is_signed)) - 1, lo = is_signed ? -hi - 1 : 0;
  *above = x->integer > hi;
  return x->integer > hi || x->integer < lo;
}

PyObject *op_compare(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  struct operand xy[2];
  enum dtype as;
  int rank = 0;
  int64_t dims[HLO_RANK_MAX];
  if (!parse_binary(tr, op, args, kw, xy, &as))
    return NULL;
  hlo_val v = NULL;
  enum hlo_direction d = (enum hlo_direction)op->arg.n;
  bool above = false, first = false;
  enum dtype t = promote_operands(2, xy);
  if (t == DT_NONE || !operand_broadcast(2, xy, &rank, dims))
    return finish(tr, xy, NULL);
  if ((first = out_of_range(&xy[0], t, &above)) || out_of_range(&xy[1], t, &above)) {
    bool less = above != first; /* true if the left side is smaller */
    bool r = d == HLO_NE || (less ? d == HLO_LT || d == HLO_LE : d == HLO_GT || d == HLO_GE);
    v = hlo_full(&tr->b, DT_BOOL, rank, dims, r);
  } else {
    v = hlo_compare(&tr->b, d, operand_at(tr, &xy[0], t, rank, dims), operand_at(tr, &xy[1], t, rank, dims));
  }
  return finish(tr, xy, v);
}

hlo_val val_arith(struct tracer *tr, enum op_id which, hlo_val x, hlo_val y) {
  if (!x || !y)
    return NULL;
  struct operand xy[2] = {operand_of(x), operand_of(y)};
  return operand_binary(tr, which, xy, DT_NONE);
}

/* Converts two values to one dtype and broadcasts them to one shape.  Also broadcasts the condition c, if out_c is not
 * NULL. */
static bool align(struct tracer *tr, hlo_val c, hlo_val *x, hlo_val *y, hlo_val *out_c) {
  int rank = 0;
  int64_t dims[HLO_RANK_MAX];
  if (!*x || !*y || (out_c && !c))
    return false;
  struct operand xs[3] = {operand_of(*x), operand_of(*y), operand_of(c ? c : *x)};
  enum dtype t = promote_operands(2, xs);
  if (t == DT_NONE || !operand_broadcast(3, xs, &rank, dims))
    return false;
  *x = operand_at(tr, &xs[0], t, rank, dims);
  *y = operand_at(tr, &xs[1], t, rank, dims);
  if (out_c)
    *out_c = val_broadcast(tr, val_nonzero(tr, c), rank, dims);
  return *x && *y;
}

hlo_val val_compare(struct tracer *tr, enum hlo_direction d, hlo_val x, hlo_val y) {
  return align(tr, NULL, &x, &y, NULL) ? cmp(tr, d, x, y) : NULL;
}

hlo_val val_where(struct tracer *tr, hlo_val c, hlo_val x, hlo_val y) {
  return align(tr, c, &x, &y, &c) ? sel(tr, c, x, y) : NULL;
}
