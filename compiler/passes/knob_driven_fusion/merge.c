/* merge: merges two loops into one.  See knob_driven_fusion.c.
 *
 * The merged loop takes the place of the first one; operations that the second one needs move before it.  Where the
 * second loop reads a result of the first, it now reads the value that the first one's body has computed so far:
 *
 *     %a = scf.for %i … iter_args(%p) {                     %ab:2 = scf.for %i … iter_args(%p, %q) {
 *       … %x = insert_slice %tile into %p[%i, 0] }            … %x = insert_slice %tile into %p[%i, 0]
 *     %b = scf.for %i … iter_args(%q) {             ==>
 *       … extract_slice %a[%i, 0] … }                         … %tile … }
 *
 * This is correct if the part that an iteration reads is complete after the same iteration of the first body: both
 * loops go along the same dimension of the value, in the same steps.
 *
 * Inner loops are merged in the same way if their bounds agree and the parts that they read are complete; their bodies
 * may contain any operations.  An inner reduction stays a separate loop before the loops that read its result.
 */
#include <inttypes.h>

#include "base/array.h"
#include "passes/knob_driven_fusion/knob_driven_fusion.h"
#include "passes/lib/edit.h"

/* ---- bounds ------------------------------------------------------------------------------------------------------ */

static bool is_same_number(MlirValue x, MlirValue y) {
  int64_t a, b;
  return mlirValueEqual(x, y) || (ir_int_constant(x, &a) && ir_int_constant(y, &b) && a == b);
}

bool merge_has_same_bounds(MlirOperation a, MlirOperation b) {
  for (int i = 0; i < 3; i++)
    if (!is_same_number(mlirOperationGetOperand(a, i), mlirOperationGetOperand(b, i)))
      return false;
  return true;
}

const char *merge_bounds_text(struct arena *a, MlirOperation loop) {
  int64_t n[3];
  for (int i = 0; i < 3; i++)
    if (!ir_int_constant(mlirOperationGetOperand(loop, i), &n[i]))
      return "computed bounds";
  return arena_printf(a, "%" PRId64 " to %" PRId64 " in steps of %" PRId64, n[0], n[1], n[2]);
}

/* ---- what one loop reads of the other ---------------------------------------------------------------------------- */

static bool is_used_in(MlirValue v, MlirOperation op) {
  MlirBlock block = mlirOperationGetBlock(op);
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation here = ir_ancestor_in(mlirOpOperandGetOwner(u), block);
    if (!mlirOperationIsNull(here) && mlirOperationEqual(here, op))
      return true;
  }
  return false;
}

/* True if the body of `second` reads a result of `first`. */
static bool reads(MlirOperation second, MlirOperation first) {
  for (int k = 0; k < parts_n_carried(first); k++) {
    MlirValue v = mlirOperationGetResult(first, k);
    for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
      MlirOperation user = mlirOpOperandGetOwner(u), here = ir_ancestor_in(user, mlirOperationGetBlock(second));
      if (!mlirOperationIsNull(here) && mlirOperationEqual(here, second) && !mlirOperationEqual(user, second))
        return true;
    }
  }
  return false;
}

static MlirOperation refuse(struct merging *m, MlirOperation who, const char *why) {
  m->who = who;
  m->why = why;
  return (MlirOperation){NULL};
}

/* Returns the number of the result of `first` that is the initial value of carried value j of `second`, or -1 if it is
 * another value. */
static int carried_on(MlirOperation first, MlirOperation second, int j) {
  MlirValue v = mlirOperationGetOperand(second, 3 + j);
  MlirOperation def = ir_defining_op(v);
  return !mlirOperationIsNull(def) && mlirOperationEqual(def, first) ? (int)mlirOpResultGetResultNumber(v) : -1;
}

/* True if result k of `first`, the initial value of j in `second`, has no other use, and no iteration sees what
 * another one wrote, so that the iterations of both loops can alternate. */
static bool can_take_turns(MlirOperation first, int k, MlirOperation second, int j) {
  MlirValue v = mlirOperationGetResult(first, k);
  int n = 0;

  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
    n++;
  return n == 1 && (parts_runs_once(first) || (parts_used(first, k) & parts_used(second, j)));
}

/* Returns the reason why the part of result k of `first` that an iteration of `second` reads is not complete by then,
 * or NULL if it is complete. */
