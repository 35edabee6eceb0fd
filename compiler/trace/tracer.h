/* tracer: what the C files of the tracer share.  Private to compiler/trace.
 *
 * One interpreter, one job and at most one running trace per process: `tracer_now` is that trace.  Python objects that
 * users can hold (tensors) name their trace by its serial number and never reach into a trace that has ended.
 *
 * Two ways to fail meet here.  Functions that return a Python object or an operand set a Python exception.  Functions
 * that return an hlo_val follow build.h: NULL, with the reason either a Python exception or in tr->b.err; a composed
 * operation need not care which, because op_call turns what is left in tr->b.err into an exception at its end.
 */
#ifndef TRACE_TRACER_H
#define TRACE_TRACER_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL nkx_array_api
#ifndef TRACE_IMPORT_ARRAY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

#include "hlo/build.h"
#include "trace/trace.h"

#define PYFUNC(f) ((PyCFunction)(void (*)(void))(f))

/* ---- places in the source (ranges.c) ---------------------------------------------------------------- */

/* Turns frames into src_locs.  Lives in the job's arena; remembers every place it has built. */
struct ranges {
  struct arena *a;
  PyObject *filename; /* str: frames of other files are skipped; NULL: nothing is known */
  const char *file;   /* the same in the arena */
  const char **lines; /* start of each line in the arena, n_lines + 1 entries */
  int n_lines;
  struct range_entry **table;
  size_t table_size, n_entries;
  PyObject *code_seen; /* the code object that was looked at last, borrowed, and whether it is the user's */
  bool code_is_user;
};
void ranges_init(struct ranges *r, struct arena *a, PyObject *filename, const char *source, size_t len);
void ranges_clear(struct ranges *r);
/* The user's place that is running now, innermost first, up to but without the frame `base` (NULL: to the end). */
const struct src_loc *ranges_here(struct ranges *r, PyFrameObject *base);
/* The place at which the exception with this traceback arose; calls are its chain. */
const struct src_loc *ranges_traceback(struct ranges *r, PyObject *traceback);
/* The place of one instruction of a code object, or NULL when it is not the user's. */
const struct src_loc *ranges_code(struct ranges *r, PyCodeObject *code, int lasti, const struct src_loc *caller);
/* The line of `def name(…)` that begins at or after `line`. */
const struct src_loc *ranges_def(struct ranges *r, int line, const char *func);
/* The name of that function's parameter in its header, or NULL. */
const struct src_loc *ranges_param(struct ranges *r, int line, const char *name, const char *func);
/* A range given in lines and 1-based columns of code points (as a SyntaxError has it). */
const struct src_loc *ranges_exact(struct ranges *r, int line, int col, int end_line, int end_col);

/* ---- refusals (refuse.c) ---------------------------------------------------------------------------- */

/* Raises the exception class of `code` with a hint (may be NULL); returns NULL so that callers can return it. */
void *refuse(enum diag_code code, const char *hint, const char *fmt, ...);
/* Gives a pending TypeError, ValueError, IndexError or OverflowError of another origin the code bad-argument. */
void refuse_adopt(void);
/* The code of an exception object, or -1 when it is not one of ours; *hint is borrowed from it. */
int refuse_code(PyObject *exc, const char **hint);
/* The handler of SIGPROF: raises TimeLimit in the running Python code. */
PyObject *time_is_up(PyObject *self, PyObject *const *args, Py_ssize_t n);
bool refuse_init(PyObject *module);

/* ---- the trace that runs ---------------------------------------------------------------------------- */

struct tensor {
  PyObject_HEAD uint64_t serial; /* of its trace */
  hlo_val v;                     /* in that trace's arena: only touched while the trace runs */
  int param;                     /* number of the parameter it is, or -1 */
  bool mutated;                  /* x[…] = v happened */
  int rank;                      /* copies, so that shape and dtype outlive the trace */
  enum dtype dtype;
  npy_intp dims[HLO_RANK_MAX];
};

