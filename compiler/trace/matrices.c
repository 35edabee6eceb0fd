/* matrices: triangles, diagonals, norms, and products other than matmul and dot.
 *
 * Triangles and diagonals select elements by comparing row and column numbers, so NaN and infinity outside of them have
 * no effect.
 */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "trace/args.h"
#include "trace/complex.h"
#include "trace/compose.h"
#include "trace/refuse.h"
#include "trace/tensor.h"

/* Compares column - row with k.  Axis i has the rows and axis j the columns. */
static hlo_val band(struct tracer *tr, hlo_val x, int i, int j, enum hlo_direction d, int64_t k) {
  return cmp_k(tr, d, bin(tr, HLO_SUBTRACT, val_positions(tr, x, j), val_positions(tr, x, i)), (double)k);
}

/* arg: 0 tril, 1 triu */
PyObject *op_triangle(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"m", "k", NULL};
  PyObject *a;
  int k = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|i", names, &a, &k))
    return NULL;
  hlo_val x = operand_alone(tr, a);
  if (!x || x->shape.rank == 0)
    return x ? trace_refuse(DG_BAD_ARGUMENT, NULL, "%s: a 0-d tensor has no triangle", op->name) : NULL;
  if (x->shape.rank == 1) { /* a matrix whose rows are the vector */
    int64_t dims[] = {x->shape.dims[0], x->shape.dims[0]};
    x = val_broadcast(tr, x, 2, dims);
  }
  int rank = x ? x->shape.rank : 2;
  hlo_val keep = band(tr, x, rank - 2, rank - 1, op->arg.n ? HLO_GE : HLO_LE, k);
  return tensor_wrap(tr, sel(tr, keep, x, val_like(tr, x, 0)));
}

hlo_val val_diagonal(struct tracer *tr, hlo_val x, int i, int j, int64_t k) {
  int64_t p[HLO_RANK_MAX];
  int n = 0;
  if (!x)
    return NULL;
  for (int d = 0; d < x->shape.rank; d++)
    if (d != i && d != j)
      p[n++] = d;
  p[n] = i;
  p[n + 1] = j;
  assert(i != j && n == x->shape.rank - 2);
  int64_t rows = x->shape.dims[i], cols = x->shape.dims[j];
  int64_t first = k < 0 ? -k : 0, last = rows < cols - k ? rows : cols - k;
  first = first > rows ? rows : first;
  x = val_transpose(tr, x, p);
  hlo_val kept = sel(tr, band(tr, x, n, n + 1, HLO_EQ, k), x, val_like(tr, x, 0));
  enum hlo_op add = x && x->shape.dtype == DT_BOOL ? HLO_OR : HLO_ADD;
  hlo_val v = val_reduce_axis(tr, add, kept, n + 1, false);
  return v ? val_slice(tr, v, n, first, last < first ? first : last) : NULL;
}

static bool two_axes(PyObject *o1, PyObject *o2, int rank, int *i, int *j) {
  *i = 0;
  *j = 1;
  if (rank < 2) {
    trace_refuse(DG_BAD_ARGUMENT, NULL, "a diagonal requires an array of at least two dimensions");
    return false;
  }
  if ((o1 && !args_axis(o1, rank, i)) || (o2 && !args_axis(o2, rank, j)))
    return false;
  if (*i == *j)
    trace_refuse(DG_BAD_ARGUMENT, NULL, "axis1 and axis2 cannot be the same");
  return *i != *j;
}

/* arg: 0 np.diagonal, 1 np.trace; 2 and 3 are those of np.linalg, which use the last two axes */
PyObject *op_diagonal(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "offset", "axis1", "axis2", "dtype", NULL};
  static char *last[] = {"x", "offset", "dtype", NULL};
  PyObject *a, *o1 = NULL, *o2 = NULL, *dtype = NULL;
  int k = 0, i, j;
  bool mask[HLO_RANK_MAX] = {0}, is_trace = op->arg.n & 1;
  if (op->arg.n >= 2 ? !PyArg_ParseTupleAndKeywords(args, kw, "O|$iO", last, &a, &k, &dtype)
                     : !PyArg_ParseTupleAndKeywords(args, kw, "O|iOOO", names, &a, &k, &o1, &o2, &dtype))
    return NULL;
  hlo_val x = operand_alone(tr, a);
  if (!x || !two_axes(o1, o2, x->shape.rank, &i, &j))
    return NULL;
  if (op->arg.n >= 2) {
    i = x->shape.rank - 2;
    j = i + 1;
  }
  if (!is_trace)
    return tensor_wrap(tr, val_diagonal(tr, x, i, j, k));
  enum dtype t = dtype && dtype != Py_None ? dtype_from_py(dtype) : promote_sum(x->shape.dtype);
  if (t == DT_NONE)
    return NULL;
  mask[i] = mask[j] = true;
  hlo_val kept = sel(tr, band(tr, x, i, j, HLO_EQ, k), x, val_like(tr, x, 0));
  return tensor_wrap(tr, val_sum(tr, cast(tr, kept, t), mask, false));
}

