/* array: NumPy arrays that become tensors (see array.h). */
#include "trace/array.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "trace/loop.h"
#include "trace/operand.h"
#include "trace/refuse.h"
#include "trace/traced_array.h"
#include "trace/view.h"

/* NumPy's own functions, while this file's functions replace them. */
static PyMappingMethods numpy_mapping;
static PySequenceMethods numpy_sequence;
static getattrofunc numpy_getattr;

static bool is_plain_array(PyObject *o) {
  return PyArray_CheckExact(o);
}

/* ---- memory ------------------------------------------------------------------------------------------------------ */

/* NumPy gets zeroed memory while a kernel is traced.  An array from np.empty may become a constant, which must be the
 * same in every trace and must not expose earlier contents of this process's memory. */
static void *zeroed_calloc(void *ctx, size_t n, size_t size) {
  (void)ctx;
  return calloc(n ? n : 1, size ? size : 1);
}
static void *zeroed_malloc(void *ctx, size_t size) {
  return zeroed_calloc(ctx, 1, size);
}
static void *zeroed_realloc(void *ctx, void *p, size_t size) {
  (void)ctx;
  return realloc(p, size ? size : 1); /* NumPy clears the added memory */
}
static void zeroed_free(void *ctx, void *p, size_t size) {
  (void)ctx, (void)size;
  free(p);
}

static PyDataMem_Handler zeroed = {"zeroed", 1, {NULL, zeroed_malloc, zeroed_calloc, zeroed_realloc, zeroed_free}};

/* Every array keeps the handler that allocated it.  Each loop has its own handler, so an array's handler shows in which
 * loop the array was made. */
PyObject *array_enter_loop(struct loop *l) {
  PyObject *handler = PyCapsule_New(&zeroed, "mem_handler", NULL);
  PyObject *before = handler ? PyDataMem_SetHandler(handler) : NULL;
  if (l && before)
    l->memory = handler; /* owned by NumPy until array_leave_loop */
  Py_XDECREF(handler);
  return before;
}

void array_leave_loop(PyObject *before) {
  PyObject *type, *exc, *tb;
  PyErr_Fetch(&type, &exc, &tb);
  PyObject *ours = before ? PyDataMem_SetHandler(before) : NULL;
  Py_XDECREF(ours);
  Py_XDECREF(before);
  PyErr_Restore(type, exc, tb);
}

/* Inside a loop's body, only an array that was made in the body may become a tensor.  An array from outside keeps its
 * elements from one iteration to the next, which a single trace of the body cannot represent. */
static bool may_become(struct tracer *tr, PyArrayObject *a) {
  if (!tr->loop || PyArray_HANDLER(a) == tr->loop->memory)
    return true;
  trace_refuse(DG_UNSUPPORTED_INDEX, "carry it: give it to fori_loop in init, and return it from the body",
               "the body of a fori_loop writes to an array from outside of it");
  return false;
}

/* ---- changing an array ------------------------------------------------------------------------------------------- */

/* Exchanges the contents of two array objects, except for the object headers and the weak references. */
static void swap_contents(PyObject *x, PyObject *y) {
  PyArrayObject_fields *a = (PyArrayObject_fields *)x, *b = (PyArrayObject_fields *)y;
  PyArrayObject_fields old = *a;
  PyObject *a_refs = a->weakreflist, *b_refs = b->weakreflist;
  const size_t head = sizeof(PyObject);
  memcpy((char *)a + head, (char *)b + head, sizeof *a - head);
  memcpy((char *)b + head, (char *)&old + head, sizeof *b - head);
  a->weakreflist = a_refs;
  b->weakreflist = b_refs;
}

