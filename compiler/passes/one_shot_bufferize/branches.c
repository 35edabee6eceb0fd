/* branches: a value that a branch computes is in a buffer that is known before the branch.
 *
 * Upstream lets each branch of an scf.if yield a buffer of its own, so that data decides where the result is.  An engine
 * has no such pointers: its accesses are affine.  So the result gets a buffer, and each branch writes it:
 *
 *     %r = scf.if %c -> memref { … yield %x } else { … yield %y }
 *       ==>  %r = memref.alloc; scf.if %c { … memref.copy %x, %r } else { … memref.copy %y, %r }
 *
 * A result that both branches compute in place, in the same buffer, is that buffer.
 */
#include "mlir-c/BuiltinTypes.h"

#include "passes/lib/edit.h"
#include "passes/lib/memrefs.h"
#include "passes/one_shot_bufferize/loops.h"

enum { BRANCHES = 2 };

static MlirOperation yield_of(MlirOperation branch, int k) {
  return mlirBlockGetTerminator(mlirRegionGetFirstBlock(mlirOperationGetRegion(branch, k)));
}

static MlirValue without_casts(MlirValue v) {
  for (MlirOperation def = ir_defining_op(v); !mlirOperationIsNull(def) && ir_is(def, "memref.cast");
       def = ir_defining_op(v))
    v = mlirOperationGetOperand(def, 0);
  return v;
}

/* A new buffer for result k of the branch, which both regions write. */
static MlirValue write_to_new(struct pass_run *run, MlirOperation branch, intptr_t k) {
  MlirType t = mlirValueGetType(mlirOperationGetResult(branch, k));
  int64_t dims[STRUCTURED_LOOPS_MAX];
  const intptr_t rank = mlirShapedTypeGetRank(t);
  for (intptr_t d = 0; d < rank; d++)
    dims[d] = mlirShapedTypeGetDimSize(t, d);
  struct ir_builder b = edit_before(run, branch);
  MlirValue buffer = memrefs_alloc(
      &b, memrefs_type(mlirTypeGetContext(t), mlirShapedTypeGetElementType(t), (int)rank, dims, MEM_NONE));
  for (int r = 0; r < BRANCHES; r++) {
    MlirOperation yield = yield_of(branch, r);
    struct ir_builder inside = edit_before(run, yield);
    memrefs_copy(&inside, mlirOperationGetOperand(yield, k), buffer);
  }
  return buffer;
}

static MlirValue buffer_of(struct pass_run *run, MlirOperation branch, intptr_t k) {
  MlirValue first = without_casts(mlirOperationGetOperand(yield_of(branch, 0), k));
  MlirValue second = without_casts(mlirOperationGetOperand(yield_of(branch, 1), k));
  return mlirValueEqual(first, second) ? first : write_to_new(run, branch, k);
}

static bool is_buffer(MlirValue v) {
  MlirType t = mlirValueGetType(v);
  return mlirTypeIsAMemRef(t) && mlirShapedTypeHasStaticShape(t) && mlirShapedTypeGetRank(t) <= STRUCTURED_LOOPS_MAX;
}

/* Replaces the branch by one without the results that are buffers. */
static void drop_results(struct pass_run *run, MlirOperation branch) {
  const intptr_t n = mlirOperationGetNumResults(branch);
  MlirValue *kept[BRANCHES], condition = mlirOperationGetOperand(branch, 0);
  MlirType *types = arena_new_array(run->arena, MlirType, (size_t)n + 1);
  intptr_t n_kept = 0;
  for (int r = 0; r < BRANCHES; r++)
    kept[r] = arena_new_array(run->arena, MlirValue, (size_t)n + 1);
  for (intptr_t k = 0; k < n; k++) {
    if (is_buffer(mlirOperationGetResult(branch, k)))
      continue;
    types[n_kept] = mlirValueGetType(mlirOperationGetResult(branch, k));
    for (int r = 0; r < BRANCHES; r++)
      kept[r][n_kept] = mlirOperationGetOperand(yield_of(branch, r), k);
    n_kept++;
  }
  struct ir_builder b = edit_before(run, branch);
  MlirRegion regions[BRANCHES];
  for (int r = 0; r < BRANCHES; r++) {
    MlirOperation yield = yield_of(branch, r);
    struct ir_builder inside = edit_before(run, yield);
    ir_op0(&inside, "scf.yield", (int)n_kept, kept[r]);
    mlirOperationDestroy(yield);
    regions[r] = mlirRegionCreate();
    mlirRegionTakeBody(regions[r], mlirOperationGetRegion(branch, r));
  }
  MlirOperation new = ir_create(&b, &(struct ir_parts){.name = "scf.if",
                                                       .n_operands = 1,
                                                       .operands = &condition,
                                                       .n_results = n_kept,
                                                       .results = types,
                                                       .n_regions = BRANCHES,
                                                       .regions = regions});
  for (intptr_t k = 0, at = 0; k < n; k++)
    if (!is_buffer(mlirOperationGetResult(branch, k)))
      mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(branch, k), mlirOperationGetResult(new, at++));
  mlirOperationDestroy(branch);
}

void bufferize_branches(struct pass_run *run) {
  struct ir_ops branches = ir_collect_named(run->arena, run->module, "scf.if");
  for (int i = branches.n - 1; i >= 0; i--) { /* inner ones first */
    MlirOperation branch = branches.v[i];
    bool has_buffers = false;
    for (intptr_t k = 0; k < mlirOperationGetNumResults(branch); k++) {
      MlirValue result = mlirOperationGetResult(branch, k);
      if (!is_buffer(result))
        continue;
      MlirValue buffer = buffer_of(run, branch, k);
      struct ir_builder b = edit_before(run, branch);
      if (!mlirTypeEqual(mlirValueGetType(buffer), mlirValueGetType(result)))
        buffer = ir_op1(&b, "memref.cast", mlirValueGetType(result), 1, &buffer);
      mlirValueReplaceAllUsesOfWith(result, buffer);
      has_buffers = true;
    }
    if (has_buffers)
      drop_results(run, branch);
  }
}
