/* fault: turns a Python exception into a diagnostic. */
#include <string.h>

#include "base/utf8.h"
#include "trace/kernels.h"
#include "trace/program.h"
#include "trace/refuse.h"

enum { MESSAGE_MAX = 2000 }; /* bytes of an exception's text that are kept */

/* Returns str(exc), copied to the arena.  This may run user code, which may fail. */
static const char *exception_text(struct arena *a, PyObject *exc) {
  PyObject *s = PyObject_Str(exc);
  PyObject *bytes = s ? PyUnicode_AsEncodedString(s, "utf-8", "replace") : NULL;
  PyErr_Clear();
  size_t n = bytes ? (size_t)PyBytes_GET_SIZE(bytes) : 0;
  const char *text = bytes ? PyBytes_AS_STRING(bytes) : "";
  n = utf8_cut(text, n, MESSAGE_MAX);
  char *r = arena_strndup(a, text, n);
  output_without_nul(r, n);
  Py_XDECREF(bytes);
  Py_XDECREF(s);
  return r;
}

static int int_attr(PyObject *o, const char *name) {
  PyObject *v = PyObject_GetAttrString(o, name);
  long i = v && PyLong_Check(v) ? PyLong_AsLong(v) : 0;
  PyErr_Clear();
  Py_XDECREF(v);
  return i < 0 || i > 1 << 24 ? 0 : (int)i;
}

/* Returns the place in a SyntaxError of one of the program's own files.  Its columns already are code points. */
static const struct src_loc *syntax_loc(struct trace_program *program, PyObject *exc) {
  PyObject *file = PyObject_GetAttrString(exc, "filename");
  PyErr_Clear();
  const struct src_loc *loc =
      file && PyUnicode_Check(file)
          ? ranges_exact(&program->ranges, file, int_attr(exc, "lineno"), int_attr(exc, "offset"),
                         int_attr(exc, "end_lineno"), int_attr(exc, "end_offset"))
          : NULL;
  Py_XDECREF(file);
  return loc;
}

static const char *syntax_text(struct arena *a, PyObject *exc) {
  PyObject *msg = PyObject_GetAttrString(exc, "msg");
  const char *text = msg ? exception_text(a, msg) : "invalid syntax";
  PyErr_Clear();
  Py_XDECREF(msg);
  return text;
}

static bool is_a(PyObject *exc, PyObject *cls) {
  return PyObject_TypeCheck(exc, (PyTypeObject *)cls);
}

static void report_import(struct trace_program *program, struct diags *ds, PyObject *exc, const struct src_loc *loc) {
  PyObject *name = PyObject_GetAttrString(exc, "name");
  const char *module = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8(name) : NULL;
  PyErr_Clear();
  bool missing = is_a(exc, PyExc_ModuleNotFoundError) && module;
  struct diag *d =
      missing ? diag_add(ds, DS_ERROR, DG_PYTHON_IMPORT, loc, "the module \"%.200s\" is not available here", module)
              : diag_add(ds, DS_ERROR, DG_PYTHON_IMPORT, loc, "%s", exception_text(program->a, exc));
  d->hint = missing && (!strncmp(module, "nki.", 4) || !strncmp(module, "neuronxcc.", 10))
                ? "NKI kernels are traced by the vendor's nki package, which is not installed here"
                : "available: numpy, ml_dtypes, Python's standard library, nkipy, nkigen, nkipy_kernelgen, nkx, and "
                  "the files beside this one";
  Py_XDECREF(name);
}

static enum status report(struct trace_program *program, struct diags *ds, PyObject *exc, PyObject *tb) {
  const struct src_loc *loc = ranges_traceback(&program->ranges, tb);
  const char *hint = NULL, *name = Py_TYPE(exc)->tp_name, *dot = strrchr(name, '.');
  int code = refuse_code(exc, &hint);
  if (code >= 0) {
    struct diag *d = diag_add(ds, DS_ERROR, (enum diag_code)code, loc, "%s", exception_text(program->a, exc));
    d->hint = hint ? arena_strdup(program->a, hint) : NULL;
    return code == DG_TOO_MANY_OPS || code == DG_TIME_LIMIT ? ST_LIMIT : ST_INPUT;
  }
  if (is_a(exc, PyExc_SyntaxError)) {
    const struct src_loc *at = syntax_loc(program, exc);
    diag_add(ds, DS_ERROR, DG_PYTHON_SYNTAX, at ? at : loc, "%s: %s", name, syntax_text(program->a, exc));
    return ST_INPUT;
  }
  if (is_a(exc, PyExc_ImportError)) {
    report_import(program, ds, exc, loc);
    return ST_INPUT;
  }
  if (is_a(exc, PyExc_MemoryError)) {
    const char *text = exception_text(program->a, exc);
    diag_add(ds, DS_ERROR, DG_MEMORY_LIMIT, loc, "out of memory%s%s", *text ? ": " : "", text)->hint =
        "use smaller shapes";
    return ST_LIMIT;
  }
  if (is_a(exc, PyExc_RecursionError)) {
    diag_add(ds, DS_ERROR, DG_NESTING_TOO_DEEP, loc, "%s", exception_text(program->a, exc))->hint =
        "is a recursion without end?";
    return ST_LIMIT;
  }
  if (is_a(exc, PyExc_SystemExit)) {
    diag_add(ds, DS_ERROR, DG_PYTHON_EXCEPTION, loc, "the source ended the program (SystemExit)")->hint =
        "remove the call of sys.exit, exit or quit";
    return ST_INPUT;
  }
  const char *text = exception_text(program->a, exc);
  diag_add(ds, DS_ERROR, DG_PYTHON_EXCEPTION, loc, "%s%s%s", dot ? dot + 1 : name, *text ? ": " : "", text);
  return ST_INPUT;
}

