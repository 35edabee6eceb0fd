/* split: a loop of loads that are most of what is loaded becomes two, so that two queues share them.
 *
 *     for k in 0 … 32: load right[k]        ==>     for k in 0 … 14:  load right[k]      by qSyncIn
 *                                                   for k in 14 … 32: load right[k]      by qScalarIn
 *
 * The loads of one buffer are in one queue (streams.c), whose engine starts them one after another.  Where loops are unrolled, each
 * buffer of a list has a queue of its own; a loop that fills one buffer has one.  The rounds are divided so that both engines take the
 * same time to start all loads: what moves the bytes is the same for all queues.  Only a loop with nothing but one load is divided:
 * its parts are executed at the same time.
 */
#include "passes/engine_programs/engine_programs.h"
#include "passes/lib/buffers.h"
#include "passes/lib/price.h"

enum { ROUNDS_MIN = 4 }; /* of a loop that is divided: fewer begin too late to matter */

struct loads {
  MlirOperation loop;
  const void *root;
  double start;            /* how long its loads keep the engine that starts them, in nanoseconds */
  int64_t bound[3], trips; /* of the loop, if it can be divided */
};

struct totals {
  struct table of_root; /* root -> its struct loads */
  double start;         /* of all loads */
};

static struct loads *loads_of(struct arena *a, struct totals *t, const void *root) {
  struct loads *known = table_get(&t->of_root, root);
  if (!known) {
    known = arena_new(a, struct loads);
    known->root = root;
    table_put(&t->of_root, root, known);
  }
  return known;
}

/* The loop around a load, if it can be divided: nothing but this and numbers are in it, and its bounds are known. */
static bool is_divisible(MlirOperation loop, MlirOperation load, struct loads *l) {
  if (!ir_is(loop, "scf.for") || nisa_keeps_order(load) || !ep_bounds(loop, l->bound))
    return false;
  for (MlirOperation op = mlirBlockGetFirstOperation(ir_body(loop)); !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op))
    if (!mlirOperationEqual(op, load) && !ir_is(op, "arith.constant") && !ir_is(op, "scf.yield"))
      return false;
  l->trips = (l->bound[1] - l->bound[0] + l->bound[2] - 1) / l->bound[2];
  return l->trips >= ROUNDS_MIN;
}

static MlirOperation only_load(MlirOperation loop) {
  MlirOperation op = mlirBlockGetFirstOperation(ir_body(loop));
  while (!nisa_op_of(op))
    op = mlirOperationGetNextInBlock(op);
  return op;
}

/* Two loops: of the first n rounds, and of the others.  Gives the second one. */
static MlirOperation divide(struct ep *ep, const struct loads *l, int64_t n) {
  MlirOperation loop = l->loop;
  struct ir_builder b = {.ctx = mlirOperationGetContext(loop),
                         .block = mlirOperationGetBlock(loop),
                         .loc = mlirOperationGetLocation(loop),
                         .arena = ep->run->arena,
                         .before = loop};
  MlirValue at = ir_index(&b, l->bound[0] + n * l->bound[2]);
  MlirOperation rest = mlirOperationClone(loop);
  mlirBlockInsertOwnedOperationAfter(b.block, loop, rest);
  mlirOperationSetOperand(loop, 1, at);
  mlirOperationSetOperand(rest, 0, at);
  return rest;
}

bool ep_split_loads(struct ep *ep, const struct ir_ops *loads, const double *start) {
  struct arena *a = ep->run->arena;
  struct totals t = {.of_root = {.arena = a}};
  struct loads *most = NULL;
  for (int k = 0; k < loads->n; k++) {
    struct loads *l = loads_of(a, &t, buffer_root(mlirOperationGetOperand(loads->v[k], 0)).ptr);
    MlirOperation loop = mlirOperationGetParentOperation(loads->v[k]);
    l->loop = l->start == 0 && is_divisible(loop, loads->v[k], l) ? loop : (MlirOperation){NULL}; /* its only load */
    l->start += start[k];
    t.start += start[k];
    most = !most || l->start > most->start ? l : most;
  }
  if (!most || !most->loop.ptr || 2 * most->start <= t.start)
    return false;
  const int64_t sync = (int64_t)((double)most->trips * (2 * most->start - t.start) / (2 * most->start));
  if (sync < 1)
    return false;
  MlirOperation rest = divide(ep, most, sync);
  struct remark *r =
      pass_remark(ep->run, most->loop, RULE_QUEUE, "of %lld rounds of loads sync starts %lld, and scalar the others",
                  (long long)most->trips, (long long)sync);
  price_chosen(r, t.start / 2);
  price_instead(r, "one queue", most->start, "its engine would start most of the loads, one after another");
  table_put(&ep->half, only_load(most->loop).ptr, (void *)(intptr_t)(1 + false));
  table_put(&ep->half, only_load(rest).ptr, (void *)(intptr_t)(1 + true));
  return true;
}
