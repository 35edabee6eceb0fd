/* fuse_row_tiles: operations over the same rows become one loop, whose values live in SBUF for one tile of rows.
 *
 *     %a = linalg.sub ins(%x, %y)            %b = scf.for %i = 0 to 4096 step 128 iter_args(%c = %empty) {
 *     %b = linalg.exp ins(%a)          ==>     %s = the rows %i of %x, copied to SBUF; %t = those of %y
 *                                              %p = linalg.sub ins(%s, %t); %q = linalg.exp ins(%p)
 *                                              yield %q inserted into %c at row %i }
 *
 * With a loop for each operation, a value that does not fit into SBUF goes to HBM and comes back for each reader.  In one
 * loop nothing but the operands and the results moves, each of them once, and instruction selection sees the operations next to
 * each other.
 *
 * The rows are the dimension that is across the partitions.  If it is not the first one, as in images with channels in dimension 1,
 * those before it are planes, and a loop inside that of the rows goes over one plane at a time.
 *
 * What is fused (groups.c): element-wise operations and reductions of rows that compute or read the same values over
 * the same rows; and the transpose of a matrix that goes to HBM, which writes the rows of a tile as columns, so that what it
 * transposes does not go to HBM before.  A reduction whose result goes to HBM has a loop also by itself, or one iteration without a
 * loop: what it accumulates stays in SBUF.  Not operations whose tile or memory a knob gives, nor what knob.fuse names or lies
 * between such values; knob-driven-fusion does what it asks for.  Not the rounding of a product that nothing else reads:
 * round-products does it as the product leaves PSUM, so that the loop reads half of the bytes, or finds them in SBUF.
 *
 * Whether it fits (cost.c): the values of two tiles of whole rows have to; if there is no reduction, rows are cut into equal
 * pieces; rows of several dimensions, of which the second one is not reduced, are cut along that one.  If a group with a reduction
 * does not fit, its reductions keep loops of their own and the rest is tried again.  The loop
 * (outline.c) has a tail if its tile does not divide the rows.
 * Where two tiles fit, one iteration computes them side by side, operation by operation: while one engine works on a tile,
 * the next one works on the other.  Values that are only parts of another one, as of a concatenation, are written to their places
 * in it (join.c).  Slices of one value that overlap, as in a convolution, are read from one tile of it (windows.c); for that also operations
 * whose rows are all in one tile become one iteration.
 *
 * Safe because operations on tensors have no effects and each row depends on the same row of the operands only.  Runs after layouts
 * are known and before operations are numbered; the operations in the loops are whole tiles and need no tiling.
 */
#include <inttypes.h>

#include "base/array.h"
#include "nisa/nisa.h"
#include "passes/fuse_row_tiles/fuse_row_tiles.h"
#include "passes/lib/edit.h"

/* ---- remarks ------------------------------------------------------------------------------------------------------ */

static const char *megabytes(struct arena *a, int64_t bytes) {
  return arena_printf(a, "%.2f MB", (double)bytes / 1e6);
}

/* Why one loop is better than one for each operation. */
static const char *why_together(const struct fuse_group *g) {
  if (g->moved <= g->moved_alone)
    return "values that do not fit into SBUF go to HBM and back";
  for (int k = 0; k < g->n_covers; k++)
    if (g->covers[k].pays)
      return "each slice would be loaded by itself, in short runs";
  return g->has_reduction ? "the accumulator of a reduction stays in SBUF in a loop over rows"
                          : "what every row reads is loaded once for all of them";
}

