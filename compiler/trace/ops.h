/* ops: the table of operations (ops.def), and functions that run an operation.
 *
 * To add a NumPy operation, write its line in ops.def and the function that the line names.
 */
#ifndef TRACE_OPS_H
#define TRACE_OPS_H

#include "base/diag.h"
#include "trace/operand.h"

enum op_id {
#define TRACE_OP(id, name, numpy, method, kind, call, arg) OP_##id,
#include "trace/ops.def"
#undef TRACE_OP
  OP_COUNT
};

struct op_def {
  const char *name;   /* as users know it, without "np." */
  const char *numpy;  /* paths under numpy, separated by spaces */
  const char *method; /* the name of the tensor's method, or NULL */
  PyObject *(*call)(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw);
  union {
    int n;
    hlo_val (*unary)(struct tracer *tr, hlo_val x);
    struct {
      /* Emits the operation on values of equal shapes and dtypes. */
      hlo_val (*emit)(struct tracer *tr, hlo_val x, hlo_val y);
      /* Returns the dtype to compute in, given the promoted dtype; DT_NONE with an exception. */
      enum dtype (*as)(enum dtype promoted, const struct operand xy[2]);
    } binary;
  } arg; /* for `call`; ops.def states which member is set */
  const char *kind;
};
extern const struct op_def op_table[OP_COUNT];

/* Declares the functions that ops.def names: those that are called with Python arguments, and those that compute
 * values. */
#define OP_DECLARE_N(n)
#define OP_DECLARE_UNARY(f) hlo_val unary_##f(struct tracer *tr, hlo_val x);
#define OP_DECLARE_BINARY(f, as) hlo_val binary_##f(struct tracer *tr, hlo_val x, hlo_val y);
#define TRACE_OP(id, name, numpy, method, kind, call, arg) \
  PyObject *call(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw); \
  OP_DECLARE_##arg
#include "trace/ops.def"
#undef TRACE_OP
enum dtype binary_as_promoted(enum dtype t, const struct operand xy[2]);
enum dtype binary_as_number(enum dtype t, const struct operand xy[2]); /* bool becomes int8 */
enum dtype binary_as_float(enum dtype t, const struct operand xy[2]);
enum dtype binary_as_subtract(enum dtype t, const struct operand xy[2]);
enum dtype binary_as_divide(enum dtype t, const struct operand xy[2]);
enum dtype binary_as_power(enum dtype t, const struct operand xy[2]);
enum dtype binary_as_ldexp(enum dtype t, const struct operand xy[2]);
enum dtype binary_as_float32(enum dtype t, const struct operand xy[2]);

/* False with an exception: the operation does not take complex operands (complex.c). */
bool op_takes_complex(const struct op_def *op);

/* Runs one operation for the user: sets its place, checks limits and reports errors.  op_call_out also supports
 * out=. */
PyObject *op_call(const struct op_def *op, PyObject *args, PyObject *kw);
PyObject *op_call_out(const struct op_def *op, PyObject *args, PyObject *kw);
PyObject *op_call1(enum op_id id, PyObject *x);
PyObject *op_call2(enum op_id id, PyObject *x, PyObject *y);
/* Computes x OP y, where `comparison` is Py_LT, Py_EQ, … */
PyObject *op_compare2(int comparison, PyObject *x, PyObject *y);
/* Raises the builder's error, unless an exception is pending.  `code` is used if the error is in the user's input. */
void op_raise(struct tracer *tr, enum diag_code code);
/* ufunc.accumulate of a binary operation. */
PyObject *op_accumulate(struct tracer *tr, enum op_id which, PyObject *args, PyObject *kw);

/* ---- NumPy's two protocols (dispatch.c) ---- */

PyObject *dispatch_ufunc(PyObject *self, PyObject *args, PyObject *kw);
PyObject *dispatch_function(PyObject *self, PyObject *args, PyObject *kw);
/* Returns a hint for a callable that is not in the table, or NULL. */
const char *dispatch_hint(const char *name);
bool dispatch_init(void);

#endif
