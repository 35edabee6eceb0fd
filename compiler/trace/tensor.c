/* tensor: the object that replaces an array while a kernel is traced.
 *
 * It holds a value of the running trace, its shape and its dtype.  Everything else is an operation of the table.
 * Operations that would need the data are refused; a hint states what to write instead.
 */
#include "trace/tensor.h"

#include <assert.h>
#include <string.h>

#include "hlo/names.h"
#include "trace/args.h"
#include "trace/array.h"
#include "trace/index.h"
#include "trace/loop.h"
#include "trace/number.h"
#include "trace/ops.h"
#include "trace/refuse.h"
#include "trace/view.h"

PyTypeObject *tensor_type;

void tensor_set(struct tensor *t, hlo_val v) {
  assert(v && v->shape.dtype != DT_TUPLE && v->shape.rank <= HLO_RANK_MAX);
  t->v = v;
  t->rank = v->shape.rank;
  t->dtype = v->shape.dtype;
  hlo_dims_copy(t->rank, t->dims, v->shape.dims);
  t->version++;
}

PyObject *tensor_wrap(struct tracer *tr, hlo_val v) {
  if (!v)
    return NULL;
  struct tensor *t = PyObject_New(struct tensor, tensor_type);
  if (!t)
    return NULL;
  t->serial = tr->serial;
  t->param = -1;
  t->mutated = t->is_scalar = false;
  t->base = t->array = NULL;
  t->view = NULL;
  t->version = t->seen = 0;
  tensor_set(t, v);
  view_order_c(t);
  return (PyObject *)t;
}

hlo_val tensor_val(struct tracer *tr, PyObject *o) {
  struct tensor *t = (struct tensor *)o;
  if (t->serial != tr->serial)
    return trace_refuse(DG_BAD_ARGUMENT, "a tensor only exists while its kernel is traced: do not keep it in a global",
                        "a tensor of another kernel's trace was used here");
  return view_refresh(tr, t) ? loop_see(tr, t->v) : NULL;
}

bool tensor_store(struct tracer *tr, struct tensor *t, hlo_val v, bool is_mutation) {
  struct tensor *base = (struct tensor *)t->base;
  if (base) {
    hlo_val whole = view_write(tr, t, v);
    if (!whole || !tensor_store(tr, base, whole, is_mutation))
      return false;
    t->seen = base->version;
  }
  tensor_set(t, v);
  t->mutated = t->mutated || is_mutation;
  return true;
}

static void dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  Py_XDECREF(((struct tensor *)self)->base);
  Py_XDECREF(((struct tensor *)self)->array);
  PyObject_Free(self);
  Py_DECREF(type);
}

/* ---- properties ----------------------------------------------------------------------------------------- */

