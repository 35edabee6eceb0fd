/* decompose_batch_matmul: the tensor engine multiplies matrices, so batches become loops around linalg.matmul.
 *
 *     %c = linalg.batch_matmul ins(%a, %b) outs(%init)
 *   ==>
 *     %c = scf.for %i = 0 to B step 1 iter_args(%acc = %init) {
 *       %m = linalg.matmul ins(%a[%i], %b[%i]) outs(%acc[%i])
 *       yield %m inserted into %acc[%i]
 *     }
 *
 * Any contraction whose result is [batch…, M, N] qualifies: linalg.batch_matmul, linalg.contract, and a linalg.generic
 * that multiplies and adds.  There may be several batch dimensions (one loop each); an operand may lack some of them
 * (the same matrix every time) or hold M and K, or K and N, in the other order (linalg.matmul says so in its maps).
 *
 * Knobs: the batch is iterated, so its tile has to be 1.  The loop tile moves to the matmul without its batch entries;
 * the layout stays on the whole result, with the loop tile's [1…, M, N] if it has no tile of its own (infer-layout
 * does not look at results of loops).  A loop tile without a layout makes one, for the same reason.  Linear in ops.
 */
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "passes/lib/edit.h"
#include "passes/lib/layout.h"

struct batched {
  MlirOperation op;
  struct structured s;
  int rank, n_batch; /* of the result; rank == n_batch + 2 */
  int m, n, k;       /* loops */
};

/* ---- which operations ------------------------------------------------------------------------------------------- */

static int dim_of(const struct batched *b, int operand, int loop) {
  for (int r = 0; r < mlirAffineMapGetNumResults(b->s.maps[operand]); r++)
    if (structured_map_loop(b->s.maps[operand], r) == loop)
      return r;
  return -1;
}

static bool only_loops(MlirAffineMap m) {
  for (int r = 0; r < mlirAffineMapGetNumResults(m); r++)
    if (structured_map_loop(m, r) < 0)
      return false;
  return true;
}

/* Finds the loops of a contraction with a batch; false if op is none. */
static bool read_batched(MlirOperation op, struct batched *b) {
  *b = (struct batched){.op = op};
  const bool is_generic = ir_is(op, "linalg.generic");
  if (!is_generic && !ir_is(op, "linalg.batch_matmul") && !ir_is(op, "linalg.contract"))
    return false;
  if (!structured_read(op, &b->s) || b->s.n_inputs != 2 || b->s.n_inits != 1 || mlirOperationGetNumResults(op) != 1)
    return false;
  int n_red = 0;
  for (int l = 0; l < b->s.n_loops; l++)
    if (dim_of(b, 2, l) < 0) { /* linalg.contract has no iterator types: what the result lacks is summed up */
      b->k = l;
      n_red++;
    }
  b->rank = (int)mlirAffineMapGetNumResults(b->s.maps[2]);
  b->n_batch = b->rank - 2;
  if (n_red != 1 || b->n_batch < 1 || b->s.n_loops != b->rank + 1)
    return false;
  for (int o = 0; o < 3; o++)
    if (!only_loops(b->s.maps[o]))
      return false;
  b->m = structured_map_loop(b->s.maps[2], b->rank - 2);
  b->n = structured_map_loop(b->s.maps[2], b->rank - 1);
  return dim_of(b, 0, b->m) >= 0 && dim_of(b, 0, b->k) >= 0 && dim_of(b, 0, b->n) < 0 && dim_of(b, 1, b->k) >= 0 &&
         dim_of(b, 1, b->n) >= 0 && dim_of(b, 1, b->m) < 0 && (!is_generic || edit_multiplies_and_adds(op));
}

/* ---- knobs ------------------------------------------------------------------------------------------------------ */

static enum status check_tile(struct pass_run *run, const struct batched *b, MlirOperation knob, int n, int want,
                              const int64_t *tile, const char *what) {
  if (n && n != want)
    return pass_fail(run, knob, "%s %s of a batched matmul needs %d entries", what, layout_ints(run->arena, n, tile),
                     want);
  for (int i = 0; n && i < b->n_batch; i++)
    if (tile[i] != 1)
      return pass_fail(run, knob, "%s %s: the batch of a matmul is iterated, so its first %d entr%s to be 1", what,
                       layout_ints(run->arena, n, tile), b->n_batch, b->n_batch == 1 ? "y has" : "ies have");
  return ST_OK;
}

