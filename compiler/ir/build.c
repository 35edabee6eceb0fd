/* build: see build.h.  The operations of linalg are in build_linalg.c. */
#include "ir/build.h"

#include <assert.h>

/* ---- types and attributes --------------------------------------------------------------------------------------- */

MlirType ir_element_type(const struct ir_builder *b, enum dtype t) {
  MlirContext c = b->ctx;

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
    assert(dtype_is_int(t));
    return mlirIntegerTypeGet(c, 8 * (unsigned)dtype_size(t));
  }
}

MlirType ir_tensor_of(MlirType element, int rank, const int64_t *dims) {
  return mlirRankedTensorTypeGet(rank, dims, element, mlirAttributeGetNull());
}

MlirType ir_tensor_type(const struct ir_builder *b, enum dtype t, int rank, const int64_t *dims) {
  return ir_tensor_of(ir_element_type(b, t), rank, dims);
}

MlirType ir_index_type(const struct ir_builder *b) {
  return mlirIndexTypeGet(b->ctx);
}

MlirType ir_value_element(MlirValue v) {
  MlirType t = mlirValueGetType(v);
  return mlirTypeIsAShaped(t) ? mlirShapedTypeGetElementType(t) : t;
}

MlirNamedAttribute ir_named(const struct ir_builder *b, const char *name, MlirAttribute v) {
  assert(!mlirAttributeIsNull(v));
  return mlirNamedAttributeGet(mlirIdentifierGet(b->ctx, ir_str(name)), v);
}

MlirAttribute ir_i64_attr(const struct ir_builder *b, int64_t v) {
  return mlirIntegerAttrGet(mlirIntegerTypeGet(b->ctx, 64), v);
}

MlirAttribute ir_i32_attr(const struct ir_builder *b, int64_t v) {
  return mlirIntegerAttrGet(mlirIntegerTypeGet(b->ctx, 32), v);
}

MlirAttribute ir_i64_array(const struct ir_builder *b, int n, const int64_t *v) {
  return mlirDenseI64ArrayGet(b->ctx, n, v);
}

MlirNamedAttribute ir_segments(const struct ir_builder *b, int n, const int32_t *v) {
  return ir_named(b, "operandSegmentSizes", mlirDenseI32ArrayGet(b->ctx, n, v));
}

/* ---- operations ------------------------------------------------------------------------------------------------- */

MlirOperation ir_place(struct ir_builder *b, MlirOperation op) {
  if (!mlirOperationIsNull(b->before) && mlirBlockEqual(mlirOperationGetBlock(b->before), b->block))
    mlirBlockInsertOwnedOperationBefore(b->block, b->before, op);
  else
    mlirBlockAppendOwnedOperation(b->block, op);
  return op;
}

MlirOperation ir_create(struct ir_builder *b, const struct ir_parts *parts) {
  MlirOperationState st = mlirOperationStateGet(ir_str(parts->name), b->loc);

  mlirOperationStateAddOperands(&st, parts->n_operands, parts->operands);
  mlirOperationStateAddResults(&st, parts->n_results, parts->results);
  mlirOperationStateAddAttributes(&st, parts->n_attrs, parts->attrs);
  mlirOperationStateAddOwnedRegions(&st, parts->n_regions, parts->regions);
  MlirOperation made = mlirOperationCreate(&st);
  assert(!mlirOperationIsNull(made)); /* the dialect is loaded, and the result types are given */
  return ir_place(b, made);
}

MlirOperation ir_op0_with(struct ir_builder *b, const char *name, int n, MlirValue const *operands, int n_attrs,
                          MlirNamedAttribute const *attrs) {
  return ir_create(
      b, &(struct ir_parts){.name = name, .n_operands = n, .operands = operands, .n_attrs = n_attrs, .attrs = attrs});
}

MlirOperation ir_op0(struct ir_builder *b, const char *name, int n, MlirValue const *operands) {
  return ir_op0_with(b, name, n, operands, 0, NULL);
}

MlirValue ir_op1_with(struct ir_builder *b, const char *name, MlirType result, int n, MlirValue const *operands,
                      int n_attrs, MlirNamedAttribute const *attrs) {
  return ir_result(ir_create(b, &(struct ir_parts){.name = name,
                                                   .n_operands = n,
                                                   .operands = operands,
                                                   .n_results = 1,
                                                   .results = &result,
                                                   .n_attrs = n_attrs,
                                                   .attrs = attrs}));
}

MlirValue ir_op1(struct ir_builder *b, const char *name, MlirType result, int n, MlirValue const *operands) {
  return ir_op1_with(b, name, result, n, operands, 0, NULL);
}

