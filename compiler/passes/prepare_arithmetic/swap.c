/* swap: a product of images and a matrix leaves the images in their order.
 *
 *     %t = linalg.transpose ins(%x : 4x128x28x28) permutation = [0, 2, 3, 1]      einsum 'nchw,oc->nohw'
 *     %c = linalg.matmul ins(%t as 3136x128, %w : 128x256)
 *     %y = linalg.transpose ins(%c as 4x28x28x256) permutation = [0, 3, 1, 2]
 *       ==>
 *     %y = linalg.contract {(n,o,p,c) -> (c,o), (n,c,p), (n,o,p)} ins(%w, %x as 4x128x784)
 *
 * The Tensor engine wants what is summed across the partitions of both operands, and that is where the features of an image
 * are.  As the right operand the image is read as it lies, and the product comes out as an image.  As the left one, which is how
 * NumPy orders the operands, the product has features last and is turned afterwards.
 *
 * Without a batch one product does it, with a batch a product for each image.  So images of a few positions stay as they are, in
 * one product: the cheaper one is taken.  Values are exact: each element is the same sum.  Knobs on the product or on what is
 * around it leave it alone.  Element-wise operations on the
 * result compute with one dimension of positions, too.  Runs before turns.c, which merges dimensions.  Linear in ops.
 */
#include <inttypes.h>

#include "base/array.h"
#include "mlir-c/BuiltinAttributes.h"

#include "passes/lib/edit.h"
#include "passes/lib/price.h"
#include "passes/lib/product.h"
#include "passes/prepare_arithmetic/prepare_arithmetic.h"

/* A value whose dimensions are batch…, features…, positions… */
struct order {
  int64_t batch, features, positions;
};

struct swap {
  struct product p;
  int image;          /* the operand that is the transpose of the images */
  MlirValue x;        /* the images */
  MlirOperation turn; /* of the result */
  struct order in, out;
};

static bool is_reshape(MlirOperation op) {
  return ir_is(op, "tensor.expand_shape") || ir_is(op, "tensor.collapse_shape");
}

static bool read_transpose(MlirOperation op, struct structured *s) {
  return !mlirOperationIsNull(op) && ir_is(op, "linalg.transpose") && mlirOperationGetNumResults(op) == 1 &&
         structured_read(op, s) && !prepare_has_knob(ir_result(op));
}

/* The number of dimensions of v, or of what it was collapsed from, that make the first of the two dimensions; -1 if none do. */
static int first_group(MlirValue fine, const int64_t coarse[2]) {
  int64_t dims[STRUCTURED_LOOPS_MAX];
  const int rank = ir_shape(fine, STRUCTURED_LOOPS_MAX, dims);
  int end[2];

  for (int d = 0; d < rank; d++)
    if (dims[d] < 1)
      return -1;
  return rank >= 2 && ir_group_dims(2, coarse, rank, dims, end) ? end[0] : -1;
}

/* n dimensions in the order in which they lie: place[d] is that among the turned ones.  Features are those from `from` to before
 * `to` there.  False unless both kinds keep their order and the features are next to each other, before positions. */
static bool read_order(const struct structured *s, int n, const int *place, int from, int to, struct order *o) {
  int last[2] = {-1, -1}, phase = 0; /* 0: batch, 1: features, 2: positions */

  *o = (struct order){1, 1, 1};
  for (int d = 0; d < n; d++) {
    const bool is_feature = place[d] >= from && place[d] < to;
    const int64_t extent = s->extents[place[d]];
    if (extent == 1)
      continue;
    if (place[d] < last[is_feature] || (is_feature && phase == 2))
      return false;
    last[is_feature] = place[d];
    phase = is_feature ? 1 : phase ? 2 : 0;
    *(phase == 0 ? &o->batch : phase == 1 ? &o->features : &o->positions) *= extent;
  }
  return o->positions > 1;
}

