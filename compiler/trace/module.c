/* module: `_nkx`, the extension that the Python modules import in an ordinary Python and in the embedded Python. */
#define TRACE_IMPORT_ARRAY
#include "trace/module.h"

#include "trace/counting.h"
#include "trace/inspect.h"
#include "trace/kernels.h"
#include "trace/knobs.h"
#include "trace/loop.h"
#include "trace/nki/nki.h"
#include "trace/nki/run.h"
#include "trace/ops.h"
#include "trace/program.h"
#include "trace/refuse.h"
#include "trace/tensor.h"
#include "trace/traced_array.h"

bool module_ready(void) {
  return PyArray_API != NULL || _import_array() == 0;
}

/* operations(): [{"name", "kind", "numpy": names under numpy separated by spaces, "method": "sum" or None}, …] */
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

/* Calls the operation with this index.  operation(name) returns this function. */
static PyObject *run_operation(PyObject *index, PyObject *args, PyObject *kw) {
  return op_call_out(&op_table[PyLong_AsLong(index)], args, kw);
}
static PyMethodDef run_def = {"operation", PYFUNC(run_operation), METH_VARARGS | METH_KEYWORDS, NULL};

static PyObject *operation(PyObject *self, PyObject *name) {
  (void)self;
  for (int i = 0; PyUnicode_Check(name) && i < OP_COUNT; i++)
    if (PyUnicode_CompareWithASCIIString(name, op_table[i].name) == 0) {
      PyObject *index = PyLong_FromLong(i), *f = index ? PyCFunction_New(&run_def, index) : NULL;
      Py_XDECREF(index);
      return f;
    }
  PyErr_Format(PyExc_KeyError, "there is no operation %R", name);
  return NULL;
}

static PyObject *is_tracing(PyObject *self, PyObject *unused) {
  (void)self, (void)unused;
  return PyBool_FromLong(tracer_now != NULL);
}

static PyMethodDef methods[] = {
    {"operation", operation, METH_O, "The function that records one operation of the table."},
    {"is_tracing", is_tracing, METH_NOARGS, "Whether a kernel is being traced."},
    {"knob", PYFUNC(knob_call), METH_VARARGS | METH_KEYWORDS,
     "knob($module, /, x, partition_dim=None, mem_space=None, tile_size=None, reduction_tile=None)\n--\n\n"
     "How the value is tiled and where it lives; with one argument, what .tile_op and .layout are called on."},
    {"knob_function", PYFUNC(knob_function), METH_VARARGS | METH_KEYWORDS, "Function form: returns the tensor."},
    {"fuse", PYFUNC(knob_fuse), METH_FASTCALL | METH_KEYWORDS,
     "fuse($module, /, *tensors, never=False)\n--\n\nMerges the loops that compute the values; with never=True, they "
     "keep "
     "loops of their own."},
    {"fori_loop", PYFUNC(loop_fori), METH_VARARGS | METH_KEYWORDS,
     "fori_loop(lower, upper, body, init): acc = init; for i in range(lower, upper): acc = body(i, acc)."},
    {"custom_call", custom_call, METH_VARARGS,
     "custom_call(target, code, tensors, [(shape, dtype), …], [(output, operand), …], has_collectives)"},
    {"operations", operations, METH_NOARGS, "The table of operations."},
    {"stop_job", PYFUNC(refuse_timeout), METH_FASTCALL, NULL},
    {"show_warning", PYFUNC(output_warning), METH_VARARGS | METH_KEYWORDS, NULL},
    {"nki_kernel", kernels_nki, METH_VARARGS, "nki_kernel(function, generation): what @nki.jit makes of a function."},
    {"nki_record", nki_record_call, METH_VARARGS,
     "nki_record(function, name, arguments, grid): records an NKI kernel that the traced kernel calls."},
    {"nki_run", nki_run_now, METH_VARARGS, "nki_run(function, arguments, target, grid): runs an NKI kernel on arrays."},
    {"trace_source", PYFUNC(inspect_trace_source), METH_VARARGS | METH_KEYWORDS,
     "Traces the kernels of a source text; see compiler/trace/inspect.c."},
    {NULL, NULL, 0, NULL}};

static struct PyModuleDef definition = {.m_base = PyModuleDef_HEAD_INIT,
                                        .m_name = "_nkx",
                                        .m_doc = "The tracer of nkx.",
                                        .m_size = -1,
                                        .m_methods = methods};

PyMODINIT_FUNC PyInit__nkx(void) {
  PyObject *m = PyModule_Create(&definition);
  if (m && PyModule_AddFunctions(m, live_methods) == 0 && PyModule_AddFunctions(m, nki_methods) == 0 &&
      PyModule_AddFunctions(m, nki_written_methods) == 0 && PyModule_AddFunctions(m, nki_register_methods) == 0 &&
      module_ready() && dtype_init() && refuse_init(m) && tensor_init(m) && traced_array_init(m) &&
      loop_index_init(m) && dispatch_init() && knobs_init(m) && kernels_init(m) && output_init(m) &&
      nki_tensor_init(m) && nki_instruction_init(m) && counting_init())
    return m;
  Py_XDECREF(m);
  return NULL;
}
