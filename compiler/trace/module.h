/* module: `_nkx`, the tracer as a Python extension. */
#ifndef TRACE_MODULE_H
#define TRACE_MODULE_H

#include <stdbool.h>

#include "trace/python.h"

PyMODINIT_FUNC PyInit__nkx(void);
/* NumPy's C interface, loaded once; false with an exception. */
bool module_ready(void);

/* custom_call(target, code, [tensor, …], [(shape, dtype), …], [(output, operand), …], has_collectives): the results as a
 * list (custom.c). */
PyObject *custom_call(PyObject *self, PyObject *args);

/* trace_function, and the functions of what it returns (live.c). */
extern PyMethodDef live_methods[];

#endif
