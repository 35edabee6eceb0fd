/* program: executes one source as a module, and finds its kernels. */
#include "trace/program.h"

#include <assert.h>
#include <string.h>

#include "trace/bytecode.h"
#include "trace/calls.h"
#include "trace/counting.h"
#include "trace/kernels.h"

struct trace_program *program_now;

/* ---- running user code ------------------------------------------------------------------------------------------- */

void program_enter(struct trace_program *program, struct diags *ds) {
  program->ds = ds;
  if (program->depth++)
    return;
  program->old_stdout = Py_XNewRef(PySys_GetObject("stdout"));
  program->old_stderr = Py_XNewRef(PySys_GetObject("stderr"));
  PyObject *w = output_new();
  if (!w || PySys_SetObject("stdout", w) < 0 || PySys_SetObject("stderr", w) < 0)
    PyErr_Clear();
  Py_XDECREF(w);
}

void program_leave(struct trace_program *program) {
  assert(program->depth > 0);
  if (--program->depth)
    return;
  if (program->output_cut && !program->output_cut_said) {
    program->output_cut_said = true;
    diag_add(program->ds, DS_WARNING, DG_OUTPUT_LIMIT, NULL, "what the source prints is cut after %d bytes",
             TRACE_OUTPUT_MAX);
  }
  PyObject *type, *exc, *tb;
  PyErr_Fetch(&type, &exc, &tb);
  if (PySys_SetObject("stdout", program->old_stdout) < 0 || PySys_SetObject("stderr", program->old_stderr) < 0)
    PyErr_Clear();
  Py_CLEAR(program->old_stdout);
  Py_CLEAR(program->old_stderr);
  PyErr_Restore(type, exc, tb);
}

/* ---- executing the source ------------------------------------------------------------------------------------- */

static PyObject *compile_source(struct trace_program *program) {
  PyCompilerFlags flags = {.cf_flags = PyCF_IGNORE_COOKIE | PyCF_SOURCE_IS_UTF8,
                           .cf_feature_version = PY_MINOR_VERSION};
  const char *text = arena_strndup(program->a, program->rq->source, program->rq->source_len);
  if (strncmp(text, "\xef\xbb\xbf", 3) == 0) /* a byte order mark is not part of the text */
    text += 3;
  PyObject *code = counting_compile(text, program->filename);
  if (!code)
    code = Py_CompileStringObject(text, program->filename, Py_file_input, &flags, 0);
  if (!code && PyErr_ExceptionMatches(PyExc_MemoryError)) { /* the parser reached its own limit */
    PyErr_Clear();
    PyErr_SetString(PyExc_RecursionError, "the source is nested too deeply for the parser");
  }
  return code;
}

/* True if a source may have NKI kernels: it has "nki", and not only as a part of "nkigen" and "nkipy". */
static bool names_nki(const char *text, size_t len) {
  const char *end = text + len;
  for (const char *at = text; (at = memmem(at, (size_t)(end - at), "nki", 3)); at += 3) {
    const size_t left = (size_t)(end - at) - 3;
    if ((left < 3 || strncmp(at + 3, "gen", 3) != 0) && (left < 2 || strncmp(at + 3, "py", 2) != 0))
      return true;
  }
  return false;
}

/* The builtins of the main module, a new reference: of a source that may have NKI kernels those with which a kernel goes on after
 * names that are not defined (python/nkx/nki_unknown.py), otherwise Python's. */
static PyObject *builtins_of(const struct trace_program *program, PyObject *dict) {
  const struct trace_request *rq = program->rq;
  PyObject *module = names_nki(rq->source, rq->source_len) ? PyImport_ImportModule("nkx.nki_unknown") : NULL;
  PyObject *r = module ? PyObject_CallMethod(module, "builtins_of", "Os#O", program->code, rq->source,
                                             (Py_ssize_t)rq->source_len, dict)
                       : NULL;
  PyErr_Clear();
  Py_XDECREF(module);
  return r ? r : Py_NewRef(PyEval_GetBuiltins());
}

