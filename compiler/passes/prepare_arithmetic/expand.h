/* expand: functions that no engine has, in terms of those that one has; a step of prepare-arithmetic. */
#ifndef PASSES_EXPAND_H
#define PASSES_EXPAND_H

#include "passes/pass.h"

/* Replaces such functions in the body of `generic`. */
void expand_rewrite(struct pass_run *run, MlirOperation generic);

#endif
