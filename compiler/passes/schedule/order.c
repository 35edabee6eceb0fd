/* order: the order of a body's steps.  See overlap.c.
 *
 * A step waits for those before it that use a buffer of its own if one of the two writes it.  Of the steps that need not wait any
 * longer, the one is taken that can begin first, when its engines are free and its operands are there; if several can begin
 * within some time, the one after which the longest chain of steps waits.  What waits for nothing and only fills a
 * buffer, by a transfer or with a constant, takes no part in that: it comes before the first step that reads it. */
#include <string.h>

#include "base/array.h"
#include "passes/schedule/overlap.h"

struct node {
  int step;
  bool is_early; /* it waits for nothing and only fills a buffer */
  bool is_done;
  double end, takes, height; /* height: until the end of the longest chain of steps that wait for it */
};

struct graph {
  const struct overlap *o;
  const struct round_step *steps;
  int n;
  double share;   /* of starting loads (lib/round.h), in a program; 0 in a loop, in which loads run ahead */
  struct node *v; /* in an order that is right: the middle, the first part of the next round, the end */
  bool *waits;    /* [i * n + k]: node i for node k */
};

static double takes_of(const struct round_step *s) {
  double longest = 0;
  for (int e = 0; e < NISA_ENGINE_COUNT; e++)
    longest = s->load.on[e] > longest ? s->load.on[e] : longest;
  return longest + round_delay_ns(s->load.on[NISA_ENGINE_DMA] > 0      ? NISA_ENGINE_DMA
                                  : s->load.on[NISA_ENGINE_TENSOR] > 0 ? NISA_ENGINE_TENSOR
                                                                       : NISA_ENGINE_VECTOR);
}

static const struct item *item_of(const struct graph *g, int i) {
  return &g->o->items.v[g->o->of_step[g->v[i].step]];
}

static bool meet(const struct overlap *o, const struct item *x, const struct item *y) {
  for (int i = x->first_use; i < x->first_use + x->n_uses; i++)
    for (int k = y->first_use; k < y->first_use + y->n_uses; k++)
      if (o->uses.v[i].buffer == o->uses.v[k].buffer && (o->uses.v[i].writes || o->uses.v[k].writes))
        return true;
  return false;
}

/* The height, in the next round, of what reads there what the first part wrote. */
static double height_in_next(const struct graph *g, int i) {
  const struct item *x = item_of(g, i);
  double height = 0;

  for (int k = x->first_use; k < x->first_use + x->n_uses; k++) {
    const struct use *u = &g->o->uses.v[k];
    if (x->part != FIRST || !u->writes || !g->o->buffers.v[u->buffer].is_crossing)
      continue;
    for (int n = 0; n < g->n; n++) {
      const struct item *y = item_of(g, n);
      for (int j = y->first_use; y->part == MIDDLE && j < y->first_use + y->n_uses; j++)
        if (g->o->uses.v[j].buffer == u->buffer && g->v[n].height > height)
          height = g->v[n].height;
    }
  }
  return height;
}

static double share_of(const struct overlap *o, const struct round_step *steps) {
  struct round_load total = {{0}};
  for (int s = 0; s < o->n_steps; s++)
    total.on[NISA_ENGINE_SCALAR] += steps[s].load.on[NISA_ENGINE_SCALAR];
  return ir_is(o->parent, "scf.for") ? 0 : round_share_of_loads(&total);
}

static struct graph read_graph(const struct overlap *o, const struct round_step *steps, double next_weight) {
  static const enum part order[] = {MIDDLE, FIRST, END};
  struct arena *a = o->run->arena;
  const size_t n = (size_t)o->n_steps;
  struct graph g = {
      o, steps, 0, share_of(o, steps), arena_new_array(a, struct node, n + 1), arena_new_array(a, bool, n *n + 1)};

  for (int p = 0; p < PARTS; p++)
    for (int s = 0; s < o->n_steps; s++)
      if (o->items.v[o->of_step[s]].part == order[p])
        g.v[g.n++] = (struct node){.step = s, .takes = takes_of(&steps[s])};
  for (int i = 0; i < g.n; i++) {
    bool waits = false;
    for (int k = 0; k < i; k++)
      waits |= g.waits[i * g.n + k] = meet(o, item_of(&g, i), item_of(&g, k));
    g.v[i].is_early = !waits && item_of(&g, i)->is_fill;
  }
  for (int round = 0; round < 2; round++)
    for (int i = g.n - 1; i >= 0; i--) {
      double after = round ? height_in_next(&g, i) * next_weight : 0;
      for (int k = i + 1; k < g.n; k++)
        if (g.waits[k * g.n + i] && g.v[k].height > after)
          after = g.v[k].height;
      g.v[i].height = after + g.v[i].takes;
    }
  return g;
}

/* When node i can begin; -1: it was taken, or has to wait for one that was not. */
static double begin_of(const struct graph *g, int i, const double *lanes) {
  const struct round_step *s = &g->steps[g->v[i].step];
  double at = 0, started = lanes[NISA_ENGINE_SYNC];

  if (g->v[i].is_done || g->v[i].is_early)
    return -1;
  for (int k = 0; k < i; k++) {
    if (!g->waits[i * g->n + k] || (g->v[k].is_early && !g->share))
      continue;
    if (g->v[k].is_early && !g->v[k].is_done) {
      started += g->steps[g->v[k].step].trigger[NISA_ENGINE_SYNC] * g->share;
      at = started + g->v[k].takes > at ? started + g->v[k].takes : at;
      continue;
    }
    if (!g->v[k].is_done)
      return -1;
    at = g->v[k].end > at ? g->v[k].end : at;
  }
  for (int e = 0; e < NISA_ENGINE_COUNT; e++)
    if (e != NISA_ENGINE_DMA && s->load.on[e] > 0 && lanes[e] > at && (e == NISA_ENGINE_TENSOR || !round_is_product(s)))
      at = lanes[e];
  return at;
}

