/* recorder: what register loads gave in a run with values, so that a run without values takes the same branches. */
#ifndef SIM_RECORDER_H
#define SIM_RECORDER_H

#include "base/arena.h"
#include "sim/lane.h"

struct sim_recorder {
  struct arena *arena;
  int n_streams; /* at least 1: a program without streams has one list */
  struct sim_recorder_list {
    int64_t *v;
    int n, cap;
  } *streams;
};

/* All memory is allocated in a. */
void sim_recorder_init(struct sim_recorder *r, const struct sim_program *p, struct arena *a);
void sim_recorder_add(struct sim_recorder *r, int stream, int64_t value);
/* What was recorded, for sim_time; borrowed from r. */
struct sim_record sim_recorder_record(const struct sim_recorder *r);

#endif
