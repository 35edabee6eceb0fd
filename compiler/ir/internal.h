/* internal: what the files of ir/ share, and the reading of locations, which passes use for their messages. */
#ifndef IR_INTERNAL_H
#define IR_INTERNAL_H

#include "mlir-c/Pass.h"

#include "base/buf.h"
#include "ir/ir.h"

/* A parsed pipeline.  There are few, so they are in a list. */
struct ir_passes {
  char *text;
  MlirPassManager manager;
  struct ir_passes *next;
};

/* The pass manager for a pipeline, parsed when it is first used; null when the text is wrong. */
MlirPassManager ir_pass_manager(struct ir *ir, const char *pipeline);

/* The text with annotations in the generic form where it has nkigen's short form (short_form.c).  ST_INPUT: the one at
 * *wrong is not understood. */
MUST_USE enum status ir_long_form(const char *text, size_t len, struct buf *out, size_t *wrong);

/* The first Python place in a location; NULL when it has none.  In a. */
const struct src_loc *ir_first_place(struct arena *a, MlirLocation loc);

/* The location of an operation: its id, its places, and how many further places there are at least. */
MlirLocation ir_loc_of_op(MlirContext ctx, int id, int more, MlirLocation places);

/* The location of a place, with its rounds. */
MlirLocation ir_loc_of_place(MlirContext ctx, const struct src_loc *p);
/* Reads the name of a function in a location: the length of the function's own name, and the headers of the loops, without
 * their file.  Returns the number of loops. */
int ir_loc_loops(struct arena *a, MlirStringRef name, size_t *func_len, const struct src_range **loops);

/* What ir_prints (snapshot.h) has of an operation: a hash of its identity, its place in its block, operands and their types,
 * results, attributes and location, and of the arguments and the ends of its blocks. */
uint64_t ir_print_of(MlirOperation op);

#endif
