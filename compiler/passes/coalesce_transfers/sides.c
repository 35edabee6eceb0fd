/* sides: what operands of a loop's instruction cover in several rounds.  See coalesce_transfers.c.
 *
 * An operand's index is a sum of multiples of the loop's counter, which become one more dimension of its access pattern, and of
 * values that are known before the loop, which stay.
 */
#include <string.h>

#include "passes/coalesce_transfers/coalesce_transfers.h"

enum { DIMS_MAX = 5 }; /* dimensions of an access pattern in DMA */

bool coalesce_is_before(const struct repeated *r, MlirValue v) {
  return mlirOperationIsNull(ir_defining_op(v)) ||
         mlirOperationIsNull(ir_ancestor_in(ir_defining_op(v), ir_body(r->loop)));
}

bool coalesce_read_side(const struct repeated *r, const struct nisa_access *x, struct side *out) {
  out->rank = (int)mlirAffineMapGetNumResults(x->map);
  if (!coalesce_is_before(r, x->base) || out->rank > NISA_RANK_MAX || x->n_dims + 1 > NISA_TILE_MAX)
    return false;
  for (int d = 0; d < out->rank; d++) {
    struct sum *s = &out->at[d];
    *s = (struct sum){.of = {0}};
    if (!nisa_access_index(x, d, &out->index[d]))
      return false;
    s->of.constant = out->index[d].constant;
    for (int k = 0; k < x->n_indices; k++)
      if (out->index[d].sym[k] && !linear_add(&s->of, x->indices[k], out->index[d].sym[k]))
        return false;
    for (int k = 0; k < s->of.n; k++)
      if (mlirValueEqual(s->of.term[k].v, r->counter)) {
        s->per_counter += s->of.term[k].factor;
        s->of.term[k].factor = 0;
      } else if (s->of.term[k].factor < 0 || !coalesce_is_before(r, s->of.term[k].v)) {
        return false;
      }
    s->of.constant += s->per_counter * r->lower;
    if (s->per_counter < 0 || s->of.constant < 0)
      return false;
  }
  return true;
}

bool coalesce_is_apart(const struct repeated *r, const struct side *dst) {
  const struct nisa_access *x = &r->in.operand[0];
  for (int d = 0; d < dst->rank; d++) {
    int64_t width = 1;
    for (int k = 0; k < x->n_dims; k++)
      width += dst->index[d].dim[k] * (x->tile[k] - 1);
    if (dst->at[d].per_counter * r->step >= width)
      return true;
  }
  return false;
}

/* Takes dimension `at` and the next one as one if they count without a gap in every index. */
static void join_dims(struct nisa_access *x, struct side *s, int at) {
  if (at + 1 >= x->n_dims || at + 1 == x->par_dims || x->n_dims == 2)
    return;
  for (int d = 0; d < s->rank; d++)
    if (s->index[d].dim[at] != s->index[d].dim[at + 1] * x->tile[at + 1])
      return;
  x->tile[at] *= x->tile[at + 1];
  x->par_dims -= at < x->par_dims;
  x->n_dims--;
  memmove(x->tile + at + 1, x->tile + at + 2, (size_t)(x->n_dims - at - 1) * sizeof *x->tile);
  for (int d = 0; d < s->rank; d++) {
    int64_t *dim = s->index[d].dim;
    memmove(dim + at, dim + at + 1, (size_t)(x->n_dims - at) * sizeof *dim);
    dim[x->n_dims] = 0;
  }
}

static void insert_dim(const struct repeated *r, struct nisa_access *x, struct side *s, int at) {
  memmove(x->tile + at + 1, x->tile + at, (size_t)(x->n_dims - at) * sizeof *x->tile);
  x->tile[at] = r->rounds;
  for (int d = 0; d < s->rank; d++) {
    int64_t *dim = s->index[d].dim;
    memmove(dim + at + 1, dim + at, (size_t)(x->n_dims - at) * sizeof *dim);
    dim[at] = s->at[d].per_counter * r->step;
  }
  x->n_dims++;
  x->par_dims += at < x->par_dims;
}

bool coalesce_make_side(const struct repeated *r, struct nisa_access *x, struct side *s, int at) {
  MlirAffineExpr results[NISA_RANK_MAX];
  MlirContext ctx = mlirOperationGetContext(r->loop);
  insert_dim(r, x, s, at);
  if (r->in.def->kind != NISA_TENSOR_REDUCE_ARITH) /* it reduces the last dimensions, and no rounds */
    join_dims(x, s, at);
  x->n_indices = 0;
  for (int d = 0; d < s->rank; d++) {
    struct nisa_index *i = &s->index[d];
    memset(i->sym, 0, sizeof i->sym);
    i->constant = s->at[d].of.constant;
    const int first = x->n_indices;
    const int64_t per_part = s->at[d].per_counter * r->step * r->rounds;
    if (per_part && r->rounds < r->trips && !nisa_add_index(x, first, i->sym, r->counter, per_part))
      return false;
    for (int k = 0; k < s->at[d].of.n; k++)
      if (s->at[d].of.term[k].factor &&
          !nisa_add_index(x, first, i->sym, s->at[d].of.term[k].v, s->at[d].of.term[k].factor))
        return false;
  }
  for (int d = 0; d < s->rank; d++)
    results[d] = nisa_index_expr(ctx, x, &s->index[d]);
  x->map = mlirAffineMapGet(ctx, x->n_dims, x->n_indices, s->rank, results);
  return x->n_dims <= DIMS_MAX;
}

bool coalesce_is_wide(const struct nisa_instr *in, int k) {
  static const char *const columns[] = {"operand0", "operand1", "bias", "scale"};
  for (size_t i = 0; i < sizeof columns / sizeof *columns; i++)
    if (!strcmp(in->def->operand[k].name, columns[i]))
      return false;
  return true;
}

bool coalesce_is_the_same(const struct repeated *r, const struct nisa_access *x) {
  struct side s;
  if (nisa_is_scalar(x))
    return coalesce_is_before(r, x->base);
  if (!coalesce_read_side(r, x, &s))
    return false;
  for (int d = 0; d < s.rank; d++)
    if (s.at[d].per_counter)
      return false;
  for (int k = 0; k < x->n_indices; k++)
    if (!coalesce_is_before(r, x->indices[k]))
      return false;
  return true;
}
