/* inserts: chains of insertions; see inserts.c. */
#ifndef PASSES_ONE_SHOT_BUFFERIZE_INSERTS_H
#define PASSES_ONE_SHOT_BUFFERIZE_INSERTS_H

#include "passes/pass.h"

/* Every insertion into a partly undefined tensor gets a chain of its own. */
void bufferize_shared_beginnings(struct pass_run *run);
/* Long chains are written into one buffer without upstream's analysis. */
void bufferize_long_chains(struct pass_run *run);

#endif