static bool execute(struct trace_program *program) {
  program->code = imports_open(program) ? compile_source(program) : NULL;
  PyObject *dict = program->code ? PyModule_GetDict(program->module) : NULL;
  PyObject *own = dict ? builtins_of(program, dict) : NULL;
  PyObject *r =
      own && PyDict_SetItemString(dict, "__builtins__", own) == 0 ? PyEval_EvalCode(program->code, dict, dict) : NULL;
  Py_XDECREF(own);
  Py_XDECREF(r);
  return r;
}

static bool request_has_shapes(const struct trace_program *program) {
  return program->rq->n_inputs > 0 || program->rq->inputs_npz;
}

/* True if a decorated function has shapes, a plain one was called with arrays, or the request has them. */
static bool has_shapes(const struct trace_program *program) {
  bool any = request_has_shapes(program) || (program->called && PyDict_GET_SIZE(program->called));
  for (Py_ssize_t i = 0; !any && i < PyList_GET_SIZE(program->found); i++) {
    const struct kernel *k = (const struct kernel *)PyList_GET_ITEM(program->found, i);
    any = k->input_specs || k->args || kernel_is_annotated(k->fn);
  }
  return any;
}

/* Returns the code under `if __name__ == "__main__":` (python/nkx/mainguard.py), a new reference, or NULL. */
static PyObject *main_code(const struct trace_program *program) {
  if (!memmem(program->rq->source, program->rq->source_len, "__main__", 8))
    return NULL;
  PyObject *module = PyImport_ImportModule("nkx.mainguard");
  PyObject *code = module ? PyObject_CallMethod(module, "guarded", "s#O", program->rq->source,
                                                (Py_ssize_t)program->rq->source_len, program->filename)
                          : NULL;
  PyErr_Clear();
  Py_XDECREF(module);
  if (code && !PyCode_Check(code))
    Py_CLEAR(code);
  return code;
}

/* Executes the program's main part if no shapes are known yet, because it may call its kernels with arrays. */
static bool execute_main(struct trace_program *program) {
  PyObject *code = has_shapes(program) ? NULL : main_code(program);
  if (!code)
    return true;
  PyObject *dict = PyModule_GetDict(program->module), *name = PyUnicode_FromString("__main__");
  PyObject *r = name && PyDict_SetItemString(dict, "__name__", name) == 0 ? PyEval_EvalCode(code, dict, dict) : NULL;
  Py_XSETREF(program->main_code, code);
  Py_XDECREF(name);
  Py_XDECREF(r);
  return r;
}

/* ---- finding kernels ------------------------------------------------------------------------------------------ */

/* The files in which a kernel's function may be defined. */
enum place { IN_MAIN, IN_ANY_FILE };

static void add_kernel(struct trace_program *program, PyObject *fn, struct kernel *k, const char *name) {
  program->kernels[program->n++] =
      (struct program_kernel){.name = arena_strdup(program->a, name), .fn = Py_NewRef(fn), .kernel = k};
}

static bool is_at(struct trace_program *program, PyCodeObject *code, enum place place) {
  return place == IN_MAIN ? bytecode_is_from(code, program->filename) : ranges_has_code(&program->ranges, code);
}

/* Returns true if the program defines the function that `o` is or wraps.  Sets its name and its first line. */
static bool is_own(struct trace_program *program, PyObject *o, enum place place, const char **name, int *line) {
  PyCodeObject *code = PyCallable_Check(o) && !PyType_Check(o) ? bytecode_of(o) : NULL;
  const bool is = code && is_at(program, code, place);
  if (is) {
    const char *text = bytecode_name(code);
    *name = arena_strdup(program->a, text ? text : "kernel");
    *line = bytecode_first_line(code);
  }
  Py_XDECREF(code);
  PyErr_Clear();
  return is;
}

