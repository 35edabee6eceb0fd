/* check: runs one stage's program and compares the results with NumPy's.
 *
 * A linalg or memref module is cloned, stripped of our annotations and run by an interpreter (interp/interp.h).  A module
 * of tensors with an operation that the interpreter does not know is bufferized first; one that it cannot run then either
 * is lowered to LLVM and run by MLIR's execution engine.  An HLO stage is first lowered by linalg_from_hlo, so that HLO passes are checked too.
 */
#ifndef DRIVER_CHECK_H
#define DRIVER_CHECK_H

#include "interp/interp.h"
#include "ir/ir.h"
#include "sim/options.h"
#include "sim/program.h"
#include "trace/trace.h"

/* check_open takes a copy of the module, whose function `name` takes tensors or memrefs of static shapes.  It does not
 * change the module, which may be destroyed afterwards.  check_link makes a program that can run; check_load does
 * both. */
struct check_program;
MUST_USE enum status check_open(struct ir *ir, MlirModule module, const char *name, struct arena *a, struct diags *ds,
                                struct check_program **out);
MUST_USE enum status check_link(struct ir *ir, struct check_program *p, struct arena *a, struct diags *ds);
MUST_USE enum status check_load(struct ir *ir, MlirModule module, const char *name, struct arena *a, struct diags *ds,
                                struct check_program **out);
void check_unload(struct check_program *p); /* NULL is fine */

/* SHA-256 of the stage's program without annotations: programs with the same digest compute the same results.  It
 * must be called before check_link. */
enum { CHECK_DIGEST = 32 };
void check_digest(const struct check_program *p, unsigned char out[CHECK_DIGEST]);

/* Runs the program on copies of `in`, because memref stages may write their inputs.  out[i].shape is given, and
 * out[i].data is allocated in a.  If the function has a 32-bit type for a 64-bit one, inputs are converted and
 * out[i] gets the 32-bit type.  No MLIR context is used, so any thread may run a program. */
MUST_USE enum status check_run(const struct check_program *p, int n_in, const struct trace_array *in, int n_out,
                               struct trace_array *out, struct arena *a, struct diags *ds);

/* check_run, which keeps the value that the program hands to the function INTERP_WATCH (interp/interp.h).  ST_INPUT with
 * a diagnostic for a program that the interpreter does not run. */
struct interp_watch;
MUST_USE enum status check_run_watched(const struct check_program *p, int n_in, const struct trace_array *in, int n_out,
                                       struct trace_array *out, struct interp_watch *watch, struct arena *a,
                                       struct diags *ds);
/* The module that check_link will read: a caller may insert calls of INTERP_WATCH. */
MlirOperation check_module(const struct check_program *p);
/* Runs of the program end with ST_TIMEOUT and a diagnostic after the deadline.  Machine code knows none. */
void check_limit_time(struct check_program *p, struct time_limit limit);
/* Lets runs of the program use products that other programs have computed (interp/interp.h); one thread at a time.  The
 * inputs of all these runs stay in place, with the same elements, until the products are freed. */
void check_use_products(struct check_program *p, struct interp_products *products);

/* True: check_link does not try the interpreter.  For tests, which compare the two. */
void check_set_machine_code(struct check_program *p);

/* Loads, runs and unloads the program. */
MUST_USE enum status check_execute(struct ir *ir, MlirModule module, const char *name, int n_in,
                                   const struct trace_array *in, int n_out, struct trace_array *out, struct arena *a,
                                   struct diags *ds);

/* The arrays of a run of a NISA program (sim/run.h). */
struct check_binding {
  const void **args;
  void **results;
};
/* Checks the shapes, converts inputs, and gives memory to the outputs, as in check_run. */
MUST_USE enum status check_bind(const struct sim_program *p, int n_in, const struct trace_array *in, int n_out,
                                struct trace_array *out, struct arena *a, struct diags *ds, struct check_binding *b);

/* Returns the elements of x converted to type t, allocated in a. */
struct trace_array check_convert_array(struct arena *a, const struct trace_array *x, enum dtype t);

/* Returns how much of the job's processor time, all_us, is left to the pipeline: an eighth, and of a short time more. */
int64_t check_reserve_cpu_us(int64_t all_us);
/* Returns when a run must end so that the rest of the pipeline can still be made: with an eighth of the time until
 * deadline_us (of clock_now_us; 0: none), and check_reserve_cpu_us of the job's processor time (RLIMIT_CPU), to spare. */
struct time_limit check_time_limit(int64_t deadline_us);

/* Runs a decoded NISA program in the simulator (sim/run.h), like check_run.  schedule: the order in which the streams of
 * engine programs run.  A fault that the simulator finds becomes a diagnostic with its place in the Python source.
 * deadline_us is a time of clock_now_us, 0: none; processor time is limited, too. */
MUST_USE enum status check_simulate(const struct sim_program *p, enum sim_schedule schedule, int n_in,
                                    const struct trace_array *in, int n_out, struct trace_array *out,
                                    int64_t deadline_us, struct arena *a, struct diags *ds);

struct check_result {
  bool pass;
  /* The largest errors over all outputs; NaN against NaN and equal infinities count as 0, elements of which nothing is
   * known are left out.  Relative errors are those of elements that are larger than their tolerance, or wrong. */
  double max_abs_err, max_rel_err;
  int worst_output;
  /* The first element of the worst output that is wrong, if it fails: its place in C order. */
  int64_t wrong_index;
  double got, expected;
  const char *what; /* the inputs: "" or " on inputs of wide ranges" */
  bool is_partial;  /* there was no time for all sets of inputs (stage_check.h) */
};

/* What each output may differ by from NumPy's result. */
struct check_tolerance {
  const float *of; /* of each element */
  /* Where rounding decides a comparison, an integer or which key a softmax takes, this many elements may differ by more,
   * but not by more than `jump`. */
  int64_t n_jumps;
  double jump;
};
void check_tolerate(struct arena *a, int n, const struct trace_array *want, struct check_tolerance *out);

/* Passes if every element is within its tolerance (check_compare.c).  tolerance: of check_tolerate for `want`. */
void check_compare_within(int n, const struct trace_array *got, const struct trace_array *want,
                          const struct check_tolerance *tolerance, struct check_result *r);
/* Does the same without tolerances that were computed before. */
void check_compare(int n, const struct trace_array *got, const struct trace_array *want, struct check_result *r);
/* Appends the place of element number `at` in C order: "[0, 3]". */
void check_put_index(struct buf *b, const struct hlo_shape *s, int64_t at);

#endif
