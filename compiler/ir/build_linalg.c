/* build_linalg: makes operations of linalg.  See build.h. */
#include <assert.h>

#include "mlir-c/Dialect/Linalg.h"

#include "ir/build.h"

/* ---- maps ------------------------------------------------------------------------------------------------------- */

MlirAffineMap ir_identity_map(const struct ir_builder *b, int rank) {
  return mlirAffineMapMultiDimIdentityGet(b->ctx, rank);
}

MlirAffineMap ir_map(const struct ir_builder *b, int n_loops, int n_results, const int64_t *results) {
  MlirAffineExpr *exprs = arena_new_array(b->arena, MlirAffineExpr, (size_t)n_results);

  for (int i = 0; i < n_results; i++) {
    assert(results[i] < n_loops);
    exprs[i] = results[i] >= 0 ? mlirAffineDimExprGet(b->ctx, results[i])
                               : mlirAffineConstantExprGet(b->ctx, IR_CONST(results[i]));
  }
  return mlirAffineMapGet(b->ctx, n_loops, 0, n_results, exprs);
}

MlirAttribute ir_iterator(MlirContext ctx, bool is_reduction) {
  return mlirAttributeParseGet(
      ctx, ir_str(is_reduction ? "#linalg.iterator_type<reduction>" : "#linalg.iterator_type<parallel>"));
}

/* ---- operations ------------------------------------------------------------------------------------------------- */

/* Makes a linalg operation; the last of the n operands is the output. */
static MlirOperation create(struct ir_builder *b, const char *name, int n, MlirValue const *operands, int n_attrs,
                            MlirNamedAttribute const *attrs, MlirRegion region) {
  MlirType result = mlirValueGetType(operands[n - 1]);

  return ir_create(b, &(struct ir_parts){.name = name,
                                         .n_operands = n,
                                         .operands = operands,
                                         .n_results = mlirTypeIsAMemRef(result) ? 0 : 1,
                                         .results = &result,
                                         .n_attrs = n_attrs,
                                         .attrs = attrs,
                                         .n_regions = 1,
                                         .regions = &region});
}

/* Makes a region with a block that has an argument for the element of every operand. */
static MlirRegion body_region(const struct ir_builder *b, int n, MlirValue const *operands, struct ir_builder *body) {
  MlirType *types = arena_new_array(b->arena, MlirType, (size_t)n);

  for (int i = 0; i < n; i++)
    types[i] = ir_value_element(operands[i]);
  return ir_region(b, n, types, body);
}

MlirOperation ir_linalg_generic(struct ir_builder *b, const struct ir_generic *g) {
  const int n = g->n_inputs + 1;
  MlirValue *operands = arena_new_array(b->arena, MlirValue, (size_t)n);
  MlirValue *args = arena_new_array(b->arena, MlirValue, (size_t)n);
  MlirAttribute *maps = arena_new_array(b->arena, MlirAttribute, (size_t)n);
  MlirAttribute *iterators = arena_new_array(b->arena, MlirAttribute, (size_t)g->n_loops);
  struct ir_builder body;

  for (int i = 0; i < g->n_inputs; i++)
    operands[i] = g->inputs[i];
  operands[n - 1] = g->output;
  MlirRegion region = body_region(b, n, operands, &body);
  for (int i = 0; i < n; i++) {
    assert(mlirAffineMapGetNumDims(g->maps[i]) == g->n_loops);
    args[i] = mlirBlockGetArgument(body.block, i);
    maps[i] = mlirAffineMapAttrGet(g->maps[i]);
  }
  MlirValue yielded = g->body(&body, args, g->user);
  ir_op0(&body, "linalg.yield", 1, &yielded);
  for (int i = 0; i < g->n_loops; i++)
    iterators[i] = ir_iterator(b->ctx, g->reduction && g->reduction[i]);
  MlirNamedAttribute attrs[] = {
      ir_named(b, "indexing_maps", mlirArrayAttrGet(b->ctx, n, maps)),
      ir_named(b, "iterator_types", mlirArrayAttrGet(b->ctx, g->n_loops, iterators)),
      ir_segments(b, 2, (int32_t[]){g->n_inputs, 1}),
  };
  return create(b, "linalg.generic", n, operands, 3, attrs, region);
}

MlirValue ir_linalg_index(struct ir_builder *b, int dim) {
  MlirNamedAttribute attr = ir_named(b, "dim", ir_i64_attr(b, dim));
  return ir_op1_with(b, "linalg.index", ir_index_type(b), 0, NULL, 1, &attr);
}

MlirOperation ir_linalg_named(struct ir_builder *b, const char *name, int n_inputs, MlirValue const *inputs,
                              MlirValue output, int n_attrs, MlirNamedAttribute const *attrs) {
  MlirValue *operands = arena_new_array(b->arena, MlirValue, (size_t)n_inputs + 1);
  MlirNamedAttribute *all = arena_new_array(b->arena, MlirNamedAttribute, (size_t)n_attrs + 1);

  for (int i = 0; i < n_inputs; i++)
    operands[i] = inputs[i];
  operands[n_inputs] = output;
  for (int i = 0; i < n_attrs; i++)
    all[i] = attrs[i];
  all[n_attrs] = ir_segments(b, 2, (int32_t[]){n_inputs, 1});
  MlirOperation op = create(b, name, n_inputs + 1, operands, n_attrs + 1, all, mlirRegionCreate());
  mlirLinalgFillBuiltinNamedOpRegion(op);
  return op;
}

MlirValue ir_fill(struct ir_builder *b, MlirValue scalar, MlirValue dest) {
  return ir_result(ir_linalg_named(b, "linalg.fill", 1, &scalar, dest, 0, NULL));
}

/* MLIR builds no region for these two operations. */
MlirOperation ir_linalg_copying(struct ir_builder *b, const char *name, MlirValue x, MlirValue output,
                                MlirNamedAttribute attr) {
  MlirValue operands[] = {x, output};
  struct ir_builder body;
  MlirRegion region = body_region(b, 2, operands, &body);
  MlirValue arg = mlirBlockGetArgument(body.block, 0);

  ir_op0(&body, "linalg.yield", 1, &arg);
  return create(b, name, 2, operands, 1, &attr, region);
}

MlirOperation ir_transpose(struct ir_builder *b, MlirValue x, int rank, const int64_t *permutation) {
  MlirType t = mlirValueGetType(x);
  int64_t *dims = arena_new_array(b->arena, int64_t, (size_t)rank);

  assert(mlirShapedTypeGetRank(t) == rank);
  for (int i = 0; i < rank; i++)
    dims[i] = mlirShapedTypeGetDimSize(t, permutation[i]);
  MlirValue output = ir_empty_of(b, ir_tensor_of(mlirShapedTypeGetElementType(t), rank, dims));
  MlirNamedAttribute attr = ir_named(b, "permutation", ir_i64_array(b, rank, permutation));
  return ir_linalg_copying(b, "linalg.transpose", x, output, attr);
}

MlirOperation ir_broadcast(struct ir_builder *b, MlirValue x, MlirValue output, int64_t new_dim) {
  MlirNamedAttribute attr = ir_named(b, "dimensions", ir_i64_array(b, 1, &new_dim));
  return ir_linalg_copying(b, "linalg.broadcast", x, output, attr);
}
