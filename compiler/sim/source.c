#include "sim/source.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"

/* Of a buffer that has no place: in PSUM, in HBM, and in SBUF as many as fit into IDEAL_BYTES of a partition, 2 … 8. */
enum { IDEAL_BANKS = 2, IDEAL_COPIES = 3, IDEAL_MOST = 8, IDEAL_BYTES = 32 * 1024 };

/* The ideal machine's lanes.  Loads and stores have a trigger engine each, so that a store that waits blocks no load; what
 * converts types needs the descriptors of GpSimd. */
enum { TENSOR, VECTOR, SCALAR, GPSIMD, SYNC, SYNC_STORES, LOADS, STORES, CASTS, EXCHANGES, PEER, LANES };
static const struct sim_lane ideal_lanes[LANES] = {
    [TENSOR] = {"tensor", NISA_ENGINE_TENSOR, -1},
    [VECTOR] = {"vector", NISA_ENGINE_VECTOR, -1},
    [SCALAR] = {"scalar", NISA_ENGINE_SCALAR, -1},
    [GPSIMD] = {"gpsimd", NISA_ENGINE_GPSIMD, -1},
    [SYNC] = {"sync", NISA_ENGINE_SYNC, -1},
    [SYNC_STORES] = {"sync stores", NISA_ENGINE_SYNC, -1},
    [LOADS] = {"qSyncIn", NISA_ENGINE_DMA, SYNC},
    [STORES] = {"qSyncOut", NISA_ENGINE_DMA, SYNC_STORES},
    [CASTS] = {"qGpsimdCast", NISA_ENGINE_DMA, GPSIMD},
    [EXCHANGES] = {"qGpsimdCollective", NISA_ENGINE_DMA, GPSIMD},
    [PEER] = {"qGpsimdPeer", NISA_ENGINE_DMA, GPSIMD}, /* of two cores only */
};

enum { LOOK_EVERY = 1024 };

/* An item that waits to be asked for; only the used part of it is kept. */
struct kept {
  struct kept *next;
  struct sim_item item;
};

/* An access to memory that later ones may conflict with. */
struct access {
  struct sim_region region;
  int lane;
  int count; /* how many items its lane had with it */
};
struct accesses {
  struct access *v;
  int n, cap;
};

/* The ideal schedule of one core, or of the program: its sequence, dealt out to its lanes. */
struct dealer {
  struct sim_cursor cursor;
  int first_lane;
  bool is_at_end;
  struct kept *first[LANES], *last[LANES];
  int count[LANES];
  struct accesses *accesses; /* per buffer */
};

struct sim_source {
  const struct sim_program *program;
  struct arena *arena;
  int n_lanes;
  const struct sim_lane *lanes;
  struct sim_cursor *cursors; /* one per lane; of an ideal schedule none */
  bool is_ideal;
  struct dealer *dealers; /* of an ideal schedule: one per core */
  int dealt, items_max;
  struct time_limit limit;
};

/* ---- construction ------------------------------------------------------------------------------------------------ */

/* Runs the function's own code, whose registers the streams take over. */
static bool run_own_code(struct sim_source *s, struct sim_cursor *own, const bool *is_loaded, int *n_assumed,
                         struct sim_fault *fault) {
  struct sim_item end;
  sim_cursor_init(own, s->program, 0, s->program->initial, is_loaded, NULL, n_assumed, s->arena);
  if (!sim_cursor_next(own, &end, fault))
    return false;
  if (end.kind == SIM_ITEM_END)
    return true;
  *fault = (struct sim_fault){.kind = SIM_FAULT_INSTRUCTION, .text = "an instruction is in no stream"};
  return false;
}

static const struct sim_loads *loads_of(const struct sim_record *record, int stream) {
  return record && stream < record->n_streams ? &record->streams[stream] : NULL;
}

