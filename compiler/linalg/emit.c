/* emit: see emit.h. */
#include "linalg/emit.h"

#include "mlir-c/Dialect/Linalg.h"

#include "ir/ir.h"

/* ---- types and attributes --------------------------------------------------------------------------- */

MlirType emit_element_type(const struct emit *e, enum dtype t) {
  MlirContext c = e->ctx;

  switch (t) {
  case DT_BOOL:
    return mlirIntegerTypeGet(c, 1);
  case DT_F16:
    return mlirF16TypeGet(c);
  case DT_BF16:
    return mlirBF16TypeGet(c);
  case DT_F32:
    return mlirF32TypeGet(c);
  case DT_F64:
    return mlirF64TypeGet(c);
  case DT_F8E4M3:
    return mlirFloat8E4M3TypeGet(c);
  case DT_F8E4M3FN:
    return mlirFloat8E4M3FNTypeGet(c);
  case DT_F8E5M2:
    return mlirFloat8E5M2TypeGet(c);
  default:
    return mlirIntegerTypeGet(c, 8 * (unsigned)dtype_size(t));
  }
}

MlirType emit_tensor_type(const struct emit *e, enum dtype t, int rank, const int64_t *dims) {
  return mlirRankedTensorTypeGet(rank, dims, emit_element_type(e, t), mlirAttributeGetNull());
}

MlirType emit_index_type(const struct emit *e) {
  return mlirIndexTypeGet(e->ctx);
}

MlirType emit_value_element_type(MlirValue v) {
  MlirType t = mlirValueGetType(v);
  return mlirTypeIsAShaped(t) ? mlirShapedTypeGetElementType(t) : t;
}

MlirNamedAttribute emit_attr(const struct emit *e, const char *name, MlirAttribute v) {
  return mlirNamedAttributeGet(mlirIdentifierGet(e->ctx, ir_str(name)), v);
}

MlirAttribute emit_i64_array(const struct emit *e, int n, const int64_t *v) {
  return mlirDenseI64ArrayGet(e->ctx, n, v);
}

static MlirNamedAttribute segments(const struct emit *e, int n, const int32_t *v) {
  return emit_attr(e, "operandSegmentSizes", mlirDenseI32ArrayGet(e->ctx, n, v));
}

/* ---- operations ------------------------------------------------------------------------------------- */

bool emit_group_dims(int n_coarse, const int64_t *coarse, int n_fine, const int64_t *fine, int *end) {
  int f = 0;

  for (int k = 0; k < n_coarse; k++) {
    int64_t product = 1;
    if (f == n_fine)
      return false;
    do
      product *= fine[f++];
    while (product < coarse[k] && f < n_fine);
    if (product != coarse[k])
      return false;
    end[k] = f;
  }
  while (n_coarse && f < n_fine && fine[f] == 1)
    end[n_coarse - 1] = ++f;
  return f == n_fine;
}

MlirAttribute emit_reassociation(const struct emit *e, int n, const int *end) {
  MlirAttribute groups[HLO_RANK_MAX], dims[HLO_RANK_MAX];
  MlirType i64 = mlirIntegerTypeGet(e->ctx, 64);

  for (int k = 0, d = 0; k < n; k++) {
    int count = 0;
    while (d < end[k])
      dims[count++] = mlirIntegerAttrGet(i64, d++);
    groups[k] = mlirArrayAttrGet(e->ctx, count, dims);
  }
  return mlirArrayAttrGet(e->ctx, n, groups);
}

MlirOperation emit_operation(struct emit *e, const struct emit_op *op) {
  MlirOperationState st = mlirOperationStateGet(ir_str(op->name), e->loc);

  mlirOperationStateAddOperands(&st, op->n_operands, op->operands);
  mlirOperationStateAddResults(&st, op->n_results, op->results);
  mlirOperationStateAddAttributes(&st, op->n_attrs, op->attrs);
  mlirOperationStateAddOwnedRegions(&st, op->n_regions, op->regions);
  MlirOperation made = mlirOperationCreate(&st);
  if (!mlirOperationIsNull(e->before) && mlirBlockEqual(mlirOperationGetBlock(e->before), e->block))
    mlirBlockInsertOwnedOperationBefore(e->block, e->before, made);
  else
    mlirBlockAppendOwnedOperation(e->block, made);
  return made;
}

MlirValue emit_op1(struct emit *e, const char *name, MlirType result, int n, MlirValue const *operands) {
  return emit_result(emit_operation(
      e, &(struct emit_op){.name = name, .n_operands = n, .operands = operands, .n_results = 1, .results = &result}));
}

