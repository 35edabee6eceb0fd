/* array: NumPy arrays that become tensors.
 *
 * A kernel may fill an array that NumPy made:
 *
 *     out = np.zeros((256, 64))
 *     out[0:128] = np.exp(x[0:128])
 *
 * At the first write of a traced value, `out` becomes a tensor that begins with the values that it had.  The object itself
 * changes: its class becomes TracedArray, so that every name of it, a list that holds it and NumPy's functions see a traced
 * array.  A view of an array (out[0], out.T) makes the array that it is a view of a tensor, and itself a view of that.
 *
 * While a trace runs, x[key], x[key] = value and x.name of NumPy's arrays come here first (array_trace_begin).  All views
 * that are made are remembered, so that they become tensors together with their array.  It serves tables as well: T[i] with
 * a traced i makes a constant of T.
 *
 * A TracedArray is an array without axes that holds one object, the tensor; its memory waits in another array until the
 * trace ends, and is put back then.  C code that reads it finds an object where it expects numbers, and never numbers that
 * are out of date.
 */
#ifndef TRACE_ARRAY_H
#define TRACE_ARRAY_H

#include "trace/tensor.h"

/* Around every trace. */
bool array_trace_begin(struct tracer *tr); /* false with an exception */
void array_trace_end(struct tracer *tr);
/* Makes a tensor of an array, which is borrowed from it; NULL with an exception. */
PyObject *array_become(struct tracer *tr, PyObject *array);
/* The same of an array that gets the value v, of its shape and narrowed dtype, in all its elements; false with an
 * exception. */
bool array_become_value(struct tracer *tr, PyObject *array, hlo_val v);
/* The tensor that an array has become, borrowed; NULL if it is none, with an exception if it should have become one. */
PyObject *array_tensor(struct tracer *tr, PyObject *array);
/* The object with tensors in place of the traced arrays in it, also in lists and tuples: a new reference. */
PyObject *array_unwrap(struct tracer *tr, PyObject *o);
/* Arrays that are made from here on are known to be made in the body of this loop; NULL: outside of all loops.  Returns
 * what to pass to array_leave_loop. */
PyObject *array_enter_loop(struct loop *l);
void array_leave_loop(PyObject *before);
bool array_init(PyObject *module);

#endif
