/* decompose_batch_matmul: batches become loops around linalg.matmul, because the tensor engine multiplies matrices.
 *
 *     %c = linalg.batch_matmul ins(%a, %b) outs(%init)
 *   ==>
 *     %c = scf.for %i = 0 to B step 1 iter_args(%acc = %init) {
 *       %m = linalg.matmul ins(%a[%i], %b[%i]) outs(%acc[%i])
 *       yield %m inserted into %acc[%i]
 *     }
 *
 * Any contraction whose result is [batch…, M, N] qualifies: linalg.batch_matmul, linalg.contract, and a linalg.generic
 * that multiplies and adds.  There may be several batch dimensions (one loop each).  An operand may lack some of them
 * (every iteration then uses the same matrix) or hold M and K, or K and N, in the other order (the maps of
 * linalg.matmul state the order).
 *
 * Knobs: the batch is iterated, so its tile must be 1.  The loop tile moves to the matmul without its batch entries.
 * The layout stays on the whole result; if it has no tile, it gets the loop tile's [1…, M, N], because infer-layout
 * does not look at results of loops.  A loop tile without a layout creates one for the same reason.
 *
 * A right operand that a transpose makes for this product alone is transposed in the loops, matrix by matrix, so that it need
 * not be in memory as a whole.  So is an operand converted in the loops that a conversion makes for this product alone.
 *
 * A number by which a product is multiplied may go to an operand (scales.h). Products that are added up (sums.h) are computed in the same loops, matrix by matrix, each from the one before it.
 *
 * First, a product reads a left operand that is transposed from before the transpose, because the tensor engine wants
 * it as [K, M]:
 *
 *     %t = linalg.transpose ins(%x) permutation = [1, 0]         %c = linalg.matmul {maps of [K, M]} ins(%x, %b)
 *     %c = linalg.matmul ins(%t, %b)                       ==>
 *
 * With a batch, too, if the transpose leaves the batch dimensions in place.  The transpose stays if something else reads
 * it.  One with knobs is left alone.  Linear in ops.
 */
#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "passes/decompose_batch_matmul/scales.h"
#include "passes/decompose_batch_matmul/sums.h"
#include "passes/lib/edit.h"
#include "passes/lib/layout.h"
#include "passes/lib/product.h"
#include "passes/lib/price.h"

/* ---- knobs ------------------------------------------------------------------------------------------------------ */

static enum status check_tile(struct pass_run *run, const struct product *mm, MlirOperation knob, int n, int want,
                              const int64_t *tile, const char *what) {
  if (n && n != want)
    return pass_fail(run, knob, "%s %s of a batched matmul needs %d entries", what, layout_ints(run->arena, n, tile),
                     want);
  for (int i = 0; n && i < mm->n_batch; i++)
    if (tile[i] != 1)
      return pass_fail(run, knob, "%s %s: the batch of a matmul is iterated, so its first %d entr%s to be 1", what,
                       layout_ints(run->arena, n, tile), mm->n_batch, mm->n_batch == 1 ? "y has" : "ies have");
  return ST_OK;
}

/* Splits the knobs into those of the whole result and those of the matmul (*inner). */
static enum status split_knobs(struct pass_run *run, const struct product *mm, struct layout *whole,
                               struct layout *inner) {
  assert(mm->rank == mm->n_batch + 2);
  *inner = (struct layout){.partition_dim = -1};
  enum status st = check_tile(run, mm, whole->tile_op, whole->n_loop, mm->rank + 1, whole->loop, "loop tile");
  if (!st)
    st = check_tile(run, mm, whole->layout_op, whole->n_tile, mm->rank, whole->tile, "tile size");
  if (st || !whole->n_loop)
    return st;
  inner->n_loop = 3;
  memcpy(inner->loop, whole->loop + mm->n_batch, 3 * sizeof *inner->loop);
  if (!whole->n_tile) {
    whole->n_tile = mm->rank;
    memcpy(whole->tile, whole->loop, (size_t)mm->rank * sizeof *whole->tile);
  }
  whole->n_loop = 0;
  return ST_OK;
}

/* ---- transposed operands ---------------------------------------------------------------------------------------- */

static bool has_knobs(MlirValue v) {
  const struct layout l = layout_read(v);
  return !mlirOperationIsNull(l.layout_op) || !mlirOperationIsNull(l.tile_op);
}

