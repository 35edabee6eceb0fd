/* middle: what middle.c and middle_build.c share. */
#ifndef PASSES_PREPARE_ARITHMETIC_MIDDLE_H
#define PASSES_PREPARE_ARITHMETIC_MIDDLE_H

#include "passes/prepare_arithmetic/prepare_arithmetic.h"

/* The number of the group that an operation is in, while groups are found. */
#define MIDDLE "nkx.middle"

/* What a group reduces: the loops `first` to `end` of n. */
struct middle {
  MlirBlock block;
  int n, first, end;
  int64_t dims[STRUCTURED_LOOPS_MAX];
  int64_t batch, columns, rows; /* the products of the extents before, of and after what is reduced */
  int64_t each;                 /* bands into which the rows of each of the batch are cut; 0: they are transposed */
};

/* The three parts of the dimensions, in their order before. */
enum { BATCH, COLUMNS, ROWS, PARTS };

/* Which parts an operand has, with all of their dimensions. */
struct form {
  bool ok, has[PARTS];
};

/* The form of operand number `operand` of an operation that s describes, or of its result if it is s->n_inputs; v: its value. */
struct form middle_form(const struct middle *m, const struct structured *s, int operand, MlirValue v);

static inline bool middle_is_whole(const struct form *f) {
  return f->ok && f->has[ROWS] && f->has[COLUMNS];
}

static inline bool middle_is_of_rows(const struct form *f) {
  return f->ok && f->has[ROWS] && !f->has[COLUMNS];
}

/* True if op is in the group. */
bool middle_is_in(const struct prepare_group *g, MlirOperation op);
/* True if something that is not in the group reads v. */
bool middle_is_read_outside(const struct prepare_group *g, MlirValue v);

/* Gives the operations of the group that are in `all` their new form, and erases the old ones, which become null there. */
void middle_build(struct pass_run *run, const struct prepare_group *g, const struct middle *m, struct ir_ops all);

#endif
