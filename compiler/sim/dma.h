/* dma: the DMA engines of one or two cores while a timeline is made.
 *
 * Each of the 16 engines has a ring per queue.  It serves the rings that have work by turns, descriptor by descriptor, so
 * that each gets an equal part of its time; the transfers of one ring are served in order.  A transfer is complete when
 * all engines have done their part and its descriptors could be supplied, and not before the one before it in its queue.
 *
 * Each core has 16 engines of its own.  Two cores share a stack of HBM: when more engines are busy than it can feed, all of
 * them are slower by the same factor.
 */
#ifndef SIM_DMA_H
#define SIM_DMA_H

#include "sim/cost.h"

enum { SIM_DMA_RINGS = 16 };

struct sim_transfer {
  int exec; /* of the timeline */
  const struct sim_dma_cost *cost;
  int64_t arrival; /* when its first byte could move */
  int64_t supply;  /* time that its descriptors take at least */
  int64_t first;   /* when its first byte moved; -1: not yet */
  int64_t last;    /* when the last engine was done */
  int left;        /* engines that have not done their part */
};

struct sim_dma_queue {
  int core;
  struct {
    struct sim_transfer *v;
    int n, cap;
  } transfers;
  int arrived, complete; /* transfers */
  int64_t last_end;
  struct {
    int next;     /* the transfer that this engine serves, or will serve next */
    int64_t left; /* of its work, ps */
  } ring[SIM_DMA_RINGS];
};

struct sim_dma {
  struct arena *arena;
  enum target target;
  int64_t fed;  /* engines that HBM feeds at their full rate, in hundredths */
  int n_queues; /* one per lane; those of engines stay empty */
  struct sim_dma_queue *queues;
  int64_t now, next; /* next: when something happens; INT64_MAX: never */
};

void sim_dma_init(struct sim_dma *d, int n_queues, enum target t, struct arena *a);
/* Adds a transfer after those of its queue; its arrival is not before theirs, or it is made so. */
void sim_dma_add(struct sim_dma *d, int queue, struct sim_transfer x);
/* When something happens next: INT64_MAX if nothing does. */
int64_t sim_dma_next(const struct sim_dma *d);
/* Goes to that time.  Then sim_dma_take returns the transfers that have become complete, one by one, with their end; NULL
 * after the last one. */
void sim_dma_step(struct sim_dma *d);
const struct sim_transfer *sim_dma_take(struct sim_dma *d, int *queue, int64_t *end);

#endif
