/* infer-layout: chooses the memory of every value and the tiles in which it is computed.
 *
 *     %c = linalg.matmul …             %c = linalg.matmul …
 *     %e = linalg.exp ins(%c) …   ==>  "nkipy.layout"(%c) {mem_space = 3, partition_dim = 0, tile_size = [128, 512]}
 *     return %e                        "nkipy.tile_op"(%c) {loop_tile_size = [128, 512, 128]}
 *                                      %e = linalg.exp ins(%c) …
 *                                      "nkipy.layout"(%e) {mem_space = 4, partition_dim = 0, tile_size = [128, 512]} …
 *
 * Every element-wise operation, reduction, matmul, transpose and broadcast gets one layout and one tile_op.  The user's
 * knobs stay.  The pass chooses the rest in three steps:
 *
 *   1. Which loop goes over the 128 partitions (tiles.c)?  The user's partition_dim spreads through element-wise
 *      operations and reductions.  Otherwise it is the first loop, or, if that is reduced, the longest parallel one.  A
 *      short first loop, such as a batch loop, is replaced by a longer one.  The operands of a matmul keep
 *      partition_dim 0: its lowering transposes the first operand in any case, so chains of matmuls do not contradict
 *      each other.  canonicalize-partition-dim then makes these loops the first ones.
 *   2. How large are tiles (tiles.c)?  Loops over the same dimension of a value share one tile size, so that an
 *      operation writes the tiles that its readers read.  The user's sizes override the defaults (128 partitions, a
 *      PSUM bank); two different sizes of the user both stay.
 *   3. In which memory is the value (space.c)?  Results of the function are in shared HBM; a value that all its readers
 *      read tile by tile is in SBUF; all others are in HBM.  Only arguments and results of the function are in shared
 *      HBM: values that a loop carries are not.
 *
 * An incomplete layout is completed in place; a value never gets a second one.  The pass visits operations in program
 * order, so the result does not depend on addresses.  Tile sizes need not divide the extents: tiling handles the
 * remainders.  If knobs put one value into two memories, or in a form that its operation cannot produce, the value is
 * copied (copies.c).  explain.c says what was decided, and why.  If neighbours have different partition dimensions, each keeps its own, and the data is transposed
 * between them.  A reduction always has a loop for the partitions, because prepare-arithmetic splits reductions to a
 * single element.  Works on tensors with static shapes.  Linear in uses.
 */
#include "passes/infer_layout/infer_layout.h"

#include <assert.h>
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"

#include "ir/internal.h"
#include "passes/lib/scan.h"

/* ---- lookup ----------------------------------------------------------------------------------------------------- */

struct tiled *infer_find(const struct infer *f, MlirValue value) {
  MlirOperation op = ir_defining_op(value);
  return mlirOperationIsNull(op) ? NULL : table_get(&f->by_op, op.ptr);
}

static void index_operations(struct infer *f) {
  f->by_op = (struct table){.arena = f->run->arena};
  for (int i = 0; i < f->n; i++)
    table_put(&f->by_op, f->v[i].op.ptr, &f->v[i]);
}

int infer_loop(const struct tiled *t, int o, int dim) {
  return dim < mlirAffineMapGetNumResults(t->s.maps[o]) ? structured_map_loop(t->s.maps[o], dim) : -1;
}

int infer_dim(const struct tiled *t, int o, int loop) {
  for (int d = 0; loop >= 0 && d < mlirAffineMapGetNumResults(t->s.maps[o]); d++)
    if (infer_loop(t, o, d) == loop)
      return d;
  return -1;
}

/* ---- messages --------------------------------------------------------------------------------------------------- */

const char *infer_place(const struct infer *f, MlirOperation op) {
  const struct src_loc *at = ir_first_place(f->run->arena, mlirOperationGetLocation(op));
  return at ? arena_printf(f->run->arena, "%s:%d", at->range.file, at->range.line) : "elsewhere";
}

