/* operand: the arguments that users pass to an operation, and the dtype that it is computed in. */
#ifndef TRACE_OPERAND_H
#define TRACE_OPERAND_H

#include "trace/tracer.h"

/* ---- dtypes ---- */

enum dtype dtype_from_num(int type_num);  /* from NumPy's type number; DT_NONE if HLO has no such type */
PyArray_Descr *dtype_descr(enum dtype t); /* new reference */
/* Reads any object that NumPy accepts as a dtype, or one of nkigen's names.  64-bit types are narrowed.  DT_NONE with
 * an exception. */
enum dtype dtype_from_py(PyObject *o);
double dtype_largest(enum dtype t); /* the largest finite number of a float type */
bool dtype_init(void);

/* ---- operands ---- */

/* A Python number is weak: it adapts to the type of the other operands. */
enum weak { STRONG, WEAK_INT, WEAK_FLOAT, WEAK_COMPLEX };

/* One argument of an operation: a tensor, a constant array, or a Python number. */
struct operand {
  hlo_val v;            /* the value of a tensor, or of a loop's index (which is a WEAK_INT) */
  PyArrayObject *array; /* a constant array, owned */
  enum weak weak;
  double value;      /* weak: the number, or its real part */
  double imag;       /* WEAK_COMPLEX: the imaginary part */
  long long integer; /* WEAK_INT: the number, saturated */
  enum dtype dtype;  /* narrowed; DT_NONE if weak */
  int rank;
  const int64_t *dims;
};
bool operand_read(struct tracer *tr, PyObject *o, struct operand *x); /* false with an exception */
void operand_clear(struct operand *x);
struct operand operand_of(hlo_val v); /* the result need not be cleared */
/* Returns the dtype of the operand if it does not adapt to another one. */
enum dtype operand_dtype(const struct operand *x);
/* operand_val returns the operand's value in dtype t, with its own shape; operand_at also broadcasts it to dims.  NULL
 * with an exception. */
hlo_val operand_val(struct tracer *tr, const struct operand *x, enum dtype t);
hlo_val operand_at(struct tracer *tr, const struct operand *x, enum dtype t, int rank, const int64_t *dims);
/* Returns the value of an array in its own dtype.  If all elements are equal, it is a broadcast of one number. */
hlo_val operand_array(struct tracer *tr, const struct operand *x);
/* Reads one object as a value of its own dtype, for operations with one operand. */
hlo_val operand_alone(struct tracer *tr, PyObject *o);
/* Reads a sequence of arrays as values of one dtype: `as`, a Python object, or the promoted dtype if `as` is NULL or
 * None.  *xs is in the trace's arena.  False with an exception.  An empty sequence is refused; the message has the name
 * `func`. */
bool operand_read_list(struct tracer *tr, const char *func, PyObject *o, PyObject *as, int *n, hlo_val **xs);
/* Reads two objects as values of the dtype `as`, or of the promoted dtype if `as` is DT_NONE.  Each keeps its shape. */
bool operand_read_pair(struct tracer *tr, PyObject *a, PyObject *b, enum dtype as, hlo_val out[2]);
/* Sets the shape that n operands are broadcast to.  False with an exception (shape-mismatch). */
bool operand_broadcast(int n, const struct operand *xs, int *rank, int64_t *dims);
/* The same; `what` is the name of the operands in the message. */
bool operand_broadcast_named(int n, const struct operand *xs, int *rank, int64_t *dims, const char *what);

/* ---- promotion ---- */

/* Returns the dtype of an operation on both dtypes; DT_NONE if there is none.  Complex with anything is complex64. */
enum dtype promote_pair(enum dtype x, enum dtype y);
enum dtype promote_weak(enum dtype x, enum weak w);
enum dtype promote_operands(int n, const struct operand *xs); /* DT_NONE with an exception */
enum dtype promote_float(enum dtype t); /* for exp and similar: a float is unchanged, an integer becomes a float */
enum dtype promote_sum(enum dtype t);   /* for sum and prod */

#endif
