/* window: convolution and reduce-window.
 *
 * The operand is padded (base dilation is padding between elements) and read through an affine map: position * stride +
 * element * dilation.  Groups of features or batches become a dimension of their own by a reshape.
 */
#include "linalg/impl.h"

static MlirAffineExpr loop_expr(struct lower *l, int loop) {
  return mlirAffineDimExprGet(l->e.ctx, loop);
}

/* position * stride + element * dilation */
static MlirAffineExpr window_expr(struct lower *l, const struct hlo_window_dim *w, int position, int element) {
  MlirAffineExpr p = mlirAffineMulExprGet(loop_expr(l, position), mlirAffineConstantExprGet(l->e.ctx, w->stride)),
                 k = mlirAffineMulExprGet(loop_expr(l, element),
                                          mlirAffineConstantExprGet(l->e.ctx, w->window_dilation));
  return mlirAffineAddExprGet(p, k);
}

/* x with the padding of window dimension k at dimension at[k]; *dims gets the new sizes. */
static MlirValue pad_window(struct lower *l, const struct hlo_instr *x, const struct hlo_window *w, const int64_t *at,
                            MlirValue fill, int64_t *dims) {
  struct hlo_pad_dim pads[HLO_RANK_MAX] = {{0}};
  bool is_padded = false;

  for (int d = 0; d < x->shape.rank; d++)
    dims[d] = x->shape.dims[d];
  for (int k = 0; k < w->n; k++) {
    const struct hlo_window_dim *p = &w->v[k];
    pads[at[k]] = (struct hlo_pad_dim){p->low, p->high, p->base_dilation - 1};
    is_padded |= p->low || p->high || p->base_dilation > 1;
    const int64_t n = dims[at[k]];
    dims[at[k]] = n + (n > 0 ? n - 1 : 0) * (p->base_dilation - 1) + p->low + p->high;
  }
  MlirValue v = lower_value(l, x);
  struct hlo_shape to = {.dtype = x->shape.dtype, .rank = x->shape.rank, .dims = dims};
  return is_padded ? pad_tensor(l, v, &x->shape, pads, fill, &to) : v;
}

/* ---- reduce-window --------------------------------------------------------------------------------------- */

struct window_body {
  struct lower *l;
  const struct hlo_instr *instr;
  enum dtype from, to;
};

/* args: the element, nothing (the window's shape), what was combined so far */
static MlirValue write_window(struct emit *e, MlirValue const *args, void *user) {
  const struct window_body *b = user;
  const struct hlo_instr *root = b->instr->called[0]->root;
  MlirValue v[] = {args[2], scalar_convert(e, args[0], b->from, b->to)}, result;
  if (b->from != b->to)
    return scalar_binary(e, root->op, b->to, v[0], v[1]);
  inline_computation(b->l, e, b->instr->called[0], v, &result);
  return result;
}

enum status lower_reduce_window(struct lower *l, const struct hlo_instr *i) {
  const struct hlo_instr *x = i->operands[0], *init = i->operands[1];
  const int rank = x->shape.rank;
  int64_t at[HLO_RANK_MAX], dims[HLO_RANK_MAX], sizes[HLO_RANK_MAX];
  MlirAffineExpr exprs[HLO_RANK_MAX], windows[HLO_RANK_MAX], positions[HLO_RANK_MAX];
  bool *reduction = arena_new_array(&l->arena, bool, 2 * (size_t)rank + 1);
  enum status st = inline_check(l, i, i->called[0]);