/* Adds the function of the main module called `key`, or the one that is defined last if key is NULL; or, if that has no
 * annotations with shapes, the last one of those that the source calls with arrays, if it calls any.  If is_plain, only
 * functions are considered; otherwise only objects that wrap one (@nki.jit, functools.cache).  Returns false if there
 * is none. */
static bool add_function(struct trace_program *program, const char *key, bool is_plain, enum place place) {
  /* a copy is used, because reading a wrapper may run code of the source, which may change the module */
  PyObject *all = PyDict_Copy(PyModule_GetDict(program->module)), *k, *value, *best = NULL, *called = NULL;
  const char *name = NULL, *best_name = NULL, *called_name = NULL;
  Py_ssize_t pos = 0;
  int line = 0, best_line = 0, called_line = 0;
  while (all && PyDict_Next(all, &pos, &k, &value)) {
    if (!PyUnicode_Check(k) || PyFunction_Check(value) != is_plain || !is_own(program, value, place, &name, &line))
      continue;
    if (key ? PyUnicode_CompareWithASCIIString(k, key) == 0 : line >= best_line) {
      best = value;
      best_name = name;
      best_line = line;
    }
    if (!key && line >= called_line && calls_of(program, value)) {
      called = value;
      called_name = name;
      called_line = line;
    }
  }
  if (called && !kernel_is_annotated(best)) {
    best = called;
    best_name = called_name;
  }
  if (best)
    add_kernel(program, best, NULL, best_name);
  Py_XDECREF(all);
  PyErr_Clear();
  return best;
}

/* Makes @nki.jit kernels callable with tensors (python/nkx/nki_kernel.py). */
static void adopt_nki_kernels(void) {
  PyObject *m = PyImport_ImportModule("nkx.nki_kernel");
  PyObject *r = m ? PyObject_CallMethod(m, "take_over_jit", NULL) : NULL;
  PyErr_Clear();
  Py_XDECREF(m);
  Py_XDECREF(r);
}

/* Returns the plain function of the main file that calls NKI kernels (nkx/callers.py), a new reference; NULL if there is
 * none, or if nothing says its shapes. */
static PyObject *plain_caller(const struct trace_program *program) {
  const struct trace_request *rq = program->rq;
  PyObject *module = PyImport_ImportModule("nkx.callers"), *inputs = PyList_New(0), *f = NULL;
  bool ok = module && inputs && program->module;
  for (int i = 0; ok && i < rq->n_inputs; i++) {
    PyObject *name = rq->inputs[i].name ? PyUnicode_FromString(rq->inputs[i].name) : Py_NewRef(Py_None);
    ok = name && PyList_Append(inputs, name) == 0;
    Py_XDECREF(name);
  }
  if (ok)
    f = PyObject_CallMethod(module, "find", "OOOO", PyModule_GetDict(program->module), program->filename, inputs,
                            program->called ? program->called : Py_None);
  if (f && (f == Py_None || !(rq->n_inputs || rq->inputs_npz || calls_of(program, f) || kernel_is_annotated(f))))
    Py_CLEAR(f);
  PyErr_Clear();
  Py_XDECREF(inputs);
  Py_XDECREF(module);
  return f;
}

static const char *kernel_name(const struct kernel *k) {
  const char *name = PyUnicode_AsUTF8(k->name);
  PyErr_Clear();
  return name ? name : "kernel";
}

/* True for an NKI kernel that nothing in the source gives shapes. */
static bool lacks_shapes(const struct kernel *k) {
  return k->nki && !k->args && !k->input_specs && !kernel_is_annotated(k->fn);
}

/* A kernel that no call launches is launched as its name says: k = k[2]. */
static void take_launch(struct trace_program *program, struct kernel *k) {
  PyObject *named = PyDict_GetItem(PyModule_GetDict(program->module), k->name); /* borrowed */
  if (named && Py_IS_TYPE(named, kernel_type) && ((struct kernel *)named)->of == k && !k->args)
    Py_XSETREF(k->launched, Py_XNewRef(((struct kernel *)named)->grid));
}

