/* reduce: lowers a reduce to a fill with the initial value and a generic with a reduction iterator for each reduced
 * axis.
 *
 * If all users of the reduce insert the reduced axes again with size 1 (NumPy's keepdims, with or without a broadcast),
 * the generic computes that shape itself; its output map then has the constant 0 for these axes.  Sums and products of
 * floats narrower than f32 are accumulated in f32 and rounded once, as in XLA and in the hardware.
 */
#include <assert.h>

#include "linalg/impl.h"

bool reduce_has_axis(const struct hlo_instr *i, int64_t dim) {
  for (int k = 0; k < i->attrs->dimensions.n; k++)
    if (i->attrs->dimensions.v[k] == dim)
      return true;
  return false;
}

static bool puts_axes_back(const struct hlo_instr *reduce, const struct hlo_instr *reshape) {
  const struct hlo_shape *from = &reduce->operands[0]->shape, *to = &reshape->shape;

  if (from->rank != to->rank)
    return false;
  for (int d = 0; d < from->rank; d++)
    if (to->dims[d] != (reduce_has_axis(reduce, d) ? 1 : from->dims[d]))
      return false;
  return true;
}

/* True if b broadcasts the reduce's result back to all axes of the reduce's operand.  NumPy's
 * x - max(x, keepdims=True) has this form after simplification. */
static bool stretches_axes(const struct hlo_instr *reduce, const struct hlo_instr *b) {
  const int rank = reduce->operands[0]->shape.rank;

  if (b->shape.rank != rank || b->knob)
    return false;
  for (int d = 0, k = 0; d < rank; d++)
    if (!reduce_has_axis(reduce, d) && b->attrs->dimensions.v[k++] != d)
      return false;
  return true;
}

/* keeps_dims stays false for a reduce with a knob, because the knob is for the shape without the reduced axes. */
void reduce_plan(struct lower *l, const struct hlo_computation *c) {
  hlo_for_each(r, c) {
    if (r->op == HLO_REDUCE && r->n_operands == 2)
      node_of(l, r)->keeps_dims = node_of(l, r)->n_users > 0 && r != c->root && !r->knob;
  }
  hlo_for_each(i, c) {
    for (int k = 0; k < i->n_operands; k++) {
      const struct hlo_instr *r = i->operands[k];
      if (r->op == HLO_REDUCE && !(i->op == HLO_RESHAPE && puts_axes_back(r, i)) &&
          !(i->op == HLO_BROADCAST && stretches_axes(r, i)))
        node_of(l, r)->keeps_dims = false;
    }
  }
}

struct body {
  struct lower *l;
  const struct hlo_computation *computation; /* NULL: op is the combiner */
  enum hlo_op op;
  enum dtype from, to;
};

static MlirValue write_body(struct ir_builder *b, MlirValue const *args, void *user) {
  const struct body *body = user;
  MlirValue x = scalar_convert(b, args[0], body->from, body->to), pair[] = {args[1], x}, result;
  if (body->computation) {
    body_write(body->l, b, body->computation, pair, &result);
    return result;
  }
  return scalar_binary(b, body->op, body->to, args[1], x); /* the accumulator is the first operand */
}

static MlirValue initial_value(struct lower *l, const struct hlo_instr *init, enum dtype t) {
  MlirValue v = lower_is_splat(init) ? lower_splat(l, init) : ir_extract(&l->b, lower_value(l, init), 0, NULL);
  return scalar_convert(&l->b, v, init->shape.dtype, t);
}

bool reduce_is_plain(const struct hlo_instr *i) {
  const struct hlo_instr *root = i->called[0]->root;
  return root && root->shape.dtype != DT_TUPLE && hlo_can_reduce(root->op, root->shape.dtype) &&
         root->operands[0]->op == HLO_PARAMETER && root->operands[1]->op == HLO_PARAMETER &&
         root->operands[0] != root->operands[1];
}

bool reduce_rounds(const struct hlo_instr *i) {
  const enum hlo_op op = i->called[0]->root->op;
  return reduce_is_plain(i) && (op == HLO_ADD || op == HLO_MULTIPLY);
}

