/* insert_spill_reload: what its files share. */
#ifndef PASSES_INSERT_SPILL_RELOAD_H
#define PASSES_INSERT_SPILL_RELOAD_H

#include "passes/pass.h"

bool spill_is_sbuf_alloc(MlirOperation op);
/* Of a buffer in its physical form, per partition: dimension 0 is the partition. */
int64_t spill_bytes(MlirValue v);

/* The operations of a block, in order; and where op, one of them, is in there. */
MlirOperation *spill_operations(struct arena *a, MlirBlock block, int *n);
int spill_position(int n, MlirOperation const *ops, MlirOperation op);

/* True if op hands a buffer on to somewhere that is not followed: out of its block, into another function. */
bool spill_is_handed_on(MlirOperation op);

/* The most that buffers allocated inside of op, or in the block, take at once.  A buffer lives from its allocation to
 * the last operation of its block that uses it, views of it, or what loops make of it. */
int64_t spill_peak(struct arena *a, MlirOperation op);
int64_t spill_block_peak(struct arena *a, MlirBlock block);

/* While an operation of the function needs more than the capacity even if everything else waits in HBM, a buffer that
 * it takes tile by tile moves to HBM for good.  Gives up where there is none. */
void spill_move_large(struct pass_run *run, MlirBlock body, int64_t capacity);

#endif