/* Turns `array` into a TracedArray that holds t.  t->array gets the array's contents. */
static bool turn(struct tracer *tr, PyObject *array, struct tensor *t) {
  PyObject *cell = PyArray_SimpleNew(0, NULL, NPY_OBJECT), *ref = cell ? PyWeakref_NewRef(array, NULL) : NULL;
  const bool ok = ref && PyList_Append(tr->arrays, ref) == 0;
  Py_XDECREF(ref);
  if (!ok) {
    Py_XDECREF(cell);
    return false;
  }
  PyObject **slot = PyArray_DATA((PyArrayObject *)cell);
  Py_XSETREF(*slot, Py_NewRef((PyObject *)t));
  PyArray_CLEARFLAGS((PyArrayObject *)cell, NPY_ARRAY_WRITEABLE); /* np.ndarray.fill(array, 3) must not replace it */
  swap_contents(array, cell);
  Py_XSETREF(t->array, cell);
  Py_INCREF(traced_array_type);
  Py_SET_TYPE(array, traced_array_type);
  return true;
}

/* Reverses turn: the array gets back its class and contents. */
static void turn_back(PyObject *array) {
  struct tensor *t = (struct tensor *)traced_array_tensor(array);
  PyObject *cell = t->array;
  t->array = NULL;
  Py_SET_TYPE(array, &PyArray_Type);
  Py_DECREF(traced_array_type);
  swap_contents(array, cell);
  Py_DECREF(cell); /* and the tensor in it */
}

/* Returns the array that owns the memory of an array, or the array itself if no other array does. */
static PyObject *owner_of(PyObject *array) {
  PyObject *base = PyArray_BASE((PyArrayObject *)array);
  return base && PyArray_Check(base) ? base : array;
}

/* Refuses an array that cannot hold a traced value. */
static bool check_kind(PyObject *array) {
  PyArrayObject *a = (PyArrayObject *)array;
  if (!is_plain_array(array) || PyArray_NDIM(a) > HLO_RANK_MAX ||
      dtype_narrow(dtype_from_num(PyArray_TYPE(a))) == DT_NONE) {
    trace_refuse(DG_UNSUPPORTED_DTYPE, "use a plain array of float32, bfloat16, float16, int32, int8, uint8 or bool",
                 "an array of class %s, dtype %S and %d dimensions cannot hold a traced value", Py_TYPE(array)->tp_name,
                 (PyObject *)PyArray_DESCR(a), PyArray_NDIM(a));
    return false;
  }
  return true;
}

/* Returns a tensor with the shape, dtype and strides of the array, and the value v. */
static struct tensor *tensor_like(struct tracer *tr, PyArrayObject *a, hlo_val v) {
  struct tensor *t = (struct tensor *)tensor_wrap(tr, v);
  const npy_intp size = PyArray_ITEMSIZE(a);
  for (int i = 0; t && i < t->rank; i++) {
    t->strides[i] = PyArray_STRIDE(a, i) / size;
    t->has_strides = t->has_strides && PyArray_STRIDE(a, i) % size == 0;
  }
  return t;
}

static bool become_owner(struct tracer *tr, PyObject *array, hlo_val v) {
  PyArrayObject *a = (PyArrayObject *)array;
  struct operand x;
  if (!check_kind(array) || !may_become(tr, a))
    return false;
  if (!PyArray_ISWRITEABLE(a)) {
    trace_refuse(DG_BAD_ARGUMENT, "take a copy first: np.copy(x)", "assignment destination is read-only");
    return false;
  }
  if (!v) {
    if (!operand_read(tr, array, &x))
      return false;
    v = operand_array(tr, &x);
    operand_clear(&x);
  }
  struct tensor *t = v ? tensor_like(tr, a, v) : NULL;
  const bool ok = t && turn(tr, array, t);
  Py_XDECREF(t);
  return ok;
}

