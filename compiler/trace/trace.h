/* trace: Python source in, HLO out.
 *
 * Owns the embedded CPython. The user's source is executed as a module, which may import the request's other files.
 * Kernels are found in it: decorated functions, specialised kernels, or a plain function if the request has inputs. Each is called with tensors, which record every
 * NumPy call as HLO.
 *
 * There is one interpreter per process, and it traces one program at a time. Everything that goes wrong for the user is
 * a diagnostic with its Python range; kernels that were found before it are kept.
 */
#ifndef TRACE_TRACE_H
#define TRACE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "hlo/hlo.h"

/* Limits. Reaching one is a diagnostic. */
enum {
  TRACE_SOURCE_MAX = 256 << 10, /* bytes of all files together */
  TRACE_NEST_MAX = 100,         /* nesting of brackets and blocks in the source: MLIR and CPython recurse on it */
  TRACE_OPS_MAX = 100000,       /* instructions of one kernel: unrolled loops reach it */
  TRACE_OUTPUT_MAX = 64 << 10,  /* bytes that the source may print */
};

/* Shape and dtype of one input, from the request. */
struct trace_input_spec {
  const char *name; /* NULL: by position */
  struct hlo_shape shape;
};

/* A file that the source may import: the folders in its name are packages. */
struct trace_file {
  const char *name; /* "pkg/helper.py"; shown in ranges */
  const char *source;
  size_t source_len;
};

struct trace_request {
  const char *source; /* UTF-8, source_len bytes; a NUL is refused */
  size_t source_len;
  const char *filename; /* shown in ranges: "kernel.py" */
  int n_files;
  const struct trace_file *files;
  const char *kernel; /* only the kernel of this name; NULL: all */
  int n_inputs;
  const struct trace_input_spec *inputs;
  const char *inputs_npz; /* a file with input values by name, or NULL; the command line only */
};

struct trace_tensor {
  const char *name;
  struct hlo_shape shape;
  int alias_of; /* of an output: the input that it writes in place, or -1; of an input: -1 */
};

struct trace_kernel {
  const char *name;
  struct hlo_module *module; /* not verified yet */
  bool is_partial;           /* traced up to a refusal: it has no outputs and does not verify */
  int n_inputs, n_outputs;
  struct trace_tensor *inputs, *outputs; /* outputs in the order of the module's root */
  int64_t time_us;
  struct trace_program *program;
  int index;
};

/* The name of the capsules in which one of our Python modules gives a struct trace_kernel to another. */
#define TRACE_CAPSULE "nkx.trace"

/* SIGPROF ends the Python code that runs, with DG_TIME_LIMIT and its place. It is sent by a timer on the job's CPU
 * time, and by the server near a deadline. Code can catch it, so a hard limit follows. */

/* Starts CPython (isolated, without site and environment) and imports NumPy, ml_dtypes and our modules; NumPy uses one
 * BLAS thread. python_dir: the directory of our modules; site_dir: site-packages with NumPy. To be called once per
 * process, before any fork; it leaves no thread running. */
MUST_USE enum status trace_init(const char *python_dir, const char *site_dir, struct error *err);
/* To be called in a child after fork: runs CPython's own hook, and seeds NumPy's and Python's random numbers. */
void trace_after_fork(uint64_t seed);

/* Finds the files on disk that rq->source imports, in their turn too, from the folders that a program of this name would
 * import from; rq->files are known already.  Only what import statements name is found, and nothing that the standard
 * library or an installed package has.  A file that cannot be read is left out.  All results live in a; a negative
 * number for a failure of ours. */
int trace_files_beside(struct arena *a, const struct trace_request *rq, const struct trace_file **out);
/* Executes the source and finds the kernels: those of the source itself, or else those of the files that it imports;
 * with rq->kernel all of this name. ST_INPUT or ST_LIMIT with diagnostics for an error of the user's; *out
 * then has the kernels that were found before it, maybe none. All results live in a. */
enum status trace_open(struct arena *a, const struct trace_request *rq, struct diags *ds, struct trace_program **out);
int trace_count(const struct trace_program *program);
/* Traces kernel i. ST_INPUT or ST_LIMIT with diagnostics if it is refused: *out is then what was traced before
 * (is_partial), or NULL if that is nothing. */
enum status trace_kernel(struct trace_program *program, int i, struct diags *ds, struct trace_kernel **out);
/* What the source has printed so far (UTF-8, at most TRACE_OUTPUT_MAX bytes), borrowed. */
const char *trace_output(const struct trace_program *program, size_t *len);
void trace_close(struct trace_program *program); /* NULL is fine */

/* ---- values, for the numeric check ------------------------------------------------------------------ */

struct trace_array {
  struct hlo_shape shape;
  void *data;      /* C order, in the arena */
  double rounding; /* of NumPy's answer: its largest distance from the same computation in float64; 0 if unknown */
};

/* Input values for kernel k: from the npz file if it has them, else the arrays that the kernel was specialised with,
 * else pseudo-random ones from the seed (floats uniform in (-1, 1), integers from 0 to 3). */
enum status trace_make_inputs(struct trace_kernel *k, uint64_t seed, struct diags *ds, struct trace_array *in);
/* Runs the Python function with NumPy on copies of `in`. out[i] is output i, converted to its dtype; of an aliased
 * output it is the parameter after the call. */
enum status trace_eval_numpy(struct trace_kernel *k, const struct trace_array *in, struct diags *ds,
                             struct trace_array *out);

#endif
