#include "base/json.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/utf8.h"

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

/* How many of eight bytes, from the first on, are printable ASCII other than '"' and '\\'.  A byte of v is zero where
 * (v - 0x01…) & ~v & 0x80… has its bit; a borrow from a zero byte can only add bits above a true one. */
static size_t count_plain(const unsigned char *p) {
  static const uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
  uint64_t v;
  memcpy(&v, p, sizeof v); /* the first byte is the lowest */
  uint64_t quote = v ^ ones * '"', backslash = v ^ ones * '\\', delete = v ^ ones * 0x7F;
  uint64_t found = v | ((v - ones * 0x20) & ~v) | ((quote - ones) & ~quote) | ((backslash - ones) & ~backslash) |
                   ((delete - ones) & ~delete);
  found &= tops;
  return found ? (size_t)__builtin_ctzll(found) / 8 : sizeof v;
}

void json_put_string(struct buf *b, const char *s, size_t len) {
  const unsigned char *p = (const unsigned char *)s;
  size_t from = 0;

  buf_putc(b, '"');
  for (size_t i = 0; i < len;) {
    size_t n = 1, plain = len - i >= 8 ? count_plain(p + i) : 0;
    if (plain) {
      i += plain;
    } else if (p[i] >= 0x80 && (n = utf8_char(s + i, len - i)) == 0) {
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
  const size_t n = strlen(key); /* keys are constants of the program that need no escapes */
  json_put_comma(b);
  if (buf_reserve(b, n + 3))
    return;
  char *to = b->data + b->len;
  *to++ = '"';
  memcpy(to, key, n);
  memcpy(to + n, "\":", 3);
  b->len += n + 3;
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

void json_put_field_ints(struct buf *b, const char *key, int n, const int64_t *v) {
  json_put_key(b, key);
  buf_putc(b, '[');
  for (int k = 0; k < n; k++) {
    json_put_comma(b);
    json_put_int(b, v[k]);
  }
  buf_putc(b, ']');
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

int json_nesting(const char *s, size_t n) {
  int depth = 0, most = 0;
  bool in_string = false;
  for (size_t i = 0; i < n; i++) {
    if (in_string) {
      if (s[i] == '\\')
        i++;
      else if (s[i] == '"')
        in_string = false;
    } else if (s[i] == '"') {
      in_string = true;
    } else if (s[i] == '{' || s[i] == '[') {
      most = ++depth > most ? depth : most;
    } else if (s[i] == '}' || s[i] == ']') {
      depth--;
    }
  }
  return most;
}
