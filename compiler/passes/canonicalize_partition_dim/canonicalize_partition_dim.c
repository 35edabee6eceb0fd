/* canonicalize-partition-dim: makes the partition dimension the first dimension longer than 1 of every tile.
 *
 *     %e = linalg.exp ins(%x : 64x128)          %t = linalg.transpose ins(%x) permutation = [1, 0]
 *     layout(%e) {partition_dim = 1}      ==>   %e = linalg.exp ins(%t : 128x64)
 *     return %e                                 layout(%e) {partition_dim = 0}
 *                                               %b = linalg.transpose ins(%e) permutation = [1, 0]
 *                                               return %b
 *
 * A tile of 1x128x64 needs nothing: its second dimension lies across the partitions as it is.  The pass turns each
 * element-wise operation and reduction with a tile that has more elements before its partition dimension, or whose
 * partition dimension is the last one of an operand.  The operation stays in its place and gets its loops in a new order:
 * iterator types, maps, linalg.index and tiles change with them.  Its operands are transposed, or used as they are if a
 * turned operation already computes them in that order (orders.h).  So there are transposes only at the beginning and
 * the end of a chain, one per value and order.  This includes reductions of the leading dimension, for which
 * infer-layout chose another partition dimension, and results without the reduced dimension.  If an operand lacks the
 * partition dimension, a linalg.broadcast copies it to all partitions.
 *
 * Values that no linalg operation computes (loop results, slices) are not turned; their partition_dim has no effect.
 * A transpose whose result is in SBUF is changed to produce the wanted order directly.  On an argument the knob is
 * ignored with a warning.  partition_dim on matmuls and fills is an error.  Works on tensors with static shapes.
 * Linear in uses.
 */
#include <assert.h>
#include <string.h>

#include "ir/internal.h"
#include "nisa/nisa.h"
#include "passes/canonicalize_partition_dim/orders.h"
#include "passes/lib/edit.h"

/* The operation that is being turned. */
struct turning {
  MlirOperation op;
  struct structured s;
  MlirValue value;
  struct layout at;
  int part;                         /* number of the partition loop */
  int new_of[STRUCTURED_LOOPS_MAX]; /* new number of each old loop */
};

/* ---- refusing --------------------------------------------------------------------------------------------------- */

static bool only_moves(const struct structured *s) {
  return s->kind == SK_TRANSPOSE || s->kind == SK_BROADCAST;
}

static enum status check_layout(struct pass_run *run, MlirOperation op) {
  MlirValue v = mlirOperationGetOperand(op, 0);
  const struct layout l = layout_read(v);
  MlirOperation def = ir_defining_op(v);
  int64_t dims[STRUCTURED_LOOPS_MAX];
  const int rank = ir_shape(v, STRUCTURED_LOOPS_MAX, dims), p = l.partition_dim;
  struct structured s;

  if (p <= 0)
    return ST_OK;
  if (rank < 0 || rank > STRUCTURED_LOOPS_MAX || !mlirTypeIsARankedTensor(mlirValueGetType(v)))
    return pass_fail(run, op, "partition_dim %d of something that is not a ranked tensor", p);
  if (p >= rank)
    return pass_fail(run, op, "partition_dim %d is not a dimension of a value of rank %d", p, rank);
  if (p < l.n_tile && l.tile[p] > NISA_PARTITIONS) { /* two knobs, of values that share their tiles */
    diag_add(run->ds, DS_ERROR, DG_BAD_KNOB, ir_first_place(run->arena, mlirOperationGetLocation(op)),
             "tile size %lld along partition_dim %d exceeds the hardware partition limit of %d", (long long)l.tile[p],
             p, NISA_PARTITIONS)
        ->stage = run->def->name;
    return ST_INPUT;
  }
  if (mlirOperationIsNull(def)) {
    const struct src_loc *at = ir_first_place(run->arena, mlirOperationGetLocation(op));
    diag_add(run->ds, DS_WARNING, DG_KNOB_IGNORED, at,
             "partition_dim %d has no effect: the value is an argument, which lies in HBM; annotate the operation that "
             "reads it",
             p)
        ->stage = run->def->name;
    return ST_OK;
  }
  if (!structured_read(def, &s))
    return ST_OK;
  if (s.kind == SK_MATMUL || s.kind == SK_BATCH_MATMUL)
    return pass_fail(run, op,
                     "partition_dim != 0 on a matmul is not supported; annotate the element-wise operation that "
                     "reads it instead");
  if (!structured_is_elementwise(&s) && s.kind != SK_REDUCTION && s.kind != SK_TRANSPOSE && s.kind != SK_BROADCAST) {
    MlirStringRef name = mlirIdentifierStr(mlirOperationGetName(def));
    return pass_fail(run, op, "unsupported op for partition_dim %d: %.*s", p, (int)name.length, name.data);
  }
  return ST_OK;
}

