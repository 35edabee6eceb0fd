/* slice: see slice.h. */
#include "passes/lib/slice.h"

#include <assert.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

bool slice_read(MlirOperation op, struct slice *s) {
  *s = (struct slice){.op = op, .is_insert = ir_is(op, "tensor.insert_slice")};
  if (!s->is_insert && !ir_is(op, "tensor.extract_slice"))
    return false;
  MlirAttribute offsets = ir_attr(op, "static_offsets"), sizes = ir_attr(op, "static_sizes"),
                strides = ir_attr(op, "static_strides");
  s->rank = (int)mlirDenseArrayGetNumElements(offsets);
  if (s->rank > STRUCTURED_LOOPS_MAX)
    return false;
  intptr_t next = s->is_insert ? 2 : 1;
  for (int d = 0; d < s->rank; d++) {
    s->offset[d] = mlirDenseI64ArrayGetElement(offsets, d);
    s->size[d] = mlirDenseI64ArrayGetElement(sizes, d);
    if (s->offset[d] == mlirShapedTypeGetDynamicStrideOrOffset()) {
      s->offset[d] = SLICE_DYNAMIC;
      s->at[d] = mlirOperationGetOperand(op, next++);
    }
    if (mlirShapedTypeGetDynamicSize() == s->size[d] || mlirDenseI64ArrayGetElement(strides, d) != 1)
      return false;
  }
  return true;
}

MlirValue slice_of(const struct slice *s) {
  return mlirOperationGetOperand(s->op, s->is_insert ? 1 : 0);
}

void slice_set(const struct slice *s, MlirValue of) {
  MlirContext ctx = mlirOperationGetContext(s->op);
  MlirValue operands[2 + STRUCTURED_LOOPS_MAX];
  int64_t offsets[STRUCTURED_LOOPS_MAX];
  intptr_t n = 0;

  assert(s->rank <= STRUCTURED_LOOPS_MAX);
  if (s->is_insert)
    operands[n++] = mlirOperationGetOperand(s->op, 0);
  operands[n++] = of;
  const intptr_t first = n;
  for (int d = 0; d < s->rank; d++) {
    offsets[d] = s->offset[d];
    if (s->offset[d] != SLICE_DYNAMIC)
      continue;
    offsets[d] = mlirShapedTypeGetDynamicStrideOrOffset();
    operands[n++] = s->at[d];
  }
  int32_t segments[5] = {1, 1, 0, 0, 0};
  segments[first] = (int32_t)(n - first);
  mlirOperationSetOperands(s->op, n, operands);
  mlirOperationSetInherentAttributeByName(s->op, ir_str("operandSegmentSizes"),
                                          mlirDenseI32ArrayGet(ctx, first + 3, segments));
  mlirOperationSetInherentAttributeByName(s->op, ir_str("static_offsets"), mlirDenseI64ArrayGet(ctx, s->rank, offsets));
}

MlirValue slice_part(const struct slice *s) {
  return s->is_insert ? mlirOperationGetOperand(s->op, 0) : mlirOperationGetResult(s->op, 0);
}

bool slice_is_whole(const struct slice *s, MlirType t) {
  for (int d = 0; d < s->rank; d++)
    if (s->size[d] != mlirShapedTypeGetDimSize(t, d))
      return false;
  return true;
}
