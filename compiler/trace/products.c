/* products: matmul, dot and outer, with NumPy's rules for 1-D operands and stacks of matrices. */
#include <string.h>

#include "trace/args.h"
#include "trace/compose.h"
#include "trace/refuse.h"
#include "trace/tensor.h"

static void *refuse_shapes(const char *what, hlo_val x, hlo_val y, const char *hint) {
  char a[DIMS_TEXT_MAX], b[DIMS_TEXT_MAX];
  return trace_refuse(DG_SHAPE_MISMATCH, hint, "%s: shapes %s and %s do not fit together", what,
                      dims_text(x->shape.rank, x->shape.dims, a), dims_text(y->shape.rank, y->shape.dims, b));
}

/* The product of booleans is an `or` of `and`s.  It is computed as a count that is compared with 0. */
hlo_val val_dot(struct tracer *tr, hlo_val x, hlo_val y, const struct hlo_dot_dims *d) {
  if (!x || !y)
    return NULL;
  enum dtype t = x->shape.dtype;
  if (t != DT_BOOL)
    return hlo_dot(&tr->b, x, y, d, t);
  return val_nonzero(tr, hlo_dot(&tr->b, hlo_convert(&tr->b, x, DT_I32), hlo_convert(&tr->b, y, DT_I32), d, DT_I32));
}

static struct hlo_dot_dims contract(struct arena *a, int64_t lhs, int64_t rhs, int n_batch) {
  int64_t batch[HLO_RANK_MAX];
  for (int i = 0; i < n_batch; i++)
    batch[i] = i;
  return (struct hlo_dot_dims){hlo_ints_dup(a, 1, &lhs), hlo_ints_dup(a, 1, &rhs), hlo_ints_dup(a, n_batch, batch),
                               hlo_ints_dup(a, n_batch, batch)};
}

/* Broadcasts the leading (batch) axes of x to `batch`. */
static hlo_val with_batch(struct tracer *tr, hlo_val x, int n_batch, const int64_t *batch) {
  int64_t dims[HLO_RANK_MAX];
  memcpy(dims, batch, (size_t)n_batch * sizeof *dims);
  memcpy(dims + n_batch, x->shape.dims + x->shape.rank - 2, 2 * sizeof *dims);
  return val_broadcast(tr, x, n_batch + 2, dims);
}

static hlo_val matmul_stacks(struct tracer *tr, hlo_val x, hlo_val y) {
  int64_t batch[HLO_RANK_MAX];
  int n_batch = 0;
  struct operand xy[2] = {{.rank = x->shape.rank - 2, .dims = x->shape.dims},
                          {.rank = y->shape.rank - 2, .dims = y->shape.dims}};
  if (!operand_broadcast(2, xy, &n_batch, batch))
    return NULL;
  x = with_batch(tr, x, n_batch, batch);
  y = with_batch(tr, y, n_batch, batch);
  struct hlo_dot_dims d = contract(tr->a, n_batch + 1, n_batch, n_batch);
  return val_dot(tr, x, y, &d);
}

/* The operands already have the same dtype. */
hlo_val val_matmul(struct tracer *tr, hlo_val x, hlo_val y) {
  if (!x || !y)
    return NULL;
  int rx = x->shape.rank, ry = y->shape.rank;
  if (rx == 0 || ry == 0)
    return trace_refuse(DG_SHAPE_MISMATCH, "use * to multiply with a number", "matmul: a 0-d operand is not allowed");
  int64_t kx = x->shape.dims[rx - 1], ky = y->shape.dims[ry == 1 ? 0 : ry - 2];
  if (kx != ky)
    return refuse_shapes("matmul", x, y,
                         "the last axis of the first must equal the second-last axis of the second; "
                         "is a transpose (.T or np.swapaxes) missing?");
  if (rx == 1 && ry == 1) {
    struct hlo_dot_dims d = contract(tr->a, 0, 0, 0);
    return val_dot(tr, x, y, &d);
  }
  /* a vector becomes a matrix with one row or column; that axis is removed from the result */
  if (rx == 1)
    x = hlo_reshape(&tr->b, x, 2, (int64_t[]){1, kx});
  if (ry == 1)
    y = hlo_reshape(&tr->b, y, 2, (int64_t[]){ky, 1});
  hlo_val r = x && y ? matmul_stacks(tr, x, y) : NULL;
  if (!r || (rx > 1 && ry > 1))
    return r;
  int64_t dims[HLO_RANK_MAX];
  int n = 0;
  for (int i = 0; i < r->shape.rank; i++)
    if (i != (rx == 1 ? r->shape.rank - 2 : r->shape.rank - 1))
      dims[n++] = r->shape.dims[i];
  return hlo_reshape(&tr->b, r, n, dims);
}