/* The transpose that makes v if it only swaps the last two dimensions; null if there is none. */
static MlirOperation turn_of(MlirValue v) {
  MlirOperation turn = ir_defining_op(v);
  const MlirOperation none = {NULL};
  struct structured s;

  if (mlirOperationIsNull(turn) || !ir_is(turn, "linalg.transpose") || !structured_read(turn, &s) ||
      mlirOperationGetNumResults(turn) != 1 || has_knobs(ir_result(turn)))
    return none;
  const int rank = (int)mlirAffineMapGetNumResults(s.maps[0]);
  if (rank < 2 || structured_map_loop(s.maps[0], rank - 2) != rank - 1)
    return none;
  for (int d = 0; d < rank - 2; d++)
    if (structured_map_loop(s.maps[0], d) != d)
      return none;
  return turn;
}

/* ---- the loops -------------------------------------------------------------------------------------------------- */

/* Describes one matrix of operand o: the batch dimensions are at the loops' variables, the others are whole.  Returns
 * the rank of the slice and stores its extents in dims. */
static int slice_of(const struct product *mm, int o, MlirValue const *ivs, struct ir_slice *out, int64_t *offsets,
                    int64_t *sizes, MlirValue *dynamic, int64_t *dims) {
  const int rank = (int)mlirAffineMapGetNumResults(mm->s.maps[o]);
  int n = 0;

  for (int r = 0; r < rank; r++) {
    const int loop = structured_map_loop(mm->s.maps[o], r), batch = product_dim(mm, 2, loop);
    const bool is_batch = batch >= 0 && batch < mm->n_batch;
    offsets[r] = 0;
    sizes[r] = is_batch ? 1 : mm->s.extents[loop];
    dynamic[r] = is_batch ? ivs[batch] : (MlirValue){NULL};
    if (!is_batch)
      dims[n++] = sizes[r];
  }
  *out = (struct ir_slice){.rank = rank, .offsets = offsets, .sizes = sizes, .dynamic = dynamic};
  return n;
}

static void swap(int64_t *a, int64_t *b) {
  const int64_t t = *a;
  *a = *b;
  *b = t;
}

/* The operation that only converts elements to make v; null if there is none, or it has knobs. */
static MlirOperation conversion_of(MlirValue v) {
  MlirOperation op = ir_defining_op(v);
  const MlirOperation none = {NULL};
  struct structured s;

  if (mlirOperationIsNull(op) || !ir_is(op, "linalg.generic") || !structured_read(op, &s) || s.n_inputs != 1 ||
      !structured_is_elementwise(&s) || !mlirAffineMapIsIdentity(s.maps[0]) || !mlirAffineMapIsIdentity(s.maps[1]) ||
      has_knobs(v))
    return none;
  MlirOperation cast = mlirBlockGetFirstOperation(ir_body(op)), end = mlirBlockGetTerminator(ir_body(op));
  if (!ir_is(cast, "arith.extf") || !mlirOperationEqual(mlirOperationGetNextInBlock(cast), end) ||
      !mlirValueEqual(mlirOperationGetOperand(end, 0), ir_result(cast)))
    return none;
  return op;
}

/* The part s of v, as a matrix.  made_here: each part is taken once, so that what makes v for this product alone can make the
 * part. */
static MlirValue take_part(struct ir_builder *b, MlirValue v, const struct ir_slice *s, const int64_t dims[2],
                           bool made_here, bool may_turn) {
  MlirOperation convert = conversion_of(v), turn = turn_of(v);
  MlirType type = ir_tensor_of(ir_value_element(v), 2, dims);

  if (made_here && !mlirOperationIsNull(convert) && ir_has_one_use(ir_result(convert))) {
    MlirValue x = take_part(b, mlirOperationGetOperand(convert, 0), s, dims, true, may_turn);
    MlirOperation made = mlirOperationClone(convert);
    const MlirAffineMap maps[] = {ir_identity_map(b, 2), ir_identity_map(b, 2)};
    mlirOperationSetOperand(made, 0, x);
    mlirOperationSetOperand(made, 1, ir_empty_of(b, type));
    mlirValueSetType(ir_result(made), type);
    edit_set_maps(made, 2, maps);
    edit_set_iterators(made, 2, (const bool[]){false, false});
    return ir_result(ir_place(b, made));
  }
  if (!may_turn || mlirOperationIsNull(turn) || !ir_has_one_use(ir_result(turn)) ||
      !mlirValueIsNull(s->dynamic[s->rank - 1]) || !mlirValueIsNull(s->dynamic[s->rank - 2]))
    return ir_extract_slice(b, v, s, type);
  int64_t sizes[STRUCTURED_LOOPS_MAX];
  struct ir_slice turned = *s;
  memcpy(sizes, s->sizes, (size_t)s->rank * sizeof *sizes);
  swap(&sizes[s->rank - 2], &sizes[s->rank - 1]);
  turned.sizes = sizes;
  MlirValue matrix =
      take_part(b, mlirOperationGetOperand(turn, 0), &turned, (const int64_t[]){dims[1], dims[0]}, made_here, false);
  return ir_result(ir_transpose(b, matrix, 2, (int64_t[]){1, 0}));
}