static const char *why_incomplete(struct merging *m, MlirOperation first, int k, MlirOperation second) {
  MlirValue v = mlirOperationGetResult(first, k);
  const unsigned written = parts_written(first, k), read = parts_read(second, v, true);

  for (int j = 0; j < parts_n_carried(second); j++)
    if (carried_on(first, second, j) == k)
      return can_take_turns(first, k, second, j) ? NULL : "it changes the value in place";
  if (!is_used_in(v, second) || (written & read) || parts_runs_once(first))
    return NULL;
  if (!written)
    return "the value that it is computed from is complete only after the last iteration of its outermost loop, which "
           "goes over a dimension that is reduced";
  return arena_printf(m->run->arena,
                      "it reads more of dimension %d of the value that it is computed from than the tile which is "
                      "complete by then",
                      parts_first_dim(written));
}

static const char *why_not(struct merging *m, MlirOperation first, MlirOperation second) {
  const char *why = NULL;
  for (int k = 0; !why && k < parts_n_carried(first); k++)
    why = why_incomplete(m, first, k, second);
  return why;
}

/* ---- what has to move -------------------------------------------------------------------------------------------- */

struct needs {
  struct arena *arena;
  MlirBlock block;
  MlirOperation first, second;
  struct ir_ops ops;
  MlirOperation blocker; /* the first operation other than `second` that needs `first` itself, or null */
};

static bool contains(const struct needs *s, MlirOperation op) {
  for (int i = 0; i < s->ops.n; i++)
    if (mlirOperationEqual(s->ops.v[i], op))
      return true;
  return false;
}

/* Adds the operations after s->first whose results op, or an operation inside op, reads. */
static void need_operands(struct needs *s, MlirOperation op) {
  struct ir_ops inside = ir_collect(s->arena, op, NULL, NULL);

  for (int i = 0; i < inside.n; i++)
    for (intptr_t k = 0; k < mlirOperationGetNumOperands(inside.v[i]); k++) {
      MlirOperation def = ir_defining_op(mlirOperationGetOperand(inside.v[i], k));
      if (mlirOperationIsNull(def) || !mlirBlockEqual(mlirOperationGetBlock(def), s->block) || contains(s, def))
        continue;
      if (mlirOperationEqual(def, s->first) && !mlirOperationEqual(op, s->second) &&
          (mlirOperationIsNull(s->blocker) || mlirOperationIsBeforeInBlock(op, s->blocker)))
        s->blocker = op;
      if (mlirOperationIsBeforeInBlock(s->first, def))
        array_push(s->arena, &s->ops, def);
    }
}

static struct needs find_needs(struct pass_run *run, MlirOperation first, MlirOperation second) {
  struct needs s = {.arena = run->arena, .block = mlirOperationGetBlock(first), .first = first, .second = second};

  need_operands(&s, second);
  for (int i = 0; i < s.ops.n; i++)
    need_operands(&s, s.ops.v[i]);
  return s;
}

/* Moves the operations before `first`, in program order. */
static void hoist(struct needs *s) {
  for (int i = 1; i < s->ops.n; i++)
    for (int k = i; k > 0 && mlirOperationIsBeforeInBlock(s->ops.v[k], s->ops.v[k - 1]); k--) {
      MlirOperation o = s->ops.v[k];
      s->ops.v[k] = s->ops.v[k - 1];
      s->ops.v[k - 1] = o;
    }
  for (int i = 0; i < s->ops.n; i++)
    mlirOperationMoveBefore(s->ops.v[i], s->first);
}

/* ---- one loop of two --------------------------------------------------------------------------------------------- */

static MlirLocation both(MlirContext ctx, MlirOperation a, MlirOperation b) {
  MlirLocation l[] = {mlirOperationGetLocation(a), mlirOperationGetLocation(b)};
  return mlirLocationEqual(l[0], l[1]) ? l[0] : mlirLocationFusedGet(ctx, 2, l, mlirAttributeGetNull());
}

/* Two loops that are being merged. */
struct pair {
  MlirOperation first, second;
  int na, nb, n;
  int *place; /* position of each value that `second` carries, among the n values of the merged loop */
};

static struct pair make_pair(struct arena *a, MlirOperation first, MlirOperation second) {
  struct pair p = {first, second, parts_n_carried(first), parts_n_carried(second), parts_n_carried(first), NULL};

