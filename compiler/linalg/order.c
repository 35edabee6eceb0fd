/* order: sort, topk, reverse, and reduce with several operands.
 *
 * A sort counts: the rank of an element is the number of elements that come before it, found by comparing all pairs (a
 * generic with a reduction); then every element is written to its rank.  n comparisons for each element, none of which
 * depends on another, and equal elements keep their order.
 */
#include "linalg/impl.h"

/* ---- reverse --------------------------------------------------------------------------------------------- */

struct reversal {
  MlirValue source;
  const struct hlo_shape *shape;
  struct hlo_ints dims;
};

static MlirValue write_reverse(struct emit *e, MlirValue const *args, void *user) {
  const struct reversal *r = user;
  MlirValue at[HLO_RANK_MAX];
  (void)args;
  for (int d = 0; d < r->shape->rank; d++) {
    at[d] = emit_linalg_index(e, d);
    for (int k = 0; k < r->dims.n; k++)
      if (r->dims.v[k] == d)
        at[d] = emit_binary(e, "arith.subi", emit_index(e, r->shape->dims[d] - 1), at[d]);
  }
  return emit_extract(e, r->source, r->shape->rank, at);
}

MlirOperation reverse_tensor(struct lower *l, MlirValue x, const struct hlo_shape *s, struct hlo_ints dims) {
  struct reversal r = {x, s, dims};
  MlirAffineMap id = emit_identity_map(&l->e, s->rank);
  return emit_linalg_generic(
      &l->e, &(struct emit_generic){
                 .n_loops = s->rank, .maps = &id, .output = lower_empty(l, s), .body = write_reverse, .user = &r});
}

enum status lower_reverse(struct lower *l, const struct hlo_instr *i) {
  MlirOperation op = reverse_tensor(l, lower_value(l, i->operands[0]), &i->shape, i->dimensions);
  lower_set(l, i, emit_result(op), op);
  return ST_OK;
}

/* ---- sort ------------------------------------------------------------------------------------------------ */

struct sort {
  struct lower *l;
  const struct hlo_computation *comparator; /* NULL: the total order of the first operand */
  bool is_descending;
  enum dtype dtype;
  int n, rank, axis;
  const int64_t *dims;
  MlirValue x[64], ranks;
};

static MlirValue comes_before(struct emit *e, const struct sort *s, MlirValue const *x, MlirValue const *y) {
  MlirValue args[128], result;
  if (!s->comparator)
    return scalar_compare(e, s->is_descending ? HLO_GT : HLO_LT, s->dtype, dtype_is_float(s->dtype), x[0], y[0]);
  for (int k = 0; k < s->n; k++) {
    args[2 * k] = x[k];
    args[2 * k + 1] = y[k];
  }
  inline_computation(s->l, e, s->comparator, args, &result);
  return result;
}

/* args: this element of each operand, the other one of each, the count.  A pair that the comparator does not tell apart
 * stays in order. */
static MlirValue write_rank(struct emit *e, MlirValue const *args, void *user) {
  const struct sort *s = user;
  MlirValue other_first = comes_before(e, s, args + s->n, args), this_first = comes_before(e, s, args, args + s->n);
  MlirValue is_tie = emit_cmpi(e, INT_EQ, other_first, this_first);
  MlirValue is_left = emit_cmpi(e, INT_SLT, emit_linalg_index(e, s->rank), emit_linalg_index(e, s->axis));
  MlirValue before = emit_select(e, is_tie, is_left, other_first);
  MlirValue one = emit_op1(e, "arith.extui", emit_element_type(e, DT_I32), 1, &before);
  return emit_binary(e, "arith.addi", args[2 * s->n], one);
}

static MlirValue count_before(struct lower *l, struct sort *s) {
  MlirValue inputs[128];
  MlirAffineMap maps[129];
  bool reduction[HLO_RANK_MAX + 1] = {false};
  int64_t other[HLO_RANK_MAX], self[HLO_RANK_MAX];

  for (int d = 0; d < s->rank; d++) {
    self[d] = d;
    other[d] = d == s->axis ? s->rank : d;
  }
  reduction[s->rank] = true;
  for (int k = 0; k < s->n; k++) {
    inputs[k] = inputs[s->n + k] = s->x[k];
    maps[k] = emit_map(&l->e, s->rank + 1, s->rank, self);
    maps[s->n + k] = emit_map(&l->e, s->rank + 1, s->rank, other);
  }
  maps[2 * s->n] = maps[0];
  MlirValue dest = emit_fill(&l->e, emit_int(&l->e, emit_element_type(&l->e, DT_I32), 0),
                             emit_empty(&l->e, DT_I32, s->rank, s->dims));
  return emit_result(emit_linalg_generic(&l->e, &(struct emit_generic){.n_loops = s->rank + 1,
                                                                       .reduction = reduction,
                                                                       .n_inputs = 2 * s->n,
                                                                       .inputs = inputs,
                                                                       .maps = maps,
                                                                       .output = dest,
                                                                       .body = write_rank,
                                                                       .user = s}));
}