static bool take_streams(struct sim_source *s, const struct sim_record *record, const bool *is_loaded, int *n_assumed,
                         struct sim_fault *fault) {
  const struct sim_program *p = s->program;
  struct sim_cursor own;
  if (!run_own_code(s, &own, is_loaded, n_assumed, fault))
    return false;
  struct sim_lane *lanes = arena_new_array(s->arena, struct sim_lane, (size_t)p->n_streams);
  s->cursors = arena_new_array(s->arena, struct sim_cursor, (size_t)p->n_streams);
  for (int k = 0; k < p->n_streams; k++) {
    const struct sim_stream *x = &p->streams[k];
    lanes[k] = (struct sim_lane){x->name, x->trigger >= 0 ? NISA_ENGINE_DMA : x->engine, x->trigger, x->core};
    sim_cursor_init(&s->cursors[k], p, x->first, own.control.regs, is_loaded, loads_of(record, k), n_assumed, s->arena);
  }
  s->n_lanes = p->n_streams;
  s->lanes = lanes;
  return true;
}

/* The ideal lanes of each core; only one of two cores has a queue to the other. */
static void make_ideal_lanes(struct sim_source *s) {
  const int n_cores = s->program->n_cores, n = n_cores > 1 ? LANES : PEER;
  struct sim_lane *lanes = arena_new_array(s->arena, struct sim_lane, (size_t)(n_cores * n));
  for (int core = 0; core < n_cores; core++)
    for (int k = 0; k < n; k++) {
      struct sim_lane *x = &lanes[core * n + k];
      *x = ideal_lanes[k];
      x->core = core;
      x->trigger += x->trigger < 0 ? 0 : core * n;
      x->name = n_cores > 1 ? arena_printf(s->arena, "core%d.%s", core, x->name) : x->name;
    }
  s->n_lanes = n_cores * n;
  s->lanes = lanes;
}

/* A program that is one sequence, or one per core. */
static bool take_sequences(struct sim_source *s, const struct sim_record *record, const bool *is_loaded, int *n_assumed,
                           struct sim_fault *fault) {
  const struct sim_program *p = s->program;
  struct sim_cursor own;
  if (p->n_streams && !run_own_code(s, &own, is_loaded, n_assumed, fault))
    return false;
  s->is_ideal = true;
  make_ideal_lanes(s);
  s->dealers = arena_new_array(s->arena, struct dealer, (size_t)p->n_cores);
  for (int core = 0; core < p->n_cores; core++) {
    struct dealer *d = &s->dealers[core];
    d->first_lane = core * s->n_lanes / p->n_cores;
    d->accesses = arena_new_array(s->arena, struct accesses, (size_t)p->n_buffers + 1);
    sim_cursor_init(&d->cursor, p, p->n_streams ? p->streams[core].first : 0,
                    p->n_streams ? own.control.regs : p->initial, is_loaded, loads_of(record, core), n_assumed,
                    s->arena);
  }
  return true;
}

struct sim_source *sim_source_new(const struct sim_program *p, const struct sim_record *record, int items_max,
                                  const struct time_limit *limit, struct arena *a, int *n_assumed,
                                  struct sim_fault *fault) {
  struct sim_source *s = arena_new(a, struct sim_source);
  const bool *is_loaded = sim_cursor_loaded(p, a);
  *s = (struct sim_source){.program = p, .arena = a, .items_max = items_max, .limit = *limit};
  const bool is_ok = p->has_engines ? take_streams(s, record, is_loaded, n_assumed, fault)
                                    : take_sequences(s, record, is_loaded, n_assumed, fault);
  return is_ok ? s : NULL;
}

const struct sim_lane *sim_source_lanes(const struct sim_source *s, int *n) {
  *n = s->n_lanes;
  return s->lanes;
}

bool sim_source_signals(const struct sim_source *s, int instr) {
  return s->is_ideal || s->program->instrs[instr].signals;
}

