/* windows: operands that are read through a sum of two loops, position * stride + element * dilation.
 *
 *     x[n,c,2*i+p,j+q] * w[o,c,p,q]  ==>  %p[n,c,p,q,i,j] = slices of x, one for each p and then one for each q
 *     summed over c, p, q                 %y[n,o,i*j] = w[o,c*p*q] * %p[n,c*p*q,i*j]
 *
 * A convolution is a matrix product of the kernel and of what its windows see: the tensor engine's work, and the copies
 * are plain strided DMA, kernel height + kernel width of them.  Whichever operand has the result's last dimension is
 * the right one; groups, and images of a batch in front of their features, are batches (decompose-batch-matmul loops
 * over them).  So neither NCHW nor NHWC needs a transpose.  Other orders get one.
 *
 * Any other reduction over a small window (pooling) is a chain of element-wise operations, one for each element of the
 * window on a slice of the whole operand.  Over a large one it stays what it is as long as a dimension without a window
 * fills the partitions; else the windows of the longest dimension, or of the user's partition_dim, are copied out as for
 * a convolution, because partition p of an operand must hold what position p needs.
 *
 * A loop of one turn adds nothing and leaves the maps first; a stride or an offset that is left alone becomes a slice.
 * Left alone: sums of three loops, a loop that is in two dimensions of one operand, dynamic shapes.  Values: the order of
 * summation changes.  Linear in operations and window sizes.
 */
#include "passes/prepare_arithmetic/prepare_arithmetic.h"

#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "ir/internal.h"
#include "nisa/nisa.h"
#include "passes/lib/edit.h"
#include "passes/lib/layout.h"

/* One dimension of an operand: offset + the sum of coef * loop; two terms are a window's position and element. */
struct dim {
  int n, loop[2];
  int64_t coef[2], offset;
};

struct side {
  MlirValue v;
  int rank;
  struct dim d[STRUCTURED_LOOPS_MAX];
};

enum { N_SIDES_MAX = STRUCTURED_OPERANDS_MAX };

struct windowed {
  struct pass_run *run;
  MlirOperation op;
  struct structured s;
  struct side sides[N_SIDES_MAX]; /* the inputs, then the destination */
};

/* ---- reading ---------------------------------------------------------------------------------------------------- */

static bool add_term(const struct structured *s, struct dim *d, int loop, int64_t coef) {
  if (s->extents[loop] == 1)
    return true;
  if (d->n == 2 || coef < 1)
    return false;
  d->loop[d->n] = loop;
  d->coef[d->n++] = coef;
  return true;
}

static bool read_sum(const struct structured *s, MlirAffineExpr x, struct dim *d) {
  if (mlirAffineExprIsADim(x))
    return add_term(s, d, (int)mlirAffineDimExprGetPosition(x), 1);
  if (mlirAffineExprIsAConstant(x)) {
    d->offset += mlirAffineConstantExprGetValue(x);
    return d->offset >= 0;
  }
  if (!mlirAffineExprIsAAdd(x) && !mlirAffineExprIsAMul(x))
    return false;
  MlirAffineExpr a = mlirAffineBinaryOpExprGetLHS(x), b = mlirAffineBinaryOpExprGetRHS(x);
  if (mlirAffineExprIsAAdd(x))
    return read_sum(s, a, d) && read_sum(s, b, d);
  return mlirAffineExprIsADim(a) && mlirAffineExprIsAConstant(b) &&
         add_term(s, d, (int)mlirAffineDimExprGetPosition(a), mlirAffineConstantExprGetValue(b));
}

/* Terms of a window in the order position (parallel), element. */
static void order_terms(const struct structured *s, struct dim *d) {
  if (d->n < 2 || !s->reduction[d->loop[0]] || s->reduction[d->loop[1]])
    return;
  *d = (struct dim){2, {d->loop[1], d->loop[0]}, {d->coef[1], d->coef[0]}, d->offset};
}

