/* rounds: which rounds of Python loops an operation belongs to.
 *
 * A round has one number for each loop that encloses an operation, the outermost first, counted from 0.  A set of rounds is
 * a list of boxes; a box has a range of numbers for each loop:
 *
 *     for i in range(3):          the round i = 1, j = 4          {1}x{4}            "1.4"
 *       for j in range(8):        all rounds of i = 2             {2}x{0..7}         "2.0-7"
 *         y = f(y)                both                            two boxes          "1.4 2.0-7"
 *
 * Sets are immutable and lie in an arena.  A set shows at most ROUNDS_SHOWN boxes; `more` counts the rounds that were left
 * out, because long sets tell a user nothing and would make results large.
 */
#ifndef BASE_ROUNDS_H
#define BASE_ROUNDS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"

enum { ROUNDS_SHOWN = 8 };

struct rounds_span {
  int first, last;
};
struct rounds {
  int depth;                   /* the number of loops, at least 1 */
  int n;                       /* boxes, 1 to ROUNDS_SHOWN */
  int more;                    /* at least so many further rounds are not in the boxes */
  const struct rounds_span *v; /* n * depth spans, box after box */
};

/* Makes the set of one round. */
const struct rounds *rounds_one(struct arena *a, const int *at, int depth);
/* Union.  Returns x or y itself if that suffices.  NULL is the empty set.  Of sets for different numbers of loops, only
 * x's boxes are kept. */
const struct rounds *rounds_union(struct arena *a, const struct rounds *x, const struct rounds *y);
bool rounds_equal(const struct rounds *x, const struct rounds *y);

/* Appends the text form: boxes separated by spaces, spans by dots, "+N" at the end if there are more. */
void rounds_print(struct buf *b, const struct rounds *r);
/* Reads the text form; NULL if it is not one. */
const struct rounds *rounds_read(struct arena *a, const char *text, size_t len);
/* Appends the JSON form, without `more`: [[[first,last] or number for each loop] for each box]. */
void rounds_put_json(struct buf *b, const struct rounds *r);

#endif
