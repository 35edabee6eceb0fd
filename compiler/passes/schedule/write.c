/* write: writes the body of a loop, or a program, in another order.  See overlap.c. */
#include "base/array.h"
#include "ir/build.h"
#include "passes/schedule/overlap.h"
#include "passes/lib/edit.h"

/* ---- the new order ----------------------------------------------------------------------------------------------- */

static void rename_operands(struct pass_run *run, const struct schedule_renamed *r, MlirOperation op) {
  const struct ir_ops all = ir_collect(run->arena, op, NULL, NULL);
  for (int k = 0; k < all.n; k++)
    for (intptr_t i = 0; i < mlirOperationGetNumOperands(all.v[k]); i++) {
      void *other = table_get(&r->by_value, mlirOperationGetOperand(all.v[k], i).ptr);
      if (other)
        mlirOperationSetOperand(all.v[k], i, (MlirValue){other});
    }
}

MlirOperation schedule_copy(struct pass_run *run, struct schedule_renamed *r, MlirOperation op, MlirBlock block,
                            MlirOperation before) {
  MlirOperation made = mlirOperationClone(op);
  rename_operands(run, r, made);
  mlirBlockInsertOwnedOperationBefore(block, before, made);
  for (intptr_t k = 0; k < mlirOperationGetNumResults(op); k++)
    table_put(&r->by_value, mlirOperationGetResult(op, k).ptr, (void *)mlirOperationGetResult(made, k).ptr);
  return made;
}

void schedule_erase_if_unused(MlirOperation op) {
  for (intptr_t k = 0; k < mlirOperationGetNumResults(op); k++)
    if (ir_is_used(mlirOperationGetResult(op, k)))
      return;
  mlirOperationDestroy(op);
}

static bool is_kept(const struct overlap *o, const struct item *x) {
  return x->buffer >= 0 && o->buffers.v[x->buffer].is_crossing;
}

/* Copies the parts from `first` to `last`, and what computes their indices, for the round with that counter. */
static void copy_parts(const struct overlap *o, enum part first, enum part last, MlirValue counter, MlirBlock block,
                       MlirOperation before) {
  struct schedule_renamed r = {.by_value.arena = o->run->arena};
  MlirOperation *pure = arena_new_array(o->run->arena, MlirOperation, (size_t)o->items.n + 1);
  int n = 0;

  table_put(&r.by_value, mlirBlockGetArgument(o->block, 0).ptr, (void *)counter.ptr);
  for (int i = 0; i < o->items.n; i++)
    if (o->items.v[i].part == PURE)
      pure[n++] = schedule_copy(o->run, &r, o->items.v[i].op, block, before);
  for (enum part p = first; p <= last; p++)
    for (int i = 0; i < o->items.n; i++)
      if (o->items.v[i].part == p && !is_kept(o, &o->items.v[i]))
        (void)schedule_copy(o->run, &r, o->items.v[i].op, block, before);
  while (n > 0)
    schedule_erase_if_unused(pure[--n]);
}

/* Moves the allocations, or the releases, of what crosses into the next round. */
static void keep_around(const struct overlap *o, bool allocs, MlirOperation before) {
  for (int i = 0; i < o->items.n; i++)
    if (is_kept(o, &o->items.v[i]) && ir_is(o->items.v[i].op, "nisa.alloc") == allocs)
      mlirOperationMoveBefore(o->items.v[i].op, before);
}

static void explain(const struct overlap *o, const struct overlap_cuts *c) {
  const bool is_loop = ir_is(o->parent, "scf.for");
  const char *what = is_loop ? "a round" : "the program";
  const char *how =
      c->b ? arena_printf(o->run->arena, "the first %d of its %d steps beside the last %d of the round before", c->a,
                          o->n_steps, o->n_steps - c->b)
           : arena_printf(o->run->arena, "%s %d steps in another order", is_loop ? "its" : "the", o->n_steps);
  struct remark *r = pass_remark(o->run, o->parent, RULE_SCHEDULE, "%s: %s takes %.2f us instead of %.2f", how, what,
                                 c->after / 1000, c->before / 1000);
  remark_cost(r, "%.2f us", c->after / 1000);
  remark_reject_for(r, c->b ? "one round after the other" : "the order of the program", NULL,
                    arena_printf(o->run->arena, "%.2f us", c->before / 1000),
                    c->b ? "at the end of each round the engines wait for each other"
                         : "engines wait for steps that could be done earlier");
}

