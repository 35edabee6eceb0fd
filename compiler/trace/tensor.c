/* tensor: the object a kernel sees in place of an array.
 *
 * It holds a value of the running trace and knows its shape and dtype; everything else goes through the table of
 * operations.  Whatever would need the data (bool, float, iteration of a 0-d tensor, conversion to an array) is refused
 * with a sentence that says what to write instead.
 */
#include "trace/tracer.h"

#include <structmember.h>
#include <string.h>

PyTypeObject *tensor_type;

void tensor_set(struct tensor *t, hlo_val v) {
  t->v = v;
  t->rank = v->shape.rank;
  t->dtype = v->shape.dtype;
  memcpy(t->dims, v->shape.dims, (size_t)t->rank * sizeof *t->dims);
}

PyObject *tensor_wrap(struct tracer *tr, hlo_val v) {
  if (!v)
    return NULL;
  struct tensor *t = PyObject_New(struct tensor, tensor_type);
  if (!t)
    return NULL;
  t->serial = tr->serial;
  t->param = -1;
  t->mutated = false;
  tensor_set(t, v);
  return (PyObject *)t;
}

hlo_val tensor_val(struct tracer *tr, PyObject *o) {
  struct tensor *t = (struct tensor *)o;
  if (t->serial != tr->serial)
    return refuse(DG_BAD_ARGUMENT, "a tensor only exists while its kernel is traced: do not keep it in a global",
                  "a tensor of another kernel's trace was used here");
  return loop_see(tr, t->v);
}

static void dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
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
  npy_intp strides[HLO_RANK_MAX], step = (npy_intp)dtype_size(t->dtype);
  for (int i = t->rank; i-- > 0; step *= t->dims[i])
    strides[i] = step;
  return PyArray_IntTupleFromIntp(t->rank, strides);
}
static PyObject *get_transposed(PyObject *self, void *closure) {
  (void)closure;
  return op_call1(OP_TRANSPOSE, self);
}
static PyObject *get_name(PyObject *self, void *closure) {
  (void)closure;
  struct tensor *t = (struct tensor *)self;
  return PyUnicode_FromString(tracer_now && tracer_now->serial == t->serial ? t->v->name : "tensor");
}

static PyGetSetDef getset[] = {{"shape", get_shape, NULL, NULL, NULL},       {"dtype", get_dtype, NULL, NULL, NULL},
                               {"ndim", get_ndim, NULL, NULL, NULL},         {"size", get_size, NULL, NULL, NULL},
                               {"itemsize", get_itemsize, NULL, NULL, NULL}, {"nbytes", get_nbytes, NULL, NULL, NULL},
                               {"strides", get_strides, NULL, NULL, NULL},   {"T", get_transposed, NULL, NULL, NULL},
                               {"name", get_name, NULL, NULL, NULL},         {NULL, NULL, NULL, NULL, NULL}};

/* ---- operators ------------------------------------------------------------------------------------------ */

/* Objects that have their own idea of arithmetic get their turn. */
static bool is_operand(PyObject *o) {
  return tensor_check(o) || PyLong_Check(o) || loop_index_check(o) || PyFloat_Check(o) || PyArray_Check(o) ||
         PyArray_CheckScalar(o) || PyList_Check(o) || PyTuple_Check(o) || PyComplex_Check(o);
}

#define BINARY(slot, id) \
  static PyObject *slot(PyObject *x, PyObject *y) { \
    if (!is_operand(x) || !is_operand(y)) \
      Py_RETURN_NOTIMPLEMENTED; \
    return op_call2(id, x, y); \
  }
BINARY(nb_add, OP_ADD)
BINARY(nb_subtract, OP_SUBTRACT)
BINARY(nb_multiply, OP_MULTIPLY)
BINARY(nb_divide, OP_DIVIDE)
BINARY(nb_floor_divide, OP_FLOOR_DIVIDE)
BINARY(nb_remainder, OP_REMAINDER)
BINARY(nb_and, OP_BITWISE_AND)
BINARY(nb_or, OP_BITWISE_OR)
BINARY(nb_xor, OP_BITWISE_XOR)
BINARY(nb_lshift, OP_LEFT_SHIFT)
BINARY(nb_rshift, OP_RIGHT_SHIFT)
BINARY(nb_matmul, OP_MATMUL)

static PyObject *nb_power(PyObject *x, PyObject *y, PyObject *modulus) {
  if (modulus != Py_None)
    return refuse(DG_UNSUPPORTED_OP, "use (x ** y) % m", "pow with a modulus is not supported");
  if (!is_operand(x) || !is_operand(y))
    Py_RETURN_NOTIMPLEMENTED;
  return op_call2(OP_POWER, x, y);
}

