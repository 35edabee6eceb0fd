/* schedule: puts instructions into an order in which the engines wait less for each other.
 *
 *     load a; load b                                 load b
 *     m = b * b          Vector                      m = b * b      Vector
 *     n = m + b          Vector           ==>        load a
 *     e = exp(n)         Scalar                      f = tanh(a)    Scalar, while Vector computes n
 *     f = tanh(a)        Scalar                      n = m + b      Vector
 *     store e; store f                               store f; e = exp(n); store e
 *
 * Each engine executes its instructions in the order of the program, so one whose operands are there waits for all that are before it
 * in its engine.  This is a list scheduler: of the steps that need not wait any longer, the one comes next that can begin first
 * (order.c).  The body of a loop of products is played with the rounds before and after it, and may be cut, so that the first
 * part of a round comes beside the end of the one before (overlap.c).  What a round takes, or the program, is estimated
 * (lib/round.c).  Inner loops are done first; a loop counts with what the loops in it take.
 *
 * The other loops, and what is in no loop, get an order only if the whole program is shorter with it: copies of it go
 * through the stages after this one, and the simulated machine times them (measure.c).  A body of more than 64 steps stays as it is, so
 * that the time is linear in the instructions, and a program of more than OPS_MAX operations is not timed.
 *
 * A short program may also be written out without loops, in parts (unroll.c).  Some forms of it are played (lib/straight.h), and the best
 * one is timed.  The options parts=N and halves=1 ask for a form, whatever its time, and parts=0 for none.
 *
 * Safe because a step stays after all with which it shares a buffer that one of them writes.  A body with instructions that share
 * more than buffers stays: random numbers, registers, cores that wait for each other, and what the kernel orders itself. */
#include <assert.h>
#include <stdlib.h>

#include "base/index.h"
#include "ir/query.h"
#include "passes/balance_engines/balance_engines.h"
#include "passes/lib/straight.h"
#include "passes/schedule/overlap.h"

enum {
  SAVING_MIN = 1,  /* percent of the program */
  LONG_NS = 50000, /* of a program in which more orders are timed */
  PARTS_MAX = 4,
  ORDERED_MAX = 32, /* instructions of a program without loops that gets another order */
  PLAYED_WRONG = 5, /* percent: a program that is played to take so much longer is not timed */
  OPS_MAX = 320     /* a longer program is not timed: its copies take longer than all of its stages before */
};

static struct round_load schedule_regions(struct pass_run *run, MlirOperation parent, struct schedule_what *what);

static void read_op(struct pass_run *run, struct round *r, MlirOperation op, struct schedule_what *what) {
  struct nisa_instr in;
  if (mlirOperationGetNumRegions(op)) {
    const struct round_load inner = schedule_regions(run, op, what);
    if (r->trips)
      round_add_inside(r, op, &inner, run->target);
  } else if (r->trips && nisa_op_of(op) && nisa_read(op, &in, NULL) && in.engine != NISA_ENGINE_NONE) {
    (void)round_add_instruction(r, &in, run->target);
  }
}

static void add_order(struct schedule_what *what, const struct overlap_cuts *c, int n) {
  uint64_t h = hash_mix(what->orders, (uint64_t)c->a << 32 | (uint64_t)c->b);
  for (int k = 0; k < n; k++)
    h = hash_mix(h, (uint64_t)c->order[k]);
  what->orders = hash_mix(h, (uint64_t)n);
}