/* A fori_loop whose body runs (loop.c).  The element k of its state is init[k] before the first iteration. */
struct loop {
  struct loop *outer;
  uint64_t serial; /* in its trace; never reused */
  int64_t lower, upper;
  struct hlo_computation *body, *around;
  hlo_val state, index; /* the body's parameter, and its first element */
  int n_init;
  hlo_val *init;
  int n_seen; /* values from outside that the body reads */
  hlo_val *outside, *inside;
  struct hlo_fuse *last_fuse; /* before it */
};
enum { LOOP_NEST_MAX = 8 };

struct tracer {
  struct hlo_builder b;
  struct arena *a;
  struct ranges *ranges;
  struct diags *ds;
  PyFrameObject *base; /* frame that started the trace, or NULL */
  uint64_t serial;
  struct loop *loop; /* innermost, or NULL */
  /* Bodies of loops that were refused: part of what was traced, unless the kernel goes on without them. */
  struct unfinished {
    struct hlo_computation *body;
    struct unfinished *next;
  } *unfinished;
  uint64_t loops; /* so far */
};
extern struct tracer *tracer_now; /* NULL: not tracing */

extern PyTypeObject *tensor_type;
static inline bool tensor_check(PyObject *o) {
  return Py_IS_TYPE(o, tensor_type);
}
PyObject *tensor_wrap(struct tracer *tr, hlo_val v); /* NULL gives NULL */
void tensor_set(struct tensor *t, hlo_val v);        /* re-points it */
hlo_val tensor_val(struct tracer *tr, PyObject *o);  /* refuses a tensor of another trace */
bool tensor_init(PyObject *module);

/* ---- dtypes and operands (operand.c, promote.c) ------------------------------------------------------ */

enum dtype dtype_from_num(int type_num);  /* DT_NONE for one that HLO does not have */
PyArray_Descr *dtype_descr(enum dtype t); /* new reference */
/* From anything NumPy takes as a dtype, or nkigen's names; narrowed.  DT_NONE with an exception. */
enum dtype dtype_from_py(PyObject *o);
bool dtypes_init(void);

enum weak { STRONG, WEAK_INT, WEAK_FLOAT };

/* One argument of an operation: a tensor, a constant array, or a Python number whose type adapts. */
struct operand {
  hlo_val v;            /* tensor */
  PyArrayObject *array; /* constant, owned */
  enum weak weak;
  double value;      /* of a weak one */
  long long integer; /* of a WEAK_INT, saturated */
  enum dtype dtype;  /* DT_NONE for a weak one; already narrowed */
  int rank;
  const int64_t *dims;
};
bool operand_read(struct tracer *tr, PyObject *o, struct operand *x); /* false with an exception */
void operand_clear(struct operand *x);
struct operand operand_of(hlo_val v); /* nothing to clear */
/* As a value of dtype t with its own shape. */
hlo_val operand_val(struct tracer *tr, const struct operand *x, enum dtype t);
/* As a value of dtype t broadcast to dims. */
hlo_val operand_at(struct tracer *tr, const struct operand *x, enum dtype t, int rank, const int64_t *dims);
/* The dtype it has when it stands alone. */
enum dtype operand_dtype(const struct operand *x);
/* Reads o and gives it its own dtype: for operations that take one array. */
hlo_val operand_alone(struct tracer *tr, PyObject *o);
hlo_val array_constant(struct tracer *tr, PyArrayObject *array, enum dtype t);
/* Common shape of n operands; false with shape-mismatch. */
bool broadcast_dims(int n, const struct operand *xs, int *rank, int64_t *dims);
hlo_val broadcast_val(struct tracer *tr, hlo_val v, int rank, const int64_t *dims);

/* The table of frontend.md §4.10; DT_NONE when there is no entry. */
enum dtype promote(enum dtype x, enum dtype y);
enum dtype promote_weak(enum dtype x, enum weak w);
enum dtype promote_operands(int n, const struct operand *xs); /* DT_NONE with an exception */
enum dtype promote_float(enum dtype t); /* what exp gives for it: floats stay, integers become a float */
enum dtype promote_sum(enum dtype t);   /* what sum and prod give for it */

