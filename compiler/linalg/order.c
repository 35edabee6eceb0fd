/* order: lowers sort, topk, reverse, and reduce with several operands.
 *
 * A sort counts.  The rank of an element is the number of elements that come before it, which a generic with a
 * reduction finds by comparing all pairs.  Then each place takes the element whose rank it is: the maximum over all elements of
 * a value that is the least one everywhere else.  This takes 2 n comparisons per element, or n + k for topk.  They are independent
 * of each other, so that the engines make them for whole tiles.  Equal elements keep their order.  Of long rows, max8 finds the
 * elements of topk, and of a sort of which only some at an end are read (topk.c).
 */
#include <assert.h>
#include <string.h>

#include "hlo/literal.h"
#include "linalg/impl.h"

/* ---- reverse --------------------------------------------------------------------------------------------- */

struct reversal {
  MlirValue source;
  const struct hlo_shape *shape;
  struct hlo_ints dims;
};

static MlirValue write_reverse(struct ir_builder *b, MlirValue const *args, void *user) {
  const struct reversal *r = user;
  MlirValue at[HLO_RANK_MAX];
  (void)args;
  for (int d = 0; d < r->shape->rank; d++) {
    at[d] = ir_linalg_index(b, d);
    for (int k = 0; k < r->dims.n; k++)
      if (r->dims.v[k] == d)
        at[d] = ir_binary(b, "arith.subi", ir_index(b, r->shape->dims[d] - 1), at[d]);
  }
  return ir_extract(b, r->source, r->shape->rank, at);
}

MlirOperation lower_reverse_tensor(struct lower *l, MlirValue x, const struct hlo_shape *s, struct hlo_ints dims) {
  struct reversal r = {x, s, dims};
  MlirAffineMap id = ir_identity_map(&l->b, s->rank);
  return ir_linalg_generic(
      &l->b, &(struct ir_generic){
                 .n_loops = s->rank, .maps = &id, .output = lower_empty(l, s), .body = write_reverse, .user = &r});
}

enum status lower_reverse(struct lower *l, const struct hlo_instr *i) {
  MlirOperation op = lower_reverse_tensor(l, lower_value(l, i->operands[0]), &i->shape, i->attrs->dimensions);
  lower_set(l, i, ir_result(op), op);
  return ST_OK;
}

/* ---- sort ------------------------------------------------------------------------------------------------ */

struct sort {
  struct lower *l;
  const struct hlo_computation *comparator; /* NULL: compare the first operand in the total order */
  bool is_descending;
  enum dtype dtype;
  int n, rank, axis;
  const int64_t *dims;
  MlirValue *x; /* the n operands */
  const enum dtype *types;
  int part;          /* the operand that is being sorted */
  int n_keys, *keys; /* the operands that the comparator reads: the others do not decide the order */
};

static bool is_read(const struct hlo_computation *c, const struct hlo_instr *x) {
  bool found = c->root == x;
  hlo_for_each(i, c) {
    for (int o = 0; o < i->n_operands; o++)
      found |= i->operands[o] == x;
  }
  return found;
}

static void find_keys(struct sort *s) {
  s->keys = arena_new_array(&s->l->arena, int, (size_t)s->n);
  for (int k = 0; k < s->n; k++)
    if (s->comparator ? is_read(s->comparator, s->comparator->params[2 * k]) ||
                            is_read(s->comparator, s->comparator->params[2 * k + 1])
                      : k == 0)
      s->keys[s->n_keys++] = k;
}

/* x and y: the keys of two elements.  The comparator's other parameters stay null. */
static MlirValue comes_before(struct ir_builder *b, const struct sort *s, MlirValue const *x, MlirValue const *y) {
  MlirValue *args = arena_new_array(b->arena, MlirValue, 2 * (size_t)s->n), result;
  if (!s->comparator)
    return scalar_compare(b, s->is_descending ? HLO_GT : HLO_LT, s->dtype, dtype_is_float(s->dtype), x[0], y[0]);
  for (int k = 0; k < s->n_keys; k++) {
    args[2 * s->keys[k]] = x[k];
    args[2 * s->keys[k] + 1] = y[k];
  }
  body_write(s->l, b, s->comparator, args, &result);
  return result;
}

/* Yields the count plus 1 if the other element comes before this one.  args: each key of this element, each key
 * of the other element, the count so far.  Elements that are equal to the comparator keep their order. */
