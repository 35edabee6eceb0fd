/* scalar: computes one element of an element-wise HLO instruction with arith and math operations.
 *
 * The semantics are XLA's, which agree with NumPy where NumPy defines a result.  Maximum and minimum propagate NaN.
 * Sign keeps NaN and signed zeros.  Integer division truncates and neither traps nor overflows (x/0 is all ones, x%0 is
 * x, MIN/-1 is MIN).  Arithmetic on bool is logical.
 */
#include <assert.h>
#include <math.h>

#include "hlo/literal.h"
#include "linalg/impl.h"

static MlirValue all_ones(struct ir_builder *b, MlirType t) {
  return ir_int(b, t, -1);
}

static int64_t int_min(enum dtype t) {
  return (int64_t)(UINT64_C(1) << (8 * dtype_size(t) - 1));
}

/* ---- unary ------------------------------------------------------------------------------------------- */

static const char *const float_unary[HLO_OP_COUNT] = {
    [HLO_ABS] = "math.absf",
    [HLO_NEGATE] = "arith.negf",
    [HLO_EXP] = "math.exp",
    [HLO_LOG] = "math.log",
    [HLO_SQRT] = "math.sqrt",
    [HLO_SIN] = "math.sin",
    [HLO_COS] = "math.cos",
    [HLO_TANH] = "math.tanh",
    [HLO_CEIL] = "math.ceil",
    [HLO_FLOOR] = "math.floor",
    [HLO_RSQRT] = "math.rsqrt",
    [HLO_CBRT] = "math.cbrt",
    [HLO_TAN] = "math.tan",
    [HLO_ERF] = "math.erf",
    [HLO_LOG1P] = "math.log1p",
    [HLO_EXPM1] = "math.expm1",
    [HLO_ROUND_EVEN] = "math.roundeven",
    [HLO_ROUND_AFZ] = "math.round",
};

static MlirValue float_sign(struct ir_builder *b, MlirValue x) {
  MlirType t = mlirValueGetType(x);
  MlirValue nonzero = ir_cmpf(b, IR_FLT_ONE, x, ir_float(b, t, 0)); /* false for NaN */
  MlirValue one = ir_binary(b, "math.copysign", ir_float(b, t, 1), x);
  return ir_select(b, nonzero, one, x);
}

static MlirValue int_sign(struct ir_builder *b, MlirValue x, enum dtype t) {
  MlirType type = mlirValueGetType(x);
  MlirValue zero = ir_int(b, type, 0), one = ir_int(b, type, 1);

  if (dtype_kind(t) == DK_UNSIGNED)
    return ir_select(b, ir_cmpi(b, IR_INT_NE, x, zero), one, zero);
  MlirValue negative = ir_select(b, ir_cmpi(b, IR_INT_SLT, x, zero), all_ones(b, type), zero);
  return ir_select(b, ir_cmpi(b, IR_INT_SGT, x, zero), one, negative);
}

/* 1 / (1 + exp(-x)) */
static MlirValue logistic(struct ir_builder *b, MlirValue x) {
  MlirValue one = ir_float(b, mlirValueGetType(x), 1);
  MlirValue below = ir_binary(b, "arith.addf", one, ir_unary(b, "math.exp", ir_unary(b, "arith.negf", x)));
  return ir_binary(b, "arith.divf", one, below);
}

static MlirValue is_finite(struct ir_builder *b, enum dtype t, MlirValue x) {
  if (t == DT_F8E4M3FN) /* the type has no infinities */
    return ir_cmpf(b, IR_FLT_OEQ, x, x);
  return ir_cmpf(b, IR_FLT_OLT, ir_unary(b, "math.absf", x), ir_float(b, mlirValueGetType(x), __builtin_inf()));
}

/* Returns the bits of x as a signed integer whose order is the total order of floats.  The magnitude bits of negative
 * numbers are inverted for that. */
