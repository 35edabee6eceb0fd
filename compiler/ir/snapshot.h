/* snapshot: what one MLIR stage looks like: its text, the line of every operation, the operations of the stage
 * before that each came from, and the Python places it stands for.
 *
 * ir_snapshot reads an operation's ancestors and places out of its location, where passes have carried and fused
 * them, and then gives every operation a fresh id and a location of constant size (ir.h), so that the cost does not
 * grow with the number of passes.  The printed text says nothing but where an operation stands (lines.h).
 */
#ifndef IR_SNAPSHOT_H
#define IR_SNAPSHOT_H

#include <stdint.h>

#include "base/buf.h"
#include "ir/ir.h"

struct ir_op {
  int id, line;     /* line 1-based; 0: printed on no line (implicit terminator) */
  const char *name; /* "linalg.matmul" */
  int n_from;
  const int *from; /* ids in the stage before, ascending order of appearance */
  struct src_locs locs;
};

struct ir_snapshot {
  int n;
  struct ir_op *ops; /* in printing order, id == index */
};

/* Appends the text of `module` to `text` and records its operations in a.  Constants with more elements than
 * elide_above are cut short in the text (0: never). */
MUST_USE enum status ir_snapshot(struct ir *ir, MlirOperation module, int64_t elide_above, struct buf *text,
                                 struct arena *a, struct ir_snapshot *out, struct error *err);

/* Prints module in another form: appends to text; (*lines)[k] is the line, from 1, of the k-th operation in pre-order, 0
 * if it is not shown.  Leaves the module as it was. */
typedef enum status ir_printer(struct ir *ir, MlirOperation module, int64_t elide_above, struct buf *text,
                               struct arena *a, const int **lines, struct error *err);
/* ir_snapshot, but text and lines are the printer's. */
MUST_USE enum status ir_snapshot_with(struct ir *ir, MlirOperation module, ir_printer *printer, int64_t elide_above,
                                      struct buf *text, struct arena *a, struct ir_snapshot *out, struct error *err);

/* Equal before and after a pass only if the pass changed nothing: a hash over every operation's identity, place, operands,
 * results, attributes and location, and over the blocks' arguments.  Far cheaper than a snapshot. */
uint64_t ir_fingerprint(MlirOperation root);
/* The snapshot of a stage that equals the one before: every operation came from itself. */
struct ir_snapshot ir_snapshot_again(const struct ir_snapshot *before, struct arena *a);

#endif