/* Makes the array a view of the tensor that its owner has become. */
static bool become_view(struct tracer *tr, PyObject *array, PyObject *owner) {
  PyArrayObject *a = (PyArrayObject *)array;
  struct tensor *base = (struct tensor *)traced_array_tensor(owner);
  const PyArrayObject *memory = (PyArrayObject *)base->array;
  const ptrdiff_t offset = PyArray_BYTES(a) - (const char *)PyArray_DATA(memory);
  const npy_intp size = PyArray_ITEMSIZE(a);
  if (size != PyArray_ITEMSIZE(memory) || PyArray_TYPE(a) != PyArray_TYPE(memory) || offset % size ||
      !base->has_strides)
    return trace_refuse(DG_UNSUPPORTED_INDEX, "take a copy first: np.copy(x)",
                        "this view of an array that holds traced values has another dtype than the array");
  struct hlo_instr shape = {.shape = hlo_shape_array(tr->a, base->dtype, PyArray_NDIM(a), PyArray_DIMS(a))};
  struct tensor *t = tensor_like(tr, a, &shape); /* its value is computed when it is read */
  const bool ok = t && view_link_strides(tr, t, base, offset / size, !PyArray_ISWRITEABLE(a)) && turn(tr, array, t);
  if (t)
    t->seen = base->version - 1;
  Py_XDECREF(t);
  return ok;
}

/* Makes views of an array that were taken before it became a tensor views of the tensor. */
static bool adopt_views(struct tracer *tr, PyObject *owner) {
  bool ok = true;
  for (Py_ssize_t i = 0; ok && i < PyList_GET_SIZE(tr->array_views); i++) {
    PyObject *o = PyWeakref_GetObject(PyList_GET_ITEM(tr->array_views, i));
    if (o && o != Py_None && is_plain_array(o) && PyArray_BASE((PyArrayObject *)o) == owner) {
      Py_INCREF(o);
      ok = become_view(tr, o, owner);
      Py_DECREF(o);
    }
  }
  return ok;
}

PyObject *array_become(struct tracer *tr, PyObject *array) {
  if (traced_array_check(array))
    return traced_array_tensor(array);
  PyObject *owner = owner_of(array);
  if (!check_kind(array))
    return NULL;
  if (!traced_array_check(owner) && !(become_owner(tr, owner, NULL) && adopt_views(tr, owner)))
    return NULL;
  return traced_array_check(array) || become_view(tr, array, owner) ? traced_array_tensor(array) : NULL;
}

bool array_become_value(struct tracer *tr, PyObject *array, hlo_val v) {
  if (!traced_array_check(array) && owner_of(array) == array)
    return become_owner(tr, array, v) && adopt_views(tr, array);
  PyObject *t = array_become(tr, array);
  return t && tensor_val(tr, t) && loop_may_write(tr, (struct tensor *)t) &&
         tensor_store(tr, (struct tensor *)t, v, true);
}

/* ---- from arrays to tensors -------------------------------------------------------------------------------------- */

PyObject *array_tensor(struct tracer *tr, PyObject *o) {
  if (traced_array_check(o))
    return traced_array_tensor(o);
  if (!PyArray_Check(o))
    return NULL;
  if (is_plain_array(o) && PyArray_BASE((PyArrayObject *)o) && traced_array_check(PyArray_BASE((PyArrayObject *)o)) &&
      PyArray_TYPE((PyArrayObject *)o) != NPY_OBJECT)
    return array_become(tr, o);
  if (PyArray_TYPE((PyArrayObject *)o) == NPY_OBJECT && PyArray_NDIM((PyArrayObject *)o) == 0) {
    PyObject *held = *(PyObject **)PyArray_DATA((PyArrayObject *)o); /* np.asarray(out) */
    return held && tensor_check(held) ? held : NULL;
  }
  return NULL;
}

static bool has_any(struct tracer *tr, PyObject *o) {
  if (!PyList_CheckExact(o) && !PyTuple_CheckExact(o))
    return array_tensor(tr, o) || PyErr_Occurred();
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); i++)
    if (has_any(tr, PySequence_Fast_GET_ITEM(o, i)))
      return true;
  return false;
}