static MlirValue order_bits(struct ir_builder *b, enum dtype t, MlirValue x) {
  MlirType type = mlirIntegerTypeGet(b->ctx, 8 * (unsigned)dtype_size(t));
  MlirValue bits = ir_op1(b, "arith.bitcast", type, 1, &x);
  const int64_t magnitude = (int64_t)(UINT64_MAX >> (65 - 8 * dtype_size(t)));
  MlirValue inverted = ir_binary(b, "arith.xori", bits, ir_int(b, type, magnitude));
  return ir_select(b, ir_cmpi(b, IR_INT_SLT, bits, ir_int(b, type, 0)), inverted, bits);
}

static MlirValue unary(struct ir_builder *b, enum hlo_op op, enum dtype t, MlirValue x) {
  MlirType type = mlirValueGetType(x);

  if (op == HLO_COPY)
    return x;
  if (op == HLO_LOGISTIC)
    return logistic(b, x);
  if (dtype_is_float(t))
    return op == HLO_SIGN ? float_sign(b, x) : ir_unary(b, float_unary[op], x);
  switch (op) {
  case HLO_POPCNT:
    return ir_unary(b, "math.ctpop", x);
  case HLO_CLZ:
    return ir_unary(b, "math.ctlz", x);
  case HLO_ABS:
    return dtype_kind(t) == DK_SIGNED ? ir_unary(b, "math.absi", x) : x;
  case HLO_NEGATE:
    return ir_binary(b, "arith.subi", ir_int(b, type, 0), x);
  case HLO_SIGN:
    return int_sign(b, x, t);
  default:
    return ir_binary(b, "arith.xori", x, all_ones(b, type));
  }
}

/* ---- binary ------------------------------------------------------------------------------------------ */

static const char *const float_binary[HLO_OP_COUNT] = {
    [HLO_ADD] = "arith.addf",         [HLO_SUBTRACT] = "arith.subf",    [HLO_MULTIPLY] = "arith.mulf",
    [HLO_DIVIDE] = "arith.divf",      [HLO_REMAINDER] = "arith.remf",   [HLO_POWER] = "math.powf",
    [HLO_MAXIMUM] = "arith.maximumf", [HLO_MINIMUM] = "arith.minimumf", [HLO_ATAN2] = "math.atan2",
};
static const char *const signed_binary[HLO_OP_COUNT] = {
    [HLO_ADD] = "arith.addi",      [HLO_SUBTRACT] = "arith.subi", [HLO_MULTIPLY] = "arith.muli",
    [HLO_MAXIMUM] = "arith.maxsi", [HLO_MINIMUM] = "arith.minsi", [HLO_AND] = "arith.andi",
    [HLO_OR] = "arith.ori",        [HLO_XOR] = "arith.xori",
};
static const char *const unsigned_binary[HLO_OP_COUNT] = {
    [HLO_ADD] = "arith.addi",      [HLO_SUBTRACT] = "arith.subi", [HLO_MULTIPLY] = "arith.muli",
    [HLO_MAXIMUM] = "arith.maxui", [HLO_MINIMUM] = "arith.minui", [HLO_AND] = "arith.andi",
    [HLO_OR] = "arith.ori",        [HLO_XOR] = "arith.xori",
};
static const char *const bool_binary[HLO_OP_COUNT] = {
    [HLO_ADD] = "arith.ori",     [HLO_MULTIPLY] = "arith.andi", [HLO_SUBTRACT] = "arith.xori",
    [HLO_MAXIMUM] = "arith.ori", [HLO_MINIMUM] = "arith.andi",  [HLO_AND] = "arith.andi",
    [HLO_OR] = "arith.ori",      [HLO_XOR] = "arith.xori",
};

