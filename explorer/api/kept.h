/* kept: recent answers about snippets, kept in memory.
 *
 * A link that many people open then needs only one look-up in the store, and is still served for a while if the store
 * cannot be reached.  Only answers about snippets that exist are kept; the store always decides if a snippet is
 * missing.
 *
 * If only this server uses the store, an answer is valid until it expires or until this server deletes any snippet.
 * Other servers that use the store may delete snippets, so the store is then read each time.  A kept answer is then
 * used only while the store cannot be reached, and at most KEPT_AWAY_MS after the store last confirmed it.
 */
#ifndef API_KEPT_H
#define API_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/error.h"
#include "store/ident.h"

enum {
  KEPT_PARTS = 8, /* an answer that takes more than such a part of the memory is not kept */
  KEPT_AWAY_MS = 600000,
};

enum kept_kind {
  KEPT_PAGE,    /* that the snippet exists; no bytes */
  KEPT_JSON,    /* the answer of GET /api/v1/snippets/ID */
  KEPT_SOURCE,  /* its source */
  KEPT_PREVIEW, /* its picture */
};

struct kept; /* opaque; every function may be called from any thread */

struct kept_answer {
  const char *data; /* not NUL-terminated */
  size_t len;
};

/* bytes_max: of all answers. */
MUST_USE enum status kept_start(bool is_shared, int64_t bytes_max, struct kept **out, struct error *err);
void kept_stop(struct kept *k); /* NULL is fine; answers in use exist until they are released */

/* Returns an answer that can be sent immediately, or NULL.  The caller releases it with kept_release. */
const struct kept_answer *kept_find(struct kept *k, enum kept_kind kind, const struct ident_hash *id);
/* The same after the store has failed to answer. */
const struct kept_answer *kept_find_away(struct kept *k, enum kept_kind kind, const struct ident_hash *id);
void kept_release(const struct kept_answer *a); /* NULL is fine */

/* Returns the `moment` for kept_add.  Must be called before the store is read for an answer that will be kept. */
uint64_t kept_moment(struct kept *k);
/* Keeps a copy of an answer that expires at expires_ms (Unix time; 0: never).  Does nothing if a snippet was deleted
 * since `moment`. */
void kept_add(struct kept *k, enum kept_kind kind, const struct ident_hash *id, uint64_t moment, int64_t expires_ms,
              const struct buf *bytes);
/* Must be called after a snippet was deleted or its expiry was moved forward.  Drops all answers, because answers name
 * their ancestors. */
void kept_forget(struct kept *k);

int64_t kept_bytes(struct kept *k); /* that all answers take */

#endif
