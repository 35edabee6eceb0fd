/* entry: programs that are not Python: HLO (text or HloModuleProto) and MLIR text, as kernels of a job.
 *
 * There is no NumPy to ask what such a program computes: the numeric check takes the program's own first stage for
 * that, on random inputs.
 */
#ifndef DRIVER_ENTRY_H
#define DRIVER_ENTRY_H

#include "driver/job.h"
#include "ir/ir.h"
#include "trace/trace.h"

/* The module as a kernel, with its parameters as inputs.  On errors diagnostics, and ST_INPUT. */
MUST_USE enum status entry_read_hlo(struct arena *a, const struct job *job, struct diags *ds,
                                    struct trace_kernel **out);
/* The first function that has a body and is not private (or the one that the job names) as a kernel; its HLO module is
 * NULL.  Operations on whole tensors are spelled out in linalg.  The caller destroys *module, which is set on success
 * only. */
MUST_USE enum status entry_read_mlir(struct ir *ir, struct arena *a, const struct job *job, struct diags *ds,
                                     struct trace_kernel **out, MlirModule *module);

/* Operations of arith and math on whole tensors as linalg.generic, at their places (entry_elementwise.c). */
void entry_spell_elementwise(struct ir *ir, struct arena *a, MlirModule m);

/* Inputs of k: floats uniform in (-1, 1), integers 0 to 7, from the seed.  ST_LIMIT if they need more than
 * ENTRY_INPUTS_MAX bytes. */
enum { ENTRY_INPUTS_MAX = 256 << 20 };
MUST_USE enum status entry_make_inputs(struct arena *a, const struct trace_kernel *k, uint64_t seed,
                                       struct trace_array *in);

/* The language that a file's name and first bytes speak of. */
enum language entry_guess_language(const char *filename, const char *source, size_t len);
#endif
