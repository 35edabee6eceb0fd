/* trace: translates Python source to HLO.
 *
 * The tracer owns the embedded CPython.  The user's source is executed as a module, which may import the request's
 * other files.  Its kernels are decorated functions, specialised kernels, or a plain function if the request has
 * inputs.  Each kernel is called with tensors, which record every NumPy call as HLO.
 *
 * There is one interpreter per process, and it traces one program at a time.  Every error of the user is a diagnostic
 * with its Python range; kernels that were found before it are kept.
 */
#ifndef TRACE_TRACE_H
#define TRACE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/diag.h"
#include "base/target.h"
#include "hlo/hlo.h"

/* Limits.  Exceeding one is a diagnostic. */
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

/* A file that the source may import.  The folders in its name are packages. */
struct trace_file {
  const char *name; /* "pkg/helper.py"; shown in ranges */
  const char *source;
  size_t source_len;
};

struct trace_request {
  const char *source; /* UTF-8, source_len bytes; a NUL is refused */
  size_t source_len;
  const char *filename; /* shown in ranges: "kernel.py" */
  enum target target;   /* NKI kernels are recorded for one machine */
  int n_files;
  const struct trace_file *files;
  const char *kernel; /* the name of the only kernel to trace; NULL: all kernels */
  int n_inputs;
  const struct trace_input_spec *inputs;
  const char *inputs_npz; /* a file with input values by name, or NULL; only the command line sets it */
};

struct nki_program;
struct nki_ast;

struct trace_tensor {
  const char *name;
  struct hlo_shape shape;
  int alias_of; /* output: the input that it overwrites in place, or -1; input: -1 */
  /* In the source it has complex numbers.  They are passed as pairs of reals, the last dimension of the shape, which is
   * their form in memory. */
  bool is_complex;
};

struct trace_kernel {
  const char *name;
  struct hlo_module *module;     /* not verified yet; NULL for an NKI kernel */
  const struct nki_program *nki; /* the record of an NKI kernel, or NULL */
  /* The records of the NKI kernels that the module's custom calls name. */
  int n_calls;
  const struct nki_program *const *calls;
  const struct nki_ast *ast; /* its analysis, before it was run (nki/ast.h); NULL if nki is */
  bool is_partial;           /* true if it was traced only up to a refusal; it has no outputs and does not verify */
  int n_inputs, n_outputs;
  struct trace_tensor *inputs, *outputs; /* outputs in the order of the module's root */
  int64_t time_us;
  struct trace_program *program;
  int index;
};

/* The name of the capsules in which one of this project's Python modules passes a struct trace_kernel to another. */
#define TRACE_CAPSULE "nkx.trace"

/* SIGPROF ends the running Python code with DG_TIME_LIMIT and its place.  A timer on the job's CPU time sends it, and
 * so does the server near a deadline.  Code can catch the exception, so a hard limit follows.
 * This starts the timer of a process that the kernel kills after cpu_s of CPU time: it sends the signal early enough for a
 * report, and again every second, for code that carries on.  A child does not inherit it. */
void trace_warn_before_cpu_limit(int cpu_s);

/* Starts CPython (isolated, without site and environment) and imports NumPy, ml_dtypes and this project's modules.
 * NumPy uses one BLAS thread.  python_dir is the directory of this project's modules; site_dir is site-packages with
 * NumPy.  Must be called once per process, before any fork.  It leaves no additional thread running. */
MUST_USE enum status trace_init(const char *python_dir, const char *site_dir, struct error *err);
/* Must be called in a child after fork.  Runs CPython's own hook, and seeds NumPy's and Python's random numbers. */
void trace_after_fork(uint64_t seed);

/* Finds the files on disk that rq->source imports, directly or indirectly, from the folders that a program with this
 * name would import from.  Files in rq->files are already known.  Only modules that import statements name are found,
 * and none that the standard library or an installed package has.  A file that cannot be read is skipped.  All results
 * live in a.  Returns a negative number for an internal failure. */
int trace_files_beside(struct arena *a, const struct trace_request *rq, const struct trace_file **out);
/* True if the file's own code, outside of functions and classes, defines or assigns the name.  Nothing is run; a file that
 * cannot be parsed defines nothing. */
bool trace_defines(struct arena *a, const struct trace_file *f, const char *name);
/* Executes the source and finds the kernels: those of the source itself, or if it has none, those of the files that it
 * imports.  With rq->kernel, finds only those with this name.  Returns ST_INPUT or ST_LIMIT with diagnostics for an
 * error of the user; *out then has the kernels that were found before it, possibly none.  All results live in a. */
