/* misses: who asks for too many snippets that do not exist is guessing.
 *
 * 30 a minute per address; a hit costs nothing.  An address that used them up gets no answers about snippets at all
 * until some time has passed, hit or miss, or guessing would go on unhindered.
 */
#ifndef API_MISSES_H
#define API_MISSES_H

#include <stdbool.h>

#include "base/error.h"

struct misses; /* opaque */

MUST_USE enum status misses_start(struct misses **out, struct error *err);
void misses_stop(struct misses *m); /* NULL is fine */

/* May this address ask? */
bool misses_allow(struct misses *m, const char *address);
/* It asked for something that is not there. */
void misses_count(struct misses *m, const char *address);

#endif
