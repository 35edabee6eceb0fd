/* compile: what other handlers need that compile something on the way. */
#ifndef API_COMPILE_H
#define API_COMPILE_H

#include "base/arena.h"
#include "driver/job.h"
#include "http/http.h"
#include "job/results.h"

/* An arena with room for a job of a text of so many bytes; ST_NOMEM. */
MUST_USE enum status compile_arena(struct arena *a, size_t text_len, struct error *err);
/* ST_INPUT when the brackets of a JSON text nest deeper than any request needs; before anything parses it. */
MUST_USE enum status compile_check_nesting(const struct buf *b, struct error *err);
/* Sets rq->work to a work for this job, cached or not as the request's headers say.  A job without a scope gets the
 * client's.  ST_QUOTA when its client may not start it. */
MUST_USE enum status compile_start(struct request *rq, struct arena *a, struct job *job, struct error *err);
/* The same, cached or not as the mode says. */
MUST_USE enum status compile_start_as(struct request *rq, struct arena *a, struct job *job, enum results_mode mode,
                                      struct error *err);
/* The answer when rq->work was refused. */
enum MHD_Result compile_refused(struct request *rq);

#endif
