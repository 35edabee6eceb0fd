/* occupancy: what SBUF and PSUM hold over time. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "sim/profile_internal.h"

enum { PARTS = 8, POINTS_MAX = 512, ALIVE_MAX = 64, SHOWN_MAX = 2048, GROUP = NISA_PARTITIONS / PARTS };

struct change {
  int64_t ps;
  int life;
  bool begins;
};

struct state {
  const struct sim_timeline *timeline;
  enum mem_space space;
  int64_t bank_bytes;
  int64_t total, part[PARTS];
};

static int by_time(const void *x, const void *y) {
  const struct change *a = x, *b = y;
  if (a->ps != b->ps)
    return a->ps < b->ps ? -1 : 1;
  if (a->begins != b->begins)
    return a->begins ? 1 : -1; /* memory that is given back at a moment is free for who takes it then */
  return (a->life > b->life) - (a->life < b->life);
}

static bool is_in(const struct sim_buffer *b, const struct sim_occupancy *o) {
  return b->space == o->space && b->core == o->core;
}

static int64_t row_bytes(const struct sim_buffer *b) {
  return b->rank && b->dims[0] > 0 ? b->bytes / b->dims[0] : b->bytes;
}

/* Adds a buffer's bytes to the banks in which its copy lies. */
static void add_to_banks(struct state *s, const struct sim_buffer *b, int64_t instance, int64_t sign) {
  const struct sim_place *x = &b->place;
  const int64_t copy = x->copies > 1 ? instance % x->copies : 0;
  int64_t at = x->bank * s->bank_bytes + x->offset + copy * x->stride;
  for (int64_t left = row_bytes(b); x->is_set && left > 0;) {
    const int64_t here = s->bank_bytes - at % s->bank_bytes < left ? s->bank_bytes - at % s->bank_bytes : left;
    const int64_t bank = at / s->bank_bytes;
    if (bank >= 0 && bank < PARTS)
      s->part[bank] += sign * here;
    at += here;
    left -= here;
  }
}

static void apply(struct state *s, const struct sim_life *life, int64_t sign) {
  const struct sim_buffer *b = &s->timeline->program->buffers[life->buffer];
  if (s->space == MEM_PSUM) {
    s->total += sign * row_bytes(b);
    add_to_banks(s, b, life->instance, sign);
    return;
  }
  const int64_t first = b->place.is_set ? b->place.partition : 0, n = b->rank ? b->dims[0] : 1;
  s->total = 0;
  for (int k = 0; k < PARTS; k++) {
    if (first < (k + 1) * GROUP && first + n > k * GROUP)
      s->part[k] += sign * row_bytes(b);
    s->total = s->part[k] > s->total ? s->part[k] : s->total;
  }
}

struct alive {
  int64_t bytes;
  const struct sim_life *life;
};

static int by_size(const void *x, const void *y) {
  const struct alive *a = x, *b = y;
  if (a->bytes != b->bytes)
    return a->bytes > b->bytes ? -1 : 1;
  if (a->life->buffer != b->life->buffer)
    return a->life->buffer > b->life->buffer ? 1 : -1;
  return (a->life->instance > b->life->instance) - (a->life->instance < b->life->instance);
}

/* What is in use at the peak, the largest first. */
static void find_alive(const struct sim_timeline *t, struct arena *a, struct sim_occupancy *out) {
  struct {
    struct alive *v;
    int n, cap;
  } alive = {0};
  for (int k = 0; k < t->n_lives; k++) {
    const struct sim_life *x = &t->lives[k];
    const struct sim_buffer *b = &t->program->buffers[x->buffer];
    if (is_in(b, out) && x->from <= out->peak_ps && out->peak_ps < x->to)
      array_push(a, &alive, (struct alive){row_bytes(b), x});
  }
  if (alive.n)
    qsort(alive.v, (size_t)alive.n, sizeof *alive.v, by_size);
  out->n_alive = alive.n < ALIVE_MAX ? alive.n : ALIVE_MAX;
  out->alive = arena_new_array(a, const struct sim_life *, (size_t)out->n_alive + 1);
  for (int k = 0; k < out->n_alive; k++)
    out->alive[k] = alive.v[k].life;
}

struct area {
  double bytes_ps;
  const struct sim_life *life;
};

static int by_area(const void *x, const void *y) {
  const struct area *a = x, *b = y;
  if (a->bytes_ps != b->bytes_ps)
    return a->bytes_ps > b->bytes_ps ? -1 : 1;
  return (a->life > b->life) - (a->life < b->life);
}

