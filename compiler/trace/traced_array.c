/* traced_array: the class TracedArray, which forwards all operations to the array's tensor. */
#include "trace/traced_array.h"

#include <assert.h>

#include "trace/number.h"
#include "trace/ops.h"
#include "trace/tensor.h"

PyTypeObject *traced_array_type;

static PyObject *plain(PyObject *o) {
  return traced_array_check(o) ? traced_array_tensor(o) : o;
}

#define FORWARD_BINARY(name) \
  static PyObject *do_##name(PyObject *x, PyObject *y) { \
    return number_##name(plain(x), plain(y)); \
  } \
  static PyObject *do_inplace_##name(PyObject *x, PyObject *y) { \
    PyObject *r = number_inplace_##name(plain(x), plain(y)); \
    if (r && r == plain(x)) \
      Py_SETREF(r, Py_NewRef(x)); \
    return r; \
  }
#define FORWARD_UNARY(name) \
  static PyObject *do_##name(PyObject *x) { \
    return number_##name(plain(x)); \
  }
NUMBER_BINARY(FORWARD_BINARY)
NUMBER_UNARY(FORWARD_UNARY)
FORWARD_UNARY(int)
FORWARD_UNARY(float)
FORWARD_UNARY(index)

static PyObject *do_power(PyObject *x, PyObject *y, PyObject *modulus) {
  return number_power(plain(x), plain(y), modulus);
}
static PyObject *do_inplace_power(PyObject *x, PyObject *y, PyObject *modulus) {
  PyObject *r = number_inplace_power(plain(x), plain(y), modulus);
  if (r && r == plain(x))
    Py_SETREF(r, Py_NewRef(x));
  return r;
}
static PyObject *do_divmod(PyObject *x, PyObject *y) {
  return number_divmod(plain(x), plain(y));
}
static PyObject *do_compare(PyObject *x, PyObject *y, int comparison) {
  return number_compare(plain(x), plain(y), comparison);
}
static int do_bool(PyObject *x) {
  return number_bool(plain(x));
}
static PyObject *do_get(PyObject *x, PyObject *key) {
  return tensor_get_item(plain(x), key);
}
static int do_set(PyObject *x, PyObject *key, PyObject *value) {
  return tensor_set_item(plain(x), key, value);
}
static Py_ssize_t do_length(PyObject *x) {
  return PyObject_Size(plain(x));
}
static PyObject *do_item(PyObject *x, Py_ssize_t i) {
  return PySequence_GetItem(plain(x), i);
}
static int do_contains(PyObject *x, PyObject *y) {
  (void)y;
  number_refuse_value(plain(x), "searched with `in`");
  return -1;
}
static PyObject *do_iter(PyObject *x) {
  return PyObject_GetIter(plain(x));
}
static PyObject *do_repr(PyObject *x) {
  return PyObject_Repr(plain(x));
}

/* Names that begin with an underscore are read by Python and NumPy to examine the class, so they are not forwarded. */
static PyObject *do_getattr(PyObject *x, PyObject *name) {
  return PyUnicode_Check(name) && PyUnicode_READ_CHAR(name, 0) != '_' ? PyObject_GetAttr(plain(x), name)
                                                                      : PyObject_GenericGetAttr(x, name);
}
static int do_setattr(PyObject *x, PyObject *name, PyObject *value) {
  return PyObject_SetAttr(plain(x), name, value);
}
static PyObject *do_copy(PyObject *x, PyObject *args) {
  (void)args;
  return PyObject_CallMethod(plain(x), "copy", NULL);
}
static PyObject *do_format(PyObject *x, PyObject *spec) {
  return PyObject_Format(plain(x), spec);
}

bool traced_array_init(PyObject *module) {
  static PyMethodDef methods[] = {{"__array_ufunc__", PYFUNC(dispatch_ufunc), METH_VARARGS | METH_KEYWORDS, NULL},
                                  {"__array_function__", PYFUNC(dispatch_function), METH_VARARGS | METH_KEYWORDS, NULL},
                                  {"__array__", PYFUNC(number_array), METH_VARARGS | METH_KEYWORDS, NULL},
                                  {"__copy__", do_copy, METH_VARARGS, NULL},
                                  {"__deepcopy__", do_copy, METH_VARARGS, NULL},
                                  {"__format__", do_format, METH_O, NULL},
                                  {NULL, NULL, 0, NULL}};
#define SLOT_BINARY(name) {Py_nb_##name, do_##name}, {Py_nb_inplace_##name, do_inplace_##name},
#define SLOT_UNARY(name) {Py_nb_##name, do_##name},
  static PyType_Slot slots[] = {NUMBER_BINARY(SLOT_BINARY) NUMBER_UNARY(SLOT_UNARY){Py_nb_power, do_power},
                                {Py_nb_inplace_power, do_inplace_power},
                                {Py_nb_divmod, do_divmod},
                                {Py_nb_bool, do_bool},
                                {Py_nb_int, do_int},
                                {Py_nb_float, do_float},
                                {Py_nb_index, do_index},
                                {Py_tp_richcompare, do_compare},
                                {Py_tp_hash, PyObject_HashNotImplemented},
                                {Py_mp_subscript, do_get},
                                {Py_mp_ass_subscript, do_set},
                                {Py_mp_length, do_length},
                                {Py_sq_length, do_length},
                                {Py_sq_item, do_item},
                                {Py_sq_contains, do_contains},
                                {Py_tp_iter, do_iter},
                                {Py_tp_repr, do_repr},
                                {Py_tp_str, do_repr},
                                {Py_tp_getattro, do_getattr},
                                {Py_tp_setattro, do_setattr},
                                {Py_tp_methods, methods},
                                {0, NULL}};
  static PyType_Spec spec = {
      .name = "nkx.TracedArray", .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, .slots = slots};
  PyObject *bases = PyTuple_Pack(1, (PyObject *)&PyArray_Type);
  traced_array_type = bases ? (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, bases) : NULL;
  Py_XDECREF(bases);
  assert(!traced_array_type || traced_array_type->tp_basicsize == PyArray_Type.tp_basicsize);
  return traced_array_type && PyModule_AddObjectRef(module, "TracedArray", (PyObject *)traced_array_type) == 0;
}
