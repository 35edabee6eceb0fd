/* compile: what all handlers share that start a compile. */
#ifndef API_COMPILE_H
#define API_COMPILE_H

#include "base/arena.h"
#include "driver/job.h"
#include "http/http.h"
#include "job/results.h"

/* Makes an arena with room for a job whose JSON, or text, has so many bytes; ST_NOMEM. */
MUST_USE enum status compile_arena(struct arena *a, size_t text_len, struct error *err);
/* ST_INPUT when the brackets of a JSON text nest deeper than any request needs; to be called before a parser sees
 * it. */
MUST_USE enum status compile_check_nesting(const struct buf *b, struct error *err);

/* Sets the request's work (part.h) to one for this job, cached or not as the request's headers say.  A job without a
 * scope gets the client's own.  ST_QUOTA when the client may not start it. */
MUST_USE enum status compile_start(struct request *rq, const struct job *job, struct error *err);
/* The same, cached or not as the mode says. */
MUST_USE enum status compile_start_as(struct request *rq, const struct job *job, enum results_mode mode,
                                      struct error *err);
/* The answer when the work was refused. */
enum MHD_Result compile_refused(struct request *rq);

/* POST /api/v1/compile */
enum MHD_Result api_compile(struct request *rq);

#endif
