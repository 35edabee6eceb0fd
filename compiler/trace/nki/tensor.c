/* tensor: the Python type of the tensors of an NKI kernel, and of views of them.
 *
 * tensor_index.c indexes them, and tensor_methods.c has their methods.
 */
#include <string.h>

#include "trace/bytecode.h"
#include "trace/nki/nki.h"
#include "trace/refuse.h"

PyTypeObject *nki_tensor_type;

static struct nki_tensor_object *self_of(PyObject *o) {
  return (struct nki_tensor_object *)o;
}

PyObject *nki_wrap(struct nki_recorder *r, const struct nki_view *v) {
  struct nki_tensor_object *o = PyObject_New(struct nki_tensor_object, nki_tensor_type);
  if (o) {
    o->view = *v;
    o->serial = r->serial;
  }
  return (PyObject *)o;
}

struct nki_view *nki_view_of(struct nki_recorder *r, PyObject *o, const char *what) {
  if (!nki_is_tensor(o)) {
    if (!refuse_missing(o))
      trace_refuse(DG_NKI_CALL, NULL, "%s must be a tensor, not %s", what, Py_TYPE(o)->tp_name);
    return NULL;
  }
  if (self_of(o)->serial != r->serial)
    return trace_refuse(DG_NKI_CALL, "make it inside of the kernel, or pass it as an argument",
                        "%s is a tensor of another kernel", what);
  return &self_of(o)->view;
}

struct nki_view *nki_plain(struct nki_view *v, const char *what) {
  if (!v->columns)
    return v;
  return trace_refuse(DG_NKI_VIEW,
                      "index or reshape the tensor before .indirect, or copy the columns with nisa.tensor_copy",
                      "%s is columns that numbers select, which are an operand of nki.isa only",
                      strcmp(what, "self") != 0 ? what : "the view");
}

struct nki_view *nki_asked_view(PyObject *self, struct nki_recorder **r) {
  *r = nki_enter();
  return *r ? nki_view_of(*r, self, "self") : NULL;
}

struct nki_view *nki_own_view(PyObject *self, struct nki_recorder **r) {
  struct nki_view *v = nki_asked_view(self, r);
  return v ? nki_plain(v, "self") : NULL;
}

/* ---- attributes --------------------------------------------------------------------------------------------------- */

/* Whether the user's code asks for the attribute with a dot. */
static bool reads_attribute(const struct nki_recorder *r) {
  PyFrameObject *f = PyThreadState_GetFrame(PyThreadState_Get());
  PyCodeObject *code = f ? PyFrame_GetCode(f) : NULL;
  const bool is = code && ranges_has_code(r->ranges, code) && bytecode_reads_attribute(code, PyFrame_GetLasti(f));
  Py_XDECREF(code);
  Py_XDECREF(f);
  return is;
}

/* t.name where a tensor has no such attribute: refused, and unknown.  hasattr and getattr get Python's answer. */
static PyObject *tensor_attribute(PyObject *self, PyObject *name) {
  PyObject *o = PyObject_GenericGetAttr(self, name);
  if (o || !nki_now || !nki_is_shown(nki_now) || !PyErr_ExceptionMatches(PyExc_AttributeError) ||
      !reads_attribute(nki_now))
    return o;
  PyErr_Clear();
  PyObject *module = PyImport_ImportModule("nkx.nki_unknown");
  PyObject *r = module ? PyObject_CallMethod(module, "no_attribute", "O", name) : NULL;
  Py_XDECREF(module);
  return nki_or_unknown(r);
}

static PyObject *int_tuple(const struct nki_view *v, bool strides) {
  PyObject *t = PyTuple_New(v->rank);
  for (int i = 0; t && i < v->rank; i++) {
    int64_t x = strides ? v->dim[i].stride : v->dim[i].size;
    if (strides && i == 0 && nki_is_on_chip(v))
      x *= nki_tensor_extent(v->tensor);
    PyTuple_SET_ITEM(t, i, PyLong_FromLongLong(x));
  }
  return t;
}

enum member { SHAPE, STRIDES, OFFSET, DTYPE, BUFFER, NDIM, SIZE, NAME };

/* A type that NumPy does not have, as nl has it. */
static PyObject *named_type(const char *name) {
  PyObject *module = PyImport_ImportModule("nkx.nki_names");
  PyObject *type = module ? PyObject_CallMethod(module, "named_type", "s", name) : NULL;
  Py_XDECREF(module);
  return type;
}

static PyObject *tensor_get(PyObject *self, void *which) {
  struct nki_recorder *r;
  const enum member m = (enum member)(intptr_t)which;
  const struct nki_view *v = m == STRIDES || m == OFFSET ? nki_own_view(self, &r) : nki_asked_view(self, &r);
  if (!v)
    return NULL;
  switch (m) {
  case SHAPE:
    return int_tuple(v, false);
  case STRIDES:
    return int_tuple(v, true);
  case OFFSET:
    return PyLong_FromLongLong(v->offset + (nki_is_on_chip(v) ? v->partition * nki_tensor_extent(v->tensor) : 0));
  case DTYPE:
    if (v->tensor->packed)
      return named_type(nki_type_name(v->tensor));
    return nki_dtype_object(v->tensor->dtype);
  case BUFFER:
    return PyUnicode_FromString(nisa_space_name(v->tensor->space));
  case NDIM:
    return PyLong_FromLong(v->rank);
  case SIZE:
    return PyLong_FromLongLong(nki_elements(v));
  case NAME:
    return PyUnicode_FromString(v->tensor->name);
  }
  return NULL;
}

