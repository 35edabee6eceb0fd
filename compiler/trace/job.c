/* job: one source, executed as a module, and the kernels that were found in it. */
#include "trace/tracer.h"

#include <string.h>

struct trace_job *job_now;

/* ---- running user code ---------------------------------------------------------------------------------------------
 */

void job_enter(struct trace_job *job, struct diags *ds) {
  job->ds = ds;
  if (job->depth++)
    return;
  job->old_stdout = Py_XNewRef(PySys_GetObject("stdout"));
  job->old_stderr = Py_XNewRef(PySys_GetObject("stderr"));
  PyObject *w = output_new();
  if (!w || PySys_SetObject("stdout", w) < 0 || PySys_SetObject("stderr", w) < 0)
    PyErr_Clear();
  Py_XDECREF(w);
}

void job_leave(struct trace_job *job) {
  if (--job->depth)
    return;
  if (job->output_cut && !job->output_cut_said) {
    job->output_cut_said = true;
    diag_add(job->ds, DS_WARNING, DG_OUTPUT_LIMIT, NULL, "what the source prints is cut after %d bytes",
             TRACE_OUTPUT_MAX);
  }
  PyObject *type, *exc, *tb;
  PyErr_Fetch(&type, &exc, &tb);
  if (PySys_SetObject("stdout", job->old_stdout) < 0 || PySys_SetObject("stderr", job->old_stderr) < 0)
    PyErr_Clear();
  Py_CLEAR(job->old_stdout);
  Py_CLEAR(job->old_stderr);
  PyErr_Restore(type, exc, tb);
}

/* ---- executing the source ------------------------------------------------------------------------------------- */

/* linecache.cache[filename] = (size, None, lines, filename), so that tracebacks which user code prints have their
 * lines. */
static bool register_lines(struct trace_job *job, PyObject *source) {
  PyObject *linecache = PyImport_ImportModule("linecache");
  PyObject *cache = linecache ? PyObject_GetAttrString(linecache, "cache") : NULL;
  PyObject *lines = PyObject_CallMethod(source, "splitlines", "O", Py_True);
  PyObject *entry =
      lines ? Py_BuildValue("nOOO", (Py_ssize_t)job->rq->source_len, Py_None, lines, job->filename) : NULL;
  bool ok = cache && entry && PyObject_SetItem(cache, job->filename, entry) == 0;
  Py_XDECREF(linecache);
  Py_XDECREF(cache);
  Py_XDECREF(lines);
  Py_XDECREF(entry);
  return ok;
}

static PyObject *make_module(struct trace_job *job) {
  PyObject *m = PyModule_New("kernel"), *modules = PyImport_GetModuleDict();
  if (m && (PyModule_AddObjectRef(m, "__file__", job->filename) < 0 ||
            PyModule_AddObjectRef(m, "__builtins__", PyEval_GetBuiltins()) < 0 ||
            PyDict_SetItemString(modules, "kernel", m) < 0))
    Py_CLEAR(m);
  return m;
}

static PyObject *compile_source(struct trace_job *job) {
  PyCompilerFlags flags = {.cf_flags = PyCF_IGNORE_COOKIE | PyCF_SOURCE_IS_UTF8,
                           .cf_feature_version = PY_MINOR_VERSION};
  const char *text = arena_strndup(job->a, job->rq->source, job->rq->source_len);
  if (strncmp(text, "\xef\xbb\xbf", 3) == 0) /* a byte order mark is not part of the text */
    text += 3;
  PyObject *code = Py_CompileStringObject(text, job->filename, Py_file_input, &flags, 0);
  if (!code && PyErr_ExceptionMatches(PyExc_MemoryError)) { /* what the parser says when its own stack is full */
    PyErr_Clear();
    PyErr_SetString(PyExc_RecursionError, "the source is nested too deeply for the parser");
  }
  return code;
}

static bool execute(struct trace_job *job) {
  PyObject *source = PyUnicode_DecodeUTF8(job->rq->source, (Py_ssize_t)job->rq->source_len, "strict");
  bool ok = source && register_lines(job, source) && (job->module = make_module(job));
  Py_XDECREF(source);
  job->code = ok ? compile_source(job) : NULL;
  PyObject *dict = job->code ? PyModule_GetDict(job->module) : NULL;
  PyObject *r = dict ? PyEval_EvalCode(job->code, dict, dict) : NULL;
  Py_XDECREF(r);
  return r;
}

