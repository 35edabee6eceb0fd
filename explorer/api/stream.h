/* stream: sends a work's frames as they are produced, one on each line or as server-sent events. */
#ifndef API_STREAM_H
#define API_STREAM_H

#include "http/http.h"

/* A request may name the run of a result that its client has: the result's key, a dot, and the time_us of its end.  If
 * memory still holds that run, stages are sent as their difference from it (work/delta.h). */
#define STREAM_HAVE_HEADER "X-Nkx-Have"

/* Answers with the frames of the request's work (part.h), from the first to the last. */
enum MHD_Result stream_send(struct request *rq, bool is_sse);

#endif