/* ---- arguments (args.c) ------------------------------------------------------------------------------ */

/* An axis argument: None (all axes), an int, or a tuple or list of ints; negative ones count from the end. */
bool axes_parse(PyObject *axis, int rank, bool mask[HLO_RANK_MAX]);
bool axis_parse(PyObject *axis, int rank, int *out); /* exactly one */
bool int_parse(PyObject *o, const char *what, int64_t *out);
/* An int or a sequence of ints. */
bool dims_parse(PyObject *o, const char *what, int *n, int64_t dims[HLO_RANK_MAX]);
bool flag_parse(PyObject *o, bool *out); /* NULL leaves *out */
/* Refuses a value other than None (or, for where=, True) of a keyword that tracing cannot honour. */
bool only_none(PyObject *o, const char *func, const char *keyword);
const char *dims_text(int rank, const int64_t *dims, char *out, size_t size); /* "(2, 3)" */

/* ---- operations (ops.def, dispatch.c) --------------------------------------------------------------- */

struct op_def {
  const char *name;   /* as the user knows it: "np.add" without the np. */
  const char *numpy;  /* paths under numpy, separated by spaces */
  const char *method; /* name of the tensor method, or NULL */
  PyObject *(*call)(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw);
  int arg;
  const char *kind;
};
extern const struct op_def op_table[];
enum op_id {
#define TRACE_OP(id, name, numpy, method, kind, call, arg) OP_##id,
#include "trace/ops.def"
#undef TRACE_OP
  OP_COUNT
};
/* Runs one operation for the user: location, limits, errors. */
PyObject *op_call(const struct op_def *op, PyObject *args, PyObject *kw);
/* Likewise, with out=. */
PyObject *op_call_out(const struct op_def *op, PyObject *args, PyObject *kw);
PyObject *op_call2(enum op_id id, PyObject *x, PyObject *y);
PyObject *op_call1(enum op_id id, PyObject *x);
/* x OP y, where `comparison` is Py_LT, Py_EQ, … */
PyObject *op_compare2(int comparison, PyObject *x, PyObject *y);
PyObject *dispatch_ufunc(PyObject *self, PyObject *args, PyObject *kw);
PyObject *dispatch_function(PyObject *self, PyObject *args, PyObject *kw);
/* The nearest supported spelling of an unknown callable, or NULL. */
const char *dispatch_hint(const char *name);
bool dispatch_init(void);
/* Gives b the place that is running now; NULL (with an exception) when no trace runs. */
struct tracer *tracer_enter(void);

#define TRACE_OP(id, name, numpy, method, kind, call, arg) \
  PyObject *call(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw);
#include "trace/ops.def"
#undef TRACE_OP

/* Helpers that one kind of operation lends to another. */
enum {
  BIN_ADD,
  BIN_SUB,
  BIN_MUL,
  BIN_DIV,
  BIN_POW,
  BIN_MAX,
  BIN_MIN,
  BIN_FLOORDIV,
  BIN_MOD,
  BIN_LOGADDEXP,
  BIN_ARCTAN2,
  BIN_FMOD,
  BIN_LOGADDEXP2,
  BIN_HYPOT,
  BIN_COPYSIGN,
  BIN_HEAVISIDE,
  BIN_LDEXP,
  BIN_FMAX,
  BIN_FMIN,
  BIN_FLOAT_POWER
};
enum {
  UN_ABS,
  UN_FABS,
  UN_NEGATIVE,
  UN_POSITIVE,
  UN_SIGN,
  UN_EXP,
  UN_EXPM1,
  UN_LOG,
  UN_LOG1P,
  UN_LOG2,
  UN_SQRT,
  UN_SIN,
  UN_COS,
  UN_TAN,
  UN_TANH,
  UN_ARCTAN,
  UN_SQUARE,
  UN_RECIPROCAL,
  UN_CEIL,
  UN_FLOOR,
  UN_TRUNC,
  UN_RINT,
  UN_INVERT,
  UN_LOGICAL_NOT,
  UN_ISNAN,
  UN_ISINF,
  UN_ISFINITE,
  UN_ISPOSINF,
  UN_ISNEGINF,
  UN_SIGNBIT,
  UN_EXP2,
  UN_LOG10,
  UN_CBRT,
  UN_SINH,
  UN_COSH,
  UN_ARCSIN,
  UN_ARCCOS,
  UN_ARCSINH,
  UN_ARCCOSH,
  UN_ARCTANH,
  UN_RADIANS,
  UN_DEGREES,
  UN_SINC
};
hlo_val binary_emit(struct tracer *tr, int which, hlo_val x, hlo_val y); /* equal shapes and dtypes, no promotion */
hlo_val binary_operands(struct tracer *tr, int which, struct operand xy[2], enum dtype as);
hlo_val nonzero(struct tracer *tr, hlo_val x);        /* x != 0, as bool */
hlo_val like(struct tracer *tr, hlo_val x, double v); /* v in x's shape and dtype */
hlo_val reduce_axes(struct tracer *tr, enum hlo_op op, hlo_val x, const bool mask[HLO_RANK_MAX], bool keepdims);
hlo_val matmul_vals(struct tracer *tr, hlo_val x, hlo_val y);
hlo_val take_axis(struct tracer *tr, hlo_val x, hlo_val indices, int axis);