int64_t sim_source_copies(const struct sim_program *p, int buffer) {
  const struct sim_buffer *b = &p->buffers[buffer];
  if (b->place.is_set || p->has_engines || b->place.copies > 1)
    return b->place.copies > 0 ? b->place.copies : 1;
  if (b->space != MEM_SBUF)
    return b->space == MEM_PSUM ? IDEAL_BANKS : IDEAL_COPIES;
  const int64_t row = b->rank && b->dims[0] > 0 ? b->bytes / b->dims[0] : b->bytes;
  const int64_t fit = row ? IDEAL_BYTES / row : IDEAL_MOST;
  return fit < 2 ? 2 : fit > IDEAL_MOST ? IDEAL_MOST : fit;
}

/* ---- the ideal schedule ------------------------------------------------------------------------------------------ */

static void keep(struct sim_source *s, struct dealer *d, int lane, const struct sim_item *item) {
  const size_t unused = (size_t)(NISA_OPERANDS_MAX - item->n_regions) * sizeof *item->regions;
  struct kept *k = arena_alloc(s->arena, sizeof *k - unused);
  memcpy(&k->item, item, sizeof *item - unused);
  if (d->last[lane])
    d->last[lane]->next = k;
  else
    d->first[lane] = k;
  d->last[lane] = k;
}

static bool covers(const struct sim_region *x, const struct sim_region *y) {
  return x->row0 <= y->row0 && y->row1 <= x->row1 && x->column0 <= y->column0 && y->column1 <= x->column1;
}

/* Notes what the region must wait for in latest[lane], the count of each lane, and adds it to the accesses. */
static void order(struct sim_source *s, struct dealer *d, const struct sim_region *r, int lane, int *latest) {
  struct accesses *list = &d->accesses[r->buffer];
  const int64_t copies = sim_source_copies(s->program, r->buffer);
  int kept = 0;
  for (int k = 0; k < list->n; k++) {
    const struct access *x = &list->v[k];
    const bool overlaps = sim_region_overlaps(&x->region, r, copies);
    const bool is_own = x->lane == lane && x->count == d->count[lane]; /* another operand of the same instruction */
    if (overlaps && !is_own && (x->region.writes || r->writes) && latest[x->lane] < x->count)
      latest[x->lane] = x->count;
    /* what is ordered before this access need not be looked at again */
    const bool is_implied =
        overlaps && !is_own && covers(r, &x->region) && (r->writes || (!x->region.writes && x->lane == lane));
    if (!is_implied)
      list->v[kept++] = *x;
  }
  list->n = kept;
  array_push(s->arena, list, (struct access){*r, lane, d->count[lane]});
}

static int queue_of(const struct sim_program *p, const struct sim_instr *i) {
  if (i->kind >= NISA_ALL_GATHER && i->kind <= NISA_COLLECTIVE_PERMUTE)
    return EXCHANGES;
  if (i->kind == NISA_SENDRECV)
    return PEER;
  const struct sim_operand *dst = &i->operand[0], *src = &i->operand[1];
  if (dst->type != src->type)
    return CASTS;
  const bool from_chip = src->buffer >= 0 && mem_is_on_chip(p->buffers[src->buffer].space);
  const bool to_chip = dst->buffer >= 0 && mem_is_on_chip(p->buffers[dst->buffer].space);
  return from_chip && !to_chip ? STORES : LOADS;
}

static int lane_of(const struct sim_program *p, const struct sim_instr *i) {
  switch (i->engine) {
  case NISA_ENGINE_TENSOR:
    return TENSOR;
  case NISA_ENGINE_VECTOR:
    return VECTOR;
  case NISA_ENGINE_SCALAR:
    return SCALAR;
  case NISA_ENGINE_GPSIMD:
    return GPSIMD;
  case NISA_ENGINE_DMA:
    return queue_of(p, i);
  default:
    return SYNC;
  }
}

static void add_waits(const struct dealer *d, struct sim_item *item, const int *latest, int without) {
  for (int k = 0; k < LANES; k++)
    if (latest[k] && k != without) {
      item->waits[item->n_waits].stream = d->first_lane + k;
      item->waits[item->n_waits++].count = latest[k];
    }
}

