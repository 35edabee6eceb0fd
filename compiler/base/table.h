/* table: a value for each of a set of pointers.  Keys are compared by address and are never removed.
 *
 * A table has look-ups but no iteration, so results never depend on addresses.
 */
#ifndef BASE_TABLE_H
#define BASE_TABLE_H

#include "base/arena.h"

struct index;

struct table {
  struct arena *arena;
  struct index *index; /* of the entries, by key; NULL while there are none */
  struct table_entry {
    const void *key;
    void *value;
  } *v;
  int n, cap;
};

/* A table starts as {.arena = …}, otherwise zero.  A later value of a key replaces the earlier one.  Neither key nor value
 * may be NULL. */
void table_put(struct table *t, const void *key, void *value);
void *table_get(const struct table *t, const void *key); /* NULL when the key has no value */

#endif
