/* infer_shape: shape rules of instructions that give elements another shape, or take some of them. */
#include "hlo/infer.h"

#define REFUSE(...) return fail(err, ST_INPUT, __VA_ARGS__)
#define TEXT(x) hlo_shape_text(a, &(x)->shape)
#define OP(i, k) ((i)->operands[k])

enum status hlo_infer_broadcast(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out, struct error *err) {
  const struct hlo_instr *x = OP(i, 0);
  if (i->attrs->dimensions.n != x->shape.rank)
    REFUSE("broadcast: %s needs %d dimension numbers, not %s", TEXT(x), x->shape.rank,
           hlo_infer_ints_text(a, i->attrs->dimensions));
  if (!hlo_infer_is_distinct_below(i->attrs->dimensions, i->shape.rank))
    REFUSE("broadcast: dimensions %s of %s must differ and exist in the result %s",
           hlo_infer_ints_text(a, i->attrs->dimensions), TEXT(x), TEXT(i));
  for (int k = 0; k < x->shape.rank; k++)
    if (x->shape.dims[k] != i->shape.dims[i->attrs->dimensions.v[k]])
      REFUSE("broadcast: dimension %d of %s does not have the size of dimension %lld of the result %s", k, TEXT(x),
             (long long)i->attrs->dimensions.v[k], TEXT(i));
  *out = i->shape;
  out->dtype = x->shape.dtype;
  return ST_OK;
}

enum status hlo_infer_reshape(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out, struct error *err) {
  const struct hlo_instr *x = OP(i, 0);
  *out = i->shape;
  out->dtype = x->shape.dtype;
  if (hlo_shape_elements(out) != hlo_shape_elements(&x->shape))
    REFUSE("reshape: %s has %lld elements, %s has %lld", TEXT(x), (long long)hlo_shape_elements(&x->shape),
           hlo_shape_text(a, out), (long long)hlo_shape_elements(out));
  return ST_OK;
}

enum status hlo_infer_transpose(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out, struct error *err) {
  const struct hlo_instr *x = OP(i, 0);
  int64_t dims[HLO_RANK_MAX];
  if (i->attrs->dimensions.n != x->shape.rank || !hlo_infer_is_distinct_below(i->attrs->dimensions, x->shape.rank))
    REFUSE("transpose: %s is not a permutation of the dimensions of %s", hlo_infer_ints_text(a, i->attrs->dimensions),
           TEXT(x));
  for (int k = 0; k < x->shape.rank; k++)
    dims[k] = x->shape.dims[i->attrs->dimensions.v[k]];
  *out = hlo_shape_array(a, x->shape.dtype, x->shape.rank, dims);
  return ST_OK;
}

enum status hlo_infer_slice(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out, struct error *err) {
  const struct hlo_instr *x = OP(i, 0);
  int64_t dims[HLO_RANK_MAX];
  if (!i->attrs->slice && x->shape.rank)
    REFUSE("slice: no ranges");
  for (int k = 0; k < x->shape.rank; k++) {
    struct hlo_slice_dim s = i->attrs->slice[k];
    if (s.start < 0 || s.limit < s.start || s.limit > x->shape.dims[k] || s.stride < 1)
      REFUSE("slice: range [%lld:%lld:%lld] does not fit dimension %d of %s", (long long)s.start, (long long)s.limit,
             (long long)s.stride, k, TEXT(x));
    int64_t span = s.limit - s.start;
    dims[k] = span / s.stride + (span % s.stride != 0);
  }
  *out = hlo_shape_array(a, x->shape.dtype, x->shape.rank, dims);
  return ST_OK;
}

bool hlo_infer_padded_size(int64_t dim, struct hlo_pad_dim p, int64_t *size) {
  int64_t inner;
  return !__builtin_mul_overflow(dim > 0 ? dim - 1 : 0, p.interior, &inner) &&
         !__builtin_add_overflow(dim, inner, size) && !__builtin_add_overflow(*size, p.low, size) &&
         !__builtin_add_overflow(*size, p.high, size);
}

enum status hlo_infer_pad(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out, struct error *err) {
  const struct hlo_instr *x = OP(i, 0), *v = OP(i, 1);
  int64_t dims[HLO_RANK_MAX];
  if (v->shape.rank != 0 || v->shape.dtype != x->shape.dtype)
    REFUSE("pad: the padding value %s must be %s[]", TEXT(v), dtype_hlo_name(x->shape.dtype));
  if (!x->shape.rank)
    REFUSE("pad: %s has no dimensions", TEXT(x)); /* HLO text has no form for it */
  if (!i->attrs->padding)
    REFUSE("pad: no padding");
  for (int k = 0; k < x->shape.rank; k++) {
    struct hlo_pad_dim p = i->attrs->padding[k];
    if (p.interior < 0 || !hlo_infer_padded_size(x->shape.dims[k], p, &dims[k]) || dims[k] < 0)
      REFUSE("pad: padding %lld_%lld_%lld does not fit dimension %d of %s", (long long)p.low, (long long)p.high,
             (long long)p.interior, k, TEXT(x));
  }
  *out = hlo_shape_array(a, x->shape.dtype, x->shape.rank, dims);
  return ST_OK;
}

