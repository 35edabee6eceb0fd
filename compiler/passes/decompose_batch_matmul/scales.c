/* scales: see scales.h. */
#include "passes/decompose_batch_matmul/scales.h"

#include <math.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "passes/lib/edit.h"
#include "passes/lib/price.h"
#include "passes/lib/product.h"

/* A factor beyond these could take an operand out of the range of f32 where the product is in it. */
static const double LEAST = 1.0 / 65536, MOST = 65536;

static bool is_moderate(MlirValue v) {
  MlirAttribute a = ir_constant(v);
  if (mlirAttributeIsNull(a) || !mlirAttributeIsAFloat(a))
    return false;
  const double x = fabs(mlirFloatAttrGetValueDouble(a));
  return x >= LEAST && x <= MOST;
}

/* A generic of one input that multiplies it by a constant, element by element. */
static bool is_scale(MlirOperation op, void *user) {
  struct structured s;
  (void)user;
  if (!ir_is(op, "linalg.generic") || !structured_read(op, &s) || !structured_is_elementwise(&s) || s.n_inputs != 1 ||
      s.n_inits != 1 || !mlirAffineMapIsIdentity(s.maps[0]) || !mlirAffineMapIsIdentity(s.maps[1]) ||
      !mlirTypeIsAF32(ir_value_element(ir_result(op))))
    return false;
  MlirOperation multiply = mlirBlockGetFirstOperation(ir_body(op)), end = mlirBlockGetTerminator(ir_body(op));
  if (!ir_is(multiply, "arith.mulf") || !mlirOperationEqual(mlirOperationGetNextInBlock(multiply), end) ||
      !mlirValueEqual(mlirOperationGetOperand(end, 0), ir_result(multiply)))
    return false;
  for (int k = 0; k < 2; k++)
    if (mlirValueEqual(mlirOperationGetOperand(multiply, k), mlirBlockGetArgument(ir_body(op), 0)))
      return is_moderate(mlirOperationGetOperand(multiply, 1 - k));
  return false;
}

static int64_t elements(MlirValue v) {
  const struct price_shape s = price_shape_of(v);
  return s.rows * s.columns;
}

/* The operand of the product that is a product itself, of fewer elements, and read by nothing else; -1 if there is none. */
static int computed_operand(MlirOperation product) {
  for (int o = 0; o < 2; o++) {
    MlirValue v = mlirOperationGetOperand(product, o);
    MlirOperation def = ir_defining_op(v);
    struct product p;
    if (!mlirOperationIsNull(def) && product_read(def, &p) && ir_has_one_use(v) &&
        mlirTypeIsAF32(ir_value_element(v)) && elements(v) < elements(ir_result(product)))
      return o;
  }
  return -1;
}

/* Makes the numbers that the body of op reads come before the product, which is in the same block as op. */
static void bring_numbers(MlirOperation op, MlirOperation product) {
  MlirOperation multiply = mlirBlockGetFirstOperation(ir_body(op));
  for (int k = 0; k < 2; k++) {
    MlirOperation number = ir_defining_op(mlirOperationGetOperand(multiply, k));
    if (!mlirOperationIsNull(number) && mlirBlockEqual(mlirOperationGetBlock(number), mlirOperationGetBlock(product)) &&
        !mlirOperationIsBeforeInBlock(number, product))
      mlirOperationMoveBefore(number, product);
  }
}

/* The scale of v, like op. */
static MlirValue scaled(struct pass_run *run, MlirOperation op, MlirOperation before, MlirValue v) {
  struct ir_builder b = edit_before(run, before);
  const int rank = (int)mlirShapedTypeGetRank(mlirValueGetType(v));
  const MlirAffineMap maps[] = {ir_identity_map(&b, rank), ir_identity_map(&b, rank)};
  bool reduction[STRUCTURED_LOOPS_MAX] = {false};

  bring_numbers(op, before);
  MlirOperation made = mlirOperationClone(op);
  mlirOperationSetOperand(made, 0, v);
  mlirOperationSetOperand(made, 1, ir_empty_of(&b, mlirValueGetType(v)));
  mlirValueSetType(ir_result(made), mlirValueGetType(v));
  edit_set_maps(made, 2, maps);
  edit_set_iterators(made, rank, reduction);
  return ir_result(ir_place(&b, made));
}

static void try_scale(struct pass_run *run, MlirOperation op) {
  MlirValue v = mlirOperationGetOperand(op, 0);
  MlirOperation product = ir_defining_op(v);
  struct product p;

  if (mlirOperationIsNull(product) || !ir_has_one_use(v) || !product_read(product, &p) ||
      !mlirBlockEqual(mlirOperationGetBlock(product), mlirOperationGetBlock(op)) ||
      !mlirTypeIsAF32(ir_value_element(v)) || !mlirAttributeIsNull(ir_attr(product, "cast")))
    return;
  MlirOperation init = ir_defining_op(mlirOperationGetOperand(product, 2));
  const int o = computed_operand(product);
  if (o < 0 || mlirOperationIsNull(init) ||
      !(ir_is(init, "tensor.empty") || (ir_is(init, "linalg.fill") && ir_is_zero(mlirOperationGetOperand(init, 0)))))
    return;
  for (MlirOpOperand u = mlirValueGetFirstUse(ir_result(op)); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
    if (ir_is_of(mlirOpOperandGetOwner(u), "nkipy."))
      return;
  pass_step(run, op, "scale-operand");
  MlirValue operand = mlirOperationGetOperand(product, o);
  const struct price_shape small = price_shape_of(operand), large = price_shape_of(v);
  struct remark *r = pass_remark(run, op, RULE_SCALE_OPERAND, "the operand of the product is multiplied instead");
  price_chosen(r, price_rows_ns(run->target, SIM_COST_VECTOR_SCALAR, small.rows, small.columns));
  price_instead(r, "the product is multiplied",
                price_rows_ns(run->target, SIM_COST_VECTOR_SCALAR, large.rows, large.columns), "it has more elements");
  mlirOperationSetOperand(product, o, scaled(run, op, product, operand));
  mlirValueReplaceAllUsesOfWith(ir_result(op), v);
  mlirOperationDestroy(op);
}

void scales_move_to_operands(struct pass_run *run) {
  const struct ir_ops ops = ir_collect(run->arena, run->module, is_scale, NULL);

  for (int i = 0; i < ops.n; i++)
    try_scale(run, ops.v[i]);
}