MlirValue emit_unary(struct emit *e, const char *name, MlirValue x) {
  return emit_op1(e, name, mlirValueGetType(x), 1, &x);
}

MlirValue emit_binary(struct emit *e, const char *name, MlirValue x, MlirValue y) {
  return emit_op1(e, name, mlirValueGetType(x), 2, (MlirValue[]){x, y});
}

MlirValue emit_select(struct emit *e, MlirValue cond, MlirValue x, MlirValue y) {
  return emit_op1(e, "arith.select", mlirValueGetType(x), 3, (MlirValue[]){cond, x, y});
}

static MlirValue compare(struct emit *e, const char *name, int predicate, MlirValue x, MlirValue y) {
  MlirType i1 = mlirIntegerTypeGet(e->ctx, 1);
  MlirNamedAttribute attr = emit_attr(e, "predicate", mlirIntegerAttrGet(mlirIntegerTypeGet(e->ctx, 64), predicate));
  MlirValue operands[] = {x, y};

  return emit_result(emit_operation(e, &(struct emit_op){.name = name,
                                                         .n_operands = 2,
                                                         .operands = operands,
                                                         .n_results = 1,
                                                         .results = &i1,
                                                         .n_attrs = 1,
                                                         .attrs = &attr}));
}

MlirValue emit_cmpi(struct emit *e, enum emit_int_pred p, MlirValue x, MlirValue y) {
  return compare(e, "arith.cmpi", p, x, y);
}

MlirValue emit_cmpf(struct emit *e, enum emit_float_pred p, MlirValue x, MlirValue y) {
  return compare(e, "arith.cmpf", p, x, y);
}

static MlirValue constant(struct emit *e, MlirAttribute value) {
  MlirType t = mlirAttributeGetType(value);
  MlirNamedAttribute attr = emit_attr(e, "value", value);

  return emit_result(emit_operation(
      e, &(struct emit_op){.name = "arith.constant", .n_results = 1, .results = &t, .n_attrs = 1, .attrs = &attr}));
}

MlirValue emit_index(struct emit *e, int64_t v) {
  return constant(e, mlirIntegerAttrGet(emit_index_type(e), v));
}

MlirValue emit_int(struct emit *e, MlirType type, int64_t v) {
  return constant(e, mlirIntegerAttrGet(type, v));
}

MlirValue emit_float(struct emit *e, MlirType type, double v) {
  return constant(e, mlirFloatAttrDoubleGet(e->ctx, type, v));
}

MlirValue emit_number(struct emit *e, enum dtype t, double v) {
  MlirType type = emit_element_type(e, t);
  if (dtype_is_float(t))
    return emit_float(e, type, v);
  return emit_int(e, type, dtype_kind(t) == DK_BOOL ? v != 0 : (int64_t)v);
}

MlirValue emit_element(struct emit *e, enum dtype t, const void *data) {
  MlirType one = emit_tensor_type(e, t, 0, NULL);
  MlirAttribute dense;

  if (t == DT_BOOL)
    dense = mlirDenseElementsAttrBoolSplatGet(one, *(const uint8_t *)data != 0);
  else
    dense = mlirDenseElementsAttrRawBufferGet(one, dtype_size(t), data);
  return constant(e, mlirDenseElementsAttrGetSplatValue(dense));
}

MlirValue emit_empty(struct emit *e, enum dtype t, int rank, const int64_t *dims) {
  return emit_op1(e, "tensor.empty", emit_tensor_type(e, t, rank, dims), 0, NULL);
}

MlirValue emit_fill(struct emit *e, MlirValue scalar, MlirValue dest) {
  return emit_result(emit_linalg_named(e, "linalg.fill", 1, &scalar, dest, 0, NULL));
}

MlirValue emit_extract(struct emit *e, MlirValue tensor, int n, MlirValue const *indices) {
  MlirValue operands[HLO_RANK_MAX + 1] = {tensor};
  for (int i = 0; i < n; i++)
    operands[i + 1] = indices[i];
  return emit_op1(e, "tensor.extract", emit_value_element_type(tensor), n + 1, operands);
}

MlirValue emit_linalg_index(struct emit *e, int dim) {
  MlirType t = emit_index_type(e);
  MlirNamedAttribute attr = emit_attr(e, "dim", mlirIntegerAttrGet(mlirIntegerTypeGet(e->ctx, 64), dim));

  return emit_result(emit_operation(
      e, &(struct emit_op){.name = "linalg.index", .n_results = 1, .results = &t, .n_attrs = 1, .attrs = &attr}));
}

/* ---- slices ------------------------------------------------------------------------------------------ */

