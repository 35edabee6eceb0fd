/* diff: what changed between two stages, as a change of the program and not of its spelling.
 *
 * A text is a list of lines; MLIR, HLO and NISA all begin one operation on each line.  Two lines are equal when they
 * say the same apart from SSA names, attribute aliases, locations, HLO metadata, white space and the order of named
 * attributes.  Names are then followed from their definitions: a line whose operands come from elsewhere has changed,
 * although it reads the same.  Inside changed lines the words that differ are marked.
 *
 * Lines are 1-based, columns count code points from 1, and a range's end is exclusive (base/src.h).
 */
#ifndef DIFF_DIFF_H
#define DIFF_DIFF_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"

enum {
  DIFF_TEXT_MAX = 32 << 20, /* bytes of one side */
  DIFF_LINES_MAX = 1000000, /* lines of one side */
};

struct diff_text {
  const char *data; /* any bytes */
  size_t len;
};

struct diff_words { /* byte ranges in a line */
  int start, end;
};

/* A line of one side that became a line of the other. */
struct diff_pair {
  int from, to; /* line numbers */
  int n_from, n_to;
  const struct diff_words *words_from, *words_to; /* what differs, in order; none on either side: only names differ */
};

struct diff_hunk {
  int from, n_from; /* first line and number of lines; n_from == 0: lines were inserted before line `from` */
  int to, n_to;
  int n_pairs;
  const struct diff_pair *pairs; /* in order; lines in no pair were removed or added as a whole */
};

struct diff {
  int lines_from, lines_to;
  int n;
  struct diff_hunk *hunks;           /* in order, never adjacent */
  int n_changed, n_removed, n_added; /* pairs; lines removed; lines added */
  struct arena arena;                /* of everything above */
};

/* ST_LIMIT when a side is too large, ST_NOMEM; *out is then empty.  The time is almost linear in the length of texts
 * that are alike, and bounded for texts that are not.  diff_clear frees the result. */
MUST_USE enum status diff_make(struct diff_text from, struct diff_text to, struct diff *out, struct error *err);
void diff_clear(struct diff *d);

/* Appends the diff as JSON; from and to are the texts that diff_make was given:
 *   {"lines_from","lines_to","changed","removed","added","hunks":[{"from":{"line","count"},"to":{"line","count"},
 *    "pairs":[{"from","to","words_from":[[col,end]…],"words_to":[…]}]}]} */
void diff_json(const struct diff *d, struct diff_text from, struct diff_text to, struct buf *out);

#endif
