/* overlap: gives the body of a loop, or a program, an order in which engines do not wait for each other.
 *
 *     for i { scores a; softmax a;                      scores a[0]; softmax a[0]
 *             scores b; softmax b;                      for i { scores b[i]; product a[i]; softmax b[i];
 *             product a; product b }         ==>                scores a[i+1]; product b[i]; softmax a[i+1] }
 *                                                       scores b[n-1]; …; product a[n-1]; product b[n-1]
 *
 * Engines execute their instructions in order.  At the end of a round Tensor waits for what the other engines compute for
 * its last product, and at the beginning they wait for its first one; in between, each of them has nothing to do.  In the
 * new order it has the work of the other round.
 *
 * A body is cut twice, each time before the Tensor engine begins to work: into what comes first, the middle and the end.  The
 * first part of a round comes before the end of the round before it.  What it makes for the middle is kept in one
 * buffer around the loop: when the next round writes it, the middle has read it.  So the end must read nothing of that, and
 * neither part may write what the other one uses.  Then the steps, which are instructions and loops in the body, are put in
 * an order in which each begins as early as what it needs allows (order.c).  All pairs of cuts are tried, and the
 * order alone; lib/round.c plays some rounds of each, and the shortest is taken if it saves a tenth and if what is alive at once
 * fits.  With cuts the price is that the body is written twice (write.c).
 *
 * A loop that transfers keep busy for half of a round is not cut: its loads run ahead of it in several copies, of which a buffer
 * around the loop has one.
 *
 * The pairs are few: Tensor begins some times in a body.  A body of more than STEPS_MAX steps is left alone, so that the time
 * is linear in the instructions. */
#include <string.h>

#include "base/array.h"
#include "ir/build.h"
#include "nisa/lifetime.h"
#include "passes/schedule/overlap.h"

enum {
  STEPS_MAX = 64,
  CUTS_MAX = 12,
  TRIPS_MIN = 4,
  ALL_TRIPS_MIN = 8,
  SAVING_MIN = 10,
  TRANSFERS_MOST = 50 /* percent of a round */
};
static const struct overlap_taste tastes[] = {{0, 1}, {0, 0}, {400, 1}, {400, 0}, {2000, 1}, {2000, 0}};
static_assert(sizeof tastes / sizeof *tastes == OVERLAP_TASTES, "tastes of schedule_what");

/* ---- the body ---------------------------------------------------------------------------------------------------- */

/* In each partition; of PSUM in whole banks. */
static int64_t bytes_of(const struct overlap *o, MlirValue v) {
  const struct nisa_machine *m = nisa_machine(o->run->target);
  MlirType t = mlirValueGetType(v);
  const int64_t bytes = nisa_type_bytes(t), bank = m->psum_bank_bytes;
  return nisa_type_space(t) == MEM_PSUM ? (bytes + bank - 1) / bank * bank : bytes;
}

static int buffer_of(struct overlap *o, MlirValue v) {
  const char *known = table_get(&o->by_value, v.ptr);
  if (known)
    return (int)(known - (const char *)o) - 1;
  MlirOperation def = ir_defining_op(v);
  const bool is_own =
      !mlirOperationIsNull(def) && ir_is(def, "nisa.alloc") && mlirBlockEqual(mlirOperationGetBlock(def), o->block);
  array_push(
      o->run->arena, &o->buffers,
      (struct buffer){.v = v,
                      .is_own = is_own,
                      .space = nisa_type_space(mlirValueGetType(v)),
                      .bytes = is_own && mem_is_on_chip(nisa_type_space(mlirValueGetType(v))) ? bytes_of(o, v) : 0});
  table_put(&o->by_value, v.ptr, (char *)o + o->buffers.n);
  return o->buffers.n - 1;
}

static void add_uses(struct overlap *o, const struct nisa_instr *in) {
  for (int k = 0; k < in->def->n_operands; k++) {
    const struct nisa_operand_def *d = &in->def->operand[k];
    const struct nisa_access *x = &in->operand[k];
    if (nisa_is_absent(x) || nisa_is_scalar(x) || (!d->reads && !d->writes))
      continue;
    array_push(o->run->arena, &o->uses, (struct use){buffer_of(o, x->base), d->writes});
  }
}

