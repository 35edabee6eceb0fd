/* op_expander: the pass op-expander: writes instructions that later stages do not know out as instructions that they know.
 *
 *     reduce-precision, bitcast-convert between widths  ==>  arithmetic on the bits                  expand_bits.c
 *     rng-bit-generator                                 ==>  Philox or Threefry on 32-bit integers   expand_rng.c
 *     cholesky, triangular-solve, LAPACK's calls        ==>  a loop over the rows                    expand_solve.c
 *     complex numbers, Fourier transforms               ==>  pairs of reals                          complex.c, fft.c
 *
 * Runs first, because later passes change types, inline calls and count loops, and know only the simpler instructions.
 * Afterwards some tuples and bit casts have no users.  They are removed here, because 64-bit ones among them would keep
 * the module in 64 bits.  Linear.
 */
#include "hlo/expand.h"

#include "hlo/complex.h"
#include "hlo/passes.h"
#include "hlo/print.h"
#include "hlo/read.h"
#include "hlo/rewrite.h"

/* The element of a tuple that a rule has made. */
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

static bool is_work(const struct hlo_instr *i) {
  if (i->op == HLO_BITCAST_CONVERT)
    return dtype_size(i->shape.dtype) != dtype_size(i->operands[0]->shape.dtype);
  return rules[i->op] && (i->op != HLO_CUSTOM_CALL || hlo_expand_is_lapack(i));
}

static bool has_work(const struct hlo_computation *c) {
  bool may_have = false;
  for (int op = 0; op < HLO_OP_COUNT; op++)
    may_have |= rules[op] && hlo_may_have(c, (enum hlo_op)op);
  for (const struct hlo_instr *i = may_have ? c->first : NULL; i; i = i->next)
    if (is_work(i))
      return true;
  return false;
}

static bool module_has_work(const struct hlo_module *m) {
  for (const struct hlo_computation *c = m->computations; c; c = c->next)
    if (has_work(c))
      return true;
  return false;
}

static bool comes_after(const struct hlo_computation *c, const struct hlo_computation *other) {
  while (other && other != c)
    other = other->next;
  return other == c;
}

/* Gives i's places to x and to the instructions of new computations that x calls, and moves those computations before
 * i's. */
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
    return; /* the lowering refuses it */
  for (struct hlo_instr *x = before ? before->next : i->parent->first; x != i; x = x->next)
    adopt(i, x, first_new);
  replace(i, heir);
  r->changed = true;
}

static void expand_computation(struct hlo_computation *c, struct hlo_pass_result *r) {
  hlo_for_each(i, c) {
    hlo_rewrite_forward_operands(i);
    hlo_step(i, "write-out");
    if (rules[i->op] && !hlo_rewrite_is_pinned(i))
      expand(i, rules[i->op], r);
    else if (i->op == HLO_GET_TUPLE_ELEMENT && r->changed && !hlo_rewrite_is_pinned(i))
      expand(i, take_element, r);
  }
}

void hlo_op_expander(struct hlo_module *m, struct hlo_pass_result *r) {
  const bool has_work = module_has_work(m), has_complex = hlo_complex_is_used(m);
  if (!has_work && !has_complex)
    return;
  hlo_rewrite_begin(m);
  for (struct hlo_computation *c = m->computations; has_work && c; c = c->next)
    expand_computation(c, r);
  if (has_complex) {
    hlo_complex_expand(m);
    r->changed = true;
  }
  hlo_rewrite_end(m);
  if (r->changed)
    hlo_dce(m, r);
}

const struct hlo_module *hlo_expanded(struct arena *a, const struct hlo_module *m) {
  enum { COPY_MAX = 512 << 20 };
  struct hlo_pass_result changed = {0};
  struct hlo_module *copy = NULL;
  struct diags ds;
  struct buf proto;
  if (!module_has_work(m) && !hlo_complex_is_used(m))
    return m;
  diags_init(&ds, a);
  buf_init(&proto, COPY_MAX);
  if (!hlo_write_proto(m, &proto))
    copy = hlo_read_proto(a, buf_text(&proto), proto.len, &ds);
  buf_clear(&proto);
  if (!copy)
    return m;
  hlo_op_expander(copy, &changed);
  return copy;
}
