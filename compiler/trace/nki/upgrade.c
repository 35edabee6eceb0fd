/* upgrade: calls the tool that rewrites kernels of NKI beta 1. */
#include "trace/nki/upgrade.h"

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