static bool is_pure(MlirOperation op) {
  return ir_is_of(op, "arith.") || ir_is(op, "affine.apply");
}

static bool is_plain_loop(MlirOperation op) {
  return ir_is(op, "scf.for") && !mlirOperationGetNumResults(op);
}

/* True if the instruction shares more with others than buffers: the state of random numbers, registers, what other cores do, or an
 * order that the kernel fixes. */
static bool shares_state(const struct nisa_instr *in) {
  switch (in->def->kind) {
  case NISA_RANDOM:
  case NISA_RANDOM_SEED:
  case NISA_RANDOM_SET_STATE:
  case NISA_RANDOM_GET_STATE:
  case NISA_REGISTER_LOAD:
  case NISA_REGISTER_STORE:
  case NISA_SENDRECV:
  case NISA_ALL_GATHER:
  case NISA_ALL_REDUCE:
  case NISA_REDUCE_SCATTER:
  case NISA_ALL_TO_ALL:
  case NISA_COLLECTIVE_PERMUTE:
    return true;
  default:
    return nisa_keeps_order(in->op);
  }
}

/* Adds an instruction, or a loop of such; false if it is more than that. */
static bool add_step(struct overlap *o, struct item *x) {
  struct nisa_instr in;
  const struct ir_ops all = ir_collect(o->run->arena, x->op, NULL, NULL);

  x->step = o->n_steps++;
  x->first_use = o->uses.n;
  for (int k = 0; k < all.n; k++) {
    MlirOperation op = all.v[k];
    if (is_pure(op) || is_plain_loop(op) || ir_is(op, "scf.yield"))
      continue;
    if (!nisa_op_of(op) || !nisa_read(op, &in, NULL))
      return false;
    if (in.def->kind == NISA_ALLOC)
      x->inside[nisa_type_space(mlirValueGetType(ir_result(op))) == MEM_PSUM] += bytes_of(o, ir_result(op));
    if (in.def->kind == NISA_ALLOC || in.def->kind == NISA_RELEASE)
      continue;
    if (mlirOperationGetNumResults(op) || in.engine == NISA_ENGINE_NONE || shares_state(&in))
      return false;
    x->is_fill = all.n == 1 && (in.engine == NISA_ENGINE_DMA || in.def->kind == NISA_MEMSET);
    add_uses(o, &in);
  }
  x->n_uses = o->uses.n - x->first_use;
  return true;
}

/* What is alive during the whole loop. */
static void find_around(struct overlap *o) {
  MlirOperation root = o->parent;
  while (!ir_is(root, "func.func"))
    root = mlirOperationGetParentOperation(root);
  const struct nisa_lifetimes l = nisa_find_lifetimes(o->run->arena, root, nisa_machine(o->run->target));
  int at = -1;
  for (int k = 0; k < l.n && at < 0; k++)
    at = mlirOperationEqual(l.v[k].loop, o->parent) ? l.v[k].loop_from : -1;
  for (int k = 0; k < l.n; k++)
    if (mem_is_on_chip(l.v[k].space) && l.v[k].from < at && at < l.v[k].to)
      o->around[l.v[k].space == MEM_PSUM] += l.v[k].bytes;
}

bool overlap_read(struct pass_run *run, MlirOperation parent, struct overlap *o) {
  struct nisa_instr in;

  *o = (struct overlap){.run = run, .parent = parent, .block = ir_body(parent), .by_value.arena = run->arena};

  for (MlirOperation op = mlirBlockGetFirstOperation(o->block);
       !mlirOperationEqual(op, mlirBlockGetTerminator(o->block)); op = mlirOperationGetNextInBlock(op)) {
    struct item x = {.op = op, .step = -1, .buffer = -1, .part = PURE};
    if (ir_is(op, "nisa.alloc"))
      x.buffer = buffer_of(o, ir_result(op));
    else if (nisa_op_of(op) && nisa_read(op, &in, NULL) && in.def->kind == NISA_RELEASE)
      x.buffer = buffer_of(o, in.operand[0].base);
    else if (!is_pure(op) && !add_step(o, &x))
      return false;
    if (x.buffer >= 0 && !o->buffers.v[x.buffer].is_own)
      return false;
    array_push(o->run->arena, &o->items, x);
  }
  o->of_step = arena_new_array(run->arena, int, (size_t)o->n_steps + 1);
  for (int i = 0; i < o->items.n; i++)
    if (o->items.v[i].step >= 0)
      o->of_step[o->items.v[i].step] = i;
  find_around(o);
  return true;
}

