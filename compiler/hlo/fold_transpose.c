/* fold_transpose: a dot reads an operand in another order instead of after a transpose.
 *
 *     dot(transpose(x), y)  ==>  dot(x, y) with x's own dimension numbers
 *
 * Only rows and columns may be swapped: if batch dimensions moved, the dot would no longer be canonical
 * (canonicalize.c).  Runs after the algebraic simplifier; the transpose stays for dce.  Linear.
 */
#include "hlo/passes.h"
#include "hlo/rewrite.h"

static struct hlo_ints through(struct arena *a, const struct hlo_instr *t, struct hlo_ints dims) {
  int64_t v[HLO_RANK_MAX];
  for (int k = 0; k < dims.n; k++)
    v[k] = t->attrs->dimensions.v[dims.v[k]];
  return hlo_ints_dup(a, dims.n, v);
}

/* Batch dimensions stay where they are; of the two others one is summed. */
static bool swaps_rows_and_columns(const struct hlo_instr *t, struct hlo_ints batch, struct hlo_ints contracting) {
  for (int k = 0; k < batch.n; k++)
    if (t->attrs->dimensions.v[batch.v[k]] != batch.v[k])
      return false;
  return batch.n == t->shape.rank - 2 && contracting.n == 1;
}

static bool fold_side(struct arena *a, struct hlo_instr *dot, int side) {
  struct hlo_instr *t = dot->operands[side];
  struct hlo_dot_dims d = *dot->attrs->dot;
  struct hlo_ints *batch = side ? &d.rhs_batch : &d.lhs_batch,
                  *contracting = side ? &d.rhs_contracting : &d.lhs_contracting;
  if (t->op != HLO_TRANSPOSE || hlo_rewrite_is_pinned(t) || !swaps_rows_and_columns(t, *batch, *contracting))
    return false;
  *batch = through(a, t, *batch);
  *contracting = through(a, t, *contracting);
  hlo_set_attrs(dot, &(struct hlo_attrs){.dot = arena_dup(a, &d, sizeof d)});
  dot->operands[side] = t->operands[0];
  hlo_rewrite_inherit_places(dot, t);
  return true;
}

void hlo_transpose_folding(struct hlo_module *m, struct hlo_pass_result *r) {
  hlo_rewrite_begin(m);
  for (struct hlo_computation *c = m->computations; c; c = c->next) {
    if (!hlo_may_have(c, HLO_DOT))
      continue;
    hlo_for_each(i, c) {
      hlo_step(i, "read-transposed");
      for (int side = 0; i->op == HLO_DOT && side < 2; side++)
        r->changed |= fold_side(m->arena, i, side);
    }
  }
  hlo_rewrite_end(m);
}
