/* reduce: drops the waits that others imply.
 *
 * The function is executed on paper, in program order.  Each stream has a clock: for every stream, the number of the
 * execution up to which it is known to be complete.  An execution keeps the clock with which it ended; a wait for it adds
 * that clock to the clock of the waiting engine.
 *
 *     vector   wait q >= 1    the load of x                    knows q 1
 *              y = f(x)       number 1 of vector               knows q 1, vector 1
 *     scalar   wait vector >= 1                                knows q 1, vector 1
 *              wait q >= 1    implied: dropped
 *              z = g(x, y)
 *
 * A wait is dropped if, each time that it is executed, the engine knows already, or learns from another wait at the same
 * place, what the wait is for.  Each dropped one is replaced by a chain of orders that all lie between its two ends, so
 * that the chains of two dropped waits never need each other, and all can be dropped at once.  Of two waits at one place
 * for the same execution the first one remains.
 *
 * Then the waits are taken as they will be: as counts of the instructions that raise a semaphore.  Where a variable of a
 * wait is negative, its count is that of something earlier, which may be more than is needed, and imply another wait.  So
 * waits that are implied now are dropped together, and those that turn out to be missed are put back.  At last a wait
 * moves out of the loops whose variables it does not use, which may imply others once more.  Of two waits at one place for
 * the same count the last one remains: the two may be equal at times, and the first one never greater.
 *
 * In rounds that run ahead (ahead.c) a wait is left out, and implies nothing.
 *
 * A loop is executed only a few times if the function would be executed too often.  The orders of an iteration are then
 * those of the iteration before, moved by one, because distances between dependent iterations are at most the copies of
 * a buffer.  A wait whose distance is larger, or changes from iteration to iteration, is then kept and implies nothing.
 */
#include <assert.h>
#include <string.h>

#include "base/array.h"
#include "passes/engine_programs/engine_programs.h"

enum { EXECUTIONS_MAX = 100000, WAITS_MAX = 256 /* at one place */ };

struct clock_of {
  int32_t n[EP_STREAMS_MAX];
};

struct history {
  struct clock_of *v;
  int n, cap;
};

struct paper {
  struct ep *ep;
  struct arena arena;
  struct ep_counts counts, raises; /* of all instructions; of those that raise a semaphore */
  int64_t trips_max;
  enum { ORDERS, COUNTS, CHECK } mode; /* see pass_waits */
  bool last_wins;                      /* of two equal waits at one place */
  bool *needed;                        /* of each wait */
  bool *is_required;                   /* of each wait: it is kept, or was when counts were taken */
  int64_t *rounds_ahead;               /* of each wait: it is not executed before that round (ahead.c) */
  int64_t *free_rounds;                /* of each instruction (ahead.c) */
  bool *is_opaque;                     /* its distance is not constant, and loops are cut */
  struct sum {
    struct ep_linear number, count;       /* of the execution; the count that the wait compares with */
    bool is_plain;                        /* no variable is ever negative or too large: the number is as it says */
  } *sums;                                /* of each wait */
  struct clock_of clock[EP_STREAMS_MAX];  /* what the program of each stream knows */
  struct history history[EP_STREAMS_MAX]; /* of the executions in this segment */
  struct {
    int *v;
    int n, cap;
  } raised[EP_STREAMS_MAX]; /* the numbers, from 1, of those that raised the semaphore */
  int64_t variable[EP_DEPTH_MAX];
};

/* A wait at the place that is executed, the number of the execution that it waits for, 0 if there is none, and what is
 * known after it: NULL if it waits for nothing. */
struct due {
  int wait, on, stream;
  int64_t number;
  const struct clock_of *after;
};

/* ---- which execution a wait is for ------------------------------------------------------------------------------- */

static int64_t row_value(const struct paper *p, const struct ep_wait *w, int v, int64_t trips) {
  const struct ep_row *r = &w->row[v];
  int64_t x = r->at.constant + (r->from_end ? trips : 0);
  for (int k = 0; k < w->depth; k++)
    x += r->at.factor[k] * p->variable[k];
  return x < trips ? x : trips - 1;
}

static int64_t sum_value(const struct paper *p, const struct ep_linear *x, int depth) {
  int64_t v = x->constant;
  for (int k = 0; k < depth; k++)
    v += x->factor[k] * p->variable[k];
  return v;
}

/* The loops around the place of a wait: the innermost one. */
static int loop_around(const struct ep *ep, const struct ep_wait *w) {
  return w->loop != EP_NONE ? ep->loops.v[w->loop].parent : ep->instrs.v[w->to].loop;
}

