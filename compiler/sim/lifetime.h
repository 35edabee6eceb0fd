/* lifetime: when a buffer in HBM is used for the last time.  A program does not release HBM; the simulator does, so that a
 * chain of large arrays needs the memory of a few of them. */
#ifndef SIM_LIFETIME_H
#define SIM_LIFETIME_H

#include "sim/program.h"

/* Lists of buffers: first[node] is the first that is not used from this node on, next[buffer] the next one of its list; -1
 * ends a list.  Only nodes that are instructions, allocations, releases or the end have lists. */
struct sim_lifetime {
  int *first, *next;
};

/* False, and nothing to free, if the program has streams, or names buffers by registers: then nothing is known. */
bool sim_lifetime_init(const struct sim_program *p, struct sim_lifetime *out);
void sim_lifetime_clear(struct sim_lifetime *l); /* {NULL, NULL} is fine */

#endif
