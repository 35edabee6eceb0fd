/* balance_engines: loops and programs divide their element-wise work among the Vector, Scalar and GpSimd engines.
 *
 *     scf.for … {                                                    Vector    GpSimd
 *       tensor_tensor_arith add       engine=vector                  8.5 us            ==> vector
 *       tensor_tensor_arith multiply  engine=vector                  8.5 us            ==> gpsimd    6.9 us
 *       activation exp                engine=scalar
 *       tensor_tensor_arith subtract  engine=vector                  8.5 us            ==> gpsimd    6.9 us
 *     }
 *
 * linalg-to-nisa gives Vector whatever Vector can compute.  The engines run beside each other, and the rounds of a loop
 * overlap.  So instructions are moved one by one, the longest first, to the engine with which a round takes the
 * shortest time (round.c), until no move makes it shorter.  move.c says which engines compute the same.  What came out is
 * taken if it saves a seventh of the round.
 *
 * A loop counts with what the loops in it take; inner ones are done first.  Short instructions stay, because a signal from
 * one engine to another takes as long as they do.  What is in no loop is one round; there instructions are moved only if Vector is
 * busy for most of it.
 *
 * A short program without loops is played from its first load to its last store instead (lib/straight.h): there a move pays that lets the
 * last store begin earlier, whatever the engines have to do.
 *
 * At the end, an operation with a number and one with a tensor that both stayed on Vector become scalar_tensor_tensor, where that
 * is shorter (linalg_to_nisa/combine_scales.c).
 *
 * Safe because these engines compute the same values.  The search has a budget, so that the time is linear in the
 * instructions: what is left over in a long body stays.
 */
#include <stdlib.h>

#include "base/array.h"
#include "ir/query.h"
#include "passes/balance_engines/balance_engines.h"
#include "passes/lib/busy.h"
#include "passes/linalg_to_nisa/linalg_to_nisa.h"

/* An instruction that is moved should take longer than the signals there and back. */
enum { ELEMENTS_MIN = 256 };
/* Of the time of a round, in percent: worth the signals; of a single move. */
enum { SAVING_MIN = 15, MOVE_MIN = 2, STRAIGHT_SAVING_MIN = 2 };
enum { SWEEPS = 3 };
/* Steps of rounds that are played through for each instruction that may move, on average, in a loop and in none. */
enum { TRIES_MAX = 512, TRIES_PROGRAM = 128 };

struct candidate {
  struct nisa_instr in;
  double ns;
  int step;
};

struct body {
  struct pass_run *run;
  struct arena own; /* of may_move, which is large: loops use the same memory one after the other */
  bool is_loop;
  struct round round;
  struct {
    struct candidate *v;
    int n, cap;
  } may_move;
};

static int longest_first(const void *a, const void *b) {
  const struct candidate *x = a, *y = b;
  return y->ns != x->ns ? (y->ns > x->ns) - (y->ns < x->ns) : (x->step > y->step) - (x->step < y->step);
}

static void place(struct body *b, const struct candidate *c, enum nisa_engine e) {
  struct round_step *s = &b->round.steps.v[c->step];
  s->load = (struct round_load){{0}};
  s->engine = e;
  s->load.on[e] = busy_ns(&c->in, e, b->run->target);
}

/* Tries the other engines.  Returns the time of a round with the best one, which the instruction then has. */
static double improve(struct body *b, const struct candidate *c, double now) {
  const enum nisa_engine was = b->round.steps.v[c->step].engine;
  enum nisa_engine best = was;
  double least = now * (100 - MOVE_MIN) / 100;

  for (enum nisa_engine e = NISA_ENGINE_VECTOR; e <= NISA_ENGINE_GPSIMD; e++) {
    if (e == was || (e != c->in.engine && !balance_can_move(&c->in, e, b->run->target)))
      continue;
    place(b, c, e);
    const double ns = round_ns(&b->round);
    if (ns < least) {
      least = ns;
      best = e;
    }
  }
  place(b, c, best);
  return best == was ? now : least;
}

/* round: what takes `before` and `after`, in words. */
static void move(struct pass_run *run, const struct candidate *c, enum nisa_engine to, const char *round, double before,
                 double after) {
  pass_step(run, c->in.op, "move-to-engine");
  MlirOperation op = balance_move(run, &c->in, to);
  struct remark *r = pass_remark(run, op, RULE_BALANCE, "%s on %s: %s takes %.2f us instead of %.2f",
                                 nisa_op_of(op)->name, nisa_engine_name(to), round, after / 1000, before / 1000);
  remark_cost(r, "%.2f us", after / 1000);
  remark_reject_for(r, nisa_engine_name(c->in.engine), NULL, arena_printf(run->arena, "%.2f us", before / 1000),
                    arena_printf(run->arena, "%s takes longer with it", round));
}

