/* build_more: builders of instructions with windows, comparators, groups of devices, or a meaning outside of HLO. */
#include "hlo/build_internal.h"

hlo_val hlo_clamp(struct hlo_builder *b, hlo_val low, hlo_val x, hlo_val high) {
  hlo_val v[] = {low, x, high};
  return hlo_build_append(b, NULL, &(struct hlo_instr){.op = HLO_CLAMP, .n_operands = 3, .operands = v});
}

hlo_val hlo_complex(struct hlo_builder *b, hlo_val re, hlo_val im) {
  hlo_val v[] = {re, im};
  return hlo_build_append(b, NULL, &(struct hlo_instr){.op = HLO_COMPLEX, .n_operands = 2, .operands = v});
}

hlo_val hlo_complex_part(struct hlo_builder *b, enum hlo_op part, hlo_val x) {
  if (part != HLO_REAL && part != HLO_IMAG)
    return hlo_build_refuse(b, "%s: is not a part of a complex number", hlo_op_name(part));
  return hlo_build_append(b, NULL, &(struct hlo_instr){.op = part, .n_operands = 1, .operands = &x});
}

hlo_val hlo_fft(struct hlo_builder *b, hlo_val x, enum hlo_fft kind, int n, const int64_t *lengths) {
  return hlo_build_append(
      b, NULL,
      &(struct hlo_instr){.op = HLO_FFT,
                          .n_operands = 1,
                          .operands = &x,
                          .attrs = &(struct hlo_attrs){.fft_type = kind, .fft_length = {n, lengths}}});
}

hlo_val hlo_reverse(struct hlo_builder *b, hlo_val x, int n, const int64_t *dimensions) {
  return hlo_build_append(b, NULL,
                          &(struct hlo_instr){.op = HLO_REVERSE,
                                              .n_operands = 1,
                                              .operands = &x,
                                              .attrs = &(struct hlo_attrs){.dimensions = {n, dimensions}}});
}

hlo_val hlo_bitcast_convert(struct hlo_builder *b, hlo_val x, enum dtype t) {
  if (!x)
    return hlo_build_refuse(b, "bitcast-convert: operand 0 is missing");
  if (x->shape.dtype == t)
    return x;
  struct hlo_shape to = x->shape;
  to.dtype = t;
  return hlo_build_append(b, NULL,
                          &(struct hlo_instr){.op = HLO_BITCAST_CONVERT, .shape = to, .n_operands = 1, .operands = &x});
}

/* ---- order ----------------------------------------------------------------------------------------------- */

/* x without the difference between -0 and 0, and with one NaN, which the total order puts last. */
static hlo_val plain_float(struct hlo_builder *b, hlo_val x) {
  hlo_val zero = hlo_scalar(b, x->shape.dtype, 0), nan = hlo_scalar(b, x->shape.dtype, __builtin_nan(""));
  hlo_val is_zero = hlo_compare(b, HLO_EQ, x, zero), is_nan = hlo_compare(b, HLO_NE, x, x);
  return hlo_select(b, is_nan, nan, hlo_select(b, is_zero, zero, x));
}

/* (x0, y0, x1, y1, …) -> x0 before y0 */
static struct hlo_computation *comparator(struct hlo_builder *b, int n, hlo_val const *xs, bool is_descending) {
  struct hlo_module *m = b->module;
  struct arena *a = m->arena;
  struct hlo_builder in;

  hlo_builder_init(&in, m);
  in.locs = b->locs;
  in.computation = hlo_computation_new(m, arena_printf(a, "compare_%d", m->next_computation_id));
  for (int k = 0; k < 2 * n; k++) {
    const char *name = arena_printf(a, "compare_%s%d", k % 2 ? "rhs" : "lhs", k / 2);
    hlo_parameter(&in, name, (struct hlo_shape){.dtype = xs[k / 2]->shape.dtype});
  }
  hlo_val x = in.computation->params[0], y = in.computation->params[1];
  const bool is_float = dtype_is_float(xs[0]->shape.dtype);
  hlo_val before = hlo_compare(&in, is_descending ? HLO_GT : HLO_LT, is_float ? plain_float(&in, x) : x,
                               is_float ? plain_float(&in, y) : y);
  if (before)
    hlo_set_attrs(before, &(struct hlo_attrs){.direction = before->attrs->direction, .is_total_order = is_float});
  in.computation->root = before;
  if (in.err.code)
    hlo_build_refuse(b, "%s", in.err.text);
  return in.computation;
}

hlo_val hlo_sort(struct hlo_builder *b, int n, hlo_val const *xs, int64_t dimension, bool is_descending) {
  if (b->err.code)
    return NULL;
  for (int k = 0; k < n; k++)
    if (!xs[k] || !dtype_size(xs[k]->shape.dtype))
      return hlo_build_refuse(b, "sort: operand %d is not an array", k);
  if (n < 1)
    return hlo_build_refuse(b, "sort: no operands");
  struct hlo_computation *c = comparator(b, n, xs, is_descending);
  return hlo_build_append(
      b, NULL,
      &(struct hlo_instr){.op = HLO_SORT,
                          .n_operands = n,
                          .operands = (struct hlo_instr **)(uintptr_t)xs,
                          .attrs = &(struct hlo_attrs){.dimensions = {1, &dimension}, .is_stable = true},
                          .n_called = 1,
                          .called = &c});
}