PyObject *index_get(struct tracer *tr, struct tensor *t, PyObject *key);
int index_set(struct tracer *tr, struct tensor *t, PyObject *key, PyObject *value);

/* custom_call(target, code, [tensor, …], [(shape, dtype), …], [(output, operand), …], has_collectives): the results as a
 * list (custom.c). */
PyObject *custom_call(PyObject *self, PyObject *args);

/* ---- loops (loop.c, loop_index.c) -------------------------------------------------------------------- */

PyObject *fori_loop(PyObject *self, PyObject *args, PyObject *kw);
/* v, made anywhere around the place that is traced now, as a value of this place; NULL with an exception. */
hlo_val loop_see(struct tracer *tr, hlo_val v);
/* True if t's value was made in the body (or kernel) that is traced now; refuses otherwise. */
bool loop_may_write(struct tracer *tr, const struct tensor *t);

/* A sum of multiples of the indices of running loops, and a constant. */
extern PyTypeObject *loop_index_type;
static inline bool loop_index_check(PyObject *o) {
  return Py_IS_TYPE(o, loop_index_type);
}
PyObject *loop_index_new(struct tracer *tr, const struct loop *l); /* l's own */
/* As an s32[]; NULL with an exception. */
hlo_val loop_index_val(struct tracer *tr, PyObject *o);
/* The smallest and the largest value it takes; false with an exception. */
bool loop_index_range(struct tracer *tr, PyObject *o, int64_t *low, int64_t *high);
/* stop - start, either of them a LoopIndex or an int, if that is the same in every iteration. */
bool loop_index_distance(PyObject *start, PyObject *stop, int64_t *out);
bool loop_index_init(PyObject *module);

/* ---- knobs, kernels, jobs ---------------------------------------------------------------------------- */

PyObject *knob_call(PyObject *self, PyObject *args, PyObject *kw);     /* nkigen's: builder or function form */
PyObject *knob_function(PyObject *self, PyObject *args, PyObject *kw); /* nkipy's: always returns the tensor */
PyObject *knob_fuse(PyObject *self, PyObject *const *args, Py_ssize_t n);
bool knobs_init(PyObject *module);

/* One parameter that is an array while tracing. */
struct kparam {
  const char *name; /* in the job's arena */
  enum dtype dtype; /* after narrowing */
  enum dtype given; /* before */
  int rank;
  int64_t dims[HLO_RANK_MAX];
  PyObject *array;  /* the value it was specialised with, or NULL */
  Py_ssize_t index; /* place in the call's positional arguments, or -1 */
  PyObject *key;    /* keyword otherwise */
};

