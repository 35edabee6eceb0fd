/* ranges: maps running Python code to places in the user's source.
 *
 * A place is a struct src_loc: a range of the innermost frame of one of the user's files, and the chain of calls that
 * led there.  All places live in the arena that ranges_init was given, and each is built once.
 */
#ifndef TRACE_RANGES_H
#define TRACE_RANGES_H

#include "base/index.h"
#include "base/src.h"
#include "trace/bytecode.h"

struct range_entry;
struct range_round;

struct range_file {
  PyObject *filename; /* str: the filename in code objects */
  const char *name;   /* the same in the arena */
  const char **lines; /* the start of each line in the arena, and the end of the text: n_lines + 1 entries */
  int n_lines;
  PyObject *tree;          /* nkx.places.Source of the text; NULL until it is needed */
  PyObject *header;        /* that of one function's header, or None; NULL: not made */
  PyCodeObject *header_of; /* that function's code */
};

struct ranges {
  struct arena *a;
  struct { /* the user's files; frames of other files are skipped */
    struct range_file *v;
    int n, cap;
  } files;
  struct index index; /* finds the entries of `known` */
  struct {
    struct range_entry *v;
    int n, cap;
  } known;
  struct index by_round; /* finds the entries of `rounds` */
  struct {
    struct range_round *v;
    int n, cap;
  } rounds;
  PyCodeObject *code_seen; /* the code object of the last look-up, borrowed */
  int file_seen;           /* its file, or -1 */
  PyObject *others; /* a set of names of files that are not the user's; NULL if files are only added explicitly */
};
void ranges_init(struct ranges *r, struct arena *a);
void ranges_clear(struct ranges *r);
/* Adds one of the user's files: its name, as in code objects, and its text. */
void ranges_add_file(struct ranges *r, PyObject *filename, const char *source, size_t len);
/* From now on, files of the running program are added when their code is first found (nkx.package.source_of). */
void ranges_find_files(struct ranges *r);
/* True if the code was compiled from one of the user's files. */
bool ranges_has_code(struct ranges *r, PyCodeObject *code);
/* Returns the current place, considering only frames inside of `base` (all frames if it is NULL).  NULL if no frame is
 * the user's. */
const struct src_loc *ranges_here(struct ranges *r, PyFrameObject *base);
/* The same with the rounds of the Python loops that are running (counting.h). */
const struct src_loc *ranges_here_in_round(struct ranges *r, PyFrameObject *base);
/* Returns the place at which the exception with this traceback was raised. */
const struct src_loc *ranges_traceback(struct ranges *r, PyObject *traceback);
/* Returns the place of one instruction, called from `caller`; NULL if the code is not in the user's files. */
const struct src_loc *ranges_code(struct ranges *r, PyCodeObject *code, int lasti, const struct src_loc *caller);
/* Returns the place of a function's header, from `def` or `lambda` up to the colon, or the start of its first line if
 * the text has no such function.  NULL if the code is not in the user's files.  func is the function's name, in the
 * arena. */
const struct src_loc *ranges_function(struct ranges *r, PyCodeObject *code, const char *func);
/* Returns the place of a parameter's name in that function's header, or NULL. */
const struct src_loc *ranges_param(struct ranges *r, PyCodeObject *code, const char *name, const char *func);
/* Makes a place from lines and columns (in code points) that both count from 1, as a SyntaxError has them.  NULL for
 * line 0 and for a file that is not the user's. */
const struct src_loc *ranges_exact(struct ranges *r, PyObject *filename, int line, int col, int end_line, int end_col);

#endif
