/* chosen: the version of the compiler that a command of the terminal names, `nkx compile … --version NAME`. */
#ifndef CHOSEN_H
#define CHOSEN_H

#include "base/arena.h"
#include "base/error.h"

/* Takes "--version NAME" and "--version=NAME", before a "--", out of argv, which ends with NULL.  *worker is the nkx-worker of that
 * version, which NKX_WORKER_VERSION lists as for `nkx serve`; NULL if it is this program's own, or none was named.  ST_INPUT: the
 * name is missing or not installed, or the list is wrong. */
MUST_USE enum status chosen_worker(struct arena *a, char **argv, const char **worker, struct error *err);

#endif
