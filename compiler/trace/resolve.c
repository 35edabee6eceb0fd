/* resolve: which of a kernel's parameters are arrays, and with which shapes.
 *
 * The first of these that there is decides: input_specs of @trace, the arrays of a .specialize or a call in the source,
 * the request's inputs, its npz file, annotations with a shape.  Every other parameter keeps its default or the Python
 * value that it was given.
 */
#include <assert.h>
#include <string.h>

#include "trace/args.h"
#include "trace/bytecode.h"
#include "trace/kernels.h"
#include "trace/operand.h"
#include "trace/program.h"

const struct src_loc *kernel_def_loc(struct trace_program *program, const struct program_kernel *k) {
  PyCodeObject *code = bytecode_of(k->fn);
  const struct src_loc *loc = code ? ranges_function(&program->ranges, code, k->name) : NULL;
  Py_XDECREF(code);
  return loc;
}

const struct src_loc *kernel_param_loc(struct trace_program *program, const struct program_kernel *k,
                                       const char *name) {
  PyCodeObject *code = bytecode_of(k->fn);
  const struct src_loc *at = code ? ranges_param(&program->ranges, code, name, k->name) : NULL;
  Py_XDECREF(code);
  return at ? at : kernel_def_loc(program, k);
}

/* ---- parameters --------------------------------------------------------------------------------------------- */

/* The function's parameters, from Python's inspect. */
struct signature {
  int n;
  const char **names;
  bool *needed, *variadic; /* without a default; *args or **kwargs */
};

static bool read_signature(struct trace_program *program, PyObject *fn, struct signature *s) {
  PyObject *inspect = PyImport_ImportModule("inspect");
  PyObject *sig = inspect ? PyObject_CallMethod(inspect, "signature", "O", fn) : NULL;
  PyObject *map = sig ? PyObject_GetAttrString(sig, "parameters") : NULL;
  PyObject *values = map ? PyMapping_Values(map) : NULL;
  PyObject *empty = inspect ? PyObject_GetAttrString(inspect, "_empty") : NULL;
  Py_ssize_t n = values ? PyList_GET_SIZE(values) : 0;
  s->n = (int)n;
  s->names = arena_new_array(program->a, const char *, (size_t)n);
  s->needed = arena_new_array(program->a, bool, (size_t)n);
  s->variadic = arena_new_array(program->a, bool, (size_t)n);
  bool ok = values && empty;
  for (Py_ssize_t i = 0; ok && i < n; i++) {
    PyObject *p = PyList_GET_ITEM(values, i), *name = PyObject_GetAttrString(p, "name"),
             *dflt = PyObject_GetAttrString(p, "default"), *kind = PyObject_GetAttrString(p, "kind");
    ok = name && dflt && kind;
    if (ok) {
      long kd = PyLong_AsLong(kind);
      s->names[i] = arena_strdup(program->a, PyUnicode_AsUTF8(name));
      s->variadic[i] = kd == 2 || kd == 4; /* VAR_POSITIONAL, VAR_KEYWORD */
      s->needed[i] = dflt == empty && !s->variadic[i];
    }
    Py_XDECREF(name);
    Py_XDECREF(dflt);
    Py_XDECREF(kind);
  }
  Py_XDECREF(inspect);
  Py_XDECREF(sig);
  Py_XDECREF(map);
  Py_XDECREF(values);
  Py_XDECREF(empty);
  return ok;
}

static void narrow_param(struct trace_program *program, const struct program_kernel *k, struct kparam *p,
                         enum dtype t) {
  p->given = t;
  p->dtype = dtype_narrow(t);
  if (p->dtype != t)
    diag_add(program->ds, DS_WARNING, DG_DTYPE_NARROWED, kernel_param_loc(program, k, p->name),
             "input \"%s\" is narrowed from %s to %s", p->name, dtype_numpy_name(t), dtype_numpy_name(p->dtype))
        ->hint = "the hardware has no 64-bit types; give a 32-bit array to silence this";
}

static bool add_array(struct trace_program *program, struct program_kernel *k, const char *name, PyObject *o,
                      Py_ssize_t index, PyObject *key) {
  PyArrayObject *a = (PyArrayObject *)o;
  struct kparam *p = &k->params[k->n_params];
  enum dtype t = dtype_from_num(PyArray_TYPE(a));
  *p = (struct kparam){
      .name = name, .rank = PyArray_NDIM(a), .array = Py_NewRef(o), .index = index, .key = Py_XNewRef(key)};
  k->n_params++;
  if (t == DT_NONE || p->rank > HLO_RANK_MAX) {
    const char *text = "?";
    PyObject *d = PyObject_Str((PyObject *)PyArray_DESCR(a));
    text = d ? PyUnicode_AsUTF8(d) : text;
    diag_add(program->ds, DS_ERROR, DG_UNSUPPORTED_DTYPE, kernel_def_loc(program, k),
             "input \"%s\" has dtype %s and %d dimensions, which is not supported", name, text ? text : "?", p->rank)
        ->hint =
        PyArray_TYPE(a) == NPY_VOID ? "say what it is, as in --input x=128x64:f8e4m3; an npz file does not" : NULL;
    Py_XDECREF(d);
    return false;
  }
  memcpy(p->dims, PyArray_DIMS(a), (size_t)p->rank * sizeof *p->dims);
  narrow_param(program, k, p, t);
  return true;
}