/* True if v is an integer constant, and division by it can neither trap nor overflow. */
static bool is_safe_divisor(MlirValue v) {
  if (!mlirValueIsAOpResult(v))
    return false;
  MlirOperation def = mlirOpResultGetOwner(v);
  if (!ir_is(def, "arith.constant"))
    return false;
  MlirAttribute a = ir_attr(def, "value");
  if (!mlirAttributeIsAInteger(a))
    return false;
  int64_t c = mlirIntegerAttrGetValueInt(a);
  return c != 0 && c != -1;
}

/* The division of arith is undefined for some operands, HLO's for none.  For such operands the divisor is replaced by 1
 * before the division. */
static MlirValue int_divide(struct ir_builder *b, enum hlo_op op, enum dtype t, MlirValue x, MlirValue y) {
  const bool is_signed = dtype_kind(t) == DK_SIGNED, is_div = op == HLO_DIVIDE;
  const char *name = is_div ? is_signed ? "arith.divsi" : "arith.divui" : is_signed ? "arith.remsi" : "arith.remui";

  if (is_safe_divisor(y))
    return ir_binary(b, name, x, y);
  MlirType type = mlirValueGetType(x);
  MlirValue zero = ir_int(b, type, 0), one = ir_int(b, type, 1);
  MlirValue by_zero = ir_cmpi(b, IR_INT_EQ, y, zero), bad = by_zero;
  if (is_signed) {
    MlirValue overflow = ir_binary(b, "arith.andi", ir_cmpi(b, IR_INT_EQ, y, all_ones(b, type)),
                                   ir_cmpi(b, IR_INT_EQ, x, ir_int(b, type, int_min(t))));
    bad = ir_binary(b, "arith.ori", by_zero, overflow);
  }
  MlirValue quotient = ir_binary(b, name, x, ir_select(b, bad, one, y));
  return ir_select(b, by_zero, is_div ? all_ones(b, type) : x, quotient);
}

/* math.ipowi reads the exponent as signed, and divides by the base if the exponent is negative.  So unsigned types are
 * widened, and 0 to a negative power, which XLA defines as 0, is computed as 0 to the power 1. */
static MlirValue int_power(struct ir_builder *b, enum dtype t, MlirValue x, MlirValue y) {
  MlirType type = mlirValueGetType(x), i64 = mlirIntegerTypeGet(b->ctx, 64);

  if (dtype_kind(t) == DK_UNSIGNED) {
    if (t == DT_U64)
      return ir_binary(b, "math.ipowi", x, y);
    MlirValue wide =
        ir_binary(b, "math.ipowi", ir_op1(b, "arith.extui", i64, 1, &x), ir_op1(b, "arith.extui", i64, 1, &y));
    return ir_op1(b, "arith.trunci", type, 1, &wide);
  }
  MlirValue zero = ir_int(b, type, 0);
  MlirValue bad = ir_binary(b, "arith.andi", ir_cmpi(b, IR_INT_EQ, x, zero), ir_cmpi(b, IR_INT_SLT, y, zero));
  return ir_binary(b, "math.ipowi", x, ir_select(b, bad, ir_int(b, type, 1), y));
}

/* In HLO, a shift by the width or more shifts every bit out.  The shifts of arith do not define that case. */
static MlirValue shift(struct ir_builder *b, enum hlo_op op, enum dtype t, MlirValue x, MlirValue y) {
  MlirType type = mlirValueGetType(x);
  const int64_t bits = 8 * (int64_t)dtype_size(t);
  MlirValue inside = ir_cmpi(b, IR_INT_ULT, y, ir_int(b, type, bits));
  MlirValue zero = ir_int(b, type, 0), last = ir_int(b, type, bits - 1);
  if (op == HLO_SHIFT_RIGHT_ARITHMETIC)
    return ir_binary(b, "arith.shrsi", x, ir_select(b, inside, y, last));
  MlirValue v = ir_binary(b, op == HLO_SHIFT_LEFT ? "arith.shli" : "arith.shrui", x, ir_select(b, inside, y, zero));
  return ir_select(b, inside, v, zero);
}

