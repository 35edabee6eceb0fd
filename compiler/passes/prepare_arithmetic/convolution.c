/* convolution: rewrites a convolution to a matrix product of the kernel and the elements of the windows.
 *
 *     x[n,c,2*i+p,j+q] * w[o,c,p,q]  ==>  %p[n,c,p,q,i,j] = slices of x, one for each p and then one for each q
 *     summed over c, p, q                 %y[n,o,i*j] = w[o,c*p*q] * %p[n,c*p*q,i*j]
 *
 * The tensor engine computes the product.  The copies are plain strided DMA; there are kernel height + kernel width
 * of them.  The right operand is the one that has the last dimension of the result.  Groups, and images of a batch
 * before their features, are batches, over which decompose-batch-matmul loops.  So neither NCHW nor NHWC needs a
 * transpose; other orders get one.
 */
#include <assert.h>
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "passes/lib/edit.h"
#include "passes/prepare_arithmetic/windows.h"
#include "passes/lib/price.h"

/* ---- lists of loops --------------------------------------------------------------------------------------------- */

struct loops {
  int n, v[STRUCTURED_LOOPS_MAX];
};

static void append(struct loops *to, const struct loops *from) {
  assert(to->n + from->n <= STRUCTURED_LOOPS_MAX);
  memcpy(to->v + to->n, from->v, (size_t)from->n * sizeof *to->v);
  to->n += from->n;
}

static int place_of(const struct loops *l, int loop) {
  for (int k = 0; k < l->n; k++)
    if (l->v[k] == loop)
      return k;
  return l->n;
}

static int64_t product(const struct windowed *w, const struct loops *l) {
  int64_t n = 1;
  for (int k = 0; k < l->n; k++)
    n *= w->s.extents[l->v[k]];
  return n;
}

/* Drops the dimensions of extent 1. */
static void squeeze(struct ir_builder *b, struct window_side *side) {
  int64_t dims[STRUCTURED_LOOPS_MAX];
  int n = 0;

  ir_shape(side->v, STRUCTURED_LOOPS_MAX, dims);
  for (int r = 0; r < side->rank; r++)
    if (side->d[r].n) {
      dims[n] = dims[r];
      side->d[n++] = side->d[r];
    }
  side->rank = n;
  side->v = edit_reshape(b, side->v, n, dims);
}

/* Gives the operand a dimension for each loop of `want`, in that order. */
static void arrange(struct ir_builder *b, const struct windowed *w, struct window_side *side,
                    const struct loops *want) {
  struct window_dim old[STRUCTURED_LOOPS_MAX];
  int64_t perm[STRUCTURED_LOOPS_MAX];
  bool is_moved = false;

  windows_cut(b, w, side);
  squeeze(b, side);
  for (int r = 0; r < side->rank; r++) { /* insertion sort by place */
    int k = r;
    for (; k > 0 && place_of(want, side->d[perm[k - 1]].loop[0]) > place_of(want, side->d[r].loop[0]); k--)
      perm[k] = perm[k - 1];
    perm[k] = r;
    is_moved |= k != r;
  }
  if (is_moved) {
    side->v = ir_result(ir_transpose(b, side->v, side->rank, perm));
    memcpy(old, side->d, sizeof old);
    for (int r = 0; r < side->rank; r++)
      side->d[r] = old[perm[r]];
  }
  for (int r = 0; r < side->rank; r++) {
    if (side->d[r].n < 2)
      continue;
    int at = 0;
    while (at < side->rank && place_of(want, side->d[at].loop[0]) < place_of(want, side->d[r].loop[1]))
      at++;
    windows_unfold(b, w, side, r, at);
    r = -1;
  }
}

/* ---- convolutions ----------------------------------------------------------------------------------------------- */

struct conv {
  const struct window_side *x, *kernel, *y;
  struct loops batch, m, n, k; /* of more than one iteration */
  bool kernel_is_left;
};

/* True if the loop counts the images of a batch: it is a dimension of x before all dimensions that are summed. */
static bool is_image(const struct windowed *w, const struct window_side *x, int loop) {
  for (int r = 0; r < x->rank; r++) {
    if (x->d[r].n == 1 && x->d[r].loop[0] == loop)
      return true;
    for (int k = 0; k < x->d[r].n; k++)
      if (w->s.reduction[x->d[r].loop[k]])
        return false;
  }
  return false;
}