/* ---- from recorded arrays --------------------------------------------------------------------------------------- */

static bool from_arrays(struct trace_program *program, struct program_kernel *k, const struct signature *s) {
  PyObject *args = k->kernel->args, *kw = k->kernel->kw, *key, *value;
  Py_ssize_t n = PyTuple_GET_SIZE(args), pos = 0;
  k->params = arena_new_array(program->a, struct kparam, (size_t)(n + PyDict_GET_SIZE(kw)));
  k->args = PyTuple_New(n);
  k->kw = PyDict_Copy(kw);
  if (!k->args || !k->kw)
    return false;
  bool ok = true;
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject *o = PyTuple_GET_ITEM(args, i);
    PyTuple_SET_ITEM(k->args, i, Py_NewRef(PyArray_Check(o) ? Py_None : o));
    if (!PyArray_Check(o) || !ok)
      continue;
    int at = 0;
    while (at < s->n && at < i && !s->variadic[at])
      at++;
    const char *name = at < s->n ? s->names[at] : "p";
    if (at < s->n && s->variadic[at])
      name = arena_printf(program->a, "%s_%d", name, (int)(i - at));
    ok = add_array(program, k, name, o, i, NULL);
  }
  while (ok && PyDict_Next(kw, &pos, &key, &value))
    if (PyArray_Check(value)) {
      ok = add_array(program, k, arena_strdup(program->a, PyUnicode_AsUTF8(key)), value, -1, key) &&
           PyDict_SetItem(k->kw, key, Py_None) == 0;
    }
  return ok;
}

/* ---- from specs ------------------------------------------------------------------------------------------------- */

static void bad_inputs(struct trace_program *program, const struct program_kernel *k, const char *hint, const char *fmt,
                       ...) PRINTF(4, 5);
static void bad_inputs(struct trace_program *program, const struct program_kernel *k, const char *hint, const char *fmt,
                       ...) {
  va_list ap;
  va_start(ap, fmt);
  const char *text = arena_vprintf(program->a, fmt, ap);
  va_end(ap);
  diag_add(program->ds, DS_ERROR, DG_BAD_INPUTS, kernel_def_loc(program, k), "%s", text)->hint = hint;
}

/* Makes the call from k->params, whose index is the parameter of the signature that each fills.  The arrays are passed by
 * position if they are the first parameters, and by name if a parameter before one of them keeps its default. */
static bool make_call(struct trace_program *program, struct program_kernel *k, const struct signature *s) {
  bool *filled = arena_new_array(program->a, bool, (size_t)s->n + 1);
  bool prefix = true;
  for (int i = 0; i < k->n_params; i++) {
    assert(k->params[i].index >= 0 && k->params[i].index < s->n);
    filled[k->params[i].index] = true;
    prefix = prefix && k->params[i].index == i;
  }
  for (int i = 0; i < s->n; i++)
    if (s->needed[i] && !filled[i]) {
      bad_inputs(program, k, "give a shape for every parameter without a default",
                 "no shape is known for parameter \"%s\"", s->names[i]);
      return false;
    }
  k->args = PyTuple_New(prefix ? k->n_params : 0);
  k->kw = PyDict_New();
  bool ok = k->args && k->kw;
  for (int i = 0; ok && i < k->n_params; i++) {
    if (prefix) {
      PyTuple_SET_ITEM(k->args, i, Py_NewRef(Py_None));
      continue;
    }
    k->params[i].key = PyUnicode_FromString(s->names[k->params[i].index]);
    k->params[i].index = -1;
    ok = k->params[i].key && PyDict_SetItem(k->kw, k->params[i].key, Py_None) == 0;
  }
  return ok;
}