static void place_element(struct emit *e, MlirValue const *at, MlirValue *carried, void *user) {
  const struct sort *s = user;
  MlirValue to[HLO_RANK_MAX], rank = emit_extract(e, s->ranks, s->rank, at);
  for (int d = 0; d < s->rank; d++)
    to[d] = d == s->axis ? scalar_to_index(e, rank, DT_I32) : at[d];
  for (int k = 0; k < s->n; k++)
    carried[k] = emit_insert(e, emit_extract(e, s->x[k], s->rank, at), carried[k], s->rank, to);
}

/* s->x sorted, in out. */
static void sort_tensors(struct lower *l, struct sort *s, const enum dtype *types, MlirValue *out) {
  s->ranks = count_before(l, s);
  for (int k = 0; k < s->n; k++)
    out[k] = emit_empty(&l->e, types[k], s->rank, s->dims);
  emit_loop_nest(
      &l->e,
      &(struct emit_loops){.n = s->rank, .extents = s->dims, .n_carried = s->n, .body = place_element, .user = s}, out);
}

enum status lower_sort(struct lower *l, const struct hlo_instr *i) {
  const struct hlo_shape *x = &i->operands[0]->shape;
  struct sort s = {.l = l,
                   .comparator = i->called[0],
                   .n = i->n_operands,
                   .rank = x->rank,
                   .axis = (int)i->dimensions.v[0],
                   .dims = x->dims};
  MlirValue out[64];
  enum dtype types[64];

  if (i->n_operands > 64)
    return lower_refuse(l, i, "it sorts more than 64 operands");
  enum status st = inline_check(l, i, i->called[0]);
  if (st)
    return st;
  for (int k = 0; k < s.n; k++) {
    s.x[k] = lower_value(l, i->operands[k]);
    types[k] = i->operands[k]->shape.dtype;
  }
  sort_tensors(l, &s, types, out);
  lower_set_parts(l, i, out);
  return ST_OK;
}

enum status lower_topk(struct lower *l, const struct hlo_instr *i) {
  const struct hlo_shape *x = &i->operands[0]->shape, *to = &i->shape.elems[0];
  const struct hlo_shape index = {.dtype = DT_I32, .rank = x->rank, .dims = x->dims};
  const int64_t zeros[HLO_RANK_MAX] = {0};
  struct sort s = {.l = l,
                   .is_descending = !i->is_smallest,
                   .dtype = x->dtype,
                   .n = 2,
                   .rank = x->rank,
                   .axis = x->rank - 1,
                   .dims = x->dims};
  MlirValue out[2];

  s.x[0] = lower_value(l, i->operands[0]);
  s.x[1] = emit_result(iota_tensor(l, &index, x->rank - 1));
  sort_tensors(l, &s, (enum dtype[]){x->dtype, DT_I32}, out);
  struct emit_slice slice = {.rank = x->rank, .offsets = zeros, .sizes = to->dims};
  for (int k = 0; k < 2; k++)
    if (i->k != x->dims[x->rank - 1])
      out[k] = emit_extract_slice(&l->e, out[k], &slice,
                                  emit_tensor_type(&l->e, i->shape.elems[k].dtype, to->rank, to->dims));
  lower_set_parts(l, i, out);
  return ST_OK;
}

/* ---- reduce with several operands ------------------------------------------------------------------------ */

struct wide {
  struct lower *l;
  const struct hlo_instr *instr;
  int n;
  MlirValue x[64];
};

static void fold_element(struct emit *e, MlirValue const *at, MlirValue *carried, void *user) {
  const struct wide *w = user;
  const struct hlo_instr *i = w->instr;
  const int rank = i->operands[0]->shape.rank;
  MlirValue to[HLO_RANK_MAX], args[128], next[64];
  int n = 0;

  for (int d = 0; d < rank; d++)
    if (!reduce_has_axis(i, d))
      to[n++] = at[d];
  for (int k = 0; k < w->n; k++) {
    args[k] = emit_extract(e, carried[k], n, to);
    args[w->n + k] = emit_extract(e, w->x[k], rank, at);
  }
  inline_computation(w->l, e, i->called[0], args, next);
  for (int k = 0; k < w->n; k++)
    carried[k] = emit_insert(e, next[k], carried[k], n, to);
}

enum status lower_wide_reduce(struct lower *l, const struct hlo_instr *i) {
  struct wide w = {.l = l, .instr = i, .n = i->n_operands / 2};
  MlirValue out[64];

  if (w.n > 64)
    return lower_refuse(l, i, "it has more than 64 operands");
  enum status st = inline_check(l, i, i->called[0]);
  if (st)
    return st;
  for (int k = 0; k < w.n; k++) {
    w.x[k] = lower_value(l, i->operands[k]);
    out[k] = emit_fill(&l->e, scalar_of(l, i->operands[w.n + k]), lower_empty(l, &i->shape.elems[k]));
  }
  const struct hlo_shape *x = &i->operands[0]->shape;
  emit_loop_nest(
      &l->e, &(struct emit_loops){.n = x->rank, .extents = x->dims, .n_carried = w.n, .body = fold_element, .user = &w},
      out);
  lower_set_parts(l, i, out);
  return ST_OK;
}
