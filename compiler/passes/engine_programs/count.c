/* count: how many instructions of a stream have been executed, as a sum of multiples of the loop variables.
 *
 *     number(i) = 1 + before in its iteration + sum over the loops around of
 *                 (before the loop in its iteration + variable * instructions in one iteration)
 */
#include "passes/engine_programs/engine_programs.h"

struct counter {
  const struct ep *ep;
  struct ep_counts *out;
  bool signals;
  int64_t trips_max;
  int64_t n[EP_STREAMS_MAX]; /* in this iteration of the innermost loop so far */
};

static void count_instr(struct counter *c, int k) {
  const struct ep_instr *i = &c->ep->instrs.v[k];
  const unsigned streams = c->signals ? i->signals : i->streams;
  for (int s = 0; s < c->ep->n_streams; s++) {
    c->out->at[k * c->ep->n_streams + s] = c->n[s];
    c->n[s] += (streams >> s & 1) && ep_is_counted(c->ep, k, s);
  }
}

/* Instructions first … end - 1, which are in `loop`. */
static void count_range(struct counter *c, int loop, int first, int end) {
  const struct ep *ep = c->ep;
  const int n_streams = ep->n_streams;
  for (int k = first; k < end;) {
    if (ep->instrs.v[k].loop == loop) {
      count_instr(c, k++);
      continue;
    }
    const int inner = ep_loop_at(ep, ep->instrs.v[k].loop, ep_depth(ep, loop));
    int64_t before[EP_STREAMS_MAX];
    for (int s = 0; s < n_streams; s++) {
      c->out->start[inner * n_streams + s] = before[s] = c->n[s];
      c->n[s] = 0;
    }
    count_range(c, inner, k, ep->loops.v[inner].end);
    for (int s = 0; s < n_streams; s++) {
      c->out->body[inner * n_streams + s] = c->n[s];
      c->n[s] = before[s] + c->n[s] * ep_trips(ep, inner, c->trips_max);
    }
    k = ep->loops.v[inner].end;
  }
}

void ep_count(const struct ep *ep, bool signals, int64_t trips_max, struct ep_counts *out) {
  struct arena *a = ep->run->arena;
  const size_t n = (size_t)ep->n_streams;
  if (!out->at) {
    out->at = arena_new_array(a, int64_t, n *(size_t)ep->instrs.n);
    out->start = arena_new_array(a, int64_t, n *(size_t)ep->loops.n);
    out->body = arena_new_array(a, int64_t, n *(size_t)ep->loops.n);
  }
  out->n_streams = ep->n_streams;
  out->total = 0;
  for (int first = 0, end; first < ep->instrs.n; first = end) {
    struct counter c = {.ep = ep, .out = out, .signals = signals, .trips_max = trips_max};
    for (end = first; end < ep->instrs.n && ep->instrs.v[end].segment == ep->instrs.v[first].segment;)
      end++;
    count_range(&c, EP_NONE, first, end);
    for (int s = 0; s < ep->n_streams; s++)
      out->total += c.n[s];
  }
}

struct ep_linear ep_count_of(const struct ep *ep, const struct ep_counts *c, const struct ep_wait *w,
                             int64_t trips_max) {
  const int s = w->from_stream;
  struct ep_linear x = {.constant = 1 + c->at[w->from * c->n_streams + s]};
  int loop = ep->instrs.v[w->from].loop;
  for (int v = ep_depth(ep, loop) - 1; v >= 0; v--, loop = ep->loops.v[loop].parent) {
    const int64_t body = c->body[loop * c->n_streams + s];
    const struct ep_row *r = &w->row[v];
    x.constant += c->start[loop * c->n_streams + s];
    x.constant += body * (r->at.constant + (r->from_end ? ep_trips(ep, loop, trips_max) : 0));
    for (int k = 0; k < w->depth; k++)
      x.factor[k] += body * r->at.factor[k];
  }
  return x;
}
