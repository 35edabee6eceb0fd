/* opt: runs one pass, given as the user would type it. */
#ifndef DRIVER_OPT_H
#define DRIVER_OPT_H

#include "base/target.h"
#include "ir/ir.h"

struct remarks;

/* Runs "name" or "name=options" on the module, and verifies the module afterwards.  The pass is our own of that
 * name, or else MLIR's, nested in functions if it does not run on modules.  ST_DENIED if there is no such pass or
 * its options are wrong; ST_INPUT if it fails, with diagnostics. */
MUST_USE enum status opt_run_pass(struct ir *ir, MlirOperation module, const char *arg, enum target target,
                                  struct arena *a, struct diags *ds, struct remarks *remarks, struct error *err);

#endif