MlirValue ir_unary(struct ir_builder *b, const char *name, MlirValue x) {
  return ir_op1(b, name, mlirValueGetType(x), 1, &x);
}

MlirValue ir_binary(struct ir_builder *b, const char *name, MlirValue x, MlirValue y) {
  return ir_op1(b, name, mlirValueGetType(x), 2, (MlirValue[]){x, y});
}

MlirValue ir_select(struct ir_builder *b, MlirValue cond, MlirValue x, MlirValue y) {
  return ir_op1(b, "arith.select", mlirValueGetType(x), 3, (MlirValue[]){cond, x, y});
}

static MlirValue compare(struct ir_builder *b, const char *name, int predicate, MlirValue x, MlirValue y) {
  MlirNamedAttribute attr = ir_named(b, "predicate", ir_i64_attr(b, predicate));
  return ir_op1_with(b, name, mlirIntegerTypeGet(b->ctx, 1), 2, (MlirValue[]){x, y}, 1, &attr);
}

MlirValue ir_cmpi(struct ir_builder *b, enum ir_int_pred p, MlirValue x, MlirValue y) {
  return compare(b, "arith.cmpi", p, x, y);
}

MlirValue ir_cmpf(struct ir_builder *b, enum ir_float_pred p, MlirValue x, MlirValue y) {
  return compare(b, "arith.cmpf", p, x, y);
}

/* ---- constants -------------------------------------------------------------------------------------------------- */

MlirValue ir_constant_of(struct ir_builder *b, MlirAttribute value) {
  MlirNamedAttribute attr = ir_named(b, "value", value);
  return ir_op1_with(b, "arith.constant", mlirAttributeGetType(value), 0, NULL, 1, &attr);
}

MlirValue ir_index(struct ir_builder *b, int64_t v) {
  return ir_constant_of(b, mlirIntegerAttrGet(ir_index_type(b), v));
}

MlirValue ir_int(struct ir_builder *b, MlirType type, int64_t v) {
  return ir_constant_of(b, mlirIntegerAttrGet(type, v));
}

MlirValue ir_float(struct ir_builder *b, MlirType type, double v) {
  return ir_constant_of(b, mlirFloatAttrDoubleGet(b->ctx, type, v));
}

MlirValue ir_number(struct ir_builder *b, enum dtype t, double v) {
  MlirType type = ir_element_type(b, t);
  if (dtype_is_float(t))
    return ir_float(b, type, v);
  return ir_int(b, type, dtype_kind(t) == DK_BOOL ? v != 0 : (int64_t)v);
}

MlirValue ir_element(struct ir_builder *b, enum dtype t, const void *data) {
  MlirType one = ir_tensor_type(b, t, 0, NULL);
  MlirAttribute dense;

  if (t == DT_BOOL)
    dense = mlirDenseElementsAttrBoolSplatGet(one, *(const uint8_t *)data != 0);
  else
    dense = mlirDenseElementsAttrRawBufferGet(one, dtype_size(t), data);
  return ir_constant_of(b, mlirDenseElementsAttrGetSplatValue(dense));
}

/* ---- regions and loops ------------------------------------------------------------------------------------------ */

MlirRegion ir_region(const struct ir_builder *b, int n, MlirType const *types, struct ir_builder *inside) {
  MlirLocation *locs = arena_new_array(b->arena, MlirLocation, (size_t)n);
  MlirRegion region = mlirRegionCreate();

  for (int k = 0; k < n; k++)
    locs[k] = b->loc;
  *inside = *b;
  inside->block = mlirBlockCreate(n, types, locs);
  inside->before = (MlirOperation){NULL};
  mlirRegionAppendOwnedBlock(region, inside->block);
  return region;
}

MlirRegion ir_loop_region(const struct ir_builder *b, int n, MlirValue const *carried, struct ir_builder *inside) {
  MlirType *types = arena_new_array(b->arena, MlirType, (size_t)n + 1);

  types[0] = ir_index_type(b);
  for (int k = 0; k < n; k++)
    types[1 + k] = mlirValueGetType(carried[k]);
  return ir_region(b, 1 + n, types, inside);
}

void ir_yield(struct ir_builder *b, int n, MlirValue const *values) {
  ir_op0(b, "scf.yield", n, values);
}

MlirOperation ir_for(struct ir_builder *b, MlirValue const bounds[3], int n, MlirValue const *carried,
                     MlirRegion region) {
  MlirValue *operands = arena_new_array(b->arena, MlirValue, (size_t)n + 3);
  MlirType *types = arena_new_array(b->arena, MlirType, (size_t)n);

  for (int k = 0; k < 3; k++)
    operands[k] = bounds[k];
  for (int k = 0; k < n; k++) {
    operands[3 + k] = carried[k];
    types[k] = mlirValueGetType(carried[k]);
  }
  return ir_create(b, &(struct ir_parts){.name = "scf.for",
                                         .n_operands = 3 + n,
                                         .operands = operands,
                                         .n_results = n,
                                         .results = types,
                                         .n_regions = 1,
                                         .regions = &region});
}

