/* nki: records the calls of a running NKI kernel (nki/nki.h).
 *
 *   tensor.c   the Python type of tensors and views: indexing, and the methods that make views
 *   rearrange.c  its method rearrange
 *   columns.c  its method indirect
 *   call.c     the functions of nki.isa
 *   arguments.c  their arguments
 *   make.c     tensors that the kernel makes
 *   written.c  calls and views as the kernel writes them
 *   register.c registers, and loops and branches on the device
 *   launch.c   runs the instances of a kernel
 *   run.c      runs a kernel for a job or a call, and gives its record to Python
 *
 * One kernel is recorded at a time.  Tensors of a record that has ended are refused, and their memory is never read.
 */
#ifndef TRACE_NKI_NKI_H
#define TRACE_NKI_NKI_H

#include "nki/nki.h"
#include "trace/python.h"
#include "trace/ranges.h"

struct trace_program;

struct nki_recorder {
  struct nki_program *program;
  struct ranges *ranges;
  struct diags *ds;
  PyFrameObject *base; /* the frame that started the recording, or NULL */
  uint64_t serial;
  struct trace_program *owner;   /* with ds: a call that is refused becomes a diagnostic, and the kernel runs on */
  int first_finding, n_findings; /* what the analysis found, in ds */
  int n_refused;                 /* calls so far */
  bool is_cut;                   /* a syntax error ends the kernel early: its results are not checked */
  const char *wrong;             /* the parameter that the pending exception is about, or NULL */
  uint64_t outside;              /* loops up to this number run around the kernel (counting.h) */
};
extern struct nki_recorder *nki_now; /* NULL: no kernel is recorded */

struct nki_tensor_object {
  PyObject_HEAD struct nki_view view; /* its tensor lives as long as the record */
  uint64_t serial;
};
extern PyTypeObject *nki_tensor_type;

/* The running record; NULL with an exception if there is none. */
struct nki_recorder *nki_enter(void);
/* The places of what the kernel does now. */
struct src_locs nki_here(struct nki_recorder *r);
/* Tells the record which loops of Python run now. */
void nki_note_rounds(struct nki_recorder *r);
/* Raises the exception of *err.  Returns NULL. */
void *nki_raise(const struct nki_error *err);

/* For a pending exception.  Where it is a violation of NKI's rules in a job, makes a diagnostic of it and returns true, so
 * that the kernel runs on and shows its other mistakes; one in a loop is reported once.  False: the exception is left. */
bool nki_report(void);
/* The result, or, where NULL stands for such a violation outside of a call that is shown as it was written, a new reference to what
 * stands for unknown values (nkx/nki_unknown.py): a call with it as an argument does nothing. */
PyObject *nki_or_unknown(PyObject *result);
bool nki_is_unknown(PyObject *o);
/* What stands for unknown values, a new reference, if it is among the arguments or in sequences or slices in them; NULL, without an
 * exception, if it is not. */
PyObject *nki_unknown_among(PyObject *args, PyObject *kw);
/* Whether o is unknown, or a tuple, list or slice with something unknown. */
bool nki_holds_unknown(PyObject *o);

/* Whether the kernel is one of a job, whose stages are shown; else it is one of a running Python program. */
bool nki_is_shown(const struct nki_recorder *r);
/* Whether expressions of views are shown: in a job, outside of calls that are shown as they were written. */
static inline bool nki_shows_views(const struct nki_recorder *r) {
  return nki_is_shown(r) && !r->program->writing;
}
/* The expression of a view; "name(argument, …)".  In the arena. */
const char *nki_written_view(struct nki_recorder *r, const struct nki_view *v);
const char *nki_written_call(struct nki_recorder *r, const char *name, PyObject *args, PyObject *kw);

/* A new Python object of a view. */
PyObject *nki_wrap(struct nki_recorder *r, const struct nki_view *v);
/* The view of an object that is a tensor of the running record; NULL with an exception.  `what` is the argument's name. */
struct nki_view *nki_view_of(struct nki_recorder *r, PyObject *o, const char *what);
/* v, if it is no columns that numbers select; else NULL with an exception. */
struct nki_view *nki_plain(struct nki_view *v, const char *what);
/* The view of the tensor whose method or attribute is asked for, and the running record; NULL with an exception. */
struct nki_view *nki_asked_view(PyObject *self, struct nki_recorder **r);
/* The same where columns that numbers select are refused, because they have no views of their own. */
struct nki_view *nki_own_view(PyObject *self, struct nki_recorder **r);
static inline bool nki_is_tensor(PyObject *o) {
  return PyObject_TypeCheck(o, nki_tensor_type);
}

