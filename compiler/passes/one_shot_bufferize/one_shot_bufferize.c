/* one_shot_bufferize: gives every tensor a buffer.
 *
 * The pass runs upstream's one-shot-bufferize with function boundaries: arguments become memrefs of any strides, and
 * a write is done in place if no operation reads the old value afterwards.  Before and after it, the pass handles:
 *
 *  - Annotations.  Upstream does not know "nkipy.layout"(%t) and would treat it as a reader and writer of %t that
 *    needs a copy.  So the annotation is put on bufferization.to_buffer %t read_only, directly after the definition,
 *    where a read never conflicts with a write.  Afterwards it is on a cast of the buffer and is moved to the buffer.
 *  - Aliases.  Output k of an argument with nkipy.alias = k is written into that argument's buffer: the value is
 *    materialised there at the end of the function, and the function returns the argument.  An output that is the
 *    argument's old value is copied before.  A value that comes from branches (a scatter) cannot be materialised,
 *    because upstream sees a conflict: its buffer is copied afterwards; the copy is removed if it is the argument.
 *  - Loops.  Each value that a loop carries stays in one buffer (loops.c).
 *  - Branches.  The result of an scf.if is in a buffer that is known before it (branches.c).
 *  - Collectives and NKI kernels.  Upstream must assume that a function without a body writes its arguments and
 *    returns views of them.  A collective (linalg/collective.c) does neither, nor does an NKI kernel: linalg-to-nisa
 *    gives it copies of the arguments that it writes.  So during the analysis such a function has a body that reads
 *    the arguments and returns new tensors, and its call returns new, packed buffers.
 *  - Chains of insertions.  Two that begin alike begin with a tensor each, and long ones are written into one buffer
 *    without upstream's analysis (inserts.c).
 *  - Arguments that are read in many places are analysed once (arguments.c).
 *  - Undefined tensors.  Every user of a tensor.empty gets its own, and so its own buffer.
 *
 * A fuse_op that is left means that knob-driven-fusion did not run; that is an error, like everything else that
 * cannot be bufferized: allow-unknown-ops is not used, so that no operation stays on tensors unnoticed.
 */
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "ir/structured.h"
#include "ir/build.h"
#include "passes/lib/carried.h"
#include "passes/lib/edit.h"
#include "passes/lib/memrefs.h"
#include "passes/one_shot_bufferize/arguments.h"
#include "passes/one_shot_bufferize/inserts.h"
#include "passes/one_shot_bufferize/loops.h"
#include "passes/pass.h"
#include "passes/lib/price.h"

/* ---- annotations ------------------------------------------------------------------------------------ */

static bool is_annotation(MlirOperation op, void *user) {
  (void)user;
  return ir_is(op, "nkipy.layout") || ir_is(op, "nkipy.tile_op");
}

/* memref<…, strided<[?, …], offset: ?>>: any buffer can be cast to this type without a copy. */
static MlirType any_strides(MlirType tensor) {
  int64_t dims[STRUCTURED_LOOPS_MAX], strides[STRUCTURED_LOOPS_MAX];
  const intptr_t rank = mlirShapedTypeGetRank(tensor);

  for (intptr_t d = 0; d < rank; d++) {
    dims[d] = mlirShapedTypeGetDimSize(tensor, d);
    strides[d] = mlirShapedTypeGetDynamicStrideOrOffset();
  }
  MlirAttribute layout =
      mlirStridedLayoutAttrGet(mlirTypeGetContext(tensor), mlirShapedTypeGetDynamicStrideOrOffset(), rank, strides);
  return mlirMemRefTypeGet(mlirShapedTypeGetElementType(tensor), rank, dims, layout, mlirAttributeGetNull());
}

MlirValue bufferize_read_only(struct pass_run *run, MlirValue v, MlirOperation at) {
  struct ir_builder b = edit_before(run, at);
  MlirNamedAttribute read_only = ir_named(&b, "read_only", mlirUnitAttrGet(b.ctx));
  return ir_op1_with(&b, "bufferization.to_buffer", any_strides(mlirValueGetType(v)), 1, &v, 1, &read_only);
}

