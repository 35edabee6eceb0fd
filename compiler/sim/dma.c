#include "sim/dma.h"

#include <assert.h>

#include "base/array.h"
#include "nisa/cores.h"

void sim_dma_init(struct sim_dma *d, int n_queues, enum target t, struct arena *a) {
  *d = (struct sim_dma){.arena = a,
                        .target = t,
                        .fed = sim_constant(SIM_HBM_STACK, t) * 100 / sim_constant(SIM_DMA_CAP, t),
                        .n_queues = n_queues,
                        .next = INT64_MAX,
                        .queues = arena_new_array(a, struct sim_dma_queue, (size_t)n_queues + 1)};
}

void sim_dma_add(struct sim_dma *d, int queue, struct sim_transfer x) {
  struct sim_dma_queue *q = &d->queues[queue];
  if (q->transfers.n && x.arrival < q->transfers.v[q->transfers.n - 1].arrival)
    x.arrival = q->transfers.v[q->transfers.n - 1].arrival;
  x.first = -1;
  x.left = SIM_DMA_RINGS;
  array_push(d->arena, &q->transfers, x);
  if (x.arrival < d->next)
    d->next = x.arrival;
}

int64_t sim_dma_next(const struct sim_dma *d) {
  return d->next;
}

static bool is_active(const struct sim_dma_queue *q, int e) {
  return q->ring[e].next < q->arrived;
}

/* By how much the work of a queue's ring takes longer than on an engine of its own: num / den. */
struct share {
  int64_t num, den;
};

/* How many queues each engine serves, and how much slower all are because HBM does not feed them all. */
struct load {
  int n[NISA_CORES][SIM_DMA_RINGS];
  struct share hbm;
};

static struct load find_load(const struct sim_dma *d) {
  struct load x = {.hbm = {1, 1}};
  int64_t busy = 0;
  for (int k = 0; k < d->n_queues; k++)
    for (int e = 0; d->queues[k].transfers.n && e < SIM_DMA_RINGS; e++)
      if (is_active(&d->queues[k], e))
        busy += !x.n[d->queues[k].core][e]++;
  if (busy * 100 > d->fed)
    x.hbm = (struct share){busy * 100, d->fed};
  return x;
}

/* The time that work of `left` takes if nothing changes, rounded up. */
static int64_t time_of(const struct load *x, const struct sim_dma_queue *q, int e, int64_t left) {
  const int64_t num = x->n[q->core][e] * x->hbm.num;
  return (left * num + x->hbm.den - 1) / x->hbm.den;
}

/* The work that is done in this time. */
static int64_t work_in(const struct load *x, const struct sim_dma_queue *q, int e, int64_t ps) {
  return ps * x->hbm.den / (x->n[q->core][e] * x->hbm.num);
}

static int64_t find_next(const struct sim_dma *d) {
  int64_t next = INT64_MAX;
  for (int k = 0; k < d->n_queues; k++) {
    const struct sim_dma_queue *q = &d->queues[k];
    if (q->arrived < q->transfers.n && q->transfers.v[q->arrived].arrival < next)
      next = q->transfers.v[q->arrived].arrival;
  }
  const struct load load = find_load(d);
  for (int k = 0; k < d->n_queues; k++)
    for (int e = 0; d->queues[k].transfers.n && e < SIM_DMA_RINGS; e++) {
      if (!is_active(&d->queues[k], e))
        continue;
      const int64_t end = d->now + time_of(&load, &d->queues[k], e, d->queues[k].ring[e].left);
      next = end < next ? end : next;
    }
  return next;
}

/* Engine e begins with its next transfer of the queue; it passes those of which it has no part. */
static void begin(struct sim_dma *d, struct sim_dma_queue *q, int e) {
  while (is_active(q, e)) {
    struct sim_transfer *x = &q->transfers.v[q->ring[e].next];
    q->ring[e].left = sim_dma_work(x->cost, e);
    if (q->ring[e].left) {
      if (x->first < 0)
        x->first = d->now;
      return;
    }
    x->left--;
    x->last = d->now;
    q->ring[e].next++;
  }
}

void sim_dma_step(struct sim_dma *d) {
  const int64_t to = d->next, passed = to - d->now;
  assert(to < INT64_MAX && passed >= 0);
  const struct load load = find_load(d);
  d->now = to;
  for (int k = 0; k < d->n_queues; k++) {
    struct sim_dma_queue *q = &d->queues[k];
    for (int e = 0; q->transfers.n && e < SIM_DMA_RINGS; e++) {
      if (!is_active(q, e))
        continue;
      q->ring[e].left -= work_in(&load, q, e, passed);
      if (q->ring[e].left > 0)
        continue;
      struct sim_transfer *x = &q->transfers.v[q->ring[e].next++];
      x->left--;
      x->last = to;
      begin(d, q, e);
    }
    while (q->arrived < q->transfers.n && q->transfers.v[q->arrived].arrival <= to) {
      const int x = q->arrived++;
      for (int e = 0; e < SIM_DMA_RINGS; e++)
        if (q->ring[e].next == x)
          begin(d, q, e);
    }
  }
  d->next = find_next(d);
}

const struct sim_transfer *sim_dma_take(struct sim_dma *d, int *queue, int64_t *end) {
  for (int k = 0; k < d->n_queues; k++) {
    struct sim_dma_queue *q = &d->queues[k];
    if (q->complete >= q->transfers.n || q->transfers.v[q->complete].left)
      continue;
    struct sim_transfer *x = &q->transfers.v[q->complete];
    if (x->first < 0)
      x->first = x->arrival;
    const int64_t supplied = x->first + x->supply;
    *end = (x->last > supplied ? x->last : supplied) + sim_constant_ps(SIM_DMA_END, d->target);
    *end = q->last_end = *end > q->last_end ? *end : q->last_end;
    *queue = k;
    q->complete++;
    return x;
  }
  return NULL;
}