/* Sorts the loops into batch, m, n and k.  False if this is not a product of the two operands. */
static bool read_conv(const struct windowed *w, struct conv *c) {
  const struct window_side *a = &w->sides[0], *b = &w->sides[1];
  struct loops own = {0}, kernels = {0};
  int last = -1;

  if (w->s.n_inputs != 2 || w->s.kind != SK_REDUCTION || !edit_multiplies_and_adds(w->op))
    return false;
  *c = (struct conv){.x = a, .kernel = b, .y = &w->sides[2]};
  for (int r = 0; r < b->rank; r++)
    if (b->d[r].n == 2) {
      c->x = b;
      c->kernel = a;
    }
  for (int r = 0; r < c->kernel->rank; r++)
    for (int k = 0; k < c->kernel->d[r].n; k++) {
      if (c->kernel->d[r].n == 2)
        return false;
      if (w->s.reduction[c->kernel->d[r].loop[k]])
        c->k.v[c->k.n++] = c->kernel->d[r].loop[k];
    }
  for (int l = 0; l < w->s.n_loops; l++) {
    const bool in_x = windows_has_loop(c->x, l), in_kernel = windows_has_loop(c->kernel, l);
    if (w->s.extents[l] > 1 &&
        (w->s.reduction[l] ? !in_x || !in_kernel : (!in_x && !in_kernel) || !windows_has_loop(c->y, l)))
      return false;
  }
  for (int r = 0; r < c->y->rank; r++) {
    if (c->y->d[r].n == 2 || (c->y->d[r].n && c->y->d[r].coef[0] != 1) || c->y->d[r].offset)
      return false;
    if (c->y->d[r].n && windows_has_loop(c->x, c->y->d[r].loop[0]) != windows_has_loop(c->kernel, c->y->d[r].loop[0]))
      last = c->y->d[r].loop[0];
  }
  c->kernel_is_left = last < 0 || windows_has_loop(c->x, last);
  for (int r = 0; r < c->y->rank; r++) {
    const int l = c->y->d[r].n ? c->y->d[r].loop[0] : -1;
    if (l < 0)
      continue;
    struct loops *to = windows_has_loop(c->x, l) ? (windows_has_loop(c->kernel, l) ? &c->batch : &own) : &kernels;
    if (to == &own && c->kernel_is_left && is_image(w, c->x, l))
      to = &c->batch;
    to->v[to->n++] = l;
  }
  c->m = c->kernel_is_left ? kernels : own;
  c->n = c->kernel_is_left ? own : kernels;
  return c->batch.n + 3 <= STRUCTURED_LOOPS_MAX; /* batch, m, n and k as loops */
}

/* Returns the operand as [its batch…, rows, columns].  *map: its map from the loops (batch…, m, n, k). */
static MlirValue matrix(struct ir_builder *b, const struct windowed *w, const struct conv *c,
                        const struct window_side *from, bool is_left, MlirAffineMap *map) {
  struct window_side side = *from;
  struct loops want = {0};
  int64_t dims[STRUCTURED_LOOPS_MAX], results[STRUCTURED_LOOPS_MAX];
  int n = 0;

  for (int k = 0; k < c->batch.n; k++)
    if (windows_has_loop(&side, c->batch.v[k])) {
      want.v[want.n++] = c->batch.v[k];
      dims[n] = w->s.extents[c->batch.v[k]];
      results[n++] = k;
    }
  append(&want, is_left ? &c->m : &c->k);
  append(&want, is_left ? &c->k : &c->n);
  arrange(b, w, &side, &want);
  dims[n] = product(w, is_left ? &c->m : &c->k);
  results[n++] = is_left ? c->batch.n : c->batch.n + 2;
  dims[n] = product(w, is_left ? &c->k : &c->n);
  results[n++] = is_left ? c->batch.n + 2 : c->batch.n + 1;
  *map = ir_map(b, c->batch.n + 3, n, results);
  return edit_reshape(b, side.v, n, dims);
}

