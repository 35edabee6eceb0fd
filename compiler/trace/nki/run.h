/* run: running NKI kernels, for the rest of the tracer. */
#ifndef TRACE_NKI_RUN_H
#define TRACE_NKI_RUN_H

#include "trace/program.h"

struct nki_program;

/* Does what trace_kernel does, for a kernel that @nki.jit decorates.  has_shapes: k's parameters are known; without them
 * the kernel is only analysed (ast.h), and *out has nothing else. */
enum status nki_trace_kernel(struct trace_program *program, struct program_kernel *k, bool has_shapes, struct diags *ds,
                             struct trace_kernel **out);
/* Evaluates the record with NumPy (python/nkx/nki_numpy.py) on a list of arrays.  Returns a list of arrays; NULL with an
 * exception. */
PyObject *nki_evaluate(const struct nki_program *p, PyObject *arrays);
/* nki_run(function, arguments by name, target): runs a kernel on NumPy arrays. */
PyObject *nki_run_now(PyObject *self, PyObject *args);

#endif
