/* control: the control flow and the register arithmetic of a program.
 *
 * Whoever runs nodes asks for the next one that does something else than compute registers, does it, and asks again.
 */
#ifndef SIM_CONTROL_H
#define SIM_CONTROL_H

#include "sim/program.h"

struct sim_control {
  const struct sim_program *program;
  int64_t *regs;
  int at;           /* the node that comes next */
  const bool *asks; /* per register: a SIM_NODE_UNLESS on it is handed out, not followed; NULL: none is */
};

enum sim_control_result {
  SIM_CONTROL_NODE,     /* *node: SIM_NODE_INSTR, ALLOC, RELEASE, WAIT, TRIGGER, BARRIER or END; UNLESS if it asks */
  SIM_CONTROL_LOOK,     /* many nodes without one of these: time to look at the clock; then ask again */
  SIM_CONTROL_DIVISION, /* an integer division by zero */
};

/* After a SIM_NODE_END, which comes again if it is asked for again, `at` is that node; after others the one after it. */
enum sim_control_result sim_control_next(struct sim_control *c, const struct sim_node **node);

#endif
