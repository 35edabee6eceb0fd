/* step: scalar arithmetic on registers. */
#ifndef SIM_STEP_H
#define SIM_STEP_H

#include "sim/program.h"

/* Executes a SIM_NODE_STEP.  False: an integer division by zero. */
bool sim_step(const struct sim_node *n, int64_t *regs);

#endif