static PyObject *get_shape(PyObject *self, void *closure) {
  (void)closure;
  struct tensor *t = (struct tensor *)self;
  return PyArray_IntTupleFromIntp(t->rank, t->dims);
}
static PyObject *get_dtype(PyObject *self, void *closure) {
  (void)closure;
  return (PyObject *)dtype_descr(((struct tensor *)self)->dtype);
}
static PyObject *get_ndim(PyObject *self, void *closure) {
  (void)closure;
  return PyLong_FromLong(((struct tensor *)self)->rank);
}
static int64_t elements(const struct tensor *t) {
  int64_t n = 1;
  for (int i = 0; i < t->rank; i++)
    n *= t->dims[i];
  return n;
}
static PyObject *get_size(PyObject *self, void *closure) {
  (void)closure;
  return PyLong_FromLongLong(elements((struct tensor *)self));
}
static PyObject *get_itemsize(PyObject *self, void *closure) {
  (void)closure;
  return PyLong_FromSize_t(dtype_size(((struct tensor *)self)->dtype));
}
static PyObject *get_nbytes(PyObject *self, void *closure) {
  (void)closure;
  struct tensor *t = (struct tensor *)self;
  return PyLong_FromLongLong(elements(t) * (int64_t)dtype_size(t->dtype));
}
static PyObject *get_strides(PyObject *self, void *closure) {
  (void)closure;
  struct tensor *t = (struct tensor *)self;
  npy_intp strides[HLO_RANK_MAX];
  for (int i = 0; i < t->rank; i++)
    strides[i] = t->strides[i] * (npy_intp)dtype_size(t->dtype);
  return PyArray_IntTupleFromIntp(t->rank, strides);
}
static PyObject *get_transposed(PyObject *self, void *closure) {
  (void)closure;
  return op_call1(OP_TRANSPOSE, self);
}
static PyObject *get_real(PyObject *self, void *closure) {
  (void)closure;
  return op_call1(OP_REAL, self);
}
static PyObject *get_imag(PyObject *self, void *closure) {
  (void)closure;
  return op_call1(OP_IMAG, self);
}
static int set_part(PyObject *self, PyObject *value, void *closure) {
  (void)self, (void)value, (void)closure;
  trace_refuse(DG_UNSUPPORTED_OP, "make a new tensor: re + 1j * im", "a part of a tensor cannot be assigned");
  return -1;
}
static PyObject *get_name(PyObject *self, void *closure) {
  (void)closure;
  struct tensor *t = (struct tensor *)self;
  return PyUnicode_FromString(tracer_now && tracer_now->serial == t->serial ? t->v->name : "tensor");
}

/* NKIPy's programs name intermediate values: x.backend_tensor.name = "scores". */
static int set_name(PyObject *self, PyObject *name, void *closure) {
  (void)closure;
  struct tensor *t = (struct tensor *)self;
  const char *text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
  struct tracer *tr = tracer_enter();
  if (!tr || !text || !tensor_val(tr, self)) {
    if (!PyErr_Occurred())
      trace_refuse(DG_BAD_ARGUMENT, NULL, "the name of a tensor must be a str");
    return -1;
  }
  if (t->v->op != HLO_PARAMETER) /* an input keeps its parameter's name */
    t->v->name = hlo_names_take(tr->a, tr->b.module->names, text);
  return 0;
}
static PyObject *get_backend_tensor(PyObject *self, void *closure) {
  (void)closure;
  return Py_NewRef(self);
}

static PyGetSetDef getset[] = {{"shape", get_shape, NULL, NULL, NULL},
                               {"dtype", get_dtype, NULL, NULL, NULL},
                               {"ndim", get_ndim, NULL, NULL, NULL},
                               {"size", get_size, NULL, NULL, NULL},
                               {"itemsize", get_itemsize, NULL, NULL, NULL},
                               {"nbytes", get_nbytes, NULL, NULL, NULL},
                               {"strides", get_strides, NULL, NULL, NULL},
                               {"T", get_transposed, NULL, NULL, NULL},
                               {"real", get_real, set_part, NULL, NULL},
                               {"imag", get_imag, set_part, NULL, NULL},
                               {"name", get_name, set_name, NULL, NULL},
                               {"backend_tensor", get_backend_tensor, NULL, NULL, NULL},
                               {NULL, NULL, NULL, NULL, NULL}};

/* ---- sequence and mapping --------------------------------------------------------------------------------- */

static Py_ssize_t length(PyObject *self) {
  struct tensor *t = (struct tensor *)self;
  if (t->rank == 0) {
    PyErr_SetString(PyExc_TypeError, "len() of unsized object");
    return -1;
  }
  return (Py_ssize_t)t->dims[0];
}

PyObject *tensor_get_item(PyObject *self, PyObject *key) {
  struct tracer *tr = tracer_enter();
  if (!tr)
    return NULL;
  PyObject *plain = array_unwrap(tr, key);
  PyObject *r = plain && tensor_val(tr, self) ? index_get(tr, (struct tensor *)self, plain) : NULL;
  if (!r)
    op_raise(tr, DG_UNSUPPORTED_INDEX);
  Py_XDECREF(plain);
  return r;
}