/* Adds a diagnostic at an annotation. */
static void report(const struct infer *f, MlirOperation knob, enum diag_severity severity, enum diag_code code,
                   const char *fmt, va_list ap) {
  const struct src_loc *at = ir_first_place(f->run->arena, mlirOperationGetLocation(knob));
  diag_add(f->run->ds, severity, code, at, "%s", arena_vprintf(f->run->arena, fmt, ap))->stage = f->run->def->name;
}

enum status infer_bad_knob(const struct infer *f, MlirOperation knob, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  report(f, knob, DS_ERROR, DG_BAD_KNOB, fmt, ap);
  va_end(ap);
  return ST_INPUT;
}

void infer_warn_knob(const struct infer *f, MlirOperation knob, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  report(f, knob, DS_WARNING, DG_KNOB_IGNORED, fmt, ap);
  va_end(ap);
}

/* ---- collecting ------------------------------------------------------------------------------------------------- */

static bool is_linalg_on_tensors(MlirOperation op, void *user) {
  (void)user;
  return ir_is_of(op, "linalg.") && mlirOperationGetNumResults(op) > 0 &&
         mlirTypeIsARankedTensor(mlirValueGetType(mlirOperationGetResult(op, 0)));
}

static bool is_tiled(const struct structured *s) {
  return structured_is_annotatable(s) || s->kind == SK_TRANSPOSE || s->kind == SK_BROADCAST;
}

static enum status check_shape(struct infer *f, const struct tiled *t) {
  if (t->rank > STRUCTURED_LOOPS_MAX)
    return pass_fail(f->run, t->op, "a value of rank %d has more dimensions than the %d that are handled", t->rank,
                     STRUCTURED_LOOPS_MAX);
  for (int i = 0; i < t->s.n_loops; i++)
    if (t->s.extents[i] < 0)
      return pass_fail(f->run, t->op, "this operation has a dynamic or unreadable dimension; shapes must be static");
  return ST_OK;
}

/* The loops whose index is subtracted in a place that the body picks an element from. */
static uint32_t backwards_of(MlirOperation op, struct arena *a) {
  const struct ir_ops picks = ir_collect_named(a, op, "tensor.extract");
  uint32_t loops = 0;

  for (int i = 0; i < picks.n; i++)
    for (intptr_t k = 1; k < mlirOperationGetNumOperands(picks.v[i]); k++) {
      MlirOperation def = ir_defining_op(mlirOperationGetOperand(picks.v[i], k));
      if (mlirOperationIsNull(def) || !ir_is(def, "arith.subi"))
        continue;
      MlirOperation by = ir_defining_op(mlirOperationGetOperand(def, 1));
      if (!mlirOperationIsNull(by) && ir_is(by, "linalg.index"))
        loops |= 1u << mlirIntegerAttrGetValueInt(ir_attr(by, "dim"));
    }
  return loops;
}

static enum status add_tiled(struct infer *f, MlirOperation op) {
  struct tiled *t = &f->v[f->n];
  *t = (struct tiled){.op = op, .value = mlirOperationGetResult(op, 0), .part = -1};
  if (!structured_read(op, &t->s) || t->s.kind == SK_OTHER) {
    MlirStringRef name = mlirIdentifierStr(mlirOperationGetName(op));
    return pass_fail(f->run, op, "unable to determine a layout for %.*s", (int)name.length, name.data);
  }
  if (!is_tiled(&t->s))
    return ST_OK;
  t->rank = (int)mlirShapedTypeGetRank(mlirValueGetType(t->value));
  t->at = layout_read(t->value);
  t->is_gather = t->s.n_inputs && ir_collect_named(f->run->arena, op, "tensor.extract").n > 0;
  t->backwards = backwards_of(op, f->run->arena);
  t->var = f->n_vars;
  f->n_vars += t->s.n_loops;
  f->n++;
  return check_shape(f, t);
}

static enum status collect(struct infer *f) {
  struct ir_ops ops = ir_collect(f->run->arena, f->run->module, is_linalg_on_tensors, NULL);
  enum status st = ST_OK;

