/* deadline: every connection has a moment at which it is cut off.
 *
 * libmicrohttpd's timeout only counts silence; a client that sends a byte now and then, or reads nothing, would stay
 * for ever.  So each phase of a connection sets a deadline here, and a thread shuts down the sockets that pass theirs;
 * the library then sees a closed connection and cleans up.
 */
#ifndef HTTP_DEADLINE_H
#define HTTP_DEADLINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

struct deadlines; /* opaque */

/* Of one connection; lies in its struct conn.  Private. */
struct deadline {
  struct deadline *next, *prev;
  int fd;
  int64_t at_ms;
  bool is_cut;
};

MUST_USE enum status deadlines_start(struct deadlines **out, struct error *err);
/* Once no connection is left; NULL is fine. */
void deadlines_stop(struct deadlines *d);

/* Between the library's two notices of one connection. */
void deadline_add(struct deadlines *d, struct deadline *c, int fd, int ms);
void deadline_remove(struct deadlines *d, struct deadline *c);
/* From now on. */
void deadline_set(struct deadlines *d, struct deadline *c, int ms);

#endif
