/* order: sort, topk, reverse, and reduce with several operands.
 *
 * A sort counts: the rank of an element is the number of elements that come before it, found by comparing all pairs (a
 * generic with a reduction); then every element is written to its rank.  n comparisons for each element, none of which
 * depends on another, and equal elements keep their order.
 */
#include <string.h>

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
  MlirOperation op = reverse_tensor(l, lower_value(l, i->operands[0]), &i->shape, i->attrs->dimensions);
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
  const MlirAffineMap own = emit_map(&l->e, s->rank + 1, s->rank, self);
  for (int k = 0; k < s->n; k++) {
    inputs[k] = inputs[s->n + k] = s->x[k];
    maps[k] = own;
    maps[s->n + k] = emit_map(&l->e, s->rank + 1, s->rank, other);
  }
  maps[2 * s->n] = own;
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
                   .axis = (int)i->attrs->dimensions.v[0],
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

/* x if it is its operand in the opposite order: -y of floats, ~y of integers and bool. */
static const struct hlo_instr *turned(const struct hlo_instr *x) {
  return (x->op == HLO_NEGATE && dtype_is_float(x->shape.dtype)) || x->op == HLO_NOT ? x : NULL;
}

static MlirValue write_turned(struct emit *e, MlirValue const *args, void *user) {
  return scalar_apply(e, user, args);
}

static MlirValue turn(struct lower *l, const struct hlo_instr *by, MlirValue x, const struct hlo_shape *s) {
  MlirAffineMap id = emit_identity_map(&l->e, s->rank), maps[] = {id, id};
  return emit_result(emit_linalg_generic(&l->e, &(struct emit_generic){.n_loops = s->rank,
                                                                       .n_inputs = 1,
                                                                       .inputs = &x,
                                                                       .maps = maps,
                                                                       .output = lower_empty(l, s),
                                                                       .body = write_turned,
                                                                       .user = (void *)(uintptr_t)by}));
}

/* Of what has been turned, as for the k smallest, the original is sorted the other way round: on the machine negation is
 * a product, which leaves the sign of NaN, and with it its place, as it was. */
enum status lower_topk(struct lower *l, const struct hlo_instr *i) {
  const struct hlo_instr *by = turned(i->operands[0]);
  const struct hlo_shape *x = &i->operands[0]->shape, *to = &i->shape.elems[0];
  const struct hlo_shape index = {.dtype = DT_I32, .rank = x->rank, .dims = x->dims};
  const int64_t zeros[HLO_RANK_MAX] = {0};
  struct sort s = {.l = l,
                   .is_descending = i->attrs->is_smallest == !!by,
                   .dtype = x->dtype,
                   .n = 2,
                   .rank = x->rank,
                   .axis = x->rank - 1,
                   .dims = x->dims};
  MlirValue out[2];

  s.x[0] = lower_value(l, by ? by->operands[0] : i->operands[0]);
  s.x[1] = emit_result(iota_tensor(l, &index, x->rank - 1));
  sort_tensors(l, &s, (enum dtype[]){x->dtype, DT_I32}, out);
  struct emit_slice slice = {.rank = x->rank, .offsets = zeros, .sizes = to->dims};
  for (int k = 0; k < 2; k++)
    if (i->attrs->k != x->dims[x->rank - 1])
      out[k] = emit_extract_slice(&l->e, out[k], &slice,
                                  emit_tensor_type(&l->e, i->shape.elems[k].dtype, to->rank, to->dims));
  if (by)
    out[0] = turn(l, by, out[0], to);
  lower_set_parts(l, i, out);
  return ST_OK;
}

/* ---- reduce with several operands ------------------------------------------------------------------------ */

/* Neighbours are combined, all pairs at once, until one element is left: an element-wise operation for each result and
 * each power of two.  The order of elements is kept along an axis; a combiner is associative by definition. */
struct wide {
  struct lower *l;
  const struct hlo_instr *instr;
  int n, rank, part;          /* part: which result */
  int64_t dims[HLO_RANK_MAX]; /* of what is left */
  MlirValue x[64], init[64];
};

