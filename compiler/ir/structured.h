/* structured: what passes ask about linalg operations.
 *
 * MLIR's C API gives no access to LinalgOp's interface except the indexing maps.  The rest is read from attributes and,
 * for named operations, known by name.  Works on tensors and on memrefs.
 */
#ifndef IR_STRUCTURED_H
#define IR_STRUCTURED_H

#include "mlir-c/AffineMap.h"

#include "ir/query.h"

enum structured_kind {
  SK_NONE, /* not a linalg operation */
  SK_FILL,
  SK_TRANSPOSE,
  SK_BROADCAST,
  SK_UNARY,       /* named element-wise: exp log tanh negf abs ceil floor sqrt reciprocal square copy … */
  SK_BINARY,      /* add sub mul div max min … */
  SK_ELEMENTWISE, /* generic, every iterator parallel */
  SK_REDUCTION,   /* generic with a reduction iterator */
  SK_MATMUL,      /* linalg.matmul, also with transposed indexing maps */
  SK_BATCH_MATMUL,
  SK_OTHER, /* any other linalg operation */
};

/* HLO values have at most 16 dimensions (HLO_RANK_MAX).  A linalg operation with more loops or operands is not read,
 * and passes treat it like an operation of another dialect. */
enum { STRUCTURED_LOOPS_MAX = 16, STRUCTURED_OPERANDS_MAX = 16 };

struct structured {
  enum structured_kind kind;
  int n_inputs, n_inits; /* operands: the inputs, then the inits (destinations) */
  int n_loops;
  bool reduction[STRUCTURED_LOOPS_MAX];
  int64_t extents[STRUCTURED_LOOPS_MAX];       /* -1 where dynamic */
  MlirAffineMap maps[STRUCTURED_OPERANDS_MAX]; /* per operand */
};

/* Reads op.  False (kind SK_NONE) when it is not a linalg operation or exceeds the limits above. */
bool structured_read(MlirOperation op, struct structured *out);
/* kind is one of SK_UNARY, SK_BINARY, SK_ELEMENTWISE. */
bool structured_is_elementwise(const struct structured *s);
/* Element-wise, reduction or matmul: the operations that carry layouts and tiles. */
bool structured_is_annotatable(const struct structured *s);
/* Every result of every map is a loop or a constant. */
bool structured_has_simple_maps(const struct structured *s);

/* The loop that result r of the map is; -1 when it is a constant or a compound expression. */
int structured_map_loop(MlirAffineMap map, int r);

#endif