  if (st)
    return st;
  for (int d = 0; d < rank; d++) {
    at[d] = d;
    sizes[d] = i->attrs->window->v[d].size;
    exprs[d] = window_expr(l, &i->attrs->window->v[d], d, rank + d);
    positions[d] = loop_expr(l, d);
    windows[d] = loop_expr(l, rank + d);
    reduction[rank + d] = true;
  }
  struct window_body body = {l, i, x->shape.dtype, x->shape.dtype};
  if (reduce_rounds(i))
    body.to = scalar_accumulator(x->shape.dtype);
  struct hlo_shape wide = i->shape;
  wide.dtype = body.to;
  MlirValue first = scalar_of(l, init);
  MlirValue inputs[] = {pad_window(l, x, i->attrs->window, at, first, dims),
                        emit_empty(&l->e, x->shape.dtype, rank, sizes)};
  MlirValue dest = emit_fill(&l->e, scalar_convert(&l->e, first, body.from, body.to), lower_empty(l, &wide));
  MlirAffineMap maps[] = {mlirAffineMapGet(l->e.ctx, 2 * rank, 0, rank, exprs),
                          mlirAffineMapGet(l->e.ctx, 2 * rank, 0, rank, windows),
                          mlirAffineMapGet(l->e.ctx, 2 * rank, 0, rank, positions)};
  MlirOperation op = emit_linalg_generic(&l->e, &(struct emit_generic){.n_loops = 2 * rank,
                                                                       .reduction = reduction,
                                                                       .n_inputs = 2,
                                                                       .inputs = inputs,
                                                                       .maps = maps,
                                                                       .output = dest,
                                                                       .body = write_window,
                                                                       .user = &body});
  lower_set(l, i, convert_tensor(l, emit_result(op), &wide, i->shape.dtype), lower_no_op());
  return ST_OK;
}

/* ---- convolution ----------------------------------------------------------------------------------------- */

/* How one operand is read: an expression for each dimension, a grouped one being two. */
struct reading {
  int64_t dims[HLO_RANK_MAX + 1];
  MlirAffineExpr exprs[HLO_RANK_MAX + 1];
  int rank;
};

/* Splits dimension `at` of a tensor of these dimensions into groups; -1: none. */
static MlirValue split(struct lower *l, MlirValue v, const struct hlo_shape *s, int64_t at, int64_t groups,
                       struct reading *r) {
  r->rank = 0;
  for (int d = 0; d < s->rank; d++) {
    if (d == at)
      r->dims[r->rank++] = groups;
    r->dims[r->rank++] = d == at ? s->dims[d] / groups : s->dims[d];
  }
  return reshape_tensor(l, v, s, r->rank, r->dims);
}

struct conv_body {
  enum dtype types[2], to;
};

static MlirValue write_product(struct emit *e, MlirValue const *args, void *user) {
  const struct conv_body *b = user;
  MlirValue x = scalar_convert(e, args[0], b->types[0], b->to), w = scalar_convert(e, args[1], b->types[1], b->to);
  return scalar_binary(e, HLO_ADD, b->to, args[2], scalar_binary(e, HLO_MULTIPLY, b->to, x, w));
}

/* Where dimension d of the original is, once `at` is two. */
static int moved(int64_t d, int64_t at) {
  return (int)d + (at >= 0 && d > at);
}

static MlirValue kernel_value(struct lower *l, const struct hlo_instr *i) {
  const struct hlo_instr *w = i->operands[1];
  int64_t reversed[HLO_RANK_MAX];
  int n = 0;
  for (int k = 0; k < i->attrs->window->n; k++)
    if (i->attrs->window->v[k].is_reversed)
      reversed[n++] = i->attrs->conv->kernel_spatial.v[k];
  MlirValue v = lower_value(l, w);
  return n ? emit_result(reverse_tensor(l, v, &w->shape, (struct hlo_ints){n, reversed})) : v;
}

