/* hold: requests that wait a moment before they are looked at, each HOLD_MS.
 *
 * For clients that come again before the time they were told: held, a connection of theirs asks a few times a second
 * at most.  A held connection is suspended, so it must be given back before the library stops.
 */
#ifndef HTTP_HOLD_H
#define HTTP_HOLD_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct MHD_Connection;
struct holds; /* opaque */

enum { HOLD_MS = 500 };

/* In its request, zeroed at first. */
struct hold {
  struct hold *next;
  struct MHD_Connection *connection;
  int64_t until_ms;
  bool was_held;
};

MUST_USE enum status holds_start(struct holds **out, struct error *err);
/* Gives all back; nothing is held any more.  NULL is fine, here and below. */
void holds_stop(struct holds *h);
void holds_free(struct holds *h); /* after holds_stop, or if nothing was ever held */

/* On the connection's thread: suspends it, and resumes it later.  False: not held, as we are stopping. */
bool holds_add(struct holds *h, struct hold *one, struct MHD_Connection *connection);

#endif