/* Adds the decorated functions that are defined in `place` and, if key is not NULL, have this name. */
static void add_decorated(struct trace_program *program, const char *key, enum place place) {
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(program->found); i++) {
    struct kernel *k = (struct kernel *)PyList_GET_ITEM(program->found, i);
    PyCodeObject *code = bytecode_of(k->fn);
    const bool is_here = place == IN_ANY_FILE || (code && is_at(program, code, place));
    Py_XDECREF(code);
    if (is_here && (!key || strcmp(kernel_name(k), key) == 0)) {
      take_launch(program, k);
      add_kernel(program, k->fn, k, kernel_name(k));
    }
  }
}

/* Leaves out the NKI kernels without shapes if there are other kernels, or if `caller`, a plain function, calls them: these call the
 * NKI kernels, which are compiled as parts of them.  Returns the number of kernels that stay. */
static int leave_out_called(struct trace_program *program, bool has_caller) {
  const int n = program->n;
  int n_kept = 0;
  for (int i = 0; i < n; i++)
    n_kept += !lacks_shapes(program->kernels[i].kernel);
  if (n_kept == n || !(n_kept || has_caller))
    return n_kept;
  program->n = 0;
  for (int i = 0; i < n; i++)
    if (lacks_shapes(program->kernels[i].kernel))
      Py_CLEAR(program->kernels[i].fn);
    else
      program->kernels[program->n++] = program->kernels[i];
  return n_kept;
}

/* True if all kernels, of which there is one at least, are NKI's. */
static bool has_only_nki(const struct trace_program *program) {
  bool only = program->n > 0;
  for (int i = 0; i < program->n; i++)
    only &= program->kernels[i].kernel->nki != 0;
  return only;
}

/* The plain function that calls the NKI kernels is a kernel: instead of those that have no shapes, beside those that were called with
 * arrays if it was, too. */
static void take_caller(struct trace_program *program) {
  PyObject *caller = has_only_nki(program) ? plain_caller(program) : NULL;
  const int n_nki = leave_out_called(program, caller);
  PyCodeObject *code = caller && (!n_nki || calls_of(program, caller)) ? bytecode_of(caller) : NULL;
  if (code) {
    const char *name = bytecode_name(code);
    add_kernel(program, caller, NULL, name ? name : "kernel");
    program->kernels[program->n - 1].is_caller = n_nki > 0;
    Py_DECREF(code);
  }
  PyErr_Clear();
  Py_XDECREF(caller);
}

/* Adds a function that is not decorated with @trace. */
static bool add_undecorated(struct trace_program *program, const char *key, enum place place) {
  if (add_function(program, key, true, place))
    return true;
  adopt_nki_kernels();
  return add_function(program, key, false, place);
}

static bool find_kernels(struct trace_program *program, struct diags *ds) {
  const char *key = program->rq->kernel;
  Py_ssize_t n = PyList_GET_SIZE(program->found);
  program->kernels = arena_new_array(program->a, struct program_kernel, (size_t)n + 1);
  add_decorated(program, key, IN_MAIN);
  if (!program->n)
    add_decorated(program, key, IN_ANY_FILE);
  if (!key)
    take_caller(program);
  if (program->n)
    return true;
  if (program->module && (n == 0 || key) &&
      (add_undecorated(program, key, IN_MAIN) || add_undecorated(program, key, IN_ANY_FILE)))
    return true;
  if (ds && key)
    diag_add(ds, DS_ERROR, DG_NO_KERNEL, NULL, "no kernel is called \"%.200s\"", key)->hint =
        n ? "the name is that of a decorated function" : "define a function with this name";
  else if (ds)
    program_has_no_function(program, ds);
  return false;
}

