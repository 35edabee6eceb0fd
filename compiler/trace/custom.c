/* custom: calls of functions that are given by their code for the hardware: custom-call in HLO.
 *
 * Checked by the caller (python/nkigen/custom_op.py), which also knows what the function means in NumPy.
 */
#include <string.h>

#include "trace/compose.h"

/* (shape, dtype) as a shape of the trace. */
static bool read_shape(struct tracer *tr, PyObject *o, struct hlo_shape *out) {
  PyObject *shape, *dtype;
  int64_t dims[HLO_RANK_MAX];
  int rank = 0;
  if (!PyArg_ParseTuple(o, "OO", &shape, &dtype) || !dims_parse(shape, "shape", &rank, dims))
    return false;
  enum dtype t = dtype_from_py(dtype);
  *out = hlo_shape_array(tr->a, t, rank, dims);
  return t != DT_NONE;
}

/* The call's results as a list of tensors. */
static PyObject *wrap_results(struct tracer *tr, hlo_val call, int n) {
  PyObject *list = call ? PyList_New(n) : NULL;
  for (int i = 0; list && i < n; i++) {
    PyObject *t = tensor_wrap(tr, n == 1 ? call : hlo_tuple_element(&tr->b, call, i));
    if (!t)
      Py_CLEAR(list);
    else
      PyList_SET_ITEM(list, i, t);
  }
  return list;
}

static PyObject *op_custom_call(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  const char *target, *body;
  PyObject *tensors, *outputs;
  (void)op, (void)kw;
  if (!PyArg_ParseTuple(args, "ssO!O!", &target, &body, &PyList_Type, &tensors, &PyList_Type, &outputs))
    return NULL;
  int n = (int)PyList_GET_SIZE(tensors), n_out = (int)PyList_GET_SIZE(outputs);
  hlo_val *xs = arena_new_array(tr->a, hlo_val, (size_t)n);
  struct hlo_shape *shapes = arena_new_array(tr->a, struct hlo_shape, (size_t)n_out);
  for (int i = 0; i < n; i++)
    if (!(xs[i] = operand_alone(tr, PyList_GET_ITEM(tensors, i))))
      return NULL;
  for (int i = 0; i < n_out; i++)
    if (!read_shape(tr, PyList_GET_ITEM(outputs, i), &shapes[i]))
      return NULL;
  if (!n_out)
    return refuse(DG_BAD_ARGUMENT, NULL, "%s has no outputs", target);
  struct hlo_shape shape =
      n_out == 1 ? shapes[0] : (struct hlo_shape){.dtype = DT_TUPLE, .n_elems = n_out, .elems = shapes};
  return wrap_results(tr, hlo_custom_call(&tr->b, target, body, shape, n, xs, 0, NULL), n_out);
}

PyObject *custom_call(PyObject *self, PyObject *args) {
  static const struct op_def op = {.name = "custom op", .numpy = "", .call = op_custom_call, .kind = "custom"};
  (void)self;
  return op_call(&op, args, NULL);
}
