/* elementwise: instructions that compute element by element.  exec_arith.c opens their operands and computes in integers
 * and bits, exec_float.c in f32. */
#ifndef SIM_ELEMENTWISE_H
#define SIM_ELEMENTWISE_H

#include "sim/machine.h"

struct elementwise {
  struct sim_access dst, src[3]; /* src[0] is src or lhs; the others rhs, operand0 and operand1, or scale and bias */
  int n_src;
  struct sim_access sum; /* activation: reduce_res */
  bool has_sum;
  bool overlaps; /* dst is a part of a source, but not the same elements in the same order */
};

/* Executes the current instruction, all of whose values between its steps are f32. */
MUST_USE bool sim_exec_float(struct sim_machine *m, const struct elementwise *e);

#endif