/* Returns the product as [batch…, m, n].  linalg.contract allows a batch loop that only one operand has. */
static MlirValue multiply(struct ir_builder *b, const struct windowed *w, const struct conv *c, MlirValue init) {
  const int n = c->batch.n + 2;
  int64_t results[STRUCTURED_LOOPS_MAX];
  MlirAffineMap maps[3];
  MlirAttribute all[3];
  const struct window_side *left = c->kernel_is_left ? c->kernel : c->x, *right = c->kernel_is_left ? c->x : c->kernel;
  MlirValue inputs[] = {matrix(b, w, c, left, true, &maps[0]), matrix(b, w, c, right, false, &maps[1])};

  for (int k = 0; k < n; k++)
    results[k] = k;
  maps[2] = ir_map(b, n + 1, n, results);
  for (int k = 0; k < 3; k++)
    all[k] = mlirAffineMapAttrGet(maps[k]);
  MlirNamedAttribute attr = ir_named(b, "indexing_maps", mlirArrayAttrGet(b->ctx, 3, all));
  return ir_result(ir_linalg_named(b, c->batch.n ? "linalg.contract" : "linalg.matmul", 2, inputs, init, 1, &attr));
}

/* Returns the initial value in the shape of the product; null if that needs a transpose.  Zeros become tensor.empty,
 * because PSUM starts from zero: see remove-redundant-zero-fill. */
static MlirValue first_sum(struct ir_builder *b, MlirValue init, bool is_moved, int rank, const int64_t *dims) {
  MlirOperation def = ir_defining_op(init);
  const bool is_fill = !mlirOperationIsNull(def) && ir_is(def, "linalg.fill");

  if (!is_fill && (mlirOperationIsNull(def) || !ir_is(def, "tensor.empty")))
    return is_moved ? (MlirValue){NULL} : edit_reshape(b, init, rank, dims);
  MlirValue empty = ir_empty_of(b, ir_tensor_of(ir_value_element(init), rank, dims));
  return is_fill && !ir_is_zero(mlirOperationGetOperand(def, 0)) ? ir_fill(b, mlirOperationGetOperand(def, 0), empty)
                                                                 : empty;
}

bool windows_convolution(struct windowed *w) {
  struct conv c;
  if (!read_conv(w, &c))
    return false;
  struct ir_builder b = edit_before(w->run, w->op);
  struct loops order = c.batch;
  int64_t dims[STRUCTURED_LOOPS_MAX], perm[STRUCTURED_LOOPS_MAX], flat[STRUCTURED_LOOPS_MAX];
  bool is_moved = false;
  int n = 0;

  append(&order, &c.m);
  append(&order, &c.n);
  for (int r = 0; r < c.y->rank; r++)
    if (c.y->d[r].n) {
      perm[n] = place_of(&order, c.y->d[r].loop[0]);
      is_moved |= perm[n] != n;
      n++;
    }
  for (int k = 0; k < c.batch.n; k++)
    flat[k] = w->s.extents[c.batch.v[k]];
  flat[c.batch.n] = product(w, &c.m);
  flat[c.batch.n + 1] = product(w, &c.n);
  MlirValue init = first_sum(&b, c.y->v, is_moved, c.batch.n + 2, flat);
  if (mlirValueIsNull(init))
    return false;
  MlirValue y = multiply(&b, w, &c, init);
  struct remark *r =
      pass_remark(w->run, ir_defining_op(y), RULE_CONVOLUTION_AS_MATMUL,
                  "the convolution as a matrix product: M=%lld, N=%lld, K=%lld%s", (long long)flat[c.batch.n],
                  (long long)flat[c.batch.n + 1], (long long)product(w, &c.k), c.batch.n ? ", in batches" : "");
  const enum target t = w->run->target;
  const int64_t k_sum = product(w, &c.k), m = flat[c.batch.n], columns = flat[c.batch.n + 1];
  int64_t batches = 1;
  for (int k = 0; k < c.batch.n; k++)
    batches *= flat[k];
  price_chosen(r, (double)batches * price_product_ns(t, m, k_sum, columns, price_shape_of(y).element_bytes));
  price_instead(r, "an instruction for each place of the filter",
                (double)(batches * k_sum) * price_rows_ns(t, SIM_COST_SCALAR_TENSOR, m, columns),
                "the tensor engine does all of them in one product");
  if (is_moved) {
    for (int k = 0; k < n; k++)
      dims[k] = w->s.extents[order.v[k]];
    y = ir_result(ir_transpose(&b, edit_reshape(&b, y, n, dims), n, perm));
  }
  ir_shape(ir_result(w->op), STRUCTURED_LOOPS_MAX, dims);
  y = edit_reshape(&b, y, c.y->rank, dims);
  windows_drop_knobs(w->run, w->op, "the convolution is computed as a matrix product");
  mlirValueReplaceAllUsesOfWith(ir_result(w->op), y);
  edit_erase_unused(w->run->arena, w->op);
  return true;
}