/* ---- parts ------------------------------------------------------------------------------------------------------- */

static void find_users(struct overlap *o) {
  for (int k = 0; k < o->buffers.n; k++)
    o->buffers.v[k].used = o->buffers.v[k].written = 0;
  for (int i = 0; i < o->items.n; i++) {
    const struct item *x = &o->items.v[i];
    for (int k = x->first_use; x->step >= 0 && k < x->first_use + x->n_uses; k++) {
      o->buffers.v[o->uses.v[k].buffer].used |= 1u << x->part;
      o->buffers.v[o->uses.v[k].buffer].written |= (unsigned)o->uses.v[k].writes << x->part;
    }
  }
}

static bool uses_in(const struct overlap *o, enum part p, int buffer, const struct item *except) {
  for (int i = 0; i < o->items.n; i++) {
    const struct item *x = &o->items.v[i];
    for (int k = x->first_use; x->step >= 0 && x->part == p && x != except && k < x->first_use + x->n_uses; k++)
      if (o->uses.v[k].buffer == buffer)
        return true;
  }
  return false;
}

/* What the first part only fills for later is filled in the middle: loads, and the initial values of sums. */
static void delay(struct overlap *o) {
  for (int i = o->items.n - 1; i >= 0; i--) {
    struct item *x = &o->items.v[i];
    for (int k = x->first_use; x->is_fill && x->part == FIRST && k < x->first_use + x->n_uses; k++)
      if (o->uses.v[k].writes && o->buffers.v[o->uses.v[k].buffer].is_own && !uses_in(o, FIRST, o->uses.v[k].buffer, x))
        x->part = MIDDLE;
  }
  find_users(o);
}

bool overlap_divide(struct overlap *o, int a, int b) {
  for (int i = 0; i < o->items.n; i++)
    if (o->items.v[i].step >= 0)
      o->items.v[i].part = o->items.v[i].step < a ? FIRST : !b || o->items.v[i].step < b ? MIDDLE : END;
  delay(o);
  for (int k = 0; k < o->buffers.n; k++) {
    struct buffer *x = &o->buffers.v[k];
    const bool in_first = x->used & 1u << FIRST, in_end = x->used & 1u << END;
    x->is_crossing = x->is_own && in_first && x->used & ~(1u << FIRST);
    if (x->is_crossing && (in_end || x->space != MEM_SBUF))
      return false;
    if (in_first && in_end && x->written & (1u << FIRST | 1u << END))
      return false;
  }
  for (int i = 0; i < o->items.n; i++)
    if (o->items.v[i].buffer >= 0) {
      const unsigned used = o->buffers.v[o->items.v[i].buffer].used;
      const bool is_alloc = ir_is(o->items.v[i].op, "nisa.alloc");
      o->items.v[i].part = used == 1u << FIRST               ? FIRST
                           : used == 1u << END               ? END
                           : is_alloc || !(used & 1u << END) ? MIDDLE
                                                             : END;
    }
  return true;
}

/* Notes in the round which buffers are kept around the loop. */
static void keep_crossing(const struct overlap *o, const struct round *r, struct round_buffer *buffers) {
  for (int k = 0; k < o->buffers.n; k++) {
    const char *known = table_get(&r->by_value, o->buffers.v[k].v.ptr);
    if (known && o->buffers.v[k].is_crossing) {
      struct round_buffer *b = &buffers[known - (const char *)r - 1];
      b->is_own = false;
      b->is_fixed = true;
    }
  }
}

/* ---- the choice -------------------------------------------------------------------------------------------------- */

