/* caret: a line of a source with carets below a part of it, for a terminal. */
#ifndef BASE_CARET_H
#define BASE_CARET_H

#include <stddef.h>
#include <stdio.h>

/* Writes "    12 | " and the line, n bytes without its newline, then a line with '^' below column col and '~' below the others up to
 * end_col, which is not included.  Columns count code points from 1.  end_col of CARET_TO_END: all that follows.
 * At least one '^' is written, below the last column if col is past the end.  Tabs become spaces, and what utf8_print escapes is escaped,
 * so that carets are where their characters are, whatever columns these take. */
enum { CARET_TO_END = 1 << 30 };
void caret_print(FILE *to, int number, const char *line, size_t n, int col, int end_col);

#endif
