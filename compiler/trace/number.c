/* number: Python's number protocol, implemented once for tensors and loop indices.
 *
 * A sum or difference of loop indices and ints, and the product of an index and an int, remain an index (loop_index.c).
 * All other arithmetic is an operation of the table.
 */
#include "trace/number.h"

#include "trace/args.h"
#include "trace/loop.h"
#include "trace/ops.h"
#include "trace/refuse.h"

bool number_is_operand(PyObject *o) {
  return tensor_check(o) || PyLong_Check(o) || loop_index_check(o) || PyFloat_Check(o) || PyArray_Check(o) ||
         PyArray_CheckScalar(o) || PyList_Check(o) || PyTuple_Check(o) || PyComplex_Check(o);
}

static PyObject *binary(enum op_id id, PyObject *x, PyObject *y) {
  if (!number_is_operand(x) || !number_is_operand(y))
    Py_RETURN_NOTIMPLEMENTED;
  return op_call2(id, x, y);
}

/* ---- arithmetic -------------------------------------------------------------------------------------------------- */

PyObject *number_add(PyObject *x, PyObject *y) {
  PyObject *r;
  return loop_index_add(x, y, 1, &r) ? r : binary(OP_ADD, x, y);
}
PyObject *number_subtract(PyObject *x, PyObject *y) {
  PyObject *r;
  return loop_index_add(x, y, -1, &r) ? r : binary(OP_SUBTRACT, x, y);
}
PyObject *number_multiply(PyObject *x, PyObject *y) {
  PyObject *r;
  return loop_index_multiply(x, y, &r) ? r : binary(OP_MULTIPLY, x, y);
}

#define BINARY(name, id) \
  PyObject *number_##name(PyObject *x, PyObject *y) { \
    return binary(id, x, y); \
  }
BINARY(true_divide, OP_DIVIDE)
BINARY(floor_divide, OP_FLOOR_DIVIDE)
BINARY(remainder, OP_REMAINDER)
BINARY(matrix_multiply, OP_MATMUL)
BINARY(and, OP_BITWISE_AND)
BINARY(or, OP_BITWISE_OR)
BINARY(xor, OP_BITWISE_XOR)
BINARY(lshift, OP_LEFT_SHIFT)
BINARY(rshift, OP_RIGHT_SHIFT)

PyObject *number_power(PyObject *x, PyObject *y, PyObject *modulus) {
  if (modulus != Py_None)
    return trace_refuse(DG_UNSUPPORTED_OP, "use (x ** y) % m", "pow with a modulus is not supported");
  return binary(OP_POWER, x, y);
}

PyObject *number_divmod(PyObject *x, PyObject *y) {
  PyObject *q = number_floor_divide(x, y);
  if (!q || q == Py_NotImplemented)
    return q;
  PyObject *r = number_remainder(x, y), *pair = r ? PyTuple_Pack(2, q, r) : NULL;
  Py_DECREF(q);
  Py_XDECREF(r);
  return pair;
}

PyObject *number_negative(PyObject *x) {
  PyObject *zero = PyLong_FromLong(0), *r = NULL;
  const bool is_index = zero && loop_index_add(zero, x, -1, &r);
  Py_XDECREF(zero);
  return is_index || !zero ? r : op_call1(OP_NEGATIVE, x);
}
PyObject *number_positive(PyObject *x) {
  return op_call1(OP_POSITIVE, x);
}
PyObject *number_absolute(PyObject *x) {
  return op_call1(OP_ABS, x);
}
PyObject *number_invert(PyObject *x) {
  return op_call1(OP_INVERT, x);
}

PyObject *number_compare(PyObject *x, PyObject *y, int comparison) {
  if (!number_is_operand(y))
    Py_RETURN_NOTIMPLEMENTED;
  return op_compare2(comparison, x, y);
}

/* ---- in place ---------------------------------------------------------------------------------------------------- */

/* True if a result can be stored in t in place.  As in NumPy, the shape may not change, and the kind of the dtype may
 * not become larger. */
static bool fits_in_place(const struct tensor *t, const struct tensor *result) {
  char a[DIMS_TEXT_MAX], b[DIMS_TEXT_MAX];
  if (result->rank != t->rank || !hlo_dims_equal(t->rank, result->dims, t->dims)) {
    trace_refuse(DG_SHAPE_MISMATCH, "write x = x + y to let the shape change",
                 "non-broadcastable output operand with shape %s doesn't match the broadcast shape %s",
                 dims_text(t->rank, t->dims, a), dims_text(result->rank, result->dims, b));
    return false;
  }
  if (dtype_kind(result->dtype) > dtype_kind(t->dtype) && !(dtype_is_int(result->dtype) && dtype_is_int(t->dtype))) {
    trace_refuse(DG_DTYPE_PROMOTION, "write x = x + y to let the dtype change",
                 "cannot store a %s result in a %s tensor in place", dtype_numpy_name(result->dtype),
                 dtype_numpy_name(t->dtype));
    return false;
  }
  return true;
}

