/* check_prepare: prepares a stage's module for the interpreter, and for LLVM.
 *
 * check_clean removes everything that only our passes understand: attributes, operations, memory spaces.
 * check_bufferize runs upstream's pass from tensors to buffers, for a module that the interpreter cannot read as it is.
 * If it cannot read that either, check_lower gives bodies to collectives and lowers to loops and f32 arithmetic with upstream
 * passes; operations for which upstream has no usable lowering become calls; upstream passes lower the rest to LLVM.
 */
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "base/array.h"
#include "driver/check_internal.h"

/* Tensors become buffers, and structured operations become loops.  Floats that LLVM cannot compute with are computed in
 * f32 and rounded after each operation, as NumPy does. */
static const char TENSORS[] =
    "builtin.module(one-shot-bufferize{allow-return-allocs-from-loops bufferize-function-boundaries allow-unknown-ops "
    "function-boundary-type-conversion=identity-layout-map})";
static const char LOOPS[] = "builtin.module(func.func(convert-linalg-to-loops,arith-emulate-unsupported-floats{"
                            "source-types=bf16,f16,f8E4M3,f8E4M3FN,f8E5M2 target-type=f32},"
                            "math-extend-to-supported-types{extra-types=f64 target-type=f32}))";
static const char LLVM[] = "builtin.module(func.func(expand-strided-metadata,lower-affine),convert-scf-to-cf,func.func("
                           "arith-expand{include-bf16}),"
                           "convert-math-to-llvm,convert-math-to-libm,finalize-memref-to-llvm{use-generic-functions},"
                           "convert-arith-to-llvm,convert-index-to-llvm,convert-cf-to-llvm,convert-func-to-llvm,"
                           "reconcile-unrealized-casts)";

/* ---- dropping what is ours -------------------------------------------------------------------------------------- */

/* True for our annotations, for the tiling script in the module, and for the attribute that announces the script.
 * False for the attribute that describes a collective, a function without a body. */
static bool is_ours(MlirStringRef name) {
  if (mlirStringRefEqual(name, ir_str(CHECK_COLLECTIVE)))
    return false;
  return (ir_begins_with(name, "nkipy.") && !mlirStringRefEqual(name, ir_str(INTERP_TOPK))) ||
         ir_begins_with(name, "transform.named_") || ir_begins_with(name, "transform.with_");
}

static MlirType plain_memref(MlirType t) {
  int64_t dims[HLO_RANK_MAX];

  if (!mlirTypeIsAMemRef(t) || mlirAttributeIsNull(mlirMemRefTypeGetMemorySpace(t)))
    return t;
  const intptr_t rank = mlirShapedTypeGetRank(t);
  if (rank > HLO_RANK_MAX)
    return t;
  for (intptr_t k = 0; k < rank; k++)
    dims[k] = mlirShapedTypeGetDimSize(t, k);
  return mlirMemRefTypeGet(mlirShapedTypeGetElementType(t), rank, dims, mlirMemRefTypeGetLayout(t),
                           mlirAttributeGetNull());
}

/* Returns the type of a func.func or of a global, without memory spaces. */
static MlirAttribute plain_type_attr(MlirContext ctx, MlirAttribute attr, struct arena *a) {
  MlirType t = mlirTypeAttrGetValue(attr);

  if (!mlirTypeIsAFunction(t))
    return mlirTypeAttrGet(plain_memref(t));
  const intptr_t n = mlirFunctionTypeGetNumInputs(t), m = mlirFunctionTypeGetNumResults(t);
  MlirType *v = arena_new_array(a, MlirType, (size_t)(n + m));
  for (intptr_t k = 0; k < n; k++)
    v[k] = plain_memref(mlirFunctionTypeGetInput(t, k));
  for (intptr_t k = 0; k < m; k++)
    v[n + k] = plain_memref(mlirFunctionTypeGetResult(t, k));
  return mlirTypeAttrGet(mlirFunctionTypeGet(ctx, n, v, m, v + n));
}