/* A decorated function. */
struct kernel {
  PyObject_HEAD PyObject *fn, *dict, *name;
  PyObject *input_specs; /* or NULL */
  PyObject *args, *kw;   /* of the first specialize or call with arrays, or NULL */
  PyObject *code;        /* _code, or NULL */
};
extern PyTypeObject *kernel_type;
PyObject *kernel_make(PyObject *fn, PyObject *specs, PyObject *name); /* specs, name: None or NULL when not given */
bool kernels_init(PyObject *module);

struct trace_job {
  struct arena *a;
  const struct trace_request *rq;
  struct ranges ranges;
  PyObject *module, *filename;
  PyObject *code; /* kept: ranges knows code objects by their address */
  PyObject *main_code;
  PyObject *found; /* list of kernels, in the order of definition */
  PyObject *npz;   /* what rq->inputs_npz holds; NULL until it is asked for */
  int n;
  struct job_kernel *kernels;
  struct diags *ds; /* of the call that runs now */
  PyObject *old_stdout, *old_stderr;
  char *output;
  size_t output_len;
  bool output_cut, output_cut_said;
  int depth; /* job_enter calls that were not left */
  /* A function of a program that runs (live.c): its output is left alone, and what it raises goes on to its caller. */
  bool is_live;
  PyObject *raised_type, *raised, *raised_tb;
};
extern struct trace_job *job_now; /* NULL outside trace_open … trace_close */

struct job_kernel {
  const char *name;
  PyObject *fn;
  struct kernel *kernel; /* or NULL for a plain function */
  int n_params;
  struct kparam *params;
  PyObject *args, *kw; /* what the function is called with; parameters hold None */
  bool resolved, refused;
  struct trace_kernel *done;
};

void job_kernel_drop(struct job_kernel *k); /* its call and its arrays */

/* Works out parameters and call arguments; false with diagnostics. */
bool kernel_resolve(struct trace_job *job, struct job_kernel *k);

/* values.c: the array of this name in the request's npz file, a new reference; NULL with or without an exception.  In an
 * npz file ml_dtypes' types are nameless bytes: those of t's size are taken for t, and for DT_NONE two are a bfloat16. */
PyObject *npz_array(struct trace_job *job, const char *name, enum dtype t);
/* New references to the call's arguments with `values` (n_params objects) in the places of the parameters. */
bool kernel_arguments(const struct job_kernel *k, PyObject *const *values, PyObject **args, PyObject **kw);
bool kernel_is_annotated(PyObject *fn); /* with the shape of some parameter */
/* Of the function behind `fn`, which functools.wraps or a method may hide; a new reference, NULL if there is none.  A
 * pending exception stays as it is. */
PyCodeObject *function_code(PyObject *fn);
const struct src_loc *kernel_def_loc(struct trace_job *job, const struct job_kernel *k);
/* The place of a parameter's name, or of the whole header. */
const struct src_loc *kernel_param_loc(struct trace_job *job, const struct job_kernel *k, const char *name);

/* Fetches the pending Python exception and makes it a diagnostic; the status that goes with it. */
enum status job_exception(struct trace_job *job, struct diags *ds);
void job_enter(struct trace_job *job, struct diags *ds); /* user code is about to run */
void job_leave(struct trace_job *job);

bool precheck_source(const struct trace_request *rq, struct diags *ds, struct arena *a, enum status *st);
bool output_init(PyObject *module);
/* A NUL would end the text for us: SUB stands for it, the control character that says that something else was there. */
void text_without_nul(char *s, size_t n);
PyObject *output_new(void);
PyObject *warning_show(PyObject *self, PyObject *args, PyObject *kw);

PyMODINIT_FUNC PyInit__nkx(void);
bool nkx_ready(void); /* import_array and the types, once */

/* What Python sees of a trace (inspect.c): dicts, lists and texts. */
PyObject *inspect_tensors(const struct trace_tensor *v, int n);
PyObject *inspect_aliases(const struct hlo_module *m);
PyObject *inspect_kernel(struct trace_kernel *t);
PyObject *inspect_module(const struct hlo_module *m, bool as_proto);

/* trace_function and what is done with what it gives (live.c). */
extern PyMethodDef live_methods[];
PyObject *debug_trace_source(PyObject *self, PyObject *args, PyObject *kw);

#endif
