/* number: the operators of tensors and loop indices.  Conversions that need their value are refused. */
#ifndef TRACE_NUMBER_H
#define TRACE_NUMBER_H

#include <stdbool.h>

#include "trace/python.h"

/* True for an object that an operator accepts.  For any other object the operator returns NotImplemented, so that
 * Python calls that object's own operator. */
bool number_is_operand(PyObject *o);
/* __array__(…): always refused. */
PyObject *number_array(PyObject *self, PyObject *args, PyObject *kw);
/* Refuses a conversion that needs the value of a tensor or loop index.  `as` is text such as "converted to a Python
 * int". */
void *number_refuse_value(PyObject *self, const char *as);

#define NUMBER_BINARY(DO) \
  DO(add) \
  DO(subtract) \
  DO(multiply) \
  DO(true_divide) DO(floor_divide) DO(remainder) DO(matrix_multiply) DO(and) DO(or) DO(xor) DO(lshift) DO(rshift)
#define NUMBER_UNARY(DO) DO(negative) DO(positive) DO(absolute) DO(invert)

#define NUMBER_DECLARE_BINARY(name) \
  PyObject *number_##name(PyObject *x, PyObject *y); \
  PyObject *number_inplace_##name(PyObject *x, PyObject *y);
#define NUMBER_DECLARE_UNARY(name) PyObject *number_##name(PyObject *x);
NUMBER_BINARY(NUMBER_DECLARE_BINARY)
NUMBER_UNARY(NUMBER_DECLARE_UNARY)
PyObject *number_power(PyObject *x, PyObject *y, PyObject *modulus);
PyObject *number_inplace_power(PyObject *x, PyObject *y, PyObject *modulus);
PyObject *number_divmod(PyObject *x, PyObject *y);
PyObject *number_compare(PyObject *x, PyObject *y, int comparison);
int number_bool(PyObject *self);
PyObject *number_int(PyObject *self);
PyObject *number_float(PyObject *self);
PyObject *number_index(PyObject *self);

/* Entries for the slots of a PyType_Spec. */
#define NUMBER_BINARY_SLOT(name) {Py_nb_##name, number_##name},
#define NUMBER_INPLACE_SLOT(name) {Py_nb_inplace_##name, number_inplace_##name},
#define NUMBER_SLOTS \
  NUMBER_BINARY(NUMBER_BINARY_SLOT) \
  NUMBER_UNARY(NUMBER_BINARY_SLOT){Py_nb_power, number_power}, {Py_nb_divmod, number_divmod}, \
      {Py_tp_richcompare, number_compare}, {Py_nb_bool, number_bool}, {Py_nb_int, number_int}, \
      {Py_nb_float, number_float}, { \
    Py_nb_index, number_index \
  }
#define NUMBER_INPLACE_SLOTS \
  NUMBER_BINARY(NUMBER_INPLACE_SLOT) { \
    Py_nb_inplace_power, number_inplace_power \
  }

#endif
