/* occupancy: what SBUF and PSUM hold over time.
 *
 * A buffer counts from its first access to its last one.  Buffers that take turns in one place, such as two of a loop's body
 * that are never in use at the same time, have lives that overlap over all rounds, so places count, not buffers: a byte is
 * in use if any buffer that lies there is alive.  Buffers without a place count each.
 */
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
  /* The bytes of a partition at which places begin or end, and banks, in order; between cut k and the next one are
   * held[part * n_cuts + k] buffers alive.  PSUM has only one part here, because its parts are other bytes. */
  int64_t *cuts;
  int n_cuts, *held;
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

/* The first byte of a partition that the buffer's copy has. */
static int64_t begin_of(const struct state *s, const struct sim_buffer *b, int64_t instance) {
  const struct sim_place *x = &b->place;
  const int64_t copy = x->copies > 1 ? instance % x->copies : 0;
  return (s->space == MEM_PSUM ? x->bank * s->bank_bytes : 0) + x->offset + copy * x->stride;
}

static int by_value(const void *x, const void *y) {
  const int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
  return (a > b) - (a < b);
}

static void find_cuts(struct state *s, const struct sim_occupancy *o, struct arena *a) {
  const struct sim_timeline *t = s->timeline;
  s->cuts = arena_new_array(a, int64_t, 2 * (size_t)t->n_lives + PARTS + 1);
  int n = 0;
  for (int k = 0; s->space == MEM_PSUM && k <= PARTS; k++)
    s->cuts[n++] = k * s->bank_bytes;
  for (int k = 0; k < t->n_lives; k++) {
    const struct sim_buffer *b = &t->program->buffers[t->lives[k].buffer];
    if (!is_in(b, o) || !b->place.is_set)
      continue;
    s->cuts[n++] = begin_of(s, b, t->lives[k].instance);
    s->cuts[n] = s->cuts[n - 1] + row_bytes(b);
    n++;
  }
  if (n)
    qsort(s->cuts, (size_t)n, sizeof *s->cuts, by_value);
  for (int k = 0; k < n; k++)
    if (!s->n_cuts || s->cuts[s->n_cuts - 1] != s->cuts[k])
      s->cuts[s->n_cuts++] = s->cuts[k];
  const size_t size = (size_t)s->n_cuts * PARTS;
  s->held = arena_new_array(a, int, size + 1);
  memset(s->held, 0, size * sizeof *s->held);
}

/* The number of bytes from cut k to the next one, if the buffer is the first to hold them or was the last one; else 0. */
static int64_t hold(struct state *s, int part, int k, int sign) {
  int *held = &s->held[part * s->n_cuts + k];
  const bool was_held = *held > 0;
  *held += sign;
  return was_held == (*held > 0) ? 0 : s->cuts[k + 1] - s->cuts[k];
}

static void apply_placed(struct state *s, const struct sim_life *life, int sign) {
  const struct sim_buffer *b = &s->timeline->program->buffers[life->buffer];
  const int64_t first = b->place.partition, n = b->rank ? b->dims[0] : 1, begin = begin_of(s, b, life->instance);
  const int64_t *at = bsearch(&begin, s->cuts, (size_t)s->n_cuts, sizeof *s->cuts, by_value);
  for (int k = (int)(at - s->cuts); s->cuts[k] < begin + row_bytes(b); k++)
    if (s->space == MEM_PSUM) {
      const int64_t bytes = sign * hold(s, 0, k, sign), bank = s->cuts[k] / s->bank_bytes;
      s->total += bytes;
      if (bank >= 0 && bank < PARTS)
        s->part[bank] += bytes;
    } else {
      for (int p = 0; p < PARTS; p++)
        if (first < (p + 1) * GROUP && first + n > p * GROUP)
          s->part[p] += sign * hold(s, p, k, sign);
    }
}

static void apply(struct state *s, const struct sim_life *life, int sign) {
  const struct sim_buffer *b = &s->timeline->program->buffers[life->buffer];
  if (b->place.is_set)
    apply_placed(s, life, sign);
  else if (s->space == MEM_PSUM)
    s->total += sign * row_bytes(b);
  else
    for (int p = 0; p < PARTS && p * GROUP < (b->rank ? b->dims[0] : 1); p++)
      s->part[p] += sign * row_bytes(b);
  if (s->space == MEM_PSUM)
    return;
  s->total = 0;
  for (int p = 0; p < PARTS; p++)
    s->total = s->part[p] > s->total ? s->part[p] : s->total;
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
  find_cuts(&s, out, a);
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
