/* scalar: what one element-wise HLO instruction does to one element, as arith and math operations.
 *
 * Meanings are XLA's, which agree with NumPy where NumPy defines a result: maximum and minimum propagate NaN, sign
 * keeps NaN and signed zeros, integer division truncates and neither traps nor overflows (x/0 is all ones, x%0 is x,
 * MIN/-1 is MIN), arithmetic on bool is logical.
 */
#include <math.h>

#include "hlo/literal.h"
#include "linalg/impl.h"

static MlirValue all_ones(struct emit *e, MlirType t) {
  return emit_int(e, t, -1);
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

static MlirValue float_sign(struct emit *e, MlirValue x) {
  MlirType t = mlirValueGetType(x);
  MlirValue nonzero = emit_cmpf(e, FLT_ONE, x, emit_float(e, t, 0)); /* false for NaN */
  MlirValue one = emit_binary(e, "math.copysign", emit_float(e, t, 1), x);
  return emit_select(e, nonzero, one, x);
}

static MlirValue int_sign(struct emit *e, MlirValue x, enum dtype t) {
  MlirType type = mlirValueGetType(x);
  MlirValue zero = emit_int(e, type, 0), one = emit_int(e, type, 1);

  if (dtype_kind(t) == DK_UNSIGNED)
    return emit_select(e, emit_cmpi(e, INT_NE, x, zero), one, zero);
  MlirValue negative = emit_select(e, emit_cmpi(e, INT_SLT, x, zero), all_ones(e, type), zero);
  return emit_select(e, emit_cmpi(e, INT_SGT, x, zero), one, negative);
}

/* 1 / (1 + exp(-x)) */
static MlirValue logistic(struct emit *e, MlirValue x) {
  MlirValue one = emit_float(e, mlirValueGetType(x), 1);
  MlirValue below = emit_binary(e, "arith.addf", one, emit_unary(e, "math.exp", emit_unary(e, "arith.negf", x)));
  return emit_binary(e, "arith.divf", one, below);
}

static MlirValue is_finite(struct emit *e, enum dtype t, MlirValue x) {
  if (t == DT_F8E4M3FN) /* has no infinities */
    return emit_cmpf(e, FLT_OEQ, x, x);
  return emit_cmpf(e, FLT_OLT, emit_unary(e, "math.absf", x), emit_float(e, mlirValueGetType(x), __builtin_inf()));
}

/* The bits as a signed integer that compares as the total order does: the magnitude of negative numbers is turned. */
static MlirValue order_bits(struct emit *e, enum dtype t, MlirValue x) {
  MlirType type = mlirIntegerTypeGet(e->ctx, 8 * (unsigned)dtype_size(t));
  MlirValue bits = emit_op1(e, "arith.bitcast", type, 1, &x);
  const int64_t magnitude = (int64_t)(UINT64_MAX >> (65 - 8 * dtype_size(t)));
  MlirValue turned = emit_binary(e, "arith.xori", bits, emit_int(e, type, magnitude));
  return emit_select(e, emit_cmpi(e, INT_SLT, bits, emit_int(e, type, 0)), turned, bits);
}

static MlirValue unary(struct emit *e, enum hlo_op op, enum dtype t, MlirValue x) {
  MlirType type = mlirValueGetType(x);

  if (op == HLO_COPY)
    return x;
  if (op == HLO_LOGISTIC)
    return logistic(e, x);
  if (dtype_is_float(t))
    return op == HLO_SIGN ? float_sign(e, x) : emit_unary(e, float_unary[op], x);
  switch (op) {
  case HLO_POPCNT:
    return emit_unary(e, "math.ctpop", x);
  case HLO_CLZ:
    return emit_unary(e, "math.ctlz", x);
  case HLO_ABS:
    return dtype_kind(t) == DK_SIGNED ? emit_unary(e, "math.absi", x) : x;
  case HLO_NEGATE:
    return emit_binary(e, "arith.subi", emit_int(e, type, 0), x);
  case HLO_SIGN:
    return int_sign(e, x, t);
  default:
    return emit_binary(e, "arith.xori", x, all_ones(e, type));
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

/* True if v is an integer constant by which division can neither trap nor overflow. */
static bool is_safe_divisor(MlirValue v) {
  if (!mlirValueIsAOpResult(v))
    return false;
  MlirOperation def = mlirOpResultGetOwner(v);
  if (!ir_is(def, "arith.constant"))
    return false;
  MlirAttribute a = mlirOperationGetAttributeByName(def, ir_str("value"));
  if (!mlirAttributeIsAInteger(a))
    return false;
  int64_t c = mlirIntegerAttrGetValueInt(a);
  return c != 0 && c != -1;
}

/* The machine's division is undefined where HLO's is not, so the divisor is replaced there first. */
static MlirValue int_divide(struct emit *e, enum hlo_op op, enum dtype t, MlirValue x, MlirValue y) {
  const bool is_signed = dtype_kind(t) == DK_SIGNED, is_div = op == HLO_DIVIDE;
  const char *name = is_div ? is_signed ? "arith.divsi" : "arith.divui" : is_signed ? "arith.remsi" : "arith.remui";

  if (is_safe_divisor(y))
    return emit_binary(e, name, x, y);
  MlirType type = mlirValueGetType(x);
  MlirValue zero = emit_int(e, type, 0), one = emit_int(e, type, 1);
  MlirValue by_zero = emit_cmpi(e, INT_EQ, y, zero), bad = by_zero;
  if (is_signed) {
    MlirValue overflow = emit_binary(e, "arith.andi", emit_cmpi(e, INT_EQ, y, all_ones(e, type)),
                                     emit_cmpi(e, INT_EQ, x, emit_int(e, type, int_min(t))));
    bad = emit_binary(e, "arith.ori", by_zero, overflow);
  }
  MlirValue quotient = emit_binary(e, name, x, emit_select(e, bad, one, y));
  return emit_select(e, by_zero, is_div ? all_ones(e, type) : x, quotient);
}

/* math.ipowi reads the exponent as signed and divides by the base when it is negative, so unsigned types are widened
 * and 0 to a negative power, which XLA calls 0, is computed as 0 to the first. */
static MlirValue int_power(struct emit *e, enum dtype t, MlirValue x, MlirValue y) {
  MlirType type = mlirValueGetType(x), i64 = mlirIntegerTypeGet(e->ctx, 64);

  if (dtype_kind(t) == DK_UNSIGNED) {
    if (t == DT_U64)
      return emit_binary(e, "math.ipowi", x, y);
    MlirValue wide =
        emit_binary(e, "math.ipowi", emit_op1(e, "arith.extui", i64, 1, &x), emit_op1(e, "arith.extui", i64, 1, &y));
    return emit_op1(e, "arith.trunci", type, 1, &wide);
  }
  MlirValue zero = emit_int(e, type, 0);
  MlirValue bad = emit_binary(e, "arith.andi", emit_cmpi(e, INT_EQ, x, zero), emit_cmpi(e, INT_SLT, y, zero));
  return emit_binary(e, "math.ipowi", x, emit_select(e, bad, emit_int(e, type, 1), y));
}

/* Beyond the width everything is shifted out, which the machine's shifts do not define. */
static MlirValue shift(struct emit *e, enum hlo_op op, enum dtype t, MlirValue x, MlirValue y) {
  MlirType type = mlirValueGetType(x);
  const int64_t bits = 8 * (int64_t)dtype_size(t);
  MlirValue inside = emit_cmpi(e, INT_ULT, y, emit_int(e, type, bits));
  MlirValue zero = emit_int(e, type, 0), last = emit_int(e, type, bits - 1);
  if (op == HLO_SHIFT_RIGHT_ARITHMETIC)
    return emit_binary(e, "arith.shrsi", x, emit_select(e, inside, y, last));
  MlirValue v = emit_binary(e, op == HLO_SHIFT_LEFT ? "arith.shli" : "arith.shrui", x, emit_select(e, inside, y, zero));
  return emit_select(e, inside, v, zero);
}

static bool is_shift(enum hlo_op op) {
  return op == HLO_SHIFT_LEFT || op == HLO_SHIFT_RIGHT_ARITHMETIC || op == HLO_SHIFT_RIGHT_LOGICAL;
}

MlirValue scalar_binary(struct emit *e, enum hlo_op op, enum dtype t, MlirValue x, MlirValue y) {
  switch (dtype_kind(t)) {
  case DK_FLOAT:
    return emit_binary(e, float_binary[op], x, y);
  case DK_BOOL:
    return emit_binary(e, bool_binary[op], x, y);
  default:
    break;
  }
  if (op == HLO_DIVIDE || op == HLO_REMAINDER)
    return int_divide(e, op, t, x, y);
  if (op == HLO_POWER)
    return int_power(e, t, x, y);
  if (is_shift(op))
    return shift(e, op, t, x, y);
  return emit_binary(e, dtype_kind(t) == DK_SIGNED ? signed_binary[op] : unsigned_binary[op], x, y);
}

/* ---- compare, convert -------------------------------------------------------------------------------- */

MlirValue scalar_compare(struct emit *e, enum hlo_direction d, enum dtype t, bool is_total, MlirValue x, MlirValue y) {
  static const enum emit_float_pred flt[] = {[HLO_EQ] = FLT_OEQ, [HLO_NE] = FLT_UNE, [HLO_GE] = FLT_OGE,
                                             [HLO_GT] = FLT_OGT, [HLO_LE] = FLT_OLE, [HLO_LT] = FLT_OLT};
  static const enum emit_int_pred sgn[] = {[HLO_EQ] = INT_EQ,  [HLO_NE] = INT_NE,  [HLO_GE] = INT_SGE,
                                           [HLO_GT] = INT_SGT, [HLO_LE] = INT_SLE, [HLO_LT] = INT_SLT};
  static const enum emit_int_pred uns[] = {[HLO_EQ] = INT_EQ,  [HLO_NE] = INT_NE,  [HLO_GE] = INT_UGE,
                                           [HLO_GT] = INT_UGT, [HLO_LE] = INT_ULE, [HLO_LT] = INT_ULT};
  if (is_total)
    return emit_cmpi(e, sgn[d], order_bits(e, t, x), order_bits(e, t, y));
  if (dtype_is_float(t))
    return emit_cmpf(e, flt[d], x, y);
  return emit_cmpi(e, dtype_kind(t) == DK_SIGNED ? sgn[d] : uns[d], x, y);
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

/* x where i is select(x != x, NaN, select(x == 0, 0, x)), as sorts write it to have one zero and one NaN; else NULL. */
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

/* x below y; NaN is above everything but itself. */
static MlirValue is_below(struct emit *e, MlirValue x, MlirValue y) {
  return emit_binary(e, "arith.andi", emit_cmpf(e, FLT_ULT, x, y), emit_cmpf(e, FLT_OEQ, x, x));
}

MlirValue scalar_plain_compare(struct emit *e, enum hlo_direction d, MlirValue x, MlirValue y) {
  const bool is_turned = d == HLO_GT || d == HLO_LE;
  MlirValue below = is_below(e, is_turned ? y : x, is_turned ? x : y);
  return d == HLO_LT || d == HLO_GT ? below : emit_binary(e, "arith.xori", below, all_ones(e, mlirValueGetType(below)));
}

static MlirValue cast(struct emit *e, const char *name, MlirValue x, enum dtype to) {
  return emit_op1(e, name, emit_element_type(e, to), 1, &x);
}

/* Floats go through f32 where no single instruction exists (f16 <-> bf16) and where going directly would need a
 * runtime function (f64 -> 16 and 8 bits); NumPy's own bf16 and fp8 conversions do the same. */
static MlirValue float_to_float(struct emit *e, MlirValue x, enum dtype from, enum dtype to) {
  const size_t a = dtype_size(from), b = dtype_size(to);

  if ((a <= 2 && b <= 2) || (a == 8 && b <= 2) || (a <= 2 && b == 8)) {
    MlirValue mid = cast(e, a < 4 ? "arith.extf" : "arith.truncf", x, DT_F32);
    return cast(e, b < 4 ? "arith.truncf" : "arith.extf", mid, to);
  }
  return cast(e, a < b ? "arith.extf" : "arith.truncf", x, to);
}

static MlirValue int_to_float(struct emit *e, MlirValue x, enum dtype from, enum dtype to) {
  const char *name = dtype_kind(from) == DK_SIGNED ? "arith.sitofp" : "arith.uitofp";

  if (dtype_size(to) < 4)
    return cast(e, "arith.truncf", cast(e, name, x, DT_F32), to);
  return cast(e, name, x, to);
}

static MlirValue to_bool(struct emit *e, MlirValue x, enum dtype from) {
  MlirType t = mlirValueGetType(x);
  if (dtype_is_float(from))
    return emit_cmpf(e, FLT_UNE, x, emit_float(e, t, 0));
  return emit_cmpi(e, INT_NE, x, emit_int(e, t, 0));
}

MlirValue scalar_convert(struct emit *e, MlirValue x, enum dtype from, enum dtype to) {
  if (from == to)
    return x;
  if (to == DT_BOOL)
    return to_bool(e, x, from);
  if (dtype_is_float(from)) {
    if (dtype_is_float(to))
      return float_to_float(e, x, from, to);
    if (dtype_size(from) < 4)
      x = cast(e, "arith.extf", x, DT_F32);
    return cast(e, dtype_kind(to) == DK_SIGNED ? "arith.fptosi" : "arith.fptoui", x, to);
  }
  if (dtype_is_float(to))
    return int_to_float(e, x, from, to);
  const size_t a = from == DT_BOOL ? 0 : dtype_size(from), b = dtype_size(to);
  if (a == b) /* only the sign's meaning changes */
    return x;
  if (a > b)
    return cast(e, "arith.trunci", x, to);
  return cast(e, dtype_kind(from) == DK_SIGNED ? "arith.extsi" : "arith.extui", x, to);
}

MlirValue scalar_to_index(struct emit *e, MlirValue x, enum dtype t) {
  const char *name = dtype_kind(t) == DK_SIGNED ? "arith.index_cast" : "arith.index_castui";
  return emit_op1(e, name, emit_index_type(e), 1, &x);
}

MlirValue scalar_clamp_index(struct emit *e, MlirValue x, int64_t limit) {
  MlirValue low = emit_binary(e, "arith.maxsi", x, emit_index(e, 0));
  return emit_binary(e, "arith.minsi", low, emit_index(e, limit));
}

enum dtype scalar_accumulator(enum dtype t) {
  return dtype_is_float(t) && dtype_size(t) < 4 ? DT_F32 : t;
}

/* ---- all --------------------------------------------------------------------------------------------- */

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

MlirValue scalar_apply(struct emit *e, const struct hlo_instr *i, MlirValue const *x) {
  const enum dtype t = i->operands[0]->shape.dtype;

  switch (i->op) {
  case HLO_COMPARE:
    return scalar_compare(e, i->attrs->direction, t, i->attrs->is_total_order, x[0], x[1]);
  case HLO_CLAMP:
    return scalar_binary(e, HLO_MINIMUM, t, scalar_binary(e, HLO_MAXIMUM, t, x[1], x[0]), x[2]);
  case HLO_IS_FINITE:
    return is_finite(e, t, x[0]);
  case HLO_BITCAST_CONVERT:
    return mlirTypeEqual(mlirValueGetType(x[0]), emit_element_type(e, i->shape.dtype))
               ? x[0]
               : emit_op1(e, "arith.bitcast", emit_element_type(e, i->shape.dtype), 1, x);
  case HLO_SELECT:
    return emit_select(e, x[0], x[1], x[2]);
  case HLO_CONVERT:
    return scalar_convert(e, x[0], t, i->shape.dtype);
  default:
    return hlo_op_class(i->op) == HC_UNARY ? unary(e, i->op, t, x[0]) : scalar_binary(e, i->op, t, x[0], x[1]);
  }
}