static bool is_shift(enum hlo_op op) {
  return op == HLO_SHIFT_LEFT || op == HLO_SHIFT_RIGHT_ARITHMETIC || op == HLO_SHIFT_RIGHT_LOGICAL;
}

MlirValue scalar_binary(struct ir_builder *b, enum hlo_op op, enum dtype t, MlirValue x, MlirValue y) {
  switch (dtype_kind(t)) {
  case DK_FLOAT:
    assert(float_binary[op]); /* scalar_is_supported */
    return ir_binary(b, float_binary[op], x, y);
  case DK_BOOL:
    assert(bool_binary[op]);
    return ir_binary(b, bool_binary[op], x, y);
  default:
    break;
  }
  if (op == HLO_DIVIDE || op == HLO_REMAINDER)
    return int_divide(b, op, t, x, y);
  if (op == HLO_POWER)
    return int_power(b, t, x, y);
  if (is_shift(op))
    return shift(b, op, t, x, y);
  return ir_binary(b, dtype_kind(t) == DK_SIGNED ? signed_binary[op] : unsigned_binary[op], x, y);
}

/* ---- compare, convert -------------------------------------------------------------------------------- */

MlirValue scalar_compare(struct ir_builder *b, enum hlo_direction d, enum dtype t, bool is_total, MlirValue x,
                         MlirValue y) {
  static const enum ir_float_pred flt[] = {[HLO_EQ] = IR_FLT_OEQ, [HLO_NE] = IR_FLT_UNE, [HLO_GE] = IR_FLT_OGE,
                                           [HLO_GT] = IR_FLT_OGT, [HLO_LE] = IR_FLT_OLE, [HLO_LT] = IR_FLT_OLT};
  static const enum ir_int_pred sgn[] = {[HLO_EQ] = IR_INT_EQ,  [HLO_NE] = IR_INT_NE,  [HLO_GE] = IR_INT_SGE,
                                         [HLO_GT] = IR_INT_SGT, [HLO_LE] = IR_INT_SLE, [HLO_LT] = IR_INT_SLT};
  static const enum ir_int_pred uns[] = {[HLO_EQ] = IR_INT_EQ,  [HLO_NE] = IR_INT_NE,  [HLO_GE] = IR_INT_UGE,
                                         [HLO_GT] = IR_INT_UGT, [HLO_LE] = IR_INT_ULE, [HLO_LT] = IR_INT_ULT};
  if (is_total)
    return ir_cmpi(b, sgn[d], order_bits(b, t, x), order_bits(b, t, y));
  if (dtype_is_float(t))
    return ir_cmpf(b, flt[d], x, y);
  return ir_cmpi(b, dtype_kind(t) == DK_SIGNED ? sgn[d] : uns[d], x, y);
}

static bool is_number(const struct hlo_instr *i, double v) {
  return i->op == HLO_CONSTANT && i->shape.rank == 0 && hlo_literal_double(i->attrs->literal, 0) == v;
}

static bool is_positive_nan(const struct hlo_instr *i) {
  if (i->op != HLO_CONSTANT || i->shape.rank)
    return false;
  const double v = hlo_literal_double(i->attrs->literal, 0);
  return isnan(v) && !signbit(v);
}

static bool is_compare(const struct hlo_instr *i, enum hlo_direction d, const struct hlo_instr *x,
                       const struct hlo_instr *y) {
  return i->op == HLO_COMPARE && i->attrs->direction == d && !i->attrs->is_total_order && i->operands[0] == x &&
         i->operands[1] == y;
}

/* Returns x if i is select(x != x, NaN, select(x == 0, 0, x)), otherwise NULL.  Sorts use this form to have only one
 * kind of zero and one kind of NaN. */
