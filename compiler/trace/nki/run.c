/* run: runs an NKI kernel and records its calls, for a job or for a call with arrays. */
#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "trace/counting.h"
#include "trace/kernels.h"
#include "trace/nki/ast.h"
#include "trace/nki/nki.h"
#include "trace/nki/run.h"
#include "trace/operand.h"
#include "trace/refuse.h"

static uint64_t serials; /* never reused */

/* ---- recording --------------------------------------------------------------------------------------------------- */

static void begin(struct nki_recorder *r, struct nki_program *p, struct ranges *ranges, struct diags *ds) {
  *r = (struct nki_recorder){
      .program = p, .ranges = ranges, .ds = ds, .serial = ++serials, .outside = counting_serial()};
  r->base = PyThreadState_GetFrame(PyThreadState_Get());
  nki_now = r;
}

static void end(struct nki_recorder *r) {
  nki_now = NULL;
  Py_CLEAR(r->base);
}

/* Adds a parameter that is an array.  Returns its tensor as a Python object. */
static PyObject *add_input(struct nki_recorder *r, const char *name, int number, enum dtype t, int rank,
                           const int64_t *dims, const struct src_loc *at) {
  struct nki_error err = {.arena = r->program->arena};
  struct nki_tensor *made = nki_tensor_new(r->program, name, t, MEM_SHARED_HBM, rank, dims, number,
                                           src_locs_one(r->program->arena, at), &err);
  if (!made)
    return nki_raise(&err);
  const struct nki_view whole = nki_whole(made);
  return nki_wrap(r, &whole);
}

static bool is_written(const struct nki_program *p, const struct nki_tensor *t) {
  for (int i = 0; i < p->items.n; i++) {
    const struct nki_call *c = p->items.v[i].call;
    for (int k = 0; c && k < nki_n_params(nki_def(c)); k++)
      if (nki_def(c)->param[k].kind == NKI_PARAM_DST && c->value[k].kind == NKI_VIEW && c->value[k].view->tensor == t)
        return true;
  }
  return false;
}

static bool add_output(struct nki_recorder *r, PyObject *o, int number) {
  struct nki_program *p = r->program;
  static const char hint[] = "return what nl.ndarray(…, buffer=nl.shared_hbm) made";
  if (!nki_is_tensor(o)) {
    trace_refuse(DG_NKI_OUTPUT, hint, "the kernel returned an object of type %s, not a tensor", Py_TYPE(o)->tp_name);
    return false;
  }
  const struct nki_view *v = nki_view_of(r, o, "a result");
  if (!v)
    return false;
  struct nki_tensor *t = v->tensor;
  if (t->input >= 0)
    trace_refuse(DG_NKI_UNSUPPORTED, "copy it into a new tensor",
                 "the parameter %s is returned; that is not compiled here yet", t->name);
  else if (t->space != MEM_SHARED_HBM)
    trace_refuse(DG_NKI_OUTPUT, hint, "%s is in %s, but results are in shared_hbm", t->name, nisa_space_name(t->space));
  else if (v->rank != t->rank || nki_elements(v) != nki_tensor_extent(t))
    trace_refuse(DG_NKI_OUTPUT, hint, "a part of %s is returned", t->name);
  else if (!is_written(p, t))
    trace_refuse(DG_NKI_OUTPUT, NULL, "nothing is written to the result %s", t->name);
  else {
    p->outputs[number] = t;
    return true;
  }
  return false;
}

static bool add_outputs(struct nki_recorder *r, PyObject *result) {
  struct nki_program *p = r->program;
  const bool single = !PyTuple_Check(result) && !PyList_Check(result);
  const int n = single ? 1 : (int)PySequence_Fast_GET_SIZE(result);
  if (result == Py_None || n == 0) {
    trace_refuse(DG_NKI_OUTPUT, "return the tensors in shared_hbm that it writes", "the kernel returns nothing");
    return false;
  }
  p->outputs = arena_new_array(p->arena, struct nki_tensor *, (size_t)n);
  for (int i = 0; i < n; i++)
    if (!add_output(r, single ? result : PySequence_Fast_GET_ITEM(result, i), i))
      return false;
  p->n_outputs = n;
  return true;
}

/* ---- the record as Python objects -------------------------------------------------------------------------------- */