/* The register that an object is, of the running record: an object of nkx/nki_registers.py.  *is: whether it is one.  NULL with
 * an exception if it is of another kernel. */
struct nki_tensor *nki_register_of(struct nki_recorder *r, PyObject *o, bool *is);
/* The same for the place of a view: a register with an integer, to which something has been written. */
struct nki_tensor *nki_index_register(struct nki_recorder *r, PyObject *o, bool *is);
/* The register that an offset is: a register, or one into which a tensor of one element is loaded now.  NULL with an exception. */
struct nki_tensor *nki_offset_register(struct nki_recorder *r, PyObject *o, const char *what);
/* The name of the variable that the user's function assigns the result of its present call to, in the arena; NULL if there is
 * none. */
const char *nki_variable_here(struct nki_recorder *r);
extern PyMethodDef nki_register_methods[]; /* of the module _nkx */

/* Reads an int.  False with an exception. */
bool nki_read_int(PyObject *o, const char *what, int64_t *out);
/* Reads a sequence of ints, at most `max`; a sequence of pairs as a row of ints if `pairs`.  False with an exception. */
bool nki_read_ints(PyObject *o, const char *what, bool pairs, int max, int64_t *out, int *n);
/* Reads a dtype: a name, or a type of NumPy, ml_dtypes or nl.  False with an exception. */
bool nki_read_dtype(PyObject *o, enum dtype *out);
/* The same, and packed elements and their scales. */
bool nki_read_type(struct nki_recorder *r, PyObject *o, enum dtype *out, enum nki_packed *packed);
/* The NumPy dtype of t, a new reference. */
PyObject *nki_dtype_object(enum dtype t);

/* The name of an operator, an engine, a memory or a choice: a str, or what has a `name` or `__name__`.  It lives as long as *keep,
 * a new reference or NULL.  NULL, without an exception, if there is none. */
const char *nki_name_of(PyObject *o, PyObject **keep);
/* Sets the values of the call c, whose kind is set, from its arguments, except for those that are unknown, if unknown is true.
 * False with an exception; r->wrong is the parameter then, if it is about one. */
bool nki_bind(struct nki_recorder *r, struct nki_call *c, PyObject *args, PyObject *kw, bool unknown);

/* nki_ndarray(shape, dtype, buffer, name, address): address is None, or (partition, byte), or a function that returns this. */
PyObject *nki_make_tensor(PyObject *self, PyObject *args);
/* nki_constant(array): a tensor in HBM that has its elements. */
PyObject *nki_make_constant(PyObject *self, PyObject *o);

/* The object of v.indirect(index, n): n < 0: as many as there are indices.  `written`: its expression, or NULL. */
PyObject *nki_tensor_columns(struct nki_recorder *r, const struct nki_view *v, const struct nki_view *index, int64_t n,
                             const char *written);
/* Columns that a call writes: the call writes `values` instead, which nki_scatter_columns copies to them after it. */
struct nki_scatter {
  struct nki_columns to;
  struct nki_view values;
  bool is_due;
};
/* Records the copies of operands that are columns, which take their places.  *begun: nki_written_begin was called for the call.
 * False with an exception. */
bool nki_gather_columns(struct nki_recorder *r, struct nki_call *c, bool *begun, struct nki_scatter *later);
/* Records what writes the columns.  False with an exception. */
bool nki_scatter_columns(struct nki_recorder *r, const struct nki_scatter *s);

/* t.rearrange(src_pattern, dst_pattern, fixed_sizes=None), a method with keywords. */
PyObject *nki_tensor_rearrange(PyObject *self, PyObject *args, PyObject *kw);
/* t[key], and t[key] = value. */
PyObject *nki_tensor_subscript(PyObject *self, PyObject *key);
int nki_tensor_assign(PyObject *self, PyObject *key, PyObject *value);
extern PyMethodDef nki_tensor_methods[];

bool nki_tensor_init(PyObject *module);
bool nki_instruction_init(PyObject *module);
extern PyMethodDef nki_methods[], nki_written_methods[]; /* of the module _nkx */

#endif
