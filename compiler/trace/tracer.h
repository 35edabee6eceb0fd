/* tracer: the trace that runs.
 *
 * There is one interpreter, one program and at most one running trace per process: `tracer_now` is that trace.  Python
 * objects that users can hold (tensors, loop indices) name their trace by its serial number; one of a trace that has
 * ended is refused, and its memory is never read.
 *
 * Functions of the tracer fail in two ways.  Those that return a Python object or an operand set a Python exception.
 * Those that return an hlo_val follow hlo/build.h: NULL, and the reason is either a Python exception or in tr->b.err.  A
 * composed operation need not tell them apart: op_call turns what is left in tr->b.err into an exception at its end.
 */
#ifndef TRACE_TRACER_H
#define TRACE_TRACER_H

#include "hlo/build.h"
#include "trace/python.h"

struct loop;
struct ranges;

struct tracer {
  struct hlo_builder b;
  struct arena *a;
  struct ranges *ranges;
  struct diags *ds;
  PyFrameObject *base; /* the frame that started the trace, or NULL */
  uint64_t serial;
  struct loop *loop;     /* the innermost loop whose body runs, or NULL */
  uint64_t n_loops;      /* begun so far */
  PyObject *arrays;      /* weak references to NumPy arrays that have become tensors (array.c) */
  PyObject *array_views; /* and to views of arrays that may become tensors */
  Py_ssize_t views_limit;
  PyObject *memory_before; /* NumPy's memory handler outside of the trace */
  /* Bodies of loops that were refused.  They stay in a partial trace; a kernel that goes on without them drops them. */
  struct unfinished {
    struct hlo_computation *body;
    struct unfinished *next;
  } *unfinished;
};
extern struct tracer *tracer_now; /* NULL: no trace runs */

/* The running trace, whose next instructions get the place that runs now; NULL with an exception if no trace runs. */
struct tracer *tracer_enter(void);

#endif