static void put_on_buffer(struct pass_run *run, MlirOperation annotation) {
  MlirValue v = mlirOperationGetOperand(annotation, 0);
  MlirType t = mlirValueGetType(v);

  if (!mlirTypeIsARankedTensor(t) || mlirShapedTypeGetRank(t) > STRUCTURED_LOOPS_MAX)
    return;
  MlirValue made = bufferize_read_only(run, v, annotation);
  MlirOperation op = ir_defining_op(made);
  MlirOperation def = ir_defining_op(v);
  if (mlirOperationIsNull(def))
    mlirOperationMoveBefore(op, mlirBlockGetFirstOperation(mlirBlockArgumentGetOwner(v)));
  else
    mlirOperationMoveAfter(op, def);
  mlirOperationMoveAfter(annotation, op);
  mlirOperationSetOperand(annotation, 0, made);
}

static bool same_attributes(MlirOperation x, MlirOperation y) {
  const intptr_t n = mlirOperationGetNumAttributes(x);

  if (n != mlirOperationGetNumAttributes(y))
    return false;
  for (intptr_t k = 0; k < n; k++) {
    MlirNamedAttribute a = mlirOperationGetAttribute(x, k);
    if (!mlirAttributeEqual(a.attribute, mlirOperationGetAttributeByName(y, mlirIdentifierStr(a.name))))
      return false;
  }
  return true;
}

/* True if the buffer has the same annotation twice: a value and the result that is computed in place in it share a
 * buffer. */
static bool is_repeated(MlirOperation annotation) {
  MlirValue v = mlirOperationGetOperand(annotation, 0);

  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation op = mlirOpOperandGetOwner(u);
    if (!mlirOperationEqual(op, annotation) &&
        mlirIdentifierEqual(mlirOperationGetName(op), mlirOperationGetName(annotation)) &&
        same_attributes(op, annotation))
      return true;
  }
  return false;
}

/* Moves the annotation from the cast that to_buffer has become to the source of the cast. */
static void put_on_alloc(MlirOperation annotation) {
  for (;;) {
    MlirValue v = mlirOperationGetOperand(annotation, 0);
    MlirOperation def = ir_defining_op(v);
    if (mlirOperationIsNull(def) || !ir_is(def, "memref.cast"))
      break;
    mlirOperationSetOperand(annotation, 0, mlirOperationGetOperand(def, 0));
    if (!ir_is_used(v))
      mlirOperationDestroy(def);
  }
  if (is_repeated(annotation))
    mlirOperationDestroy(annotation);
}

/* ---- aliases ---------------------------------------------------------------------------------------- */

static MlirOperation return_of(MlirOperation function) {
  MlirBlock body = ir_body(function);
  return mlirBlockIsNull(body) ? (MlirOperation){NULL} : mlirBlockGetTerminator(body);
}

/* Returns the output that argument k is an alias of, or -1. */
static int64_t alias_of(MlirOperation function, intptr_t k) {
  MlirAttribute attrs = ir_attr(function, "arg_attrs");
  if (mlirAttributeIsNull(attrs) || k >= mlirArrayAttrGetNumElements(attrs))
    return -1;
  MlirAttribute a = mlirDictionaryAttrGetElementByName(mlirArrayAttrGetElement(attrs, k), ir_str("nkipy.alias"));
  return mlirAttributeIsNull(a) ? -1 : mlirIntegerAttrGetValueInt(a);
}

/* Returns the value that v is a view of, as far as operations on tensors show it. */
static MlirValue root_of(MlirValue v) {
  static const char *const views[] = {"tensor.extract_slice", "tensor.expand_shape", "tensor.collapse_shape",
                                      "tensor.cast", "tensor.reshape"};
  for (MlirOperation def; !mlirOperationIsNull(def = ir_defining_op(v));) {
    bool is_view = false;
    for (size_t k = 0; k < sizeof views / sizeof *views; k++)
      is_view |= ir_is(def, views[k]);
    if (!is_view)
      break;
    v = mlirOperationGetOperand(def, 0);
  }
  return v;
}

