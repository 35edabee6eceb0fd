/* bytecode: everything the tracer knows of CPython 3.11's code objects and instructions.
 *
 * The names of instructions come from <opcode.h>; another version of Python does not compile.
 */
#ifndef TRACE_BYTECODE_H
#define TRACE_BYTECODE_H

#include <stdbool.h>

#include "trace/python.h"

/* The code of the function that fn is or wraps (functools.wraps, bound methods): a new reference, or NULL if there is
 * none.  A pending exception stays as it is. */
PyCodeObject *bytecode_of(PyObject *fn);
/* True if the code was compiled from the file of this name (a str). */
bool bytecode_is_from(PyCodeObject *code, PyObject *filename);
/* The line of the function's first decorator, or of its def or lambda. */
int bytecode_first_line(PyCodeObject *code);
/* "outer.<locals>.f" and "f", borrowed from the code; NULL if they are not text. */
const char *bytecode_qualified_name(PyCodeObject *code);
const char *bytecode_name(PyCodeObject *code);

/* The expression that an instruction was compiled from: lines from 1; columns in bytes of UTF-8 from 0. */
struct bytecode_place {
  int line, col, end_line, end_col;
};
/* The place of the instruction at byte offset lasti; the function's first line where CPython does not know it. */
struct bytecode_place bytecode_place(PyCodeObject *code, int lasti);
/* True if the instruction begins or continues a `for` over some object. */
bool bytecode_is_iteration(PyCodeObject *code, int lasti);
/* The offset of the function's only return instruction; -1 if there are several, or none. */
int bytecode_only_return(PyCodeObject *code);

#endif
