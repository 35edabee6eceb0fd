/* snippets: a kernel, how it was looked at, and what came of it, kept under an id.  Immutable; forks name their parent.
 *
 * POST /api/v1/snippets     needs Content-Type: application/json and X-Nkx-Request: 1
 *   every field of POST /api/v1/compile (driver/job.h), and
 *   { "title"?: "at most 200 bytes", "view"?: { anything, at most 64 KiB }, "parent"?: "id of the snippet it was forked
 *     from", "visibility"?: "unlisted" | "public", "expires_in"?: seconds, 60 to 10 years }
 *   The result comes from this server's own cache or is compiled now; a kernel that is refused is kept with its
 *   diagnostics.
 *   201 { "id", "url": "/z/ID", "embed_url": "/e/ID", "raw_url": "/z/ID/raw", "edit_token", "visibility", "created_ms",
 *         "expires_ms": null | N, "key" }
 *   An unlisted id has 22 characters (128 random bits): only who has the link finds it.  A public one has 8.
 *   The edit token is told once and can not be had again.  404 if the parent does not exist; 507 when the disk is full,
 *   503 with Retry-After when the store cannot be reached: nothing is kept then.
 *
 * GET /api/v1/snippets/ID
 *   200 { "id", "visibility", "title"?, "created_ms", "expires_ms": null | N, "request": { what POST /api/v1/compile
 *         takes }, "view": null | { as it was given }, "pipeline": "version it was compiled with", "is_current": is that
 *         today's version?, "ancestry": [ nearest first: { "visibility", "created_ms", "id"?, "title"? } ],
 *         "result": { the result, frozen, as POST /api/v1/compile gave it } }
 *   Ancestors that are unlisted keep their id and title to themselves; the chain ends where one was deleted.
 *
 * GET /api/v1/snippets/ID/diff?from=A&to=B      what changed between two of its frozen stages: api/diffs.h
 *
 * DELETE /api/v1/snippets/ID[?after=SECONDS]     needs X-Nkx-Request: 1 and X-Nkx-Edit-Token: TOKEN
 *   204; 403 when the token is not the snippet's.  With `after` it expires that many seconds from now.
 *
 * GET /z/ID       the page (index.html), which then reads the snippet: 200, or 404 with the same page
 * GET /e/ID       the same for other sites' frames: the page shows its embed form when its path begins with /e/
 * GET /z/ID/raw   the source, text/plain as an attachment, never more
 *
 * Unknown, deleted, expired and malformed ids all get the same answer.  More than 30 such misses a minute from one
 * address get 429 with Retry-After.  All answers say `X-Robots-Tag: noindex`, `Cache-Control: no-store` and
 * `Referrer-Policy: no-referrer`.
 */
#ifndef API_SNIPPETS_H
#define API_SNIPPETS_H

#include "http/http.h"

/* May this address ask about snippets?  If not, *answer says so. */
bool snippet_may_ask(struct request *rq, enum MHD_Result *answer);
/* Counts the miss and answers 404. */
enum MHD_Result snippet_not_found(struct request *rq);

enum MHD_Result api_snippet_post(struct request *rq);
enum MHD_Result api_snippet_get(struct request *rq);
enum MHD_Result api_snippet_delete(struct request *rq);
enum MHD_Result api_snippet_open(struct request *rq);  /* /z/ID and /z/ID/raw */
enum MHD_Result api_snippet_embed(struct request *rq); /* /e/ID */

#endif
