/* lines: on which line of a printed module each of its operations stands.
 *
 * MLIR tells this only through snapshot-op-locations, which verifies and prints the module once more and makes two
 * locations per operation: more work than the print itself.  ir_lines_read takes it from the text that was printed
 * anyway.  It relies on what MLIR's printer does for every operation: a line of its own, two spaces per level of
 * nesting, results, then the name.  What the printer leaves out is known too: a terminator, or all regions of an
 * operation.  If anything else turns up it gives no answer, and ir_lines asks MLIR.
 */
#ifndef IR_LINES_H
#define IR_LINES_H

#include "ir/ir.h"

/* A printed operation: all operations below ops[0], which is the first, in pre-order, and its text. */
struct ir_printed {
  int n;
  const MlirOperation *ops;
  const char *text;
  size_t len;
  bool has_local_scope; /* printed without aliases */
};

/* (*out)[k]: line of ops[k], from 1; 0 if it is on none.  In a. */
MUST_USE enum status ir_lines(struct ir *ir, const struct ir_printed *p, struct arena *a, const int **out,
                              struct error *err);

/* The two ways of ir_lines; false: the text is not as expected. */
bool ir_lines_read(const struct ir_printed *p, struct arena *a, int *lines);
MUST_USE enum status ir_lines_ask(struct ir *ir, const struct ir_printed *p, struct arena *a, int *lines,
                                  struct error *err);

#endif