static bool read_side(const struct windowed *w, int o, struct side *side) {
  MlirAffineMap map = w->s.maps[o];
  bool seen[STRUCTURED_LOOPS_MAX] = {false};

  *side = (struct side){.v = mlirOperationGetOperand(w->op, o), .rank = (int)mlirAffineMapGetNumResults(map)};
  for (int r = 0; r < side->rank; r++) {
    struct dim *d = &side->d[r];
    if (!read_sum(&w->s, mlirAffineMapGetResult(map, r), d))
      return false;
    order_terms(&w->s, d);
    for (int k = 0; k < d->n; k++) {
      if (seen[d->loop[k]])
        return false;
      seen[d->loop[k]] = true;
    }
  }
  return true;
}

/* False if op has nothing to do with windows, or with such that are not understood. */
static bool read_windowed(struct pass_run *run, MlirOperation op, struct windowed *w) {
  bool is_plain = true;

  *w = (struct windowed){.run = run, .op = op};
  if (!ir_is(op, "linalg.generic") || !structured_read(op, &w->s) || w->s.n_inits != 1 ||
      mlirOperationGetNumResults(op) != 1)
    return false;
  for (int l = 0; l < w->s.n_loops; l++)
    if (w->s.extents[l] < 1)
      return false;
  for (int o = 0; o <= w->s.n_inputs; o++) {
    for (int r = 0; r < mlirAffineMapGetNumResults(w->s.maps[o]); r++)
      is_plain &= structured_map_loop(w->s.maps[o], r) >= 0 ||
                  mlirAffineExprIsAConstant(mlirAffineMapGetResult(w->s.maps[o], r));
    if (!read_side(w, o, &w->sides[o]))
      return false;
  }
  return !is_plain;
}

static bool has_loop(const struct side *side, int loop) {
  for (int r = 0; r < side->rank; r++)
    for (int k = 0; k < side->d[r].n; k++)
      if (side->d[r].loop[k] == loop)
        return true;
  return false;
}

/* The dimension in which loop is one of two terms, or -1. */
static int window_of(const struct side *side, int loop) {
  for (int r = 0; r < side->rank; r++)
    if (side->d[r].n == 2 && (side->d[r].loop[0] == loop || side->d[r].loop[1] == loop))
      return r;
  return -1;
}

/* ---- changing an operand ---------------------------------------------------------------------------------------- */

/* Dimensions of one term become that loop's, by a slice where it has a stride or does not see all of it. */
static void cut(struct ir_builder *b, const struct windowed *w, struct side *side) {
  int64_t dims[STRUCTURED_LOOPS_MAX], offsets[STRUCTURED_LOOPS_MAX], sizes[STRUCTURED_LOOPS_MAX],
      strides[STRUCTURED_LOOPS_MAX];
  bool is_whole = true;

  ir_shape(side->v, STRUCTURED_LOOPS_MAX, dims);
  for (int r = 0; r < side->rank; r++) {
    struct dim *d = &side->d[r];
    offsets[r] = d->n < 2 ? d->offset : 0;
    sizes[r] = d->n == 2 ? dims[r] : d->n ? w->s.extents[d->loop[0]] : 1;
    strides[r] = d->n == 1 ? d->coef[0] : 1;
    is_whole &= sizes[r] == dims[r];
    if (d->n < 2)
      d->offset = 0;
    if (d->n == 1)
      d->coef[0] = 1;
  }
  if (is_whole)
    return;
  struct ir_slice slice = {.rank = side->rank, .offsets = offsets, .sizes = sizes, .strides = strides};
  side->v = ir_extract_slice(b, side->v, &slice, ir_tensor_of(ir_value_element(side->v), side->rank, sizes));
}

