/* args: axis, shape and integer arguments, read as NumPy reads them.  False means an exception. */
#ifndef TRACE_ARGS_H
#define TRACE_ARGS_H

#include "trace/tracer.h"

bool args_int(PyObject *o, const char *what, int64_t *out);
/* One axis; a negative one counts from the end. */
bool args_axis(PyObject *axis, int rank, int *out);
/* None (all axes), an axis, or a tuple or list of different axes: mask[i] says whether axis i is among them. */
bool args_axes(PyObject *axis, int rank, bool mask[HLO_RANK_MAX]);
/* The same as a list, in the order given; None is refused. */
bool args_axis_list(PyObject *o, int rank, int *n, int64_t axes[HLO_RANK_MAX]);
/* An int, or a sequence of at most HLO_RANK_MAX ints. */
bool args_dims(PyObject *o, const char *what, int *n, int64_t dims[HLO_RANK_MAX]);
bool args_flag(PyObject *o, bool *out); /* NULL leaves *out as it is */
/* Refuses a value other than None (or, for where=, True) of a keyword that tracing cannot honour. */
bool args_only_none(PyObject *o, const char *func, const char *keyword);
/* Refuses a result of more than HLO_RANK_MAX dimensions. */
bool args_rank(int rank);

/* "(2, 3)" in out, which is returned.  DIMS_TEXT_MAX is enough for every shape of NumPy's. */
enum { DIMS_TEXT_MAX = NPY_MAXDIMS * 22 + 8 };
const char *dims_text(int rank, const int64_t *dims, char out[DIMS_TEXT_MAX]);

#endif
