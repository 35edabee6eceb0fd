/* rounding: finds np.rint as the tracer writes it (trace/unary.c), which is a function that the Scalar engine has.
 *
 *     sign(x) * select(r > 0.5 | (r == 0.5 & floor(d * 0.5) != d * 0.5), d + 1, d)   with d = floor(|x|), r = |x| - d
 *
 * Both give the same for every x, also for zeros of both signs, NaN and infinity: all of its steps are exact. */
#ifndef PASSES_ROUNDING_H
#define PASSES_ROUNDING_H

#include "ir/build.h"

/* The tensor that the value of a body is the nearest whole number of, ties to even; null if it is another value.  The expression is
 * read through the bodies of elementwise linalg operations on tensors. */
MlirValue rounding_find(MlirValue v);

#endif
