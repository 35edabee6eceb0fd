/* hold: suspends requests for a while before they are handled, or handled again.
 *
 * The server holds clients that come again before their Retry-After is over, HOLD_MS each: a connection whose requests are held
 * can send only a few a second.  Handlers that wait for news hold their requests until there may be some.  A held connection is
 * suspended, so it must be resumed before the library stops.
 */
#ifndef HTTP_HOLD_H
#define HTTP_HOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct MHD_Connection;
struct holds; /* opaque */

enum { HOLD_MS = 500 };

/* A member of its request; zeroed at first. */
struct hold {
  struct hold *next;
  struct MHD_Connection *connection;
  int64_t until_ms;
  bool was_held;
};

/* Each of its requests is held for so long, unless holds_wake comes before. */
MUST_USE enum status holds_start(int ms, struct holds **out, struct error *err);
/* Resumes all that are held now. */
void holds_wake(struct holds *h);
/* Resumes all; nothing is held from now on.  NULL is fine, here and below. */
void holds_stop(struct holds *h);
void holds_free(struct holds *h); /* stops, too */

/* On the connection's thread: suspends the connection, and resumes it later.  False after holds_stop: it was not
 * suspended. */
bool holds_add(struct holds *h, struct hold *one, struct MHD_Connection *connection);

#endif
