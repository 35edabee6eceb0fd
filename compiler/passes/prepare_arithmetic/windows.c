/* windows: rewrites operations whose operands are read through a sum of two loops, position * stride + element *
 * dilation.
 *
 *     max over p, q of x[n,c,2*i+p,j+q]  ==>  a chain of element-wise maxima of slices of x, one for each (p, q)
 *
 * A convolution becomes a matrix product (convolution.c).
 *
 * Any other reduction over a small window (pooling) becomes a chain of element-wise operations, one for each element
 * of the window, on a slice of the whole operand.  A reduction over a large window stays if a dimension without a
 * window fills the partitions.  Otherwise the windows of the longest dimension, or of the user's partition_dim, are
 * copied out as for a convolution, because partition p of an operand must contain the elements that position p
 * needs.
 *
 * A loop of one iteration adds nothing and is dropped from the maps first; a dimension with one loop but a stride or
 * an offset becomes a slice.  Not changed: sums of three loops, a loop that is in two dimensions of one operand,
 * dynamic shapes.  The order of summation changes.  The time is linear in the number of operations and in window
 * sizes.
 */
#include "passes/prepare_arithmetic/windows.h"

#include <assert.h>
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "base/table.h"
#include "ir/internal.h"
#include "nisa/nisa.h"
#include "passes/lib/edit.h"
#include "passes/lib/layout.h"
#include "passes/prepare_arithmetic/prepare_arithmetic.h"
#include "passes/lib/price.h"

/* ---- reading ---------------------------------------------------------------------------------------------------- */

static bool add_term(const struct structured *s, struct window_dim *d, int loop, int64_t coef) {
  if (s->extents[loop] == 1)
    return true;
  if (d->n == 2 || coef < 1)
    return false;
  d->loop[d->n] = loop;
  d->coef[d->n++] = coef;
  return true;
}