PyObject *array_unwrap(struct tracer *tr, PyObject *o) {
  if (PyList_GET_SIZE(tr->arrays) == 0 || !has_any(tr, o))
    return Py_NewRef(o);
  PyObject *t = array_tensor(tr, o);
  if (t || PyErr_Occurred())
    return Py_XNewRef(t);
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  PyObject *copy = PyList_CheckExact(o) ? PyList_New(n) : PyTuple_New(n);
  for (Py_ssize_t i = 0; copy && i < n; i++) {
    PyObject *item = array_unwrap(tr, PySequence_Fast_GET_ITEM(o, i));
    if (!item)
      Py_CLEAR(copy);
    else if (PyList_CheckExact(o))
      PyList_SET_ITEM(copy, i, item);
    else
      PyTuple_SET_ITEM(copy, i, item);
  }
  return copy;
}

/* ---- indexing NumPy's arrays while a trace runs ------------------------------------------------------------------ */

static bool is_symbol(PyObject *o) {
  return tensor_check(o) || loop_index_check(o) || traced_array_check(o);
}

/* True if something in the key or value is traced. */
static bool has_symbol(PyObject *o) {
  if (PySlice_Check(o)) {
    PySliceObject *s = (PySliceObject *)o;
    return is_symbol(s->start) || is_symbol(s->stop) || is_symbol(s->step);
  }
  bool any = is_symbol(o);
  if (PyTuple_CheckExact(o) || PyList_CheckExact(o))
    for (Py_ssize_t i = 0; !any && i < PySequence_Fast_GET_SIZE(o); i++)
      any = has_symbol(PySequence_Fast_GET_ITEM(o, i));
  return any;
}

/* True if a plain array is a view of one that has become a tensor. */
static bool is_stale(PyObject *array) {
  PyObject *base = PyArray_BASE((PyArrayObject *)array);
  return base && traced_array_check(base);
}

/* Stores a weak reference to a view, so that adopt_views finds it.  Returns the view. */
static PyObject *note_view(PyObject *view) {
  PyObject *list = tracer_now->array_views;
  if (!view || !is_plain_array(view) || !PyArray_BASE((PyArrayObject *)view))
    return view;
  if (PyList_GET_SIZE(list) >= tracer_now->views_limit) { /* remove views that no longer exist */
    Py_ssize_t n = 0;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); i++)
      if (PyWeakref_GetObject(PyList_GET_ITEM(list, i)) != Py_None) {
        PyObject *kept = Py_NewRef(PyList_GET_ITEM(list, i));
        if (PyList_SetItem(list, n++, kept) < 0)
          PyErr_Clear();
      }
    if (PyList_SetSlice(list, n, PyList_GET_SIZE(list), NULL) < 0)
      PyErr_Clear();
    tracer_now->views_limit = 2 * n + 64;
  }
  PyObject *ref = PyWeakref_NewRef(view, NULL);
  if (!ref || PyList_Append(list, ref) < 0)
    Py_CLEAR(view);
  Py_XDECREF(ref);
  return view;
}

/* T[key] with a traced key: T becomes a constant. */
static PyObject *get_from_table(PyObject *array, PyObject *key) {
  struct tracer *tr = tracer_enter();
  struct operand x;
  if (!tr || !operand_read(tr, array, &x))
    return NULL;
  PyObject *t = tensor_wrap(tr, operand_array(tr, &x)), *r = t ? tensor_get_item(t, key) : NULL;
  operand_clear(&x);
  Py_XDECREF(t);
  return r;
}

static PyObject *get_item(PyObject *array, PyObject *key) {
  if (!tracer_now || !is_plain_array(array))
    return numpy_mapping.mp_subscript(array, key);
  if (is_stale(array)) {
    PyObject *t = array_become(tracer_now, array);
    return t ? tensor_get_item(t, key) : NULL;
  }
  if (has_symbol(key))
    return get_from_table(array, key);
  return note_view(numpy_mapping.mp_subscript(array, key));
}

