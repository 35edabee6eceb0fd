/* accumulator: see accumulator.h. */
#include "passes/knob_driven_tiling/accumulator.h"

#include <assert.h>

#include "base/memory.h"
#include "ir/structured.h"
#include "ir/build.h"
#include "passes/lib/edit.h"
#include "passes/lib/layout.h"

static bool is_zero_fill(MlirOperation op) {
  return ir_is(op, "linalg.fill") && ir_is_zero(mlirOperationGetOperand(op, 0));
}

/* True if one offset of the slice is `counter`, and the slice has one element there. */
static bool is_own_slice(MlirOperation slice, MlirValue counter, int64_t first_offset_operand) {
  MlirAttribute offsets = ir_attr(slice, "static_offsets"), sizes = ir_attr(slice, "static_sizes");
  int64_t dynamic = first_offset_operand;

  for (intptr_t d = 0; d < mlirDenseArrayGetNumElements(offsets); d++) {
    if (mlirDenseI64ArrayGetElement(offsets, d) != mlirShapedTypeGetDynamicStrideOrOffset())
      continue;
    MlirValue at = mlirOperationGetOperand(slice, dynamic++);
    if (mlirValueEqual(at, counter) && mlirDenseI64ArrayGetElement(sizes, d) == 1)
      return true;
  }
  return false;
}

/* True for a batch loop of decompose-batch-matmul: the iteration with this counter reads and writes only its own slice
 * of the carried value, also in inner loops.  Then each product starts from the initial value of the loop. */
static bool is_only_sliced(MlirValue carried, MlirValue counter) {
  for (MlirOpOperand u = mlirValueGetFirstUse(carried); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation op = mlirOpOperandGetOwner(u);
    const intptr_t at = mlirOpOperandGetOperandNumber(u);
    bool ok = ir_is(op, "tensor.extract_slice") ? is_own_slice(op, counter, 1)
                                                : ir_is(op, "tensor.insert_slice") && is_own_slice(op, counter, 2);
    if (ir_is(op, "scf.for") && at > 2)
      ok = is_only_sliced(mlirBlockGetArgument(ir_body(op), at - 2), counter);
    if (!ok)
      return false;
  }
  return true;
}

/* True if the result of `user` is read.  A fill that is no longer used does not count. */
static bool is_live(MlirOperation user) {
  return mlirOperationGetNumResults(user) != 1 || ir_is_used(mlirOperationGetResult(user, 0));
}

/* Gives user its own tensor.empty: a shared one may get a buffer that other operations write first. */
static void own_empty(MlirOperation user, intptr_t at, MlirOperation empty) {
  int others = -1;

  for (MlirOpOperand u = mlirValueGetFirstUse(mlirOperationGetResult(empty, 0)); !mlirOpOperandIsNull(u);
       u = mlirOpOperandGetNextUse(u))
    others += mlirOperationEqual(mlirOpOperandGetOwner(u), user) || is_live(mlirOpOperandGetOwner(u));
  if (others <= 0)
    return;
  MlirOperation own = mlirOperationClone(empty);
  mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(user), user, own);
  mlirOperationSetOperand(user, at, mlirOperationGetResult(own, 0));
}

/* True if operand `at` of `user` is undefined or can be made so.  A zero fill is bypassed: the operand becomes the
 * tensor that was filled. */
static bool make_undefined(MlirOperation user, intptr_t at) {
  MlirValue v = mlirOperationGetOperand(user, at);

  if (mlirValueIsABlockArgument(v)) {
    MlirOperation loop = mlirBlockGetParentOperation(mlirBlockArgumentGetOwner(v));
    intptr_t n = mlirBlockArgumentGetArgNumber(v);
    return ir_is(loop, "scf.for") && n > 0 &&
           is_only_sliced(v, mlirBlockGetArgument(mlirBlockArgumentGetOwner(v), 0)) && make_undefined(loop, n + 2);
  }
  MlirOperation def = ir_defining_op(v);
  if (ir_is(def, "tensor.empty")) {
    own_empty(user, at, def);
    return true;
  }
  if (ir_is(def, "tensor.extract_slice"))
    return make_undefined(def, 0);
  if (!is_zero_fill(def))
    return false;
  mlirOperationSetOperand(user, at, mlirOperationGetOperand(def, 1));
  return make_undefined(user, at); /* a fill of a fill */
}

/* ---- sums of products -------------------------------------------------------------------------------------------- */

/* The tile of a matmul, [M, N, K]; null if it has none. */
static MlirAttribute tile_of(MlirOperation matmul) {
  for (MlirOpOperand u = mlirValueGetFirstUse(ir_result(matmul)); !mlirOpOperandIsNull(u);
       u = mlirOpOperandGetNextUse(u)) {
    MlirAttribute tile = ir_attr(mlirOpOperandGetOwner(u), "loop_tile_size");
    if (ir_is(mlirOpOperandGetOwner(u), "nkipy.tile_op") && !mlirAttributeIsNull(tile) &&
        mlirAttributeIsADenseI64Array(tile) && mlirDenseArrayGetNumElements(tile) == 3)
      return tile;
  }
  return (MlirAttribute){NULL};
}

static bool have_same_tiles(MlirOperation x, MlirOperation y) {
  MlirAttribute a = tile_of(x), b = tile_of(y);
  return !mlirAttributeIsNull(a) && !mlirAttributeIsNull(b) &&
         mlirDenseI64ArrayGetElement(a, 0) == mlirDenseI64ArrayGetElement(b, 0) &&
         mlirDenseI64ArrayGetElement(a, 1) == mlirDenseI64ArrayGetElement(b, 1);
}

