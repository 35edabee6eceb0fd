/* table: see table.h. */
#include "base/table.h"

#include <stdint.h>

/* The slot of key, or the free one where it would go. */
static struct table_slot *slot_of(const struct table *t, const void *key) {
  const uint64_t h = ((uint64_t)(uintptr_t)key >> 3) * 0x9E3779B97F4A7C15u;
  size_t k = (size_t)(h >> 32) & (t->size - 1);

  while (t->slots[k].key && t->slots[k].key != key)
    k = (k + 1) & (t->size - 1);
  return &t->slots[k];
}

static void grow(struct table *t) {
  const struct table old = *t;

  t->size = old.size ? 2 * old.size : 64;
  t->slots = arena_new_array(t->arena, struct table_slot, t->size);
  for (size_t k = 0; k < old.size; k++)
    if (old.slots[k].key)
      *slot_of(t, old.slots[k].key) = old.slots[k];
}

void table_put(struct table *t, const void *key, void *value) {
  if (2 * t->n >= t->size)
    grow(t);
  struct table_slot *s = slot_of(t, key);
  t->n += !s->key;
  *s = (struct table_slot){key, value};
}

void *table_get(const struct table *t, const void *key) {
  return t->size ? slot_of(t, key)->value : NULL;
}
