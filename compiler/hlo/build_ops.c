/* build_ops: one builder per kind of instruction; infer.c has the rules. */
#include "hlo/build_internal.h"

#include <string.h>

/* The attribute arrays of a builder have as many entries as x has dimensions, so x must not be NULL when they are
 * read. */
#define NEED(b, x, op) \
  do { \
    if ((b)->err.code) \
      return NULL; \
    if (!(x)) \
      return hlo_build_refuse(b, "%s: an operand is missing", hlo_op_name(op)); \
  } while (0)

/* ---- element-wise ------------------------------------------------------------------------------------ */

hlo_val hlo_unary(struct hlo_builder *b, enum hlo_op op, hlo_val x) {
  if (hlo_op_class(op) != HC_UNARY)
    return hlo_build_refuse(b, "%s: is not unary", hlo_op_name(op));
  return hlo_build_append(b, NULL, &(struct hlo_instr){.op = op, .n_operands = 1, .operands = &x});
}

hlo_val hlo_binary(struct hlo_builder *b, enum hlo_op op, hlo_val x, hlo_val y) {
  hlo_val v[] = {x, y};
  if (hlo_op_class(op) != HC_BINARY)
    return hlo_build_refuse(b, "%s: is not binary", hlo_op_name(op));
  return hlo_build_append(b, NULL, &(struct hlo_instr){.op = op, .n_operands = 2, .operands = v});
}

hlo_val hlo_compare(struct hlo_builder *b, enum hlo_direction d, hlo_val x, hlo_val y) {
  hlo_val v[] = {x, y};
  return hlo_build_append(
      b, NULL,
      &(struct hlo_instr){
          .op = HLO_COMPARE, .n_operands = 2, .operands = v, .attrs = &(struct hlo_attrs){.direction = d}});
}

hlo_val hlo_select(struct hlo_builder *b, hlo_val pred, hlo_val on_true, hlo_val on_false) {
  hlo_val v[] = {pred, on_true, on_false};
  return hlo_build_append(b, NULL, &(struct hlo_instr){.op = HLO_SELECT, .n_operands = 3, .operands = v});
}

hlo_val hlo_convert(struct hlo_builder *b, hlo_val x, enum dtype t) {
  NEED(b, x, HLO_CONVERT);
  if (x->shape.dtype == t)
    return x;
  if (!dtype_size(t))
    return hlo_build_refuse(b, "convert: unknown data type");
  struct hlo_shape s = x->shape;
  s.dtype = t;
  return hlo_build_append(b, NULL, &(struct hlo_instr){.op = HLO_CONVERT, .shape = s, .n_operands = 1, .operands = &x});
}

/* ---- same elements, other shape ---------------------------------------------------------------------- */

hlo_val hlo_broadcast(struct hlo_builder *b, hlo_val x, int rank, const int64_t *dims, const int64_t *dimensions) {
  NEED(b, x, HLO_BROADCAST);
  struct hlo_shape s = {.dtype = x->shape.dtype, .rank = rank, .dims = dims};
  return hlo_build_append(b, NULL,
                          &(struct hlo_instr){.op = HLO_BROADCAST,
                                              .shape = s,
                                              .n_operands = 1,
                                              .operands = &x,
                                              .attrs = &(struct hlo_attrs){.dimensions = {x->shape.rank, dimensions}}});
}

hlo_val hlo_reshape(struct hlo_builder *b, hlo_val x, int rank, const int64_t *dims) {
  NEED(b, x, HLO_RESHAPE);
  struct hlo_shape s = {.dtype = x->shape.dtype, .rank = rank, .dims = dims};
  if (hlo_shape_equal(&x->shape, &s))
    return x;
  return hlo_build_append(b, NULL, &(struct hlo_instr){.op = HLO_RESHAPE, .shape = s, .n_operands = 1, .operands = &x});
}

hlo_val hlo_transpose(struct hlo_builder *b, hlo_val x, const int64_t *permutation) {
  NEED(b, x, HLO_TRANSPOSE);
  return hlo_build_append(
      b, NULL,
      &(struct hlo_instr){.op = HLO_TRANSPOSE,
                          .n_operands = 1,
                          .operands = &x,
                          .attrs = &(struct hlo_attrs){.dimensions = {x->shape.rank, permutation}}});
}

hlo_val hlo_slice(struct hlo_builder *b, hlo_val x, const struct hlo_slice_dim *dims) {
  NEED(b, x, HLO_SLICE);
  return hlo_build_append(
      b, NULL,
      &(struct hlo_instr){
          .op = HLO_SLICE, .n_operands = 1, .operands = &x, .attrs = &(struct hlo_attrs){.slice = dims}});
}

