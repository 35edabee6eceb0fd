/* diag: diagnostics: errors, warnings and notes about the user's kernel.
 *
 * A diagnostic has a stable code and a sentence for the user.  If known, it also has the Python range with its call chain,
 * the stage in which it arose, and a hint that says what to do.  A job collects diagnostics; the stages that it reached
 * are kept in any case.
 */
#ifndef BASE_DIAG_H
#define BASE_DIAG_H

#include <stdbool.h>
#include <stdio.h>

#include "base/arena.h"
#include "base/src.h"

enum diag_code {
#define DIAG(e, code, what) e,
#include "base/diag.def"
#undef DIAG
  DIAG_COUNT
};

enum diag_severity { DS_ERROR, DS_WARNING, DS_NOTE };

struct diag {
  enum diag_severity severity;
  enum diag_code code;
  const char *message;       /* one sentence, UTF-8 */
  const char *hint;          /* what to do about it, or NULL */
  const char *stage;         /* name of the stage it arose in, or NULL */
  const struct src_loc *loc; /* or NULL */
};

struct diags {
  struct arena *arena;
  struct diag *v;
  int n, cap;
  bool has_error;
};

const char *diag_code_name(enum diag_code code); /* "shape-mismatch" */
/* What a code means, for the documentation, without a capital and a full stop; NULL: there is no such code. */
const char *diag_code_meaning(const char *code);
const char *diag_severity_name(enum diag_severity severity); /* "error" */

void diags_init(struct diags *ds, struct arena *a);
/* Appends a diagnostic whose message is formatted into the arena; returns it so that the caller can set hint
 * and stage.  At most DIAGS_MAX are kept; the pointer is valid in any case, until the next call. */
enum { DIAGS_MAX = 200 };
struct diag *diag_add(struct diags *ds, enum diag_severity severity, enum diag_code code, const struct src_loc *loc,
                      const char *fmt, ...) PRINTF(5, 6);

/* Writes "error: message [code]" and a newline for a terminal; see utf8_print. */
void diag_print(FILE *to, const struct diag *d);

#endif