/* Fills attrs[0..3] and the dynamic offsets behind operands[n]; returns the number of operands. */
static int slice_parts(struct emit *e, const struct emit_slice *s, int n, MlirValue *operands,
                       MlirNamedAttribute attrs[4]) {
  int64_t offsets[HLO_RANK_MAX], ones[HLO_RANK_MAX];
  int32_t seg[5] = {1, 1, 0, 0, 0}, *counts = seg + n;
  const int first = n;

  for (int i = 0; i < s->rank; i++) {
    ones[i] = 1;
    offsets[i] = s->offsets[i];
    if (s->dynamic && !mlirValueIsNull(s->dynamic[i])) {
      offsets[i] = mlirShapedTypeGetDynamicStrideOrOffset();
      operands[n++] = s->dynamic[i];
    }
  }
  counts[0] = n - first;
  attrs[0] = emit_attr(e, "static_offsets", emit_i64_array(e, s->rank, offsets));
  attrs[1] = emit_attr(e, "static_sizes", emit_i64_array(e, s->rank, s->sizes));
  attrs[2] = emit_attr(e, "static_strides", emit_i64_array(e, s->rank, s->strides ? s->strides : ones));
  attrs[3] = segments(e, first + 3, seg);
  return n;
}

static bool has_no_elements(MlirType t) {
  for (int64_t d = 0; d < mlirShapedTypeGetRank(t); d++)
    if (mlirShapedTypeGetDimSize(t, d) == 0)
      return true;
  return false;
}

MlirValue emit_extract_slice(struct emit *e, MlirValue x, const struct emit_slice *s, MlirType result) {
  if (has_no_elements(result)) /* the offset may lie behind the end, which MLIR does not allow */
    return emit_op1(e, "tensor.empty", result, 0, NULL);
  MlirValue operands[HLO_RANK_MAX + 1] = {x};
  MlirNamedAttribute attrs[4];
  int n = slice_parts(e, s, 1, operands, attrs);

  return emit_result(emit_operation(e, &(struct emit_op){.name = "tensor.extract_slice",
                                                         .n_operands = n,
                                                         .operands = operands,
                                                         .n_results = 1,
                                                         .results = &result,
                                                         .n_attrs = 4,
                                                         .attrs = attrs}));
}

MlirValue emit_insert_slice(struct emit *e, MlirValue x, MlirValue dest, const struct emit_slice *s) {
  if (has_no_elements(mlirValueGetType(x)))
    return dest;
  MlirValue operands[HLO_RANK_MAX + 2] = {x, dest};
  MlirType result = mlirValueGetType(dest);
  MlirNamedAttribute attrs[4];
  int n = slice_parts(e, s, 2, operands, attrs);

  return emit_result(emit_operation(e, &(struct emit_op){.name = "tensor.insert_slice",
                                                         .n_operands = n,
                                                         .operands = operands,
                                                         .n_results = 1,
                                                         .results = &result,
                                                         .n_attrs = 4,
                                                         .attrs = attrs}));
}

/* ---- linalg ------------------------------------------------------------------------------------------ */

/* A region with one block that has an argument for the element of every operand. */
static MlirRegion body_region(struct emit *e, int n, MlirValue const *operands, MlirBlock *block) {
  MlirType *types = arena_new_array(e->arena, MlirType, (size_t)n);
  MlirLocation *locs = arena_new_array(e->arena, MlirLocation, (size_t)n);
  MlirRegion region = mlirRegionCreate();

  for (int i = 0; i < n; i++) {
    types[i] = emit_value_element_type(operands[i]);
    locs[i] = e->loc;
  }
  *block = mlirBlockCreate(n, types, locs);
  mlirRegionAppendOwnedBlock(region, *block);
  return region;
}

static MlirAttribute iterator_types(struct emit *e, int n, const bool *reduction) {
  MlirAttribute *v = arena_new_array(e->arena, MlirAttribute, (size_t)n);

  for (int i = 0; i < n; i++)
    v[i] = mlirAttributeParseGet(e->ctx, ir_str(reduction && reduction[i] ? "#linalg.iterator_type<reduction>"
                                                                          : "#linalg.iterator_type<parallel>"));
  return mlirArrayAttrGet(e->ctx, n, v);
}

