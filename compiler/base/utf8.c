#include "base/utf8.h"

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

void utf8_print(FILE *to, const char *s, size_t n) {
  for (size_t i = 0, len; i < n; i += len) {
    len = utf8_char(s + i, n - i);
    const unsigned char c = (unsigned char)s[i], next = len == 2 ? (unsigned char)s[i + 1] : 0;
    const bool is_control = (c < ' ' && c != '\n' && c != '\t') || c == 0x7f;
    if (!len) {
      fprintf(to, "\\x%02x", c);
      len = 1;
    } else if (is_control)
      fprintf(to, "\\x%02x", c);
    else if (c == 0xC2 && next < 0xA0)
      fprintf(to, "\\x%02x", next);
    else
      fwrite(s + i, 1, len, to);
  }
}
