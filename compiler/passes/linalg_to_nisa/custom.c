/* custom: replaces the calls of custom ops and of NKI kernels by their code.
 *
 *     %y = func.call @__custom_op__f(%x)      ==>      the instructions of f, on %x; %y is the result of f
 *
 * The code of an NKI kernel is a function that returns its results; its instructions keep their places, which are lines of
 * the NKI kernel, and get those of the call in addition.  An array that the code writes, or that it needs without gaps, is
 * copied before.
 *
 * A custom op is a function with a body of NISA text, in the module's nkipy.custom_op_bodies.  There are two styles:
 * a function that returns its results, and one with the outputs as its last arguments; for those, new buffers are
 * allocated.  Arguments are in DRAM.  The caller's buffer may have other strides than the text declares, because
 * accesses count elements by dimension.  The text is parsed once for each call, so that its operations can be moved
 * to the call; they get the location of the call.
 */
#include <assert.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "ir/internal.h"
#include "nisa/parse.h"
#include "passes/lib/edit.h"
#include "passes/linalg_to_nisa/linalg_to_nisa.h"

/* ---- the text ---------------------------------------------------------------------------------------------------- */

static MlirStringRef callee_of(MlirOperation call) {
  return mlirFlatSymbolRefAttrGetValue(ir_attr(call, "callee"));
}

static MlirAttribute code_of(MlirOperation call, MlirAttribute codes) {
  if (mlirAttributeIsNull(codes) || !mlirAttributeIsADictionary(codes))
    return mlirAttributeGetNull();
  return mlirDictionaryAttrGetElementByName(codes, callee_of(call));
}

bool ln_has_code(const struct ir *ir, MlirOperation call, MlirAttribute codes) {
  return ir_is(call, "func.call") && (!mlirAttributeIsNull(code_of(call, codes)) || ir_has_native(ir, callee_of(call)));
}

/* Returns the body of the first function of the module that has one. */
static MlirBlock body_of(MlirModule m) {
  MlirOperation f = mlirBlockGetFirstOperation(mlirModuleGetBody(m));
  for (; !mlirOperationIsNull(f); f = mlirOperationGetNextInBlock(f)) {
    MlirBlock b = ir_is(f, "func.func") ? ir_body(f) : (MlirBlock){NULL};
    if (!mlirBlockIsNull(b))
      return b;
  }
  return (MlirBlock){NULL};
}

/* ---- one call ---------------------------------------------------------------------------------------------------- */

static bool is_same_array(MlirType x, MlirType y) {
  if (!mlirTypeIsAMemRef(x) || !mlirTypeIsAMemRef(y) || mlirShapedTypeGetRank(x) != mlirShapedTypeGetRank(y) ||
      !mlirTypeEqual(mlirShapedTypeGetElementType(x), mlirShapedTypeGetElementType(y)))
    return false;
  for (intptr_t d = 0; d < mlirShapedTypeGetRank(x); d++)
    if (mlirShapedTypeGetDimSize(x, d) != mlirShapedTypeGetDimSize(y, d))
      return false;
  return true;
}

/* Allocates a buffer for an output: the array that t describes, in t's memory. */
static MlirValue new_output(MlirOperation call, MlirType t) {
  int64_t dims[IR_MEMREF_RANK_MAX];
  const intptr_t rank = mlirShapedTypeGetRank(t);
  assert(rank <= IR_MEMREF_RANK_MAX);
  for (intptr_t d = 0; d < rank; d++)
    dims[d] = mlirShapedTypeGetDimSize(t, d);
  MlirType packed =
      mlirMemRefTypeContiguousGet(mlirShapedTypeGetElementType(t), rank, dims, mlirMemRefTypeGetMemorySpace(t));
  MlirOperation made = nisa_create_alloc(mlirOperationGetLocation(call), packed, 64);
  mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(call), call, made);
  return mlirOperationGetResult(made, 0);
}

struct placing {
  MlirLocation call;
  bool keeps_own; /* the code's own locations are places of the user */
};

/* Gives an operation of the code the location of the call: after its own places, without their ids, which are those of
 * another stage. */
