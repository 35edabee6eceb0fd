/* engines: runs the streams of engine programs on one machine, in the order that its options say. */
#ifndef SIM_ENGINES_H
#define SIM_ENGINES_H

#include "sim/machine.h"
#include "sim/order.h"

/* Runs all streams to their ends.  m->regs are the registers with which each stream starts; they do not change.  Reports
 * every event to `order`.  Without m->memories, instructions are not executed.  False with a fault: of an instruction, a
 * race, a deadlock, a trigger that starts no transfer, or the deadline. */
MUST_USE bool sim_run_streams(struct sim_machine *m, struct sim_order *order);

#endif
