/* roots: finds what is computed from the states of recurrences, decides which of them are worth a scan, and replaces them.
 *
 * A plan begins with a value that needs every step: one that the steps' results are put into, one slice each (np.stack, y[t] = …),
 * or the last state.  Each plan is made as if the others were made, too: an operation of which nothing is left that needs it
 * goes away.  A state that is needed besides is taken from the scan's result; if more than a quarter of them are, the steps stay.
 */
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "base/array.h"
#include "passes/lib/edit.h"
#include "passes/recognize_scans/unrolled.h"
#include "passes/lib/price.h"

/* ---- what may be replaced ------------------------------------------------------------------------------------------- */

struct plan {
  struct pack *p;
  MlirValue result; /* of the last operation that puts a slice; null if only the last state is needed */
  MlirValue dest;   /* what the first slice is put into */
  MlirValue slot;   /* the first slice, if it is not computed like the others; else null */
  int axis, begin;  /* where the slices of p are in it */
  bool is_dropped;
};

struct plans {
  struct unrolled u;
  struct {
    struct plan *v;
    int n, cap;
  } plans;
  struct table seen;     /* operations and values that a plan was tried with */
  struct table replaced; /* operations whose results the plans compute otherwise */
  struct table dead;     /* and those that nothing needs then */
};

static char is_set;

/* The value that the plan replaces. */
static MlirValue result_of(const struct plan *p) {
  return mlirValueIsNull(p->result) ? p->p->v[p->p->n - 1] : p->result;
}

/* The dimension along which op puts one element, and all elements of the others; -1 if it is no such operation. */
static int slot_axis(MlirOperation op) {
  int64_t dims[STRUCTURED_LOOPS_MAX];
  int axis = -1;

  if (mlirOperationIsNull(op) || !ir_is(op, "tensor.insert_slice") || mlirOperationGetNumOperands(op) != 2)
    return -1;
  const int rank = ir_shape(ir_result(op), STRUCTURED_LOOPS_MAX, dims);
  if (rank < 1 || rank > STRUCTURED_LOOPS_MAX)
    return -1;
  for (int d = 0; d < rank; d++) {
    if (mlirDenseI64ArrayGetElement(ir_attr(op, "static_strides"), d) != 1)
      return -1;
    if (mlirDenseI64ArrayGetElement(ir_attr(op, "static_sizes"), d) == dims[d])
      continue;
    if (axis >= 0 || mlirDenseI64ArrayGetElement(ir_attr(op, "static_sizes"), d) != 1)
      return -1;
    axis = d;
  }
  return axis;
}

/* Collects the slices that end with op, which are put next to each other.  Returns how many there are, 0 if they have gaps. */
static int collect_slots(struct plans *w, MlirOperation op, int axis, struct plan *out, MlirValue **slots) {
  int64_t dims[STRUCTURED_LOOPS_MAX];
  int n = 0, begin = 0;

  ir_shape(ir_result(op), STRUCTURED_LOOPS_MAX, dims);
  if (dims[axis] > UNROLLED_STEPS_MAX)
    return 0;
  const int all = (int)dims[axis];
  MlirValue *v = arena_new_array(w->u.run->arena, MlirValue, (size_t)all);
  memset(v, 0, (size_t)all * sizeof *v);
  *out = (struct plan){.result = ir_result(op), .axis = axis};
  for (;;) {
    const int64_t at = mlirDenseI64ArrayGetElement(ir_attr(op, "static_offsets"), axis);
    v[at] = mlirOperationGetOperand(op, 0);
    n++;
    table_put(&w->seen, op.ptr, &is_set);
    out->dest = mlirOperationGetOperand(op, 1);
    op = ir_defining_op(out->dest);
    if (slot_axis(op) != axis || !ir_has_one_use(out->dest) ||
        !mlirValueIsNull(v[mlirDenseI64ArrayGetElement(ir_attr(op, "static_offsets"), axis)]))
      break;
  }
  while (mlirValueIsNull(v[begin]))
    begin++;
  out->begin = begin;
  *slots = v + begin;
  for (int k = 0; k < n; k++)
    if (begin + k >= all || mlirValueIsNull(v[begin + k]))
      return 0;
  return n;
}

static bool has_steps(struct plans *w, struct pack *p);

