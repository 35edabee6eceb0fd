#include "sim/control.h"

#include "sim/step.h"

enum { LOOK_EVERY = 4096 }; /* nodes */

enum sim_control_result sim_control_next(struct sim_control *c, const struct sim_node **node) {
  for (int count = 0; count < LOOK_EVERY; count++) {
    const struct sim_node *n = &c->program->nodes[c->at++];
    switch (n->kind) {
    case SIM_NODE_STEP:
      if (!sim_step(n, c->regs))
        return SIM_CONTROL_DIVISION;
      break;
    case SIM_NODE_MOVE:
      c->regs[n->a] = c->regs[n->b];
      break;
    case SIM_NODE_LINEAR:
      c->regs[n->a] = sim_linear_value(n->linear, c->regs);
      break;
    case SIM_NODE_LESS:
      c->regs[n->a] = c->regs[n->b] < c->regs[n->c];
      break;
    case SIM_NODE_UNLESS:
      if (c->asks && c->asks[n->a]) {
        *node = n;
        return SIM_CONTROL_NODE;
      }
      if (!c->regs[n->a])
        c->at = n->b;
      break;
    case SIM_NODE_GOTO:
      c->at = n->b;
      break;
    default:
      c->at -= n->kind == SIM_NODE_END;
      *node = n;
      return SIM_CONTROL_NODE;
    }
  }
  return SIM_CONTROL_LOOK;
}
