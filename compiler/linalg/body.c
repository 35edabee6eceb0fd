/* body: writes called computations on scalars (combiners, comparators, the function of a map) into the body of the
 * operation that calls them.
 */
#include <assert.h>

#include "linalg/impl.h"

/* The depth to which nested calls are inlined.  A deeper call is refused. */
enum { CALL_DEPTH_MAX = 16 };

static const struct hlo_instr *obstacle(const struct hlo_computation *c, int depth);

/* True if body_write can write i. */
static bool is_writable(const struct hlo_instr *i, const struct hlo_computation *c, int depth) {
  const bool is_scalar = i->shape.dtype != DT_TUPLE && !i->shape.rank;

  switch (i->op) {
  case HLO_PARAMETER:
    return is_scalar;
  case HLO_CONSTANT:
    return !i->shape.rank;
  case HLO_TUPLE:
    return i == c->root;
  case HLO_RESHAPE:
  case HLO_BROADCAST:
    return !i->shape.rank && !i->operands[0]->shape.rank;
  case HLO_CALL:
    return depth < CALL_DEPTH_MAX && is_scalar && !obstacle(i->called[0], depth + 1);
  default:
    return is_scalar && i->n_operands <= 3 && lower_is_elementwise(i->op) && scalar_is_supported(i);
  }
}

/* Returns the first instruction of c that cannot be written, or NULL. */
static const struct hlo_instr *obstacle(const struct hlo_computation *c, int depth) {
  hlo_for_each(i, c) {
    if (!is_writable(i, c, depth))
      return i;
  }
  return NULL;
}

enum status body_check(struct lower *l, const struct hlo_instr *i, const struct hlo_computation *c) {
  const struct hlo_instr *x = obstacle(c, 0);
  return x ? lower_refuse(l, i, "its computation %s has a %s, which is not one of single elements", c->name,
                          hlo_op_name(x->op))
           : ST_OK;
}

static MlirValue write_instr(struct lower *l, struct ir_builder *b, const struct hlo_instr *i, MlirValue const *args) {
  const struct hlo_instr *left, *right;
  MlirValue x[3] = {{NULL}};

  if (i->op == HLO_PARAMETER)
    return args[i->attrs->parameter_number];
  if (i->op == HLO_CONSTANT)
    return ir_element(b, i->shape.dtype, i->attrs->literal->data);
  if (i->op == HLO_CALL) {
    MlirValue *v = arena_new_array(&l->arena, MlirValue, (size_t)i->n_operands), result = {NULL};
    for (int k = 0; k < i->n_operands; k++)
      v[k] = node_of(l, i->operands[k])->scalar;
    body_write(l, b, i->called[0], v, &result);
    return result;
  }
  if (scalar_plain_order(i, &left, &right))
    return scalar_plain_compare(b, i->attrs->direction, node_of(l, left)->scalar, node_of(l, right)->scalar);
  assert(i->n_operands <= 3); /* body_check */
  for (int k = 0; k < i->n_operands; k++)
    x[k] = node_of(l, i->operands[k])->scalar;
  return i->op == HLO_RESHAPE || i->op == HLO_BROADCAST ? x[0] : scalar_apply(b, i, x);
}

void body_write(struct lower *l, struct ir_builder *b, const struct hlo_computation *c, MlirValue const *args,
                MlirValue *results) {
  hlo_for_each(i, c) {
    if (i->op != HLO_TUPLE)
      node_of(l, i)->scalar = write_instr(l, b, i, args);
  }
  if (c->root->op != HLO_TUPLE)
    results[0] = node_of(l, c->root)->scalar;
  for (int k = 0; c->root->op == HLO_TUPLE && k < c->root->n_operands; k++)
    results[k] = node_of(l, c->root->operands[k])->scalar;
}
