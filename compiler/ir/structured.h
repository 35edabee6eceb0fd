/* structured: what passes ask about linalg operations.
 *
 * MLIR's C API has no access to LinalgOp's interface beyond the indexing maps; the rest is read off attributes
 * and, for named operations, known per name.  Works on tensors and on memrefs, static shapes.
 */
#ifndef IR_STRUCTURED_H
#define IR_STRUCTURED_H

#include <stdbool.h>
#include <stdint.h>

#include "mlir-c/AffineMap.h"
#include "mlir-c/IR.h"

#include "base/arena.h"

enum structured_kind {
  SK_NONE, /* not a linalg operation */
  SK_FILL,
  SK_TRANSPOSE,
  SK_BROADCAST,
  SK_UNARY,       /* named element-wise: exp log tanh negf abs ceil floor sqrt reciprocal square copy … */
  SK_BINARY,      /* add sub mul div max min … */
  SK_ELEMENTWISE, /* generic, every iterator parallel */
  SK_REDUCTION,   /* generic with a reduction iterator */
  SK_MATMUL,      /* linalg.matmul (also with transposed indexing maps) */
  SK_BATCH_MATMUL,
  SK_OTHER, /* any other linalg operation */
};

enum { STRUCTURED_LOOPS_MAX = 16, STRUCTURED_OPERANDS_MAX = 16 };

struct structured {
  enum structured_kind kind;
  int n_inputs, n_inits; /* operands: the inputs, then the inits (destinations) */
  int n_loops;
  bool reduction[STRUCTURED_LOOPS_MAX];
  int64_t extents[STRUCTURED_LOOPS_MAX];       /* -1 where dynamic */
  MlirAffineMap maps[STRUCTURED_OPERANDS_MAX]; /* per operand */
};

/* Reads op; false (kind SK_NONE) when it is no linalg operation or larger than the limits. */
bool structured_read(MlirOperation op, struct structured *out);
/* kind is one of SK_UNARY, SK_BINARY, SK_ELEMENTWISE. */
bool structured_is_elementwise(const struct structured *s);
/* Element-wise, reduction or matmul: what carries layouts and tiles (pipeline: "annotatable"). */
bool structured_is_annotatable(const struct structured *s);

/* The loop that result `r` of a map is, or -1 if it is a constant or a compound expression. */
int structured_map_loop(MlirAffineMap map, int r);

/* ---- lists of operations ----------------------------------------------------------------------------- */

struct ir_ops {
  int n;
  MlirOperation *v;
};
/* All operations under root (root included) for which want returns true, in pre-order; want NULL: all.  Collected
 * first, so the caller may change the IR while it goes through them. */
struct ir_ops ir_collect(struct arena *a, MlirOperation root, bool (*want)(MlirOperation, void *), void *user);
/* Those with exactly this name. */
struct ir_ops ir_collect_named(struct arena *a, MlirOperation root, const char *name);

/* ---- types ------------------------------------------------------------------------------------------- */

/* Rank of a ranked tensor or memref value, -1 otherwise; dims gets at most max entries. */
int ir_shape(MlirValue v, int max, int64_t *dims);
MlirOperation ir_defining_op(MlirValue v); /* null for a block argument */

#endif