static void plain_values(MlirOperation op) {
  for (intptr_t k = 0; k < mlirOperationGetNumResults(op); k++) {
    MlirValue v = mlirOperationGetResult(op, k);
    mlirValueSetType(v, plain_memref(mlirValueGetType(v)));
  }
  for (intptr_t r = 0; r < mlirOperationGetNumRegions(op); r++)
    for (MlirBlock b = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, r)); !mlirBlockIsNull(b);
         b = mlirBlockGetNextInRegion(b))
      for (intptr_t k = 0; k < mlirBlockGetNumArguments(b); k++) {
        MlirValue v = mlirBlockGetArgument(b, k);
        mlirValueSetType(v, plain_memref(mlirValueGetType(v)));
      }
}

static void plain_attrs(MlirOperation op, struct arena *a) {
  static const char *const types[] = {"function_type", "type"};
  MlirContext ctx = mlirOperationGetContext(op);

  for (intptr_t k = 0; k < mlirOperationGetNumDiscardableAttributes(op);) {
    MlirStringRef name = mlirIdentifierStr(mlirOperationGetDiscardableAttribute(op, k).name);
    if (is_ours(name))
      mlirOperationRemoveDiscardableAttributeByName(op, name); /* the next attribute is then at k */
    else
      k++;
  }
  /* only passes need argument and result attributes */
  mlirOperationRemoveAttributeByName(op, ir_str("arg_attrs"));
  mlirOperationRemoveAttributeByName(op, ir_str("res_attrs"));
  if (ir_is(op, "bufferization.alloc_tensor"))
    mlirOperationRemoveAttributeByName(op, ir_str("memory_space"));
  for (int k = 0; k < 2; k++) {
    MlirAttribute t = mlirOperationGetAttributeByName(op, ir_str(types[k]));
    if (!mlirAttributeIsNull(t) && mlirAttributeIsAType(t))
      mlirOperationSetAttributeByName(op, ir_str(types[k]), plain_type_attr(ctx, t, a));
  }
}

/* Operations in the order in which a walk finds them. */
struct found {
  MlirOperation *v;
  int n, cap;
};

struct findings {
  struct arena *arena;
  struct found ours; /* operations of our dialects */
  bool has_tensors;
};

static void look_at_values(MlirOperation op, struct findings *f) {
  for (intptr_t k = 0; k < mlirOperationGetNumResults(op); k++)
    f->has_tensors |= mlirTypeIsARankedTensor(mlirValueGetType(mlirOperationGetResult(op, k)));
  for (intptr_t k = 0; k < mlirOperationGetNumOperands(op); k++)
    f->has_tensors |= mlirTypeIsARankedTensor(mlirValueGetType(mlirOperationGetOperand(op, k)));
}

static void look_at_arguments(MlirOperation function, struct findings *f) {
  MlirType t = mlirTypeAttrGetValue(mlirOperationGetAttributeByName(function, ir_str("function_type")));
  for (intptr_t k = 0; k < mlirFunctionTypeGetNumInputs(t); k++)
    f->has_tensors |= mlirTypeIsARankedTensor(mlirFunctionTypeGetInput(t, k));
}

static MlirWalkResult clean(MlirOperation op, void *user) {
  struct findings *f = user;

  if (is_ours(mlirIdentifierStr(mlirOperationGetName(op))) && mlirOperationGetNumResults(op) == 0) {
    array_push(f->arena, &f->ours, op);
    return MlirWalkResultSkip;
  }
  plain_attrs(op, f->arena);
  plain_values(op);
  look_at_values(op, f);
  return MlirWalkResultAdvance;
}

/* ---- matmuls without a zero fill -------------------------------------------------------------------------------- */

/* In tensor stages an accumulator that is a plain tensor.empty starts from zero.  For upstream its contents are
 * undefined, so this function inserts the zero fill again.  (Buffers are zeroed when they are allocated.) */
