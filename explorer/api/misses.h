/* misses: stops clients that guess the ids of snippets.
 *
 * An address may ask for 30 snippets a minute that do not exist; hits cost nothing.  Beyond that it gets no answers
 * about snippets at all, neither hits nor misses, until some time has passed.
 */
#ifndef API_MISSES_H
#define API_MISSES_H

#include <stdbool.h>

#include "base/error.h"

struct misses; /* opaque */

MUST_USE enum status misses_start(struct misses **out, struct error *err);
void misses_stop(struct misses *m); /* NULL is fine */

/* Returns true if this address may ask for snippets. */
bool misses_allow(struct misses *m, const char *address);
/* Counts a request of this address for a snippet that does not exist. */
void misses_count(struct misses *m, const char *address);

#endif
