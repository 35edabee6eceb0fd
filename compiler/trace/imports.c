/* imports: lets `import` find the request's files and stand-ins for missing modules while a job's program runs.
 *
 * python/nkx/files.py and python/nkx/missing.py implement this.  This file calls them, and hides stand-ins: a stand-in
 * is removed from sys.modules after the import statement that made it.  So every import of such a module is decided
 * again, and a later `try: import torch` fails although an earlier `import torch` got a stand-in.
 */
#include "trace/program.h"

/* ---- builtins.__import__ ----------------------------------------------------------------------------------------- */

/* Deletes the modules with these names (a set) from sys.modules, and empties the set. */
static void hide(PyObject *names) {
  PyObject *modules = PyImport_GetModuleDict(), *name;
  while (PySet_GET_SIZE(names) && (name = PySet_Pop(names))) {
    if (PyDict_DelItem(modules, name) < 0)
      PyErr_Clear();
    Py_DECREF(name);
  }
}

/* Imports a module, then hides stand-ins.  self is a tuple of the interpreter's own __import__ and the set of names to
 * hide.  This is a C function so that it has no frame in the tracebacks that programs print. */
static PyObject *import_and_hide(PyObject *self, PyObject *args, PyObject *kw) {
  PyObject *names = PyTuple_GET_ITEM(self, 1), *module = PyObject_Call(PyTuple_GET_ITEM(self, 0), args, kw);
  if (PySet_GET_SIZE(names)) {
    PyObject *type, *exc, *tb;
    PyErr_Fetch(&type, &exc, &tb);
    hide(names);
    PyErr_Restore(type, exc, tb);
  }
  return module;
}
static PyMethodDef import_def = {"__import__", PYFUNC(import_and_hide), METH_VARARGS | METH_KEYWORDS,
                                 "Imports a module."};

static bool set_import(PyObject *function) {
  return PyDict_SetItemString(PyEval_GetBuiltins(), "__import__", function) == 0;
}

/* Replaces builtins.__import__ by import_and_hide, which calls it. */
static bool wrap_import(PyObject *session) {
  PyObject *plain = PyDict_GetItemString(PyEval_GetBuiltins(), "__import__");
  PyObject *names = PyObject_GetAttrString(session, "hidden");
  PyObject *self = plain && names && PySet_Check(names) ? PyTuple_Pack(2, plain, names) : NULL;
  PyObject *wrapped = self ? PyCFunction_New(&import_def, self) : NULL;
  const bool ok = wrapped && set_import(wrapped);
  Py_XDECREF(names);
  Py_XDECREF(self);
  Py_XDECREF(wrapped);
  return ok;
}

/* Restores the __import__ that wrap_import replaced, unless the program has installed its own. */
static void unwrap_import(void) {
  PyObject *now = PyDict_GetItemString(PyEval_GetBuiltins(), "__import__");
  if (now && PyCFunction_Check(now) && PyCFunction_GET_FUNCTION(now) == PYFUNC(import_and_hide))
    set_import(PyTuple_GET_ITEM(PyCFunction_GET_SELF(now), 0));
}

/* ---- the session --------------------------------------------------------------------------------------------- */

/* Returns the files as pairs of name and text, the main file first. */
static PyObject *list_of_files(const struct trace_program *p) {
  PyObject *files = PyList_New(0);
  for (int i = -1; files && i < p->rq->n_files; i++) {
    const struct trace_file *f = i >= 0 ? &p->rq->files[i] : NULL;
    PyObject *pair = f ? Py_BuildValue("ss#", f->name, f->source, (Py_ssize_t)f->source_len)
                       : Py_BuildValue("Os#", p->filename, p->rq->source, (Py_ssize_t)p->rq->source_len);
    if (!pair || PyList_Append(files, pair) < 0)
      Py_CLEAR(files);
    Py_XDECREF(pair);
  }
  return files;
}

bool imports_open(struct trace_program *p) {
  PyObject *files = list_of_files(p), *own = PyImport_ImportModule("nkx.files");
  p->imports = files && own ? PyObject_CallMethod(own, "Session", "O", files) : NULL;
  p->module = p->imports ? PyObject_GetAttrString(p->imports, "module") : NULL;
  Py_XDECREF(files);
  Py_XDECREF(own);
  return p->module && wrap_import(p->imports);
}

void imports_close(struct trace_program *p) {
  if (!p->imports)
    return;
  unwrap_import();
  PyObject *r = PyObject_CallMethod(p->imports, "close", NULL);
  PyErr_Clear();
  Py_XDECREF(r);
  Py_CLEAR(p->imports);
  Py_CLEAR(p->module);
}

/* ---- files on disk --------------------------------------------------------------------------------------------- */

/* Returns a dict of the request's files: text by name. */
static PyObject *texts_by_name(const struct trace_request *rq) {
  PyObject *texts = PyDict_New();
  for (int i = 0; texts && i < rq->n_files; i++) {
    const struct trace_file *f = &rq->files[i];
    PyObject *text = PyUnicode_DecodeUTF8(f->source, (Py_ssize_t)f->source_len, "replace");
    if (!text || PyDict_SetItemString(texts, f->name, text) < 0)
      Py_CLEAR(texts);
    Py_XDECREF(text);
  }
  return texts;
}

/* Copies pairs of name and text into the arena.  Returns their number, or -1 with an exception. */
static int copy_files(struct arena *a, PyObject *pairs, const struct trace_file **out) {
  const Py_ssize_t n = PyList_GET_SIZE(pairs);
  struct trace_file *files = arena_new_array(a, struct trace_file, (size_t)n);
  for (Py_ssize_t i = 0; i < n; i++) {
    const char *name, *text;
    Py_ssize_t len;
    if (!PyArg_ParseTuple(PyList_GET_ITEM(pairs, i), "ss#", &name, &text, &len))
      return -1;
    files[i] = (struct trace_file){arena_strdup(a, name), arena_strndup(a, text, (size_t)len), (size_t)len};
  }
  *out = files;
  return (int)n;
}

int trace_files_beside(struct arena *a, const struct trace_request *rq, const struct trace_file **out) {
  PyObject *text = PyUnicode_DecodeUTF8(rq->source, (Py_ssize_t)rq->source_len, "replace");
  PyObject *texts = texts_by_name(rq), *own = PyImport_ImportModule("nkx.files");
  PyObject *pairs = text && texts && own ? PyObject_CallMethod(own, "beside", "sOO", rq->filename, text, texts) : NULL;
  const int n = pairs && PyList_Check(pairs) ? copy_files(a, pairs, out) : -1;
  PyErr_Clear();
  Py_XDECREF(text);
  Py_XDECREF(texts);
  Py_XDECREF(own);
  Py_XDECREF(pairs);
  return n;
}

bool trace_defines(struct arena *a, const struct trace_file *f, const char *name) {
  const struct trace_request rq = {.source = f->source, .source_len = f->source_len, .filename = f->name};
  struct diags ds;
  enum status st = ST_OK;
  diags_init(&ds, a);
  if (!precheck_source(&rq, &ds, a, &st))
    return false;
  PyObject *text = PyUnicode_DecodeUTF8(f->source, (Py_ssize_t)f->source_len, "replace");
  PyObject *own = PyImport_ImportModule("nkx.files");
  PyObject *answer = text && own ? PyObject_CallMethod(own, "defines", "Os", text, name) : NULL;
  const bool is = answer == Py_True;
  PyErr_Clear();
  Py_XDECREF(text);
  Py_XDECREF(own);
  Py_XDECREF(answer);
  return is;
}
