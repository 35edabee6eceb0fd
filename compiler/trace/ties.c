/* ties: see ties.h.  np.argsort calls the method of ndarray, so that is what changes. */
#include "trace/array.h"
#include "trace/ties.h"

static PyObject *numpy_argsort; /* the method of ndarray, while another one takes its place */

static bool is_open(PyObject *x) {
  return !x || x == Py_None;
}

/* argsort(axis=-1, kind=None, order=None, *, stable=None) */
static PyObject *argsort(PyObject *self, PyObject *args, PyObject *kw) {
  const Py_ssize_t n = PyTuple_GET_SIZE(args);
  PyObject *kind = n > 1 ? PyTuple_GET_ITEM(args, 1) : kw ? PyDict_GetItemString(kw, "kind") : NULL, *r = NULL;
  const bool is_left = is_open(kind) && is_open(kw ? PyDict_GetItemString(kw, "stable") : NULL);
  PyObject *named = kw ? PyDict_Copy(kw) : PyDict_New(), *all = PyTuple_New(n + 1);
  PyObject *stable = PyUnicode_FromString("stable");

  if (named && all && stable) {
    PyTuple_SET_ITEM(all, 0, Py_NewRef(self));
    for (Py_ssize_t i = 0; i < n; i++)
      PyTuple_SET_ITEM(all, i + 1, Py_NewRef(is_left && i == 1 ? stable : PyTuple_GET_ITEM(args, i)));
    if (!is_left || n > 1 || PyDict_SetItemString(named, "kind", stable) == 0)
      r = PyObject_Call(numpy_argsort, all, named);
  }
  Py_XDECREF(named);
  Py_XDECREF(all);
  Py_XDECREF(stable);
  return r;
}

static bool set(PyObject *method) {
  const bool ok = PyDict_SetItemString(PyArray_Type.tp_dict, "argsort", method) == 0;
  PyType_Modified(&PyArray_Type); /* the interpreter caches methods that it has looked up */
  return ok;
}

bool ties_begin(void) {
  static PyMethodDef def = {"argsort", PYFUNC(argsort), METH_VARARGS | METH_KEYWORDS, NULL};
  PyObject *own = PyDescr_NewMethod(&PyArray_Type, &def);

  numpy_argsort = Py_XNewRef(PyDict_GetItemString(PyArray_Type.tp_dict, "argsort"));
  if (!own || !numpy_argsort || !set(own))
    Py_CLEAR(numpy_argsort);
  Py_XDECREF(own);
  return numpy_argsort;
}

void ties_end(void) {
  PyObject *type, *exc, *tb;

  if (!numpy_argsort)
    return;
  PyErr_Fetch(&type, &exc, &tb);
  if (!set(numpy_argsort))
    PyErr_Clear();
  Py_CLEAR(numpy_argsort);
  PyErr_Restore(type, exc, tb);
}