static PyObject *get_row(PyObject *array, Py_ssize_t i) {
  return tracer_now && is_plain_array(array) ? note_view(numpy_sequence.sq_item(array, i))
                                             : numpy_sequence.sq_item(array, i);
}

/* Calls a method of an array, and notes the view that it returns. */
static PyObject *call_noted(PyObject *method, PyObject *args, PyObject *kw) {
  PyObject *r = PyObject_Call(method, args, kw);
  return tracer_now ? note_view(r) : r;
}
static PyMethodDef noted_def = {"view", PYFUNC(call_noted), METH_VARARGS | METH_KEYWORDS, NULL};

static bool makes_views(PyObject *name) {
  static const char *const methods[] = {"reshape", "ravel", "transpose", "swapaxes", "squeeze", "diagonal", "view"};
  for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
    if (PyUnicode_CompareWithASCIIString(name, methods[i]) == 0)
      return true;
  return false;
}

static PyObject *get_attr(PyObject *array, PyObject *name) {
  if (!tracer_now || !is_plain_array(array) || !PyUnicode_Check(name) || PyUnicode_READ_CHAR(name, 0) == '_')
    return numpy_getattr(array, name);
  if (is_stale(array)) {
    PyObject *t = array_become(tracer_now, array);
    return t ? PyObject_GetAttr(t, name) : NULL;
  }
  PyObject *r = numpy_getattr(array, name);
  if (r && PyArray_Check(r))
    return note_view(r);
  if (r && makes_views(name))
    Py_SETREF(r, PyCFunction_New(&noted_def, r));
  return r;
}

static int set_item(PyObject *array, PyObject *key, PyObject *value) {
  if (!tracer_now || !value || !PyArray_Check(array) || PyArray_TYPE((PyArrayObject *)array) == NPY_OBJECT ||
      (!is_stale(array) && !has_symbol(value) && !has_symbol(key)))
    return numpy_mapping.mp_ass_subscript(array, key, value);
  struct tracer *tr = tracer_enter();
  PyObject *t = array_become(tr, array);
  return t ? tensor_set_item(t, key, value) : -1;
}

bool array_trace_begin(struct tracer *tr) {
  tr->arrays = PyList_New(0);
  tr->array_views = PyList_New(0);
  tr->views_limit = 64;
  tr->memory_before = array_enter_loop(NULL);
  if (!tr->arrays || !tr->array_views || !tr->memory_before)
    return false;
  numpy_mapping = *PyArray_Type.tp_as_mapping;
  numpy_sequence = *PyArray_Type.tp_as_sequence;
  PyArray_Type.tp_as_mapping->mp_subscript = get_item;
  PyArray_Type.tp_as_mapping->mp_ass_subscript = set_item;
  PyArray_Type.tp_as_sequence->sq_item = get_row;
  numpy_getattr = PyArray_Type.tp_getattro;
  PyArray_Type.tp_getattro = get_attr;
  PyType_Modified(&PyArray_Type); /* the interpreter caches methods that it has looked up */
  return true;
}

void array_trace_end(struct tracer *tr) {
  PyObject *type, *exc, *tb;
  PyErr_Fetch(&type, &exc, &tb);
  if (numpy_mapping.mp_subscript) {
    *PyArray_Type.tp_as_mapping = numpy_mapping;
    *PyArray_Type.tp_as_sequence = numpy_sequence;
    PyArray_Type.tp_getattro = numpy_getattr;
    PyType_Modified(&PyArray_Type);
    numpy_mapping = (PyMappingMethods){0};
  }
  for (Py_ssize_t i = tr->arrays ? PyList_GET_SIZE(tr->arrays) : 0; i-- > 0;) {
    PyObject *o = PyWeakref_GetObject(PyList_GET_ITEM(tr->arrays, i));
    if (o && o != Py_None && traced_array_check(o))
      turn_back(o);
  }
  Py_CLEAR(tr->arrays);
  Py_CLEAR(tr->array_views);
  array_leave_loop(tr->memory_before);
  PyErr_Restore(type, exc, tb);
}