/* Orders what is in an operation.  Returns what it takes, of a loop one round. */
static struct round_load schedule_regions(struct pass_run *run, MlirOperation parent, struct schedule_what *what) {
  struct round_load all = {{0}};
  for (intptr_t k = 0; k < mlirOperationGetNumRegions(parent); k++)
    for (MlirBlock block = mlirRegionGetFirstBlock(mlirOperationGetRegion(parent, k)); !mlirBlockIsNull(block);
         block = mlirBlockGetNextInRegion(block)) {
      struct round r = round_of(run->arena, parent, block);
      struct overlap_cuts cuts;
      for (MlirOperation op = mlirBlockGetFirstOperation(block), next; !mlirOperationIsNull(op); op = next) {
        next = mlirOperationGetNextInBlock(op); /* op may be a loop that gets what it does last after it */
        read_op(run, &r, op, what);
      }
      const bool may_be =
          ir_is(parent, "func.func") || (ir_is(parent, "scf.for") && !mlirOperationGetNumResults(parent));
      const bool is_chosen = may_be && overlap_choose(run, parent, &r, what, &cuts);
      what->orders = hash_mix(what->orders, is_chosen);
      if (is_chosen) {
        add_order(what, &cuts, r.steps.n);
        overlap_apply(run, parent, &cuts);
      }
      const struct round_load l = round_total(&r);
      for (int e = 0; e < NISA_ENGINE_COUNT; e++)
        all.on[e] += l.on[e];
    }
  return all;
}

static void explain_form(struct pass_run *run, MlirOperation function, const struct schedule_what *what,
                         bool has_loops) {
  const char *parts = what->parts > 1 ? arena_printf(run->arena, ", what is long is in %d parts", what->parts) : "",
             *halves = what->halves ? ", each load is one half of the partitions" : "";
  struct remark *r = pass_remark(run, function, RULE_SCHEDULE, "%s%s%s: the program takes %.2f us instead of %.2f",
                                 has_loops ? "loops are written out, and loads come first" : "loads come first", parts,
                                 halves, what->after / 1000, what->before / 1000);
  remark_cost(r, "%.2f us", what->after / 1000);
  remark_reject_for(r, has_loops ? "loops" : "the order of the program", NULL,
                    arena_printf(run->arena, "%.2f us", what->before / 1000),
                    "transfers wait for others that could come later, or for more than they need");
}

/* Writes out the loops of the program, if that is asked for, and orders its instructions. */
static void apply(struct pass_run *run, struct schedule_what *what) {
  what->orders = 0;
  const struct ir_ops functions = ir_collect_named(run->arena, run->module, "func.func");
  for (int k = 0; what->parts && k < functions.n; k++) {
    const bool has_loops = ir_collect_named(run->arena, functions.v[k], "scf.for").n > 0;
    if (!what->is_written_out)
      schedule_unroll(run, functions.v[k]);
    what->steps = schedule_divide(run, functions.v[k], what->parts, what->halves);
    explain_form(run, functions.v[k], what, has_loops);
  }
  schedule_regions(run, run->module, what);
  if (what->warms)
    schedule_warm(run, functions.v[0], what);
}

/* A run of the pass on a copy of the module, which nobody sees. */
static struct pass_run quiet_copy(const struct pass_run *run) {
  struct pass_run quiet = *run;
  quiet.remarks = NULL;
  quiet.steps = NULL;
  quiet.module = mlirOperationClone(run->module);
  return quiet;
}

/* The programs with loops that were measured already, by their orders. */
struct measured {
  uint64_t orders[4 + OVERLAP_TASTES];
  int n;
};

/* True if the program is none of these; then it is one of them. */
static bool is_new(struct measured *m, uint64_t orders) {
  for (int k = 0; k < m->n; k++)
    if (m->orders[k] == orders)
      return false;
  assert(m->n < (int)(sizeof m->orders / sizeof *m->orders));
  m->orders[m->n++] = orders;
  return true;
}

/* Orders a copy.  Returns its simulated time; -1 if that is not asked for, or not known, or if the same program with its loops
 * was measured before: it is no better then. */
static double try(const struct pass_run *run, struct schedule_what *what, struct measured *m) {
  struct pass_run quiet = quiet_copy(run);
  double ns = -1;

  apply(&quiet, what);
  if (m && (what->parts || what->warms || is_new(m, what->orders)))
    ns = schedule_measure(&quiet, quiet.module, &what->slowed);
  mlirOperationDestroy(quiet.module);
  return ns;
}

