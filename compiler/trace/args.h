/* args: reads axis, shape and integer arguments as NumPy does.  A function that returns false has set an exception. */
#ifndef TRACE_ARGS_H
#define TRACE_ARGS_H

#include "trace/tracer.h"

bool args_int(PyObject *o, const char *what, int64_t *out);
/* Reads one axis.  A negative number counts from the end. */
bool args_axis(PyObject *axis, int rank, int *out);
/* Reads None (all axes), an axis, or a tuple or list of different axes.  mask[i] is true if axis i is among them. */
bool args_axes(PyObject *axis, int rank, bool mask[HLO_RANK_MAX]);
/* Reads the same into a list, in the given order.  None is refused. */
bool args_axis_list(PyObject *o, int rank, int *n, int64_t axes[HLO_RANK_MAX]);
/* Reads an int, or a sequence of at most HLO_RANK_MAX ints. */
bool args_dims(PyObject *o, const char *what, int *n, int64_t dims[HLO_RANK_MAX]);
bool args_flag(PyObject *o, bool *out); /* reads a truth value; NULL leaves *out unchanged */
/* Refuses a value other than None (or, for where=, True) of a keyword that tracing does not support. */
bool args_only_none(PyObject *o, const char *func, const char *keyword);
/* Refuses a result of more than HLO_RANK_MAX dimensions. */
bool args_rank(int rank);

/* Writes the shape to out as "(2, 3)", and returns out.  DIMS_TEXT_MAX is sufficient for every shape in NumPy. */
enum { DIMS_TEXT_MAX = NPY_MAXDIMS * 22 + 8 };
const char *dims_text(int rank, const int64_t *dims, char out[DIMS_TEXT_MAX]);

#endif
