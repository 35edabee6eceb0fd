/* align: which lines of two texts belong together.
 *
 * There are three rounds, each between the matches of the round before.  The first matches lines that occur once on
 * each side and have the same strong hash (anchors, as in patience diff); the second matches all lines by their strong
 * hash; the third by their weak hash.  A round is Myers' algorithm in linear space (E. W. Myers, An O(ND) Difference
 * Algorithm and Its Variations, 1986), over the lines that occur on both sides, and cut short where two stretches have
 * too little in common.
 *
 * Several alignments can be equally long.  The best one has removed and added lines at the same place: when one of two
 * equal neighbouring lines was edited, the other one stays.  Runs of matches are moved to such places at the end.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "diff/internal.h"

enum {
  EFFORT_MAX = 4096, /* diagonals that are searched before a stretch is split at the furthest point */
  EFFORT_LOW = 128,  /* the same, once the budget is used up */
  BUDGET = 40000000, /* steps of one diff, about 0.1 s */
  RANGES_MAX = 64,
};

struct aligner {
  const int *a, *b; /* ids of the lines of this round; lines that occur on one side only are left out */
  int *forward, *backward;
  int *at_a, *at_b; /* their line numbers */
  int *match;
  long budget;
};

static void match_line(struct aligner *g, int x, int y) {
  g->match[g->at_a[x]] = g->at_b[y];
}

struct split {
  int x, y;
};

/* A point on a shortest path through a[x0,x1) × b[y0,y1), which are not empty and have no common first or last line.
 * It is where a forward and a backward search meet; beyond EFFORT_MAX, the furthest point of the forward search. */
static struct split middle(struct aligner *g, int x0, int x1, int y0, int y1) {
  int n = x1 - x0, m = y1 - y0, delta = n - m, reach = EFFORT_MAX + 2;
  int *f = g->forward + reach, *r = g->backward + reach; /* by diagonal: x counted from x0, and from x1 */
  f[1] = 0;
  r[1] = 0;
  int limit = (n + m + 1) / 2, most = g->budget > 0 ? EFFORT_MAX : EFFORT_LOW;
  if (limit > most)
    limit = most;
  struct split best = {x0, y0};
  int best_sum = -1;
  for (int d = 0; d <= limit; d++) {
    g->budget -= 2 * d + 2;
    if (g->budget < 0 && d > EFFORT_LOW)
      break;
    for (int k = -d; k <= d; k += 2) {
      int x = k == -d || (k != d && f[k - 1] < f[k + 1]) ? f[k + 1] : f[k - 1] + 1;
      int y = x - k;
      if (x > n || y > m || y < 0) {
        f[k] = x;
        continue;
      }
      while (x < n && y < m && g->a[x0 + x] == g->b[y0 + y])
        x++, y++;
      f[k] = x;
      if (x + y > best_sum) {
        best_sum = x + y;
        best = (struct split){x0 + x, y0 + y};
      }
      int kr = delta - k; /* the backward search's diagonal */
      if ((delta & 1) && kr >= -(d - 1) && kr <= d - 1 && x + r[kr] >= n)
        return (struct split){x0 + x, y0 + y};
    }
    for (int k = -d; k <= d; k += 2) {
      int x = k == -d || (k != d && r[k - 1] < r[k + 1]) ? r[k + 1] : r[k - 1] + 1;
      int y = x - k;
      if (x > n || y > m || y < 0) {
        r[k] = x;
        continue;
      }
      while (x < n && y < m && g->a[x1 - 1 - x] == g->b[y1 - 1 - y])
        x++, y++;
      r[k] = x;
      int kf = delta - k;
      if (!(delta & 1) && kf >= -d && kf <= d && x + f[kf] >= n)
        return (struct split){x1 - x, y1 - y};
    }
  }
  return best;
}

/* Notes the matches within a[x0,x1) × b[y0,y1). */
static void align_range(struct aligner *g, int x0, int x1, int y0, int y1, int depth) {
  for (;;) {
    while (x0 < x1 && y0 < y1 && g->a[x0] == g->b[y0])
      match_line(g, x0++, y0++);
    while (x0 < x1 && y0 < y1 && g->a[x1 - 1] == g->b[y1 - 1])
      match_line(g, --x1, --y1);
    if (x0 == x1 || y0 == y1 || depth > RANGES_MAX)
      return;
    struct split s = middle(g, x0, x1, y0, y1);
    if ((s.x == x0 && s.y == y0) || (s.x == x1 && s.y == y1))
      return;
    /* the smaller half by recursion, so that the depth stays logarithmic */
    if (s.x - x0 + s.y - y0 < x1 - s.x + y1 - s.y) {
      align_range(g, x0, s.x, y0, s.y, depth + 1);
      x0 = s.x;
      y0 = s.y;
    } else {
      align_range(g, s.x, x1, s.y, y1, depth + 1);
      x1 = s.x;
      y1 = s.y;
    }
  }
}

