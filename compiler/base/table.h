/* table: what is known of a pointer.  Open addressing; grows in its arena; keys are compared by address and never leave.
 *
 * Only for looking up: nothing goes through a table in its own order, so results do not depend on addresses. */
#ifndef BASE_TABLE_H
#define BASE_TABLE_H

#include "base/arena.h"

struct table {
  struct arena *arena;
  size_t n, size; /* size: slots, a power of two or 0 */
  struct table_slot {
    const void *key;
    void *value;
  } *slots;
};

/* The table is {.arena = …}, otherwise zero, at first.  A key has one value, the last one; it is not NULL. */
void table_put(struct table *t, const void *key, void *value);
void *table_get(const struct table *t, const void *key); /* NULL: never put */

#endif
