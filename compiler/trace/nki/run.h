/* run: running NKI kernels, for the rest of the tracer. */
#ifndef TRACE_NKI_RUN_H
#define TRACE_NKI_RUN_H

#include "trace/program.h"
#include "trace/tracer.h"

struct nki_program;

/* Does what trace_kernel does, for a kernel that @nki.jit decorates.  has_shapes: k's parameters are known; without them
 * the kernel is only analysed (ast.h), and *out has nothing else. */
enum status nki_trace_kernel(struct trace_program *program, struct program_kernel *k, bool has_shapes, struct diags *ds,
                             struct trace_kernel **out);
/* Evaluates the record with NumPy (python/nkx/nki_numpy.py) on a list of arrays.  seed: 1 or 2 for a run with other roundings, 0 for the plain one.
 * Returns a list of arrays; NULL with an exception. */
PyObject *nki_evaluate(const struct nki_program *p, PyObject *arrays, unsigned seed);
/* True if a tensor on chip has fewer digits than a result: an error of float32's size, as the order of a sum makes one, may
 * become one of the narrower type's size. */
bool nki_magnifies_rounding(const struct nki_program *p);
/* nki_run(function, arguments by name, target, grid): runs a kernel on NumPy arrays.  grid: of nkx.nki_grid.of. */
PyObject *nki_run_now(PyObject *self, PyObject *args);
/* nki_record(function, name, arguments by name, grid): records a kernel that the traced kernel calls; arrays have the shapes of
 * its tensors.  Returns (name of the record, [(shape, dtype) of each result], [(result, operand) that are one tensor],
 * what the kernel returned, of enum nki_returned).  Equal records are one, with one name. */
PyObject *nki_record_call(PyObject *self, PyObject *args);

#endif
