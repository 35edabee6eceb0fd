/* divide: the first half of prepare-arithmetic; see prepare_arithmetic.c. */
#ifndef PASSES_DIVIDE_H
#define PASSES_DIVIDE_H

#include "passes/pass.h"

/* Replaces division of floats by op, a linalg operation, where it can be; may erase op. */
void divide_rewrite(struct pass_run *run, MlirOperation op);

#endif