PyObject *op_matmul(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"", "", "out", "dtype", "casting", "order", "subok", NULL};
  PyObject *a, *b, *out = NULL, *dtype = NULL, *ignored;
  enum dtype as = DT_NONE;
  hlo_val xy[2];
  if (!PyArg_ParseTupleAndKeywords(args, kw, "OO|OOOOO", names, &a, &b, &out, &dtype, &ignored, &ignored, &ignored) ||
      !args_only_none(out, op->name, "out"))
    return NULL;
  if (dtype && dtype != Py_None && (as = dtype_from_py(dtype)) == DT_NONE)
    return NULL;
  return operand_read_pair(tr, a, b, as, xy) ? tensor_wrap(tr, val_matmul(tr, xy[0], xy[1])) : NULL;
}

/* dot: multiplies element by element if an operand is 0-d.  Otherwise it sums over the last axis of a and the
 * second-last axis of b, and there are no batch axes. */
PyObject *op_dot(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "b", "out", NULL};
  PyObject *a, *b, *out = NULL;
  hlo_val xy[2];
  if (!PyArg_ParseTupleAndKeywords(args, kw, "OO|O", names, &a, &b, &out) || !args_only_none(out, op->name, "out") ||
      !operand_read_pair(tr, a, b, DT_NONE, xy))
    return NULL;
  hlo_val x = xy[0], y = xy[1];
  int rx = x->shape.rank, ry = y->shape.rank;
  if (rx == 0 || ry == 0) {
    const struct hlo_shape *s = rx ? &x->shape : &y->shape;
    return tensor_wrap(tr, val_binary(tr, OP_MULTIPLY, val_broadcast(tr, x, s->rank, s->dims),
                                      val_broadcast(tr, y, s->rank, s->dims)));
  }
  int64_t ky = ry == 1 ? 0 : ry - 2;
  if (x->shape.dims[rx - 1] != y->shape.dims[ky])
    return refuse_shapes("dot", x, y, "the last axis of the first must equal the second-last axis of the second");
  struct hlo_dot_dims d = contract(tr->a, rx - 1, ky, 0);
  return tensor_wrap(tr, val_dot(tr, x, y, &d));
}

PyObject *op_outer(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "b", "out", NULL};
  PyObject *a, *b, *out = NULL;
  hlo_val xy[2];
  if (!PyArg_ParseTupleAndKeywords(args, kw, "OO|O", names, &a, &b, &out) || !args_only_none(out, op->name, "out") ||
      !operand_read_pair(tr, a, b, DT_NONE, xy))
    return NULL;
  int64_t m = hlo_shape_elements(&xy[0]->shape), n = hlo_shape_elements(&xy[1]->shape), dims[] = {m, n};
  hlo_val x = hlo_reshape(&tr->b, xy[0], 2, (int64_t[]){m, 1}), y = hlo_reshape(&tr->b, xy[1], 2, (int64_t[]){1, n});
  return tensor_wrap(tr, val_binary(tr, OP_MULTIPLY, val_broadcast(tr, x, 2, dims), val_broadcast(tr, y, 2, dims)));
}
