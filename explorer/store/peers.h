/* peers: what servers on one PostgreSQL tell each other as it happens, by its notifications; nothing is kept.
 *
 * A message is short and its loss does no harm: while the database is away, or slow, messages are dropped, and each server goes on by
 * itself.  One thread sends and receives on a connection of its own, so nobody waits for the database.
 */
#ifndef STORE_PEERS_H
#define STORE_PEERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct peers; /* opaque */

enum { PEERS_MESSAGE_MAX = 250 };

/* Both are called on the thread of this. */
struct peers_hooks {
  void (*heard)(void *user, const char *message); /* gets the messages of other servers */
  void (*tick)(void *user); /* several times a second, also while the database is away, but then less often */
  void *user;
};
/* url: of a PostgreSQL store. */
MUST_USE enum status peers_start(const char *url, const struct peers_hooks *hooks, struct peers **out,
                                 struct error *err);
/* NULL is fine, here and below. */
void peers_stop(struct peers *p);
/* Sends a line of at most PEERS_MESSAGE_MAX bytes to the other servers, soon; never blocks.  Any thread. */
void peers_say(struct peers *p, const char *message);

struct peers_counts {
  int64_t sent, heard, dropped; /* messages, since start */
  bool is_up;                   /* the database takes and brings them */
  int64_t lag_us; /* between sending a notification and its coming back, of the last one; the others get it as late */
};
void peers_look(struct peers *p, struct peers_counts *out);

#endif
