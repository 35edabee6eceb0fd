#include "sim/tensor_clock.h"

#include <assert.h>

struct sim_tensor_clock sim_tensor_clock_new(enum target t) {
  const int64_t window = sim_constant_ps(SIM_TENSOR_WINDOW, t);
  return (struct sim_tensor_clock){.target = t, .window_ps = window, .end = window, .is_full = !window};
}

/* Goes to the window that contains `at`. */
static void advance(struct sim_tensor_clock *c, int64_t at) {
  while (c->window_ps && at >= c->end) {
    const int64_t percent = sim_constant(c->is_full ? SIM_TENSOR_DOWN : SIM_TENSOR_UP, c->target);
    c->is_full = c->busy * 100 >= percent * c->window_ps;
    c->busy = c->later < c->window_ps ? c->later : c->window_ps;
    c->later -= c->busy;
    c->end += c->window_ps;
    if (!c->busy && !c->later && !c->is_full && at >= c->end) /* idle from here on */
      c->end += (at - c->end) / c->window_ps * c->window_ps;
  }
}

/* A product is under way from `from` to `to`; `from` is in the current window. */
static void mark(struct sim_tensor_clock *c, int64_t from, int64_t to) {
  if (from < c->busy_until)
    from = c->busy_until;
  if (from >= to)
    return;
  const int64_t inside = to < c->end ? to : c->end;
  c->busy += inside > from ? inside - from : 0;
  c->later += to > inside ? to - (inside > from ? inside : from) : 0;
  c->busy_until = to;
}

static int64_t slowdown(const struct sim_tensor_clock *c) {
  return c->is_full ? 1 : 2;
}

int64_t sim_tensor_clock_cycles(struct sim_tensor_clock *c, int64_t at, int64_t cycles) {
  advance(c, at);
  return sim_cycles_ps(cycles * slowdown(c), NISA_ENGINE_TENSOR, c->target);
}

bool sim_tensor_clock_run(struct sim_tensor_clock *c, int64_t start, int64_t cycles, int64_t *free, int64_t *end) {
  int64_t at = start, left = sim_cycles_ps(cycles, NISA_ENGINE_TENSOR, c->target); /* ps at full clock */
  bool is_half = false;

  advance(c, start);
  while (c->window_ps && at + left * slowdown(c) > c->end) {
    is_half |= !c->is_full;
    left -= (c->end - at) / slowdown(c);
    mark(c, at, c->end);
    at = c->end;
    advance(c, at);
  }
  is_half |= !c->is_full && left;
  *free = at + left * slowdown(c);
  *end = *free + sim_constant_ps(c->is_full ? SIM_TENSOR_DEPTH : SIM_TENSOR_DEPTH_HALF, c->target);
  mark(c, at, *end);
  return is_half;
}
