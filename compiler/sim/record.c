#include "sim/record.h"

#include "base/array.h"

void sim_record_init(struct sim_record *r, int n_streams, struct arena *a) {
  const int n = n_streams ? n_streams : 1;
  *r = (struct sim_record){.arena = a, .n_streams = n, .streams = arena_new_array(a, struct sim_loads, (size_t)n)};
}

void sim_record_load(struct sim_record *r, int stream, int64_t value) {
  assert(stream >= 0 && stream < r->n_streams);
  array_push(r->arena, &r->streams[stream], value);
}
