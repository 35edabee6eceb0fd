#include "base/table.h"

#include <assert.h>

#include "base/array.h"
#include "base/index.h"

static struct table_entry *find(const struct table *t, const void *key) {
  if (!t->index)
    return NULL;
  for (struct index_probe p = index_probe(t->index, hash_pointer(key)); index_next(&p);)
    if (t->v[p.entry].key == key)
      return &t->v[p.entry];
  return NULL;
}

void table_put(struct table *t, const void *key, void *value) {
  assert(key && value);
  struct table_entry *e = find(t, key);
  if (e) {
    e->value = value;
    return;
  }
  if (!t->index) {
    t->index = arena_new(t->arena, struct index);
    t->index->arena = t->arena;
  }
  index_add(t->index, hash_pointer(key), t->n);
  array_push(t->arena, t, (struct table_entry){key, value});
}

void *table_get(const struct table *t, const void *key) {
  const struct table_entry *e = find(t, key);
  return e ? e->value : NULL;
}