static bool read_sum(const struct structured *s, MlirAffineExpr x, struct window_dim *d) {
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

/* Puts the terms of a window in the order position (parallel), element. */
static void order_terms(const struct structured *s, struct window_dim *d) {
  if (d->n < 2 || !s->reduction[d->loop[0]] || s->reduction[d->loop[1]])
    return;
  *d = (struct window_dim){2, {d->loop[1], d->loop[0]}, {d->coef[1], d->coef[0]}, d->offset};
}

static bool read_side(const struct windowed *w, int o, struct window_side *side) {
  MlirAffineMap map = w->s.maps[o];
  bool seen[STRUCTURED_LOOPS_MAX] = {false};

  *side = (struct window_side){.v = mlirOperationGetOperand(w->op, o), .rank = (int)mlirAffineMapGetNumResults(map)};
  for (int r = 0; r < side->rank; r++) {
    struct window_dim *d = &side->d[r];
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

/* Reads op into w.  False if op has no windows, or windows of another form. */
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

/* Returns the dimension in which loop is one of two terms, or -1. */
static int window_of(const struct window_side *side, int loop) {
  for (int r = 0; r < side->rank; r++)
    if (side->d[r].n == 2 && (side->d[r].loop[0] == loop || side->d[r].loop[1] == loop))
      return r;
  return -1;
}

/* ---- changing an operand ---------------------------------------------------------------------------------------- */

void windows_cut(struct ir_builder *b, const struct windowed *w, struct window_side *side) {
  int64_t dims[STRUCTURED_LOOPS_MAX], offsets[STRUCTURED_LOOPS_MAX], sizes[STRUCTURED_LOOPS_MAX],
      strides[STRUCTURED_LOOPS_MAX];
  bool is_whole = true;

  ir_shape(side->v, STRUCTURED_LOOPS_MAX, dims);
  for (int r = 0; r < side->rank; r++) {
    struct window_dim *d = &side->d[r];
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

void windows_unfold(struct ir_builder *b, const struct windowed *w, struct window_side *side, int r, int at) {
  const struct window_dim d = side->d[r];
  int64_t dims[STRUCTURED_LOOPS_MAX], to[STRUCTURED_LOOPS_MAX], zeros[STRUCTURED_LOOPS_MAX] = {0},
                                                                ones[STRUCTURED_LOOPS_MAX], put[STRUCTURED_LOOPS_MAX],
                                                                from[STRUCTURED_LOOPS_MAX] = {0};
  const int64_t n = w->s.extents[d.loop[1]];
  MlirType element = ir_value_element(side->v);

  assert(d.n == 2 && side->rank < STRUCTURED_LOOPS_MAX);
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
  side->d[at] = (struct window_dim){1, {d.loop[1]}, {1}, 0};
  side->d[r + (r >= at)] = (struct window_dim){1, {d.loop[0]}, {1}, 0};
  side->rank++;
  side->v = all;
}

void windows_drop_knobs(struct pass_run *run, MlirOperation op, const char *why) {
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

/* ---- small windows ---------------------------------------------------------------------------------------------- */

/* The largest number of elements of a small window.  Each costs an operation on a slice of the whole operand. */
enum { CHAIN_MAX = 64 };

/* Returns the only input that the body reads; -1 if it reads several, or positions. */
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

/* True if every reduced loop is the element of a window of x, and the other loops are dimensions of the result.
 * Sets *n to the number of elements, at most CHAIN_MAX. */
static bool is_small_window(const struct windowed *w, const struct window_side *x, int64_t *n) {
  const struct window_side *y = &w->sides[w->s.n_inputs];

  *n = 1;
  for (int l = 0; l < w->s.n_loops; l++) {
    const int r = window_of(x, l);
    if (w->s.extents[l] == 1)
      continue;
    if (w->s.reduction[l] ? r < 0 || x->d[r].loop[1] != l : !windows_has_loop(y, l))
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

/* Returns element k of all windows of x, in row-major order. */
static MlirValue window_element(struct ir_builder *b, const struct windowed *w, const struct window_side *x,
                                int64_t k) {
  int64_t offsets[STRUCTURED_LOOPS_MAX], sizes[STRUCTURED_LOOPS_MAX], strides[STRUCTURED_LOOPS_MAX];

  for (int r = x->rank - 1; r >= 0; r--) {
    const struct window_dim *d = &x->d[r];
    const int64_t count = d->n == 2 ? w->s.extents[d->loop[1]] : 1;
    offsets[r] = d->offset + (d->n == 2 ? k % count * d->coef[1] : 0);
    sizes[r] = d->n ? w->s.extents[d->loop[0]] : 1;
    strides[r] = d->n ? d->coef[0] : 1;
    k /= count;
  }
  struct ir_slice slice = {.rank = x->rank, .offsets = offsets, .sizes = sizes, .strides = strides};
  return ir_extract_slice(b, x->v, &slice, ir_tensor_of(ir_value_element(x->v), x->rank, sizes));
}

struct copied_body {
  MlirBlock from;
  int in, out; /* the arguments that the body reads */
};

static MlirValue copied(struct table *copies, MlirValue v) {
  MlirValue copy = {table_get(copies, v.ptr)};
  return mlirValueIsNull(copy) ? v : copy; /* a value from outside the body */
}

/* Copies the operations of the body.  args: the element, the result so far. */
static MlirValue copy_body(struct ir_builder *b, MlirValue const *args, void *user) {
  const struct copied_body *body = user;
  MlirOperation end = mlirBlockGetTerminator(body->from), next;
  struct table copies = {.arena = b->arena}; /* value of the body -> its copy */

  table_put(&copies, mlirBlockGetArgument(body->from, body->in).ptr, (void *)(uintptr_t)args[0].ptr);
  table_put(&copies, mlirBlockGetArgument(body->from, body->out).ptr, (void *)(uintptr_t)args[1].ptr);
  for (MlirOperation op = mlirBlockGetFirstOperation(body->from); !mlirOperationEqual(op, end); op = next) {
    MlirOperation copy = mlirOperationClone(op);
    next = mlirOperationGetNextInBlock(op);
    for (intptr_t k = 0; k < mlirOperationGetNumOperands(op); k++)
      mlirOperationSetOperand(copy, k, copied(&copies, mlirOperationGetOperand(op, k)));
    mlirBlockAppendOwnedOperation(b->block, copy);
    table_put(&copies, ir_result(op).ptr, (void *)(uintptr_t)ir_result(copy).ptr);
  }
  return copied(&copies, mlirOperationGetOperand(end, 0));
}

/* True if every operation of the body has one result and no regions. */
static bool is_simple_body(MlirBlock body) {
  for (MlirOperation op = mlirBlockGetFirstOperation(body); !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op))
    if (mlirOperationGetNumRegions(op) || (mlirOperationGetNumResults(op) != 1 && !ir_is(op, "linalg.yield")))
      return false;
  return true;
}

static bool rewrite_chain(struct windowed *w) {
  const int in = w->s.kind == SK_REDUCTION ? only_input(w) : -1;
  const struct window_side *x = &w->sides[in < 0 ? 0 : in], *y = &w->sides[w->s.n_inputs];
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
  struct remark *r = pass_remark(w->run, ir_defining_op(sum), RULE_COMBINE_WINDOWS,
                                 "the %lld elements of the windows are combined one by one", (long long)n);
  const struct price_shape s = price_shape_of(sum);
  const enum target t = w->run->target;
  price_chosen(r, (double)n * price_rows_ns(t, SIM_COST_VECTOR_TENSOR, s.rows, s.columns));
  price_instead(r, "a reduction of windows that are copied out",
                (double)n * price_rows_ns(t, SIM_COST_VECTOR_COPY, s.rows, s.columns) +
                    price_rows_ns(t, SIM_COST_VECTOR_REDUCE, s.rows, s.columns * n),
                "an instruction reads each place of the windows where it is");
  windows_drop_knobs(w->run, w->op, "the window's elements are combined one by one");
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

/* Larger windows are not copied out, because each element needs a copy. */
enum { UNFOLD_MAX = 1024 };
/* Windows are copied out if that fills at least this many times more partitions than the longest dimension without a
 * window.  The factor is about the cost of the copies. */
enum { WORTH_UNFOLDING = 4 };

/* Returns the parallel loop of a window that should be on the partitions, or -1. */
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

/* Returns the current indexing map of the operand. */
static MlirAffineMap map_of(struct ir_builder *b, const struct windowed *w, const struct window_side *side) {
  MlirAffineExpr x[STRUCTURED_LOOPS_MAX];
  for (int r = 0; r < side->rank; r++) {
    const struct window_dim *d = &side->d[r];
    x[r] = mlirAffineConstantExprGet(b->ctx, d->offset);
    for (int k = d->n - 1; k >= 0; k--) {
      MlirAffineExpr term =
          mlirAffineMulExprGet(mlirAffineDimExprGet(b->ctx, d->loop[k]), mlirAffineConstantExprGet(b->ctx, d->coef[k]));
      x[r] = mlirAffineAddExprGet(term, x[r]);
    }
  }
  return mlirAffineMapGet(b->ctx, w->s.n_loops, 0, side->rank, x);
}

static bool gives_extent(MlirAffineMap map, int loop) {
  for (int r = 0; r < mlirAffineMapGetNumResults(map); r++)
    if (structured_map_loop(map, r) == loop)
      return true;
  return false;
}

/* True if the body does not read input o, and other operands give the extents of its loops. */
static bool is_superfluous(const struct windowed *w, int o) {
  if (ir_is_used(mlirBlockGetArgument(ir_body(w->op), o)))
    return false;
  for (int l = 0; l < w->s.n_loops; l++) {
    bool is_given = !gives_extent(w->s.maps[o], l);
    for (int k = 0; k <= w->s.n_inputs && !is_given; k++)
      is_given = k != o && gives_extent(w->s.maps[k], l);
    if (!is_given)
      return false;
  }
  return true;
}

/* Drops the inputs that only gave the extents of windows, which nothing has written: the windows that were copied out
 * give them, too. */
static void drop_extents(struct windowed *w) {
  for (int o = w->s.n_inputs - 1; o >= 0; o--) {
    if (!is_superfluous(w, o))
      continue;
    MlirValue kept[STRUCTURED_OPERANDS_MAX];
    const int n = w->s.n_inputs--;
    for (int k = 0; k < n; k++)
      kept[k] = mlirOperationGetOperand(w->op, k + (k >= o));
    for (int k = o; k < n; k++)
      w->s.maps[k] = w->s.maps[k + 1];
    const int32_t segments[] = {n - 1, 1};
    mlirOperationSetOperands(w->op, n, kept);
    ir_set_attr(w->op, "operandSegmentSizes", mlirDenseI32ArrayGet(mlirOperationGetContext(w->op), 2, segments));
    mlirBlockEraseArgument(ir_body(w->op), (unsigned)o);
  }
}

static void rewrite_reduction(struct windowed *w) {
  struct ir_builder b = edit_before(w->run, w->op);
  const int loop = loop_to_free(w);

  for (int o = 0; o < w->s.n_inputs; o++) {
    struct window_side *side = &w->sides[o];
    if (mlirAffineMapIsProjectedPermutation(w->s.maps[o]))
      continue; /* the operand stays, because its shape may be the only one that gives the extent of a loop */
    windows_cut(&b, w, side);
    const int r = loop < 0 ? -1 : window_of(side, loop);
    if (r >= 0 && side->rank < STRUCTURED_LOOPS_MAX && w->s.extents[side->d[r].loop[1]] <= UNFOLD_MAX) {
      windows_unfold(&b, w, side, r, side->rank);
      struct remark *said =
          pass_remark(w->run, w->op, RULE_UNFOLD_WINDOWS,
                      "the windows of input %d along dimension %d are copied out, for the partitions", o, r);
      remark_reject(said, "reading them in place", "they overlap across partitions");
    }
    mlirOperationSetOperand(w->op, o, side->v);
    w->s.maps[o] = map_of(&b, w, side);
  }
  drop_extents(w);
  edit_set_maps(w->op, w->s.n_inputs + 1, w->s.maps);
}

/* ---- all -------------------------------------------------------------------------------------------------------- */

void prepare_windows(struct pass_run *run, MlirOperation op) {
  struct windowed w;
  if (read_windowed(run, op, &w) && !windows_convolution(&w) && !rewrite_chain(&w))
    rewrite_reduction(&w);
}