  p.place = arena_new_array(a, int, (size_t)p.nb + 1);
  for (int j = 0; j < p.nb; j++) {
    const int k = carried_on(first, second, j);
    p.place[j] = k >= 0 ? k : p.n++;
  }
  return p;
}

/* Returns v, or a new tensor.empty if v is a tensor.empty from which another carried value starts: both would get the
 * same buffer. */
static MlirValue own_empty(struct ir_builder *b, MlirValue v, int n, MlirValue const *others) {
  MlirOperation def = ir_defining_op(v);
  for (int i = 0; i < n; i++)
    if (mlirValueEqual(others[i], v) && !mlirOperationIsNull(def) && ir_is(def, "tensor.empty"))
      return ir_empty_of(b, mlirValueGetType(v));
  return v;
}

/* Builds the merged loop, with an empty body, before the first loop. */
static MlirOperation make_loop(struct pass_run *run, const struct pair *p, MlirBlock *body) {
  MlirValue bounds[3], *carried = arena_new_array(run->arena, MlirValue, (size_t)p->n + 1);
  struct ir_builder b = edit_before(run, p->first), inside;

  b.loc = both(b.ctx, p->first, p->second);
  for (int i = 0; i < 3; i++)
    bounds[i] = mlirOperationGetOperand(p->first, i);
  for (int i = 0; i < p->na; i++)
    carried[i] = mlirOperationGetOperand(p->first, 3 + i);
  for (int j = 0; j < p->nb; j++)
    if (p->place[j] >= p->na)
      carried[p->place[j]] = own_empty(&b, mlirOperationGetOperand(p->second, 3 + j), p->place[j], carried);
  MlirRegion region = ir_loop_region(&b, p->n, carried, &inside);
  *body = inside.block;
  return ir_for(&b, bounds, p->n, carried, region);
}

/* Moves the body of the loop to the end of `to`.  Replaces its carried values by `begin` and stores the values that
 * it yielded in out. */
static void take_body(MlirOperation loop, MlirBlock to, MlirValue const *begin, MlirValue *out) {
  MlirBlock from = ir_body(loop);
  MlirOperation last = mlirBlockGetTerminator(from), op;

  mlirValueReplaceAllUsesOfWith(mlirBlockGetArgument(from, 0), mlirBlockGetArgument(to, 0));
  for (int i = 0; i < parts_n_carried(loop); i++)
    mlirValueReplaceAllUsesOfWith(mlirBlockGetArgument(from, 1 + i), begin[i]);
  while (op = mlirBlockGetFirstOperation(from), !mlirOperationEqual(op, last)) {
    mlirOperationRemoveFromParent(op);
    mlirBlockAppendOwnedOperation(to, op);
  }
  for (int i = 0; i < parts_n_carried(loop); i++)
    out[i] = mlirOperationGetOperand(last, i);
}

static void replace_loop(MlirOperation loop, MlirOperation by, const int *place) {
  for (int i = 0; i < parts_n_carried(loop); i++)
    mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(loop, i), mlirOperationGetResult(by, place ? place[i] : i));
  mlirOperationDestroy(loop);
}

/* Moves both bodies to the merged loop.  Stores the values that the first body yielded in computed. */
static void take_bodies(struct pass_run *run, const struct pair *p, MlirOperation made, MlirValue *computed) {
  MlirBlock body = ir_body(made);
  MlirValue *begin = arena_new_array(run->arena, MlirValue, (size_t)p->n + 1);
  MlirValue *out = arena_new_array(run->arena, MlirValue, (size_t)p->n + 1);
  MlirValue *yielded = arena_new_array(run->arena, MlirValue, (size_t)p->n + 1);

  for (int i = 0; i < p->na; i++)
    begin[i] = mlirBlockGetArgument(body, 1 + i);
  take_body(p->first, body, begin, computed);
  for (int i = 0; i < p->na; i++)
    yielded[i] = computed[i];
  for (int j = 0; j < p->nb; j++)
    begin[j] = p->place[j] < p->na ? computed[p->place[j]] : mlirBlockGetArgument(body, 1 + p->place[j]);
  take_body(p->second, body, begin, out);
  for (int j = 0; j < p->nb; j++)
    yielded[p->place[j]] = out[j];
  struct ir_builder b = {
      .ctx = run->ir->ctx, .block = body, .loc = mlirOperationGetLocation(made), .arena = run->arena};
  ir_yield(&b, p->n, yielded);
}

