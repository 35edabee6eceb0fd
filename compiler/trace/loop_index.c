/* loop_index: the index `i` that is passed to the body of a fori_loop.
 *
 * It is an int whose range is known while tracing, but not its value.  Sums with integers and other indices, and
 * products with integers, remain LoopIndex objects (offset + coefficient * index of a running loop + …).  So the slice
 * x[i * T : (i + 1) * T] has a known size, and every bound can be checked.  In all other arithmetic it becomes a 0-d
 * int32 tensor that adapts to the other operand as a Python int would.  Operations that need its value are refused
 * (number.c).
 */
#include <assert.h>
#include <string.h>

#include "trace/loop.h"
#include "trace/number.h"
#include "trace/ops.h"
#include "trace/refuse.h"

PyTypeObject *loop_index_type;

struct term {
  uint64_t loop; /* the loop's serial number */
  int64_t times; /* not 0 */
};
struct loop_index {
  PyObject_HEAD uint64_t serial; /* the trace's serial number */
  int n;                         /* number of terms, which are in ascending order of `loop` */
  struct term term[LOOP_NEST_MAX];
  int64_t offset;
};

static struct loop_index *make(uint64_t serial) {
  struct loop_index *x = PyObject_New(struct loop_index, loop_index_type);
  if (x) {
    x->serial = serial;
    x->n = 0;
    x->offset = 0;
  }
  return x;
}

PyObject *loop_index_new(struct tracer *tr, const struct loop *l) {
  struct loop_index *x = make(tr->serial);
  if (x)
    x->term[x->n++] = (struct term){l->serial, 1};
  return (PyObject *)x;
}

static void dealloc(PyObject *self) {
  PyTypeObject *type = Py_TYPE(self);
  PyObject_Free(self);
  Py_DECREF(type);
}

/* ---- arithmetic ------------------------------------------------------------------------------------------------ */

/* Reads an int or a LoopIndex as a sum.  Returns false without an exception for any other object. */
static bool read_side(PyObject *o, struct loop_index *out) {
  int overflow = 0;
  if (loop_index_check(o)) {
    *out = *(struct loop_index *)o;
    return true;
  }
  if (!PyLong_CheckExact(o) && !PyArray_IsScalar(o, Integer))
    return false;
  PyObject *i = PyNumber_Index(o);
  *out = (struct loop_index){.offset = i ? PyLong_AsLongLongAndOverflow(i, &overflow) : 0};
  Py_XDECREF(i);
  PyErr_Clear();
  return i && !overflow;
}

/* Sets out = x + times * y.  Returns false on overflow, or if the sum has more than LOOP_NEST_MAX terms. */
static bool combine(const struct loop_index *x, const struct loop_index *y, int64_t times, struct loop_index *out) {
  int64_t scaled;
  int i = 0, j = 0;
  assert(x->n <= LOOP_NEST_MAX && y->n <= LOOP_NEST_MAX);
  out->n = 0;
  if (__builtin_mul_overflow(y->offset, times, &scaled) || __builtin_add_overflow(x->offset, scaled, &out->offset))
    return false;
  while (i < x->n || j < y->n) {
    const bool from_x = i < x->n && (j == y->n || x->term[i].loop <= y->term[j].loop);
    const bool from_y = j < y->n && (i == x->n || y->term[j].loop <= x->term[i].loop);
    struct term t = {from_x ? x->term[i].loop : y->term[j].loop, from_x ? x->term[i].times : 0};
    if (from_y &&
        (__builtin_mul_overflow(y->term[j].times, times, &scaled) || __builtin_add_overflow(t.times, scaled, &t.times)))
      return false;
    i += from_x;
    j += from_y;
    if (!t.times)
      continue;
    if (out->n == LOOP_NEST_MAX)
      return false;
    out->term[out->n++] = t;
  }
  return true;
}

/* Returns x + times * y as an object, which is an int if no index remains in it. */
static PyObject *combined(uint64_t serial, const struct loop_index *x, const struct loop_index *y, int64_t times) {
  struct loop_index *r = make(serial);
  if (r && !combine(x, y, times, r)) {
    Py_DECREF(r);
    return trace_refuse(DG_BAD_ARGUMENT, NULL, "arithmetic on a loop's index leaves the range of integers");
  }
  if (r && !r->n) {
    PyObject *i = PyLong_FromLongLong(r->offset);
    Py_DECREF(r);
    return i;
  }
  return (PyObject *)r;
}

static uint64_t serial_of(PyObject *x, PyObject *y) {
  return ((struct loop_index *)(loop_index_check(x) ? x : y))->serial;
}

bool loop_index_add(PyObject *x, PyObject *y, int64_t times, PyObject **out) {
  struct loop_index a, b;
  if (!(loop_index_check(x) || loop_index_check(y)) || !read_side(x, &a) || !read_side(y, &b))
    return false;
  *out = combined(serial_of(x, y), &a, &b, times);
  return true;
}