static PyObject *tensor_repr(PyObject *self) {
  const struct nki_view *v = &self_of(self)->view;
  if (!nki_now || self_of(self)->serial != nki_now->serial)
    return PyUnicode_FromString("<a tensor of another NKI kernel>");
  PyObject *shape = int_tuple(v, false);
  PyObject *s = shape ? PyUnicode_FromFormat("%s: %s%R in %s", v->tensor->name, dtype_numpy_name(v->tensor->dtype),
                                             shape, nisa_space_name(v->tensor->space))
                      : NULL;
  Py_XDECREF(shape);
  return s;
}

static Py_ssize_t tensor_length(PyObject *self) {
  return (Py_ssize_t)self_of(self)->view.dim[0].size;
}

/* ---- what tensors do not have ------------------------------------------------------------------------------------ */

/* When the kernel runs on after that, the result is the tensor. */
static PyObject *refuse_operator(PyObject *x, PyObject *y) {
  trace_refuse(DG_NKI_TENSOR_OPERATOR, "use nl.add(x, y), nl.multiply(x, y), …, or the calls of nki.isa",
               "tensors of NKI have no operators");
  return nki_report() ? Py_NewRef(nki_is_tensor(x) ? x : y) : NULL;
}
static PyObject *refuse_unary(PyObject *x) {
  return refuse_operator(x, NULL);
}
static PyObject *refuse_power(PyObject *x, PyObject *y, PyObject *modulus) {
  (void)modulus;
  return refuse_operator(x, y);
}
static PyObject *compare(PyObject *x, PyObject *y, int how) {
  if (how == Py_EQ || how == Py_NE) /* with None and other objects: identity, as `x in list` needs it */
    if (!nki_is_tensor(y) || !nki_is_tensor(x) || x == y)
      return PyBool_FromLong((x == y) == (how == Py_EQ));
  return refuse_operator(x, y);
}
static int refuse_truth(PyObject *self) {
  (void)self;
  trace_refuse(DG_NKI_TENSOR_TRUTH, "compare sizes or other Python values; use nl.where for data",
               "a tensor has no truth value while the kernel is compiled");
  return nki_report() ? 0 : -1;
}
static PyObject *refuse_iter(PyObject *self) {
  (void)self;
  return trace_refuse(DG_NKI_TENSOR_OPERATOR, "iterate over a range, and index the tensor", "a tensor is no sequence");
}

/* ---- the type ---------------------------------------------------------------------------------------------------- */

bool nki_tensor_init(PyObject *module) {
  static PyGetSetDef getset[] = {{"shape", tensor_get, NULL, NULL, (void *)SHAPE},
                                 {"strides", tensor_get, NULL, NULL, (void *)STRIDES},
                                 {"offset", tensor_get, NULL, NULL, (void *)OFFSET},
                                 {"dtype", tensor_get, NULL, NULL, (void *)DTYPE},
                                 {"buffer", tensor_get, NULL, NULL, (void *)BUFFER},
                                 {"ndim", tensor_get, NULL, NULL, (void *)NDIM},
                                 {"size", tensor_get, NULL, NULL, (void *)SIZE},
                                 {"name", tensor_get, NULL, NULL, (void *)NAME},
                                 {NULL, NULL, NULL, NULL, NULL}};
  static PyType_Slot slots[] = {{Py_tp_methods, nki_tensor_methods},
                                {Py_tp_getset, getset},
                                {Py_tp_repr, tensor_repr},
                                {Py_tp_getattro, tensor_attribute},
                                {Py_mp_subscript, nki_tensor_subscript},
                                {Py_mp_ass_subscript, nki_tensor_assign},
                                {Py_sq_length, tensor_length},
                                {Py_tp_iter, refuse_iter},
                                {Py_tp_richcompare, compare},
                                {Py_tp_hash, PyObject_HashNotImplemented},
                                {Py_nb_add, refuse_operator},
                                {Py_nb_subtract, refuse_operator},
                                {Py_nb_multiply, refuse_operator},
                                {Py_nb_true_divide, refuse_operator},
                                {Py_nb_floor_divide, refuse_operator},
                                {Py_nb_remainder, refuse_operator},
                                {Py_nb_matrix_multiply, refuse_operator},
                                {Py_nb_and, refuse_operator},
                                {Py_nb_or, refuse_operator},
                                {Py_nb_xor, refuse_operator},
                                {Py_nb_lshift, refuse_operator},
                                {Py_nb_rshift, refuse_operator},
                                {Py_nb_power, refuse_power},
                                {Py_nb_negative, refuse_unary},
                                {Py_nb_absolute, refuse_unary},
                                {Py_nb_invert, refuse_unary},
                                {Py_nb_bool, refuse_truth},
                                {0, NULL}};
  static PyType_Spec spec = {.name = "nki.Tensor",
                             .basicsize = sizeof(struct nki_tensor_object),
                             .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                             .slots = slots};
  nki_tensor_type = (PyTypeObject *)PyType_FromSpec(&spec);
  return nki_tensor_type && PyModule_AddObjectRef(module, "NkiTensor", (PyObject *)nki_tensor_type) == 0;
}
