/* values: inputs for the numeric check, and NumPy's results.
 *
 * The oracle is the user's function, called with NumPy arrays.  No tensor is involved, and knobs do nothing.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "hlo/literal.h"
#include "trace/args.h"
#include "trace/operand.h"
#include "trace/program.h"
#include "trace/refuse.h"

/* ---- inputs --------------------------------------------------------------------------------------------------- */

static uint64_t next_random(uint64_t *state) { /* splitmix64 */
  uint64_t z = *state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

enum { RANDOM_INT_MAX = 4 }; /* integers are less than this, so that they can index most axes */

/* Returns a random array of float32 or int32, which NumPy converts to the input's dtype. */
static PyObject *random_array(enum dtype t, int rank, const int64_t *dims, uint64_t *state) {
  bool is_float = dtype_is_float(t);
  PyObject *a = PyArray_SimpleNew(rank, (npy_intp *)(uintptr_t)dims, is_float ? NPY_FLOAT32 : NPY_INT32);
  if (!a)
    return NULL;
  npy_intp n = PyArray_SIZE((PyArrayObject *)a);
  void *data = PyArray_DATA((PyArrayObject *)a);
  for (npy_intp i = 0; i < n; i++) {
    uint64_t r = next_random(state);
    if (is_float)
      ((float *)data)[i] = (float)(((double)(r >> 11) + 0.5) * 0x1p-52 - 1.0);
    else
      ((int32_t *)data)[i] = (int32_t)((r >> 33) % (t == DT_BOOL ? 2 : RANDOM_INT_MAX));
  }
  return a;
}

/* Returns the array in dtype t and C order, a new reference. */
static PyObject *convert(PyObject *o, enum dtype t) {
  PyObject *a = PyArray_FROM_O(o);
  PyObject *c =
      a ? PyArray_FromArray((PyArrayObject *)a, dtype_descr(t),
                            NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ALIGNED | NPY_ARRAY_NOTSWAPPED | NPY_ARRAY_FORCECAST)
        : NULL;
  Py_XDECREF(a);
  return c;
}

static PyObject *load_npz(struct trace_program *program) {
  PyObject *numpy = PyImport_ImportModule("numpy");
  PyObject *load = numpy ? PyObject_GetAttrString(numpy, "load") : NULL;
  PyObject *args = Py_BuildValue("(s)", program->rq->inputs_npz),
           *kw = Py_BuildValue("{s:O}", "allow_pickle", Py_False);
  PyObject *z = load && args && kw ? PyObject_Call(load, args, kw) : NULL;
  Py_XDECREF(numpy);
  Py_XDECREF(load);
  Py_XDECREF(args);
  Py_XDECREF(kw);
  return z;
}

/* Returns an array of bytes without a type name as an array of dtype t (program.h).  Takes ownership of o. */
static PyObject *with_dtype(PyObject *o, enum dtype t) {
  PyArrayObject *a = (PyArrayObject *)o;
  if (!PyArray_Check(o) || PyArray_TYPE(a) != NPY_VOID || PyDataType_HASFIELDS(PyArray_DESCR(a)))
    return o;
  if (t == DT_NONE && PyArray_ITEMSIZE(a) == 2)
    t = DT_BF16;
  if (t == DT_NONE || (size_t)PyArray_ITEMSIZE(a) != dtype_size(t))
    return o;
  PyObject *view = PyArray_View(a, dtype_descr(t), NULL);
  Py_DECREF(o);
  return view;
}

PyObject *values_npz_array(struct trace_program *program, const char *name, enum dtype t) {
  if (!program->rq->inputs_npz || (!program->npz && !(program->npz = load_npz(program))))
    return NULL;
  PyObject *key = PyUnicode_FromString(name), *o = NULL;
  if (key && PySequence_Contains(program->npz, key) > 0)
    o = PyObject_GetItem(program->npz, key);
  Py_XDECREF(key);
  return o ? with_dtype(o, t) : NULL;
}

static bool fits_param(const struct kparam *p, PyObject *a, struct trace_program *program) {
  PyArrayObject *x = (PyArrayObject *)a;
  char want[DIMS_TEXT_MAX], have[DIMS_TEXT_MAX];
  if (PyArray_NDIM(x) == p->rank && memcmp(PyArray_DIMS(x), p->dims, (size_t)p->rank * sizeof *p->dims) == 0)
    return true;
  diag_add(program->ds, DS_ERROR, DG_BAD_INPUTS, NULL, "the array \"%s\" has shape %s; the kernel was traced with %s",
           p->name, dims_text(PyArray_NDIM(x), PyArray_DIMS(x), have), dims_text(p->rank, p->dims, want));
  return false;
}

static PyObject *input_array(struct trace_program *program, const struct kparam *p, uint64_t *state) {
  PyObject *o = values_npz_array(program, p->name, p->dtype);
  if (!o && PyErr_Occurred())
    return NULL;
  if (!o)
    o = p->array ? Py_NewRef(p->array) : random_array(p->dtype, p->rank, p->dims, state);
  PyObject *c = o ? convert(o, p->dtype) : NULL;
  Py_XDECREF(o);
  return c;
}

/* Copies an array's data into the arena. */
static void store(struct trace_program *program, PyObject *o, enum dtype t, struct trace_array *out) {
  PyArrayObject *a = (PyArrayObject *)o;
  out->shape = hlo_shape_array(program->a, t, PyArray_NDIM(a), PyArray_DIMS(a));
  out->data = arena_dup(program->a, PyArray_DATA(a), (size_t)PyArray_NBYTES(a));
}

enum status trace_make_inputs(struct trace_kernel *tk, uint64_t seed, struct diags *ds, struct trace_array *in) {
  struct trace_program *program = tk->program;
  assert(program && tk->index >= 0 && tk->index < program->n);
  const struct program_kernel *k = &program->kernels[tk->index];
  enum status st = ST_OK;
  uint64_t state = seed;
  program_enter(program, ds);
  for (int i = 0; !st && i < k->n_params; i++) {
    PyObject *a = input_array(program, &k->params[i], &state);
    if (!a)
      st = program_exception(program, ds);
    else if (!fits_param(&k->params[i], a, program))
      st = ST_INPUT;
    else
      store(program, a, k->params[i].dtype, &in[i]);
    Py_XDECREF(a);
  }
  program_leave(program);
  return st;
}

/* ---- the oracle ----------------------------------------------------------------------------------------------- */

/* True if the oracle computes type t in float32 and rounds once, at the end.  NumPy rounds every step of a sum of
 * ml_dtypes' types, so a long sum would be wrong (in bfloat16, a sum of ones stops at 256). */
static bool is_computed_wider(enum dtype t) {
  return dtype_is_float(t) && t != DT_F16 && t != DT_F32 && t != DT_F64;
}

static PyObject *wrap_input(const struct trace_array *in, bool in_double) {
  PyArray_Descr *d = dtype_descr(in->shape.dtype);
  PyObject *a = PyArray_NewFromDescr(&PyArray_Type, d, in->shape.rank, (npy_intp *)(uintptr_t)in->shape.dims, NULL,
                                     NULL, 0, NULL);
  if (a)
    memcpy(PyArray_DATA((PyArrayObject *)a), in->data, (size_t)PyArray_NBYTES((PyArrayObject *)a));
  if (a && dtype_is_float(in->shape.dtype) && (in_double || is_computed_wider(in->shape.dtype))) {
    PyObject *wide = PyArray_Cast((PyArrayObject *)a, in_double ? NPY_FLOAT64 : NPY_FLOAT32);
    Py_DECREF(a);
    a = wide;
  }
  return a;
}

static bool store_result(struct trace_kernel *tk, int i, PyObject *o, bool in_double, struct trace_array *out) {
  const struct trace_tensor *want = &tk->outputs[i];
  enum dtype t = in_double && dtype_is_float(want->shape.dtype) ? DT_F64 : want->shape.dtype;
  char a[DIMS_TEXT_MAX], b[DIMS_TEXT_MAX];
  PyObject *c = o ? convert(o, t) : NULL;
  if (!c)
    return false;
  PyArrayObject *x = (PyArrayObject *)c;
  bool ok = PyArray_NDIM(x) == want->shape.rank &&
            memcmp(PyArray_DIMS(x), want->shape.dims, (size_t)want->shape.rank * sizeof(int64_t)) == 0;
  if (ok)
    store(tk->program, c, t, out);
  else
    trace_refuse(DG_INTERNAL, NULL, "output \"%s\" has shape %s in NumPy and %s in the trace", want->name,
                 dims_text(PyArray_NDIM(x), PyArray_DIMS(x), a), dims_text(want->shape.rank, want->shape.dims, b));
  Py_DECREF(c);
  return ok;
}

/* Stores the outputs in the order of the root: the values that the kernel returned, then the parameters that it only
 * wrote. */
static bool store_results(struct trace_kernel *tk, PyObject *r, PyObject *const *arrays, bool in_double,
                          struct trace_array *out) {
  bool single = !PyTuple_Check(r) && !PyList_Check(r);
  Py_ssize_t n = r == Py_None ? 0 : single ? 1 : PySequence_Fast_GET_SIZE(r);
  const struct hlo_module *m = tk->module;
  for (int i = 0; i < tk->n_outputs; i++) {
    bool own = true;
    for (int j = 0; j < m->n_aliases; j++)
      if (m->aliases[j].output_index == i)
        own = m->aliases[j].is_user_returned;
    PyObject *o = NULL;
    if (tk->outputs[i].alias_of >= 0)
      o = arrays[tk->outputs[i].alias_of];
    else if (own && i < n)
      o = single ? r : PySequence_Fast_GET_ITEM(r, i);
    if (!o)
      return trace_refuse(DG_INTERNAL, NULL, "the function returned fewer results with NumPy than when it was traced");
    if (!store_result(tk, i, o, in_double, &out[i]))
      return false;
  }
  return true;
}

/* Turns off NumPy's floating-point warnings, because the trace computes the same infinities. */
static PyObject *quiet_errors(PyObject *numpy) {
  PyObject *seterr = numpy ? PyObject_GetAttrString(numpy, "seterr") : NULL;
  PyObject *kw = Py_BuildValue("{s:s}", "all", "ignore"), *none = PyTuple_New(0);
  PyObject *old = seterr && kw && none ? PyObject_Call(seterr, none, kw) : NULL;
  Py_XDECREF(seterr);
  Py_XDECREF(kw);
  Py_XDECREF(none);
  return old;
}

static void restore_errors(PyObject *numpy, PyObject *old) {
  PyObject *type, *exc, *tb, *seterr, *none = PyTuple_New(0);
  PyErr_Fetch(&type, &exc, &tb);
  seterr = numpy ? PyObject_GetAttrString(numpy, "seterr") : NULL;
  PyObject *r = seterr && none && old ? PyObject_Call(seterr, none, old) : NULL;
  Py_XDECREF(r);
  Py_XDECREF(seterr);
  Py_XDECREF(none);
  PyErr_Restore(type, exc, tb);
}

static enum status eval(struct trace_kernel *tk, const struct trace_array *in, bool in_double, struct diags *ds,
                        struct trace_array *out) {
  struct trace_program *program = tk->program;
  const struct program_kernel *k = &program->kernels[tk->index];
  PyObject **arrays = arena_new_array(program->a, PyObject *, (size_t)k->n_params), *args = NULL, *kw = NULL, *r = NULL;
  enum status st = ST_OK;
  bool ok = true;
  program_enter(program, ds);
  program->is_rerun = true;
  PyObject *numpy = PyImport_ImportModule("numpy"), *old = quiet_errors(numpy);
  for (int i = 0; ok && i < k->n_params; i++)
    ok = (arrays[i] = wrap_input(&in[i], in_double));
  if (ok && old && kernel_arguments(k, arrays, &args, &kw))
    r = PyObject_Call(k->fn, args, kw);
  ok = r && store_results(tk, r, arrays, in_double, out);
  restore_errors(numpy, old);
  if (!ok)
    st = program_exception(program, ds);
  for (int i = 0; i < k->n_params; i++)
    Py_XDECREF(arrays[i]);
  Py_XDECREF(numpy);
  Py_XDECREF(old);
  Py_XDECREF(args);
  Py_XDECREF(kw);
  Py_XDECREF(r);
  program->is_rerun = false;
  program_leave(program);
  return st;
}

/* Returns the largest difference between x and the float64 result, over elements that are finite in both. */
static double distance(const struct trace_array *x, const struct trace_array *exact) {
  struct hlo_literal a = {.shape = x->shape, .data = x->data}, b = {.shape = exact->shape, .data = exact->data};
  int64_t n = hlo_shape_elements(&x->shape);
  double most = 0;
  for (int64_t k = 0; k < n; k++) {
    double d = fabs(hlo_literal_double(&a, (size_t)k) - hlo_literal_double(&b, (size_t)k));
    if (isfinite(d) && d > most)
      most = d;
  }
  return most;
}

enum status trace_eval_numpy(struct trace_kernel *tk, const struct trace_array *in, struct diags *ds,
                             struct trace_array *out) {
  struct trace_array *exact = arena_new_array(tk->program->a, struct trace_array, (size_t)tk->n_outputs);
  struct diags ignored;
  enum status st = eval(tk, in, false, ds, out);
  if (st)
    return st;
  diags_init(&ignored, tk->program->a);
  if (eval(tk, in, true, &ignored, exact))
    return ST_OK; /* the kernel cannot compute in float64 */
  for (int i = 0; i < tk->n_outputs; i++)
    if (dtype_is_float(out[i].shape.dtype))
      out[i].rounding = distance(&out[i], &exact[i]);
  return ST_OK;
}