hlo_val hlo_pad(struct hlo_builder *b, hlo_val x, hlo_val value, const struct hlo_pad_dim *dims) {
  hlo_val v[] = {x, value};
  NEED(b, x, HLO_PAD);
  if (!x->shape.rank)
    return x;
  return hlo_build_append(
      b, NULL,
      &(struct hlo_instr){
          .op = HLO_PAD, .n_operands = 2, .operands = v, .attrs = &(struct hlo_attrs){.padding = dims}});
}

hlo_val hlo_concatenate(struct hlo_builder *b, int n, hlo_val const *xs, int64_t dimension) {
  return hlo_build_append(b, NULL,
                          &(struct hlo_instr){.op = HLO_CONCATENATE,
                                              .n_operands = n,
                                              .operands = (struct hlo_instr **)(uintptr_t)xs,
                                              .attrs = &(struct hlo_attrs){.dimensions = {1, &dimension}}});
}

hlo_val hlo_dynamic_slice(struct hlo_builder *b, hlo_val x, hlo_val const *starts, const int64_t *sizes) {
  NEED(b, x, HLO_DYNAMIC_SLICE);
  hlo_val v[1 + HLO_RANK_MAX] = {x};
  memcpy(v + 1, starts, (size_t)x->shape.rank * sizeof *v);
  return hlo_build_append(b, NULL,
                          &(struct hlo_instr){.op = HLO_DYNAMIC_SLICE,
                                              .n_operands = 1 + x->shape.rank,
                                              .operands = v,
                                              .attrs = &(struct hlo_attrs){.dimensions = {x->shape.rank, sizes}}});
}

hlo_val hlo_dynamic_update_slice(struct hlo_builder *b, hlo_val x, hlo_val update, hlo_val const *starts) {
  NEED(b, x, HLO_DYNAMIC_UPDATE_SLICE);
  hlo_val v[2 + HLO_RANK_MAX] = {x, update};
  memcpy(v + 2, starts, (size_t)x->shape.rank * sizeof *v);
  return hlo_build_append(
      b, NULL, &(struct hlo_instr){.op = HLO_DYNAMIC_UPDATE_SLICE, .n_operands = 2 + x->shape.rank, .operands = v});
}

/* ---- with called computations ------------------------------------------------------------------------ */

struct hlo_computation *hlo_build_combiner(struct hlo_module *m, const char *prefix, enum hlo_op op, enum dtype t) {
  struct arena *a = m->arena;
  const char *base = arena_printf(a, "%s_%s", prefix, dtype_numpy_name(t));
  const char *name = arena_printf(a, "%s_computation", base);
  for (struct hlo_computation *c = m->computations; c; c = c->next)
    if (c != m->entry && !strcmp(c->name, name))
      return c;

  struct hlo_builder b;
  struct hlo_shape scalar = {.dtype = t};
  hlo_builder_init(&b, m);
  b.computation = hlo_computation_new(m, name);
  hlo_val v[2];
  v[0] = hlo_parameter(&b, arena_printf(a, "%s_lhs", base), scalar);
  v[1] = hlo_parameter(&b, arena_printf(a, "%s_rhs", base), scalar);
  struct hlo_instr draft = {.op = op, .n_operands = 2, .operands = v};
  if (op == HLO_COPY) {
    draft.n_operands = 1;
    draft.operands = v + 1;
  }
  b.computation->root = hlo_build_append(&b, arena_printf(a, "%s_result", base), &draft);
  return b.computation;
}

hlo_val hlo_reduce(struct hlo_builder *b, enum hlo_op op, hlo_val x, hlo_val init, int n, const int64_t *dimensions) {
  NEED(b, x, HLO_REDUCE);
  enum dtype t = x->shape.dtype;
  if (!hlo_can_reduce(op, t) || !dtype_size(t))
    return hlo_build_refuse(b, "reduce: %s does not combine %s", hlo_op_name(op),
                            hlo_shape_text(b->module->arena, &x->shape));
  struct hlo_computation *c = hlo_build_combiner(b->module, hlo_op_name(op), op, t);
  hlo_val v[] = {x, init};
  return hlo_build_append(b, NULL,
                          &(struct hlo_instr){.op = HLO_REDUCE,
                                              .n_operands = 2,
                                              .operands = v,
                                              .attrs = &(struct hlo_attrs){.dimensions = {n, dimensions}},
                                              .n_called = 1,
                                              .called = &c});
}