/* Reads operand `image`: a transpose of images, seen as a matrix. */
static bool read_image(struct swap *w, const int64_t dims[2]) {
  MlirValue v = mlirOperationGetOperand(w->p.op, w->image);
  MlirOperation def = ir_defining_op(v);
  struct structured s;
  int place[STRUCTURED_LOOPS_MAX];

  if (!mlirOperationIsNull(def) && ir_is(def, "tensor.collapse_shape") && !prepare_has_knob(v)) {
    v = mlirOperationGetOperand(def, 0);
    def = ir_defining_op(v);
  }
  if (!read_transpose(def, &s))
    return false;
  const int split = first_group(v, dims);
  for (int d = 0; d < s.n_loops; d++)
    place[d] = structured_map_loop(s.maps[0], d);
  w->x = mlirOperationGetOperand(def, 0);
  return split > 0 && read_order(&s, s.n_loops, place, w->image ? 0 : split, w->image ? split : s.n_loops, &w->in);
}

/* Reads the transpose of the result that makes images of it. */
static bool read_result(struct swap *w, const int64_t dims[2]) {
  MlirValue v = ir_result(w->p.op);
  MlirOperation user = ir_only_user(v);
  struct structured s;
  int64_t extents[STRUCTURED_LOOPS_MAX];
  int place[STRUCTURED_LOOPS_MAX];

  if (!mlirOperationIsNull(user) && ir_is(user, "tensor.expand_shape")) {
    v = ir_result(user);
    user = ir_only_user(v);
  }
  if (!read_transpose(user, &s) || !mlirValueEqual(mlirOperationGetOperand(user, 0), v))
    return false;
  const int split = first_group(v, dims);
  for (int d = 0; d < s.n_loops; d++) {
    place[structured_map_loop(s.maps[0], d)] = d;
    extents[d] = s.extents[structured_map_loop(s.maps[0], d)];
  }
  for (int d = 0; d < s.n_loops; d++)
    s.extents[d] = extents[d];
  w->turn = user;
  return split > 0 && read_order(&s, s.n_loops, place, w->image ? 0 : split, w->image ? split : s.n_loops, &w->out);
}

/* The sum starts from zero: nothing is read from the destination. */
static bool starts_from_zero(MlirValue init) {
  MlirOperation def = ir_defining_op(init);
  return !mlirOperationIsNull(def) &&
         (ir_is(def, "tensor.empty") || (ir_is(def, "linalg.fill") && ir_is_zero(mlirOperationGetOperand(def, 0))));
}

static bool read_swap(MlirOperation op, struct swap *w) {
  *w = (struct swap){0};
  if (!product_read(op, &w->p) || w->p.n_batch || product_dim(&w->p, 0, w->p.m) || product_dim(&w->p, 1, w->p.k) ||
      prepare_has_knob(ir_result(op)) || !starts_from_zero(mlirOperationGetOperand(op, 2)))
    return false;
  const int64_t m = w->p.s.extents[w->p.m], n = w->p.s.extents[w->p.n], k = w->p.s.extents[w->p.k];
  for (w->image = 0; w->image < 2; w->image++)
    if (read_image(w, w->image ? (int64_t[]){k, n} : (int64_t[]){m, k}) && read_result(w, (int64_t[]){m, n}) &&
        w->in.batch == w->out.batch && w->in.positions == w->out.positions)
      return w->image == 0 || w->in.batch > 1;
  return false;
}

/* The matrix as the left operand; *is_turned: as [K, M]. */
static MlirValue left_of(const struct swap *w, bool *is_turned) {
  MlirValue v = mlirOperationGetOperand(w->p.op, 1 - w->image);
  MlirOperation def = ir_defining_op(v);
  struct structured s;

  *is_turned = false;
  if (w->image == 1)
    return v;
  if (read_transpose(def, &s))
    return mlirOperationGetOperand(def, 0);
  *is_turned = true;
  return v;
}

