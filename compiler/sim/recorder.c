#include "sim/recorder.h"

#include <assert.h>

#include "base/array.h"

/* A timeline has no more executions than this, so that it looks at no more values. */
enum { VALUES_MAX = 4 << 20 };

void sim_recorder_init(struct sim_recorder *r, const struct sim_program *p, struct arena *a) {
  const int n = p->n_streams ? p->n_streams : 1;
  *r = (struct sim_recorder){a, n, arena_new_array(a, struct sim_recorder_list, (size_t)n)};
}

void sim_recorder_add(struct sim_recorder *r, int stream, int64_t value) {
  assert(stream >= 0 && stream < r->n_streams);
  struct sim_recorder_list *l = &r->streams[stream];
  if (l->n < VALUES_MAX)
    array_push(r->arena, l, value);
}

struct sim_record sim_recorder_record(const struct sim_recorder *r) {
  struct sim_loads *loads = arena_new_array(r->arena, struct sim_loads, (size_t)r->n_streams);
  for (int k = 0; k < r->n_streams; k++)
    loads[k] = (struct sim_loads){r->streams[k].n, r->streams[k].v};
  return (struct sim_record){r->n_streams, loads};
}
