/* groups: see annotate_memory_space.h. */
#include <stdint.h>
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "linalg/emit.h"
#include "passes/annotate_memory_space/annotate_memory_space.h"
#include "passes/lib/buffers.h"

/* ---- types ------------------------------------------------------------------------------------------ */

int space_of(MlirValue memref) {
  MlirAttribute a = mlirMemRefTypeGetMemorySpace(mlirValueGetType(memref));
  return mlirAttributeIsNull(a) || !mlirAttributeIsAInteger(a) ? MEM_NONE : (int)mlirIntegerAttrGetValueInt(a);
}

bool space_is_dram(int space) {
  return space == MEM_HBM || space == MEM_SHARED_HBM;
}

static MlirAttribute space_attr(MlirContext ctx, int space) {
  return mlirIntegerAttrGet(mlirIntegerTypeGet(ctx, 32), space);
}

static MlirType with_space(MlirType t, MlirAttribute layout, int space) {
  int64_t dims[STRUCTURED_LOOPS_MAX];
  const intptr_t rank = mlirShapedTypeGetRank(t);

  for (intptr_t d = 0; d < rank; d++)
    dims[d] = mlirShapedTypeGetDimSize(t, d);
  return mlirMemRefTypeGet(mlirShapedTypeGetElementType(t), rank, dims, layout,
                           space_attr(mlirTypeGetContext(t), space));
}

void space_set(MlirValue memref, int space) {
  MlirType t = mlirValueGetType(memref);
  mlirValueSetType(memref, with_space(t, mlirMemRefTypeGetLayout(t), space));
}

MlirType space_plain_type(MlirValue v, int space) {
  return with_space(mlirValueGetType(v), mlirAttributeGetNull(), space);
}

/* ---- copies ----------------------------------------------------------------------------------------- */

static struct emit emit_at(struct pass_run *run, MlirOperation near) {
  return (struct emit){.ctx = run->ir->ctx,
                       .block = mlirOperationGetBlock(near),
                       .loc = mlirOperationGetLocation(near),
                       .arena = run->arena};
}

MlirValue space_alloc_before(struct pass_run *run, MlirOperation op, MlirValue v, int space) {
  struct emit e = emit_at(run, op);
  MlirOperation def = ir_defining_op(v);
  if (!mlirOperationIsNull(def))
    e.loc = mlirOperationGetLocation(def);
  MlirType t = space_plain_type(v, space);
  MlirNamedAttribute attrs[] = {
      emit_attr(&e, "alignment", mlirIntegerAttrGet(mlirIntegerTypeGet(e.ctx, 64), 64)),
      emit_attr(&e, "operandSegmentSizes", mlirDenseI32ArrayGet(e.ctx, 2, (int32_t[]){0, 0})),
  };
  MlirOperation alloc = emit_operation(
      &e, &(struct emit_op){.name = "memref.alloc", .n_results = 1, .results = &t, .n_attrs = 2, .attrs = attrs});
  mlirOperationMoveBefore(alloc, op);
  return emit_result(alloc);
}

MlirValue space_cast_before(struct pass_run *run, MlirOperation op, MlirValue v, MlirType t) {
  if (mlirTypeEqual(mlirValueGetType(v), t))
    return v;
  struct emit e = emit_at(run, op);
  MlirValue cast = emit_op1(&e, "memref.cast", t, 1, &v);
  mlirOperationMoveBefore(ir_defining_op(cast), op);
  return cast;
}

static MlirOperation copy(struct pass_run *run, MlirOperation near, MlirValue from, MlirValue to) {
  struct emit e = emit_at(run, near);
  MlirOperation def = ir_defining_op(from);
  if (!mlirOperationIsNull(def))
    e.loc = mlirOperationGetLocation(def);
  MlirValue operands[] = {from, to};
  return emit_operation(&e, &(struct emit_op){.name = "memref.copy", .n_operands = 2, .operands = operands});
}

MlirOperation space_copy_before(struct pass_run *run, MlirOperation op, MlirValue from, MlirValue to) {
  MlirOperation made = copy(run, op, from, to);
  mlirOperationMoveBefore(made, op);
  return made;
}

MlirOperation space_copy_after(struct pass_run *run, MlirOperation op, MlirValue from, MlirValue to) {
  MlirOperation made = copy(run, op, from, to);
  mlirOperationMoveAfter(made, op);
  return made;
}

/* ---- groups ----------------------------------------------------------------------------------------- */

static void add_value(struct space_groups *s, MlirValue v) {
  if (!mlirTypeIsAMemRef(mlirValueGetType(v)))
    return;
  if (s->n == s->cap) {
    s->cap = s->cap ? 2 * s->cap : 256;
    MlirValue *grown = arena_new_array(s->run->arena, MlirValue, (size_t)s->cap);
    if (s->n)
      memcpy(grown, s->v, (size_t)s->n * sizeof *grown);
    s->v = grown;
  }
  s->v[s->n++] = v;
}

