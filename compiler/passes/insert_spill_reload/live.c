/* live: computes the lifetimes of buffers and how much memory they take at once.  See insert_spill_reload.h. */
#include <assert.h>
#include <string.h>

#include "mlir-c/BuiltinTypes.h"

#include "base/array.h"
#include "passes/lib/buffers.h"
#include "passes/insert_spill_reload/insert_spill_reload.h"
#include "passes/lib/memrefs.h"

int64_t spill_bytes(MlirValue v) {
  int64_t dims[IR_MEMREF_RANK_MAX], bytes = memrefs_bits(memrefs_element(v)) / 8;
  const int rank = ir_shape(v, IR_MEMREF_RANK_MAX, dims);

  for (int d = 1; d < rank; d++)
    bytes *= dims[d];
  return bytes;
}

bool spill_is_sbuf_alloc(MlirOperation op) {
  return ir_is(op, "memref.alloc") && memrefs_space(mlirOperationGetResult(op, 0)) == MEM_SBUF &&
         mlirShapedTypeHasStaticShape(mlirValueGetType(mlirOperationGetResult(op, 0)));
}

MlirOperation *spill_operations(struct arena *a, MlirBlock block, int *n) {
  struct ir_ops ops = {0};
  for (MlirOperation op = mlirBlockGetFirstOperation(block); !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op))
    array_push(a, &ops, op);
  *n = ops.n;
  return ops.v;
}

int spill_position(int n, MlirOperation const *ops, MlirOperation op) {
  int low = 0;
  assert(n > 0);
  while (n - low > 1) {
    const int middle = low + (n - low) / 2;
    if (buffer_is_before(op, ops[middle]))
      n = middle;
    else
      low = middle;
  }
  return low;
}

bool spill_is_handed_on(MlirOperation op) {
  return ir_is(op, "scf.yield") || ir_is(op, "scf.condition") || ir_is(op, "func.return") || ir_is(op, "func.call");
}

/* Returns the last operation of the block that uses v, a view of it or a loop-carried value that it becomes; `last`
 * if there is none after it. */
static MlirOperation last_user(MlirValue v, MlirBlock block, MlirOperation last) {
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation op = mlirOpOperandGetOwner(u), here = ir_ancestor_in(op, block);
    MlirValue next = buffer_passed_on(op, mlirOpOperandGetOperandNumber(u));
    if (!mlirOperationIsNull(here) && buffer_is_before(last, here))
      last = here;
    if (!mlirValueIsNull(next))
      last = last_user(next, block, last);
  }
  return last;
}

int64_t spill_block_peak(struct arena *a, MlirBlock block) {
  int64_t peak = 0, live = 0;
  int n;
  MlirOperation *ops = spill_operations(a, block, &n);
  int64_t *ends = arena_new_array(a, int64_t, (size_t)n + 1);

  for (int k = 0; k < n; k++)
    ends[k] = 0;
  for (int k = 0; k < n; k++) {
    if (spill_is_sbuf_alloc(ops[k])) {
      MlirValue v = mlirOperationGetResult(ops[k], 0);
      ends[spill_position(n, ops, last_user(v, block, ops[k]))] += spill_bytes(v);
      live += spill_bytes(v);
    }
    const int64_t here = live + spill_peak(a, ops[k]);
    peak = here > peak ? here : peak;
    live -= ends[k];
    assert(live >= 0);
  }
  return peak;
}

int64_t spill_peak(struct arena *a, MlirOperation op) {
  int64_t peak = 0;
  for (intptr_t r = 0; r < mlirOperationGetNumRegions(op); r++)
    for (MlirBlock b = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, r)); !mlirBlockIsNull(b);
         b = mlirBlockGetNextInRegion(b)) {
      const int64_t here = spill_block_peak(a, b);
      peak = here > peak ? here : peak;
    }
  return peak;
}
