/* turns: a load of single elements whose rows lie along the partitions becomes a transpose.
 *
 *     dma_copy(dst<128| 8> %t[d0, d1], src<128| 8> %x[d0 + d1*128])
 *  ==>
 *     dma_transpose(dst<128| 8> %t[d0, d1], src<8| 128> %x[d0*128 + d1])
 *
 * A copy moves an element with each descriptor, because neighbours in a partition are not neighbours in memory.  A transpose
 * reads whole rows of the source, and each descriptor brings all that a partition gets of a row.  Such loads are what becomes of
 * a row that is the left operand of a product, part by part.
 *
 * Safe because both give each place of the destination the same element.  Linear in operations.
 */
#include <inttypes.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "passes/coalesce_transfers/coalesce_transfers.h"

/* True if dimension d of the tile is longer than 1 and neighbours along it are neighbours in memory. */
static bool runs_along(const struct nisa_access *x, int d) {
  const int last = (int)mlirAffineMapGetNumResults(x->map) - 1;
  struct nisa_index index;

  if (last < 0 || x->tile[d] == 1) /* an operand without dimensions has one element */
    return false;
  for (int r = 0; r < last; r++)
    if (!nisa_access_index(x, r, &index) || index.dim[d])
      return false;
  return nisa_access_index(x, last, &index) && index.dim[d] == 1;
}

/* True if rows of the source run along the partitions of the destination, and none along its free dimensions. */
static bool is_turned(const struct nisa_access *src) {
  bool is_along_partitions = false;

  for (int d = 0; d < src->n_dims; d++) {
    const bool runs = runs_along(src, d);
    if (runs && d >= src->par_dims)
      return false;
    is_along_partitions |= runs;
  }
  return is_along_partitions;
}

/* The same elements, with the free dimensions as partitions and the partitions as free dimensions. */
static struct nisa_access turned(MlirContext ctx, const struct nisa_access *x) {
  MlirAffineExpr results[NISA_RANK_MAX];
  struct nisa_access out = *x;
  const int rank = (int)mlirAffineMapGetNumResults(x->map), n_free = x->n_dims - x->par_dims;

  out.par_dims = n_free;
  for (int d = 0; d < x->n_dims; d++)
    out.tile[d < x->par_dims ? d + n_free : d - x->par_dims] = x->tile[d];
  for (int r = 0; r < rank; r++) {
    struct nisa_index was, index;
    (void)nisa_access_index(x, r, &was);
    index = was;
    for (int d = 0; d < x->n_dims; d++)
      index.dim[d < x->par_dims ? d + n_free : d - x->par_dims] = was.dim[d];
    results[r] = nisa_index_expr(ctx, &out, &index);
  }
  out.map = mlirAffineMapGet(ctx, out.n_dims, out.n_indices, rank, results);
  return out;
}

void coalesce_turn(struct pass_run *run, MlirOperation copy) {
  MlirContext ctx = run->ir->ctx;
  struct nisa_instr in;

  if (nisa_keeps_order(copy) || !nisa_read(copy, &in, NULL))
    return;
  const struct nisa_access *dst = &in.operand[0], *src = &in.operand[1];
  const int64_t bytes = nisa_element_bytes(nisa_access_element(dst)), n = nisa_free_elements(dst);
  if (nisa_access_space(dst) != MEM_SBUF || mem_is_on_chip(nisa_access_space(src)) || n == 1 ||
      (bytes != 2 && bytes != 4) || !mlirTypeEqual(nisa_access_element(dst), nisa_access_element(src)) ||
      !is_turned(src))
    return;
  const struct ir_builder b = {.ctx = ctx, .arena = run->arena};
  const MlirNamedAttribute attr = ir_named(&b, "permutation", ir_i64_array(&b, 2, (int64_t[]){1, 0}));
  in.def = nisa_op_def(NISA_DMA_TRANSPOSE);
  in.operand[1] = turned(ctx, src);
  struct remark *r =
      pass_remark(run, copy, RULE_LOAD_BY_ROWS, "loaded by rows: %" PRId64 " descriptors", nisa_partitions(dst));
  remark_cost(r, "%" PRId64 " descriptors", nisa_partitions(dst));
  remark_reject_for(r, "loaded by elements", NULL,
                    arena_printf(run->arena, "%" PRId64 " descriptors", nisa_partitions(dst) * n),
                    "neighbours in a partition are not neighbours in memory");
  mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(copy), copy,
                                      nisa_create(&in, mlirOperationGetLocation(copy), 1, &attr));
  mlirOperationDestroy(copy);
}