/* (tensor, partition, offset, [(size, stride), …]) */
static PyObject *view_object(const struct nki_view *v) {
  PyObject *dims = PyList_New(v->rank);
  for (int i = 0; dims && i < v->rank; i++)
    PyList_SET_ITEM(dims, i, Py_BuildValue("(LL)", (long long)v->dim[i].size, (long long)v->dim[i].stride));
  return dims ? Py_BuildValue("(iLLN)", v->tensor->number, (long long)v->partition, (long long)v->offset, dims) : NULL;
}

static PyObject *value_object(const struct nki_value *v) {
  switch (v->kind) {
  case NKI_VIEW:
    return view_object(v->view);
  case NKI_FLOAT:
    return PyFloat_FromDouble(v->number);
  case NKI_INT:
    return PyLong_FromLongLong(v->integer);
  case NKI_OP:
    return PyUnicode_FromString(v->op->nisa);
  case NKI_FLAG:
    return PyBool_FromLong(v->integer != 0);
  case NKI_WORD:
    return PyUnicode_FromString(v->word);
  case NKI_LIST: {
    PyObject *list = PyList_New(v->n);
    for (int i = 0; list && i < v->n; i++)
      PyList_SET_ITEM(list, i, PyLong_FromLongLong(v->ints[i]));
    return list;
  }
  case NKI_ABSENT:
    break;
  }
  return Py_NewRef(Py_None);
}

/* (name, engine, {parameter: value}) */
static PyObject *call_object(const struct nki_call *c) {
  const struct nki_call_def *def = nki_def(c);
  PyObject *values = PyDict_New();
  for (int k = 0; values && k < nki_n_params(def); k++) {
    PyObject *v = value_object(&c->value[k]);
    if (!v || PyDict_SetItemString(values, def->param[k].name, v) < 0)
      Py_CLEAR(values);
    Py_XDECREF(v);
  }
  return values ? Py_BuildValue("(ssN)", def->name, nisa_engine_name(c->engine), values) : NULL;
}

/* (name, memory, dtype, shape, parameter or -1) */
static PyObject *tensor_object(const struct nki_tensor *t) {
  PyObject *dims = PyTuple_New(t->rank);
  for (int i = 0; dims && i < t->rank; i++)
    PyTuple_SET_ITEM(dims, i, PyLong_FromLongLong(t->dims[i]));
  return dims ? Py_BuildValue("(ssNNi)", t->name, nisa_space_name(t->space), nki_dtype_object(t->dtype), dims, t->input)
              : NULL;
}

static bool append(PyObject *list, PyObject *o) {
  const bool ok = list && o && PyList_Append(list, o) == 0;
  Py_XDECREF(o);
  return ok;
}

/* (tensors, calls, numbers of the tensors that are outputs) */
static PyObject *program_object(const struct nki_program *p) {
  PyObject *tensors = PyList_New(0), *calls = PyList_New(0), *outputs = PyList_New(0);
  bool ok = tensors && calls && outputs;
  for (int i = 0; ok && i < p->tensors.n; i++)
    ok = append(tensors, tensor_object(p->tensors.v[i]));
  for (int i = 0; ok && i < p->items.n; i++)
    if (p->items.v[i].call)
      ok = append(calls, call_object(p->items.v[i].call));
  for (int i = 0; ok && i < p->n_outputs; i++)
    ok = append(outputs, PyLong_FromLong(p->outputs[i]->number));
  PyObject *all = ok ? PyTuple_Pack(3, tensors, calls, outputs) : NULL;
  Py_XDECREF(tensors);
  Py_XDECREF(calls);
  Py_XDECREF(outputs);
  return all;
}

PyObject *nki_evaluate(const struct nki_program *p, PyObject *arrays) {
  PyObject *record = program_object(p), *module = PyImport_ImportModule("nkx.nki_numpy");
  PyObject *r = record && module ? PyObject_CallMethod(module, "evaluate", "OO", record, arrays) : NULL;
  Py_XDECREF(record);
  Py_XDECREF(module);
  return r;
}

/* ---- a call with arrays ------------------------------------------------------------------------------------------ */

