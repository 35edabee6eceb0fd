/* engines: see the header.
 *
 * A step of a stream is one instruction, wait, trigger or transfer.  A scheduler picks a stream that can go on, and it
 * does one step.  When no stream can, all are at a barrier, all have ended, or they wait for each other for ever.
 *
 * A queue's control stays at a transfer until it is triggered, and executes it at once: since nothing can wait for what
 * the control does after that, each order in which it runs further ahead has the same effects. */
#include "sim/engines.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "sim/control.h"

enum { LOOK_EVERY = 16, BURST_MAX = 16 }; /* steps: between looks at the clock; of a stream that random picks */

enum { ALL_CORES = -1 };

/* What a core has sent and the other has not taken yet. */
struct mailbox {
  struct {
    struct sim_parcel *v;
    int n, cap;
  } parcels;
  int taken;
};

struct lane {
  struct sim_control control;
  const struct sim_node *node; /* what it does next; NULL: not known yet */
  bool has_sent;               /* of a sendrecv that waits for the other core */
  int64_t semaphore;
  int64_t triggered, started; /* of a queue, since the last barrier */
};

struct engines {
  struct sim_machine *m;
  struct sim_order *order;
  int n;
  struct lane *lanes; /* as the program's streams */
  int *turn;          /* the streams, those first that have priority */
  int n_first;        /* how many have it */
  int last;           /* position in `turn` of the stream that did the last step */
  int burst;          /* steps that it may still do */
  uint64_t random;
  int64_t steps;
  struct arena *arena;
  struct mailbox boxes[NISA_CORES]; /* by the sender */
};

enum outcome { STEP_DONE, STEP_BLOCKED, STEP_FAILED };

static const struct sim_stream *stream_of(const struct engines *e, int k) {
  return &e->m->program->streams[k];
}

static bool is_queue(const struct engines *e, int k) {
  return stream_of(e, k)->trigger >= 0;
}

/* ---- steps ------------------------------------------------------------------------------------------------------ */

static bool is_late(struct engines *e) {
  return sim_is_late(e->m) && !sim_fail(e->m, SIM_FAULT_TIME, "its time was up");
}

/* Finds what the stream does next. */
static bool find_node(struct engines *e, struct lane *l) {
  for (;;) {
    switch (sim_control_next(&l->control, &l->node)) {
    case SIM_CONTROL_NODE:
      return true;
    case SIM_CONTROL_DIVISION:
      return sim_fail(e->m, SIM_FAULT_INSTRUCTION, "a division by zero in index arithmetic");
    case SIM_CONTROL_LOOK:
      if (is_late(e))
        return false;
    }
  }
}

/* Sends the lane's src once, and finds what the other core has sent; false if it has sent nothing yet, or with a fault. */
static bool exchange(struct engines *e, int k, const struct sim_instr *i) {
  struct lane *l = &e->lanes[k];
  const int core = stream_of(e, k)->core;
  struct mailbox *from = &e->boxes[!core];
  if (!l->has_sent) {
    struct sim_parcel x = {.bits = NULL};
    const bool is_ok = !e->m->memories || sim_exchange_send(e->m, i, &x);
    array_push(e->arena, &e->boxes[core].parcels, x);
    if (!is_ok)
      return false;
    l->has_sent = true;
  }
  if (from->taken == from->parcels.n)
    return false;
  e->m->parcel = &from->parcels.v[from->taken++];
  l->has_sent = false;
  return true;
}

static enum outcome step_instr(struct engines *e, int k, const struct sim_instr *i) {
  struct lane *l = &e->lanes[k];
  const bool is_transfer = is_queue(e, k) && i->kind != NISA_REGISTER_LOAD;

  if (is_transfer && l->started == l->triggered)
    return STEP_BLOCKED;
  if (i->kind == NISA_SENDRECV) {
    int64_t *kept = e->m->regs;
    e->m->regs = l->control.regs;
    const bool is_ready = exchange(e, k, i);
    e->m->regs = kept;
    if (!is_ready)
      return e->m->fault->kind ? STEP_FAILED : STEP_BLOCKED;
  }
  l->started += is_transfer;
  if (!sim_order_access(e->order, k, i, l->control.regs, e->m->fault))
    return STEP_FAILED;
  if (e->m->memories) {
    int64_t *kept = e->m->regs;
    e->m->regs = l->control.regs;
    const bool is_ok = sim_execute(e->m, i);
    e->m->regs = kept;
    if (!is_ok)
      return STEP_FAILED;
  }
  l->semaphore += i->signals;
  return STEP_DONE;
}

/* Of a core that is one sequence. */
static enum outcome step_memory(struct engines *e, const struct lane *l, const struct sim_node *n) {
  struct sim_machine *m = e->m;
  if (!m->memories)
    return STEP_DONE;
  if (n->kind == SIM_NODE_ALLOC)
    return sim_allocate(m, n->a, n->b >= 0 ? l->control.regs[n->b] : 0, false) ? STEP_DONE : STEP_FAILED;
  sim_drop(m, n->a);
  m->memories[n->a].is_released = true;
  return STEP_DONE;
}