/* x op= y: stores the result in the object x, in x's dtype.  As in NumPy, all variables that refer to x, and the tensor
 * that x is a view of, see the change.  A scalar cannot change, so the variable gets a new object.  This does not count
 * as a mutation of a kernel's parameter (NKIPy's rule); only x[…] = y does. */
static PyObject *in_place(enum op_id id, PyObject *x, PyObject *y) {
  if (!tensor_check(x) || !number_is_operand(y))
    Py_RETURN_NOTIMPLEMENTED;
  struct tensor *t = (struct tensor *)x;
  PyObject *r = op_call2(id, x, y);
  if (!r || t->is_scalar)
    return r;
  bool ok = loop_may_write(tracer_now, t) && fits_in_place(t, (struct tensor *)r);
  hlo_val v = ok ? hlo_convert(&tracer_now->b, ((struct tensor *)r)->v, t->dtype) : NULL;
  Py_DECREF(r);
  ok = v && tensor_store(tracer_now, t, v, false);
  if (!ok && !PyErr_Occurred())
    op_raise(tracer_now, DG_INTERNAL);
  return ok ? Py_NewRef(x) : NULL;
}

#define IN_PLACE(name, id) \
  PyObject *number_inplace_##name(PyObject *x, PyObject *y) { \
    return in_place(id, x, y); \
  }
IN_PLACE(add, OP_ADD)
IN_PLACE(subtract, OP_SUBTRACT)
IN_PLACE(multiply, OP_MULTIPLY)
IN_PLACE(true_divide, OP_DIVIDE)
IN_PLACE(floor_divide, OP_FLOOR_DIVIDE)
IN_PLACE(remainder, OP_REMAINDER)
IN_PLACE(matrix_multiply, OP_MATMUL)
IN_PLACE(and, OP_BITWISE_AND)
IN_PLACE(or, OP_BITWISE_OR)
IN_PLACE(xor, OP_BITWISE_XOR)
IN_PLACE(lshift, OP_LEFT_SHIFT)
IN_PLACE(rshift, OP_RIGHT_SHIFT)

PyObject *number_inplace_power(PyObject *x, PyObject *y, PyObject *modulus) {
  (void)modulus;
  return in_place(OP_POWER, x, y);
}

/* ---- what would need the value ----------------------------------------------------------------------------------- */

void *number_refuse_value(PyObject *self, const char *as) {
  if (loop_index_check(self))
    return trace_refuse(DG_TRACED_VALUE, "index a tensor with it, or use a Python for loop, which is unrolled",
                        "a fori_loop's index cannot be %s: the body is traced once for all iterations", as);
  return trace_refuse(DG_TRACED_VALUE, "keep it a tensor; a 0-d tensor broadcasts like a number",
                      "a traced tensor cannot be %s: its value is not known while tracing", as);
}

int number_bool(PyObject *self) {
  if (loop_index_check(self))
    trace_refuse(DG_TRACED_BOOL, "use np.where(i == 0, a, b); a Python `if` is decided while tracing",
                 "the truth of a fori_loop's index is not known while tracing: the body is traced once for all "
                 "iterations");
  else
    trace_refuse(DG_TRACED_BOOL,
                 "use np.where(condition, a, b) to choose between values; a Python `if` is decided while tracing",
                 "the truth of a traced tensor is not known while tracing");
  return -1;
}

PyObject *number_int(PyObject *self) {
  return number_refuse_value(self, "converted to a Python int");
}
PyObject *number_float(PyObject *self) {
  return number_refuse_value(self, "converted to a Python float");
}
PyObject *number_index(PyObject *self) {
  if (loop_index_check(self))
    return number_refuse_value(self, "used as a Python index or size");
  return trace_refuse(DG_TRACED_VALUE, "use a Python int, or the size of an axis: x.shape[0]",
                      "a traced tensor cannot be used as a Python index or size: its value is not known while tracing");
}

PyObject *number_array(PyObject *self, PyObject *args, PyObject *kw) {
  (void)args, (void)kw;
  if (loop_index_check(self))
    return number_refuse_value(self, "converted to a NumPy array");
  return trace_refuse(
      DG_TRACED_VALUE,
      "leave out np.array and np.asarray; to join tensors use np.stack; call a function of NumPy and not the "
      "method of an array: np.dot(T, x), not T.dot(x)",
      "a traced tensor cannot be converted to a NumPy array: it has no data while tracing");
}
