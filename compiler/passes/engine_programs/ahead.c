/* ahead: the first rounds of a loop of transfers, which have nothing to wait for.
 *
 *     %a = nisa.alloc … copies=8                          sync {
 *     scf.for %i = 0 to 11 {                                scf.for %i = 0 to 8 { nisa.dma_trigger qSyncIn }
 *       nisa.dma_copy(dst=%a, src=%w[%i])          ==>      scf.for %i = 8 to 11 {
 *       nisa.matmul(…, moving=%a)                             nisa.wait tensor >= %i + 45
 *     }                                                       nisa.dma_trigger qSyncIn } }
 *
 * A load of round i waits for the reader of round i - 8.  The count that it compares with is linear in i, so that in the
 * first eight rounds it would be the count of something before the loop, and the loads of a layer's weights would start
 * only when the layer before has ended.  So these rounds become a loop of their own, without the wait.  That is done only
 * for loops that no loop of the segment surrounds, where there is no earlier round, and only in the program of Sync, which
 * has nothing but triggers: a second copy of them is short.
 *
 * Transfers that wait for nothing at all go before loads of what earlier loops stored (qSyncBack, streams.c), which wait for
 * data: the two are in different queues, so that the order within each stays.  Those that are in_order stay, too.
 */
#include "passes/engine_programs/engine_programs.h"

/* Each variable but that of the outermost loop only makes the execution earlier or later within its round. */
int64_t ep_rounds_ahead(const struct ep *ep, const struct ep_wait *w) {
  const int around = w->loop != EP_NONE ? ep->loops.v[w->loop].parent : ep->instrs.v[w->to].loop;
  const int from = ep->instrs.v[w->from].loop;
  if (w->on != EP_SYNC || !w->depth || from == EP_NONE)
    return 0;
  const int outer = ep_loop_at(ep, around, 0);
  const struct ep_row *r = &w->row[0];
  if (ep_loop_at(ep, from, 0) != outer || r->from_end || r->at.factor[0] != 1)
    return 0;
  for (int k = 1; k < w->depth; k++)
    if (r->at.factor[k])
      return 0;
  return r->at.constant < 0 && -r->at.constant < ep->loops.v[outer].trips ? -r->at.constant : 0;
}

/* In one of its first n rounds the count that w compares with is that of something before the loop. */
static bool holds_up(const struct ep *ep, const struct ep_counts *c, const struct ep_wait *w, int64_t n) {
  const struct ep_linear x = ep_count_of(ep, c, w, INT64_MAX);
  const int around = w->loop != EP_NONE ? ep->loops.v[w->loop].parent : ep->instrs.v[w->to].loop;
  int64_t most = x.constant;
  for (int k = 0; k < w->depth; k++)
    if (x.factor[k] > 0)
      most += x.factor[k] * (k ? ep->loops.v[ep_loop_at(ep, around, k)].trips - 1 : n - 1);
  return most > 0;
}

static void take_most(const struct ep *ep, const struct ep_counts *c, int first, int64_t *most) {
  for (int k = first; k != EP_NONE; k = ep->waits.v[k].next) {
    const int64_t n = ep->waits.v[k].is_kept ? ep_rounds_ahead(ep, &ep->waits.v[k]) : 0;
    if (n > *most && holds_up(ep, c, &ep->waits.v[k], n))
      *most = n;
  }
}

int64_t ep_loop_ahead(const struct ep *ep, const struct ep_counts *c, int loop) {
  const struct ep_loop *l = &ep->loops.v[loop];
  int64_t most = 0;
  if (l->parent != EP_NONE || mlirOperationGetNumResults(l->op))
    return 0;
  for (int k = l->first; k < l->end; k++)
    take_most(ep, c, ep->instrs.v[k].waits, &most);
  for (int k = loop + 1; k < ep->loops.n && ep->loops.v[k].depth > 0; k++)
    take_most(ep, c, ep->loops.v[k].waits, &most);
  return most;
}

/* w is not even implied by another one: in the rounds before `ahead` there is nothing that it waits for. */
static bool is_free(const struct ep *ep, int first, int64_t ahead) {
  for (int k = first; k != EP_NONE; k = ep->waits.v[k].next)
    if (ep->waits.v[k].on == EP_SYNC && !(ahead && ep_rounds_ahead(ep, &ep->waits.v[k]) >= ahead))
      return false;
  return true;
}

enum ep_sync_part ep_sync_part(const struct ep *ep, int first, int end, int64_t ahead) {
  int loads = 0, backs = 0;
  bool all_free = true;
  for (int k = first; k < end; k++) {
    const struct ep_instr *i = &ep->instrs.v[k];
    if (i->kind == NISA_REGISTER_LOAD || nisa_keeps_order(i->op))
      return EP_PART_FIXED;
    for (int q = EP_ENGINES; q < ep->n_streams; q++)
      if ((i->streams >> q & 1) && ep->streams[q].on == EP_SYNC) {
        *(ep->streams[q].is_back ? &backs : &loads) += 1;
        all_free &= is_free(ep, i->waits, ahead);
      }
    for (int l = i->loop; l != EP_NONE; l = ep->loops.v[l].parent)
      all_free &= is_free(ep, ep->loops.v[l].waits, ep->loops.v[l].parent == EP_NONE ? 0 : ahead);
  }
  return backs && !loads ? EP_PART_BACKS : loads && !backs && all_free ? EP_PART_FREE : EP_PART_FIXED;
}

/* The most of all waits in first … end - 1 and their loops, kept or not. */
static int64_t most_rounds(const struct ep *ep, int first, int end) {
  int64_t most = 0;
  for (int k = first; k < end; k++) {
    const struct ep_instr *i = &ep->instrs.v[k];
    for (int w = i->waits; w != EP_NONE; w = ep->waits.v[w].next) {
      const int64_t n = ep_rounds_ahead(ep, &ep->waits.v[w]);
      most = n > most ? n : most;
    }
  }
  return most;
}

void ep_find_free_rounds(const struct ep *ep, int64_t *rounds) {
  for (int first = 0, end; first < ep->instrs.n; first = end) {
    const int loop = ep->instrs.v[first].loop;
    end = loop == EP_NONE ? first + 1 : ep->loops.v[ep_loop_at(ep, loop, 0)].end;
    const int64_t n = ep_sync_part(ep, first, end, 0) == EP_PART_FREE ? INT64_MAX : most_rounds(ep, first, end);
    for (int k = first; k < end; k++)
      rounds[k] = n;
  }
}
