/* tiled: reads the operations that legalize-layout handles.  See legalize_layout.h. */
#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "ir/query.h"
#include "passes/legalize_layout/legalize_layout.h"
#include "passes/lib/memrefs.h"
#include "passes/lib/scan.h"

/* ---- reading --------------------------------------------------------------------------------------------------- */

static bool read_copy(MlirOperation op, struct tiled_op *t) {
  t->is_copy = true;
  t->kind = SK_UNARY;
  t->n_operands = 2;
  t->n_inputs = 1;
  t->n_loops = ir_shape(mlirOperationGetOperand(op, 1), LEGAL_RANK_MAX, t->extents);
  if (t->n_loops < 0 || t->n_loops > LEGAL_RANK_MAX)
    return false;
  for (int o = 0; o < 2; o++) {
    t->operand_rank[o] = t->n_loops;
    for (int d = 0; d < t->n_loops; d++)
      t->loop[o][d] = d;
  }
  return true;
}

bool tiled_read(MlirOperation op, struct tiled_op *t) {
  struct structured s;

  *t = (struct tiled_op){.op = op};
  if (ir_is(op, "memref.copy"))
    return read_copy(op, t);
  struct scan scan; /* its last operand, the result before, has the same partitions as the result */
  if (!structured_read(op, &s) || s.n_loops > LEGAL_RANK_MAX || (s.n_inits != 1 && !scan_read(op, &scan)))
    return false;
  t->kind = s.kind;
  t->n_inputs = s.n_inputs;
  t->n_operands = s.n_inputs + s.n_inits;
  t->n_loops = s.n_loops;
  for (int l = 0; l < s.n_loops; l++) {
    t->reduction[l] = s.reduction[l];
    t->extents[l] = s.extents[l];
  }
  for (int o = 0; o < t->n_operands; o++) {
    if (!mlirTypeIsAMemRef(mlirValueGetType(mlirOperationGetOperand(op, o))))
      continue; /* a scalar: rank 0 */
    t->operand_rank[o] = (int)mlirAffineMapGetNumResults(s.maps[o]);
    if (t->operand_rank[o] > LEGAL_RANK_MAX)
      return false;
    for (int d = 0; d < t->operand_rank[o]; d++) {
      MlirAffineExpr x = mlirAffineMapGetResult(s.maps[o], d);
      t->loop[o][d] = structured_map_loop(s.maps[o], d);
      if (t->loop[o][d] < 0 && (!mlirAffineExprIsAConstant(x) || mlirAffineConstantExprGetValue(x) != 0))
        return false;
    }
  }
  return true;
}

/* ---- where it runs --------------------------------------------------------------------------------------------- */

/* True if op is a gather, which reads at indices that are data.  DMA executes it, so these need not have the
 * partitions of the result. */
static bool is_gather(MlirOperation op, int n_inputs) {
  if (!n_inputs)
    return false; /* the place in the loops is all that its indices can depend on */
  MlirBlock body = mlirOperationGetNumRegions(op) ? ir_body(op) : (MlirBlock){NULL};
  MlirOperation x = mlirBlockIsNull(body) ? (MlirOperation){NULL} : mlirBlockGetFirstOperation(body);
  while (!mlirOperationIsNull(x) && !ir_is(x, "memref.load"))
    x = mlirOperationGetNextInBlock(x);
  return !mlirOperationIsNull(x);
}

bool tiled_is_movement(const struct tiled_op *t) {
  return t->is_copy || is_gather(t->op, t->n_inputs) || t->kind == SK_TRANSPOSE || t->kind == SK_BROADCAST ||
         t->kind == SK_MATMUL || ir_is(t->op, "linalg.copy");
}

int legal_partition_loop(const struct legalize *g, const struct tiled_op *t, int o) {
  MlirValue v = mlirOperationGetOperand(t->op, o);
  struct access a;

  if (!memrefs_is_on_chip(v) || t->operand_rank[o] == 0)
    return -2;
  if (!access_read(v, &a))
    return t->loop[o][0];
  const struct physical *b = legal_find(g, a.root);
  for (int k = 0; k < a.view_rank; k++)
    if (a.dim[k] == (b ? b->partition : 0))
      return t->loop[o][k];
  return -1;
}