static MlirWalkResult set_place(MlirOperation op, void *user) {
  const struct placing *p = user;
  MlirLocation own = mlirOperationGetLocation(op);
  if (!p->keeps_own || !mlirLocationIsAName(own)) {
    mlirOperationSetLocation(op, p->call);
    return MlirWalkResultAdvance;
  }
  const MlirLocation both[] = {mlirLocationNameGetChildLoc(own), p->call};
  mlirOperationSetLocation(op, mlirLocationFusedGet(mlirOperationGetContext(op), 2, both, (MlirAttribute){NULL}));
  return MlirWalkResultAdvance;
}

static void move_before(MlirOperation call, MlirBlock body, bool keeps_places) {
  struct placing placing = {mlirOperationGetLocation(call), keeps_places};
  MlirOperation end = mlirBlockGetTerminator(body), op = mlirBlockGetFirstOperation(body), next;
  for (; !mlirOperationEqual(op, end); op = next) {
    next = mlirOperationGetNextInBlock(op);
    mlirOperationRemoveFromParent(op);
    mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(call), call, op);
    mlirOperationWalk(op, set_place, &placing, MlirWalkPreOrder);
  }
}

/* All elements of a buffer in HBM. */
static struct nisa_access all_of(MlirValue buffer) {
  MlirType t = mlirValueGetType(buffer);
  MlirContext ctx = mlirTypeGetContext(t);
  const int rank = (int)mlirShapedTypeGetRank(t), extra = rank < 2 ? 2 - rank : 0;
  struct nisa_access x = {.base = buffer, .n_dims = rank + extra, .par_dims = 1, .tile = {1, 1}};
  MlirAffineExpr result[IR_MEMREF_RANK_MAX];
  for (int d = 0; d < rank; d++) {
    x.tile[d + extra] = mlirShapedTypeGetDimSize(t, d);
    result[d] = mlirAffineDimExprGet(ctx, d + extra);
  }
  x.map = mlirAffineMapGet(ctx, x.n_dims, 0, rank, result);
  return x;
}

/* True if only instructions use the argument: they take a buffer of any strides. */
static bool is_used_by_instructions(MlirValue arg) {
  for (MlirOpOperand u = mlirValueGetFirstUse(arg); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
    if (!ir_is_of(mlirOpOperandGetOwner(u), "nisa."))
      return false;
  return true;
}

/* Returns what the code of an NKI kernel uses for operand k of the call: the operand, or a copy of it. */
static MlirValue operand_for(MlirOperation call, intptr_t k, MlirValue arg, bool is_written) {
  MlirValue given = mlirOperationGetOperand(call, k);
  MlirType has = mlirValueGetType(arg);
  if (!is_written && (mlirTypeEqual(mlirValueGetType(given), has) || is_used_by_instructions(arg)))
    return given;
  MlirValue copy = new_output(call, has);
  const struct nisa_instr in = {
      .def = nisa_op_def(NISA_DMA_COPY), .engine = NISA_ENGINE_DMA, .operand = {all_of(copy), all_of(given)}};
  mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(call), call,
                                      nisa_create(&in, mlirOperationGetLocation(call), 0, NULL));
  return copy;
}

/* is_written: the arguments that an NKI kernel writes; NULL: the code is a custom op's. */
static enum status splice(struct pass_run *run, MlirOperation call, MlirBlock body, const bool *is_written) {
  const intptr_t n_in = mlirOperationGetNumOperands(call), n_out = mlirOperationGetNumResults(call);
  const intptr_t n_args = mlirBlockGetNumArguments(body);
  MlirOperation end = mlirBlockGetTerminator(body);
  const bool returns = mlirOperationGetNumOperands(end) > 0;
  MlirStringRef name = callee_of(call);