/* Loops: the dimensions of the (split) output in order, then the input features and the window's elements. */
static MlirOperation emit_convolution(struct lower *l, const struct hlo_instr *i, enum dtype acc) {
  const struct hlo_conv_dims *c = i->attrs->conv;
  const struct hlo_shape *x = &i->operands[0]->shape, *w = &i->operands[1]->shape;
  const bool by_batch = c->batch_group_count > 1;
  const int64_t groups = by_batch ? c->batch_group_count : c->feature_group_count;
  const int64_t x_at = groups == 1 ? -1
                       : by_batch  ? c->input_batch
                                   : c->input_feature,
                w_at = groups == 1 ? -1 : c->kernel_output_feature, y_at = groups == 1 ? -1 : c->output_feature;
  int64_t padded[HLO_RANK_MAX];
  struct reading in, kernel, out;
  struct hlo_shape wide = i->shape, from = *x;

  wide.dtype = acc;
  from.dims = padded;
  MlirValue zero = emit_number(&l->e, x->dtype, 0);
  MlirValue v = pad_window(l, i->operands[0], i->attrs->window, c->input_spatial.v, zero, padded);
  MlirValue inputs[] = {split(l, v, &from, x_at, groups, &in), split(l, kernel_value(l, i), w, w_at, groups, &kernel)};
  MlirValue dest = emit_fill(&l->e, emit_number(&l->e, acc, 0), lower_empty(l, &wide));
  dest = split(l, dest, &wide, y_at, groups, &out);

  const int feature = moved(c->output_feature, -1) + (groups > 1), batch = moved(c->output_batch, y_at), sum = out.rank,
            n_loops = out.rank + 1 + c->output_spatial.n;
  for (int d = 0; d < out.rank; d++)
    out.exprs[d] = loop_expr(l, d);
  for (int k = 0; k < c->output_spatial.n; k++) {
    in.exprs[moved(c->input_spatial.v[k], x_at)] =
        window_expr(l, &i->attrs->window->v[k], moved(c->output_spatial.v[k], y_at), sum + 1 + k);
    kernel.exprs[moved(c->kernel_spatial.v[k], w_at)] = loop_expr(l, sum + 1 + k);
  }
  in.exprs[moved(c->input_batch, x_at) + by_batch] = loop_expr(l, batch);
  in.exprs[moved(c->input_feature, x_at) + (groups > 1 && !by_batch)] = loop_expr(l, sum);
  kernel.exprs[moved(c->kernel_input_feature, w_at)] = loop_expr(l, sum);
  kernel.exprs[moved(c->kernel_output_feature, w_at) + (groups > 1)] = loop_expr(l, feature);
  if (groups > 1) {
    in.exprs[x_at] = loop_expr(l, (int)y_at);
    kernel.exprs[w_at] = loop_expr(l, (int)y_at);
  }
  bool *reduction = arena_new_array(&l->arena, bool, (size_t)n_loops);
  for (int k = sum; k < n_loops; k++)
    reduction[k] = true;
  struct conv_body body = {{x->dtype, w->dtype}, acc};
  MlirAffineMap maps[] = {mlirAffineMapGet(l->e.ctx, n_loops, 0, in.rank, in.exprs),
                          mlirAffineMapGet(l->e.ctx, n_loops, 0, kernel.rank, kernel.exprs),
                          mlirAffineMapGet(l->e.ctx, n_loops, 0, out.rank, out.exprs)};
  return emit_linalg_generic(&l->e, &(struct emit_generic){.n_loops = n_loops,
                                                           .reduction = reduction,
                                                           .n_inputs = 2,
                                                           .inputs = inputs,
                                                           .maps = maps,
                                                           .output = dest,
                                                           .body = write_product,
                                                           .user = &body});
}

enum status lower_convolution(struct lower *l, const struct hlo_instr *i) {
  const enum dtype t = i->shape.dtype, acc = scalar_accumulator(t);
  struct hlo_shape wide = i->shape;

  if (i->shape.rank >= HLO_RANK_MAX)
    return lower_refuse(l, i, "it has too many dimensions");
  if (!hlo_shape_elements(&i->shape) || !hlo_shape_elements(&i->operands[0]->shape) ||
      !hlo_shape_elements(&i->operands[1]->shape)) {
    lower_set(l, i, emit_fill(&l->e, emit_number(&l->e, t, 0), lower_empty(l, &i->shape)), lower_no_op());
    return ST_OK;
  }
  wide.dtype = acc;
  MlirOperation op = emit_convolution(l, i, acc);
  int64_t dims[HLO_RANK_MAX + 1];
  MlirType split_type = mlirValueGetType(emit_result(op));
  const int rank = (int)mlirShapedTypeGetRank(split_type);
  for (int d = 0; d < rank; d++)
    dims[d] = mlirShapedTypeGetDimSize(split_type, d);
  struct hlo_shape now = {.dtype = acc, .rank = rank, .dims = dims};
  MlirValue v = reshape_tensor(l, emit_result(op), &now, wide.rank, wide.dims);
  lower_set(l, i, convert_tensor(l, v, &wide, t), lower_no_op());
  return ST_OK;
}
