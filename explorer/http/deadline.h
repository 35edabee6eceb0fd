/* deadline: the moment at which a connection is cut off.
 *
 * libmicrohttpd's timeout counts only time without traffic: a client that sends a byte from time to time, or reads
 * nothing, would stay for ever.  So each phase of a connection sets a deadline here, and a thread shuts down the sockets of connections
 * that pass theirs.  The library then sees a closed connection and cleans up.
 */
#ifndef HTTP_DEADLINE_H
#define HTTP_DEADLINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct deadlines; /* opaque */

/* A member of a connection's struct conn.  Private. */
struct deadline {
  struct deadline *next, *prev;
  int fd;
  int64_t at_ms;
  bool is_cut;
};

MUST_USE enum status deadlines_start(struct deadlines **out, struct error *err);
/* Once no connection is left; NULL is fine. */
void deadlines_stop(struct deadlines *d);

/* When the library opens a connection, and before it closes it. */
void deadline_add(struct deadlines *d, struct deadline *c, int fd, int ms);
void deadline_remove(struct deadlines *d, struct deadline *c);
/* Moves the deadline to ms from now. */
void deadline_set(struct deadlines *d, struct deadline *c, int ms);

#endif