bool loop_index_multiply(PyObject *x, PyObject *y, PyObject **out) {
  const struct loop_index zero = {.n = 0};
  struct loop_index a, b;
  if (!(loop_index_check(x) || loop_index_check(y)) || !read_side(x, &a) || !read_side(y, &b) || (a.n && b.n))
    return false;
  *out = a.n ? combined(serial_of(x, y), &zero, &a, b.offset) : combined(serial_of(x, y), &zero, &b, a.offset);
  return true;
}

static PyObject *repr(PyObject *self) {
  const struct loop_index *x = (const struct loop_index *)self;
  PyObject *s = PyUnicode_FromFormat("<loop index %lld", (long long)x->offset);
  for (int k = 0; s && k < x->n; k++) {
    PyObject *more =
        PyUnicode_FromFormat("%U + %lld * i%llu", s, (long long)x->term[k].times, (unsigned long long)x->term[k].loop);
    Py_SETREF(s, more);
  }
  if (s)
    Py_SETREF(s, PyUnicode_FromFormat("%U>", s));
  return s;
}

/* ---- what the tracer asks for
 * --------------------------------------------------------------------------------------- */

static const struct loop *find_loop(struct tracer *tr, const struct loop_index *x, const struct term *t) {
  const struct loop *l = x->serial == tr->serial ? tr->loop : NULL;
  while (l && l->serial != t->loop)
    l = l->outer;
  if (!l)
    trace_refuse(DG_BAD_ARGUMENT, "what a loop computes leaves it as the carried value",
                 "the index of a fori_loop is used outside of its body");
  return l;
}

bool loop_index_range(struct tracer *tr, PyObject *o, int64_t *low, int64_t *high) {
  const struct loop_index *x = (const struct loop_index *)o;
  __int128 lo = x->offset, hi = x->offset;
  for (int k = 0; k < x->n; k++) {
    const struct loop *l = find_loop(tr, x, &x->term[k]);
    if (!l)
      return false;
    const __int128 first = (__int128)x->term[k].times * l->lower, last = (__int128)x->term[k].times * (l->upper - 1);
    lo += first < last ? first : last;
    hi += first < last ? last : first;
  }
  if (lo < INT32_MIN || hi > INT32_MAX) {
    trace_refuse(DG_BAD_ARGUMENT, NULL, "arithmetic on a loop's index leaves the range of int32");
    return false;
  }
  *low = (int64_t)lo;
  *high = (int64_t)hi;
  return true;
}

hlo_val loop_index_val(struct tracer *tr, PyObject *o) {
  const struct loop_index *x = (const struct loop_index *)o;
  hlo_val sum = NULL;
  int64_t low, high;
  if (!loop_index_range(tr, o, &low, &high))
    return NULL;
  for (int k = 0; k < x->n; k++) {
    const struct loop *l = find_loop(tr, x, &x->term[k]);
    hlo_val v = l ? loop_see(tr, l->index) : NULL;
    if (v && x->term[k].times != 1)
      v = hlo_binary(&tr->b, HLO_MULTIPLY, v, hlo_scalar(&tr->b, DT_I32, (double)x->term[k].times));
    if (!v)
      return NULL;
    sum = sum ? hlo_binary(&tr->b, HLO_ADD, sum, v) : v;
  }
  assert(sum); /* an index without terms is an int */
  return x->offset ? hlo_binary(&tr->b, HLO_ADD, sum, hlo_scalar(&tr->b, DT_I32, (double)x->offset)) : sum;
}

bool loop_index_distance(PyObject *start, PyObject *stop, int64_t *out) {
  struct loop_index a, b, d;
  if (!read_side(start, &a) || !read_side(stop, &b) || !combine(&b, &a, -1, &d) || d.n)
    return false;
  *out = d.offset;
  return true;
}

static PyMethodDef methods[] = {{"__array_ufunc__", PYFUNC(dispatch_ufunc), METH_VARARGS | METH_KEYWORDS, NULL},
                                {"__array_function__", PYFUNC(dispatch_function), METH_VARARGS | METH_KEYWORDS, NULL},
                                {"__array__", PYFUNC(number_array), METH_VARARGS | METH_KEYWORDS, NULL},
                                {NULL, NULL, 0, NULL}};

static PyType_Slot slots[] = {NUMBER_SLOTS,
                              {Py_tp_dealloc, dealloc},
                              {Py_tp_repr, repr},
                              {Py_tp_hash, PyObject_HashNotImplemented},
                              {Py_tp_methods, methods},
                              {0, NULL}};

bool loop_index_init(PyObject *module) {
  static PyType_Spec spec = {.name = "nkx.LoopIndex",
                             .basicsize = sizeof(struct loop_index),
                             .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
                             .slots = slots};
  loop_index_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
  return loop_index_type && PyModule_AddObjectRef(module, "LoopIndex", (PyObject *)loop_index_type) == 0;
}
