/* snippets: a kernel, how it was looked at, and its result, kept under an id.  Its owner can add revisions, of which none ever
 * changes, but for the notes on it; forks name their parent.
 *
 * POST /api/v1/snippets     needs Content-Type: application/json and X-Nkx-Request: 1
 *   every field of POST /api/v1/compile (driver/job.h), and
 *   { "title"?: "at most 200 bytes", "view"?: { anything, at most 64 KiB, and besides "notes"? and
 *     "recording"?, at most 256 KiB each }, "parent"?: "id of the snippet it was forked
 *     from", "visibility"?: "unlisted" | "public" | "private", "access"?: {"people"?: [...], "groups"?: [...]}, "expires_in"?: seconds, 60 to 10 years }
 *   The result comes from this server's own cache or is compiled now.  A kernel that is refused is kept with its
 *   diagnostics.
 *   201 { "id", "url": "/z/ID", "embed_url": "/e/ID", "raw_url": "/z/ID/raw", "edit_token", "visibility", "created_ms",
 *         "expires_ms": null | N, "key" }
 *   An unlisted id has 22 characters (128 random bits): only those who have the link find the snippet.  A public id has
 *   8 characters.
 *   The edit token is told in this answer only.  404 if the parent does not exist; 507 when the disk is full, 503 with
 *   Retry-After when the store cannot be reached: in all three cases nothing is kept.
 *
 * POST /api/v1/snippets/ID     adds a revision; needs X-Nkx-Request: 1 and X-Nkx-Edit-Token: TOKEN
 *   the fields of POST /api/v1/snippets without parent, visibility, access and expires_in, which stay as they are
 *   201 { "id", "revision": N, "url": "/z/ID?revision=N", "created_ms", "expires_ms", "key" }; 403 when the token is not the
 *   snippet's, 413 when it has STORE_REVISIONS_MAX revisions.
 *
 * POST /api/v1/snippets/ID/access     changes who may open it, all its revisions; needs X-Nkx-Request: 1, and X-Nkx-Edit-Token: TOKEN unless
 *   its owner or an operator asks
 *   { "visibility": "unlisted" | "private", "access"?: {"people"?: [...], "groups"?: [...]} }
 *   200 { "visibility", "access"?: {"owner", "people", "groups"} }; 400 of a public link, 403 to who may only open it.  It counts as a
 *   link.
 *
 * POST /api/v1/snippets/ID/notes[?revision=N]     {"notes": [...]} replaces the notes of a revision, the member "notes" of its view, and
 *   nothing else; headers as above.  They have room of their own: 256 KiB.
 *   200 { "id", "revision": N }; 403 when the token is not the snippet's.
 *
 * GET /api/v1/snippets/ID[?revision=N]     the newest revision, or the Nth from 1; the same argument for all paths below
 *   200 { "id", "visibility", "title"?, "created_ms", "expires_ms": null | N, "report_url"?, "access"?, "revision": N, "revisions": [ { "revision",
 *         "created_ms" } ], "request": { what POST /api/v1/compile
 *         takes }, "view": null | { as it was given }, "pipeline": "version it was compiled with", "is_current": is
 *         that today's version?, "ancestry": [ nearest first: { "visibility", "created_ms", "id"?, "title"? } ],
 *         "result": { the result, frozen, as POST /api/v1/compile gave it } }
 *   Unlisted ancestors are listed without id and title; the list ends at an ancestor that was deleted.
 *
 * GET /api/v1/snippets/ID/diff?from=A&to=B      what changed between two of its frozen stages: api/diffs.h
 *
 * DELETE /api/v1/snippets/ID[?after=SECONDS]     needs X-Nkx-Request: 1 and X-Nkx-Edit-Token: TOKEN
 *   204; 403 when the token is not the snippet's.  With `after` it expires that many seconds from now.
 *
 * GET /z/ID       the page (index.html), which then reads the snippet: 200, or 404 with the same page.  Its head has the
 *   link's title and a description for previews (Open Graph).
 * GET /e/ID       the page for other sites' frames: it shows its embed form when its path begins with /e/
 * GET /z/ID?view=plain   HTML without a script: the sources, the diagnostics, and the stages with links to their texts
 * GET /z/ID/raw   the source, of several files the main one, text/plain, which a browser shows
 * GET /z/ID/raw?stage=N[&kernel=K]   the text of a stage: its index, NAME, or NAME:2 (api/diffs.h)
 * GET /z/ID/page.html    one HTML file that shows the snippet without a server, as an attachment
 * GET /z/ID/all.tar.gz   the files of its result (api/results.h), as an attachment
 *
 * Unknown, deleted, expired and malformed ids all get the same answer.  More than 30 such misses a minute from one
 * address get 429 with Retry-After.  All answers say `X-Robots-Tag: noindex`, `Cache-Control: no-store` and
 * `Referrer-Policy: no-referrer`.
 */
#ifndef API_SNIPPETS_H
#define API_SNIPPETS_H

#include "http/http.h"

enum MHD_Result api_snippet_post(struct request *rq);
enum MHD_Result api_snippet_change(struct request *rq); /* a revision, or /access */
enum MHD_Result api_snippet_get(struct request *rq);
enum MHD_Result api_snippet_delete(struct request *rq);
enum MHD_Result api_snippet_open(struct request *rq);  /* /z/ID and /z/ID/raw */
enum MHD_Result api_snippet_embed(struct request *rq); /* /e/ID */

#endif
