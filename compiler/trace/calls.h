/* calls: calls with arrays, whose shapes a kernel is compiled for.
 *
 * A call of a Kernel object notes its own arguments (kernels.c).  The calls of plain functions are found with Python's profile
 * function while the source is executed:
 *
 *     def double(x):              double is a kernel for float32[128, 512], and helpers that it
 *         return scale(x, 2)      calls are not
 *     double(np.zeros((128, 512), np.float32))
 */
#ifndef TRACE_CALLS_H
#define TRACE_CALLS_H

#include <stdbool.h>

#include "base/arena.h"
#include "trace/python.h"

struct trace_program;

/* Arrays in tuples that are nested deeper are not seen. */
enum { CALL_NESTING_MAX = 16 };

/* True if an argument is an array, or a tuple that holds one. */
bool call_has_array(PyObject *args, PyObject *kw);
/* Returns a list of (path, array) of an argument: of itself, with the path (), or of those that a tuple holds, with their numbers in it and
 * in the tuples that it holds.  NULL with an exception. */
PyObject *call_arrays(PyObject *o);
/* Returns the name of an array in the argument of that name, in the arena: x, x_0, x_1_0. */
const char *call_array_name(struct arena *a, const char *name, PyObject *path);
/* Returns a copy of a tuple, named or not, with value at that place; value itself if the path is ().  A new reference, NULL with an
 * exception. */
PyObject *call_with(PyObject *o, PyObject *path, PyObject *value);
/* Returns the object, or a copy if it is an array, because the function may write into its arguments.  Tuples are copied in
 * depth.  NULL with an exception. */
PyObject *call_copy(PyObject *o);
/* Returns a dictionary with copies of the values; NULL with an exception. */
PyObject *call_copy_named(PyObject *kw);

/* Between these two, each plain function of the main file is noted with the first call that has arrays and returns some,
 * unless a function that was called with arrays makes it.  The watch ends itself where a decorated function, other than an NKI kernel, is
 * the kernel, as it costs half a microsecond a call. */
void calls_watch(struct trace_program *program);
void calls_unwatch(void);
/* Between these two, calls are not watched: an NKI kernel runs, in which there are many and none that is noted.  calls_pause says what
 * calls_resume needs. */
bool calls_pause(void);
void calls_resume(bool was_watching);
/* Returns the noted call of a function, (args, kw), borrowed; NULL if there is none. */
PyObject *calls_of(const struct trace_program *program, PyObject *fn);

#endif
