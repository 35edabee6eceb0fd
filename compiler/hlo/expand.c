/* expand: the pass op-expander: instructions that no later stage knows are written out in those that all know.
 *
 *     reduce-precision, bitcast-convert between widths  ==>  arithmetic on the bits                  expand_bits.c
 *     rng-bit-generator                                 ==>  Philox or Threefry on 32-bit integers   expand_rng.c
 *     cholesky, triangular-solve, LAPACK's calls        ==>  a loop over the columns                 expand_solve.c
 *
 * First of all passes: later ones change types, inline calls and count loops, and find only what they know.  What was
 * written out leaves tuples and bit casts that nobody needs; they are removed here, because 64-bit ones among them would
 * keep the module in 64 bits.  Linear.
 */
#include "hlo/expand.h"

#include "hlo/passes.h"
#include "hlo/rewrite.h"

hlo_val hlo_expand_like(struct hlo_builder *b, hlo_val x, double v) {
  return x ? hlo_full(b, x->shape.dtype, x->shape.rank, x->shape.dims, v) : NULL;
}

hlo_val hlo_expand_with(struct hlo_builder *b, enum hlo_op op, hlo_val x, double v) {
  return hlo_binary(b, op, x, hlo_expand_like(b, x, v));
}

hlo_val hlo_expand_part(struct hlo_builder *b, hlo_val x, int d, int64_t start, int64_t limit) {
  struct hlo_slice_dim dims[HLO_RANK_MAX];
  if (!x)
    return NULL;
  for (int k = 0; k < x->shape.rank; k++)
    dims[k] = k == d ? (struct hlo_slice_dim){start, limit, 1} : (struct hlo_slice_dim){0, x->shape.dims[k], 1};
  return hlo_slice(b, x, dims);
}

/* What an element of a tuple is that a rule made. */
static hlo_val take_element(struct hlo_builder *b, struct hlo_instr *i) {
  (void)b;
  return i->operands[0]->op == HLO_TUPLE ? i->operands[0]->operands[i->attrs->tuple_index] : i;
}

static hlo_expand_rule *const rules[HLO_OP_COUNT] = {
    [HLO_REDUCE_PRECISION] = hlo_expand_reduce_precision,
    [HLO_BITCAST_CONVERT] = hlo_expand_bitcast_convert,
    [HLO_RNG_BIT_GENERATOR] = hlo_expand_rng,
    [HLO_CHOLESKY] = hlo_expand_cholesky,
    [HLO_TRIANGULAR_SOLVE] = hlo_expand_triangular_solve,
    [HLO_CUSTOM_CALL] = hlo_expand_lapack,
};

static bool has_work(const struct hlo_computation *c) {
  for (int op = 0; op < HLO_OP_COUNT; op++)
    if (rules[op] && hlo_may_have(c, (enum hlo_op)op))
      return true;
  return false;
}

static bool comes_after(const struct hlo_computation *c, const struct hlo_computation *other) {
  while (other && other != c)
    other = other->next;
  return other == c;
}

/* Gives i's places to x, and to the instructions of the computations that it calls if they are new; these come to stand
 * before i's. */
static void adopt(const struct hlo_instr *i, struct hlo_instr *x, int first_new) {
  hlo_rewrite_inherit_places(x, i);
  for (int k = 0; k < x->n_called; k++) {
    struct hlo_computation *c = x->called[k];
    if (comes_after(c, i->parent))
      hlo_computation_move_before(c, i->parent);
    if (c->id >= first_new)
      hlo_for_each(y, c) hlo_rewrite_inherit_places(y, i);
  }
}

static void replace(struct hlo_instr *i, hlo_val heir) {
  if (i->parent->root == i)
    i->parent->root = heir;
  hlo_rewrite_inherit_places(heir, i);
  hlo_rewrite_remove(i, heir);
}

static void expand(struct hlo_instr *i, hlo_expand_rule *rule, struct hlo_pass_result *r) {
  struct hlo_module *m = i->parent->module;
  struct hlo_builder b;
  struct hlo_instr *before = i->prev;
  const int first_new = m->next_computation_id;
  hlo_builder_init(&b, m);
  b.computation = i->parent;
  b.before = i;
  b.locs = i->locs;
  hlo_val heir = rule(&b, i);
  if (!heir || heir == i)
    return; /* refused where it is lowered */
  for (struct hlo_instr *x = before ? before->next : i->parent->first; x != i; x = x->next)
    adopt(i, x, first_new);
  replace(i, heir);
  r->changed = true;
}

void hlo_op_expander(struct hlo_module *m, struct hlo_pass_result *r) {
  bool any = false;
  for (struct hlo_computation *c = m->computations; c; c = c->next)
    any |= has_work(c);
  if (!any)
    return;
  hlo_rewrite_begin(m);
  for (struct hlo_computation *c = m->computations; c; c = c->next)
    hlo_for_each(i, c) {
      hlo_rewrite_forward_operands(i);
      if (rules[i->op] && !hlo_rewrite_is_pinned(i))
        expand(i, rules[i->op], r);
      else if (i->op == HLO_GET_TUPLE_ELEMENT && r->changed && !hlo_rewrite_is_pinned(i))
        expand(i, take_element, r);
    }
  hlo_rewrite_end(m);
  if (r->changed)
    hlo_dce(m, r);
}