/* ---- loops and dimensions --------------------------------------------------------------------------------------- */

static int dim_of_loop(const struct turning *t, int o, int loop) {
  for (int d = 0; d < mlirAffineMapGetNumResults(t->s.maps[o]); d++)
    if (structured_map_loop(t->s.maps[o], d) == loop)
      return d;
  return -1;
}

/* Sets perm to [p, 0, …, p-1, p+1, …]. */
static void front_order(int rank, int p, int64_t *perm) {
  perm[0] = p;
  for (int i = 1; i < rank; i++)
    perm[i] = i <= p ? i - 1 : i;
}

static int64_t tile_of(const struct turning *t, int loop) {
  return t->at.n_loop == t->s.n_loops ? t->at.loop[loop] : t->s.extents[loop];
}

/* True if each operand that has the partition loop has it where legalize-layout puts the partitions: after dimensions
 * of which a tile has one element, and not in the last of several. */
static bool is_in_place(const struct turning *t) {
  for (int o = 0; o <= t->s.n_inputs; o++) {
    const int d = dim_of_loop(t, o, t->part);
    if (d > 0 && d == mlirAffineMapGetNumResults(t->s.maps[o]) - 1)
      return false;
    for (int k = 0; k < d; k++) {
      const int loop = structured_map_loop(t->s.maps[o], k);
      if (loop >= 0 ? tile_of(t, loop) > 1 : !mlirAffineExprIsAConstant(mlirAffineMapGetResult(t->s.maps[o], k)))
        return false;
    }
  }
  return true;
}

/* Reads op.  Returns false if its loops are already in order, or if this pass does not turn it. */
static bool needs_turn(MlirOperation op, struct turning *t) {
  *t = (struct turning){.op = op};
  if (mlirOperationGetNumResults(op) < 1 || !structured_read(op, &t->s) ||
      (!structured_is_elementwise(&t->s) && t->s.kind != SK_REDUCTION))
    return false;
  t->value = mlirOperationGetResult(op, 0);
  t->at = layout_read(t->value);
  if (t->at.partition_dim < 0 || !mlirTypeIsARankedTensor(mlirValueGetType(t->value)))
    return false;
  if (t->at.partition_dim >= mlirAffineMapGetNumResults(t->s.maps[t->s.n_inputs]))
    return false;
  t->part = structured_map_loop(t->s.maps[t->s.n_inputs], t->at.partition_dim);
  if (t->part < 0)
    return false;
  for (int i = 0; i < t->s.n_loops; i++)
    t->new_of[i] = i == t->part ? 0 : i < t->part ? i + 1 : i;
  return !is_in_place(t);
}

/* ---- operands that lack the partition dimension ----------------------------------------------------------------- */

/* Returns the map from the old loop numbers of an operation to the new ones. */
static MlirAffineMap renaming(const struct orders *orders, const struct turning *g) {
  MlirAffineExpr loops[STRUCTURED_LOOPS_MAX];
  for (int i = 0; i < g->s.n_loops; i++)
    loops[i] = mlirAffineDimExprGet(orders->run->ir->ctx, g->new_of[i]);
  return mlirAffineMapGet(orders->run->ir->ctx, g->s.n_loops, 0, g->s.n_loops, loops);
}

/* Broadcasts operand o to `count` partitions in a new first dimension.  Drops one dimension of extent 1 that took the
 * place of the missing one. */
