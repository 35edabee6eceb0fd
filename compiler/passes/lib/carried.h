/* carried: the values that loops (scf.for and scf.while) carry from one iteration to the next.
 *
 * Value k is operand first_init + k of the loop, argument first_arg + k of `body`, operand k of the yield that ends
 * the body, and result k of the loop.  In a while it is also argument k of the condition's region, which passes the
 * arguments on to the body in the same order; carried_make_square rewrites while loops into that form.
 */
#ifndef PASSES_CARRIED_H
#define PASSES_CARRIED_H

#include "passes/pass.h"

struct carried {
  MlirBlock body;
  MlirOperation yield;
  intptr_t n, first_init, first_arg;
};

/* Returns false if op is not a loop, or is a while of another form. */
bool carried_read(MlirOperation op, struct carried *out);
/* Rewrites every while so that its condition passes on exactly the arguments of its region.  Results that
 * canonicalization had dropped are added again.  A condition that passes on another value stays as it is. */
void carried_make_square(struct pass_run *run);

#endif
