/* counterpart: which lines of two texts of a stage compute the same.
 *
 * Two ways to compile a kernel may have the same instructions in another order, on other engines, in more or fewer parts.  So a
 * line's counterpart is found by what the line says and by what is around it, never by its position:
 *
 *   - the operation, its attributes, and the indices of what it reads and writes, with constants and loops in the place of names; not
 *     the engine, and not where a buffer lies;
 *   - the same of the lines that share its buffers and values, round by round, so that the parts of a tensor, which read alike,
 *     are told apart by the parts of the arguments that they come from and of the results that they become;
 *   - its Python expression.
 *
 * Lines are paired by as many rounds as they agree in; lines that agree equally in their order.  Then come lines with other attributes
 * and the same place of the same operation.  Last, all of this without the expression, if it was changed or is not known.  What has no
 * equal number of lines on the other side stays without a counterpart.
 */
#ifndef DIFF_COUNTERPART_H
#define DIFF_COUNTERPART_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "diff/diff.h"

struct counterpart_side {
  struct diff_text text;
  int n_lines;
  const char *const *expressions; /* Python, of each line; NULL: it has none */
};

/* Lines count from 1, members from 0: to[0] belongs to line 1. */
struct counterparts {
  int *to;            /* for each line of A: the line of B; 0: it has none */
  bool *is_guess;     /* for each line of A: others agree as much, and are told apart by their order alone */
  uint64_t *group[2]; /* for each line of a side: lines of A and B with the same number agree as much; 0: not paired */
  bool *
      is_step[2]; /* for each line of a side: it computes or moves data; others are declarations, loops, views, waits */
};

/* All of it lives in a. */
struct counterparts counterpart_find(struct arena *a, const struct counterpart_side sides[2]);

#endif
