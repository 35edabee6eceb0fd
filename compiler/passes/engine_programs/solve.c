/* solve: for two accesses to the same memory, which execution of the first one the second one waits for.
 *
 * Let x be executed with the variables i, and y with the variables j; the first c loops are around both.  x(i) comes
 * before y(j) in program order in one of these ways, which are looked at one by one:
 *
 *     level c      i0 = j0, …, ic-1 = jc-1, and x stands before y
 *     level l < c  i0 = j0, …, il-1 = jl-1, and il < jl: an earlier iteration of loop l
 *
 * Of the executions that access what y(j) accesses, the last one counts, since a stream executes in program order.  Its
 * variables are found from the outside to the inside, as sums of multiples of j:
 *
 *     v < l   iv = jv
 *     v = l   iv <= jl - 1
 *     v > l   iv <= trips - 1
 *
 * If the buffer has K copies in turn, and loop r is the one around its allocation, x uses the same copy K executions of the body of
 * r before y, counted through the loops around r, and not later.  So with T = trips of r and q = K / T, rounded down:
 *
 *     l = r      ir = jr - K at most; no dependence if K >= T
 *     l = r - 1  il = jl - q and ir = jr - (K - q T) at most, or il = jl - 1 and ir = T + jr - K if q = 0
 *     l < r - 1  il = jl - 1 and, while the loops between l and r are in their first iteration, the same of r - 1 and r; in their
 *                other iterations level l + 1 has a later execution.  That holds only if the accesses do not move in the
 *                loops from l + 1 to r; otherwise the bounds are those without copies.
 *
 * A variable that is less than 0 there means an execution of the iteration before, and the count of such an execution is never less
 * than that of the one that is meant.
 *
 * A dimension of the buffer bounds iv further: x accesses the indices a(i) … a(i) + wa - 1, y accesses b(j) … b(j) + wb
 * - 1, so that b(j) - wa < a(i) < b(j) + wb.  If iv is the innermost variable in a, and its factor divides the others,
 * that is an upper and a lower bound of iv.  A bound that excludes the range of iv proves that there is no dependence, if
 * all variables outside are known exactly.  What is not known this way only makes the wait later, never wrong: it is for
 * an execution before y(j) in program order, so that waits are never in a circle.
 */
#include <assert.h>
#include <string.h>

#include "base/array.h"
#include "nisa/range.h"
#include "passes/engine_programs/engine_programs.h"

struct problem {
  struct ep *ep;
  int x, xs, y, ys, on;
  const struct ep_access *a, *b;
  bool by_dims;         /* a and b can be compared dimension by dimension */
  int n_x, n_y, common; /* loops around x, around y, and around both */
  int rotation;         /* r: the loop around the allocation of the buffer, if it has copies; EP_NONE */
  int64_t copies;
  int64_t trips_x[EP_DEPTH_MAX], trips_y[EP_DEPTH_MAX];
  struct ep_row row[EP_DEPTH_MAX];
  bool is_exact; /* the variables so far have no other value */
};

/* ---- sums ------------------------------------------------------------------------------------------------------- */

static void add(struct ep_linear *to, const struct ep_linear *x, int64_t factor) {
  to->constant += x->constant * factor;
  for (int k = 0; k < EP_DEPTH_MAX; k++)
    to->factor[k] += x->factor[k] * factor;
}

static int64_t least(const struct ep_linear *x, int n, const int64_t *trips) {
  int64_t v = x->constant;
  for (int k = 0; k < n; k++)
    v += x->factor[k] < 0 ? x->factor[k] * (trips[k] - 1) : 0;
  return v;
}

static int64_t most(const struct ep_linear *x, int n, const int64_t *trips) {
  int64_t v = x->constant;
  for (int k = 0; k < n; k++)
    v += x->factor[k] > 0 ? x->factor[k] * (trips[k] - 1) : 0;
  return v;
}

