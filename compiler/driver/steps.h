/* steps: the rewrites inside one stage, each with the text before and after.
 *
 * A recorder listens (base/step.h) while the stage's pass runs.  Between two calls of the listener it compares the program with
 * what it was, and if it has changed and is valid, the change is one step: the rule and the operation that the pass tried, the
 * lines that differ, and the edit that makes the one text into the other.  The edits of all steps, applied to the text that the
 * stage began with, give the stage's text.
 *
 * What is not a pass of ours has steps as far as it can be told (frames.h): a lowering has one for each operation that it lowers,
 * from the stage's map; MLIR's canonicalizer is run again on a copy, one rewrite at a time; any other pass of MLIR is one step.
 */
#ifndef DRIVER_STEPS_H
#define DRIVER_STEPS_H

#include "base/step.h"
#include "driver/compile_internal.h"

enum {
  STEPS_MAX = 500,           /* of one answer */
  STEPS_BYTES_MAX = 4 << 20, /* after which no further one begins */
};

struct steps;

/* Starts to record stage `index` of p, which runs next; NULL if the job does not ask for its steps.  steps_free frees it. */
struct steps *steps_begin(struct path *p, int index);
/* What the stage's pass reports to; NULL if s is NULL or the pass reports nothing. */
struct step_listener *steps_listener(struct steps *s);
/* Sends the steps.  made: the stage that its pass has made; NULL: it failed, and what it did until then is sent. */
MUST_USE enum status steps_send(struct steps *s, const struct stage *made);
void steps_free(struct steps *s);

#endif
