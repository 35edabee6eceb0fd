/* inline: calls, conditionals whose branch is known, and loops that never run, give way to what they do.
 *
 *     call(x), to_apply=f                     ==>  f's instructions, with x for its parameter
 *     conditional(true, x, y), f, g           ==>  f's instructions, with x for its parameter
 *     while(x), condition that is always false  ==>  x
 *
 * Callees stand before their callers, so what is copied has no calls left in it.  Copies come from the instructions they
 * copy.  A module that would grow beyond GROWTH_MAX keeps its calls.  Callees that nobody calls any more stay for dce.
 */
#include "hlo/literal.h"
#include "hlo/passes.h"
#include "hlo/rewrite.h"

enum { GROWTH_MAX = 100000 };

struct inliner {
  struct hlo_module *m;
  int n_instrs; /* of the module, as it grows */
  bool changed;
};

static struct hlo_instr *copy_instr(struct hlo_instr *before, const struct hlo_instr *x, struct hlo_instr **operands) {
  struct hlo_instr *i = hlo_insert(before, x->op, x->name, x->shape, x->n_operands, operands);
  struct hlo_instr fresh = *i;
  *i = *x; /* attributes are immutable and may be shared */
  i->id = fresh.id;
  i->name = fresh.name;
  i->operands = fresh.operands;
  i->parent = fresh.parent;
  i->prev = fresh.prev;
  i->next = fresh.next;
  i->n_from = 0;
  i->from = NULL;
  i->locs = (struct src_locs){0};
  i->scratch = NULL;
  i->mark = 0;
  rewrite_inherit_places(i, x);
  i->knob = x->knob;
  return i;
}

/* c's instructions in front of i, with args for its parameters; what is c's root there. */
static struct hlo_instr *inline_at(struct inliner *in, struct hlo_instr *i, const struct hlo_computation *c,
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
    made[n] = x->op == HLO_PARAMETER ? args[x->parameter_number] : copy_instr(i, x, operands);
    x->mark = n; /* its number, for its users here; callees carry no wishes between passes' marks */
    if (x == c->root)
      root = made[n];
  }
  in->n_instrs += n;
  for (struct hlo_instr *x = c->first; x; x = x->next)
    x->mark = 0;
  arena_clear(&scratch);
  return root;
}

/* Fuse groups live on marks, which numbering would overwrite. */
static bool can_inline(const struct inliner *in, const struct hlo_computation *c) {
  for (const struct hlo_instr *x = c->first; x; x = x->next)
    if (x->mark)
      return false;
  return c->root && in->n_instrs + c->n_instrs <= GROWTH_MAX;
}

static void replace(struct inliner *in, struct hlo_instr *i, struct hlo_instr *heir) {
  if (i->parent->root == i)
    i->parent->root = heir;
  rewrite_inherit_places(heir, i);
  rewrite_remove(i, heir);
  in->changed = true;
}

static void walk(struct hlo_module *m, struct hlo_pass_result *r,
                 struct hlo_instr *(*rule)(struct inliner *, struct hlo_instr *)) {
  struct inliner in = {.m = m};
  rewrite_begin(m);
  for (struct hlo_computation *c = m->computations; c; c = c->next)
    in.n_instrs += c->n_instrs;
  for (struct hlo_computation *c = m->computations; c; c = c->next)
    hlo_for_each(i, c) {
      rewrite_forward_operands(i);
      struct hlo_instr *heir = rewrite_is_pinned(i) ? NULL : rule(&in, i);
      if (heir && !(i == m->entry->root && heir->op == HLO_PARAMETER))
        replace(&in, i, heir);
    }
  rewrite_end(m);
  r->changed |= in.changed;
}

/* ---- the passes ------------------------------------------------------------------------------------------ */

static struct hlo_instr *inline_call(struct inliner *in, struct hlo_instr *i) {
  return i->op == HLO_CALL && can_inline(in, i->called[0]) ? inline_at(in, i, i->called[0], i->operands) : NULL;
}

void hlo_call_inliner(struct hlo_module *m, struct hlo_pass_result *r) {
  walk(m, r, inline_call);
}

static struct hlo_instr *choose_branch(struct inliner *in, struct hlo_instr *i) {
  if (i->op != HLO_CONDITIONAL || i->operands[0]->op != HLO_CONSTANT)
    return NULL;
  const int64_t v = literal_int(i->operands[0]->literal, 0);
  const int64_t k = i->operands[0]->shape.dtype == DT_BOOL ? !v : v >= 0 && v < i->n_called ? v : i->n_called - 1;
  return can_inline(in, i->called[k]) ? inline_at(in, i, i->called[k], i->operands + 1 + k) : NULL;
}

void hlo_conditional_simplifier(struct hlo_module *m, struct hlo_pass_result *r) {
  walk(m, r, choose_branch);
}

static struct hlo_instr *skip_loop(struct inliner *in, struct hlo_instr *i) {
  (void)in;
  if (i->op != HLO_WHILE)
    return NULL;
  const struct hlo_instr *goes_on = i->called[1]->root;
  return goes_on->op == HLO_CONSTANT && !literal_int(goes_on->literal, 0) ? i->operands[0] : NULL;
}

void hlo_while_loop_simplifier(struct hlo_module *m, struct hlo_pass_result *r) {
  walk(m, r, skip_loop);
}
