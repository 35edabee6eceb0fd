/* array: NumPy arrays that become tensors.
 *
 * A kernel may fill an array that NumPy made:
 *
 *     out = np.zeros((256, 64))
 *     out[0:128] = np.exp(x[0:128])
 *
 * At the first write of a traced value, `out` becomes a tensor whose initial value is the array's elements.  The object
 * itself changes: its class becomes TracedArray, so that all variables and lists that refer to it, and NumPy's
 * functions, see a traced array.  If the array is a view (out[0], out.T), the array that owns its memory becomes a
 * tensor, and the view becomes a view of that tensor.
 *
 * While a trace runs, the functions of this file replace x[key], x[key] = value and x.name of NumPy's arrays
 * (array_trace_begin).  They note all views that are made, so that these become tensors together with their array.
 * They also support tables: T[i] with a traced i turns T into a constant.
 *
 * A TracedArray is an array without axes that holds one object, the tensor.  Another array keeps its original contents
 * until the trace ends; then they are restored.  C code that reads a TracedArray finds an object instead of numbers, so
 * it never reads outdated numbers.
 */
#ifndef TRACE_ARRAY_H
#define TRACE_ARRAY_H

#include "trace/tensor.h"

/* These are called before and after every trace. */
bool array_trace_begin(struct tracer *tr); /* false with an exception */
void array_trace_end(struct tracer *tr);
/* Turns an array into a tensor and returns the tensor, borrowed; NULL with an exception. */
PyObject *array_become(struct tracer *tr, PyObject *array);
/* Turns an array into a tensor with the value v, which has the array's shape and its dtype, narrowed.  False with an
 * exception. */
bool array_become_value(struct tracer *tr, PyObject *array, hlo_val v);
/* Returns the tensor that an array has become, borrowed; NULL if it is not a tensor, and with an exception if it should
 * have become one but could not. */
PyObject *array_tensor(struct tracer *tr, PyObject *array);
/* Returns the object with tensors in place of traced arrays, also inside lists and tuples: a new reference. */
PyObject *array_unwrap(struct tracer *tr, PyObject *o);
/* Marks arrays that are made from now on as made in the body of this loop, or outside of all loops if l is NULL.
 * Returns the argument for array_leave_loop. */
PyObject *array_enter_loop(struct loop *l);
void array_leave_loop(PyObject *before);

#endif
