/* move_reshape: computes element-wise instructions before a reshape or transpose instead of after it.
 *
 *     add(reshape(x), reshape(y))              ==>  reshape(add(x, y))
 *     multiply(transpose(x), broadcast(2))     ==>  transpose(multiply(x, broadcast(2)))
 *
 * A reshape or transpose that moves down meets those below it, and the algebraic simplifier, which runs next, merges
 * them.  All operands must be rearranged from the same shape in the same way, or be splats, which can have any shape.  A
 * rearrangement with another user would be needed twice, so it stays.  So do pinned instructions (rewrite.h), because
 * annotations refer to the shape as it was written.  One walk in order moves a chain as a whole.  Linear.
 */
#include "hlo/passes.h"
#include "hlo/rewrite.h"

struct mover {
  struct arena *arena;
  uint8_t *n_uses; /* by id: number of uses as an operand, at most UINT8_MAX; has room for new instructions */
};

static bool is_elementwise(const struct hlo_instr *i) {
  switch (hlo_op_class(i->op)) {
  case HC_UNARY:
    return i->op != HLO_COPY; /* it makes a new buffer, which may be a result */
  case HC_BINARY:
    return true;
  default:
    return i->op == HLO_COMPARE || i->op == HLO_SELECT || i->op == HLO_CONVERT || i->op == HLO_IS_FINITE;
  }
}

static bool is_scalar_everywhere(const struct hlo_instr *x) {
  return x->op == HLO_BROADCAST && !x->operands[0]->shape.rank && !hlo_rewrite_is_pinned(x);
}

static bool is_rearrangement(const struct hlo_instr *x) {
  return (x->op == HLO_RESHAPE || x->op == HLO_TRANSPOSE) && !hlo_rewrite_is_pinned(x);
}

static bool is_same_rearrangement(const struct hlo_instr *x, const struct hlo_instr *y) {
  if (x->op != y->op || !hlo_shape_same_dims(&x->operands[0]->shape, &y->operands[0]->shape))
    return false;
  for (int k = 0; x->op == HLO_TRANSPOSE && k < x->attrs->dimensions.n; k++)
    if (x->attrs->dimensions.v[k] != y->attrs->dimensions.v[k])
      return false;
  return true;
}

/* The rearrangement that all of i's operands share, or NULL. */
static const struct hlo_instr *shared_rearrangement(const struct mover *v, const struct hlo_instr *i) {
  const struct hlo_instr *found = NULL;
  if (!is_elementwise(i) || hlo_rewrite_is_pinned(i) || !i->shape.rank)
    return NULL;
  for (int k = 0; k < i->n_operands; k++) {
    const struct hlo_instr *x = i->operands[k];
    int uses = 0;
    if (is_scalar_everywhere(x))
      continue;
    for (int j = 0; j < i->n_operands; j++)
      uses += i->operands[j] == x;
    if (!is_rearrangement(x) || v->n_uses[x->id] != uses || (found && !is_same_rearrangement(x, found)))
      return NULL;
    found = x;
  }
  return found;
}

static struct hlo_instr *move(struct mover *v, struct hlo_instr *i, const struct hlo_instr *by) {
  const struct hlo_shape *from = &by->operands[0]->shape;
  struct hlo_instr *operands[3];
  struct hlo_shape shape = *from;

  for (int k = 0; k < i->n_operands; k++) {
    struct hlo_instr *x = i->operands[k];
    if (!is_scalar_everywhere(x)) {
      operands[k] = x->operands[0];
      continue;
    }
    shape.dtype = x->shape.dtype;
    operands[k] = hlo_insert(i, HLO_BROADCAST, NULL, shape, 1, x->operands);
    hlo_rewrite_inherit_places(operands[k], x);
  }
  shape.dtype = i->shape.dtype;
  struct hlo_instr *moved = hlo_rewrite_replace(i, shape, operands);
  struct hlo_instr *down = hlo_insert(i, by->op, NULL, i->shape, 1, &moved);
  down->attrs = by->attrs;
  for (int k = 0; k < i->n_operands; k++)
    if (!is_scalar_everywhere(i->operands[k]))
      hlo_rewrite_inherit_places(down, i->operands[k]);
  v->n_uses[moved->id] = 1;
  v->n_uses[down->id] = v->n_uses[i->id];
  return down;
}

static void make_room(struct mover *v, const struct hlo_module *m) {
  int room = m->next_id;
  for (const struct hlo_computation *c = m->computations; c; c = c->next)
    room += 5 * c->n_instrs; /* for each instruction at most: three operands, itself, and the rearrangement after it */
  v->n_uses = arena_new_array(v->arena, uint8_t, (size_t)room);
}

static void count_uses(struct mover *v, const struct hlo_computation *c) {
  hlo_for_each(i, c) {
    for (int k = 0; k < i->n_operands; k++) {
      uint8_t *n = &v->n_uses[i->operands[k]->id];
      *n += *n < UINT8_MAX;
    }
  }
}

void hlo_reshape_mover(struct hlo_module *m, struct hlo_pass_result *r) {
  struct arena scratch;
  struct mover v = {.arena = &scratch};
  arena_init(&scratch);
  hlo_rewrite_begin(m);
  make_room(&v, m);
  for (struct hlo_computation *c = m->computations; c; c = c->next) {
    if (!hlo_may_have(c, HLO_RESHAPE) && !hlo_may_have(c, HLO_TRANSPOSE))
      continue;
    count_uses(&v, c);
    hlo_for_each(i, c) {
      hlo_rewrite_forward_operands(i);
      hlo_step(i, "compute-before-reshape");
      const struct hlo_instr *by = i == c->root ? NULL : shared_rearrangement(&v, i);
      if (!by)
        continue;
      struct hlo_instr *heir = move(&v, i, by);
      hlo_rewrite_inherit(heir, i);
      hlo_rewrite_remove(i, heir);
      r->changed = true;
    }
  }
  hlo_rewrite_end(m);
  arena_clear(&scratch);
}
