/* slices: reads tensor.extract_slice and insert_slice, and moves the slices of split operations into loops. */
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

/* Reads an extract_slice or insert_slice; false for other operations, for other strides and for dynamic sizes. */
bool slice_read(MlirOperation op, struct slice *s);
/* The tensor that is sliced: the source of an extract_slice, the destination of an insert_slice. */
MlirValue slice_of(const struct slice *s);

/* Finds values of which one part is extracted, processed in loops and inserted again; the loops then work on the whole
 * value.  A slice of such a slice becomes one slice.  See apply_and_strip_transforms.c. */
void slices_move_into_loops(struct pass_run *run);

#endif
