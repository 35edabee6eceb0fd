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
enum { TENSOR, VECTOR, SCALAR, GPSIMD, SYNC, SYNC_STORES, LOADS, STORES, CASTS, EXCHANGES, LANES };
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

struct sim_source {
  const struct sim_program *program;
  struct arena *arena;
  int n_lanes;
  const struct sim_lane *lanes;
  struct sim_cursor *cursors; /* one per lane; of an ideal schedule one */
  bool is_ideal, is_at_end;
  struct kept *first[LANES], *last[LANES];
  int count[LANES];
  int dealt, items_max;
  struct time_limit limit;
  struct accesses *accesses; /* per buffer */
};

/* ---- construction ------------------------------------------------------------------------------------------------ */

static bool take_streams(struct sim_source *s, const struct sim_record *record, const bool *is_loaded, int *n_assumed,
                         struct sim_fault *fault) {
  const struct sim_program *p = s->program;
  struct sim_cursor own; /* the function's own code, whose registers the streams take over */
  struct sim_item end;
  sim_cursor_init(&own, p, 0, p->initial, is_loaded, NULL, n_assumed, s->arena);
  if (!sim_cursor_next(&own, &end, fault))
    return false;
  if (end.kind != SIM_ITEM_END) {
    *fault = (struct sim_fault){.kind = SIM_FAULT_INSTRUCTION, .text = "an instruction is in no stream"};
    return false;
  }
  struct sim_lane *lanes = arena_new_array(s->arena, struct sim_lane, (size_t)p->n_streams);
  s->cursors = arena_new_array(s->arena, struct sim_cursor, (size_t)p->n_streams);
  for (int k = 0; k < p->n_streams; k++) {
    const struct sim_stream *x = &p->streams[k];
    lanes[k] = (struct sim_lane){x->name, x->trigger >= 0 ? NISA_ENGINE_DMA : x->engine, x->trigger};
    sim_cursor_init(&s->cursors[k], p, x->first, own.control.regs, is_loaded,
                    record && k < record->n_streams ? &record->streams[k] : NULL, n_assumed, s->arena);
  }
  s->n_lanes = p->n_streams;
  s->lanes = lanes;
  return true;
}

static void take_sequence(struct sim_source *s, const struct sim_record *record, const bool *is_loaded,
                          int *n_assumed) {
  s->is_ideal = true;
  s->n_lanes = LANES;
  s->lanes = ideal_lanes;
  s->accesses = arena_new_array(s->arena, struct accesses, (size_t)s->program->n_buffers + 1);
  s->cursors = arena_new(s->arena, struct sim_cursor);
  sim_cursor_init(s->cursors, s->program, 0, s->program->initial, is_loaded,
                  record && record->n_streams ? record->streams : NULL, n_assumed, s->arena);
}

struct sim_source *sim_source_new(const struct sim_program *p, const struct sim_record *record, int items_max,
                                  const struct time_limit *limit, struct arena *a, int *n_assumed, struct sim_fault *fault) {
  struct sim_source *s = arena_new(a, struct sim_source);
  const bool *is_loaded = sim_cursor_loaded(p, a);
  *s = (struct sim_source){.program = p, .arena = a, .items_max = items_max, .limit = *limit};
  if (!p->n_streams)
    take_sequence(s, record, is_loaded, n_assumed);
  else if (!take_streams(s, record, is_loaded, n_assumed, fault))
    return NULL;
  return s;
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
  if (b->place.is_set || p->n_streams || b->place.copies > 1)
    return b->place.copies > 0 ? b->place.copies : 1;
  if (b->space != MEM_SBUF)
    return b->space == MEM_PSUM ? IDEAL_BANKS : IDEAL_COPIES;
  const int64_t row = b->rank && b->dims[0] > 0 ? b->bytes / b->dims[0] : b->bytes;
  const int64_t fit = row ? IDEAL_BYTES / row : IDEAL_MOST;
  return fit < 2 ? 2 : fit > IDEAL_MOST ? IDEAL_MOST : fit;
}

/* ---- the ideal schedule ------------------------------------------------------------------------------------------ */

