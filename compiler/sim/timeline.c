#include "sim/timeline.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/index.h"
#include "nisa/cores.h"
#include "sim/dma.h"
#include "sim/source.h"
#include "sim/tensor_clock.h"

enum {
  EXECUTIONS_MAX = 4 * 1000 * 1000,
  IDEAL_PART = 4, /* an item of an ideal schedule takes as much memory as so many executions */
  FLIGHT = 8,     /* instructions of one engine whose results may still be under way */
  LOOK_EVERY = 256
};

/* An earlier instruction of an engine, and what it writes. */
struct flight {
  int exec;
  int64_t end;
  int n;
  struct sim_region writes[2];
};

struct lane {
  enum nisa_engine engine;
  int trigger, core;
  int64_t free;  /* when the next instruction can start */
  int last;      /* the execution that it waits for then; -1: none */
  bool has_item; /* `item` is the next one */
  struct sim_item item;
  struct { /* executions that raised the semaphore since the last barrier */
    int *v;
    int n, cap;
  } raised;
  struct flight flight[FLIGHT];
  int n_flights; /* ever; the newest are at n_flights modulo FLIGHT */
  int computed;  /* the last execution that is no trigger; -1: none */
  int table;     /* that the Scalar engine has loaded */
  /* of a queue */
  struct {
    struct touched {
      int n;
      struct {
        int buffer;
        int64_t instance;
      } v[NISA_OPERANDS_MAX];
    } *v;
    int n, cap;
  } touched;      /* by each transfer, so that it can be counted when it ends */
  int64_t n_done; /* transfers */
  int n_unpaired; /* exchanges that have been started here, but not by the other core */
};

/* A way to memory that two engines of trn1 share. */
struct port {
  int64_t free;
  int exec;
  enum nisa_engine engine;
};

/* What each core has of its own. */
struct core {
  struct sim_tensor_clock tensor;
  int64_t tensor_start; /* of the last product */
  struct port ports[2]; /* to SBUF, to PSUM */
  int built;            /* the last execution of the lane of descriptors; -1: none */
  struct {
    struct exchange {
      int queue;
      struct sim_transfer transfer;
    } *v;
    int n, cap;
  } exchanges; /* that it has started */
};

struct machine {
  const struct sim_program *program;
  struct arena *arena;
  enum target target;
  struct sim_fault *fault;
  struct time_limit limit;
  int executions_max;
  struct sim_source *source;
  const struct sim_lane *lanes_def;
  int n_lanes;
  struct lane *lanes;
  struct sim_cost *costs;
  struct {
    struct sim_exec *v;
    int n, cap;
  } execs;
  struct {
    struct sim_life *v;
    int n, cap;
  } lives;
  struct index by_buffer; /* of lives */
  struct sim_dma dma;
  struct core cores[NISA_CORES];
};

const char *sim_reason_name(enum sim_reason r) {
  static const char *const names[] = {
      [SIM_REASON_START] = "start",
      [SIM_REASON_ENGINE] = "engine busy",
      [SIM_REASON_STATIONARY] = "stationary operand",
      [SIM_REASON_SIGNAL] = "semaphore",
      [SIM_REASON_INTERLOCK] = "own result",
      [SIM_REASON_PORT] = "shared memory port",
      [SIM_REASON_TRIGGER] = "DMA start",
      [SIM_REASON_BUILD] = "descriptors",
      [SIM_REASON_QUEUE] = "DMA engines busy",
      [SIM_REASON_BARRIER] = "barrier",
  };
  assert(r >= 0 && r < SIM_REASON_COUNT);
  return names[r];
}

static bool fail_at(struct machine *m, enum sim_fault_kind kind, int instr, const char *fmt, ...) PRINTF(4, 5);
static bool fail_at(struct machine *m, enum sim_fault_kind kind, int instr, const char *fmt, ...) {
  va_list ap;
  *m->fault = (struct sim_fault){.kind = kind, .instr = instr >= 0 ? &m->program->instrs[instr] : NULL};
  m->fault->loc = m->fault->instr ? m->fault->instr->loc : NULL;
  va_start(ap, fmt);
  vsnprintf(m->fault->text, sizeof m->fault->text, fmt, ap);
  va_end(ap);
  return false;
}

