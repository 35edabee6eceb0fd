/* knob_driven_fusion: merges the loops of values that the user wants to be fused.
 *
 *     %a = scf.for %i … { A }                      %ab:2 = scf.for %i … { A; B }
 *     %b = scf.for %i … { B }               ==>
 *     "nkipy.fuse_op"(%a, %b)
 *
 * The merged loop takes the place of the first one; what the second one needs moves to before it.  Loops inside are
 * merged the same way, in pairs, if their bounds agree; their bodies may contain anything.  A shape with a tail is
 * computed by several loops, each on the result of the one before it (or by the last tile alone).  These are merged in
 * pairs, from the last loop to the first.  A value that a single tile computes has no loop and needs none.
 *
 * Legal only if no loop depends on the result of another.  Otherwise, and if bounds differ, the pass fails and names
 * the value.  Operations on tensors have no effect besides their results, so it is safe to move them.  Annotations stay
 * with their values.  The pass runs before loop steps are normalised, so that tile sizes can be compared.  It erases
 * fuse_op.
 */
#include <string.h>

#include "mlir-c/BuiltinTypes.h"

#include "base/array.h"
#include "passes/lib/edit.h"

/* ---- the loops of a value ---------------------------------------------------------------------------------------- */

/* The loops that compute v, the last one first. */
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

static bool is_same_number(MlirValue x, MlirValue y) {
  int64_t a, b;
  return mlirValueEqual(x, y) || (ir_int_constant(x, &a) && ir_int_constant(y, &b) && a == b);
}

static bool has_same_bounds(MlirOperation a, MlirOperation b) {
  for (int i = 0; i < 3; i++)
    if (!is_same_number(mlirOperationGetOperand(a, i), mlirOperationGetOperand(b, i)))
      return false;
  return true;
}

/* ---- what has to move -------------------------------------------------------------------------------------------- */

struct needs {
  struct arena *arena;
  MlirBlock block;
  MlirOperation first;
  struct ir_ops ops;
  bool is_circular; /* first itself is needed */
};

static bool contains(const struct needs *s, MlirOperation op) {
  for (int i = 0; i < s->ops.n; i++)
    if (mlirOperationEqual(s->ops.v[i], op))
      return true;
  return false;
}

/* Adds what op and the operations inside it read and that is defined after s->first. */
static void need_operands(struct needs *s, MlirOperation op) {
  struct ir_ops inside = ir_collect(s->arena, op, NULL, NULL);

  for (int i = 0; i < inside.n; i++)
    for (intptr_t k = 0; k < mlirOperationGetNumOperands(inside.v[i]); k++) {
      MlirOperation def = ir_defining_op(mlirOperationGetOperand(inside.v[i], k));
      if (mlirOperationIsNull(def) || !mlirBlockEqual(mlirOperationGetBlock(def), s->block) || contains(s, def))
        continue;
      s->is_circular |= mlirOperationEqual(def, s->first);
      if (mlirOperationIsBeforeInBlock(s->first, def))
        array_push(s->arena, &s->ops, def);
    }
}

/* Moves what `second` needs to before `first`.  False if it needs `first` itself. */
static bool hoist(struct pass_run *run, MlirOperation first, MlirOperation second) {
  struct needs s = {.arena = run->arena, .block = mlirOperationGetBlock(first), .first = first};

  need_operands(&s, second);
  for (int i = 0; i < s.ops.n; i++)
    need_operands(&s, s.ops.v[i]);
  if (s.is_circular)
    return false;
  for (int i = 1; i < s.ops.n; i++) /* into program order */
    for (int k = i; k > 0 && mlirOperationIsBeforeInBlock(s.ops.v[k], s.ops.v[k - 1]); k--) {
      MlirOperation o = s.ops.v[k];
      s.ops.v[k] = s.ops.v[k - 1];
      s.ops.v[k - 1] = o;
    }
  for (int i = 0; i < s.ops.n; i++)
    mlirOperationMoveBefore(s.ops.v[i], first);
  return true;
}

/* ---- merging two loops ------------------------------------------------------------------------------------------- */

static int n_carried(MlirOperation loop) {
  return (int)mlirOperationGetNumOperands(loop) - 3;
}

static MlirLocation both(MlirContext ctx, MlirOperation a, MlirOperation b) {
  MlirLocation l[] = {mlirOperationGetLocation(a), mlirOperationGetLocation(b)};
  return mlirLocationEqual(l[0], l[1]) ? l[0] : mlirLocationFusedGet(ctx, 2, l, mlirAttributeGetNull());
}

/* The merged loop, before `first`.  Its body is empty. */
static MlirOperation make_loop(struct pass_run *run, MlirOperation first, MlirOperation second, MlirBlock *body) {
  const int na = n_carried(first), nb = n_carried(second), n = na + nb;
  MlirValue bounds[3], *carried = arena_new_array(run->arena, MlirValue, (size_t)n);
  struct ir_builder b = edit_before(run, first), inside;

  b.loc = both(b.ctx, first, second);
  for (int i = 0; i < 3; i++)
    bounds[i] = mlirOperationGetOperand(first, i);
  for (int i = 0; i < na; i++)
    carried[i] = mlirOperationGetOperand(first, 3 + i);
  for (int i = 0; i < nb; i++)
    carried[na + i] = mlirOperationGetOperand(second, 3 + i);
  MlirRegion region = ir_loop_region(&b, n, carried, &inside);
  *body = inside.block;
  return ir_for(&b, bounds, n, carried, region);
}

/* Moves the body of the loop to the end of `to`, in which its carried values begin at number `first`.  out: what it
 * yielded. */
