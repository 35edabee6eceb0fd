/* tensor: the object that a kernel sees in place of an array.
 *
 * A tensor may be a view of another one, as y[2:4] and y.T are of y in NumPy: a write to either is seen in both.  Its value
 * is then computed again from its base when the base has changed (view.h).
 */
#ifndef TRACE_TENSOR_H
#define TRACE_TENSOR_H

#include "trace/tracer.h"

struct view;

struct tensor {
  PyObject_HEAD uint64_t serial; /* of its trace */
  hlo_val v;                     /* in that trace's arena: to be read while the trace runs only */
  int param;                     /* the number of the kernel's parameter that it is, or -1 */
  bool mutated;                  /* by x[…] = v, or by a function that stores */
  int rank;                      /* copies: shape and dtype can be asked for after the trace has ended */
  enum dtype dtype;
  npy_intp dims[HLO_RANK_MAX];
  uint64_t version;        /* counts the changes of v */
  PyObject *base;          /* the tensor that it is a view of, owned, or NULL */
  const struct view *view; /* which of the base's elements it shows, in what order */
  uint64_t seen;           /* the base's version that v was computed from */
  /* NumPy's strides in elements, which decide whether a reshape is a view; has_strides: they are known. */
  bool has_strides, is_scalar; /* is_scalar: NumPy has a scalar here, which cannot be changed in place */
  npy_intp strides[HLO_RANK_MAX];
  PyObject *array; /* of a NumPy array that has become a tensor: an array with its memory (array.c), owned, or NULL */
};

extern PyTypeObject *tensor_type;
static inline bool tensor_check(PyObject *o) {
  return Py_IS_TYPE(o, tensor_type);
}
PyObject *tensor_wrap(struct tracer *tr, hlo_val v); /* NULL gives NULL */
void tensor_set(struct tensor *t, hlo_val v);        /* gives the object another value */
/* The tensor's value in the computation that is traced now.  Refuses a tensor of another trace. */
hlo_val tensor_val(struct tracer *tr, PyObject *o);
/* Writes the value of a tensor, which tensor_val has just read, and through a view into its base; false with an exception.
 * is_mutation: the kernel's caller sees it if the tensor, or what it is a view of, is a parameter. */
bool tensor_store(struct tracer *tr, struct tensor *t, hlo_val v, bool is_mutation);
/* x[key] and x[key] = value. */
PyObject *tensor_get_item(PyObject *x, PyObject *key);
int tensor_set_item(PyObject *x, PyObject *key, PyObject *value);
bool tensor_init(PyObject *module);

#endif
