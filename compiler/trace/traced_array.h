/* traced_array: the class of NumPy arrays that have become tensors (array.h says when).
 *
 * It is a subclass of ndarray, so that isinstance holds, and has the same layout: an array takes this class in place.
 */
#ifndef TRACE_TRACED_ARRAY_H
#define TRACE_TRACED_ARRAY_H

#include <assert.h>
#include <stdbool.h>

#include "trace/python.h"

extern PyTypeObject *traced_array_type;

static inline bool traced_array_check(PyObject *o) {
  return Py_IS_TYPE(o, traced_array_type);
}
/* The tensor that an array has become, borrowed. */
static inline PyObject *traced_array_tensor(PyObject *array) {
  assert(traced_array_check(array));
  return *(PyObject **)PyArray_DATA((PyArrayObject *)array);
}
bool traced_array_init(PyObject *module);

#endif