/* diag(v, k) makes a matrix with the vector v on diagonal k, or returns that diagonal if v is a matrix.  arg 1:
 * diagflat, which flattens v first. */
PyObject *op_diag(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"v", "k", NULL};
  PyObject *a;
  int k = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O|i", names, &a, &k))
    return NULL;
  hlo_val x = operand_alone(tr, a);
  x = x && op->arg.n ? val_flat(tr, x) : x;
  if (!x)
    return NULL;
  if (x->shape.rank == 2)
    return tensor_wrap(tr, val_diagonal(tr, x, 0, 1, k));
  if (x->shape.rank != 1)
    return trace_refuse(DG_BAD_ARGUMENT, "use np.diagonal for more dimensions", "input must be 1- or 2-d");
  int64_t n = x->shape.dims[0] + (k < 0 ? -k : k), dims[] = {n, n};
  struct hlo_pad_dim around = {k < 0 ? -k : 0, k > 0 ? k : 0, 0};
  x = k ? hlo_pad(&tr->b, x, hlo_scalar(&tr->b, x->shape.dtype, 0), &around) : x;
  hlo_val rows = x ? hlo_broadcast(&tr->b, x, 2, dims, (int64_t[]){0}) : NULL; /* row i holds element i */
  return tensor_wrap(tr, sel(tr, band(tr, rows, 0, 1, HLO_EQ, k), rows, val_like(tr, rows, 0)));
}

/* ---- norms ------------------------------------------------------------------------------------------------------ */

static hlo_val vector_norm(struct tracer *tr, hlo_val x, double p, const bool mask[HLO_RANK_MAX], bool keepdims) {
  hlo_val a = un(tr, HLO_ABS, x);
  if (p == 2)
    return un(tr, HLO_SQRT, val_sum(tr, bin(tr, HLO_MULTIPLY, x, x), mask, keepdims));
  if (p == 1)
    return val_sum(tr, a, mask, keepdims);
  if (isinf(p))
    return val_reduce(tr, p > 0 ? HLO_MAXIMUM : HLO_MINIMUM, a, mask, keepdims);
  if (p == 0)
    return val_sum(tr, cast(tr, val_nonzero(tr, x), x->shape.dtype), mask, keepdims);
  return bin_k(tr, HLO_POWER, val_sum(tr, bin_k(tr, HLO_POWER, a, p), mask, keepdims), 1 / p);
}

/* Order 1 is the largest column sum and inf the largest row sum; -1 and -inf are the smallest sums. */
static hlo_val matrix_norm(struct tracer *tr, hlo_val x, double p, int row, int col, bool keepdims) {
  if (fabs(p) != 1 && !isinf(p)) {
    char order[32];
    snprintf(order, sizeof order, "%g", p); /* CPython's formats have no %g */
    return trace_refuse(DG_UNSUPPORTED_OP, "use ord=None, \"fro\", 1, -1, np.inf or -np.inf",
                        "the matrix norm of order %s needs singular values, which is not supported", order);
  }
  bool sum[HLO_RANK_MAX] = {0};
  int over = isinf(p) ? col : row, other = isinf(p) ? row : col;
  sum[over] = true;
  hlo_val s = val_sum(tr, un(tr, HLO_ABS, x), sum, true);
  s = val_reduce_axis(tr, p > 0 ? HLO_MAXIMUM : HLO_MINIMUM, s, other, true);
  int64_t dims[HLO_RANK_MAX];
  int n = 0;
  for (int i = 0; s && !keepdims && i < s->shape.rank; i++)
    if (i != row && i != col)
      dims[n++] = s->shape.dims[i];
  return s && !keepdims ? hlo_reshape(&tr->b, s, n, dims) : s;
}