/* True if the Tensor engine begins or ends its work there. */
static bool is_cut(const struct round *r, int step) {
  return step > 0 &&
         (r->steps.v[step].load.on[NISA_ENGINE_TENSOR] > 0) != (r->steps.v[step - 1].load.on[NISA_ENGINE_TENSOR] > 0);
}

/* The round with its steps in that order. */
static struct round ordered(const struct overlap *o, const struct round *r, const int *order) {
  struct round out = *r;
  const size_t n = (size_t)r->buffers.n;
  struct arena *a = o->run->arena;

  out.steps.v = arena_new_array(a, struct round_step, (size_t)o->n_steps + 1);
  for (int k = 0; k < o->n_steps; k++)
    out.steps.v[k] = r->steps.v[order[k]];
  out.buffers.v = arena_new_array(a, struct round_buffer, n + 1);
  if (n)
    memcpy(out.buffers.v, r->buffers.v, n * sizeof *r->buffers.v);
  keep_crossing(o, r, out.buffers.v);
  return out;
}

/* Tries the orders of a pair of cuts, of one taste, 1 …, or of all.  Keeps the one that is shortest in *out if it is shorter. */
static void try_cuts(struct overlap *o, const struct round *r, int a, int b, int taste, bool prefetches,
                     struct overlap_cuts *out) {
  struct arena *arena = o->run->arena;

  if (!overlap_divide(o, a, b))
    return;
  for (int p = 0; p < OVERLAP_TASTES; p++) {
    if (taste && p != taste - 1)
      continue;
    int *order = arena_new_array(arena, int, (size_t)o->n_steps + 1);
    if (!overlap_order(o, r->steps.v, tastes[p], prefetches, order))
      continue;
    struct round now = ordered(o, r, order);
    double ns = round_ns(&now);
    if (b) /* what comes before the loop and after it is a round in which nothing overlaps */
      ns += (out->before - ns) / (double)round_trips(o->parent);
    if (ns >= out->after)
      continue;
    *out = (struct overlap_cuts){.a = a, .b = b, .order = order, .before = out->before, .after = ns};
  }
}

/* Where the body may be cut; none if the order alone is to be tried. */
static int cuts_of(const struct overlap *o, const struct round *r, double before, int *cuts) {
  int n = 0;
  if (!ir_is(o->parent, "scf.for") || round_trips(o->parent) < TRIPS_MIN || r->trips < ALL_TRIPS_MIN)
    return 0;
  for (int k = 0; k < r->steps.n && n < CUTS_MAX; k++)
    if (is_cut(r, k))
      cuts[n++] = k;
  return n && round_total(r).on[NISA_ENGINE_DMA] * 100 <= before * TRANSFERS_MOST ? n : 0;
}

bool overlap_choose(struct pass_run *run, MlirOperation parent, const struct round *r, struct schedule_what *what,
                    struct overlap_cuts *out) {
  const bool is_program = ir_is(parent, "func.func");
  struct overlap o;
  struct round now = *r;
  int cuts[CUTS_MAX];

  if (r->steps.n < 3 || r->steps.n > STEPS_MAX || (is_program && !what->program) || !overlap_read(run, parent, &o) ||
      o.n_steps != r->steps.n)
    return false;
  const double before = round_ns(&now);
  const int n_cuts = cuts_of(&o, r, before, cuts);
  if (!n_cuts && !is_program && !what->loops)
    return false;
  *out = (struct overlap_cuts){.before = before, .after = n_cuts ? before * (100 - SAVING_MIN) / 100 : before};
  try_cuts(&o, r, 0, 0, 0, is_program && what->prefetches, out);
  for (int i = 0; i < n_cuts; i++)
    for (int k = i + 1; k < n_cuts; k++)
      try_cuts(&o, r, cuts[i], cuts[k], 0, false, out);
  if (what->taste && out->b) {
    struct overlap_cuts other = {.before = before, .after = before};
    try_cuts(&o, r, out->a, out->b, what->taste, false, &other);
    *out = other.order ? other : *out;
  }
  what->program_changed |= is_program && out->order;
  what->loops_changed |= !is_program && !n_cuts && out->order;
  what->overlaps |= n_cuts && out->order;
  if (is_program && what->before > 0) {
    out->before = what->before;
    out->after = what->after;
  }
  return out->order;
}
