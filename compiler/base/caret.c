#include "base/caret.h"

#include <stdbool.h>

#include "base/utf8.h"

enum { TAB = 8 };

/* Columns of the terminal that the character at s takes, of which `bytes` are written; at: the columns before it. */
static size_t columns_at(const char *s, size_t n, size_t at, size_t *bytes) {
  if (*s == '\t') {
    *bytes = 1;
    return TAB - at % TAB;
  }
  return utf8_columns(s, n, bytes);
}

static void print_line(FILE *to, const char *line, size_t n) {
  size_t at = 0;
  for (size_t i = 0, bytes; i < n; i += bytes) {
    const size_t width = columns_at(line + i, n - i, at, &bytes);
    if (line[i] == '\t')
      fprintf(to, "%*s", (int)width, "");
    else
      utf8_print(to, line + i, bytes);
    at += width;
  }
  fputc('\n', to);
}

/* Finds the terminal's columns of the range.  A character without a width is shown on the one before it. */
static void find_range(const char *line, size_t n, int col, int end_col, size_t *first, size_t *end) {
  size_t at = 0;
  int point = 1;
  bool has_first = false;
  *first = *end = 0;
  for (size_t i = 0, bytes; i < n && point < end_col; i += bytes) {
    const size_t width = columns_at(line + i, n - i, at, &bytes);
    if (point >= col && !has_first) {
      *first = at && !width ? at - 1 : at;
      has_first = true;
    }
    at += width;
    point +=
        bytes > 1 || !utf8_is_continuation(line[i]); /* a byte that is no UTF-8 continues the character before it */
  }
  if (!has_first)
    *first = at;
  *end = at > *first ? at : *first + 1;
}

void caret_print(FILE *to, int number, const char *line, size_t n, int col, int end_col) {
  size_t first, end;
  if (n && line[n - 1] == '\r')
    n--;
  find_range(line, n, col, end_col > col ? end_col : col + 1, &first, &end);
  fprintf(to, "%6d | ", number);
  print_line(to, line, n);
  fprintf(to, "       | %*s^", (int)first, "");
  for (size_t k = first + 1; k < end; k++)
    fputc('~', to);
  fputc('\n', to);
}
