/* hlo_infer_reduce: shape rules of instructions with a combiner or a comparator, and of collectives (XLA's operation
 * semantics).
 */
#include "hlo/infer.h"

#define REFUSE(...) return fail(err, ST_INPUT, __VA_ARGS__)
#define TEXT(x) hlo_shape_text(a, &(x)->shape)
#define INTS(v) hlo_infer_ints_text(a, v)
#define OP(i, k) ((i)->operands[k])

/* ---- called computations ------------------------------------------------------------------------------- */

enum status hlo_infer_combiner(const struct hlo_instr *i, enum dtype t, struct error *err) {
  const char *op = hlo_op_name(i->op);
  const struct hlo_shape want = {.dtype = t};
  if (i->n_called != 1 || !i->called[0])
    REFUSE("%s: needs exactly one called computation", op);
  const struct hlo_computation *c = i->called[0];
  bool fits = c->n_params == 2 && c->root && hlo_shape_equal(&c->root->shape, &want);
  for (int k = 0; fits && k < 2; k++)
    fits = c->params[k] && hlo_shape_equal(&c->params[k]->shape, &want);
  if (!fits)
    REFUSE("%s: the called computation %s must take two %s[] and give one", op, c->name, dtype_hlo_name(t));
  return ST_OK;
}

static bool is_scalar(const struct hlo_shape *s, enum dtype t) {
  return s->dtype == t && s->rank == 0;
}

enum status hlo_infer_map(const struct hlo_instr *i, struct hlo_shape *out, struct error *err) {
  if (i->n_called != 1 || !i->called[0] || !i->called[0]->root || !i->n_operands)
    REFUSE("map: needs operands and exactly one called computation");
  const struct hlo_computation *c = i->called[0];
  const struct hlo_shape *s = &OP(i, 0)->shape;
  bool fits = c->n_params == i->n_operands && c->root->shape.dtype != DT_TUPLE && !c->root->shape.rank;
  for (int k = 0; fits && k < i->n_operands; k++)
    fits = is_scalar(&c->params[k]->shape, OP(i, k)->shape.dtype) && hlo_shape_same_dims(&OP(i, k)->shape, s);
  for (int k = 0; k < i->attrs->dimensions.n; k++)
    fits &= i->attrs->dimensions.v[k] == k;
  if (!fits || i->attrs->dimensions.n != s->rank)
    REFUSE("map: the computation %s does not take one element of each operand, all of one shape, and give one",
           c->name);
  *out = *s;
  out->dtype = c->root->shape.dtype;
  return ST_OK;
}

/* ---- reduce ---------------------------------------------------------------------------------------------- */

/* (accumulators…, elements…) -> accumulators, one of each operand's type. */
static bool is_wide_combiner(const struct hlo_instr *i, int n) {
  const struct hlo_computation *c = i->n_called == 1 ? i->called[0] : NULL;
  if (!c || !c->root || c->n_params != 2 * n || c->root->shape.dtype != DT_TUPLE || c->root->shape.n_elems != n)
    return false;
  for (int k = 0; k < 2 * n; k++)
    if (!is_scalar(&c->params[k]->shape, OP(i, k % n)->shape.dtype) ||
        !is_scalar(&c->root->shape.elems[k % n], OP(i, k % n)->shape.dtype))
      return false;
  return true;
}

enum status hlo_infer_reduce(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out, struct error *err) {
  int64_t dims[HLO_RANK_MAX];
  int rank = 0, n = i->n_operands / 2;