static MlirWalkResult add_values(MlirOperation op, void *user) {
  for (intptr_t k = 0; k < mlirOperationGetNumResults(op); k++)
    add_value(user, mlirOperationGetResult(op, k));
  for (intptr_t r = 0; r < mlirOperationGetNumRegions(op); r++)
    for (MlirBlock b = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, r)); !mlirBlockIsNull(b);
         b = mlirBlockGetNextInRegion(b))
      for (intptr_t k = 0; k < mlirBlockGetNumArguments(b); k++)
        add_value(user, mlirBlockGetArgument(b, k));
  return MlirWalkResultAdvance;
}

static int *slot_of(struct space_groups *s, MlirValue v) {
  size_t h = (size_t)(uintptr_t)v.ptr / 16 * 0x9E3779B97F4A7C15ull;

  for (h = (h >> 20) % (size_t)s->n_slots;; h = (h + 1) % (size_t)s->n_slots)
    if (s->slots[h] < 0 || mlirValueEqual(s->v[s->slots[h]], v))
      return &s->slots[h];
}

static int find(struct space_groups *s, int k) {
  while (s->parent[k] != k)
    k = s->parent[k] = s->parent[s->parent[k]];
  return k;
}

static void join(struct space_groups *s, MlirValue x, MlirValue y) {
  if (!mlirTypeIsAMemRef(mlirValueGetType(x)) || !mlirTypeIsAMemRef(mlirValueGetType(y)))
    return;
  const int a = find(s, *slot_of(s, x)), b = find(s, *slot_of(s, y));
  s->parent[a > b ? a : b] = a < b ? a : b;
}

static MlirOperation terminator(MlirOperation op, intptr_t region) {
  MlirBlock b = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, region));
  return mlirBlockIsNull(b) ? (MlirOperation){NULL} : mlirBlockGetTerminator(b);
}

static MlirWalkResult join_op(MlirOperation op, void *user) {
  struct space_groups *s = user;

  if (buffer_is_view(op)) {
    join(s, mlirOperationGetOperand(op, 0), mlirOperationGetResult(op, 0));
  } else if (ir_is(op, "arith.select")) {
    join(s, mlirOperationGetOperand(op, 1), mlirOperationGetResult(op, 0));
    join(s, mlirOperationGetOperand(op, 2), mlirOperationGetResult(op, 0));
  } else if (ir_is(op, "scf.for")) {
    MlirBlock body = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, 0));
    for (intptr_t k = 0; k < mlirOperationGetNumResults(op); k++) {
      MlirValue result = mlirOperationGetResult(op, k);
      join(s, mlirOperationGetOperand(op, k + 3), result);
      join(s, mlirBlockGetArgument(body, k + 1), result);
      join(s, mlirOperationGetOperand(mlirBlockGetTerminator(body), k), result);
    }
  } else if (ir_is(op, "scf.if")) {
    for (intptr_t r = 0; r < 2; r++)
      for (intptr_t k = 0; k < mlirOperationGetNumResults(op); k++)
        join(s, mlirOperationGetOperand(terminator(op, r), k), mlirOperationGetResult(op, k));
  } else if (ir_is(op, "scf.while")) {
    MlirBlock before = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, 0));
    MlirBlock after = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, 1));
    for (intptr_t k = 0; k < mlirBlockGetNumArguments(before); k++) {
      join(s, mlirOperationGetOperand(op, k), mlirBlockGetArgument(before, k));
      join(s, mlirOperationGetOperand(mlirBlockGetTerminator(after), k), mlirBlockGetArgument(before, k));
    }
    for (intptr_t k = 0; k < mlirOperationGetNumResults(op); k++) {
      join(s, mlirOperationGetOperand(mlirBlockGetTerminator(before), k + 1), mlirOperationGetResult(op, k));
      join(s, mlirBlockGetArgument(after, k), mlirOperationGetResult(op, k));
    }
  }
  return MlirWalkResultAdvance;
}

void space_groups_init(struct space_groups *s, struct pass_run *run, MlirOperation root) {
  *s = (struct space_groups){.run = run};
  mlirOperationWalk(root, add_values, s, MlirWalkPreOrder);
  s->n_slots = 2 * s->n + 1;
  s->slots = arena_new_array(run->arena, int, (size_t)s->n_slots);
  s->parent = arena_new_array(run->arena, int, (size_t)s->n);
  s->g = arena_new_array(run->arena, struct space_group, (size_t)s->n);
  memset(s->slots, -1, (size_t)s->n_slots * sizeof *s->slots);
  for (int k = 0; k < s->n; k++) {
    s->parent[k] = k;
    *slot_of(s, s->v[k]) = k;
  }
  mlirOperationWalk(root, join_op, s, MlirWalkPreOrder);
}

struct space_group *space_group_of(struct space_groups *s, MlirValue v) {
  return &s->g[find(s, *slot_of(s, v))];
}
