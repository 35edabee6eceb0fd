/* tracer: the running trace.
 *
 * There is one interpreter, one program and at most one running trace per process: `tracer_now` is that trace.  Python
 * objects that users can hold (tensors, loop indices) have the serial number of their trace.  An object of a trace that
 * has ended is refused, and its memory is never read.
 *
 * Functions of the tracer fail in two ways.  Those that return a Python object or an operand set a Python exception.
 * Those that return an hlo_val follow hlo/build.h: they return NULL, and the error is either a Python exception or in
 * tr->b.err.  A composed operation need not distinguish the two: op_call turns an error in tr->b.err into an exception
 * at the end.
 */
#ifndef TRACE_TRACER_H
#define TRACE_TRACER_H

#include "hlo/build.h"
#include "trace/python.h"

struct loop;
struct nki_program;
struct op_def;
struct ranges;

struct tracer {
  struct hlo_builder b;
  struct arena *a;
  struct ranges *ranges;
  struct diags *ds;
  PyFrameObject *base; /* the frame that started the trace, or NULL */
  uint64_t serial;
  const struct op_def *op; /* the operation that is running, or NULL */
  struct loop *loop;       /* the innermost loop whose body is running, or NULL */
  uint64_t n_loops;        /* number of loops begun so far */
  PyObject *arrays;        /* weak references to NumPy arrays that have become tensors (array.c) */
  PyObject *array_views;   /* weak references to views of arrays that may become tensors */
  Py_ssize_t views_limit;
  PyObject *memory_before; /* NumPy's memory handler outside of the trace */
  /* Bodies of loops that were refused.  They stay in a partial trace.  If the kernel continues, they are removed. */
  struct unfinished {
    struct hlo_computation *body;
    struct unfinished *next;
  } *unfinished;
  /* The records of the NKI kernels that were called; equal ones are one. */
  struct {
    const struct nki_program **v;
    int n, cap;
  } calls;
};
extern struct tracer *tracer_now; /* NULL: no trace runs */

/* Returns the running trace and sets the place of its next instructions to the current one.  NULL with an exception if
 * no trace runs. */
struct tracer *tracer_enter(void);

#endif