/* Reads the order as a number; *is_fro: "fro". */
static bool read_order(PyObject *ord, double *p, bool *is_fro) {
  *is_fro = PyUnicode_Check(ord) && PyUnicode_CompareWithASCIIString(ord, "fro") == 0;
  *p = 2;
  if (*is_fro)
    return true;
  if (PyUnicode_Check(ord)) {
    trace_refuse(DG_UNSUPPORTED_OP, "use ord=None, \"fro\", 1, 2, np.inf or -np.inf", "norm order %R is not supported",
                 ord);
    return false;
  }
  *p = PyFloat_AsDouble(ord);
  return !(*p == -1 && PyErr_Occurred());
}

/* norm(x, ord=None, axis=None, keepdims=False); arg 1: linalg.vector_norm(x, *, axis, keepdims, ord=2) */
PyObject *op_norm(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"x", "ord", "axis", "keepdims", NULL};
  static char *vector[] = {"x", "axis", "keepdims", "ord", NULL};
  PyObject *a, *ord = NULL, *axis = NULL, *keep = NULL;
  bool mask[HLO_RANK_MAX], keepdims = false, is_fro = false;
  double p = 2;
  if (op->arg.n ? !PyArg_ParseTupleAndKeywords(args, kw, "O|$OOO", vector, &a, &axis, &keep, &ord)
                : !PyArg_ParseTupleAndKeywords(args, kw, "O|OOO", names, &a, &ord, &axis, &keep))
    return NULL;
  ord = ord == Py_None ? NULL : ord;
  axis = axis == Py_None ? NULL : axis;
  hlo_val x = as_float(tr, operand_alone(tr, a));
  if (val_is_complex(x)) /* norms depend on magnitudes */
    x = un(tr, HLO_ABS, x);
  if (!x || !args_flag(keep, &keepdims) || !args_axes(axis, x->shape.rank, mask) ||
      (ord && !read_order(ord, &p, &is_fro)))
    return NULL;
  int at[HLO_RANK_MAX], n = 0;
  for (int i = 0; i < x->shape.rank; i++)
    if (mask[i])
      at[n++] = i;
  if (!ord || op->arg.n || n == 1) {
    if (is_fro && n == 1)
      return trace_refuse(DG_BAD_ARGUMENT, "leave ord= out", "Invalid norm order 'fro' for vectors");
    return tensor_wrap(tr, vector_norm(tr, x, p, mask, keepdims));
  }
  if (n != 2)
    return trace_refuse(DG_BAD_ARGUMENT, "give axis=", "norm: improper number of dimensions (%d) for this order", n);
  if (is_fro)
    return tensor_wrap(tr, vector_norm(tr, x, 2, mask, keepdims));
  int row = at[0]; /* the first axis in axis= has the rows */
  if (axis && (PyTuple_Check(axis) || PyList_Check(axis)) &&
      !args_axis(PySequence_Fast_GET_ITEM(axis, 0), x->shape.rank, &row))
    return NULL;
  return tensor_wrap(tr, matrix_norm(tr, x, p, row, row == at[0] ? at[1] : at[0], keepdims));
}

/* ---- products
 * ----------------------------------------------------------------------------------------------------- */

static PyObject *refuse_product(const char *name, hlo_val x, hlo_val y) {
  char a[DIMS_TEXT_MAX], b[DIMS_TEXT_MAX];
  return trace_refuse(DG_SHAPE_MISMATCH, "axes that are summed over must have the same size",
                      "%s: shapes %s and %s do not fit together", name, dims_text(x->shape.rank, x->shape.dims, a),
                      dims_text(y->shape.rank, y->shape.dims, b));
}

static PyObject *multiply(struct tracer *tr, hlo_val x, hlo_val y) {
  return tensor_wrap(tr, val_arith(tr, OP_MULTIPLY, x, y));
}

/* inner (arg 0) sums over the last axes, and vdot (arg 1) over all axes.  vecdot (arg 2) sums over the last axis and
 * broadcasts the other axes. */
