/* slice: reads and changes tensor.extract_slice and tensor.insert_slice. */
#ifndef PASSES_SLICE_H
#define PASSES_SLICE_H

#include "ir/query.h"
#include "ir/structured.h"

/* The offsets and sizes of a slice with unit strides and static sizes.  at[d] is used if offset[d] is SLICE_DYNAMIC. */
#define SLICE_DYNAMIC INT64_MIN
struct slice {
  MlirOperation op;
  bool is_insert;
  int rank; /* of the sliced tensor */
  int64_t offset[STRUCTURED_LOOPS_MAX], size[STRUCTURED_LOOPS_MAX];
  MlirValue at[STRUCTURED_LOOPS_MAX];
};

/* Reads an extract_slice or insert_slice; false for other operations, for other strides and for dynamic sizes. */
bool slice_read(MlirOperation op, struct slice *s);
/* The sliced tensor: the source of an extract_slice, the destination of an insert_slice. */
MlirValue slice_of(const struct slice *s);
/* The slice itself: the result of an extract_slice, the source of an insert_slice. */
MlirValue slice_part(const struct slice *s);
/* Gives s->op the tensor `of` and the offsets in s. */
void slice_set(const struct slice *s, MlirValue of);
/* True if s covers a whole tensor of type t. */
bool slice_is_whole(const struct slice *s, MlirType t);

#endif
