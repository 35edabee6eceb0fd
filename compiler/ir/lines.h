/* lines: the line of each operation in the text of a printed module.
 *
 * MLIR gives it only through snapshot-op-locations, which verifies and prints the module again and makes two locations
 * per operation: more work than the print itself.  ir_lines_read finds the lines in the text that was printed anyway.
 * It relies on the form in which MLIR prints every operation: a line of its own, two spaces per level of nesting,
 * results, then the name.  It also knows what the printer leaves out: a terminator, or all regions of an operation.
 * When the text has any other form, ir_lines_read fails, and ir_lines asks MLIR.
 */
#ifndef IR_LINES_H
#define IR_LINES_H

#include "ir/ir.h"

/* A printed operation, ops[0], with its text; ops are all operations in it, in pre-order. */
struct ir_printed {
  int n;
  const MlirOperation *ops;
  const char *text;
  size_t len;
  bool has_local_scope; /* printed without aliases */
};

/* (*out)[k]: line of ops[k], from 1; 0 when it is not printed.  In a. */
MUST_USE enum status ir_lines(struct ir *ir, const struct ir_printed *p, struct arena *a, const int **out,
                              struct error *err);

/* The two ways in which ir_lines finds them.  ir_lines_read: false when the text has an unexpected form. */
bool ir_lines_read(const struct ir_printed *p, struct arena *a, int *lines);
MUST_USE enum status ir_lines_ask(struct ir *ir, const struct ir_printed *p, struct arena *a, int *lines,
                                  struct error *err);

#endif