  if (!n || i->n_operands % 2)
    REFUSE("reduce: %d operands are not values and an initial value for each", i->n_operands);
  const struct hlo_instr *x = OP(i, 0);
  for (int k = 0; k < n; k++) {
    if (!is_scalar(&OP(i, n + k)->shape, OP(i, k)->shape.dtype))
      REFUSE("reduce: the initial value %s must be %s[]", TEXT(OP(i, n + k)), dtype_hlo_name(OP(i, k)->shape.dtype));
    if (!hlo_shape_same_dims(&OP(i, k)->shape, &x->shape))
      REFUSE("reduce: operands %s and %s must have the same dimensions", TEXT(x), TEXT(OP(i, k)));
  }
  if (!hlo_infer_is_distinct_below(i->attrs->dimensions, x->shape.rank))
    REFUSE("reduce: dimensions %s are not different dimensions of %s", INTS(i->attrs->dimensions), TEXT(x));
  for (int k = 0; k < x->shape.rank; k++)
    if (!hlo_infer_contains(i->attrs->dimensions, k))
      dims[rank++] = x->shape.dims[k];
  *out = hlo_shape_array(a, x->shape.dtype, rank, dims);
  if (n == 1)
    return hlo_infer_combiner(i, x->shape.dtype, err);
  if (!is_wide_combiner(i, n))
    REFUSE("reduce: the called computation does not take %d accumulators and %d elements and give the accumulators", n,
           n);
  struct hlo_shape *elems = arena_new_array(a, struct hlo_shape, (size_t)n);
  for (int k = 0; k < n; k++)
    elems[k] = hlo_shape_array(a, OP(i, k)->shape.dtype, rank, dims);
  *out = (struct hlo_shape){.dtype = DT_TUPLE, .n_elems = n, .elems = elems};
  return ST_OK;
}

/* ---- order ----------------------------------------------------------------------------------------------- */

enum status hlo_infer_reverse(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out, struct error *err) {
  if (!hlo_infer_is_distinct_below(i->attrs->dimensions, OP(i, 0)->shape.rank))
    REFUSE("reverse: dimensions %s are not different dimensions of %s", INTS(i->attrs->dimensions), TEXT(OP(i, 0)));
  *out = OP(i, 0)->shape;
  return ST_OK;
}

/* The comparator takes two elements of each operand, next to each other. */
static bool is_comparator(const struct hlo_instr *i) {
  const struct hlo_computation *c = i->n_called == 1 ? i->called[0] : NULL;
  if (!c || !c->root || c->n_params != 2 * i->n_operands || !is_scalar(&c->root->shape, DT_BOOL))
    return false;
  for (int k = 0; k < c->n_params; k++)
    if (!is_scalar(&c->params[k]->shape, OP(i, k / 2)->shape.dtype))
      return false;
  return true;
}

enum status hlo_infer_sort(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out, struct error *err) {
  if (!i->n_operands)
    REFUSE("sort: no operands");
  if (i->attrs->dimensions.n != 1 || !hlo_infer_is_distinct_below(i->attrs->dimensions, OP(i, 0)->shape.rank))
    REFUSE("sort: dimension %s of %s does not exist", INTS(i->attrs->dimensions), TEXT(OP(i, 0)));
  struct hlo_shape *elems = arena_new_array(a, struct hlo_shape, (size_t)i->n_operands);
  for (int k = 0; k < i->n_operands; k++) {
    elems[k] = OP(i, k)->shape;
    if (!hlo_shape_same_dims(&elems[k], &elems[0]))
      REFUSE("sort: operands %s and %s must have the same dimensions", TEXT(OP(i, 0)), TEXT(OP(i, k)));
  }
  if (!is_comparator(i))
    REFUSE("sort: the called computation must take two elements of each operand and give pred[]");
  *out = elems[0];
  if (i->n_operands > 1)
    *out = (struct hlo_shape){.dtype = DT_TUPLE, .n_elems = i->n_operands, .elems = elems};
  return ST_OK;
}

enum status hlo_infer_topk(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out, struct error *err) {
  const struct hlo_shape *x = &OP(i, 0)->shape;
  int64_t dims[HLO_RANK_MAX];
  if (!x->rank || i->attrs->k < 0 || i->attrs->k > x->dims[x->rank - 1])
    REFUSE("topk: %lld elements of the last dimension of %s do not exist", (long long)i->attrs->k, TEXT(OP(i, 0)));
  for (int k = 0; k < x->rank; k++)
    dims[k] = k == x->rank - 1 ? i->attrs->k : x->dims[k];
  struct hlo_shape *elems = arena_new_array(a, struct hlo_shape, 2);
  elems[0] = hlo_shape_array(a, x->dtype, x->rank, dims);
  elems[1] = hlo_shape_array(a, DT_I32, x->rank, dims);
  *out = (struct hlo_shape){.dtype = DT_TUPLE, .n_elems = 2, .elems = elems};
  return ST_OK;
}