/* The knobs of the whole, and *inner, those of the matmul. */
static enum status split_knobs(struct pass_run *run, const struct batched *b, struct layout *whole,
                               struct layout *inner) {
  *inner = (struct layout){.partition_dim = -1};
  enum status st = check_tile(run, b, whole->tile_op, whole->n_loop, b->rank + 1, whole->loop, "loop tile");
  if (!st)
    st = check_tile(run, b, whole->layout_op, whole->n_tile, b->rank, whole->tile, "tile size");
  if (st || !whole->n_loop)
    return st;
  inner->n_loop = 3;
  memcpy(inner->loop, whole->loop + b->n_batch, 3 * sizeof *inner->loop);
  if (!whole->n_tile) {
    whole->n_tile = b->rank;
    memcpy(whole->tile, whole->loop, (size_t)b->rank * sizeof *whole->tile);
  }
  whole->n_loop = 0;
  return ST_OK;
}

/* ---- the loops -------------------------------------------------------------------------------------------------- */

/* One matrix of operand o: its batch dimensions at the loops' variables, the others whole.  Returns the rank of the
 * slice, whose extents go to dims. */
static int slice_of(const struct batched *b, int o, MlirValue const *ivs, struct emit_slice *out, int64_t *offsets,
                    int64_t *sizes, MlirValue *dynamic, int64_t *dims) {
  const int rank = (int)mlirAffineMapGetNumResults(b->s.maps[o]);
  int n = 0;

  for (int r = 0; r < rank; r++) {
    const int loop = structured_map_loop(b->s.maps[o], r), batch = dim_of(b, 2, loop);
    const bool is_batch = batch >= 0 && batch < b->n_batch;
    offsets[r] = 0;
    sizes[r] = is_batch ? 1 : b->s.extents[loop];
    dynamic[r] = is_batch ? ivs[batch] : (MlirValue){NULL};
    if (!is_batch)
      dims[n++] = sizes[r];
  }
  *out = (struct emit_slice){.rank = rank, .offsets = offsets, .sizes = sizes, .dynamic = dynamic};
  return n;
}

static MlirValue take_matrix(struct emit *e, const struct batched *b, int o, MlirValue v, MlirValue const *ivs) {
  int64_t offsets[STRUCTURED_LOOPS_MAX], sizes[STRUCTURED_LOOPS_MAX], dims[STRUCTURED_LOOPS_MAX];
  MlirValue dynamic[STRUCTURED_LOOPS_MAX];
  struct emit_slice s;
  const int n = slice_of(b, o, ivs, &s, offsets, sizes, dynamic, dims);

  if (n == s.rank) /* the same matrix for every batch */
    return v;
  return emit_extract_slice(e, v, &s, edit_tensor(emit_value_element_type(v), n, dims));
}

/* The map of operand o over the loops (m, n, k). */
static MlirAttribute matrix_map(struct emit *e, const struct batched *b, int o) {
  int64_t results[2];
  int n = 0;

  for (int r = 0; r < mlirAffineMapGetNumResults(b->s.maps[o]); r++) {
    const int loop = structured_map_loop(b->s.maps[o], r);
    if (loop == b->m || loop == b->n || loop == b->k)
      results[n++] = loop == b->m ? 0 : loop == b->n ? 1 : 2;
  }
  return mlirAffineMapAttrGet(emit_map(e, 3, n, results));
}

/* infer-layout adds the layout. */
static void annotate_tile(struct emit *e, MlirValue v, const struct layout *knobs) {
  MlirNamedAttribute attr = emit_attr(e, "loop_tile_size", emit_i64_array(e, knobs->n_loop, knobs->loop));
  emit_operation(
      e, &(struct emit_op){.name = "nkipy.tile_op", .n_operands = 1, .operands = &v, .n_attrs = 1, .attrs = &attr});
}

static MlirValue multiply(struct emit *e, const struct batched *b, MlirValue acc, MlirValue const *ivs,
                          const struct layout *knobs) {
  MlirValue inputs[] = {take_matrix(e, b, 0, mlirOperationGetOperand(b->op, 0), ivs),
                        take_matrix(e, b, 1, mlirOperationGetOperand(b->op, 1), ivs)};
  MlirValue out = take_matrix(e, b, 2, acc, ivs);
  MlirAttribute maps[] = {matrix_map(e, b, 0), matrix_map(e, b, 1), matrix_map(e, b, 2)};
  MlirNamedAttribute attrs[2] = {emit_attr(e, "indexing_maps", mlirArrayAttrGet(e->ctx, 3, maps))};
  MlirAttribute cast = mlirOperationGetAttributeByName(b->op, ir_str("cast"));
  int n = 1;

  if (!mlirAttributeIsNull(cast))
    attrs[n++] = emit_attr(e, "cast", cast);
  MlirOperation made = emit_linalg_named(e, "linalg.matmul", 2, inputs, out, n, attrs);
  MlirAttribute id = mlirOperationGetAttributeByName(b->op, ir_str("nkipy.op_id"));
  if (!mlirAttributeIsNull(id))
    mlirOperationSetDiscardableAttributeByName(made, ir_str("nkipy.op_id"), id);
  if (knobs->n_loop)
    annotate_tile(e, emit_result(made), knobs);
  return emit_result(made);
}