/* Returns the product as [batch, features, positions], without the batch if there is one image. */
static MlirValue multiply(struct ir_builder *b, const struct swap *w) {
  const int n = w->in.batch > 1; /* the loops: batch, m, n, k */
  const int64_t right[] = {w->in.batch, w->in.features, w->in.positions},
                out[] = {w->out.batch, w->out.features, w->out.positions};
  bool is_turned;
  MlirValue left = left_of(w, &is_turned), x = edit_reshape(b, w->x, 2 + n, right + 1 - n);
  const int64_t left_loops[] = {is_turned ? n + 2 : n, is_turned ? n : n + 2}, right_loops[] = {0, n + 2, n + 1},
                loops[] = {0, 1, 2};
  const MlirAffineMap maps[] = {ir_map(b, 3 + n, 2, left_loops), ir_map(b, 3 + n, 2 + n, right_loops + 1 - n),
                                ir_map(b, 3 + n, 2 + n, loops)};
  MlirAttribute all[3], cast = ir_attr(w->p.op, "cast");
  MlirValue inputs[] = {left, x};
  int n_attrs = 1;

  for (int o = 0; o < 3; o++)
    all[o] = mlirAffineMapAttrGet(maps[o]);
  MlirNamedAttribute attrs[2] = {ir_named(b, "indexing_maps", mlirArrayAttrGet(b->ctx, 3, all))};
  if (!mlirAttributeIsNull(cast))
    attrs[n_attrs++] = ir_named(b, "cast", cast);
  MlirValue init = ir_empty_of(b, ir_tensor_of(ir_value_element(ir_result(w->p.op)), 2 + n, out + 1 - n));
  return ir_result(ir_linalg_named(b, n ? "linalg.contract" : "linalg.matmul", 2, inputs, init, n_attrs, attrs));
}

/* ---- what computes with the images ------------------------------------------------------------------------------- */

/* The last dimensions of a value, which become one. */
struct tail {
  int rank, n; /* of the value; of the last dimensions, at least 2 */
  int64_t positions;
};

/* Sets the map of operand o for loops of which the last ones are one. False if it has some of them, or in another order. */
static bool merge_map(struct ir_builder *b, const struct structured *s, int o, const struct tail *t, MlirAffineMap *map,
                      bool *has_tail) {
  const int rank = (int)mlirAffineMapGetNumResults(s->maps[o]), first = t->rank - t->n;
  int64_t results[STRUCTURED_LOOPS_MAX];
  int n = 0;

  *has_tail = rank && structured_map_loop(s->maps[o], rank - 1) == t->rank - 1;
  for (int r = 0; r < rank; r++) {
    const int loop = structured_map_loop(s->maps[o], r), want = t->rank - (rank - r);
    if (*has_tail && want >= first ? loop != want : loop >= first)
      return false;
    if (!*has_tail || want <= first)
      results[n++] = loop < 0 ? IR_CONST(0) : loop;
  }
  *map = ir_map(b, first + 1, n, results);
  return true;
}

/* Gives an element-wise operation one dimension instead of the last ones. False if it stays as it is. */
static bool merge_tail(struct pass_run *run, MlirOperation op, const struct tail *t) {
  struct structured s;
  struct ir_builder b = edit_before(run, op);
  MlirAffineMap maps[STRUCTURED_OPERANDS_MAX];
  bool has_tail[STRUCTURED_OPERANDS_MAX];
  int64_t dims[STRUCTURED_LOOPS_MAX];

  if (!prepare_may_change(run, op, &s) || !structured_is_elementwise(&s) || s.n_loops != t->rank ||
      prepare_has_op(run, op, "linalg.index") || !mlirAffineMapIsIdentity(s.maps[s.n_inputs]))
    return false;
  for (int o = 0; o <= s.n_inputs; o++)
    if (!merge_map(&b, &s, o, t, &maps[o], &has_tail[o]) || (!has_tail[o] && !ir_is(op, "linalg.generic")))
      return false;
  for (int o = 0; o <= s.n_inputs; o++) {
    MlirValue v = mlirOperationGetOperand(op, o);
    const int rank = ir_shape(v, STRUCTURED_LOOPS_MAX, dims) - t->n;
    if (!has_tail[o])
      continue;
    dims[rank] = t->positions;
    if (o < s.n_inputs)
      mlirOperationSetOperand(op, o, edit_reshape(&b, v, rank + 1, dims));
    else
      prepare_result(run, op, &s, 0, rank + 1, dims);
  }
  if (ir_is(op, "linalg.generic")) {
    edit_set_maps(op, s.n_inputs + 1, maps);
    edit_set_iterators(op, t->rank - t->n + 1, (bool[STRUCTURED_LOOPS_MAX]){false});
  }
  return true;
}

