/* simplify: XLA's algebraic simplifier, the part that kernels meet.
 *
 * One walk in order.  An instruction's operands are replaced by their simplified forms; then rules are applied to it
 * until none matches.  A replacement precedes the instruction, so users follow scratch only once.  The number of rounds
 * is bounded, because each rule leaves fewer instructions to look through.  Constants without users stay for dce.
 *
 * Not changed: roots (the result's copy, combiners), and a pinned instruction (rewrite.h) that would be replaced by a
 * parameter, a constant or another pinned instruction.
 */
#include "hlo/simplify.h"

#include "hlo/literal.h"
#include "hlo/passes.h"
#include "hlo/rewrite.h"

struct hlo_instr *hlo_simplify_new(struct hlo_instr *i, enum hlo_op op, struct hlo_shape shape, int n_operands,
                                   struct hlo_instr *const *operands) {
  return hlo_insert(i, op, NULL, shape, n_operands, operands);
}

struct hlo_instr *hlo_simplify_splat(struct hlo_simplifier *s, struct hlo_instr *i, double v) {
  struct arena *a = s->m->arena;
  struct hlo_literal *l = arena_new(a, struct hlo_literal);
  enum dtype t = i->shape.dtype;
  if (hlo_rewrite_is_pinned(i))
    return NULL;
  void *data = arena_alloc(a, dtype_size(t));
  hlo_literal_store(t, v, data);
  *l = (struct hlo_literal){{.dtype = t}, data, dtype_size(t)};
  struct hlo_instr *c = hlo_simplify_new(i, HLO_CONSTANT, l->shape, 0, NULL);
  hlo_set_attrs(c, &(struct hlo_attrs){.literal = l});
  if (!i->shape.rank)
    return c;
  hlo_rewrite_inherit_places(c, i);
  return hlo_simplify_new(i, HLO_BROADCAST, i->shape, 1, &c);
}

bool hlo_simplify_skips(struct hlo_simplifier *s, const struct hlo_instr *i, int k, enum hlo_op op) {
  struct hlo_instr *x = i->operands[k];
  if (x->op != op || hlo_rewrite_is_pinned(x) || s->n_skipped == SKIPPED_MAX)
    return false;
  s->skipped[s->n_skipped++] = x;
  return true;
}

const struct hlo_literal *hlo_simplify_splat_of(const struct hlo_instr *x) {
  /* Simplified operands leave at most reshape and broadcast between a scalar constant and its use. */
  for (int depth = 0; depth < 3 && (x->op == HLO_BROADCAST || x->op == HLO_RESHAPE); depth++)
    x = x->operands[0];
  return x->op == HLO_CONSTANT && hlo_shape_elements(&x->shape) == 1 ? x->attrs->literal : NULL;
}

/* ---- the engine -------------------------------------------------------------------------------------- */

static bool may_replace(const struct hlo_instr *i, const struct hlo_instr *heir) {
  if (!hlo_shape_equal(&i->shape, &heir->shape))
    return false;
  return !hlo_rewrite_is_pinned(i) || (!hlo_rewrite_is_pinned(heir) && hlo_op_class(heir->op) != HC_LEAF);
}

/* The replacement of i after one rule, or NULL. */
static struct hlo_instr *apply_rules(struct hlo_simplifier *s, struct hlo_instr *i) {
  s->n_skipped = 0;
  struct hlo_instr *heir = hlo_simplify_math(s, i);
  if (!heir) {
    s->n_skipped = 0;
    heir = hlo_simplify_shape(s, i);
  }
  if (!heir || !may_replace(i, heir))
    return NULL;
  hlo_rewrite_inherit(heir, i);
  for (int k = 0; k < s->n_skipped; k++)
    hlo_rewrite_inherit_places(heir, s->skipped[k]);
  return heir;
}

static void simplify_instr(struct hlo_simplifier *s, struct hlo_instr *i) {
  enum { ROUNDS_MAX = 16 };
  struct hlo_instr *r = i;

  s->first_new_id = s->m->next_id;
  for (int round = 0; round < ROUNDS_MAX && (r == i || r->id >= s->first_new_id); round++) {
    struct hlo_instr *heir = apply_rules(s, r);
    if (!heir)
      break;
    if (r != i)
      hlo_rewrite_remove(r, heir);
    r = heir;
  }
  if (r != i) {
    hlo_rewrite_remove(i, r);
    s->changed = true;
  }
}

void hlo_algebraic_simplifier(struct hlo_module *m, struct hlo_pass_result *r) {
  struct hlo_simplifier s = {.m = m};
  hlo_rewrite_begin(m);
  for (struct hlo_computation *c = m->computations; c; c = c->next)
    hlo_for_each(i, c) {
      hlo_rewrite_forward_operands(i);
      hlo_step(i, "simplify");
      if (i->op != HLO_PARAMETER && i != c->root)
        simplify_instr(&s, i);
    }
  hlo_rewrite_end(m);
  r->changed |= s.changed;
}
