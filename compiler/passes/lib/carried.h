/* carried: what loops carry from one iteration to the next, scf.for and scf.while alike.
 *
 * Value k is operand first_init + k of the loop before it, argument first_arg + k of `body`, operand k of the yield that
 * ends the body, and result k of the loop after it.  A while also has arguments k of its condition's region, which hands
 * them on to the body in that order; carried_make_square brings every while into that form.
 */
#ifndef PASSES_CARRIED_H
#define PASSES_CARRIED_H

#include "passes/pass.h"

struct carried {
  MlirBlock body;
  MlirOperation yield;
  intptr_t n, first_init, first_arg;
};

/* False if op is not a loop, or a while of another form. */
bool carried_read(MlirOperation op, struct carried *out);
/* Every while hands on exactly what it was given: results that canonicalization had dropped are added again.  A
 * condition that hands on something else stays as it is. */
void carried_make_square(struct pass_run *run);

#endif
