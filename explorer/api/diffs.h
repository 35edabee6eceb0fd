/* diffs: serves the differences between two stages of results over HTTP.
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

/* Reads a number of at most five digits.  Returns false for any other text. */
bool diff_read_number(const char *text, int *out);
/* Reads "4", "cse" or "cse:2" into out, whose name points into the text; NULL is wrong. */
bool diff_read_stage(const char *text, struct gather_stage *out);
/* Reads the query.  If it is wrong, returns false and sets *field to the wrong argument. */
bool diff_read_query(struct request *rq, struct diff_query *q, const char **field);
/* Appends the diff.  Fails with ST_LIMIT or ST_NOMEM.  It may take several hundred milliseconds, so the HTTP server's
 * threads must not call it. */
MUST_USE enum status diff_build(struct work *from, struct work *to, const struct diff_query *q, struct buf *out,
                                enum diff_found *found, struct error *err);
enum MHD_Result diff_bad_query(struct request *rq, const char *field);
enum MHD_Result diff_not_found(struct request *rq, enum diff_found found);

#endif
