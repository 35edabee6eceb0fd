#include "base/arena.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ALIGN = 16, FIRST_BLOCK = 64 << 10, HUGE_PAGE = 2 << 20, LARGEST_BLOCK = 4 << 20 };

struct arena_block {
  struct arena_block *next;
  size_t pad; /* keeps data aligned to ALIGN */
  char data[];
};

_Noreturn void arena_oom(size_t wanted) {
  char text[96];
  int n = snprintf(text, sizeof text, "nkx: out of memory (%zu bytes wanted)\n", wanted);
  if (write(STDERR_FILENO, text, (size_t)n) < 0) {
    /* nothing left to tell it to */
  }
  _exit(EXIT_OOM);
}

void arena_init(struct arena *a) {
  *a = (struct arena){0};
}

void arena_clear(struct arena *a) {
  struct arena_block *b = a->blocks;
  while (b) {
    struct arena_block *next = b->next;
    free(b);
    b = next;
  }
  arena_init(a);
}

/* What is large stands in huge pages where there are any: walks over it again and again wait less for page tables. */
static void *block(size_t n) {
  if (n < LARGEST_BLOCK)
    return malloc(n);
  void *b = aligned_alloc(HUGE_PAGE, (n + HUGE_PAGE - 1) & ~(size_t)(HUGE_PAGE - 1));
  if (b)
    madvise(b, n & ~(size_t)(HUGE_PAGE - 1), MADV_HUGEPAGE);
  return b;
}

bool arena_reserve(struct arena *a, size_t n) {
  struct arena_block *b = block(sizeof *b + n);
  if (!b)
    return false;
  b->next = a->blocks;
  a->blocks = b;
  a->used = 0;
  a->size = n;
  a->total += n;
  return true;
}

static void grow(struct arena *a, size_t need) {
  size_t size = a->size ? a->size * 2 : FIRST_BLOCK;
  if (size > LARGEST_BLOCK)
    size = LARGEST_BLOCK - sizeof(struct arena_block);
  if (size < need)
    size = need;
  if (!arena_reserve(a, size))
    arena_oom(size);
}

void *arena_alloc(struct arena *a, size_t n) {
  size_t rounded;
  if (__builtin_add_overflow(n, ALIGN - 1, &rounded))
    arena_oom(n);
  rounded &= ~(size_t)(ALIGN - 1);
  if (!a->blocks || a->size - a->used < rounded)
    grow(a, rounded);
  char *p = a->blocks->data + a->used;
  a->used += rounded;
  return memset(p, 0, rounded);
}

void *arena_array(struct arena *a, size_t n, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(n, size, &bytes))
    arena_oom(SIZE_MAX);
  return arena_alloc(a, bytes);
}

void *arena_dup(struct arena *a, const void *p, size_t n) {
  void *q = arena_alloc(a, n);
  if (n)
    memcpy(q, p, n);
  return q;
}

char *arena_strndup(struct arena *a, const char *s, size_t n) {
  char *q = arena_alloc(a, n + 1);
  memcpy(q, s, n);
  return q;
}

char *arena_strdup(struct arena *a, const char *s) {
  return arena_strndup(a, s, strlen(s));
}

char *arena_vprintf(struct arena *a, const char *fmt, va_list ap) {
  va_list again;
  va_copy(again, ap);
  int n = vsnprintf(NULL, 0, fmt, again);
  va_end(again);
  char *q = arena_alloc(a, (size_t)(n > 0 ? n : 0) + 1);
  if (n > 0)
    vsnprintf(q, (size_t)n + 1, fmt, ap);
  return q;
}

char *arena_printf(struct arena *a, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  char *q = arena_vprintf(a, fmt, ap);
  va_end(ap);
  return q;
}