static int by_start(const void *x, const void *y) {
  const struct sim_shown *a = x, *b = y;
  if (a->life->from != b->life->from)
    return a->life->from < b->life->from ? -1 : 1;
  return (a->life > b->life) - (a->life < b->life);
}

/* Lists the buffers of the shown lives, each once. */
static void find_buffers(const struct sim_timeline *t, struct arena *a, struct sim_shown *shown,
                         struct sim_occupancy *out) {
  const size_t n = (size_t)t->program->n_buffers;
  int *number = arena_new_array(a, int, n + 1), *buffers = arena_new_array(a, int, n + 1);
  for (size_t k = 0; k < n; k++)
    number[k] = -1;
  for (int k = 0; k < out->n_shown; k++) {
    const int buffer = shown[k].life->buffer;
    if (number[buffer] < 0) {
      number[buffer] = out->n_buffers;
      buffers[out->n_buffers++] = buffer;
    }
    shown[k].buffer = number[buffer];
  }
  out->buffers = buffers;
}

/* The lives that fill most of the picture of memory over time. */
static void find_shown(const struct sim_timeline *t, struct arena *a, struct sim_occupancy *out) {
  struct {
    struct area *v;
    int n, cap;
  } areas = {0};
  for (int k = 0; k < t->n_lives; k++) {
    const struct sim_life *x = &t->lives[k];
    const struct sim_buffer *b = &t->program->buffers[x->buffer];
    if (is_in(b, out))
      array_push(a, &areas, (struct area){(double)row_bytes(b) * (double)(x->to - x->from), x});
  }
  if (areas.n)
    qsort(areas.v, (size_t)areas.n, sizeof *areas.v, by_area);
  out->n_lives = areas.n;
  out->n_shown = areas.n < SHOWN_MAX ? areas.n : SHOWN_MAX;
  struct sim_shown *shown = arena_new_array(a, struct sim_shown, (size_t)out->n_shown + 1);
  for (int k = 0; k < out->n_shown; k++)
    shown[k].life = areas.v[k].life;
  qsort(shown, (size_t)out->n_shown, sizeof *shown, by_start);
  find_buffers(t, a, shown, out);
  out->shown = shown;
}

void sim_occupancy_make(const struct sim_timeline *t, enum mem_space space, int core, struct arena *a,
                        struct sim_occupancy *out) {
  const struct nisa_machine *machine = nisa_machine(t->target);
  struct state s = {.timeline = t, .space = space, .bank_bytes = machine->psum_bank_bytes};
  struct {
    struct change *v;
    int n, cap;
  } changes = {0};
  struct {
    struct sim_point *v;
    int n, cap;
  } points = {0};
  *out = (struct sim_occupancy){.space = space,
                                .core = core,
                                .capacity = space == MEM_PSUM ? machine->psum_bytes : machine->sbuf_bytes,
                                .has_places = true};
  for (int k = 0; k < t->n_lives; k++) {
    const struct sim_buffer *b = &t->program->buffers[t->lives[k].buffer];
    if (!is_in(b, out))
      continue;
    out->has_places &= b->place.is_set;
    array_push(a, &changes, (struct change){t->lives[k].from, k, true});
    array_push(a, &changes, (struct change){t->lives[k].to, k, false});
  }
  if (changes.n)
    qsort(changes.v, (size_t)changes.n, sizeof *changes.v, by_time);
  const int64_t bin = t->total_ps / POINTS_MAX + 1;
  for (int k = 0; k < changes.n; k++) {
    apply(&s, &t->lives[changes.v[k].life], changes.v[k].begins ? 1 : -1);
    if (k + 1 < changes.n && changes.v[k + 1].ps == changes.v[k].ps)
      continue;
    if (s.total > out->peak_bytes) {
      out->peak_bytes = s.total;
      out->peak_ps = changes.v[k].ps;
    }
    struct sim_point x = {.ps = changes.v[k].ps, .bytes = s.total};
    memcpy(x.part, s.part, sizeof x.part);
    struct sim_point *last = points.n ? &points.v[points.n - 1] : NULL;
    if (!last || last->ps / bin != x.ps / bin)
      array_push(a, &points, x);
    else if (x.bytes > last->bytes || k + 1 == changes.n)
      *last = x; /* of a bin the fullest moment counts; the last one is when all is free again */
  }
  out->n_points = points.n;
  out->points = points.v;
  find_alive(t, a, out);
  find_shown(t, a, out);
}