/* Replaces the arrays among the values of `arguments` by tensors.  Returns a new dict; the arrays go to `arrays`. */
static PyObject *with_tensors(struct nki_recorder *r, PyObject *arguments, PyObject *arrays) {
  PyObject *kw = PyDict_Copy(arguments), *key, *value;
  Py_ssize_t pos = 0;
  while (kw && PyDict_Next(arguments, &pos, &key, &value)) {
    if (!PyArray_Check(value))
      continue;
    PyArrayObject *a = (PyArrayObject *)value;
    const enum dtype t = dtype_from_num(PyArray_TYPE(a));
    int64_t dims[NKI_RANK_MAX];
    const int rank = PyArray_NDIM(a);
    if (t == DT_NONE || dtype_narrow(t) != t || rank > NKI_RANK_MAX) {
      trace_refuse(DG_NKI_DTYPE, NULL, "the argument %R has the type %R", key, PyArray_DESCR(a));
      Py_CLEAR(kw);
      break;
    }
    for (int i = 0; i < rank; i++)
      dims[i] = PyArray_DIM(a, i);
    PyObject *o = add_input(r, PyUnicode_AsUTF8(key), (int)PyList_GET_SIZE(arrays), t, rank, dims, NULL);
    if (!o || PyDict_SetItem(kw, key, o) < 0 || PyList_Append(arrays, value) < 0)
      Py_CLEAR(kw);
    Py_XDECREF(o);
  }
  return kw;
}

PyObject *nki_run_now(PyObject *self, PyObject *args) {
  PyObject *fn, *arguments;
  const char *name;
  enum target target;
  (void)self;
  if (!PyArg_ParseTuple(args, "OO!s", &fn, &PyDict_Type, &arguments, &name))
    return NULL;
  if (!target_from_name(name, &target))
    return PyErr_Format(PyExc_ValueError, "there is no machine %s", name);
  if (nki_now)
    return trace_refuse(DG_NKI_CALL, NULL, "a kernel cannot be run on arrays inside of a kernel");
  struct arena arena;
  struct ranges none;
  struct nki_recorder r;
  arena_init(&arena);
  ranges_init(&none, &arena);
  struct nki_program *p = arena_new(&arena, struct nki_program);
  *p = (struct nki_program){.arena = &arena, .name = "kernel", .target = target};
  PyObject *arrays = PyList_New(0), *empty = PyTuple_New(0), *out = NULL;
  begin(&r, p, &none, NULL);
  PyObject *kw = arrays && empty ? with_tensors(&r, arguments, arrays) : NULL;
  PyObject *result = kw ? PyObject_Call(fn, empty, kw) : NULL;
  const bool ok = result && add_outputs(&r, result);
  end(&r);
  if (ok)
    out = nki_evaluate(p, arrays);
  if (out && !PyTuple_Check(result) && !PyList_Check(result))
    Py_SETREF(out, Py_NewRef(PyList_GET_ITEM(out, 0)));
  Py_XDECREF(result);
  Py_XDECREF(kw);
  Py_XDECREF(arrays);
  Py_XDECREF(empty);
  ranges_clear(&none);
  arena_clear(&arena);
  return out;
}

/* ---- a kernel of a job ------------------------------------------------------------------------------------------- */

/* k's inputs are known if it is resolved. */
static struct trace_kernel *finish(struct trace_program *program, const struct program_kernel *k, bool has_shapes,
                                   const struct nki_program *p, const struct nki_ast *ast) {
  const int n_params = has_shapes ? k->n_params : 0;
  struct trace_kernel *t = arena_new(program->a, struct trace_kernel);
  *t = (struct trace_kernel){
      .name = k->name, .nki = p, .ast = ast, .n_inputs = n_params, .n_outputs = p->n_outputs, .program = program};
  t->inputs = arena_new_array(program->a, struct trace_tensor, (size_t)n_params);
  t->outputs = arena_new_array(program->a, struct trace_tensor, (size_t)p->n_outputs);
  for (int i = 0; i < n_params; i++) {
    const struct kparam *x = &k->params[i];
    t->inputs[i] = (struct trace_tensor){x->name, hlo_shape_array(program->a, x->dtype, x->rank, x->dims), -1};
  }
  for (int i = 0; i < p->n_outputs; i++) {
    const struct nki_tensor *x = p->outputs[i];
    t->outputs[i] = (struct trace_tensor){x->name, hlo_shape_array(program->a, x->dtype, x->rank, x->dims), -1};
  }
  return t;
}

/* The function to call for a kernel: the user's, or one around it that reads it as beta 1.  A new reference. */
static PyObject *function_of(const struct program_kernel *k) {
  if (k->kernel->nki != NKI_BETA_1)
    return Py_NewRef(k->fn);
  PyObject *module = PyImport_ImportModule("nkx.nki_beta1_kernel");
  PyObject *fn = module ? PyObject_CallMethod(module, "entry", "O", k->fn) : NULL;
  Py_XDECREF(module);
  return fn;
}

