/* row_parts: what row_parts.c and row_row_parts_build.c share. */
#ifndef PASSES_PREPARE_ARITHMETIC_ROW_PARTS_H
#define PASSES_PREPARE_ARITHMETIC_ROW_PARTS_H

#include "ir/structured.h"
#include "passes/pass.h"

/* Operations on the same few long rows.  The partitions are rows * each, which are at most 128; columns = each * length + tail. */
struct row_parts {
  int64_t rows, columns, each, length, tail;
  int64_t first; /* steps of the first dimension of a row */
  MlirBlock block;
  MlirOperation *ops; /* in program order */
  int n;
};

enum row_parts_kind {
  PARTS_OTHER,
  PARTS_WHOLE,  /* an element-wise operation on all elements */
  PARTS_REDUCE, /* of each row to a number */
  PARTS_NUMBERS /* an element-wise operation on a number for each row */
};

/* What an operand has: the rows, the columns, both, or neither. */
struct row_parts_has {
  bool ok, rows, columns;
};

/* What kind of operation on such rows op is; fills s. */
enum row_parts_kind row_parts_read(struct pass_run *run, const struct row_parts *g, MlirOperation op,
                                   struct structured *s);
struct row_parts_has row_parts_has_of(const struct row_parts *g, const struct structured *s, enum row_parts_kind kind,
                                      int operand, MlirValue v);
/* What v is a reshape of. */
MlirValue row_parts_origin(MlirValue v);
/* Rewrites the operations of g, and erases them. */
void row_parts_build(struct pass_run *run, const struct row_parts *g);

#endif
