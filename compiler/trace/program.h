/* program: the user's source as a Python program, and the kernels that were found in it.
 *
 * A program of a job is executed by trace_open; live.c makes one for a function of the Python program that runs.
 */
#ifndef TRACE_PROGRAM_H
#define TRACE_PROGRAM_H

#include "trace/ranges.h"
#include "trace/trace.h"

struct kernel;
struct program_kernel;

struct trace_program {
  struct arena *a;
  const struct trace_request *rq;
  struct ranges ranges;
  PyObject *module, *filename;
  PyObject *imports; /* nkx.files.Session, from imports_open to imports_close */
  PyObject *code;    /* kept: ranges knows code objects by their address */
  PyObject *main_code;
  PyObject *found; /* list of Kernel objects, in the order of definition */
  PyObject *npz;   /* what rq->inputs_npz holds; NULL until it is asked for */
  int n;
  struct program_kernel *kernels;
  struct diags *ds; /* of the call that runs now */
  PyObject *old_stdout, *old_stderr;
  char *output; /* what was printed: TRACE_OUTPUT_MAX bytes */
  size_t output_len;
  bool output_cut, output_cut_said;
  bool is_rerun; /* a kernel runs once more, with NumPy: what it prints is known from its trace */
  int depth; /* program_enter calls that were not left */
  /* Of a function of the Python program that runs (live.c): what it prints is printed, and what it raises is kept here
   * for its caller. */
  bool is_live;
  PyObject *raised_type, *raised, *raised_tb;
};
extern struct trace_program *program_now; /* NULL outside of trace_open … trace_close */

/* One parameter that is an array while tracing. */
struct kparam {
  const char *name; /* in the program's arena */
  enum dtype dtype; /* after narrowing */
  enum dtype given; /* before */
  int rank;
  int64_t dims[HLO_RANK_MAX];
  PyObject *array;  /* the value that it was specialised with, or NULL */
  Py_ssize_t index; /* place in the call's positional arguments, or -1 */
  int element;      /* place in *args, if it is one of those */
  PyObject *key;    /* the keyword otherwise */
};

struct program_kernel {
  const char *name;
  PyObject *fn;
  struct kernel *kernel; /* or NULL for a plain function */
  int n_params;
  struct kparam *params;
  PyObject *args, *kw; /* what the function is called with; parameters hold None */
  bool resolved, refused;
  struct trace_kernel *done;
};
void program_kernel_drop(struct program_kernel *k); /* its call and its arrays */

/* Around every call of user code: diagnostics go to ds, and what is printed is kept.  Calls nest. */
void program_enter(struct trace_program *p, struct diags *ds);
void program_leave(struct trace_program *p);
/* Fetches the pending Python exception and makes it a diagnostic; the status that goes with it. */
enum status program_exception(struct trace_program *p, struct diags *ds);

/* ---- parameters (resolve.c) ---- */

/* Works out which parameters are arrays, and the call; false with diagnostics. */
bool kernel_resolve(struct trace_program *p, struct program_kernel *k);
/* New references to the call's arguments, with `values` (n_params objects) in the places of the parameters; false with an
 * exception. */
bool kernel_arguments(const struct program_kernel *k, PyObject *const *values, PyObject **args, PyObject **kw);
bool kernel_is_annotated(PyObject *fn); /* with the shape of some parameter */
/* The kernel's header; NULL if its function is of another file. */
const struct src_loc *kernel_def_loc(struct trace_program *p, const struct program_kernel *k);
/* The place of a parameter's name, or else of the header. */
const struct src_loc *kernel_param_loc(struct trace_program *p, const struct program_kernel *k, const char *name);

/* ---- what other files do for a program ---- */

/* Refuses sources that are too large together, and one that is too deeply nested or no text, before CPython parses it;
 * false with a diagnostic and *st (precheck.c). */
bool precheck_source(const struct trace_request *rq, struct diags *ds, struct arena *a, enum status *st);
/* Lets `import` find the request's files, and stand-ins for modules that are not installed; sets program->module, the
 * main file's.  False with an exception (imports.c). */
bool imports_open(struct trace_program *p);
/* Takes away the modules of the request's files, and all else that imports_open changed. */
void imports_close(struct trace_program *p);
/* The array of this name in the request's npz file, a new reference; NULL with or without an exception.  An npz file
 * stores ml_dtypes' types as bytes without a name: those of t's size are read as t, and for DT_NONE two bytes are a
 * bfloat16 (values.c). */
PyObject *values_npz_array(struct trace_program *p, const char *name, enum dtype t);

/* The object that stands in for sys.stdout and sys.stderr (output.c). */
PyObject *output_new(void);
bool output_init(PyObject *module);
/* Replaces NULs, which would end the text for C, by the control character SUB. */
void output_without_nul(char *s, size_t n);
/* warnings.showwarning(message, category, …): makes a diagnostic of a warning. */
PyObject *output_warning(PyObject *self, PyObject *args, PyObject *kw);

#endif
