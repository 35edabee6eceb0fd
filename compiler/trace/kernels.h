/* kernels: decorated functions. */
#ifndef TRACE_KERNELS_H
#define TRACE_KERNELS_H

#include <stdbool.h>

#include "trace/python.h"

struct kernel {
  PyObject_HEAD PyObject *fn, *name;
  PyObject *dict;        /* what users set on it, and what the function had when it was decorated; or NULL */
  PyObject *input_specs; /* or NULL */
  PyObject *args, *kw;   /* of the first specialize or call with arrays, or NULL */
  PyObject *code;        /* _code, or NULL */
};
/* A Kernel object; specs and name are None or NULL when they are not given.  NULL with an exception. */
PyObject *kernel_make(PyObject *fn, PyObject *specs, PyObject *name);
bool kernels_init(PyObject *module);

#endif
