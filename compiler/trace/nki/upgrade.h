/* upgrade: rewrites the NKI kernels of beta 1 in a source for the newest generation (python/nkx/nki_upgrade.py). */
#ifndef TRACE_NKI_UPGRADE_H
#define TRACE_NKI_UPGRADE_H

#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

/* Sets *text to the new source and *said to a sentence on what is left to be done by hand, both in a.  ST_INPUT, with the
 * sentence in *said and *text NULL, if the source is no Python.  trace_init must have been called. */
MUST_USE enum status nki_upgrade(struct arena *a, const char *path, const char *source, size_t len, const char **text,
                                 const char **said, struct error *err);

#endif
