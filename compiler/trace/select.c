/* select: where, take, and functions like zeros_like. */

#include "trace/args.h"
#include "trace/compose.h"
#include "trace/refuse.h"
#include "trace/tensor.h"

PyObject *op_where(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  PyObject *o[3] = {NULL, NULL, NULL};
  struct operand xs[3] = {{0}, {0}, {0}};
  int rank = 0;
  int64_t dims[HLO_RANK_MAX];
  hlo_val v = NULL;
  (void)op, (void)kw;
  if (!PyArg_ParseTuple(args, "O|OO:where", &o[0], &o[1], &o[2]))
    return NULL;
  if (!o[1] || !o[2])
    return trace_refuse(DG_UNSUPPORTED_OP, "use np.where(condition, x, y)",
                        "np.where with a condition alone is not supported: the result's size depends on data");
  if (operand_read(tr, o[0], &xs[0]) && operand_read(tr, o[1], &xs[1]) && operand_read(tr, o[2], &xs[2])) {
    enum dtype t = promote_operands(2, xs + 1);
    if (t != DT_NONE && operand_broadcast(3, xs, &rank, dims)) {
      hlo_val c = xs[0].v ? val_broadcast(tr, val_nonzero(tr, xs[0].v), rank, dims)
                          : operand_at(tr, &xs[0], DT_BOOL, rank, dims);
      v = hlo_select(&tr->b, c, operand_at(tr, &xs[1], t, rank, dims), operand_at(tr, &xs[2], t, rank, dims));
    }
  }
  for (int i = 0; i < 3; i++)
    operand_clear(&xs[i]);
  return tensor_wrap(tr, v);
}

hlo_val val_take(struct tracer *tr, hlo_val x, hlo_val indices, int axis) {
  if (!x || !indices)
    return NULL;
  if (!dtype_is_int(indices->shape.dtype))
    return trace_refuse(
        DG_UNSUPPORTED_INDEX,
        indices->shape.dtype == DT_BOOL ? "use np.where(mask, x, y)" : "convert them: idx.astype(np.int32)",
        indices->shape.dtype == DT_BOOL ? "a boolean mask is not supported: the result's size depends on data"
                                        : "indices must be integers, not %s",
        dtype_numpy_name(indices->shape.dtype));
  indices = val_wrap_indices(tr, indices, x->shape.dims[axis]);
  return val_gather(tr, x, 1, &axis, &indices, axis);
}

hlo_val val_known_indices(struct tracer *tr, PyObject *o, int axis, int64_t size) {
  PyArrayObject *a = (PyArrayObject *)PyArray_FROM_O(o);
  if (!a)
    return NULL;
  PyObject *c = PyArray_ISINTEGER(a) || PyArray_SIZE(a) == 0
                    ? PyArray_FromArray(a, PyArray_DescrFromType(NPY_INT64),
                                        NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_ENSURECOPY | NPY_ARRAY_FORCECAST)
                    : trace_refuse(DG_UNSUPPORTED_INDEX, "use np.where(mask, x, y) for a boolean mask",
                                   "indices must be integers, not %S", (PyObject *)PyArray_DESCR(a));
  Py_DECREF(a);
  if (!c)
    return NULL;
  a = (PyArrayObject *)c;
  int64_t *p = PyArray_DATA(a);
  for (npy_intp i = 0; i < PyArray_SIZE(a); i++) {
    if (p[i] < -size || p[i] >= size) {
      trace_refuse(DG_BAD_ARGUMENT, NULL, "index %lld is out of bounds for axis %d with size %lld", (long long)p[i],
                   axis, (long long)size);
      Py_DECREF(c);
      return NULL;
    }
    p[i] += p[i] < 0 ? size : 0;
  }
  hlo_val v = val_array(tr, a, DT_I32);
  Py_DECREF(c);
  return v;
}

