/* shrink: calls the reducer of programs. */
#include "trace/shrink.h"

#include "trace/program.h"
#include "trace/python.h"

enum status trace_shrink(struct arena *a, const struct trace_request *rq, const char *request, int from,
                         struct diags *ds, const char **out) {
  struct trace_program *program;
  enum status st = program_begin(a, rq, ds, &program);
  if (!st) {
    program_enter(program, ds);
    PyObject *module = PyImport_ImportModule("nkx.shrink");
    PyObject *answer = module ? PyObject_CallMethod(module, "propose", "si", request, from) : NULL;
    const char *text = answer ? PyUnicode_AsUTF8(answer) : NULL;
    if (text)
      *out = arena_strdup(a, text);
    else
      st = program_exception(program, ds);
    Py_XDECREF(answer);
    Py_XDECREF(module);
    program_leave(program);
  }
  trace_close(program);
  return st;
}
