/* decode_view: memrefs that name a part of another one in another form, and globals. */
#include <assert.h>
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "ir/query.h"
#include "sim/decode_internal.h"

/* The result's shape, with the strides and the offset that its type states; false if one of them is not static. */
static bool by_type(const struct decoder *d, MlirValue v, const struct decoded *base, struct decoded *x) {
  MlirType t = mlirValueGetType(v);
  const int64_t size = sim_type_bytes(d->buffers.v[base->buffer].type);
  int64_t strides[NISA_RANK_MAX], offset;

  if (mlirShapedTypeGetRank(t) > NISA_RANK_MAX || !mlirShapedTypeHasStaticShape(t) ||
      mlirLogicalResultIsFailure(mlirMemRefTypeGetStridesAndOffset(t, strides, &offset)))
    return false;
  x->buffer = base->buffer;
  x->rank = (int)mlirShapedTypeGetRank(t);
  for (int k = 0; k < x->rank; k++) {
    if (mlirShapedTypeIsDynamicStrideOrOffset(strides[k]))
      return false;
    x->dims[k] = mlirShapedTypeGetDimSize(t, k);
    x->steps[k] = strides[k] * size;
  }
  return true;
}

/* Operand `first` + k for the k-th dynamic entry of the static list. */
static struct sim_linear add_offsets(struct decoder *d, MlirOperation op, const struct decoded *base) {
  MlirAttribute offsets = ir_attr(op, "static_offsets");
  struct sim_linear at = base->start;
  intptr_t next = 1;
  for (int k = 0; k < base->rank; k++) {
    const int64_t o = mlirDenseI64ArrayGetElement(offsets, k);
    if (mlirShapedTypeIsDynamicSize(o) || mlirShapedTypeIsDynamicStrideOrOffset(o))
      at = decode_add(d, at, decode_scalar(d, mlirOperationGetOperand(op, next++)), base->steps[k]);
    else
      at.constant += o * base->steps[k];
  }
  return at;
}

static MlirOperation find_global(MlirOperation module, MlirStringRef name) {
  MlirBlock body = mlirModuleGetBody(mlirModuleFromOperation(module));
  for (MlirOperation op = mlirBlockGetFirstOperation(body); !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op))
    if (ir_is(op, "memref.global") && mlirStringRefEqual(mlirStringAttrGetValue(ir_attr(op, "sym_name")), name))
      return op;
  return (MlirOperation){NULL};
}

static enum status decode_global(struct decoder *d, MlirOperation op) {
  MlirOperation global = find_global(d->module, mlirFlatSymbolRefAttrGetValue(ir_attr(op, "name")));
  int number;
  if (mlirOperationIsNull(global) || decode_buffer(d, mlirOperationGetResult(op, 0), SIM_GLOBAL, NULL, &number))
    return decode_refuse(d, op, "the global has no size in memory");
  MlirAttribute value = ir_attr(global, "initial_value");
  if (mlirAttributeIsNull(value) || !mlirAttributeIsADenseElements(value))
    return ST_OK;
  struct sim_buffer *b = &d->buffers.v[number];
  if (b->type == SIM_I1) { /* how MLIR packs them is its own affair */
    const int64_t n = b->bytes;
    char *bytes = arena_alloc(d->arena, (size_t)n);
    for (int64_t k = 0; k < n; k++)
      bytes[k] = mlirDenseElementsAttrIsSplat(value) ? mlirDenseElementsAttrGetBoolSplatValue(value)
                                                     : mlirDenseElementsAttrGetBoolValue(value, k);
    b->initial = bytes;
    return ST_OK;
  }
  b->initial = mlirDenseElementsAttrGetRawData(value); /* of the context, which outlives the run */
  b->initial_repeat = mlirDenseElementsAttrIsSplat(value) ? sim_type_bytes(b->type) : 0;
  return ST_OK;
}

enum status decode_view(struct decoder *d, MlirOperation op) {
  if (ir_is(op, "memref.get_global"))
    return decode_global(d, op);
  if (!ir_is(op, "memref.collapse_shape") && !ir_is(op, "memref.expand_shape") && !ir_is(op, "memref.subview") &&
      !ir_is(op, "memref.cast") && !ir_is(op, "memref.reinterpret_cast"))
    return decode_refuse(d, op, "it is not a view that programs use");
  const struct decoded *found = decode_find(d, mlirOperationGetOperand(op, 0));
  assert(found && found->buffer >= 0);
  const struct decoded base = *found; /* decode_define may move it */
  struct decoded *x = decode_define(d, mlirOperationGetResult(op, 0));
  if (!by_type(d, x->value, &base, x))
    return decode_refuse(d, op, "its strides are not static");
  x->start = base.start;
  if (ir_is(op, "memref.subview")) {
    struct sim_linear at = add_offsets(d, op, &base);
    x->start = at;
  } else if (ir_is(op, "memref.reinterpret_cast")) {
    const int64_t size = sim_type_bytes(d->buffers.v[base.buffer].type);
    const int64_t o = mlirDenseI64ArrayGetElement(ir_attr(op, "static_offsets"), 0);
    if (mlirShapedTypeIsDynamicStrideOrOffset(o) || base.start.n || base.start.constant)
      return decode_refuse(d, op, "its offset is not static");
    x->start.constant = o * size;
  }
  return ST_OK;
}
