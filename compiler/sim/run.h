/* run: executes a decoded program on arrays, one instruction at a time.
 *
 * A program that is one sequence runs in program order.  Engine programs (nisa/streams.h) run in one of several orders
 * that are all legal; every order gives the same values unless there is a race, which any of them reports (sim/order.h).
 *
 * It is a strict machine: it stops at the first thing that a NeuronCore would do silently, and says which instruction
 * did it.  Values follow nisa/nisa.h.
 */
#ifndef SIM_RUN_H
#define SIM_RUN_H

#include "base/diag.h"
#include "sim/fault.h"
#include "sim/options.h"

/* Runs the program on args[n_args], which are not changed.  results[n_results] are filled; the caller has allocated
 * the bytes that the program's results have.  A null result is not copied.  counts may be NULL.  On ST_INPUT *fault says
 * what went wrong; otherwise it is SIM_FAULT_NONE. */
MUST_USE enum status sim_run(const struct sim_program *p, const void *const *args, void *const *results,
                             const struct sim_options *options, struct sim_counts *counts, struct sim_fault *fault);

/* Runs the streams of engine programs without values, and finds deadlocks and races only.  ST_LIMIT, without a fault,
 * for a program with a register_load: what it does depends on values. */
MUST_USE enum status sim_check_order(const struct sim_program *p, const struct sim_options *options,
                                     struct sim_fault *fault);

#endif
