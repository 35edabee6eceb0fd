/* infer_window: shape rules of instructions with a window: reduce-window, select-and-scatter, convolution.
 *
 * A window slides over the operand, whose elements base_dilation spreads and low and high pad (negative: crop).  The
 * window's own elements are window_dilation apart.
 */
#include "hlo/infer.h"

#define REFUSE(...) return fail(err, ST_INPUT, __VA_ARGS__)
#define TEXT(x) hlo_shape_text(a, &(x)->shape)
#define OP(i, k) ((i)->operands[k])

bool hlo_infer_window_positions(const struct hlo_window_dim *w, int64_t n, int64_t *padded, int64_t *positions) {
  int64_t extent;
  if (w->size < 1 || w->stride < 1 || w->window_dilation < 1 || w->base_dilation < 1)
    return false;
  if (!hlo_infer_padded_size(n, (struct hlo_pad_dim){w->low, w->high, w->base_dilation - 1}, padded) || *padded < 0 ||
      __builtin_mul_overflow(w->size - 1, w->window_dilation, &extent) || __builtin_add_overflow(extent, 1, &extent))
    return false;
  *positions = *padded < extent ? 0 : (*padded - extent) / w->stride + 1;
  return true;
}

static enum status window_shape(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out, struct error *err) {
  const struct hlo_shape *x = &OP(i, 0)->shape;
  int64_t dims[HLO_RANK_MAX], padded;
  if (!i->attrs->window || i->attrs->window->n != x->rank)
    REFUSE("%s: the window must have the %d dimensions of %s", hlo_op_name(i->op), x->rank, TEXT(OP(i, 0)));
  for (int k = 0; k < x->rank; k++)
    if (i->attrs->window->v[k].is_reversed ||
        !hlo_infer_window_positions(&i->attrs->window->v[k], x->dims[k], &padded, &dims[k]))
      REFUSE("%s: the window does not fit dimension %d of %s", hlo_op_name(i->op), k, TEXT(OP(i, 0)));
  *out = hlo_shape_array(a, x->dtype, x->rank, dims);
  return ST_OK;
}

enum status hlo_infer_reduce_window(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out,
                                    struct error *err) {
  const struct hlo_instr *x = OP(i, 0), *init = OP(i, 1);
  if (init->shape.rank || init->shape.dtype != x->shape.dtype)
    REFUSE("reduce-window: the initial value %s must be %s[]", TEXT(init), dtype_hlo_name(x->shape.dtype));
  enum status st = window_shape(a, i, out, err);
  return st ? st : hlo_infer_combiner(i, x->shape.dtype, err);
}

static bool is_binary(const struct hlo_computation *c, enum dtype from, enum dtype to) {
  const struct hlo_shape in = {.dtype = from}, result = {.dtype = to};
  return c && c->root && c->n_params == 2 && hlo_shape_equal(&c->params[0]->shape, &in) &&
         hlo_shape_equal(&c->params[1]->shape, &in) && hlo_shape_equal(&c->root->shape, &result);
}

/* Operands: the array to select in, one value per window position, and the initial value. */
enum status hlo_infer_select_and_scatter(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out,
                                         struct error *err) {
  const struct hlo_instr *x = OP(i, 0), *source = OP(i, 1), *init = OP(i, 2);
  const enum dtype t = x->shape.dtype;
  struct hlo_shape positions;
  enum status st = window_shape(a, i, &positions, err);
  if (st)
    return st;
  if (!hlo_shape_equal(&positions, &source->shape))
    REFUSE("select-and-scatter: the window has positions %s, not %s", hlo_shape_text(a, &positions), TEXT(source));
  if (init->shape.rank || init->shape.dtype != t)
    REFUSE("select-and-scatter: the initial value %s must be %s[]", TEXT(init), dtype_hlo_name(t));
  for (int k = 0; k < x->shape.rank; k++)
    if (i->attrs->window->v[k].base_dilation != 1 || i->attrs->window->v[k].window_dilation != 1)
      REFUSE("select-and-scatter: the window must not be dilated");
  if (i->n_called != 2 || !is_binary(i->called[0], t, DT_BOOL) || !is_binary(i->called[1], t, t))
    REFUSE("select-and-scatter: needs a computation that selects between two %s[] and one that adds them",
           dtype_hlo_name(t));
  *out = x->shape;
  return ST_OK;
}