MlirValue bufferize_copy(struct pass_run *run, MlirOperation op, MlirValue v) {
  struct ir_builder b = edit_before(run, op);
  MlirNamedAttribute segments = ir_segments(&b, 3, (int32_t[]){0, 1, 0});
  return ir_op1_with(&b, "bufferization.alloc_tensor", mlirValueGetType(v), 1, &v, 1, &segments);
}

static void write_in_place(struct pass_run *run, MlirOperation end, MlirValue argument, intptr_t output) {
  MlirValue v = mlirOperationGetOperand(end, output);

  if (mlirValueEqual(v, argument) || bufferize_writes_in_place(v, argument))
    return;
  struct ir_builder b = edit_before(run, end);
  if (!mlirOperationIsNull(ir_defining_op(v)))
    b.loc = mlirOperationGetLocation(ir_defining_op(v));
  MlirValue written =
      ir_op1(&b, "bufferization.materialize_in_destination", mlirValueGetType(argument), 2, (MlirValue[]){v, argument});
  mlirOperationSetOperand(end, output, written);
}

static enum status write_aliases(struct pass_run *run, MlirOperation function) {
  MlirOperation end = return_of(function);
  if (mlirOperationIsNull(end))
    return ST_OK;
  MlirBlock body = mlirOperationGetBlock(end);
  const intptr_t n = mlirBlockGetNumArguments(body), outputs = mlirOperationGetNumOperands(end);

  /* other outputs of such an argument must have its old value: copy it before anything is written */
  for (intptr_t k = 0; k < n; k++)
    for (intptr_t o = 0; alias_of(function, k) >= 0 && o < outputs; o++) {
      MlirValue v = mlirOperationGetOperand(end, o);
      if (alias_of(function, k) != o && mlirTypeIsARankedTensor(mlirValueGetType(v)) &&
          mlirValueEqual(root_of(v), mlirBlockGetArgument(body, k)))
        mlirOperationSetOperand(end, o, bufferize_copy(run, end, v));
    }
  for (intptr_t k = 0; k < n; k++) {
    const int64_t o = alias_of(function, k);
    if (o < 0)
      continue;
    MlirValue argument = mlirBlockGetArgument(body, k);
    if (o >= outputs || !mlirTypeEqual(mlirValueGetType(argument), mlirValueGetType(mlirOperationGetOperand(end, o))))
      return pass_fail(run, function, "argument %d is to be written in place, but output %d is not of its type", (int)k,
                       (int)o);
    write_in_place(run, end, argument, o);
  }
  return ST_OK;
}

/* Handles aliases that could not be materialised, after bufferization. */
static void copy_aliases(struct pass_run *run, MlirOperation function) {
  MlirOperation end = return_of(function);
  if (mlirOperationIsNull(end))
    return;
  MlirBlock body = mlirOperationGetBlock(end);

  for (intptr_t k = 0; k < mlirBlockGetNumArguments(body); k++) {
    const int64_t o = alias_of(function, k);
    MlirValue argument = mlirBlockGetArgument(body, k);
    if (o < 0 || mlirValueEqual(mlirOperationGetOperand(end, o), argument))
      continue;
    struct ir_builder b = edit_before(run, end);
    memrefs_copy(&b, mlirOperationGetOperand(end, o), argument);
    mlirOperationSetOperand(end, o, argument);
    edit_retype_function(run, function);
  }
}

/* ---- functions without a body ----------------------------------------------------------------------- */

/* True for the function of a collective, of a topk (linalg/topk.c) or of an NKI kernel. */
static bool is_outside(MlirOperation op, void *ir) {
  return ir_is(op, "func.func") &&
         (!mlirAttributeIsNull(ir_attr(op, "nkipy.collective")) || !mlirAttributeIsNull(ir_attr(op, "nkipy.topk")) ||
          ir_has_native(ir, mlirStringAttrGetValue(ir_attr(op, "sym_name"))));
}

static bool is_array(MlirType t) {
  return mlirTypeIsARankedTensor(t) && mlirShapedTypeGetRank(t) <= STRUCTURED_LOOPS_MAX;
}

static MlirValue zero(struct ir_builder *b, MlirType element) {
  return ir_constant_of(b, mlirTypeIsAFloat(element) ? mlirFloatAttrDoubleGet(b->ctx, element, 0)
                                                     : mlirIntegerAttrGet(element, 0));
}

