/* run: runs an NKI kernel and records its calls, for a job or for a call with arrays. */
#include <assert.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "trace/calls.h"
#include "trace/kernels.h"
#include "trace/nki/ast.h"
#include "trace/nki/launch.h"
#include "trace/nki/nki.h"
#include "trace/nki/run.h"
#include "trace/operand.h"
#include "trace/refuse.h"

/* ---- the record as Python objects -------------------------------------------------------------------------------- */

/* Takes dims over. */
static PyObject *long_view_object(const struct nki_view *v, PyObject *dims) {
  PyObject *terms = PyList_New(v->n_terms);
  for (int i = 0; terms && i < v->n_terms; i++)
    PyList_SET_ITEM(terms, i,
                    Py_BuildValue("(iiLL)", v->terms[i].reg->number, v->terms[i].dim, (long long)v->terms[i].by,
                                  (long long)v->terms[i].offset));
  if (!terms)
    Py_DECREF(dims);
  return terms ? Py_BuildValue("(iLLNNNs)", v->tensor->number, (long long)v->partition, (long long)v->offset, dims,
                               terms, nki_dtype_object(v->tensor->dtype), nki_type_name(v->tensor))
               : NULL;
}

/* (tensor, partition, offset, [(size, stride), …]); where registers move it, with [(register, dimension of the tensor,
 * steps along it for each one of the register, the same in elements), …] and the type of its elements and its
 * name; so also where that type is not the tensor's. */
