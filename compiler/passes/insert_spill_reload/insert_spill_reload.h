/* insert_spill_reload: declarations shared by its files. */
#ifndef PASSES_INSERT_SPILL_RELOAD_H
#define PASSES_INSERT_SPILL_RELOAD_H

#include "ir/build.h"
#include "passes/pass.h"

bool spill_is_sbuf_alloc(MlirOperation op);
/* Returns the bytes per partition of a buffer in its physical form, whose dimension 0 is the partition. */
int64_t spill_bytes(MlirValue v);

/* spill_operations returns the operations of a block in order; spill_position returns the index of op among them. */
MlirOperation *spill_operations(struct arena *a, MlirBlock block, int *n);
int spill_position(int n, MlirOperation const *ops, MlirOperation op);

/* True if op passes a buffer out of its block or to another function, where its uses are not followed. */
bool spill_is_handed_on(MlirOperation op);

/* Returns the most bytes per partition that buffers allocated inside op, or in the block, take at one time.  A buffer
 * lives from its allocation to the last operation of its block that uses it, a view of it, or the result of a loop that
 * carries it. */
int64_t spill_peak(struct arena *a, MlirOperation op);
int64_t spill_block_peak(struct arena *a, MlirBlock block);

/* Makes element-wise operations of the block that need more than the capacity at once write their result over an
 * operand.  entry is the function's first block, where buffers in HBM are allocated. */
void spill_compute_in_place(struct pass_run *run, MlirBlock block, MlirBlock entry, int64_t capacity);

/* While an operation of the function needs more than the capacity even if all other buffers are spilled, moves a
 * buffer that the operation reads tile by tile permanently to HBM.  Stops when there is no such buffer. */
void spill_move_large(struct pass_run *run, MlirBlock body, int64_t capacity);

/* Elements of a buffer, as boxes that together contain them (parts.c).  Along dimension d a box goes from low[d] to
 * before end[d]. */
struct spill_box {
  int64_t low[IR_MEMREF_RANK_MAX], end[IR_MEMREF_RANK_MAX];
};
struct spill_parts {
  struct spill_box *v;
  int n, cap;
};
/* Returns the elements that are written through the view by all iterations of the loops around the writer.  The boxes
 * are in a. */
struct spill_parts spill_parts_written(struct arena *a, MlirValue view);
/* Adds `more` to p; both are elements of the buffer. */
void spill_parts_add(struct arena *a, MlirValue buffer, struct spill_parts *p, const struct spill_parts *more);
/* Copies the elements from one buffer to another of the same shape: with one copy of the whole buffers if p is all of
 * it, otherwise with a copy for each box. */
void spill_parts_copy(struct ir_builder *b, const struct spill_parts *p, MlirValue from, MlirValue to);

#endif
