/* plant: changes a program after a pass, as a fault of the pass would.
 *
 * NKX_PLANT=STAGE/KIND/N changes place number N (from 0) of its kind in what the stage made; STAGE is a name as
 * --stop-after takes it.  The process says on standard error if it found the place.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mlir-c/AffineExpr.h"
#include "mlir-c/AffineMap.h"
#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "driver/pipeline.h"
#include "driver/plant.h"
#include "hlo/build.h"
#include "ir/query.h"

/* ---- HLO --------------------------------------------------------------------------------------------------------- */

static void swap_instrs(struct hlo_instr *i) {
  struct hlo_instr *first = i->operands[0];
  i->operands[0] = i->operands[1];
  i->operands[1] = first;
}

static bool same_shape(const struct hlo_instr *x, const struct hlo_instr *y) {
  return x->shape.dtype == y->shape.dtype && hlo_shape_same_dims(&x->shape, &y->shape);
}

/* True if i is a place of this kind; changes it if that is wanted. */
static bool change_instr(struct hlo_instr *i, const char *kind, bool is_wanted) {
  const bool is_binary = i->n_operands == 2 && same_shape(i->operands[0], i->operands[1]);
  if (!strcmp(kind, "swap-operands") && is_binary && (i->op == HLO_SUBTRACT || i->op == HLO_DIVIDE)) {
    if (is_wanted)
      swap_instrs(i);
    return true;
  }
  if (!strcmp(kind, "wrong-function") && is_binary && (i->op == HLO_ADD || i->op == HLO_MAXIMUM)) {
    if (is_wanted)
      i->op = i->op == HLO_ADD ? HLO_SUBTRACT : HLO_MINIMUM;
    return true;
  }
  if (!strcmp(kind, "drop-operation") && i->n_operands == 1 && same_shape(i, i->operands[0]) &&
      (i->op == HLO_EXP || i->op == HLO_SQRT || i->op == HLO_TANH || i->op == HLO_NEGATE)) {
    if (is_wanted)
      i->op = HLO_COPY;
    return true;
  }
  if (!strcmp(kind, "wrong-operand") && is_binary && i->operands[0] != i->operands[1]) {
    if (is_wanted)
      i->operands[1] = i->operands[0];
    return true;
  }
  return false;
}

static bool change_hlo(struct hlo_module *m, const char *kind, int n) {
  hlo_for_each(i, m->entry) if (change_instr(i, kind, n == 0) && !n--) return true;
  return false;
}

/* ---- MLIR -------------------------------------------------------------------------------------------------------- */

struct search {
  const char *kind;
  int n;
  bool is_done;
};

static MlirOperation insert_constant(MlirOperation before, MlirAttribute value) {
  MlirType t = mlirAttributeGetType(value);
  MlirNamedAttribute attr =
      mlirNamedAttributeGet(mlirIdentifierGet(mlirOperationGetContext(before), ir_str("value")), value);
  MlirOperationState st = mlirOperationStateGet(ir_str("arith.constant"), mlirOperationGetLocation(before));
  mlirOperationStateAddResults(&st, 1, &t);
  mlirOperationStateAddAttributes(&st, 1, &attr);
  MlirOperation op = mlirOperationCreate(&st);
  mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(before), before, op);
  return op;
}

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

static bool is_one_of(MlirOperation op, const char *const *names) {
  for (; *names; names++)
    if (ir_is(op, *names))
      return true;
  return false;
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

/* The operation that the fault removes; it is destroyed after the walk. */
static MlirOperation dead;

/* ---- kinds of faults: each returns true if op is a place of the kind, and changes it if that is wanted ---- */

static bool drop_copy(MlirOperation op, bool is_wanted) {
  if (ir_is(op, "bufferization.materialize_in_destination") && mlirOperationGetNumResults(op) == 1) {
    if (is_wanted)
      mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(op, 0), mlirOperationGetOperand(op, 1));
    return true;
  }
  static const char *const copies[] = {"memref.copy", "nisa.dma_copy", "nisa.tensor_copy", NULL};
  if (!is_one_of(op, copies))
    return false;
  if (is_wanted)
    dead = op;
  return true;
}

static bool drop_fill(MlirOperation op, bool is_wanted) {
  static const char *const fills[] = {"linalg.fill", "nisa.memset", NULL};
  if (!is_one_of(op, fills))
    return false;
  if (is_wanted && mlirOperationGetNumResults(op))
    mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(op, 0), mlirOperationGetOperand(op, 1));
  if (is_wanted)
    dead = op;
  return true;
}

