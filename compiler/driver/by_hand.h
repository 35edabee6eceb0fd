/* by_hand: a pipeline that a user changes: stages left out, passes put between stages, options given to passes.  Needs neither
 * CPython nor MLIR, so that the server refuses what cannot be meant.
 *
 *   without STAGE                     the stage is there, and its pass does not run
 *   after STAGE PASS                  PASS runs after the stage, as a stage of its own
 *   after STAGE PASS{OPTIONS}
 *   with STAGE{OPTIONS}               the stage's pass runs with these options: "with canonicalize:2{max-iterations=1}"
 *
 * STAGE is written as in --stop-after ("cse:2"), and means the pipeline before any change.  PASS is a pass of MLIR from
 * by_hand.def, or the pass of a stage, which runs once more there.  Several passes after one stage run in the order of the
 * changes.  A pass cannot work on every program: what it cannot take, it refuses.
 */
#ifndef DRIVER_BY_HAND_H
#define DRIVER_BY_HAND_H

#include <stdio.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "driver/pipeline.h"

enum { BY_HAND_MAX = 32, BY_HAND_LEN_MAX = 240 };

/* Checks one change.  ST_INPUT: it is not written as above, no pipeline has its stage, or it cannot be done there. */
MUST_USE enum status by_hand_check(const char *change, struct error *err);

/* Sets *out to p with the n changes, in a; p itself if n is 0.  A change whose stage is in another pipeline changes nothing:
 * *n_unused counts these.  The changes have passed by_hand_check. */
void by_hand_apply(struct arena *a, const struct pipeline *p, int n, const char *const *changes,
                   const struct pipeline **out, int *n_unused);

/* Splits "CHANGE; CHANGE" into at most BY_HAND_MAX changes without the space around them; returns their number, or -1 if there
 * are more. */
int by_hand_split(struct arena *a, const char *text, const char **out);

/* Prints the passes that can be put after a stage, a line each. */
void by_hand_print(FILE *to);
/* Appends a JSON array of {"name","form","options","summary"}: the passes that can be put after a stage. */
void by_hand_describe(struct buf *b);

#endif