/* Notes in *best what makes the simulated program so short, if that is shorter by a hundredth at least. */
static void note(struct schedule_what *best, struct schedule_what what, double ns, double slowed) {
  if (ns <= 0 || ns * 100 >= best->after * (100 - SAVING_MIN))
    return;
  what.before = best->before;
  what.after = ns;
  what.slowed = slowed;
  *best = what;
}

static void improve(const struct pass_run *run, struct schedule_what what, struct measured *m,
                    struct schedule_what *best) {
  struct schedule_what now = what;
  const double ns = try(run, &now, m);
  note(best, what, ns, now.slowed);
}

/* True if the only function of the module is short. */
static bool can_unroll(const struct pass_run *run) {
  const struct ir_ops functions = ir_collect_named(run->arena, run->module, "func.func");
  return functions.n == 1 && !mlirBlockIsNull(ir_body(functions.v[0])) && schedule_can_unroll(run, functions.v[0]);
}

/* Returns when the program without loops ends, as it is played (lib/straight.h); -1 if it is not. */
static double play(const struct pass_run *run) {
  const struct ir_ops functions = ir_collect_named(run->arena, run->module, "func.func");
  struct straight s;
  if (!straight_read(run->arena, ir_body(functions.v[0]), run->target, &s))
    return -1;
  balance_offer(&s);
  return straight_choose(&s);
}

/* A form in which the program is written out, what it takes as it is played, and a copy of the module that has it; null: none. */
struct form {
  struct schedule_what what;
  double ns;
  MlirOperation module;
};

static void clear_module(MlirOperation module) {
  if (!mlirOperationIsNull(module))
    mlirOperationDestroy(module);
}

/* Keeps this form of the program, whose loops are written out, if it is shorter.  Returns its instructions. */
static int try_form(const struct pass_run *flat, struct schedule_what what, struct form *best) {
  struct pass_run quiet = quiet_copy(flat);
  struct schedule_what now = what;

  now.is_written_out = true;
  apply(&quiet, &now);
  const double ns = play(&quiet);
  if (ns > 0 && (best->ns < 0 || ns * 100 < best->ns * (100 - SAVING_MIN))) {
    clear_module(best->module);
    *best = (struct form){what, ns, quiet.module};
  } else {
    mlirOperationDestroy(quiet.module);
  }
  return now.steps;
}

/* Finds how the program is written out best: with what is long in one part or more, and loads whole or in halves; and in best[1] in
 * another order. */
static void find_forms(const struct pass_run *flat, struct form best[2]) {
  int steps = try_form(flat, (struct schedule_what){.parts = 1}, &best[0]);

  if (steps <= ORDERED_MAX) {
    (void)try_form(flat, (struct schedule_what){.parts = 1, .program = true}, &best[1]);
    (void)try_form(flat, (struct schedule_what){.parts = 1, .halves = true}, &best[0]);
    (void)try_form(flat, (struct schedule_what){.parts = 1, .halves = true, .program = true}, &best[1]);
  }
  for (int parts = 2; parts <= PARTS_MAX; parts *= 2) {
    const int was = steps;
    const double before = best[0].ns;
    steps = try_form(flat, (struct schedule_what){.parts = parts}, &best[0]);
    if (steps == was || best[0].ns == before)
      break;
  }
}

/* Adds to *best the form that makes the simulated program shortest; a form is timed if it is played to take little longer. */
static void improve_forms(const struct pass_run *run, struct schedule_what *best) {
  struct form forms[2] = {{.ns = -1}, {.ns = -1}};
  struct pass_run flat = quiet_copy(run); /* every form begins with this copy, whose loops are written out once */
  const double before = best->after;

  schedule_unroll(&flat, ir_collect_named(run->arena, flat.module, "func.func").v[0]);
  find_forms(&flat, forms);
  for (int k = 0; k < 2; k++) {
    const double other = forms[1 - k].ns;
    if (forms[k].ns > 0 && forms[k].ns * 100 < before * (100 + PLAYED_WRONG) &&
        (other < 0 || forms[k].ns * 100 < other * (100 + PLAYED_WRONG))) {
      double slowed = 0;
      const double ns = schedule_measure(run, forms[k].module, &slowed);
      note(best, forms[k].what, ns, slowed);
    }
    clear_module(forms[k].module);
  }
  mlirOperationDestroy(flat.module);
}

