/* window: lowers convolution and reduce-window.
 *
 * The operand is padded (base dilation is padding between elements) and read through an affine map: position * stride +
 * element * dilation.  A reshape gives groups of features or batches a separate dimension.
 */
#include <assert.h>

#include "linalg/impl.h"

static MlirAffineExpr loop_expr(struct lower *l, int loop) {
  return mlirAffineDimExprGet(l->b.ctx, loop);
}

/* position * stride + element * dilation */
static MlirAffineExpr window_expr(struct lower *l, const struct hlo_window_dim *w, int position, int element) {
  MlirAffineExpr p = mlirAffineMulExprGet(loop_expr(l, position), mlirAffineConstantExprGet(l->b.ctx, w->stride)),
                 k = mlirAffineMulExprGet(loop_expr(l, element),
                                          mlirAffineConstantExprGet(l->b.ctx, w->window_dilation));
  return mlirAffineAddExprGet(p, k);
}

/* Pads dimension at[k] of x as window dimension k requires.  Sets dims to the new sizes. */
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
  return is_padded ? lower_pad_tensor(l, v, &x->shape, pads, fill, &to) : v;
}

/* ---- reduce-window --------------------------------------------------------------------------------------- */

struct window_body {
  struct lower *l;
  const struct hlo_instr *instr;
  enum dtype from, to;
};

/* Yields the combined result.  args: the element, an undefined value (of the operand that gives the window's shape),
 * the result so far. */
static MlirValue write_window(struct ir_builder *b, MlirValue const *args, void *user) {
  const struct window_body *body = user;
  const struct hlo_instr *root = body->instr->called[0]->root;
  MlirValue v[] = {args[2], scalar_convert(b, args[0], body->from, body->to)}, result;
  if (body->from != body->to)
    return scalar_binary(b, root->op, body->to, v[0], v[1]);
  body_write(body->l, b, body->instr->called[0], v, &result);
  return result;
}

enum status lower_reduce_window(struct lower *l, const struct hlo_instr *i) {
  const struct hlo_instr *x = i->operands[0], *init = i->operands[1];
  const int rank = x->shape.rank;
  int64_t at[HLO_RANK_MAX], dims[HLO_RANK_MAX], sizes[HLO_RANK_MAX];
  MlirAffineExpr exprs[HLO_RANK_MAX], windows[HLO_RANK_MAX], positions[HLO_RANK_MAX];
  bool *reduction = arena_new_array(&l->arena, bool, 2 * (size_t)rank + 1);
  enum status st = body_check(l, i, i->called[0]);

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
                        ir_empty(&l->b, x->shape.dtype, rank, sizes)};
  MlirValue dest = ir_fill(&l->b, scalar_convert(&l->b, first, body.from, body.to), lower_empty(l, &wide));
  MlirAffineMap maps[] = {mlirAffineMapGet(l->b.ctx, 2 * rank, 0, rank, exprs),
                          mlirAffineMapGet(l->b.ctx, 2 * rank, 0, rank, windows),
                          mlirAffineMapGet(l->b.ctx, 2 * rank, 0, rank, positions)};
  MlirOperation op = ir_linalg_generic(&l->b, &(struct ir_generic){.n_loops = 2 * rank,
                                                                   .reduction = reduction,
                                                                   .n_inputs = 2,
                                                                   .inputs = inputs,
                                                                   .maps = maps,
                                                                   .output = dest,
                                                                   .body = write_window,
                                                                   .user = &body});
  lower_set(l, i, lower_convert_tensor(l, ir_result(op), &wide, i->shape.dtype), lower_no_op());
  return ST_OK;
}

/* ---- convolution ----------------------------------------------------------------------------------------- */

/* Describes how one operand is read: an expression for each dimension.  A dimension that is split into groups counts as
 * two. */
struct reading {
  int64_t dims[HLO_RANK_MAX + 1];
  MlirAffineExpr exprs[HLO_RANK_MAX + 1];
  int rank;
};

/* Splits dimension `at` of v, whose shape is s, into groups, and sets r->dims.  If `at` is -1, splits no dimension. */
static MlirValue split(struct lower *l, MlirValue v, const struct hlo_shape *s, int64_t at, int64_t groups,
                       struct reading *r) {
  r->rank = 0;
  for (int d = 0; d < s->rank; d++) {
    if (d == at)
      r->dims[r->rank++] = groups;
    r->dims[r->rank++] = d == at ? s->dims[d] / groups : s->dims[d];
  }
  return lower_reshape_tensor(l, v, s, r->rank, r->dims);
}

struct conv_body {
  enum dtype types[2], to;
};

static MlirValue write_product(struct ir_builder *b, MlirValue const *args, void *user) {
  const struct conv_body *body = user;
  MlirValue x = scalar_convert(b, args[0], body->types[0], body->to),
            w = scalar_convert(b, args[1], body->types[1], body->to);
  return scalar_binary(b, HLO_ADD, body->to, args[2], scalar_binary(b, HLO_MULTIPLY, body->to, x, w));
}

/* Returns the new number of dimension d after dimension `at` was split (-1: none was). */
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
  return n ? ir_result(lower_reverse_tensor(l, v, &w->shape, (struct hlo_ints){n, reversed})) : v;
}

