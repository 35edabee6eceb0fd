/* ready: is this server able to do its work?  It tries: a small kernel through a worker, a row through the store.
 *
 * GET /readyz   200 or 503  { "status": "ready" | "unready" | "stopping", "worker": "ok" | "busy" | what is wrong,
 *               "store": "ok" | what is wrong, "level": of the jail, "level_why", "took_ms" }
 *
 * Each trial has 4 seconds, so the answer comes within 10 whatever breaks.  Requests that come together share one
 * trial, and its outcome holds for a second.  A worker that is busy with other jobs, and gets through them, is fine.
 */
#ifndef API_READY_H
#define API_READY_H

#include "http/http.h"

struct ready; /* opaque */

MUST_USE enum status ready_start(const struct app *app, struct ready **out, struct error *err);
/* Says no to everybody from now on. */
void ready_drain(struct ready *r);
/* Ends the trial and its thread; requests that wait are answered.  Before pool and store go.  NULL is fine. */
void ready_stop(struct ready *r);

enum MHD_Result api_ready(struct request *rq);

#endif
