/* check: run one stage's program and compare with NumPy.
 *
 * A linalg or memref module is cloned, stripped of our annotations, lowered to LLVM and run by the MLIR execution
 * engine on given inputs.  An HLO stage is lowered by linalg_from_hlo first, so that HLO passes are checked too.
 */
#ifndef DRIVER_CHECK_H
#define DRIVER_CHECK_H

#include "ir/ir.h"
#include "trace/trace.h"

/* Function `name` of the module (tensors or memrefs, static shapes) as machine code; the module is not changed and need
 * not stay. */
struct check_program;
MUST_USE enum status check_load(struct ir *ir, MlirModule module, const char *name, struct arena *a, struct diags *ds,
                                struct check_program **out);
void check_unload(struct check_program *p); /* NULL is fine */
/* Runs it on `in`; out[i].shape is given and out[i].data allocated in a; where the function has a 32-bit type for a
 * 64-bit one, inputs are converted and out[i] gets the 32-bit type.  Memref stages may write their inputs: copies are
 * passed.  Needs no context: any thread may run a program. */
MUST_USE enum status check_run(const struct check_program *p, int n_in, const struct trace_array *in, int n_out,
                               struct trace_array *out, struct arena *a, struct diags *ds);

/* All three for a single run. */
MUST_USE enum status check_execute(struct ir *ir, MlirModule module, const char *name, int n_in,
                                   const struct trace_array *in, int n_out, struct trace_array *out, struct arena *a,
                                   struct diags *ds);

struct check_result {
  bool pass;
  double max_abs_err, max_rel_err; /* over all outputs; NaN against NaN and equal infinities count as 0 */
  int worst_output;
};

/* |got - want| <= atol * max(1, max |want|) + 8 * want.rounding + rtol * |want| for every element, with the tolerance of the output's dtype
 * (check_tolerance); integers and bool must be equal. */
void check_compare(int n, const struct trace_array *got, const struct trace_array *want, struct check_result *r);

/* The one place where tolerances are stated. */
void check_tolerance(enum dtype t, double *rtol, double *atol);

#endif
