/* timeline_meet: where several lanes meet: barriers, and exchanges between cores. */
#include "base/array.h"
#include "sim/timeline_internal.h"

/* ---- exchanges --------------------------------------------------------------------------------------------------- */

void timeline_add_exchange(struct machine *m, int queue, struct sim_transfer x) {
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

/* ---- barriers ---------------------------------------------------------------------------------------------------- */

bool timeline_is_idle(const struct machine *m, int queue) {
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
    if (*is_failed || !timeline_is_idle(m, k) || (l->item.kind != SIM_ITEM_BARRIER && l->item.kind != SIM_ITEM_END))
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
      l->last = l->computed = timeline_add_exec(m, (struct sim_exec){.instr = -1,
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

bool timeline_run_barriers(struct machine *m, bool *is_failed) {
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
