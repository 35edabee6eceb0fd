/* expand: what the rules of op-expander build with.  See expand.h. */
#include "hlo/expand.h"

hlo_val hlo_expand_like(struct hlo_builder *b, hlo_val x, double v) {
  return x ? hlo_full(b, x->shape.dtype, x->shape.rank, x->shape.dims, v) : NULL;
}

hlo_val hlo_expand_with(struct hlo_builder *b, enum hlo_op op, hlo_val x, double v) {
  return hlo_binary(b, op, x, hlo_expand_like(b, x, v));
}

hlo_val hlo_expand_part(struct hlo_builder *b, hlo_val x, int d, int64_t start, int64_t limit) {
  struct hlo_slice_dim dims[HLO_RANK_MAX];
  if (!x)
    return NULL;
  for (int k = 0; k < x->shape.rank; k++)
    dims[k] = k == d ? (struct hlo_slice_dim){start, limit, 1} : (struct hlo_slice_dim){0, x->shape.dims[k], 1};
  return hlo_slice(b, x, dims);
}
