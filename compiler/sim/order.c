/* order: vector clocks over the streams, and a record of the accesses that may still race with a later one.
 *
 * A thread is what executes in order: an engine; the control of a queue, which loads registers; and, with one number
 * each, the transfers of a queue.  A clock says how many accesses of each thread have happened before some point.
 *
 * An access is dropped when a later one makes it superfluous: one that is ordered after it, covers its area, and writes
 * or, like it, only reads.  What races with the dropped one then races with the other, too.
 */
#include "sim/order.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "sim/area.h"

static const size_t BYTES_MAX = (size_t)1 << 30; /* of clocks and records, for programs that do not end */

/* ---- state ------------------------------------------------------------------------------------------------------ */

struct clocks {
  int64_t *v; /* n clocks of n_threads numbers; on the heap, because it grows */
  int n, cap; /* in numbers */
};

struct access {
  struct sim_area area;
  const struct sim_instr *instr;
  int operand, thread;
  int64_t time; /* of its thread */
  bool writes;
  int next; /* in its list, or among those that are free */
};

/* The recorded accesses to one copy of a buffer, by their length: level L has those that reach over at most 1 / 4^L of
 * the bytes, in cells of that length, by their first byte.  So an access that reaches over little is compared with few. */
enum { LEVELS = 6 };
struct copy {
  int64_t from, length; /* of the bytes that have cells */
  int *cells[LEVELS];   /* 4^L lists each, as the number of their first access; NULL: none yet */
};

struct stream {
  int64_t *now; /* the clock of what it executes next; of a queue, of its control */
  int64_t n;    /* accesses: of an engine, of a queue's transfers */
  int64_t loads;
  struct clocks raised;    /* for each time that it raised its semaphore, the clock of a wait for that count */
  struct clocks triggered; /* for each trigger of a queue, the clock of its engine */
  int64_t started;         /* transfers since the last barrier: the next trigger */
  int64_t *done;           /* of a queue: the clock of all transfers so far */
};

struct sim_order {
  const struct sim_program *program;
  struct arena arena;
  size_t clock_bytes; /* of the clocks that are kept */
  int n_threads;
  struct stream *streams;
  bool *is_written; /* per buffer: some instruction may write it, or a buffer that shares its memory */
  int **neighbours; /* per buffer: itself, and those that share memory with it; ends with -1 */
  int *first_copy;  /* per buffer */
  int64_t *start;   /* the clock of a transfer */
  struct copy *copies;
  struct {
    struct access *v;
    int n, cap;
  } accesses;     /* number 0 is none */
  int first_free; /* of those that have been dropped; 0: none */
};

static int64_t *new_clock(struct sim_order *o) {
  return arena_new_array(&o->arena, int64_t, (size_t)o->n_threads);
}

static void join(const struct sim_order *o, int64_t *into, const int64_t *from) {
  for (int k = 0; k < o->n_threads; k++)
    if (into[k] < from[k])
      into[k] = from[k];
}

static void keep_clock(struct sim_order *o, struct clocks *c, const int64_t *clock) {
  if (c->n + o->n_threads > c->cap) {
    const int cap = array_next_cap(c->cap < o->n_threads ? o->n_threads : c->cap);
    c->v = realloc(c->v, (size_t)cap * sizeof *c->v);
    if (!c->v)
      arena_oom((size_t)cap * sizeof *c->v);
    o->clock_bytes += (size_t)(cap - c->cap) * sizeof *c->v;
    c->cap = cap;
  }
  memcpy(c->v + c->n, clock, (size_t)o->n_threads * sizeof *clock);
  c->n += o->n_threads;
}

static const int64_t *kept_clock(const struct sim_order *o, const struct clocks *c, int64_t k) {
  assert(k >= 0 && (k + 1) * o->n_threads <= c->n);
  return c->v + k * o->n_threads;
}

static bool is_queue(const struct sim_order *o, int stream) {
  return o->program->streams[stream].trigger >= 0;
}

/* The thread of a queue's control; the queue's own number is that of its transfers. */
static int control_thread(const struct sim_order *o, int stream) {
  return is_queue(o, stream) ? o->program->n_streams + stream : stream;
}

/* ---- which buffers matter --------------------------------------------------------------------------------------- */

static int copies_of(const struct sim_buffer *b) {
  return b->place.copies > 1 ? b->place.copies : 1;
}

