/* canonicalize_reshape: reshapes become views that the machine can address; each result gets its own buffer.
 *
 * 1. memref.reshape, which takes its shape from memory, becomes collapse_shape to one dimension and expand_shape.
 *
 * 2. A view that splits or merges the partition dimension of an on-chip buffer would need data from other partitions,
 *    so it is copied to its own buffer:
 *
 *        %v = memref.expand_shape %b [[0, 1], [2]]          %v = memref.expand_shape %b [[0, 1], [2]]
 *             : 128x64, 3 into 2x64x64, 3             ==>   %c = memref.alloc() : 2x64x64, 3
 *        linalg.exp ins(%v)                                 memref.copy %v, %c
 *                                                           linalg.exp ins(%c)
 *
 *    This is done only if the view is read after the last write to %b.  Otherwise the view stays, and legalize-layout
 *    moves the whole buffer to HBM.  In HBM, and among the free dimensions, a reshape moves no data.
 *
 * 3. Each value that a function returns gets its own buffer: a view of an argument, an argument, or a buffer that is
 *    returned twice is copied first.  An argument marked as the output (nkipy.alias) is returned as it is.
 *
 * Linear in uses.
 */
#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "passes/lib/buffers.h"
#include "passes/lib/edit.h"
#include "passes/lib/layout.h"
#include "passes/lib/memrefs.h"

/* ---- memref.reshape -------------------------------------------------------------------------------------------- */

static enum status unfold_reshape(struct pass_run *run, MlirOperation op) {
  MlirValue v = mlirOperationGetOperand(op, 0), result = mlirOperationGetResult(op, 0);
  MlirOperation shape = ir_defining_op(mlirOperationGetOperand(op, 1));
  int64_t from[IR_MEMREF_RANK_MAX], to[IR_MEMREF_RANK_MAX];
  const int n = ir_shape(v, IR_MEMREF_RANK_MAX, from), m = ir_shape(result, IR_MEMREF_RANK_MAX, to);
  struct ir_builder b = edit_before(run, op);

  if (!mlirShapedTypeHasStaticShape(mlirValueGetType(v)) || !mlirShapedTypeHasStaticShape(mlirValueGetType(result)))
    return pass_fail(run, op, "a reshape of a buffer whose extents are not known");
  if (n != 1)
    v = memrefs_collapse(&b, v, n ? 1 : 0, &n);
  if (n == 0)
    v = memrefs_expand(&b, v, (int[]){0}, 1, (int64_t[]){1});
  if (m != 1)
    v = m ? memrefs_expand(&b, v, &m, m, to) : memrefs_collapse(&b, v, 0, NULL);
  if (!mlirTypeEqual(mlirValueGetType(result), mlirValueGetType(v)) && !memrefs_can_retype(result, mlirValueGetType(v)))
    return pass_fail(run, op, "a reshape whose result is handed on by a loop or a call");
  mlirValueReplaceAllUsesOfWith(result, v);
  memrefs_retype_views(v);
  mlirOperationDestroy(op);
  if (!mlirOperationIsNull(shape) && ir_is(shape, "memref.get_global") && !ir_is_used(mlirOperationGetResult(shape, 0)))
    mlirOperationDestroy(shape);
  return ST_OK;
}

/* ---- views across partitions ----------------------------------------------------------------------------------- */

/* True if the first group has several dimensions longer than 1: the partitions are split or merged. */
static bool crosses_partitions(MlirOperation view) {
  MlirValue v = mlirOperationGetOperand(view, 0), result = mlirOperationGetResult(view, 0);
  MlirAttribute groups = ir_attr(view, "reassociation");
  MlirType fine = mlirValueGetType(ir_is(view, "memref.expand_shape") ? result : v);
  int n_long = 0;

  if (mlirArrayAttrGetNumElements(groups) == 0)
    return false;
  MlirAttribute first = mlirArrayAttrGetElement(groups, 0);
  for (intptr_t d = 0; d < mlirArrayAttrGetNumElements(first); d++)
    n_long += mlirShapedTypeGetDimSize(fine, d) != 1;
  return n_long > 1;
}

/* True if one of the reshapes between the buffer and this view crosses partitions. */
static bool chain_crosses(MlirOperation view) {
  while (!mlirOperationIsNull(view) && buffer_is_view(view)) {
    if (!ir_is(view, "memref.subview") && !ir_is(view, "memref.cast") && crosses_partitions(view))
      return true;
    view = ir_defining_op(mlirOperationGetOperand(view, 0));
  }
  return false;
}

/* True if an operation that is neither a view nor an annotation uses v. */
static bool has_data_user(MlirValue v) {
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation op = mlirOpOperandGetOwner(u);
    if (!buffer_is_view(op) && !layout_is_annotation(op))
      return true;
  }
  return false;
}

/* True if the view is only read and nothing writes its buffer after the view. */
static bool is_final(struct pass_run *run, MlirOperation view) {
  MlirBlock block = mlirOperationGetBlock(view);
  struct buffer_uses own = buffer_find_uses(run->arena, mlirOperationGetResult(view, 0));
  struct buffer_uses all = buffer_find_uses(run->arena, buffer_root(mlirOperationGetOperand(view, 0)));

  for (int k = 0; k < own.n; k++)
    if (own.v[k].access & BUFFER_WRITES)
      return false;
  for (int k = 0; k < all.n; k++) {
    MlirOperation here = ir_ancestor_in(all.v[k].op, block);
    if ((all.v[k].access & BUFFER_WRITES) && (mlirOperationIsNull(here) || !buffer_is_before(here, view)))
      return false;
  }
  return own.n > 0;
}