MlirOperation emit_linalg_generic(struct emit *e, const struct emit_generic *g) {
  const int n = g->n_inputs + 1;
  MlirValue *operands = arena_new_array(e->arena, MlirValue, (size_t)n);
  MlirValue *args = arena_new_array(e->arena, MlirValue, (size_t)n);
  MlirAttribute *maps = arena_new_array(e->arena, MlirAttribute, (size_t)n);
  MlirType result = mlirValueGetType(g->output);
  struct emit body = *e;

  for (int i = 0; i < g->n_inputs; i++)
    operands[i] = g->inputs[i];
  operands[n - 1] = g->output;
  MlirRegion region = body_region(e, n, operands, &body.block);
  for (int i = 0; i < n; i++) {
    args[i] = mlirBlockGetArgument(body.block, i);
    maps[i] = mlirAffineMapAttrGet(g->maps[i]);
  }
  MlirValue yielded = g->body(&body, args, g->user);
  emit_operation(&body, &(struct emit_op){.name = "linalg.yield", .n_operands = 1, .operands = &yielded});

  MlirNamedAttribute attrs[] = {
      emit_attr(e, "indexing_maps", mlirArrayAttrGet(e->ctx, n, maps)),
      emit_attr(e, "iterator_types", iterator_types(e, g->n_loops, g->reduction)),
      segments(e, 2, (int32_t[]){g->n_inputs, 1}),
  };
  return emit_operation(e, &(struct emit_op){.name = "linalg.generic",
                                             .n_operands = n,
                                             .operands = operands,
                                             .n_results = 1,
                                             .results = &result,
                                             .n_attrs = 3,
                                             .attrs = attrs,
                                             .n_regions = 1,
                                             .regions = &region});
}

MlirOperation emit_linalg_named(struct emit *e, const char *name, int n_inputs, MlirValue const *inputs,
                                MlirValue output, int n_attrs, MlirNamedAttribute const *attrs) {
  MlirValue operands[4];
  MlirNamedAttribute all[4];
  MlirType result = mlirValueGetType(output);
  MlirRegion region = mlirRegionCreate();

  for (int i = 0; i < n_inputs; i++)
    operands[i] = inputs[i];
  operands[n_inputs] = output;
  for (int i = 0; i < n_attrs; i++)
    all[i] = attrs[i];
  all[n_attrs] = segments(e, 2, (int32_t[]){n_inputs, 1});
  MlirOperation op = emit_operation(e, &(struct emit_op){.name = name,
                                                         .n_operands = n_inputs + 1,
                                                         .operands = operands,
                                                         .n_results = 1,
                                                         .results = &result,
                                                         .n_attrs = n_attrs + 1,
                                                         .attrs = all,
                                                         .n_regions = 1,
                                                         .regions = &region});
  mlirLinalgFillBuiltinNamedOpRegion(op);
  return op;
}

/* Neither operation has a builtin region builder, so the one-line body is written here. */
MlirOperation emit_linalg_copying(struct emit *e, const char *name, MlirValue x, MlirValue output,
                                  MlirNamedAttribute attr) {
  MlirValue operands[] = {x, output};
  MlirType result = mlirValueGetType(output);
  struct emit body = *e;
  MlirRegion region = body_region(e, 2, operands, &body.block);
  MlirValue arg = mlirBlockGetArgument(body.block, 0);

  emit_operation(&body, &(struct emit_op){.name = "linalg.yield", .n_operands = 1, .operands = &arg});
  return emit_operation(e, &(struct emit_op){.name = name,
                                             .n_operands = 2,
                                             .operands = operands,
                                             .n_results = 1,
                                             .results = &result,
                                             .n_attrs = 1,
                                             .attrs = &attr,
                                             .n_regions = 1,
                                             .regions = &region});
}

MlirValue emit_transpose(struct emit *e, MlirValue x, enum dtype t, int rank, const int64_t *dims,
                         const int64_t *permutation, MlirOperation *made) {
  int64_t out[HLO_RANK_MAX];
  for (int i = 0; i < rank; i++)
    out[i] = dims[permutation[i]];

  MlirNamedAttribute attr = emit_attr(e, "permutation", emit_i64_array(e, rank, permutation));
  MlirOperation op = emit_linalg_copying(e, "linalg.transpose", x, emit_empty(e, t, rank, out), attr);
  if (made)
    *made = op;
  return emit_result(op);
}

MlirAffineMap emit_identity_map(const struct emit *e, int rank) {
  return mlirAffineMapMultiDimIdentityGet(e->ctx, rank);
}

MlirAffineMap emit_map(const struct emit *e, int n_loops, int n_results, const int64_t *results) {
  MlirAffineExpr exprs[HLO_RANK_MAX];

  for (int i = 0; i < n_results; i++)
    exprs[i] =
        results[i] >= 0 ? mlirAffineDimExprGet(e->ctx, results[i]) : mlirAffineConstantExprGet(e->ctx, -1 - results[i]);
  return mlirAffineMapGet(e->ctx, n_loops, 0, n_results, exprs);
}
