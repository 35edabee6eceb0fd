/* order: finds races in a run of engine programs, and between two cores, each of which may be one sequence.
 *
 * Two accesses to the same memory, one of which writes, are a race unless one happens before the other in every
 * execution.  What orders accesses (nisa/streams.h):
 *
 *     an engine's instructions, in program order;
 *     a transfer after its trigger, and so after what its engine did before that, and after what the queue's control
 *         waited for;
 *     a wait for semaphore S >= n: after the first n instructions of S's stream that signal, and all before the last of
 *         them in that stream;
 *     a barrier, of a core or of both.
 *
 * Two transfers of one queue are not ordered by the queue.  Each semaphore has one raiser, which raises it in order, so
 * an access happens before another in every execution or in none of them: one run, in any order, finds all races that
 * its control flow has.  The checker needs no values.
 *
 * The caller reports the events of a run, in an order in which they can happen.
 */
#ifndef SIM_ORDER_H
#define SIM_ORDER_H

#include "sim/fault.h"

struct sim_order;

struct sim_order *sim_order_new(const struct sim_program *p);
void sim_order_free(struct sim_order *o); /* NULL is fine */

/* Stream `stream` executes the instruction, with these registers; a queue, if it is no register_load, its next transfer,
 * which has been triggered.  False with a fault when it races with an earlier access, or when the records of accesses
 * exceed their limit. */
MUST_USE bool sim_order_access(struct sim_order *o, int stream, const struct sim_instr *i, const int64_t *regs,
                               struct sim_fault *fault);
/* The stream has waited until the semaphore of stream `raiser` was at least `count`, which it is. */
void sim_order_wait(struct sim_order *o, int stream, int raiser, int64_t count);
void sim_order_trigger(struct sim_order *o, int stream, int queue);
/* All streams of a core meet; of all cores if it is -1. */
void sim_order_barrier(struct sim_order *o, int core);

#endif