static void give_buffer(struct pass_run *run, MlirOperation view) {
  MlirValue v = mlirOperationGetResult(view, 0);
  int64_t dims[IR_MEMREF_RANK_MAX];
  const int rank = ir_shape(v, IR_MEMREF_RANK_MAX, dims);
  struct ir_builder b = edit_after(run, view);
  MlirType t = memrefs_type(run->ir->ctx, memrefs_element(v), rank, dims, memrefs_space(v));

  if (!memrefs_can_retype(v, t))
    return;
  MlirValue own = memrefs_alloc(&b, t);
  mlirValueReplaceAllUsesOfWith(v, own);
  memrefs_retype_views(own);
  memrefs_copy(&b, v, own);
  struct remark *r =
      pass_remark(run, view, RULE_RESHAPE_BUFFER, "a reshape across partitions gets a buffer of its own");
  remark_reject(r, "a view", "it cannot move data to another partition");
}

static bool is_on_chip_reshape(MlirOperation op, void *user) {
  (void)user;
  return (ir_is(op, "memref.expand_shape") || ir_is(op, "memref.collapse_shape")) &&
         memrefs_is_on_chip(mlirOperationGetOperand(op, 0));
}

/* ---- results --------------------------------------------------------------------------------------------------- */

/* True if nkipy.alias says that result k is this argument. */
static bool is_alias(MlirOperation function, MlirValue argument, intptr_t k) {
  MlirAttribute all = ir_attr(function, "arg_attrs");
  const intptr_t n = mlirBlockArgumentGetArgNumber(argument);

  if (mlirAttributeIsNull(all) || n >= mlirArrayAttrGetNumElements(all))
    return false;
  MlirAttribute a = mlirDictionaryAttrGetElementByName(mlirArrayAttrGetElement(all, n), ir_str("nkipy.alias"));
  return !mlirAttributeIsNull(a) && mlirAttributeIsAInteger(a) && mlirIntegerAttrGetValueInt(a) == k;
}

/* True if operand k of the return is a buffer of its own or an argument marked as this output, and no earlier operand
 * is the same buffer. */
static bool is_own_buffer(MlirOperation function, MlirOperation ret, intptr_t k) {
  MlirValue v = mlirOperationGetOperand(ret, k), root = buffer_root(v);

  for (intptr_t j = 0; j < k; j++)
    if (mlirValueEqual(buffer_root(mlirOperationGetOperand(ret, j)), root))
      return false;
  if (mlirValueIsABlockArgument(root))
    return mlirValueEqual(v, root) && is_alias(function, root, k);
  return ir_is(ir_defining_op(root), "memref.alloc") || !ir_is(ir_defining_op(root), "memref.get_global");
}

static void return_own_buffers(struct pass_run *run, MlirOperation ret) {
  MlirOperation function = mlirOperationGetParentOperation(ret);
  MlirType was = mlirTypeAttrGetValue(ir_attr(function, "function_type"));
  const intptr_t n = mlirOperationGetNumOperands(ret), n_in = mlirFunctionTypeGetNumInputs(was);
  MlirType *in = arena_new_array(run->arena, MlirType, (size_t)n_in + 1);
  MlirType *out = arena_new_array(run->arena, MlirType, (size_t)n + 1);

  for (intptr_t k = 0; k < n; k++) {
    MlirValue v = mlirOperationGetOperand(ret, k);
    int64_t dims[IR_MEMREF_RANK_MAX];
    if (mlirTypeIsAMemRef(mlirValueGetType(v)) && !is_own_buffer(function, ret, k)) {
      struct ir_builder b = edit_before(run, ret);
      const int rank = ir_shape(v, IR_MEMREF_RANK_MAX, dims);
      MlirValue own = memrefs_alloc(&b, memrefs_type(run->ir->ctx, memrefs_element(v), rank, dims, memrefs_space(v)));
      memrefs_copy(&b, v, own);
      mlirOperationSetOperand(ret, k, own);
      pass_remark(run, ret, RULE_RESULT_BUFFER, "result %d is copied to a buffer of its own", (int)k);
    }
    out[k] = mlirValueGetType(mlirOperationGetOperand(ret, k));
  }
  for (intptr_t k = 0; k < n_in; k++)
    in[k] = mlirFunctionTypeGetInput(was, k);
  MlirType now = mlirFunctionTypeGet(run->ir->ctx, n_in, in, n, out);
  if (!mlirTypeEqual(was, now))
    mlirOperationSetInherentAttributeByName(function, ir_str("function_type"), mlirTypeAttrGet(now));
}

/* ---- the pass -------------------------------------------------------------------------------------------------- */

static enum status run_pass(struct pass_run *run) {
  struct ir_ops reshapes = ir_collect_named(run->arena, run->module, "memref.reshape");
  enum status st = ST_OK;

  for (int k = 0; !st && k < reshapes.n; k++) {
    pass_step(run, reshapes.v[k], "unfold-reshape");
    st = unfold_reshape(run, reshapes.v[k]);
  }
  if (st)
    return st;
  struct ir_ops views = ir_collect(run->arena, run->module, is_on_chip_reshape, NULL);
  for (int k = 0; k < views.n; k++)
    if (has_data_user(mlirOperationGetResult(views.v[k], 0)) && chain_crosses(views.v[k]) &&
        is_final(run, views.v[k])) {
      pass_step(run, views.v[k], "copy-reshaped");
      give_buffer(run, views.v[k]);
    }
  struct ir_ops returns = ir_collect_named(run->arena, run->module, "func.return");
  for (int k = 0; k < returns.n; k++) {
    pass_step(run, returns.v[k], "return-own-buffer");
    return_own_buffers(run, returns.v[k]);
  }
  return ST_OK;
}

const struct pass_def canonicalize_reshape = {
    .name = "canonicalize-reshape",
    .run = run_pass,
};
