/* output: captures the source's output and warnings.
 *
 * One object replaces sys.stdout and sys.stderr while user code runs.  The program keeps the first TRACE_OUTPUT_MAX
 * bytes of output, and warns if there were more.  Python's warnings become diagnostics.
 */
#include <assert.h>
#include <string.h>

#include "base/utf8.h"
#include "trace/program.h"

static PyTypeObject *writer_type;

void output_without_nul(char *s, size_t n) {
  enum { SUB = 0x1a };
  for (size_t i = 0; i < n; i++)
    s[i] = s[i] ? s[i] : SUB;
}

static void keep(struct trace_program *program, const char *s, size_t n) {
  assert(program->output_len <= TRACE_OUTPUT_MAX);
  if (program->is_rerun)
    return;
  size_t room = TRACE_OUTPUT_MAX - program->output_len;
  if (n > room) {
    program->output_cut = true;
    n = utf8_cut(s, n, room);
  }
  memcpy(program->output + program->output_len, s, n);
  output_without_nul(program->output + program->output_len, n);
  program->output_len += n;
}

static PyObject *writer_write(PyObject *self, PyObject *text) {
  (void)self;
  if (!PyUnicode_Check(text)) {
    PyErr_Format(PyExc_TypeError, "write() argument must be str, not %s", Py_TYPE(text)->tp_name);
    return NULL;
  }
  if (program_now) {
    PyObject *bytes = PyUnicode_AsEncodedString(text, "utf-8", "replace");
    if (!bytes)
      return NULL;
    keep(program_now, PyBytes_AS_STRING(bytes), (size_t)PyBytes_GET_SIZE(bytes));
    Py_DECREF(bytes);
  }
  return PyLong_FromSsize_t(PyUnicode_GET_LENGTH(text));
}

static PyObject *writer_nothing(PyObject *self, PyObject *unused) {
  (void)self, (void)unused;
  return Py_NewRef(Py_None);
}
static PyObject *writer_false(PyObject *self, PyObject *unused) {
  (void)self, (void)unused;
  return Py_NewRef(Py_False);
}
static PyObject *writer_true(PyObject *self, PyObject *unused) {
  (void)self, (void)unused;
  return Py_NewRef(Py_True);
}
static PyObject *writer_encoding(PyObject *self, void *closure) {
  (void)self, (void)closure;
  return PyUnicode_FromString("utf-8");
}
static PyObject *writer_errors(PyObject *self, void *closure) {
  (void)self, (void)closure;
  return PyUnicode_FromString("replace");
}

bool output_init(PyObject *module) {
  static PyMethodDef methods[] = {{"write", writer_write, METH_O, NULL},
                                  {"flush", writer_nothing, METH_NOARGS, NULL},
                                  {"close", writer_nothing, METH_NOARGS, NULL},
                                  {"isatty", writer_false, METH_NOARGS, NULL},
                                  {"readable", writer_false, METH_NOARGS, NULL},
                                  {"writable", writer_true, METH_NOARGS, NULL},
                                  {NULL, NULL, 0, NULL}};
  static PyGetSetDef getset[] = {{"encoding", writer_encoding, NULL, NULL, NULL},
                                 {"errors", writer_errors, NULL, NULL, NULL},
                                 {NULL, NULL, NULL, NULL, NULL}};
  static PyType_Slot slots[] = {{Py_tp_methods, methods}, {Py_tp_getset, getset}, {0, NULL}};
  static PyType_Spec spec = {
      .name = "nkx.Output", .basicsize = sizeof(PyObject), .flags = Py_TPFLAGS_DEFAULT, .slots = slots};
  writer_type = (PyTypeObject *)PyType_FromModuleAndSpec(module, &spec, NULL);
  return writer_type;
}

PyObject *output_new(void) {
  return PyObject_CallNoArgs((PyObject *)writer_type);
}

PyObject *output_warning(PyObject *self, PyObject *args, PyObject *kw) {
  (void)self, (void)kw;
  if (!program_now || !program_now->ds || PyTuple_GET_SIZE(args) < 2)
    return Py_NewRef(Py_None);
  PyObject *message = PyObject_Str(PyTuple_GET_ITEM(args, 0));
  PyObject *category = PyObject_GetAttrString(PyTuple_GET_ITEM(args, 1), "__name__");
  const char *text = message ? PyUnicode_AsUTF8(message) : NULL, *name = category ? PyUnicode_AsUTF8(category) : NULL;
  if (text && name)
    diag_add(program_now->ds, DS_WARNING, DG_PYTHON_EXCEPTION, ranges_here(&program_now->ranges, NULL), "%s: %.1000s",
             name, text);
  PyErr_Clear();
  Py_XDECREF(message);
  Py_XDECREF(category);
  return Py_NewRef(Py_None);
}
