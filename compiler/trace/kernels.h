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
  PyObject *grid;        /* of a launch of an NKI kernel, kernel[grid], or NULL */
  bool is_nki;           /* decorated with @nki.jit */
};
/* Returns a new Kernel object; NULL with an exception.  specs and name are None or NULL if they are not given. */
PyObject *kernel_make(PyObject *fn, PyObject *specs, PyObject *name);
PyObject *kernels_nki(PyObject *self, PyObject *fn); /* nki_kernel(function): what @nki.jit makes of a function */
bool kernels_init(PyObject *module);

#endif
