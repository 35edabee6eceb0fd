/* canonicalize: puts broadcasts and dots into the one form that later passes match.
 *
 *     broadcast(x), dimensions={1,0}  ==>  transpose(broadcast(x), dimensions={0,1})         broadcast-canonicalizer
 *     dot(x, y) with several rows,    ==>  reshape(dot(reshape(transpose(x)),                dot-decomposer
 *       columns or sums, or batch              reshape(transpose(y))))
 *       dimensions out of order
 *
 * A dot is canonical when its batch dimensions are the first of both operands, in order, and each operand has at most
 * one free dimension and exactly one contracting dimension, in either order.  Rows and columns may be swapped, because
 * transpose-folding handles that without moving data.  Both passes run before the algebraic simplifier, which removes
 * transposes and reshapes that change nothing.  Linear.
 */

#include "hlo/infer.h"
#include "hlo/passes.h"
#include "hlo/rewrite.h"

static struct hlo_instr *permute(struct arena *a, struct hlo_instr *before, struct hlo_instr *x, int n,
                                 const int64_t *permutation) {
  int64_t dims[HLO_RANK_MAX];
  bool is_identity = true;
  for (int k = 0; k < n; k++) {
    dims[k] = x->shape.dims[permutation[k]];
    is_identity &= permutation[k] == k;
  }
  if (is_identity)
    return x;
  struct hlo_instr *t = hlo_insert(before, HLO_TRANSPOSE, NULL, hlo_shape_array(a, x->shape.dtype, n, dims), 1, &x);
  hlo_set_attrs(t, &(struct hlo_attrs){.dimensions = hlo_ints_dup(a, n, permutation)});
  hlo_rewrite_inherit_places(t, before);
  return t;
}

static struct hlo_instr *regroup(struct arena *a, struct hlo_instr *before, struct hlo_instr *x, int rank,
                                 const int64_t *dims) {
  if (rank == x->shape.rank && hlo_dims_equal(rank, dims, x->shape.dims))
    return x;
  struct hlo_instr *r = hlo_insert(before, HLO_RESHAPE, NULL, hlo_shape_array(a, x->shape.dtype, rank, dims), 1, &x);
  hlo_rewrite_inherit_places(r, before);
  return r;
}

static void replace(struct hlo_instr *i, struct hlo_instr *heir) {
  if (i->parent->root == i)
    i->parent->root = heir;
  hlo_rewrite_inherit(heir, i);
  hlo_rewrite_remove(i, heir);
}

static void walk_computation(struct hlo_computation *c, struct hlo_pass_result *r, enum hlo_op op, const char *name,
                             struct hlo_instr *(*rule)(struct arena *, struct hlo_instr *)) {
  hlo_for_each(i, c) {
    hlo_rewrite_forward_operands(i);
    hlo_step(i, name);
    struct hlo_instr *heir = i->op == op ? rule(c->module->arena, i) : NULL;
    if (!heir)
      continue;
    replace(i, heir);
    r->changed = true;
  }
}

static void walk(struct hlo_module *m, struct hlo_pass_result *r, enum hlo_op op, const char *name,
                 struct hlo_instr *(*rule)(struct arena *, struct hlo_instr *)) {
  hlo_rewrite_begin(m);
  for (struct hlo_computation *c = m->computations; c; c = c->next)
    if (hlo_may_have(c, op))
      walk_computation(c, r, op, name, rule);
  hlo_rewrite_end(m);
}

/* ---- broadcasts -------------------------------------------------------------------------------------- */

static struct hlo_instr *order_broadcast(struct arena *a, struct hlo_instr *i) {
  int64_t to[HLO_RANK_MAX], sorted[HLO_RANK_MAX], dims[HLO_RANK_MAX];
  const int n = i->attrs->dimensions.n;

  if (hlo_infer_is_ascending(i->attrs->dimensions))
    return NULL;
  for (int k = 0; k < i->shape.rank; k++) {
    to[k] = k;
    dims[k] = i->shape.dims[k];
  }
  /* The k-th dimension of the operand goes to the k-th smallest place; the other dimensions stay. */
  for (int k = 0; k < n; k++) {
    int rank = 0;
    for (int j = 0; j < n; j++)
      rank += i->attrs->dimensions.v[j] < i->attrs->dimensions.v[k];
    sorted[rank] = i->attrs->dimensions.v[k];
  }
  for (int k = 0; k < n; k++) {
    to[i->attrs->dimensions.v[k]] = sorted[k];
    dims[sorted[k]] = i->shape.dims[i->attrs->dimensions.v[k]];
  }
  struct hlo_instr *b =
      hlo_insert(i, HLO_BROADCAST, NULL, hlo_shape_array(a, i->shape.dtype, i->shape.rank, dims), 1, i->operands);
  hlo_set_attrs(b, &(struct hlo_attrs){.dimensions = hlo_ints_dup(a, n, sorted)});
  hlo_rewrite_inherit_places(b, i);
  return permute(a, i, b, i->shape.rank, to);
}