PyObject *op_take(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "indices", "axis", "out", "mode", NULL};
  PyObject *a, *idx, *axis = NULL, *out = NULL, *mode = NULL;
  int at = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "OO|OOO", names, &a, &idx, &axis, &out, &mode) ||
      !args_only_none(out, op->name, "out"))
    return NULL;
  if (mode && (!PyUnicode_Check(mode) || PyUnicode_CompareWithASCIIString(mode, "raise") != 0))
    return trace_refuse(DG_UNSUPPORTED_OP, "clip the indices first: np.clip(idx, 0, n - 1)",
                        "np.take with mode= is not supported");
  hlo_val x = operand_alone(tr, a);
  if (!x)
    return NULL;
  if (!axis || axis == Py_None) {
    int64_t n = hlo_shape_elements(&x->shape);
    x = hlo_reshape(&tr->b, x, 1, &n);
  } else if (!args_axis(axis, x->shape.rank, &at)) {
    return NULL;
  }
  if (!x)
    return NULL;
  hlo_val i = tensor_check(idx) ? tensor_val(tr, idx) : val_known_indices(tr, idx, at, x->shape.dims[at]);
  return tensor_wrap(tr, val_take(tr, x, i, at));
}

/* ---- creation ------------------------------------------------------------------------------------------------ */

/* Sets the shape and dtype of the result of zeros_like and similar functions.  False with an exception. */
static bool like_what(struct tracer *tr, PyObject *a, PyObject *dtype, PyObject *shape, enum dtype *t, int *rank,
                      int64_t dims[HLO_RANK_MAX]) {
  struct operand x;
  if (!operand_read(tr, a, &x))
    return false;
  *t = operand_dtype(&x);
  *rank = x.rank;
  for (int i = 0; i < x.rank; i++)
    dims[i] = x.dims[i];
  operand_clear(&x);
  if (dtype && dtype != Py_None && (*t = dtype_from_py(dtype)) == DT_NONE)
    return false;
  if (!shape || shape == Py_None)
    return true;
  if (!args_dims(shape, "shape", rank, dims))
    return false;
  for (int i = 0; i < *rank; i++)
    if (dims[i] < 0) {
      trace_refuse(DG_BAD_ARGUMENT, NULL, "negative dimensions are not allowed");
      return false;
    }
  return true;
}

PyObject *op_like(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "dtype", "order", "subok", "shape", "device", NULL};
  PyObject *a, *dtype = NULL, *shape = NULL, *ignored;
  enum dtype t;
  int rank;
  int64_t dims[HLO_RANK_MAX];
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|OOOOO", names, &a, &dtype, &ignored, &ignored, &shape, &ignored) ||
      !like_what(tr, a, dtype, shape, &t, &rank, dims))
    return NULL;
  return tensor_wrap(tr, hlo_full(&tr->b, t, rank, dims, op->arg.n));
}

PyObject *op_full_like(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "fill_value", "dtype", "order", "subok", "shape", "device", NULL};
  PyObject *a, *fill, *dtype = NULL, *shape = NULL, *ignored;
  enum dtype t;
  int rank, n = 0;
  int64_t dims[HLO_RANK_MAX], both[HLO_RANK_MAX];
  struct operand xs[2];
  (void)op;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "OO|OOOOO", names, &a, &fill, &dtype, &ignored, &ignored, &shape,
                                   &ignored) ||
      !like_what(tr, a, dtype, shape, &t, &rank, dims) || !operand_read(tr, fill, &xs[0]))
    return NULL;
  hlo_val v = NULL;
  xs[1] = (struct operand){.rank = rank, .dims = dims};
  if (operand_broadcast(2, xs, &n, both)) {
    if (n != rank || !hlo_dims_equal(n, both, dims))
      trace_refuse(DG_SHAPE_MISMATCH, NULL, "full_like: the fill value does not broadcast to the shape");
    else
      v = operand_at(tr, &xs[0], t, rank, dims);
  }
  operand_clear(&xs[0]);
  return tensor_wrap(tr, v);
}