/* Drops the dimensions of one element. */
static void squeeze(struct ir_builder *b, struct side *side) {
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

/* Dimension r, a window, becomes its position; its element becomes a dimension of its own in front of dimension `at`. */
static void unfold(struct ir_builder *b, const struct windowed *w, struct side *side, int r, int at) {
  const struct dim d = side->d[r];
  int64_t dims[STRUCTURED_LOOPS_MAX], to[STRUCTURED_LOOPS_MAX], zeros[STRUCTURED_LOOPS_MAX] = {0},
                                                                ones[STRUCTURED_LOOPS_MAX], put[STRUCTURED_LOOPS_MAX],
                                                                from[STRUCTURED_LOOPS_MAX] = {0};
  const int64_t n = w->s.extents[d.loop[1]];
  MlirType element = ir_value_element(side->v);

  ir_shape(side->v, STRUCTURED_LOOPS_MAX, dims);
  dims[r] = w->s.extents[d.loop[0]];
  for (int k = 0; k <= side->rank; k++) {
    ones[k] = 1;
    put[k] = to[k] = k == at ? n : dims[k - (k > at)];
  }
  put[at] = 1;
  ones[r] = d.coef[0];
  MlirValue all = ir_empty_of(b, ir_tensor_of(element, side->rank + 1, to));
  for (int64_t k = 0; k < n; k++) {
    struct ir_slice take = {.rank = side->rank, .offsets = from, .sizes = dims, .strides = ones},
                    give = {.rank = side->rank + 1, .offsets = zeros, .sizes = put};
    from[r] = d.offset + k * d.coef[1];
    zeros[at] = k;
    all = ir_insert_slice(b, ir_extract_slice(b, side->v, &take, ir_tensor_of(element, side->rank, dims)), all, &give);
  }
  memmove(side->d + at + 1, side->d + at, (size_t)(side->rank - at) * sizeof *side->d);
  side->d[at] = (struct dim){1, {d.loop[1]}, {1}, 0};
  side->d[r + (r >= at)] = (struct dim){1, {d.loop[0]}, {1}, 0};
  side->rank++;
  side->v = all;
}

/* ---- lists of loops --------------------------------------------------------------------------------------------- */

struct loops {
  int n, v[STRUCTURED_LOOPS_MAX];
};

static void append(struct loops *to, const struct loops *from) {
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

/* The operand with a dimension for each loop of `want`, in that order. */
static void arrange(struct ir_builder *b, const struct windowed *w, struct side *side, const struct loops *want) {
  struct dim old[STRUCTURED_LOOPS_MAX];
  int64_t perm[STRUCTURED_LOOPS_MAX];
  bool is_moved = false;

  cut(b, w, side);
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
    unfold(b, w, side, r, at);
    r = -1;
  }
}

/* ---- convolutions ----------------------------------------------------------------------------------------------- */

struct conv {
  const struct side *x, *kernel, *y;
  struct loops batch, m, n, k; /* of more than one turn */
  bool kernel_is_left;
};

/* An image's place in a batch: a dimension of x in front of all that is summed up. */
static bool is_image(const struct windowed *w, const struct side *x, int loop) {
  for (int r = 0; r < x->rank; r++) {
    if (x->d[r].n == 1 && x->d[r].loop[0] == loop)
      return true;
    for (int k = 0; k < x->d[r].n; k++)
      if (w->s.reduction[x->d[r].loop[k]])
        return false;
  }
  return false;
}

/* Sorts the loops; false if this is no product of the two operands. */
static bool read_conv(const struct windowed *w, struct conv *c) {
  const struct side *a = &w->sides[0], *b = &w->sides[1];
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
    const bool in_x = has_loop(c->x, l), in_kernel = has_loop(c->kernel, l);
    if (w->s.extents[l] > 1 && (w->s.reduction[l] ? !in_x || !in_kernel : (!in_x && !in_kernel) || !has_loop(c->y, l)))
      return false;
  }
  for (int r = 0; r < c->y->rank; r++) {
    if (c->y->d[r].n == 2 || (c->y->d[r].n && c->y->d[r].coef[0] != 1) || c->y->d[r].offset)
      return false;
    if (c->y->d[r].n && has_loop(c->x, c->y->d[r].loop[0]) != has_loop(c->kernel, c->y->d[r].loop[0]))
      last = c->y->d[r].loop[0];
  }
  c->kernel_is_left = last < 0 || has_loop(c->x, last);
  for (int r = 0; r < c->y->rank; r++) {
    const int l = c->y->d[r].n ? c->y->d[r].loop[0] : -1;
    if (l < 0)
      continue;
    struct loops *to = has_loop(c->x, l) ? (has_loop(c->kernel, l) ? &c->batch : &own) : &kernels;
    if (to == &own && c->kernel_is_left && is_image(w, c->x, l))
      to = &c->batch;
    to->v[to->n++] = l;
  }
  c->m = c->kernel_is_left ? kernels : own;
  c->n = c->kernel_is_left ? own : kernels;
  return true;
}