PyObject *op_inner(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"", "", "axis", NULL};
  PyObject *a, *b, *axis = NULL;
  hlo_val xy[2];
  int at = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "OO|$O", names, &a, &b, &axis) ||
      !operand_read_pair(tr, a, b, DT_NONE, xy))
    return NULL;
  hlo_val x = op->arg.n ? val_conjugate(tr, xy[0]) : xy[0], y = xy[1];
  if (op->arg.n == 2) {
    hlo_val p = val_arith(tr, OP_MULTIPLY, x, y);
    if (!p)
      return NULL;
    at = p->shape.rank - 1;
    if (p->shape.rank == 0 || (axis && !args_axis(axis, p->shape.rank, &at)))
      return trace_refuse(DG_BAD_ARGUMENT, NULL, "vecdot needs at least one dimension");
    bool mask[HLO_RANK_MAX] = {0};
    mask[at] = true;
    return tensor_wrap(tr, val_sum(tr, p, mask, false));
  }
  if (op->arg.n == 1) {
    x = val_flat(tr, x);
    y = val_flat(tr, y);
  }
  if (!x || !y || x->shape.rank == 0 || y->shape.rank == 0)
    return multiply(tr, x, y);
  int64_t i = x->shape.rank - 1, j = y->shape.rank - 1;
  if (x->shape.dims[i] != y->shape.dims[j])
    return refuse_product(op->name, x, y);
  struct hlo_dot_dims d = {.lhs_contracting = hlo_ints_dup(tr->a, 1, &i),
                           .rhs_contracting = hlo_ints_dup(tr->a, 1, &j)};
  return tensor_wrap(tr, val_dot(tr, x, y, &d));
}

/* Reads the axes argument of tensordot: sets i and j to the n axes of x and of y. */
static bool tensordot_axes(PyObject *axes, const struct hlo_shape *x, const struct hlo_shape *y, int *n, int64_t *i,
                           int64_t *j) {
  int m = 0;
  if (!axes || PyIndex_Check(axes)) {
    int64_t count = 2;
    if (axes && !args_int(axes, "axes", &count))
      return false;
    if (count < 0 || count > x->rank || count > y->rank) {
      trace_refuse(DG_BAD_ARGUMENT, NULL, "tensordot: %lld axes cannot be summed over here", (long long)count);
      return false;
    }
    for (*n = 0; *n < count; ++*n) {
      i[*n] = x->rank - count + *n;
      j[*n] = *n;
    }
    return true;
  }
  PyObject *pair = PySequence_Fast(axes, "tensordot: axes must be a number or a pair of lists");
  bool ok = pair && PySequence_Fast_GET_SIZE(pair) == 2 && args_dims(PySequence_Fast_GET_ITEM(pair, 0), "axes", n, i) &&
            args_dims(PySequence_Fast_GET_ITEM(pair, 1), "axes", &m, j);
  Py_XDECREF(pair);
  for (int k = 0; ok && k < *n; k++) {
    i[k] += i[k] < 0 ? x->rank : 0;
    j[k] += k < m && j[k] < 0 ? y->rank : 0;
    ok = k < m && i[k] >= 0 && i[k] < x->rank && j[k] >= 0 && j[k] < y->rank;
  }
  if ((!ok || *n != m) && !PyErr_Occurred())
    trace_refuse(DG_BAD_ARGUMENT, NULL, "tensordot: the axes do not fit the arrays");
  return ok && *n == m;
}

PyObject *op_tensordot(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "b", "axes", NULL};
  PyObject *a, *b, *axes = NULL;
  int64_t i[HLO_RANK_MAX], j[HLO_RANK_MAX];
  hlo_val xy[2];
  int n = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "OO|O", names, &a, &b, &axes) ||
      !operand_read_pair(tr, a, b, DT_NONE, xy) || !tensordot_axes(axes, &xy[0]->shape, &xy[1]->shape, &n, i, j))
    return NULL;
  for (int k = 0; k < n; k++)
    if (xy[0]->shape.dims[i[k]] != xy[1]->shape.dims[j[k]])
      return refuse_product(op->name, xy[0], xy[1]);
  struct hlo_dot_dims d = {.lhs_contracting = hlo_ints_dup(tr->a, n, i), .rhs_contracting = hlo_ints_dup(tr->a, n, j)};
  return tensor_wrap(tr, val_dot(tr, xy[0], xy[1], &d));
}

