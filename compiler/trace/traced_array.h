/* traced_array: the class of NumPy arrays that have become tensors (see array.h).
 *
 * It is a subclass of ndarray, so that isinstance is true.  It has the same layout, so the class of an existing array
 * can be replaced by it.
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
/* Returns the tensor that an array has become, borrowed. */
static inline PyObject *traced_array_tensor(PyObject *array) {
  assert(traced_array_check(array));
  return *(PyObject **)PyArray_DATA((PyArrayObject *)array);
}
bool traced_array_init(PyObject *module);

#endif