  f->v = arena_new_array(f->run->arena, struct tiled, (size_t)ops.n + 1);
  for (int i = 0; !st && i < ops.n; i++)
    st = add_tiled(f, ops.v[i]);
  f->vars = arena_new_array(f->run->arena, struct tile_var, (size_t)f->n_vars + 1);
  index_operations(f);
  return st;
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

/* True if the user gives the size of a loop, for this operation or a neighbour. */
static bool has_given_tile(const struct infer *f, const struct tiled *t) {
  for (int i = 0; i < t->s.n_loops; i++)
    if (infer_given_tile(f, t, i))
      return true;
  return false;
}

/* Gives result r > 0 a layout: only result 0 has a tile_op.  The result before of a scan that nothing else reads and that
 * starts with a number stays in SBUF between the tiles. */
static void complete_other(struct infer *f, const struct tiled *t, int r) {
  MlirValue v = mlirOperationGetResult(t->op, r);
  struct layout l = layout_read(t->value);
  struct scan scan;
  int64_t dims[STRUCTURED_LOOPS_MAX];

  l.n_loop = 0;
  l.n_tile = ir_shape(v, STRUCTURED_LOOPS_MAX, dims);
  for (int d = 0; d < l.n_tile; d++) {
    const int loop = infer_loop(t, t->s.n_inputs + r, d);
    l.tile[d] = loop < 0 ? 1 : infer_tile(f, t, loop);
  }
  const int d = infer_dim(t, t->s.n_inputs + r, t->part);
  l.partition_dim = d < 0 ? 0 : d;
  MlirValue first = mlirOperationGetOperand(t->op, t->s.n_inputs + r);
  MlirOperation fill = ir_defining_op(first);
  if (!ir_is_used(v) && !mlirOperationIsNull(fill) && ir_is(fill, "linalg.fill") && scan_read(t->op, &scan)) {
    l.space = MEM_SBUF;
    layout_write(first, &l, mlirOperationGetLocation(t->op));
  }
  layout_write(v, &l, mlirOperationGetLocation(t->op));
}

static void complete(struct infer *f, struct tiled *t) {
  struct layout l = t->at;
  const bool is_given = l.n_tile || l.n_loop;

  assert(t->part < t->s.n_loops);
  pass_step(f->run, t->op, "annotate-operation");
  l.n_loop = t->s.n_loops;
  for (int i = 0; i < t->s.n_loops; i++)
    l.loop[i] = infer_tile(f, t, i);
  if (!l.n_tile) {
    l.n_tile = t->rank;
    for (int d = 0; d < t->rank; d++) {
      const int loop = infer_result_loop(t, d);
      l.tile[d] = loop < 0 ? 1 : l.loop[loop];
      if (loop == t->part && t->s.kind == SK_TRANSPOSE && l.tile[d] > NISA_PARTITIONS)
        l.tile[d] = NISA_PARTITIONS; /* of a long tile, as many rows lie in SBUF side by side */
    }
  }
  if (l.partition_dim < 0) {
    l.partition_dim = infer_dim(t, t->s.n_inputs, t->part);
    l.partition_dim = l.partition_dim < 0 ? 0 : l.partition_dim;
  }
  layout_write(t->value, &l, mlirOperationGetLocation(t->op));
  if (is_given || t->is_user_space || has_given_tile(f, t))
    ir_set_attr(layout_read(t->value).layout_op, "given", mlirUnitAttrGet(f->run->ir->ctx));
  for (int r = 1; r < mlirOperationGetNumResults(t->op); r++)
    complete_other(f, t, r);
  t->at = l;
  infer_explain(f, t, &l, is_given);
}

static enum status run(struct pass_run *r) {
  struct infer f = {.run = r};

  infer_copy_relaid(r);
  infer_copy_returned(r);
  infer_copy_revisited(r);
  enum status st = collect(&f);
  if (!st)
    st = infer_partitions(&f);
  if (!st)
    st = infer_tiles(&f);
  if (!st)
    infer_spaces(&f);
  for (int i = 0; !st && i < f.n; i++)
    complete(&f, &f.v[i]);
  return st;
}

const struct pass_def infer_layout = {
    .name = "infer-layout",
    .run = run,
};
