/* one_shot_bufferize_loops: see the .c file. */
#ifndef PASSES_ONE_SHOT_BUFFERIZE_LOOPS_H
#define PASSES_ONE_SHOT_BUFFERIZE_LOOPS_H

#include "passes/pass.h"

void bufferize_loops_in_place(struct pass_run *run);

#endif
