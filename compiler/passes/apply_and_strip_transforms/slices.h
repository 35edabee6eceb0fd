/* slices: tensor.extract_slice and tensor.insert_slice in C, and moving the slices of split operations into loops. */
#ifndef PASSES_SLICES_H
#define PASSES_SLICES_H

#include "ir/structured.h"
#include "passes/pass.h"

/* Offsets and sizes of a slice with unit strides.  at[d] is used where offset[d] is SLICE_DYNAMIC. */
#define SLICE_DYNAMIC INT64_MIN
struct slice {
  MlirOperation op;
  bool is_insert;
  int rank; /* of the tensor that is sliced */
  int64_t offset[STRUCTURED_LOOPS_MAX], size[STRUCTURED_LOOPS_MAX];
  MlirValue at[STRUCTURED_LOOPS_MAX];
};

/* Reads an extract_slice or insert_slice; false for others, for other strides and for dynamic sizes. */
bool slice_read(MlirOperation op, struct slice *s);
/* The tensor that is sliced: what is extracted from, or inserted into. */
MlirValue slice_of(const struct slice *s);

/* Where a whole value is sliced for a part of an operation, worked on in loops and put back, the loops work on the
 * whole value instead; a slice of such a slice becomes one slice.  See apply_and_strip_transforms.c. */
void slices_move_into_loops(struct pass_run *run);

#endif