/* Makes the body of `made` read the values that the first body has computed instead of the results of `first`. */
static void read_inside(struct pass_run *run, MlirOperation first, MlirOperation made, MlirValue const *computed) {
  for (int k = 0; k < parts_n_carried(first); k++) {
    MlirOpOperand next;
    for (MlirOpOperand u = mlirValueGetFirstUse(mlirOperationGetResult(first, k)); !mlirOpOperandIsNull(u); u = next) {
      MlirOperation op = mlirOpOperandGetOwner(u), here = ir_ancestor_in(op, mlirOperationGetBlock(made));
      next = mlirOpOperandGetNextUse(u);
      if (!mlirOperationIsNull(here) && mlirOperationEqual(here, made))
        mlirOperationSetOperand(op, mlirOpOperandGetOperandNumber(u), computed[k]);
    }
    parts_forward(run, computed[k], ir_body(made));
  }
}

/* ---- loops inside ------------------------------------------------------------------------------------------------ */

static MlirOperation merge(struct merging *m, MlirOperation first, MlirOperation second, struct needs *needs);

static bool writes_at_counter(MlirOperation loop) {
  for (int k = 0; k < parts_n_carried(loop); k++)
    if (parts_written(loop, k))
      return true;
  return false;
}

/* If one loop writes a dimension of a value and the other reads it, and neither reduces it, both must have the same
 * steps.  Sets m->why if they have not. */
static void check_steps(struct merging *m, MlirOperation first, MlirOperation second) {
  for (int k = 0; k < parts_n_carried(first); k++) {
    MlirValue v = mlirOperationGetResult(first, k);
    const unsigned dims = parts_written(first, k) & parts_read(second, v, false);
    if (!is_used_in(v, second) || !dims || !writes_at_counter(second))
      continue;
    refuse(m, second,
           arena_printf(m->run->arena,
                        "mismatched loop bounds: dimension %d goes from %s here, but from %s in the value that it is "
                        "computed from; give both the same tile size",
                        parts_first_dim(dims), merge_bounds_text(m->run->arena, second),
                        merge_bounds_text(m->run->arena, first)));
  }
}

/* Merges `second` with the last loop that it reads and can be merged with.  Returns false if it reads none of the
 * loops. */
static bool merge_with_producer(struct merging *m, struct ir_ops *loops, MlirOperation second) {
  bool is_reader = false;

  for (int k = loops->n - 1; k >= 0 && !m->why; k--) {
    MlirOperation first = loops->v[k];
    if (!reads(second, first))
      continue;
    is_reader = true;
    if (!merge_has_same_bounds(first, second)) {
      check_steps(m, first, second);
      continue;
    }
    struct needs needs = find_needs(m->run, first, second);
    if (!mlirOperationIsNull(needs.blocker) || why_not(m, first, second))
      continue;
    loops->v[k] = merge(m, first, second, &needs);
    return true;
  }
  return is_reader;
}

/* Called after two bodies were merged.  Merges each inner loop of the second body with one of the first body that it
 * reads; if it reads none, with the one that has the same number. */
static void merge_inner(struct merging *m, struct ir_ops *a, const struct ir_ops *b) {
  for (int k = 0; k < b->n && !m->why; k++) {
    parts_read_where_written(m->run, b->v[k]);
    if (merge_with_producer(m, a, b->v[k]) || k >= a->n || !merge_has_same_bounds(a->v[k], b->v[k]))
      continue;
    struct needs needs = find_needs(m->run, a->v[k], b->v[k]);
    if (mlirOperationIsNull(needs.blocker) && !why_not(m, a->v[k], b->v[k]))
      a->v[k] = merge(m, a->v[k], b->v[k], &needs);
  }
}

static MlirOperation merge(struct merging *m, MlirOperation first, MlirOperation second, struct needs *needs) {
  struct arena *a = m->run->arena;
  const struct pair p = make_pair(a, first, second);
  MlirValue *computed = arena_new_array(a, MlirValue, (size_t)p.na + 1);
  MlirBlock body;

  hoist(needs);
  MlirOperation made = make_loop(m->run, &p, &body);
  struct ir_ops inner_a = parts_loops_in(a, ir_body(first));
  const struct ir_ops inner_b = parts_loops_in(a, ir_body(second));
  take_bodies(m->run, &p, made, computed);
  read_inside(m->run, first, made, computed);
  replace_loop(first, made, NULL);
  replace_loop(second, made, p.place);
  merge_inner(m, &inner_a, &inner_b);
  return made;
}