static void find_neighbours(struct sim_order *o) {
  const int n = o->program->n_buffers;
  struct sim_area *areas = arena_new_array(&o->arena, struct sim_area, (size_t)n);
  int *found = arena_new_array(&o->arena, int, (size_t)n + 1);

  for (int k = 0; k < n; k++)
    sim_area_of_buffer(o->program, k, &areas[k]);
  for (int k = 0; k < n; k++) {
    int count = 0;
    for (int i = 0; i < n; i++)
      if (i == k || sim_area_meets(&areas[i], &areas[k]))
        found[count++] = i;
    found[count++] = -1;
    o->neighbours[k] = arena_dup(&o->arena, found, (size_t)count * sizeof *found);
  }
}

/* What is only read needs no record: all arguments of a kernel that are weights, for example. */
static void find_written(struct sim_order *o) {
  const struct sim_program *p = o->program;
  bool *own = arena_new_array(&o->arena, bool, (size_t)p->n_buffers);
  bool is_unknown = false; /* a buffer that is known only at run time */

  for (int i = 0; i < p->n_instrs; i++)
    for (int k = 0; k < p->instrs[i].def->n_operands; k++) {
      const struct sim_operand *x = &p->instrs[i].operand[k];
      if (x->kind != SIM_ACCESS || !p->instrs[i].def->operand[k].writes)
        continue;
      is_unknown |= x->buffer < 0;
      if (x->buffer >= 0)
        own[x->buffer] = true;
    }
  for (int b = 0; b < p->n_buffers; b++)
    for (const int *k = o->neighbours[b]; *k >= 0; k++)
      o->is_written[b] |= own[*k] || is_unknown;
  /* each core as one sequence orders what only it can reach */
  for (int b = 0; b < p->n_buffers && !p->has_engines; b++)
    o->is_written[b] &= !mem_is_on_chip(p->buffers[b].space);
}

/* ---- records ---------------------------------------------------------------------------------------------------- */

static int cells_of(int level) {
  return 1 << 2 * level;
}

static int level_of(const struct copy *c, int64_t length) {
  int level = 0;
  while (level + 1 < LEVELS && length <= c->length / cells_of(level + 1))
    level++;
  return level;
}

static int cell_of(const struct copy *c, int level, int64_t at) {
  const int64_t cell = (at - c->from) / (c->length / cells_of(level));
  return cell < 0 ? 0 : cell >= cells_of(level) ? cells_of(level) - 1 : (int)cell;
}

static void record(struct sim_order *o, struct copy *c, const struct access *x) {
  const int level = level_of(c, x->area.to - x->area.from);
  int k = o->first_free;
  if (!c->cells[level])
    c->cells[level] = arena_new_array(&o->arena, int, (size_t)cells_of(level));
  int *list = &c->cells[level][cell_of(c, level, x->area.from)];
  if (k) {
    o->first_free = o->accesses.v[k].next;
  } else {
    k = o->accesses.n;
    array_push(&o->arena, &o->accesses, *x);
  }
  o->accesses.v[k] = *x;
  o->accesses.v[k].next = *list;
  *list = k;
}

/* The first access in the list that races with x; NULL if there is none.  Drops those that x makes superfluous. */
static const struct access *compare(struct sim_order *o, int *list, const struct access *x, const int64_t *now) {
  while (*list) {
    const int k = *list;
    struct access *old = &o->accesses.v[k];
    const bool is_before = now[old->thread] >= old->time;
    if (!is_before && (x->writes || old->writes) && sim_area_meets(&x->area, &old->area))
      return old;
    if (is_before && (x->writes || !old->writes) && sim_area_covers(&x->area, &old->area)) {
      *list = old->next;
      old->next = o->first_free;
      o->first_free = k;
    } else {
      list = &old->next;
    }
  }
  return NULL;
}

static const struct access *find_race(struct sim_order *o, struct copy *c, const struct access *x, const int64_t *now) {
  for (int level = 0; level < LEVELS; level++) {
    if (!c->cells[level])
      continue;
    /* what begins one cell earlier may reach into the first byte's */
    const int first = cell_of(c, level, x->area.from), last = cell_of(c, level, x->area.to - 1);
    for (int cell = first ? first - 1 : 0; cell <= last; cell++) {
      const struct access *old = compare(o, &c->cells[level][cell], x, now);
      if (old)
        return old;
    }
  }
  return NULL;
}

static const struct access *find_race_around(struct sim_order *o, int buffer, int64_t copy, const struct access *x,
                                             const int64_t *now) {
  for (const int *k = o->neighbours[buffer]; *k >= 0; k++) {
    const int n = copies_of(&o->program->buffers[*k]);
    for (int i = 0; i < n; i++) {
      if (*k == buffer && i != copy)
        continue;
      const struct access *old = find_race(o, &o->copies[o->first_copy[*k] + i], x, now);
      if (old)
        return old;
    }
  }
  return NULL;
}

