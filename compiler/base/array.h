/* array: growing an array of elements in an arena.
 *
 * The caller declares three members, { T *v; int n, cap; }, zero at first, in its own struct.  When the array moves, the
 * old elements stay in the arena, so a pointer to one stays valid for reading.
 */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include <assert.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"

enum { ARRAY_FIRST = 16 }; /* elements of the first block */

/* The capacity after `cap`. */
static inline int array_next_cap(int cap) {
  if (cap > INT_MAX / 2)
    arena_oom((size_t)cap);
  return cap ? 2 * cap : ARRAY_FIRST;
}

/* Returns the n elements of `size` bytes at v in a block with room for at least one more; *cap is its new capacity. */
static inline void *array_grow(struct arena *a, void *v, int n, int *cap, size_t size) {
  const int from = *cap;
  assert(n >= 0 && n <= from && (v || !n));
  *cap = array_next_cap(from);
  if (v && arena_extend(a, v, (size_t)from * size, (size_t)(*cap - from) * size))
    return v;
  void *more = arena_array(a, (size_t)*cap, size);
  if (n)
    memcpy(more, v, (size_t)n * size);
  return more;
}

/* Makes room for one more element in *x, in arena a. */
#define array_reserve(a, x) \
  ((x)->n < (x)->cap ? (void)0 : (void)((x)->v = array_grow((a), (x)->v, (x)->n, &(x)->cap, sizeof *(x)->v)))
/* Appends one element; evaluates to its place. */
#define array_push(a, x, ...) (array_reserve(a, x), (x)->v[(x)->n] = (__VA_ARGS__), &(x)->v[(x)->n++])

/* The same on the heap: false when out of memory, and *v is as it was. */
static inline MUST_USE bool array_grow_heap(void **v, int *cap, size_t size) {
  const int next = *cap > INT_MAX / 2 ? 0 : *cap ? 2 * *cap : ARRAY_FIRST;
  void *more = next ? realloc(*v, (size_t)next * size) : NULL;
  if (!more)
    return false;
  *v = more;
  *cap = next;
  return true;
}

#endif