/* Reads one (shape, dtype); what: where it is from, for the user. */
static bool read_spec(struct trace_program *program, struct program_kernel *k, const char *what, PyObject *spec,
                      struct kparam *p) {
  PyObject *shape = NULL, *dtype = NULL;
  int64_t dims[HLO_RANK_MAX];
  int n = 0;
  if ((PyTuple_Check(spec) || PyList_Check(spec)) && PySequence_Size(spec) == 2) {
    shape = PySequence_GetItem(spec, 0);
    dtype = PySequence_GetItem(spec, 1);
  }
  const char *name = dtype && PyUnicode_Check(dtype) ? PyUnicode_AsUTF8(dtype) : NULL;
  enum dtype t = name ? dtype_from_name(name) : DT_NONE;
  if (dtype && t == DT_NONE && !name) { /* np.float32, np.dtype("int32") */
    PyArray_Descr *d = NULL;
    if (PyArray_DescrConverter(dtype, &d)) {
      t = dtype_from_num(d->type_num);
      Py_DECREF(d);
    }
    PyErr_Clear();
  }
  bool ok = shape && t != DT_NONE && args_dims(shape, "shape", &n, dims);
  for (int i = 0; ok && i < n; i++)
    ok = dims[i] >= 0;
  PyErr_Clear();
  if (!ok) {
    PyObject *r = PyObject_Repr(spec);
    const char *text = r ? PyUnicode_AsUTF8(r) : NULL;
    bad_inputs(program, k, "write ((128, 256), \"f32\"); dtypes: f32 f16 bf16 i32 i16 i8 u8 bool", "%s: cannot use %s",
               what, text ? text : "this entry");
    PyErr_Clear();
    Py_XDECREF(r);
  } else {
    p->rank = n;
    memcpy(p->dims, dims, (size_t)n * sizeof *dims);
    narrow_param(program, k, p, t);
  }
  Py_XDECREF(shape);
  Py_XDECREF(dtype);
  return ok;
}

static bool from_specs(struct trace_program *program, struct program_kernel *k, const struct signature *s) {
  PyObject *seq = PySequence_Fast(k->kernel->input_specs, "");
  if (!seq) {
    PyErr_Clear();
    bad_inputs(program, k, "write input_specs=[((128, 256), \"f32\"), …]", "input_specs must be a list");
    return false;
  }
  Py_ssize_t n = PySequence_Fast_GET_SIZE(seq);
  bool ok = n <= s->n;
  if (!ok)
    bad_inputs(program, k, NULL, "input_specs has %zd entries for %d parameters", n, s->n);
  k->params = arena_new_array(program->a, struct kparam, (size_t)n);
  for (Py_ssize_t i = 0; ok && i < n; i++) {
    k->params[i] = (struct kparam){.name = s->names[i], .index = i};
    ok = read_spec(program, k, "input_specs", PySequence_Fast_GET_ITEM(seq, i), &k->params[i]);
    k->n_params++;
  }
  Py_DECREF(seq);
  return ok && make_call(program, k, s);
}

static bool from_request(struct trace_program *program, struct program_kernel *k, const struct signature *s) {
  const struct trace_request *rq = program->rq;
  bool *taken = arena_new_array(program->a, bool, (size_t)s->n + 1);
  k->params = arena_new_array(program->a, struct kparam, (size_t)rq->n_inputs);
  for (int i = 0; i < rq->n_inputs; i++) {
    const struct trace_input_spec *in = &rq->inputs[i];
    int at = i;
    if (in->name)
      for (at = 0; at < s->n && strcmp(s->names[at], in->name) != 0;)
        at++;
    if (at >= s->n || s->variadic[at]) {
      if (in->name)
        bad_inputs(program, k, "names must be those of the function's parameters", "the kernel has no parameter \"%s\"",
                   in->name);
      else
        bad_inputs(program, k, NULL, "%d inputs were given for %d parameters", rq->n_inputs, s->n);
      return false;
    }
    if (taken[at] || in->shape.dtype == DT_TUPLE || in->shape.dtype == DT_NONE) {
      bad_inputs(program, k, NULL,
                 taken[at] ? "parameter \"%s\" is given twice" : "parameter \"%s\" has no usable dtype", s->names[at]);
      return false;
    }
    taken[at] = true;
    struct kparam *p = &k->params[k->n_params++];
    *p = (struct kparam){.name = s->names[at], .index = at, .rank = in->shape.rank};
    memcpy(p->dims, in->shape.dims, (size_t)p->rank * sizeof *p->dims);
    narrow_param(program, k, p, in->shape.dtype);
  }
  for (int i = 1; i < k->n_params; i++) /* sort by the order of the function */
    for (int j = i; j > 0 && k->params[j - 1].index > k->params[j].index; j--) {
      struct kparam t = k->params[j];
      k->params[j] = k->params[j - 1];
      k->params[j - 1] = t;
    }
  return make_call(program, k, s);
}