static MlirValue take_matrix(struct ir_builder *b, const struct product *mm, int o, MlirValue v, MlirValue const *ivs) {
  int64_t offsets[STRUCTURED_LOOPS_MAX], sizes[STRUCTURED_LOOPS_MAX], dims[STRUCTURED_LOOPS_MAX];
  MlirValue dynamic[STRUCTURED_LOOPS_MAX];
  struct ir_slice s;
  const int n = slice_of(mm, o, ivs, &s, offsets, sizes, dynamic, dims);

  if (n == s.rank) /* the same matrix for every batch */
    return v;
  if (n != 2 || o == 2)
    return ir_extract_slice(b, v, &s, ir_tensor_of(ir_value_element(v), n, dims));
  return take_part(b, v, &s, dims, s.rank - n == mm->n_batch, o == 1);
}

/* Returns the map of operand o over the loops (m, n, k). */
static MlirAttribute matrix_map(struct ir_builder *b, const struct product *mm, int o) {
  int64_t results[2];
  int n = 0;

  for (int r = 0; r < mlirAffineMapGetNumResults(mm->s.maps[o]); r++) {
    const int loop = structured_map_loop(mm->s.maps[o], r);
    if (loop == mm->m || loop == mm->n || loop == mm->k)
      results[n++] = loop == mm->m ? 0 : loop == mm->n ? 1 : 2;
  }
  return mlirAffineMapAttrGet(ir_map(b, 3, n, results));
}

/* Only the tile is annotated: infer-layout adds the layout. */
static void annotate_tile(struct ir_builder *b, MlirValue v, const struct layout *knobs) {
  MlirNamedAttribute attr = ir_named(b, "loop_tile_size", ir_i64_array(b, knobs->n_loop, knobs->loop));
  ir_op0_with(b, "nkipy.tile_op", 1, &v, 1, &attr);
}

static MlirValue multiply_matrices(struct ir_builder *b, const struct product *mm, MlirValue const inputs[2],
                                   MlirValue out, const struct layout *knobs) {
  MlirAttribute maps[] = {matrix_map(b, mm, 0), matrix_map(b, mm, 1), matrix_map(b, mm, 2)};
  MlirNamedAttribute attrs[2] = {ir_named(b, "indexing_maps", mlirArrayAttrGet(b->ctx, 3, maps))};
  MlirAttribute cast = ir_attr(mm->op, "cast");
  int n = 1;

  if (!mlirAttributeIsNull(cast))
    attrs[n++] = ir_named(b, "cast", cast);
  struct ir_builder at = *b;
  at.loc = mlirOperationGetLocation(mm->op);
  MlirOperation made = ir_linalg_named(&at, "linalg.matmul", 2, inputs, out, n, attrs);
  MlirAttribute id = ir_attr(mm->op, "nkipy.op_id");
  if (!mlirAttributeIsNull(id))
    mlirOperationSetDiscardableAttributeByName(made, ir_str("nkipy.op_id"), id);
  if (knobs->n_loop)
    annotate_tile(b, ir_result(made), knobs);
  return ir_result(made);
}

struct batch_nest {
  const struct product *mm;
  const struct layout *knobs; /* knobs of the matmul */
};

