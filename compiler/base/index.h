/* index: finds an element of the caller's array by a hash of its key.
 *
 * The index keeps hashes and numbers only: the caller owns the elements, hashes their keys, and says which element it
 * looks for.  Open addressing with linear probing; it grows in its arena.  Results never depend on the order of slots.
 *
 *     for (struct index_probe p = index_probe(&x, hash); index_next(&p);)
 *       if (same(elements[p.entry], key))
 *         return p.entry;
 *     index_add(&x, hash, n_elements);
 */
#ifndef BASE_INDEX_H
#define BASE_INDEX_H

#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"

struct index_slot {
  uint32_t hash;
  uint32_t entry; /* one more than the element's number; 0: free */
};

struct index {
  struct arena *arena;
  size_t n, size; /* size: slots, a power of two or 0; at most half of them are taken */
  size_t room;    /* slots that have memory, at least size */
  struct index_slot *slots;
};

/* An index starts as {.arena = …}, otherwise zero. */
void index_add(struct index *x, uint32_t hash, int entry);
/* Makes room for at least n elements, so that index_add allocates nothing until then; false when out of memory. */
MUST_USE bool index_reserve(struct index *x, size_t n);
/* Makes the index empty and ready for n elements.  Takes time in proportion to n, not to the elements
 * that it had, and reuses their memory: for a series of indexes of very different sizes. */
void index_restart(struct index *x, size_t n);
/* Makes the index empty and keeps its room. */
void index_reset(struct index *x);

/* The elements that were added with one hash, in the order in which they were added. */
struct index_probe {
  const struct index *x;
  size_t at; /* the next slot to look at */
  uint32_t hash;
  int entry;
};
static inline struct index_probe index_probe(const struct index *x, uint32_t hash) {
  return (struct index_probe){x, hash & (x->size - 1), hash, -1};
}
static inline bool index_next(struct index_probe *p) {
  const struct index *x = p->x;
  if (!x->size)
    return false;
  assert(p->at < x->size);
  for (;;) {
    const struct index_slot *s = &x->slots[p->at];
    if (!s->entry)
      return false;
    p->at = (p->at + 1) & (x->size - 1);
    if (s->hash == p->hash) {
      p->entry = (int)s->entry - 1;
      return true;
    }
  }
}

/* ---- hashes: well mixed in their low bits, the same in every run for the same bytes ---- */

static inline uint64_t hash_mix(uint64_t h, uint64_t v) {
  h = (h ^ v) * 0x9E3779B97F4A7C15u;
  return h ^ h >> 32;
}
uint32_t hash_bytes(const void *p, size_t n);
static inline uint32_t hash_text(const char *s) {
  return hash_bytes(s, strlen(s));
}
static inline uint32_t hash_pointer(const void *p) {
  return (uint32_t)hash_mix(0, (uint64_t)(uintptr_t)p >> 3);
}

#endif