static const struct hlo_instr *source_of_plain(const struct hlo_instr *i) {
  if (i->op != HLO_SELECT || i->operands[2]->op != HLO_SELECT || !is_positive_nan(i->operands[1]))
    return NULL;
  const struct hlo_instr *inner = i->operands[2], *zero = inner->operands[1], *x = inner->operands[2];
  return is_compare(i->operands[0], HLO_NE, x, x) && is_number(zero, 0) &&
                 is_compare(inner->operands[0], HLO_EQ, x, zero)
             ? x
             : NULL;
}

bool scalar_plain_order(const struct hlo_instr *i, const struct hlo_instr **x, const struct hlo_instr **y) {
  if (i->op != HLO_COMPARE || !i->attrs->is_total_order || i->attrs->direction == HLO_EQ ||
      i->attrs->direction == HLO_NE)
    return false;
  *x = source_of_plain(i->operands[0]);
  *y = source_of_plain(i->operands[1]);
  return *x && *y;
}

/* Returns x < y.  NaN is above every number and equal to NaN. */
static MlirValue is_below(struct ir_builder *b, MlirValue x, MlirValue y) {
  return ir_binary(b, "arith.andi", ir_cmpf(b, IR_FLT_ULT, x, y), ir_cmpf(b, IR_FLT_OEQ, x, x));
}

MlirValue scalar_plain_compare(struct ir_builder *b, enum hlo_direction d, MlirValue x, MlirValue y) {
  const bool is_swapped = d == HLO_GT || d == HLO_LE;
  MlirValue below = is_below(b, is_swapped ? y : x, is_swapped ? x : y);
  return d == HLO_LT || d == HLO_GT ? below : ir_binary(b, "arith.xori", below, all_ones(b, mlirValueGetType(below)));
}

static MlirValue cast(struct ir_builder *b, const char *name, MlirValue x, enum dtype to) {
  return ir_op1(b, name, ir_element_type(b, to), 1, &x);
}

/* Converts via f32 if no single operation exists (f16 <-> bf16) or a direct conversion would need a runtime function
 * (f64 -> 16 and 8 bits).  NumPy's own bf16 and fp8 conversions do the same. */
static MlirValue float_to_float(struct ir_builder *b, MlirValue x, enum dtype from, enum dtype to) {
  const size_t from_size = dtype_size(from), to_size = dtype_size(to);

  if ((from_size <= 2 && to_size <= 2) || (from_size == 8 && to_size <= 2) || (from_size <= 2 && to_size == 8)) {
    MlirValue mid = cast(b, from_size < 4 ? "arith.extf" : "arith.truncf", x, DT_F32);
    return cast(b, to_size < 4 ? "arith.truncf" : "arith.extf", mid, to);
  }
  return cast(b, from_size < to_size ? "arith.extf" : "arith.truncf", x, to);
}

static MlirValue int_to_float(struct ir_builder *b, MlirValue x, enum dtype from, enum dtype to) {
  const char *name = dtype_kind(from) == DK_SIGNED ? "arith.sitofp" : "arith.uitofp";

  if (dtype_size(to) < 4)
    return cast(b, "arith.truncf", cast(b, name, x, DT_F32), to);
  return cast(b, name, x, to);
}

static MlirValue to_bool(struct ir_builder *b, MlirValue x, enum dtype from) {
  MlirType t = mlirValueGetType(x);
  if (dtype_is_float(from))
    return ir_cmpf(b, IR_FLT_UNE, x, ir_float(b, t, 0));
  return ir_cmpi(b, IR_INT_NE, x, ir_int(b, t, 0));
}