static int choose(const struct graph *g, const double *lanes, double patience, double *begin) {
  double least = -1;
  int best = -1;

  for (int i = 0; i < g->n; i++) {
    const double at = begin_of(g, i, lanes);
    if (at >= 0 && (least < 0 || at < least))
      least = at;
  }
  for (int i = 0; i < g->n; i++) {
    const double at = begin_of(g, i, lanes);
    if (at < 0 || at > least + patience || (best >= 0 && g->v[i].height <= g->v[best].height))
      continue;
    best = i;
    *begin = at;
  }
  return best;
}

/* Bytes of the buffers in the body with which step number n in the order begins (at the end: ends), once each. */
static void add_alive(const struct overlap *o, const struct item *x, const int *at, int n, int64_t by, int64_t *alive) {
  for (int k = x->first_use; k < x->first_use + x->n_uses; k++) {
    const struct buffer *b = &o->buffers.v[o->uses.v[k].buffer];
    bool is_again = false;
    for (int i = x->first_use; i < k; i++)
      is_again |= o->uses.v[i].buffer == o->uses.v[k].buffer;
    if (b->is_own && !b->is_crossing && !is_again && at[o->uses.v[k].buffer] == n)
      alive[b->space == MEM_PSUM] += by * b->bytes;
  }
}

/* True if what is alive at once takes at most a `part`th of the memories. */
static bool fits(const struct overlap *o, const int *order, int part) {
  const struct nisa_machine *m = nisa_machine(o->run->target);
  struct arena *a = o->run->arena;
  int *first = arena_new_array(a, int, (size_t)o->buffers.n + 1),
      *last = arena_new_array(a, int, (size_t)o->buffers.n + 1);
  int64_t alive[2] = {o->around[0], o->around[1]};

  for (int k = 0; k < o->buffers.n; k++) {
    first[k] = -1;
    if (o->buffers.v[k].is_crossing)
      alive[o->buffers.v[k].space == MEM_PSUM] += o->buffers.v[k].bytes;
  }
  for (int n = 0; n < o->n_steps; n++) {
    const struct item *x = &o->items.v[o->of_step[order[n]]];
    for (int k = x->first_use; k < x->first_use + x->n_uses; k++) {
      const int buffer = o->uses.v[k].buffer;
      first[buffer] = first[buffer] < 0 ? n : first[buffer];
      last[buffer] = n;
    }
  }
  for (int n = 0; n < o->n_steps; n++) {
    const struct item *x = &o->items.v[o->of_step[order[n]]];
    add_alive(o, x, first, n, 1, alive);
    if (alive[0] + x->inside[0] > m->sbuf_bytes / part || alive[1] + x->inside[1] > m->psum_bytes)
      return false;
    add_alive(o, x, last, n, -1, alive);
  }
  return true;
}

/* In a program, the loads that wait for nothing come first, in the order in which they are needed, if they leave half of SBUF: an engine that
 * starts stores, which wait for their data, would otherwise start these loads after them. */
static void prefetch(const struct graph *g, int *order) {
  const struct overlap *o = g->o;
  int *first = arena_new_array(o->run->arena, int, (size_t)o->n_steps + 1), n = 0;
  bool *is_load = arena_new_array(o->run->arena, bool, (size_t)o->n_steps + 1);

  for (int i = 0; i < g->n; i++)
    is_load[g->v[i].step] = g->v[i].is_early && g->steps[g->v[i].step].trigger[NISA_ENGINE_SYNC] > 0;
  for (int loads = 1; loads >= 0; loads--)
    for (int k = 0; k < o->n_steps; k++)
      if (is_load[order[k]] == loads)
        first[n++] = order[k];
  if (g->share > 0 && fits(o, first, 2))
    memcpy(order, first, (size_t)o->n_steps * sizeof *order);
}

bool overlap_order(const struct overlap *o, const struct round_step *steps, struct overlap_taste t, bool prefetches,
                   int *order) {
  struct graph g = read_graph(o, steps, t.next);
  double lanes[NISA_ENGINE_COUNT] = {0}, begin = 0;
  int n = 0;

  for (int i; i = choose(&g, lanes, t.patience, &begin), i >= 0;) {
    const struct round_step *s = &steps[g.v[i].step];
    for (int k = 0; k < i; k++)
      if (g.waits[i * g.n + k] && g.v[k].is_early && !g.v[k].is_done) {
        g.v[k].is_done = true;
        lanes[NISA_ENGINE_SYNC] += steps[g.v[k].step].trigger[NISA_ENGINE_SYNC] * g.share;
        g.v[k].end = lanes[NISA_ENGINE_SYNC] + g.v[k].takes;
        order[n++] = g.v[k].step;
      }
    g.v[i].is_done = true;
    g.v[i].end = round_is_product(s) ? round_play_product(s, begin, lanes) + round_delay_ns(NISA_ENGINE_TENSOR)
                                     : begin + g.v[i].takes;
    order[n++] = g.v[i].step;
    for (int e = 0; e < NISA_ENGINE_COUNT && !round_is_product(s); e++)
      if (s->load.on[e] > 0)
        lanes[e] = begin + s->load.on[e];
  }
  for (int i = 0; i < g.n; i++)
    if (!g.v[i].is_done)
      order[n++] = g.v[i].step;
  if (n != o->n_steps || !fits(o, order, 1))
    return false;
  if (prefetches)
    prefetch(&g, order);
  return true;
}
