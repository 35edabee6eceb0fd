/* loops: values that loops carry, in one buffer each; see loops.c. */
#ifndef PASSES_ONE_SHOT_BUFFERIZE_LOOPS_H
#define PASSES_ONE_SHOT_BUFFERIZE_LOOPS_H

#include "passes/pass.h"

/* one_shot_bufferize.c: a new buffer with v's value, before op. */
MlirValue bufferize_copy(struct pass_run *run, MlirOperation op, MlirValue v);

void bufferize_loops_in_place(struct pass_run *run);
/* True if loops compute v in the buffer of the function's argument, or if v comes out of a branch (scf.if).  Upstream's
 * bufferization does not see that such a value still is the buffer that it started from; no write is needed. */
bool bufferize_writes_in_place(MlirValue v, MlirValue argument);

#endif