/* Plans what is put into the result of op, the last of several that put a slice each. */
static void plan_slots(struct plans *w, MlirOperation op) {
  const int axis = slot_axis(op);
  struct plan plan;
  MlirValue *slots;

  if (axis < 0 || table_get(&w->seen, op.ptr) || form_is_annotated(ir_result(op)))
    return;
  const int n = collect_slots(w, op, axis, &plan, &slots);
  if (n < UNROLLED_STEPS_MIN)
    return;
  for (int k = 0; k < 2 && n - k >= UNROLLED_STEPS_MIN; k++) {
    plan.p = pack_values(&w->u, n - k, slots + k);
    plan.slot = k ? slots[0] : (MlirValue){NULL};
    plan.begin += k;
    if (plan.p->kind == PACK_REFUSED || !has_steps(w, plan.p))
      continue;
    array_push(w->u.run->arena, &w->plans, plan);
    return;
  }
}

/* The results of the operations of a step are no last states. */
static void mark_steps(struct plans *w) {
  for (int c = 0; c < w->u.chains.n; c++) {
    const struct pack *p = w->u.chains.v[c];
    for (int t = p->steps->from; t < p->n; t++)
      for (int k = 0; k < p->steps->n_links; k++)
        table_put(&w->seen, ir_result(p->steps->links[k][t].op).ptr, &is_set);
  }
}

/* Plans the steps, of two operations each, that lead to v. */
static void plan_last(struct plans *w, MlirValue v) {
  MlirOperation last = ir_defining_op(v);
  struct form f, g;

  if (table_get(&w->seen, v.ptr) || !form_read(last, &f))
    return;
  for (int k = 0; k < f.n_inputs; k++) {
    if (!form_read(ir_defining_op(form_source(mlirOperationGetOperand(last, k))), &g))
      continue;
    for (int j = 0; j < g.n_inputs; j++) {
      struct states all = steps_around(&w->u, v, (struct step_form){k, j});
      if (all.n < UNROLLED_STEPS_MIN)
        continue;
      for (int t = 0; t < all.n; t++)
        table_put(&w->seen, all.v[t].ptr, &is_set);
      struct plan plan = {.p = pack_values(&w->u, all.n, all.v)};
      if (plan.p->kind == PACK_STEPS) {
        array_push(w->u.run->arena, &w->plans, plan);
        mark_steps(w);
      }
      return;
    }
  }
}

/* ---- the steps of a plan -------------------------------------------------------------------------------------------- */

/* Calls visit with every recurrence that p needs, each once; true if there is one, and visit returns true for all. */
static bool each_steps(struct plans *w, struct pack *p, struct table *seen,
                       bool (*visit)(struct plans *, struct pack *), int *count) {
  if (table_get(seen, p))
    return true;
  table_put(seen, p, &is_set);
  if (p->kind == PACK_PART)
    return each_steps(w, p->whole, seen, visit, count);
  if (p->kind == PACK_STEPS) {
    ++*count;
    if (!visit(w, p))
      return false;
    for (int k = 0; k < p->steps->n_links; k++)
      if (p->steps->other[k] && !each_steps(w, p->steps->other[k], seen, visit, count))
        return false;
  }
  for (int k = 0; p->kind == PACK_OPERATIONS && k < p->form.n_inputs; k++)
    if (!each_steps(w, p->in[k], seen, visit, count))
      return false;
  return true;
}

/* ---- what remains --------------------------------------------------------------------------------------------------- */

static bool is_pure(MlirOperation op) {
  return mlirOperationGetNumResults(op) > 0 &&
         (ir_is_of(op, "linalg.") || ir_is_of(op, "tensor.") || ir_is_of(op, "arith."));
}

static bool is_dead(const struct plans *w, MlirOperation op) {
  return table_get(&w->dead, op.ptr) != NULL;
}

static bool has_live_use(const struct plans *w, MlirValue v) {
  for (MlirOpOperand o = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(o); o = mlirOpOperandGetNextUse(o))
    if (!is_dead(w, mlirOpOperandGetOwner(o)))
      return true;
  return false;
}

static bool mark_states(struct plans *w, struct pack *p) {
  for (int t = p->steps->from; t < p->n; t++)
    table_put(&w->replaced, ir_defining_op(p->v[t]).ptr, &is_set);
  return true;
}

