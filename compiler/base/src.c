#include "base/src.h"

#include <stdint.h>
#include <string.h>

struct src_locs src_locs_one(struct arena *a, const struct src_loc *loc) {
  if (!loc)
    return (struct src_locs){0};
  return (struct src_locs){.n = 1, .v = arena_dup(a, &loc, sizeof loc)};
}

static bool range_equal(const struct src_range *x, const struct src_range *y) {
  return x->line == y->line && x->col == y->col && x->end_line == y->end_line && x->end_col == y->end_col &&
         (x->file == y->file || (x->file && y->file && !strcmp(x->file, y->file)));
}

bool src_loc_equal(const struct src_loc *x, const struct src_loc *y) {
  while (x && y && x != y) {
    if (!range_equal(&x->range, &y->range))
      return false;
    x = x->caller;
    y = y->caller;
  }
  return x == y;
}

const struct src_loc *src_loc_join(struct arena *a, const struct src_loc *x, const struct src_loc *y) {
  const struct rounds *rounds = x == y ? x->rounds : rounds_union(a, x->rounds, y->rounds);
  if (rounds == x->rounds)
    return x;
  if (rounds == y->rounds)
    return y;
  struct src_loc *joined = arena_dup(a, x, sizeof *x);
  joined->rounds = rounds;
  return joined;
}

/* Returns the index of the place in v, or -1. */
static int find(const struct src_loc *const *v, int n, const struct src_loc *loc) {
  for (int i = 0; i < n; i++)
    if (src_loc_equal(v[i], loc))
      return i;
  return -1;
}

struct src_locs src_locs_union(struct arena *a, struct src_locs x, struct src_locs y) {
  const struct src_loc *v[SRC_LOCS_MAX];
  int n = 0;
  bool joined = false; /* a place of x has got further rounds */

  if (!x.n)
    return y;
  const int more = x.more > y.more ? x.more : y.more; /* the two may be the same places */
  if (x.v == y.v)
    return (struct src_locs){x.n, x.v, more};
  for (int i = 0; i < x.n; i++)
    v[n++] = x.v[i];
  const bool is_full = n == SRC_LOCS_MAX; /* then only places that users see get further rounds */
  for (int i = 0; i < y.n; i++) {
    const int at = find(v, is_full ? SRC_LOCS_SHOWN : n, y.v[i]);
    if (at < 0 && n < SRC_LOCS_MAX)
      v[n++] = y.v[i];
    if (at < 0)
      continue;
    const struct src_loc *both = src_loc_join(a, v[at], y.v[i]);
    joined |= both != v[at];
    v[at] = both;
  }
  if (n == x.n && !joined)
    return (struct src_locs){x.n, x.v, more};
  /* x is often the newest allocation and can grow in place; others that share it read only their own places. */
  if (!joined && arena_extend(a, x.v, (size_t)x.n * sizeof *v, (size_t)(n - x.n) * sizeof *v)) {
    memcpy((void *)(uintptr_t)(x.v + x.n), v + x.n, (size_t)(n - x.n) * sizeof *v);
    return (struct src_locs){n, x.v, more};
  }
  return (struct src_locs){n, arena_dup(a, v, (size_t)n * sizeof *v), more};
}