/* True if some decorated function has shapes, or the request gives them. */
static bool has_shapes(const struct trace_job *job) {
  bool any = job->rq->n_inputs > 0 || job->rq->inputs_npz;
  for (Py_ssize_t i = 0; !any && i < PyList_GET_SIZE(job->found); i++) {
    const struct kernel *k = (const struct kernel *)PyList_GET_ITEM(job->found, i);
    any = k->input_specs || k->args || kernel_is_annotated(k->fn);
  }
  return any;
}

/* The code behind `if __name__ == "__main__":` (python/nkx/mainguard.py), new or NULL. */
static PyObject *main_code(const struct trace_job *job) {
  if (!memmem(job->rq->source, job->rq->source_len, "__main__", 8))
    return NULL;
  PyObject *module = PyImport_ImportModule("nkx.mainguard");
  PyObject *code = module ? PyObject_CallMethod(module, "guarded", "s#O", job->rq->source,
                                                (Py_ssize_t)job->rq->source_len, job->filename)
                          : NULL;
  PyErr_Clear();
  Py_XDECREF(module);
  if (code && !PyCode_Check(code))
    Py_CLEAR(code);
  return code;
}

/* Where nothing says shapes yet, the program's own main part may: it calls its kernels with arrays. */
static bool execute_main(struct trace_job *job) {
  PyObject *code = has_shapes(job) ? NULL : main_code(job);
  if (!code)
    return true;
  PyObject *dict = PyModule_GetDict(job->module), *name = PyUnicode_FromString("__main__");
  PyObject *r = name && PyDict_SetItemString(dict, "__name__", name) == 0 ? PyEval_EvalCode(code, dict, dict) : NULL;
  Py_XSETREF(job->main_code, code);
  Py_XDECREF(name);
  Py_XDECREF(r);
  return r;
}

/* ---- finding kernels ------------------------------------------------------------------------------------------ */

static void add_kernel(struct trace_job *job, PyObject *fn, struct kernel *k, const char *name) {
  job->kernels[job->n++] = (struct job_kernel){.name = arena_strdup(job->a, name), .fn = Py_NewRef(fn), .kernel = k};
}

/* Whether the source defines the function that `o` is or wraps; if so, its name and line. */
static bool is_own(const struct trace_job *job, PyObject *o, const char **name, int *line) {
  PyCodeObject *code = PyCallable_Check(o) && !PyType_Check(o) ? function_code(o) : NULL;
  const bool is = code && PyUnicode_Compare(code->co_filename, job->filename) == 0;
  if (is) {
    const char *text = PyUnicode_AsUTF8(code->co_name);
    *name = arena_strdup(job->a, text ? text : "kernel");
    *line = code->co_firstlineno;
  }
  Py_XDECREF(code);
  PyErr_Clear();
  return is;
}

/* The function called `key`, or with NULL the one that is defined last; is_plain: not what wraps one (@nki.jit,
 * functools.cache).  False if there is none. */
static bool add_function(struct trace_job *job, const char *key, bool is_plain) {
  /* of a copy: looking at what wraps a function may run code of the source */
  PyObject *all = PyDict_Copy(PyModule_GetDict(job->module)), *k, *value, *best = NULL;
  const char *name = NULL, *best_name = NULL;
  Py_ssize_t pos = 0;
  int line = 0, best_line = 0;
  while (all && PyDict_Next(all, &pos, &k, &value)) {
    if (!PyUnicode_Check(k) || PyFunction_Check(value) != is_plain || !is_own(job, value, &name, &line))
      continue;
    if (key ? PyUnicode_CompareWithASCIIString(k, key) == 0 : line >= best_line) {
      best = value;
      best_name = name;
      best_line = line;
    }
  }
  if (best)
    add_kernel(job, best, NULL, best_name);
  Py_XDECREF(all);
  PyErr_Clear();
  return best;
}