/* Adds a body that reads an element of each argument, and returns a linalg.fill of a new tensor for each result. */
static void add_body(struct pass_run *run, MlirOperation function) {
  MlirType t = mlirTypeAttrGetValue(ir_attr(function, "function_type"));
  const intptr_t n_in = mlirFunctionTypeGetNumInputs(t), n_out = mlirFunctionTypeGetNumResults(t);
  MlirType *in = arena_new_array(run->arena, MlirType, (size_t)n_in);
  MlirLocation *locs = arena_new_array(run->arena, MlirLocation, (size_t)n_in);
  MlirValue *out = arena_new_array(run->arena, MlirValue, (size_t)n_out), zeros[STRUCTURED_LOOPS_MAX];
  MlirRegion region = mlirOperationGetRegion(function, 0);
  struct ir_builder b = edit_before(run, function);
  bool ok = mlirBlockIsNull(mlirRegionGetFirstBlock(region));

  for (intptr_t k = 0; k < n_in; k++) {
    in[k] = mlirFunctionTypeGetInput(t, k);
    locs[k] = b.loc;
    ok &= is_array(in[k]);
  }
  for (intptr_t k = 0; k < n_out; k++)
    ok &= is_array(mlirFunctionTypeGetResult(t, k));
  if (!ok)
    return;
  b.block = mlirBlockCreate(n_in, in, locs);
  mlirRegionAppendOwnedBlock(region, b.block);
  for (intptr_t k = 0; k < n_in; k++) {
    const int rank = (int)mlirShapedTypeGetRank(in[k]);
    for (int d = 0; d < rank; d++)
      zeros[d] = ir_index(&b, 0);
    ir_extract(&b, mlirBlockGetArgument(b.block, k), rank, zeros);
  }
  for (intptr_t k = 0; k < n_out; k++) {
    MlirType to = mlirFunctionTypeGetResult(t, k);
    out[k] = ir_fill(&b, zero(&b, mlirShapedTypeGetElementType(to)), ir_empty_of(&b, to));
  }
  ir_op0(&b, "func.return", n_out, out);
}

static void drop_body(MlirOperation function) {
  MlirRegion empty = mlirRegionCreate();
  mlirRegionTakeBody(mlirOperationGetRegion(function, 0), empty);
  mlirRegionDestroy(empty);
}

/* ---- undefined tensors ------------------------------------------------------------------------------ */

/* Gives the buffer the location of the operation that writes it; CSE had left the location of the first of several. */
static void take_place(MlirOperation empty, MlirOperation user) {
  MlirLocation loc = mlirOperationGetLocation(user);
  if (!mlirLocationEqual(loc, mlirLocationUnknownGet(mlirOperationGetContext(user))))
    mlirOperationSetLocation(empty, loc);
}

/* Gives every user of a tensor.empty its own.  If they shared one, they might share one buffer, and the second user
 * would start from the contents that the first one left; the two may also belong into different memories. */
static void unshare(MlirOperation empty) {
  MlirValue v = mlirOperationGetResult(empty, 0);

  for (;;) {
    MlirOpOperand u = mlirValueGetFirstUse(v);
    if (mlirOpOperandIsNull(u))
      return;
    if (mlirOpOperandIsNull(mlirOpOperandGetNextUse(u))) {
      take_place(empty, mlirOpOperandGetOwner(u));
      return;
    }
    MlirOperation own = mlirOperationClone(empty);
    take_place(own, mlirOpOperandGetOwner(u));
    mlirBlockInsertOwnedOperationAfter(mlirOperationGetBlock(empty), empty, own);
    mlirOperationSetOperand(mlirOpOperandGetOwner(u), mlirOpOperandGetOperandNumber(u), mlirOperationGetResult(own, 0));
  }
}

/* ---- the pass --------------------------------------------------------------------------------------- */

static bool writes_value(MlirOperation op, void *user) {
  (void)user;
  return ir_is_of(op, "linalg.") && !ir_is(op, "linalg.yield") && !ir_is(op, "linalg.index");
}

