/* shrink: proposes smaller forms of a program (python/nkx/shrink.py). */
#ifndef TRACE_SHRINK_H
#define TRACE_SHRINK_H

#include "base/arena.h"
#include "base/error.h"
#include "trace/trace.h"

/* Sets *out to the JSON of an answer, which lives in a: some changes of the request, whose JSON is `request`, from the place
 * `from` on.  rq has the same sources, for the tracer's limits.  They are not executed.  ST_INPUT and ST_LIMIT with a diagnostic if
 * they are beyond the limits. */
MUST_USE enum status trace_shrink(struct arena *a, const struct trace_request *rq, const char *request, int from,
                                  struct diags *ds, const char **out);

#endif
