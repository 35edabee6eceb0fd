/* infer_layout_split: rewrites without which some operations could not be laid out.  See infer_layout.c.
 *
 * 1. A reduction of every dimension has no loop left for the partitions.  Engines reduce along the free dimensions
 * only, so it becomes two, the second one across what the first one left in each partition:
 *
 *        %s = generic (r, r) ins(%x : 256x512) -> 1x1   ==>   %p = generic (p, r) ins(%x : 256x512) -> 256x1
 *                                                             %s = generic (r, p) ins(%p : 256x1)   -> 1x1
 *
 *    Its initial value must be a fill; the first step starts from the neutral element.  Sums are added in another
 * order.
 * 2. A value that is returned and that the user puts into SBUF, to be read there as well, is returned as a copy:
 * results are always in HBM.  If nobody else reads it no copy is made, and it is computed in SBUF tile by tile all the
 * same.
 */
#include "passes/infer_layout.h"

#include <string.h>

#include "linalg/emit.h"

/* ---- reductions to one element ---------------------------------------------------------------------------------- */

struct full_reduction {
  MlirOperation op, combiner;
  struct structured s;
  MlirValue initial; /* the scalar of the fill */
  int keep;          /* the loop that goes over the partitions first */
  int n_long;        /* loops longer than 1 */
};

static bool is_reduction(MlirOperation op, void *user) {
  (void)user;
  struct structured s;
  return ir_is(op, "linalg.generic") && mlirOperationGetNumResults(op) == 1 && structured_read(op, &s) &&
         s.kind == SK_REDUCTION;
}

/* Everything is reduced, or all that is not has one element; rank-1 operations have nothing to choose from. */
static bool is_full(struct full_reduction *r) {
  int n_parallel = 0;

  r->n_long = 0;
  r->keep = -1;
  for (int i = 0; i < r->s.n_loops; i++) {
    if (!r->s.reduction[i] && r->s.extents[i] != 1)
      return false;
    n_parallel += !r->s.reduction[i];
    r->n_long += r->s.extents[i] > 1;
  }
  if (r->s.n_loops < 2 || !r->s.n_inputs || (n_parallel && r->n_long < 2))
    return false;
  for (int d = 0; d < mlirAffineMapGetNumResults(r->s.maps[0]); d++) {
    const int loop = structured_map_loop(r->s.maps[0], d);
    if (loop >= 0 && r->keep < 0 && (r->n_long < 2 ? r->s.extents[loop] == 1 : r->s.extents[loop] > 1))
      r->keep = loop;
  }
  return r->keep >= 0;
}

static const struct {
  const char *name;
  int neutral; /* 0 or 1, -1: any start may be repeated */
} combiners[] = {
    {"arith.addf", 0},      {"arith.addi", 0},     {"arith.mulf", 1},     {"arith.muli", 1},   {"arith.maximumf", -1},
    {"arith.minimumf", -1}, {"arith.maxnumf", -1}, {"arith.minnumf", -1}, {"arith.maxsi", -1}, {"arith.maxui", -1},
    {"arith.minsi", -1},    {"arith.minui", -1},   {"arith.andi", -1},    {"arith.ori", -1},   {"arith.xori", 0},
};

/* Index of r->combiner in combiners, or -1. */
static int read_combiner(struct full_reduction *r) {
  MlirBlock body = mlirRegionGetFirstBlock(mlirOperationGetRegion(r->op, 0));
  MlirOperation yield = mlirBlockGetTerminator(body);
  MlirValue out = mlirBlockGetArgument(body, mlirBlockGetNumArguments(body) - 1);

  r->combiner = ir_defining_op(mlirOperationGetOperand(yield, 0));
  if (mlirOperationIsNull(r->combiner) || mlirOperationGetNumOperands(r->combiner) != 2)
    return -1;
  if (!mlirValueEqual(mlirOperationGetOperand(r->combiner, 0), out) &&
      !mlirValueEqual(mlirOperationGetOperand(r->combiner, 1), out))
    return -1;
  for (size_t i = 0; i < sizeof combiners / sizeof *combiners; i++)
    if (ir_is(r->combiner, combiners[i].name))
      return (int)i;
  return -1;
}

static MlirType tensor_type(int64_t rows, MlirType element) {
  return mlirRankedTensorTypeGet(2, (int64_t[]){rows, 1}, element, mlirAttributeGetNull());
}

static MlirValue filled(struct emit *e, MlirValue scalar, MlirType type) {
  return emit_fill(e, scalar, emit_op1(e, "tensor.empty", type, 0, NULL));
}

