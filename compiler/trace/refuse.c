/* refuse: one exception class for each diagnostic code.
 *
 * Each class is also derived from the exception that NumPy would raise in the same situation, so that a kernel's own
 * `except ValueError` keeps its meaning.  The class determines the code; the hint is an attribute.
 */
#include "trace/refuse.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

static PyObject *classes[DIAG_COUNT]; /* made by refuse_init, and the same for every program */
static PyObject *base_class;
static PyObject *axis_class; /* BadAxis: a BadArgument and numpy.exceptions.AxisError */
static PyObject *time_class; /* TimeLimit: a BaseException, which `except Exception` in a loop does not catch */

static bool make_axis_class(PyObject *module) {
  PyObject *numpy = PyImport_ImportModule("numpy.exceptions");
  PyObject *theirs = numpy ? PyObject_GetAttrString(numpy, "AxisError") : NULL;
  PyObject *bases = theirs ? PyTuple_Pack(2, classes[DG_BAD_ARGUMENT], theirs) : NULL;
  axis_class = bases ? PyErr_NewException("nkx.BadAxis", bases, NULL) : NULL;
  Py_XDECREF(bases);
  Py_XDECREF(theirs);
  Py_XDECREF(numpy);
  return axis_class && PyModule_AddObjectRef(module, "BadAxis", axis_class) == 0;
}

static PyObject *make_class(PyObject *module, const char *name, PyObject *second, PyObject *third) {
  char full[64];
  PyObject *bases = third ? PyTuple_Pack(3, base_class, second, third) : PyTuple_Pack(2, base_class, second);
  snprintf(full, sizeof full, "nkx.%s", name);
  PyObject *cls = bases ? PyErr_NewException(full, bases, NULL) : NULL;
  Py_XDECREF(bases);
  if (cls && PyModule_AddObjectRef(module, name, cls) < 0)
    Py_CLEAR(cls);
  return cls;
}

bool refuse_init(PyObject *module) {
  const struct {
    enum diag_code code;
    const char *name;
    PyObject *second, *third;
  } all[] = {
      {DG_UNSUPPORTED_OP, "UnsupportedOp", PyExc_NotImplementedError, PyExc_AttributeError},
      {DG_UNSUPPORTED_DTYPE, "UnsupportedDtype", PyExc_TypeError, NULL},
      {DG_UNSUPPORTED_INDEX, "UnsupportedIndex", PyExc_NotImplementedError, PyExc_IndexError},
      {DG_TRACED_BOOL, "TracedBool", PyExc_TypeError, NULL},
      {DG_TRACED_VALUE, "TracedValue", PyExc_TypeError, NULL},
      {DG_TRACED_ITER, "TracedIter", PyExc_TypeError, NULL},
      {DG_SHAPE_MISMATCH, "ShapeMismatch", PyExc_ValueError, NULL},
      {DG_BAD_ARGUMENT, "BadArgument", PyExc_ValueError, PyExc_IndexError},
      {DG_DTYPE_PROMOTION, "DtypePromotion", PyExc_TypeError, NULL},
      {DG_RESULT_NOT_TENSOR, "ResultNotTensor", PyExc_TypeError, NULL},
      {DG_BAD_INPUTS, "BadInputs", PyExc_ValueError, NULL},
      {DG_NO_SHAPES, "NoShapes", PyExc_ValueError, NULL},
      {DG_BAD_KNOB, "BadKnob", PyExc_ValueError, NULL},
      {DG_TOO_MANY_OPS, "TooManyOperations", PyExc_RuntimeError, NULL},
      {DG_OUTPUT_LIMIT, "OutputLimit", PyExc_RuntimeError, NULL},
      {DG_PYTHON_IMPORT, "MissingModule", PyExc_ImportError, NULL},
      {DG_INTERNAL, "Internal", PyExc_RuntimeError, NULL},
      {DG_NKI_CALL, "NkiCall", PyExc_TypeError, NULL},
      {DG_NKI_UNKNOWN_API, "NkiUnknownApi", PyExc_AttributeError, NULL},
      {DG_NKI_NAME, "NkiName", PyExc_NameError, NULL},
      {DG_NKI_UNSUPPORTED, "NkiUnsupported", PyExc_NotImplementedError, NULL},
      {DG_NKI_REMOVED_API, "NkiRemovedApi", PyExc_NotImplementedError, NULL},
      {DG_NKI_MIXED_GENERATIONS, "NkiMixedGenerations", PyExc_NotImplementedError, NULL},
      {DG_NKI_MASK_REMOVED, "NkiMaskRemoved", PyExc_TypeError, NULL},
      {DG_NKI_MASK, "NkiMask", PyExc_ValueError, NULL},
      {DG_NKI_TENSOR_OPERATOR, "NkiTensorOperator", PyExc_TypeError, NULL},
      {DG_NKI_TILE_ASSIGNMENT, "NkiTileAssignment", PyExc_TypeError, NULL},
      {DG_NKI_TENSOR_TRUTH, "NkiTensorTruth", PyExc_TypeError, NULL},
      {DG_NKI_OPERATOR, "NkiOperator", PyExc_ValueError, NULL},
      {DG_NKI_OPERAND, "NkiOperand", PyExc_ValueError, NULL},
      {DG_NKI_DTYPE, "NkiDtype", PyExc_TypeError, NULL},
      {DG_NKI_MEMORY, "NkiMemory", PyExc_ValueError, NULL},
      {DG_NKI_BOUNDS, "NkiBounds", PyExc_IndexError, NULL},
      {DG_NKI_SIZE_LIMIT, "NkiSizeLimit", PyExc_ValueError, NULL},
      {DG_NKI_SHAPE_MISMATCH, "NkiShapeMismatch", PyExc_ValueError, NULL},
      {DG_NKI_ADDRESS, "NkiAddress", PyExc_ValueError, NULL},
      {DG_NKI_ARGUMENT, "NkiArgument", PyExc_TypeError, NULL},
      {DG_NKI_MEMORY_FULL, "NkiMemoryFull", PyExc_ValueError, NULL},
      {DG_NKI_VIEW, "NkiView", PyExc_ValueError, NULL},
      {DG_NKI_OUTPUT, "NkiOutput", PyExc_ValueError, NULL},
      {DG_NKI_GRID, "NkiGrid", PyExc_ValueError, NULL},
      {DG_NKI_REGISTER_IN_HOST_CODE, "NkiRegisterInHostCode", PyExc_TypeError, NULL},
      {DG_NKI_DEVICE_LOOP, "NkiDeviceLoop", PyExc_RuntimeError, NULL},
      {DG_NKI_CORES, "NkiCores", PyExc_ValueError, NULL},
      {DG_NKI_NAME_IN_USE, "NkiNameInUse", PyExc_ValueError, NULL},
      {DG_NKI_AFFINE_DEPENDENCE, "NkiAffineDependence", PyExc_ValueError, NULL},
  };
  base_class = PyErr_NewException("nkx.TraceError", PyExc_Exception, NULL);
  if (!base_class || PyModule_AddObjectRef(module, "TraceError", base_class) < 0)
    return false;
  time_class = PyErr_NewException("nkx.TimeLimit", PyExc_BaseException, NULL);
  if (!time_class)
    return false;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (!(classes[all[i].code] = make_class(module, all[i].name, all[i].second, all[i].third)))
      return false;
  return make_axis_class(module);
}