MlirOperation ir_if(struct ir_builder *b, MlirValue cond, int n, MlirType const *results, MlirRegion const regions[2]) {
  return ir_create(b, &(struct ir_parts){.name = "scf.if",
                                         .n_operands = 1,
                                         .operands = &cond,
                                         .n_results = n,
                                         .results = results,
                                         .n_regions = 2,
                                         .regions = regions});
}

MlirValue ir_count_loop(struct ir_builder *b, int64_t n, struct ir_builder *inside) {
  MlirValue bounds[] = {ir_index(b, 0), ir_index(b, n), ir_index(b, 1)};
  struct ir_builder body;
  MlirRegion region = ir_loop_region(b, 0, NULL, &body);

  ir_for(b, bounds, 0, NULL, region);
  body.before = ir_op0(&body, "scf.yield", 0, NULL);
  *inside = body; /* assigned last, because inside may be b itself */
  return mlirBlockGetArgument(body.block, 0);
}

/* Makes loop `depth` of the nest and the loops inside it.  at: the counters of the enclosing loops. */
static void make_loop(struct ir_builder *b, const struct ir_loops *loops, int depth, MlirValue *at,
                      MlirValue *carried) {
  const int n = loops->n_carried;
  struct ir_builder inside;

  if (depth == loops->n) {
    loops->body(b, at, carried, loops->user);
    return;
  }
  MlirValue *init = arena_dup(b->arena, carried, (size_t)n * sizeof *carried);
  MlirValue bounds[] = {ir_index(b, 0), ir_index(b, loops->extents[depth]), ir_index(b, 1)};
  MlirRegion region = ir_loop_region(b, n, carried, &inside);
  at[depth] = mlirBlockGetArgument(inside.block, 0);
  for (int k = 0; k < n; k++)
    carried[k] = mlirBlockGetArgument(inside.block, 1 + k);
  make_loop(&inside, loops, depth + 1, at, carried);
  ir_yield(&inside, n, carried);
  MlirOperation loop = ir_for(b, bounds, n, init, region);
  for (int k = 0; k < n; k++)
    carried[k] = mlirOperationGetResult(loop, k);
}

void ir_loop_nest(struct ir_builder *b, const struct ir_loops *loops, MlirValue *carried) {
  for (int k = 0; k < loops->n; k++)
    if (loops->extents[k] == 0)
      return;
  make_loop(b, loops, 0, arena_new_array(b->arena, MlirValue, (size_t)loops->n), carried);
}

/* ---- tensors ---------------------------------------------------------------------------------------------------- */

MlirValue ir_empty_of(struct ir_builder *b, MlirType tensor) {
  return ir_op1(b, "tensor.empty", tensor, 0, NULL);
}

MlirValue ir_empty(struct ir_builder *b, enum dtype t, int rank, const int64_t *dims) {
  return ir_empty_of(b, ir_tensor_type(b, t, rank, dims));
}

MlirValue ir_extract(struct ir_builder *b, MlirValue tensor, int n, MlirValue const *indices) {
  MlirValue *operands = arena_new_array(b->arena, MlirValue, (size_t)n + 1);

  operands[0] = tensor;
  for (int k = 0; k < n; k++)
    operands[1 + k] = indices[k];
  return ir_op1(b, "tensor.extract", ir_value_element(tensor), n + 1, operands);
}

MlirValue ir_insert(struct ir_builder *b, MlirValue scalar, MlirValue tensor, int n, MlirValue const *indices) {
  MlirValue *operands = arena_new_array(b->arena, MlirValue, (size_t)n + 2);

  operands[0] = scalar;
  operands[1] = tensor;
  for (int k = 0; k < n; k++)
    operands[2 + k] = indices[k];
  return ir_op1(b, "tensor.insert", mlirValueGetType(tensor), n + 2, operands);
}

/* ---- reshapes --------------------------------------------------------------------------------------------------- */