/* args: the left elements, the right ones; of the last step, where the initial values are on the left: the right ones. */
static MlirValue write_combined(struct emit *e, MlirValue const *args, void *user) {
  const struct wide *w = user;
  MlirValue both[128], results[64];

  for (int k = 0; k < w->n; k++) {
    both[k] = mlirValueIsNull(w->init[0]) ? args[k] : w->init[k];
    both[w->n + k] = args[mlirValueIsNull(w->init[0]) ? w->n + k : k];
  }
  inline_computation(w->l, e, w->instr->called[0], both, results);
  return results[w->part];
}

/* Every result of the combiner over these inputs, which have w->dims, into out. */
static void combine(struct wide *w, int n_inputs, MlirValue const *inputs, MlirValue *out) {
  struct lower *l = w->l;
  MlirAffineMap maps[129];

  for (int k = 0; k <= n_inputs; k++)
    maps[k] = emit_identity_map(&l->e, w->rank);
  for (w->part = 0; w->part < w->n; w->part++) {
    const enum dtype t = w->instr->shape.elems[w->part].dtype;
    out[w->part] =
        emit_result(emit_linalg_generic(&l->e, &(struct emit_generic){.n_loops = w->rank,
                                                                      .n_inputs = n_inputs,
                                                                      .inputs = inputs,
                                                                      .maps = maps,
                                                                      .output = emit_empty(&l->e, t, w->rank, w->dims),
                                                                      .body = write_combined,
                                                                      .user = w}));
  }
}

/* `count` elements of every operand along the axis, from `first` on in steps; w->dims is their shape then. */
static void take(struct wide *w, int axis, int64_t first, int64_t count, int64_t step, MlirValue *out) {
  int64_t offsets[HLO_RANK_MAX] = {0}, strides[HLO_RANK_MAX];

  for (int d = 0; d < w->rank; d++)
    strides[d] = d == axis ? step : 1;
  offsets[axis] = first;
  w->dims[axis] = count;
  struct emit_slice slice = {.rank = w->rank, .offsets = offsets, .sizes = w->dims, .strides = strides};
  for (int k = 0; k < w->n; k++)
    out[k] = emit_extract_slice(&w->l->e, w->x[k], &slice,
                                emit_tensor_type(&w->l->e, w->instr->shape.elems[k].dtype, w->rank, w->dims));
}

static void fold_axis(struct wide *w, int axis) {
  MlirValue pair[128], left[64][64]; /* left: the last element of an odd number, at most one per power of two */
  int n_left = 0;

  for (int64_t n = w->dims[axis]; n > 1; n /= 2) {
    if (n % 2)
      take(w, axis, n - 1, 1, 1, left[n_left++]);
    take(w, axis, 0, n / 2, 2, pair);
    take(w, axis, 1, n / 2, 2, pair + w->n);
    combine(w, 2 * w->n, pair, w->x);
  }
  while (n_left--) {
    memcpy(pair, w->x, (size_t)w->n * sizeof *pair);
    memcpy(pair + w->n, left[n_left], (size_t)w->n * sizeof *pair);
    combine(w, 2 * w->n, pair, w->x);
  }
}

enum status lower_wide_reduce(struct lower *l, const struct hlo_instr *i) {
  struct wide w = {.l = l, .instr = i, .n = i->n_operands / 2, .rank = i->operands[0]->shape.rank};
  MlirValue out[64], init[64];
  bool is_empty = false;

  if (w.n > 64)
    return lower_refuse(l, i, "it has more than 64 operands");
  enum status st = inline_check(l, i, i->called[0]);
  if (st)
    return st;
  for (int d = 0; d < w.rank; d++) {
    w.dims[d] = i->operands[0]->shape.dims[d];
    is_empty |= w.dims[d] == 0;
  }
  for (int k = 0; k < w.n; k++) {
    w.x[k] = lower_value(l, i->operands[k]);
    init[k] = scalar_of(l, i->operands[w.n + k]);
  }
  for (int d = 0; d < w.rank && !is_empty; d++)
    if (reduce_has_axis(i, d))
      fold_axis(&w, d);
  memcpy(w.init, init, sizeof init);
  if (!is_empty)
    combine(&w, w.n, w.x, out);
  for (int k = 0; k < w.n; k++) {
    const struct hlo_shape *to = &i->shape.elems[k], now = {.dtype = to->dtype, .rank = w.rank, .dims = w.dims};
    out[k] =
        is_empty ? emit_fill(&l->e, init[k], lower_empty(l, to)) : reshape_tensor(l, out[k], &now, to->rank, to->dims);
  }
  lower_set_parts(l, i, out);
  return ST_OK;
}