/* ---- windows ----------------------------------------------------------------------------------------------- */

hlo_val hlo_reduce_window(struct hlo_builder *b, enum hlo_op op, hlo_val x, hlo_val init,
                          const struct hlo_window *window) {
  if (!x || !hlo_can_reduce(op, x->shape.dtype) || !dtype_size(x->shape.dtype))
    return hlo_build_refuse(b, "reduce-window: %s does not combine its operand", hlo_op_name(op));
  struct hlo_computation *c = hlo_build_combiner(b->module, hlo_op_name(op), op, x->shape.dtype);
  hlo_val v[] = {x, init};
  return hlo_build_append(b, NULL,
                          &(struct hlo_instr){.op = HLO_REDUCE_WINDOW,
                                              .n_operands = 2,
                                              .operands = v,
                                              .attrs = &(struct hlo_attrs){.window = window},
                                              .n_called = 1,
                                              .called = &c});
}

hlo_val hlo_convolution(struct hlo_builder *b, hlo_val x, hlo_val kernel, const struct hlo_window *window,
                        const struct hlo_conv_dims *dims, enum dtype t) {
  hlo_val v[] = {x, kernel};
  if (!dtype_size(t))
    return hlo_build_refuse(b, "convolution: unknown data type");
  return hlo_build_append(b, NULL,
                          &(struct hlo_instr){.op = HLO_CONVOLUTION,
                                              .shape = {.dtype = t},
                                              .n_operands = 2,
                                              .operands = v,
                                              .attrs = &(struct hlo_attrs){.window = window, .conv = dims}});
}

/* ---- outside ----------------------------------------------------------------------------------------------- */

hlo_val hlo_custom_call(struct hlo_builder *b, const struct hlo_custom *what, struct hlo_shape shape, int n,
                        hlo_val const *xs) {
  return hlo_build_append(
      b, NULL,
      &(struct hlo_instr){.op = HLO_CUSTOM_CALL,
                          .shape = shape,
                          .n_operands = n,
                          .operands = (struct hlo_instr **)(uintptr_t)xs,
                          .attrs = &(struct hlo_attrs){.custom_call_target = what->target,
                                                       .backend_config = what->backend_config,
                                                       .call_api = HLO_API_ORIGINAL,
                                                       .operand_aliases = {what->n_aliases, what->aliases},
                                                       .has_collectives = what->has_collectives}});
}

hlo_val hlo_topk(struct hlo_builder *b, hlo_val x, int64_t k) {
  if (!x || x->shape.rank < 1 || k < 1 || k > x->shape.dims[x->shape.rank - 1])
    return hlo_build_refuse(b, "topk: there are no %lld elements in the last dimension", (long long)k);
  int64_t dims[HLO_RANK_MAX];
  for (int d = 0; d < x->shape.rank; d++)
    dims[d] = d < x->shape.rank - 1 ? x->shape.dims[d] : k;
  const struct hlo_shape elems[] = {{.dtype = x->shape.dtype, .rank = x->shape.rank, .dims = dims},
                                    {.dtype = DT_U32, .rank = x->shape.rank, .dims = dims}};
  const char *config = arena_printf(b->module->arena, "%lld", (long long)k);
  return hlo_custom_call(b, &(struct hlo_custom){.target = HLO_TOPK_TARGET, .backend_config = config},
                         (struct hlo_shape){.dtype = DT_TUPLE, .n_elems = 2, .elems = elems}, 1, &x);
}

hlo_val hlo_collective(struct hlo_builder *b, enum hlo_op op, hlo_val x, const struct hlo_groups *groups,
                       enum hlo_op reduce, int64_t dimension) {
  const bool combines = op == HLO_ALL_REDUCE || op == HLO_REDUCE_SCATTER;
  struct hlo_computation *c = NULL;
  if (!x || !groups || !groups->n || !hlo_op_is_collective(op))
    return hlo_build_refuse(b, "%s: needs an operand and groups of devices", hlo_op_name(op));
  if (combines && (!hlo_can_reduce(reduce, x->shape.dtype) || !dtype_size(x->shape.dtype)))
    return hlo_build_refuse(b, "%s: %s does not combine its operand", hlo_op_name(op), hlo_op_name(reduce));
  if (combines)
    c = hlo_build_combiner(b->module, arena_printf(b->module->arena, "collective_%s", hlo_op_name(reduce)), reduce,
                           x->shape.dtype);
  return hlo_build_append(
      b, NULL,
      &(struct hlo_instr){.op = op,
                          .n_operands = 1,
                          .operands = &x,
                          .attrs =
                              &(struct hlo_attrs){.dimensions = {op != HLO_ALL_REDUCE, &dimension}, .groups = groups},
                          .n_called = combines,
                          .called = combines ? &c : NULL});
}
