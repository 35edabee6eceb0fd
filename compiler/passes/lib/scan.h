/* scan: running results along one loop, as operations of linalg.
 *
 *     %y, %last = linalg.generic {maps = [(p, i) -> (p, i), (p, i) -> (p, i), (p, i) -> (p, 0)],
 *                                 iterators = [parallel, reduction]} ins(%x) outs(%empty, %first) {
 *     ^bb0(%in, %unused, %before):
 *       %r = arith.addf %before, %in
 *       linalg.yield %r, %r }
 *
 * The second result is the one before: it starts with %first and has the last one in the end.  So the iterations of the loop
 * `i`, in order, compute the running result, and a tile of the loop starts where the tile before it ended: tiling,
 * bufferization and every reader of linalg handle it like any reduction.
 */
#ifndef PASSES_SCAN_H
#define PASSES_SCAN_H

#include "ir/build.h"
#include "ir/structured.h"

struct scan {
  struct structured s; /* one input at least, two inits: the results, and the one before */
  int loop;            /* along which it runs: the last loop, and the only reduction */
  MlirOperation first,
      last; /* in the body: the user of the result before, and what computes the new one; may be the same */
};

/* Reads op, on tensors or memrefs.  False if it is not a scan whose new result takes one or two operations from the one before. */
bool scan_read(MlirOperation op, struct scan *out);
/* A scan of tensors.  Its loops are the dimensions of the state, then the one along which it runs. */
struct scan_parts {
  int n_inputs;
  MlirValue const *inputs;
  MlirAffineMap const *maps; /* of the inputs, from the loops */
  MlirValue first;           /* the state before: a tensor; one of one dimension is written as a matrix of one column */
  int64_t along;             /* how many states are computed */
  /* Writes the body: args are the inputs' elements; returns the state after `before`. */
  MlirValue (*body)(struct ir_builder *b, MlirValue const *args, MlirValue before, void *user);
  void *user;
};
/* Returns the operation; its results are the states, with the dimension `along` as the last, and the last state. */
MlirOperation scan_create(struct ir_builder *b, const struct scan_parts *parts);
/* Returns the running result of the matrix x along its rows.  combine: an operation of arith, such as "arith.addf"; initial:
 * its neutral element. */
MlirValue scan_build(struct ir_builder *b, MlirValue x, const char *combine, double initial);

#endif
