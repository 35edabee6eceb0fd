/* lane: what runs side by side in a timeline: engines and DMA queues. */
#ifndef SIM_LANE_H
#define SIM_LANE_H

#include "sim/program.h"

struct sim_lane {
  const char *name;
  enum nisa_engine engine;
  int trigger; /* of a queue: the lane of its engine; -1: an engine */
  int core;
};

#endif
