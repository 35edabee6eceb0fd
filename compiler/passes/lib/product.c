/* product: see product.h. */
#include "passes/lib/product.h"

#include "passes/lib/edit.h"

int product_dim(const struct product *p, int operand, int loop) {
  for (int r = 0; r < mlirAffineMapGetNumResults(p->s.maps[operand]); r++)
    if (structured_map_loop(p->s.maps[operand], r) == loop)
      return r;
  return -1;
}

static bool only_loops(MlirAffineMap m) {
  for (int r = 0; r < mlirAffineMapGetNumResults(m); r++)
    if (structured_map_loop(m, r) < 0)
      return false;
  return true;
}

bool product_read(MlirOperation op, struct product *out) {
  struct product p = {.op = op};
  const bool is_generic = ir_is(op, "linalg.generic");

  *out = p;
  if (!is_generic && !ir_is(op, "linalg.matmul") && !ir_is(op, "linalg.batch_matmul") && !ir_is(op, "linalg.contract"))
    return false;
  if (!structured_read(op, &p.s) || p.s.n_inputs != 2 || p.s.n_inits != 1 || mlirOperationGetNumResults(op) != 1)
    return false;
  int n_red = 0;
  for (int l = 0; l < p.s.n_loops; l++)
    if (product_dim(&p, 2, l) < 0) { /* linalg.contract has no iterator types: loops that the result lacks are summed */
      p.k = l;
      n_red++;
    }
  p.rank = (int)mlirAffineMapGetNumResults(p.s.maps[2]);
  p.n_batch = p.rank - 2;
  if (n_red != 1 || p.n_batch < 0 || p.s.n_loops != p.rank + 1)
    return false;
  for (int o = 0; o < 3; o++)
    if (!only_loops(p.s.maps[o]))
      return false;
  p.m = structured_map_loop(p.s.maps[2], p.rank - 2);
  p.n = structured_map_loop(p.s.maps[2], p.rank - 1);
  *out = p;
  return product_dim(&p, 0, p.m) >= 0 && product_dim(&p, 0, p.k) >= 0 && product_dim(&p, 0, p.n) < 0 &&
         product_dim(&p, 1, p.k) >= 0 && product_dim(&p, 1, p.n) >= 0 && product_dim(&p, 1, p.m) < 0 &&
         (!is_generic || edit_multiplies_and_adds(op));
}
