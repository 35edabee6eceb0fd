/* deadline: every connection has a moment at which it is cut off.
 *
 * libmicrohttpd's timeout only counts silence; a client that sends a byte now and then, or reads nothing, would stay
 * for ever.  So each phase of a connection sets a deadline here, and a thread shuts down the sockets that pass theirs;
 * the library then sees a closed connection and cleans up.
 */
#ifndef HTTP_DEADLINE_H
#define HTTP_DEADLINE_H

#include <stdint.h>

#include "base/error.h"

struct deadlines; /* opaque */
struct conn;      /* one connection */

MUST_USE enum status deadlines_start(struct deadlines **out, struct error *err);
/* Once no connection is left; NULL is fine. */
void deadlines_stop(struct deadlines *d);

/* Between the library's two notices of one connection.  NULL when out of memory. */
struct conn *deadline_add(struct deadlines *d, int fd, int ms);
void deadline_remove(struct deadlines *d, struct conn *c);
/* From now on. */
void deadline_set(struct deadlines *d, struct conn *c, int ms);

#endif
