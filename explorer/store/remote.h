/* remote: lets `nkx store` change the SQLite store of a server that is running.
 *
 * A SQLite file has one writer (db_sqlite.c), which is the server.  So the server listens on a Unix socket beside the file, which
 * only its own user and root can reach (mode 0600), and a command asks it.  The server also forgets what it keeps in memory.
 * A message is one struct in one packet.
 */
#ifndef STORE_REMOTE_H
#define STORE_REMOTE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "store/ident.h"

struct remote;
struct store;

/* A link is to be removed. */
struct remote_order {
  struct ident_hash link;
  int64_t at_ms; /* then it expires; 0: it is deleted now */
};

/* Listens beside the file at `path`; `changed` is called after each change, on a thread of its own.  ST_IO: it cannot listen,
 * because the path is too long, for example. */
MUST_USE enum status remote_start(struct store *s, const char *path, void (*changed)(void *user), void *user,
                                  struct remote **out, struct error *err);
/* Must be called before the store is stopped; NULL is fine. */
void remote_stop(struct remote *r);

/* Asks the server that has the store at `path`.  ST_BUSY: none listens. */
MUST_USE enum status remote_ask(const char *path, const struct remote_order *o, bool *found, struct error *err);

#endif