bool ir_group_dims(int n_coarse, const int64_t *coarse, int n_fine, const int64_t *fine, int *end) {
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

/* Returns the attribute "reassociation" of expand_shape and collapse_shape: n groups, of which group k ends before
 * dimension end[k]: [[0, 1], [2]]. */
static MlirNamedAttribute reassociation(const struct ir_builder *b, int n, const int *end) {
  const int n_fine = n ? end[n - 1] : 0;
  MlirAttribute *groups = arena_new_array(b->arena, MlirAttribute, (size_t)n);
  MlirAttribute *dims = arena_new_array(b->arena, MlirAttribute, (size_t)n_fine);

  for (int k = 0, d = 0; k < n; k++) {
    const int first = d;
    assert(end[k] >= first && end[k] <= n_fine);
    for (; d < end[k]; d++)
      dims[d] = ir_i64_attr(b, d);
    groups[k] = mlirArrayAttrGet(b->ctx, d - first, dims + first);
  }
  return ir_named(b, "reassociation", mlirArrayAttrGet(b->ctx, n, groups));
}

static bool is_memref(MlirValue v) {
  return mlirTypeIsAMemRef(mlirValueGetType(v));
}

MlirValue ir_collapse_shape(struct ir_builder *b, MlirValue x, MlirType result, int n, const int *end) {
  MlirNamedAttribute attr = reassociation(b, n, end);
  return ir_op1_with(b, is_memref(x) ? "memref.collapse_shape" : "tensor.collapse_shape", result, 1, &x, 1, &attr);
}

MlirValue ir_expand_shape(struct ir_builder *b, MlirValue x, MlirType result, int n, const int *end, int rank,
                          const int64_t *dims) {
  MlirNamedAttribute attrs[] = {reassociation(b, n, end),
                                ir_named(b, "static_output_shape", ir_i64_array(b, rank, dims))};
  return ir_op1_with(b, is_memref(x) ? "memref.expand_shape" : "tensor.expand_shape", result, 1, &x, 2, attrs);
}

/* ---- slices ----------------------------------------------------------------------------------------------------- */

enum { SLICE_ATTRS = 4 };

/* Fills attrs and appends the dynamic offsets to the first n operands; returns the new number of operands. */
static int slice_parts(struct ir_builder *b, const struct ir_slice *s, int n, MlirValue *operands,
                       MlirNamedAttribute attrs[SLICE_ATTRS]) {
  int64_t *offsets = arena_new_array(b->arena, int64_t, (size_t)s->rank);
  int64_t *ones = arena_new_array(b->arena, int64_t, (size_t)s->rank);
  int32_t segments[5] = {1, 1, 0, 0, 0}; /* operands before the offsets, offsets, sizes, strides */
  const int first = n;

  for (int i = 0; i < s->rank; i++) {
    ones[i] = 1;
    offsets[i] = s->offsets[i];
    if (s->dynamic && !mlirValueIsNull(s->dynamic[i])) {
      offsets[i] = mlirShapedTypeGetDynamicStrideOrOffset();
      operands[n++] = s->dynamic[i];
    }
  }
  segments[first] = n - first;
  attrs[0] = ir_named(b, "static_offsets", ir_i64_array(b, s->rank, offsets));
  attrs[1] = ir_named(b, "static_sizes", ir_i64_array(b, s->rank, s->sizes));
  attrs[2] = ir_named(b, "static_strides", ir_i64_array(b, s->rank, s->strides ? s->strides : ones));
  attrs[3] = ir_segments(b, first + 3, segments);
  return n;
}

static bool has_no_elements(MlirType t) {
  for (int64_t d = 0; d < mlirShapedTypeGetRank(t); d++)
    if (mlirShapedTypeGetDimSize(t, d) == 0)
      return true;
  return false;
}

MlirValue ir_extract_slice(struct ir_builder *b, MlirValue x, const struct ir_slice *s, MlirType result) {
  if (has_no_elements(result)) /* the offset may be after the end, which MLIR does not allow */
    return ir_empty_of(b, result);
  MlirValue *operands = arena_new_array(b->arena, MlirValue, (size_t)s->rank + 1);
  MlirNamedAttribute attrs[SLICE_ATTRS];

  operands[0] = x;
  const int n = slice_parts(b, s, 1, operands, attrs);
  return ir_op1_with(b, "tensor.extract_slice", result, n, operands, SLICE_ATTRS, attrs);
}

MlirValue ir_insert_slice(struct ir_builder *b, MlirValue x, MlirValue dest, const struct ir_slice *s) {
  if (has_no_elements(mlirValueGetType(x)))
    return dest;
  MlirValue *operands = arena_new_array(b->arena, MlirValue, (size_t)s->rank + 2);
  MlirNamedAttribute attrs[SLICE_ATTRS];

  operands[0] = x;
  operands[1] = dest;
  const int n = slice_parts(b, s, 2, operands, attrs);
  return ir_op1_with(b, "tensor.insert_slice", mlirValueGetType(dest), n, operands, SLICE_ATTRS, attrs);
}
