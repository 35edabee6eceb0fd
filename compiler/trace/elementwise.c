/* elementwise: operations of two operands.
 *
 * Promote, broadcast, convert, then emit.  Operations without an HLO opcode are composed here so that they give what
 * NumPy gives, division by zero and signs included.
 */
#include "trace/tracer.h"

#include <math.h>

hlo_val like(struct tracer *tr, hlo_val x, double v) {
  return x ? hlo_full(&tr->b, x->shape.dtype, x->shape.rank, x->shape.dims, v) : NULL;
}

hlo_val nonzero(struct tracer *tr, hlo_val x) {
  if (!x || x->shape.dtype == DT_BOOL)
    return x;
  return hlo_compare(&tr->b, HLO_NE, x, like(tr, x, 0));
}

static hlo_val emit(struct tracer *tr, enum hlo_op op, hlo_val x, hlo_val y) {
  return hlo_binary(&tr->b, op, x, y);
}
static hlo_val cmp(struct tracer *tr, enum hlo_direction d, hlo_val x, hlo_val y) {
  return hlo_compare(&tr->b, d, x, y);
}
static hlo_val sel(struct tracer *tr, hlo_val c, hlo_val x, hlo_val y) {
  return hlo_select(&tr->b, c, x, y);
}

/* Whether a truncated remainder r of a division by y must be moved to y's sign. */
static hlo_val sign_differs(struct tracer *tr, hlo_val r, hlo_val y) {
  hlo_val zero = like(tr, r, 0);
  hlo_val differ = emit(tr, HLO_XOR, cmp(tr, HLO_LT, r, zero), cmp(tr, HLO_LT, y, zero));
  return emit(tr, HLO_AND, cmp(tr, HLO_NE, r, zero), differ);
}

/* NumPy's integer division by zero gives 0; the hardware's, and LLVM's, is undefined: divide by 1 there. */
static hlo_val int_divmod(struct tracer *tr, hlo_val x, hlo_val y, bool want_mod, bool truncate) {
  hlo_val zero = like(tr, y, 0), by_zero = cmp(tr, HLO_EQ, y, zero);
  hlo_val safe = sel(tr, by_zero, like(tr, y, 1), y);
  bool is_signed = x && dtype_kind(x->shape.dtype) == DK_SIGNED && !truncate;
  hlo_val q = emit(tr, HLO_DIVIDE, x, safe), r = NULL;
  if (is_signed || want_mod)
    r = emit(tr, HLO_SUBTRACT, x, emit(tr, HLO_MULTIPLY, q, safe));
  if (is_signed) {
    hlo_val fix = sign_differs(tr, r, safe);
    if (want_mod)
      r = sel(tr, fix, emit(tr, HLO_ADD, r, safe), r);
    else
      q = sel(tr, fix, emit(tr, HLO_SUBTRACT, q, like(tr, q, 1)), q);
  }
  return sel(tr, by_zero, zero, want_mod ? r : q);
}

/* NumPy's rule (npy_divmod): exact where x / y would round up to a whole number. */
static hlo_val float_floor_divide(struct tracer *tr, hlo_val x, hlo_val y) {
  hlo_val rem = emit(tr, HLO_REMAINDER, x, y);
  hlo_val div = emit(tr, HLO_DIVIDE, emit(tr, HLO_SUBTRACT, x, rem), y);
  div = sel(tr, sign_differs(tr, rem, y), emit(tr, HLO_SUBTRACT, div, like(tr, div, 1)), div);
  hlo_val down = hlo_unary(&tr->b, HLO_FLOOR, div);
  hlo_val up = cmp(tr, HLO_GT, emit(tr, HLO_SUBTRACT, div, down), like(tr, div, 0.5));
  down = sel(tr, up, emit(tr, HLO_ADD, down, like(tr, down, 1)), down);
  return sel(tr, cmp(tr, HLO_EQ, y, like(tr, y, 0)), emit(tr, HLO_DIVIDE, x, y), down);
}

static hlo_val float_remainder(struct tracer *tr, hlo_val x, hlo_val y) {
  hlo_val rem = emit(tr, HLO_REMAINDER, x, y);
  return sel(tr, sign_differs(tr, rem, y), emit(tr, HLO_ADD, rem, y), rem);
}

/* max + log(1 + exp(-|x - y|)); equal operands (infinities too) give x + ln 2. */
static hlo_val logaddexp(struct tracer *tr, hlo_val x, hlo_val y) {
  hlo_val d = hlo_unary(&tr->b, HLO_ABS, emit(tr, HLO_SUBTRACT, x, y));
  hlo_val e = hlo_unary(&tr->b, HLO_EXP, hlo_unary(&tr->b, HLO_NEGATE, d));
  hlo_val r =
      emit(tr, HLO_ADD, emit(tr, HLO_MAXIMUM, x, y), hlo_unary(&tr->b, HLO_LOG, emit(tr, HLO_ADD, e, like(tr, e, 1))));
  return sel(tr, cmp(tr, HLO_EQ, x, y), emit(tr, HLO_ADD, x, like(tr, x, log(2.0))), r);
}

