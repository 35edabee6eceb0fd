/* space: how much the store takes, against its ceiling.
 *
 * The writing thread measures after what it does, so that the number is right when the next link asks; any thread reads it.
 */
#ifndef STORE_SPACE_H
#define STORE_SPACE_H

#include <stdatomic.h>
#include <stdbool.h>

#include "store/db.h"
#include "store/store.h"

struct space {
  atomic_llong bytes, max, links, free_bytes;
  atomic_llong object_bytes, objects_to_send; /* a part of bytes */
  char *dir;                                  /* of SQLite's file; NULL: the store is on another machine.  Heap */
  atomic_int runs_waiting, runs_running, runners;
  int64_t measure_at_ms, count_at_ms, runs_at_ms;
  enum store_space told; /* what the log has said */
};

void space_init(struct space *s, const char *url);
void space_clear(struct space *s);
/* On the writing thread, after each task and from time to time.  The alarm, when a threshold is crossed, is a line of the log. */
void space_tend(struct space *s, struct db *db);
enum store_space space_look(const struct space *s);

#endif