/* ---- what is recorded -------------------------------------------------------------------------------------------- */

static int add_exec(struct machine *m, struct sim_exec x) {
  assert(x.start >= 0 && x.free >= x.start && x.end >= x.start);
  array_push(m->arena, &m->execs, x);
  return m->execs.n - 1;
}

/* A buffer is in use from `from` to `to`. */
static void use(struct machine *m, int buffer, int64_t instance, int64_t from, int64_t to) {
  const uint32_t hash = (uint32_t)hash_mix(hash_mix(0, (uint64_t)buffer), (uint64_t)instance);
  struct sim_life *life = NULL;
  for (struct index_probe p = index_probe(&m->by_buffer, hash); !life && index_next(&p);)
    if (m->lives.v[p.entry].buffer == buffer && m->lives.v[p.entry].instance == instance)
      life = &m->lives.v[p.entry];
  if (!life) {
    index_add(&m->by_buffer, hash, m->lives.n);
    life = array_push(m->arena, &m->lives, (struct sim_life){buffer, instance, from, to});
  }
  life->from = life->from < from ? life->from : from;
  life->to = life->to > to ? life->to : to;
}

static void raise_semaphore(struct machine *m, int lane, int instr, int exec) {
  if (sim_source_signals(m->source, instr))
    array_push(m->arena, &m->lanes[lane].raised, exec);
}

/* ---- when the next item of a lane can start ---------------------------------------------------------------------- */

/* A time, and what it waits for. */
struct moment {
  int64_t at;
  enum sim_reason reason;
  int cause;
};

static void later(struct moment *x, int64_t at, enum sim_reason reason, int cause) {
  if (at > x->at)
    *x = (struct moment){at, reason, cause};
}

static struct moment engine_free(const struct machine *m, const struct lane *l) {
  if (l->last < 0)
    return (struct moment){0, SIM_REASON_START, -1};
  return (struct moment){l->free, m->execs.v[l->last].kind == SIM_EXEC_BARRIER ? SIM_REASON_BARRIER : SIM_REASON_ENGINE,
                         l->last};
}

/* False while a wait is for something that has not been simulated yet. */
static bool after_waits(const struct machine *m, const struct lane *l, struct moment *x) {
  for (int k = 0; k < l->item.n_waits; k++) {
    const int count = l->item.waits[k].count;
    const struct lane *from = &m->lanes[l->item.waits[k].stream];
    if (count > from->raised.n)
      return false;
    if (count <= 0)
      continue;
    const int cause = from->raised.v[count - 1];
    later(x, m->execs.v[cause].end + sim_cost_signal(from->engine, l->engine, m->target), SIM_REASON_SIGNAL, cause);
  }
  return true;
}

/* The results of its own engine that it needs. */
static void after_flights(const struct machine *m, const struct lane *l, struct moment *x) {
  const int n = l->n_flights < FLIGHT ? l->n_flights : FLIGHT;
  for (int k = 0; k < n; k++) {
    const struct flight *f = &l->flight[k];
    const int64_t at = f->end + sim_cost_signal(l->engine, l->engine, m->target);
    for (int w = 0; at > x->at && w < f->n; w++)
      for (int r = 0; r < l->item.n_regions; r++)
        if (sim_region_overlaps(&f->writes[w], &l->item.regions[r], sim_source_copies(m->program, f->writes[w].buffer)))
          later(x, at, SIM_REASON_INTERLOCK, f->exec);
  }
}

static unsigned ports_of(const struct machine *m, const struct lane *l) {
  unsigned ports = 0;
  if (m->target != TARGET_TRN1)
    return 0;
  for (int k = 0; k < l->item.n_regions; k++) {
    const enum mem_space s = m->program->buffers[l->item.regions[k].buffer].space;
    if (s == MEM_SBUF && (l->engine == NISA_ENGINE_VECTOR || l->engine == NISA_ENGINE_GPSIMD))
      ports |= 1;
    if (s == MEM_PSUM && (l->engine == NISA_ENGINE_VECTOR || l->engine == NISA_ENGINE_SCALAR))
      ports |= 2;
  }
  return ports;
}

