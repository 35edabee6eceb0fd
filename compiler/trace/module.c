/* module: `_nkx`, the extension that the shims import, in an ordinary Python and in the embedded one alike. */
#define TRACE_IMPORT_ARRAY
#include "trace/tracer.h"

bool nkx_ready(void) {
  return PyArray_API != NULL || _import_array() == 0;
}

/* fori_loop(lower, upper, body, init): a plain loop outside of a trace. */
static PyObject *fori_loop(PyObject *self, PyObject *args, PyObject *kw) {
  static char *names[] = {"lower", "upper", "body", "init", NULL};
  Py_ssize_t lower, upper;
  PyObject *body, *acc;
  (void)self;
  if (tracer_now && tracer_enter())
    return refuse(DG_UNSUPPORTED_OP, "use a Python for loop; it is unrolled",
                  "fori_loop is not supported in a kernel yet");
  if (!PyArg_ParseTupleAndKeywords(args, kw, "nnOO:fori_loop", names, &lower, &upper, &body, &acc))
    return NULL;
  Py_INCREF(acc);
  for (Py_ssize_t i = lower; acc && i < upper; i++) {
    PyObject *index = PyLong_FromSsize_t(i);
    PyObject *next = index ? PyObject_CallFunctionObjArgs(body, index, acc, NULL) : NULL;
    Py_XDECREF(index);
    Py_SETREF(acc, next);
  }
  return acc;
}

/* [{"name", "kind", "numpy": names under numpy separated by spaces, "method": "sum" or None}, …] */
static PyObject *operations(PyObject *self, PyObject *unused) {
  PyObject *list = PyList_New(0);
  (void)self, (void)unused;
  for (int i = 0; list && i < OP_COUNT; i++) {
    PyObject *d = Py_BuildValue("{s:s,s:s,s:s,s:z}", "name", op_table[i].name, "kind", op_table[i].kind, "numpy",
                                op_table[i].numpy, "method", op_table[i].method);
    if (!d || PyList_Append(list, d) < 0)
      Py_CLEAR(list);
    Py_XDECREF(d);
  }
  return list;
}

static PyMethodDef methods[] = {
    {"knob", PYFUNC(knob_call), METH_VARARGS | METH_KEYWORDS,
     "Builder with one argument, function form with attributes."},
    {"knob_function", PYFUNC(knob_function), METH_VARARGS | METH_KEYWORDS, "Function form: returns the tensor."},
    {"fuse", PYFUNC(knob_fuse), METH_FASTCALL, "Asks for the loops of several values to be merged."},
    {"fori_loop", PYFUNC(fori_loop), METH_VARARGS | METH_KEYWORDS, "A loop with an accumulator."},
    {"operations", operations, METH_NOARGS, "The table of operations."},
    {"stop_job", PYFUNC(time_is_up), METH_FASTCALL, NULL},
    {"show_warning", PYFUNC(warning_show), METH_VARARGS | METH_KEYWORDS, NULL},
    {"trace_source", PYFUNC(debug_trace_source), METH_VARARGS | METH_KEYWORDS,
     "Traces the kernels of a source text; see compiler/trace/inspect.c."},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {.m_base = PyModuleDef_HEAD_INIT,
                                        .m_name = "_nkx",
                                        .m_doc = "The tracer of nkx.",
                                        .m_size = -1,
                                        .m_methods = methods};

PyMODINIT_FUNC PyInit__nkx(void) {
  PyObject *m = PyModule_Create(&definition);
  if (m && nkx_ready() && dtypes_init() && refuse_init(m) && tensor_init(m) && dispatch_init() && knobs_init(m) &&
      kernels_init(m) && output_init(m))
    return m;
  Py_XDECREF(m);
  return NULL;
}
