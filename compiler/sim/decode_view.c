/* decode_view: memrefs that name a part of another one in another form, and globals. */
#include <assert.h>
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "ir/query.h"
#include "sim/decode_internal.h"

static bool read_shape(MlirValue v, struct decoded *x) {
  MlirType t = mlirValueGetType(v);
  if (mlirShapedTypeGetRank(t) > NISA_RANK_MAX || !mlirShapedTypeHasStaticShape(t))
    return false;
  x->rank = (int)mlirShapedTypeGetRank(t);
  for (int k = 0; k < x->rank; k++)
    x->dims[k] = mlirShapedTypeGetDimSize(t, k);
  return true;
}

/* reinterpret_cast: the strides that the type states. */
static bool steps_by_type(MlirValue v, int64_t size, struct decoded *x) {
  int64_t strides[NISA_RANK_MAX], offset;
  if (mlirLogicalResultIsFailure(mlirMemRefTypeGetStridesAndOffset(mlirValueGetType(v), strides, &offset)))
    return false;
  for (int k = 0; k < x->rank; k++) {
    if (mlirShapedTypeIsDynamicStrideOrOffset(strides[k]))
      return false;
    x->steps[k] = strides[k] * size;
  }
  return true;
}

/* subview: the base's steps times the strides; dimensions of extent 1 that the result's type drops are left out. */
static bool steps_of_subview(MlirOperation op, const struct decoded *base, struct decoded *x) {
  MlirAttribute sizes = ir_attr(op, "static_sizes"), strides = ir_attr(op, "static_strides");
  int to = 0, left = base->rank - x->rank; /* dimensions that are still to be dropped */
  for (int k = 0; k < base->rank; k++) {
    const int64_t n = mlirDenseI64ArrayGetElement(sizes, k), stride = mlirDenseI64ArrayGetElement(strides, k);
    if (mlirShapedTypeIsDynamicSize(n) || mlirShapedTypeIsDynamicStrideOrOffset(stride))
      return false;
    if (left && n == 1 && (to == x->rank || x->dims[to] != 1)) {
      left--;
      continue;
    }
    if (to == x->rank || x->dims[to] != n)
      return false;
    x->steps[to++] = base->steps[k] * stride;
  }
  return to == x->rank;
}

/* collapse_shape: a group steps as its innermost dimension that has several elements. */
static void steps_of_collapse(MlirAttribute groups, const struct decoded *base, struct decoded *x) {
  for (int g = 0; g < x->rank; g++) {
    MlirAttribute group = mlirArrayAttrGetElement(groups, g);
    for (intptr_t k = mlirArrayAttrGetNumElements(group) - 1; k >= 0; k--) {
      const int64_t dim = mlirIntegerAttrGetValueInt(mlirArrayAttrGetElement(group, k));
      x->steps[g] = base->steps[dim];
      if (base->dims[dim] != 1)
        break;
    }
  }
}

static void steps_of_expand(MlirAttribute groups, const struct decoded *base, struct decoded *x) {
  for (int g = 0; g < base->rank; g++) {
    MlirAttribute group = mlirArrayAttrGetElement(groups, g);
    int64_t step = base->steps[g];
    for (intptr_t k = mlirArrayAttrGetNumElements(group) - 1; k >= 0; k--) {
      const int64_t dim = mlirIntegerAttrGetValueInt(mlirArrayAttrGetElement(group, k));
      x->steps[dim] = step;
      step *= x->dims[dim];
    }
  }
  for (int k = 0; !base->rank && k < x->rank; k++)
    x->steps[k] = 1;
}

/* The result's steps; false if they are not known. */
static bool find_steps(MlirOperation op, const struct decoded *base, struct decoded *x) {
  if (ir_is(op, "memref.subview"))
    return steps_of_subview(op, base, x);
  if (ir_is(op, "memref.reinterpret_cast"))
    return steps_by_type(x->value, sim_type_bytes(base->type), x);
  if (ir_is(op, "memref.collapse_shape"))
    steps_of_collapse(ir_attr(op, "reassociation"), base, x);
  else if (ir_is(op, "memref.expand_shape"))
    steps_of_expand(ir_attr(op, "reassociation"), base, x);
  else
    memcpy(x->steps, base->steps, sizeof x->steps);
  return true;
}

/* The subview's first element: static offsets, and the operands after the base for the dynamic ones. */
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

static enum status decode_global(struct decoder *d, MlirOperation op) {
  MlirOperation global = ir_find_symbol(d->module, "memref.global", mlirFlatSymbolRefAttrGetValue(ir_attr(op, "name")));
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
  assert(found && found->reg < 0);
  const struct decoded base = *found; /* decode_define may move it */
  struct decoded *x = decode_define(d, mlirOperationGetResult(op, 0));
  x->buffer = base.buffer;
  x->ref = base.ref;
  x->type = base.type;
  x->start = base.start;
  x->copy = base.copy;
  x->group = base.group;
  if (!read_shape(x->value, x) || !find_steps(op, &base, x))
    return decode_refuse(d, op, "its shape or its strides are not static");
  if (ir_is(op, "memref.subview")) {
    x->start = add_offsets(d, op, &base);
  } else if (ir_is(op, "memref.reinterpret_cast")) {
    const int64_t size = sim_type_bytes(base.type);
    const int64_t o = mlirDenseI64ArrayGetElement(ir_attr(op, "static_offsets"), 0);
    if (mlirShapedTypeIsDynamicStrideOrOffset(o) || base.start.n || base.start.constant)
      return decode_refuse(d, op, "its offset is not static");
    x->start.constant = o * size;
  }
  return ST_OK;
}
