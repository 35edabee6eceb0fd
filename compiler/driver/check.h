/* check: run one stage's program and compare with NumPy.
 *
 * A linalg or memref module is cloned, stripped of our annotations, lowered to LLVM and run by the MLIR execution
 * engine on given inputs.  An HLO stage is lowered by linalg_from_hlo first, so that HLO passes are checked too.
 */
#ifndef DRIVER_CHECK_H
#define DRIVER_CHECK_H

#include "ir/ir.h"
#include "trace/trace.h"

/* Function `name` of the module (tensors or memrefs, static shapes), lowered; the module is not changed and need not
 * stay.  check_link makes machine code of it, check_load does both. */
struct check_program;
MUST_USE enum status check_open(struct ir *ir, MlirModule module, const char *name, struct arena *a, struct diags *ds,
                                struct check_program **out);
MUST_USE enum status check_link(struct ir *ir, struct check_program *p, struct arena *a, struct diags *ds);
MUST_USE enum status check_load(struct ir *ir, MlirModule module, const char *name, struct arena *a, struct diags *ds,
                                struct check_program **out);
void check_unload(struct check_program *p); /* NULL is fine */

/* SHA-256 of the program as check_open lowered it: of the same inputs, programs with the same digest compute the same.
 * Not after check_link. */
enum { CHECK_DIGEST = 32 };
void check_digest(const struct check_program *p, unsigned char out[CHECK_DIGEST]);

/* Runs it on `in`; out[i].shape is given and out[i].data allocated in a; where the function has a 32-bit type for a
 * 64-bit one, inputs are converted and out[i] gets the 32-bit type.  Memref stages may write their inputs: copies are
 * passed.  Needs no context: any thread may run a program. */
MUST_USE enum status check_run(const struct check_program *p, int n_in, const struct trace_array *in, int n_out,
                               struct trace_array *out, struct arena *a, struct diags *ds);

/* Load, run and unload for a single run. */
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
