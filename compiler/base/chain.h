/* chain: hash chains of objects that hold their own links.
 *
 * For objects that are added and removed often: neither allocates memory.  The caller owns the
 * objects, hashes their keys and compares them.  The table starts zeroed and has a fixed number of chains.
 *
 *     for (struct chain_link *l = chain_first(&t, hash); l; l = chain_next(l))
 *       if (same((struct thing *)l, key))      the link is the first member of struct thing
 *         return (struct thing *)l;
 *     chain_add(&t, &thing->link, hash);
 */
#ifndef BASE_CHAIN_H
#define BASE_CHAIN_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

enum { CHAINS = 4096 };

struct chain_link {
  struct chain_link *next;
  uint32_t hash;
};

struct chain_table {
  struct chain_link *heads[CHAINS];
  int n;
};

static inline struct chain_link **chain_head(struct chain_table *t, uint32_t hash) {
  return &t->heads[hash % CHAINS];
}

/* The links with one hash, the one that was added last comes first. */
static inline struct chain_link *chain_same(struct chain_link *l, uint32_t hash) {
  while (l && l->hash != hash)
    l = l->next;
  return l;
}
static inline struct chain_link *chain_first(struct chain_table *t, uint32_t hash) {
  return chain_same(*chain_head(t, hash), hash);
}
static inline struct chain_link *chain_next(struct chain_link *l) {
  return chain_same(l->next, l->hash);
}

static inline void chain_add(struct chain_table *t, struct chain_link *l, uint32_t hash) {
  struct chain_link **head = chain_head(t, hash);
  *l = (struct chain_link){*head, hash};
  *head = l;
  t->n++;
}

/* l is in the table. */
static inline void chain_remove(struct chain_table *t, struct chain_link *l) {
  struct chain_link **at = chain_head(t, l->hash);
  while (*at != l) {
    assert(*at);
    at = &(*at)->next;
  }
  *at = l->next;
  t->n--;
  assert(t->n >= 0);
}

#endif
