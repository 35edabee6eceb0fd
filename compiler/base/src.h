/* src: places in the user's source.
 *
 * Lines and columns are 1-based; a range's end is exclusive.  Columns count Unicode code points (what a
 * person counts and what Python's str indexes), not bytes: CPython reports byte offsets, which ranges.c
 * converts.  line == 0 means "unknown".
 */
#ifndef BASE_SRC_H
#define BASE_SRC_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/rounds.h"

struct src_range {
  const char *file;
  int line, col, end_line, end_col;
};

/* One place, with the chain of calls through helper functions that led there: innermost first.
 * Immutable once built; shared freely. */
struct src_loc {
  struct src_range range;
  const char *func;              /* name of the function that contains range; may be NULL */
  const struct src_loc *caller;  /* the call in the enclosing function, or NULL */
  int n_loops;                   /* Python loops of this function that enclose the range */
  const struct src_range *loops; /* their headers, the outermost first */
  const struct rounds *rounds;   /* of the loops of all callers, then of this place; NULL: unknown, or no loops */
};

/* The places that one operation implements: one after tracing, more once passes merge operations.  Immutable; {0} means
 * that no place is known.  A list has at most SRC_LOCS_MAX places.  Users see, and MLIR locations contain, the first
 * SRC_LOCS_SHOWN of them and the number of the others: the hundredth place tells the user nothing, and the cost of long
 * lists would explode. */
enum { SRC_LOCS_MAX = 128, SRC_LOCS_SHOWN = 8 };
struct src_locs {
  int n;
  const struct src_loc *const *v;
  int more; /* at least so many further places are not in v */
};

static inline int src_locs_shown(struct src_locs s) {
  return s.n < SRC_LOCS_SHOWN ? s.n : SRC_LOCS_SHOWN;
}
/* How many places there are at least besides those that are shown. */
static inline int src_locs_hidden(struct src_locs s) {
  return s.n - src_locs_shown(s) + s.more;
}

struct src_locs src_locs_one(struct arena *a, const struct src_loc *loc); /* NULL gives {0} */
/* Union in order of appearance without duplicates, at most SRC_LOCS_MAX.  One place in different rounds is one place, in
 * the union of its rounds.  Returns the places of x or y themselves if that suffices. */
struct src_locs src_locs_union(struct arena *a, struct src_locs x, struct src_locs y);
/* True if the two are the same place with the same callers, in any rounds. */
bool src_loc_equal(const struct src_loc *x, const struct src_loc *y);
/* Returns x, which equals y, with the rounds of both. */
const struct src_loc *src_loc_join(struct arena *a, const struct src_loc *x, const struct src_loc *y);

#endif
