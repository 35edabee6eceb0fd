/* inline: replaces calls, and conditionals with a known branch, by the instructions of the called computation.
 *
 *     call(x), to_apply=f                     ==>  f's instructions, with x for its parameter
 *     conditional(true, x, y), f, g           ==>  f's instructions, with x for its parameter
 *     conditional(p, x, x), f, f              ==>  f's instructions, with x for its parameter
 *
 * Callees precede their callers, so a copied computation has no calls left.  The provenance of a copy is the instruction
 * that it copies.  A module that would grow beyond GROWTH_MAX keeps its calls.  Callees without callers stay for dce.
 */
#include "hlo/inliner.h"

#include "hlo/carry.h"
#include "hlo/literal.h"
#include "hlo/passes.h"
#include "hlo/rewrite.h"

enum { GROWTH_MAX = 100000 };

struct hlo_instr *hlo_inline_at(struct hlo_inliner *in, struct hlo_instr *i, const struct hlo_computation *c,
                                struct hlo_instr *const *args) {
  struct arena scratch;
  struct hlo_instr *root = NULL;
  arena_init(&scratch);
  struct hlo_instr **made = arena_new_array(&scratch, struct hlo_instr *, (size_t)c->n_instrs);
  int n = 0;
  for (struct hlo_instr *x = c->first; x; x = x->next, n++) {
    struct hlo_instr **operands = arena_new_array(&scratch, struct hlo_instr *, (size_t)x->n_operands);
    for (int k = 0; k < x->n_operands; k++)
      operands[k] = made[x->operands[k]->mark];
    made[n] = x->op == HLO_PARAMETER ? args[x->attrs->parameter_number] : hlo_rewrite_copy(i, x, x->shape, operands);
    x->mark = n; /* its number, for its users here */
    if (x == c->root)
      root = made[n];
  }
  in->n_instrs += n;
  arena_clear(&scratch);
  return root;
}

bool hlo_inline_can(const struct hlo_inliner *in, const struct hlo_computation *c) {
  for (const struct hlo_instr *x = c->first; x; x = x->next)
    if (x->is_fused)
      return false;
  return c->root && in->n_instrs + c->n_instrs <= GROWTH_MAX;
}

static void replace(struct hlo_inliner *in, struct hlo_instr *i, struct hlo_instr *heir) {
  if (i->parent->root == i)
    i->parent->root = heir;
  hlo_rewrite_inherit_places(heir, i);
  hlo_rewrite_remove(i, heir);
  in->changed = true;
}

static void walk(struct hlo_inliner *in, struct hlo_computation *c, enum hlo_op op, hlo_inline_rule *rule) {
  hlo_for_each(i, c) {
    hlo_rewrite_forward_operands(i);
    hlo_step(i, "inline");
    struct hlo_instr *heir = i->op != op || hlo_rewrite_is_pinned(i) ? NULL : rule(in, i);
    if (heir && !(i == in->m->entry->root && heir->op == HLO_PARAMETER))
      replace(in, i, heir);
  }
}

bool hlo_inline_walk(struct hlo_module *m, struct hlo_pass_result *r, enum hlo_op op, hlo_inline_rule *rule) {
  struct hlo_inliner in = {.m = m};
  hlo_rewrite_begin(m);
  for (struct hlo_computation *c = m->computations; c; c = c->next)
    in.n_instrs += c->n_instrs;
  for (struct hlo_computation *c = m->computations; c; c = c->next)
    if (hlo_may_have(c, op))
      walk(&in, c, op, rule);
  hlo_rewrite_end(m);
  r->changed |= in.changed;
  return in.keeps_tuple;
}

/* ---- the passes ------------------------------------------------------------------------------------------ */

static struct hlo_instr *inline_call(struct hlo_inliner *in, struct hlo_instr *i) {
  return hlo_inline_can(in, i->called[0]) ? hlo_inline_at(in, i, i->called[0], i->operands) : NULL;
}

void hlo_call_inliner(struct hlo_module *m, struct hlo_pass_result *r) {
  hlo_inline_walk(m, r, HLO_CALL, inline_call);
}

/* True if all branches are the same computation with the same operand. */
static bool branches_agree(const struct hlo_instr *i) {
  for (int k = 1; k < i->n_called; k++)
    if (i->called[k] != i->called[0] || i->operands[1 + k] != i->operands[1])
      return false;
  return true;
}

/* The number of the branch that i always takes, or -1. */
static int64_t known_branch(const struct hlo_instr *i) {
  if (i->operands[0]->op != HLO_CONSTANT)
    return branches_agree(i) ? 0 : -1;
  const int64_t v = hlo_literal_int(i->operands[0]->attrs->literal, 0);
  return i->operands[0]->shape.dtype == DT_BOOL ? !v : v >= 0 && v < i->n_called ? v : i->n_called - 1;
}

static struct hlo_instr *choose_branch(struct hlo_inliner *in, struct hlo_instr *i) {
  const int64_t k = known_branch(i);
  if (k >= 0 && hlo_inline_can(in, i->called[k]))
    return hlo_inline_at(in, i, i->called[k], i->operands + 1 + k);
  in->keeps_tuple |= i->shape.dtype == DT_TUPLE;
  return NULL;
}

void hlo_conditional_simplifier(struct hlo_module *m, struct hlo_pass_result *r) {
  if (hlo_inline_walk(m, r, HLO_CONDITIONAL, choose_branch))
    hlo_carry_shrink(m, r, HLO_CONDITIONAL);
}