static void keep(struct sim_source *s, int lane, const struct sim_item *item) {
  const size_t unused = (size_t)(NISA_OPERANDS_MAX - item->n_regions) * sizeof *item->regions;
  struct kept *k = arena_alloc(s->arena, sizeof *k - unused);
  memcpy(&k->item, item, sizeof *item - unused);
  if (s->last[lane])
    s->last[lane]->next = k;
  else
    s->first[lane] = k;
  s->last[lane] = k;
}

static bool covers(const struct sim_region *x, const struct sim_region *y) {
  return x->row0 <= y->row0 && y->row1 <= x->row1 && x->column0 <= y->column0 && y->column1 <= x->column1;
}

/* Notes what the region must wait for in latest[lane], the count of each lane, and adds it to the accesses. */
static void order(struct sim_source *s, const struct sim_region *r, int lane, int *latest) {
  struct accesses *list = &s->accesses[r->buffer];
  const int64_t copies = sim_source_copies(s->program, r->buffer);
  int kept = 0;
  for (int k = 0; k < list->n; k++) {
    const struct access *x = &list->v[k];
    const bool overlaps = sim_region_overlaps(&x->region, r, copies);
    const bool is_own = x->lane == lane && x->count == s->count[lane]; /* another operand of the same instruction */
    if (overlaps && !is_own && (x->region.writes || r->writes) && latest[x->lane] < x->count)
      latest[x->lane] = x->count;
    /* what is ordered before this access need not be looked at again */
    const bool is_implied =
        overlaps && !is_own && covers(r, &x->region) && (r->writes || (!x->region.writes && x->lane == lane));
    if (!is_implied)
      list->v[kept++] = *x;
  }
  list->n = kept;
  array_push(s->arena, list, (struct access){*r, lane, s->count[lane]});
}

static int queue_of(const struct sim_program *p, const struct sim_instr *i) {
  if (i->kind >= NISA_ALL_GATHER && i->kind <= NISA_COLLECTIVE_PERMUTE)
    return EXCHANGES;
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

static void add_waits(struct sim_item *item, const int *latest, int without) {
  for (int k = 0; k < LANES; k++)
    if (latest[k] && k != without) {
      item->waits[item->n_waits].stream = k;
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

/* Gives the next instruction of the sequence to its lane. */
static bool deal(struct sim_source *s, struct sim_fault *fault) {
  struct sim_item item;
  int latest[LANES] = {0};
  if (!may_deal(s, fault) || !sim_cursor_next(s->cursors, &item, fault))
    return false;
  if (item.kind == SIM_ITEM_END) {
    s->is_at_end = true;
    return true;
  }
  assert(item.kind == SIM_ITEM_INSTR);
  const struct sim_instr *i = &s->program->instrs[item.instr];
  const int lane = lane_of(s->program, i), trigger = s->lanes[lane].trigger;
  s->count[lane]++;
  for (int k = 0; k < item.n_regions; k++)
    order(s, &item.regions[k], lane, latest);
  if (trigger >= 0) {
    struct sim_item start = {.kind = SIM_ITEM_TRIGGER, .instr = -1, .queue = lane, .n_branches = item.n_branches};
    add_waits(&start, latest, -1);
    item.n_branches = 0;
    keep(s, trigger, &start);
  } else {
    add_waits(&item, latest, lane); /* the engine itself orders its own */
  }
  keep(s, lane, &item);
  if (i->result >= 0) { /* all engines branch on what was loaded */
    const struct sim_item barrier = {.kind = SIM_ITEM_BARRIER, .instr = -1, .queue = -1};
    for (int k = 0; k < LANES; k++)
      keep(s, k, &barrier);
    memset(s->count, 0, sizeof s->count);
    for (int k = 0; k < s->program->n_buffers; k++)
      s->accesses[k].n = 0;
  }
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
  while (!s->first[lane] && !s->is_at_end)
    if (!deal(s, fault))
      return false;
  struct kept *k = s->first[lane];
  if (!k) {
    *item = (struct sim_item){.kind = SIM_ITEM_END, .instr = -1, .queue = -1};
    return true;
  }
  memcpy(item, &k->item, sizeof *item - (size_t)(NISA_OPERANDS_MAX - k->item.n_regions) * sizeof *item->regions);
  s->first[lane] = k->next;
  if (!k->next)
    s->last[lane] = NULL;
  return true;
}