struct round {
  struct arena *arena;
  const struct side *from, *to;
  int *match;
  bool is_strong;
  int *ids_a, *ids_b, *a, *b, *at_a, *at_b, *count_a, *count_b;
  struct aligner g;
};

static uint64_t key_of(const struct round *r, const struct line *l) {
  return r->is_strong ? l->strong : l->weak;
}

/* Aligns one gap between matches: lines [x0,x1) and [y0,y1). */
static void align_gap(struct round *r, int x0, int x1, int y0, int y1) {
  if (x0 == x1 || y0 == y1)
    return;
  for (int i = x0; i < x1; i++)
    r->count_a[r->ids_a[i]]++;
  for (int i = y0; i < y1; i++)
    r->count_b[r->ids_b[i]]++;
  int n = 0, m = 0;
  for (int i = x0; i < x1; i++)
    if (r->count_b[r->ids_a[i]]) {
      r->a[n] = r->ids_a[i];
      r->at_a[n++] = i;
    }
  for (int i = y0; i < y1; i++)
    if (r->count_a[r->ids_b[i]]) {
      r->b[m] = r->ids_b[i];
      r->at_b[m++] = i;
    }
  for (int i = x0; i < x1; i++)
    r->count_a[r->ids_a[i]] = 0;
  for (int i = y0; i < y1; i++)
    r->count_b[r->ids_b[i]] = 0;
  align_range(&r->g, 0, n, 0, m, 0);
}

static enum status align_round(struct round *r, struct error *err) {
  int n = r->from->n, m = r->to->n;
  struct int_map ids;
  if (!int_map_init(r->arena, &ids, (size_t)n + (size_t)m))
    return diff_no_memory(err);
  for (int i = 0; i < n; i++)
    r->ids_a[i] = *int_map_put(&ids, key_of(r, &r->from->lines[i]), (int)ids.n);
  for (int i = 0; i < m; i++)
    r->ids_b[i] = *int_map_put(&ids, key_of(r, &r->to->lines[i]), (int)ids.n);
  int x = 0, y = 0;
  for (int i = 0; i < n; i++) {
    int j = r->match[i];
    if (j < 0)
      continue;
    align_gap(r, x, i, y, j);
    x = i + 1;
    y = j + 1;
  }
  align_gap(r, x, n, y, m);
  return ST_OK;
}

/* Matches lines that occur once on each side, as many of them as keep their order (longest increasing subsequence). */
static enum status match_anchors(struct round *r, struct error *err) {
  int n = r->from->n, m = r->to->n;
  struct int_map ids;
  if (!int_map_init(r->arena, &ids, (size_t)n + (size_t)m))
    return diff_no_memory(err);
  int *place = r->at_b; /* by id: the line in `to` */
  for (int i = 0; i < n; i++)
    r->count_a[r->ids_a[i] = *int_map_put(&ids, r->from->lines[i].strong, (int)ids.n)]++;
  for (int i = 0; i < m; i++) {
    int id = *int_map_put(&ids, r->to->lines[i].strong, (int)ids.n);
    r->count_b[id]++;
    place[id] = i;
  }
  int *tails = r->a, *before = r->b, *line = r->at_a, len = 0; /* tails[k]: index of the smallest end of length k+1 */
  for (int i = 0; i < n; i++) {
    int id = r->ids_a[i];
    if (r->count_a[id] != 1 || r->count_b[id] != 1)
      continue;
    line[i] = place[id];
    int lo = 0, hi = len;
    while (lo < hi) {
      int mid = (lo + hi) / 2;
      if (line[tails[mid]] < line[i])
        lo = mid + 1;
      else
        hi = mid;
    }
    before[i] = lo ? tails[lo - 1] : -1;
    tails[lo] = i;
    if (lo == len)
      len++;
  }
  for (int i = len ? tails[len - 1] : -1; i >= 0; i = before[i])
    r->match[i] = line[i];
  memset(r->count_a, 0, ids.n * sizeof *r->count_a);
  memset(r->count_b, 0, ids.n * sizeof *r->count_b);
  return ST_OK;
}

