/* document: a text that an editor has open, with the results of its compiles.
 *
 * Positions of the Language Server Protocol count lines and UTF-16 units from 0; ours count lines and code points from 1.  A text
 * that is refused, such as one that is half typed, leaves the last good result: positions are carried over to its text where the
 * lines are the same.
 */
#ifndef LSP_DOCUMENT_H
#define LSP_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct json_t;

/* A text with the result of its compile. */
struct document_result {
  char *text; /* that was compiled */
  struct json_t *result;
};

struct document {
  char *uri, *path; /* heap; the path names it in results */
  char *text;       /* as the editor has it; heap, ends with a NUL */
  long long version;
  int64_t due_ms;              /* when it is compiled: a pause in typing is over; 0: it is not to be */
  bool has_ended;              /* a compile has ended, well or not */
  struct document_result good; /* the newest without an error; result NULL: there is none */
};

void document_init(struct document *d, const char *uri, const char *text, long long version);
void document_clear(struct document *d);
/* Takes a new text; NULL when memory ran out: it keeps the old one. */
void document_set_text(struct document *d, const char *text, long long version);
/* True if the text imports what kernels are made with.  Others are not executed. */
bool document_has_kernels(const struct document *d);

/* ---- positions --------------------------------------------------------------------------------------------------- */

struct place { /* ours */
  int line, col;
};

/* A position of the protocol, such as {"line": 3, "character": 7}, in a text.  Beyond the end of a line: its end. */
struct place place_read(const char *text, const struct json_t *position);
/* The other way; the caller releases it. */
struct json_t *place_write(const char *text, struct place p);
struct json_t *range_write(const char *text, struct place from, struct place to);
/* Finds a place of one text in another one; false: its line has changed, or it cannot be told from others that are equal. */
bool place_carry(const char *from, const char *to, struct place *p);

#endif