static MlirValue write_rank(struct ir_builder *b, MlirValue const *args, void *user) {
  const struct sort *s = user;
  MlirValue other_first = comes_before(b, s, args + s->n_keys, args),
            this_first = comes_before(b, s, args, args + s->n_keys);
  MlirValue is_tie = ir_cmpi(b, IR_INT_EQ, other_first, this_first);
  MlirValue is_left = ir_cmpi(b, IR_INT_SLT, ir_linalg_index(b, s->rank), ir_linalg_index(b, s->axis));
  MlirValue before = ir_select(b, is_tie, is_left, other_first);
  MlirValue one = ir_op1(b, "arith.extui", ir_element_type(b, DT_I32), 1, &before);
  return ir_binary(b, "arith.addi", args[2 * s->n_keys], one);
}

static MlirValue count_before(struct lower *l, struct sort *s) {
  find_keys(s);
  const int n = s->n_keys;
  MlirValue *inputs = arena_new_array(&l->arena, MlirValue, 2 * (size_t)n + 1);
  MlirAffineMap *maps = arena_new_array(&l->arena, MlirAffineMap, 2 * (size_t)n + 1);
  bool reduction[HLO_RANK_MAX + 1] = {false};
  int64_t other[HLO_RANK_MAX], self[HLO_RANK_MAX];

  for (int d = 0; d < s->rank; d++) {
    self[d] = d;
    other[d] = d == s->axis ? s->rank : d;
  }
  reduction[s->rank] = true;
  const MlirAffineMap own = ir_map(&l->b, s->rank + 1, s->rank, self);
  for (int k = 0; k < n; k++) {
    inputs[k] = inputs[n + k] = s->x[s->keys[k]];
    maps[k] = own;
    maps[n + k] = ir_map(&l->b, s->rank + 1, s->rank, other);
  }
  maps[2 * n] = own;
  MlirValue dest =
      ir_fill(&l->b, ir_int(&l->b, ir_element_type(&l->b, DT_I32), 0), ir_empty(&l->b, DT_I32, s->rank, s->dims));
  return ir_result(ir_linalg_generic(&l->b, &(struct ir_generic){.n_loops = s->rank + 1,
                                                                 .reduction = reduction,
                                                                 .n_inputs = 2 * n,
                                                                 .inputs = inputs,
                                                                 .maps = maps,
                                                                 .output = dest,
                                                                 .body = write_rank,
                                                                 .user = s}));
}

/* The value of type t that changes no other one in a maximum of floats or a union of bits, not even NaN and the sign of a zero. */
static MlirValue neutral(struct ir_builder *b, enum dtype t) {
  if (!dtype_is_float(t))
    return ir_int(b, ir_element_type(b, t), 0);
  char bits[sizeof(double)] = {0};
  const struct hlo_literal least = {.shape = {.dtype = t}, .data = bits};
  hlo_literal_store_extreme(t, true, bits);
  return ir_float(b, ir_element_type(b, t), hlo_literal_double(&least, 0));
}

/* Yields the element if its rank is the place that is written, else what is there.  args: the element, its rank, what is there. */
static MlirValue write_placed(struct ir_builder *b, MlirValue const *args, void *user) {
  const struct sort *s = user;
  const enum dtype t = s->types[s->part];
  MlirValue at = ir_linalg_index(b, s->axis), place = ir_op1(b, "arith.index_cast", ir_element_type(b, DT_I32), 1, &at);
  MlirValue is_here = ir_cmpi(b, IR_INT_EQ, args[1], place);
  MlirValue here = ir_select(b, is_here, args[0], neutral(b, t));
  return ir_binary(b, dtype_is_float(t) ? "arith.maximumf" : "arith.ori", args[2], here);
}

/* Sorts s->x into out, whose extent along the axis is `count`: the elements of the lowest ranks. */
static void sort_tensors(struct lower *l, struct sort *s, int64_t count, MlirValue *out) {
  int64_t element[HLO_RANK_MAX], place[HLO_RANK_MAX], dims[HLO_RANK_MAX];
  bool reduction[HLO_RANK_MAX + 1] = {false};
  MlirValue ranks = count_before(l, s);

  for (int d = 0; d < s->rank; d++) {
    place[d] = d;
    element[d] = d == s->axis ? s->rank : d;
    dims[d] = d == s->axis ? count : s->dims[d];
  }
  reduction[s->rank] = true;
  const MlirAffineMap from = ir_map(&l->b, s->rank + 1, s->rank, element),
                      maps[] = {from, from, ir_map(&l->b, s->rank + 1, s->rank, place)};
  for (s->part = 0; s->part < s->n; s->part++) {
    const enum dtype t = s->types[s->part];
    MlirValue inputs[] = {s->x[s->part], ranks};
    out[s->part] = ir_result(ir_linalg_generic(
        &l->b, &(struct ir_generic){.n_loops = s->rank + 1,
                                    .reduction = reduction,
                                    .n_inputs = 2,
                                    .inputs = inputs,
                                    .maps = maps,
                                    .output = ir_fill(&l->b, neutral(&l->b, t), ir_empty(&l->b, t, s->rank, dims)),
                                    .body = write_placed,
                                    .user = s}));
  }
}

