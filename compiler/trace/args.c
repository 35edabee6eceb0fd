/* args: reads axis, shape and integer arguments, and reports errors with NumPy's messages. */
#include "trace/args.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "trace/refuse.h"
#include "trace/tensor.h"

const char *dims_text(int rank, const int64_t *dims, char out[DIMS_TEXT_MAX]) {
  assert(rank >= 0 && rank <= NPY_MAXDIMS);
  size_t n = (size_t)snprintf(out, DIMS_TEXT_MAX, "(");
  for (int i = 0; i < rank; i++)
    n += (size_t)snprintf(out + n, DIMS_TEXT_MAX - n, "%s%lld", i ? ", " : "", (long long)dims[i]);
  snprintf(out + n, DIMS_TEXT_MAX - n, rank == 1 ? ",)" : ")");
  return out;
}

bool args_int(PyObject *o, const char *what, int64_t *out) {
  if (tensor_check(o)) {
    trace_refuse(DG_TRACED_VALUE, "use a Python int, or the size of an axis: x.shape[0]",
                 "%s is a traced tensor: its value is not known while tracing", what);
    return false;
  }
  PyObject *i = PyNumber_Index(o);
  if (!i) {
    PyErr_Clear();
    if (refuse_missing(o))
      return false;
    trace_refuse(DG_BAD_ARGUMENT, NULL, "%s must be an integer, not %s", what, Py_TYPE(o)->tp_name);
    return false;
  }
  int overflow = 0;
  *out = PyLong_AsLongLongAndOverflow(i, &overflow);
  Py_DECREF(i);
  if (overflow)
    trace_refuse(DG_BAD_ARGUMENT, NULL, "%s is too large", what);
  return !overflow;
}

bool args_axis(PyObject *axis, int rank, int *out) {
  int64_t v = 0;
  if (!args_int(axis, "axis", &v))
    return false;
  if (v < -rank || v >= rank) {
    trace_refuse_axis((long long)v, rank);
    return false;
  }
  *out = (int)(v < 0 ? v + rank : v);
  return true;
}

bool args_axes(PyObject *axis, int rank, bool mask[HLO_RANK_MAX]) {
  memset(mask, 0, HLO_RANK_MAX * sizeof *mask);
  if (!axis || axis == Py_None) {
    for (int i = 0; i < rank; i++)
      mask[i] = true;
    return true;
  }
  int one = 0;
  if (!PyTuple_Check(axis) && !PyList_Check(axis)) {
    if (!args_axis(axis, rank, &one))
      return false;
    return mask[one] = true;
  }
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(axis); i++) {
    if (!args_axis(PySequence_Fast_GET_ITEM(axis, i), rank, &one))
      return false;
    if (mask[one]) {
      trace_refuse(DG_BAD_ARGUMENT, NULL, "duplicate value in 'axis'");
      return false;
    }
    mask[one] = true;
  }
  return true;
}

bool args_axis_list(PyObject *o, int rank, int *n, int64_t axes[HLO_RANK_MAX]) {
  if (!args_dims(o, "axis", n, axes))
    return false;
  for (int i = 0; i < *n; i++) {
    if (axes[i] < -rank || axes[i] >= rank) {
      trace_refuse_axis((long long)axes[i], rank);
      return false;
    }
    axes[i] += axes[i] < 0 ? rank : 0;
    for (int j = 0; j < i; j++)
      if (axes[i] == axes[j]) {
        trace_refuse(DG_BAD_ARGUMENT, NULL, "repeated axis");
        return false;
      }
  }
  return true;
}

bool args_dims(PyObject *o, const char *what, int *n, int64_t dims[HLO_RANK_MAX]) {
  if (tensor_check(o) || PyIndex_Check(o) || !PySequence_Check(o)) {
    *n = 1;
    return args_int(o, what, dims);
  }
  PyObject *seq = PySequence_Fast(o, "expected a sequence of integers");
  if (!seq)
    return false;
  Py_ssize_t len = PySequence_Fast_GET_SIZE(seq);
  bool ok = len <= HLO_RANK_MAX;
  if (!ok)
    trace_refuse(DG_BAD_ARGUMENT, NULL, "%s has %zd entries; at most %d dimensions are supported", what, len,
                 HLO_RANK_MAX);
  for (Py_ssize_t i = 0; ok && i < len; i++)
    ok = args_int(PySequence_Fast_GET_ITEM(seq, i), what, &dims[i]);
  *n = (int)len;
  Py_DECREF(seq);
  return ok;
}

bool args_flag(PyObject *o, bool *out) {
  if (!o)
    return true;
  int v = PyObject_IsTrue(o);
  *out = v > 0;
  return v >= 0;
}

bool args_only_none(PyObject *o, const char *func, const char *keyword) {
  if (!o || o == Py_None || (strcmp(keyword, "where") == 0 && o == Py_True))
    return true;
  trace_refuse(DG_UNSUPPORTED_OP, strcmp(keyword, "where") == 0 ? "use np.where on the argument" : NULL,
               "np.%s with %s= is not supported", func, keyword);
  return false;
}

bool args_rank(int rank) {
  if (rank > HLO_RANK_MAX)
    trace_refuse(DG_BAD_ARGUMENT, NULL, "at most %d dimensions are supported", HLO_RANK_MAX);
  return rank <= HLO_RANK_MAX;
}
