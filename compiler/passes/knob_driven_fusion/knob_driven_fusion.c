/* knob_driven_fusion: merges the loops of values that the user wants to be fused.
 *
 *     %a = scf.for %i … { A }                      %ab:2 = scf.for %i … { A; B }
 *     %b = scf.for %i … { B }               ==>
 *     "nkipy.fuse_op"(%a, %b)
 *
 * The values may be independent, or one may be computed from the other tile by tile (merge.c).  A value that only the
 * merged loops read shrinks to the tile that an iteration needs (shrink.c); one that is read elsewhere, too, stays in
 * memory, and the merged loops read each tile of it directly after computing it.
 *
 * A shape with a tail is computed by several loops, each on the result of the one before it (or by the last tile
 * alone).  These are merged in pairs, from the last loop to the first.  A value that consists of a single tile has no
 * loop.
 *
 * The pass fails and names the value and the dimension if bounds differ, or if an iteration would read a part that is
 * not yet complete.  Operations on tensors have no effect besides their results, so it is safe to move them.
 * Annotations stay with their values.  The pass runs before loop steps are normalised, so that tile sizes can be
 * compared.  It erases fuse_op.
 */
#include "base/array.h"
#include "passes/knob_driven_fusion/knob_driven_fusion.h"

/* ---- the loops of a value ---------------------------------------------------------------------------------------- */

/* Returns the loops that compute v, the last one first. */
static struct ir_ops loops_of(struct arena *a, MlirValue v) {
  struct ir_ops loops = {0};

  while (mlirValueIsAOpResult(v)) {
    MlirOperation def = mlirOpResultGetOwner(v);
    if (ir_is(def, "scf.for")) {
      array_push(a, &loops, def);
      v = mlirOperationGetOperand(def, 3 + mlirOpResultGetResultNumber(v));
    } else if (ir_is(def, "tensor.insert_slice")) {
      v = mlirOperationGetOperand(def, 1);
    } else if (ir_is(def, "tensor.collapse_shape") || ir_is(def, "tensor.expand_shape")) {
      v = mlirOperationGetOperand(def, 0);
    } else {
      break;
    }
  }
  return loops;
}

/* ---- one fuse_op ------------------------------------------------------------------------------------------------- */

static MlirOperation about(MlirValue v, MlirOperation otherwise) {
  MlirOperation def = ir_defining_op(v);
  return mlirOperationIsNull(def) ? otherwise : def;
}

/* Reports different bounds.  The message names the dimension in which y writes its value. */
static enum status refuse_bounds(struct merging *m, MlirOperation x, MlirOperation y) {
  struct arena *a = m->run->arena;
  const char *what = "the outermost loop";

  for (int k = 0; k < parts_n_carried(y); k++)
    if (parts_written(y, k))
      what = arena_printf(a, "dimension %d", parts_first_dim(parts_written(y, k)));
  return pass_fail(
      m->run, y,
      "fuse: mismatched loop bounds: %s goes from %s here, but from %s in the value that it is to be fused "
      "with; give both the same tile size",
      what, merge_bounds_text(a, y), merge_bounds_text(a, x));
}

/* Merges the loops of target k into those of target 0. */
static enum status fuse_target(struct merging *m, MlirOperation fuse, int k) {
  struct pass_run *run = m->run;
  merge_chain(m, mlirOperationGetOperand(fuse, 0));
  merge_chain(m, mlirOperationGetOperand(fuse, k));
  MlirValue va = mlirOperationGetOperand(fuse, 0), vb = mlirOperationGetOperand(fuse, k);
  struct ir_ops a = loops_of(run->arena, va), b = loops_of(run->arena, vb);

  if (mlirValueEqual(va, vb) || (!a.n && !b.n))
    return ST_OK;
  if (!a.n || !b.n)
    return pass_fail(
        run, about(a.n ? vb : va, fuse),
        "fuse: this value is not produced by an scf.for, while the one to fuse it with is: mismatched loop "
        "bounds; give both the same tile size");
  for (int i = 0; i < a.n && i < b.n; i++) {
    MlirOperation x = a.v[i], y = b.v[i];
    if (mlirOperationEqual(x, y))
      return ST_OK;
    if (!merge_has_same_bounds(x, y) || !mlirBlockEqual(mlirOperationGetBlock(x), mlirOperationGetBlock(y))) {
      if (i) /* the earlier loops compute the inputs of these values */
        return ST_OK;
      return refuse_bounds(m, x, y);
    }
    const bool in_order = mlirOperationIsBeforeInBlock(x, y);
    if (mlirOperationIsNull(merge_loops(m, in_order ? x : y, in_order ? y : x)))
      return pass_fail(run, m->who, "fuse: the loops of these values cannot be one: %s", m->why);
    a = loops_of(run->arena, mlirOperationGetOperand(fuse, 0));
    b = loops_of(run->arena, mlirOperationGetOperand(fuse, k));
  }
  return ST_OK;
}

static enum status fuse_one(struct merging *m, MlirOperation fuse) {
  struct pass_run *run = m->run;
  const int n = (int)mlirOperationGetNumOperands(fuse);
  enum status st = ST_OK;

  if (n < 2)
    return pass_fail(run, fuse, "fuse needs at least two values");
  for (int k = 1; !st && k < n; k++)
    st = fuse_target(m, fuse, k);
  if (st)
    return st;
  MlirOperation def = about(mlirOperationGetOperand(fuse, 0), fuse);
  if (ir_is(def, "scf.for")) {
    struct remark *r = pass_remark(run, def, RULE_FUSE, "computes %d fused values", n);
    remark_reject(r, "loops of their own", "knob.fuse names the values");
  } else
    pass_remark(run, def, RULE_FUSE_SINGLE, "nothing to fuse: a single tile computes the value");
  mlirOperationDestroy(fuse);
  return ST_OK;
}

static enum status run_pass(struct pass_run *run) {
  struct ir_ops fuses = ir_collect_named(run->arena, run->module, "nkipy.fuse_op");
  struct merging m = {.run = run};
  enum status st = ST_OK;

  for (int i = 0; !st && i < fuses.n; i++) {
    pass_step(run, fuses.v[i], "fuse-loops");
    if (mlirAttributeIsNull(ir_attr(fuses.v[i], "never")))
      st = fuse_one(&m, fuses.v[i]);
    else
      mlirOperationDestroy(fuses.v[i]); /* fuse-row-tiles has obeyed it */
  }
  pass_step(run, run->module, "shrink-to-tile");
  if (!st)
    shrink_loops(&m);
  return st;
}

const struct pass_def knob_driven_fusion = {
    .name = "knob-driven-fusion",
    .run = run_pass,
};
