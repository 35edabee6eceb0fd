/* sums: products that are added to each other share an accumulator.
 *
 *     %p = linalg.matmul ins(%a, %b) outs(%empty)               %p = linalg.matmul ins(%a, %b) outs(%empty)
 *     %q = linalg.matmul ins(%c, %d) outs(%empty)        ==>    %q = linalg.matmul ins(%c, %d) outs(%p)
 *     %s = linalg.add ins(%p, %q)
 *
 * A sum of products that are rounded to bf16 or f16 is rounded itself instead, once.
 *
 * A bank of PSUM adds what the Tensor engine writes to it, so the sum needs no instruction and no memory.  What else is in a sum is
 * added after the last product: (x @ w + b) + (h @ u + c) becomes ((x @ w + h @ u) + b) + c.
 */
#ifndef PASSES_SUMS_H
#define PASSES_SUMS_H

#include "passes/lib/product.h"
#include "passes/pass.h"

/* Rewrites all sums of the module whose products have no knob and no other reader, where it takes no longer: blocks of all
 * operands lie in SBUF at once, so that they may be smaller and loaded more often. */
void sums_accumulate(struct pass_run *run);
/* Returns the product in the init of op, a product, if nothing else reads it; null if there is none. */
MlirOperation sums_before(MlirOperation op);

#endif