static PyObject *nb_divmod(PyObject *x, PyObject *y) {
  PyObject *q = nb_floor_divide(x, y), *r = q && q != Py_NotImplemented ? nb_remainder(x, y) : NULL, *pair = NULL;
  if (q == Py_NotImplemented)
    return q;
  pair = r ? PyTuple_Pack(2, q, r) : NULL;
  Py_XDECREF(q);
  Py_XDECREF(r);
  return pair;
}

/* x += y: the object x takes the result, in its own dtype, so that every name of it sees the change as in NumPy.  It is
 * not a mutation of the kernel's parameter (NKIPy's rule): only x[…] = y is. */
static PyObject *inplace(enum op_id id, PyObject *x, PyObject *y) {
  if (!tensor_check(x) || !is_operand(y))
    Py_RETURN_NOTIMPLEMENTED;
  struct tensor *t = (struct tensor *)x;
  PyObject *r = op_call2(id, x, y);
  if (!r)
    return NULL;
  if (!loop_may_write(tracer_now, t)) {
    Py_DECREF(r);
    return NULL;
  }
  struct tensor *n = (struct tensor *)r;
  char a[256], b[256];
  if (n->rank != t->rank || memcmp(n->dims, t->dims, (size_t)t->rank * sizeof *t->dims) != 0) {
    refuse(DG_SHAPE_MISMATCH, "write x = x + y to let the shape change",
           "non-broadcastable output operand with shape %s doesn't match the broadcast shape %s",
           dims_text(t->rank, t->dims, a, sizeof a), dims_text(n->rank, n->dims, b, sizeof b));
  } else if (n->dtype != t->dtype && (dtype_kind(n->dtype) > dtype_kind(t->dtype)) &&
             !(dtype_is_int(n->dtype) && dtype_is_int(t->dtype))) {
    refuse(DG_DTYPE_PROMOTION, "write x = x + y to let the dtype change",
           "cannot store a %s result in a %s tensor in place", dtype_numpy_name(n->dtype), dtype_numpy_name(t->dtype));
  } else {
    hlo_val v = hlo_convert(&tracer_now->b, n->v, t->dtype);
    if (v) {
      tensor_set(t, v);
      Py_DECREF(r);
      return Py_NewRef(x);
    }
    refuse(DG_INTERNAL, NULL, "a result could not be converted in place");
  }
  Py_DECREF(r);
  return NULL;
}
#define INPLACE(slot, id) \
  static PyObject *slot(PyObject *x, PyObject *y) { \
    return inplace(id, x, y); \
  }
INPLACE(nb_inplace_add, OP_ADD)
INPLACE(nb_inplace_subtract, OP_SUBTRACT)
INPLACE(nb_inplace_multiply, OP_MULTIPLY)
INPLACE(nb_inplace_divide, OP_DIVIDE)
INPLACE(nb_inplace_floor_divide, OP_FLOOR_DIVIDE)
INPLACE(nb_inplace_remainder, OP_REMAINDER)
INPLACE(nb_inplace_and, OP_BITWISE_AND)
INPLACE(nb_inplace_or, OP_BITWISE_OR)
INPLACE(nb_inplace_xor, OP_BITWISE_XOR)
INPLACE(nb_inplace_lshift, OP_LEFT_SHIFT)
INPLACE(nb_inplace_rshift, OP_RIGHT_SHIFT)
INPLACE(nb_inplace_matmul, OP_MATMUL)
static PyObject *nb_inplace_power(PyObject *x, PyObject *y, PyObject *m) {
  (void)m;
  return inplace(OP_POWER, x, y);
}

static PyObject *nb_negative(PyObject *x) {
  return op_call1(OP_NEGATIVE, x);
}
static PyObject *nb_positive(PyObject *x) {
  return op_call1(OP_POSITIVE, x);
}
static PyObject *nb_absolute(PyObject *x) {
  return op_call1(OP_ABS, x);
}
static PyObject *nb_invert(PyObject *x) {
  return op_call1(OP_INVERT, x);
}

static PyObject *richcompare(PyObject *x, PyObject *y, int op) {
  if (!is_operand(y))
    Py_RETURN_NOTIMPLEMENTED;
  return op_compare2(op, x, y);
}

/* ---- what would need the data ----------------------------------------------------------------------------- */

