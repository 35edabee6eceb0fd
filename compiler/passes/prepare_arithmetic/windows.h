/* windows: the first part of prepare-arithmetic: operands read through sums of loops; see windows.c. */
#ifndef PASSES_WINDOWS_H
#define PASSES_WINDOWS_H

#include "passes/pass.h"

/* A convolution becomes a matrix product; any other linalg.generic gets maps that leave it a loop for the partitions.
 * May erase op. */
void windows_rewrite(struct pass_run *run, MlirOperation op);

#endif
