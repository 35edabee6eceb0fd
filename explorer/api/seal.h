/* seal: a session that was without anyone for long becomes a link.
 *
 * A thread looks for such sessions, compiles the kernel as the last page had it, and stores link and end in one transaction.  What
 * cannot be compiled now, because the compiler is busy or the store is full, is tried again later; a kernel that no pipeline takes
 * any more ends without a link.  Of several servers on one store, one seals a session.  Nobody has the link's edit token.
 */
#ifndef API_SEAL_H
#define API_SEAL_H

#include <stdint.h>

#include "base/error.h"

struct seal; /* opaque */
struct services;

/* idle_ms: how long without anyone. */
MUST_USE enum status seal_start(const struct services *services, int64_t idle_ms, struct seal **out, struct error *err);
void seal_stop(struct seal *s); /* before the pool and the store end; NULL is fine */

#endif
