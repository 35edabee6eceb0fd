/* why: the chain of decisions that led to one operation of a stage, as a text.
 *
 * The operation's ancestors are followed back through the stages' provenance (`from` of frames.h), and then told from the first stage
 * on: its text in each stage that changed it, and each decision of a pass about it, with rule and reason.
 */
#ifndef DRIVER_WHY_H
#define DRIVER_WHY_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

struct json_t;

/* Appends the text about the operation on a line, from 1, of a stage (as in result_stage.h) of the result's kernel of that
 * number.  result: an object of the API (gather.h), which may be anybody's.  ST_INPUT: there is no such stage, or no operation on
 * that line.  ST_NOMEM. */
MUST_USE enum status why_put(struct arena *a, struct buf *b, const struct json_t *result, int kernel, const char *stage,
                             int line, struct error *err);

#endif
