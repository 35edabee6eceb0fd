/* range: what is known about an index value from the constants and loops around it. */
#ifndef NISA_RANGE_H
#define NISA_RANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "mlir-c/IR.h"

/* The integer that defines v. */
bool nisa_constant(MlirValue v, int64_t *out);
/* A number that divides v whatever happens; 0 if v is always 0. */
int64_t nisa_divisor(MlirValue v);
/* False if nothing bounds v; otherwise every value it takes is in [*low, *high]. */
bool nisa_bounds(MlirValue v, int64_t *low, int64_t *high);
int64_t nisa_gcd(int64_t a, int64_t b);

#endif