hlo_val binary_emit(struct tracer *tr, int which, hlo_val x, hlo_val y) {
  if (!x || !y)
    return NULL;
  bool is_bool = x->shape.dtype == DT_BOOL, is_float = dtype_is_float(x->shape.dtype);
  switch (which) {
  case BIN_ADD:
    return emit(tr, is_bool ? HLO_OR : HLO_ADD, x, y);
  case BIN_SUB:
    return emit(tr, HLO_SUBTRACT, x, y);
  case BIN_MUL:
    return emit(tr, is_bool ? HLO_AND : HLO_MULTIPLY, x, y);
  case BIN_DIV:
    return emit(tr, HLO_DIVIDE, x, y);
  case BIN_POW:
    return emit(tr, HLO_POWER, x, y);
  case BIN_MAX:
    return emit(tr, is_bool ? HLO_OR : HLO_MAXIMUM, x, y);
  case BIN_MIN:
    return emit(tr, is_bool ? HLO_AND : HLO_MINIMUM, x, y);
  case BIN_FLOORDIV:
    return is_float ? float_floor_divide(tr, x, y) : int_divmod(tr, x, y, false, false);
  case BIN_MOD:
    return is_float ? float_remainder(tr, x, y) : int_divmod(tr, x, y, true, false);
  case BIN_FMOD:
    return is_float ? emit(tr, HLO_REMAINDER, x, y) : int_divmod(tr, x, y, true, true);
  case BIN_LOGADDEXP:
    return logaddexp(tr, x, y);
  case BIN_ARCTAN2:
    return emit(tr, HLO_ATAN2, x, y);
  }
  return NULL;
}

/* The dtype the operation computes in, from the promoted one. */
static enum dtype compute_dtype(int which, enum dtype t, const struct operand xy[2]) {
  switch (which) {
  case BIN_SUB:
    if (t == DT_BOOL)
      refuse(DG_UNSUPPORTED_DTYPE, "use the ^ operator or np.logical_xor", "subtraction of booleans is not supported");
    return t == DT_BOOL ? DT_NONE : t;
  case BIN_DIV:
    return dtype_is_float(t) ? t : DT_F32;
  case BIN_POW:
    if (!dtype_is_float(t) && xy[1].weak == WEAK_INT && !xy[1].v && xy[1].integer < 0) {
      refuse(DG_BAD_ARGUMENT, "use a float base: x.astype(np.float32) ** n",
             "integers to negative integer powers are not allowed");
      return DT_NONE;
    }
    return t == DT_BOOL ? DT_I8 : t;
  case BIN_FLOORDIV:
  case BIN_MOD:
  case BIN_FMOD:
    return t == DT_BOOL ? DT_I8 : t;
  case BIN_LOGADDEXP:
  case BIN_ARCTAN2:
    return promote_float(t);
  default:
    return t;
  }
}

/* dtype=: NumPy allows only casts within a kind (or upwards) on the way in. */
static bool cast_allowed(enum dtype from, enum dtype to) {
  if (dtype_is_float(from) && !dtype_is_float(to)) {
    refuse(DG_DTYPE_PROMOTION, "convert the result instead: .astype(…)", "cannot cast %s operands to dtype %s",
           dtype_numpy_name(from), dtype_numpy_name(to));
    return false;
  }
  return true;
}

hlo_val binary_operands(struct tracer *tr, int which, struct operand xy[2], enum dtype as) {
  int rank = 0;
  int64_t dims[HLO_RANK_MAX];
  enum dtype t = promote_operands(2, xy);
  if (t == DT_NONE || !broadcast_dims(2, xy, &rank, dims))
    return NULL;
  if (as != DT_NONE) {
    if (!cast_allowed(t, as))
      return NULL;
    t = as;
  }
  t = compute_dtype(which, t, xy);
  if (t == DT_NONE)
    return NULL;
  hlo_val x = operand_at(tr, &xy[0], t, rank, dims);
  hlo_val y = x ? operand_at(tr, &xy[1], t, rank, dims) : NULL;
  return binary_emit(tr, which, x, y);
}

/* Parses (x1, x2, /, out=None, where=True, dtype=None) into two operands, which the caller clears. */
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
  if (!only_none(out, op->name, "out") || !only_none(where, op->name, "where"))
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
  return finish(tr, xy, binary_operands(tr, op->arg, xy, as));
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
  if (t != DT_NONE && dtype_is_float(t))
    refuse(DG_UNSUPPORTED_DTYPE, "compare first: (x > 0) & (y > 0)", "%s is not defined for %s", op->name,
           dtype_numpy_name(t));
  else if (t != DT_NONE && broadcast_dims(2, xy, &rank, dims))
    v = emit(tr, (enum hlo_op)op->arg, operand_at(tr, &xy[0], t, rank, dims), operand_at(tr, &xy[1], t, rank, dims));
  return finish(tr, xy, v);
}

/* An operand as truth values: tensors compare with 0, constants are converted by NumPy. */
static hlo_val truth(struct tracer *tr, const struct operand *x, int rank, const int64_t *dims) {
  if (x->v)
    return nonzero(tr, broadcast_val(tr, x->v, rank, dims));
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
  if (broadcast_dims(2, xy, &rank, dims))
    v = emit(tr, (enum hlo_op)op->arg, truth(tr, &xy[0], rank, dims), truth(tr, &xy[1], rank, dims));
  return finish(tr, xy, v);
}

/* A Python integer that the tensor's integer type cannot hold compares the same with every element. */
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
  enum hlo_direction d = (enum hlo_direction)op->arg;
  bool above = false, first = false;
  enum dtype t = promote_operands(2, xy);
  if (t == DT_NONE || !broadcast_dims(2, xy, &rank, dims))
    return finish(tr, xy, NULL);
  if ((first = out_of_range(&xy[0], t, &above)) || out_of_range(&xy[1], t, &above)) {
    bool less = above != first; /* the left side is smaller */
    bool r = d == HLO_NE || (less ? d == HLO_LT || d == HLO_LE : d == HLO_GT || d == HLO_GE);
    v = hlo_full(&tr->b, DT_BOOL, rank, dims, r);
  } else {
    v = hlo_compare(&tr->b, d, operand_at(tr, &xy[0], t, rank, dims), operand_at(tr, &xy[1], t, rank, dims));
  }
  return finish(tr, xy, v);
}