/* All variables of the execution that w is for are in the ranges of their loops, whatever those at its place are. */
static bool is_plain(const struct paper *p, const struct ep_wait *w) {
  const struct ep *ep = p->ep;
  int loop = ep->instrs.v[w->from].loop;
  for (int v = ep_depth(ep, loop) - 1; v >= 0; v--, loop = ep->loops.v[loop].parent) {
    const struct ep_row *r = &w->row[v];
    const int64_t trips = ep_trips(ep, loop, p->trips_max);
    int64_t least = r->at.constant + (r->from_end ? trips : 0), most = least;
    int around = loop_around(ep, w);
    for (int k = w->depth - 1; k >= 0; k--, around = ep->loops.v[around].parent) {
      const int64_t range = r->at.factor[k] * (ep_trips(ep, around, p->trips_max) - 1);
      *(range < 0 ? &least : &most) += range;
    }
    if (least < 0 || most >= trips)
      return false;
  }
  return true;
}

/* The number in its stream, from 1, of the execution that w is for; 0 if there is none.  Negative variables mean the last
 * execution before: the count that the wait compares with is at least that of this execution. */
static int64_t number_of(const struct paper *p, int wait) {
  const struct ep *ep = p->ep;
  const struct ep_wait *w = &ep->waits.v[wait];
  const int s = w->from_stream, n = ep->n_streams;
  int64_t number = 1 + p->counts.at[w->from * n + s], borrowed = 0;
  int loop = ep->instrs.v[w->from].loop;
  if (p->sums[wait].is_plain)
    return sum_value(p, &p->sums[wait].number, w->depth);
  for (int v = ep_depth(ep, loop) - 1; v >= 0; v--, loop = ep->loops.v[loop].parent) {
    const int64_t trips = ep_trips(ep, loop, p->trips_max);
    int64_t x = row_value(p, w, v, trips) - borrowed;
    borrowed = x < 0 ? (trips - 1 - x) / trips : 0;
    x += borrowed * trips;
    number += p->counts.start[loop * n + s] + x * p->counts.body[loop * n + s];
  }
  return borrowed ? 0 : number;
}

/* Row v is a constant distance from the beginning, from the end, or from the variable of a loop with as many trips. */
static bool keeps_distance(const struct paper *p, const struct ep_wait *w, int v, int loop) {
  const struct ep *ep = p->ep;
  const struct ep_row *r = &w->row[v];
  const int64_t trips = ep->loops.v[loop].trips, far = p->trips_max - 1;
  bool is_cut = trips > p->trips_max;
  int n = 0;
  for (int k = 0; k < w->depth; k++) {
    if (!r->at.factor[k])
      continue;
    const int64_t other = ep->loops.v[ep_loop_at(ep, loop_around(ep, w), k)].trips;
    is_cut |= other > p->trips_max;
    n += r->at.factor[k] == 1 && other == trips ? 1 : 2;
  }
  return !is_cut || (n <= 1 && r->at.constant < far && r->at.constant > -far);
}

static bool is_opaque(const struct paper *p, const struct ep_wait *w) {
  int loop = p->ep->instrs.v[w->from].loop;
  for (int v = ep_depth(p->ep, loop) - 1; v >= 0; v--, loop = p->ep->loops.v[loop].parent)
    if (!keeps_distance(p, w, v, loop))
      return true;
  return false;
}

/* ---- execution -------------------------------------------------------------------------------------------------- */

static void join(const struct paper *p, struct clock_of *to, const struct clock_of *x) {
  for (int s = 0; s < p->ep->n_streams; s++)
    to->n[s] = to->n[s] > x->n[s] ? to->n[s] : x->n[s];
}

/* What is known after execution `number` of a stream, from 1; NULL if there is none. */
static const struct clock_of *clock_after(const struct paper *p, int stream, int64_t number) {
  assert(number <= p->history[stream].n); /* it is before in program order */
  return number > 0 ? &p->history[stream].v[number - 1] : NULL;
}

/* What is known when the semaphore has this count. */
static const struct clock_of *clock_at(const struct paper *p, int stream, int64_t count) {
  assert(count <= p->raised[stream].n);
  return count > 0 ? clock_after(p, stream, p->raised[stream].v[count - 1]) : NULL;
}

static bool is_implied(const struct paper *p, const struct due *due, int n, int k) {
  const struct due *d = &due[k];
  if (p->clock[d->on].n[d->stream] >= d->number)
    return true;
  for (int i = 0; i < n; i++) {
    if (i == k || due[i].on != d->on || !due[i].after || due[i].after->n[d->stream] < d->number)
      continue;
    const bool is_same = due[i].stream == d->stream && due[i].after == d->after;
    if (!is_same || (i < k) == (p->mode == ORDERS))
      return true;
  }
  return false;
}

