/* inline: computations on scalars (combiners, comparators) written out in the body of whoever calls them, and loop nests
 * that carry tensors.
 */
#include "linalg/impl.h"

/* ---- scalar computations -------------------------------------------------------------------------------- */

enum { DEPTH_MAX = 16 };

static bool is_inlined(const struct hlo_instr *i, const struct hlo_computation *c, int depth) {
  switch (i->op) {
  case HLO_PARAMETER:
    return i->shape.dtype != DT_TUPLE && !i->shape.rank;
  case HLO_CONSTANT:
    return !i->shape.rank;
  case HLO_TUPLE:
    return i == c->root;
  case HLO_RESHAPE:
  case HLO_BROADCAST:
    return !i->shape.rank && !i->operands[0]->shape.rank;
  case HLO_CALL:
    return depth < DEPTH_MAX && i->shape.dtype != DT_TUPLE && !i->shape.rank &&
           !inline_obstacle_at(i->called[0], depth + 1);
  default:
    return i->shape.dtype != DT_TUPLE && !i->shape.rank && i->n_operands <= 3 && lower_is_elementwise(i->op) &&
           scalar_is_supported(i);
  }
}

const struct hlo_instr *inline_obstacle_at(const struct hlo_computation *c, int depth) {
  hlo_for_each(i, c) {
    if (!is_inlined(i, c, depth))
      return i;
  }
  return NULL;
}

enum status inline_check(struct lower *l, const struct hlo_instr *i, const struct hlo_computation *c) {
  const struct hlo_instr *x = inline_obstacle_at(c, 0);
  return x ? lower_refuse(l, i, "its computation %s has a %s, which is not one of single elements", c->name,
                          hlo_op_name(x->op))
           : ST_OK;
}

static MlirValue inline_instr(struct lower *l, struct emit *e, const struct hlo_instr *i, MlirValue const *args) {
  const struct hlo_instr *a, *b;
  MlirValue x[3] = {{NULL}};
  if (i->op == HLO_PARAMETER)
    return args[i->attrs->parameter_number];
  if (i->op == HLO_CONSTANT)
    return emit_element(e, i->shape.dtype, i->attrs->literal->data);
  if (i->op == HLO_CALL) {
    MlirValue *v = arena_new_array(&l->arena, MlirValue, (size_t)i->n_operands), result = {NULL};
    for (int k = 0; k < i->n_operands; k++)
      v[k] = node_of(l, i->operands[k])->scalar;
    inline_computation(l, e, i->called[0], v, &result);
    return result;
  }
  if (scalar_plain_order(i, &a, &b))
    return scalar_plain_compare(e, i->attrs->direction, node_of(l, a)->scalar, node_of(l, b)->scalar);
  for (int k = 0; k < i->n_operands; k++)
    x[k] = node_of(l, i->operands[k])->scalar;
  return i->op == HLO_RESHAPE || i->op == HLO_BROADCAST ? x[0] : scalar_apply(e, i, x);
}

void inline_computation(struct lower *l, struct emit *e, const struct hlo_computation *c, MlirValue const *args,
                        MlirValue *results) {
  hlo_for_each(i, c) {
    if (i->op != HLO_TUPLE)
      node_of(l, i)->scalar = inline_instr(l, e, i, args);
  }
  if (c->root->op != HLO_TUPLE)
    results[0] = node_of(l, c->root)->scalar;
  for (int k = 0; c->root->op == HLO_TUPLE && k < c->root->n_operands; k++)
    results[k] = node_of(l, c->root->operands[k])->scalar;
}

/* ---- loops ----------------------------------------------------------------------------------------------- */

struct nest {
  const struct emit_loops *loops;
  MlirValue at[2 * HLO_RANK_MAX];
};

static void run_nest(struct emit *e, struct nest *n, int depth, MlirValue *carried) {
  const struct emit_loops *p = n->loops;
  if (depth == p->n) {
    p->body(e, n->at, carried, p->user);
    return;
  }
  MlirType *types = arena_new_array(e->arena, MlirType, (size_t)p->n_carried + 1);
  MlirLocation *locs = arena_new_array(e->arena, MlirLocation, (size_t)p->n_carried + 1);
  MlirValue *operands = arena_new_array(e->arena, MlirValue, (size_t)p->n_carried + 3);
  MlirRegion region = mlirRegionCreate();
  struct emit body = *e;

  operands[0] = emit_index(e, 0);
  operands[1] = emit_index(e, p->extents[depth]);
  operands[2] = emit_index(e, 1);
  types[0] = emit_index_type(e);
  locs[0] = e->loc;
  for (int k = 0; k < p->n_carried; k++) {
    operands[3 + k] = carried[k];
    types[1 + k] = mlirValueGetType(carried[k]);
    locs[1 + k] = e->loc;
  }
  body.block = mlirBlockCreate(1 + p->n_carried, types, locs);
  mlirRegionAppendOwnedBlock(region, body.block);
  n->at[depth] = mlirBlockGetArgument(body.block, 0);
  for (int k = 0; k < p->n_carried; k++)
    carried[k] = mlirBlockGetArgument(body.block, 1 + k);
  run_nest(&body, n, depth + 1, carried);
  emit_operation(&body, &(struct emit_op){.name = "scf.yield", .n_operands = p->n_carried, .operands = carried});
  MlirOperation op = emit_operation(e, &(struct emit_op){.name = "scf.for",
                                                         .n_operands = 3 + p->n_carried,
                                                         .operands = operands,
                                                         .n_results = p->n_carried,
                                                         .results = types + 1,
                                                         .n_regions = 1,
                                                         .regions = &region});
  for (int k = 0; k < p->n_carried; k++)
    carried[k] = mlirOperationGetResult(op, k);
}

void emit_loop_nest(struct emit *e, const struct emit_loops *p, MlirValue *carried) {
  struct nest n = {.loops = p};
  for (int k = 0; k < p->n; k++)
    if (p->extents[k] == 0)
      return;
  run_nest(e, &n, 0, carried);
}

MlirValue emit_insert(struct emit *e, MlirValue scalar, MlirValue tensor, int n, MlirValue const *at) {
  MlirValue operands[HLO_RANK_MAX + 2] = {scalar, tensor};
  for (int k = 0; k < n; k++)
    operands[2 + k] = at[k];
  return emit_op1(e, "tensor.insert", mlirValueGetType(tensor), n + 2, operands);
}
