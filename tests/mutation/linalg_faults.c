/* linalg_faults: faults in linalg on tensors and memrefs, and in the operations that NISA shares with it. */
#include <string.h>

#include "mlir-c/AffineExpr.h"
#include "mlir-c/AffineMap.h"
#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "faults.h"
#include "ir/query.h"

static MlirOperation insert_unary(MlirOperation before, const char *name, MlirValue x, MlirType to) {
  MlirOperationState st = mlirOperationStateGet(ir_str(name), mlirOperationGetLocation(before));
  mlirOperationStateAddOperands(&st, 1, &x);
  mlirOperationStateAddResults(&st, 1, &to);
  MlirOperation op = mlirOperationCreate(&st);
  mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(before), before, op);
  return op;
}

/* Makes the same operation with another name in its place. */
static void rename_operation(MlirOperation op, const char *name) {
  MlirType t = mlirValueGetType(mlirOperationGetResult(op, 0));
  MlirOperationState st = mlirOperationStateGet(ir_str(name), mlirOperationGetLocation(op));
  for (intptr_t k = 0; k < mlirOperationGetNumOperands(op); k++) {
    MlirValue v = mlirOperationGetOperand(op, k);
    mlirOperationStateAddOperands(&st, 1, &v);
  }
  mlirOperationStateAddResults(&st, 1, &t);
  MlirOperation made = mlirOperationCreate(&st);
  mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(op), op, made);
  mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(op, 0), mlirOperationGetResult(made, 0));
}

static bool are_equal_types(MlirOperation op, intptr_t x, intptr_t y) {
  return mlirOperationGetNumOperands(op) > (x > y ? x : y) &&
         mlirTypeEqual(mlirValueGetType(mlirOperationGetOperand(op, x)),
                       mlirValueGetType(mlirOperationGetOperand(op, y)));
}

static void swap_values(MlirOperation op) {
  MlirValue first = mlirOperationGetOperand(op, 0);
  mlirOperationSetOperand(op, 0, mlirOperationGetOperand(op, 1));
  mlirOperationSetOperand(op, 1, first);
}

/* ---- kinds of faults: each returns true if op is a place of the kind, and changes it if that is wanted ---- */

static bool drop_copy(MlirOperation op, bool is_wanted) {
  if (ir_is(op, "bufferization.materialize_in_destination") && mlirOperationGetNumResults(op) == 1) {
    if (is_wanted)
      mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(op, 0), mlirOperationGetOperand(op, 1));
    return true;
  }
  static const char *const copies[] = {"memref.copy", "nisa.dma_copy", "nisa.tensor_copy", NULL};
  if (!fault_is_one_of(op, copies))
    return false;
  if (is_wanted)
    fault_remove(op);
  return true;
}

static bool drop_fill(MlirOperation op, bool is_wanted) {
  static const char *const fills[] = {"linalg.fill", "nisa.memset", NULL};
  if (!fault_is_one_of(op, fills))
    return false;
  if (is_wanted && mlirOperationGetNumResults(op))
    mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(op, 0), mlirOperationGetOperand(op, 1));
  if (is_wanted)
    fault_remove(op);
  return true;
}

static bool swap_operands(MlirOperation op, bool is_wanted) {
  static const char *const names[] = {"arith.subf", "arith.divf", "linalg.sub", "linalg.div", NULL};
  if (!fault_is_one_of(op, names) || !are_equal_types(op, 0, 1))
    return false;
  if (is_wanted)
    swap_values(op);
  return true;
}

/* Reads the first input twice. */
static bool wrong_operand(MlirOperation op, bool is_wanted) {
  if (!ir_is_of(op, "linalg.") || ir_is(op, "linalg.yield") || mlirOperationGetNumOperands(op) < 3 ||
      !are_equal_types(op, 0, 1) || mlirValueEqual(mlirOperationGetOperand(op, 0), mlirOperationGetOperand(op, 1)))
    return false;
  if (is_wanted)
    mlirOperationSetOperand(op, 1, mlirOperationGetOperand(op, 0));
  return true;
}