/* Finds the operations that nothing needs any more when the plans are carried out. */
static void find_dead(struct plans *w) {
  struct table seen = {.arena = w->u.run->arena};
  struct ir_ops ops = {0};
  int n = 0;

  w->dead = w->replaced = (struct table){.arena = w->u.run->arena};
  for (int k = 0; k < w->plans.n; k++) {
    if (w->plans.v[k].is_dropped)
      continue;
    table_put(&w->replaced, ir_defining_op(result_of(&w->plans.v[k])).ptr, &is_set);
    each_steps(w, w->plans.v[k].p, &seen, mark_states, &n);
  }
  for (MlirOperation o = mlirBlockGetFirstOperation(w->u.block); !mlirOperationIsNull(o);
       o = mlirOperationGetNextInBlock(o))
    array_push(w->u.run->arena, &ops, o);
  while (ops.n) {
    MlirOperation op = ops.v[--ops.n];
    bool is_needed = !is_pure(op);
    for (intptr_t r = 0; r < mlirOperationGetNumResults(op) && !table_get(&w->replaced, op.ptr); r++)
      is_needed |= has_live_use(w, mlirOperationGetResult(op, r));
    if (!is_needed)
      table_put(&w->dead, op.ptr, &is_set);
  }
}

/* True if the states that are needed besides are few, and can be taken from the scan's result. */
static bool may_replace(const struct plans *w, const struct pack *p) {
  int n = 0;

  for (int t = p->steps->from; t < p->n; t++) {
    if (!has_live_use(w, p->v[t]))
      continue;
    n++;
    for (MlirOpOperand o = mlirValueGetFirstUse(p->v[t]); !mlirOpOperandIsNull(o); o = mlirOpOperandGetNextUse(o)) {
      MlirOperation user = mlirOpOperandGetOwner(o), here = ir_ancestor_in(user, w->u.block);
      if (!is_dead(w, user) && (mlirOperationIsNull(here) || mlirOperationIsBeforeInBlock(here, p->before)))
        return false;
    }
  }
  return n <= 1 || n <= p->n / 4;
}

/* ---- what is carried out -------------------------------------------------------------------------------------------- */

static bool is_any(struct plans *w, struct pack *p) {
  (void)w;
  (void)p;
  return true;
}

static bool may_replace_steps(struct plans *w, struct pack *p) {
  return may_replace(w, p);
}

static bool has_steps(struct plans *w, struct pack *p) {
  struct table seen = {.arena = w->u.run->arena};
  int n = 0;
  return each_steps(w, p, &seen, is_any, &n) && n;
}

/* Drops the plans that would leave most of the steps in place, and those that nothing needs, until there is none. */
static void choose(struct plans *w) {
  for (bool changed = true; changed;) {
    changed = false;
    find_dead(w);
    for (int k = 0; k < w->plans.n; k++) {
      struct table seen = {.arena = w->u.run->arena};
      int n = 0;
      struct plan *plan = &w->plans.v[k];
      if (plan->is_dropped ||
          (has_live_use(w, result_of(plan)) && each_steps(w, plan->p, &seen, may_replace_steps, &n)))
        continue;
      plan->is_dropped = changed = true;
    }
  }
}

/* ---- replacing ------------------------------------------------------------------------------------------------------ */

/* Takes the states of p that are needed besides from the scan's result. */
static bool replace_states(struct plans *w, struct pack *p) {
  struct arena *a = w->u.run->arena;
  struct ir_builder b = edit_before(w->u.run, p->before);

  if (mlirValueIsNull(p->made) || table_get(&w->seen, p))
    return true;
  table_put(&w->seen, p, &is_set);
  MlirOperation last = ir_defining_op(p->v[p->n - 1]);
  struct remark *r =
      pass_remark(w->u.run, last, RULE_SCAN, "%d steps of a recurrence by one scan", p->n - p->steps->from);
  const struct price_shape s = price_shape_of(p->v[p->n - 1]);
  const int64_t steps = p->n - p->steps->from, rows = s.rows * s.columns;
  price_chosen(r, price_rows_ns(w->u.run->target, SIM_COST_SCAN, rows, steps));
  price_instead(r, "the steps as written",
                (double)steps * price_rows_ns(w->u.run->target, SIM_COST_SCALAR_TENSOR, s.rows, s.columns),
                "each waits for the one before it, with short instructions");
  for (int t = p->steps->from; t < p->n; t++) {
    struct {
      MlirOpOperand *v;
      int n, cap;
    } uses = {0};
    for (MlirOpOperand o = mlirValueGetFirstUse(p->v[t]); !mlirOpOperandIsNull(o); o = mlirOpOperandGetNextUse(o))
      if (!is_dead(w, mlirOpOperandGetOwner(o)))
        array_push(a, &uses, o);
    if (!uses.n)
      continue;
    b.loc = mlirOperationGetLocation(ir_defining_op(p->v[t]));
    MlirValue state = unrolled_element(&b, p, t);
    for (int k = 0; k < uses.n; k++)
      mlirOperationSetOperand(mlirOpOperandGetOwner(uses.v[k]), mlirOpOperandGetOperandNumber(uses.v[k]), state);
  }
  return true;
}

