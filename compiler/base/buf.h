/* buf: bytes that grow up to a stated ceiling.
 *
 * For everything whose size input decides.  When the ceiling is reached, the contents are freed and the buffer stays
 * failed: further appends do nothing, and buf_status returns ST_LIMIT.  So a writer can append freely and check once
 * at the end.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/error.h"

struct buf {
  char *data; /* NUL after the last byte once anything was appended */
  size_t len, cap, max;
  enum status failed; /* ST_OK, ST_LIMIT or ST_NOMEM */
};

void buf_init(struct buf *b, size_t max); /* max: most bytes it may hold, without the NUL */
void buf_clear(struct buf *b);            /* frees; usable again with the same ceiling */
enum status buf_printf(struct buf *b, const char *fmt, ...) PRINTF(2, 3);
enum status buf_put_int(struct buf *b, long long v); /* decimal */
/* Ensures room for n more bytes at data + len; the caller adds the number of bytes that it wrote to len. */
enum status buf_reserve(struct buf *b, size_t n);
/* Inline: texts are built from pieces of a few bytes. */
static inline enum status buf_append(struct buf *b, const void *p, size_t n) {
  if (n >= b->cap - b->len && buf_reserve(b, n))
    return b->failed;
  if (n)
    memcpy(b->data + b->len, p, n);
  b->len += n;
  b->data[b->len] = 0;
  return ST_OK;
}
static inline enum status buf_puts(struct buf *b, const char *s) {
  return buf_append(b, s, strlen(s));
}
static inline enum status buf_putc(struct buf *b, char c) {
  return buf_append(b, &c, 1);
}
static inline enum status buf_status(const struct buf *b) {
  return b->failed;
}
/* The text so far, "" when empty or failed; borrowed until the next call on b. */
static inline const char *buf_text(const struct buf *b) {
  return b->data ? b->data : "";
}

#endif