/* Adds to *best the order of the program, with its loads where they are needed or first, and that of the loops, one after the other. */
static void improve_orders(const struct pass_run *run, const struct schedule_what *some, struct measured *m,
                           struct schedule_what *best) {
  struct schedule_what what = {.taste = best->taste, .program = true};

  if (some->program_changed) {
    improve(run, what, m, best);
    what.prefetches = true;
    improve(run, what, m, best);
  }
  what = (struct schedule_what){
      .taste = best->taste, .program = best->program, .prefetches = best->prefetches, .loops = true};
  if (some->loops_changed)
    improve(run, what, m, best);
}

/* Lets the Tensor engine be busy from the start (warm.c), if products are slow otherwise and the simulated program is shorter so. */
static void improve_clock(const struct pass_run *run, struct schedule_what *best) {
  struct schedule_what warm = *best;
  struct measured m = {.n = 0};
  const double cold = best->after;

  warm.warms = true;
  if (best->slowed * 100 < cold * SAVING_MIN)
    return;
  improve(run, warm, &m, best);
  if (!best->warms)
    return;
  best->warm = best->after;
  best->after = cold;
}

static double time_of(const struct schedule_what *w) {
  return w->warms ? w->warm : w->after;
}

/* Replaces *best by the order of overlapping rounds with which the simulated program is shortest, each with what suits it.
 * orders: of the order that was tried before. */
static void improve_overlaps(const struct pass_run *run, const struct schedule_what *some, bool can_warm,
                             uint64_t orders, struct schedule_what *best) {
  struct measured m = {.n = 0};

  (void)is_new(&m, orders);
  for (int taste = 1; taste <= OVERLAP_TASTES; taste++) {
    struct schedule_what w = {.taste = taste};
    const double ns = try(run, &w, &m);
    if (ns <= 0)
      continue;
    struct schedule_what now = {.taste = taste, .before = best->before, .after = ns, .slowed = w.slowed};
    struct measured others = {.n = 0};
    improve_orders(run, some, &others, &now);
    if (can_warm)
      improve_clock(run, &now);
    if (time_of(&now) * 100 < time_of(best) * (100 - SAVING_MIN))
      *best = now;
  }
}

/* Returns what makes the simulated program shortest.  A short program is written out if that pays; otherwise orders are tried. */
static struct schedule_what choose(const struct pass_run *run, bool unrolls) {
  struct schedule_what best = {0}, none = {0}, some = {.loops = true, .program = true};
  struct measured m = {.n = 0};
  const bool can_warm = schedule_can_warm(run);

  if (ir_collect(run->arena, run->module, NULL, NULL).n > OPS_MAX)
    return none;
  (void)try(run, &some, NULL);
  if (!some.loops_changed && !some.program_changed && !some.overlaps && !unrolls && !can_warm)
    return best;
  best.before = best.after = try(run, &none, &m);
  best.slowed = none.slowed;
  const uint64_t orders = none.orders;
  if (best.before <= 0)
    return (struct schedule_what){0};
  if (unrolls)
    improve_forms(run, &best);
  if (!best.parts)
    improve_orders(run, &some, &m, &best);
  if (can_warm)
    improve_clock(run, &best);
  if (!best.parts && some.overlaps && best.before >= LONG_NS)
    improve_overlaps(run, &some, can_warm, orders, &best);
  return best;
}

static enum status run_pass(struct pass_run *run) {
  const enum status st = pass_nisa_target(run, &run->target);
  if (st)
    return st;
  const char *asked = pass_option(run, "parts");
  const int parts = asked ? atoi(asked) : 0;
  const bool unrolls = can_unroll(run);
  struct schedule_what what = {.parts = parts, .halves = pass_option(run, "halves")};
  if (!parts || !unrolls)
    what = choose(run, unrolls && !asked);
  apply(run, &what);
  return ST_OK;
}

const struct pass_def schedule = {
    .name = "schedule",
    .run = run_pass,
};