static int nb_bool(PyObject *self) {
  (void)self;
  refuse(DG_TRACED_BOOL,
         "use np.where(condition, a, b) to choose between values; a Python `if` is decided while tracing",
         "the truth of a traced tensor is not known while tracing");
  return -1;
}
static PyObject *refuse_number(const char *what) {
  return refuse(DG_TRACED_VALUE, "keep it a tensor; a 0-d tensor broadcasts like a number",
                "a traced tensor cannot be converted to %s: its value is not known while tracing", what);
}
static PyObject *nb_int(PyObject *self) {
  (void)self;
  return refuse_number("a Python int");
}
static PyObject *nb_float(PyObject *self) {
  (void)self;
  return refuse_number("a Python float");
}
static PyObject *nb_index(PyObject *self) {
  (void)self;
  return refuse(DG_TRACED_VALUE, "use a Python int, or the size of an axis: x.shape[0]",
                "a traced tensor cannot be used as a Python index or size: its value is not known while tracing");
}
static PyObject *m_array(PyObject *self, PyObject *args, PyObject *kw) {
  (void)self, (void)args, (void)kw;
  return refuse(DG_TRACED_VALUE, "leave out np.array/np.asarray; to join tensors use np.stack or np.concatenate",
                "a traced tensor cannot be converted to a NumPy array: it has no data while tracing");
}

/* ---- sequence and mapping --------------------------------------------------------------------------------- */

static Py_ssize_t length(PyObject *self) {
  struct tensor *t = (struct tensor *)self;
  if (t->rank == 0) {
    PyErr_SetString(PyExc_TypeError, "len() of unsized object");
    return -1;
  }
  return (Py_ssize_t)t->dims[0];
}

static PyObject *subscript(PyObject *self, PyObject *key) {
  struct tracer *tr = tracer_enter();
  PyObject *r = tr && tensor_val(tr, self) ? index_get(tr, (struct tensor *)self, key) : NULL;
  if (!r && tr) {
    if (!PyErr_Occurred())
      refuse(DG_UNSUPPORTED_INDEX, NULL, "%s",
             tr->b.err.code ? tr->b.err.text : "this form of indexing is not supported");
    tr->b.err = (struct error){0};
    refuse_adopt();
  }
  return r;
}

static int ass_subscript(PyObject *self, PyObject *key, PyObject *value) {
  struct tracer *tr = tracer_enter();
  if (!value) {
    refuse(DG_UNSUPPORTED_INDEX, NULL, "parts of a tensor cannot be deleted");
    return -1;
  }
  int r = tr && tensor_val(tr, self) ? index_set(tr, (struct tensor *)self, key, value) : -1;
  if (r && tr) {
    if (!PyErr_Occurred())
      refuse(DG_UNSUPPORTED_INDEX, NULL, "%s",
             tr->b.err.code ? tr->b.err.text : "this form of indexing is not supported");
    tr->b.err = (struct error){0};
    refuse_adopt();
  }
  return r;
}

static PyObject *seq_item(PyObject *self, Py_ssize_t i) {
  PyObject *key = PyLong_FromSsize_t(i);
  PyObject *r = key ? subscript(self, key) : NULL;
  Py_XDECREF(key);
  return r;
}

/* PySeqIter asks for items 0, 1, … until IndexError, which an integer out of range raises. */
static PyObject *iter(PyObject *self) {
  if (((struct tensor *)self)->rank == 0)
    return refuse(DG_TRACED_ITER, NULL, "iteration over a 0-d tensor");
  return PySeqIter_New(self);
}

static PyObject *repr(PyObject *self) {
  struct tensor *t = (struct tensor *)self;
  char text[512];
  return PyUnicode_FromFormat("<traced tensor %s %s>", dtype_numpy_name(t->dtype),
                              dims_text(t->rank, t->dims, text, sizeof text));
}

