/* loop_index: the `i` that the body of a fori_loop is given.
 *
 * It stands for an int whose value is not known while tracing, but whose range is.  Sums with integers and other
 * indices, and products with integers, stay such objects (offset + coefficient * index of a running loop + …), so that
 * x[i * T : (i + 1) * T] has a size and every bound can be checked.  In all other arithmetic it becomes a 0-d int32
 * tensor that adapts to the other operand as a Python int would.  Whatever would need the value is refused.
 */
#include "trace/tracer.h"

#include <string.h>

PyTypeObject *loop_index_type;

struct term {
  uint64_t loop;
  int64_t times;
};
struct loop_index {
  PyObject_HEAD uint64_t serial; /* of its trace */
  int n;                         /* terms, by ascending loop, none with 0 times */
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

/* An int or a LoopIndex as one of them; false (without an exception) for anything else. */
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

/* out = x + times * y; false on overflow. */
static bool combine(const struct loop_index *x, const struct loop_index *y, int64_t times, struct loop_index *out) {
  int64_t scaled;
  int i = 0, j = 0;
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

/* An int again when nothing of an index is left. */
static PyObject *combined(uint64_t serial, const struct loop_index *x, const struct loop_index *y, int64_t times) {
  struct loop_index *r = make(serial);
  if (r && !combine(x, y, times, r)) {
    Py_DECREF(r);
    return refuse(DG_BAD_ARGUMENT, NULL, "arithmetic on a loop's index leaves the range of integers");
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

static PyObject *nb_add(PyObject *x, PyObject *y) {
  struct loop_index a, b;
  return read_side(x, &a) && read_side(y, &b) ? combined(serial_of(x, y), &a, &b, 1) : op_call2(OP_ADD, x, y);
}

static PyObject *nb_subtract(PyObject *x, PyObject *y) {
  struct loop_index a, b;
  return read_side(x, &a) && read_side(y, &b) ? combined(serial_of(x, y), &a, &b, -1) : op_call2(OP_SUBTRACT, x, y);
}

static PyObject *nb_multiply(PyObject *x, PyObject *y) {
  const struct loop_index zero = {.n = 0};
  struct loop_index a, b;
  if (!read_side(x, &a) || !read_side(y, &b) || (a.n && b.n))
    return op_call2(OP_MULTIPLY, x, y);
  return a.n ? combined(serial_of(x, y), &zero, &a, b.offset) : combined(serial_of(x, y), &zero, &b, a.offset);
}

static PyObject *nb_negative(PyObject *x) {
  const struct loop_index zero = {.n = 0};
  return combined(serial_of(x, x), &zero, (struct loop_index *)x, -1);
}

#define AS_TENSOR(slot, id) \
  static PyObject *slot(PyObject *x, PyObject *y) { \
    return op_call2(id, x, y); \
  }
AS_TENSOR(nb_divide, OP_DIVIDE)
AS_TENSOR(nb_floor_divide, OP_FLOOR_DIVIDE)
AS_TENSOR(nb_remainder, OP_REMAINDER)

static PyObject *nb_power(PyObject *x, PyObject *y, PyObject *modulus) {
  (void)modulus;
  return op_call2(OP_POWER, x, y);
}

static PyObject *richcompare(PyObject *x, PyObject *y, int op) {
  return op_compare2(op, x, y);
}

/* ---- what would need the value ---------------------------------------------------------------------------------- */

static int nb_bool(PyObject *self) {
  (void)self;
  refuse(DG_TRACED_BOOL, "use np.where(i == 0, a, b); a Python `if` is decided while tracing",
         "the truth of a fori_loop's index is not known while tracing: the body is traced once for all iterations");
  return -1;
}

static PyObject *refuse_value(const char *what) {
  return refuse(DG_TRACED_VALUE, "index a tensor with it, or use a Python for loop, which is unrolled",
                "a fori_loop's index cannot be %s: the body is traced once for all iterations", what);
}
static PyObject *nb_int(PyObject *self) {
  (void)self;
  return refuse_value("converted to a Python int");
}
static PyObject *nb_float(PyObject *self) {
  (void)self;
  return refuse_value("converted to a Python float");
}
static PyObject *nb_index(PyObject *self) {
  (void)self;
  return refuse_value("used as a Python index or size");
}
static PyObject *m_array(PyObject *self, PyObject *args, PyObject *kw) {
  (void)self, (void)args, (void)kw;
  return refuse_value("converted to a NumPy array");
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

/* ---- what the tracer asks --------------------------------------------------------------------------------------- */

static const struct loop *find_loop(struct tracer *tr, const struct loop_index *x, const struct term *t) {
  const struct loop *l = x->serial == tr->serial ? tr->loop : NULL;
  while (l && l->serial != t->loop)
    l = l->outer;
  if (!l)
    refuse(DG_BAD_ARGUMENT, "what a loop computes leaves it as the carried value",
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
    refuse(DG_BAD_ARGUMENT, NULL, "arithmetic on a loop's index leaves the range of int32");
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
  return x->offset ? hlo_binary(&tr->b, HLO_ADD, sum, hlo_scalar(&tr->b, DT_I32, (double)x->offset)) : sum;
}

bool loop_index_distance(PyObject *start, PyObject *stop, int64_t *out) {
  struct loop_index a, b, d;
  if (!read_side(start, &a) || !read_side(stop, &b) || !combine(&b, &a, -1, &d) || d.n)
    return false;
  *out = d.offset;
  return true;
}

bool loop_index_init(PyObject *module) {
  static PyMethodDef methods[] = {{"__array_ufunc__", PYFUNC(dispatch_ufunc), METH_VARARGS | METH_KEYWORDS, NULL},
                                  {"__array_function__", PYFUNC(dispatch_function), METH_VARARGS | METH_KEYWORDS, NULL},
                                  {"__array__", PYFUNC(m_array), METH_VARARGS | METH_KEYWORDS, NULL},
                                  {NULL, NULL, 0, NULL}};
  static PyType_Slot slots[] = {{Py_tp_dealloc, dealloc},
                                {Py_tp_repr, repr},
                                {Py_tp_hash, PyObject_HashNotImplemented},
                                {Py_tp_richcompare, richcompare},
                                {Py_tp_methods, methods},
                                {Py_nb_add, nb_add},
                                {Py_nb_subtract, nb_subtract},
                                {Py_nb_multiply, nb_multiply},
                                {Py_nb_true_divide, nb_divide},
                                {Py_nb_floor_divide, nb_floor_divide},
                                {Py_nb_remainder, nb_remainder},
                                {Py_nb_power, nb_power},
                                {Py_nb_negative, nb_negative},
                                {Py_nb_bool, nb_bool},
                                {Py_nb_int, nb_int},
                                {Py_nb_float, nb_float},
                                {Py_nb_index, nb_index},
                                {0, NULL}};
  static PyType_Spec spec = {.name = "nkx.LoopIndex",
                             .basicsize = sizeof(struct loop_index),
                             .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
                             .slots = slots};
  loop_index_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
  return loop_index_type && PyModule_AddObjectRef(module, "LoopIndex", (PyObject *)loop_index_type) == 0;
}
