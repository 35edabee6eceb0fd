/* result: gathers the frames of one job (compile.h) into the result object of the API.
 *
 * Frames may come from a worker that ran hostile code, so each is checked: it must parse, be of a known kind, and come
 * in a legal order; nothing else in it is interpreted.  Used by the server and by `nkx compile --json`.
 */
#ifndef DRIVER_RESULT_H
#define DRIVER_RESULT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct result; /* opaque */

struct result *result_new(void); /* NULL when out of memory */
void result_free(struct result *r);

enum { RESULT_KERNELS_MAX = 64, RESULT_STAGES_MAX = 128, RESULT_DIAGS_MAX = 1000, RESULT_ARTIFACTS_MAX = 256 };

/* Adds one frame.  ST_INPUT when it is not a legal next frame (the result stays as it was), ST_LIMIT when one of the
 * limits above is passed, ST_NOMEM. */
MUST_USE enum status result_add(struct result *r, const char *frame, size_t len, struct error *err);
/* Adds an error of our own: the worker died, the deadline passed. */
MUST_USE enum status result_add_error(struct result *r, const char *code, const char *message, const char *hint);

bool result_is_ended(const struct result *r);      /* the "end" frame came */
int result_n_stages(const struct result *r);       /* of all kernels */
const char *result_status(const struct result *r); /* "ok" or "error"; "error" unless ended with "ok" */

/* The result object as one line of JSON; heap, caller frees; NULL when out of memory. */
char *result_dump(const struct result *r, size_t *len);

#endif