  if (n_args != (returns ? n_in : n_in + n_out) || (returns && mlirOperationGetNumOperands(end) != n_out))
    return pass_fail(run, call, "the code of %.*s takes or gives another number of arrays", (int)name.length,
                     name.data);
  for (intptr_t k = 0; k < n_in + n_out; k++) {
    MlirType want = k < n_in ? mlirValueGetType(mlirOperationGetOperand(call, k))
                             : mlirValueGetType(mlirOperationGetResult(call, k - n_in));
    MlirType has =
        mlirValueGetType(k < n_args ? mlirBlockGetArgument(body, k) : mlirOperationGetOperand(end, k - n_in));
    if (!is_same_array(want, has))
      return pass_fail(run, call, "the code of %.*s has another shape or type for its array %d", (int)name.length,
                       name.data, (int)k);
  }
  for (intptr_t k = 0; k < n_args; k++) {
    MlirValue arg = mlirBlockGetArgument(body, k);
    MlirValue by = k < n_in && is_written ? operand_for(call, k, arg, is_written[k])
                   : k < n_in             ? mlirOperationGetOperand(call, k)
                                          : new_output(call, mlirValueGetType(arg));
    mlirValueReplaceAllUsesOfWith(arg, by);
    if (k >= n_in)
      mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(call, k - n_in), by);
  }
  move_before(call, body, is_written);
  for (intptr_t k = 0; returns && k < n_out; k++)
    mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(call, k), mlirOperationGetOperand(end, k));
  return ST_OK;
}

/* Moves the diagnostics from `first` on to the location of the call, because the text is not a file of the user. */
static void place_errors(struct pass_run *run, int first, MlirOperation call, const char *name) {
  for (int k = first; k < run->ds->n; k++) {
    struct diag *d = &run->ds->v[k];
    d->message = d->loc ? arena_printf(run->arena, "the code of %s, line %d: %s", name, d->loc->range.line, d->message)
                        : arena_printf(run->arena, "the code of %s: %s", name, d->message);
    d->loc = ir_first_place(run->arena, mlirOperationGetLocation(call));
  }
}

/* Replaces the call of an NKI kernel by its instructions. */
static enum status inline_native(struct pass_run *run, MlirOperation call) {
  bool *is_written = arena_new_array(run->arena, bool, (size_t)mlirOperationGetNumOperands(call));
  const struct ir_native *native = run->ir->native;
  MlirModule m;
  enum status st = native->make(native, run->ir, callee_of(call), is_written, run->ds, &m);
  if (st)
    return st;
  st = splice(run, call, body_of(m), is_written);
  if (!st)
    mlirOperationDestroy(call);
  mlirModuleDestroy(m);
  return st;
}

static enum status inline_call(struct pass_run *run, MlirOperation call, MlirAttribute codes) {
  if (ir_has_native(run->ir, callee_of(call)))
    return inline_native(run, call);
  MlirStringRef name = callee_of(call), text = mlirStringAttrGetValue(code_of(call, codes));
  const char *file = arena_strndup(run->arena, name.data, name.length);
  const int first = run->ds->n;
  MlirModule m;

  enum status st = nisa_parse(run->ir, text.data, text.length, file, run->arena, run->ds, &m);
  if (st) {
    place_errors(run, first, call, file);
    return st;
  }
  MlirBlock body = body_of(m);
  st = mlirBlockIsNull(body) || !mlirBlockIsNull(mlirBlockGetNextInRegion(body))
           ? pass_fail(run, call, "the code of %s is not a function of one block", file)
           : splice(run, call, body, NULL);
  if (!st)
    mlirOperationDestroy(call);
  mlirModuleDestroy(m);
  return st;
}

/* ---- the module -------------------------------------------------------------------------------------------------- */

enum status ln_inline_custom(struct pass_run *run, MlirAttribute codes) {
  struct ir_ops calls = ir_collect_named(run->arena, run->module, "func.call");
  struct ir_ops functions = ir_collect_named(run->arena, run->module, "func.func");
  enum status st = ST_OK;

  for (int k = 0; !st && k < calls.n; k++)
    st = inline_call(run, calls.v[k], codes);
  /* the strides of a returned buffer may have changed */
  for (int k = 0; !st && calls.n && k < functions.n; k++)
    if (!mlirBlockIsNull(ir_body(functions.v[k])))
      edit_retype_function(run, functions.v[k]);
  return st;
}
