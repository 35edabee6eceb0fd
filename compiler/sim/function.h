/* function: the functions of the scalar engine. */
#ifndef SIM_FUNCTION_H
#define SIM_FUNCTION_H

#include "sim/program.h"

/* out[k] = function(x[k]); out may be x. */
void sim_function_f32(enum sim_operator op, int64_t n, const float *x, float *out);

#endif