static bool may_deal(struct sim_source *s, struct sim_fault *fault) {
  const bool is_late = ++s->dealt % LOOK_EVERY == 0 && time_is_up(&s->limit);
  if (s->dealt <= s->items_max && !is_late)
    return true;
  *fault = (struct sim_fault){.kind = SIM_FAULT_TIME};
  snprintf(fault->text, sizeof fault->text, "%s", is_late ? "its time was up" : "it executes too many instructions");
  return false;
}

/* All lanes meet, and their semaphores become 0. */
static void deal_barrier(struct sim_source *s, struct dealer *d, bool of_all_cores) {
  const struct sim_item barrier = {.kind = SIM_ITEM_BARRIER, .instr = -1, .queue = -1, .of_all_cores = of_all_cores};
  for (int k = 0; k < LANES; k++)
    keep(s, d, k, &barrier);
  memset(d->count, 0, sizeof d->count);
  for (int k = 0; k < s->program->n_buffers; k++)
    d->accesses[k].n = 0;
}

/* Gives the next instruction of the sequence to its lane. */
static bool deal(struct sim_source *s, struct dealer *d, struct sim_fault *fault) {
  struct sim_item item;
  int latest[LANES] = {0};
  if (!may_deal(s, fault) || !sim_cursor_next(&d->cursor, &item, fault))
    return false;
  if (item.kind == SIM_ITEM_END) {
    d->is_at_end = true;
    return true;
  }
  if (item.kind == SIM_ITEM_BARRIER) {
    deal_barrier(s, d, item.of_all_cores);
    return true;
  }
  assert(item.kind == SIM_ITEM_INSTR);
  const struct sim_instr *i = &s->program->instrs[item.instr];
  const int lane = lane_of(s->program, i), trigger = ideal_lanes[lane].trigger;
  d->count[lane]++;
  for (int k = 0; k < item.n_regions; k++)
    order(s, d, &item.regions[k], lane, latest);
  if (trigger >= 0) {
    struct sim_item start = {
        .kind = SIM_ITEM_TRIGGER, .instr = -1, .queue = d->first_lane + lane, .n_branches = item.n_branches};
    add_waits(d, &start, latest, -1);
    item.n_branches = 0;
    keep(s, d, trigger, &start);
  } else {
    add_waits(d, &item, latest, lane); /* the engine itself orders its own */
  }
  keep(s, d, lane, &item);
  if (i->result >= 0) /* all engines branch on what was loaded */
    deal_barrier(s, d, false);
  return true;
}

/* The next item of a stream.  A queue loads registers for its own control; that is no transfer, and takes no time. */
static bool next_of_stream(struct sim_source *s, int lane, struct sim_item *item, struct sim_fault *fault) {
  do {
    if (!sim_cursor_next(&s->cursors[lane], item, fault))
      return false;
  } while (s->lanes[lane].trigger >= 0 && item->kind == SIM_ITEM_INSTR &&
           s->program->instrs[item->instr].kind == NISA_REGISTER_LOAD);
  return true;
}

bool sim_source_next(struct sim_source *s, int lane, struct sim_item *item, struct sim_fault *fault) {
  if (!s->is_ideal)
    return next_of_stream(s, lane, item, fault);
  struct dealer *d = &s->dealers[s->lanes[lane].core];
  lane -= d->first_lane;
  while (!d->first[lane] && !d->is_at_end)
    if (!deal(s, d, fault))
      return false;
  struct kept *k = d->first[lane];
  if (!k) {
    *item = (struct sim_item){.kind = SIM_ITEM_END, .instr = -1, .queue = -1};
    return true;
  }
  memcpy(item, &k->item, sizeof *item - (size_t)(NISA_OPERANDS_MAX - k->item.n_regions) * sizeof *item->regions);
  d->first[lane] = k->next;
  if (!k->next)
    d->last[lane] = NULL;
  return true;
}