hlo_val hlo_scatter_assign(struct hlo_builder *b, hlo_val x, hlo_val indices, hlo_val updates,
                           const struct hlo_scatter_dims *dims) {
  NEED(b, x, HLO_SCATTER);
  if (!dtype_size(x->shape.dtype))
    return hlo_build_refuse(b, "scatter: the operand must be an array");
  struct hlo_computation *c = hlo_build_combiner(b->module, "scatter_assign", HLO_COPY, x->shape.dtype);
  hlo_val v[] = {x, indices, updates};
  return hlo_build_append(b, NULL,
                          &(struct hlo_instr){.op = HLO_SCATTER,
                                              .n_operands = 3,
                                              .operands = v,
                                              .attrs = &(struct hlo_attrs){.scatter = dims},
                                              .n_called = 1,
                                              .called = &c});
}

/* ---- control flow ------------------------------------------------------------------------------------- */

hlo_val hlo_tuple(struct hlo_builder *b, int n, hlo_val const *xs) {
  return hlo_build_append(
      b, NULL, &(struct hlo_instr){.op = HLO_TUPLE, .n_operands = n, .operands = (struct hlo_instr **)(uintptr_t)xs});
}

hlo_val hlo_tuple_element(struct hlo_builder *b, hlo_val x, int k) {
  NEED(b, x, HLO_GET_TUPLE_ELEMENT);
  if (x->op == HLO_TUPLE && k >= 0 && k < x->n_operands)
    return x->operands[k];
  return hlo_build_append(b, NULL,
                          &(struct hlo_instr){.op = HLO_GET_TUPLE_ELEMENT,
                                              .n_operands = 1,
                                              .operands = &x,
                                              .attrs = &(struct hlo_attrs){.tuple_index = k}});
}

hlo_val hlo_call(struct hlo_builder *b, struct hlo_computation *c, int n, hlo_val const *xs) {
  return hlo_build_append(b, NULL,
                          &(struct hlo_instr){.op = HLO_CALL,
                                              .n_operands = n,
                                              .operands = (struct hlo_instr **)(uintptr_t)xs,
                                              .n_called = 1,
                                              .called = &c});
}

hlo_val hlo_while(struct hlo_builder *b, struct hlo_computation *condition, struct hlo_computation *body, hlo_val x) {
  struct hlo_computation *called[] = {body, condition};
  return hlo_build_append(
      b, NULL, &(struct hlo_instr){.op = HLO_WHILE, .n_operands = 1, .operands = &x, .n_called = 2, .called = called});
}

hlo_val hlo_conditional(struct hlo_builder *b, hlo_val index, int n, struct hlo_computation *const *branches,
                        hlo_val const *operands) {
  enum { BRANCHES_MAX = 64 };
  hlo_val v[1 + BRANCHES_MAX] = {index};
  if (n < 1 || n > BRANCHES_MAX)
    return hlo_build_refuse(b, "conditional: %d branches; 1 to %d are possible", n, BRANCHES_MAX);
  memcpy(v + 1, operands, (size_t)n * sizeof *v);
  return hlo_build_append(b, NULL,
                          &(struct hlo_instr){.op = HLO_CONDITIONAL,
                                              .n_operands = 1 + n,
                                              .operands = v,
                                              .n_called = n,
                                              .called = (struct hlo_computation **)(uintptr_t)branches});
}

/* ---- with dimension numbers -------------------------------------------------------------------------- */

hlo_val hlo_dot(struct hlo_builder *b, hlo_val lhs, hlo_val rhs, const struct hlo_dot_dims *dims, enum dtype t) {
  hlo_val v[] = {lhs, rhs};
  if (!dtype_size(t))
    return hlo_build_refuse(b, "dot: unknown data type");
  return hlo_build_append(b, NULL,
                          &(struct hlo_instr){.op = HLO_DOT,
                                              .shape = {.dtype = t},
                                              .n_operands = 2,
                                              .operands = v,
                                              .attrs = &(struct hlo_attrs){.dot = dims}});
}

hlo_val hlo_gather(struct hlo_builder *b, hlo_val x, hlo_val indices, const struct hlo_gather_dims *dims) {
  hlo_val v[] = {x, indices};
  return hlo_build_append(
      b, NULL,
      &(struct hlo_instr){
          .op = HLO_GATHER, .n_operands = 2, .operands = v, .attrs = &(struct hlo_attrs){.gather = dims}});
}
