/* inserts: long chains of insertions in one buffer; see inserts.c. */
#ifndef PASSES_ONE_SHOT_BUFFERIZE_INSERTS_H
#define PASSES_ONE_SHOT_BUFFERIZE_INSERTS_H

#include "passes/pass.h"

void bufferize_long_chains(struct pass_run *run);

#endif
