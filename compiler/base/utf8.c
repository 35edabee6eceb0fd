#include "base/utf8.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

size_t utf8_char(const char *s, size_t n) {
  static const struct {
    unsigned char first_lo, first_hi, second_lo, second_hi, len;
  } forms[] = {
      {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3}, {0xE1, 0xEC, 0x80, 0xBF, 3},
      {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3}, {0xF0, 0xF0, 0x90, 0xBF, 4},
      {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
  };
  const unsigned char *u = (const unsigned char *)s;
  if (u[0] < 0x80)
    return 1;
  for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
    if (u[0] < forms[f].first_lo || u[0] > forms[f].first_hi)
      continue;
    if (n < forms[f].len || u[1] < forms[f].second_lo || u[1] > forms[f].second_hi)
      return 0;
    for (size_t i = 2; i < forms[f].len; i++)
      if (!utf8_is_continuation(s[i]))
        return 0;
    return forms[f].len;
  }
  return 0;
}

bool utf8_is_valid(const char *s, size_t n) {
  for (size_t i = 0, len; i < n; i += len)
    if (!(len = utf8_char(s + i, n - i)))
      return false;
  return true;
}

size_t utf8_count(const char *s, size_t n) {
  size_t points = 0;
  for (size_t i = 0; i < n; i++)
    points += !utf8_is_continuation(s[i]);
  return points;
}

size_t utf8_cut(const char *s, size_t n, size_t max) {
  if (n <= max)
    return n;
  while (max && utf8_is_continuation(s[max]))
    max--;
  return max;
}

/* ---- terminals --------------------------------------------------------------------------------------------------- */

/* The character of len bytes at s. */
static uint32_t decode(const char *s, size_t len) {
  static const unsigned char masks[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
  uint32_t c = (unsigned char)s[0] & masks[len];
  for (size_t i = 1; i < len; i++)
    c = c << 6 | ((unsigned char)s[i] & 0x3F);
  return c;
}

/* Marks, overrides and isolates of direction; separators of lines; tags, which nobody sees. */
static bool is_hidden_command(uint32_t c) {
  return c == 0x061C || c == 0x200E || c == 0x200F || (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x206F) ||
         c == 0xFEFF || (c >= 0xFFF9 && c <= 0xFFFB) || (c >= 0xE0000 && c <= 0xE007F);
}

enum { ESCAPE_MAX = 12 };

/* Writes to `out` what is shown instead of the character at s; false: the character itself is.  *bytes: its length. */
static bool escape(const char *s, size_t n, char out[ESCAPE_MAX], size_t *bytes) {
  const size_t len = utf8_char(s, n);
  const uint32_t c = len ? decode(s, len) : (unsigned char)*s;
  *bytes = len ? len : 1;
  if (!len || (c < ' ' && c != '\n' && c != '\t') || (c >= 0x7F && c < 0xA0))
    snprintf(out, ESCAPE_MAX, "\\x%02x", (unsigned)c);
  else if (is_hidden_command(c))
    snprintf(out, ESCAPE_MAX, c > 0xFFFF ? "\\U%08x" : "\\u%04x", (unsigned)c);
  else
    return false;
  return true;
}

void utf8_print(FILE *to, const char *s, size_t n) {
  char out[ESCAPE_MAX];
  for (size_t i = 0, len; i < n; i += len)
    if (escape(s + i, n - i, out, &len))
      fputs(out, to);
    else
      fwrite(s + i, 1, len, to);
}

struct range {
  uint32_t first, last;
};

static int compare_range(const void *key, const void *of) {
  const uint32_t c = *(const uint32_t *)key;
  const struct range *r = of;
  return c < r->first ? -1 : c > r->last;
}

static bool is_in(uint32_t c, const struct range *list, size_t n) {
  return bsearch(&c, list, n, sizeof *list, compare_range);
}

size_t utf8_columns(const char *s, size_t n, size_t *bytes) {
#define X(first, last) {first, last},
#define UTF8_ZERO
  static const struct range zero[] = {
#include "base/utf8_width.def"
  };
#undef UTF8_ZERO
#define X(first, last) {first, last},
  static const struct range wide[] = {
#include "base/utf8_width.def"
  };
  char out[ESCAPE_MAX];
  if (escape(s, n, out, bytes))
    return strlen(out);
  const uint32_t c = decode(s, *bytes);
  return is_in(c, zero, sizeof zero / sizeof *zero) ? 0 : is_in(c, wide, sizeof wide / sizeof *wide) ? 2 : 1;
}