/* ---- reports ---------------------------------------------------------------------------------------------------- */

static const char *memory_name(const struct sim_program *p, const struct sim_area *x) {
  return x->memory == SIM_MEMORY_SCRATCH                                  ? "HBM"
         : x->memory == SIM_MEMORY_SBUF || x->memory == SIM_MEMORY_SBUF_1 ? "SBUF"
         : x->memory < SIM_MEMORY_BUFFERS ? "PSUM"
                                          : nisa_space_name(p->buffers[x->memory - SIM_MEMORY_BUFFERS].space);
}

static const struct sim_stream *stream_of(const struct sim_order *o, int thread) {
  const int n = o->program->n_streams;
  return &o->program->streams[thread < n ? thread : thread - n];
}

static const char *thread_name(const struct sim_order *o, int thread) {
  return stream_of(o, thread)->name;
}

static int core_of(const struct sim_order *o, int thread) {
  return stream_of(o, thread)->core;
}

static bool report(const struct sim_order *o, const struct access *x, const struct access *old,
                   struct sim_fault *fault) {
  const struct sim_area *a = &x->area, *b = &old->area;
  char place[48] = "";
  if (old->instr->loc)
    snprintf(place, sizeof place, " (line %d)", old->instr->loc->range.line);
  *fault = (struct sim_fault){.kind = SIM_FAULT_RACE,
                              .instr = x->instr,
                              .loc = x->instr->loc,
                              .other = old->instr,
                              .other_loc = old->instr->loc};
  snprintf(fault->text, sizeof fault->text,
           "%s: %s %s bytes %" PRId64 " … %" PRId64 ", and no %s orders it with %s of %s%s, which %s them (%s)",
           x->instr->def->operand[x->operand].name, x->writes ? "writes" : "reads", memory_name(o->program, a),
           a->from > b->from ? a->from : b->from, (a->to < b->to ? a->to : b->to) - 1,
           core_of(o, x->thread) == core_of(o, old->thread) ? "semaphore" : "core_barrier", old->instr->def->name,
           thread_name(o, old->thread), place, old->writes ? "writes" : "reads",
           old->instr->def->operand[old->operand].name);
  return false;
}

/* ---- events ----------------------------------------------------------------------------------------------------- */

/* Checks and records the instruction's operands, at this time of the thread; `now` is what has happened before. */
static bool check(struct sim_order *o, const struct sim_instr *i, const int64_t *regs, int thread, int64_t time,
                  const int64_t *now, struct sim_fault *fault) {
  struct access x[NISA_OPERANDS_MAX];
  struct copy *where[NISA_OPERANDS_MAX];
  int n = 0;

  for (int k = 0; k < i->def->n_operands; k++) {
    const struct nisa_operand_def *d = &i->def->operand[k];
    if (i->operand[k].kind != SIM_ACCESS || (!d->reads && !d->writes))
      continue;
    const int buffer = sim_area_buffer(&i->operand[k], regs);
    if (!o->is_written[buffer])
      continue;
    const int64_t copy = sim_area_copy(o->program, &i->operand[k], regs);
    x[n] = (struct access){.instr = i, .operand = k, .thread = thread, .time = time, .writes = d->writes};
    sim_area_of(o->program, i, k, regs, &x[n].area);
    const struct access *old = find_race_around(o, buffer, copy, &x[n], now);
    if (old)
      return report(o, &x[n], old, fault);
    where[n++] = &o->copies[o->first_copy[buffer] + copy];
  }
  for (int k = 0; k < n; k++)
    record(o, where[k], &x[k]);
  return true;
}

/* What a transfer of the queue knows at its start, in `clock`. */
static void start_transfer(struct sim_order *o, struct stream *s, int64_t *clock) {
  memcpy(clock, s->now, (size_t)o->n_threads * sizeof *clock);
  join(o, clock, kept_clock(o, &s->triggered, s->started++));
}