/* What a round takes anyhow. */
static double floor_of(const struct body *b) {
  const struct round_load l = round_total(&b->round);
  return l.on[NISA_ENGINE_DMA] > l.on[NISA_ENGINE_TENSOR] ? l.on[NISA_ENGINE_DMA] : l.on[NISA_ENGINE_TENSOR];
}

/* Gives each instruction to the engine that is done first, whatever it waits for.  keeps_long: what a search moved counts as time that
 * the engine from which it came has left, so that the longest instructions stay and shorter ones are dealt. */
static void deal(struct body *b, bool keeps_long) {
  struct round_load l = round_total(&b->round);

  for (int i = 0; i < b->may_move.n; i++) {
    const struct candidate *c = &b->may_move.v[i];
    const struct round_step *s = &b->round.steps.v[c->step];
    if (keeps_long)
      l.on[c->in.engine] -= c->ns;
    else
      l.on[s->engine] -= s->load.on[s->engine];
  }
  for (int i = 0; i < b->may_move.n; i++) {
    const struct candidate *c = &b->may_move.v[i];
    enum nisa_engine to = c->in.engine;
    for (enum nisa_engine e = NISA_ENGINE_VECTOR; e <= NISA_ENGINE_GPSIMD; e++)
      if ((e == c->in.engine || balance_can_move(&c->in, e, b->run->target)) &&
          l.on[e] + busy_ns(&c->in, e, b->run->target) < l.on[to] + busy_ns(&c->in, to, b->run->target))
        to = e;
    place(b, c, to);
    l.on[to] += busy_ns(&c->in, to, b->run->target);
  }
}

/* Reorders what `deal` gave: of instructions that take equally long, the first ones go to one engine and the last ones to another.
 * If each waits for the one before, as in a sum of many terms, a round then passes from engine to engine once, and the engines
 * work on different rounds. */
static void line_up(struct body *b) {
  for (int first = 0, end; first < b->may_move.n; first = end) {
    int count[NISA_ENGINE_COUNT] = {0}, next = first;
    for (end = first; end < b->may_move.n && b->may_move.v[end].ns == b->may_move.v[first].ns; end++)
      count[b->round.steps.v[b->may_move.v[end].step].engine]++;
    for (enum nisa_engine e = NISA_ENGINE_VECTOR; e <= NISA_ENGINE_GPSIMD; e++)
      for (; count[e] > 0 && next < end; next++, count[e]--)
        if (e == b->may_move.v[next].in.engine || balance_can_move(&b->may_move.v[next].in, e, b->run->target))
          place(b, &b->may_move.v[next], e);
  }
}

/* Moves instructions one by one while that makes the round shorter.  Returns its time. */
static double search(struct body *b, int64_t budget) {
  const double floor = floor_of(b);
  double now = round_ns(&b->round), last = 0;

  for (int sweep = 0; sweep < SWEEPS && now != last && now > floor; sweep++) {
    last = now;
    for (int i = 0; i < b->may_move.n && budget > 0; i++, budget -= b->round.steps.n)
      now = improve(b, &b->may_move.v[i], now);
  }
  return now;
}

static void put_back(struct body *b, const enum nisa_engine *at) {
  for (int i = 0; i < b->may_move.n; i++)
    place(b, &b->may_move.v[i], at[i]);
}

static void note(const struct body *b, enum nisa_engine *at) {
  for (int i = 0; i < b->may_move.n; i++)
    at[i] = b->round.steps.v[b->may_move.v[i].step].engine;
}

/* Searches from how it is, from a division that only looks at how long the engines are busy, and from one in runs: that moves
 * nearly everything, and is taken if it saves a seventh more. */
static void balance_body(struct body *b) {
  const int n = b->may_move.n;
  const int64_t tries = (int64_t)(b->is_loop ? TRIES_MAX : TRIES_PROGRAM) * n;
  const double before = round_ns(&b->round);
  enum nisa_engine *best = arena_new_array(b->run->arena, enum nisa_engine, (size_t)n);

  if (before <= floor_of(b) || (!b->is_loop && round_total(&b->round).on[NISA_ENGINE_VECTOR] < before / 2))
    return;
  qsort(b->may_move.v, (size_t)n, sizeof *b->may_move.v, longest_first);
  double after = search(b, tries);
  note(b, best);
  for (int start = 0; start < 2; start++) {
    deal(b, !start);
    if (start)
      line_up(b);
    const double other = search(b, tries);
    if (other * 100 < after * (start ? 100 - SAVING_MIN : 100)) {
      after = other;
      note(b, best);
    }
  }
  put_back(b, best);
  const bool pays = after * 100 < before * (100 - SAVING_MIN);
  for (int i = 0; i < n; i++) {
    const struct candidate *c = &b->may_move.v[i];
    const enum nisa_engine to = b->round.steps.v[c->step].engine;
    if (to == c->in.engine)
      continue;
    if (pays)
      move(b->run, c, to, b->is_loop ? "a round of its loop" : "the program", before, after);
    else
      place(b, c, c->in.engine);
  }
}

