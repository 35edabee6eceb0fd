/* operand: what users pass to an operation, and the dtype that it is computed in. */
#ifndef TRACE_OPERAND_H
#define TRACE_OPERAND_H

#include "trace/tracer.h"

/* ---- dtypes ---- */

enum dtype dtype_from_num(int type_num);  /* of NumPy's number; DT_NONE for one that HLO does not have */
PyArray_Descr *dtype_descr(enum dtype t); /* new reference */
/* From anything NumPy takes as a dtype, or one of nkigen's names; 64-bit types are narrowed.  DT_NONE with an
 * exception. */
enum dtype dtype_from_py(PyObject *o);
double dtype_largest(enum dtype t); /* the largest finite number of a float type */
bool dtype_init(void);

/* ---- operands ---- */

/* A Python number adapts to the type of the other operands: it is weak. */
enum weak { STRONG, WEAK_INT, WEAK_FLOAT };

/* One argument of an operation: a tensor, a constant array, or a Python number. */
struct operand {
  hlo_val v;            /* of a tensor, or of a loop's index (which is a WEAK_INT) */
  PyArrayObject *array; /* constant, owned */
  enum weak weak;
  double value;      /* of a weak one */
  long long integer; /* of a WEAK_INT, saturated */
  enum dtype dtype;  /* narrowed; DT_NONE for a weak one */
  int rank;
  const int64_t *dims;
};
bool operand_read(struct tracer *tr, PyObject *o, struct operand *x); /* false with an exception */
void operand_clear(struct operand *x);
struct operand operand_of(hlo_val v); /* there is nothing to clear */
/* The dtype that it has when it stands alone. */
enum dtype operand_dtype(const struct operand *x);
/* Its value in dtype t, with its own shape; operand_at: broadcast to dims.  NULL with an exception. */
hlo_val operand_val(struct tracer *tr, const struct operand *x, enum dtype t);
hlo_val operand_at(struct tracer *tr, const struct operand *x, enum dtype t, int rank, const int64_t *dims);
/* The value of an array, in its own dtype; one number that is broadcast where all elements are equal. */
hlo_val operand_array(struct tracer *tr, const struct operand *x);
/* Reads one object as a value of its own dtype: for operations of one array. */
hlo_val operand_alone(struct tracer *tr, PyObject *o);
/* Reads a sequence of arrays as values of one dtype (`as`, a Python object; NULL or None: the promoted one).  *xs is in
 * the trace's arena.  False with an exception; an empty sequence is refused in the name of `func`. */
bool operand_read_list(struct tracer *tr, const char *func, PyObject *o, PyObject *as, int *n, hlo_val **xs);
/* Reads two objects as values of one dtype (as: DT_NONE for the promoted one), each with its own shape. */
bool operand_read_pair(struct tracer *tr, PyObject *a, PyObject *b, enum dtype as, hlo_val out[2]);
/* The shape that n operands are broadcast to; false with shape-mismatch. */
bool operand_broadcast(int n, const struct operand *xs, int *rank, int64_t *dims);
/* what: as the message calls the operands. */
bool operand_broadcast_named(int n, const struct operand *xs, int *rank, int64_t *dims, const char *what);

/* ---- promotion ---- */

/* The dtype of an operation on both; DT_NONE if there is none. */
enum dtype promote_pair(enum dtype x, enum dtype y);
enum dtype promote_weak(enum dtype x, enum weak w);
enum dtype promote_operands(int n, const struct operand *xs); /* DT_NONE with an exception */
enum dtype promote_float(enum dtype t); /* of exp and its like: floats stay, an integer becomes a float */
enum dtype promote_sum(enum dtype t);   /* of sum and prod */

#endif
