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
/* Returns the running result of the matrix x along its rows.  combine: an operation of arith, such as "arith.addf"; initial:
 * its neutral element. */
MlirValue scan_build(struct ir_builder *b, MlirValue x, const char *combine, double initial);

#endif
