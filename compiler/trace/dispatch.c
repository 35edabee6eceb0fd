/* dispatch: finds the function that records a NumPy callable.
 *
 * One table (ops.def) serves __array_ufunc__, __array_function__, the operators and the methods.  Callables are found
 * by identity.  A callable that is not in the table is refused with the name that a user would write.
 */
#include <assert.h>
#include <string.h>

#include "trace/array.h"
#include "trace/compose.h"
#include "trace/index.h"
#include "trace/ranges.h"
#include "trace/refuse.h"
#include "trace/trace.h"
#include "trace/view.h"

const struct op_def op_table[OP_COUNT] = {
#define OP_ARG_N(number) {.n = number}
#define OP_ARG_UNARY(f) {.unary = unary_##f}
#define OP_ARG_BINARY(f, rule) \
  { \
    .binary = { binary_##f, binary_as_##rule } \
  }
#define TRACE_OP(id, name, numpy, method, kind, call, arg) {name, numpy, method, call, OP_ARG_##arg, kind},
#include "trace/ops.def"
#undef TRACE_OP
};

struct tracer *tracer_now;
static PyObject *by_callable; /* NumPy callable -> index in op_table */

/* Adds the callable at a path below numpy ("linalg.norm") to by_callable. */
static bool add_path(PyObject *numpy, const char *path, size_t len, int index) {
  PyObject *o = Py_NewRef(numpy), *i = PyLong_FromLong(index);
  for (const char *p = path, *end = path + len; o && p < end;) {
    const char *dot = memchr(p, '.', (size_t)(end - p));
    size_t n = (size_t)((dot ? dot : end) - p);
    PyObject *name = PyUnicode_FromStringAndSize(p, (Py_ssize_t)n);
    PyObject *next = name ? PyObject_GetAttr(o, name) : NULL;
    Py_XDECREF(name);
    Py_SETREF(o, next);
    p += n + 1;
  }
  bool ok = o && i && PyDict_SetItem(by_callable, o, i) == 0;
  Py_XDECREF(o);
  Py_XDECREF(i);
  return ok;
}

/* np.take(T, i) looks for __array_function__ in T and out, but not in the indices.  If T is a NumPy array, it would
 * convert a traced i.  NumPy's dispatchers are Python functions, so the code of those listed here is replaced by code
 * that also returns this argument. */
static bool ask_more_arguments(void) {
  static const struct {
    const char *module, *name, *source;
  } all[] = {{"numpy._core.fromnumeric", "_take_dispatcher",
              "def _take_dispatcher(a, indices, axis=None, out=None, mode=None):\n    return (a, out, indices)\n"},
             {"numpy.lib._index_tricks_impl", "_fill_diagonal_dispatcher",
              "def _fill_diagonal_dispatcher(a, val, wrap=None):\n    return (a, val)\n"}};
  bool ok = true;
  for (size_t i = 0; ok && i < sizeof all / sizeof *all; i++) {
    PyObject *scope = PyDict_New(), *module = PyImport_ImportModule(all[i].module);
    PyObject *theirs = module ? PyObject_GetAttrString(module, all[i].name) : NULL;
    PyObject *done = scope ? PyRun_String(all[i].source, Py_file_input, scope, scope) : NULL;
    PyObject *ours = done ? PyDict_GetItemString(scope, all[i].name) : NULL;
    PyObject *code = ours ? PyObject_GetAttrString(ours, "__code__") : NULL;
    ok = theirs && code && PyObject_SetAttrString(theirs, "__code__", code) == 0;
    Py_XDECREF(code);
    Py_XDECREF(done);
    Py_XDECREF(theirs);
    Py_XDECREF(module);
    Py_XDECREF(scope);
  }
  return ok;
}

bool dispatch_init(void) {
  PyObject *numpy = PyImport_ImportModule("numpy");
  by_callable = PyDict_New();
  bool ok = numpy && by_callable;
  for (int i = 0; ok && i < OP_COUNT; i++)
    for (const char *p = op_table[i].numpy; ok && *p;) {
      size_t n = strcspn(p, " ");
      ok = add_path(numpy, p, n, i);
      p += n + (p[n] == ' ');
    }
  Py_XDECREF(numpy);
  return ok && ask_more_arguments();
}

static const struct op_def *find_op(PyObject *callable) {
  PyObject *i = PyDict_GetItemWithError(by_callable, callable);
  if (!i)
    PyErr_Clear();
  return i ? &op_table[PyLong_AsLong(i)] : NULL;
}

/* ---- running one operation ----------------------------------------------------------------------------- */

struct tracer *tracer_enter(void) {
  struct tracer *tr = tracer_now;
  if (!tr)
    return trace_refuse(DG_BAD_ARGUMENT, "a tensor only exists while its kernel is traced: do not keep it in a global",
                        "a traced tensor was used outside of its kernel");
  tr->b.locs = src_locs_one(tr->a, ranges_here_in_round(tr->ranges, tr->base));
  return tr;
}

void op_raise(struct tracer *tr, enum diag_code code) {
  if (!PyErr_Occurred() && tr->b.err.code)
    trace_refuse(tr->b.err.code == ST_INPUT ? code : DG_INTERNAL, NULL, "%s", tr->b.err.text);
  if (!PyErr_Occurred())
    trace_refuse(DG_INTERNAL, NULL, "an operation failed without saying why");
  tr->b.err = (struct error){0};
  refuse_adopt();
}

static bool too_many(const struct tracer *tr) {
  if (tr->b.computation->n_instrs <= TRACE_OPS_MAX)
    return false;
  trace_refuse(DG_TOO_MANY_OPS, "loops over traced values are unrolled: use whole-array operations instead",
               "the kernel traces to more than %d operations", TRACE_OPS_MAX);
  return true;
}

/* Checks an operation's result and the builder's error.  Takes ownership of the result. */
static PyObject *op_end(struct tracer *tr, PyObject *r) {
  if (!r || tr->b.err.code) {
    Py_CLEAR(r);
    op_raise(tr, DG_SHAPE_MISMATCH);
    return NULL;
  }
  assert(!PyErr_Occurred());
  if (too_many(tr))
    Py_CLEAR(r);
  return r;
}

/* Returns the keywords with tensors in place of traced arrays, a new reference; NULL with an exception. */
static PyObject *unwrap_keywords(struct tracer *tr, PyObject *kw) {
  PyObject *key, *value, *copy = PyDict_New();
  Py_ssize_t pos = 0;
  bool ok = copy;
  while (ok && PyDict_Next(kw, &pos, &key, &value)) {
    PyObject *v = array_unwrap(tr, value);
    ok = v && PyDict_SetItem(copy, key, v) == 0;
    Py_XDECREF(v);
  }
  if (!ok)
    Py_CLEAR(copy);
  return copy;
}

PyObject *op_call(const struct op_def *op, PyObject *args, PyObject *kw) {
  struct tracer *tr = tracer_enter();
  if (!tr)
    return NULL;
  PyObject *plain = array_unwrap(tr, args), *plain_kw = plain && kw ? unwrap_keywords(tr, kw) : NULL, *r = NULL;
  if (plain && (plain_kw || !kw)) {
    const struct op_def *outer = tr->op;
    tr->op = op;
    r = op_end(tr, op->call(tr, op, plain, plain_kw));
    tr->op = outer;
    if (r)
      view_link_result(tr, op, plain, plain_kw, r);
  }
  Py_XDECREF(plain);
  Py_XDECREF(plain_kw);
  return r;
}

PyObject *op_call2(enum op_id id, PyObject *x, PyObject *y) {
  PyObject *args = PyTuple_Pack(2, x, y);
  PyObject *r = args ? op_call(&op_table[id], args, NULL) : NULL;
  Py_XDECREF(args);
  return r;
}

PyObject *op_call1(enum op_id id, PyObject *x) {
  PyObject *args = PyTuple_Pack(1, x);
  PyObject *r = args ? op_call(&op_table[id], args, NULL) : NULL;
  Py_XDECREF(args);
  return r;
}

PyObject *op_compare2(int comparison, PyObject *x, PyObject *y) {
  static const enum op_id ids[] = {[Py_LT] = OP_LESS,      [Py_LE] = OP_LESS_EQUAL, [Py_EQ] = OP_EQUAL,
                                   [Py_NE] = OP_NOT_EQUAL, [Py_GT] = OP_GREATER,    [Py_GE] = OP_GREATER_EQUAL};
  return op_call2(ids[comparison], x, y);
}

/* ---- refusing by name ---------------------------------------------------------------------------------- */

/* Hints for unsupported functions, by the last part of the name. */
static const char *const hints[][2] = {
    {"svd", "decompositions do not run on the device: compute it on the host and pass the factors in"},
    {"inv", "compute the inverse on the host and pass it in"},
    {"solve", "solve on the host and pass the result in"},
    {"nonzero", "the result's size depends on data: use np.where(condition, x, y)"},
    {"unique", "the result's size depends on data"},
    {"item", "a traced tensor has no value yet: return it from the kernel"},
    {"tolist", "a traced tensor has no value yet: return it from the kernel"},
    {"view", "use .astype to convert values"},
    {"fill", "use x[...] = value"},
    {"det", "compute it on the host and pass it in"},
    {"eig", "decompositions do not run on the device: compute it on the host and pass the factors in"},
    {"eigh", "decompositions do not run on the device: compute it on the host and pass the factors in"},
    {"qr", "decompositions do not run on the device: compute it on the host and pass the factors in"},
    {"cholesky", "decompositions do not run on the device: compute it on the host and pass the factors in"},
    {"pinv", "compute the inverse on the host and pass it in"},
    {"lstsq", "solve on the host and pass the result in"},
    {"argwhere", "the result's size depends on data: use np.where(condition, x, y)"},
    {"flatnonzero", "the result's size depends on data: use np.where(condition, x, y)"},
    {"extract", "the result's size depends on data: use np.where(condition, x, y)"},
    {"bincount", "use np.sum(x[:, None] == np.arange(n), axis=0)"},
    {"histogram", "use np.searchsorted with bins that rise, then np.sum(i[:, None] == np.arange(n), axis=0)"},
    {"interp", "use np.searchsorted and np.take"},
    {"convolve", "multiply by a constant band matrix"},
    {"correlate", "multiply by a constant band matrix"},
    {"cov", "use (x - mean) @ (x - mean).T / (n - 1)"},
    {"corrcoef", "use (x - mean) @ (x - mean).T and divide by the standard deviations"},
    {"nextafter", "add a multiple of np.finfo(dtype).eps"},
    {"gcd", "compute it on the host and pass it in"},
    {"lcm", "compute it on the host and pass it in"},
    {"delete", "use np.take with the indices that stay"},
    {"insert", "use slices and np.concatenate"},
    {"resize", "use np.tile and a slice"},
    {"piecewise", "use np.select"},
    {"place", "use np.copyto(x, value, where=mask)"},
    {"put", "use x[indices] = values on x.ravel()"},
    {"apply_along_axis", "call the function on whole arrays, with axis="},
    {"vectorize", "call the function on whole arrays"},
    {"gradient", "use slices: (x[2:] - x[:-2]) / 2"},
    {"trapezoid", "use np.sum((y[1:] + y[:-1]) / 2)"},
    {"block", "use np.concatenate, or np.stack"},
    {"percentile", "use np.mean, or np.max and np.min"},
    {"quantile", "use np.mean, or np.max and np.min"},
    {"partition", "use np.max, or np.argmax"},
    {"lexsort", "sort on the host"},
};

const char *dispatch_hint(const char *name) {
  for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
    if (strcmp(hints[i][0], name) == 0)
      return hints[i][1];
  return NULL;
}

/* Returns the public name of a function object ("np.linalg.svd"), as a str. */
static PyObject *public_name(PyObject *func) {
  PyObject *module = PyObject_GetAttrString(func, "__module__");
  PyErr_Clear();
  PyObject *name = PyObject_GetAttrString(func, "__name__");
  PyErr_Clear();
  const char *m = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8(module) : "numpy";
  PyObject *full = NULL;
  if (strncmp(m, "numpy", 5) == 0 && (m[5] == 0 || m[5] == '.'))
    full =
        PyUnicode_FromFormat("np%s.%S", m[5] && strncmp(m, "numpy._core", 11) != 0 ? m + 5 : "", name ? name : Py_None);
  else
    full = PyUnicode_FromFormat("%s.%S", m, name ? name : Py_None);
  Py_XDECREF(module);
  Py_XDECREF(name);
  return full;
}

static PyObject *refuse_callable(PyObject *func, const char *method) {
  PyObject *full = public_name(func);
  if (!full)
    return NULL;
  const char *text = PyUnicode_AsUTF8(full), *dot = strrchr(text, '.');
  if (method)
    trace_refuse(DG_UNSUPPORTED_OP, NULL, "%s.%s is not supported in a kernel", text, method);
  else
    trace_refuse(DG_UNSUPPORTED_OP, dispatch_hint(dot ? dot + 1 : text), "%s is not supported in a kernel", text);
  Py_DECREF(full);
  return NULL;
}

/* ---- the two protocols ---------------------------------------------------------------------------------- */

/* Writes r into out=, which is a tensor. */
static bool store_in_tensor(PyObject *out, PyObject *r) {
  struct tracer *tr = tracer_enter();
  const struct tensor *from = (struct tensor *)r, *to = (struct tensor *)out;
  if (tensor_check(r) && dtype_is_inexact(from->dtype) && dtype_kind(from->dtype) > dtype_kind(to->dtype))
    return trace_refuse(DG_DTYPE_PROMOTION, "convert the result first: .astype(…)",
                        "out=: cannot store a %s result in a %s tensor", dtype_numpy_name(from->dtype),
                        dtype_numpy_name(to->dtype));
  return tr && index_set(tr, (struct tensor *)out, Py_Ellipsis, r) == 0;
}

/* Writes r into out=, which is a NumPy array, as in `a += x` if the accumulator a starts as np.zeros.  The array
 * becomes a tensor with the value r, and keeps its shape and dtype. */
static PyObject *store_in_array(PyObject *out, PyObject *r) {
  const struct tensor *t = (struct tensor *)r;
  PyArrayObject *a = (PyArrayObject *)out;
  if (PyArray_NDIM(a) != t->rank || !hlo_dims_equal(t->rank, PyArray_DIMS(a), t->dims))
    return trace_refuse(DG_SHAPE_MISMATCH, "start the accumulator with the result's shape",
                        "the result of an in-place operation does not have the array's shape");
  const enum dtype have = dtype_narrow(dtype_from_num(PyArray_TYPE(a)));
  if (have != DT_NONE && dtype_is_inexact(t->dtype) && dtype_kind(t->dtype) > dtype_kind(have))
    return trace_refuse(DG_DTYPE_PROMOTION, "start the accumulator with the right dtype: np.zeros(shape, np.float32)",
                        "cannot store a %s result in a %s array", dtype_numpy_name(t->dtype), dtype_numpy_name(have));
  struct tracer *tr = tracer_now;
  hlo_val v = have == DT_NONE ? t->v : hlo_convert(&tr->b, t->v, have);
  if (v && array_become_value(tr, out, v))
    return Py_NewRef(out);
  op_raise(tr, DG_INTERNAL);
  return NULL;
}

/* Stores a result in out=, if it is given.  Takes ownership of the result. */
static PyObject *store_out(PyObject *out, PyObject *r) {
  PyObject *stored, *traced = r && out ? array_tensor(tracer_now, out) : NULL;
  if (!r || !out || out == Py_None)
    return r;
  if (PyErr_Occurred()) {
    Py_DECREF(r);
    return NULL;
  }
  if (tensor_check(out) || traced)
    stored = store_in_tensor(traced ? traced : out, r) ? Py_NewRef(out) : NULL;
  else if (tensor_check(r) && PyArray_Check(out))
    stored = store_in_array(out, r);
  else
    stored = Py_NewRef(r);
  Py_DECREF(r);
  return stored;
}

/* Sets *rest to the keywords without out=, or NULL if there are none, and *out to the value of out=, or NULL.  Both are
 * new references.  False with an exception. */
static bool split_out(PyObject *kw, PyObject **rest, PyObject **out) {
  *rest = *out = NULL;
  if (!kw || !PyDict_GET_SIZE(kw))
    return true;
  if (!(*rest = PyDict_Copy(kw)))
    return false;
  PyObject *o = PyDict_GetItemString(kw, "out");
  if (!o)
    return true;
  if (PyDict_DelItemString(*rest, "out") < 0)
    return false;
  *out = Py_NewRef(PyTuple_Check(o) && PyTuple_GET_SIZE(o) == 1 ? PyTuple_GET_ITEM(o, 0) : o);
  if (!PyDict_GET_SIZE(*rest))
    Py_CLEAR(*rest);
  return true;
}

PyObject *op_call_out(const struct op_def *op, PyObject *args, PyObject *kw) {
  PyObject *rest, *out;
  PyObject *r = split_out(kw, &rest, &out) ? store_out(out, op_call(op, args, rest)) : NULL;
  Py_XDECREF(out);
  Py_XDECREF(rest);
  return r;
}

/* ufunc.reduce: calls the corresponding reduction, along axis 0 by default. */
static PyObject *ufunc_reduce(const struct op_def *op, PyObject *args, PyObject *kw, PyObject *ufunc) {
  static const struct {
    enum op_id ufunc, reduction;
  } map[] = {{OP_ADD, OP_SUM},     {OP_MULTIPLY, OP_PROD},   {OP_MAXIMUM, OP_MAX},
             {OP_MINIMUM, OP_MIN}, {OP_LOGICAL_AND, OP_ALL}, {OP_LOGICAL_OR, OP_ANY}};
  for (size_t i = 0; op && i < sizeof map / sizeof *map; i++) {
    if (op != &op_table[map[i].ufunc])
      continue;
    PyObject *k = kw ? PyDict_Copy(kw) : PyDict_New();
    PyObject *zero = PyLong_FromLong(0), *r = NULL;
    bool has_axis = PyTuple_GET_SIZE(args) > 1 || (k && PyDict_GetItemString(k, "axis"));
    if (k && zero && (has_axis || PyDict_SetItemString(k, "axis", zero) == 0))
      r = op_call(&op_table[map[i].reduction], args, k);
    Py_XDECREF(k);
    Py_XDECREF(zero);
    return r;
  }
  return refuse_callable(ufunc, "reduce");
}

/* ufunc.accumulate, for the ufuncs that support it here. */
static PyObject *ufunc_accumulate(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw,
                                  PyObject *ufunc) {
  if (!tr)
    return NULL;
  if (op && (op == &op_table[OP_ADD] || op == &op_table[OP_MULTIPLY] || op == &op_table[OP_MAXIMUM] ||
             op == &op_table[OP_MINIMUM]))
    return op_end(tr, op_accumulate(tr, (enum op_id)(op - op_table), args, kw));
  return refuse_callable(ufunc, "accumulate");
}

/* ufunc.outer(a, b): a gets a last axis of size 1 for each axis of b. */
static PyObject *ufunc_outer(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw,
                             PyObject *ufunc) {
  if (!tr)
    return NULL;
  if (!op || PyTuple_GET_SIZE(args) != 2 || strcmp(op->kind, "binary") != 0)
    return refuse_callable(ufunc, "outer");
  hlo_val x = operand_alone(tr, PyTuple_GET_ITEM(args, 0)), y = operand_alone(tr, PyTuple_GET_ITEM(args, 1));
  for (int i = 0; x && y && i < y->shape.rank; i++)
    x = val_expand(tr, x, x->shape.rank);
  PyObject *a = y ? tensor_wrap(tr, x) : NULL, *pair = a ? PyTuple_Pack(2, a, PyTuple_GET_ITEM(args, 1)) : NULL;
  PyObject *r = pair ? op_call(op, pair, kw) : op_end(tr, NULL);
  Py_XDECREF(a);
  Py_XDECREF(pair);
  return r;
}

/* Calls ufunc.METHOD(*args, **kw).  op is the ufunc's entry in the table, or NULL. */
static PyObject *call_method(PyObject *ufunc, const struct op_def *op, PyObject *method, PyObject *args, PyObject *kw) {
  const char *name = PyUnicode_AsUTF8(method);
  if (!name)
    return NULL;
  if (strcmp(name, "__call__") == 0)
    return op ? op_call(op, args, kw) : refuse_callable(ufunc, NULL);
  if (strcmp(name, "reduce") == 0)
    return ufunc_reduce(op, args, kw, ufunc);
  if (strcmp(name, "accumulate") == 0)
    return ufunc_accumulate(tracer_enter(), op, args, kw, ufunc);
  if (strcmp(name, "outer") == 0)
    return ufunc_outer(tracer_enter(), op, args, kw, ufunc);
  return refuse_callable(ufunc, name);
}

/* __array_ufunc__(ufunc, method, *inputs, **kwargs) */
PyObject *dispatch_ufunc(PyObject *self, PyObject *args, PyObject *kw) {
  PyObject *rest = NULL, *out = NULL, *r = NULL;
  (void)self;
  if (PyTuple_GET_SIZE(args) < 2 || !PyUnicode_Check(PyTuple_GET_ITEM(args, 1)))
    return trace_refuse(DG_BAD_ARGUMENT, NULL, "__array_ufunc__ needs a ufunc and a method");
  PyObject *ufunc = PyTuple_GET_ITEM(args, 0), *inputs = PyTuple_GetSlice(args, 2, PyTuple_GET_SIZE(args));
  if (inputs && split_out(kw, &rest, &out))
    r = store_out(out, call_method(ufunc, find_op(ufunc), PyTuple_GET_ITEM(args, 1), inputs, rest));
  Py_XDECREF(out);
  Py_XDECREF(inputs);
  Py_XDECREF(rest);
  return r;
}

/* __array_function__(func, types, args, kwargs) */
PyObject *dispatch_function(PyObject *self, PyObject *args, PyObject *kw) {
  (void)self;
  (void)kw;
  PyObject *func, *types, *a, *k;
  if (!PyArg_ParseTuple(args, "OOO!O!:__array_function__", &func, &types, &PyTuple_Type, &a, &PyDict_Type, &k))
    return NULL;
  const struct op_def *op = find_op(func);
  return op ? op_call_out(op, a, k) : refuse_callable(func, NULL);
}