/* Executes the waits of a list, and marks those that are needed.
 *
 *     ORDERS  a wait is for one execution, and nothing if there is none
 *     COUNTS  a wait is for a count; it is needed if the execution is not implied by the counts of others
 *     CHECK   the same, but waits that are not kept do not wait, and are needed if nothing implied them */
static void pass_waits(struct paper *p, int first) {
  const struct ep *ep = p->ep;
  struct due due[WAITS_MAX];
  int n = 0;
  for (int k = first; k != EP_NONE; k = ep->waits.v[k].next) {
    const struct ep_wait *w = &ep->waits.v[k];
    if (p->is_opaque[k] || !(p->mode == CHECK ? p->is_required[k] : w->is_kept))
      continue;
    const int64_t number = number_of(p, k);
    struct due d = {k, w->on, w->from_stream, number, NULL};
    if (p->mode == ORDERS)
      d.after = clock_after(p, d.stream, number);
    else if (w->is_kept && !(w->depth && p->variable[0] < p->rounds_ahead[k]))
      d.after = clock_at(p, d.stream, sum_value(p, &p->sums[k].count, w->depth));
    if (n < WAITS_MAX)
      due[n++] = d;
    else
      p->needed[k] = true;
  }
  for (int i = 0; i < n && p->mode != CHECK; i++)
    if (!p->needed[due[i].wait] && due[i].number && !is_implied(p, due, n, i))
      p->needed[due[i].wait] = true;
  for (int i = 0; i < n; i++)
    if (due[i].after)
      join(p, &p->clock[due[i].on], due[i].after);
  for (int i = 0; i < n && p->mode == CHECK; i++)
    p->needed[due[i].wait] |= p->clock[due[i].on].n[due[i].stream] < due[i].number;
}

static void execute(struct paper *p, int k) {
  const struct ep *ep = p->ep;
  const struct ep_instr *i = &ep->instrs.v[k];
  pass_waits(p, i->waits);
  for (int s = 0; s < ep->n_streams; s++) {
    if (!(i->streams >> s & 1) || !ep_is_counted(ep, k, s))
      continue;
    struct clock_of now = p->clock[s]; /* of a queue: what it has from loads of registers */
    if (s >= EP_ENGINES &&
        !(ep->streams[s].on == EP_SYNC && (i->loop == EP_NONE ? 0 : p->variable[0]) < p->free_rounds[k]))
      join(p, &now, &p->clock[ep->streams[s].on]);
    now.n[s] = p->history[s].n + 1;
    if (s < EP_ENGINES)
      p->clock[s] = now;
    array_push(&p->arena, &p->history[s], now);
    if (i->signals >> s & 1)
      array_push(&p->arena, &p->raised[s], p->history[s].n);
  }
}

static void execute_range(struct paper *p, int loop, int first, int end) {
  const struct ep *ep = p->ep;
  for (int k = first; k < end;) {
    if (ep->instrs.v[k].loop == loop) {
      execute(p, k++);
      continue;
    }
    const int depth = ep_depth(ep, loop), inner = ep_loop_at(ep, ep->instrs.v[k].loop, depth);
    const int64_t trips = ep_trips(ep, inner, p->trips_max);
    pass_waits(p, ep->loops.v[inner].waits);
    for (p->variable[depth] = 0; p->variable[depth] < trips; p->variable[depth]++)
      execute_range(p, inner, k, ep->loops.v[inner].end);
    k = ep->loops.v[inner].end;
  }
}

/* ---- the pass --------------------------------------------------------------------------------------------------- */

/* How often a loop runs at most, so that not too much is executed. */
static int64_t choose_trips(const struct ep *ep, struct ep_counts *counts) {
  static const int64_t limits[] = {INT64_MAX, 64, 32, 16, 12, 8};
  int64_t copies = 1, limit = 0;
  for (int k = 0; k < ep->buffers.n; k++)
    copies = copies > ep->buffers.v[k].copies ? copies : ep->buffers.v[k].copies;
  for (size_t k = 0; k < sizeof limits / sizeof *limits; k++) {
    if (k && limits[k] < copies + 4)
      break;
    limit = limits[k];
    ep_count(ep, false, limit, counts);
    if (counts->total <= EXECUTIONS_MAX)
      break;
  }
  return limit;
}

static void execute_all(struct paper *p) {
  struct ep *ep = p->ep;
  memset(p->needed, 0, (size_t)ep->waits.n);
  for (int first = 0, end; first < ep->instrs.n; first = end) {
    memset(p->clock, 0, sizeof p->clock);
    for (int s = 0; s < ep->n_streams; s++)
      p->history[s].n = p->raised[s].n = 0;
    for (end = first; end < ep->instrs.n && ep->instrs.v[end].segment == ep->instrs.v[first].segment;)
      end++;
    execute_range(p, EP_NONE, first, end);
  }
}