static bool swap_operands(MlirOperation op, bool is_wanted) {
  static const char *const names[] = {"arith.subf", "arith.divf", "linalg.sub", "linalg.div", NULL};
  if (!is_one_of(op, names) || !are_equal_types(op, 0, 1))
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
  if (!is_one_of(op, names))
    return false;
  const intptr_t n_fixed = ir_is(op, "tensor.insert_slice") ? 2 : 1;
  if (mlirOperationGetNumOperands(op) <= n_fixed)
    return false;
  MlirValue offset = mlirOperationGetOperand(op, n_fixed);
  MlirOperation def = ir_defining_op(offset);
  if (!mlirOperationIsNull(def) && ir_is(def, "arith.constant"))
    return false;
  if (is_wanted) {
    MlirAttribute zero = mlirIntegerAttrGet(mlirIndexTypeGet(mlirOperationGetContext(op)), 0);
    mlirOperationSetOperand(op, n_fixed, mlirOperationGetResult(insert_constant(op, zero), 0));
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
    MlirAttribute less = mlirIntegerAttrGet(mlirIndexTypeGet(mlirOperationGetContext(op)), to - step);
    mlirOperationSetOperand(op, 1, mlirOperationGetResult(insert_constant(op, less), 0));
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
  if (!is_one_of(op, names) || !mlirTypeIsAF32(mlirValueGetType(mlirOperationGetResult(op, 0))))
    return false;
  if (is_wanted) {
    MlirType f32 = mlirF32TypeGet(mlirOperationGetContext(op)), bf16 = mlirBF16TypeGet(mlirOperationGetContext(op));
    MlirValue x = mlirOperationGetOperand(op, 0);
    x = mlirOperationGetResult(insert_unary(op, "arith.truncf", x, bf16), 0);
    mlirOperationSetOperand(op, 0, mlirOperationGetResult(insert_unary(op, "arith.extf", x, f32), 0));
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
  if (!ir_is_of(op, "nisa.") || is_one_of(op, kept) || mlirOperationGetNumResults(op))
    return false;
  if (is_wanted)
    dead = op;
  return true;
}

static bool early_release(MlirOperation op, bool is_wanted) {
  static const char *const names[] = {"nisa.release", "memref.dealloc", NULL};
  if (!is_one_of(op, names))
    return false;
  if (is_wanted) {
    MlirOperation def = ir_defining_op(mlirOperationGetOperand(op, 0));
    if (!mlirOperationIsNull(def))
      mlirOperationMoveAfter(op, def);
  }
  return true;
}

static const struct {
  const char *name;
  bool (*change)(MlirOperation op, bool is_wanted);
} kinds[] = {
    {"drop-copy", drop_copy},
    {"drop-fill", drop_fill},
    {"swap-operands", swap_operands},
    {"wrong-operand", wrong_operand},
    {"scale-constant", scale_constant},
    {"first-tile", first_tile},
    {"short-loop", short_loop},
    {"wrong-function", wrong_function},
    {"wrong-rounding", wrong_rounding},
    {"wrong-axis", wrong_axis},
    {"drop-instruction", drop_instruction},
    {"early-release", early_release},
};

static MlirWalkResult look_at(MlirOperation op, void *user) {
  struct search *s = user;
  MlirOperation parent = mlirOperationGetParentOperation(op);
  if (!mlirOperationIsNull(parent) && ir_is_of(parent, "linalg.") && !ir_is(parent, "linalg.generic"))
    return MlirWalkResultAdvance; /* the body that the name implies, which no text shows */
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
    if (!strcmp(kinds[k].name, s->kind) && kinds[k].change(op, s->n == 0) && !s->n--) {
      s->is_done = true;
      return MlirWalkResultInterrupt;
    }
  return MlirWalkResultAdvance;
}

bool plant_fault(int index, struct hlo_module *hlo, MlirModule module) {
  const char *what = getenv("NKX_PLANT");
  char stage[64], kind[64];
  int n;
  if (!what || sscanf(what, "%63[^/]/%63[^/]/%d", stage, kind, &n) != 3 || pipeline_find(stage) != index)
    return false;
  struct search s = {.kind = kind, .n = n};
  if (hlo)
    s.is_done = change_hlo(hlo, kind, n);
  else
    mlirOperationWalk(mlirModuleGetOperation(module), look_at, &s, MlirWalkPreOrder);
  if (!mlirOperationIsNull(dead))
    mlirOperationDestroy(dead);
  dead = (MlirOperation){NULL};
  fprintf(stderr, s.is_done ? "planted %s\n" : "no place for %s\n", what);
  return s.is_done;
}