/* Adds the request's files to program->ranges.  Returns false if a name cannot be decoded. */
static bool add_files(struct trace_program *program) {
  const struct trace_request *rq = program->rq;
  ranges_init(&program->ranges, program->a);
  ranges_add_file(&program->ranges, program->filename, rq->source, rq->source_len);
  for (int i = 0; i < rq->n_files; i++) {
    PyObject *name = PyUnicode_DecodeFSDefault(rq->files[i].name);
    if (!name) {
      PyErr_Clear();
      return false;
    }
    ranges_add_file(&program->ranges, name, rq->files[i].source, rq->files[i].source_len);
    Py_DECREF(name);
  }
  return true;
}

/* ---- the public functions ------------------------------------------------------------------------------------- */

enum status program_begin(struct arena *a, const struct trace_request *rq, struct diags *ds,
                          struct trace_program **out) {
  enum status st;
  struct trace_program *program = arena_new(a, struct trace_program);
  program->a = a;
  program->rq = rq;
  program->output = arena_alloc(a, TRACE_OUTPUT_MAX);
  *out = program;
  if (!precheck_source(rq, ds, a, &st))
    return st;
  program->filename = PyUnicode_DecodeFSDefault(rq->filename ? rq->filename : "kernel.py");
  program->found = PyList_New(0);
  if (!program->filename || !program->found) {
    PyErr_Clear();
    return ST_NOMEM;
  }
  assert(!program_now);
  program_now = program;
  return add_files(program) ? ST_OK : ST_NOMEM;
}

/* True if the pending exception is that of a call of an NKI kernel. */
static bool is_of_failed_call(const struct trace_program *program) {
  PyObject *type, *exc, *tb;
  PyErr_Fetch(&type, &exc, &tb);
  const bool is = exc && exc == program->failed_by;
  PyErr_Restore(type, exc, tb);
  return is;
}

/* Takes the diagnostic of the failed call out of ds, if that kernel is traced. */
static void hold_failure(struct trace_program *program, struct diags *ds, int number) {
  for (int i = 0; i < program->n; i++)
    if (program->kernels[i].kernel && program->kernels[i].kernel == program->failed && ds->n == number + 1) {
      program->held = arena_dup(program->a, &ds->v[number], sizeof *ds->v);
      ds->n = number;
    }
}

/* Executes the source and finds its kernels.  *is_half_typed: it is not valid Python. */
static enum status open_program(struct arena *a, const struct trace_request *rq, struct diags *ds, bool *is_half_typed,
                                struct trace_program **out) {
  enum status st = program_begin(a, rq, ds, out);
  if (st)
    return st;
  struct trace_program *program = *out;
  program_enter(program, ds);
  if (!request_has_shapes(program))
    calls_watch(program);
  bool ok = execute(program) && execute_main(program);
  calls_unwatch();
  *is_half_typed = !ok && !program->code && PyErr_ExceptionMatches(PyExc_SyntaxError);
  const bool by_call = !ok && is_of_failed_call(program);
  const int before = ds->n;
  if (!ok)
    st = by_call ? program_exception(program, ds) : program_exception_of_driver(program, ds);
  program_leave(program);
  bool any = find_kernels(program, ok ? ds : NULL);
  if (by_call)
    hold_failure(program, ds, before);
  st = st ? st : any ? ST_OK : ST_INPUT;
  return st && program_was_stopped(ds) ? ST_LIMIT : st;
}

/* Sets *out to the request with the part of its source that can be executed, and *cuts to what was left out; false if there is
 * none. */
