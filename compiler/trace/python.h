/* python: includes CPython's and NumPy's headers for all files of the tracer.
 *
 * NumPy's C interface is a table of pointers.  module.c, which defines TRACE_IMPORT_ARRAY, owns it, and all other files
 * share it.  Only compiler/trace, compiler/package and explorer/worker include Python.h.
 */
#ifndef TRACE_PYTHON_H
#define TRACE_PYTHON_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#define NPY_NO_DEPRECATED_API NPY_2_0_API_VERSION
#define NPY_TARGET_VERSION NPY_2_0_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL nkx_array_api
#ifndef TRACE_IMPORT_ARRAY
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>

#define PYFUNC(f) ((PyCFunction)(void (*)(void))(f))

#endif
