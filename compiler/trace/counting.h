/* counting: counts the rounds of the Python loops that are running.
 *
 * A source with loops is compiled from a changed syntax tree (python/nkx/rounds.py):
 *
 *     for x in xs:        ==>   for x in `nkx.each`(xs, place):
 *     while c:            ==>   for () in `nkx.once`(place):
 *                                 while `nkx.round`() and c:
 *     else: …                     else: `nkx.end`(); …
 *
 * and comprehensions like `for`.  The functions are builtins whose names no program can write.  nkx.each and nkx.once
 * return an iterator that counts.  The interpreter holds it exactly as long as the loop runs, however that ends, so the
 * iterators that are alive are the loops that are running.  A loop belongs to the frame that first asks for an element: the
 * iterator of a generator expression is made in the frame around it.
 *
 * What has an attribute nkx_runs_once is no loop of Python: a loop on the device, whose body runs once.  What has an attribute
 * nkx_is_independent promises that its rounds are.
 *
 * Sources without loops, and modules that were not loaded this way, run unchanged; their loops are not counted.
 */
#ifndef TRACE_COUNTING_H
#define TRACE_COUNTING_H

#include <stdbool.h>
#include <stdint.h>

#include "trace/python.h"

/* One running loop. */
struct counting_loop {
  PyObject *place; /* (line, column, end line, end column) of its header as in a syntax tree; borrowed */
  int round;       /* from 0; -1 before the first */
};

/* Makes the type and the builtins; false with an exception. */
bool counting_init(void);
/* True if any loop is running. */
bool counting_any(void);
/* Writes the loops that run in the frame, the outermost first, at most `max`.  Returns how many run in it. */
int counting_loops(const PyFrameObject *frame, struct counting_loop *out, int max);
/* One run of a loop: from its first element to its end. */
struct counting_run {
  uint64_t serial; /* a later run has a greater number */
  int round;
  bool is_independent; /* its rounds, of each other */
};
/* Writes the loops that run in any frame and have a serial above `after`, the outermost first, at most `max`.  Returns their
 * number, at most max. */
int counting_runs(uint64_t after, struct counting_run *out, int max);
/* The serial of the last run that began. */
uint64_t counting_serial(void);
/* Compiles a source whose loops are counted: a new reference.  NULL without an exception if the source has no loops or
 * cannot be compiled in this way; the caller then compiles it as it is. */
PyObject *counting_compile(const char *text, PyObject *filename);

#endif
