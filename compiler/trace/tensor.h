/* tensor: the object that replaces an array while a kernel is traced.
 *
 * A tensor may be a view of another tensor, as y[2:4] and y.T are views of y in NumPy: a write to either changes both.
 * The value of a view is computed again from its base after the base has changed (view.h).
 */
#ifndef TRACE_TENSOR_H
#define TRACE_TENSOR_H

#include "trace/tracer.h"

struct view;

struct tensor {
  PyObject_HEAD uint64_t serial; /* the trace's serial number */
  hlo_val v;                     /* in that trace's arena; may be read only while the trace runs */
  int param;                     /* the number of the kernel's parameter that the tensor is, or -1 */
  bool mutated;                  /* true after x[…] = v, or after a function that stores */
  int rank;                      /* rank, dtype and dims are copies that can be read after the trace has ended */
  enum dtype dtype;
  npy_intp dims[HLO_RANK_MAX];
  uint64_t version;        /* number of changes of v */
  PyObject *base;          /* the tensor that this is a view of, owned, or NULL */
  const struct view *view; /* the base's elements that the view has, and their order */
  uint64_t seen;           /* the base's version that v was computed from */
  /* strides are NumPy's, in elements; they determine if a reshape is a view.  has_strides is true if they are known. */
  bool has_strides, is_scalar; /* is_scalar: the value is a scalar in NumPy, which cannot be changed in place */
  npy_intp strides[HLO_RANK_MAX];
  PyObject *array; /* if a NumPy array has become this tensor: an array with its memory (array.c), owned; or NULL */
};

extern PyTypeObject *tensor_type;
static inline bool tensor_check(PyObject *o) {
  return Py_IS_TYPE(o, tensor_type);
}
PyObject *tensor_wrap(struct tracer *tr, hlo_val v); /* returns a new tensor; NULL if v is NULL */
void tensor_set(struct tensor *t, hlo_val v);        /* gives the object another value */
/* Returns the tensor's value in the computation that is being traced.  Refuses a tensor of another trace. */
hlo_val tensor_val(struct tracer *tr, PyObject *o);
/* Writes the value of a tensor, which tensor_val has just read.  If the tensor is a view, also writes its base.  False
 * with an exception.  is_mutation: if the tensor or its base is a parameter, the kernel's caller sees the write. */
bool tensor_store(struct tracer *tr, struct tensor *t, hlo_val v, bool is_mutation);
/* x[key] and x[key] = value. */
PyObject *tensor_get_item(PyObject *x, PyObject *key);
int tensor_set_item(PyObject *x, PyObject *key, PyObject *value);
bool tensor_init(PyObject *module);

#endif
