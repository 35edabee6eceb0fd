/* decode: makes a program from a function of NISA. */
#ifndef SIM_DECODE_H
#define SIM_DECODE_H

#include "base/diag.h"
#include "mlir-c/IR.h"
#include "sim/program.h"

/* Decodes function `name` of a module that nisa_verify has accepted; everything is allocated in a.  ST_INPUT with a
 * diagnostic of code DG_INTERNAL when the function has a form that the simulator does not run. */
MUST_USE enum status sim_decode(MlirOperation module, const char *name, struct arena *a, struct diags *ds,
                                struct sim_program *out);

#endif
