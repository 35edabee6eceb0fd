/* resolve: determines which of a kernel's parameters are arrays, and their shapes.
 *
 * The first available source is used: input_specs of @trace, the arrays of a .specialize or a call of a decorated function in
 * the source, the request's inputs, its npz file, annotations with a shape, a call of a plain function.  Every other parameter keeps its default or the Python
 * value that it was given.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "trace/args.h"
#include "trace/bytecode.h"
#include "trace/calls.h"
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
  const char *number = strrchr(name, '_');
  if (code && !at && number && number[1 + strspn(number + 1, "0123456789")] == 0) /* grads_2 of *grads */
    at = ranges_param(&program->ranges, code, arena_strndup(program->a, name, (size_t)(number - name)), k->name);
  Py_XDECREF(code);
  return at ? at : kernel_def_loc(program, k);
}

/* ---- parameters --------------------------------------------------------------------------------------------- */

/* The function's parameters, from Python's inspect. */
struct signature {
  int n;
  const char **names;
  bool *needed, *variadic; /* needed: has no default; variadic: is *args or **kwargs */
  bool *by_position, *by_name;
  int rest; /* the number of *args, or n */
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
  s->by_position = arena_new_array(program->a, bool, (size_t)n);
  s->by_name = arena_new_array(program->a, bool, (size_t)n);
  s->rest = (int)n;
  bool ok = values && empty;
  for (Py_ssize_t i = 0; ok && i < n; i++) {
    PyObject *p = PyList_GET_ITEM(values, i), *name = PyObject_GetAttrString(p, "name"),
             *dflt = PyObject_GetAttrString(p, "default"), *kind = PyObject_GetAttrString(p, "kind");
    ok = name && dflt && kind;
    if (ok) {
      long kd = PyLong_AsLong(kind);
      s->names[i] = arena_strdup(program->a, PyUnicode_AsUTF8(name));
      enum {
        POSITIONAL_ONLY,
        POSITIONAL_OR_KEYWORD,
        VAR_POSITIONAL,
        KEYWORD_ONLY,
        VAR_KEYWORD
      }; /* inspect's numbers */
      s->variadic[i] = kd == VAR_POSITIONAL || kd == VAR_KEYWORD;
      s->by_position[i] = kd <= VAR_POSITIONAL;
      s->by_name[i] = kd == POSITIONAL_OR_KEYWORD || kd == KEYWORD_ONLY;
      s->rest = kd == VAR_POSITIONAL ? (int)i : s->rest;
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
  hlo_dims_copy(p->rank, p->dims, PyArray_DIMS(a));
  narrow_param(program, k, p, t);
  return true;
}

/* ---- from recorded arrays --------------------------------------------------------------------------------------- */

/* Adds the arrays of an argument, itself or in a tuple.  Room for them is made here. */
static bool add_arrays(struct trace_program *program, struct program_kernel *k, const char *name, PyObject *o,
                       Py_ssize_t index, PyObject *key) {
  PyObject *found = call_arrays(o);
  if (!found)
    return false;
  const int n = (int)PyList_GET_SIZE(found);
  bool ok = true;
  struct kparam *all = arena_new_array(program->a, struct kparam, (size_t)(k->n_params + n));
  if (k->n_params)
    memcpy(all, k->params, (size_t)k->n_params * sizeof *all);
  k->params = all;
  for (int i = 0; ok && i < n; i++) {
    PyObject *path = PyTuple_GET_ITEM(PyList_GET_ITEM(found, i), 0),
             *array = PyTuple_GET_ITEM(PyList_GET_ITEM(found, i), 1);
    ok = add_array(program, k, call_array_name(program->a, name, path), array, index, key);
    k->params[k->n_params - 1].path = Py_NewRef(path);
  }
  Py_DECREF(found);
  return ok;
}

static bool from_arrays(struct trace_program *program, struct program_kernel *k, const struct signature *s,
                        PyObject *args, PyObject *kw) {
  PyObject *key, *value;
  Py_ssize_t n = PyTuple_GET_SIZE(args), pos = 0;
  k->args = PyTuple_New(n);
  k->kw = PyDict_Copy(kw);
  if (!k->args || !k->kw)
    return false;
  bool ok = true;
  for (Py_ssize_t i = 0; i < n; i++) {
    PyObject *o = PyTuple_GET_ITEM(args, i);
    PyTuple_SET_ITEM(k->args, i, Py_NewRef(PyArray_Check(o) ? Py_None : o));
    if (!ok)
      continue;
    int at = 0;
    while (at < s->n && at < i && !s->variadic[at])
      at++;
    const char *name = at < s->n ? s->names[at] : "p";
    if (at < s->n && s->variadic[at])
      name = arena_printf(program->a, "%s_%d", name, (int)(i - at));
    ok = add_arrays(program, k, name, o, i, NULL);
  }
  for (pos = 0; ok && PyDict_Next(kw, &pos, &key, &value);)
    ok = add_arrays(program, k, arena_strdup(program->a, PyUnicode_AsUTF8(key)), value, -1, key) &&
         (!PyArray_Check(value) || PyDict_SetItem(k->kw, key, Py_None) == 0);
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

/* Adds a parameter to the kernel: parameter `at` of the signature, or element `element` of *args. */
static struct kparam *add_param(struct trace_program *program, struct program_kernel *k, const struct signature *s,
                                int at, int element) {
  struct kparam *p = &k->params[k->n_params++];
  const char *name = at == s->rest ? arena_printf(program->a, "%s_%d", s->names[at], element) : s->names[at];
  *p = (struct kparam){.name = name, .index = at, .element = element};
  return p;
}

/* Finds the parameter for entry i of n entries without names.  Entries fill the parameters in order.  Parameters after
 * *args get an entry if they have no default, and *args gets the remaining ones.  Returns false if there are too many
 * entries. */
static bool place_entry(const struct signature *s, int n, int i, int *at, int *element) {
  int needed = 0;
  *at = i;
  *element = 0;
  if (i < s->rest || s->rest == s->n)
    return i < s->n && !s->variadic[i];
  for (int p = s->rest + 1; p < s->n; p++)
    needed += s->needed[p];
  const int taken = n - s->rest > needed ? n - s->rest - needed : 0;
  *at = s->rest;
  *element = i - s->rest;
  for (int after = i - s->rest - taken; after >= 0 && *at < s->n; *element = 0)
    after -= ++*at < s->n && s->needed[*at];
  return *at < s->n;
}

/* Makes the call from k->params, which are sorted by their parameter in the signature (index).  Arrays are passed by
 * position, and by name after a parameter that keeps its default. */
static bool make_call(struct trace_program *program, struct program_kernel *k, const struct signature *s) {
  bool *filled = arena_new_array(program->a, bool, (size_t)s->n + 1);
  int n = 0;
  for (int i = 0; i < k->n_params; i++)
    filled[k->params[i].index] = true;
  for (int i = 0; i < s->n; i++)
    if (s->needed[i] && !filled[i]) {
      bad_inputs(program, k, "give a shape for every parameter without a default",
                 "no shape is known for parameter \"%s\"", s->names[i]);
      return false;
    }
  k->kw = PyDict_New();
  bool ok = k->kw;
  for (int i = 0; ok && i < k->n_params; i++) {
    struct kparam *p = &k->params[i];
    const int at = (int)p->index;
    if (s->by_position[at] && at + p->element == n) {
      p->index = n++;
      continue;
    }
    if (!s->by_name[at]) {
      bad_inputs(program, k, "give a shape for every parameter before it",
                 "parameter \"%s\" can only be passed by position, and one before it keeps its default", s->names[at]);
      return false;
    }
    p->key = PyUnicode_FromString(s->names[at]);
    p->index = -1;
    ok = p->key && PyDict_SetItem(k->kw, p->key, Py_None) == 0;
  }
  k->args = PyTuple_New(n);
  for (int i = 0; k->args && i < n; i++)
    PyTuple_SET_ITEM(k->args, i, Py_NewRef(Py_None));
  return ok && k->args;
}

/* A type as a spec names it: "f32", np.float32, np.dtype("int32"), …; DT_NONE for others. */
static enum dtype dtype_of_spec(PyObject *dtype) {
  if (PyUnicode_Check(dtype))
    return dtype_from_name(PyUnicode_AsUTF8(dtype));
  PyArray_Descr *d = NULL;
  enum dtype t = DT_NONE;
  if (PyArray_DescrConverter(dtype, &d)) {
    t = dtype_from_num(d->type_num);
    Py_DECREF(d);
  }
  PyErr_Clear();
  return t;
}

/* Reads one (shape, dtype).  `what` names its origin in the message to the user. */
static bool read_spec(struct trace_program *program, struct program_kernel *k, const char *what, PyObject *spec,
                      struct kparam *p) {
  PyObject *shape = NULL, *dtype = NULL;
  int64_t dims[HLO_RANK_MAX];
  int n = 0;
  if ((PyTuple_Check(spec) || PyList_Check(spec)) && PySequence_Size(spec) == 2) {
    shape = PySequence_GetItem(spec, 0);
    dtype = PySequence_GetItem(spec, 1);
  }
  const enum dtype t = dtype ? dtype_of_spec(dtype) : DT_NONE;
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
    hlo_dims_copy(n, p->dims, dims);
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
  const int n = (int)PySequence_Fast_GET_SIZE(seq);
  int at, element;
  bool ok = true;
  k->params = arena_new_array(program->a, struct kparam, (size_t)n);
  for (int i = 0; ok && i < n; i++) {
    ok = place_entry(s, n, i, &at, &element);
    if (!ok)
      bad_inputs(program, k, NULL, "input_specs has %d entries for %d parameters", n, s->n);
    ok = ok &&
         read_spec(program, k, "input_specs", PySequence_Fast_GET_ITEM(seq, i), add_param(program, k, s, at, element));
  }
  Py_DECREF(seq);
  return ok && make_call(program, k, s);
}

/* Finds the parameter with this name, or for a name like grads_2 the parameter *args and the element's number.  Returns
 * false if there is none. */
static bool find_param(const struct signature *s, const char *name, int *at, int *element) {
  *element = 0;
  for (*at = 0; *at < s->n; ++*at)
    if (!s->variadic[*at] && strcmp(s->names[*at], name) == 0)
      return true;
  const size_t len = s->rest < s->n ? strlen(s->names[s->rest]) : 0;
  if (!len || strncmp(name, s->names[s->rest], len) != 0 || name[len] != '_' || !name[len + 1] ||
      strspn(name + len + 1, "0123456789") != strlen(name + len + 1) || strlen(name + len + 1) > 4)
    return false;
  *at = s->rest;
  *element = atoi(name + len + 1);
  return true;
}

/* Sorts the parameters in the function's order.  Returns false if one is given twice or an element of *args is
 * missing. */
static bool order_params(struct trace_program *program, struct program_kernel *k) {
  for (int i = 1; i < k->n_params; i++)
    for (int j = i; j > 0; j--) {
      const struct kparam a = k->params[j - 1], b = k->params[j];
      if (a.index < b.index || (a.index == b.index && a.element < b.element))
        break;
      k->params[j - 1] = b;
      k->params[j] = a;
    }
  for (int i = 0; i < k->n_params; i++) {
    const struct kparam *p = &k->params[i], *before = i ? p - 1 : NULL;
    const bool follows = before && before->index == p->index;
    if (follows && before->element == p->element) {
      bad_inputs(program, k, NULL, "parameter \"%s\" is given twice", p->name);
      return false;
    }
    if (p->element != (follows ? before->element + 1 : 0)) {
      bad_inputs(program, k, "number them from 0", "an input before \"%s\" is missing", p->name);
      return false;
    }
  }
  return true;
}

static bool from_request(struct trace_program *program, struct program_kernel *k, const struct signature *s) {
  const struct trace_request *rq = program->rq;
  k->params = arena_new_array(program->a, struct kparam, (size_t)rq->n_inputs);
  for (int i = 0; i < rq->n_inputs; i++) {
    const struct trace_input_spec *in = &rq->inputs[i];
    int at, element;
    if (in->name ? !find_param(s, in->name, &at, &element) : !place_entry(s, rq->n_inputs, i, &at, &element)) {
      if (in->name)
        bad_inputs(program, k, "names must be those of the function's parameters", "the kernel has no parameter \"%s\"",
                   in->name);
      else
        bad_inputs(program, k, NULL, "%d inputs were given for %d parameters", rq->n_inputs, s->n);
      return false;
    }
    struct kparam *p = add_param(program, k, s, at, element);
    if (in->shape.dtype == DT_TUPLE || in->shape.dtype == DT_NONE) {
      bad_inputs(program, k, NULL, "parameter \"%s\" has no usable dtype", p->name);
      return false;
    }
    p->rank = in->shape.rank;
    hlo_dims_copy(p->rank, p->dims, in->shape.dims);
    narrow_param(program, k, p, in->shape.dtype);
  }
  return order_params(program, k) && make_call(program, k, s);
}

static void say_no_shapes(struct trace_program *program, struct program_kernel *k) {
  diag_add(program->ds, DS_ERROR, DG_NO_SHAPES, kernel_def_loc(program, k),
           "the shapes of the inputs of \"%s\" are not known", k->name)
      ->hint = program->rq->inputs_npz ? "name the arrays of the file like the parameters"
               : k->kernel && k->kernel->nki
                   ? "annotate its parameters, a: nl.tensor[128, 512], or call it with real arrays"
                   : arena_printf(program->a,
                                  "call it with arrays, %s(np.zeros((128, 128), np.float32), …), or decorate it with "
                                  "@trace(input_specs=[((128, 128), \"f32\"), …])",
                                  k->name);
}

/* Returns [(number of the parameter, (shape, dtype)), …] from python/nkx/annotations.py; NULL if there are none. */
static PyObject *annotated_specs(PyObject *fn) {
  PyObject *module = PyImport_ImportModule("nkx.annotations");
  PyObject *list = module ? PyObject_CallMethod(module, "specs_of", "O", fn) : NULL;
  if (!list || !PyList_Check(list) || !PyList_GET_SIZE(list))
    Py_CLEAR(list);
  PyErr_Clear();
  Py_XDECREF(module);
  return list;
}

/* The type that an annotation gives parameter `at`; DT_NONE if none does.  Files do not name the types of narrow floats. */
static enum dtype annotated_dtype(PyObject *specs, int at) {
  for (Py_ssize_t i = 0; specs && i < PyList_GET_SIZE(specs); i++) {
    PyObject *shape, *dtype;
    int which;
    if (PyArg_ParseTuple(PyList_GET_ITEM(specs, i), "i(OO)", &which, &shape, &dtype) && which == at)
      return dtype_of_spec(dtype);
  }
  PyErr_Clear();
  return DT_NONE;
}

static bool from_npz(struct trace_program *program, struct program_kernel *k, const struct signature *s) {
  PyObject *specs = annotated_specs(k->fn);
  bool ok = true;
  k->params = arena_new_array(program->a, struct kparam, (size_t)s->n);
  for (int i = 0; ok && i < s->n; i++) {
    PyObject *o = s->variadic[i] ? NULL : values_npz_array(program, s->names[i], annotated_dtype(specs, i));
    ok = (!o || (PyArray_Check(o) && add_array(program, k, s->names[i], o, i, NULL))) && !PyErr_Occurred();
    Py_XDECREF(o);
  }
  Py_XDECREF(specs);
  if (ok && !k->n_params) {
    say_no_shapes(program, k);
    return false;
  }
  return ok && make_call(program, k, s);
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
    if (!program_was_stopped(program->ds)) /* a trace function of the source runs in Python's inspect, too */
      diag_add(program->ds, DS_ERROR, DG_BAD_ARGUMENT, kernel_def_loc(program, k),
               "the parameters of \"%s\" cannot be read", k->name);
    return false;
  }
  bool ok = false;
  PyObject *specs = NULL, *call = NULL;
  if (k->kernel && k->kernel->input_specs)
    ok = from_specs(program, k, &s);
  else if (k->kernel && k->kernel->args)
    ok = from_arrays(program, k, &s, k->kernel->args, k->kernel->kw);
  else if (program->rq->n_inputs || s.n == 0)
    ok = from_request(program, k, &s);
  else if (program->rq->inputs_npz)
    ok = from_npz(program, k, &s);
  else if ((specs = annotated_specs(k->fn)))
    ok = from_annotations(program, k, &s, specs);
  else if ((call = calls_of(program, k->fn)))
    ok = from_arrays(program, k, &s, PyTuple_GET_ITEM(call, 0), PyTuple_GET_ITEM(call, 1));
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
    const struct kparam *p = &k->params[i];
    assert(p->index < n);
    PyObject *old = p->index >= 0 ? PyTuple_GET_ITEM(*args, p->index) : PyDict_GetItem(*kw, p->key); /* borrowed */
    PyObject *now = p->path ? call_with(old, p->path, values[i]) : Py_NewRef(values[i]);
    if (!now)
      return false;
    if (p->index >= 0) {
      PyTuple_SET_ITEM(*args, p->index, now);
      Py_DECREF(old);
    } else {
      const bool is_set = PyDict_SetItem(*kw, p->key, now) == 0;
      Py_DECREF(now);
      if (!is_set)
        return false;
    }
  }
  return true;
}
