/* accumulator: what a matmul adds to.
 *
 * In PSUM an accumulation group starts from zero, so a matmul can only compute A B, never C + A B with a C from
 * elsewhere.
 */
#ifndef PASSES_ACCUMULATOR_H
#define PASSES_ACCUMULATOR_H

#include "passes/pass.h"

/* Lets the matmul start from zero.  An init that is zero or undefined becomes plainly undefined (which counts as zero);
 * any other value C is added behind it:
 *
 *     %r = linalg.matmul outs(%c)   ==>   %p = linalg.matmul outs(%empty); %r = linalg.add ins(%p, %c)
 *
 * The addition takes over the users and the layout; the loop tile [M, N, K] stays with the matmul, the addition gets
 * [M, N].  next_id: the next free nkipy.op_id, advanced. */
void accumulator_start_from_zero(struct pass_run *run, MlirOperation matmul, int64_t *next_id);

#endif