/* A run of n matches that begins at lines a and b, with the numbers of unmatched lines before and after it. */
struct run {
  int a, b, n;
  int before_a, before_b, after_a, after_b;
};

/* Whether the run's lines still match when those of a are moved by da and those of b by db, and at least as many of
 * them by their strong hash. */
static bool can_move(const struct side *from, const struct side *to, const struct run *r, int da, int db) {
  int strong = 0;
  assert(r->a + da >= 0 && r->a + r->n + da <= from->n && r->b + db >= 0 && r->b + r->n + db <= to->n);
  for (int k = 0; k < r->n; k++) {
    const struct line *a = &from->lines[r->a + k], *b = &to->lines[r->b + k];
    const struct line *c = &from->lines[r->a + k + da], *d = &to->lines[r->b + k + db];
    if (c->weak != d->weak)
      return false;
    strong += (c->strong == d->strong) - (a->strong == b->strong);
  }
  return strong >= 0;
}

static void move(int *match, struct run *r, int da, int db) {
  for (int k = 0; k < r->n; k++)
    match[r->a + k] = -1;
  r->a += da;
  r->b += db;
  for (int k = 0; k < r->n; k++)
    match[r->a + k] = r->b + k;
}

/* When lines were added before the run and removed after it, or the other way round, tries to move both to one
 * side. */
static bool balance_run(const struct side *from, const struct side *to, int *match, struct run *r) {
  int came = r->before_b - r->before_a, went = r->after_a - r->after_b;
  int s = came > 0 && went > 0 ? (came < went ? came : went) : came < 0 && went < 0 ? (came > went ? came : went) : 0;
  if (s && can_move(from, to, r, s, 0))
    move(match, r, s, 0);
  else if (s && can_move(from, to, r, 0, -s))
    move(match, r, 0, -s);
  else
    return false;
  return true;
}

/* True when a run was moved: more lines between runs may match then. */
static bool balance(const struct side *from, const struct side *to, int *match) {
  bool has_moved = false;
  for (int a = 0, b = 0;;) {
    struct run r = {.a = a, .b = b};
    while (r.a < from->n && match[r.a] < 0)
      r.a++;
    if (r.a == from->n)
      return has_moved;
    r.b = match[r.a];
    while (r.a + r.n < from->n && match[r.a + r.n] == r.b + r.n)
      r.n++;
    int end_a = r.a + r.n, end_b = to->n;
    while (end_a < from->n && match[end_a] < 0)
      end_a++;
    if (end_a < from->n)
      end_b = match[end_a];
    r.before_a = r.a - a;
    r.before_b = r.b - b;
    r.after_a = end_a - r.a - r.n;
    r.after_b = end_b - r.b - r.n;
    has_moved |= balance_run(from, to, match, &r);
    a = r.a + r.n;
    b = r.b + r.n;
  }
}

enum status diff_align(struct arena *arena, const struct side *from, const struct side *to, int *match,
                       struct error *err) {
  size_t both = (size_t)from->n + (size_t)to->n + 1, reach = 2 * (EFFORT_MAX + 3);
  struct round r = {.arena = arena, .from = from, .to = to, .match = match};
  int **all[] = {&r.ids_a, &r.ids_b, &r.a, &r.b, &r.at_a, &r.at_b, &r.count_a, &r.count_b};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (!(*all[i] = arena_try_array(arena, both, sizeof(int))))
      return diff_no_memory(err);
  r.g = (struct aligner){.a = r.a,
                         .b = r.b,
                         .at_a = r.at_a,
                         .at_b = r.at_b,
                         .match = match,
                         .budget = BUDGET,
                         .forward = arena_try_array(arena, reach, sizeof(int)),
                         .backward = arena_try_array(arena, reach, sizeof(int))};
  if (!r.g.forward || !r.g.backward)
    return diff_no_memory(err);
  for (int i = 0; i < from->n; i++)
    match[i] = -1;
  enum status st = match_anchors(&r, err);
  for (int strong = 1; st == ST_OK && strong >= 0; strong--) {
    r.is_strong = strong;
    st = align_round(&r, err);
  }
  return st == ST_OK && balance(from, to, match) ? align_round(&r, err) : st;
}
