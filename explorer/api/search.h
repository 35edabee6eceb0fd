/* search: POST /api/v1/shrink and POST /api/v1/parting, which run many jobs one after another.
 *
 *   POST /api/v1/shrink   {"request": CompileRequest, "seconds"?: 60, "candidates"?: 2000}
 *     a small kernel with the fault of this one (driver/shrink.h)
 *   POST /api/v1/parting  {"a": CompileRequest, "b": CompileRequest, "values"?: true, "seconds"?: 120}
 *     where two results part, in text and in values (driver/parting.h)
 *
 * Both answer like a compile: a whole result, or a stream of frames that say how far the search is.  The answer is a work
 * (work/work.h) that no worker runs but a thread of the search.  Its jobs are ordinary ones: they take from the client's shares,
 * wait in the queue in turn with other clients' jobs, and have the limits of every job.  Where a share is used up, the search waits
 * until there is more.  Nothing of them is kept.  A client that hangs up cancels the search and the job that runs.
 */
#ifndef API_SEARCH_H
#define API_SEARCH_H

#include "base/error.h"
#include "http/http.h"

struct searches; /* all of this server; opaque */
struct services;
struct job;

enum {
  SEARCHES_MAX = 32,        /* at a time */
  SEARCHES_CLIENT_MAX = 2,  /* of one client */
  SEARCH_SECONDS_MAX = 600, /* that a request may ask for */
  SEARCH_CANDIDATES_MAX = 2000,
  SEARCH_BODY_MAX = 2 << 20, /* two requests */
};

MUST_USE enum status searches_start(const struct services *services, struct searches **out, struct error *err);
/* Has those that run answer soon with what they have; new ones are refused. */
void searches_end(struct searches *all);
/* Waits for the last one.  NULL is fine. */
void searches_stop(struct searches *all);

/* Makes the search that a job asks for (shrink_seconds) the request's work.  ST_QUOTA, ST_BUSY: there are too many. */
MUST_USE enum status search_shrink(struct request *rq, const struct job *job, struct error *err);

enum MHD_Result api_shrink(struct request *rq);
enum MHD_Result api_parting(struct request *rq);

#endif