static MlirWalkResult fill_accumulator(MlirOperation op, void *user) {
  (void)user;
  if (!ir_is(op, "linalg.matmul") && !ir_is(op, "linalg.batch_matmul") && !ir_is(op, "linalg.contract"))
    return MlirWalkResultAdvance;
  MlirValue init = mlirOperationGetOperand(op, 2);
  if (!mlirValueIsAOpResult(init) || !ir_is(mlirOpResultGetOwner(init), "tensor.empty"))
    return MlirWalkResultAdvance;

  MlirOperation shell = mlirOpResultGetOwner(init);
  MlirType t = mlirValueGetType(init), element = mlirShapedTypeGetElementType(t);
  MlirAttribute zero = mlirTypeIsAFloat(element) ? mlirFloatAttrDoubleGet(mlirOperationGetContext(op), element, 0)
                                                 : mlirIntegerAttrGet(element, 0);
  MlirNamedAttribute value = mlirNamedAttributeGet(mlirIdentifierGet(mlirOperationGetContext(op), ir_str("value")),
                                                   mlirDenseElementsAttrSplatGet(t, zero));
  MlirOperationState st = mlirOperationStateGet(ir_str("arith.constant"), mlirOperationGetLocation(op));
  mlirOperationStateAddAttributes(&st, 1, &value);
  mlirOperationStateAddResults(&st, 1, &t);
  MlirOperation zeros = mlirOperationCreate(&st);
  mlirBlockInsertOwnedOperationAfter(mlirOperationGetBlock(shell), shell, zeros);
  mlirOperationSetOperand(op, 2, mlirOperationGetResult(zeros, 0));
  return MlirWalkResultAdvance;
}

/* ---- allocations with a layout ---------------------------------------------------------------------------------- */

/* Upstream lowers row-major allocations only.  This function builds a flat allocation and a cast for other layouts:
 *
 *     memref.alloc() : memref<2x3xf32, strided<[1, 2]>>
 *       ==>  memref.reinterpret_cast (memref.alloc() : memref<6xf32>) to offset: [0], sizes: [2, 3], strides: [1, 2] */
static MlirOperation flat_alloc(MlirOperation before, MlirType element, int64_t size) {
  MlirContext ctx = mlirOperationGetContext(before);
  MlirType t = mlirMemRefTypeGet(element, 1, &size, mlirAttributeGetNull(), mlirAttributeGetNull());
  MlirNamedAttribute none = mlirNamedAttributeGet(mlirIdentifierGet(ctx, ir_str("operandSegmentSizes")),
                                                  mlirDenseI32ArrayGet(ctx, 2, (int32_t[]){0, 0}));
  MlirOperationState st = mlirOperationStateGet(ir_str("memref.alloc"), mlirOperationGetLocation(before));
  mlirOperationStateAddResults(&st, 1, &t);
  mlirOperationStateAddAttributes(&st, 1, &none);
  MlirOperation op = mlirOperationCreate(&st);
  mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(before), before, op);
  return op;
}

static MlirValue cast_flat(MlirOperation before, MlirValue flat, MlirType to, const int64_t *sizes, int64_t offset,
                           const int64_t *strides) {
  MlirContext ctx = mlirOperationGetContext(before);
  const intptr_t rank = mlirShapedTypeGetRank(to);
  const struct {
    const char *name;
    MlirAttribute value;
  } parts[] = {{"static_offsets", mlirDenseI64ArrayGet(ctx, 1, &offset)},
               {"static_sizes", mlirDenseI64ArrayGet(ctx, rank, sizes)},
               {"static_strides", mlirDenseI64ArrayGet(ctx, rank, strides)},
               {"operandSegmentSizes", mlirDenseI32ArrayGet(ctx, 4, (int32_t[]){1, 0, 0, 0})}};
  MlirNamedAttribute attrs[4];
  MlirOperationState st = mlirOperationStateGet(ir_str("memref.reinterpret_cast"), mlirOperationGetLocation(before));

  for (int k = 0; k < 4; k++)
    attrs[k] = mlirNamedAttributeGet(mlirIdentifierGet(ctx, ir_str(parts[k].name)), parts[k].value);
  mlirOperationStateAddOperands(&st, 1, &flat);
  mlirOperationStateAddResults(&st, 1, &to);
  mlirOperationStateAddAttributes(&st, 4, attrs);
  MlirOperation op = mlirOperationCreate(&st);
  mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(before), before, op);
  return mlirOperationGetResult(op, 0);
}