enum status hlo_infer_concatenate(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out,
                                  struct error *err) {
  int64_t dims[HLO_RANK_MAX];
  if (!i->n_operands)
    REFUSE("concatenate: no operands");
  const struct hlo_shape *s = &OP(i, 0)->shape;
  if (i->attrs->dimensions.n != 1 || !hlo_infer_is_distinct_below(i->attrs->dimensions, s->rank))
    REFUSE("concatenate: dimension %s of %s does not exist", hlo_infer_ints_text(a, i->attrs->dimensions),
           hlo_shape_text(a, s));
  int64_t at = i->attrs->dimensions.v[0];
  hlo_dims_copy(s->rank, dims, s->dims);
  for (int n = 1; n < i->n_operands; n++) {
    const struct hlo_shape *t = &OP(i, n)->shape;
    bool fits = t->dtype == s->dtype && t->rank == s->rank;
    for (int k = 0; fits && k < s->rank; k++)
      fits = k == at || t->dims[k] == s->dims[k];
    if (!fits)
      REFUSE("concatenate: operands %s and %s must be alike in all but dimension %lld", hlo_shape_text(a, s),
             hlo_shape_text(a, t), (long long)at);
    if (__builtin_add_overflow(dims[at], t->dims[at], &dims[at]))
      REFUSE("concatenate: the result is too large");
  }
  *out = hlo_shape_array(a, s->dtype, s->rank, dims);
  return ST_OK;
}

static enum status check_starts(struct arena *a, const struct hlo_instr *i, int first, struct error *err) {
  const struct hlo_instr *x = OP(i, 0);
  if (i->n_operands != first + x->shape.rank)
    REFUSE("%s: %s needs %d start indices, not %d", hlo_op_name(i->op), TEXT(x), x->shape.rank, i->n_operands - first);
  for (int k = first; k < i->n_operands; k++) {
    const struct hlo_instr *s = OP(i, k);
    if (s->shape.rank || !dtype_is_int(s->shape.dtype) || s->shape.dtype != OP(i, first)->shape.dtype)
      REFUSE("%s: start index %s must be a 0-d integer like the others", hlo_op_name(i->op), TEXT(s));
  }
  return ST_OK;
}

enum status hlo_infer_dynamic_slice(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out,
                                    struct error *err) {
  if (i->n_operands < 1)
    REFUSE("dynamic-slice: no operands");
  const struct hlo_instr *x = OP(i, 0);
  enum status st = check_starts(a, i, 1, err);
  if (st)
    return st;
  if (i->attrs->dimensions.n != x->shape.rank)
    REFUSE("dynamic-slice: %s needs %d sizes, not %s", TEXT(x), x->shape.rank,
           hlo_infer_ints_text(a, i->attrs->dimensions));
  for (int k = 0; k < x->shape.rank; k++)
    if (i->attrs->dimensions.v[k] < 0 || i->attrs->dimensions.v[k] > x->shape.dims[k])
      REFUSE("dynamic-slice: sizes %s do not fit %s", hlo_infer_ints_text(a, i->attrs->dimensions), TEXT(x));
  *out = hlo_shape_array(a, x->shape.dtype, x->shape.rank, i->attrs->dimensions.v);
  return ST_OK;
}

enum status hlo_infer_dynamic_update_slice(struct arena *a, const struct hlo_instr *i, struct hlo_shape *out,
                                           struct error *err) {
  if (i->n_operands < 2)
    REFUSE("dynamic-update-slice: needs a value and an update");
  const struct hlo_instr *x = OP(i, 0), *u = OP(i, 1);
  enum status st = check_starts(a, i, 2, err);
  if (st)
    return st;
  bool fits = u->shape.dtype == x->shape.dtype && u->shape.rank == x->shape.rank;
  for (int k = 0; fits && k < x->shape.rank; k++)
    fits = u->shape.dims[k] <= x->shape.dims[k];
  if (!fits)
    REFUSE("dynamic-update-slice: update %s does not fit into %s", TEXT(u), TEXT(x));
  *out = x->shape;
  return ST_OK;
}
