/* insert_spill_reload: what its files share. */
#ifndef PASSES_INSERT_SPILL_RELOAD_H
#define PASSES_INSERT_SPILL_RELOAD_H

#include "passes/pass.h"

bool spill_is_sbuf_alloc(MlirOperation op);
/* Bytes per partition of a buffer in its physical form, whose dimension 0 is the partition. */
int64_t spill_bytes(MlirValue v);

/* The operations of a block, in order; and the position of op, which is one of them. */
MlirOperation *spill_operations(struct arena *a, MlirBlock block, int *n);
int spill_position(int n, MlirOperation const *ops, MlirOperation op);

/* True if op passes a buffer on to where it is not followed: out of its block, or into another function. */
bool spill_is_handed_on(MlirOperation op);

/* The most bytes per partition that the buffers allocated inside op, or in the block, take at one time.  A buffer lives
 * from its allocation to the last operation of its block that uses it, a view of it, or the result of a loop that
 * carries it. */
int64_t spill_peak(struct arena *a, MlirOperation op);
int64_t spill_block_peak(struct arena *a, MlirBlock block);

/* Makes element-wise operations of the block that use more than the capacity at once write their result over an operand.
 * entry: the function's first block, where places in HBM are allocated. */
void spill_compute_in_place(struct pass_run *run, MlirBlock block, MlirBlock entry, int64_t capacity);

/* While an operation of the function needs more than the capacity even with everything else spilled, moves a buffer
 * that the operation reads tile by tile to HBM for good.  Stops when there is no such buffer. */
void spill_move_large(struct pass_run *run, MlirBlock body, int64_t capacity);

#endif