static PyObject *view_object(const struct nki_view *v) {
  PyObject *dims = PyList_New(v->rank);
  for (int i = 0; dims && i < v->rank; i++)
    PyList_SET_ITEM(dims, i, Py_BuildValue("(LL)", (long long)v->dim[i].size, (long long)v->dim[i].stride));
  if (dims && (v->n_terms || v->tensor->storage))
    return long_view_object(v, dims);
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

/* (core, name, engine, {parameter: value}) */
static PyObject *call_object(const struct nki_item *item) {
  const struct nki_call *c = item->call;
  const struct nki_call_def *def = nki_def(c);
  PyObject *values = PyDict_New();
  for (int k = 0; values && k < nki_n_params(def); k++) {
    PyObject *v = value_object(&c->value[k]);
    if (!v || PyDict_SetItemString(values, def->param[k].name, v) < 0)
      Py_CLEAR(values);
    Py_XDECREF(v);
  }
  return values ? Py_BuildValue("(issN)", item->core, def->name, nisa_engine_name(c->engine), values) : NULL;
}

/* (name, memory, dtype, shape, parameter or -1, type as kernels write it, the bytes of a constant or None) */
static PyObject *tensor_object(const struct nki_tensor *t) {
  PyObject *dims = PyTuple_New(t->rank);
  for (int i = 0; dims && i < t->rank; i++)
    PyTuple_SET_ITEM(dims, i, PyLong_FromLongLong(t->dims[i]));
  const Py_ssize_t bytes = t->initial ? (Py_ssize_t)nki_tensor_extent(t) * (Py_ssize_t)dtype_size(t->dtype) : 0;
  return dims ? Py_BuildValue("(ssNNisy#)", t->name, nisa_space_name(t->space), nki_dtype_object(t->dtype), dims,
                              t->input, nki_type_name(t), (const char *)t->initial, bytes)
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
      ok = append(calls, call_object(&p->items.v[i]));
  for (int i = 0; ok && i < p->n_outputs; i++)
    ok = append(outputs, PyLong_FromLong(p->outputs[i]->number));
  PyObject *all = ok ? PyTuple_Pack(3, tensors, calls, outputs) : NULL;
  Py_XDECREF(tensors);
  Py_XDECREF(calls);
  Py_XDECREF(outputs);
  return all;
}

PyObject *nki_evaluate(const struct nki_program *p, PyObject *arrays, unsigned seed) {
  PyObject *record = program_object(p), *module = PyImport_ImportModule("nkx.nki_numpy");
  PyObject *r = record && module ? PyObject_CallMethod(module, "evaluate", "OOI", record, arrays, seed) : NULL;
  Py_XDECREF(record);
  Py_XDECREF(module);
  return r;
}

bool nki_magnifies_rounding(const struct nki_program *p) {
  size_t widest = 0, narrowest = SIZE_MAX;
  for (int i = 0; i < p->n_outputs; i++)
    if (dtype_is_float(p->outputs[i]->dtype) && dtype_size(p->outputs[i]->dtype) > widest)
      widest = dtype_size(p->outputs[i]->dtype);
  for (int i = 0; i < p->tensors.n; i++) {
    const struct nki_tensor *t = p->tensors.v[i];
    const size_t size = t->packed == NKI_TF32 ? 2 : t->packed ? 1 : dtype_size(t->dtype); /* as wide as what is read */
    if ((t->space == MEM_SBUF || t->space == MEM_PSUM) && (t->packed || dtype_is_float(t->dtype)) && size < narrowest)
      narrowest = size;
  }
  return narrowest < widest;
}

/* ---- a call with arrays ------------------------------------------------------------------------------------------ */

/* A call with arrays, or with what has the shapes of arrays. */
struct call {
  PyObject *fn, *arguments; /* a dict by name */
  PyObject *arrays;         /* a list of those among the arguments */
  PyObject *empty;
};

static bool add_input(struct nki_recorder *r, struct call *c, const char *name, PyObject *array) {
  PyArrayObject *a = (PyArrayObject *)array;
  const enum dtype t = dtype_from_num(PyArray_TYPE(a));
  int64_t dims[NKI_RANK_MAX];
  const int rank = PyArray_NDIM(a);
  if (t == DT_NONE || dtype_narrow(t) != t || dtype_is_complex(t) || rank > NKI_RANK_MAX) {
    trace_refuse(DG_NKI_DTYPE, NULL, "the argument '%s' has the type %R", name, PyArray_DESCR(a));
    return false;
  }
  for (int i = 0; i < rank; i++)
    dims[i] = PyArray_DIM(a, i);
  return nki_add_input(r, name, (int)PyList_GET_SIZE(c->arrays), t, rank, dims, NULL) &&
         PyList_Append(c->arrays, array) == 0;
}

static bool add_inputs(struct nki_recorder *r, struct call *c) {
  PyObject *key, *value;
  Py_ssize_t pos = 0;
  bool ok = true;
  while (ok && PyDict_Next(c->arguments, &pos, &key, &value)) {
    PyObject *found = call_arrays(value);
    ok = found;
    for (Py_ssize_t i = 0; ok && i < PyList_GET_SIZE(found); i++) {
      PyObject *one = PyList_GET_ITEM(found, i);
      ok = add_input(r, c, call_array_name(r->program->arena, PyUnicode_AsUTF8(key), PyTuple_GET_ITEM(one, 0)),
                     PyTuple_GET_ITEM(one, 1));
    }
    Py_XDECREF(found);
  }
  return ok;
}

/* Calls the function with tensors in place of the arrays. */
static PyObject *run_call(void *user, struct nki_recorder *r) {
  const struct call *c = user;
  PyObject *kw = PyDict_Copy(c->arguments), *key, *value, *result = NULL;
  Py_ssize_t pos = 0;
  int n = 0;
  bool ok = kw;
  while (ok && PyDict_Next(c->arguments, &pos, &key, &value)) {
    PyObject *found = call_arrays(value);
    ok = found;
    for (Py_ssize_t i = 0; ok && i < PyList_GET_SIZE(found); i++) {
      PyObject *o = nki_input_object(r, n++);
      PyObject *now = o ? call_with(PyDict_GetItem(kw, key), PyTuple_GET_ITEM(PyList_GET_ITEM(found, i), 0), o) : NULL;
      ok = now && PyDict_SetItem(kw, key, now) == 0;
      Py_XDECREF(now);
      Py_XDECREF(o);
    }
    Py_XDECREF(found);
  }
  if (ok)
    result = PyObject_Call(c->fn, c->empty, kw);
  Py_XDECREF(kw);
  return result;
}

/* Records the call in p. */
static bool record_call(struct nki_program *p, struct ranges *ranges, struct diags *ds, struct call *c,
                        enum nki_returned *returned) {
  struct nki_recorder r;
  c->arrays = PyList_New(0);
  c->empty = PyTuple_New(0);
  nki_record_begin(&r, p, ranges, ds);
  const bool ok = c->arrays && c->empty && add_inputs(&r, c) && nki_record_instances(&r, run_call, c, returned);
  nki_record_end(&r);
  struct nki_error err = {.arena = p->arena};
  const struct nki_call *call;
  const struct nki_tensor *tensor;
  return ok && ((nki_check_dependences(p, &err, &call) && nki_check_meetings(p, &err, &call) &&
                 nki_check_addresses(p, &err, &tensor)) ||
                nki_raise(&err));
}

static void drop_call(struct call *c) {
  Py_XDECREF(c->arrays);
  Py_XDECREF(c->empty);
}

/* Copies the results that are parameters into the caller's arrays. */
static bool write_back(const struct nki_program *p, PyObject *arrays, PyObject *results) {
  for (int i = 0; i < p->n_outputs; i++) {
    const struct nki_tensor *t = p->outputs[i];
    if (t->input < 0 || !nki_is_written(p, t))
      continue;
    PyArrayObject *to = (PyArrayObject *)PyList_GET_ITEM(arrays, t->input);
    if (PyArray_ISWRITEABLE(to) && PyArray_CopyInto(to, (PyArrayObject *)PyList_GET_ITEM(results, i)) < 0)
      return false;
  }
  return true;
}

PyObject *nki_run_now(PyObject *self, PyObject *args) {
  PyObject *grid, *out = NULL;
  struct call c = {0};
  const char *name;
  enum target target;
  enum nki_returned returned = NKI_RETURNED_NOTHING;
  (void)self;
  if (!PyArg_ParseTuple(args, "OO!sO", &c.fn, &PyDict_Type, &c.arguments, &name, &grid))
    return NULL;
  if (!target_from_name(name, &target))
    return PyErr_Format(PyExc_ValueError, "there is no machine %s", name);
  if (nki_now)
    return trace_refuse(DG_NKI_CALL, NULL, "a kernel cannot be run on arrays inside of a kernel");
  struct arena arena;
  struct ranges none;
  arena_init(&arena);
  ranges_init(&none, &arena);
  struct nki_program *p = arena_new(&arena, struct nki_program);
  *p = (struct nki_program){.arena = &arena, .name = "kernel", .target = target};
  if (nki_read_grid(grid, &arena, &p->grid) && record_call(p, &none, NULL, &c, &returned))
    out = nki_evaluate(p, c.arrays, 0);
  if (out && !write_back(p, c.arrays, out))
    Py_CLEAR(out);
  if (out && returned == NKI_RETURNED_NOTHING)
    Py_SETREF(out, Py_NewRef(Py_None));
  else if (out && returned == NKI_RETURNED_TENSOR)
    Py_SETREF(out, Py_NewRef(PyList_GET_ITEM(out, 0)));
  drop_call(&c);
  ranges_clear(&none);
  arena_clear(&arena);
  return out;
}

/* ---- a call by a kernel that is traced ---------------------------------------------------------------------------- */

/* Returns the record among the trace's calls that equals p; p itself, with a name of its own, if there is none. */
static const struct nki_program *keep_call(struct tracer *tr, struct nki_program *p) {
  int same_name = 0;
  const size_t len = strlen(p->name);
  for (int i = 0; i < tr->calls.n; i++) {
    const char *name = tr->calls.v[i]->name;
    if (nki_programs_equal(tr->calls.v[i], p))
      return tr->calls.v[i];
    same_name += !strncmp(name, p->name, len) && (!name[len] || name[len] == '.');
  }
  if (same_name)
    p->name = arena_printf(p->arena, "%s.%d", p->name, same_name + 1);
  array_push(tr->a, &tr->calls, p);
  return p;
}

/* (name, [(shape, dtype), …], [(result, operand), …], returned) */
static PyObject *describe_call(const struct nki_program *p, enum nki_returned returned) {
  PyObject *outputs = PyList_New(0), *aliases = PyList_New(0);
  bool ok = outputs && aliases;
  for (int i = 0; ok && i < p->n_outputs; i++) {
    const struct nki_tensor *t = p->outputs[i];
    PyObject *dims = PyTuple_New(t->rank);
    for (int d = 0; dims && d < t->rank; d++)
      PyTuple_SET_ITEM(dims, d, PyLong_FromLongLong(t->dims[d]));
    ok = append(outputs, dims ? Py_BuildValue("(NN)", dims, nki_dtype_object(t->dtype)) : NULL) &&
         (t->input < 0 || !nki_is_written(p, t) || append(aliases, Py_BuildValue("(ii)", i, t->input)));
  }
  PyObject *r = ok ? Py_BuildValue("(sOOi)", p->name, outputs, aliases, (int)returned) : NULL;
  Py_XDECREF(outputs);
  Py_XDECREF(aliases);
  return r;
}

/* The kernel's own Python runs outside of the trace: its arrays are constants. */
PyObject *nki_record_call(PyObject *self, PyObject *args) {
  struct tracer *tr = tracer_now;
  PyObject *grid, *out = NULL;
  struct call c = {0};
  const char *name;
  enum nki_returned returned = NKI_RETURNED_NOTHING;
  (void)self;
  if (!PyArg_ParseTuple(args, "OsO!O", &c.fn, &name, &PyDict_Type, &c.arguments, &grid))
    return NULL;
  if (!tr)
    return trace_refuse(DG_NKI_CALL, NULL, "no kernel is traced that could call %s", name);
  struct nki_program *p = arena_new(tr->a, struct nki_program);
  const struct src_loc *at = ranges_here_in_round(tr->ranges, tr->base);
  *p = (struct nki_program){.arena = tr->a,
                            .name = arena_printf(tr->a, HLO_NATIVE_PREFIX "%s", name),
                            .target = program_now ? program_now->rq->target : TARGET_TRN2,
                            .on_one_core = true,
                            .locs = src_locs_one(tr->a, at)};
  p->return_locs = p->locs;
  if (!nki_read_grid(grid, p->arena, &p->grid))
    return NULL;
  tracer_now = NULL;
  const bool ok = record_call(p, tr->ranges, tr->ds, &c, &returned);
  tracer_now = tr;
  if (ok) {
    nki_warn_of_cores(p, tr->ds, at);
    out = describe_call(keep_call(tr, p), returned);
  }
  drop_call(&c);
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
    t->inputs[i] = (struct trace_tensor){x->name, hlo_shape_array(program->a, x->dtype, x->rank, x->dims), -1, false};
  }
  for (int i = 0; i < p->n_outputs; i++) {
    const struct nki_tensor *x = p->outputs[i];
    t->outputs[i] = (struct trace_tensor){x->name, hlo_shape_array(program->a, x->dtype, x->rank, x->dims),
                                          nki_is_written(p, x) ? x->input : -1, false};
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

struct job_call {
  struct trace_program *program;
  const struct program_kernel *k;
};

static bool add_parameters(const struct job_call *c, struct nki_recorder *r) {
  for (int i = 0; i < c->k->n_params; i++) {
    const struct kparam *x = &c->k->params[i];
    if (!nki_add_input(r, x->name, i, x->dtype, x->rank, x->dims, kernel_param_loc(c->program, c->k, x->name)))
      return false;
  }
  return true;
}

/* True if newer NKI takes the object as an argument of a kernel: a list may change between the compile and the run, and an object
 * is known by what its __dict__ has. */
static bool is_argument(PyObject *o, const char *name) {
  const bool is_plain = o == Py_None || PyNumber_Check(o) || PyUnicode_Check(o) || PyDict_Check(o) || PyType_Check(o) ||
                        PyCallable_Check(o) || PySlice_Check(o) || PyArray_CheckAnyScalar(o) || PyArray_DescrCheck(o) ||
                        nki_is_tensor(o);
  if (PyList_Check(o)) {
    trace_refuse(DG_NKI_ARGUMENT, "give a tuple", "the argument %s is a list, which no kernel takes", name);
    return false;
  }
  bool ok = true;
  for (Py_ssize_t i = 0; ok && PyTuple_Check(o) && i < PyTuple_GET_SIZE(o); i++)
    ok = is_argument(PyTuple_GET_ITEM(o, i), name);
  if (ok && !is_plain && !PyTuple_Check(o) && !PyObject_HasAttrString(o, "__dict__") &&
      !PyObject_HasAttrString(o, "__slots__")) {
    trace_refuse(DG_NKI_ARGUMENT, "give a number, a string, a tuple, or an instance of a class of yours",
                 "the argument %s is an object of type %s, which has no __dict__", name, Py_TYPE(o)->tp_name);
    return false;
  }
  return ok;
}

static bool are_arguments(PyObject *args, PyObject *kw) {
  PyObject *key, *value;
  bool ok = true;
  for (Py_ssize_t i = 0; ok && i < PyTuple_GET_SIZE(args); i++)
    ok = is_argument(PyTuple_GET_ITEM(args, i), "of the kernel");
  for (Py_ssize_t at = 0; ok && kw && PyDict_Next(kw, &at, &key, &value);)
    ok = is_argument(value, PyUnicode_AsUTF8(key));
  return ok;
}

/* Calls the kernel with tensors. */
static PyObject *run_kernel(void *user, struct nki_recorder *r) {
  const struct job_call *c = user;
  const int n = c->k->n_params;
  PyObject **values = arena_new_array(c->program->a, PyObject *, (size_t)n), *args = NULL, *kw = NULL, *result = NULL;
  bool ok = true;
  for (int i = 0; i < n; i++)
    ok &= (values[i] = nki_input_object(r, i)) != NULL;
  PyObject *fn = ok && kernel_arguments(c->k, values, &args, &kw) ? function_of(c->k) : NULL;
  if (fn && (c->k->kernel->nki == NKI_BETA_1 || are_arguments(args, kw)))
    result = PyObject_Call(fn, args, kw);
  Py_XDECREF(fn);
  for (int i = 0; i < n; i++)
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
  const bool is_call = !strncmp(d->message, "TypeError:", 10) && strstr(d->message, " argument");
  if (d->code == DG_PYTHON_EXCEPTION && is_call) /* one is missing, unknown, or too many are given */
    d->code = DG_NKI_CALL;
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

/* Checks rounds that are independent, what the cores have to do with each other, and the tensors at addresses. */
static bool check_whole(const struct nki_program *p, struct diags *ds) {
  struct nki_error err = {.arena = p->arena};
  const struct nki_call *call;
  const struct nki_tensor *tensor;
  struct src_locs at = {0};
  if (!nki_check_dependences(p, &err, &call) || !nki_check_meetings(p, &err, &call))
    at = call->locs;
  else if (!nki_check_addresses(p, &err, &tensor))
    at = tensor->locs;
  else
    return true;
  diag_add(ds, DS_ERROR, err.code, at.n ? at.v[0] : NULL, "%s", err.text)->hint = err.hint;
  return false;
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
  const struct half_typed half = kernel_half_typed(program, k);
  if (!has_shapes) {
    *out = finish(program, k, has_shapes, p, ast);
    (*out)->is_partial = true;
    return ST_INPUT;
  }
  p->locs = src_locs_one(program->a, at);
  p->return_locs = src_locs_one(program->a, at_return ? at_return : at);
  struct job_call call = {program, k};
  enum nki_returned returned;
  PyObject *grid = k->kernel->grid ? k->kernel->grid : k->kernel->launched;
  nki_record_begin(&r, p, &program->ranges, ds);
  r.owner = program;
  r.first_finding = first;
  r.n_findings = analysed - first;
  r.is_cut = half.is_cut;
  const bool has_run = nki_launch_grid(grid, k->kernel->nki, p->arena, &p->grid) && add_parameters(&call, &r) &&
                       nki_record_instances(&r, run_kernel, &call, &returned);
  if (!has_run)
    report(program, &r, at_return ? at_return : at, ds);
  nki_record_end(&r);
  const bool is_too_long = !has_run && ds->n > first && ds->v[ds->n - 1].code == DG_TOO_MANY_OPS;
  nki_drop_repeated(ds, first, analysed - first);
  if (half.uses_cut) /* its mistakes may be due to what is not there */
    ds->n = first;
  const bool ok =
      has_run && !half.is_cut && !half.uses_cut && !r.n_refused && !nki_has_error(ds, first) && check_whole(p, ds);
  if (ok)
    nki_warn_of_cores(p, ds, at);
  *out = finish(program, k, true, p, ast);
  (*out)->is_partial = !ok;
  (*out)->time_us = clock_now_us() - start - ast->time_us;
  return ok ? ST_OK : is_too_long ? ST_LIMIT : ST_INPUT;
}
