/* diffs: what changed between two stages of results, over HTTP.
 *
 * GET /api/v1/results/KEY/diff?from=A&to=B[&kernel=K][&with=KEY2]
 * GET /api/v1/snippets/ID/diff?from=A&to=B[&kernel=K]
 *   A and B are a stage's index, or its name, or NAME:N for the Nth stage of that name, from 1.  With `with`, B is a stage
 *   of that result.  200 with what diff/diff.h makes of the two texts; the lines of `from` and `to` are those of the
 *   stages' texts.  400 when A or B is missing or no such thing, 404 when the result does not have it.
 */
#ifndef API_DIFFS_H
#define API_DIFFS_H

#include "http/http.h"
#include "driver/gather.h"

struct diff_query {
  struct gather_stage from, to;
};

enum diff_found { DIFF_FOUND, DIFF_NO_FROM, DIFF_NO_TO };

/* A number of at most five digits. */
bool diff_read_number(const char *text, int *out);
/* What the request asks; false, with the field that is wrong, if that is nothing. */
bool diff_read_query(struct request *rq, struct diff_query *q, const char **field);
/* Appends the diff.  ST_LIMIT, ST_NOMEM.  Takes up to some hundred milliseconds: not for an event thread. */
MUST_USE enum status diff_build(struct work *from, struct work *to, const struct diff_query *q, struct buf *out,
                                enum diff_found *found, struct error *err);
enum MHD_Result diff_bad_query(struct request *rq, const char *field);
enum MHD_Result diff_not_found(struct request *rq, enum diff_found found);

#endif
