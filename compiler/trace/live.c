/* live: traces a function of the running Python program, for the package (python/nkx/package.py).
 *
 * It uses the same code as a job's kernels (program.c, run.c), with three differences.  The function is given, so no
 * source is executed.  The kernel's output is printed.  A refusal is an exception with its traceback, and its hint is a
 * note.  The result is a capsule that owns the trace; the module that compiles (compiler/package/) reads the
 * trace_kernel in it.
 */
#include <string.h>

#include "trace/inspect.h"
#include "trace/kernels.h"
#include "trace/module.h"
#include "trace/program.h"
#include "trace/refuse.h"
#include "trace/tracer.h"

struct live {
  struct arena arena;
  struct trace_request rq;
  struct diags ds;
  struct trace_kernel *kernel;
};

static void free_live(struct live *v) {
  arena_clear(&v->arena);
  PyMem_Free(v);
}

static void drop(PyObject *capsule) {
  free_live(PyCapsule_GetContext(capsule));
}

static struct trace_kernel *kernel_of(PyObject *capsule) {
  return PyCapsule_GetPointer(capsule, TRACE_CAPSULE);
}

/* ---- the function's file --------------------------------------------------------------------------------------- */

static PyObject *file_of(PyObject *fn) {
  PyCodeObject *code = bytecode_of(fn);
  PyObject *name = code ? PyObject_GetAttrString((PyObject *)code, "co_filename") : NULL;
  Py_XDECREF(code);
  PyErr_Clear();
  return name && PyUnicode_Check(name) ? name : PyUnicode_FromString("<kernel>");
}

/* Returns the file's text from linecache, as for a traceback; an empty text if it is not known. */
static PyObject *text_of(PyObject *filename) {
  PyObject *linecache = PyImport_ImportModule("linecache"), *empty = PyUnicode_FromString("");
  PyObject *lines = linecache ? PyObject_CallMethod(linecache, "getlines", "O", filename) : NULL;
  PyObject *text = lines && empty ? PyUnicode_Join(empty, lines) : NULL;
  PyErr_Clear();
  Py_XDECREF(linecache);
  Py_XDECREF(empty);
  Py_XDECREF(lines);
  return text ? text : PyUnicode_FromString("");
}

/* ---- tracing ------------------------------------------------------------------------------------------------- */

static void add_note(PyObject *exc) {
  const char *hint = NULL;
  refuse_code(exc, &hint);
  PyObject *r = hint ? PyObject_CallMethod(exc, "add_note", "N", PyUnicode_FromFormat("hint: %s", hint)) : NULL;
  Py_XDECREF(r);
  PyErr_Clear();
}

/* Raises the exception that ended the trace, or one with the message of the first error. */
static void raise_failure(struct trace_program *program, const struct diags *ds) {
  if (!program->raised)
    for (int i = 0; i < ds->n && !PyErr_Occurred(); i++)
      if (ds->v[i].severity == DS_ERROR)
        trace_refuse(ds->v[i].code, ds->v[i].hint, "%s", ds->v[i].message);
  if (PyErr_Occurred()) {
    PyErr_Fetch(&program->raised_type, &program->raised, &program->raised_tb);
    PyErr_NormalizeException(&program->raised_type, &program->raised, &program->raised_tb);
  }
  if (program->raised)
    add_note(program->raised);
  PyErr_Restore(program->raised_type, program->raised, program->raised_tb);
}

static PyObject *warnings_of(const struct diags *ds) {
  PyObject *list = PyList_New(0);
  for (int i = 0; list && i < ds->n; i++) {
    const struct diag *d = &ds->v[i];
    if (d->severity != DS_WARNING)
      continue;
    PyObject *text = d->hint ? PyUnicode_FromFormat("%s: %s", d->message, d->hint) : PyUnicode_FromString(d->message);
    if (!text || PyList_Append(list, text) < 0)
      Py_CLEAR(list);
    Py_XDECREF(text);
  }
  return list;
}

static void trace_live(struct live *v, struct kernel *k, PyObject *filename, const char *text, size_t len) {
  struct trace_program program = {
      .a = &v->arena, .rq = &v->rq, .filename = filename, .n = 1, .depth = 1, .is_live = true};
  const char *name = PyUnicode_AsUTF8(k->name);
  struct program_kernel one = {.name = arena_strdup(&v->arena, name ? name : "kernel"), .fn = k->fn, .kernel = k};

  PyErr_Clear();
  program.kernels = &one;
  diags_init(&v->ds, &v->arena);
  ranges_init(&program.ranges, &v->arena);
  ranges_add_file(&program.ranges, filename, text, len);
  ranges_find_files(&program.ranges);
  if (trace_kernel(&program, 0, &v->ds, &v->kernel)) {
    v->kernel = NULL;
    raise_failure(&program, &v->ds);
  } else {
    v->kernel->program = NULL; /* the program ends here */
  }
  program_kernel_drop(&one);
  ranges_clear(&program.ranges);
}