static void after_ports(const struct machine *m, const struct lane *l, struct moment *x) {
  const struct port *port = m->cores[l->core].ports;
  const unsigned ports = ports_of(m, l);
  for (int k = 0; k < 2; k++)
    if (ports >> k & 1 && port[k].engine != l->engine)
      later(x, port[k].free, SIM_REASON_PORT, port[k].exec);
}

/* When the item of an engine can start; false while that is not known. */
static bool can_start(const struct machine *m, const struct lane *l, struct moment *x) {
  *x = engine_free(m, l);
  if (!after_waits(m, l, x))
    return false;
  if (l->item.kind == SIM_ITEM_INSTR && l->engine != NISA_ENGINE_TENSOR) {
    after_flights(m, l, x);
    after_ports(m, l, x);
  }
  if (l->item.n_branches)
    x->at += l->item.n_branches * sim_constant_ps(SIM_BRANCH, m->target);
  return true;
}

/* ---- executing --------------------------------------------------------------------------------------------------- */

static void remember_flight(struct lane *l, const struct sim_item *item, int exec, int64_t end) {
  struct flight *f = &l->flight[l->n_flights++ % FLIGHT];
  *f = (struct flight){.exec = exec, .end = end};
  for (int k = 0; k < item->n_regions && f->n < 2; k++)
    if (item->regions[k].writes)
      f->writes[f->n++] = item->regions[k];
}

/* The stationary operand is loaded once the product before has started and the waits are met; the product begins when it
 * is loaded and the one before is out of the way. */
static int run_matmul(struct machine *m, const struct lane *l, struct sim_exec x, const struct sim_cost *c) {
  struct core *core = &m->cores[l->core];
  const bool follows = l->last >= 0 && m->execs.v[l->last].kind == SIM_EXEC_INSTR;
  struct moment load =
      follows ? (struct moment){core->tensor_start, SIM_REASON_STATIONARY, l->last} : engine_free(m, l);
  after_waits(m, l, &load);
  const int64_t loaded = load.at + sim_tensor_clock_cycles(&core->tensor, load.at, c->load_cycles);
  struct moment start = engine_free(m, l);
  later(&start, loaded, load.reason, load.cause);
  x.ready = start.at == loaded ? load.at : start.at;
  x.start = start.at;
  x.reason = (uint8_t)start.reason;
  x.cause = start.cause;
  x.is_matmul = true;
  x.is_half_clock = sim_tensor_clock_run(&core->tensor, x.start, c->cycles, &x.free, &x.end);
  core->tensor_start = x.start;
  return add_exec(m, x);
}

static void run_instr(struct machine *m, int lane, struct moment start) {
  struct lane *l = &m->lanes[lane];
  const struct sim_cost *c = &m->costs[l->item.instr];
  struct sim_exec x = {.instr = l->item.instr, .lane = (int16_t)lane, .kind = SIM_EXEC_INSTR};
  x.ready = l->free;
  x.start = start.at;
  x.reason = (uint8_t)start.reason;
  x.cause = start.cause;
  int exec;
  if (l->engine == NISA_ENGINE_TENSOR) {
    exec = run_matmul(m, l, x, c);
  } else {
    x.free = x.start + c->hold;
    x.end = x.start + c->done;
    exec = add_exec(m, x);
    remember_flight(l, &l->item, exec, x.end);
  }
  const struct sim_exec *done = &m->execs.v[exec];
  const unsigned ports = ports_of(m, l);
  for (int k = 0; k < 2; k++)
    if (ports >> k & 1)
      m->cores[l->core].ports[k] = (struct port){done->free, exec, l->engine};
  for (int k = 0; k < l->item.n_regions; k++)
    use(m, l->item.regions[k].buffer, l->item.regions[k].instance, done->start, done->end);
  l->free = done->free;
  l->last = l->computed = exec;
  raise_semaphore(m, lane, l->item.instr, exec);
  l->has_item = false;
}

