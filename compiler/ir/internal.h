/* internal: what the files of ir/ share and nobody else sees. */
#ifndef IR_INTERNAL_H
#define IR_INTERNAL_H

#include "mlir-c/Pass.h"

#include "ir/ir.h"

/* A pipeline that was parsed once; they are few, so a list does. */
struct ir_passes {
  char *text;
  MlirPassManager manager;
  struct ir_passes *next;
};

/* The pass manager for a pipeline text, parsed at first use; a null manager when the text is wrong. */
MlirPassManager ir_pass_manager(struct ir *ir, const char *pipeline);

/* Place that an operation's location stands for; NULL when it has none.  In a. */
const struct src_loc *ir_first_place(struct arena *a, MlirLocation loc);

/* The id that ir_snapshot gave the operation with this location; -1 when it has none. */
int ir_op_id(MlirLocation loc);

#endif
