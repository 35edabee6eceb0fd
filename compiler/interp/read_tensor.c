/* read_tensor: operations on tensors.  Those that only give a part or another shape of a tensor are views of its memory,
 * as on buffers. */
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "interp/internal.h"
#include "ir/query.h"

static bool unknown(struct reader *r, MlirOperation op) {
  return read_unknown(r, mlirIdentifierStr(mlirOperationGetName(op)).data);
}

static const int64_t *dims_of(struct reader *r, MlirType t, int rank) {
  int64_t *dims = arena_new_array(reader_arena(r), int64_t, (size_t)rank);
  for (int k = 0; k < rank; k++)
    dims[k] = mlirShapedTypeIsDynamicDim(t, k) ? interp_dynamic : mlirShapedTypeGetDimSize(t, k);
  return dims;
}

static const int64_t *repeat(struct reader *r, int64_t v, int n) {
  int64_t *list = arena_new_array(reader_arena(r), int64_t, (size_t)n + 1);
  for (int k = 0; k <= n; k++)
    list[k] = v;
  return list;
}

static bool read_empty(struct reader *r, MlirOperation op, struct instr *in) {
  MlirType t = mlirValueGetType(mlirOperationGetResult(op, 0));
  in->op = OP_ALLOC;
  in->view.n = (int)mlirShapedTypeGetRank(t);
  in->view.sizes = dims_of(r, t, in->view.n);
  in->view.strides = repeat(r, interp_dynamic, in->view.n); /* row-major */
  in->view.offsets = repeat(r, 0, 0);
  return true;
}

/* An allocation that has a copy of a tensor is that tensor. */
static bool read_alloc_tensor(struct reader *r, MlirOperation op, struct instr *in) {
  MlirAttribute segments = ir_attr(op, "operandSegmentSizes");
  const bool has_copy = !mlirAttributeIsNull(segments) && mlirDenseI32ArrayGetElement(segments, 1);
  if (!has_copy && in->n_args == (mlirAttributeIsNull(segments) ? 0 : mlirDenseI32ArrayGetElement(segments, 0)))
    return read_empty(r, op, in);
  in->op = OP_CAST;
  return (has_copy && in->n_args == 1) || unknown(r, op);
}

static bool read_elements_of(struct reader *r, MlirOperation op, struct instr *in) {
  MlirType t = mlirValueGetType(mlirOperationGetResult(op, 0));
  in->op = OP_ELEMENTS;
  in->view.n = (int)mlirShapedTypeGetRank(t);
  in->view.sizes = dims_of(r, t, in->view.n);
  return mlirShapedTypeHasStaticShape(t) || unknown(r, op);
}

/* An operation whose result is its first operand. */
static bool is_same(MlirOperation op) {
  return ir_is(op, "tensor.cast") || ir_is(op, "bufferization.materialize_in_destination");
}

bool read_tensor(struct reader *r, MlirOperation op, struct instr *in) {
  if (mlirOperationGetNumResults(op) != 1)
    return unknown(r, op);
  MlirType result = mlirValueGetType(mlirOperationGetResult(op, 0));
  if (ir_is(op, "tensor.empty"))
    return read_empty(r, op, in);
  if (ir_is(op, "bufferization.alloc_tensor"))
    return read_alloc_tensor(r, op, in);
  if (ir_is(op, "tensor.from_elements"))
    return read_elements_of(r, op, in);
  if (ir_is(op, "tensor.extract_slice")) {
    in->op = OP_SUBVIEW;
    return read_slice(r, op, result, in);
  }
  if (ir_is(op, "tensor.insert_slice")) {
    in->op = OP_INSERT_SLICE;
    return read_slice(r, op, mlirValueGetType(mlirOperationGetOperand(op, 0)), in);
  }
  if (ir_is(op, "tensor.collapse_shape") || ir_is(op, "tensor.expand_shape"))
    return read_reshape(r, op, in);
  in->op = is_same(op)                   ? OP_CAST
           : ir_is(op, "tensor.extract") ? OP_LOAD
           : ir_is(op, "tensor.insert")  ? OP_INSERT
           : ir_is(op, "tensor.dim")     ? OP_DIM
                                         : OP_CONSTANT;
  return (in->op != OP_CONSTANT && (in->op != OP_CAST || mlirTypeIsARankedTensor(result))) || unknown(r, op);
}

/* A constant whose elements are equal has one element and strides of 0. */
bool read_tensor_constant(struct reader *r, MlirOperation op, struct instr *in) {
  MlirType t = mlirValueGetType(mlirOperationGetResult(op, 0));
  void *data = NULL;
  bool is_splat;
  in->op = OP_CONSTANT_TENSOR;
  if (!mlirShapedTypeHasStaticShape(t))
    return unknown(r, op);
  if (!read_elements(r, ir_attr(op, "value"), read_dtype(mlirShapedTypeGetElementType(t)), &is_splat, &data))
    return false;
  in->view.n = (int)mlirShapedTypeGetRank(t);
  in->view.sizes = dims_of(r, t, in->view.n);
  in->view.strides = is_splat ? repeat(r, 0, in->view.n) : NULL;
  in->view.offsets = data;
  return true;
}
