/* metrics: what an operator counts, in Prometheus' text format.  No label holds anything a client sent. */
#ifndef API_METRICS_H
#define API_METRICS_H

#include <stdint.h>

#include "http/http.h"

struct metrics; /* opaque */

MUST_USE enum status metrics_start(struct metrics **out, struct error *err);
void metrics_stop(struct metrics *m); /* NULL is fine */

/* A request is over; any thread.  status 0: its client left before an answer. */
void metrics_count(struct metrics *m, const struct route *route, unsigned status, int64_t us);

enum MHD_Result api_metrics(struct request *rq);

#endif