/* The trigger waits until GpSimd has built its descriptors. */
static void build_descriptors(struct machine *m, const struct lane *l, int64_t build, struct sim_exec *x) {
  if (!build)
    return;
  struct moment start = {0, SIM_REASON_START, -1};
  int *built = &m->cores[l->core].built;
  if (l->computed >= 0)
    later(&start, m->execs.v[l->computed].free, SIM_REASON_ENGINE, l->computed);
  if (*built >= 0)
    later(&start, m->execs.v[*built].free, SIM_REASON_ENGINE, *built);
  *built = add_exec(m, (struct sim_exec){.instr = x->instr,
                                         .lane = (int16_t)(m->n_lanes + l->core),
                                         .kind = SIM_EXEC_BUILD,
                                         .reason = (uint8_t)start.reason,
                                         .cause = start.cause,
                                         .ready = start.at,
                                         .start = start.at,
                                         .free = start.at + build,
                                         .end = start.at + build});
  if (m->execs.v[*built].end > x->start) {
    x->start = m->execs.v[*built].end;
    x->reason = SIM_REASON_BUILD;
    x->cause = *built;
  }
}

/* Starts an exchange between the cores once both have come to it: number n of each. */
static void add_exchange(struct machine *m, int queue, struct sim_transfer x) {
  struct core *own = &m->cores[m->lanes[queue].core], *other = &m->cores[!m->lanes[queue].core];
  const int n = own->exchanges.n;
  array_push(m->arena, &own->exchanges, (struct exchange){queue, x});
  m->lanes[queue].n_unpaired++;
  if (n >= other->exchanges.n)
    return;
  const struct exchange *both[] = {&own->exchanges.v[n], &other->exchanges.v[n]};
  const bool other_is_last = both[1]->transfer.arrival > both[0]->transfer.arrival;
  const struct sim_transfer *last = &both[other_is_last]->transfer;
  for (int k = 0; k < 2; k++) {
    struct sim_transfer start = both[k]->transfer;
    struct sim_exec *exec = &m->execs.v[start.exec];
    start.arrival = exec->ready = exec->start = exec->free = exec->end = last->arrival;
    exec->cause = m->execs.v[last->exec].cause;
    m->lanes[both[k]->queue].n_unpaired--;
    sim_dma_add(&m->dma, both[k]->queue, start);
  }
}

/* Starts the next transfer of a queue. */
static bool run_trigger(struct machine *m, int lane, struct moment start) {
  struct lane *l = &m->lanes[lane], *q = &m->lanes[l->item.queue];
  struct sim_item item;
  if (l->item.queue == lane || q->trigger != lane)
    return fail_at(m, SIM_FAULT_INSTRUCTION, -1, "%s triggers a queue of another engine", m->lanes_def[lane].name);
  if (q->has_item)
    item = q->item;
  else if (!sim_source_next(m->source, l->item.queue, &item, m->fault))
    return false;
  q->has_item = false;
  if (item.kind != SIM_ITEM_INSTR)
    return fail_at(m, SIM_FAULT_INSTRUCTION, -1, "%s triggers a transfer that %s does not have",
                   m->lanes_def[lane].name, m->lanes_def[l->item.queue].name);
  if (m->program->instrs[item.instr].engine !=
      NISA_ENGINE_DMA) { /* an index of the next transfer, which its engine loads, too */
    return run_trigger(m, lane, start);
  }
  const struct sim_dma_cost *c = &m->costs[item.instr].dma;
  const struct sim_trigger_cost t = sim_trigger_cost(c, l->engine, m->target);
  struct sim_exec x = {.instr = item.instr, .lane = (int16_t)lane, .kind = SIM_EXEC_TRIGGER};
  x.ready = l->free;
  x.start = start.at;
  x.reason = (uint8_t)start.reason;
  x.cause = start.cause;
  build_descriptors(m, l, t.build, &x);
  x.free = x.end = x.start + t.hold;
  l->last = add_exec(m, x);
  l->free = x.free;
  l->has_item = false;
  const int trigger = l->last;
  /* The transfer's record is made now and completed when it ends. */
  struct sim_exec transfer = {.instr = item.instr, .lane = (int16_t)l->item.queue, .kind = SIM_EXEC_TRANSFER};
  transfer.reason = SIM_REASON_TRIGGER;
  transfer.cause = trigger;
  transfer.ready = transfer.start = transfer.free = transfer.end = x.start + t.start;
  const struct sim_transfer moved = {.exec = add_exec(m, transfer),
                                     .cost = c,
                                     .arrival = transfer.ready,
                                     .supply = sim_dma_supply(c, l->engine, m->target)};
  if (m->program->instrs[item.instr].kind == NISA_SENDRECV)
    add_exchange(m, l->item.queue, moved);
  else
    sim_dma_add(&m->dma, l->item.queue, moved);
  struct touched touched = {.n = item.n_regions};
  for (int k = 0; k < item.n_regions; k++) {
    touched.v[k].buffer = item.regions[k].buffer;
    touched.v[k].instance = item.regions[k].instance;
  }
  array_push(m->arena, &q->touched, touched);
  return true;
}

