/* resume_text: the text of a stage beside the text that somebody made of it. */
#ifndef DRIVER_RESUME_TEXT_H
#define DRIVER_RESUME_TEXT_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

struct resume_text {
  const char *shown;   /* the stage's text, as the user saw it */
  const char *whole;   /* the same with all elements of constants; as many lines */
  const char *changed; /* what the user made of it */
  size_t shown_len, whole_len, changed_len;
};

struct resume_lines {
  int n_old; /* lines of the stage, with the one after its last line end */
  int n;     /* lines of the changed text */
  int *old;  /* [k]: the line of the stage, from 1, that line k + 1 was; 0: the user wrote a new line */
};

/* Returns where the text first leaves out the elements of a constant; len if it does so nowhere. */
size_t resume_elided_at(const char *text, size_t len);

/* Finds what became of the stage's lines.  In a.  ST_LIMIT if a text is too long. */
MUST_USE enum status resume_match(struct arena *a, const struct resume_text *t, struct resume_lines *out,
                                  struct error *err);

/* Appends the changed text with the elements of constants that it leaves out, from the lines that they were in.  Line numbers stay
 * as they are.  ST_INPUT if a line leaves out elements that the stage's line does not have: *bad is its number. */
MUST_USE enum status resume_restore(const struct resume_text *t, const struct resume_lines *lines, struct buf *out,
                                    int *bad);

#endif