static MlirValue spread(struct orders *orders, const struct turning *g, int o, int64_t count, MlirAffineMap *map) {
  MlirValue x = mlirOperationGetOperand(g->op, o);
  struct ir_builder b = edit_before(orders->run, g->op);
  int64_t dims[STRUCTURED_LOOPS_MAX], to[STRUCTURED_LOOPS_MAX + 1];
  MlirAffineExpr results[STRUCTURED_LOOPS_MAX + 1];
  struct layout l = {.space = MEM_SBUF, .partition_dim = 0};
  const int rank = ir_shape(x, STRUCTURED_LOOPS_MAX, dims);
  bool is_dropped = false;
  int n = 1;

  to[0] = count;
  results[0] = mlirAffineDimExprGet(orders->run->ir->ctx, 0);
  l.tile[0] = g->at.n_loop ? g->at.loop[g->part] : count < NISA_PARTITIONS ? count : NISA_PARTITIONS;
  for (int d = 0; d < rank; d++) {
    const int loop = structured_map_loop(g->s.maps[o], d);
    if (loop < 0 && dims[d] == 1 && !is_dropped) {
      is_dropped = true;
      continue;
    }
    to[n] = dims[d];
    l.tile[n] = loop >= 0 && g->at.n_loop ? g->at.loop[loop] : dims[d];
    results[n++] = mlirAffineExprCompose(mlirAffineMapGetResult(g->s.maps[o], d), renaming(orders, g));
  }
  MlirValue small = edit_reshape(&b, x, n - 1, to + 1);
  MlirValue empty = ir_empty_of(&b, ir_tensor_of(ir_value_element(x), n, to));
  MlirNamedAttribute attr = ir_named(&b, "dimensions", ir_i64_array(&b, 1, (int64_t[]){0}));
  MlirValue y = ir_result(ir_linalg_copying(&b, "linalg.broadcast", small, empty, attr));
  l.n_tile = l.n_loop = n;
  memcpy(l.loop, l.tile, sizeof l.loop);
  layout_write(y, &l, b.loc);
  *map = mlirAffineMapGet(orders->run->ir->ctx, g->s.n_loops, 0, n, results);
  return y;
}

/* ---- turning one operation -------------------------------------------------------------------------------------- */

/* Returns the map of operand o with its results in the order perm and the loops renumbered. */
static MlirAffineMap new_map(struct orders *orders, const struct turning *g, int o, int rank, const int64_t *perm) {
  MlirAffineExpr results[STRUCTURED_LOOPS_MAX];

  for (int i = 0; i < rank; i++)
    results[i] = mlirAffineExprCompose(mlirAffineMapGetResult(g->s.maps[o], perm[i]), renaming(orders, g));
  return mlirAffineMapGet(orders->run->ir->ctx, g->s.n_loops, 0, rank, results);
}

/* Brings operand o into the new order.  Returns its new map. */
static MlirAffineMap turn_operand(struct orders *orders, const struct turning *g, int o) {
  MlirValue x = mlirOperationGetOperand(g->op, o);
  const int rank = (int)mlirAffineMapGetNumResults(g->s.maps[o]), p = dim_of_loop(g, o, g->part);
  int64_t perm[STRUCTURED_LOOPS_MAX], tile[STRUCTURED_LOOPS_MAX], dims[STRUCTURED_LOOPS_MAX];
  MlirAffineMap map;

  if (p < 0 && rank > 0 && ir_shape(x, STRUCTURED_LOOPS_MAX, dims) == rank) {
    mlirOperationSetOperand(g->op, o, spread(orders, g, o, g->s.extents[g->part], &map));
    return map;
  }
  front_order(rank, p < 0 ? 0 : p, perm);
  ir_shape(x, STRUCTURED_LOOPS_MAX, dims);
  for (int i = 0; i < rank; i++) {
    const int loop = structured_map_loop(g->s.maps[o], (int)perm[i]);
    tile[i] = loop >= 0 && g->at.n_loop ? g->at.loop[loop] : dims[perm[i]];
  }
  mlirOperationSetOperand(g->op, o, orders_turned(orders, g->op, x, rank, perm, tile));
  return new_map(orders, g, o, rank, perm);
}

static void rename_indices(struct orders *orders, const struct turning *g) {
  struct ir_ops ops = ir_collect_named(orders->run->arena, g->op, "linalg.index");
  MlirType i64 = mlirIntegerTypeGet(orders->run->ir->ctx, 64);

  for (int i = 0; i < ops.n; i++) {
    const int64_t dim = mlirIntegerAttrGetValueInt(ir_attr(ops.v[i], "dim"));
    ir_set_attr(ops.v[i], "dim", mlirIntegerAttrGet(i64, g->new_of[dim]));
  }
}

static void set_structure(struct orders *orders, const struct turning *g, int n, MlirAffineMap const *maps) {
  MlirContext ctx = orders->run->ir->ctx;
  MlirAttribute m[STRUCTURED_OPERANDS_MAX], types[STRUCTURED_LOOPS_MAX];
  MlirAttribute old = ir_attr(g->op, "iterator_types");

  if (!ir_is(g->op, "linalg.generic"))
    return; /* a named operation: all its maps are identities, before and after */
  for (int i = 0; i < n; i++)
    m[i] = mlirAffineMapAttrGet(maps[i]);
  for (int i = 0; i < g->s.n_loops; i++)
    types[g->new_of[i]] = mlirArrayAttrGetElement(old, i);
  ir_set_attr(g->op, "indexing_maps", mlirArrayAttrGet(ctx, n, m));
  ir_set_attr(g->op, "iterator_types", mlirArrayAttrGet(ctx, g->s.n_loops, types));
  rename_indices(orders, g);
}