/* Iterator types of n loops, all reductions but `keep`. */
static MlirAttribute iterators(struct emit *e, int n, int keep) {
  MlirAttribute v[STRUCTURED_LOOPS_MAX];
  for (int i = 0; i < n; i++)
    v[i] = mlirAttributeParseGet(
        e->ctx, ir_str(i == keep ? "#linalg.iterator_type<parallel>" : "#linalg.iterator_type<reduction>"));
  return mlirArrayAttrGet(e->ctx, n, v);
}

/* The operation again, with one loop left out of the reduction. */
static MlirOperation partial(struct emit *e, const struct full_reduction *r, MlirValue init) {
  MlirAttribute maps[STRUCTURED_OPERANDS_MAX];
  MlirOperation op = mlirOperationClone(r->op);
  const int n = r->s.n_inputs;

  for (int o = 0; o < n; o++)
    maps[o] = mlirAffineMapAttrGet(r->s.maps[o]);
  maps[n] = mlirAffineMapAttrGet(emit_map(e, r->s.n_loops, 2, (int64_t[]){r->keep, EMIT_CONST(0)}));
  mlirOperationSetOperand(op, n, init);
  mlirOperationSetAttributeByName(op, ir_str("indexing_maps"), mlirArrayAttrGet(e->ctx, n + 1, maps));
  mlirOperationSetAttributeByName(op, ir_str("iterator_types"), iterators(e, r->s.n_loops, r->keep));
  mlirValueSetType(mlirOperationGetResult(op, 0), mlirValueGetType(init));
  mlirBlockInsertOwnedOperationBefore(e->block, r->op, op);
  return op;
}

static MlirValue combine(struct emit *e, MlirValue const *args, void *user) {
  const struct full_reduction *r = user;
  MlirStringRef name = mlirIdentifierStr(mlirOperationGetName(r->combiner));
  return emit_binary(e, arena_strndup(e->arena, name.data, name.length), args[1], args[0]);
}

/* What is left in the partitions, to one element. */
static MlirOperation finish(struct emit *e, struct full_reduction *r, MlirValue partials, MlirValue init) {
  const bool reduction[] = {true, false};
  MlirAffineMap maps[] = {emit_identity_map(e, 2), emit_map(e, 2, 2, (int64_t[]){1, EMIT_CONST(0)})};

  return emit_linalg_generic(e, &(struct emit_generic){.n_loops = 2,
                                                       .reduction = reduction,
                                                       .n_inputs = 1,
                                                       .inputs = &partials,
                                                       .maps = maps,
                                                       .output = init,
                                                       .body = combine,
                                                       .user = r});
}

/* x, of one element and rank 2, as type. */
static MlirValue as_type(struct emit *e, MlirValue x, MlirType type) {
  const int rank = (int)mlirShapedTypeGetRank(type);
  int64_t ones[STRUCTURED_LOOPS_MAX];
  MlirType i64 = mlirIntegerTypeGet(e->ctx, 64);
  MlirAttribute index[STRUCTURED_LOOPS_MAX], groups[2];
  const char *name = rank < 2 ? "tensor.collapse_shape" : "tensor.expand_shape";

  if (rank == 2)
    return x;
  for (int i = 0; i < rank || i < 2; i++) {
    ones[i] = 1;
    index[i] = mlirIntegerAttrGet(i64, i);
  }
  groups[0] = mlirArrayAttrGet(e->ctx, rank < 2 ? 2 : 1, index);
  groups[1] = rank < 2 ? groups[0] : mlirArrayAttrGet(e->ctx, rank - 1, index + 1);
  MlirNamedAttribute attrs[] = {
      emit_attr(e, "reassociation",
                mlirArrayAttrGet(e->ctx,
                                 rank == 0   ? 0
                                 : rank == 1 ? 1
                                             : 2,
                                 groups)),
      emit_attr(e, "static_output_shape", emit_i64_array(e, rank, ones)),
  };
  return emit_result(emit_operation(e, &(struct emit_op){.name = name,
                                                         .n_operands = 1,
                                                         .operands = &x,
                                                         .n_results = 1,
                                                         .results = &type,
                                                         .n_attrs = rank < 2 ? 1 : 2,
                                                         .attrs = attrs}));
}

/* The user's loop tile belongs to the first step; where the value lives, to the last one. */
static void move_annotations(MlirValue old, MlirValue first, MlirValue last) {
  struct layout l = layout_read(old);

  if (l.tile_op.ptr)
    mlirOperationSetOperand(l.tile_op, 0, first);
  if (l.tile_op.ptr)
    mlirOperationMoveAfter(l.tile_op, mlirOpResultGetOwner(first));
  if (l.layout_op.ptr) {
    mlirOperationRemoveAttributeByName(l.layout_op, ir_str("tile_size"));
    mlirOperationRemoveAttributeByName(l.layout_op, ir_str("partition_dim"));
  }
  mlirValueReplaceAllUsesOfWith(old, last);
}

