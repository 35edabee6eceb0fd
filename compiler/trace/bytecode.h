/* bytecode: the part of the tracer that depends on CPython 3.11's code objects and instructions.
 *
 * The names of instructions come from <opcode.h>.  The file does not compile with another version of Python.
 */
#ifndef TRACE_BYTECODE_H
#define TRACE_BYTECODE_H

#include <stdbool.h>

#include "trace/python.h"

/* Returns the code of the function that fn is or wraps (functools.wraps, bound methods): a new reference, or NULL if
 * there is none.  A pending exception is preserved. */
PyCodeObject *bytecode_of(PyObject *fn);
/* True if the code was compiled from the file of this name (a str). */
bool bytecode_is_from(PyCodeObject *code, PyObject *filename);
/* Returns the name of the file that the code was compiled from, a str, borrowed. */
PyObject *bytecode_filename(PyCodeObject *code);
/* Returns the line of the function's first decorator, or of its def or lambda. */
int bytecode_first_line(PyCodeObject *code);
/* Returns the line of the first instruction of the function's body that is not on the first line; 0 if there is none
 * among the first instructions. */
int bytecode_body_line(PyCodeObject *code);
/* These return "outer.<locals>.f" and "f", borrowed from the code; NULL if the name is not valid UTF-8. */
const char *bytecode_qualified_name(PyCodeObject *code);
const char *bytecode_name(PyCodeObject *code);

/* The range of the expression that an instruction was compiled from.  Lines count from 1; columns are bytes of UTF-8
 * and count from 0. */
struct bytecode_place {
  int line, col, end_line, end_col;
};
/* Returns the place of the instruction at byte offset lasti, or the function's first line if CPython has no place. */
struct bytecode_place bytecode_place(PyCodeObject *code, int lasti);
/* True if the instruction begins or continues a `for` over some object. */
bool bytecode_is_iteration(PyCodeObject *code, int lasti);
/* Returns the offset of the function's only return instruction; -1 if there are several, or none. */
int bytecode_only_return(PyCodeObject *code);

/* True if the instruction reads an attribute that is written after a dot. */
bool bytecode_reads_attribute(PyCodeObject *code, int lasti);
/* Returns the name of the variable that the instruction's result is assigned to directly, borrowed from the code; NULL if
 * it is used otherwise. */
const char *bytecode_stored_name(PyCodeObject *code, int lasti);

#endif
