/* tensor: the object that a kernel sees in place of an array. */
#ifndef TRACE_TENSOR_H
#define TRACE_TENSOR_H

#include "trace/tracer.h"

struct tensor {
  PyObject_HEAD uint64_t serial; /* of its trace */
  hlo_val v;                     /* in that trace's arena: to be read while the trace runs only */
  int param;                     /* the number of the kernel's parameter that it is, or -1 */
  bool mutated;                  /* by x[…] = v, or by a function that stores */
  int rank;                      /* copies: shape and dtype can be asked for after the trace has ended */
  enum dtype dtype;
  npy_intp dims[HLO_RANK_MAX];
};

extern PyTypeObject *tensor_type;
static inline bool tensor_check(PyObject *o) {
  return Py_IS_TYPE(o, tensor_type);
}
PyObject *tensor_wrap(struct tracer *tr, hlo_val v); /* NULL gives NULL */
void tensor_set(struct tensor *t, hlo_val v);        /* gives the object another value */
/* The tensor's value in the computation that is traced now.  Refuses a tensor of another trace. */
hlo_val tensor_val(struct tracer *tr, PyObject *o);
bool tensor_init(PyObject *module);

#endif