/* ---- collectives ----------------------------------------------------------------------------------------- */

/* The number of devices in a group; without groups the ratio of the shapes gives it. */
static enum status check_groups(const struct hlo_instr *i, int64_t *size, struct error *err) {
  *size = 0;
  for (int k = 0; i->attrs->groups && k < i->attrs->groups->n; k++) {
    if (*size && i->attrs->groups->v[k].n != *size)
      REFUSE("%s: the groups have different sizes", hlo_op_name(i->op));
    *size = i->attrs->groups->v[k].n;
  }
  return ST_OK;
}

static enum status infer_resizing(struct arena *a, const struct hlo_instr *i, int64_t size, struct hlo_shape *out,
                                  struct error *err) {
  const struct hlo_shape *x = &OP(i, 0)->shape;
  const bool grows = i->op == HLO_ALL_GATHER;
  int64_t dims[HLO_RANK_MAX];
  if (i->attrs->dimensions.n != 1 || !hlo_infer_is_distinct_below(i->attrs->dimensions, x->rank))
    REFUSE("%s: dimension %s of %s does not exist", hlo_op_name(i->op), INTS(i->attrs->dimensions), TEXT(OP(i, 0)));
  for (int k = 0; k < x->rank; k++)
    dims[k] = x->dims[k];
  int64_t *at = &dims[i->attrs->dimensions.v[0]];
  if (!size) { /* all devices: the result's shape says how many */
    if (i->shape.rank != x->rank)
      REFUSE("%s: the result %s does not fit %s", hlo_op_name(i->op), TEXT(i), TEXT(OP(i, 0)));
    int64_t to = i->shape.dims[i->attrs->dimensions.v[0]], small = grows ? *at : to, large = grows ? to : *at;
    if (large % (small ? small : 1) || (large && !small))
      REFUSE("%s: the result %s is no multiple or part of %s", hlo_op_name(i->op), TEXT(i), TEXT(OP(i, 0)));
    *at = to;
  } else if (grows ? __builtin_mul_overflow(*at, size, at) : *at % size != 0) {
    REFUSE("%s: dimension %s of %s does not divide among %lld devices", hlo_op_name(i->op), INTS(i->attrs->dimensions),
           TEXT(OP(i, 0)), (long long)size);
  } else if (!grows) {
    *at /= size;
  }
  *out = hlo_shape_array(a, x->dtype, x->rank, dims);
  return ST_OK;
}

enum status hlo_infer_collective(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out, struct error *err) {
  const struct hlo_shape *x = &OP(i, 0)->shape;
  int64_t size;
  enum status st = check_groups(i, &size, err);
  if (st)
    return st;
  if (i->op == HLO_ALL_REDUCE || i->op == HLO_REDUCE_SCATTER)
    st = hlo_infer_combiner(i, x->dtype, err);
  if (!st && (i->op == HLO_ALL_GATHER || i->op == HLO_REDUCE_SCATTER))
    return infer_resizing(a, i, size, out, err);
  if (i->op == HLO_ALL_TO_ALL &&
      (i->attrs->dimensions.n != 1 || !hlo_infer_is_distinct_below(i->attrs->dimensions, x->rank) ||
       (size && x->dims[i->attrs->dimensions.v[0]] % size)))
    REFUSE("all-to-all: dimension %s of %s does not divide among the devices", INTS(i->attrs->dimensions),
           TEXT(OP(i, 0)));
  if (i->op == HLO_COLLECTIVE_PERMUTE && size && size != 2)
    REFUSE("collective-permute: source_target_pairs must be pairs");
  *out = *x;
  return st;
}