/* An @nki.jit kernel on its own is called with our tensors: the vendor's class of them is told how, in
 * nkx/nki_kernel.py. */
static void adopt_nki_kernels(void) {
  PyObject *m = PyImport_ImportModule("nkx.nki_kernel");
  PyObject *r = m ? PyObject_CallMethod(m, "take_over_jit", NULL) : NULL;
  PyErr_Clear();
  Py_XDECREF(m);
  Py_XDECREF(r);
}

static const char *kernel_name(const struct kernel *k) {
  const char *name = PyUnicode_AsUTF8(k->name);
  PyErr_Clear();
  return name ? name : "kernel";
}

static bool find_kernels(struct trace_job *job, struct diags *ds) {
  const char *key = job->rq->kernel;
  Py_ssize_t n = PyList_GET_SIZE(job->found);
  job->kernels = arena_new_array(job->a, struct job_kernel, (size_t)n + 1);
  for (Py_ssize_t i = 0; i < n; i++) {
    struct kernel *k = (struct kernel *)PyList_GET_ITEM(job->found, i);
    if (!key || strcmp(kernel_name(k), key) == 0)
      add_kernel(job, k->fn, k, kernel_name(k));
  }
  if (job->n)
    return true;
  if (job->module && (n == 0 || key)) {
    if (add_function(job, key, true))
      return true;
    adopt_nki_kernels();
    if (add_function(job, key, false))
      return true;
  }
  if (ds && key)
    diag_add(ds, DS_ERROR, DG_NO_KERNEL, NULL, "no kernel is called \"%.200s\"", key)->hint =
        n ? "the name is that of a decorated function" : "define a function with this name";
  else if (ds)
    diag_add(ds, DS_ERROR, DG_NO_KERNEL, NULL, "the source defines no function")->hint =
        "define a function and decorate it with @trace(input_specs=[…])";
  return false;
}

/* ---- the public functions ------------------------------------------------------------------------------------- */

enum status trace_open(struct arena *a, const struct trace_request *rq, struct diags *ds, struct trace_job **out) {
  enum status st;
  struct trace_job *job = arena_new(a, struct trace_job);
  job->a = a;
  job->rq = rq;
  job->output = arena_alloc(a, TRACE_OUTPUT_MAX);
  *out = job;
  if (!precheck_source(rq, ds, a, &st))
    return st;
  job->filename = PyUnicode_DecodeFSDefault(rq->filename ? rq->filename : "kernel.py");
  job->found = PyList_New(0);
  if (!job->filename || !job->found) {
    PyErr_Clear();
    return ST_NOMEM;
  }
  job_now = job;
  ranges_init(&job->ranges, a, job->filename, rq->source, rq->source_len);
  job_enter(job, ds);
  bool ok = execute(job) && execute_main(job);
  if (!ok)
    st = job_exception(job, ds);
  job_leave(job);
  bool any = find_kernels(job, ok ? ds : NULL);
  return !ok ? st : any ? ST_OK : ST_INPUT;
}

int trace_count(const struct trace_job *job) {
  return job ? job->n : 0;
}

const char *trace_output(const struct trace_job *job, size_t *len) {
  *len = job ? job->output_len : 0;
  return job ? job->output : "";
}

void job_kernel_drop(struct job_kernel *k) {
  Py_CLEAR(k->args);
  Py_CLEAR(k->kw);
  for (int i = 0; i < k->n_params; i++) {
    Py_CLEAR(k->params[i].array);
    Py_CLEAR(k->params[i].key);
  }
}

void trace_close(struct trace_job *job) {
  if (!job)
    return;
  for (int i = 0; i < job->n; i++) {
    Py_CLEAR(job->kernels[i].fn);
    job_kernel_drop(&job->kernels[i]);
  }
  if (job->module) {
    if (PyDict_DelItemString(PyImport_GetModuleDict(), "kernel") < 0)
      PyErr_Clear();
    Py_CLEAR(job->module);
  }
  Py_CLEAR(job->code);
  Py_CLEAR(job->main_code);
  Py_CLEAR(job->found);
  Py_CLEAR(job->npz);
  Py_CLEAR(job->filename);
  ranges_clear(&job->ranges);
  if (job_now == job)
    job_now = NULL;
}