static enum outcome step(struct engines *e, int k) {
  struct lane *l = &e->lanes[k];
  enum outcome done = STEP_BLOCKED;

  e->m->instr = NULL;
  e->m->stream = k;
  e->m->core = stream_of(e, k)->core;
  if (!l->node && !find_node(e, l))
    return STEP_FAILED;
  const struct sim_node *n = l->node;
  if (n->kind == SIM_NODE_INSTR) {
    done = step_instr(e, k, &e->m->program->instrs[n->a]);
  } else if (n->kind == SIM_NODE_WAIT) {
    const int64_t count = sim_linear_value(n->linear, l->control.regs);
    if (e->lanes[n->a].semaphore >= count) {
      sim_order_wait(e->order, k, n->a, count);
      done = STEP_DONE;
    }
  } else if (n->kind == SIM_NODE_TRIGGER) {
    e->lanes[n->a].triggered++;
    sim_order_trigger(e->order, k, n->a);
    done = STEP_DONE;
  } else if (n->kind == SIM_NODE_ALLOC || n->kind == SIM_NODE_RELEASE) {
    done = step_memory(e, l, n);
  } else {
    assert(n->kind == SIM_NODE_BARRIER || n->kind == SIM_NODE_END); /* as nisa_verify has seen to it */
  }
  if (done == STEP_DONE)
    l->node = NULL;
  return done;
}

/* ---- scheduling ------------------------------------------------------------------------------------------------- */

static uint64_t next_random(struct engines *e) { /* xorshift64* */
  e->random ^= e->random >> 12;
  e->random ^= e->random << 25;
  e->random ^= e->random >> 27;
  return e->random * UINT64_C(2685821657736338717) >> 32;
}

/* The position in `turn` from which on a stream is looked for, inside [first, first + n). */
static int begin(struct engines *e, int first, int n) {
  const bool was_here = e->last >= first && e->last < first + n;
  switch (e->m->options->schedule) {
  case SIM_SCHEDULE_LATE_DMA: /* the engine goes on */
    return was_here ? e->last : first;
  case SIM_SCHEDULE_RANDOM:
    if (e->burst-- > 0)
      return e->last;
    e->burst = (int)(next_random(e) % BURST_MAX);
    return first + (int)(next_random(e) % (uint64_t)n);
  default:
    return was_here && e->last + 1 < first + n ? e->last + 1 : first;
  }
}

/* One step of one of the n streams from this position on. */
static enum outcome step_one_of(struct engines *e, int first, int n) {
  int at = n ? begin(e, first, n) : first;
  for (int k = 0; k < n; k++, at = at + 1 < first + n ? at + 1 : first) {
    const enum outcome done = step(e, e->turn[at]);
    if (done == STEP_BLOCKED)
      continue;
    e->last = at;
    return done;
  }
  return STEP_BLOCKED;
}

static enum outcome step_any(struct engines *e) {
  const enum outcome done = step_one_of(e, 0, e->n_first);
  return done == STEP_BLOCKED ? step_one_of(e, e->n_first, e->n - e->n_first) : done;
}

/* Puts the streams that have priority first: queues, engines, or all alike. */
static void make_turn(struct engines *e) {
  const enum sim_schedule s = e->m->options->schedule;
  const bool has_priority = s == SIM_SCHEDULE_EARLY_DMA || s == SIM_SCHEDULE_LATE_DMA;
  int n = 0;
  for (int k = 0; k < e->n; k++)
    if (!has_priority || is_queue(e, k) == (s == SIM_SCHEDULE_EARLY_DMA))
      e->turn[n++] = k;
  e->n_first = n;
  for (int k = 0; k < e->n && has_priority; k++)
    if (is_queue(e, k) != (s == SIM_SCHEDULE_EARLY_DMA))
      e->turn[n++] = k;
  e->last = e->n; /* nowhere */
}

/* ---- when no stream can go on ----------------------------------------------------------------------------------- */

static bool is_at(const struct engines *e, int k, enum sim_node_kind kind, bool of_all_cores) {
  const struct sim_node *n = e->lanes[k].node;
  return n->kind == kind && (kind != SIM_NODE_BARRIER || n->a == of_all_cores);
}

/* All streams of the core, or all, if it is -1, are at their end, or at a barrier of their core or of all cores. */
static bool all_are_at(const struct engines *e, int core, enum sim_node_kind kind, bool of_all_cores) {
  bool some = false;
  for (int k = 0; k < e->n; k++) {
    if (core >= 0 && stream_of(e, k)->core != core)
      continue;
    some = true;
    if (!is_at(e, k, kind, of_all_cores))
      return false;
  }
  return some;
}

