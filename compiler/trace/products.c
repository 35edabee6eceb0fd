/* products: matmul, dot and outer, with all of NumPy's rules for 1-D operands and stacks of matrices. */
#include <string.h>

#include "trace/compose.h"

static void *refuse_shapes(const char *what, hlo_val x, hlo_val y, const char *hint) {
  char a[256], b[256];
  return refuse(DG_SHAPE_MISMATCH, hint, "%s: shapes %s and %s do not fit together", what,
                dims_text(x->shape.rank, x->shape.dims, a, sizeof a),
                dims_text(y->shape.rank, y->shape.dims, b, sizeof b));
}

/* Booleans multiply with `and` and add with `or`: count, then compare with 0. */
hlo_val dot_of(struct tracer *tr, hlo_val x, hlo_val y, const struct hlo_dot_dims *d) {
  if (!x || !y)
    return NULL;
  enum dtype t = x->shape.dtype;
  if (t != DT_BOOL)
    return hlo_dot(&tr->b, x, y, d, t);
  return nonzero(tr, hlo_dot(&tr->b, hlo_convert(&tr->b, x, DT_I32), hlo_convert(&tr->b, y, DT_I32), d, DT_I32));
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
  return broadcast_val(tr, x, n_batch + 2, dims);
}

static hlo_val matmul_stacks(struct tracer *tr, hlo_val x, hlo_val y) {
  int64_t batch[HLO_RANK_MAX];
  int n_batch = 0;
  struct operand xy[2] = {{.rank = x->shape.rank - 2, .dims = x->shape.dims},
                          {.rank = y->shape.rank - 2, .dims = y->shape.dims}};
  if (!broadcast_dims(2, xy, &n_batch, batch))
    return NULL;
  x = with_batch(tr, x, n_batch, batch);
  y = with_batch(tr, y, n_batch, batch);
  struct hlo_dot_dims d = contract(tr->a, n_batch + 1, n_batch, n_batch);
  return dot_of(tr, x, y, &d);
}

/* Operands already have one dtype. */
hlo_val matmul_vals(struct tracer *tr, hlo_val x, hlo_val y) {
  if (!x || !y)
    return NULL;
  int rx = x->shape.rank, ry = y->shape.rank;
  if (rx == 0 || ry == 0)
    return refuse(DG_SHAPE_MISMATCH, "use * to multiply with a number", "matmul: a 0-d operand is not allowed");
  int64_t kx = x->shape.dims[rx - 1], ky = y->shape.dims[ry == 1 ? 0 : ry - 2];
  if (kx != ky)
    return refuse_shapes("matmul", x, y,
                         "the last axis of the first must equal the second-last axis of the second; "
                         "is a transpose (.T or np.swapaxes) missing?");
  if (rx == 1 && ry == 1) {
    struct hlo_dot_dims d = contract(tr->a, 0, 0, 0);
    return dot_of(tr, x, y, &d);
  }
  /* a vector is a matrix with one row (or column), which the result loses again */
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

/* Reads two operands and brings them to one dtype, with their own shapes. */
bool read_pair(struct tracer *tr, PyObject *a, PyObject *b, enum dtype as, hlo_val out[2]) {
  struct operand xy[2] = {{0}};
  bool ok = operand_read(tr, a, &xy[0]) && operand_read(tr, b, &xy[1]);
  enum dtype t = ok ? promote_operands(2, xy) : DT_NONE;
  if (t != DT_NONE && as != DT_NONE)
    t = as;
  if (t != DT_NONE) {
    out[0] = operand_val(tr, &xy[0], t);
    out[1] = operand_val(tr, &xy[1], t);
  }
  operand_clear(&xy[0]);
  operand_clear(&xy[1]);
  return t != DT_NONE && out[0] && out[1];
}

PyObject *op_matmul(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"", "", "out", "dtype", "casting", "order", "subok", NULL};
  PyObject *a, *b, *out = NULL, *dtype = NULL, *ignored;
  enum dtype as = DT_NONE;
  hlo_val xy[2];
  if (!PyArg_ParseTupleAndKeywords(args, kw, "OO|OOOOO", names, &a, &b, &out, &dtype, &ignored, &ignored, &ignored) ||
      !only_none(out, op->name, "out"))
    return NULL;
  if (dtype && dtype != Py_None && (as = dtype_from_py(dtype)) == DT_NONE)
    return NULL;
  return read_pair(tr, a, b, as, xy) ? tensor_wrap(tr, matmul_vals(tr, xy[0], xy[1])) : NULL;
}

/* dot: numbers multiply; otherwise the last axis of a meets the second-last of b, and no axes are shared. */
PyObject *op_dot(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "b", "out", NULL};
  PyObject *a, *b, *out = NULL;
  hlo_val xy[2];
  if (!PyArg_ParseTupleAndKeywords(args, kw, "OO|O", names, &a, &b, &out) || !only_none(out, op->name, "out") ||
      !read_pair(tr, a, b, DT_NONE, xy))
    return NULL;
  hlo_val x = xy[0], y = xy[1];
  int rx = x->shape.rank, ry = y->shape.rank;
  if (rx == 0 || ry == 0) {
    const struct hlo_shape *s = rx ? &x->shape : &y->shape;
    return tensor_wrap(
        tr, binary_emit(tr, BIN_MUL, broadcast_val(tr, x, s->rank, s->dims), broadcast_val(tr, y, s->rank, s->dims)));
  }
  int64_t ky = ry == 1 ? 0 : ry - 2;
  if (x->shape.dims[rx - 1] != y->shape.dims[ky])
    return refuse_shapes("dot", x, y, "the last axis of the first must equal the second-last axis of the second");
  struct hlo_dot_dims d = contract(tr->a, rx - 1, ky, 0);
  return tensor_wrap(tr, dot_of(tr, x, y, &d));
}

PyObject *op_outer(struct tracer *tr, const struct op_def *op, PyObject *args, PyObject *kw) {
  static char *names[] = {"a", "b", "out", NULL};
  PyObject *a, *b, *out = NULL;
  hlo_val xy[2];
  if (!PyArg_ParseTupleAndKeywords(args, kw, "OO|O", names, &a, &b, &out) || !only_none(out, op->name, "out") ||
      !read_pair(tr, a, b, DT_NONE, xy))
    return NULL;
  int64_t m = hlo_shape_elements(&xy[0]->shape), n = hlo_shape_elements(&xy[1]->shape), dims[] = {m, n};
  hlo_val x = hlo_reshape(&tr->b, xy[0], 2, (int64_t[]){m, 1}), y = hlo_reshape(&tr->b, xy[1], 2, (int64_t[]){1, n});
  return tensor_wrap(tr, binary_emit(tr, BIN_MUL, broadcast_val(tr, x, 2, dims), broadcast_val(tr, y, 2, dims)));
}
