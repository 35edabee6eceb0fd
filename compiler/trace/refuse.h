/* refuse: exceptions for refusals, with a diagnostic code and a hint. */
#ifndef TRACE_REFUSE_H
#define TRACE_REFUSE_H

#include "base/diag.h"
#include "trace/python.h"

/* Raises the exception class of `code`.  hint tells the user how to fix the problem, or is NULL.  fmt has the format of
 * PyUnicode_FromFormat.  Returns NULL, so that a caller can return it. */
void *trace_refuse(enum diag_code code, const char *hint, const char *fmt, ...);
/* The same for an axis that an array of `rank` dimensions does not have.  Raises a BadArgument that is also NumPy's
 * AxisError. */
void *trace_refuse_axis(long long axis, int rank);
/* Turns a pending TypeError, ValueError, IndexError or OverflowError that is not one of these classes into an exception
 * with the code bad-argument. */
void refuse_adopt(void);
/* Returns the code of an exception object, or -1 if it is not of one of these classes.  *hint is borrowed from it. */
int refuse_code(PyObject *exc, const char **hint);
/* stop_job(), the handler of SIGPROF: raises TimeLimit in the running Python code. */
PyObject *refuse_timeout(PyObject *self, PyObject *const *args, Py_ssize_t n);
/* It was called in this process, whatever became of the exception. */
bool refuse_was_stopped(void);
bool refuse_init(PyObject *module);

/* Returns true if the object is a stand-in for a part of a module that is not installed (python/nkx/missing.py).  It
 * then raises the exception of any use of the object, which names the module. */
bool refuse_missing(PyObject *o);

#endif
