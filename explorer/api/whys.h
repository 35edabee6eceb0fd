/* whys: why an operation of a result is as it is, over HTTP.
 *
 * GET /api/v1/results/KEY/why?stage=A&line=N[&kernel=K]
 *   A is a stage's index, or its name, or NAME:N for the Nth stage of that name, from 1; N a line of its text, from 1; K the name or
 *   the number of a kernel, the first otherwise.  200 with {"kernel","stage","line","text"}, where text is that of driver/why.h; 400
 *   when A or N is missing or N is no number, 404 when the result has no such kernel, stage or operation.
 */
#ifndef API_WHYS_H
#define API_WHYS_H

#include "http/http.h"
#include "work/work.h"

struct why_query {
  const char *stage, *kernel;
  int line;
};

/* Reads the query.  If it is wrong, returns false and sets *field to the wrong argument. */
bool why_read_query(const struct request *rq, struct why_query *q, const char **field);
/* Appends the answer.  *found is false, and err says why, if there is no such operation.  For a store thread: a large result takes a
 * while to be read. */
MUST_USE enum status why_build(struct work *w, const struct why_query *q, struct buf *out, bool *found,
                               struct error *err);

#endif
