/* knob: the loops that a knob refers to, in terms of HLO.
 *
 * A reduce has the loops of its operand; a dot has [batch,] M, N, K, with all batch dimensions as one; every other
 * instruction has those of its result.  The linalg operations have the same loops.  They are recorded when the knob is
 * set, because simplification may replace the value.
 */
#include "hlo/hlo.h"

bool hlo_is_light(const struct hlo_instr *i) {
  return i->op == HLO_RESHAPE || i->op == HLO_COPY || i->op == HLO_CONVERT || i->op == HLO_BROADCAST;
}

static bool is_in(struct hlo_ints v, int64_t x) {
  for (int k = 0; k < v.n; k++)
    if (v.v[k] == x)
      return true;
  return false;
}

/* Elements along the dimensions of x that are in neither list. */
static int64_t free_size(const struct hlo_instr *x, struct hlo_ints batch, struct hlo_ints contracting) {
  int64_t n = 1;
  for (int d = 0; d < x->shape.rank; d++)
    if (!is_in(batch, d) && !is_in(contracting, d))
      n *= x->shape.dims[d];
  return n;
}

static int64_t listed_size(const struct hlo_instr *x, struct hlo_ints dims) {
  int64_t n = 1;
  for (int k = 0; k < dims.n; k++)
    n *= x->shape.dims[dims.v[k]];
  return n;
}

static void dot_loops(const struct hlo_instr *i, struct hlo_loops *out) {
  const struct hlo_dot_dims *d = i->attrs->dot;
  const struct hlo_instr *x = i->operands[0], *y = i->operands[1];

  if (d->lhs_batch.n)
    out->extents[out->n++] = listed_size(x, d->lhs_batch);
  out->extents[out->n++] = free_size(x, d->lhs_batch, d->lhs_contracting);
  out->extents[out->n++] = free_size(y, d->rhs_batch, d->rhs_contracting);
  out->extents[out->n] = listed_size(x, d->lhs_contracting);
  out->reduction[out->n++] = true;
}

struct hlo_loops *hlo_loops_of(struct arena *a, const struct hlo_instr *i) {
  struct hlo_loops *out = arena_new(a, struct hlo_loops);
  const struct hlo_instr *from = i;

  while (hlo_is_light(from))
    from = from->operands[0];
  if (from->op == HLO_REDUCE || from->op == HLO_DOT)
    i = from;
  out->op = i->op;
  if (i->op == HLO_DOT) {
    dot_loops(i, out);
    return out;
  }
  const struct hlo_shape *s = i->op == HLO_REDUCE ? &i->operands[0]->shape : &i->shape;
  for (out->n = 0; out->n < s->rank; out->n++) {
    out->extents[out->n] = s->dims[out->n];
    out->reduction[out->n] = i->op == HLO_REDUCE && is_in(i->attrs->dimensions, out->n);
  }
  return out;
}