bool program_was_stopped(struct diags *ds) {
  if (!refuse_was_stopped())
    return false;
  for (int i = 0; i < ds->n; i++)
    if (ds->v[i].code == DG_TIME_LIMIT)
      return false;
  diag_add(ds, DS_ERROR, DG_TIME_LIMIT, NULL, "the kernel ran longer than its time limit, and was stopped")->hint =
      "code of the source that runs beside the kernel, such as a trace function, counts, too";
  return true;
}

void program_has_no_function(struct trace_program *program, struct diags *ds) {
  const struct trace_request *rq = program->rq;
  PyObject *own = program->module ? PyImport_ImportModule("nkx.decorated") : NULL;
  PyObject *lost = own ? PyObject_CallMethod(own, "lost", "Os#", PyModule_GetDict(program->module), rq->source,
                                             (Py_ssize_t)rq->source_len)
                       : NULL;
  const char *what, *hint;
  int line, col, end_line, end_col;

  if (lost && lost != Py_None && PyArg_ParseTuple(lost, "ssiiii", &what, &hint, &line, &col, &end_line, &end_col))
    diag_add(ds, DS_ERROR, DG_NO_KERNEL,
             ranges_exact(&program->ranges, program->filename, line, col, end_line, end_col),
             "the source defines no function: %s", what)
        ->hint = arena_strdup(program->a, hint);
  else
    diag_add(ds, DS_ERROR, DG_NO_KERNEL, NULL, "the source defines no function")->hint =
        "define a function and decorate it with @trace(input_specs=[…])";
  PyErr_Clear(); /* no place: the text has no tree, or the module is missing */
  Py_XDECREF(own);
  Py_XDECREF(lost);
}

enum status program_exception(struct trace_program *program, struct diags *ds) {
  PyObject *type, *exc, *tb;
  PyErr_Fetch(&type, &exc, &tb);
  PyErr_NormalizeException(&type, &exc, &tb);
  if (!exc) {
    diag_add(ds, DS_ERROR, DG_INTERNAL, NULL, "a Python call failed without an exception");
    Py_XDECREF(type);
    Py_XDECREF(tb);
    return ST_BUG;
  }
  enum status st = report(program, ds, exc, tb);
  PyErr_Clear();
  if (program->is_live && !program->raised) {
    program->raised_type = type;
    program->raised = exc;
    program->raised_tb = tb;
    return st;
  }
  Py_DECREF(type);
  Py_DECREF(exc);
  Py_XDECREF(tb);
  return st;
}

/* True if an NKI kernel of the program was called with arrays: what a file does with the results is not its kernels' affair. */
static bool has_called_a_kernel(const struct trace_program *program) {
  bool any = false;
  for (Py_ssize_t i = 0; !any && i < PyList_GET_SIZE(program->found); i++) {
    const struct kernel *k = (const struct kernel *)PyList_GET_ITEM(program->found, i);
    any = k->nki && k->args;
  }
  return any;
}

enum status program_exception_of_driver(struct trace_program *program, struct diags *ds) {
  const int before = ds->n;
  const bool had_error = ds->has_error;
  const enum status st = program_exception(program, ds);
  if (ds->n != before + 1 || ds->v[before].code != DG_PYTHON_IMPORT || !has_called_a_kernel(program))
    return st;
  ds->v[before].severity = DS_WARNING;
  ds->v[before].hint = arena_printf(program->a,
                                    "nothing after this line runs; the kernels that were called before it are "
                                    "compiled; %s",
                                    ds->v[before].hint);
  ds->has_error = had_error;
  return ST_OK;
}
