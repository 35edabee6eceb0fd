#include "base/arena.h"

#include <assert.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ALIGN = 8, FIRST_BLOCK = 64 << 10, LARGEST_BLOCK = 4 << 20, HUGE_PAGE = 2 << 20, PAGE = 4096 };

struct arena_block {
  struct arena_block *next;
  size_t mapped; /* bytes, 0: from the heap */
  size_t size;   /* bytes of data */
  char data[];   /* aligned to ALIGN */
};

_Noreturn void arena_oom(size_t wanted) {
  char text[96];
  int n = snprintf(text, sizeof text, "nkx: out of memory (%zu bytes wanted)\n", wanted);
  if (write(STDERR_FILENO, text, (size_t)n) < 0) {
    /* standard error is closed: nothing can be reported */
  }
  _exit(EXIT_OOM);
}

void arena_init(struct arena *a) {
  *a = (struct arena){0};
}

/* A zeroed block, in huge pages if the system has them, because repeated walks over much memory then wait less for page
 * tables.  The block ends with a small page: the system would clear all of a last huge page for a few bytes of it.  Not
 * under a sanitizer, which checks blocks of the heap more closely. */
static struct arena_block *map(size_t n) {
#ifdef __SANITIZE_ADDRESS__
  (void)n;
  return NULL;
#else
  size_t size;
  if (__builtin_add_overflow(n, HUGE_PAGE + PAGE - 1, &size))
    return NULL;
  size = (size & ~(size_t)(PAGE - 1)) - HUGE_PAGE;
  char *p = mmap(NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED)
    return NULL;
  const size_t head = -(uintptr_t)p & (HUGE_PAGE - 1); /* before the first huge page */
  if (head)
    munmap(p, head);
  munmap(p + head + size, HUGE_PAGE - head);
  struct arena_block *b = (struct arena_block *)(p + head);
  madvise(b, size, MADV_HUGEPAGE);
  b->mapped = size;
  return b;
#endif
}

static void free_blocks(struct arena_block *b) {
  while (b) {
    struct arena_block *next = b->next;
    if (b->mapped)
      munmap(b, b->mapped);
    else
      free(b);
    b = next;
  }
}

void arena_clear(struct arena *a) {
  free_blocks(a->blocks);
  free_blocks(a->spare);
  arena_init(a);
}

void arena_reuse(struct arena *a) {
#ifdef __SANITIZE_ADDRESS__
  arena_clear(a); /* a use of what was freed is found */
#else
  struct arena_block *spare = a->spare;
  for (struct arena_block *b = a->blocks, *next; b; b = next) {
    next = b->next;
    b->next = spare;
    spare = b;
  }
  *a = (struct arena){.spare = spare, .is_reused = true, .total = a->total};
#endif
}

/* A block that is kept with room for n bytes; NULL if there is none. */
static struct arena_block *take_spare(struct arena *a, size_t n) {
  for (struct arena_block **at = &a->spare; *at; at = &(*at)->next) {
    struct arena_block *b = *at;
    if (b->size < n)
      continue;
    *at = b->next;
    return b;
  }
  return NULL;
}

/* A block with n bytes of data or more; *is_zero: they are zeroed.  NULL when out of memory. */
static struct arena_block *new_block(struct arena *a, size_t n, bool *is_zero) {
  size_t whole;
  struct arena_block *b = a->spare ? take_spare(a, n) : NULL;
  *is_zero = false;
  if (b)
    return b;
  if (a->is_reused && n >= LARGEST_BLOCK &&
      n < SIZE_MAX / 2) /* fits what is somewhat larger, too; nothing touches the rest */
    n = (n + LARGEST_BLOCK - 1) / LARGEST_BLOCK * LARGEST_BLOCK;
  if (__builtin_add_overflow(n, sizeof(struct arena_block), &whole))
    return NULL;
  b = whole < LARGEST_BLOCK ? NULL : map(whole);
  *is_zero = b != NULL;
  if (!b) {
    b = malloc(whole);
    if (!b)
      return NULL;
    b->mapped = 0;
  }
  b->size = n;
  a->total += n;
  return b;
}

bool arena_reserve(struct arena *a, size_t n) {
  bool is_zero;
  struct arena_block *b = new_block(a, n, &is_zero);
  if (!b)
    return false;
  b->next = a->blocks;
  a->blocks = b;
  a->is_zero = is_zero;
  a->used = 0;
  a->size = b->size;
  return true;
}

static bool grow(struct arena *a, size_t need) {
  size_t size = a->size ? a->size * 2 : FIRST_BLOCK;
  if (size > LARGEST_BLOCK)
    size = LARGEST_BLOCK - sizeof(struct arena_block);
  return arena_reserve(a, size < need ? need : size);
}

/* n bytes in a block of their own, after the newest one, which keeps its unused part; NULL when out of memory. */
static void *take_alone(struct arena *a, size_t n, bool *is_zero) {
  struct arena_block *b = new_block(a, n, is_zero);
  if (!b)
    return NULL;
  b->next = a->blocks->next;
  a->blocks->next = b;
  return b->data;
}

/* n bytes, which are zero if *is_zero; NULL when out of memory. */
static void *try_take(struct arena *a, size_t n, bool *is_zero) {
  size_t rounded;
  if (__builtin_add_overflow(n, ALIGN - 1, &rounded))
    return NULL;
  rounded &= ~(size_t)(ALIGN - 1);
  if (a->blocks && a->size - a->used < rounded && rounded >= LARGEST_BLOCK)
    return take_alone(a, rounded, is_zero);
  if ((!a->blocks || a->size - a->used < rounded) && !grow(a, rounded))
    return NULL;
  char *p = a->blocks->data + a->used;
  a->used += rounded;
  assert(a->used <= a->size);
  *is_zero = a->is_zero;
  return p;
}

static void *take(struct arena *a, size_t n, bool *is_zero) {
  void *p = try_take(a, n, is_zero);
  if (!p)
    arena_oom(n);
  return p;
}

void *arena_alloc(struct arena *a, size_t n) {
  bool is_zero;
  void *p = take(a, n, &is_zero);
  return is_zero ? p : memset(p, 0, n);
}

void *arena_array(struct arena *a, size_t n, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(n, size, &bytes))
    arena_oom(SIZE_MAX);
  return arena_alloc(a, bytes);
}

void *arena_try_array(struct arena *a, size_t n, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(n, size, &bytes))
    return NULL;
  bool is_zero;
  void *p = try_take(a, bytes, &is_zero);
  return !p || is_zero ? p : memset(p, 0, bytes);
}

bool arena_extend(struct arena *a, const void *p, size_t n, size_t more) {
  const size_t from = (n + ALIGN - 1) & ~(size_t)(ALIGN - 1), to = (n + more + ALIGN - 1) & ~(size_t)(ALIGN - 1);
  if (!a->blocks || (const char *)p + from != a->blocks->data + a->used || to - from > a->size - a->used)
    return false;
  a->used += to - from;
  return true;
}

void *arena_dup(struct arena *a, const void *p, size_t n) {
  bool is_zero;
  void *q = take(a, n, &is_zero);
  if (n)
    memcpy(q, p, n);
  return q;
}

char *arena_strndup(struct arena *a, const char *s, size_t n) {
  bool is_zero;
  char *q = take(a, n + 1, &is_zero);
  memcpy(q, s, n);
  q[n] = 0;
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
