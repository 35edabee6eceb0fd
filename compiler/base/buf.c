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
  int n = vsnprintf(NULL, 0, fmt, again);
  va_end(again);
  if (n >= 0 && buf_reserve(b, (size_t)n) == ST_OK) {
    vsnprintf(b->data + b->len, (size_t)n + 1, fmt, ap);
    b->len += (size_t)n;
  }
  va_end(ap);
  return b->failed;
}