static void complete_transfers(struct machine *m) {
  int queue;
  int64_t end;
  for (const struct sim_transfer *t; (t = sim_dma_take(&m->dma, &queue, &end));) {
    struct lane *q = &m->lanes[queue];
    struct sim_exec *x = &m->execs.v[t->exec];
    x->start = t->first;
    x->free = x->end = end;
    if (x->start > x->ready) {
      x->reason = SIM_REASON_QUEUE;
      x->cause = q->last;
    }
    q->last = t->exec;
    q->free = end;
    const struct touched *touched = &q->touched.v[q->n_done++];
    for (int k = 0; k < touched->n; k++)
      use(m, touched->v[k].buffer, touched->v[k].instance, x->start, x->end);
    raise_semaphore(m, queue, x->instr, t->exec);
  }
}

/* ---- barriers ---------------------------------------------------------------------------------------------------- */

static bool is_idle(const struct machine *m, int queue) {
  const struct sim_dma_queue *q = &m->dma.queues[queue];
  return q->complete == q->transfers.n && !m->lanes[queue].n_unpaired;
}

enum { ALL_CORES = -1 };

/* True if every lane of the core, or of all, that has not ended is at a barrier of the core or of all, and no transfer is
 * under way. */
static bool all_at_barrier(struct machine *m, int core, bool *is_failed) {
  bool some = false;
  for (int k = 0; k < m->n_lanes; k++) {
    struct lane *l = &m->lanes[k];
    if (core >= 0 && l->core != core)
      continue;
    if (!l->has_item && !*is_failed) {
      *is_failed = !sim_source_next(m->source, k, &l->item, m->fault);
      l->has_item = !*is_failed;
    }
    if (*is_failed || !is_idle(m, k) || (l->item.kind != SIM_ITEM_BARRIER && l->item.kind != SIM_ITEM_END))
      return false;
    if (l->item.kind == SIM_ITEM_BARRIER && l->item.of_all_cores != (core < 0))
      return false;
    some |= l->item.kind == SIM_ITEM_BARRIER;
  }
  return some;
}

static void run_barrier(struct machine *m, int core) {
  struct moment x = {0, SIM_REASON_START, -1};
  for (int k = 0; k < m->n_lanes; k++) {
    const struct lane *l = &m->lanes[k];
    if (core >= 0 && l->core != core)
      continue;
    later(&x, l->free, SIM_REASON_ENGINE, l->last);
    for (int e = l->raised.n - 1; e >= 0 && e >= l->raised.n - FLIGHT; e--) /* results that are still under way */
      later(&x, m->execs.v[l->raised.v[e]].end, SIM_REASON_SIGNAL, l->raised.v[e]);
    if (l->last >= 0)
      later(&x, m->execs.v[l->last].end, SIM_REASON_SIGNAL, l->last);
  }
  const int64_t end = x.at + sim_constant_ps(core < 0 ? SIM_CORE_BARRIER : SIM_BARRIER, m->target);
  for (int k = 0; k < m->n_lanes; k++) {
    struct lane *l = &m->lanes[k];
    if (l->item.kind != SIM_ITEM_BARRIER || (core >= 0 && l->core != core))
      continue;
    if (l->trigger < 0) {
      l->last = l->computed = add_exec(m, (struct sim_exec){.instr = -1,
                                                            .lane = (int16_t)k,
                                                            .kind = SIM_EXEC_BARRIER,
                                                            .reason = (uint8_t)x.reason,
                                                            .cause = x.cause,
                                                            .ready = l->free,
                                                            .start = x.at,
                                                            .free = end,
                                                            .end = end});
      l->free = end;
    }
    l->raised.n = 0;
    l->has_item = false;
  }
}

