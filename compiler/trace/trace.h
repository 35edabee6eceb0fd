/* trace: Python source in, HLO out.
 *
 * Owns the embedded CPython.  The user's source is executed as a module; kernels are found (decorated functions,
 * specialised kernels, or a plain function plus the request's inputs); each is called with tensor wrappers that
 * record every NumPy call as HLO.  One interpreter per process and one job at a time; everything user-visible
 * that goes wrong is a diagnostic with its Python range, and kernels found so far are kept.
 */
#ifndef TRACE_TRACE_H
#define TRACE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "hlo/hlo.h"

/* Limits, with the reasons beside them in trace.c.  All are reported as diagnostics. */
enum {
  TRACE_SOURCE_MAX = 256 << 10, /* bytes */
  TRACE_NEST_MAX = 100,         /* nesting of brackets and blocks in the source */
  TRACE_OPS_MAX = 100000,       /* instructions of one kernel */
  TRACE_OUTPUT_MAX = 64 << 10,  /* bytes that the source may print */
};

/* Shape and dtype of one input, from the request. */
struct trace_input_spec {
  const char *name; /* NULL: by position */
  struct hlo_shape shape;
};

struct trace_request {
  const char *source; /* UTF-8, source_len bytes, NUL allowed nowhere */
  size_t source_len;
  const char *filename; /* shown in ranges: "kernel.py" */
  const char *kernel;   /* only this one; NULL: all */
  int n_inputs;
  const struct trace_input_spec *inputs;
  const char *inputs_npz; /* file with input values by name (terminal only), or NULL */
};

struct trace_tensor {
  const char *name;
  struct hlo_shape shape;
  int alias_of; /* outputs: index of the input that this output writes in place, or -1; inputs: -1 */
};

struct trace_kernel {
  const char *name;
  struct hlo_module *module; /* verified by nobody yet */
  bool is_partial;           /* what was traced before the kernel was refused; it has no outputs and does not verify */
  int n_inputs, n_outputs;
  struct trace_tensor *inputs, *outputs; /* outputs in the order of the module's root */
  int64_t time_us;
  struct trace_job *job;
  int index;
};

/* The name of the capsules in which a struct trace_kernel goes from one of our Python modules to the other. */
#define TRACE_CAPSULE "nkx.trace"

/* SIGPROF, sent by whoever limits a job's time (a timer on CPU time, the server near a deadline), ends the Python code
 * that is running with DG_TIME_LIMIT and the place it was at.  Code can put that off; a hard limit stands behind it. */

/* Starts CPython (isolated, no site, no environment), NumPy, ml_dtypes and our modules; NumPy is told to use one
 * BLAS thread.  python_dir: the directory with the importable shims; site_dir: site-packages with NumPy.  Once per
 * process, before any fork; no thread is left running. */
MUST_USE enum status trace_init(const char *python_dir, const char *site_dir, struct error *err);
/* To be called in a freshly forked child: CPython's after-fork hook, and NumPy's and random's seeds from `seed`. */
void trace_after_fork(uint64_t seed);

/* Executes the source and finds the kernels.  On any user error: diagnostics, and *out with those found so far (maybe
 * none); ST_INPUT or ST_LIMIT.  All results live in a. */
enum status trace_open(struct arena *a, const struct trace_request *rq, struct diags *ds, struct trace_job **out);
int trace_count(const struct trace_job *job);
/* Traces kernel i.  ST_INPUT or ST_LIMIT with diagnostics when it is refused: *out is then what was traced before
 * that (is_partial), or NULL if that is nothing. */
enum status trace_kernel(struct trace_job *job, int i, struct diags *ds, struct trace_kernel **out);
/* What the source printed so far (UTF-8, cut at TRACE_OUTPUT_MAX), borrowed. */
const char *trace_output(const struct trace_job *job, size_t *len);
void trace_close(struct trace_job *job); /* NULL is fine */

/* ---- values, for the numeric check ------------------------------------------------------------------ */

struct trace_array {
  struct hlo_shape shape;
  void *data;      /* C order, in the arena */
  double rounding; /* of NumPy's answer: how far it is from the same computation in float64, at most; 0 if unknown */
};

/* Input values for kernel k: from the npz file where given, from the arrays the kernel was specialised with, and
 * otherwise pseudo-random ones (floats uniform in (-1, 1), integers small and non-negative) from the seed. */
enum status trace_make_inputs(struct trace_kernel *k, uint64_t seed, struct diags *ds, struct trace_array *in);
/* Runs the original Python function on copies of `in` with plain NumPy: out[i] is output i (for an aliased output, the
 * parameter after the call), converted to the output's dtype. */
enum status trace_eval_numpy(struct trace_kernel *k, const struct trace_array *in, struct diags *ds,
                             struct trace_array *out);

#endif
