/* one_shot_bufferize_loops: see the .c file. */
#ifndef PASSES_ONE_SHOT_BUFFERIZE_LOOPS_H
#define PASSES_ONE_SHOT_BUFFERIZE_LOOPS_H

#include "passes/pass.h"

void bufferize_loops_in_place(struct pass_run *run);

/* True if v, or a value that it was written into, comes out of a branch (scf.if): bufferization does not see that such a
 * value still is the buffer that it started from. */
bool bufferize_has_branches(MlirValue v);

#endif
