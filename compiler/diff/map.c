#include <assert.h>

#include "diff/internal.h"

bool int_map_init(struct arena *arena, struct int_map *t, size_t expected) {
  size_t cap = 16;
  while (cap < expected * 2)
    cap *= 2;
  *t = (struct int_map){.cap = cap,
                        .keys = arena_try_array(arena, cap, sizeof *t->keys),
                        .values = arena_try_array(arena, cap, sizeof *t->values)};
  return t->keys && t->values;
}

/* The slot that has the key, or the free one where it belongs. */
static size_t slot_of(const struct int_map *t, uint64_t key) {
  size_t i = (key ^ key >> 29) & (t->cap - 1);
  while (t->keys[i] && t->keys[i] != key)
    i = (i + 1) & (t->cap - 1);
  return i;
}

int *int_map_put(struct int_map *t, uint64_t key, int fresh) {
  key += !key;
  size_t i = slot_of(t, key);
  if (!t->keys[i]) {
    assert(2 * t->n < t->cap); /* so that a free slot is always near */
    t->keys[i] = key;
    t->values[i] = fresh;
    t->n++;
  }
  return &t->values[i];
}

int int_map_get(const struct int_map *t, uint64_t key, int missing) {
  key += !key;
  size_t i = slot_of(t, key);
  return t->keys[i] ? t->values[i] : missing;
}