static struct ep_linear minus(const struct ep_linear *x, const struct ep_linear *y) {
  struct ep_linear d = *x;
  add(&d, y, -1);
  return d;
}

static int64_t floor_div(int64_t x, int64_t by) {
  return x / by - (x % by < 0);
}

/* x / by, rounded down or up; false if a factor is not a multiple. */
static bool divide(struct ep_linear *x, int64_t by, bool up) {
  for (int k = 0; k < EP_DEPTH_MAX; k++) {
    if (x->factor[k] % by)
      return false;
    x->factor[k] /= by;
  }
  x->constant = floor_div(x->constant + (up ? by - 1 : 0), by);
  return true;
}

/* ---- bounds of one variable ------------------------------------------------------------------------------------- */

static struct ep_linear row_value(const struct problem *p, int v) {
  struct ep_linear x = p->row[v].at;
  x.constant += p->row[v].from_end ? p->trips_x[v] : 0;
  return x;
}

/* Variable v of x in dimension d is the innermost one. */
static bool is_innermost(const struct problem *p, int d, int v) {
  const struct ep_range *r = &p->a->range[d];
  if (!r->is_known || !p->b->range[d].is_known || !r->low.factor[v])
    return false;
  for (int k = v + 1; k < p->n_x; k++)
    if (r->low.factor[k])
      return false;
  return true;
}

/* low <= iv <= high from dimension d; the variables outside have the values in p->row. */
static bool bounds_of(const struct problem *p, int d, int v, struct ep_linear *low, struct ep_linear *high) {
  const struct ep_range *a = &p->a->range[d], *b = &p->b->range[d];
  const int64_t factor = a->low.factor[v];
  struct ep_linear rest = b->low;
  rest.constant -= a->low.constant;
  for (int k = 0; k < v; k++) {
    struct ep_linear value = row_value(p, k);
    add(&rest, &value, -a->low.factor[k]);
  }
  *low = *high = rest;
  low->constant -= a->width - 1;
  high->constant += b->width - 1;
  if (factor < 0) {
    struct ep_linear zero = {0}, swap = minus(&zero, low);
    *low = minus(&zero, high);
    *high = swap;
  }
  const int64_t by = factor < 0 ? -factor : factor;
  return divide(low, by, true) && divide(high, by, false);
}

/* Improves the upper bound of variable v in p->row.  False: no value is possible. */
static bool tighten(struct problem *p, int v) {
  bool is_equation = false;
  for (int d = 0; p->by_dims && d < p->a->rank; d++) {
    struct ep_linear low, high, now = row_value(p, v);
    if (!is_innermost(p, d, v) || !bounds_of(p, d, v, &low, &high))
      continue;
    struct ep_linear over = minus(&low, &now), under = minus(&now, &high);
    if (p->is_exact && (least(&over, p->n_y, p->trips_y) > 0 || most(&high, p->n_y, p->trips_y) < 0))
      return false;
    if (least(&under, p->n_y, p->trips_y) < 0 || (!p->is_exact && least(&high, p->n_y, p->trips_y) < 0))
      continue;
    p->row[v] = (struct ep_row){.at = high};
    is_equation = !memcmp(&low, &high, sizeof low);
  }
  p->is_exact &= is_equation;
  return true;
}

/* The least or the greatest index a(i) in dimension d, if the variables from `level` on are between 0 and their rows. */
static struct ep_linear extreme(const struct problem *p, int d, int level, bool greatest) {
  const struct ep_linear *low = &p->a->range[d].low;
  struct ep_linear x = {.constant = low->constant};
  for (int v = 0; v < p->n_x; v++)
    if (v < level || (low->factor[v] > 0) == greatest) {
      const struct ep_linear value = row_value(p, v);
      add(&x, &value, low->factor[v]);
    }
  return x;
}

