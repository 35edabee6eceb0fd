/* scales: a number by which a product is multiplied goes to an operand that is computed.
 *
 *     %t = linalg.matmul ins(%x, %a) -> 1024x16                   %t = linalg.matmul ins(%x, %a) -> 1024x16
 *     %p = linalg.matmul ins(%t, %b) -> 1024x1024                 %u = linalg.generic ins(%t) { mulf 2.0 }
 *     %s = linalg.generic ins(%p) { mulf 2.0 }             ==>    %p = linalg.matmul ins(%u, %b) -> 1024x1024
 *
 * The operand is a product as well: it leaves PSUM in any case, and is multiplied on its way.  It has fewer elements than the
 * result, which may now be added to another product in PSUM (sums.h).
 */
#ifndef PASSES_SCALES_H
#define PASSES_SCALES_H

#include "passes/pass.h"

/* Moves all factors of this kind in the module.  Only f32: products of other types are rounded before they are multiplied.  Values with
 * knobs, and those that something else reads, stay as they are. */
void scales_move_to_operands(struct pass_run *run);

#endif
