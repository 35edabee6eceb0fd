/* insert_spill_reload: what its files share. */
#ifndef PASSES_INSERT_SPILL_RELOAD_H
#define PASSES_INSERT_SPILL_RELOAD_H

#include "passes/pass.h"

bool spill_is_sbuf_alloc(MlirOperation op);
int64_t spill_bytes(MlirValue v); /* per partition */

/* While an operation of the function needs more than the capacity even if everything else waits in HBM, a buffer that
 * it takes tile by tile moves to HBM for good.  Gives up where there is none. */
void spill_move_large(struct pass_run *run, MlirBlock body, int64_t capacity);

#endif