/* Puts the steps of the body in their order, each allocation before the first step that uses it and each release after the last. */
static void put_in_order(const struct overlap *o, const int *order, MlirOperation end) {
  bool *is_open = arena_new_array(o->run->arena, bool, (size_t)o->buffers.n + 1);
  MlirOperation *release = arena_new_array(o->run->arena, MlirOperation, (size_t)o->buffers.n + 1);
  int *last = arena_new_array(o->run->arena, int, (size_t)o->buffers.n + 1);

  for (int n = 0; n < o->n_steps; n++) {
    const struct item *x = &o->items.v[o->of_step[order[n]]];
    for (int k = x->first_use; k < x->first_use + x->n_uses; k++)
      last[o->uses.v[k].buffer] = n;
  }
  for (int i = 0; i < o->items.n; i++)
    if (o->items.v[i].buffer >= 0 && !ir_is(o->items.v[i].op, "nisa.alloc"))
      release[o->items.v[i].buffer] = o->items.v[i].op;
  for (int n = 0; n < o->n_steps; n++) {
    const struct item *x = &o->items.v[o->of_step[order[n]]];
    for (int k = x->first_use; k < x->first_use + x->n_uses; k++) {
      const int buffer = o->uses.v[k].buffer;
      const struct buffer *b = &o->buffers.v[buffer];
      if (b->is_own && !b->is_crossing && !is_open[buffer])
        mlirOperationMoveBefore(ir_defining_op(b->v), end);
      is_open[buffer] = true;
    }
    mlirOperationMoveBefore(x->op, end);
    for (int k = x->first_use; k < x->first_use + x->n_uses; k++) {
      const int buffer = o->uses.v[k].buffer;
      const struct buffer *b = &o->buffers.v[buffer];
      if (b->is_own && !b->is_crossing && last[buffer] == n && !mlirOperationIsNull(release[buffer]))
        mlirOperationMoveBefore(release[buffer], end);
    }
  }
}

/* Lets the first part compute for the next round, from copies of what computes its indices. */
static void advance(const struct overlap *o, MlirOperation end) {
  struct ir_builder b = edit_before(o->run, end);
  struct schedule_renamed r = {.by_value.arena = o->run->arena};
  MlirValue next =
      ir_binary(&b, "arith.addi", mlirBlockGetArgument(o->block, 0), mlirOperationGetOperand(o->parent, 2));
  MlirOperation *pure = arena_new_array(o->run->arena, MlirOperation, (size_t)o->items.n + 1);
  int n = 0;

  table_put(&r.by_value, mlirBlockGetArgument(o->block, 0).ptr, (void *)next.ptr);
  for (int i = 0; i < o->items.n; i++)
    if (o->items.v[i].part == PURE)
      pure[n++] = schedule_copy(o->run, &r, o->items.v[i].op, o->block, end);
  for (int i = 0; i < o->items.n; i++)
    if (o->items.v[i].part == FIRST && o->items.v[i].step >= 0)
      rename_operands(o->run, &r, o->items.v[i].op);
  while (n > 0)
    schedule_erase_if_unused(pure[--n]);
}

/* Writes the first part before the loop and the end after it, and lets the loop go one round less. */
static bool cut(const struct overlap *o, MlirOperation end) {
  MlirOperation loop = o->parent, after = mlirOperationGetNextInBlock(loop);
  int64_t lower, step, upper;
  if (!ir_int_constant(mlirOperationGetOperand(loop, 0), &lower) ||
      !ir_int_constant(mlirOperationGetOperand(loop, 1), &upper) ||
      !ir_int_constant(mlirOperationGetOperand(loop, 2), &step))
    return false;
  struct ir_builder outside = edit_before(o->run, loop);
  MlirValue last = ir_index(&outside, lower + (upper - lower - 1) / step * step);
  keep_around(o, true, loop);
  copy_parts(o, FIRST, FIRST, mlirOperationGetOperand(loop, 0), outside.block, loop);
  copy_parts(o, MIDDLE, END, last, outside.block, after);
  keep_around(o, false, after);
  advance(o, end);
  mlirOperationSetOperand(loop, 1, last);
  return true;
}

void overlap_apply(struct pass_run *run, MlirOperation parent, const struct overlap_cuts *cuts) {
  struct overlap o;
  if (!overlap_read(run, parent, &o) || !overlap_divide(&o, cuts->a, cuts->b))
    return;
  MlirOperation end = mlirBlockGetTerminator(o.block);
  pass_step(run, parent, cuts->b ? "overlap-rounds" : "order-steps");
  if (cuts->b && !cut(&o, end))
    return;
  explain(&o, cuts);
  put_in_order(&o, cuts->order, end);
  for (int i = o.items.n - 1; i >= 0; i--)
    if (o.items.v[i].part == PURE)
      schedule_erase_if_unused(o.items.v[i].op);
}
