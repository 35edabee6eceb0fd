/* dot: lowers contractions to linalg.matmul and linalg.batch_matmul.
 *
 * A transpose brings operands to [batch, m, k] and [batch, k, n] where the dimension numbers need it, and groups of
 * several dimensions are collapsed to one, so that later passes see only two forms.  The accumulator is f32 for f16,
 * bf16 and fp8, as in XLA and in the hardware; the result is rounded once, after the matmul.
 */
#include <assert.h>

#include "linalg/impl.h"

/* One operand, with its dimensions in three groups: batch, contracting and free. */
struct side {
  const struct hlo_instr *x;
  struct hlo_ints batch, contracting;
  int64_t free[HLO_RANK_MAX];
  int n_free;
  int64_t batch_size, contract_size, free_size;
};

static bool contains(struct hlo_ints v, int64_t x) {
  for (int k = 0; k < v.n; k++)
    if (v.v[k] == x)
      return true;
  return false;
}

static int64_t product(const struct hlo_shape *s, int n, const int64_t *dims) {
  int64_t p = 1;
  for (int k = 0; k < n; k++)
    p *= s->dims[dims[k]];
  return p;
}

static void side_init(struct side *s, const struct hlo_instr *x, struct hlo_ints batch, struct hlo_ints contracting) {
  *s = (struct side){.x = x, .batch = batch, .contracting = contracting};
  for (int d = 0; d < x->shape.rank; d++)
    if (!contains(batch, d) && !contains(contracting, d))
      s->free[s->n_free++] = d;
  s->batch_size = product(&x->shape, batch.n, batch.v);
  s->contract_size = product(&x->shape, contracting.n, contracting.v);
  s->free_size = product(&x->shape, s->n_free, s->free);
}

static int append(int64_t *to, int n, int count, const int64_t *v) {
  for (int k = 0; k < count; k++)
    to[n++] = v[k];
  return n;
}

/* Returns the operand as [batch, m, k] (lhs) or [batch, k, n] (rhs), without the batch if there is none. */
static MlirValue arrange(struct lower *l, const struct side *s, bool is_lhs, enum dtype t) {
  const struct hlo_shape *from = &s->x->shape;
  int64_t perm[HLO_RANK_MAX], permuted[HLO_RANK_MAX], flat[3];
  int n = append(perm, 0, s->batch.n, s->batch.v), rank = 0;
  bool identity = true;

  if (is_lhs)
    n = append(perm, n, s->n_free, s->free);
  n = append(perm, n, s->contracting.n, s->contracting.v);
  if (!is_lhs)
    n = append(perm, n, s->n_free, s->free);
  assert(n == from->rank); /* every dimension is in one group */
  for (int k = 0; k < n; k++) {
    identity &= perm[k] == k;
    permuted[k] = from->dims[perm[k]];
  }
  MlirValue v = lower_convert_tensor(l, lower_value(l, s->x), from, t);
  if (!identity)
    v = ir_result(ir_transpose(&l->b, v, n, perm));
  if (s->batch.n)
    flat[rank++] = s->batch_size;
  flat[rank++] = is_lhs ? s->free_size : s->contract_size;
  flat[rank++] = is_lhs ? s->contract_size : s->free_size;
  struct hlo_shape now = {.dtype = t, .rank = n, .dims = permuted};
  return lower_reshape_tensor(l, v, &now, rank, flat);
}

/* Returns the type of a matmul's operand.  The matmul's body extends operands to the accumulator's type, and MLIR does
 * that correctly only between floats.  Other operands are converted to the accumulator's type before the matmul. */
static enum dtype operand_type(enum dtype t, enum dtype acc) {
  return dtype_is_float(t) && dtype_is_float(acc) && dtype_size(t) <= dtype_size(acc) ? t : acc;
}

static MlirNamedAttribute matmul_maps(struct lower *l, bool batched) {
  static const int64_t plain[3][2] = {{0, 2}, {2, 1}, {0, 1}};
  static const int64_t batch[3][3] = {{0, 1, 3}, {0, 3, 2}, {0, 1, 2}};
  MlirAttribute maps[3];

  for (int k = 0; k < 3; k++)
    maps[k] = mlirAffineMapAttrGet(batched ? ir_map(&l->b, 4, 3, batch[k]) : ir_map(&l->b, 3, 2, plain[k]));
  return ir_named(&l->b, "indexing_maps", mlirArrayAttrGet(l->b.ctx, 3, maps));
}

static void record_loops(struct lower *l, const struct hlo_instr *i, MlirOperation op, bool batched,
                         const struct side *a, const struct side *b) {
  static const bool reduction[] = {false, false, false, true};
  int64_t *extents = arena_new_array(&l->arena, int64_t, 4);
  struct node *n = node_of(l, i);

  extents[0] = a->batch_size;
  extents[1] = a->free_size;
  extents[2] = b->free_size;
  extents[3] = a->contract_size;
  n->work = op;
  n->n_loops = batched ? 4 : 3;
  n->extents = batched ? extents : extents + 1;
  n->reduction = batched ? reduction : reduction + 1;
}

enum status lower_dot(struct lower *l, const struct hlo_instr *i) {
  const enum dtype t = i->shape.dtype, acc = scalar_accumulator(t);
  struct side a, b;

  side_init(&a, i->operands[0], i->attrs->dot->lhs_batch, i->attrs->dot->lhs_contracting);
  side_init(&b, i->operands[1], i->attrs->dot->rhs_batch, i->attrs->dot->rhs_contracting);
  const bool batched = a.batch.n > 0;
  MlirValue inputs[] = {arrange(l, &a, true, operand_type(a.x->shape.dtype, acc)),
                        arrange(l, &b, false, operand_type(b.x->shape.dtype, acc))};
  int64_t dims[] = {a.batch_size, a.free_size, b.free_size};
  struct hlo_shape out = {.dtype = acc, .rank = batched ? 3 : 2, .dims = batched ? dims : dims + 1};

  MlirValue dest = ir_fill(&l->b, ir_number(&l->b, acc, 0), lower_empty(l, &out));
  MlirNamedAttribute maps = matmul_maps(l, batched);
  MlirOperation op =
      ir_linalg_named(&l->b, batched ? "linalg.batch_matmul" : "linalg.matmul", 2, inputs, dest, 1, &maps);
  MlirValue v = lower_convert_tensor(l, ir_result(op), &out, t);
  out.dtype = t;
  lower_set(l, i, lower_reshape_tensor(l, v, &out, i->shape.rank, i->shape.dims), lower_no_op());
  record_loops(l, i, op, batched, &a, &b);
  return ST_OK;
}