static void remark_buffers(struct pass_run *run, MlirOperation function) {
  const int buffers = ir_collect_named(run->arena, function, "memref.alloc").n,
            copies = ir_collect_named(run->arena, function, "memref.copy").n;
  struct remark *r = pass_remark(run, function, RULE_BUFFERS, "buffers: %d, copies: %d", buffers, copies);
  remark_cost(r, "%s", price_count(run->arena, buffers, "buffer"));
  remark_reject_for(r, "a buffer for each value", NULL,
                    price_count(run->arena, copies + ir_collect(run->arena, function, writes_value, NULL).n, "buffer"),
                    "a value may overwrite an operand that nothing reads later");
}

static enum status run_pass(struct pass_run *run) {
  struct ir_ops fuse = ir_collect_named(run->arena, run->module, "nkipy.fuse_op");
  struct ir_ops loops = ir_collect_named(run->arena, run->module, "scf.while");
  struct ir_ops functions = ir_collect_named(run->arena, run->module, "func.func");
  struct ir_ops annotations = ir_collect(run->arena, run->module, is_annotation, NULL);
  struct ir_ops empties = ir_collect_named(run->arena, run->module, "tensor.empty");
  struct ir_ops outside = ir_collect(run->arena, run->module, is_outside, run->ir);
  enum status st = ST_OK;
  ir_order_uses(run->module);

  for (int k = 0; k < loops.n; k++)
    if (!carried_read(loops.v[k], &(struct carried){.n = 0}))
      return pass_fail(
          run, loops.v[k],
          "not supported on NISA: scf.while: its condition hands on other values than it was given; let the "
          "body compute them");
  if (fuse.n)
    return pass_fail(run, fuse.v[0], "the loops of a fuse group are not fused yet: run knob-driven-fusion");
  for (int k = 0; k < empties.n; k++) {
    pass_step(run, empties.v[k], "own-empty-tensor");
    unshare(empties.v[k]);
  }
  pass_step(run, run->module, "shared-beginnings");
  bufferize_shared_beginnings(run);
  pass_step(run, run->module, "loops-in-place");
  bufferize_loops_in_place(run);
  for (int k = 0; !st && k < functions.n; k++) {
    pass_step(run, functions.v[k], "write-aliases");
    st = write_aliases(run, functions.v[k]);
  }
  pass_step(run, run->module, "long-chains");
  if (!st)
    bufferize_long_chains(run);
  pass_step(run, run->module, "read-arguments");
  for (int k = 0; !st && k < functions.n; k++)
    bufferize_read_arguments(run, functions.v[k]);
  pass_step(run, run->module, "one-shot-bufferize");
  for (int k = annotations.n - 1; !st && k >= 0; k--) /* backwards, because each moves directly after the definition */
    put_on_buffer(run, annotations.v[k]);
  for (int k = 0; k < outside.n; k++)
    add_body(run, outside.v[k]);
  if (!st)
    st = ir_run_pipeline(run->ir, run->module, "builtin.module(one-shot-bufferize{bufferize-function-boundaries})",
                         run->arena, run->ds);
  outside = ir_collect(run->arena, run->module, is_outside, run->ir);
  for (int k = 0; k < outside.n; k++)
    drop_body(outside.v[k]);
  if (st)
    return st;
  pass_step(run, run->module, "branches");
  bufferize_branches(run);
  functions = ir_collect_named(run->arena, run->module, "func.func");
  for (int k = 0; k < functions.n; k++) {
    pass_step(run, functions.v[k], "copy-aliases");
    copy_aliases(run, functions.v[k]);
  }
  annotations = ir_collect(run->arena, run->module, is_annotation, NULL);
  for (int k = 0; k < annotations.n; k++) {
    pass_step(run, annotations.v[k], "annotate-buffer");
    put_on_alloc(annotations.v[k]);
  }
  functions = ir_collect_named(run->arena, run->module, "func.func");
  for (int k = 0; k < functions.n; k++)
    if (!mlirOperationIsNull(return_of(functions.v[k])))
      remark_buffers(run, functions.v[k]);
  return ST_OK;
}

const struct pass_def one_shot_bufferize = {
    .name = "one-shot-bufferize",
    .run = run_pass,
};
