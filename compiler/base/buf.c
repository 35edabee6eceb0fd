#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>

void buf_init(struct buf *b, size_t max) {
  *b = (struct buf){.max = max};
}

void buf_clear(struct buf *b) {
  free(b->data);
  buf_init(b, b->max);
}

static enum status give_up(struct buf *b, enum status why) {
  free(b->data);
  b->data = NULL;
  b->len = b->cap = 0;
  return b->failed = why;
}

enum status buf_reserve(struct buf *b, size_t n) {
  if (b->failed)
    return b->failed;
  if (n > b->max || b->len > b->max - n)
    return give_up(b, ST_LIMIT);
  size_t need = b->len + n + 1;
  if (need <= b->cap)
    return ST_OK;
  size_t cap = b->cap ? b->cap : 256;
  while (cap < need)
    cap *= 2;
  if (cap > b->max + 1)
    cap = b->max + 1;
  char *p = realloc(b->data, cap);
  if (!p)
    return give_up(b, ST_NOMEM);
  b->data = p;
  b->cap = cap;
  return ST_OK;
}

enum status buf_printf(struct buf *b, const char *fmt, ...) {
  va_list ap, again;
  va_start(ap, fmt);
  va_copy(again, ap);
  const size_t room = b->cap - b->len;
  int n = vsnprintf(room ? b->data + b->len : NULL, room, fmt, ap);
  if (n >= 0 && (size_t)n >= room && buf_reserve(b, (size_t)n) == ST_OK)
    vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
  if (n >= 0 && !b->failed)
    b->len += (size_t)n;
  va_end(again);
  va_end(ap);
  return b->failed;
}

/* Written by hand, because texts are full of small numbers and printf takes three times as long. */
enum status buf_put_int(struct buf *b, long long v) {
  char text[24], *p = text + sizeof text;
  unsigned long long u = v < 0 ? 0 - (unsigned long long)v : (unsigned long long)v;
  do
    *--p = (char)('0' + u % 10);
  while (u /= 10);
  if (v < 0)
    *--p = '-';
  return buf_append(b, p, (size_t)(text + sizeof text - p));
}