/* kron: multiplies over pairs of axes, one of a and one of b, and merges each pair. */
PyObject *op_kron(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "b", NULL};
  PyObject *a, *b;
  hlo_val xy[2];
  int64_t left[HLO_RANK_MAX], right[HLO_RANK_MAX], merged[HLO_RANK_MAX];
  (void)op;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "OO", names, &a, &b) || !operand_read_pair(tr, a, b, DT_NONE, xy))
    return NULL;
  hlo_val x = xy[0], y = xy[1];
  while (x && y && x->shape.rank != y->shape.rank)
    if (x->shape.rank < y->shape.rank)
      x = val_expand(tr, x, 0);
    else
      y = val_expand(tr, y, 0);
  if (!x || !y || 2 * x->shape.rank > HLO_RANK_MAX)
    return x && y ? trace_refuse(DG_BAD_ARGUMENT, NULL, "kron: too many dimensions") : NULL;
  int rank = x->shape.rank;
  for (int i = 0; i < rank; i++) {
    left[2 * i] = x->shape.dims[i];
    right[2 * i + 1] = y->shape.dims[i];
    left[2 * i + 1] = right[2 * i] = 1;
    merged[i] = x->shape.dims[i] * y->shape.dims[i];
  }
  hlo_val p =
      val_arith(tr, OP_MULTIPLY, hlo_reshape(&tr->b, x, 2 * rank, left), hlo_reshape(&tr->b, y, 2 * rank, right));
  return tensor_wrap(tr, p ? hlo_reshape(&tr->b, p, rank, merged) : NULL);
}

/* cross: a × b of vectors with three elements along the last axis. */
PyObject *op_cross(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "b", "axis", NULL};
  PyObject *a, *b;
  hlo_val xy[2], part[2][3], out[3];
  int axis = -1;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "OO|$i", names, &a, &b, &axis) ||
      !operand_read_pair(tr, a, b, DT_NONE, xy))
    return NULL;
  for (int i = 0; i < 2; i++) {
    int rank = xy[i]->shape.rank;
    if (axis != -1 || rank == 0 || xy[i]->shape.dims[rank - 1] != 3)
      return trace_refuse(DG_UNSUPPORTED_OP, "bring the axis of size 3 to the end with np.moveaxis",
                          "%s is only supported for vectors of three along the last axis", op->name);
    for (int k = 0; k < 3; k++)
      part[i][k] = val_slice(tr, xy[i], rank - 1, k, k + 1);
  }
  for (int k = 0; k < 3; k++) {
    int i = (k + 1) % 3, j = (k + 2) % 3;
    out[k] = val_arith(tr, OP_SUBTRACT, val_arith(tr, OP_MULTIPLY, part[0][i], part[1][j]),
                       val_arith(tr, OP_MULTIPLY, part[0][j], part[1][i]));
    if (!out[k])
      return NULL;
  }
  return tensor_wrap(tr, val_concat(tr, 3, out, out[0]->shape.rank - 1));
}

PyObject *op_matrix_power(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "n", NULL};
  PyObject *a;
  int n;
  (void)op;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "Oi", names, &a, &n))
    return NULL;
  hlo_val x = operand_alone(tr, a), v = NULL;
  if (!x)
    return NULL;
  int rank = x->shape.rank;
  if (rank < 2 || x->shape.dims[rank - 1] != x->shape.dims[rank - 2])
    return trace_refuse(DG_SHAPE_MISMATCH, NULL, "matrix_power needs square matrices");
  if (n < 0)
    return trace_refuse(DG_UNSUPPORTED_OP, "invert on the host and pass the inverse in",
                        "matrix_power with a negative power is not supported");
  if (n == 0)
    v = cast(tr, band(tr, x, rank - 2, rank - 1, HLO_EQ, 0), x->shape.dtype);
  for (hlo_val square = x; n > 0; n >>= 1) { /* x, x², x⁴, … */
    if (n & 1)
      v = v ? val_matmul(tr, v, square) : square;
    if (n > 1 && !(square = val_matmul(tr, square, square)))
      return NULL;
  }
  return tensor_wrap(tr, v == x ? un(tr, HLO_COPY, x) : v);
}

PyObject *op_multi_dot(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"arrays", NULL};
  PyObject *arrays;
  hlo_val *xs = NULL;
  int n = 0;
  if (!PyArg_ParseTupleAndKeywords(args, kw, "O", names, &arrays) ||
      !operand_read_list(tr, op->name, arrays, NULL, &n, &xs))
    return NULL;
  hlo_val v = xs[0];
  for (int i = 1; i < n; i++)
    v = val_matmul(tr, v, xs[i]);
  return tensor_wrap(tr, v);
}
