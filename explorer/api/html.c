#include "api/html.h"

static const char *escape_of(char c) {
  switch (c) {
  case '&':
    return "&amp;";
  case '<':
    return "&lt;";
  case '>':
    return "&gt;";
  case '"':
    return "&quot;";
  case '\'':
    return "&#39;";
  default:
    return c == '\n' || c == '\t' || (unsigned char)c >= 0x20 ? NULL : "\xef\xbf\xbd";
  }
}

void html_put_text(struct buf *b, const char *s, size_t len) {
  size_t from = 0;
  for (size_t i = 0; i < len; i++) {
    const char *escape = escape_of(s[i]);
    if (!escape)
      continue;
    buf_append(b, s + from, i - from);
    buf_puts(b, escape);
    from = i + 1;
  }
  buf_append(b, s + from, len - from);
}

void html_put(struct buf *b, const char *s) {
  html_put_text(b, s, strlen(s));
}
