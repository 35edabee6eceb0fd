/* kernels: decorated functions. */
#ifndef TRACE_KERNELS_H
#define TRACE_KERNELS_H

#include <stdbool.h>

#include "trace/python.h"

/* The generations of NKI, by the package that a kernel imports: neuronxcc.nki, or nki. */
enum { NKI_BETA_1 = 1, NKI_GA };

struct kernel {
  PyObject_HEAD PyObject *fn, *name;
  PyObject *dict;        /* attributes: those of the function when it was decorated, and those users set; or NULL */
  PyObject *input_specs; /* or NULL */
  PyObject *args, *kw;   /* arguments of the last specialize or the first call with arrays, or NULL */
  PyObject *code;        /* _code, or NULL */
  PyObject *grid;        /* of a launch of an NKI kernel, kernel[grid], or NULL */
  struct kernel *of;     /* of a launch: the kernel */
  PyObject *launched;    /* the grid of the call that args are from, or that its name has (k = k[2]), or NULL */
  int nki;               /* decorated with @nki.jit: of NKI_BETA_1 or NKI_GA; else 0 */
};
extern PyTypeObject *kernel_type;
/* Returns a new Kernel object; NULL with an exception.  specs and name are None or NULL if they are not given. */
PyObject *kernel_make(PyObject *fn, PyObject *specs, PyObject *name);
PyObject *kernels_nki(PyObject *self,
                      PyObject *args); /* nki_kernel(function, generation): what @nki.jit makes of a function */
bool kernels_init(PyObject *module);

#endif