/* Returns one matrix of the product, added to one of acc, or to one of the product that it adds to.  Only the last of them has knobs. */
static MlirValue multiply(struct ir_builder *b, const struct product *mm, MlirValue acc, MlirValue const *ivs,
                          const struct layout *knobs) {
  const struct layout none = {.partition_dim = -1};
  struct product first;
  MlirOperation before = sums_before(mm->op);
  MlirValue out = {NULL};

  if (!mlirOperationIsNull(before) && product_read(before, &first))
    out = multiply(b, &first, acc, ivs, &none);
  MlirValue inputs[] = {take_matrix(b, mm, 0, mlirOperationGetOperand(mm->op, 0), ivs),
                        take_matrix(b, mm, 1, mlirOperationGetOperand(mm->op, 1), ivs)};
  if (mlirValueIsNull(out))
    out = take_matrix(b, mm, 2, acc, ivs);
  return multiply_matrices(b, mm, inputs, out, knobs);
}

static void multiply_batch(struct ir_builder *b, MlirValue const *ivs, MlirValue *carried, void *user) {
  const struct batch_nest *nest = user;
  int64_t offsets[STRUCTURED_LOOPS_MAX], sizes[STRUCTURED_LOOPS_MAX], dims[STRUCTURED_LOOPS_MAX];
  MlirValue dynamic[STRUCTURED_LOOPS_MAX];
  struct ir_slice s;

  MlirValue product = multiply(b, nest->mm, carried[0], ivs, nest->knobs);
  slice_of(nest->mm, 2, ivs, &s, offsets, sizes, dynamic, dims);
  carried[0] = ir_insert_slice(b, product, carried[0], &s);
}

/* What the first of the products starts from that are added up to op. */
static MlirValue first_init(MlirOperation op) {
  MlirOperation before = sums_before(op);
  return mlirOperationIsNull(before) ? mlirOperationGetOperand(op, 2) : first_init(before);
}

static enum status decompose(struct pass_run *run, const struct product *mm) {
  MlirValue result = ir_result(mm->op);
  struct layout whole = layout_read(result), inner;
  struct ir_builder b = edit_before(run, mm->op);

  for (int l = 0; l < mm->s.n_loops; l++)
    if (mm->s.extents[l] < 0)
      return pass_fail(run, mm->op, "a batched matmul with a dynamic shape cannot be lowered");
  enum status st = split_knobs(run, mm, &whole, &inner);
  if (st)
    return st;
  int64_t extents[STRUCTURED_LOOPS_MAX];
  for (int d = 0; d < mm->n_batch; d++)
    extents[d] = mm->s.extents[structured_map_loop(mm->s.maps[2], d)];
  MlirValue looped = first_init(mm->op);
  struct batch_nest nest = {mm, &inner};
  const struct ir_loops loops = {mm->n_batch, extents, 1, multiply_batch, &nest};
  ir_loop_nest(&b, &loops, &looped);
  mlirValueReplaceAllUsesOfWith(result, looped);
  for (MlirOperation op = mm->op, before; !mlirOperationIsNull(op); op = before) {
    before = sums_before(op);
    mlirOperationDestroy(op);
  }
  if (!mlirOperationIsNull(whole.layout_op) || !mlirOperationIsNull(whole.tile_op))
    layout_write(looped, &whole,
                 mlirOperationGetLocation(mlirOperationIsNull(whole.layout_op) ? whole.tile_op : whole.layout_op));
  return ST_OK;
}

/* ---- transposed left operands ----------------------------------------------------------------------------------- */

/* Returns the product with x, which has the last two dimensions of the left operand swapped, in its place. */
static MlirOperation multiply_turned(struct ir_builder *b, const struct product *mm, MlirValue x) {
  const int rank = (int)mlirAffineMapGetNumResults(mm->s.maps[0]);
  MlirValue inputs[] = {x, mlirOperationGetOperand(mm->op, 1)};
  MlirAttribute maps[3];
  int64_t loops[STRUCTURED_LOOPS_MAX];

  for (int d = 0; d < rank; d++)
    loops[d] = structured_map_loop(mm->s.maps[0], d < rank - 2 ? d : 2 * rank - 3 - d);
  maps[0] = mlirAffineMapAttrGet(ir_map(b, mm->s.n_loops, rank, loops));
  for (int o = 1; o < 3; o++)
    maps[o] = mlirAffineMapAttrGet(mm->s.maps[o]);
  MlirNamedAttribute attrs[2] = {ir_named(b, "indexing_maps", mlirArrayAttrGet(b->ctx, 3, maps))};
  MlirAttribute cast = ir_attr(mm->op, "cast");
  int n = 1;
  if (!mlirAttributeIsNull(cast))
    attrs[n++] = ir_named(b, "cast", cast);
  return ir_linalg_named(b, ir_is(mm->op, "linalg.matmul") ? "linalg.matmul" : "linalg.batch_matmul", 2, inputs,
                         mlirOperationGetOperand(mm->op, 2), n, attrs);
}

