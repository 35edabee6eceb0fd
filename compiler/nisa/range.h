/* range: what is known about the values that an index takes, from the constants and the loops that it is made of. */
#ifndef NISA_RANGE_H
#define NISA_RANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "mlir-c/IR.h"

/* A number that divides every value of v; 0 if v is always 0, 1 if nothing is known. */
int64_t nisa_divisor(MlirValue v);
/* Every value of v is in [*low, *high].  False if no bounds are known. */
bool nisa_bounds(MlirValue v, int64_t *low, int64_t *high);
/* Not negative; the gcd of 0 and n is |n|. */
int64_t nisa_gcd(int64_t a, int64_t b);

#endif
