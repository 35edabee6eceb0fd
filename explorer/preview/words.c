#include "preview/words.h"

#include <string.h>

static bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9') ||
         (unsigned char)c >= 0x80;
}

static bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

static bool is_keyword(const char *p, size_t len) {
  static const char *const all[] = {"and",    "as",     "assert", "break",  "class", "continue", "def",    "del",
                                    "elif",   "else",   "except", "False",  "for",   "from",     "global", "if",
                                    "import", "in",     "is",     "lambda", "None",  "not",      "or",     "pass",
                                    "raise",  "return", "True",   "try",    "while", "with",     "yield"};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (strlen(all[i]) == len && !memcmp(all[i], p, len))
      return true;
  return false;
}

void words_line(struct words *w, const char *line, const char *end) {
  w->at = line;
  w->end = end;
}

static bool has_three(const struct words *w, const char *p, char quote) {
  return w->end - p >= 3 && p[0] == quote && p[1] == quote && p[2] == quote;
}

/* Returns the end of the string of several lines that is open at p, and closes it if it ends here. */
static const char *long_string(struct words *w, const char *p) {
  for (; p < w->end; p++)
    if (has_three(w, p, w->quote)) {
      w->quote = 0;
      return p + 3;
    }
  return w->end;
}

static const char *string(struct words *w, const char *p) {
  const char quote = *p;
  if (has_three(w, p, quote)) {
    w->quote = quote;
    return long_string(w, p + 3);
  }
  for (p++; p < w->end && *p != quote; p++)
    p += *p == '\\' && p + 1 < w->end;
  return p < w->end ? p + 1 : p;
}

static enum word_kind kind_of_name(const struct words *w, const char *from, const char *to) {
  if (is_digit(*from))
    return WORD_NUMBER;
  if (is_keyword(from, (size_t)(to - from)))
    return WORD_KEYWORD;
  return to < w->end && *to == '(' ? WORD_CALL : WORD_PLAIN;
}

bool words_next(struct words *w, struct word *out) {
  const char *p = w->at;
  if (p >= w->end)
    return false;
  out->text = p;
  out->kind = WORD_PLAIN;
  if (!w->is_python) {
    p = w->end;
  } else if (w->quote) {
    out->kind = WORD_STRING;
    p = long_string(w, p);
  } else if (*p == '#') {
    out->kind = WORD_COMMENT;
    p = w->end;
  } else if (*p == '"' || *p == '\'') {
    out->kind = WORD_STRING;
    p = string(w, p);
  } else if (*p == '@' && p + 1 < w->end && is_name(p[1])) {
    out->kind = WORD_DECORATOR;
    for (p++; p < w->end && (is_name(*p) || *p == '.'); p++) {
    }
  } else if (is_name(*p)) {
    while (p < w->end && (is_name(*p) || (*p == '.' && is_digit(*out->text))))
      p++;
    out->kind = kind_of_name(w, out->text, p);
  } else {
    while (p < w->end && !is_name(*p) && !strchr("#\"'@", *p))
      p++;
    p += p == out->text; /* an operator @ */
  }
  out->len = (size_t)(p - out->text);
  w->at = p;
  return true;
}