/* Calls the kernel with tensors.  Returns its result, or NULL with an exception. */
static PyObject *call_kernel(struct trace_program *program, const struct program_kernel *k, struct nki_recorder *r) {
  PyObject **values = arena_new_array(program->a, PyObject *, (size_t)k->n_params), *args = NULL, *kw = NULL,
           *result = NULL;
  bool ok = true;
  for (int i = 0; ok && i < k->n_params; i++) {
    const struct kparam *x = &k->params[i];
    values[i] = add_input(r, x->name, i, x->dtype, x->rank, x->dims, kernel_param_loc(program, k, x->name));
    ok = values[i];
  }
  PyObject *fn = ok && kernel_arguments(k, values, &args, &kw) ? function_of(k) : NULL;
  if (fn)
    result = PyObject_Call(fn, args, kw);
  Py_XDECREF(fn);
  for (int i = 0; i < k->n_params; i++)
    Py_XDECREF(values[i]);
  Py_XDECREF(args);
  Py_XDECREF(kw);
  return result;
}

/* Gives errors of Python in a kernel the codes of NKI. */
static void adopt_code(struct diag *d) {
  static const struct {
    const char *prefix;
    enum diag_code code;
  } codes[] = {{"AssertionError", DG_NKI_ASSERT}, {"ZeroDivisionError:", DG_NKI_HOST_ERROR},
               {"NameError:", DG_NKI_NAME},       {"UnboundLocalError:", DG_NKI_NAME},
               {"AttributeError:", DG_NKI_NAME},  {"OverflowError:", DG_NKI_HOST_ERROR}};
  for (size_t i = 0; d->code == DG_PYTHON_EXCEPTION && i < sizeof codes / sizeof *codes; i++)
    if (!strncmp(d->message, codes[i].prefix, strlen(codes[i].prefix)))
      d->code = codes[i].code;
}

/* Turns the exception that ended the kernel into a diagnostic. */
static void report(struct trace_program *program, const struct nki_recorder *r, const struct src_loc *at,
                   struct diags *ds) {
  const int before = ds->n;
  program_exception(program, ds);
  if (ds->n == before)
    return;
  struct diag *d = &ds->v[ds->n - 1];
  d->loc =
      d->loc ? nki_argument_loc(&program->ranges, d->loc, r->wrong) : at; /* NULL: no line of the source raised it */
  adopt_code(d);
}

enum status nki_trace_kernel(struct trace_program *program, struct program_kernel *k, bool has_shapes, struct diags *ds,
                             struct trace_kernel **out) {
  const int64_t start = clock_now_us();
  const int first = ds->n;
  struct nki_program *p = arena_new(program->a, struct nki_program);
  struct nki_recorder r;
  const struct src_loc *at = kernel_def_loc(program, k), *at_return = trace_return_loc(program, k);
  struct nki_ast *ast = nki_analyse(program, k, has_shapes, ds);
  if (!ast)
    return program_exception(program, ds);
  ast->time_us = clock_now_us() - start;
  const int analysed = ds->n;
  *p = (struct nki_program){.arena = program->a, .name = k->name, .target = program->rq->target};
  if (!has_shapes) {
    *out = finish(program, k, has_shapes, p, ast);
    (*out)->is_partial = true;
    return ST_INPUT;
  }
  p->locs = src_locs_one(program->a, at);
  p->return_locs = src_locs_one(program->a, at_return ? at_return : at);
  begin(&r, p, &program->ranges, ds);
  r.owner = program;
  PyObject *result = call_kernel(program, k, &r);
  const bool has_run = result && (r.n_refused || add_outputs(&r, result));
  if (!has_run)
    report(program, &r, at_return ? at_return : at, ds);
  end(&r);
  Py_XDECREF(result);
  const bool is_too_long = !has_run && ds->v[ds->n - 1].code == DG_TOO_MANY_OPS;
  nki_drop_repeated(ds, first, analysed);
  const bool ok = has_run && !r.n_refused && !nki_has_error(ds, first);
  *out = finish(program, k, true, p, ast);
  (*out)->is_partial = !ok;
  (*out)->time_us = clock_now_us() - start - ast->time_us;
  return ok ? ST_OK : is_too_long ? ST_LIMIT : ST_INPUT;
}