/* The only operation besides annotations that uses v; null if there are several or none. */
static MlirOperation only_user(MlirValue v) {
  MlirOperation user = {NULL};
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation op = mlirOpOperandGetOwner(u);
    if (layout_is_annotation(op))
      continue;
    if (!mlirOperationIsNull(user))
      return (MlirOperation){NULL};
    user = op;
  }
  return user;
}

MlirOperation accumulator_before(MlirOperation matmul) {
  MlirOperation before = ir_defining_op(mlirOperationGetOperand(matmul, 2));
  return !mlirOperationIsNull(before) && ir_is(before, "linalg.matmul") && have_same_tiles(before, matmul) &&
                 mlirBlockEqual(mlirOperationGetBlock(before), mlirOperationGetBlock(matmul)) &&
                 mlirOperationEqual(only_user(ir_result(before)), matmul)
             ? before
             : (MlirOperation){NULL};
}

MlirOperation accumulator_after(MlirOperation matmul) {
  MlirOperation after = only_user(ir_result(matmul));
  return !mlirOperationIsNull(after) && ir_is(after, "linalg.matmul") &&
                 mlirOperationEqual(accumulator_before(after), matmul)
             ? after
             : (MlirOperation){NULL};
}

/* ---- another start ----------------------------------------------------------------------------------------------- */

/* Moves an operation that was just appended to its block after `after`. */
static MlirOperation settle(MlirOperation made, MlirOperation after) {
  mlirOperationMoveAfter(made, after);
  return made;
}

static void annotate_sum(struct ir_builder *b, MlirOperation tile_op, MlirOperation sum, MlirOperation matmul) {
  MlirAttribute tile = ir_attr(tile_op, "loop_tile_size");
  assert(mlirDenseArrayGetNumElements(tile) == 3); /* the caller has checked it */
  int64_t mn[] = {mlirDenseI64ArrayGetElement(tile, 0), mlirDenseI64ArrayGetElement(tile, 1)};
  MlirType i32 = mlirIntegerTypeGet(b->ctx, 32);
  MlirValue total = ir_result(sum), product = ir_result(matmul);
  MlirNamedAttribute loop = ir_named(b, "loop_tile_size", ir_i64_array(b, 2, mn));
  MlirNamedAttribute layout[] = {ir_named(b, "mem_space", mlirIntegerAttrGet(i32, MEM_SBUF)),
                                 ir_named(b, "partition_dim", mlirIntegerAttrGet(i32, 0)),
                                 ir_named(b, "tile_size", ir_i64_array(b, 2, mn))};

  mlirOperationSetOperand(tile_op, 0, product);
  mlirOperationMoveAfter(tile_op, matmul);
  settle(ir_op0_with(b, "nkipy.layout", 1, &product, 3, layout), matmul);
  settle(ir_op0_with(b, "nkipy.tile_op", 1, &total, 1, &loop), sum);
}

void accumulator_start_from_zero(struct pass_run *run, MlirOperation matmul, int64_t *next_id) {
  if (!mlirOperationIsNull(accumulator_before(matmul)) || make_undefined(matmul, 2))
    return;

  MlirValue product = mlirOperationGetResult(matmul, 0), init = mlirOperationGetOperand(matmul, 2);
  MlirType t = mlirValueGetType(product);
  struct ir_builder b = {.ctx = run->ir->ctx,
                         .block = mlirOperationGetBlock(matmul),
                         .loc = mlirOperationGetLocation(matmul),
                         .arena = run->arena};
  MlirOperation tile_op = {NULL};
  for (MlirOpOperand u = mlirValueGetFirstUse(product); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
    if (ir_is(mlirOpOperandGetOwner(u), "nkipy.tile_op"))
      tile_op = mlirOpOperandGetOwner(u);

  MlirValue shell = ir_empty_of(&b, t), to = ir_empty_of(&b, t);
  MlirOperation sum = ir_linalg_named(&b, "linalg.add", 2, (MlirValue[]){init, init}, to, 0, NULL);
  MlirNamedAttribute id = ir_named(&b, "nkipy.op_id", ir_i64_attr(&b, *next_id));
  mlirOperationMoveBefore(ir_defining_op(shell), matmul);
  settle(sum, settle(ir_defining_op(to), matmul));
  mlirValueReplaceAllUsesOfWith(product, ir_result(sum));
  mlirOperationSetOperand(sum, 0, product);
  mlirOperationSetOperand(matmul, 2, shell);
  mlirOperationSetDiscardableAttributeByName(sum, ir_str("nkipy.op_id"), id.attribute);
  (*next_id)++;
  /* layouts between the matmul and the addition must come after the value that they describe */
  for (MlirOpOperand u = mlirValueGetFirstUse(ir_result(sum)); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
    if (ir_is(mlirOpOperandGetOwner(u), "nkipy.layout"))
      settle(mlirOpOperandGetOwner(u), sum);
  if (!mlirOperationIsNull(tile_op))
    annotate_sum(&b, tile_op, sum, matmul);
  struct remark *r = pass_remark(run, matmul, RULE_ZERO_START,
                                 "the accumulator starts from zero; its initial value is added after the product");
  remark_reject(r, "loading the initial value into PSUM", "the first product overwrites it");
}
