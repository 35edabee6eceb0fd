/* ranges: from running Python code to places in the user's source.
 *
 * A place is a struct src_loc: a range of the innermost frame of the user's file, and the chain of calls that led there.
 * All places live in the arena that ranges_init was given, and each is built once.
 */
#ifndef TRACE_RANGES_H
#define TRACE_RANGES_H

#include "base/index.h"
#include "base/src.h"
#include "trace/bytecode.h"

struct range_entry;

struct ranges {
  struct arena *a;
  PyObject *filename; /* str: frames of other files are left out; NULL: no place is known */
  const char *file;   /* the same in the arena */
  const char **lines; /* start of each line in the arena, n_lines + 1 entries */
  int n_lines;
  struct index index; /* of `known` */
  struct {
    struct range_entry *v;
    int n, cap;
  } known;
  PyCodeObject *code_seen; /* the code object of the last question, borrowed, and whether it is of the user's file */
  bool code_is_user;
  PyObject *tree; /* nkx.places.Source of the text; NULL until it is needed */
};
void ranges_init(struct ranges *r, struct arena *a, PyObject *filename, const char *source, size_t len);
void ranges_clear(struct ranges *r);
/* The place that runs now, in frames inside of `base` (NULL: in all frames); NULL if none of them is the user's. */
const struct src_loc *ranges_here(struct ranges *r, PyFrameObject *base);
/* The place at which the exception with this traceback was raised. */
const struct src_loc *ranges_traceback(struct ranges *r, PyObject *traceback);
/* The place of one instruction, called from `caller`; NULL if the code is not of the user's file. */
const struct src_loc *ranges_code(struct ranges *r, PyCodeObject *code, int lasti, const struct src_loc *caller);
/* A function's header, from `def` or `lambda` up to the colon; the start of its first line if the text has no such
 * function.  NULL if the code is not of the user's file.  func: the function's name, in the arena. */
const struct src_loc *ranges_function(struct ranges *r, PyCodeObject *code, const char *func);
/* The name of that function's parameter in its header, or NULL. */
const struct src_loc *ranges_param(struct ranges *r, PyCodeObject *code, const char *name, const char *func);
/* Lines and columns of code points, both from 1, as a SyntaxError has them; NULL for line 0. */
const struct src_loc *ranges_exact(struct ranges *r, int line, int col, int end_line, int end_col);

#endif
