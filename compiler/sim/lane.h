/* lane: what runs side by side in a timeline: engines and DMA queues; and what a run with values tells about them. */
#ifndef SIM_LANE_H
#define SIM_LANE_H

#include "sim/program.h"

struct sim_lane {
  const char *name;
  enum nisa_engine engine;
  int trigger; /* of a queue: the lane of its engine; -1: an engine */
};

/* The values that register loads gave, in the order of each stream; a program without streams has one list. */
struct sim_loads {
  int n;
  const int64_t *v;
};
struct sim_record {
  int n_streams;
  const struct sim_loads *streams;
};

#endif