/* The dimensions of v that are the positions; n is 0 if none are, or one is. */
static struct tail tail_of(MlirValue v, int64_t positions) {
  int64_t dims[STRUCTURED_LOOPS_MAX], n = 1;
  struct tail t = {.rank = ir_shape(v, STRUCTURED_LOOPS_MAX, dims), .positions = positions};

  while (t.n < t.rank && n < positions)
    n *= dims[t.rank - ++t.n];
  if (n != positions || t.n < 2 || t.n == t.rank)
    t.n = 0;
  return t;
}

/* The result of op, or what it is reshaped to for those that read it. */
static MlirValue as_read(MlirOperation op, int rank) {
  MlirValue v = ir_result(op);
  while (ir_shape(v, 0, NULL) != rank) {
    MlirOperation back = ir_only_user(v);
    if (mlirOperationIsNull(back) || !is_reshape(back))
      break;
    v = ir_result(back);
  }
  return v;
}

/* Element-wise operations on the images v compute with one dimension of positions, as the product does, and so do those that
 * read their results: then all of it is one loop.  Each operation changes at most once. */
static void merge_positions(struct pass_run *run, MlirValue v, int64_t positions) {
  struct values {
    MlirValue *v;
    int n, cap;
  } values = {0};

  array_push(run->arena, &values, v);
  for (int i = 0; i < values.n; i++) {
    const struct tail t = tail_of(values.v[i], positions);
    struct ir_ops users = {0};
    for (MlirOpOperand u = mlirValueGetFirstUse(values.v[i]); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
      array_push(run->arena, &users, mlirOpOperandGetOwner(u));
    for (int k = 0; k < users.n; k++)
      if (is_reshape(users.v[k]))
        array_push(run->arena, &values, ir_result(users.v[k]));
      else if (t.n && merge_tail(run, users.v[k], &t))
        array_push(run->arena, &values, as_read(users.v[k], t.rank));
  }
}

/* ---- the change -------------------------------------------------------------------------------------------------- */

static void swap_operands(struct pass_run *run, const struct swap *w) {
  const enum target t = run->target;
  const int64_t m = w->p.s.extents[w->p.m], n = w->p.s.extents[w->p.n], k = w->p.s.extents[w->p.k];
  const int64_t bytes = price_shape_of(w->x).element_bytes;
  const double swapped = (double)w->in.batch * price_product_ns(t, w->out.features, k, w->in.positions, bytes),
               as_is = price_product_ns(t, m, k, n, bytes) +
                       price_transpose_ns(t, m, n, price_shape_of(ir_result(w->turn)).element_bytes);
  if (swapped >= as_is)
    return;
  int64_t dims[STRUCTURED_LOOPS_MAX];
  struct ir_builder b = edit_before(run, w->p.op);
  MlirValue y = multiply(&b, w);
  struct remark *r =
      pass_remark(run, ir_defining_op(y), RULE_SWAP_OPERANDS,
                  "the images are the right operand as they lie: M=%" PRId64 ", N=%" PRId64 ", K=%" PRId64 "%s",
                  w->out.features, w->in.positions, k, w->in.batch > 1 ? ", in batches" : "");
  price_chosen(r, swapped);
  price_instead(r, "one product, whose result is turned", as_is, "the features of the result would be last");
  const int rank = ir_shape(ir_result(w->turn), STRUCTURED_LOOPS_MAX, dims);
  MlirValue images = edit_reshape(&b, y, rank, dims);
  edit_replace_data_uses(run->arena, ir_result(w->turn), images, (MlirOperation){NULL});
  edit_erase_unused(run->arena, w->turn);
  edit_erase_unused(run->arena, w->p.op);
  merge_positions(run, images, w->out.positions);
}

void prepare_swap(struct pass_run *run) {
  const struct ir_ops all = ir_collect_named(run->arena, run->module, "linalg.matmul");

  for (int i = 0; i < all.n; i++) {
    struct swap w;
    if (!read_swap(all.v[i], &w))
      continue;
    pass_step(run, all.v[i], "swap-operands");
    swap_operands(run, &w);
  }
}
