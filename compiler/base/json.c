#include "base/json.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Length of the valid UTF-8 sequence at s (at most n bytes), or 0.  RFC 3629: no surrogates, no overlong forms. */
static size_t utf8_len(const unsigned char *s, size_t n) {
  static const struct {
    unsigned char first_lo, first_hi, second_lo, second_hi, len;
  } forms[] = {
      {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3}, {0xE1, 0xEC, 0x80, 0xBF, 3},
      {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3}, {0xF0, 0xF0, 0x90, 0xBF, 4},
      {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
  };
  for (size_t f = 0; f < sizeof forms / sizeof *forms; f++) {
    if (s[0] < forms[f].first_lo || s[0] > forms[f].first_hi)
      continue;
    if (n < forms[f].len || s[1] < forms[f].second_lo || s[1] > forms[f].second_hi)
      return 0;
    for (size_t i = 2; i < forms[f].len; i++)
      if ((s[i] & 0xC0) != 0x80)
        return 0;
    return forms[f].len;
  }
  return 0;
}

static void put_escape(struct buf *b, unsigned char c) {
  switch (c) {
  case '"':
    buf_puts(b, "\\\"");
    break;
  case '\\':
    buf_puts(b, "\\\\");
    break;
  case '\n':
    buf_puts(b, "\\n");
    break;
  case '\t':
    buf_puts(b, "\\t");
    break;
  default:
    buf_printf(b, "\\u%04x", c);
  }
}

/* Whether all eight bytes are printable ASCII other than '"' and '\\'.  A byte of v is zero where
 * (v - 0x01…) & ~v & 0x80… has its bit; a borrow from a zero byte can only add bits above a true one. */
static bool is_plain(const unsigned char *p) {
  static const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
  uint64_t v;
  memcpy(&v, p, sizeof v);
  uint64_t quote = v ^ ones * '"', backslash = v ^ ones * '\\', delete = v ^ ones * 0x7F;
  uint64_t found = v | ((v - ones * 0x20) & ~v) | ((quote - ones) & ~quote) | ((backslash - ones) & ~backslash) |
                   ((delete - ones) & ~delete);
  return !(found & tops);
}

void json_put_string(struct buf *b, const char *s, size_t len) {
  const unsigned char *p = (const unsigned char *)s;
  size_t from = 0;

  buf_putc(b, '"');
  for (size_t i = 0; i < len;) {
    size_t n = 1;
    if (len - i >= 8 && is_plain(p + i)) {
      i += 8;
    } else if (p[i] >= 0x80 && (n = utf8_len(p + i, len - i)) == 0) {
      buf_append(b, s + from, i - from);
      buf_puts(b, "\xEF\xBF\xBD");
      from = ++i;
    } else if (p[i] < 0x20 || p[i] == '"' || p[i] == '\\' || p[i] == 0x7F) {
      buf_append(b, s + from, i - from);
      put_escape(b, p[i]);
      from = ++i;
    } else {
      i += n;
    }
  }
  buf_append(b, s + from, len - from);
  buf_putc(b, '"');
}

void json_put_cstr(struct buf *b, const char *s) {
  json_put_string(b, s, strlen(s));
}

void json_put_comma(struct buf *b) {
  if (b->len && b->data[b->len - 1] != '{' && b->data[b->len - 1] != '[')
    buf_putc(b, ',');
}

void json_put_key(struct buf *b, const char *key) {
  json_put_comma(b);
  buf_putc(b, '"'); /* keys are ours: nothing in them needs an escape */
  buf_puts(b, key);
  buf_puts(b, "\":");
}

void json_put_int(struct buf *b, long long v) {
  buf_put_int(b, v);
}

void json_put_field_int(struct buf *b, const char *key, long long v) {
  json_put_key(b, key);
  json_put_int(b, v);
}

void json_put_field_str(struct buf *b, const char *key, const char *s) {
  json_put_key(b, key);
  json_put_cstr(b, s);
}

void json_put_field_bool(struct buf *b, const char *key, int v) {
  json_put_key(b, key);
  buf_puts(b, v ? "true" : "false");
}

void json_put_field_double(struct buf *b, const char *key, double v) {
  json_put_key(b, key);
  if (isfinite(v))
    buf_printf(b, "%.17g", v);
  else
    buf_puts(b, "null");
}
