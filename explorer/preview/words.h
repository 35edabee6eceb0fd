/* words: splits a line of source into words with a kind, for colours.
 *
 * An approximation of Python's lexer: a string of several lines stays open from one line to the next. */
#ifndef PREVIEW_WORDS_H
#define PREVIEW_WORDS_H

#include <stdbool.h>
#include <stddef.h>

enum word_kind {
  WORD_PLAIN,
  WORD_KEYWORD,
  WORD_STRING,
  WORD_NUMBER,
  WORD_CALL,
  WORD_DECORATOR,
  WORD_COMMENT,
  WORD_COUNT
};

struct word {
  const char *text;
  size_t len;
  enum word_kind kind;
};

struct words {
  bool is_python; /* otherwise a line is one plain word */
  const char *at, *end;
  char quote; /* of the string of several lines that is open; 0: none */
};

/* Begins a line; the state keeps what is open from the line before. */
void words_line(struct words *w, const char *line, const char *end);
/* Returns false at the end of the line.  Words are never empty and have all characters of the line. */
bool words_next(struct words *w, struct word *out);

#endif