static bool scale_constant(MlirOperation op, bool is_wanted) {
  if (!ir_is(op, "arith.constant"))
    return false;
  MlirAttribute v = ir_attr(op, "value");
  if (!mlirAttributeIsAFloat(v))
    return false;
  const double d = mlirFloatAttrGetValueDouble(v);
  if (d == 0 || d - d != 0 || !ir_is_used(mlirOperationGetResult(op, 0)))
    return false;
  if (is_wanted)
    ir_set_attr(op, "value", mlirFloatAttrDoubleGet(mlirOperationGetContext(op), mlirAttributeGetType(v), d * 1.25));
  return true;
}

/* The first tile instead of the one that the loop is at. */
static bool first_tile(MlirOperation op, bool is_wanted) {
  static const char *const names[] = {"memref.subview", "tensor.extract_slice", "tensor.insert_slice", NULL};
  if (!fault_is_one_of(op, names))
    return false;
  const intptr_t n_fixed = ir_is(op, "tensor.insert_slice") ? 2 : 1;
  if (mlirOperationGetNumOperands(op) <= n_fixed)
    return false;
  MlirValue offset = mlirOperationGetOperand(op, n_fixed);
  MlirOperation def = ir_defining_op(offset);
  if (!mlirOperationIsNull(def) && ir_is(def, "arith.constant"))
    return false;
  if (is_wanted) {
    mlirOperationSetOperand(op, n_fixed, fault_index(op, 0));
  }
  return true;
}

/* A loop that leaves out its last trip. */
static bool short_loop(MlirOperation op, bool is_wanted) {
  int64_t to, step;
  if (!ir_is(op, "scf.for") || !ir_int_constant(mlirOperationGetOperand(op, 1), &to) ||
      !ir_int_constant(mlirOperationGetOperand(op, 2), &step) || to <= step)
    return false;
  if (is_wanted) {
    mlirOperationSetOperand(op, 1, fault_index(op, to - step));
  }
  return true;
}

static bool wrong_function(MlirOperation op, bool is_wanted) {
  static const char *const names[][2] = {{"arith.addf", "arith.mulf"},
                                         {"arith.maximumf", "arith.minimumf"},
                                         {"math.exp", "math.exp2"},
                                         {"math.sqrt", "math.exp"}};
  for (size_t k = 0; k < sizeof names / sizeof *names; k++)
    if (ir_is(op, names[k][0])) {
      if (is_wanted)
        rename_operation(op, names[k][1]);
      return true;
    }
  return false;
}

/* f32 that goes through bf16. */
static bool wrong_rounding(MlirOperation op, bool is_wanted) {
  static const char *const names[] = {"arith.addf", "arith.mulf", "arith.subf", "arith.maximumf", "math.exp", NULL};
  if (!fault_is_one_of(op, names) || !mlirTypeIsAF32(mlirValueGetType(mlirOperationGetResult(op, 0))))
    return false;
  if (is_wanted) {
    MlirType f32 = mlirF32TypeGet(mlirOperationGetContext(op)), bf16 = mlirBF16TypeGet(mlirOperationGetContext(op));
    MlirValue x = mlirOperationGetOperand(op, 0);
    x = mlirOperationGetResult(insert_unary(op, "arith.truncf", x, bf16), 0);
    mlirOperationSetOperand(op, 0, mlirOperationGetResult(insert_unary(op, "arith.extf", x, f32), 0));
  }
  return true;
}

/* linalg.transpose of a square array that transposes nothing; linalg.broadcast along the other dimension of one. */
static bool wrong_dimensions(MlirOperation op, bool is_wanted) {
  const bool is_transpose = ir_is(op, "linalg.transpose");
  const char *name = is_transpose ? "permutation" : "dimensions";
  int64_t dims[3], from[3];
  if ((!is_transpose && !ir_is(op, "linalg.broadcast")) || ir_shape(mlirOperationGetOperand(op, 1), 3, dims) != 2 ||
      ir_shape(mlirOperationGetOperand(op, 0), 3, from) != (is_transpose ? 2 : 1) || dims[0] != dims[1] || dims[0] < 2)
    return false;
  if (is_wanted) {
    const int64_t same[2] = {0, 1}, other = 1 - mlirDenseI64ArrayGetElement(ir_attr(op, name), 0);
    ir_set_attr(op, name,
                mlirDenseI64ArrayGet(mlirOperationGetContext(op), is_transpose ? 2 : 1, is_transpose ? same : &other));
  }
  return true;
}

