/* arena: memory that is freed all at once.
 *
 * A compile job allocates from one arena.  Everything that an arena function returns lives exactly as long as the arena.
 * When memory runs out, arena_oom ends the process.  A job is a process of its own and its parent reports "out of memory"
 * for it, so no caller in the compiler checks for NULL.  The server must not end, so it reserves the memory that a request
 * can need before it begins with the request.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

struct arena {
  struct arena_block *blocks;
  struct arena_block *spare; /* blocks of before arena_reuse, for what comes */
  size_t used, size;         /* of the newest block */
  bool is_zero;              /* its unused part is zeroed */
  bool is_reused;            /* arena_reuse was called */
  size_t total;              /* bytes asked for so far */
};

void arena_init(struct arena *a);
void arena_clear(struct arena *a); /* frees everything; the arena can be used again */
/* The same, but keeps the memory for the next allocations: a stage of a compile needs as much as the one before it, and the
 * system would clear each page again. */
void arena_reuse(struct arena *a);
/* Makes a block of n bytes, so that the next allocations up to that size cannot fail; false when out of memory. */
MUST_USE bool arena_reserve(struct arena *a, size_t n);

/* n zeroed bytes, aligned to 8: for any type but long double and __int128.  n == 0 gives a valid pointer. */
void *arena_alloc(struct arena *a, size_t n) __attribute__((malloc, returns_nonnull));
/* n zeroed elements of size bytes each; an overflowing product counts as out of memory. */
void *arena_array(struct arena *a, size_t n, size_t size) __attribute__((malloc, returns_nonnull));
/* The same as arena_array, but NULL when out of memory: for the server, which can answer that. */
MUST_USE void *arena_try_array(struct arena *a, size_t n, size_t size);
/* Extends the newest allocation, the n bytes at p, by `more` bytes, which are not zeroed.  False when it is not the
 * newest one or the block has no room; nothing changes then. */
bool arena_extend(struct arena *a, const void *p, size_t n, size_t more);
void *arena_dup(struct arena *a, const void *p, size_t n) __attribute__((returns_nonnull)); /* NULL is fine if n == 0 */
char *arena_strdup(struct arena *a, const char *s) __attribute__((returns_nonnull));
char *arena_strndup(struct arena *a, const char *s, size_t n) __attribute__((returns_nonnull)); /* adds a NUL */
char *arena_printf(struct arena *a, const char *fmt, ...) PRINTF(2, 3) __attribute__((returns_nonnull));
char *arena_vprintf(struct arena *a, const char *fmt, va_list ap) PRINTF(2, 0) __attribute__((returns_nonnull));

#define arena_new(a, type) ((type *)arena_alloc((a), sizeof(type)))
#define arena_new_array(a, type, n) ((type *)arena_array((a), (n), sizeof(type)))

/* Exit status of a process that ran out of memory in an arena. */
enum { EXIT_OOM = 86 };
_Noreturn void arena_oom(size_t wanted);

#endif
