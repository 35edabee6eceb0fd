/* knob_text: the knobs of a Python text as C sees them (trace/written_knobs.h).  All places are bytes of the text. */
#ifndef DRIVER_KNOB_TEXT_H
#define DRIVER_KNOB_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/error.h"

/* The bytes from … to of the text. */
struct knob_part {
  size_t from, to;
};

struct knob_argument {
  const char *name;
  struct knob_part value;
};

/* The brackets of a call. */
struct knob_brackets {
  const char *method;    /* NULL: knob(value, …) itself; the value is not among its arguments */
  size_t put;            /* where a further argument goes */
  const char *separator; /* what stands before it */
  int n;
  struct knob_argument *arguments;
};

/* knob.knob(value, …).tile_op(…).layout(…) */
struct knob_call {
  bool
      is_around; /* it stands around the expression that was asked for; else it names the variable that has its value */
  struct knob_part value;
  size_t end;
  struct knob_brackets knob;
  int n;
  struct knob_brackets *methods;
};

/* A statement that is a knob and nothing else. */
struct knob_statement {
  struct knob_part part;
  int line, end_line; /* from 1 */
};

struct knob_text {
  size_t import_at; /* where an import of knobs goes */
  const char *name; /* of nkigen's object of knobs in this text; NULL: it does not have it */
  int n_statements, n_calls;
  struct knob_statement *statements;
  struct knob_call *calls; /* of the expression that was asked for */
};

/* Reads the text, which needs Python (trace_init), but does not execute it.  from < to: an expression whose knobs are wanted.  What is
 * found lives in the arena.  ST_INPUT: the text is no Python. */
MUST_USE enum status knob_text_read(struct arena *a, const char *text, size_t from, size_t to, struct knob_text *out);

/* The value of an argument; NULL if there is none of this name. */
const struct knob_part *knob_argument(const struct knob_brackets *b, const char *name);

#endif
