/* native: the NKI kernels that a kernel calls: their NISA for linalg-to-nisa (ir_native), and their values for the check
 * of earlier stages (interp_native), from the simulator.
 *
 * A call in HLO and linalg has the name of the called kernel's record, which begins with HLO_NATIVE_PREFIX.
 */
#ifndef DRIVER_NATIVE_H
#define DRIVER_NATIVE_H

#include "interp/interp.h"
#include "ir/ir.h"
#include "trace/trace.h"

/* Makes the code of k's calls known to ir until native_close.  The kernel and the arena live as long. */
void native_open(struct ir *ir, const struct trace_kernel *k, struct arena *a);
void native_close(struct ir *ir);
/* Returns what runs the functions of native_open, and lives as long as its arena; *out is NULL if there are none.  The first
 * call lowers and decodes all of them. */
MUST_USE enum status native_runner(struct ir *ir, struct diags *ds, const struct interp_native **out);

#endif