MlirValue scalar_convert(struct ir_builder *b, MlirValue x, enum dtype from, enum dtype to) {
  if (from == to)
    return x;
  if (to == DT_BOOL)
    return to_bool(b, x, from);
  if (dtype_is_float(from)) {
    if (dtype_is_float(to))
      return float_to_float(b, x, from, to);
    if (dtype_size(from) < 4)
      x = cast(b, "arith.extf", x, DT_F32);
    return cast(b, dtype_kind(to) == DK_SIGNED ? "arith.fptosi" : "arith.fptoui", x, to);
  }
  if (dtype_is_float(to))
    return int_to_float(b, x, from, to);
  const size_t from_size = from == DT_BOOL ? 0 : dtype_size(from), to_size = dtype_size(to);
  if (from_size == to_size) /* the same bits, read as signed or unsigned */
    return x;
  if (from_size > to_size)
    return cast(b, "arith.trunci", x, to);
  return cast(b, dtype_kind(from) == DK_SIGNED ? "arith.extsi" : "arith.extui", x, to);
}

MlirValue scalar_to_index(struct ir_builder *b, MlirValue x, enum dtype t) {
  const char *name = dtype_kind(t) == DK_SIGNED ? "arith.index_cast" : "arith.index_castui";
  return ir_op1(b, name, ir_index_type(b), 1, &x);
}

MlirValue scalar_clamp_index(struct ir_builder *b, MlirValue x, int64_t limit) {
  MlirValue low = ir_binary(b, "arith.maxsi", x, ir_index(b, 0));
  return ir_binary(b, "arith.minsi", low, ir_index(b, limit));
}

enum dtype scalar_accumulator(enum dtype t) {
  return dtype_is_float(t) && dtype_size(t) < 4 ? DT_F32 : t;
}

/* ---- any instruction --------------------------------------------------------------------------------------------- */

bool scalar_is_supported(const struct hlo_instr *i) {
  const enum dtype t = i->operands[0]->shape.dtype;
  const enum dtype_kind k = dtype_kind(t);

  if (i->op == HLO_COMPARE || i->op == HLO_SELECT || i->op == HLO_CONVERT || i->op == HLO_COPY || i->op == HLO_CLAMP ||
      i->op == HLO_IS_FINITE || i->op == HLO_BITCAST_CONVERT)
    return true;
  if (hlo_op_class(i->op) == HC_UNARY) {
    if (k == DK_FLOAT)
      return i->op == HLO_SIGN || i->op == HLO_LOGISTIC || float_unary[i->op];
    return i->op == HLO_NOT || ((i->op == HLO_POPCNT || i->op == HLO_CLZ) && k != DK_BOOL) ||
           (k != DK_BOOL && (i->op == HLO_ABS || i->op == HLO_NEGATE || i->op == HLO_SIGN));
  }
  if (k == DK_FLOAT)
    return float_binary[i->op];
  if (k == DK_BOOL)
    return bool_binary[i->op];
  return signed_binary[i->op] || i->op == HLO_DIVIDE || i->op == HLO_REMAINDER || i->op == HLO_POWER || is_shift(i->op);
}

MlirValue scalar_apply(struct ir_builder *b, const struct hlo_instr *i, MlirValue const *x) {
  const enum dtype t = i->operands[0]->shape.dtype;

  switch (i->op) {
  case HLO_COMPARE:
    return scalar_compare(b, i->attrs->direction, t, i->attrs->is_total_order, x[0], x[1]);
  case HLO_CLAMP:
    return scalar_binary(b, HLO_MINIMUM, t, scalar_binary(b, HLO_MAXIMUM, t, x[1], x[0]), x[2]);
  case HLO_IS_FINITE:
    return is_finite(b, t, x[0]);
  case HLO_BITCAST_CONVERT:
    return mlirTypeEqual(mlirValueGetType(x[0]), ir_element_type(b, i->shape.dtype))
               ? x[0]
               : ir_op1(b, "arith.bitcast", ir_element_type(b, i->shape.dtype), 1, x);
  case HLO_SELECT:
    return ir_select(b, x[0], x[1], x[2]);
  case HLO_CONVERT:
    return scalar_convert(b, x[0], t, i->shape.dtype);
  default:
    return hlo_op_class(i->op) == HC_UNARY ? unary(b, i->op, t, x[0]) : scalar_binary(b, i->op, t, x[0], x[1]);
  }
}