/* In some dimension x stays before or after what y accesses. */
static bool is_apart(const struct problem *p, int level) {
  for (int d = 0; p->by_dims && d < p->a->rank; d++) {
    const struct ep_range *a = &p->a->range[d], *b = &p->b->range[d];
    if (!a->is_known || !b->is_known)
      continue;
    const struct ep_linear greatest = extreme(p, d, level, true), least_index = extreme(p, d, level, false);
    const struct ep_linear before = minus(&greatest, &b->low), after = minus(&least_index, &b->low);
    if (most(&before, p->n_y, p->trips_y) <= -a->width || least(&after, p->n_y, p->trips_y) >= b->width)
      return true;
  }
  return false;
}

/* The accesses do not move in the loops between `level` and the allocation. */
static bool is_still(const struct problem *p, int level) {
  for (int d = 0; p->by_dims && d < p->a->rank; d++)
    for (int v = level + 1; v <= p->rotation; v++)
      if (p->a->range[d].low.factor[v] || p->b->range[d].low.factor[v])
        return false;
  return true;
}

/* The copies bound variables r - 1 and r, which are those of the loop in which the copies take turns and the one around it. */
static bool is_bounded_by_copies(const struct problem *p, int level) {
  return p->rotation > level && (level == p->rotation - 1 || is_still(p, level));
}

/* Variables r - 1 and r of the execution that is as many before as there are copies. */
static struct ep_row bound_by_copies(const struct problem *p, int v, int level) {
  const int r = p->rotation;
  const int64_t rounds = p->copies / p->trips_x[r];
  struct ep_row row = {0};
  row.at.factor[v] = 1;
  if (v == r) {
    row.from_end = !rounds;
    row.at.constant = rounds * p->trips_x[r] - p->copies;
  } else {
    row.from_end = v > level;
    row.at.constant = rounds ? -rounds : -1;
  }
  return row;
}

/* What is known of variable v at first: its upper bound. */
static struct ep_row first_bound(const struct problem *p, int v, int level) {
  struct ep_row r = {0};
  if (v < level) {
    assert(v < p->common);
    r.at.factor[v] = 1;
  } else if (v == level && v < p->common) {
    r.at.factor[v] = 1;
    r.at.constant = v == p->rotation ? -p->copies : -1;
  } else {
    r.from_end = true;
    r.at.constant = -1;
  }
  return r;
}

/* Finds p->row for one level; false if there is no dependence. */
static bool solve(struct problem *p, int level) {
  p->is_exact = true;
  for (int v = 0; v < p->n_x; v++)
    p->row[v] = first_bound(p, v, level);
  if ((level == p->rotation && p->copies >= p->trips_x[level]) || is_apart(p, level))
    return false;
  for (int v = p->rotation - 1; v <= p->rotation && is_bounded_by_copies(p, level); v++)
    p->row[v] = bound_by_copies(p, v, level);
  for (int v = level; v < p->n_x; v++)
    if (!tighten(p, v))
      return false;
  return true;
}

/* What the rows of a level say holds for every j, so that no earlier execution matters. */
static bool is_total(const struct problem *p, int level) {
  for (int v = 0; v < p->n_x; v++) {
    const struct ep_linear x = row_value(p, v);
    const int64_t low = least(&x, p->n_y, p->trips_y);
    if (low < (v == level && v < p->common ? -1 : 0))
      return false;
    if (v > level && level < p->common && low != p->trips_x[v] - 1)
      return false;
  }
  return true;
}

/* ---- waits ------------------------------------------------------------------------------------------------------ */

static bool is_same(const struct ep_wait *w, const struct ep_wait *v, int n_rows) {
  if (w->from != v->from || w->from_stream != v->from_stream || w->on != v->on)
    return false;
  for (int k = 0; k < n_rows; k++)
    if (w->row[k].from_end != v->row[k].from_end || memcmp(&w->row[k].at, &v->row[k].at, sizeof v->row[k].at))
      return false;
  return true;
}

