/* arguments: arguments of functions that are read in many places; see arguments.c. */
#ifndef PASSES_ONE_SHOT_BUFFERIZE_ARGUMENTS_H
#define PASSES_ONE_SHOT_BUFFERIZE_ARGUMENTS_H

#include "passes/pass.h"

/* Lets many slices of an argument that is only read be analysed each for itself. */
void bufferize_read_arguments(struct pass_run *run, MlirOperation function);
/* Puts a view of v's buffer, with any strides, before `at`: what reads it never conflicts with a write.  v has at most
 * STRUCTURED_LOOPS_MAX dimensions. */
MlirValue bufferize_read_only(struct pass_run *run, MlirValue v, MlirOperation at);

#endif
