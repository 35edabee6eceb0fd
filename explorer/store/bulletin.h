/* bulletin: what servers on one PostgreSQL store tell each other, by its LISTEN and NOTIFY.
 *
 * A text that is posted in a transaction is told when that is committed.  Texts can be lost while the connection is broken; whoever
 * hears them is told that they may have missed some.
 */
#ifndef STORE_BULLETIN_H
#define STORE_BULLETIN_H

#include "base/error.h"

struct bulletin; /* opaque */
struct db;

enum { BULLETIN_TEXT_MAX = 7900 }; /* bytes: PostgreSQL takes fewer than 8000 */

/* On a thread of its own: text NULL: some may have been missed. */
typedef void (*bulletin_fn)(void *user, const char *text);
/* url: of the store; connects later, and again whenever the connection is lost. */
MUST_USE enum status bulletin_start(const char *url, bulletin_fn fn, void *user, struct bulletin **out,
                                    struct error *err);
void bulletin_stop(struct bulletin *b); /* NULL is fine */

/* On a store thread, for all servers, this one, too. */
MUST_USE enum status bulletin_post(struct db *db, const char *text, struct error *err);

#endif