static void add_wait(struct problem *p) {
  struct ep *ep = p->ep;
  struct ep_wait w = {.from = p->x,
                      .from_stream = p->xs,
                      .to = p->y,
                      .on = p->on,
                      .loop = EP_NONE,
                      .depth = p->n_y,
                      .row = p->row,
                      .is_kept = true,
                      .next = EP_NONE};
  int *link = &ep->instrs.v[p->y].waits;
  for (; *link != EP_NONE; link = &ep->waits.v[*link].next)
    if (is_same(&ep->waits.v[*link], &w, p->n_x))
      return;
  w.row = arena_dup(ep->run->arena, p->row, (size_t)p->n_x * sizeof *p->row);
  *link = ep->waits.n;
  array_push(ep->run->arena, &ep->waits, w);
}

static int read_loops(const struct ep *ep, int loop, int *loops, int64_t *trips) {
  const int n = ep_depth(ep, loop);
  for (int d = n - 1; d >= 0; d--, loop = ep->loops.v[loop].parent) {
    loops[d] = loop;
    trips[d] = ep->loops.v[loop].trips;
  }
  return n;
}

static int64_t common_factor(const struct ep_range *x) {
  int64_t g = nisa_gcd(x->period, 0);
  for (int k = 0; k < EP_DEPTH_MAX; k++)
    g = nisa_gcd(g, x->low.factor[k]);
  return g;
}

/* Both are runs at equal distances, and those of the one lie between those of the other. */
static bool alternates(const struct ep_range *a, const struct ep_range *b) {
  const int64_t run_a = a->period ? a->run : a->width, run_b = b->period ? b->run : b->width;
  const int64_t g = nisa_gcd(common_factor(a), common_factor(b));
  if (!g)
    return false;
  const int64_t from_a =
      ((b->low.constant - a->low.constant) % g + g) % g; /* where a run of b begins, seen from one of a */
  return from_a >= run_a && g - from_a >= run_b;
}

/* The two never touch in some dimension. */
static bool is_disjoint(const struct problem *p) {
  for (int d = 0; p->by_dims && d < p->a->rank; d++) {
    const struct ep_range *a = &p->a->range[d], *b = &p->b->range[d];
    if (a->is_known && b->is_known &&
        (alternates(a, b) || least(&a->low, p->n_x, p->trips_x) >= most(&b->low, p->n_y, p->trips_y) + b->width ||
         least(&b->low, p->n_y, p->trips_y) >= most(&a->low, p->n_x, p->trips_x) + a->width))
      return true;
  }
  return false;
}

void ep_order(struct ep *ep, int x, int xs, const struct ep_access *a, int y, int ys, const struct ep_access *b,
              bool whole) {
  struct problem p = {.ep = ep, .x = x, .xs = xs, .y = y, .ys = ys, .a = a, .b = b, .rotation = EP_NONE};
  int loops_x[EP_DEPTH_MAX], loops_y[EP_DEPTH_MAX];

  p.on = ep_waits_on(ep, y, ys);
  if (xs < EP_ENGINES && xs == p.on)
    return;
  p.n_x = read_loops(ep, ep->instrs.v[x].loop, loops_x, p.trips_x);
  p.n_y = read_loops(ep, ep->instrs.v[y].loop, loops_y, p.trips_y);
  while (p.common < p.n_x && p.common < p.n_y && loops_x[p.common] == loops_y[p.common])
    p.common++;
  if (y < x && !p.common)
    return;
  p.by_dims = !whole && a->rank && a->rank == b->rank && mlirValueEqual(a->base, b->base);
  const struct ep_buffer *buffer = &ep->buffers.v[a->buffer];
  if (!whole && buffer->copies > 1 && buffer->loop != EP_NONE && ep->loops.v[buffer->loop].depth < p.common) {
    p.rotation = ep->loops.v[buffer->loop].depth;
    p.copies = buffer->copies;
  }
  if (is_disjoint(&p))
    return;
  for (int level = x < y ? p.common : p.common - 1; level >= 0; level--) {
    if (!solve(&p, level))
      continue;
    add_wait(&p);
    if (is_total(&p, level))
      break;
  }
}