int tensor_set_item(PyObject *self, PyObject *key, PyObject *value) {
  struct tracer *tr = tracer_enter();
  if (!tr)
    return -1;
  if (!value) {
    trace_refuse(DG_UNSUPPORTED_INDEX, NULL, "parts of a tensor cannot be deleted");
    return -1;
  }
  PyObject *at = array_unwrap(tr, key), *plain = array_unwrap(tr, value);
  const int r = at && plain && tensor_val(tr, self) ? index_set(tr, (struct tensor *)self, at, plain) : -1;
  if (r)
    op_raise(tr, DG_UNSUPPORTED_INDEX);
  Py_XDECREF(at);
  Py_XDECREF(plain);
  return r;
}

static PyObject *seq_item(PyObject *self, Py_ssize_t i) {
  PyObject *key = PyLong_FromSsize_t(i);
  PyObject *r = key ? tensor_get_item(self, key) : NULL;
  Py_XDECREF(key);
  return r;
}

/* Python reads items 0, 1, … until an index out of range raises IndexError. */
static PyObject *iter(PyObject *self) {
  if (((struct tensor *)self)->rank == 0)
    return trace_refuse(DG_TRACED_ITER, NULL, "iteration over a 0-d tensor");
  return PySeqIter_New(self);
}

static PyObject *repr(PyObject *self) {
  struct tensor *t = (struct tensor *)self;
  char text[DIMS_TEXT_MAX];
  return PyUnicode_FromFormat("<traced tensor %s %s>", dtype_numpy_name(t->dtype), dims_text(t->rank, t->dims, text));
}

static PyObject *m_format(PyObject *self, PyObject *spec) {
  if (PyUnicode_Check(spec) && PyUnicode_GET_LENGTH(spec) == 0)
    return repr(self);
  return number_refuse_value(self, "converted to text in a number format");
}

/* ---- methods ---------------------------------------------------------------------------------------------- */

static PyObject *call_method(enum op_id id, PyObject *self, PyObject *args, PyObject *kw) {
  Py_ssize_t n = PyTuple_GET_SIZE(args);
  PyObject *all = PyTuple_New(n + 1);
  if (!all)
    return NULL;
  PyTuple_SET_ITEM(all, 0, Py_NewRef(self));
  for (Py_ssize_t i = 0; i < n; i++)
    PyTuple_SET_ITEM(all, i + 1, Py_NewRef(PyTuple_GET_ITEM(args, i)));
  PyObject *r = op_call_out(&op_table[id], all, kw);
  Py_DECREF(all);
  return r;
}

/* Accepts x.reshape(2, 3) and x.reshape((2, 3)). */
static PyObject *call_packed(enum op_id id, PyObject *self, PyObject *args, PyObject *kw) {
  if (PyTuple_GET_SIZE(args) < 2)
    return call_method(id, self, args, kw);
  PyObject *one = PyTuple_Pack(1, args);
  PyObject *r = one ? call_method(id, self, one, kw) : NULL;
  Py_XDECREF(one);
  return r;
}
static PyObject *m_reshape(PyObject *self, PyObject *args, PyObject *kw) {
  return call_packed(OP_RESHAPE, self, args, kw);
}
static PyObject *m_transpose(PyObject *self, PyObject *args, PyObject *kw) {
  return call_packed(OP_TRANSPOSE, self, args, kw);
}
/* flatten returns a copy, but ravel may return a view. */
static PyObject *m_flatten(PyObject *self, PyObject *args, PyObject *kw) {
  PyObject *r = call_method(OP_RAVEL, self, args, kw);
  if (r)
    Py_CLEAR(((struct tensor *)r)->base);
  return r;
}

static PyObject *m_deepcopy(PyObject *self, PyObject *memo, PyObject *kw) {
  (void)memo, (void)kw;
  return op_call1(OP_COPY, self);
}

#define TRACE_OP(id, name, numpy, method, kind, call, arg) \
  static PyObject *m_##id(PyObject *self, PyObject *args, PyObject *kw) { \
    return call_method(OP_##id, self, args, kw); \
  }
