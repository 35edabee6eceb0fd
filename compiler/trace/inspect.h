/* inspect: returns traces as Python objects: dicts, lists and texts.  NULL means an exception. */
#ifndef TRACE_INSPECT_H
#define TRACE_INSPECT_H

#include <stdbool.h>

#include "trace/python.h"
#include "trace/trace.h"

PyObject *inspect_tensors(const struct trace_tensor *v, int n);
/* [(output_index, param_index, param_name, is_user_returned), …] */
PyObject *inspect_aliases(const struct hlo_module *m);
PyObject *inspect_kernel(struct trace_kernel *t);
/* Returns the HLO as text, or as the bytes of a HloModuleProto. */
PyObject *inspect_module(const struct hlo_module *m, bool as_proto);
/* trace_source(source, filename=…, …): see inspect.c. */
PyObject *inspect_trace_source(PyObject *self, PyObject *args, PyObject *kw);

#endif
