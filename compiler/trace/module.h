/* module: `_nkx`, the tracer as a Python extension. */
#ifndef TRACE_MODULE_H
#define TRACE_MODULE_H

#include <stdbool.h>

#include "trace/python.h"

PyMODINIT_FUNC PyInit__nkx(void);
/* Loads NumPy's C interface if it is not loaded.  False with an exception. */
bool module_ready(void);

/* custom_call(target, code, [tensor, …], [(shape, dtype), …], [(output, operand), …], has_collectives) returns the
 * results as a list (custom.c). */
PyObject *custom_call(PyObject *self, PyObject *args);

/* trace_function, and the functions that read its result (live.c). */
extern PyMethodDef live_methods[];

#endif
