/* rounding: see rounding.h. */
#include "passes/lib/rounding.h"

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "passes/lib/activations.h"

static bool has_knob(MlirValue v) {
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
    if (ir_is_of(mlirOpOperandGetOwner(u), "nkipy."))
      return true;
  return false;
}

/* Of an argument of a body the value in the body that computes it, or the tensor if none does. */
static MlirValue resolve(MlirValue v) {
  while (mlirValueIsABlockArgument(v) && !mlirTypeIsATensor(mlirValueGetType(v))) {
    MlirOperation owner = mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(v));
    const intptr_t k = mlirBlockArgumentGetArgNumber(v);
    if (mlirOperationIsNull(owner) || !ir_is_of(owner, "linalg.") || !activation_is_plain(owner) ||
        k + 1 >= mlirOperationGetNumOperands(owner))
      return v;
    v = mlirOperationGetOperand(owner, k);
    MlirOperation def = ir_defining_op(v);
    if (mlirOperationIsNull(def) || !ir_is_of(def, "linalg.") || ir_is(def, "linalg.fill") || has_knob(v) ||
        !activation_is_plain(def))
      return v;
    v = mlirOperationGetOperand(mlirBlockGetTerminator(ir_body(def)), 0);
  }
  return v;
}

/* Operand k of the operation that computes v, which has this name; null otherwise. */
static MlirValue of(MlirValue v, const char *name, int k) {
  MlirOperation op = mlirValueIsNull(v) ? (MlirOperation){NULL} : ir_defining_op(v);
  return !mlirOperationIsNull(op) && ir_is(op, name) ? resolve(mlirOperationGetOperand(op, k)) : (MlirValue){NULL};
}

static bool is_same(MlirValue a, MlirValue b) {
  return !mlirValueIsNull(a) && !mlirValueIsNull(b) && mlirValueEqual(a, b);
}

static bool is_number(MlirValue v, double want) {
  MlirAttribute a = mlirValueIsNull(v) ? mlirAttributeGetNull() : ir_constant(v);
  if (!mlirAttributeIsNull(a) && mlirAttributeIsADenseElements(a) && mlirDenseElementsAttrIsSplat(a))
    a = mlirDenseElementsAttrGetSplatValue(a);
  return !mlirAttributeIsNull(a) && mlirAttributeIsAFloat(a) && mlirFloatAttrGetValueDouble(a) == want;
}

static bool compares(MlirValue v, int64_t predicate) {
  return !mlirValueIsNull(of(v, "arith.cmpf", 0)) &&
         mlirIntegerAttrGetValueInt(ir_attr(ir_defining_op(v), "predicate")) == predicate;
}

/* x of sign(x), as hlo-to-linalg writes it: copysign(1, x) where x is not 0, else x. */
static MlirValue sign_of(MlirValue v) {
  MlirValue is_not_zero = of(v, "arith.select", 0), one = of(v, "arith.select", 1), x = of(v, "arith.select", 2);
  const bool is_one = compares(is_not_zero, IR_FLT_ONE) && is_same(of(is_not_zero, "arith.cmpf", 0), x) &&
                      is_number(of(is_not_zero, "arith.cmpf", 1), 0) && is_number(of(one, "math.copysign", 0), 1) &&
                      is_same(of(one, "math.copysign", 1), x);
  return is_one ? x : (MlirValue){NULL};
}

/* True if v is whether to round |x| up, for d = floor(|x|). */
static bool is_up(MlirValue v, MlirValue abs, MlirValue d) {
  MlirValue above = of(v, "arith.ori", 0), tie = of(v, "arith.ori", 1), at = of(tie, "arith.andi", 0),
            odd = of(tie, "arith.andi", 1), rest = of(above, "arith.cmpf", 0), half = of(odd, "arith.cmpf", 1);
  return compares(above, IR_FLT_OGT) && is_number(of(above, "arith.cmpf", 1), 0.5) && compares(at, IR_FLT_OEQ) &&
         is_same(of(at, "arith.cmpf", 0), rest) && is_number(of(at, "arith.cmpf", 1), 0.5) &&
         is_same(of(rest, "arith.subf", 0), abs) && is_same(of(rest, "arith.subf", 1), d) &&
         compares(odd, IR_FLT_UNE) && is_same(of(of(odd, "arith.cmpf", 0), "math.floor", 0), half) &&
         is_same(of(half, "arith.mulf", 0), d) && is_number(of(half, "arith.mulf", 1), 0.5);
}

MlirValue rounding_find(MlirValue v) {
  MlirValue x = sign_of(of(v, "arith.mulf", 0)), whole = of(v, "arith.mulf", 1), none = {NULL};
  MlirValue up = of(whole, "arith.select", 0), more = of(whole, "arith.select", 1), d = of(whole, "arith.select", 2);
  MlirValue abs = of(d, "math.floor", 0);

  if (mlirValueIsNull(x) || !is_same(of(abs, "math.absf", 0), x) || !is_same(of(more, "arith.addf", 0), d) ||
      !is_number(of(more, "arith.addf", 1), 1) || !is_up(up, abs, d))
    return none;
  if (mlirTypeIsATensor(mlirValueGetType(x)))
    return x;
  /* a value in a body: the tensor that the body yields it to */
  MlirOperation owner = mlirBlockGetParentOperation(mlirOperationGetBlock(ir_defining_op(x)));
  const bool yields = !mlirOperationIsNull(owner) && ir_is_of(owner, "linalg.") &&
                      mlirOperationGetNumResults(owner) == 1 &&
                      is_same(mlirOperationGetOperand(mlirBlockGetTerminator(ir_body(owner)), 0), x);
  return yields ? ir_result(owner) : none;
}