static void say_no_shapes(struct trace_program *program, struct program_kernel *k) {
  diag_add(program->ds, DS_ERROR, DG_NO_SHAPES, kernel_def_loc(program, k),
           "the shapes of the inputs of \"%s\" are not known", k->name)
      ->hint = program->rq->inputs_npz
                   ? "name the arrays of the file like the parameters"
                   : "decorate it with @trace(input_specs=[((128, 128), \"f32\"), …]), or call it with real arrays";
}

static bool from_npz(struct trace_program *program, struct program_kernel *k, const struct signature *s) {
  k->params = arena_new_array(program->a, struct kparam, (size_t)s->n);
  for (int i = 0; i < s->n; i++) {
    PyObject *o = s->variadic[i] ? NULL : values_npz_array(program, s->names[i], DT_NONE);
    bool ok = !o || (PyArray_Check(o) && add_array(program, k, s->names[i], o, i, NULL));
    Py_XDECREF(o);
    if (!ok || PyErr_Occurred())
      return false;
  }
  if (!k->n_params) {
    say_no_shapes(program, k);
    return false;
  }
  return make_call(program, k, s);
}

/* [(number of the parameter, (shape, dtype)), …] from python/nkx/annotations.py; NULL if there are none. */
static PyObject *annotated_specs(PyObject *fn) {
  PyObject *module = PyImport_ImportModule("nkx.annotations");
  PyObject *list = module ? PyObject_CallMethod(module, "specs_of", "O", fn) : NULL;
  if (!list || !PyList_Check(list) || !PyList_GET_SIZE(list))
    Py_CLEAR(list);
  PyErr_Clear();
  Py_XDECREF(module);
  return list;
}

bool kernel_is_annotated(PyObject *fn) {
  PyObject *specs = annotated_specs(fn);
  Py_XDECREF(specs);
  return specs;
}

static bool from_annotations(struct trace_program *program, struct program_kernel *k, const struct signature *s,
                             PyObject *specs) {
  Py_ssize_t n = PyList_GET_SIZE(specs);
  bool ok = true;
  k->params = arena_new_array(program->a, struct kparam, (size_t)n);
  for (Py_ssize_t i = 0; ok && i < n; i++) {
    int at = 0;
    PyObject *spec = NULL;
    ok = PyArg_ParseTuple(PyList_GET_ITEM(specs, i), "iO", &at, &spec) && at >= 0 && at < s->n;
    if (ok) {
      k->params[i] = (struct kparam){.name = s->names[at], .index = at};
      ok = read_spec(program, k, "annotations", spec, &k->params[i]);
      k->n_params++;
    }
  }
  return ok && make_call(program, k, s);
}

bool kernel_resolve(struct trace_program *program, struct program_kernel *k) {
  struct signature s = {0};
  if (k->resolved)
    return !k->refused;
  k->resolved = k->refused = true;
  if (!read_signature(program, k->fn, &s)) {
    PyErr_Clear();
    diag_add(program->ds, DS_ERROR, DG_BAD_ARGUMENT, kernel_def_loc(program, k),
             "the parameters of \"%s\" cannot be read", k->name);
    return false;
  }
  bool ok = false;
  PyObject *specs = NULL;
  if (k->kernel && k->kernel->input_specs)
    ok = from_specs(program, k, &s);
  else if (k->kernel && k->kernel->args)
    ok = from_arrays(program, k, &s);
  else if (program->rq->n_inputs || s.n == 0)
    ok = from_request(program, k, &s);
  else if (program->rq->inputs_npz)
    ok = from_npz(program, k, &s);
  else if ((specs = annotated_specs(k->fn)))
    ok = from_annotations(program, k, &s, specs);
  else
    say_no_shapes(program, k);
  Py_XDECREF(specs);
  if (!ok && PyErr_Occurred())
    program_exception(program, program->ds);
  k->refused = !ok;
  return ok;
}

bool kernel_arguments(const struct program_kernel *k, PyObject *const *values, PyObject **args, PyObject **kw) {
  Py_ssize_t n = PyTuple_GET_SIZE(k->args);
  *args = PyTuple_New(n);
  *kw = PyDict_Copy(k->kw);
  if (!*args || !*kw)
    return false;
  for (Py_ssize_t i = 0; i < n; i++)
    PyTuple_SET_ITEM(*args, i, Py_NewRef(PyTuple_GET_ITEM(k->args, i)));
  for (int i = 0; i < k->n_params; i++) {
    if (k->params[i].index >= 0) {
      assert(k->params[i].index < n);
      PyObject *old = PyTuple_GET_ITEM(*args, k->params[i].index);
      PyTuple_SET_ITEM(*args, k->params[i].index, Py_NewRef(values[i]));
      Py_DECREF(old);
    } else if (PyDict_SetItem(*kw, k->params[i].key, values[i]) < 0) {
      return false;
    }
  }
  return true;
}