enum status trace_open(struct arena *a, const struct trace_request *rq, struct diags *ds, struct trace_program **out);
int trace_count(const struct trace_program *program);
/* Where kernel i is defined; NULL if that is not known. */
const struct src_loc *trace_place(struct trace_program *program, int i);
/* Traces kernel i.  Returns ST_INPUT or ST_LIMIT with diagnostics if it is refused; *out then has the operations traced
 * before the refusal (is_partial), or is NULL if there are none.  *out is NULL with ST_OK for a plain function that is left out, because it
 * only calls an NKI kernel, or, as a note says, because it is no kernel. */
enum status trace_kernel(struct trace_program *program, int i, struct diags *ds, struct trace_kernel **out);
/* Returns the text that the source has printed so far (UTF-8, at most TRACE_OUTPUT_MAX bytes), borrowed. */
const char *trace_output(const struct trace_program *program, size_t *len);
void trace_close(struct trace_program *program); /* program may be NULL */

/* ---- values, for the numeric check ------------------------------------------------------------------ */

struct trace_array {
  struct hlo_shape shape;
  void *data; /* C order, in the arena */
  /* By how much each element of NumPy's result depends on rounding and on the order of sums: the largest difference
   * between runs that round differently; infinite if only one of them has a number.  NULL if unknown. */
  const float *spread;
};

/* The ranges of pseudo-random input values.  Integers are small enough to index most axes, except wide ones. */
enum trace_ranges {
  TRACE_AROUND_ZERO,   /* floats in (-1, 1), integers from 0 to 3 */
  TRACE_POSITIVE,      /* floats in (0.25, 2), integers from 1 to 4 */
  TRACE_LARGE,         /* floats in (2, 8), integers from 1 to 4 */
  TRACE_WIDE_FLOATS,   /* floats in (-8, 8) with zeros of both signs and equal values; integers from 0 to 3 */
  TRACE_WIDE,          /* such floats; integers of both signs up to a million, zeros and equal values */
  TRACE_WIDE_NONZERO,  /* floats in (-8, 8), but not in (-1/16, 1/16), with equal values; integers from 1 to 4 */
  TRACE_WIDE_POSITIVE, /* floats in (1/16, 16), with equal values; integers from 1 to 4 */
  TRACE_AS_GIVEN       /* as TRACE_AROUND_ZERO, but an array of one value counts, too */
};

/* Makes input values for kernel k: from the npz file if it has them, else the arrays that the kernel was called or specialised
 * with, else pseudo-random values from the seed.  An array that holds one value everywhere, such as np.zeros, tells a shape:
 * unless the ranges are TRACE_AS_GIVEN, values are drawn for it.  *is_drawn: some values are pseudo-random. */
enum status trace_make_inputs(struct trace_kernel *k, uint64_t seed, enum trace_ranges ranges, struct diags *ds,
                              struct trace_array *in, bool *is_drawn);
/* Runs the Python function with NumPy on copies of `in`, rounding where the trace rounds.  out[i] is output i,
 * converted to its dtype; for an aliased output it is the parameter's value after the call. */
enum status trace_eval_numpy(struct trace_kernel *k, const struct trace_array *in, struct diags *ds,
                             struct trace_array *out);
/* Runs the text of the stage nki-ast (is_source), or of nki-trace, as an NKI kernel by itself, and evaluates its calls.  ST_INPUT
 * with a diagnostic if the text cannot be run. */
enum status trace_eval_nki_text(struct trace_kernel *k, const char *text, size_t len, bool is_source,
                                const struct trace_array *in, struct diags *ds, struct trace_array *out);
/* Runs the function again, with other roundings, and sets out[i].spread.  *is_random: a second run with the same
 * inputs and roundings gave other results, so that there is nothing to compare with; NULL: this is known to be false. */
void trace_find_spread(struct trace_kernel *k, const struct trace_array *in, struct trace_array *out, bool *is_random);

/* Reads want[n] from an npz file: arrays by name, or in the file's order if it has n arrays of other names.  They are
 * converted to the wanted types, and live in a.  ST_INPUT with a diagnostic if the file or a shape does not fit. */
enum status trace_npz_read(struct arena *a, const char *path, int n, const struct trace_tensor *want, struct diags *ds,
                           struct trace_array *out);
/* Writes arrays[n], called as names[n].  ST_INPUT with a diagnostic if the file cannot be written. */
enum status trace_npz_write(struct arena *a, const char *path, int n, const struct trace_tensor *names,
                            const struct trace_array *arrays, struct diags *ds);

#endif