/* ---- convolution ----------------------------------------------------------------------------------------- */

/* Each dimension has one role. */
static bool are_roles(int64_t x, int64_t y, struct hlo_ints spatial, int rank) {
  int64_t all[HLO_RANK_MAX];
  if (spatial.n + 2 != rank)
    return false;
  all[0] = x;
  all[1] = y;
  for (int k = 0; k < spatial.n; k++)
    all[2 + k] = spatial.v[k];
  return hlo_infer_is_distinct_below((struct hlo_ints){rank, all}, rank);
}

static enum status check_features(struct arena *a, const struct hlo_instr *i, struct error *err) {
  const struct hlo_shape *x = &OP(i, 0)->shape, *w = &OP(i, 1)->shape;
  const struct hlo_conv_dims *c = i->attrs->conv;
  const int64_t groups = c->feature_group_count, batches = c->batch_group_count;
  if (groups < 1 || batches < 1 || (groups > 1 && batches > 1))
    REFUSE("convolution: %lld feature groups and %lld batch groups are not possible", (long long)groups,
           (long long)batches);
  if (x->dims[c->input_feature] % groups || x->dims[c->input_feature] / groups != w->dims[c->kernel_input_feature])
    REFUSE("convolution: the features of %s in %lld groups are not those of the kernel %s", TEXT(OP(i, 0)),
           (long long)groups, TEXT(OP(i, 1)));
  if (w->dims[c->kernel_output_feature] % groups || w->dims[c->kernel_output_feature] % batches ||
      x->dims[c->input_batch] % batches)
    REFUSE("convolution: %s and %s do not divide into %lld groups", TEXT(OP(i, 0)), TEXT(OP(i, 1)),
           (long long)(groups > 1 ? groups : batches));
  return ST_OK;
}

enum status hlo_infer_convolution(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out,
                                  struct error *err) {
  const struct hlo_shape *x = &OP(i, 0)->shape, *w = &OP(i, 1)->shape;
  const struct hlo_conv_dims *c = i->attrs->conv;
  const int n = x->rank - 2;
  int64_t dims[HLO_RANK_MAX], padded;

  if (!c || !i->attrs->window)
    REFUSE("convolution: no window or no dimension numbers");
  if (x->rank != w->rank || n < 0 || n > HLO_SPATIAL_MAX || i->attrs->window->n != n || c->output_spatial.n != n ||
      !are_roles(c->input_batch, c->input_feature, c->input_spatial, x->rank) ||
      !are_roles(c->kernel_input_feature, c->kernel_output_feature, c->kernel_spatial, x->rank) ||
      !are_roles(c->output_batch, c->output_feature, c->output_spatial, x->rank))
    REFUSE("convolution: the dimension numbers do not give each dimension of %s and %s one role", TEXT(OP(i, 0)),
           TEXT(OP(i, 1)));
  enum status st = check_features(a, i, err);
  if (st)
    return st;
  const enum dtype t = i->shape.dtype;
  for (int k = 0; k < 2; k++)
    if (dtype_kind(OP(i, k)->shape.dtype) != dtype_kind(t) || dtype_size(OP(i, k)->shape.dtype) > dtype_size(t))
      REFUSE("convolution: operands %s and %s do not add up to %s", TEXT(OP(i, 0)), TEXT(OP(i, 1)), dtype_hlo_name(t));
  dims[c->output_batch] = x->dims[c->input_batch] / c->batch_group_count;
  dims[c->output_feature] = w->dims[c->kernel_output_feature];
  for (int k = 0; k < n; k++)
    if (i->attrs->window->v[k].size != w->dims[c->kernel_spatial.v[k]] ||
        !hlo_infer_window_positions(&i->attrs->window->v[k], x->dims[c->input_spatial.v[k]], &padded,
                                    &dims[c->output_spatial.v[k]]))
      REFUSE("convolution: the window does not fit spatial dimension %d of %s and %s", k, TEXT(OP(i, 0)),
             TEXT(OP(i, 1)));
  *out = hlo_shape_array(a, t, x->rank, dims);
  return ST_OK;
}