/* Passes the barriers to which all have come; false if there is none, or with *is_failed and a fault. */
static bool run_barriers(struct machine *m, bool *is_failed) {
  bool some = false;
  for (int core = 0; core < m->program->n_cores && !*is_failed; core++)
    if (all_at_barrier(m, core, is_failed)) {
      run_barrier(m, core);
      some = true;
    }
  if (!some && !*is_failed && all_at_barrier(m, ALL_CORES, is_failed)) {
    run_barrier(m, ALL_CORES);
    some = true;
  }
  return some;
}

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

/* The Scalar engine loads the table that its next item needs, if it has another one, while the item waits. */
static void load_table(struct machine *m, int lane) {
  struct lane *l = &m->lanes[lane];
  const int table = l->item.kind == SIM_ITEM_INSTR ? m->costs[l->item.instr].table : 0;
  if (!table || l->table == table)
    return;
  const struct moment start = engine_free(m, l);
  const int64_t end = start.at + sim_constant_ps(SIM_TABLE_LOAD, m->target);
  l->last = add_exec(m, (struct sim_exec){.instr = l->item.instr,
                                          .lane = (int16_t)lane,
                                          .kind = SIM_EXEC_TABLE,
                                          .reason = (uint8_t)start.reason,
                                          .cause = start.cause,
                                          .ready = start.at,
                                          .start = start.at,
                                          .free = end,
                                          .end = end});
  l->free = end;
  l->table = table;
}

static bool fetch(struct machine *m) {
  for (int k = 0; k < m->n_lanes; k++) {
    struct lane *l = &m->lanes[k];
    if (l->has_item || l->trigger >= 0)
      continue;
    if (!sim_source_next(m->source, k, &l->item, m->fault))
      return false;
    l->has_item = true;
    load_table(m, k);
  }
  return true;
}

/* The engine whose item starts first; -1 if none can start yet. */
static int first_engine(const struct machine *m, struct moment *first) {
  int lane = -1;
  for (int k = 0; k < m->n_lanes; k++) {
    const struct lane *l = &m->lanes[k];
    struct moment x;
    if (l->trigger >= 0 || (l->item.kind != SIM_ITEM_INSTR && l->item.kind != SIM_ITEM_TRIGGER) || !can_start(m, l, &x))
      continue;
    if (lane < 0 || x.at < first->at) {
      *first = x;
      lane = k;
    }
  }
  return lane;
}

static bool is_at_end(const struct machine *m) {
  for (int k = 0; k < m->n_lanes; k++)
    if ((m->lanes[k].trigger < 0 && m->lanes[k].item.kind != SIM_ITEM_END) || !is_idle(m, k))
      return false;
  return true;
}

/* No queue has a transfer that nothing starts. */
static bool ends_well(struct machine *m) {
  for (int k = 0; k < m->n_lanes; k++) {
    struct lane *l = &m->lanes[k];
    if (l->trigger >= 0 && !l->has_item && !sim_source_next(m->source, k, &l->item, m->fault))
      return false;
    if (l->trigger >= 0 && l->item.kind != SIM_ITEM_END)
      return fail_at(m, SIM_FAULT_INSTRUCTION, l->item.instr, "nothing starts a transfer of %s", m->lanes_def[k].name);
  }
  return true;
}

static bool fail_stuck(struct machine *m) {
  for (int k = 0; k < m->n_lanes; k++) {
    const struct lane *l = &m->lanes[k];
    for (int w = 0; l->trigger < 0 && l->item.kind != SIM_ITEM_END && w < l->item.n_waits; w++)
      if (l->item.waits[w].count > m->lanes[l->item.waits[w].stream].raised.n)
        return fail_at(m, SIM_FAULT_INSTRUCTION, l->item.instr, "%s waits for %s >= %d, which never happens",
                       m->lanes_def[k].name, m->lanes_def[l->item.waits[w].stream].name, l->item.waits[w].count);
  }
  return fail_at(m, SIM_FAULT_INSTRUCTION, -1, "not all engines come to a barrier, or the cores to an exchange");
}

