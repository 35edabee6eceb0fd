/* reduce: a fill with the initial value and a generic whose reduction iterators stay where the axes are.
 *
 * A reshape behind the reduce that only puts the reduced axes back with size 1 (NumPy's keepdims) is computed by the
 * generic itself, whose output map then has the constant 0 there.  Sums and products of floats narrower than f32 are
 * accumulated in f32 and rounded once, as XLA and the hardware do.
 */
#include "linalg/impl.h"

static bool is_reduced(const struct hlo_instr *i, int64_t dim) {
  for (int k = 0; k < i->dimensions.n; k++)
    if (i->dimensions.v[k] == dim)
      return true;
  return false;
}

static bool puts_axes_back(const struct hlo_instr *reduce, const struct hlo_instr *reshape) {
  const struct hlo_shape *from = &reduce->operands[0]->shape, *to = &reshape->shape;

  if (from->rank != to->rank)
    return false;
  for (int d = 0; d < from->rank; d++)
    if (to->dims[d] != (is_reduced(reduce, d) ? 1 : from->dims[d]))
      return false;
  return true;
}

void reduce_plan(struct lower *l, const struct hlo_computation *c) {
  hlo_for_each(i, c) {
    struct node *n = node_of(l, i);
    if (i->op == HLO_REDUCE && n->n_users == 1 && n->user->op == HLO_RESHAPE && i != c->root &&
        !(i->knob && n->user->knob) && puts_axes_back(i, n->user))
      n->keepdims = n->user;
  }
}

struct body {
  enum hlo_op op;
  enum dtype from, to;
};

static MlirValue write_body(struct emit *e, MlirValue const *args, void *user) {
  const struct body *b = user;
  MlirValue x = scalar_convert(e, args[0], b->from, b->to);
  return scalar_binary(e, b->op, b->to, args[1], x); /* accumulator first */
}

static MlirValue initial_value(struct lower *l, const struct hlo_instr *init, enum dtype t) {
  MlirValue v = lower_is_splat(init) ? lower_splat(l, init) : emit_extract(&l->e, lower_value(l, init), 0, NULL);
  return scalar_convert(&l->e, v, init->shape.dtype, t);
}

static bool is_combiner(enum hlo_op op, enum dtype t) {
  switch (op) {
  case HLO_ADD:
  case HLO_MULTIPLY:
  case HLO_MAXIMUM:
  case HLO_MINIMUM:
    return true;
  case HLO_AND:
  case HLO_OR:
    return !dtype_is_float(t);
  default:
    return false;
  }
}

enum status lower_reduce(struct lower *l, const struct hlo_instr *i) {
  const struct hlo_instr *x = i->operands[0], *out = node_of(l, i)->keepdims ? node_of(l, i)->keepdims : i;
  const struct hlo_instr *root = i->called[0]->root;
  const enum dtype t = i->shape.dtype;
  const int rank = x->shape.rank;

  if (!root || !is_combiner(root->op, t) || root->operands[0] == root->operands[1])
    return lower_refuse(l, i, "its combiner %s is not a single add, multiply, maximum, minimum, and or or",
                        root ? hlo_op_name(root->op) : "");
  const bool rounds = root->op == HLO_ADD || root->op == HLO_MULTIPLY;
  struct body body = {root->op, t, rounds ? scalar_accumulator(t) : t};
  bool *reduction = arena_new_array(&l->arena, bool, (size_t)rank);
  int64_t results[HLO_RANK_MAX];
  int n = 0;

  for (int d = 0; d < rank; d++) {
    reduction[d] = is_reduced(i, d);
    if (!reduction[d])
      results[n++] = d;
    else if (out != i)
      results[n++] = EMIT_CONST(0);
  }
  if (out != i)
    l->e.loc = lower_location(l, i, out);
  MlirValue input = lower_value(l, x);
  MlirValue dest = emit_fill(&l->e, initial_value(l, i->operands[1], body.to),
                             emit_empty(&l->e, body.to, out->shape.rank, out->shape.dims));
  MlirAffineMap maps[] = {emit_identity_map(&l->e, rank), emit_map(&l->e, rank, n, results)};
  MlirOperation op = emit_linalg_generic(&l->e, &(struct emit_generic){.n_loops = rank,
                                                                       .reduction = reduction,
                                                                       .n_inputs = 1,
                                                                       .inputs = &input,
                                                                       .maps = maps,
                                                                       .output = dest,
                                                                       .body = write_body,
                                                                       .user = &body});
  struct hlo_shape wide = out->shape;
  wide.dtype = body.to;
  lower_set(l, out, convert_tensor(l, emit_result(op), &wide, t), op);

  struct node *done[] = {node_of(l, i), node_of(l, out)};
  for (int k = 0; k < 2; k++) {
    done[k]->is_done = true;
    done[k]->work = op;
    done[k]->n_loops = rank;
    done[k]->extents = x->shape.dims;
    done[k]->reduction = reduction;
  }
  return ST_OK;
}
