/* entry_elementwise: replaces arith and math operations on whole tensors by linalg.generic.  MLIR's users write such
 * operations, and linalg's passes do not accept them.
 *
 *     %1 = math.exp %0 : tensor<8x4xf32>      ==>      %e = tensor.empty() : tensor<8x4xf32>
 *                                                      %1 = linalg.generic … ins(%0) outs(%e) { math.exp … }
 *
 * Upstream's convert-elementwise-to-linalg does the same but writes to an operand, so an argument would have to be
 * copied.
 */
#include "driver/entry.h"
#include "ir/structured.h"
#include "ir/build.h"

static bool is_wanted(MlirOperation op, void *user) {
  (void)user;
  if ((!ir_is_of(op, "arith.") && !ir_is_of(op, "math.")) || !mlirOperationGetNumOperands(op) ||
      mlirOperationGetNumResults(op) != 1)
    return false;
  MlirType t = mlirValueGetType(mlirOperationGetResult(op, 0));
  return mlirTypeIsARankedTensor(t) && mlirShapedTypeHasStaticShape(t);
}

/* Writes the body: op itself, on elements.  Operands that are not tensors stay. */
static MlirValue write_body(struct ir_builder *body, MlirValue const *args, void *user) {
  MlirOperation op = mlirOperationClone(*(MlirOperation *)user);
  MlirValue result = mlirOperationGetResult(op, 0);
  for (intptr_t k = 0; k < mlirOperationGetNumOperands(op); k++)
    if (mlirTypeIsARankedTensor(mlirValueGetType(mlirOperationGetOperand(op, k))))
      mlirOperationSetOperand(op, k, *args++);
  mlirValueSetType(result, ir_value_element(result));
  mlirBlockAppendOwnedOperation(body->block, op);
  return result;
}

static void spell(struct ir *ir, struct arena *a, MlirOperation op) {
  struct ir_builder b = {.ctx = ir->ctx,
                         .block = mlirOperationGetBlock(op),
                         .loc = mlirOperationGetLocation(op),
                         .arena = a,
                         .before = op};
  const intptr_t n_operands = mlirOperationGetNumOperands(op);
  MlirValue result = mlirOperationGetResult(op, 0), *inputs = arena_new_array(a, MlirValue, (size_t)n_operands);
  MlirAffineMap *maps = arena_new_array(a, MlirAffineMap, (size_t)n_operands + 1);
  const int rank = (int)mlirShapedTypeGetRank(mlirValueGetType(result));
  int n = 0; /* the number of operands that are tensors */
  for (intptr_t k = 0; k < n_operands; k++)
    if (mlirTypeIsARankedTensor(mlirValueGetType(mlirOperationGetOperand(op, k))))
      inputs[n++] = mlirOperationGetOperand(op, k);
  for (int k = 0; k <= n; k++)
    maps[k] = ir_identity_map(&b, rank);
  MlirValue empty = ir_op1(&b, "tensor.empty", mlirValueGetType(result), 0, NULL);
  MlirOperation made = ir_linalg_generic(&b, &(struct ir_generic){.n_loops = rank,
                                                                  .n_inputs = n,
                                                                  .inputs = inputs,
                                                                  .maps = maps,
                                                                  .output = empty,
                                                                  .body = write_body,
                                                                  .user = &op});
  mlirValueReplaceAllUsesOfWith(result, ir_result(made));
  mlirOperationDestroy(op);
}

void entry_spell_elementwise(struct ir *ir, struct arena *a, MlirModule m) {
  struct ir_ops ops = ir_collect(a, mlirModuleGetOperation(m), is_wanted, NULL);
  for (int k = 0; k < ops.n; k++)
    spell(ir, a, ops.v[k]);
}