/* Returns the init in the order perm.  A tensor.empty or a fill is replaced by a new one; another init is
 * transposed. */
static MlirValue turn_init(struct orders *orders, const struct turning *g, int rank, const int64_t *perm,
                           const int64_t *tile) {
  MlirValue init = mlirOperationGetOperand(g->op, g->s.n_inputs);
  MlirOperation def = ir_defining_op(init);
  int64_t dims[STRUCTURED_LOOPS_MAX], to[STRUCTURED_LOOPS_MAX];
  struct ir_builder b = edit_before(orders->run, g->op);

  if (orders_is_identity(rank, perm))
    return init;
  if (mlirOperationIsNull(def) || (!ir_is(def, "tensor.empty") && !ir_is(def, "linalg.fill")))
    return orders_turned(orders, g->op, init, rank, perm, tile);
  ir_shape(init, STRUCTURED_LOOPS_MAX, dims);
  for (int i = 0; i < rank; i++)
    to[i] = dims[perm[i]];
  if (!memcmp(to, dims, (size_t)rank * sizeof *to))
    return init; /* the shape stays the same, and the contents are uninitialised or all equal */
  return edit_reshape_init(&b, init, rank, to);
}

static void permute(int n, int64_t *v, const int64_t *perm) {
  int64_t old[STRUCTURED_LOOPS_MAX];
  memcpy(old, v, (size_t)n * sizeof *v);
  for (int i = 0; i < n; i++)
    v[i] = old[perm[i]];
}

static enum status turn_operation(struct orders *orders, struct turning *g) {
  const int rank = (int)mlirAffineMapGetNumResults(g->s.maps[g->s.n_inputs]);
  MlirAffineMap maps[STRUCTURED_OPERANDS_MAX];
  int64_t perm[STRUCTURED_LOOPS_MAX], dims[STRUCTURED_LOOPS_MAX];
  struct layout now = g->at;

  if (g->s.n_inits != 1)
    return pass_fail(orders->run, g->op, "an operation with %d results cannot be laid out along another dimension",
                     g->s.n_inits);
  front_order(rank, g->at.partition_dim, perm);
  for (int o = 0; o <= g->s.n_inputs; o++)
    if (mlirAffineMapGetNumResults(g->s.maps[o]) >= STRUCTURED_LOOPS_MAX)
      return pass_fail(orders->run, g->op,
                       "an operand with more than %d dimensions cannot be laid out along another one",
                       STRUCTURED_LOOPS_MAX - 1);
  permute(now.n_tile == rank ? rank : 0, now.tile, perm);
  for (int i = 0; i < now.n_loop && now.n_loop == g->s.n_loops; i++)
    now.loop[g->new_of[i]] = g->at.loop[i];
  now.partition_dim = 0;
  for (int o = 0; o < g->s.n_inputs; o++)
    maps[o] = turn_operand(orders, g, o);
  maps[g->s.n_inputs] = new_map(orders, g, g->s.n_inputs, rank, perm);
  MlirValue old_init = mlirOperationGetOperand(g->op, g->s.n_inputs);
  MlirValue init = turn_init(orders, g, rank, perm, now.tile);
  mlirOperationSetOperand(g->op, g->s.n_inputs, init);
  if (!mlirValueEqual(old_init, init) && !mlirOperationIsNull(ir_defining_op(old_init)) &&
      (ir_is(ir_defining_op(old_init), "tensor.empty") || ir_is(ir_defining_op(old_init), "linalg.fill")))
    edit_erase_unused(orders->run->arena, ir_defining_op(old_init));
  set_structure(orders, g, g->s.n_inputs + 1, maps);
  ir_shape(init, STRUCTURED_LOOPS_MAX, dims);
  mlirValueSetType(g->value, ir_tensor_of(ir_value_element(init), rank, dims));
  layout_write(g->value, &now, mlirOperationGetLocation(g->op));
  if (!orders_is_identity(rank, perm))
    orders_turn_back(orders, g->value, g->value, rank, perm, &g->at);
  return ST_OK;
}