bool sim_order_access(struct sim_order *o, int stream, const struct sim_instr *i, const int64_t *regs,
                      struct sim_fault *fault) {
  struct stream *s = &o->streams[stream];
  if (o->arena.total + o->clock_bytes > BYTES_MAX) {
    *fault = (struct sim_fault){.kind = SIM_FAULT_MEMORY, .instr = i, .loc = i->loc};
    snprintf(fault->text, sizeof fault->text, "the order of its accesses needs more than %zu MiB", BYTES_MAX >> 20);
    return false;
  }
  if (is_queue(o, stream) && i->kind != NISA_REGISTER_LOAD) {
    int64_t *clock = o->start;
    start_transfer(o, s, clock);
    if (!check(o, i, regs, stream, ++s->n, clock, fault))
      return false;
    clock[stream] = s->n; /* the semaphore counts in order: so many transfers are complete */
    join(o, s->done, clock);
    if (i->signals)
      keep_clock(o, &s->raised, s->done);
    return true;
  }
  const int thread = control_thread(o, stream);
  s->now[thread]++;
  if (!check(o, i, regs, thread, s->now[thread], s->now, fault))
    return false;
  if (i->signals)
    keep_clock(o, &s->raised, s->now);
  return true;
}

void sim_order_wait(struct sim_order *o, int stream, int raiser, int64_t count) {
  if (count > 0)
    join(o, o->streams[stream].now, kept_clock(o, &o->streams[raiser].raised, count - 1));
}

void sim_order_trigger(struct sim_order *o, int stream, int queue) {
  keep_clock(o, &o->streams[queue].triggered, o->streams[stream].now);
}

void sim_order_barrier(struct sim_order *o, int core) {
  const struct sim_stream *streams = o->program->streams;
  int64_t *all = o->start;
  memset(all, 0, (size_t)o->n_threads * sizeof *all);
  for (int k = 0; k < o->program->n_streams; k++)
    if (core < 0 || streams[k].core == core) {
      join(o, all, o->streams[k].now);
      join(o, all, o->streams[k].done);
    }
  for (int k = 0; k < o->program->n_streams; k++) {
    struct stream *s = &o->streams[k];
    if (core >= 0 && streams[k].core != core)
      continue;
    memcpy(s->now, all, (size_t)o->n_threads * sizeof *all);
    memcpy(s->done, all, (size_t)o->n_threads * sizeof *all);
    s->raised.n = s->triggered.n = 0;
    s->started = 0;
  }
}

/* ---- new and free ----------------------------------------------------------------------------------------------- */

static void make_copies(struct sim_order *o) {
  const struct sim_program *p = o->program;
  int n = 0;
  for (int b = 0; b < p->n_buffers; b++) {
    o->first_copy[b] = n;
    n += copies_of(&p->buffers[b]);
  }
  o->copies = arena_new_array(&o->arena, struct copy, (size_t)n);
  for (int b = 0; b < p->n_buffers; b++) {
    struct sim_area area; /* of all copies: each has cells for these bytes */
    sim_area_of_buffer(p, b, &area);
    const int64_t bytes = area.to - area.from, least = cells_of(LEVELS - 1);
    for (int k = 0; k < copies_of(&p->buffers[b]); k++)
      o->copies[o->first_copy[b] + k] = (struct copy){.from = area.from, .length = bytes > least ? bytes : least};
  }
}

static bool has_loads(const struct sim_program *p) {
  for (int k = 0; k < p->n_instrs; k++)
    if (p->instrs[k].kind == NISA_REGISTER_LOAD)
      return true;
  return false;
}

struct sim_order *sim_order_new(const struct sim_program *p) {
  struct sim_order *o = calloc(1, sizeof *o);
  if (!o)
    arena_oom(sizeof *o);
  o->program = p;
  arena_init(&o->arena);
  o->n_threads = has_loads(p) ? 2 * p->n_streams : p->n_streams;
  o->streams = arena_new_array(&o->arena, struct stream, (size_t)p->n_streams);
  for (int k = 0; k < p->n_streams; k++) {
    o->streams[k].now = new_clock(o);
    o->streams[k].done = new_clock(o);
  }
  o->is_written = arena_new_array(&o->arena, bool, (size_t)p->n_buffers);
  o->neighbours = arena_new_array(&o->arena, int *, (size_t)p->n_buffers);
  o->first_copy = arena_new_array(&o->arena, int, (size_t)p->n_buffers);
  o->start = new_clock(o);
  array_push(&o->arena, &o->accesses, (struct access){0});
  find_neighbours(o);
  find_written(o);
  make_copies(o);
  return o;
}

void sim_order_free(struct sim_order *o) {
  if (!o)
    return;
  for (int k = 0; k < o->program->n_streams; k++) {
    free(o->streams[k].raised.v);
    free(o->streams[k].triggered.v);
  }
  arena_clear(&o->arena);
  free(o);
}
