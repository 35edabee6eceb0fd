/* snapshot: a record of one MLIR stage: its text and, for every operation, its line, the operations of the stage before
 * that it came from, and the Python places that it implements.
 *
 * ir_snapshot reads an operation's ancestors and places from its location, where passes have kept and fused them.  Then
 * it gives every operation a new id and a location of constant size (ir.h), so that the cost does not grow with the
 * number of passes.  The printed text is used only to find the line of each operation (lines.h).
 */
#ifndef IR_SNAPSHOT_H
#define IR_SNAPSHOT_H

#include <stdint.h>

#include "base/buf.h"
#include "ir/ir.h"
#include "ir/places.h"

struct ir_op {
  int id, line;     /* line 1-based; 0: printed on no line (implicit terminator) */
  const char *name; /* "linalg.matmul" */
  int n_from;
  const int *from; /* ids in the stage before, in the order of their appearance, each once */
  struct src_locs locs;
};

struct ir_snapshot {
  int n;
  struct ir_op *ops; /* in printing order, id == index */
};

/* Appends the text of `module` to `text` and records its operations in a.  The text omits the elements of constants
 * that have more than elide_above of them (0: never). */
MUST_USE enum status ir_snapshot(struct ir *ir, MlirOperation module, int64_t elide_above, struct buf *text,
                                 struct arena *a, struct ir_snapshot *out, struct error *err);

/* Prints module in another form: appends to text and sets (*lines)[k] to the line, from 1, of the k-th operation in
 * pre-order, 0 if it is not shown.  Does not change the module. */
typedef enum status ir_printer(struct ir *ir, MlirOperation module, int64_t elide_above, struct buf *text,
                               struct arena *a, const int **lines, struct error *err);
/* MLIR's own form, as ir_snapshot has it.  A line is 0 where the text does not tell it. */
ir_printer ir_print;
/* The same with text and lines of `printer`. */
MUST_USE enum status ir_snapshot_with(struct ir *ir, MlirOperation module, ir_printer *printer, int64_t elide_above,
                                      struct buf *text, struct arena *a, struct ir_snapshot *out, struct error *err);

/* A hash over every operation's identity, place in its block, operands, results, attributes and location, and over the blocks'
 * arguments.  Equal before and after a pass only if the pass changed nothing.  Far cheaper than a snapshot. */
uint64_t ir_fingerprint(MlirOperation root);
/* The same for each operation, in pre-order: two programs differ at the first operation that does, so most that differ are told
 * apart without a look at all of them. */
struct ir_prints {
  uint64_t *v;
  int n, cap;
};
/* Replaces what is in *out, which is zeroed at first and grows in a. */
void ir_prints_take(MlirOperation root, struct arena *a, struct ir_prints *out);
/* True if root is as it was when they were taken; false if they were not taken. */
bool ir_prints_match(MlirOperation root, const struct ir_prints *before);
/* Verifies what has changed since they were taken of the module, when it was valid.  MLIR's diagnostics are as those of a
 * verification of all. */
MUST_USE bool ir_verify_changed(MlirOperation module, const struct ir_prints *before, struct arena *a);
/* The snapshot of a stage that equals the one before it: every operation came from itself. */
struct ir_snapshot ir_snapshot_again(const struct ir_snapshot *before, struct arena *a);

#endif