enum status lower_sort(struct lower *l, const struct hlo_instr *i) {
  const struct hlo_shape *x = &i->operands[0]->shape;
  struct sort s = {.l = l,
                   .comparator = i->called[0],
                   .n = i->n_operands,
                   .rank = x->rank,
                   .axis = (int)i->attrs->dimensions.v[0],
                   .dims = x->dims};
  const size_t n = (size_t)i->n_operands;
  MlirValue *out = arena_new_array(&l->arena, MlirValue, n);
  enum dtype *types = arena_new_array(&l->arena, enum dtype, n);

  s.x = arena_new_array(&l->arena, MlirValue, n);
  enum status st = body_check(l, i, i->called[0]);
  if (st || topk_of_sort(l, i))
    return st;
  for (int k = 0; k < s.n; k++) {
    s.x[k] = lower_value(l, i->operands[k]);
    types[k] = i->operands[k]->shape.dtype;
  }
  s.types = types;
  sort_tensors(l, &s, x->dims[s.axis], out);
  lower_set_parts(l, i, out);
  return ST_OK;
}

/* Returns x if it reverses the order of its operand's values (-y of floats, ~y of integers and bool), else NULL. */
static const struct hlo_instr *reversed(const struct hlo_instr *x) {
  return (x->op == HLO_NEGATE && dtype_is_float(x->shape.dtype)) || x->op == HLO_NOT ? x : NULL;
}

static MlirValue write_reversed(struct ir_builder *b, MlirValue const *args, void *user) {
  return scalar_apply(b, user, args);
}

/* Applies `by` to every element of x. */
static MlirValue apply(struct lower *l, const struct hlo_instr *by, MlirValue x, const struct hlo_shape *s) {
  MlirAffineMap id = ir_identity_map(&l->b, s->rank), maps[] = {id, id};
  return ir_result(ir_linalg_generic(&l->b, &(struct ir_generic){.n_loops = s->rank,
                                                                 .n_inputs = 1,
                                                                 .inputs = &x,
                                                                 .maps = maps,
                                                                 .output = lower_empty(l, s),
                                                                 .body = write_reversed,
                                                                 .user = (void *)(uintptr_t)by}));
}

/* If the operand is a negation, as for the k smallest values, its operand is sorted in the opposite order instead.  The
 * hardware negates by multiplication, which does not change the sign of a NaN and would leave it in the wrong place. */
enum status lower_topk(struct lower *l, const struct hlo_instr *i) {
  const struct hlo_instr *by = reversed(i->operands[0]);
  const struct hlo_shape *x = &i->operands[0]->shape, *to = &i->shape.elems[0];
  const struct hlo_shape index = {.dtype = DT_I32, .rank = x->rank, .dims = x->dims};
  struct sort s = {.l = l,
                   .is_descending = i->attrs->is_smallest == !!by,
                   .dtype = x->dtype,
                   .n = 2,
                   .rank = x->rank,
                   .axis = x->rank - 1,
                   .dims = x->dims,
                   .types = (enum dtype[]){x->dtype, DT_I32},
                   .x = (MlirValue[2]){{NULL}}};
  MlirValue out[2];

  s.x[0] = lower_value(l, by ? by->operands[0] : i->operands[0]);
  if (topk_takes(x, x->rank - 1, i->attrs->k) && i->attrs->k <= x->dims[x->rank - 1] / 4) {
    topk_call(
        l, &(struct topk){.x = x, .value = s.x[0], .k = i->attrs->k, .is_smallest = !s.is_descending, .is_total = true},
        out);
    if (by)
      out[0] = apply(l, by, out[0], to);
    lower_set_parts(l, i, out);
    return ST_OK;
  }
  s.x[1] = ir_result(lower_iota_tensor(l, &index, x->rank - 1));
  sort_tensors(l, &s, i->attrs->k, out);
  if (by)
    out[0] = apply(l, by, out[0], to);
  lower_set_parts(l, i, out);
  return ST_OK;
}

/* ---- reduce with several operands ------------------------------------------------------------------------ */

/* The state of a reduce with several operands.  Each step combines all pairs of adjacent elements, until one element is
 * left.  A step is one element-wise operation for each result.  A combiner is associative by definition. */