static void flatten_alloc(MlirOperation op) {
  MlirType t = mlirValueGetType(mlirOperationGetResult(op, 0));
  const intptr_t rank = mlirShapedTypeGetRank(t);
  int64_t sizes[HLO_RANK_MAX], strides[HLO_RANK_MAX], offset, last = 0;

  if (rank > HLO_RANK_MAX || mlirLogicalResultIsFailure(mlirMemRefTypeGetStridesAndOffset(t, strides, &offset)) ||
      mlirShapedTypeIsDynamicStrideOrOffset(offset) || offset < 0)
    return;
  for (intptr_t k = 0; k < rank; k++) {
    sizes[k] = mlirShapedTypeGetDimSize(t, k);
    if (mlirShapedTypeIsDynamicDim(t, k) || mlirShapedTypeIsDynamicStrideOrOffset(strides[k]) || strides[k] < 0)
      return;
    last += (sizes[k] - 1) * strides[k];
  }
  MlirOperation flat = flat_alloc(op, mlirShapedTypeGetElementType(t), last < 0 ? 1 : offset + last + 1);
  MlirValue v = cast_flat(op, mlirOperationGetResult(flat, 0), t, sizes, offset, strides);
  mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(op, 0), v);
  mlirOperationDestroy(op);
}

/* ---- operations without a lowering ------------------------------------------------------------------------------ */

/* Operations that upstream cannot lower, or can lower only with a pass that must not run twice
 * (convert-math-to-funcs keeps pointers to the functions that it made).  They become calls of check_runtime.c. */
struct lacking {
  struct arena *arena;
  struct found ops;
};

static bool is_laid_out_alloc(MlirOperation op) {
  if (!ir_is(op, "memref.alloc"))
    return false;
  MlirType t = mlirValueGetType(mlirOperationGetResult(op, 0));
  return !mlirAffineMapIsIdentity(mlirMemRefTypeGetAffineMap(t));
}

static bool lacks_lowering(MlirOperation op) {
  if (ir_is(op, "arith.extf"))
    return check_widen_name(mlirValueGetType(mlirOperationGetOperand(op, 0)));
  if (ir_is(op, "arith.truncf"))
    return check_narrow_name(mlirValueGetType(mlirOperationGetResult(op, 0)));
  return ir_is(op, "math.ipowi") || is_laid_out_alloc(op);
}

static MlirWalkResult find_lacking(MlirOperation op, void *user) {
  struct lacking *l = user;
  if (lacks_lowering(op))
    array_push(l->arena, &l->ops, op);
  return MlirWalkResultAdvance;
}

/* Returns the conversion between two floats.  Folding merges conversions, so fp8 may be converted from or to any
 * float. */
static const char *float_conversion(MlirType from, MlirType to) {
  return mlirFloatTypeGetWidth(from) < mlirFloatTypeGetWidth(to) ? "arith.extf" : "arith.truncf";
}

static MlirValue call_widen(MlirOperation module, MlirOperation op) {
  MlirContext ctx = mlirOperationGetContext(op);
  MlirType i8 = mlirIntegerTypeGet(ctx, 8), f32 = mlirF32TypeGet(ctx);
  MlirType to = mlirValueGetType(mlirOperationGetResult(op, 0));
  MlirValue x = mlirOperationGetOperand(op, 0);
  const char *callee = check_widen_name(mlirValueGetType(x));

  check_declare(module, callee, 1, &i8, 1, &f32);
  x = check_convert(op, "arith.bitcast", x, i8);
  x = mlirOperationGetResult(check_insert(op, "func.call", 1, &x, 1, &f32, callee), 0);
  return check_convert(op, float_conversion(f32, to), x, to);
}

