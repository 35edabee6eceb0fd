/* ready: finds out whether this server can do its work, by compiling a small kernel and writing a row to the store.
 *
 * GET /readyz   200 or 503  { "status": "ready" | "unready" | "stopping", "worker": "ok" | "busy" | what is wrong,
 *               "store": "ok" | what is wrong, "space": "ok" | "nearly full" | "full" (no link is stored;
 *               the server is ready all the same), "level": of the jail, "level_why",
 *               "server": { each layer that confines the server: is it active? }, "took_ms" }
 *
 * Each of the two trials has 4 seconds, so the answer comes within 10 whatever breaks.  Requests that come together
 * share one trial, and its outcome is used for a second.  Workers that are busy with other jobs, and finish some, count
 * as ready.
 */
#ifndef API_READY_H
#define API_READY_H

#include "http/http.h"

struct ready; /* opaque */
struct services;

/* services must outlive it. */
MUST_USE enum status ready_start(const struct services *services, struct ready **out, struct error *err);
/* Makes every answer "stopping" from now on. */
void ready_drain(struct ready *r);
/* Ends the trial and its thread, and answers requests that wait; later ones are answered "stopping".  Must be called while pool and
 * store exist.  r may be NULL, here and below. */
void ready_stop(struct ready *r);
/* Stops it, if that was not done, and frees it; once there are no requests any more. */
void ready_free(struct ready *r);

enum MHD_Result api_ready(struct request *rq);

#endif
