/* slices: moves the slices of split operations into loops. */
#ifndef PASSES_SLICES_H
#define PASSES_SLICES_H

#include "passes/pass.h"

/* Finds values of which one part is extracted, processed in loops and inserted again, and makes the loops work on the
 * whole value.  Merges a slice of such a slice into one slice.  See apply_and_strip_transforms.c. */
void slices_move_into_loops(struct pass_run *run);

#endif
