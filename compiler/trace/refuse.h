/* refuse: exceptions that say no, with a diagnostic code and a hint. */
#ifndef TRACE_REFUSE_H
#define TRACE_REFUSE_H

#include "base/diag.h"
#include "trace/python.h"

/* Raises the exception class of `code`.  hint: what to do about it, or NULL.  fmt is PyUnicode_FromFormat's.  Returns
 * NULL, so that a caller can return it. */
void *trace_refuse(enum diag_code code, const char *hint, const char *fmt, ...);
/* The same for an axis that an array of `rank` dimensions does not have: a BadArgument that is NumPy's AxisError too. */
void *trace_refuse_axis(long long axis, int rank);
/* Gives a pending TypeError, ValueError, IndexError or OverflowError that is not ours the code bad-argument. */
void refuse_adopt(void);
/* The code of an exception object, or -1 if it is not one of ours; *hint is borrowed from it. */
int refuse_code(PyObject *exc, const char **hint);
/* stop_job(), the handler of SIGPROF: raises TimeLimit in the Python code that runs. */
PyObject *refuse_timeout(PyObject *self, PyObject *const *args, Py_ssize_t n);
bool refuse_init(PyObject *module);

/* If the object stands in for something of a module that is not installed (python/nkx/missing.py): raises what a use of it
 * raises, which names the module, and is true. */
bool refuse_missing(PyObject *o);

#endif