static void explain(struct fuse_block *b, const struct fuse_group *g) {
  struct arena *a = b->run->arena;
  MlirOperation last = g->v[g->n - 1]->node->op;
  const int64_t sbuf = nisa_machine(b->run->target)->sbuf_bytes, tiles = (g->rows + g->tile - 1) / g->tile * g->planes;
  const char *cost = arena_printf(a, "%s to and from HBM", megabytes(a, g->moved_alone));

  if (g->why_not) {
    for (int i = 0; *g->why_not && i < g->n; i++)
      fuse_price_apart(
          pass_remark(b->run, g->v[i]->node->op, RULE_FUSE_ROWS_NOT, "keeps loops of its own: %s", g->why_not),
          b->run->target, ir_result(g->v[i]->node->op), "a loop with its neighbours", g->why_not);
    return;
  }
  struct remark *r = pass_remark(
      b->run, last, RULE_FUSE_ROWS,
      "%d operations in one loop over %" PRId64 " tiles of %" PRId64 " rows%s%s: %s to and from HBM", g->n, tiles,
      g->tile, g->jam > 1 ? ", two at a time" : "",
      g->cut < g->columns ? arena_printf(a, " and %" PRId64 " columns", g->cut) : "", megabytes(a, g->moved));
  remark_cost(r, "%s to and from HBM", megabytes(a, g->moved));
  remark_limit(r, "SBUF for one iteration", "bytes per partition",
               g->jam * g->row_bytes * g->cut / (g->columns ? g->columns : 1) + g->kept_bytes, sbuf);
  remark_reject_for(r, "a loop for each operation", NULL, cost, why_together(g));
  for (int k = 0; k < g->n_covers; k++) {
    const struct fuse_cover *c = &g->covers[k];
    if (!c->pays)
      continue;
    const bool overlap = c->elements < c->alone;
    r = pass_remark(b->run, last, RULE_FUSE_WINDOWS,
                    "%d slices %s are read from one tile: %" PRId64 " elements of each row are loaded", c->n,
                    overlap ? "that overlap" : "side by side", c->elements);
    remark_cost(r, "%" PRId64 " elements of each row", c->elements);
    remark_reject_for(r, "a load for each slice", NULL, arena_printf(a, "%" PRId64 " elements of each row", c->alone),
                      overlap ? "most elements would be loaded several times" : "each would move a few bytes");
  }
}

/* ---- blocks ------------------------------------------------------------------------------------------------------- */

static bool read_block(struct fuse_block *b) {
  int n = 0;

  for (MlirOperation op = mlirBlockGetFirstOperation(b->block); !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op))
    n++;
  b->v = arena_new_array(b->run->arena, struct fuse_node, (size_t)n + 1);
  b->by_op = (struct table){.arena = b->run->arena};
  MlirOperation end = mlirBlockGetTerminator(b->block);
  if (mlirOperationIsNull(end))
    return false;
  for (MlirOperation op = mlirBlockGetFirstOperation(b->block); !mlirOperationEqual(op, end);
       op = mlirOperationGetNextInBlock(op)) {
    b->v[b->n] = (struct fuse_node){.op = op, .after = -1};
    table_put(&b->by_op, op.ptr, &b->v[b->n++]);
  }
  return true;
}

static void fuse_in(struct pass_run *run, MlirBlock block) {
  struct fuse_block b = {.run = run, .block = block};
  bool any = false;

  if (!read_block(&b))
    return;
  fuse_find_groups(&b);
  for (int k = 0; k < b.n_groups; k++) {
    explain(&b, &b.groups[k]);
    any |= !b.groups[k].why_not;
  }
  if (any) {
    pass_step(run, mlirBlockGetParentOperation(block), "loop-over-rows");
    fuse_outline(&b);
  }
}

/* True for the operations in whose bodies values are computed. */
static bool has_body(MlirOperation op, void *user) {
  (void)user;
  return ir_is(op, "func.func") || ir_is(op, "scf.for") || ir_is(op, "scf.while") || ir_is(op, "scf.if");
}

static enum status run_pass(struct pass_run *run) {
  const struct ir_ops bodies = ir_collect(run->arena, run->module, has_body, NULL);

  for (int i = 0; i < bodies.n; i++)
    for (intptr_t r = 0; r < mlirOperationGetNumRegions(bodies.v[i]); r++) {
      MlirBlock block = mlirRegionGetFirstBlock(mlirOperationGetRegion(bodies.v[i], r));
      if (!mlirBlockIsNull(block))
        fuse_in(run, block);
    }
  fuse_drop_windows(run);
  pass_step(run, run->module, "drop-given");
  const struct ir_ops layouts = ir_collect_named(run->arena, run->module, "nkipy.layout");
  for (int i = 0; i < layouts.n; i++)
    mlirOperationRemoveAttributeByName(layouts.v[i], ir_str("given")); /* no later pass asks */
  fuse_join(run);
  pass_step(run, run->module, "drop-unused");
  edit_sweep(run);
  return ST_OK;
}

const struct pass_def fuse_row_tiles = {
    .name = "fuse-row-tiles",
    .run = run_pass,
};
