#include "base/index.h"

#include <assert.h>
#include <limits.h>

enum { FIRST_SIZE = 16 };

/* Slots for n elements: at most half of them are taken, so that probes stay short. */
static size_t size_for(size_t n) {
  size_t size = FIRST_SIZE;
  while (size < 2 * n)
    size *= 2;
  return size;
}

static void put(struct index *x, struct index_slot s) {
  size_t at = s.hash & (x->size - 1);
  while (x->slots[at].entry)
    at = (at + 1) & (x->size - 1);
  x->slots[at] = s;
}

/* Elements with equal hashes keep their order: the walk begins after a free slot, so it meets every run of slots from its
 * beginning. */
static void move_slots(struct index *x, const struct index_slot *old, size_t n) {
  size_t first = 0;
  while (first < n && old[first].entry)
    first++;
  assert(first < n || !n);
  for (size_t k = 0; k < n; k++) {
    const struct index_slot s = old[(first + k) & (n - 1)];
    if (s.entry)
      put(x, s);
  }
}

static bool resize(struct index *x, size_t size) {
  const struct index old = *x;
  assert(size > old.size && !(size & (size - 1)));
  struct index_slot *slots = arena_try_array(x->arena, size, sizeof *slots);
  if (!slots)
    return false;
  x->slots = slots;
  x->size = x->room = size;
  move_slots(x, old.slots, old.size);
  return true;
}

bool index_reserve(struct index *x, size_t n) {
  const size_t size = size_for(n);
  return size <= x->size || resize(x, size);
}

void index_add(struct index *x, uint32_t hash, int entry) {
  assert(entry >= 0 && entry < INT_MAX);
  if (2 * (x->n + 1) > x->size && !resize(x, size_for(x->n + 1)))
    arena_oom(x->size * sizeof *x->slots);
  put(x, (struct index_slot){hash, (uint32_t)entry + 1});
  x->n++;
}

void index_restart(struct index *x, size_t n) {
  const size_t size = size_for(n);
  x->n = 0;
  if (size > x->room) {
    x->slots = arena_new_array(x->arena, struct index_slot, size);
    x->room = size;
  } else {
    memset(x->slots, 0, size * sizeof *x->slots);
  }
  x->size = size;
}

void index_reset(struct index *x) {
  if (x->n)
    memset(x->slots, 0, x->size * sizeof *x->slots);
  x->n = 0;
}

uint32_t hash_bytes(const void *p, size_t n) {
  const unsigned char *b = p;
  uint64_t h = n, word;
  for (; n >= sizeof word; b += sizeof word, n -= sizeof word) {
    memcpy(&word, b, sizeof word);
    h = hash_mix(h, word);
  }
  word = 0;
  memcpy(&word, b, n);
  h = hash_mix(h, word);
  return (uint32_t)(h ^ h >> 29);
}
