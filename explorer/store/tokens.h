/* tokens: by which programs say who they are.
 *
 * The store knows a token by the hash of its text only.  What is revoked stays in the list, and its name stays taken, so that a line of
 * the log never names two tokens.  The statuses are those of store.h.
 */
#ifndef STORE_TOKENS_H
#define STORE_TOKENS_H

#include "store/store.h"

enum { ACCESS_NAME_MAX = 63, ACCESS_ROLE_MAX = 15, ACCESS_GROUPS_MAX = 4096 };

struct access_token {
  const char *name, *role;
  const char *groups; /* that it is a member of, one a line */
  int64_t created_ms, revoked_ms;
};

/* ST_DENIED: there is a token of this name, or this hash. */
MUST_USE enum status store_put_access_token(struct db *db, const struct ident_hash *hash, const struct access_token *t,
                                            struct error *err);
/* *found: there is such a token, and it was valid. */
MUST_USE enum status store_revoke_access_token(struct db *db, const char *name, bool *found, struct error *err);
/* Calls fn for the token if it is valid. */
typedef void (*access_token_fn)(void *user, const struct access_token *t);
MUST_USE enum status store_find_access_token(struct db *db, const struct ident_hash *hash, access_token_fn fn,
                                             void *user, struct error *err);
/* All of them, the oldest first. */
MUST_USE enum status store_each_access_token(struct db *db, access_token_fn fn, void *user, struct error *err);

#endif
