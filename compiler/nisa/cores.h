/* cores: two NeuronCores that run one kernel side by side, as one logical core (LNC 2; trn2 and later).
 *
 * A function for two cores has arguments and results as any other.  Its entry block has what both cores use: allocations in
 * shared_hbm, constants, and views of these and of the arguments.  Then it has one region per core, then func.return:
 *
 *     nisa.core 0 {                    an scf.execute_region with nisa.core = 0 : i64
 *       %sbuf = nisa.alloc …
 *       …
 *       nisa.core_barrier
 *       …
 *     }
 *     nisa.core 1 { … }
 *
 * Each core has memories on chip, engines, DMA queues, semaphores and registers of its own, and a region is a program in
 * one of the two forms of NISA: one sequence, or engine programs (streams.h), whose names belong to their core.  Both
 * cores start at the same time.  They share the arguments and what is allocated in shared_hbm; hbm that a core allocates
 * is its own.  Nothing orders what they do but:
 *
 *     core_barrier  Both cores wait here until both are here and all that they did before is complete: of engine
 *                   programs, all streams of both cores and all their transfers; then all semaphores are 0.  Both cores
 *                   have as many, in loops of the same form; none is in a branch or in a loop that depends on data.
 *     sendrecv      A transfer.  Number n of one core exchanges data with number n of the other: dst of each gets src
 *                   of the other.  It starts when both cores have reached it, and it orders no other access.
 *
 * Two accesses of different cores to the same bytes, one of which writes, are a race unless a core_barrier is between.
 */
#ifndef NISA_CORES_H
#define NISA_CORES_H

#include "ir/query.h"

enum { NISA_CORES = 2 };

bool nisa_is_core(MlirOperation op);
/* The number of a core's region. */
int nisa_core_number(MlirOperation core);
/* The core's region that op is in, or is; null outside. */
MlirOperation nisa_core_around(MlirOperation op);
/* The function has a region per core. */
bool nisa_has_cores(MlirOperation function);
/* What is executed as one program: the regions of the function's cores in their order, or the function. */
struct ir_ops nisa_roots(struct arena *a, MlirOperation function);
/* "core 1: " for the region of a core; "" for a function.  In a. */
const char *nisa_root_label(struct arena *a, MlirOperation root);

/* An empty region, whose block ends in an scf.yield; in no block yet. */
MlirOperation nisa_create_core(MlirLocation loc, int number);

#endif