static enum status split(struct pass_run *run, struct full_reduction *r) {
  MlirOperation fill = ir_defining_op(mlirOperationGetOperand(r->op, r->s.n_inputs));
  MlirValue old = mlirOperationGetResult(r->op, 0);
  MlirType type = mlirValueGetType(old), element = mlirShapedTypeGetElementType(type);
  struct emit e = {.ctx = run->ir->ctx,
                   .block = mlirOperationGetBlock(r->op),
                   .before = r->op,
                   .loc = mlirOperationGetLocation(r->op),
                   .arena = run->arena};
  const int c = read_combiner(r);

  if (c < 0)
    return pass_fail(run, r->op,
                     "a reduction of all dimensions needs a single add, multiply, min, max, and, or or xor "
                     "that combines the elements");
  if (mlirOperationIsNull(fill) || !ir_is(fill, "linalg.fill"))
    return pass_fail(run, r->op, "a reduction of all dimensions needs a constant initial value");
  MlirValue start = r->initial = mlirOperationGetOperand(fill, 0);
  const bool is_one_step = r->n_long < 2;
  if (combiners[c].neutral >= 0 && !is_one_step)
    start = mlirTypeIsAFloat(element) ? emit_float(&e, element, combiners[c].neutral)
                                      : emit_int(&e, element, combiners[c].neutral);
  MlirValue init = filled(&e, start, tensor_type(r->s.extents[r->keep], element));
  MlirOperation first = partial(&e, r, init), last = first;
  if (!is_one_step)
    last = finish(&e, r, emit_result(first), filled(&e, r->initial, tensor_type(1, element)));
  move_annotations(old, emit_result(first), as_type(&e, emit_result(last), type));
  mlirOperationDestroy(r->op);
  if (mlirOpOperandIsNull(mlirValueGetFirstUse(mlirOperationGetResult(fill, 0))))
    mlirOperationDestroy(fill);
  return ST_OK;
}

enum status infer_split_full_reductions(struct pass_run *run) {
  struct ir_ops ops = ir_collect(run->arena, run->module, is_reduction, NULL);
  enum status st = ST_OK;

  for (int i = 0; !st && i < ops.n; i++) {
    struct full_reduction r = {.op = ops.v[i]};
    if (structured_read(r.op, &r.s) && is_full(&r))
      st = split(run, &r);
  }
  return st;
}

/* ---- returned values in SBUF ------------------------------------------------------------------------------------ */

static bool is_read_elsewhere(MlirValue v, MlirOperation ret) {
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation user = mlirOpOperandGetOwner(u);
    if (!layout_is_annotation(user) && !ir_is(user, "nkipy.fuse_op") && !mlirOperationEqual(user, ret))
      return true;
  }
  return false;
}

static MlirValue copy_of(struct pass_run *run, MlirOperation ret, MlirOperation def, MlirValue v,
                         const struct layout *l) {
  struct emit e = {.ctx = run->ir->ctx,
                   .block = mlirOperationGetBlock(ret),
                   .before = ret,
                   .loc = mlirOperationGetLocation(def),
                   .arena = run->arena};
  MlirValue empty = emit_op1(&e, "tensor.empty", mlirValueGetType(v), 0, NULL);
  MlirValue copy = emit_result(emit_linalg_named(&e, "linalg.copy", 1, &v, empty, 0, NULL));
  const struct layout at = {.space = SPACE_SHARED_HBM, .partition_dim = l->partition_dim};

  layout_write(copy, &at, mlirOperationGetLocation(l->layout_op));
  pass_remark(run, def, "returned as a copy: the value itself is read from SBUF");
  return copy;
}

enum status infer_copy_returned(struct pass_run *run) {
  struct ir_ops ops = ir_collect_named(run->arena, run->module, "func.return");

  for (int i = 0; i < ops.n; i++)
    for (intptr_t k = 0; k < mlirOperationGetNumOperands(ops.v[i]); k++) {
      MlirValue v = mlirOperationGetOperand(ops.v[i], k);
      MlirOperation def = ir_defining_op(v);
      struct structured s;
      const struct layout l = layout_read(v);
      if (l.space == SPACE_SBUF && !mlirOperationIsNull(def) && structured_read(def, &s) &&
          structured_is_annotatable(&s) && is_read_elsewhere(v, ops.v[i]))
        mlirOperationSetOperand(ops.v[i], k, copy_of(run, ops.v[i], def, v, &l));
    }
  return ST_OK;
}