/* The number of groups, and the dimensions to split in input, kernel and output; -1 if there are no groups. */
struct conv_groups {
  bool by_batch;
  int64_t n, x_at, w_at, y_at;
};

static struct conv_groups groups_of(const struct hlo_conv_dims *c) {
  const bool by_batch = c->batch_group_count > 1;
  const int64_t n = by_batch ? c->batch_group_count : c->feature_group_count;

  if (n == 1)
    return (struct conv_groups){false, 1, -1, -1, -1};
  return (struct conv_groups){by_batch, n, by_batch ? c->input_batch : c->input_feature, c->kernel_output_feature,
                              c->output_feature};
}

/* Sets the expressions of the three operands.  The loops are the dimensions of the split output in order, then the
 * input features, then the window's elements. */
static void read_by_loops(struct lower *l, const struct hlo_instr *i, const struct conv_groups *g, struct reading *in,
                          struct reading *kernel, struct reading *out) {
  const struct hlo_conv_dims *c = i->attrs->conv;
  const bool is_grouped = g->n > 1;
  const int feature = moved(c->output_feature, -1) + is_grouped, batch = moved(c->output_batch, g->y_at),
            sum = out->rank;

  for (int d = 0; d < out->rank; d++)
    out->exprs[d] = loop_expr(l, d);
  for (int k = 0; k < c->output_spatial.n; k++) {
    in->exprs[moved(c->input_spatial.v[k], g->x_at)] =
        window_expr(l, &i->attrs->window->v[k], moved(c->output_spatial.v[k], g->y_at), sum + 1 + k);
    kernel->exprs[moved(c->kernel_spatial.v[k], g->w_at)] = loop_expr(l, sum + 1 + k);
  }
  in->exprs[moved(c->input_batch, g->x_at) + g->by_batch] = loop_expr(l, batch);
  in->exprs[moved(c->input_feature, g->x_at) + (is_grouped && !g->by_batch)] = loop_expr(l, sum);
  kernel->exprs[moved(c->kernel_input_feature, g->w_at)] = loop_expr(l, sum);
  kernel->exprs[moved(c->kernel_output_feature, g->w_at) + is_grouped] = loop_expr(l, feature);
  if (is_grouped) {
    in->exprs[g->x_at] = loop_expr(l, (int)g->y_at);
    kernel->exprs[g->w_at] = loop_expr(l, (int)g->y_at);
  }
}

static MlirOperation make_convolution(struct lower *l, const struct hlo_instr *i, enum dtype acc) {
  const struct hlo_conv_dims *c = i->attrs->conv;
  const struct hlo_shape *x = &i->operands[0]->shape, *w = &i->operands[1]->shape;
  const struct conv_groups g = groups_of(c);
  int64_t padded[HLO_RANK_MAX];
  struct reading in, kernel, out;
  struct hlo_shape wide = i->shape, from = *x;

  wide.dtype = acc;
  from.dims = padded;
  MlirValue zero = ir_number(&l->b, x->dtype, 0);
  MlirValue v = pad_window(l, i->operands[0], i->attrs->window, c->input_spatial.v, zero, padded);
  MlirValue inputs[] = {split(l, v, &from, g.x_at, g.n, &in), split(l, kernel_value(l, i), w, g.w_at, g.n, &kernel)};
  MlirValue dest = ir_fill(&l->b, ir_number(&l->b, acc, 0), lower_empty(l, &wide));
  dest = split(l, dest, &wide, g.y_at, g.n, &out);
  read_by_loops(l, i, &g, &in, &kernel, &out);

  const int n_loops = out.rank + 1 + c->output_spatial.n;
  bool *reduction = arena_new_array(&l->arena, bool, (size_t)n_loops);
  for (int k = out.rank; k < n_loops; k++)
    reduction[k] = true;
  struct conv_body body = {{x->dtype, w->dtype}, acc};
  MlirAffineMap maps[] = {mlirAffineMapGet(l->b.ctx, n_loops, 0, in.rank, in.exprs),
                          mlirAffineMapGet(l->b.ctx, n_loops, 0, kernel.rank, kernel.exprs),
                          mlirAffineMapGet(l->b.ctx, n_loops, 0, out.rank, out.exprs)};
  return ir_linalg_generic(&l->b, &(struct ir_generic){.n_loops = n_loops,
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
    lower_set(l, i, ir_fill(&l->b, ir_number(&l->b, t, 0), lower_empty(l, &i->shape)), lower_no_op());
    return ST_OK;
  }
  wide.dtype = acc;
  MlirOperation op = make_convolution(l, i, acc);
  int64_t dims[HLO_RANK_MAX + 1];
  MlirType split_type = mlirValueGetType(ir_result(op));
  const int rank = (int)mlirShapedTypeGetRank(split_type);
  assert(rank == i->shape.rank || rank == i->shape.rank + 1);
  for (int d = 0; d < rank; d++)
    dims[d] = mlirShapedTypeGetDimSize(split_type, d);
  struct hlo_shape now = {.dtype = acc, .rank = rank, .dims = dims};
  MlirValue v = lower_reshape_tensor(l, ir_result(op), &now, wide.rank, wide.dims);
  lower_set(l, i, lower_convert_tensor(l, v, &wide, t), lower_no_op());
  return ST_OK;
}
