/* values: inputs for the numeric check, and NumPy's results.
 *
 * The oracle is the user's function, called with NumPy arrays.  No tensor is involved, and knobs do nothing.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "hlo/complex.h"
#include "hlo/literal.h"
#include "trace/args.h"
#include "trace/draw.h"
#include "nki/nki.h"
#include "trace/kernels.h"
#include "trace/nki/run.h"
#include "trace/operand.h"
#include "trace/program.h"
#include "trace/refuse.h"
#include "trace/ties.h"

/* ---- inputs --------------------------------------------------------------------------------------------------- */

/* Returns a random array of float32 or int32, which NumPy converts to the input's dtype. */
static PyObject *random_array(enum dtype t, int rank, const int64_t *dims, enum trace_ranges ranges, uint64_t *state) {
  PyObject *a = PyArray_SimpleNew(rank, (npy_intp *)(uintptr_t)dims, dtype_is_float(t) ? NPY_FLOAT32 : NPY_INT32);
  if (a)
    draw_values(t, PyArray_SIZE((PyArrayObject *)a), ranges, state, PyArray_DATA((PyArrayObject *)a));
  return a;
}

/* The shape in which a parameter's values are passed on: complex numbers as pairs of float32. */
static struct hlo_shape passed_shape(struct arena *a, const struct kparam *p) {
  const struct hlo_shape s = hlo_shape_array(a, p->dtype, p->rank, p->dims);
  return hlo_complex_shape(a, &s);
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

PyObject *values_load_npz(const char *path) {
  PyObject *module = PyImport_ImportModule("nkx.npz");
  PyObject *z = module ? PyObject_CallMethod(module, "load", "s", path) : NULL;
  Py_XDECREF(module);
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
  if (!program->rq->inputs_npz || (!program->npz && !(program->npz = values_load_npz(program->rq->inputs_npz))))
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
  if (PyArray_NDIM(x) == p->rank && hlo_dims_equal(p->rank, PyArray_DIMS(x), p->dims))
    return true;
  diag_add(program->ds, DS_ERROR, DG_BAD_INPUTS, NULL, "the array \"%s\" has shape %s; the kernel was traced with %s",
           p->name, dims_text(PyArray_NDIM(x), PyArray_DIMS(x), have), dims_text(p->rank, p->dims, want));
  return false;
}

/* Copies an array's data into the arena. */
static void store(struct trace_program *program, PyObject *o, struct hlo_shape shape, struct trace_array *out) {
  PyArrayObject *a = (PyArrayObject *)o;
  assert((size_t)PyArray_NBYTES(a) == (size_t)hlo_shape_elements(&shape) * dtype_size(shape.dtype));
  out->shape = shape;
  out->data = arena_dup(program->a, PyArray_DATA(a), (size_t)PyArray_NBYTES(a));
}

/* Draws an input of 32-bit numbers, or pairs of them, which need no conversion, in the arena. */
static void draw_input(struct trace_program *program, const struct kparam *p, enum trace_ranges ranges, uint64_t *state,
                       struct trace_array *out) {
  out->shape = passed_shape(program->a, p);
  const int64_t n = hlo_shape_elements(&out->shape);
  out->data = arena_array(program->a, (size_t)n, dtype_size(out->shape.dtype));
  draw_values(out->shape.dtype, n, ranges, state, out->data);
}

/* Makes an input in NumPy, from `given` if it is not NULL, and copies it.  Takes ownership of `given`.  ST_BUG: a Python
 * exception is set. */
static enum status convert_input(struct trace_program *program, const struct kparam *p, PyObject *given,
                                 enum trace_ranges ranges, uint64_t *state, struct trace_array *out) {
  PyObject *o = given ? given : random_array(p->dtype, p->rank, p->dims, ranges, state);
  PyObject *c = o ? convert(o, p->dtype) : NULL;
  Py_XDECREF(o);
  const enum status st = !c ? ST_BUG : fits_param(p, c, program) ? ST_OK : ST_INPUT;
  if (!st)
    store(program, c, passed_shape(program->a, p), out);
  Py_XDECREF(c);
  return st;
}

/* True if an array of several elements holds the same bytes in each: np.zeros, np.ones and np.empty are how a call tells a
 * shape, and on such inputs a wrong program often gives the right results.  False with an exception set on failure. */
static bool is_uniform(PyObject *given) {
  PyArrayObject *a = (PyArrayObject *)PyArray_ContiguousFromAny(given, NPY_NOTYPE, 0, 0);
  if (!a)
    return false;
  const size_t size = (size_t)PyArray_ITEMSIZE(a), n_bytes = (size_t)PyArray_NBYTES(a);
  const char *data = PyArray_DATA(a);
  const bool is = n_bytes > size && memcmp(data, data + size, n_bytes - size) == 0;
  Py_DECREF(a);
  return is;
}

static enum status make_input(struct trace_program *program, const struct kparam *p, enum trace_ranges ranges,
                              uint64_t *state, struct trace_array *out, bool *is_drawn) {
  PyObject *o = values_npz_array(program, p->name, p->dtype);
  if (!o && PyErr_Occurred())
    return ST_BUG;
  if (!o && p->array && (ranges == TRACE_AS_GIVEN || !is_uniform(p->array))) {
    if (PyErr_Occurred())
      return ST_BUG;
    o = Py_NewRef(p->array);
  }
  *is_drawn |= !o;
  if (o || (p->dtype != DT_F32 && p->dtype != DT_I32 && p->dtype != DT_C64))
    return convert_input(program, p, o, ranges, state, out);
  draw_input(program, p, ranges, state, out);
  return ST_OK;
}

enum status trace_make_inputs(struct trace_kernel *tk, uint64_t seed, enum trace_ranges ranges, struct diags *ds,
                              struct trace_array *in, bool *is_drawn) {
  struct trace_program *program = tk->program;
  assert(program && tk->index >= 0 && tk->index < program->n);
  const struct program_kernel *k = &program->kernels[tk->index];
  enum status st = ST_OK;
  uint64_t state = seed;
  *is_drawn = false;
  program_enter(program, ds);
  for (int i = 0; !st && i < k->n_params; i++) {
    st = make_input(program, &k->params[i], ranges, &state, &in[i], is_drawn);
    if (st == ST_BUG)
      st = program_exception(program, ds);
  }
  program_leave(program);
  return st;
}

/* ---- the oracle ----------------------------------------------------------------------------------------------- */

/* How a run computes. */
enum precision {
  AS_NUMPY,  /* with NumPy's arrays, narrow floats in float32 */
  IN_DOUBLE, /* with all floats in float64 */
  ROUNDED,   /* with arrays of nkx.rounding, which round as the trace does */
};

static bool is_narrow(enum dtype t) {
  return dtype_is_float(t) && dtype_size(t) < 4;
}

/* True if the trace has floats narrower than float32, with which NumPy does not compute as the trace does. */
static bool has_narrow_floats(const struct trace_kernel *tk) {
  for (const struct hlo_computation *c = tk->module->computations; c; c = c->next)
    hlo_for_each(i, c) if (is_narrow(i->shape.dtype)) return true;
  return false;
}

/* Returns an array of nkx.rounding.  Takes ownership of a. */
static PyObject *wrap_rounded(PyObject *a) {
  PyObject *module = a ? PyImport_ImportModule("nkx.rounding") : NULL;
  PyObject *r = module ? PyObject_CallMethod(module, "wrap", "O", a) : NULL;
  Py_XDECREF(module);
  Py_XDECREF(a);
  return r;
}

/* Returns an array of the elements in place, which cannot be written.  is_complex: of pairs of reals. */
static PyObject *share_input(const struct trace_array *in, bool is_complex) {
  return PyArray_NewFromDescr(&PyArray_Type, dtype_descr(is_complex ? DT_C64 : in->shape.dtype),
                              in->shape.rank - is_complex, (npy_intp *)(uintptr_t)in->shape.dims, NULL, in->data,
                              NPY_ARRAY_C_CONTIGUOUS, NULL);
}

static PyObject *copy_input(const struct trace_array *in, bool is_complex) {
  PyObject *shared = share_input(in, is_complex);
  PyObject *copy = shared ? PyArray_NewCopy((PyArrayObject *)shared, NPY_CORDER) : NULL;
  Py_XDECREF(shared);
  return copy;
}

static PyObject *wrap_input(const struct trace_array *in, bool is_complex, enum precision precision, bool is_written) {
  const enum dtype t = in->shape.dtype;
  const bool is_wider = precision == IN_DOUBLE || (precision == AS_NUMPY && is_narrow(t) && t != DT_F16);
  PyObject *a =
      is_written && !(is_wider && dtype_is_float(t)) ? copy_input(in, is_complex) : share_input(in, is_complex);
  if (precision == ROUNDED)
    return wrap_rounded(a);
  if (a && dtype_is_float(t) && is_wider) {
    PyObject *wide = PyArray_Cast((PyArrayObject *)a, precision != IN_DOUBLE ? NPY_FLOAT32
                                                      : is_complex           ? NPY_COMPLEX128
                                                                             : NPY_FLOAT64);
    Py_DECREF(a);
    a = wide;
  }
  return a;
}

static bool store_result(struct trace_kernel *tk, int i, PyObject *o, enum precision precision,
                         struct trace_array *out) {
  const struct trace_tensor *want = &tk->outputs[i];
  enum dtype t = precision == IN_DOUBLE && dtype_is_float(want->shape.dtype) ? DT_F64 : want->shape.dtype;
  const int rank = want->shape.rank - want->is_complex;
  char a[DIMS_TEXT_MAX], b[DIMS_TEXT_MAX];
  PyObject *c = o ? convert(o, !want->is_complex ? t : t == DT_F64 ? DT_C128 : DT_C64) : NULL;
  if (!c)
    return false;
  PyArrayObject *x = (PyArrayObject *)c;
  bool ok = PyArray_NDIM(x) == rank && hlo_dims_equal(rank, PyArray_DIMS(x), want->shape.dims);
  if (ok)
    store(tk->program, c, hlo_shape_array(tk->program->a, t, want->shape.rank, want->shape.dims), out);
  else
    trace_refuse(DG_INTERNAL, NULL, "output \"%s\" has shape %s in NumPy and %s in the trace", want->name,
                 dims_text(PyArray_NDIM(x), PyArray_DIMS(x), a), dims_text(rank, want->shape.dims, b));
  Py_DECREF(c);
  return ok;
}

/* Stores the outputs in the order of the root: the values that the kernel returned, then the parameters that it only
 * wrote. */
static bool store_results(struct trace_kernel *tk, PyObject *r, PyObject *const *arrays, enum precision precision,
                          struct trace_array *out) {
  bool single = !PyTuple_Check(r) && !PyList_Check(r);
  Py_ssize_t n = r == Py_None ? 0 : single ? 1 : PySequence_Fast_GET_SIZE(r);
  const struct hlo_module *m = tk->module;
  for (int i = 0; i < tk->n_outputs; i++) {
    bool own = true;
    for (int j = 0; m && j < m->n_aliases; j++)
      if (m->aliases[j].output_index == i)
        own = m->aliases[j].is_user_returned;
    PyObject *o = NULL;
    if (tk->outputs[i].alias_of >= 0 && !tk->nki)
      o = arrays[tk->outputs[i].alias_of];
    else if (own && i < n)
      o = single ? r : PySequence_Fast_GET_ITEM(r, i);
    if (!o)
      return trace_refuse(DG_INTERNAL, NULL, "the function returned fewer results with NumPy than when it was traced");
    if (!store_result(tk, i, o, precision, &out[i]))
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

/* Begins a run of nkx.rounding; it is perturbed if the seed is not 0. */
static bool begin_rounding(unsigned seed) {
  PyObject *module = PyImport_ImportModule("nkx.rounding");
  PyObject *r = module ? PyObject_CallMethod(module, "begin", "I", seed) : NULL;
  Py_XDECREF(module);
  Py_XDECREF(r);
  return r;
}

static PyObject *list_of(PyObject *const *arrays, int n) {
  PyObject *list = PyList_New(n);
  for (int i = 0; list && i < n; i++)
    PyList_SET_ITEM(list, i, Py_NewRef(arrays[i]));
  return list;
}

/* What is run instead of an NKI kernel. */
struct nki_text {
  const char *text;
  size_t len;
  bool is_source; /* of nki-ast */
};

/* The arrays in the types of the parameters; own: the same, borrowed. */
static PyObject *typed_list_of(const struct trace_kernel *tk, PyObject *const *arrays, int n, PyObject **own) {
  PyObject *list = PyList_New(n);
  for (int i = 0; list && i < n; i++) {
    own[i] = PyArray_FromAny(arrays[i], dtype_descr(tk->inputs[i].shape.dtype), 0, 0, NPY_ARRAY_FORCECAST, NULL);
    if (!own[i]) {
      Py_CLEAR(list);
      break;
    }
    PyList_SET_ITEM(list, i, own[i]);
  }
  return list;
}

/* The parameters that are results; they have been written in place. */
static PyObject *written_of(const struct trace_kernel *tk, PyObject *const *own) {
  PyObject *list = PyList_New(tk->n_outputs);
  for (int i = 0; list && i < tk->n_outputs; i++)
    PyList_SET_ITEM(list, i, Py_NewRef(tk->outputs[i].alias_of >= 0 ? own[tk->outputs[i].alias_of] : Py_None));
  return list;
}

static PyObject *run_text(const struct trace_kernel *tk, const struct program_kernel *k, PyObject **arrays,
                          const struct nki_text *t) {
  PyObject *module = PyImport_ImportModule("nkx.nki_again"), *args = NULL, *kw = NULL, *r = NULL;
  PyObject **own = arena_new_array(tk->program->a, PyObject *, (size_t)k->n_params);
  PyObject *list = typed_list_of(tk, arrays, k->n_params, own);
  PyObject *grid = k->kernel->grid ? k->kernel->grid : k->kernel->launched;
  if (module && list && kernel_arguments(k, own, &args, &kw)) {
    PyObject *none = kw ? NULL : PyDict_New();
    r = PyObject_CallMethod(module, "evaluate", "Oiis#OOOsO", k->fn, (int)k->kernel->nki, (int)t->is_source, t->text,
                            (Py_ssize_t)t->len, args, kw ? kw : none, list, target_name(tk->program->rq->target),
                            grid ? grid : Py_None);
    Py_XDECREF(none);
    if (r == Py_None) /* the kernel returns nothing: its results are parameters */
      Py_SETREF(r, written_of(tk, own));
  }
  Py_XDECREF(module);
  Py_XDECREF(args);
  Py_XDECREF(kw);
  Py_XDECREF(list);
  return r;
}

/* Calls the kernel's function, or evaluates the record of an NKI kernel, or what the text says.  NULL with an exception. */
static PyObject *call_with_arrays(const struct trace_kernel *tk, const struct program_kernel *k, PyObject **arrays,
                                  unsigned seed, const struct nki_text *text) {
  PyObject *args = NULL, *kw = NULL, *r = NULL;
  if (text)
    return run_text(tk, k, arrays, text);
  if (tk->nki) {
    PyObject *list = list_of(arrays, k->n_params);
    r = list ? nki_evaluate(tk->nki, list, seed) : NULL;
    Py_XDECREF(list);
    return r;
  }
  if (kernel_arguments(k, arrays, &args, &kw))
    r = PyObject_Call(k->fn, args, kw);
  Py_XDECREF(args);
  Py_XDECREF(kw);
  return r;
}

/* True if the trace has seen the kernel write into parameter i. */
static bool writes_parameter(const struct trace_kernel *tk, int i) {
  for (int k = 0; k < tk->n_outputs; k++)
    if (tk->outputs[k].alias_of == i)
      return true;
  return false;
}

/* copies: the kernel gets copies of all inputs, not only of those that the trace has seen it write. */
static enum status run_kernel(struct trace_kernel *tk, const struct trace_array *in, enum precision precision,
                              unsigned seed, bool copies, const struct nki_text *text, struct diags *ds,
                              struct trace_array *out) {
  struct trace_program *program = tk->program;
  const struct program_kernel *k = &program->kernels[tk->index];
  PyObject **arrays = arena_new_array(program->a, PyObject *, (size_t)k->n_params), *r = NULL;
  enum status st = ST_OK;
  program_enter(program, ds);
  program->is_rerun = true;
  PyObject *numpy = PyImport_ImportModule("numpy"), *old = quiet_errors(numpy);
  bool ok = ties_begin();
  for (int i = 0; i < k->n_params; i++)
    arrays[i] = NULL;
  if (ok && precision == ROUNDED)
    ok = begin_rounding(seed);
  for (int i = 0; ok && i < k->n_params; i++)
    ok = (arrays[i] = wrap_input(&in[i], tk->inputs[i].is_complex, precision, copies || writes_parameter(tk, i)));
  if (ok && old)
    r = call_with_arrays(tk, k, arrays, seed, text);
  ok = r && store_results(tk, r, arrays, precision, out);
  ties_end();
  restore_errors(numpy, old);
  if (!ok)
    st = program_exception(program, ds);
  for (int i = 0; i < k->n_params; i++)
    Py_XDECREF(arrays[i]);
  Py_XDECREF(numpy);
  Py_XDECREF(old);
  Py_XDECREF(r);
  program->is_rerun = false;
  program_leave(program);
  return st;
}

/* True if a function that ended so may be run once more in another way.  One that was stopped for its time may not: the
 * diagnostic becomes the caller's. */
static bool may_run_again(enum status st, const struct diags *own, struct diags *ds) {
  for (int i = 0; st && i < own->n; i++)
    if (own->v[i].code == DG_TIME_LIMIT) {
      *diag_add(ds, own->v[i].severity, own->v[i].code, own->v[i].loc, "%s", own->v[i].message) = own->v[i];
      return false;
    }
  return st;
}

/* Most kernels only read their inputs, which may be large: they get them in place.  A kernel that fails with them gets
 * copies. */
static enum status eval(struct trace_kernel *tk, const struct trace_array *in, enum precision precision, unsigned seed,
                        struct diags *ds, struct trace_array *out) {
  struct diags own;
  diags_init(&own, tk->program->a);
  const enum status st = run_kernel(tk, in, precision, seed, false, NULL, &own, out);
  return may_run_again(st, &own, ds) ? run_kernel(tk, in, precision, seed, true, NULL, ds, out) : st;
}

enum status trace_eval_nki_text(struct trace_kernel *tk, const char *text, size_t len, bool is_source,
                                const struct trace_array *in, struct diags *ds, struct trace_array *out) {
  return run_kernel(tk, in, AS_NUMPY, 0, true, &(struct nki_text){text, len, is_source}, ds, out);
}

enum status trace_eval_numpy(struct trace_kernel *tk, const struct trace_array *in, struct diags *ds,
                             struct trace_array *out) {
  if (!tk->nki && has_narrow_floats(tk)) {
    struct diags own;
    diags_init(&own, tk->program->a);
    const enum status st = eval(tk, in, ROUNDED, 0, &own, out);
    if (!may_run_again(st, &own, ds))
      return st;
  }
  return eval(tk, in, AS_NUMPY, 0, ds, out);
}

/* ---- how much rounding matters ------------------------------------------------------------------------------- */

/* A function with more work is run fewer times.  Work is counted in the trace, so that the tolerances do not depend on the
 * machine; a function that takes SLOW_US of processor time although its trace is short, such as a long loop, is run
 * fewer times, too. */
enum {
  SLOW_WORK = 16 << 20,
  SLOW_US = 200000,
  PER_OPERATION = 10000, /* elements computed in the time that a call of NumPy takes */
  PER_ELEMENT = 32       /* multiplications of a matrix product in the time of one such element */
};

static int64_t work_of_product(const struct hlo_instr *i) {
  const struct hlo_ints *summed = &i->attrs->dot->lhs_contracting;
  int64_t terms = 1;
  for (int k = 0; k < summed->n; k++)
    terms *= i->operands[0]->shape.dims[summed->v[k]];
  return hlo_shape_elements(&i->shape) * terms / PER_ELEMENT;
}

/* Returns about how many elements the function computes. */
static int64_t work_of(const struct trace_kernel *tk) {
  int64_t work = 0;
  for (const struct hlo_computation *c = tk->module->computations; c; c = c->next)
    hlo_for_each(i, c) {
      work += PER_OPERATION + hlo_shape_elements(&i->shape);
      if (i->op == HLO_DOT)
        work += work_of_product(i);
    }
  return work;
}

static bool is_same(const struct trace_kernel *tk, const struct trace_array *x, const struct trace_array *y) {
  for (int i = 0; i < tk->n_outputs; i++)
    if (memcmp(x[i].data, y[i].data, (size_t)hlo_shape_elements(&x[i].shape) * dtype_size(x[i].shape.dtype)) != 0)
      return false;
  return true;
}

/* Raises the spread to the distance between two results. */
static void widen(const struct trace_array *x, const struct trace_array *y, float *spread) {
  const struct hlo_literal a = {.shape = x->shape, .data = x->data}, b = {.shape = y->shape, .data = y->data};
  const bool is_float = dtype_is_float(x->shape.dtype);
  const int64_t n = hlo_shape_elements(&x->shape);
  for (int64_t k = 0; k < n; k++) {
    const double u = is_float ? hlo_literal_double(&a, (size_t)k) : (double)hlo_literal_int(&a, (size_t)k);
    const double v = is_float ? hlo_literal_double(&b, (size_t)k) : (double)hlo_literal_int(&b, (size_t)k);
    const double d = u == v || (isnan(u) && isnan(v)) ? 0 : fabs(u - v);
    spread[k] = isnan(d) ? INFINITY : fmaxf(spread[k], (float)d);
  }
}

static bool add_run(struct trace_kernel *tk, const struct trace_array *in, enum precision precision, unsigned seed,
                    const struct trace_array *out, float **spreads) {
  struct arena *a = tk->program->a;
  struct trace_array *other = arena_new_array(a, struct trace_array, (size_t)tk->n_outputs);
  struct diags ignored;
  diags_init(&ignored, a);
  if (eval(tk, in, precision, seed, &ignored, other))
    return false; /* the kernel cannot compute with such arrays */
  for (int i = 0; i < tk->n_outputs; i++)
    widen(&out[i], &other[i], spreads[i]);
  return true;
}

/* Each instruction rounds as the hardware does; what differs is the order of sums, and the last digits of functions. */
static void find_spread_of_nki(struct trace_kernel *tk, const struct trace_array *in, struct trace_array *out) {
  float **spreads = arena_new_array(tk->program->a, float *, (size_t)tk->n_outputs);
  if (!nki_magnifies_rounding(tk->nki))
    return;
  for (int i = 0; i < tk->n_outputs; i++) {
    const size_t n = (size_t)hlo_shape_elements(&out[i].shape);
    spreads[i] = arena_new_array(tk->program->a, float, n);
    memset(spreads[i], 0, n * sizeof **spreads);
  }
  const bool is_known = add_run(tk, in, AS_NUMPY, 1, out, spreads) && add_run(tk, in, AS_NUMPY, 2, out, spreads);
  for (int i = 0; is_known && i < tk->n_outputs; i++)
    out[i].spread = spreads[i];
}

void trace_find_spread(struct trace_kernel *tk, const struct trace_array *in, struct trace_array *out,
                       bool *is_random) {
  struct arena *a = tk->program->a;
  struct trace_array *again = arena_new_array(a, struct trace_array, (size_t)tk->n_outputs);
  float **spreads = arena_new_array(a, float *, (size_t)tk->n_outputs);
  struct diags ignored;
  int64_t began_us = clock_cpu_us();
  if (tk->nki) { /* random numbers come from generators of known state */
    if (is_random)
      *is_random = false;
    find_spread_of_nki(tk, in, out);
    return;
  }
  diags_init(&ignored, a);
  if (is_random)
    *is_random = trace_eval_numpy(tk, in, &ignored, again) || !is_same(tk, out, again);
  bool is_slow = work_of(tk) > SLOW_WORK || clock_cpu_us() - began_us > SLOW_US;
  for (int i = 0; i < tk->n_outputs; i++) {
    const size_t n = (size_t)hlo_shape_elements(&out[i].shape);
    spreads[i] = arena_new_array(a, float, n);
    memset(spreads[i], 0, n * sizeof **spreads);
  }
  if (is_random && *is_random)
    return;
  began_us = clock_cpu_us();
  bool is_known = add_run(tk, in, ROUNDED, 1, out, spreads);
  is_slow |= clock_cpu_us() - began_us > 4 * SLOW_US; /* a perturbed run takes longer than a plain one */
  if (is_known && !is_slow)
    add_run(tk, in, ROUNDED, 2, out, spreads);
  if (!has_narrow_floats(tk) && (!is_slow || !is_known))
    is_known |= add_run(tk, in, IN_DOUBLE, 0, out, spreads);
  for (int i = 0; is_known && i < tk->n_outputs; i++)
    out[i].spread = spreads[i];
}
