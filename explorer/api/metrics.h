/* metrics: counters for operators, in Prometheus' text format.  No label contains data that a client sent. */
#ifndef API_METRICS_H
#define API_METRICS_H

#include <stdint.h>

#include "http/http.h"

struct metrics; /* opaque */
struct route;

/* Counts requests by these routes, which must outlive it; there are at most METRICS_ROUTES_MAX. */
enum { METRICS_ROUTES_MAX = 96 };
MUST_USE enum status metrics_start(const struct route *routes, int n_routes, struct metrics **out, struct error *err);
void metrics_stop(struct metrics *m); /* NULL is fine */

/* Counts a request that has ended.  route is NULL if it was for a file; status is 0 if the client disconnected before
 * there was an answer.  May be called from any thread. */
void metrics_count(struct metrics *m, const struct route *route, unsigned status, int64_t us);

enum MHD_Result api_metrics(struct request *rq);

#endif
