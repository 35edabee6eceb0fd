/* tensor_clock: the clock of the Tensor engine, which on trn2 is halved until the engine has been busy.
 *
 * Time is cut into windows.  At the end of each, the part of it in which products were under way decides about the next:
 *
 *     half clock   busy for at least SIM_TENSOR_UP percent  ->  full clock
 *     full clock   busy for less than SIM_TENSOR_DOWN percent  ->  half clock
 *
 * It starts with half clock.  A product that goes on after the end of a window does so at the new clock.
 */
#ifndef SIM_TENSOR_CLOCK_H
#define SIM_TENSOR_CLOCK_H

#include "sim/cost.h"

struct sim_tensor_clock {
  enum target target;
  int64_t window_ps; /* 0: always full clock */
  int64_t end;       /* of the current window */
  bool is_full;
  int64_t busy, later; /* in the current window; of what is under way, after it */
  int64_t busy_until;
};

struct sim_tensor_clock sim_tensor_clock_new(enum target t);
/* Computes products for so many cycles from `start` on, which is not before the end of the last call: *free is when the next
 * one can start, *end when the result is written.  True if part of it ran at half clock. */
bool sim_tensor_clock_run(struct sim_tensor_clock *c, int64_t start, int64_t cycles, int64_t *free, int64_t *end);
/* The time of so many cycles at the clock of this moment. */
int64_t sim_tensor_clock_cycles(struct sim_tensor_clock *c, int64_t at, int64_t cycles);

#endif