static PyObject *m_format(PyObject *self, PyObject *spec) {
  if (PyUnicode_Check(spec) && PyUnicode_GET_LENGTH(spec) == 0)
    return repr(self);
  return refuse_number("text in a number format");
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

/* x.reshape(2, 3) and x.reshape((2, 3)) */
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
static PyObject *m_flatten(PyObject *self, PyObject *args, PyObject *kw) {
  return call_method(OP_RAVEL, self, args, kw);
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

/* What an ndarray has and a tensor has not is refused by name; anything else is an ordinary AttributeError, which
 * Python and NumPy rely on when they probe an object. */
static PyObject *getattro(PyObject *self, PyObject *name) {
  PyObject *r = PyObject_GenericGetAttr(self, name);
  if (r || !PyErr_ExceptionMatches(PyExc_AttributeError) || !PyUnicode_Check(name))
    return r;
  const char *s = PyUnicode_AsUTF8(name);
  if (!s || s[0] == '_' || !PyObject_HasAttr((PyObject *)&PyArray_Type, name))
    return NULL;
  PyErr_Clear();
  return refuse(DG_UNSUPPORTED_OP, dispatch_hint(s), "ndarray.%s is not supported in a kernel", s);
}

static PyMethodDef methods[OP_COUNT + 16];

static void add_method(int *n, const char *name, PyCFunction f) {
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
  add_method(&n, "flatten", PYFUNC(m_flatten));
  add_method(&n, "__array_ufunc__", PYFUNC(dispatch_ufunc));
  add_method(&n, "__array_function__", PYFUNC(dispatch_function));
  add_method(&n, "__array__", PYFUNC(m_array));
  add_method(&n, "__copy__", PYFUNC(m_COPY));
  add_method(&n, "__deepcopy__", PYFUNC(m_deepcopy));
  methods[n++] = (PyMethodDef){"__format__", m_format, METH_O, NULL};
}

static PyMemberDef members[] = {{NULL, 0, 0, 0, NULL}};

bool tensor_init(PyObject *module) {
  fill_methods();
  static PyType_Slot slots[] = {
      {Py_tp_dealloc, dealloc},
      {Py_tp_repr, repr},
      {Py_tp_hash, PyObject_HashNotImplemented},
      {Py_tp_richcompare, richcompare},
      {Py_tp_iter, iter},
      {Py_tp_getattro, getattro},
      {Py_tp_getset, getset},
      {Py_tp_methods, methods},
      {Py_tp_members, members},
      {Py_mp_length, length},
      {Py_mp_subscript, subscript},
      {Py_mp_ass_subscript, ass_subscript},
      {Py_sq_length, length},
      {Py_sq_item, seq_item},
      {Py_nb_add, nb_add},
      {Py_nb_subtract, nb_subtract},
      {Py_nb_multiply, nb_multiply},
      {Py_nb_true_divide, nb_divide},
      {Py_nb_floor_divide, nb_floor_divide},
      {Py_nb_remainder, nb_remainder},
      {Py_nb_divmod, nb_divmod},
      {Py_nb_power, nb_power},
      {Py_nb_matrix_multiply, nb_matmul},
      {Py_nb_and, nb_and},
      {Py_nb_or, nb_or},
      {Py_nb_xor, nb_xor},
      {Py_nb_lshift, nb_lshift},
      {Py_nb_rshift, nb_rshift},
      {Py_nb_inplace_add, nb_inplace_add},
      {Py_nb_inplace_subtract, nb_inplace_subtract},
      {Py_nb_inplace_multiply, nb_inplace_multiply},
      {Py_nb_inplace_true_divide, nb_inplace_divide},
      {Py_nb_inplace_floor_divide, nb_inplace_floor_divide},
      {Py_nb_inplace_remainder, nb_inplace_remainder},
      {Py_nb_inplace_power, nb_inplace_power},
      {Py_nb_inplace_matrix_multiply, nb_inplace_matmul},
      {Py_nb_inplace_and, nb_inplace_and},
      {Py_nb_inplace_or, nb_inplace_or},
      {Py_nb_inplace_xor, nb_inplace_xor},
      {Py_nb_inplace_lshift, nb_inplace_lshift},
      {Py_nb_inplace_rshift, nb_inplace_rshift},
      {Py_nb_negative, nb_negative},
      {Py_nb_positive, nb_positive},
      {Py_nb_absolute, nb_absolute},
      {Py_nb_invert, nb_invert},
      {Py_nb_bool, nb_bool},
      {Py_nb_int, nb_int},
      {Py_nb_float, nb_float},
      {Py_nb_index, nb_index},
      {0, NULL},
  };
  static PyType_Spec spec = {.name = "nkx.Tensor",
                             .basicsize = sizeof(struct tensor),
                             .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
                             .slots = slots};
  tensor_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
  if (!tensor_type || PyModule_AddObjectRef(module, "Tensor", (PyObject *)tensor_type) < 0)
    return false;
  PyObject *priority = PyFloat_FromDouble(1000.0);
  bool ok = priority && PyDict_SetItemString(tensor_type->tp_dict, "__array_priority__", priority) == 0;
  Py_XDECREF(priority);
  PyType_Modified(tensor_type);
  return ok;
}
