/* accumulator: handles the initial value of a matmul.
 *
 * In PSUM an accumulation group starts from zero, so a matmul can compute A B, but not C + A B with another C.  Only if C is a
 * product itself, in the same tiles, the group begins with that: apply-and-strip-transforms makes one loop nest of both.
 */
#ifndef PASSES_ACCUMULATOR_H
#define PASSES_ACCUMULATOR_H

#include "passes/pass.h"

/* Returns the matmul that computes the init of this one, if it has the same tiles of M and N and no other reader; otherwise
 * null. */
MlirOperation accumulator_before(MlirOperation matmul);
/* The matmul that continues the sum of this one; null if there is none. */
MlirOperation accumulator_after(MlirOperation matmul);
/* Makes the matmul start from zero, unless it continues a sum.  An init that is zero or undefined becomes undefined, which counts as zero.  Any
 * other value C is added after the matmul:
 *
 *     %r = linalg.matmul outs(%c)   ==>   %p = linalg.matmul outs(%empty); %r = linalg.add ins(%p, %c)
 *
 * The addition gets the users and the layout.  The loop tile [M, N, K] stays with the matmul, the addition gets [M, N].
 * *next_id is the next free nkipy.op_id; it is increased for each one used. */
void accumulator_start_from_zero(struct pass_run *run, MlirOperation matmul, int64_t *next_id);

#endif