static MlirValue call_narrow(MlirOperation module, MlirOperation op) {
  MlirContext ctx = mlirOperationGetContext(op);
  MlirType i8 = mlirIntegerTypeGet(ctx, 8), f32 = mlirF32TypeGet(ctx);
  MlirType to = mlirValueGetType(mlirOperationGetResult(op, 0));
  MlirValue x = mlirOperationGetOperand(op, 0);
  const char *callee = check_narrow_name(to);

  check_declare(module, callee, 1, &f32, 1, &i8);
  x = check_convert(op, float_conversion(mlirValueGetType(x), f32), x, f32);
  x = mlirOperationGetResult(check_insert(op, "func.call", 1, &x, 1, &i8, callee), 0);
  return check_convert(op, "arith.bitcast", x, to);
}

/* Integer powers wrap, so they can be computed in 64 bits and truncated. */
static MlirValue call_power(MlirOperation module, MlirOperation op) {
  MlirType i64 = mlirIntegerTypeGet(mlirOperationGetContext(op), 64);
  MlirType to = mlirValueGetType(mlirOperationGetResult(op, 0));
  MlirValue x[2];

  check_declare(module, CHECK_POWER, 2, (MlirType[]){i64, i64}, 1, &i64);
  for (int k = 0; k < 2; k++)
    x[k] = check_convert(op, "arith.extsi", mlirOperationGetOperand(op, k), i64);
  return check_convert(op, "arith.trunci",
                       mlirOperationGetResult(check_insert(op, "func.call", 2, x, 1, &i64, CHECK_POWER), 0), to);
}

static void replace_lacking(MlirOperation module, struct arena *a) {
  struct lacking l = {.arena = a};

  mlirOperationWalk(module, find_lacking, &l, MlirWalkPreOrder);
  for (int k = 0; k < l.ops.n; k++) {
    MlirOperation op = l.ops.v[k];
    if (ir_is(op, "memref.alloc")) {
      flatten_alloc(op);
      continue;
    }
    MlirValue y = ir_is(op, "arith.extf")     ? call_widen(module, op)
                  : ir_is(op, "arith.truncf") ? call_narrow(module, op)
                                              : call_power(module, op);
    mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(op, 0), y);
    mlirOperationDestroy(op);
  }
}

/* ---- the steps --------------------------------------------------------------------------------------------------- */

bool check_clean(MlirOperation module, MlirOperation function, struct arena *a) {
  struct findings f = {.arena = a};

  look_at_arguments(function, &f);
  mlirOperationWalk(module, clean, &f, MlirWalkPreOrder);
  while (f.ours.n)
    mlirOperationDestroy(f.ours.v[--f.ours.n]);
  return f.has_tensors;
}

enum status check_bufferize(struct ir *ir, MlirOperation module, struct arena *a, struct diags *ds) {
  mlirOperationWalk(module, fill_accumulator, NULL, MlirWalkPreOrder);
  return ir_run_pipeline(ir, module, TENSORS, a, ds);
}

enum status check_lower(struct ir *ir, MlirOperation module, MlirOperation function, struct arena *a,
                        struct diags *ds) {
  mlirOperationSetDiscardableAttributeByName(function, ir_str("llvm.emit_c_interface"), mlirUnitAttrGet(ir->ctx));
  enum status st = check_give_bodies(ir, module, a, ds);
  if (st)
    return st;
  check_call_products(module, a);
  if ((st = ir_run_pipeline(ir, module, LOOPS, a, ds)))
    return st;
  replace_lacking(module, a);
  return ir_run_pipeline(ir, module, LLVM, a, ds);
}
