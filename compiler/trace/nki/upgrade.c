/* upgrade: calls the tool that rewrites kernels of NKI beta 1. */
#include "trace/nki/upgrade.h"

#include "trace/program.h"
#include "trace/python.h"

enum status nki_upgrade(struct arena *a, const char *path, const char *source, size_t len, const char **text,
                        const char **said, struct error *err) {
  PyObject *module = PyImport_ImportModule("nkx.nki_upgrade");
  PyObject *pair = module ? PyObject_CallMethod(module, "main", "ss#", path, source, (Py_ssize_t)len) : NULL;
  const char *new_text = NULL, *sentence = NULL;
  *text = *said = NULL;
  enum status st = ST_OK;
  if (!pair || !PyArg_ParseTuple(pair, "zs", &new_text, &sentence)) {
    PyErr_Print();
    st = fail(err, ST_BUG, "%.160s cannot be upgraded", path);
  } else {
    *said = arena_strdup(a, sentence);
    *text = new_text ? arena_strdup(a, new_text) : NULL;
    st = new_text ? ST_OK : ST_INPUT;
  }
  Py_XDECREF(pair);
  Py_XDECREF(module);
  return st;
}

/* ---- the files of a request -------------------------------------------------------------------------------------- */

/* [(name, text)], a new reference; NULL with an exception. */
static PyObject *pairs_of(const struct trace_request *rq) {
  PyObject *list = PyList_New(1 + rq->n_files);
  for (int i = 0; list && i <= rq->n_files; i++) {
    const struct trace_file main = {rq->filename, rq->source, rq->source_len}, *f = i ? &rq->files[i - 1] : &main;
    PyObject *pair = Py_BuildValue("(ss#)", f->name, f->source, (Py_ssize_t)f->source_len);
    if (pair)
      PyList_SET_ITEM(list, i, pair);
    else
      Py_CLEAR(list);
  }
  return list;
}

/* Reads (name, text, [(line, reason)]).  False with an exception. */
static bool read_file(struct arena *a, PyObject *o, struct nki_upgraded *out) {
  const char *name, *text;
  PyObject *marks;
  if (!PyArg_ParseTuple(o, "ssO!", &name, &text, &PyList_Type, &marks))
    return false;
  const int n = (int)PyList_GET_SIZE(marks);
  struct nki_mark *v = arena_new_array(a, struct nki_mark, (size_t)n);
  for (int i = 0; i < n; i++) {
    const char *reason;
    if (!PyArg_ParseTuple(PyList_GET_ITEM(marks, i), "is", &v[i].line, &reason))
      return false;
    v[i].reason = arena_strdup(a, reason);
  }
  *out = (struct nki_upgraded){arena_strdup(a, name), arena_strdup(a, text), n, v};
  return true;
}

/* Returns the files rewritten; NULL with an exception. */
static const struct nki_upgraded *rewrite(struct arena *a, const struct trace_request *rq) {
  struct nki_upgraded *files = arena_new_array(a, struct nki_upgraded, (size_t)rq->n_files + 1);
  PyObject *module = PyImport_ImportModule("nkx.nki_upgrade"), *pairs = module ? pairs_of(rq) : NULL;
  PyObject *done = pairs ? PyObject_CallMethod(module, "upgrade_files", "O", pairs) : NULL;
  bool ok = done;
  for (int i = 0; ok && i <= rq->n_files; i++)
    ok = read_file(a, PyList_GET_ITEM(done, i), &files[i]);
  Py_XDECREF(done);
  Py_XDECREF(pairs);
  Py_XDECREF(module);
  return ok ? files : NULL;
}

enum status nki_upgrade_files(struct arena *a, const struct trace_request *rq, struct diags *ds,
                              const struct nki_upgraded **out) {
  struct trace_program *program;
  enum status st = program_begin(a, rq, ds, &program);
  if (!st) {
    program_enter(program, ds);
    const struct nki_upgraded *files = rewrite(a, rq);
    if (files)
      *out = files;
    else
      st = program_exception(program, ds);
    program_leave(program);
  }
  trace_close(program);
  return st;
}