static bool repair(struct arena *a, const struct trace_request *rq, struct trace_request *out, struct cut **cuts,
                   int *n_cuts) {
  PyObject *module = PyImport_ImportModule("nkx.half_typed"), *list;
  PyObject *r = module ? PyObject_CallMethod(module, "repaired", "s#", rq->source, (Py_ssize_t)rq->source_len) : NULL;
  const char *text;
  Py_ssize_t len;
  const bool ok = r && r != Py_None && PyArg_ParseTuple(r, "s#O!", &text, &len, &PyList_Type, &list);
  if (ok) {
    *out = *rq;
    out->source = arena_strndup(a, text, (size_t)len);
    out->source_len = (size_t)len;
    *n_cuts = (int)PyList_GET_SIZE(list);
    *cuts = arena_new_array(a, struct cut, (size_t)*n_cuts);
  }
  for (int i = 0; ok && i < *n_cuts; i++) {
    int is_used = 0;
    if (PyArg_ParseTuple(PyList_GET_ITEM(list, i), "iip", &(*cuts)[i].first, &(*cuts)[i].last, &is_used))
      (*cuts)[i].is_used = is_used;
  }
  PyErr_Clear();
  Py_XDECREF(r);
  Py_XDECREF(module);
  return ok;
}

/* Opens what can be executed of a source with a syntax error, which ds has; what else is wrong with it may be due to that, and is
 * not said. */
static void open_half_typed(struct arena *a, const struct trace_request *rq, struct trace_program **out) {
  struct trace_request *other = arena_new(a, struct trace_request);
  struct diags unsaid = {.arena = a};
  struct cut *cuts = NULL;
  int n_cuts = 0;
  bool is_half_typed = false;
  if (!repair(a, rq, other, &cuts, &n_cuts))
    return;
  trace_close(*out);
  *out = NULL;
  (void)open_program(a, other, &unsaid, &is_half_typed, out);
  if (*out) {
    (*out)->cuts = cuts;
    (*out)->n_cuts = n_cuts;
  }
}

enum status trace_open(struct arena *a, const struct trace_request *rq, struct diags *ds, struct trace_program **out) {
  bool is_half_typed = false;
  const enum status st = open_program(a, rq, ds, &is_half_typed, out);
  if (is_half_typed)
    open_half_typed(a, rq, out);
  return st;
}

struct half_typed kernel_half_typed(struct trace_program *p, const struct program_kernel *k) {
  const struct src_loc *at = p->n_cuts ? kernel_def_loc(p, k) : NULL;
  struct half_typed h = {0};
  for (int i = 0; i < p->n_cuts; i++) {
    const bool is_here = at && at->range.line >= p->cuts[i].first && at->range.line <= p->cuts[i].last;
    h.is_cut |= is_here;
    h.uses_cut |= !is_here && p->cuts[i].is_used;
  }
  return h;
}

int trace_count(const struct trace_program *program) {
  return program ? program->n : 0;
}

const struct src_loc *trace_place(struct trace_program *program, int i) {
  assert(i >= 0 && i < trace_count(program));
  return kernel_def_loc(program, &program->kernels[i]);
}

const char *trace_output(const struct trace_program *program, size_t *len) {
  *len = program ? program->output_len : 0;
  return program ? program->output : "";
}

void program_kernel_drop(struct program_kernel *k) {
  Py_CLEAR(k->args);
  Py_CLEAR(k->kw);
  for (int i = 0; i < k->n_params; i++) {
    Py_CLEAR(k->params[i].array);
    Py_CLEAR(k->params[i].key);
    Py_CLEAR(k->params[i].path);
  }
}

void trace_close(struct trace_program *program) {
  if (!program)
    return;
  for (int i = 0; i < program->n; i++) {
    Py_CLEAR(program->kernels[i].fn);
    program_kernel_drop(&program->kernels[i]);
  }
  imports_close(program);
  Py_CLEAR(program->code);
  Py_CLEAR(program->main_code);
  Py_CLEAR(program->found);
  Py_CLEAR(program->called);
  Py_CLEAR(program->npz);
  Py_CLEAR(program->filename);
  ranges_clear(&program->ranges);
  if (program_now == program)
    program_now = NULL;
}