static void take_body(MlirOperation loop, MlirBlock to, int first, MlirValue *out) {
  MlirBlock from = ir_body(loop);
  MlirOperation last = mlirBlockGetTerminator(from), op;

  mlirValueReplaceAllUsesOfWith(mlirBlockGetArgument(from, 0), mlirBlockGetArgument(to, 0));
  for (int i = 0; i < n_carried(loop); i++)
    mlirValueReplaceAllUsesOfWith(mlirBlockGetArgument(from, 1 + i), mlirBlockGetArgument(to, 1 + first + i));
  while (op = mlirBlockGetFirstOperation(from), !mlirOperationEqual(op, last)) {
    mlirOperationRemoveFromParent(op);
    mlirBlockAppendOwnedOperation(to, op);
  }
  for (int i = 0; i < n_carried(loop); i++)
    out[i] = mlirOperationGetOperand(last, i);
}

static void replace_loop(MlirOperation loop, MlirOperation by, int first) {
  for (int i = 0; i < n_carried(loop); i++)
    mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(loop, i), mlirOperationGetResult(by, first + i));
  mlirOperationDestroy(loop);
}

/* The loops of the block, but not those inside them. */
static struct ir_ops loops_in(struct arena *a, MlirBlock block) {
  struct ir_ops loops = {0};
  for (MlirOperation o = mlirBlockGetFirstOperation(block); !mlirOperationIsNull(o); o = mlirOperationGetNextInBlock(o))
    if (ir_is(o, "scf.for"))
      array_push(a, &loops, o);
  return loops;
}

static bool merge(struct pass_run *run, MlirOperation a, MlirOperation b);

/* Merges the k-th loop of one body with the k-th loop of the other, after the bodies have become one. */
static void merge_inner(struct pass_run *run, const struct ir_ops *a, const struct ir_ops *b) {
  for (int k = 0; k < a->n && k < b->n; k++)
    if (has_same_bounds(a->v[k], b->v[k]))
      merge(run, a->v[k], b->v[k]);
}

/* Merges two loops of one block, in program order.  False if the second needs the first. */
static bool merge(struct pass_run *run, MlirOperation first, MlirOperation second) {
  const int na = n_carried(first), nb = n_carried(second);
  MlirBlock body;

  if (!hoist(run, first, second))
    return false;
  MlirOperation made = make_loop(run, first, second, &body);
  MlirValue *yielded = arena_new_array(run->arena, MlirValue, (size_t)(na + nb) + 1);
  const struct ir_ops inner_a = loops_in(run->arena, ir_body(first)), inner_b = loops_in(run->arena, ir_body(second));
  take_body(first, body, 0, yielded);
  take_body(second, body, na, yielded + na);
  struct ir_builder b = {
      .ctx = run->ir->ctx, .block = body, .loc = mlirOperationGetLocation(made), .arena = run->arena};
  ir_yield(&b, na + nb, yielded);
  replace_loop(first, made, 0);
  replace_loop(second, made, na);
  merge_inner(run, &inner_a, &inner_b);
  return true;
}

/* ---- one fuse_op ------------------------------------------------------------------------------------------------- */

static MlirOperation about(MlirValue v, MlirOperation otherwise) {
  MlirOperation def = ir_defining_op(v);
  return mlirOperationIsNull(def) ? otherwise : def;
}

/* Merges the loops of target k into those of target 0. */
static enum status fuse_target(struct pass_run *run, MlirOperation fuse, int k) {
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
    if (!has_same_bounds(x, y) || !mlirBlockEqual(mlirOperationGetBlock(x), mlirOperationGetBlock(y))) {
      if (i) /* the loops before this one compute what the values were made from */
        return ST_OK;
      return pass_fail(run, y,
                       "fuse: mismatched loop bounds: the loops that compute this value differ from those of the value "
                       "it is to be fused with, in their range or tile size");
    }
    const bool in_order = mlirOperationIsBeforeInBlock(x, y);
    if (!merge(run, in_order ? x : y, in_order ? y : x))
      return pass_fail(
          run, in_order ? y : x,
          "fuse: this value is computed from the one it is to be fused with, so their loops cannot be one");
    a = loops_of(run->arena, mlirOperationGetOperand(fuse, 0));
    b = loops_of(run->arena, mlirOperationGetOperand(fuse, k));
  }
  return ST_OK;
}

static enum status fuse_one(struct pass_run *run, MlirOperation fuse) {
  const int n = (int)mlirOperationGetNumOperands(fuse);
  enum status st = ST_OK;

  if (n < 2)
    return pass_fail(run, fuse, "fuse needs at least two values");
  for (int k = 1; !st && k < n; k++)
    st = fuse_target(run, fuse, k);
  if (st)
    return st;
  MlirOperation def = about(mlirOperationGetOperand(fuse, 0), fuse);
  if (ir_is(def, "scf.for"))
    pass_remark(run, def, "computes %d fused values", n);
  else
    pass_remark(run, def, "nothing to fuse: a single tile computes the value");
  mlirOperationDestroy(fuse);
  return ST_OK;
}

static enum status run_pass(struct pass_run *run) {
  struct ir_ops fuses = ir_collect_named(run->arena, run->module, "nkipy.fuse_op");
  enum status st = ST_OK;

  for (int i = 0; !st && i < fuses.n; i++)
    st = fuse_one(run, fuses.v[i]);
  return st;
}

const struct pass_def knob_driven_fusion = {
    .name = "knob-driven-fusion",
    .run = run_pass,
};
