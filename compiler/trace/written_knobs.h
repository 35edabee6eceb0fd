/* written_knobs: the knobs that a text of Python has, as it is written (python/nkx/written_knobs.py). */
#ifndef TRACE_WRITTEN_KNOBS_H
#define TRACE_WRITTEN_KNOBS_H

#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

/* Sets *out to a JSON object, which lives in a: the statements that are knobs, the place of an import, and with from < to the
 * knobs of the expression at these bytes of the text.  Nothing of the text is executed.  ST_INPUT if it cannot be parsed. */
MUST_USE enum status trace_written_knobs(struct arena *a, const char *text, size_t from, size_t to, const char **out);

#endif