static void read_before_transpose(struct pass_run *run, const struct product *mm, MlirOperation turn) {
  struct ir_builder b = edit_before(run, mm->op);
  const MlirValue x = mlirOperationGetOperand(turn, 0);
  const struct price_shape s = price_shape_of(x);
  MlirOperation made = multiply_turned(&b, mm, x);
  MlirAttribute id = ir_attr(mm->op, "nkipy.op_id");
  if (!mlirAttributeIsNull(id))
    mlirOperationSetDiscardableAttributeByName(made, ir_str("nkipy.op_id"), id);
  struct remark *r = pass_remark(run, mm->op, RULE_READ_BEFORE_TRANSPOSE,
                                 "reads the left operand from before its transpose: 0 elements are transposed");
  price_chosen(r, 0);
  price_instead(
      r, "the transposed operand", 2 * price_transpose_ns(run->target, s.rows, s.columns, s.element_bytes),
      "its elements would be transposed twice: the tensor engine wants the left operand as it is before the transpose");
  mlirValueReplaceAllUsesOfWith(ir_result(mm->op), ir_result(made));
  mlirOperationDestroy(mm->op);
  edit_erase_unused(run->arena, turn);
}

/* Only named operations: the maps of another one are not ours to choose. */
static bool is_named_product(MlirOperation op, void *user) {
  (void)user;
  return ir_is(op, "linalg.matmul") || ir_is(op, "linalg.batch_matmul");
}

static void drop_transposes(struct pass_run *run) {
  struct ir_ops ops = ir_collect(run->arena, run->module, is_named_product, NULL);

  for (int i = 0; i < ops.n; i++) {
    struct product mm;
    if (!product_read(ops.v[i], &mm))
      continue;
    MlirOperation turn = turn_of(mlirOperationGetOperand(ops.v[i], 0));
    if (!mlirOperationIsNull(turn))
      read_before_transpose(run, &mm, turn);
  }
}

/* ---- the pass --------------------------------------------------------------------------------------------------- */

/* Not one that another product adds to: it goes into the loops of that. */
static bool is_batched(MlirOperation op, void *user) {
  struct product p;
  (void)user;
  if (!product_read(op, &p) || p.n_batch == 0)
    return false;
  MlirOpOperand first = mlirValueGetFirstUse(ir_result(op));
  if (mlirOpOperandIsNull(first) || !product_read(mlirOpOperandGetOwner(first), &p))
    return true;
  MlirOperation before = sums_before(p.op);
  return mlirOperationIsNull(before) || !mlirOperationEqual(before, op);
}

static bool may_be_unread(MlirOperation op, void *user) {
  (void)user;
  return ir_is(op, "linalg.transpose") || ir_is(op, "linalg.generic");
}

/* Erases what made operands that the loops make: readers before what they read. */
static void drop_unread(struct pass_run *run) {
  const struct ir_ops ops = ir_collect(run->arena, run->module, may_be_unread, NULL);

  for (int i = ops.n - 1; i >= 0; i--)
    if (mlirOperationGetNumResults(ops.v[i]) == 1 && !ir_is_used(ir_result(ops.v[i])))
      mlirOperationDestroy(ops.v[i]);
}

static enum status run_pass(struct pass_run *run) {
  drop_transposes(run);
  scales_move_to_operands(run);
  sums_accumulate(run);
  struct ir_ops ops = ir_collect(run->arena, run->module, is_batched, NULL);
  enum status st = ST_OK;

  for (int i = 0; !st && i < ops.n; i++) {
    struct product mm;
    if (!product_read(ops.v[i], &mm))
      continue;
    pass_step(run, mm.op, "loop-over-batches");
    struct remark *r = pass_remark(run, mm.op, RULE_BATCH_LOOPS, "%d batch loop%s around a matmul", mm.n_batch,
                                   mm.n_batch == 1 ? "" : "s");
    remark_reject(r, "one instruction for several batches", "it multiplies two matrices");
    st = decompose(run, &mm);
  }
  if (!st && ops.n)
    drop_unread(run);
  return st;
}

const struct pass_def decompose_batch_matmul = {
    .name = "decompose-batch-matmul",
    .run = run_pass,
};
