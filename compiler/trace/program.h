/* program: the user's source as a Python program, and its kernels.
 *
 * trace_open executes a job's program; live.c makes a program for a function of the running Python program.
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
  PyObject *code;    /* kept alive, because ranges identifies code objects by their address */
  PyObject *main_code;
  PyObject *found;  /* list of Kernel objects, in the order of definition */
  PyObject *called; /* {code of a plain function: (args, kw) of its first call with arrays} (calls.h); or NULL */
  PyObject *npz;    /* contents of rq->inputs_npz; NULL until needed */
  int n;
  struct program_kernel *kernels;
  struct diags *ds; /* diagnostics of the current call */
  PyObject *old_stdout, *old_stderr;
  char *output; /* the printed text; has room for TRACE_OUTPUT_MAX bytes */
  size_t output_len;
  bool output_cut, output_cut_said;
  bool is_rerun; /* a kernel runs again, with NumPy; its output is dropped, as its trace has printed it */
  int depth;     /* program_enter calls without a program_leave */
  /* True for a function of the running Python program (live.c).  Its output is printed, and its exception is kept here
   * for the caller. */
  bool is_live;
  /* The last call of an NKI kernel with arrays that raised, in the module's own code: which kernel, and the exception, which is not
   * owned.  If the exception ended the module, `held` is its diagnostic: the kernel's own trace finds the mistake again, at
   * its place, and only if it does not is it reported. */
  struct kernel *failed;
  PyObject *failed_by;
  struct diag *held;
  PyObject *raised_type, *raised, *raised_tb;
  /* Of a source with a syntax error, whose text in rq is what could be executed (nkx/half_typed.py): the blocks that were cut. */
  int n_cuts;
  struct cut {
    int first, last; /* lines */
    bool is_used;    /* functions outside of it use what it defines */
  } *cuts;
};
extern struct trace_program *program_now; /* NULL outside of trace_open … trace_close */

/* One parameter that is an array while tracing. */
struct kparam {
  const char *name; /* in the program's arena */
  enum dtype dtype; /* after narrowing */
  enum dtype given; /* before narrowing */
  int rank;
  int64_t dims[HLO_RANK_MAX];
  PyObject *array;  /* the array that the kernel was specialised with, or NULL */
  Py_ssize_t index; /* place in the call's positional arguments, or -1 */
  int element;      /* place in *args, if it is an element of it */
  PyObject *key;    /* the keyword if index is -1 */
  PyObject *path;   /* its place in an argument that is a tuple (trace/calls.h); NULL or (): it is the argument */
};

struct program_kernel {
  const char *name;
  PyObject *fn;
  struct kernel *kernel; /* or NULL for a plain function */
  int n_params;
  struct kparam *params;
  PyObject *args, *kw; /* arguments of the call; those in params are None */
  bool resolved, refused;
  bool is_caller; /* a plain function that calls NKI kernels; these are kernels beside it, and it may be none */
  struct trace_kernel *done;
};
void program_kernel_drop(struct program_kernel *k); /* releases its call and its arrays */

/* Checks the sources and makes a program of them, which is not executed.  Otherwise as trace_open. */
enum status program_begin(struct arena *a, const struct trace_request *rq, struct diags *ds,
                          struct trace_program **out);

/* These are called before and after every call of user code.  Diagnostics go to ds, and output is kept.  Calls nest. */
void program_enter(struct trace_program *p, struct diags *ds);
void program_leave(struct trace_program *p);
/* After a refusal: says in ds, once, that the time was up, if Python code was ended for that; true if it did. */
bool program_was_stopped(struct diags *ds);
/* Says that the source defines no function, or which one its decorators made something else (nkx/decorated.py). */
void program_has_no_function(struct trace_program *program, struct diags *ds);
/* Fetches the pending Python exception and turns it into a diagnostic.  Returns the corresponding status. */
enum status program_exception(struct trace_program *p, struct diags *ds);
/* The same for an exception that ended the module.  A use of a module that is not available is a warning, and the status is ST_OK, if an
 * NKI kernel was called before it: files compare the kernel's results by torch or JAX. */
enum status program_exception_of_driver(struct trace_program *p, struct diags *ds);

/* ---- parameters (resolve.c) ---- */

/* Determines which parameters are arrays, and the call's arguments.  False with diagnostics. */
bool kernel_resolve(struct trace_program *p, struct program_kernel *k);
/* Sets *args and *kw to the call's arguments, new references, with `values` (n_params objects) in the places of the
 * parameters.  False with an exception. */
bool kernel_arguments(const struct program_kernel *k, PyObject *const *values, PyObject **args, PyObject **kw);
bool kernel_is_annotated(PyObject *fn); /* true if an annotation has a parameter's shape */
/* Returns the place of the kernel's header; NULL if its function is not in one of the user's files. */
const struct src_loc *kernel_def_loc(struct trace_program *p, const struct program_kernel *k);
/* Whether a syntax error ends the kernel early, and whether it may use what a syntax error ends. */
struct half_typed {
  bool is_cut, uses_cut;
};
struct half_typed kernel_half_typed(struct trace_program *p, const struct program_kernel *k);
/* Returns the place of the function's only return statement; NULL if there are several (run.c). */
const struct src_loc *trace_return_loc(struct trace_program *p, const struct program_kernel *k);
/* Returns the place of a parameter's name, or of the header if that is not known. */
const struct src_loc *kernel_param_loc(struct trace_program *p, const struct program_kernel *k, const char *name);

/* ---- what other files do for a program ---- */

/* Refuses sources that are too large in total, and a source that is too deeply nested or not valid text, before CPython
 * parses it.  False with a diagnostic and *st (precheck.c). */
bool precheck_source(const struct trace_request *rq, struct diags *ds, struct arena *a, enum status *st);
/* Lets `import` find the request's files, and stand-ins for modules that are not installed.  Sets program->module to
 * the main file's module.  False with an exception (imports.c). */
bool imports_open(struct trace_program *p);
/* Removes the modules of the request's files, and reverts all other changes of imports_open. */
void imports_close(struct trace_program *p);
/* Opens an npz file (nkx/npz.py): an object with `files` and arrays by name, a new reference.  Another file of NumPy's is its
 * array.  NULL with an exception. */
PyObject *values_load_npz(const char *path);
/* Returns the array with this name in the request's npz file, a new reference; NULL with or without an exception.  An
 * npz file stores ml_dtypes' types as bytes without a type name.  Such elements are read as t if they have t's size; if
 * t is DT_NONE, elements of two bytes are read as bfloat16 (values.c). */
PyObject *values_npz_array(struct trace_program *p, const char *name, enum dtype t);

/* Returns a new object that replaces sys.stdout and sys.stderr (output.c). */
PyObject *output_new(void);
bool output_init(PyObject *module);
/* Replaces NULs, which would end a C string, by the control character SUB. */
void output_without_nul(char *s, size_t n);
/* warnings.showwarning(message, category, …): turns a warning into a diagnostic. */
PyObject *output_warning(PyObject *self, PyObject *args, PyObject *kw);

#endif
