/* one_shot_bufferize_loops: see the .c file. */
#ifndef PASSES_ONE_SHOT_BUFFERIZE_LOOPS_H
#define PASSES_ONE_SHOT_BUFFERIZE_LOOPS_H

#include "passes/pass.h"

/* one_shot_bufferize.c: a new buffer with v's value, before op. */
MlirValue bufferize_copy(struct pass_run *run, MlirOperation op, MlirValue v);

void bufferize_loops_in_place(struct pass_run *run);
/* True if v is what loops make of the function's argument in its own buffer, or comes out of a branch (scf.if):
 * bufferization does not see that such a value still is the buffer that it started from, so nothing is left to write. */
bool bufferize_writes_in_place(MlirValue v, MlirValue argument);

#endif
