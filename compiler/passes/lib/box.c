#include "passes/lib/box.h"

#include "mlir-c/BuiltinTypes.h"

#include "ir/query.h"
#include "passes/lib/buffers.h"

static bool set_range(const struct nisa_access *x, int r, struct box *b) {
  struct nisa_index i;
  if (!nisa_access_index(x, r, &i))
    return false;
  b->low[r] = b->high[r] = i.constant;
  for (int d = 0; d < x->n_dims; d++)
    b->high[r] += i.dim[d] * (x->tile[d] - 1);
  for (int k = 0; k < x->n_indices; k++) {
    int64_t v = 0;
    if (i.sym[k] && !ir_int_constant(x->indices[k], &v))
      return false;
    b->low[r] += i.sym[k] * v;
    b->high[r] += i.sym[k] * v;
  }
  return true;
}

struct box box_of(const struct nisa_access *x) {
  struct box b = {.root = buffer_root(x->base).ptr,
                  .base = x->base.ptr,
                  .is_known = mlirTypeIsNull(x->type),
                  .rank = (int)mlirAffineMapGetNumResults(x->map)};
  for (int r = 0; r < b.rank && b.is_known; r++)
    b.is_known = set_range(x, r, &b);
  return b;
}

bool box_meets(const struct box *x, const struct box *y) {
  if (x->root != y->root)
    return false;
  if (x->base != y->base || !x->is_known || !y->is_known)
    return true;
  for (int r = 0; r < x->rank; r++)
    if (x->high[r] < y->low[r] || y->high[r] < x->low[r])
      return false;
  return true;
}
