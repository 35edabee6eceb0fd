/* upgrade: rewrites the NKI kernels of beta 1 in a source for the newest generation (python/nkx/nki_upgrade.py). */
#ifndef TRACE_NKI_UPGRADE_H
#define TRACE_NKI_UPGRADE_H

#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"
#include "trace/trace.h"

/* A line of the new text whose comment says why the statement below it is left to be done by hand. */
struct nki_mark {
  int line; /* from 1 */
  const char *reason;
};

/* One file, rewritten. */
struct nki_upgraded {
  const char *name, *text;
  int n_marks;
  const struct nki_mark *marks;
};

/* Sets *text to the new source and *said to a sentence on what is left to be done by hand, both in a.  ST_INPUT, with the
 * sentence in *said and *text NULL, if the source is no Python.  trace_init must have been called. */
MUST_USE enum status nki_upgrade(struct arena *a, const char *path, const char *source, size_t len, const char **text,
                                 const char **said, struct error *err);

/* Rewrites the source and the files of a request, within the tracer's limits.  *out has 1 + rq->n_files elements, the source
 * first, and lives in a.  ST_INPUT and ST_LIMIT with a diagnostic if a file is no Python, too large or nested too deeply, or
 * if the time is up; *out is not set then.  The sources are not executed. */
MUST_USE enum status nki_upgrade_files(struct arena *a, const struct trace_request *rq, struct diags *ds,
                                       const struct nki_upgraded **out);

#endif