struct wide {
  struct lower *l;
  const struct hlo_instr *instr;
  int n, rank, part;          /* part: the result that is being computed */
  int64_t dims[HLO_RANK_MAX]; /* shape of x */
  MlirValue *x;               /* the n operands, combined so far */
  MlirValue const *init;      /* the initial values in the last step, NULL before that */
};

/* Yields result w->part of the combiner.  args: the left elements, then the right ones.  In the last step the left
 * elements are the initial values, and args has only the right ones. */
static MlirValue write_combined(struct ir_builder *b, MlirValue const *args, void *user) {
  const struct wide *w = user;
  MlirValue *both = arena_new_array(b->arena, MlirValue, 2 * (size_t)w->n);
  MlirValue *results = arena_new_array(b->arena, MlirValue, (size_t)w->n);

  for (int k = 0; k < w->n; k++) {
    both[k] = w->init ? w->init[k] : args[k];
    both[w->n + k] = args[w->init ? k : w->n + k];
  }
  body_write(w->l, b, w->instr->called[0], both, results);
  return results[w->part];
}

/* Applies the combiner to the inputs, which have the shape w->dims, and sets out to all results. */
static void combine(struct wide *w, int n_inputs, MlirValue const *inputs, MlirValue *out) {
  struct lower *l = w->l;
  MlirAffineMap *maps = arena_new_array(&l->arena, MlirAffineMap, (size_t)n_inputs + 1);

  for (int k = 0; k <= n_inputs; k++)
    maps[k] = ir_identity_map(&l->b, w->rank);
  for (w->part = 0; w->part < w->n; w->part++) {
    const enum dtype t = w->instr->shape.elems[w->part].dtype;
    out[w->part] =
        ir_result(ir_linalg_generic(&l->b, &(struct ir_generic){.n_loops = w->rank,
                                                                .n_inputs = n_inputs,
                                                                .inputs = inputs,
                                                                .maps = maps,
                                                                .output = ir_empty(&l->b, t, w->rank, w->dims),
                                                                .body = write_combined,
                                                                .user = w}));
  }
}

/* Takes a slice of `count` elements along the axis from every operand, from `first` on with the step `step`.  Sets
 * w->dims to the shape of the slices. */
static void take(struct wide *w, int axis, int64_t first, int64_t count, int64_t step, MlirValue *out) {
  int64_t offsets[HLO_RANK_MAX] = {0}, strides[HLO_RANK_MAX];

  for (int d = 0; d < w->rank; d++)
    strides[d] = d == axis ? step : 1;
  offsets[axis] = first;
  w->dims[axis] = count;
  struct ir_slice slice = {.rank = w->rank, .offsets = offsets, .sizes = w->dims, .strides = strides};
  for (int k = 0; k < w->n; k++)
    out[k] = ir_extract_slice(&w->l->b, w->x[k], &slice,
                              ir_tensor_type(&w->l->b, w->instr->shape.elems[k].dtype, w->rank, w->dims));
}

static void fold_axis(struct wide *w, int axis) {
  enum { HALVINGS_MAX = 63 }; /* of an int64_t */
  struct arena *a = &w->l->arena;
  MlirValue *pair = arena_new_array(a, MlirValue, 2 * (size_t)w->n);
  MlirValue *left[HALVINGS_MAX] = {NULL}; /* the last element of each step with an odd number of elements */
  int n_left = 0;

  for (int64_t n = w->dims[axis]; n > 1; n /= 2) {
    if (n % 2) {
      assert(n_left < HALVINGS_MAX);
      left[n_left] = arena_new_array(a, MlirValue, (size_t)w->n);
      take(w, axis, n - 1, 1, 1, left[n_left++]);
    }
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
  MlirValue *out = arena_new_array(&l->arena, MlirValue, (size_t)w.n);
  MlirValue *init = arena_new_array(&l->arena, MlirValue, (size_t)w.n);
  bool is_empty = false;

  w.x = arena_new_array(&l->arena, MlirValue, (size_t)w.n);
  enum status st = body_check(l, i, i->called[0]);
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
  w.init = init;
  if (!is_empty)
    combine(&w, w.n, w.x, out);
  for (int k = 0; k < w.n; k++) {
    const struct hlo_shape *to = &i->shape.elems[k], now = {.dtype = to->dtype, .rank = w.rank, .dims = w.dims};
    out[k] = is_empty ? ir_fill(&l->b, init[k], lower_empty(l, to))
                      : lower_reshape_tensor(l, out[k], &now, to->rank, to->dims);
  }
  lower_set_parts(l, i, out);
  return ST_OK;
}
