/* kept: recent answers about snippets, kept in memory.
 *
 * So a link that many people open costs the store one look-up, and is still served for a while when the store cannot be
 * reached.  Only answers about snippets that exist are kept; that a snippet is missing is always decided by the store.
 *
 * If the store is this server's alone, an answer is good until it expires or until this server deletes anything.  If
 * other servers use it they may delete, so the store is asked each time; a kept answer is then given only while the
 * store cannot be reached, and up to KEPT_AWAY_MS after it last confirmed the answer.
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
  KEPT_BYTES_MAX = 64 << 20, /* of all answers */
  KEPT_ONE_MAX = 8 << 20,    /* of one; larger ones are not kept */
  KEPT_AWAY_MS = 600000,
};

enum kept_kind {
  KEPT_PAGE,   /* that the snippet exists; no bytes */
  KEPT_JSON,   /* the answer of GET /api/v1/snippets/ID */
  KEPT_SOURCE, /* its source */
};

struct kept; /* opaque; every function may be called from any thread */

struct kept_answer {
  const char *data; /* not NUL-terminated */
  size_t len;
};

MUST_USE enum status kept_start(bool is_shared, struct kept **out, struct error *err);
void kept_stop(struct kept *k); /* NULL is fine; answers in use exist until they are released */

/* An answer that can be given at once, or NULL; to be released with kept_release. */
const struct kept_answer *kept_find(struct kept *k, enum kept_kind kind, const struct ident_hash *id);
/* The same after the store has failed to answer. */
const struct kept_answer *kept_find_away(struct kept *k, enum kept_kind kind, const struct ident_hash *id);
void kept_release(const struct kept_answer *a); /* NULL is fine */

/* To be called before the store is read for an answer that is to be kept. */
uint64_t kept_moment(struct kept *k);
/* Keeps a copy; expires_ms (Unix time) 0: it never expires.  Does nothing if a snippet was deleted since `moment`. */
void kept_add(struct kept *k, enum kept_kind kind, const struct ident_hash *id, uint64_t moment, int64_t expires_ms,
              const struct buf *bytes);
/* A snippet was deleted, or expires sooner: drops all answers, because answers name their ancestors. */
void kept_forget(struct kept *k);

#endif
