/* kernels: decorated functions. */
#ifndef TRACE_KERNELS_H
#define TRACE_KERNELS_H

#include <stdbool.h>

#include "trace/python.h"

struct kernel {
  PyObject_HEAD PyObject *fn, *name;
  PyObject *dict;        /* attributes: those of the function when it was decorated, and those users set; or NULL */
  PyObject *input_specs; /* or NULL */
  PyObject *args, *kw;   /* arguments of the last specialize or the first call with arrays, or NULL */
  PyObject *code;        /* _code, or NULL */
};
/* Returns a new Kernel object; NULL with an exception.  specs and name are None or NULL if they are not given. */
PyObject *kernel_make(PyObject *fn, PyObject *specs, PyObject *name);
bool kernels_init(PyObject *module);

#endif