#include "trace/ops.def"
#undef TRACE_OP

/* An attribute that ndarray has but a tensor lacks is refused with its name.  Any other missing attribute is an
 * ordinary AttributeError, which Python and NumPy need when they test an object for an attribute. */
static PyObject *getattro(PyObject *self, PyObject *name) {
  PyObject *r = PyObject_GenericGetAttr(self, name);
  if (r || !PyErr_ExceptionMatches(PyExc_AttributeError) || !PyUnicode_Check(name))
    return r;
  PyObject *type, *exc, *tb;
  PyErr_Fetch(&type, &exc, &tb); /* PyObject_HasAttr would clear it */
  const char *s = PyUnicode_AsUTF8(name);
  const bool is_arrays = s && s[0] != '_' && PyObject_HasAttr((PyObject *)&PyArray_Type, name);
  PyErr_Restore(type, exc, tb);
  if (!is_arrays)
    return NULL;
  PyErr_Clear();
  return trace_refuse(DG_UNSUPPORTED_OP, dispatch_hint(s), "ndarray.%s is not supported in a kernel", s);
}

enum { OTHER_METHODS_MAX = 16 }; /* methods that are not in the table, and the end marker */
static PyMethodDef methods[OP_COUNT + OTHER_METHODS_MAX];

static void add_method(int *n, const char *name, PyCFunction f) {
  assert(*n < OP_COUNT + OTHER_METHODS_MAX - 2);
  methods[(*n)++] = (PyMethodDef){name, f, METH_VARARGS | METH_KEYWORDS, NULL};
}

static void fill_methods(void) {
  int n = 0;
#define TRACE_OP(id, name, numpy, as_method, kind, call, arg) \
  if ((const char *)as_method) \
    add_method(&n, as_method, PYFUNC(m_##id));
#include "trace/ops.def"
#undef TRACE_OP
  add_method(&n, "reshape", PYFUNC(m_reshape));
  add_method(&n, "transpose", PYFUNC(m_transpose));
  add_method(&n, "conj", PYFUNC(m_CONJUGATE));
  add_method(&n, "flatten", PYFUNC(m_flatten));
  add_method(&n, "__array_ufunc__", PYFUNC(dispatch_ufunc));
  add_method(&n, "__array_function__", PYFUNC(dispatch_function));
  add_method(&n, "__array__", PYFUNC(number_array));
  add_method(&n, "__copy__", PYFUNC(m_COPY));
  add_method(&n, "__deepcopy__", PYFUNC(m_deepcopy));
  methods[n++] = (PyMethodDef){"__format__", m_format, METH_O, NULL};
}

static PyType_Slot slots[] = {
    NUMBER_SLOTS,
    NUMBER_INPLACE_SLOTS,
    {Py_tp_dealloc, dealloc},
    {Py_tp_repr, repr},
    {Py_tp_hash, PyObject_HashNotImplemented},
    {Py_tp_iter, iter},
    {Py_tp_getattro, getattro},
    {Py_tp_getset, getset},
    {Py_tp_methods, methods},
    {Py_mp_length, length},
    {Py_mp_subscript, tensor_get_item},
    {Py_mp_ass_subscript, tensor_set_item},
    {Py_sq_length, length},
    {Py_sq_item, seq_item},
    {0, NULL},
};

bool tensor_init(PyObject *module) {
  static PyType_Spec spec = {.name = "nkx.Tensor",
                             .basicsize = sizeof(struct tensor),
                             .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
                             .slots = slots};
  fill_methods();
  tensor_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
  if (!tensor_type || PyModule_AddObjectRef(module, "Tensor", (PyObject *)tensor_type) < 0)
    return false;
  PyObject *priority = PyFloat_FromDouble(1000.0);
  bool ok = priority && PyDict_SetItemString(tensor_type->tp_dict, "__array_priority__", priority) == 0;
  Py_XDECREF(priority);
  PyType_Modified(tensor_type);
  return ok;
}
