/* record: what register loads gave in a run with values, for the simulation of time, which has none. */
#ifndef SIM_RECORD_H
#define SIM_RECORD_H

#include <stdint.h>

#include "base/arena.h"

/* The values in the order of one stream. */
struct sim_loads {
  int64_t *v;
  int n, cap;
};
/* A program without streams has one list. */
struct sim_record {
  struct arena *arena;
  int n_streams;
  struct sim_loads *streams;
};

void sim_record_init(struct sim_record *r, int n_streams, struct arena *a);
/* Adds a value to the list of a stream, which is one of the record's. */
void sim_record_load(struct sim_record *r, int stream, int64_t value);

#endif
