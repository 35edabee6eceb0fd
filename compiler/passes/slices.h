/* slices: moving the slices of a split operation into its loops; see apply_and_strip_transforms.c. */
#ifndef PASSES_SLICES_H
#define PASSES_SLICES_H

#include "passes/pass.h"

void slices_move_into_loops(struct pass_run *run);

#endif
