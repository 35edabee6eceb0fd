/* fold_transpose: a dot reads an operand in another order instead of after a transpose.
 *
 *     dot(transpose(x), y)  ==>  dot(x, y) with x's own dimension numbers
 *
 * Only where x's free dimensions keep their order, because those of the result follow it.  Runs behind the algebraic
 * simplifier; the transpose stays for dce.
 */
#include "hlo/infer.h"
#include "hlo/passes.h"
#include "hlo/rewrite.h"

static struct hlo_ints through(struct arena *a, const struct hlo_instr *t, struct hlo_ints dims) {
  int64_t v[HLO_RANK_MAX];
  for (int k = 0; k < dims.n; k++)
    v[k] = t->dimensions.v[dims.v[k]];
  return hlo_ints_dup(a, dims.n, v);
}

/* The free dimensions of the transpose's result ascend in its operand, too. */
static bool keeps_order(const struct hlo_instr *t, struct hlo_ints batch, struct hlo_ints contracting) {
  int64_t last = -1;
  for (int d = 0; d < t->shape.rank; d++) {
    if (infer_contains(batch, d) || infer_contains(contracting, d))
      continue;
    if (t->dimensions.v[d] < last)
      return false;
    last = t->dimensions.v[d];
  }
  return true;
}

static bool fold_side(struct arena *a, struct hlo_instr *dot, int side) {
  struct hlo_instr *t = dot->operands[side];
  struct hlo_dot_dims d = *dot->dot;
  struct hlo_ints *batch = side ? &d.rhs_batch : &d.lhs_batch,
                  *contracting = side ? &d.rhs_contracting : &d.lhs_contracting;
  if (t->op != HLO_TRANSPOSE || rewrite_is_pinned(t) || !keeps_order(t, *batch, *contracting))
    return false;
  *batch = through(a, t, *batch);
  *contracting = through(a, t, *contracting);
  dot->dot = arena_dup(a, &d, sizeof d);
  dot->operands[side] = t->operands[0];
  rewrite_inherit_places(dot, t);
  return true;
}

void hlo_transpose_folding(struct hlo_module *m, struct hlo_pass_result *r) {
  rewrite_begin(m);
  for (struct hlo_computation *c = m->computations; c; c = c->next)
    hlo_for_each(i, c) {
      for (int side = 0; i->op == HLO_DOT && side < 2; side++)
        r->changed |= fold_side(m->arena, i, side);
    }
  rewrite_end(m);
}