/* The first two dimensions of the first input exchanged; for square arrays, so that it verifies. */
static bool wrong_axis(MlirOperation op, bool is_wanted) {
  MlirAttribute maps = ir_attr(op, "indexing_maps");
  if (!ir_is(op, "linalg.generic") || mlirAttributeIsNull(maps))
    return false;
  MlirType t = mlirValueGetType(mlirOperationGetOperand(op, 0));
  MlirAffineMap map = mlirAffineMapAttrGetValue(mlirArrayAttrGetElement(maps, 0));
  if (!mlirTypeIsAShaped(t) || mlirShapedTypeGetRank(t) != 2 || mlirAffineMapGetNumResults(map) != 2 ||
      mlirShapedTypeGetDimSize(t, 0) != mlirShapedTypeGetDimSize(t, 1) || mlirShapedTypeGetDimSize(t, 0) < 2)
    return false;
  MlirAffineExpr results[2] = {mlirAffineMapGetResult(map, 1), mlirAffineMapGetResult(map, 0)};
  if (is_wanted) {
    MlirAttribute list[8];
    const intptr_t n = mlirArrayAttrGetNumElements(maps);
    for (intptr_t k = 0; k < n && k < 8; k++)
      list[k] = mlirArrayAttrGetElement(maps, k);
    list[0] = mlirAffineMapAttrGet(
        mlirAffineMapGet(mlirOperationGetContext(op), mlirAffineMapGetNumDims(map), 0, 2, results));
    ir_set_attr(op, "indexing_maps", mlirArrayAttrGet(mlirOperationGetContext(op), n, list));
  }
  return true;
}

static bool drop_instruction(MlirOperation op, bool is_wanted) {
  static const char *const kept[] = {"nisa.alloc", "nisa.release", NULL};
  if (!ir_is_of(op, "nisa.") || fault_is_one_of(op, kept) || mlirOperationGetNumResults(op))
    return false;
  if (is_wanted)
    fault_remove(op);
  return true;
}

static bool early_release(MlirOperation op, bool is_wanted) {
  static const char *const names[] = {"nisa.release", "memref.dealloc", NULL};
  if (!fault_is_one_of(op, names))
    return false;
  if (is_wanted) {
    MlirOperation def = ir_defining_op(mlirOperationGetOperand(op, 0));
    if (!mlirOperationIsNull(def))
      mlirOperationMoveAfter(op, def);
  }
  return true;
}

/* A tile that begins one element too early in all rounds but the first. */
static bool wrong_step(MlirOperation op, bool is_wanted) {
  int64_t step;
  if (!ir_is(op, "arith.muli") || !ir_int_constant(mlirOperationGetOperand(op, 1), &step) || step < 2)
    return false;
  if (is_wanted)
    mlirOperationSetOperand(op, 1, fault_index(op, step - 1));
  return true;
}

static bool is_like(MlirOperation earlier, MlirOperation alloc) {
  return mlirIdentifierEqual(mlirOperationGetName(earlier), mlirOperationGetName(alloc)) &&
         mlirTypeEqual(mlirValueGetType(mlirOperationGetResult(earlier, 0)),
                       mlirValueGetType(mlirOperationGetResult(alloc, 0))) &&
         !mlirOperationIsNull(ir_ancestor_in(alloc, mlirOperationGetBlock(earlier)));
}

/* One buffer instead of two. */
static bool shared_buffer(MlirOperation op, bool is_wanted) {
  static const char *const names[] = {"memref.alloc", "nisa.alloc", NULL};
  if (!fault_is_one_of(op, names))
    return false;
  MlirOperation other = fault_earlier(op, is_like);
  if (mlirOperationIsNull(other))
    return false;
  if (is_wanted)
    mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(op, 0), mlirOperationGetResult(other, 0));
  return true;
}

const struct fault_kind linalg_faults[] = {
    {"drop-copy", drop_copy},           {"drop-fill", drop_fill},
    {"swap-operands", swap_operands},   {"wrong-operand", wrong_operand},
    {"scale-constant", scale_constant}, {"first-tile", first_tile},
    {"short-loop", short_loop},         {"wrong-function", wrong_function},
    {"wrong-rounding", wrong_rounding}, {"wrong-axis", wrong_axis},
    {"wrong-axis", wrong_dimensions},   {"wrong-step", wrong_step},
    {"shared-buffer", shared_buffer},   {"drop-instruction", drop_instruction},
    {"early-release", early_release},   {NULL, NULL},
};
