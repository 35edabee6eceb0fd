/* written_knobs: calls the reader of knobs. */
#include "trace/written_knobs.h"

#include "trace/python.h"

enum status trace_written_knobs(struct arena *a, const char *text, size_t from, size_t to, const char **out) {
  PyObject *module = PyImport_ImportModule("nkx.written_knobs");
  PyObject *answer = module ? PyObject_CallMethod(module, "find", "snn", text, (Py_ssize_t)from, (Py_ssize_t)to) : NULL;
  const char *json = answer ? PyUnicode_AsUTF8(answer) : NULL;
  if (json)
    *out = arena_strdup(a, json);
  else
    PyErr_Clear();
  Py_XDECREF(answer);
  Py_XDECREF(module);
  return json ? ST_OK : ST_INPUT;
}