/* Operand `side` as [its batch…, rows, columns]; its map over (batch…, m, n, k) into *map. */
static MlirValue matrix(struct ir_builder *b, const struct windowed *w, const struct conv *c, const struct side *from,
                        bool is_left, MlirAffineMap *map) {
  struct side side = *from;
  struct loops want = {0};
  int64_t dims[STRUCTURED_LOOPS_MAX], results[STRUCTURED_LOOPS_MAX];
  int n = 0;

  for (int k = 0; k < c->batch.n; k++)
    if (has_loop(&side, c->batch.v[k])) {
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

/* The product in the order (batch…, m, n): the batch of one operand alone is one more of its rows or columns, which
 * linalg.contract allows. */
static MlirValue multiply(struct ir_builder *b, const struct windowed *w, const struct conv *c, MlirValue init) {
  const int n = c->batch.n + 2;
  int64_t results[STRUCTURED_LOOPS_MAX];
  MlirAffineMap maps[3];
  MlirAttribute all[3];
  const struct side *left = c->kernel_is_left ? c->kernel : c->x, *right = c->kernel_is_left ? c->x : c->kernel;
  MlirValue inputs[] = {matrix(b, w, c, left, true, &maps[0]), matrix(b, w, c, right, false, &maps[1])};

  for (int k = 0; k < n; k++)
    results[k] = k;
  maps[2] = ir_map(b, n + 1, n, results);
  for (int k = 0; k < 3; k++)
    all[k] = mlirAffineMapAttrGet(maps[k]);
  MlirNamedAttribute attr = ir_named(b, "indexing_maps", mlirArrayAttrGet(b->ctx, 3, all));
  return ir_result(ir_linalg_named(b, c->batch.n ? "linalg.contract" : "linalg.matmul", 2, inputs, init, 1, &attr));
}

/* The knobs of an operation whose loops are gone. */
static void drop_knobs(struct pass_run *run, MlirOperation op, const char *why) {
  const struct layout l = layout_read(ir_result(op));
  MlirOperation knobs[] = {l.layout_op, l.tile_op};

  for (int k = 0; k < 2; k++) {
    if (mlirOperationIsNull(knobs[k]))
      continue;
    const struct src_loc *at = ir_first_place(run->arena, mlirOperationGetLocation(knobs[k]));
    diag_add(run->ds, DS_WARNING, DG_KNOB_IGNORED, at, "this knob has no effect: %s, in tiles of its own", why)->stage =
        run->def->name;
    mlirOperationDestroy(knobs[k]);
  }
}

/* What the product starts from, in the shape of the product; a null value if that cannot be made.  PSUM starts from zero:
 * see remove-redundant-zero-fill. */
static MlirValue first_sum(struct ir_builder *b, MlirValue init, bool is_moved, int rank, const int64_t *dims) {
  MlirOperation def = ir_defining_op(init);
  const bool is_fill = !mlirOperationIsNull(def) && ir_is(def, "linalg.fill");

  if (!is_fill && (mlirOperationIsNull(def) || !ir_is(def, "tensor.empty")))
    return is_moved ? (MlirValue){NULL} : edit_reshape(b, init, rank, dims);
  MlirValue empty = ir_empty_of(b, ir_tensor_of(ir_value_element(init), rank, dims));
  return is_fill && !ir_is_zero(mlirOperationGetOperand(def, 0)) ? ir_fill(b, mlirOperationGetOperand(def, 0), empty)
                                                                 : empty;
}

static bool rewrite_conv(struct windowed *w) {
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
  pass_remark(w->run, ir_defining_op(y), "the convolution as a matrix product: M=%lld, N=%lld, K=%lld%s",
              (long long)flat[c.batch.n], (long long)flat[c.batch.n + 1], (long long)product(w, &c.k),
              c.batch.n ? ", in batches" : "");
  if (is_moved) {
    for (int k = 0; k < n; k++)
      dims[k] = w->s.extents[order.v[k]];
    y = ir_result(ir_transpose(&b, edit_reshape(&b, y, n, dims), n, perm));
  }
  ir_shape(ir_result(w->op), STRUCTURED_LOOPS_MAX, dims);
  y = edit_reshape(&b, y, c.y->rank, dims);
  drop_knobs(w->run, w->op, "the convolution is computed as a matrix product");
  mlirValueReplaceAllUsesOfWith(ir_result(w->op), y);
  edit_erase_unused(w->run->arena, w->op);
  return true;
}

/* ---- small windows ---------------------------------------------------------------------------------------------- */

/* Elements of a window that are combined one by one: the slices are read once each. */
enum { CHAIN_MAX = 64 };

/* The one input that the body reads; -1 if it reads several, or positions. */
static int only_input(const struct windowed *w) {
  MlirBlock body = ir_body(w->op);
  int only = -1;

  for (int o = 0; o < w->s.n_inputs; o++)
    if (ir_is_used(mlirBlockGetArgument(body, o))) {
      if (only >= 0)
        return -1;
      only = o;
    }
  return prepare_has_op(w->run, w->op, "linalg.index") ? -1 : only;
}

/* Every loop that is reduced is the element of a window of x, the others are the result's dimensions; *n becomes the
 * number of elements. */
static bool is_small_window(const struct windowed *w, const struct side *x, int64_t *n) {
  const struct side *y = &w->sides[w->s.n_inputs];

  *n = 1;
  for (int l = 0; l < w->s.n_loops; l++) {
    const int r = window_of(x, l);
    if (w->s.extents[l] == 1)
      continue;
    if (w->s.reduction[l] ? r < 0 || x->d[r].loop[1] != l : !has_loop(y, l))
      return false;
    if (r >= 0 && (w->s.reduction[x->d[r].loop[0]] || !w->s.reduction[x->d[r].loop[1]]))
      return false;
    if (w->s.reduction[l] && (*n *= w->s.extents[l]) > CHAIN_MAX)
      return false;
  }
  for (int r = 0; r < y->rank; r++)
    if (y->d[r].n > 1 || (y->d[r].n && y->d[r].coef[0] != 1) || y->d[r].offset)
      return false;
  return true;
}

/* Element k of all windows of x, counted with the last dimension as the fastest. */
static MlirValue window_element(struct ir_builder *b, const struct windowed *w, const struct side *x, int64_t k) {
  int64_t offsets[STRUCTURED_LOOPS_MAX], sizes[STRUCTURED_LOOPS_MAX], strides[STRUCTURED_LOOPS_MAX];

  for (int r = x->rank - 1; r >= 0; r--) {
    const struct dim *d = &x->d[r];
    const int64_t turns = d->n == 2 ? w->s.extents[d->loop[1]] : 1;
    offsets[r] = d->offset + (d->n == 2 ? k % turns * d->coef[1] : 0);
    sizes[r] = d->n ? w->s.extents[d->loop[0]] : 1;
    strides[r] = d->n ? d->coef[0] : 1;
    k /= turns;
  }
  struct ir_slice slice = {.rank = x->rank, .offsets = offsets, .sizes = sizes, .strides = strides};
  return ir_extract_slice(b, x->v, &slice, ir_tensor_of(ir_value_element(x->v), x->rank, sizes));
}

struct copied_body {
  MlirBlock from;
  int in, out; /* its arguments that are read */
};

/* args: the element, what was combined so far */
static MlirValue copy_body(struct ir_builder *b, MlirValue const *args, void *user) {
  const struct copied_body *body = user;
  MlirOperation end = mlirBlockGetTerminator(body->from);
  struct {
    MlirValue from, to;
  } known[64] = {{mlirBlockGetArgument(body->from, body->in), args[0]},
                 {mlirBlockGetArgument(body->from, body->out), args[1]}};
  int n = 2;

  for (MlirOperation op = mlirBlockGetFirstOperation(body->from);; op = mlirOperationGetNextInBlock(op)) {
    const bool is_end = mlirOperationEqual(op, end);
    MlirOperation copy = is_end ? op : mlirOperationClone(op);
    for (intptr_t k = 0; k < mlirOperationGetNumOperands(op); k++)
      for (int j = 0; j < n; j++)
        if (mlirValueEqual(mlirOperationGetOperand(op, k), known[j].from)) {
          if (is_end)
            return known[j].to;
          mlirOperationSetOperand(copy, k, known[j].to);
          break;
        }
    if (is_end)
      return mlirOperationGetOperand(op, 0); /* a value from outside */
    mlirBlockAppendOwnedOperation(b->block, copy);
    known[n].from = ir_result(op);
    known[n++].to = ir_result(copy);
  }
}

static bool is_simple_body(MlirBlock body) {
  int n = 0;
  for (MlirOperation op = mlirBlockGetFirstOperation(body); !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op))
    if (++n > 60 || mlirOperationGetNumRegions(op) ||
        (mlirOperationGetNumResults(op) != 1 && !ir_is(op, "linalg.yield")))
      return false;
  return true;
}

static bool rewrite_chain(struct windowed *w) {
  const int in = w->s.kind == SK_REDUCTION ? only_input(w) : -1;
  const struct side *x = &w->sides[in < 0 ? 0 : in], *y = &w->sides[w->s.n_inputs];
  struct copied_body body = {ir_body(w->op), in, w->s.n_inputs};
  int64_t n, maps[STRUCTURED_LOOPS_MAX];

  if (in < 0 || !is_small_window(w, x, &n) || !is_simple_body(body.from))
    return false;
  struct ir_builder b = edit_before(w->run, w->op);
  for (int r = 0; r < x->rank; r++) {
    maps[r] = IR_CONST(0);
    for (int k = 0; k < y->rank && x->d[r].n; k++)
      if (y->d[k].n && y->d[k].loop[0] == x->d[r].loop[0])
        maps[r] = k;
  }
  MlirAffineMap all[] = {ir_map(&b, y->rank, x->rank, maps), ir_identity_map(&b, y->rank),
                         ir_identity_map(&b, y->rank)};
  MlirValue sum = y->v;
  for (int64_t k = 0; k < n; k++) {
    MlirValue inputs[] = {window_element(&b, w, x, k), sum};
    sum = ir_result(ir_linalg_generic(&b, &(struct ir_generic){.n_loops = y->rank,
                                                               .n_inputs = 2,
                                                               .inputs = inputs,
                                                               .maps = all,
                                                               .output = ir_empty_of(&b, mlirValueGetType(sum)),
                                                               .body = copy_body,
                                                               .user = &body}));
  }
  pass_remark(w->run, ir_defining_op(sum), "the %lld elements of the windows are combined one by one", (long long)n);
  drop_knobs(w->run, w->op, "the window's elements are combined one by one");
  mlirValueReplaceAllUsesOfWith(ir_result(w->op), sum);
  edit_erase_unused(w->run->arena, w->op);
  return true;
}

/* ---- large windows ---------------------------------------------------------------------------------------------- */

static bool is_in_window(const struct windowed *w, int loop) {
  for (int o = 0; o < w->s.n_inputs; o++)
    if (window_of(&w->sides[o], loop) >= 0)
      return true;
  return false;
}

/* Longer windows are not copied out: a copy for each element. */
enum { UNFOLD_MAX = 1024 };
/* As many times fewer partitions are filled by the best dimension without a window before the windows are copied out:
 * about what the copies cost. */
enum { WORTH_UNFOLDING = 4 };

/* The parallel loop of a window that should go over the partitions, or -1. */
static int loop_to_free(const struct windowed *w) {
  const struct layout l = layout_read(ir_result(w->op));
  int64_t plain = 1;
  int best = -1;

  if (l.partition_dim >= 0 && l.partition_dim < mlirAffineMapGetNumResults(w->s.maps[w->s.n_inputs])) {
    const int loop = structured_map_loop(w->s.maps[w->s.n_inputs], l.partition_dim);
    return loop >= 0 && is_in_window(w, loop) ? loop : -1;
  }
  for (int k = 0; k < w->s.n_loops; k++) {
    if (w->s.reduction[k])
      continue;
    if (!is_in_window(w, k))
      plain = w->s.extents[k] > plain ? w->s.extents[k] : plain;
    else if (best < 0 || w->s.extents[k] > w->s.extents[best])
      best = k;
  }
  if (best < 0)
    return -1;
  const int64_t filled = w->s.extents[best] < NISA_PARTITIONS ? w->s.extents[best] : NISA_PARTITIONS;
  return filled >= WORTH_UNFOLDING * plain ? best : -1;
}

static MlirAffineMap map_of(struct ir_builder *b, const struct windowed *w, const struct side *side) {
  MlirAffineExpr x[STRUCTURED_LOOPS_MAX];
  for (int r = 0; r < side->rank; r++) {
    const struct dim *d = &side->d[r];
    x[r] = mlirAffineConstantExprGet(b->ctx, d->offset);
    for (int k = d->n - 1; k >= 0; k--) {
      MlirAffineExpr term =
          mlirAffineMulExprGet(mlirAffineDimExprGet(b->ctx, d->loop[k]), mlirAffineConstantExprGet(b->ctx, d->coef[k]));
      x[r] = mlirAffineAddExprGet(term, x[r]);
    }
  }
  return mlirAffineMapGet(b->ctx, w->s.n_loops, 0, side->rank, x);
}

static void rewrite_reduction(struct windowed *w) {
  struct ir_builder b = edit_before(w->run, w->op);
  const int loop = loop_to_free(w);

  for (int o = 0; o < w->s.n_inputs; o++) {
    struct side *side = &w->sides[o];
    if (mlirAffineMapIsProjectedPermutation(w->s.maps[o]))
      continue; /* as it is; it may say how long a loop is */
    cut(&b, w, side);
    const int r = loop < 0 ? -1 : window_of(side, loop);
    if (r >= 0 && w->s.extents[side->d[r].loop[1]] <= UNFOLD_MAX) {
      unfold(&b, w, side, r, side->rank);
      pass_remark(w->run, w->op, "the windows of input %d along dimension %d are copied out, for the partitions", o, r);
    }
    mlirOperationSetOperand(w->op, o, side->v);
    w->s.maps[o] = map_of(&b, w, side);
  }
  edit_set_maps(w->op, w->s.n_inputs + 1, w->s.maps);
}

/* ---- all -------------------------------------------------------------------------------------------------------- */

void prepare_windows(struct pass_run *run, MlirOperation op) {
  struct windowed w;
  if (read_windowed(run, op, &w) && !rewrite_conv(&w) && !rewrite_chain(&w))
    rewrite_reduction(&w);
}
