/* memory: blocks that are freed together, and the map from keys to numbers. */
#include <stdlib.h>
#include <string.h>

#include "diff/internal.h"

struct block {
  struct block *next;
  size_t used, size;
  max_align_t data[];
};

struct diff_memory {
  struct block *blocks;
};

enum { BLOCK_SIZE = 256 << 10, ALIGN = _Alignof(max_align_t) };

struct diff_memory *diff_memory_new(void) {
  return calloc(1, sizeof(struct diff_memory));
}

void diff_memory_free(struct diff_memory *m) {
  if (!m)
    return;
  for (struct block *b = m->blocks, *next; b; b = next) {
    next = b->next;
    free(b);
  }
  free(m);
}

void *diff_alloc(struct diff_memory *m, size_t n, size_t size) {
  size_t want;
  if (__builtin_mul_overflow(n, size, &want) || want > SIZE_MAX / 2)
    return NULL;
  want = (want + ALIGN - 1) / ALIGN * ALIGN;
  struct block *b = m->blocks;
  if (!b || b->size - b->used < want) {
    size_t cap = want > BLOCK_SIZE ? want : BLOCK_SIZE;
    b = calloc(1, sizeof *b + cap);
    if (!b)
      return NULL;
    b->size = cap;
    if (m->blocks && cap == want && m->blocks->size > m->blocks->used) { /* a large one: keep filling the last */
      b->next = m->blocks->next;
      m->blocks->next = b;
    } else {
      b->next = m->blocks;
      m->blocks = b;
    }
  }
  void *p = (char *)b->data + b->used;
  b->used += want;
  return p;
}

bool int_map_init(struct diff_memory *m, struct int_map *t, size_t expected) {
  size_t cap = 16;
  while (cap < expected * 2)
    cap *= 2;
  *t = (struct int_map){
      .cap = cap, .keys = diff_alloc(m, cap, sizeof *t->keys), .values = diff_alloc(m, cap, sizeof *t->values)};
  return t->keys && t->values;
}

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