static MlirValue batch_loop(struct emit *e, const struct batched *b, int depth, MlirValue acc, MlirValue *ivs,
                            const struct layout *knobs) {
  if (depth == b->n_batch) {
    int64_t offsets[STRUCTURED_LOOPS_MAX], sizes[STRUCTURED_LOOPS_MAX], dims[STRUCTURED_LOOPS_MAX];
    MlirValue dynamic[STRUCTURED_LOOPS_MAX];
    struct emit_slice s;

    MlirValue product = multiply(e, b, acc, ivs, knobs);
    slice_of(b, 2, ivs, &s, offsets, sizes, dynamic, dims);
    return emit_insert_slice(e, product, acc, &s);
  }
  const int64_t turns = b->s.extents[structured_map_loop(b->s.maps[2], depth)];
  MlirValue operands[] = {emit_index(e, 0), emit_index(e, turns), emit_index(e, 1), acc};
  MlirType types[] = {emit_index_type(e), mlirValueGetType(acc)};
  MlirLocation locs[] = {e->loc, e->loc};
  MlirRegion region = mlirRegionCreate();
  struct emit body = *e;

  body.block = mlirBlockCreate(2, types, locs);
  mlirRegionAppendOwnedBlock(region, body.block);
  ivs[depth] = mlirBlockGetArgument(body.block, 0);
  MlirValue next = batch_loop(&body, b, depth + 1, mlirBlockGetArgument(body.block, 1), ivs, knobs);
  emit_operation(&body, &(struct emit_op){.name = "scf.yield", .n_operands = 1, .operands = &next});
  return emit_result(emit_operation(e, &(struct emit_op){.name = "scf.for",
                                                         .n_operands = 4,
                                                         .operands = operands,
                                                         .n_results = 1,
                                                         .results = types + 1,
                                                         .n_regions = 1,
                                                         .regions = &region}));
}

static enum status decompose(struct pass_run *run, const struct batched *b) {
  MlirValue result = emit_result(b->op), ivs[STRUCTURED_LOOPS_MAX];
  struct layout whole = layout_read(result), inner;
  struct emit e = edit_before(run, b->op);

  for (int l = 0; l < b->s.n_loops; l++)
    if (b->s.extents[l] < 0)
      return pass_fail(run, b->op, "a batched matmul with a dynamic shape cannot be lowered");
  enum status st = split_knobs(run, b, &whole, &inner);
  if (st)
    return st;
  MlirValue looped = batch_loop(&e, b, 0, mlirOperationGetOperand(b->op, 2), ivs, &inner);
  mlirValueReplaceAllUsesOfWith(result, looped);
  mlirOperationDestroy(b->op);
  if (!mlirOperationIsNull(whole.layout_op) || !mlirOperationIsNull(whole.tile_op))
    layout_write(looped, &whole,
                 mlirOperationGetLocation(mlirOperationIsNull(whole.layout_op) ? whole.tile_op : whole.layout_op));
  return ST_OK;
}

/* ---- the pass --------------------------------------------------------------------------------------------------- */

static bool is_batched(MlirOperation op, void *user) {
  (void)user;
  return read_batched(op, &(struct batched){0});
}

static enum status run_pass(struct pass_run *run) {
  struct ir_ops ops = ir_collect(run->arena, run->module, is_batched, NULL);
  enum status st = ST_OK;

  for (int i = 0; !st && i < ops.n; i++) {
    struct batched b;
    if (!read_batched(ops.v[i], &b))
      continue;
    pass_remark(run, b.op, "%d batch loop%s around a matmul", b.n_batch, b.n_batch == 1 ? "" : "s");
    st = decompose(run, &b);
  }
  return st;
}

const struct pass_def decompose_batch_matmul = {
    .name = "decompose-batch-matmul",
    .summary = "Turns a batched matrix product into loops over plain ones, which is what the tensor engine does.",
    .run = run_pass,
};