static PyObject *wrap(struct live *v) {
  PyObject *capsule = PyCapsule_New(v->kernel, TRACE_CAPSULE, NULL);
  if (!capsule || PyCapsule_SetContext(capsule, v) < 0 || PyCapsule_SetDestructor(capsule, drop) < 0) {
    free_live(v);
    Py_XDECREF(capsule);
    return NULL;
  }
  return Py_BuildValue("{s:N,s:s,s:N,s:N,s:N,s:N}", "trace", capsule, "name", v->kernel->name, "inputs",
                       inspect_tensors(v->kernel->inputs, v->kernel->n_inputs), "outputs",
                       inspect_tensors(v->kernel->outputs, v->kernel->n_outputs), "aliases",
                       v->kernel->module ? inspect_aliases(v->kernel->module) : PyList_New(0), "warnings",
                       warnings_of(&v->ds));
}

/* Reads what trace_function gets for `fn`: a function, or an @nki.jit kernel.  A new reference. */
static struct kernel *kernel_for(PyObject *fn, PyObject *specs, PyObject *name) {
  struct kernel *k = (struct kernel *)kernel_make(fn, specs, name);
  if (k && Py_IS_TYPE(fn, kernel_type))
    k->nki = ((struct kernel *)fn)->nki;
  return k;
}

/* trace_function(fn, args, kwargs, input_specs, name, target="trn1").  args and kwargs are the complete call, with
 * defaults; the arrays among them are the inputs.  If args is None, the inputs come from input_specs, or from
 * annotations if that is also None.  An @nki.jit kernel is recorded for the target. */
static PyObject *trace_function(PyObject *self, PyObject *const *o, Py_ssize_t n) {
  enum target target = TARGET_TRN1;
  (void)self;
  if (n == 6 && !(PyUnicode_Check(o[5]) && target_from_name(PyUnicode_AsUTF8(o[5]), &target)))
    return PyErr_Format(PyExc_ValueError, "there is no machine %R", o[5]);
  if (n < 5 || n > 6 || (o[1] != Py_None && (!PyTuple_Check(o[1]) || !PyDict_Check(o[2]))))
    return PyErr_Format(PyExc_TypeError, "trace_function(fn, args, kwargs, input_specs, name)");
  if (tracer_now)
    return trace_refuse(DG_BAD_ARGUMENT, "call the function itself: it becomes part of the kernel around it",
                        "a kernel cannot be compiled while another one is traced");
  struct kernel *k = kernel_for(o[0], o[3], o[4]);
  if (!k)
    return NULL;
  if (o[1] != Py_None) {
    k->args = Py_NewRef(o[1]);
    k->kw = Py_NewRef(o[2]);
  }
  PyObject *filename = file_of(k->fn), *text = filename ? text_of(filename) : NULL, *r = NULL;
  Py_ssize_t len = 0;
  const char *utf8 = text ? PyUnicode_AsUTF8AndSize(text, &len) : NULL;
  struct live *v = utf8 ? PyMem_Calloc(1, sizeof *v) : NULL;
  if (v) {
    arena_init(&v->arena);
    v->rq.target = target;
    trace_live(v, k, filename, utf8, (size_t)len);
    if (v->kernel)
      r = wrap(v);
    else
      free_live(v);
  } else if (!PyErr_Occurred()) {
    PyErr_NoMemory();
  }
  Py_XDECREF(filename);
  Py_XDECREF(text);
  Py_DECREF(k);
  return r;
}

/* ---- what is in a trace ------------------------------------------------------------------------------------------ */

static PyObject *trace_text(PyObject *self, PyObject *capsule) {
  struct trace_kernel *k = kernel_of(capsule);
  (void)self;
  return k ? inspect_module(k->module, false) : NULL;
}

static PyObject *trace_proto(PyObject *self, PyObject *capsule) {
  struct trace_kernel *k = kernel_of(capsule);
  (void)self;
  return k ? inspect_module(k->module, true) : NULL;
}

static PyObject *trace_contents(PyObject *self, PyObject *capsule) {
  struct trace_kernel *k = kernel_of(capsule);
  (void)self;
  return k ? inspect_kernel(k) : NULL;
}

static PyObject *in_job(PyObject *self, PyObject *unused) {
  (void)self, (void)unused;
  return PyBool_FromLong(program_now != NULL);
}

PyMethodDef live_methods[] = {
    {"trace_function", PYFUNC(trace_function), METH_FASTCALL,
     "trace_function(fn, args, kwargs, input_specs, name, target)"},
    {"trace_text", trace_text, METH_O, "The HLO of a trace as text."},
    {"trace_proto", trace_proto, METH_O, "The same as the bytes of a HloModuleProto."},
    {"trace_contents", trace_contents, METH_O, "The same as dicts and lists; see compiler/trace/inspect.c."},
    {"in_job", in_job, METH_NOARGS, "True while the explorer executes this program to find its kernels."},
    {NULL, NULL, 0, NULL}};
