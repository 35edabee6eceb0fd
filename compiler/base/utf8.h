/* utf8: UTF-8 as RFC 3629 defines it: no surrogates, no overlong forms, nothing above U+10FFFF. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Bytes of the character at s, of which n bytes may be read; 0 if it is not valid.  n > 0. */
size_t utf8_char(const char *s, size_t n);
bool utf8_is_valid(const char *s, size_t n);
/* Code points of a valid text. */
size_t utf8_count(const char *s, size_t n);
/* The length of the longest prefix of s that is at most `max` bytes and ends between two characters. */
size_t utf8_cut(const char *s, size_t n, size_t max);

/* Writes n bytes of a text for a terminal.  What would move its cursor, change its colours or set its title, that is all control
 * characters but newlines and tabs, is written as \xNN, and so is what is no UTF-8; what would turn the direction of the text around it,
 * or end its line, as \uNNNN. */
void utf8_print(FILE *to, const char *s, size_t n);
/* Columns of a terminal that the character at s takes as utf8_print writes it: 0 for one that combines with the one before, 2 for a wide
 * one.  *bytes: its length, 1 of what is no UTF-8.  Tabs and newlines count 1.  n > 0. */
size_t utf8_columns(const char *s, size_t n, size_t *bytes);

static inline bool utf8_is_continuation(char c) {
  return ((unsigned char)c & 0xC0) == 0x80;
}

#endif
