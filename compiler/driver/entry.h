/* entry: reads programs that are not Python as kernels of a job: HLO (text or HloModuleProto), and MLIR text on tensors
 * or of NISA.
 *
 * NumPy cannot compute the results of such a program, so the numeric check compares with the program's own first
 * stage, on random inputs.
 */
#ifndef DRIVER_ENTRY_H
#define DRIVER_ENTRY_H

#include "driver/job.h"
#include "ir/ir.h"
#include "trace/trace.h"

/* Reads an HLO module as a kernel whose inputs are the module's parameters.  ST_INPUT with diagnostics. */
MUST_USE enum status entry_read_hlo(struct arena *a, const struct job *job, struct diags *ds,
                                    struct trace_kernel **out);
/* Reads a function as a kernel: the function that the job names, or the first one that has a body and is not
 * private.  The kernel's HLO module is NULL.  Operations of arith and math on whole tensors become linalg.  The
 * caller destroys *module, which is set on success only. */
MUST_USE enum status entry_read_mlir(struct ir *ir, struct arena *a, const struct job *job, struct diags *ds,
                                     struct trace_kernel **out, MlirModule *module);

/* True if the text of an MLIR module is NISA: it names the memories of the hardware. */
bool entry_is_nisa(const char *source, size_t len);
/* Reads a function of NISA, in our form or that of other compilers (nisa/other.h), like entry_read_mlir.  The module
 * is verified for the job's target, which it gets; a text for another one gives a warning.  *stage is the stage whose
 * form it has: "linalg-to-nisa", with places "allocate-memory", with streams "engine-programs". */
MUST_USE enum status entry_read_nisa(struct ir *ir, struct arena *a, const struct job *job, struct diags *ds,
                                     struct trace_kernel **out, MlirModule *module, const char **stage);

/* Replaces operations of arith and math on whole tensors by linalg.generic, in place (entry_elementwise.c). */
void entry_spell_elementwise(struct ir *ir, struct arena *a, MlirModule m);

/* Makes inputs for k from the seed: floats uniform in (-1, 1), integers from 0 to 7.  ST_LIMIT if inputs and outputs
 * take more than ENTRY_INPUTS_MAX bytes. */
enum { ENTRY_INPUTS_MAX = 256 << 20 };
MUST_USE enum status entry_make_inputs(struct arena *a, const struct trace_kernel *k, uint64_t seed,
                                       struct trace_array *in);

/* Guesses the language of a file from its name and its first bytes. */
enum language entry_guess_language(const char *filename, const char *source, size_t len);

#endif
