/* groups: see annotate_memory_space.h. */
#include <assert.h>
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "base/array.h"
#include "passes/annotate_memory_space/annotate_memory_space.h"
#include "passes/lib/buffers.h"
#include "passes/lib/edit.h"
#include "passes/lib/memrefs.h"

/* ---- types ------------------------------------------------------------------------------------------ */

static MlirAttribute space_attr(MlirContext ctx, enum mem_space space) {
  return mlirIntegerAttrGet(mlirIntegerTypeGet(ctx, 32), space);
}

static MlirType with_space(MlirType t, MlirAttribute layout, enum mem_space space) {
  int64_t dims[IR_MEMREF_RANK_MAX];
  const intptr_t rank = mlirShapedTypeGetRank(t);

  for (intptr_t d = 0; d < rank; d++)
    dims[d] = mlirShapedTypeGetDimSize(t, d);
  return mlirMemRefTypeGet(mlirShapedTypeGetElementType(t), rank, dims, layout,
                           space_attr(mlirTypeGetContext(t), space));
}

void space_set(MlirValue memref, enum mem_space space) {
  MlirType t = mlirValueGetType(memref);
  mlirValueSetType(memref, with_space(t, mlirMemRefTypeGetLayout(t), space));
}

/* Returns memref<the shape of v, row-major, space>. */
static MlirType plain_type(MlirValue v, enum mem_space space) {
  return with_space(mlirValueGetType(v), mlirAttributeGetNull(), space);
}

/* ---- copies ----------------------------------------------------------------------------------------- */

/* Builds before op, with the location of v's definition. */
static struct ir_builder builder_for(struct pass_run *run, MlirOperation op, MlirValue v) {
  struct ir_builder b = edit_before(run, op);
  MlirOperation def = ir_defining_op(v);
  if (!mlirOperationIsNull(def))
    b.loc = mlirOperationGetLocation(def);
  return b;
}

MlirValue space_alloc_before(struct pass_run *run, MlirOperation op, MlirValue v, enum mem_space space) {
  struct ir_builder b = builder_for(run, op, v);
  return memrefs_alloc(&b, plain_type(v, space));
}

MlirValue space_cast_before(struct pass_run *run, MlirOperation op, MlirValue v, MlirType t) {
  struct ir_builder b = edit_before(run, op);
  return mlirTypeEqual(mlirValueGetType(v), t) ? v : ir_op1(&b, "memref.cast", t, 1, &v);
}

MlirOperation space_copy_before(struct pass_run *run, MlirOperation op, MlirValue from, MlirValue to) {
  struct ir_builder b = builder_for(run, op, from);
  return memrefs_copy(&b, from, to);
}

MlirOperation space_copy_after(struct pass_run *run, MlirOperation op, MlirValue from, MlirValue to) {
  MlirOperation made = space_copy_before(run, op, from, to);
  mlirOperationMoveAfter(made, op);
  return made;
}

/* ---- groups ----------------------------------------------------------------------------------------- */

static void add_value(struct space_groups *s, MlirValue v) {
  if (!mlirTypeIsAMemRef(mlirValueGetType(v)))
    return;
  index_add(&s->by_value, hash_pointer(v.ptr), s->values.n);
  array_push(s->run->arena, &s->values, v);
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

/* Returns the number of v, a memref value of the module. */
static int number_of(const struct space_groups *s, MlirValue v) {
  struct index_probe p = index_probe(&s->by_value, hash_pointer(v.ptr));
  while (index_next(&p) && !mlirValueEqual(s->values.v[p.entry], v))
    continue;
  assert(p.entry >= 0 && mlirValueEqual(s->values.v[p.entry], v));
  return p.entry;
}

static int find(struct space_groups *s, int k) {
  while (s->parent[k] != k)
    k = s->parent[k] = s->parent[s->parent[k]];
  return k;
}

static void join(struct space_groups *s, MlirValue x, MlirValue y) {
  if (!mlirTypeIsAMemRef(mlirValueGetType(x)) || !mlirTypeIsAMemRef(mlirValueGetType(y)))
    return;
  const int a = find(s, number_of(s, x)), b = find(s, number_of(s, y));
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
    MlirBlock body = ir_body(op);
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
    MlirBlock before = ir_body(op);
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
  *s = (struct space_groups){.run = run, .by_value.arena = run->arena};
  mlirOperationWalk(root, add_values, s, MlirWalkPreOrder);
  s->parent = arena_new_array(run->arena, int, (size_t)s->values.n);
  s->g = arena_new_array(run->arena, struct space_group, (size_t)s->values.n);
  for (int k = 0; k < s->values.n; k++)
    s->parent[k] = k;
  mlirOperationWalk(root, join_op, s, MlirWalkPreOrder);
}

struct space_group *space_group_of(struct space_groups *s, MlirValue v) {
  return &s->g[find(s, number_of(s, v))];
}