/* ---- loops next to each other ------------------------------------------------------------------------------------ */

static void note_made(struct merging *m, MlirOperation first, MlirOperation second, MlirOperation made) {
  int n = 0;
  for (int k = 0; k < m->made.n; k++)
    if (!mlirOperationEqual(m->made.v[k], first) && !mlirOperationEqual(m->made.v[k], second))
      m->made.v[n++] = m->made.v[k];
  m->made.n = n;
  array_push(m->run->arena, &m->made, made);
}

/* True if `second`, which carries a result of `first`, can be merged with it. */
static bool can_carry_on(struct merging *m, MlirOperation first, MlirOperation second) {
  return ir_is(first, "scf.for") && mlirBlockEqual(mlirOperationGetBlock(first), mlirOperationGetBlock(second)) &&
         merge_has_same_bounds(first, second) && mlirOperationIsNull(find_needs(m->run, first, second).blocker) &&
         !why_not(m, first, second);
}

void merge_chain(struct merging *m, MlirValue v) {
  MlirOperation second = ir_defining_op(v);

  while (!mlirOperationIsNull(second) && ir_is(second, "scf.for")) {
    const int j = (int)mlirOpResultGetResultNumber(v);
    MlirValue before = mlirOperationGetOperand(second, 3 + j);
    MlirOperation first = ir_defining_op(before);
    if (!mlirOperationIsNull(first) && can_carry_on(m, first, second)) {
      struct needs needs = find_needs(m->run, first, second);
      const int k = carried_on(first, second, j);
      MlirOperation made = merge(m, first, second, &needs);
      note_made(m, first, second, made);
      v = mlirOperationGetResult(made, k);
    } else {
      v = before;
    }
    second = ir_defining_op(v);
  }
}

/* Merges a loop between `first` and `second` with the loop whose result it carries.  Returns false if there is
 * none. */
static bool merge_one_between(struct merging *m, MlirOperation first, MlirOperation second) {
  for (MlirOperation op = mlirOperationGetNextInBlock(first); !mlirOperationEqual(op, second);
       op = mlirOperationGetNextInBlock(op))
    for (int j = 0; ir_is(op, "scf.for") && j < parts_n_carried(op); j++) {
      MlirOperation before = ir_defining_op(mlirOperationGetOperand(op, 3 + j));
      if (mlirOperationIsNull(before) || mlirOperationEqual(before, first) || !can_carry_on(m, before, op))
        continue;
      struct needs needs = find_needs(m->run, before, op);
      note_made(m, before, op, merge(m, before, op, &needs));
      return true;
    }
  return false;
}

/* Prepares the loops after `first`, up to `second`, for merging: merges the loops for the parts of a row, and makes
 * each loop read from the loop that wrote the part. */
static void prepare(struct merging *m, MlirOperation first, MlirOperation second) {
  while (merge_one_between(m, first, second))
    ;
  for (MlirOperation op = first; !mlirOperationEqual(op, second);) {
    op = mlirOperationGetNextInBlock(op);
    if (ir_is(op, "scf.for"))
      parts_read_where_written(m->run, op);
  }
}

MlirOperation merge_loops(struct merging *m, MlirOperation first, MlirOperation second) {
  prepare(m, first, second);
  for (;;) {
    struct needs needs = find_needs(m->run, first, second);
    if (!mlirOperationIsNull(needs.blocker)) {
      if (!ir_is(needs.blocker, "scf.for"))
        return refuse(m, needs.blocker,
                      "this operation is in between: it reads the whole of one value and computes the other from it");
      if (!merge_has_same_bounds(first, needs.blocker))
        return refuse(
            m, needs.blocker,
            arena_printf(m->run->arena, "this value is in between, and its outermost loop goes from %s instead of %s",
                         merge_bounds_text(m->run->arena, needs.blocker), merge_bounds_text(m->run->arena, first)));
      first = merge_loops(m, first, needs.blocker);
      if (mlirOperationIsNull(first))
        return first;
      continue;
    }
    const char *why = why_not(m, first, second);
    if (why)
      return refuse(m, second, why);
    MlirOperation made = merge(m, first, second, &needs);
    note_made(m, first, second, made);
    return m->why ? (MlirOperation){NULL} : made;
  }
}
