/* diffs: what changed between two stages of results, over HTTP.
 *
 * GET /api/v1/results/KEY/diff?from=A&to=B[&kernel=K][&with=KEY2]
 * GET /api/v1/snippets/ID/diff?from=A&to=B[&kernel=K]
 *   A and B are a stage's index, or its name, or NAME:N for the Nth stage of that name, from 1.  With `with`, B is a
 *   stage of that result.  200 with the JSON of diff/diff.h; its line numbers are those of the two stages' texts.  400
 *   when A or B is missing or has none of these forms, 404 when the result has no such stage.
 */
#ifndef API_DIFFS_H
#define API_DIFFS_H

#include "http/http.h"
#include "driver/gather.h"
#include "work/work.h"

struct diff_query {
  struct gather_stage from, to;
};

enum diff_found { DIFF_FOUND, DIFF_NO_FROM, DIFF_NO_TO };

/* Reads a number of at most five digits; false for anything else. */
bool diff_read_number(const char *text, int *out);
/* Reads the query; false, with the argument that is wrong. */
bool diff_read_query(struct request *rq, struct diff_query *q, const char **field);
/* Appends the diff.  ST_LIMIT, ST_NOMEM.  Takes up to some hundred milliseconds, so not for the HTTP server's
 * threads. */
MUST_USE enum status diff_build(struct work *from, struct work *to, const struct diff_query *q, struct buf *out,
                                enum diff_found *found, struct error *err);
enum MHD_Result diff_bad_query(struct request *rq, const char *field);
enum MHD_Result diff_not_found(struct request *rq, enum diff_found found);

#endif
