/* kept: what was answered about snippets lately, so that a link that many open costs the store one look, and goes on
 * being served for a while when the store cannot be reached.
 *
 * Only what is there is kept; whether something is missing is always the store's word.  On a store of this server's own
 * an answer is good until it expires or anything is deleted here.  Where other servers may delete, the store is asked
 * each time, and answers are given only while it is away, up to KEPT_AWAY_MS after it was last heard.
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
  KEPT_PAGE,   /* that there is such a snippet; no bytes */
  KEPT_JSON,   /* the answer of GET /api/v1/snippets/ID */
  KEPT_SOURCE, /* its source */
};

struct kept; /* opaque; every function may be called from any thread */

struct kept_answer {
  const char *data; /* not NUL-terminated */
  size_t len;
};

MUST_USE enum status kept_start(bool is_shared, struct kept **out, struct error *err);
void kept_stop(struct kept *k); /* NULL is fine; answers in use stay until they are let go */

/* An answer that can be given at once, or NULL.  Let go with kept_release. */
const struct kept_answer *kept_find(struct kept *k, enum kept_kind kind, const struct ident_hash *id);
/* The same where the store has just said that it cannot be reached. */
const struct kept_answer *kept_find_away(struct kept *k, enum kept_kind kind, const struct ident_hash *id);
void kept_release(const struct kept_answer *a); /* NULL is fine */

/* To be asked before the store is read for an answer that is to be kept. */
uint64_t kept_moment(struct kept *k);
/* Keeps a copy; expires_ms (Unix time) 0: never.  Nothing is kept if something was deleted since `moment`. */
void kept_add(struct kept *k, enum kept_kind kind, const struct ident_hash *id, uint64_t moment, int64_t expires_ms,
              const struct buf *bytes);
/* Something was deleted, or will expire sooner: forgets everything, since answers name their ancestors. */
void kept_forget(struct kept *k);

#endif