/* Sets from[i] to the dimension of the operand that is dimension perm[i] of the result. */
static void transpose_from(const struct structured *s, int rank, const int64_t *perm, int64_t *from) {
  for (int i = 0; i < rank; i++)
    for (int d = 0; d < rank; d++)
      if (structured_map_loop(s->maps[0], d) == structured_map_loop(s->maps[1], (int)perm[i]))
        from[i] = d;
}

/* Replaces the transpose op by one that writes its result with the partition dimension first, and a transpose back for
 * the readers of the original order. */
static void turn_transpose(struct orders *orders, MlirOperation op, int rank, const int64_t *perm,
                           const int64_t *from) {
  MlirValue v = ir_result(op);
  const struct layout at = layout_read(v);
  struct layout now = at;
  struct ir_builder b = edit_after(orders->run, op);
  MlirValue y = ir_result(ir_transpose(&b, mlirOperationGetOperand(op, 0), rank, from));

  now.partition_dim = 0;
  permute(rank, now.tile, perm);
  now.n_loop = rank;
  memcpy(now.loop, now.tile, sizeof now.loop);
  layout_write(y, &now, b.loc);
  orders_turn_back(orders, v, y, rank, perm, &at);
  mlirOperationDestroy(at.layout_op);
  if (!mlirOperationIsNull(at.tile_op))
    mlirOperationDestroy(at.tile_op);
  edit_erase_unused(orders->run->arena, op);
}

/* True if a tile of the layout has one element along each dimension before the partitions, which are not the last. */
static bool has_units_before(const struct layout *at, int rank) {
  bool is_unit = at->n_tile == rank && at->partition_dim < rank - 1;
  for (int d = 0; is_unit && d < at->partition_dim; d++)
    is_unit = at->tile[d] == 1;
  return is_unit;
}

/* Handles a transpose or broadcast.  In HBM there are no partitions, and a broadcast is a plain copy, so
 * partition_dim has no meaning there and becomes 0. */
static void turn_movement(struct orders *orders, MlirOperation op, const struct structured *s) {
  struct layout at = layout_read(ir_result(op));
  const int rank = (int)mlirAffineMapGetNumResults(s->maps[1]);
  int64_t perm[STRUCTURED_LOOPS_MAX], from[STRUCTURED_LOOPS_MAX];

  if (at.partition_dim <= 0 || at.partition_dim >= rank || has_units_before(&at, rank))
    return;
  front_order(rank, at.partition_dim, perm);
  if (s->kind == SK_TRANSPOSE && at.space == MEM_SBUF && at.n_tile == rank) {
    transpose_from(s, rank, perm, from);
    if (!orders_is_identity(rank, from)) {
      turn_transpose(orders, op, rank, perm, from);
      return;
    }
  }
  at.partition_dim = 0;
  at.tile[0] = at.tile[0] > NISA_PARTITIONS ? NISA_PARTITIONS : at.tile[0];
  at.loop[0] = at.loop[0] > NISA_PARTITIONS ? NISA_PARTITIONS : at.loop[0];
  layout_write(ir_result(op), &at, mlirOperationGetLocation(op));
}

/* ---- the end ---------------------------------------------------------------------------------------------------- */

static bool is_operation(MlirOperation op, void *user) {
  (void)user;
  return structured_read(op, &(struct structured){0});
}

static enum status run_pass(struct pass_run *run) {
  struct ir_ops layouts = ir_collect_named(run->arena, run->module, "nkipy.layout");
  struct orders orders = {.run = run};
  enum status st = ST_OK;

  for (int i = 0; i < layouts.n; i++) {
    const enum status one = check_layout(run, layouts.v[i]);
    st = one ? one : st;
  }
  if (st)
    return st;
  struct ir_ops ops = ir_collect(run->arena, run->module, is_operation, NULL);
  for (int i = 0; !st && i < ops.n; i++) {
    struct turning g;
    struct structured s;
    pass_step(run, ops.v[i], "partitions-first");
    if (needs_turn(ops.v[i], &g))
      st = turn_operation(&orders, &g);
    else if (structured_read(ops.v[i], &s) && only_moves(&s) && mlirOperationGetNumResults(ops.v[i]) == 1)
      turn_movement(&orders, ops.v[i], &s);
  }
  pass_step(run, run->module, "settle-orders");
  if (!st)
    orders_settle(&orders);
  return st;
}

const struct pass_def canonicalize_partition_dim = {
    .name = "canonicalize-partition-dim",
    .run = run_pass,
};
