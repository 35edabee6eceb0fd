/* custom: records calls of functions that are given as code for the hardware, as custom-call in HLO.
 *
 * The callers check the arguments: python/nkigen/custom_op.py, which also has the function's NumPy implementation, and
 * python/nkx/nki_kernel.py, for kernels that the vendor's front end traced.
 */
#include <string.h>

#include "trace/args.h"
#include "trace/compose.h"
#include "trace/module.h"
#include "trace/refuse.h"
#include "trace/tensor.h"

/* Reads a pair (shape, dtype) into *out. */
static bool read_shape(struct tracer *tr, PyObject *o, struct hlo_shape *out) {
  PyObject *shape, *dtype;
  int64_t dims[HLO_RANK_MAX];
  int rank = 0;
  if (!PyArg_ParseTuple(o, "OO", &shape, &dtype) || !args_dims(shape, "shape", &rank, dims))
    return false;
  enum dtype t = dtype_from_py(dtype);
  *out = hlo_shape_array(tr->a, t, rank, dims);
  if (dtype_is_complex(t))
    return trace_refuse(DG_UNSUPPORTED_DTYPE, "use two arrays of reals",
                        "a custom operation cannot have complex results");
  return t != DT_NONE;
}

/* Returns the call's results as a list of tensors. */
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

/* Reads [(output, operand), …]: each output shares the memory of its operand.  An output is an element of the result if
 * the result is a tuple, and the whole result otherwise. */
static bool read_aliases(struct tracer *tr, PyObject *list, bool is_tuple, struct hlo_operand_alias *out) {
  for (int i = 0; i < (int)PyList_GET_SIZE(list); i++) {
    long long output, operand;
    if (!PyArg_ParseTuple(PyList_GET_ITEM(list, i), "LL", &output, &operand))
      return false;
    int64_t *index = arena_new(tr->a, int64_t);
    *index = output;
    out[i] = (struct hlo_operand_alias){{is_tuple, index}, operand};
  }
  return true;
}

static PyObject *op_custom_call(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  const char *target, *body;
  PyObject *tensors, *outputs, *aliased;
  int has_collectives;
  (void)op, (void)kw;
  if (!PyArg_ParseTuple(args, "ssO!O!O!p", &target, &body, &PyList_Type, &tensors, &PyList_Type, &outputs, &PyList_Type,
                        &aliased, &has_collectives))
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
    return trace_refuse(DG_BAD_ARGUMENT, NULL, "%s has no outputs", target);
  struct hlo_shape shape =
      n_out == 1 ? shapes[0] : (struct hlo_shape){.dtype = DT_TUPLE, .n_elems = n_out, .elems = shapes};
  const int n_aliases = (int)PyList_GET_SIZE(aliased);
  struct hlo_operand_alias *aliases = arena_new_array(tr->a, struct hlo_operand_alias, (size_t)n_aliases);
  if (!read_aliases(tr, aliased, n_out > 1, aliases))
    return NULL;
  const struct hlo_custom custom = {target, body, n_aliases, aliases, has_collectives};
  return wrap_results(tr, hlo_custom_call(&tr->b, &custom, shape, n, xs), n_out);
}

PyObject *custom_call(PyObject *self, PyObject *args) {
  static const struct op_def op = {.name = "custom op", .numpy = "", .call = op_custom_call, .kind = "custom"};
  (void)self;
  return op_call(&op, args, NULL);
}