/* Drops the waits that are not needed; false if there are none. */
static bool drop(struct paper *p) {
  struct ep *ep = p->ep;
  bool has_dropped = false;
  execute_all(p);
  for (int k = 0; k < ep->waits.n; k++) {
    const bool is_needed = p->needed[k] || p->is_opaque[k];
    has_dropped |= ep->waits.v[k].is_kept && !is_needed;
    ep->waits.v[k].is_kept &= is_needed;
  }
  return has_dropped;
}

/* ---- moving out of loops ----------------------------------------------------------------------------------------- */

/* The loops around the wait whose variables it uses are the first so many. */
static int depth_used(const struct ep *ep, const struct ep_wait *w) {
  const int n = ep_depth(ep, ep->instrs.v[w->from].loop);
  int depth = 0;
  for (int v = 0; v < n; v++)
    for (int k = depth; k < w->depth; k++)
      if (w->row[v].at.factor[k])
        depth = k + 1;
  return depth;
}

static void append(struct ep *ep, int *list, int wait) {
  ep->waits.v[wait].next = EP_NONE;
  while (*list != EP_NONE)
    list = &ep->waits.v[*list].next;
  *list = wait;
}

/* What it waits for is not in the loops that it leaves: otherwise it would use their variables. */
static bool move_out(struct ep *ep, int instr) {
  int next, loop = ep->instrs.v[instr].loop, *list = &ep->instrs.v[instr].waits;
  bool has_moved = false;
  for (int k = *list; k != EP_NONE; k = next) {
    struct ep_wait *w = &ep->waits.v[k];
    next = w->next;
    const int depth = depth_used(ep, w);
    if (!w->is_kept || depth == w->depth) {
      list = &w->next;
      continue;
    }
    *list = next;
    w->loop = ep_loop_at(ep, loop, depth);
    w->depth = depth;
    append(ep, &ep->loops.v[w->loop].waits, k);
    has_moved = true;
  }
  return has_moved;
}

/* ---- counts ----------------------------------------------------------------------------------------------------- */

/* Drops the waits that the counts of others imply, and puts those back that are missed. */
static void settle(struct paper *p) {
  struct ep *ep = p->ep;
  p->mode = COUNTS;
  bool is_missed = drop(p);
  p->mode = CHECK;
  while (is_missed) {
    is_missed = false;
    execute_all(p);
    for (int k = 0; k < ep->waits.n; k++) {
      is_missed |= p->needed[k] && !ep->waits.v[k].is_kept;
      ep->waits.v[k].is_kept |= p->needed[k];
    }
  }
}

/* From here on the waits that are kept now are required, and decide what raises semaphores. */
static void take_counts(struct paper *p) {
  struct ep *ep = p->ep;
  for (int k = 0; k < ep->waits.n; k++) {
    const struct ep_wait *w = &ep->waits.v[k];
    p->is_required[k] = w->is_kept;
    if (w->is_kept)
      ep->instrs.v[w->from].signals |= 1u << w->from_stream;
  }
  ep_count(ep, true, p->trips_max, &p->raises);
  for (int k = 0; k < ep->waits.n; k++)
    if (p->is_required[k])
      p->sums[k].count = ep_count_of(ep, &p->raises, &ep->waits.v[k], p->trips_max);
}

void ep_reduce(struct ep *ep) {
  struct arena *a = ep->run->arena;
  const size_t n = (size_t)ep->waits.n + 1;
  struct paper p = {.ep = ep,
                    .needed = arena_new_array(a, bool, n),
                    .rounds_ahead = arena_new_array(a, int64_t, n),
                    .free_rounds = arena_new_array(a, int64_t, (size_t)ep->instrs.n + 1),
                    .is_opaque = arena_new_array(a, bool, n),
                    .is_required = arena_new_array(a, bool, n),
                    .sums = arena_new_array(a, struct sum, n)};
  bool has_moved = false;
  p.trips_max = choose_trips(ep, &p.counts);
  for (int k = 0; k < ep->waits.n; k++) {
    p.rounds_ahead[k] = ep_rounds_ahead(ep, &ep->waits.v[k]);
    p.is_opaque[k] = is_opaque(&p, &ep->waits.v[k]);
    p.sums[k].is_plain = is_plain(&p, &ep->waits.v[k]);
    p.sums[k].number = ep_count_of(ep, &p.counts, &ep->waits.v[k], p.trips_max);
  }
  ep_find_free_rounds(ep, p.free_rounds);
  arena_init(&p.arena);
  p.mode = ORDERS;
  drop(&p);
  take_counts(&p);
  settle(&p);
  for (int k = 0; k < ep->instrs.n; k++)
    has_moved |= move_out(ep, k);
  if (has_moved)
    settle(&p);
  arena_clear(&p.arena);
}
