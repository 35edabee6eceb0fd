/* args: reading axis, shape and integer arguments the way NumPy does, with its messages. */
#include "trace/tracer.h"

#include <stdio.h>
#include <string.h>

const char *dims_text(int rank, const int64_t *dims, char *out, size_t size) {
  size_t n = (size_t)snprintf(out, size, "(");
  for (int i = 0; i < rank && n + 24 < size; i++)
    n += (size_t)snprintf(out + n, size - n, "%s%lld", i ? ", " : "", (long long)dims[i]);
  snprintf(out + n, size - n, rank == 1 ? ",)" : ")");
  return out;
}

bool int_parse(PyObject *o, const char *what, int64_t *out) {
  if (tensor_check(o)) {
    refuse(DG_TRACED_VALUE, "use a Python int, or the size of an axis: x.shape[0]",
           "%s is a traced tensor: its value is not known while tracing", what);
    return false;
  }
  PyObject *i = PyNumber_Index(o);
  if (!i) {
    PyErr_Clear();
    refuse(DG_BAD_ARGUMENT, NULL, "%s must be an integer, not %s", what, Py_TYPE(o)->tp_name);
    return false;
  }
  int overflow = 0;
  *out = PyLong_AsLongLongAndOverflow(i, &overflow);
  Py_DECREF(i);
  if (overflow)
    refuse(DG_BAD_ARGUMENT, NULL, "%s is too large", what);
  return !overflow;
}

bool axis_parse(PyObject *axis, int rank, int *out) {
  int64_t v = 0;
  if (!int_parse(axis, "axis", &v))
    return false;
  if (v < -rank || v >= rank) {
    refuse(DG_BAD_ARGUMENT, NULL, "axis %lld is out of bounds for array of dimension %d", (long long)v, rank);
    return false;
  }
  *out = (int)(v < 0 ? v + rank : v);
  return true;
}

bool axes_parse(PyObject *axis, int rank, bool mask[HLO_RANK_MAX]) {
  memset(mask, 0, HLO_RANK_MAX * sizeof *mask);
  if (!axis || axis == Py_None) {
    for (int i = 0; i < rank; i++)
      mask[i] = true;
    return true;
  }
  int one = 0;
  if (!PyTuple_Check(axis) && !PyList_Check(axis)) {
    if (!axis_parse(axis, rank, &one))
      return false;
    return mask[one] = true;
  }
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(axis); i++) {
    if (!axis_parse(PySequence_Fast_GET_ITEM(axis, i), rank, &one))
      return false;
    if (mask[one]) {
      refuse(DG_BAD_ARGUMENT, NULL, "duplicate value in 'axis'");
      return false;
    }
    mask[one] = true;
  }
  return true;
}

bool dims_parse(PyObject *o, const char *what, int *n, int64_t dims[HLO_RANK_MAX]) {
  if (tensor_check(o) || PyIndex_Check(o) || !PySequence_Check(o)) {
    *n = 1;
    return int_parse(o, what, dims);
  }
  PyObject *seq = PySequence_Fast(o, "expected a sequence of integers");
  if (!seq)
    return false;
  Py_ssize_t len = PySequence_Fast_GET_SIZE(seq);
  bool ok = len <= HLO_RANK_MAX;
  if (!ok)
    refuse(DG_BAD_ARGUMENT, NULL, "%s has %zd entries; at most %d dimensions are supported", what, len, HLO_RANK_MAX);
  for (Py_ssize_t i = 0; ok && i < len; i++)
    ok = int_parse(PySequence_Fast_GET_ITEM(seq, i), what, &dims[i]);
  *n = (int)len;
  Py_DECREF(seq);
  return ok;
}

bool flag_parse(PyObject *o, bool *out) {
  if (!o)
    return true;
  int v = PyObject_IsTrue(o);
  *out = v > 0;
  return v >= 0;
}

bool only_none(PyObject *o, const char *func, const char *keyword) {
  if (!o || o == Py_None || (strcmp(keyword, "where") == 0 && o == Py_True))
    return true;
  refuse(DG_UNSUPPORTED_OP, strcmp(keyword, "where") == 0 ? "use np.where on the argument" : NULL,
         "np.%s with %s= is not supported", func, keyword);
  return false;
}
