/* query: see query.h. */
#include "ir/query.h"

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include <string.h>

#include "base/array.h"

MlirOperation ir_ancestor_in(MlirOperation op, MlirBlock block) {
  while (!mlirOperationIsNull(op) && !mlirBlockEqual(mlirOperationGetBlock(op), block))
    op = mlirOperationGetParentOperation(op);
  return op;
}

int64_t ir_int_attr(MlirOperation op, const char *name, int64_t missing) {
  MlirAttribute a = ir_attr(op, name);
  return !mlirAttributeIsNull(a) && mlirAttributeIsAInteger(a) ? mlirIntegerAttrGetValueInt(a) : missing;
}

MlirOperation ir_find_symbol(MlirOperation module, const char *kind, MlirStringRef name) {
  MlirOperation op = mlirBlockGetFirstOperation(mlirModuleGetBody(mlirModuleFromOperation(module)));
  for (; !mlirOperationIsNull(op); op = mlirOperationGetNextInBlock(op)) {
    MlirAttribute symbol = ir_is(op, kind) ? ir_attr(op, "sym_name") : mlirAttributeGetNull();
    if (!mlirAttributeIsNull(symbol) && mlirStringRefEqual(mlirStringAttrGetValue(symbol), name))
      break;
  }
  return op;
}

/* ---- constants -------------------------------------------------------------------------------------------------- */

MlirAttribute ir_constant(MlirValue v) {
  MlirOperation def = ir_defining_op(v);
  return mlirOperationIsNull(def) || !ir_is(def, "arith.constant") ? mlirAttributeGetNull() : ir_attr(def, "value");
}

bool ir_int_constant(MlirValue v, int64_t *out) {
  MlirAttribute a = ir_constant(v);
  if (mlirAttributeIsNull(a) || !mlirAttributeIsAInteger(a))
    return false;
  *out = mlirIntegerAttrGetValueInt(a);
  return true;
}

bool ir_is_zero(MlirValue v) {
  MlirAttribute a = ir_constant(v);
  if (mlirAttributeIsNull(a))
    return false;
  if (mlirAttributeIsAFloat(a))
    return mlirFloatAttrGetValueDouble(a) == 0;
  return mlirAttributeIsAInteger(a) && mlirIntegerAttrGetValueInt(a) == 0;
}

/* ---- types ------------------------------------------------------------------------------------------------------ */

int ir_shape(MlirValue v, int max, int64_t *dims) {
  MlirType t = mlirValueGetType(v);
  if (!mlirTypeIsAShaped(t) || !mlirShapedTypeHasRank(t))
    return -1;
  int rank = (int)mlirShapedTypeGetRank(t);
  for (int i = 0; i < rank && i < max; i++)
    dims[i] = mlirShapedTypeIsDynamicDim(t, i) ? -1 : mlirShapedTypeGetDimSize(t, i);
  return rank;
}

/* ---- lists ------------------------------------------------------------------------------------------------------ */

struct collect {
  struct arena *a;
  bool (*want)(MlirOperation, void *);
  void *user;
  struct ir_ops ops;
};

static MlirWalkResult add_op(MlirOperation op, void *user) {
  struct collect *c = user;
  if (!c->want || c->want(op, c->user))
    array_push(c->a, &c->ops, op);
  return MlirWalkResultAdvance;
}

struct ir_ops ir_collect(struct arena *a, MlirOperation root, bool (*want)(MlirOperation, void *), void *user) {
  struct collect c = {.a = a, .want = want, .user = user};
  mlirOperationWalk(root, add_op, &c, MlirWalkPreOrder);
  return c.ops;
}

/* A new use becomes the first one of its value. */
static MlirWalkResult use_again(MlirOperation op, void *user) {
  (void)user;
  for (intptr_t k = 0; k < mlirOperationGetNumOperands(op); k++)
    mlirOperationSetOperand(op, k, mlirOperationGetOperand(op, k));
  return MlirWalkResultAdvance;
}

void ir_order_uses(MlirOperation root) {
  mlirOperationWalk(root, use_again, NULL, MlirWalkPreOrder);
}

static bool has_name(MlirOperation op, void *user) {
  return ir_is(op, user);
}

struct ir_ops ir_collect_named(struct arena *a, MlirOperation root, const char *name) {
  return ir_collect(a, root, has_name, (void *)(uintptr_t)name);
}