void hlo_broadcast_canonicalizer(struct hlo_module *m, struct hlo_pass_result *r) {
  walk(m, r, HLO_BROADCAST, "order-broadcast", order_broadcast);
}

/* ---- dots -------------------------------------------------------------------------------------------- */

static bool leads_in_order(struct hlo_ints batch) {
  for (int k = 0; k < batch.n; k++)
    if (batch.v[k] != k)
      return false;
  return true;
}

static bool is_canonical(const struct hlo_instr *i) {
  const struct hlo_dot_dims *d = i->attrs->dot;
  const int n = d->lhs_batch.n;
  return d->lhs_contracting.n == 1 && i->operands[0]->shape.rank <= n + 2 && i->operands[1]->shape.rank <= n + 2 &&
         leads_in_order(d->lhs_batch) && leads_in_order(d->rhs_batch);
}

/* x as [batch…, free, contracting] (lhs) or [batch…, contracting, free] (rhs); without `free` if there is none. */
static struct hlo_instr *arrange(struct arena *a, struct hlo_instr *dot, struct hlo_instr *x, struct hlo_ints batch,
                                 struct hlo_ints contracting, bool is_lhs) {
  int64_t order[HLO_RANK_MAX], dims[HLO_RANK_MAX], rows = 1, sums = 1;
  int n = 0, rank = 0;
  bool has_free = x->shape.rank > batch.n + contracting.n;

  for (int k = 0; k < batch.n; k++) {
    dims[rank++] = x->shape.dims[batch.v[k]];
    order[n++] = batch.v[k];
  }
  for (int k = 0; !is_lhs && k < contracting.n; k++)
    order[n++] = contracting.v[k];
  for (int d = 0; d < x->shape.rank; d++)
    if (!hlo_infer_contains(batch, d) && !hlo_infer_contains(contracting, d)) {
      order[n++] = d;
      rows *= x->shape.dims[d];
    }
  for (int k = 0; k < contracting.n; k++) {
    sums *= x->shape.dims[contracting.v[k]];
    if (is_lhs)
      order[n++] = contracting.v[k];
  }
  if (has_free && is_lhs)
    dims[rank++] = rows;
  dims[rank++] = sums;
  if (has_free && !is_lhs)
    dims[rank++] = rows;
  return regroup(a, dot, permute(a, dot, x, n, order), rank, dims);
}

static struct hlo_instr *decompose_dot(struct arena *a, struct hlo_instr *i) {
  if (is_canonical(i))
    return NULL;
  const struct hlo_dot_dims *d = i->attrs->dot;
  const int n = d->lhs_batch.n;
  if (n + 2 > HLO_RANK_MAX || !hlo_shape_elements(&i->operands[0]->shape) ||
      !hlo_shape_elements(&i->operands[1]->shape))
    return NULL; /* the simplifier's: if one size is 0, the product of the others may overflow */
  struct hlo_instr *x = arrange(a, i, i->operands[0], d->lhs_batch, d->lhs_contracting, true);
  struct hlo_instr *y = arrange(a, i, i->operands[1], d->rhs_batch, d->rhs_contracting, false);
  int64_t batch[HLO_RANK_MAX], dims[HLO_RANK_MAX], last = x->shape.rank - 1, first = n;
  int rank = 0;
  for (int k = 0; k < n; k++) {
    batch[k] = k;
    dims[rank++] = x->shape.dims[k];
  }
  if (x->shape.rank > n + 1)
    dims[rank++] = x->shape.dims[n];
  if (y->shape.rank > n + 1)
    dims[rank++] = y->shape.dims[n + 1];
  struct hlo_dot_dims now = {hlo_ints_dup(a, 1, &last), hlo_ints_dup(a, 1, &first), hlo_ints_dup(a, n, batch),
                             hlo_ints_dup(a, n, batch)};
  struct hlo_instr *dot =
      hlo_insert(i, HLO_DOT, NULL, hlo_shape_array(a, i->shape.dtype, rank, dims), 2, (struct hlo_instr *[]){x, y});
  hlo_set_attrs(dot, &(struct hlo_attrs){.dot = arena_dup(a, &now, sizeof now)});
  hlo_rewrite_inherit_places(dot, i);
  return regroup(a, i, dot, i->shape.rank, i->shape.dims);
}

void hlo_dot_decomposer(struct hlo_module *m, struct hlo_pass_result *r) {
  walk(m, r, HLO_DOT, "decompose-dot", decompose_dot);
}