/* Brings the packed value into the shape of the value that the slices were put into. */
static MlirValue as_slots(struct ir_builder *b, const struct plan *plan) {
  const struct pack *p = plan->p;
  int64_t dims[STRUCTURED_LOOPS_MAX], at[STRUCTURED_LOOPS_MAX], place[STRUCTURED_LOOPS_MAX];
  const int rank = ir_shape(plan->result, STRUCTURED_LOOPS_MAX, dims);
  const bool is_all = dims[plan->axis] == p->n;
  int n = 0, of_one = 0;

  for (int k = 0; k < p->rank; k++)
    place[p->order[k]] = k;
  dims[plan->axis] = p->n;
  for (int d = 0; d < rank; d++)
    if (d == plan->axis)
      at[n++] = p->rank;
    else if (dims[d] > 1)
      at[n++] = place[of_one++];
  MlirValue v = p->made;
  for (int k = 0; k < n; k++)
    if (at[k] != k) {
      v = ir_result(ir_transpose(b, v, n, at));
      break;
    }
  v = edit_reshape(b, v, rank, dims);
  memset(at, 0, sizeof at);
  if (is_all)
    return v;
  MlirValue dest = plan->dest;
  if (!mlirValueIsNull(plan->slot)) {
    at[plan->axis] = plan->begin - 1;
    dims[plan->axis] = 1;
    dest = ir_insert_slice(b, plan->slot, dest, &(struct ir_slice){.rank = rank, .offsets = at, .sizes = dims});
    dims[plan->axis] = p->n;
  }
  at[plan->axis] = plan->begin;
  return ir_insert_slice(b, v, dest, &(struct ir_slice){.rank = rank, .offsets = at, .sizes = dims});
}

static void carry_out(struct plans *w, struct plan *plan) {
  struct table seen = {.arena = w->u.run->arena};
  int n = 0;

  unrolled_build(&w->u, plan->p);
  if (!mlirValueIsNull(plan->result)) {
    struct ir_builder b = edit_before(w->u.run, ir_defining_op(plan->result));
    mlirValueReplaceAllUsesOfWith(plan->result, as_slots(&b, plan));
  }
  each_steps(w, plan->p, &seen, replace_states, &n);
}

static bool is_unused(MlirOperation op) {
  for (intptr_t r = 0; r < mlirOperationGetNumResults(op); r++)
    if (ir_is_used(mlirOperationGetResult(op, r)))
      return false;
  return true;
}

static void replace(struct pass_run *run, MlirBlock block) {
  struct arena *a = run->arena;
  struct plans w = {.u = {.run = run, .block = block, .packs = {.arena = a}, .busy = {.arena = a}},
                    .seen = {.arena = a}};
  struct ir_ops ops = {0};
  int n = 0;

  for (MlirOperation o = mlirBlockGetFirstOperation(block); !mlirOperationIsNull(o); o = mlirOperationGetNextInBlock(o))
    array_push(a, &ops, o);
  for (int k = ops.n - 1; k >= 0; k--)
    plan_slots(&w, ops.v[k]);
  mark_steps(&w);
  for (int k = ops.n - 1; k >= 0; k--)
    if (mlirOperationGetNumResults(ops.v[k]) == 1)
      plan_last(&w, ir_result(ops.v[k]));
  if (w.plans.n)
    choose(&w);
  for (int k = 0; k < w.plans.n; k++)
    if (!w.plans.v[k].is_dropped) {
      struct pack *p = w.plans.v[k].p;
      pass_step(run, ir_defining_op(p->v[p->n - 1]), "scan-steps");
      carry_out(&w, &w.plans.v[k]);
      n++;
    }
  for (int k = ops.n - 1; n && k >= 0; k--)
    if (is_pure(ops.v[k]) && is_unused(ops.v[k])) {
      pass_step(run, ops.v[k], "drop-unused");
      mlirOperationDestroy(ops.v[k]);
    }
}

void unrolled_recurrences(struct pass_run *run) {
  struct ir_ops functions = ir_collect_named(run->arena, run->module, "func.func");
  for (int k = 0; k < functions.n; k++)
    if (!mlirRegionIsNull(mlirOperationGetRegion(functions.v[k], 0)) && !mlirBlockIsNull(ir_body(functions.v[k])))
      replace(run, ir_body(functions.v[k]));
}