/* ---- short programs ----------------------------------------------------------------------------------------------- */

void balance_offer(struct straight *s) {
  for (int k = 0; k < s->n; k++) {
    struct nisa_instr in;
    if (s->steps[k].is_transfer || !nisa_read(s->steps[k].op, &in, NULL) || !balance_is_movable(&in, s->target))
      continue;
    for (enum nisa_engine e = NISA_ENGINE_SCALAR; e <= NISA_ENGINE_GPSIMD; e++)
      if (balance_can_move(&in, e, s->target))
        s->steps[k].on[e] = busy_ns(&in, e, s->target);
  }
}

/* A short program without loops is played from its loads to its stores.  False if it is another one. */
static bool balance_straight(struct pass_run *run, MlirOperation function) {
  struct straight s;
  if (!straight_read(run->arena, ir_body(function), run->target, &s))
    return false;
  balance_offer(&s);
  const double before = straight_choose_starters(&s), after = straight_choose(&s);
  for (int k = 0; k < s.n && after * 100 <= before * (100 - STRAIGHT_SAVING_MIN); k++) {
    struct candidate c = {.step = k};
    if (!s.steps[k].is_transfer && nisa_read(s.steps[k].op, &c.in, NULL) && c.in.engine != s.steps[k].engine)
      move(run, &c, s.steps[k].engine, "the program", before, after);
  }
  return true;
}

/* ---- loops ------------------------------------------------------------------------------------------------------- */

static struct round_load balance_regions(struct pass_run *run, MlirOperation parent);

/* A loop, or a branch, in a body. */
static void read_regions(struct body *b, MlirOperation op) {
  const struct round_load inner = balance_regions(b->run, op);
  round_add_inside(&b->round, op, &inner, b->run->target);
}

static void read_op(struct body *b, MlirOperation op) {
  struct candidate c = {.step = b->round.steps.n};
  if (mlirOperationGetNumRegions(op)) {
    if (b->round.trips)
      read_regions(b, op);
    else
      (void)balance_regions(b->run, op);
    return;
  }
  if (!b->round.trips)
    return;
  if (!nisa_op_of(op) || !nisa_read(op, &c.in, NULL) || c.in.engine == NISA_ENGINE_NONE)
    return;
  c.ns = round_add_instruction(&b->round, &c.in, b->run->target)->load.on[c.in.engine];
  if (busy_elements(&c.in) >= ELEMENTS_MIN && balance_is_movable(&c.in, b->run->target))
    array_push(&b->own, &b->may_move, c);
}

/* Balances what is in an operation.  Returns what it takes, of a loop one round. */
static struct round_load balance_regions(struct pass_run *run, MlirOperation parent) {
  struct round_load all = {{0}};
  for (intptr_t k = 0; k < mlirOperationGetNumRegions(parent); k++)
    for (MlirBlock block = mlirRegionGetFirstBlock(mlirOperationGetRegion(parent, k)); !mlirBlockIsNull(block);
         block = mlirBlockGetNextInRegion(block)) {
      struct body b = {.run = run, .is_loop = ir_is(parent, "scf.for")};
      const bool is_program = ir_is(parent, "func.func");
      b.round = round_of(run->arena, parent, block);
      for (MlirOperation op = mlirBlockGetFirstOperation(block); !mlirOperationIsNull(op);
           op = mlirOperationGetNextInBlock(op))
        read_op(&b, op);
      if ((b.is_loop || is_program) && b.may_move.n)
        balance_body(&b);
      arena_clear(&b.own);
      const struct round_load l = round_total(&b.round);
      for (int e = 0; e < NISA_ENGINE_COUNT; e++)
        all.on[e] += l.on[e];
    }
  return all;
}

static enum status run_pass(struct pass_run *run) {
  const enum status st = pass_nisa_target(run, &run->target);
  const struct ir_ops functions = ir_collect_named(run->arena, run->module, "func.func");
  if (st)
    return st;
  if (functions.n != 1 || mlirBlockIsNull(ir_body(functions.v[0])) || !balance_straight(run, functions.v[0]))
    balance_regions(run, run->module);
  ln_combine_tensors(run);
  return ST_OK;
}

const struct pass_def balance_engines = {
    .name = "balance-engines",
    .run = run_pass,
};
