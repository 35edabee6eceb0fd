/* loops: keeps each value that a loop carries in one buffer; see loops.c. */
#ifndef PASSES_ONE_SHOT_BUFFERIZE_LOOPS_H
#define PASSES_ONE_SHOT_BUFFERIZE_LOOPS_H

#include "passes/pass.h"

/* one_shot_bufferize.c: makes a new buffer with v's value, before op. */
MlirValue bufferize_copy(struct pass_run *run, MlirOperation op, MlirValue v);

void bufferize_loops_in_place(struct pass_run *run);
/* branches.c, after bufferization: no scf.if yields a buffer any more. */
void bufferize_branches(struct pass_run *run);
/* True if loops compute v in the buffer of the function's argument, or if v is the result of a branch (scf.if).
 * Upstream's bufferization does not detect that such a value is still in its first buffer; no write is needed. */
bool bufferize_writes_in_place(MlirValue v, MlirValue argument);

#endif
