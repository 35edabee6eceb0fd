/* stream: sends a work's frames as they are produced, one on each line or as server-sent events. */
#ifndef API_STREAM_H
#define API_STREAM_H

#include "http/http.h"

/* Answers with the frames of the request's work (part.h), from the first to the last. */
enum MHD_Result stream_send(struct request *rq, bool is_sse);

#endif