void *trace_refuse_axis(long long axis, int rank) {
  PyObject *exc = PyObject_CallFunction(axis_class, "Li", axis, rank);
  if (exc)
    PyErr_SetObject(axis_class, exc);
  Py_XDECREF(exc);
  return NULL;
}

static void raise_with(enum diag_code code, const char *hint, PyObject *message) {
  assert(classes[DG_INTERNAL]);
  PyObject *cls = classes[code] ? classes[code] : classes[DG_INTERNAL];
  PyObject *exc = message ? PyObject_CallOneArg(cls, message) : NULL;
  PyObject *h = exc && hint ? PyUnicode_FromString(hint) : NULL;
  if (exc && (!hint || (h && PyObject_SetAttrString(exc, "hint", h) == 0)))
    PyErr_SetObject(cls, exc);
  Py_XDECREF(h);
  Py_XDECREF(exc);
}

void *trace_refuse(enum diag_code code, const char *hint, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  PyObject *message = PyUnicode_FromFormatV(fmt, ap);
  va_end(ap);
  raise_with(code, hint, message);
  Py_XDECREF(message);
  return NULL;
}

void refuse_adopt(void) {
  PyObject *type, *value, *tb;
  if (!PyErr_ExceptionMatches(PyExc_TypeError) && !PyErr_ExceptionMatches(PyExc_ValueError) &&
      !PyErr_ExceptionMatches(PyExc_IndexError) && !PyErr_ExceptionMatches(PyExc_OverflowError))
    return;
  if (PyErr_ExceptionMatches(base_class))
    return;
  PyErr_Fetch(&type, &value, &tb);
  PyErr_NormalizeException(&type, &value, &tb);
  PyObject *message = value ? PyObject_Str(value) : NULL;
  if (message) {
    raise_with(DG_BAD_ARGUMENT, NULL, message);
    Py_DECREF(message);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(tb);
  } else {
    PyErr_Clear();
    PyErr_Restore(type, value, tb);
  }
}

bool refuse_missing(PyObject *o) {
  PyObject *module = PyImport_ImportModule("nkx.missing");
  PyObject *cls = module ? PyObject_GetAttrString(module, "Missing") : NULL;
  const bool is = cls && PyObject_TypeCheck(o, (PyTypeObject *)cls);
  PyErr_Clear();
  Py_XDECREF(module);
  Py_XDECREF(cls);
  PyObject *number = is ? PyNumber_Index(o) : NULL; /* any use of the object raises an exception */
  Py_XDECREF(number);
  return is;
}

static bool was_stopped;

PyObject *refuse_timeout(PyObject *self, PyObject *const *args, Py_ssize_t n) {
  (void)self, (void)args, (void)n;
  was_stopped = true;
  PyErr_SetString(time_class, "the kernel ran longer than its time limit; this is where it was");
  return NULL;
}

bool refuse_was_stopped(void) {
  return was_stopped;
}

int refuse_code(PyObject *exc, const char **hint) {
  *hint = NULL;
  if (time_class && PyObject_TypeCheck(exc, (PyTypeObject *)time_class)) {
    *hint = "is there a loop without end, or far more Python work than tensor operations?";
    return DG_TIME_LIMIT;
  }
  if (!base_class || !PyObject_TypeCheck(exc, (PyTypeObject *)base_class))
    return -1;
  for (int i = 0; i < DIAG_COUNT; i++) {
    if (!classes[i] || !PyObject_TypeCheck(exc, (PyTypeObject *)classes[i]))
      continue;
    PyObject *h = PyObject_GetAttrString(exc, "hint");
    if (h && PyUnicode_Check(h))
      *hint = PyUnicode_AsUTF8(h); /* borrowed from the attribute */
    Py_XDECREF(h);
    PyErr_Clear();
    return i;
  }
  return -1;
}
