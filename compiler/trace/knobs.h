/* knobs: tiling and placement that the kernel requests. */
#ifndef TRACE_KNOBS_H
#define TRACE_KNOBS_H

#include <stdbool.h>

#include "trace/python.h"

PyObject *knob_call(PyObject *self, PyObject *args, PyObject *kw);     /* nkigen's: builder or function form */
PyObject *knob_function(PyObject *self, PyObject *args, PyObject *kw); /* nkipy's: returns the tensor */
PyObject *knob_fuse(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *names);
bool knobs_init(PyObject *module);

#endif