/* Returns the shape of the generic's result.  The reduced axes have size 1 if the reduce keeps them. */
static struct hlo_shape result_shape(struct lower *l, const struct hlo_instr *i) {
  const struct hlo_shape *x = &i->operands[0]->shape;
  int64_t *dims;

  if (!node_of(l, i)->keeps_dims)
    return i->shape;
  dims = arena_new_array(&l->arena, int64_t, (size_t)x->rank);
  for (int d = 0; d < x->rank; d++)
    dims[d] = reduce_has_axis(i, d) ? 1 : x->dims[d];
  return (struct hlo_shape){.dtype = x->dtype, .rank = x->rank, .dims = dims};
}

/* Sets the value of the reshapes that insert the reduced axes again: the reduce has computed that shape. */
static void finish_reshapes(struct lower *l, const struct hlo_instr *reduce, MlirValue v) {
  int left = node_of(l, reduce)->n_users;

  for (const struct hlo_instr *i = reduce->next; i && left; i = i->next) {
    if (!i->n_operands || i->operands[0] != reduce) /* the users are reshapes and broadcasts, with one operand */
      continue;
    left--;
    if (i->op != HLO_RESHAPE)
      continue;
    lower_set(l, i, v, lower_no_op());
    node_of(l, i)->work = node_of(l, reduce)->work;
  }
}

static const struct hlo_instr *first_reshape(const struct hlo_instr *reduce) {
  const struct hlo_instr *i = reduce->next;
  return i && i->op == HLO_RESHAPE && i->operands[0] == reduce ? i
                                                               : NULL; /* tracing puts it directly after the reduce */
}

enum status lower_reduce(struct lower *l, const struct hlo_instr *i) {
  const struct hlo_instr *x = i->operands[0], *root = i->called[0]->root;
  struct node *node = node_of(l, i);
  const enum dtype t = i->shape.dtype;
  const int rank = x->shape.rank;

  if (i->n_operands > 2)
    return lower_wide_reduce(l, i);
  assert(i->n_operands == 2);
  struct body body = {l, reduce_is_plain(i) ? NULL : i->called[0], root->op, t,
                      reduce_rounds(i) ? scalar_accumulator(t) : t};
  enum status st = body.computation ? body_check(l, i, body.computation) : ST_OK;
  if (st)
    return st;
  bool *reduction = arena_new_array(&l->arena, bool, (size_t)rank);
  int64_t results[HLO_RANK_MAX];
  int n = 0;

  for (int d = 0; d < rank; d++) {
    reduction[d] = reduce_has_axis(i, d);
    if (!reduction[d])
      results[n++] = d;
    else if (node->keeps_dims)
      results[n++] = IR_CONST(0);
  }
  if (node->keeps_dims)
    l->b.loc = lower_location(l, i, first_reshape(i));
  struct hlo_shape out = result_shape(l, i), wide = out;
  wide.dtype = body.to;
  MlirValue input = lower_value(l, x);
  MlirValue dest = ir_fill(&l->b, initial_value(l, i->operands[1], body.to), lower_empty(l, &wide));
  MlirAffineMap maps[] = {ir_identity_map(&l->b, rank), ir_map(&l->b, rank, n, results)};
  MlirOperation op = ir_linalg_generic(&l->b, &(struct ir_generic){.n_loops = rank,
                                                                   .reduction = reduction,
                                                                   .n_inputs = 1,
                                                                   .inputs = &input,
                                                                   .maps = maps,
                                                                   .output = dest,
                                                                   .body = write_body,
                                                                   .user = &body});
  MlirValue v = lower_convert_tensor(l, ir_result(op), &wide, t);

  node->work = op;
  node->n_loops = rank;
  node->extents = x->shape.dims;
  node->reduction = reduction;
  node->is_done = true;
  if (node->keeps_dims) {
    node->kept = v;
    node->kept_shape = out;
    finish_reshapes(l, i, v);
  } else {
    node->value = v;
  }
  return ST_OK;
}