/* What stream k waits for: "vector waits for qSyncIn >= 3, which is 2". */
static void describe(const struct engines *e, int k, char *text, size_t size) {
  const struct lane *l = &e->lanes[k];
  const struct sim_node *n = l->node;
  const char *name = stream_of(e, k)->name;
  if (n->kind == SIM_NODE_WAIT)
    snprintf(text, size, "%s waits for %s >= %" PRId64 ", which is %" PRId64, name, stream_of(e, n->a)->name,
             sim_linear_value(n->linear, l->control.regs), e->lanes[n->a].semaphore);
  else if (l->has_sent)
    snprintf(text, size, "%s waits for a sendrecv of the other core", name);
  else if (n->kind == SIM_NODE_INSTR)
    snprintf(text, size, "%s waits for trigger %" PRId64 " of %s", name, l->started + 1,
             stream_of(e, stream_of(e, k)->trigger)->name);
  else
    snprintf(text, size, "%s is at a %s", name, n->a ? "core_barrier" : "barrier");
}

/* The instruction that the stream would execute next; NULL if there is none. */
static const struct sim_instr *next_instr(const struct engines *e, int k) {
  const struct sim_node *n = e->lanes[k].node;
  while (n->kind != SIM_NODE_INSTR && n->kind != SIM_NODE_END)
    n++;
  return n->kind == SIM_NODE_INSTR ? &e->m->program->instrs[n->a] : NULL;
}

static bool report_deadlock(struct engines *e) {
  char text[sizeof e->m->fault->text], one[120];
  size_t used = 0;
  int more = 0;
  e->m->instr = NULL;
  for (int k = 0; k < e->n; k++) {
    if (e->lanes[k].node->kind == SIM_NODE_END)
      continue;
    if (!e->m->instr)
      e->m->instr = next_instr(e, k);
    describe(e, k, one, sizeof one);
    if (used + strlen(one) + sizeof "; and 999 more" > sizeof text)
      more++;
    else
      used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", used ? "; " : "", one);
  }
  if (more)
    snprintf(text + used, sizeof text - used, "; and %d more", more);
  return sim_fail(e->m, SIM_FAULT_DEADLOCK, "%s", text);
}

/* All transfers of the core, or of all, that were triggered have been there. */
static bool no_trigger_is_left(struct engines *e, int core) {
  for (int k = 0; k < e->n; k++)
    if ((core < 0 || stream_of(e, k)->core == core) && e->lanes[k].triggered != e->lanes[k].started)
      return sim_fail(e->m, SIM_FAULT_INSTRUCTION, "%s is triggered %" PRId64 " times, but has %" PRId64 " transfers",
                      stream_of(e, k)->name, e->lanes[k].triggered, e->lanes[k].started);
  return true;
}

/* False with a fault if a transfer is left. */
static bool pass_barrier(struct engines *e, int core) {
  if (!no_trigger_is_left(e, core))
    return false;
  sim_order_barrier(e->order, core);
  for (int k = 0; k < e->n; k++) {
    struct lane *l = &e->lanes[k];
    if (core >= 0 && stream_of(e, k)->core != core)
      continue;
    l->node = NULL;
    l->semaphore = l->triggered = l->started = 0;
  }
  return true;
}

/* Passes the barriers to which all have come; *some: there was one.  False with a fault. */
static bool pass_barriers(struct engines *e, bool *some) {
  bool is_ok = true;
  *some = false;
  for (int core = 0; is_ok && core < e->m->program->n_cores; core++)
    if (all_are_at(e, core, SIM_NODE_BARRIER, false)) {
      is_ok = pass_barrier(e, core);
      *some = true;
    }
  if (!*some && all_are_at(e, ALL_CORES, SIM_NODE_BARRIER, true)) {
    is_ok = pass_barrier(e, ALL_CORES);
    *some = true;
  }
  return is_ok;
}

static bool run(struct engines *e) {
  for (;;) {
    switch (step_any(e)) {
    case STEP_FAILED:
      return false;
    case STEP_DONE:
      if (++e->steps % LOOK_EVERY == 0 && is_late(e))
        return false;
      continue;
    case STEP_BLOCKED:
      break;
    }
    bool is_passed;
    if (all_are_at(e, ALL_CORES, SIM_NODE_END, false))
      return no_trigger_is_left(e, ALL_CORES);
    if (!pass_barriers(e, &is_passed))
      return false;
    if (!is_passed)
      return report_deadlock(e);
  }
}

bool sim_run_streams(struct sim_machine *m, struct sim_order *order) {
  const int n = m->program->n_streams, n_regs = m->program->n_regs;
  struct arena a;
  arena_init(&a);
  struct engines e = {.m = m,
                      .order = order,
                      .n = n,
                      .lanes = arena_new_array(&a, struct lane, (size_t)n),
                      .turn = arena_new_array(&a, int, (size_t)n),
                      .arena = &a,
                      .random = m->options->seed * 2 + 1};
  for (int k = 0; k < n; k++)
    e.lanes[k].control = (struct sim_control){.program = m->program,
                                              .regs = arena_dup(&a, m->regs, (size_t)n_regs * sizeof *m->regs),
                                              .at = m->program->streams[k].first};
  make_turn(&e);
  const bool is_ok = run(&e);
  m->core = 0;
  for (int core = 0; core < NISA_CORES; core++)
    for (int k = 0; k < e.boxes[core].parcels.n; k++)
      free(e.boxes[core].parcels.v[k].bits);
  arena_clear(&a);
  return is_ok;
}