static bool simulate(struct machine *m) {
  for (int64_t steps = 1;; steps++) {
    struct moment start;
    bool is_failed = false;
    if (!fetch(m))
      return false;
    const int lane = first_engine(m, &start);
    const int64_t dma = sim_dma_next(&m->dma);
    if (m->execs.n > m->executions_max)
      return fail_at(m, SIM_FAULT_TIME, -1, "it executes more than %d instructions", m->executions_max);
    if (steps % LOOK_EVERY == 0 && time_is_up(&m->limit))
      return fail_at(m, SIM_FAULT_TIME, -1, "its time was up");
    if (dma < INT64_MAX && (lane < 0 || dma <= start.at)) {
      sim_dma_step(&m->dma);
      complete_transfers(m);
    } else if (lane >= 0) {
      if (m->lanes[lane].item.kind == SIM_ITEM_INSTR)
        run_instr(m, lane, start);
      else if (!run_trigger(m, lane, start))
        return false;
    } else if (is_at_end(m)) {
      return ends_well(m);
    } else if (!run_barriers(m, &is_failed)) {
      return is_failed ? false : fail_stuck(m);
    }
  }
}

/* The lanes, and that of descriptors of each core if one has built some. */
static const struct sim_lane *all_lanes(const struct machine *m, int *n) {
  const int n_cores = m->program->n_cores;
  struct sim_lane *lanes = arena_new_array(m->arena, struct sim_lane, (size_t)(m->n_lanes + n_cores));
  bool has_built = false;
  for (int k = 0; k < m->n_lanes; k++)
    lanes[k] = m->lanes_def[k];
  for (int core = 0; core < n_cores; core++) {
    const char *name = n_cores > 1 ? arena_printf(m->arena, "core%d.descriptors", core) : "descriptors";
    lanes[m->n_lanes + core] = (struct sim_lane){name, NISA_ENGINE_GPSIMD, -1, core};
    has_built |= m->cores[core].built >= 0;
  }
  *n = m->n_lanes + (has_built ? n_cores : 0);
  return lanes;
}

static int64_t last_end(const struct machine *m) {
  int64_t end = 0;
  for (int k = 0; k < m->execs.n; k++)
    end = m->execs.v[k].end > end ? m->execs.v[k].end : end;
  return end;
}

enum status sim_time(const struct sim_program *p, const struct sim_time_options *options, struct arena *a,
                     struct sim_timeline *out, struct sim_fault *fault) {
  int n_assumed = 0;
  struct machine m = {.program = p,
                      .arena = a,
                      .target = options->target,
                      .fault = fault,
                      .limit = options->limit,
                      .executions_max = options->executions_max ? options->executions_max : EXECUTIONS_MAX,
                      .by_buffer = {.arena = a}};
  for (int core = 0; core < NISA_CORES; core++)
    m.cores[core] = (struct core){.built = -1, .tensor = sim_tensor_clock_new(options->target)};
  *fault = (struct sim_fault){SIM_FAULT_NONE};
  m.source = sim_source_new(p, options->record, m.executions_max / IDEAL_PART, &m.limit, a, &n_assumed, fault);
  if (!m.source)
    return ST_INPUT;
  m.lanes_def = sim_source_lanes(m.source, &m.n_lanes);
  m.lanes = arena_new_array(a, struct lane, (size_t)m.n_lanes);
  for (int k = 0; k < m.n_lanes; k++)
    m.lanes[k] = (struct lane){.engine = m.lanes_def[k].engine,
                               .trigger = m.lanes_def[k].trigger,
                               .core = m.lanes_def[k].core,
                               .last = -1,
                               .computed = -1};
  m.costs = arena_new_array(a, struct sim_cost, (size_t)p->n_instrs + 1);
  for (int k = 0; k < p->n_instrs; k++)
    m.costs[k] = sim_cost_of(p, &p->instrs[k], m.target);
  sim_dma_init(&m.dma, m.n_lanes, m.target, a);
  for (int k = 0; k < m.n_lanes; k++)
    m.dma.queues[k].core = m.lanes_def[k].core;
  if (!simulate(&m))
    return ST_INPUT;
  *out = (struct sim_timeline){.program = p,
                               .target = m.target,
                               .costs = m.costs,
                               .is_ideal = !p->has_engines,
                               .n = m.execs.n,
                               .execs = m.execs.v,
                               .n_lives = m.lives.n,
                               .lives = m.lives.v,
                               .total_ps = last_end(&m),
                               .n_assumed = n_assumed};
  out->lanes = all_lanes(&m, &out->n_lanes);
  return ST_OK;
}
