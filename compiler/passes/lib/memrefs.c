/* memrefs: see memrefs.h.  Result types follow the rules that MLIR's verifier applies to each view. */
#include "passes/lib/memrefs.h"

#include <assert.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "ir/structured.h"
#include "passes/lib/buffers.h"

/* ---- types ----------------------------------------------------------------------------------------------------- */

static MlirAttribute space_attr(MlirContext ctx, enum mem_space space) {
  return space == MEM_NONE ? mlirAttributeGetNull() : mlirIntegerAttrGet(mlirIntegerTypeGet(ctx, 32), space);
}

MlirType memrefs_type(MlirContext ctx, MlirType element, int rank, const int64_t *dims, enum mem_space space) {
  return mlirMemRefTypeContiguousGet(element, rank, dims, space_attr(ctx, space));
}

MlirType memrefs_element(MlirValue v) {
  return mlirShapedTypeGetElementType(mlirValueGetType(v));
}

int64_t memrefs_bits(MlirType element) {
  if (mlirTypeIsAIndex(element))
    return 64;
  const int64_t bits =
      mlirTypeIsAInteger(element) ? (int64_t)mlirIntegerTypeGetWidth(element) : (int64_t)mlirFloatTypeGetWidth(element);
  return (bits + 7) / 8 * 8;
}

enum mem_space memrefs_space(MlirValue v) {
  MlirType t = mlirValueGetType(v);
  if (!mlirTypeIsAMemRef(t))
    return MEM_NONE;
  MlirAttribute a = mlirMemRefTypeGetMemorySpace(t);
  return mlirAttributeIsNull(a) || !mlirAttributeIsAInteger(a) ? MEM_NONE
                                                               : (enum mem_space)mlirIntegerAttrGetValueInt(a);
}

/* The type of a view of v: the dimensions and strides are given; elements and memory are those of v. */
static MlirType view_type(MlirValue v, int rank, const int64_t *dims, int64_t offset, const int64_t *strides) {
  MlirType t = mlirValueGetType(v);
  MlirAttribute layout = mlirStridedLayoutAttrGet(mlirTypeGetContext(t), offset, rank, strides);
  return mlirMemRefTypeGet(mlirShapedTypeGetElementType(t), rank, dims, layout, mlirMemRefTypeGetMemorySpace(t));
}

static bool is_identity(MlirType t) {
  return mlirAffineMapIsIdentity(mlirMemRefTypeGetAffineMap(t));
}

/* ---- allocations and copies ------------------------------------------------------------------------------------ */

MlirValue memrefs_alloc(struct ir_builder *b, MlirType type) {
  MlirNamedAttribute attrs[] = {ir_named(b, "alignment", ir_i64_attr(b, 64)), ir_segments(b, 2, (int32_t[]){0, 0})};
  return ir_op1_with(b, "memref.alloc", type, 0, NULL, 2, attrs);
}

MlirOperation memrefs_copy(struct ir_builder *b, MlirValue from, MlirValue to) {
  return ir_op0(b, "memref.copy", 2, (MlirValue[]){from, to});
}

MlirOperation memrefs_dealloc(struct ir_builder *b, MlirValue v) {
  return ir_op0(b, "memref.dealloc", 1, &v);
}

/* ---- views ----------------------------------------------------------------------------------------------------- */

MlirValue memrefs_subview(struct ir_builder *b, MlirValue v, const struct memrefs_part *p) {
  const int64_t dynamic = mlirShapedTypeGetDynamicStrideOrOffset();
  int64_t strides[IR_MEMREF_RANK_MAX], at[IR_MEMREF_RANK_MAX], ones[IR_MEMREF_RANK_MAX];
  int64_t dims[IR_MEMREF_RANK_MAX], kept[IR_MEMREF_RANK_MAX], offset;
  MlirValue operands[IR_MEMREF_RANK_MAX + 1] = {v};
  MlirType t = mlirValueGetType(v);
  const int rank = (int)mlirShapedTypeGetRank(t);
  int n = 1, n_kept = 0;

  assert(rank <= IR_MEMREF_RANK_MAX);
  mlirMemRefTypeGetStridesAndOffset(t, strides, &offset);
  for (int d = 0; d < rank; d++) {
    const bool moves = p->at && !mlirValueIsNull(p->at[d]);
    ones[d] = 1;
    at[d] = moves ? dynamic : p->offset[d];
    if (moves)
      operands[n++] = p->at[d];
    if (moves || strides[d] == dynamic || offset == dynamic)
      offset = dynamic;
    else
      offset += p->offset[d] * strides[d];
    if (p->drop && p->drop[d])
      continue;
    dims[n_kept] = p->size[d];
    kept[n_kept++] = strides[d];
  }
  MlirNamedAttribute attrs[] = {ir_named(b, "static_offsets", ir_i64_array(b, rank, at)),
                                ir_named(b, "static_sizes", ir_i64_array(b, rank, p->size)),
                                ir_named(b, "static_strides", ir_i64_array(b, rank, ones)),
                                ir_segments(b, 4, (int32_t[]){1, n - 1, 0, 0})};
  return ir_op1_with(b, "memref.subview", view_type(v, n_kept, dims, offset, kept), n, operands, 4, attrs);
}

MlirValue memrefs_collapse(struct ir_builder *b, MlirValue v, int n, const int *end) {
  int64_t strides[IR_MEMREF_RANK_MAX], dims[IR_MEMREF_RANK_MAX], kept[IR_MEMREF_RANK_MAX], offset;
  MlirType t = mlirValueGetType(v);
  int d = 0;

  assert(n ? end[n - 1] == mlirShapedTypeGetRank(t) : true);
  mlirMemRefTypeGetStridesAndOffset(t, strides, &offset);
  for (int k = 0; k < n; k++) {
    int last = end[k] - 1;
    while (last > d && mlirShapedTypeGetDimSize(t, last) == 1)
      last--;
    kept[k] = strides[last];
    dims[k] = 1;
    for (; d < end[k]; d++)
      dims[k] *= mlirShapedTypeGetDimSize(t, d);
  }
  MlirType result = is_identity(t) ? memrefs_type(b->ctx, memrefs_element(v), n, dims, memrefs_space(v))
                                   : view_type(v, n, dims, offset, kept);
  return ir_collapse_shape(b, v, result, n, end);
}

MlirValue memrefs_expand(struct ir_builder *b, MlirValue v, const int *end, int rank, const int64_t *dims) {
  const int64_t dynamic = mlirShapedTypeGetDynamicStrideOrOffset();
  int64_t strides[IR_MEMREF_RANK_MAX], all[IR_MEMREF_RANK_MAX], offset;
  MlirType t = mlirValueGetType(v);
  const int n = (int)mlirShapedTypeGetRank(t);

  assert(rank <= IR_MEMREF_RANK_MAX && (n ? end[n - 1] == rank : true));
  mlirMemRefTypeGetStridesAndOffset(t, strides, &offset);
  for (int d = 0; d < rank; d++)
    all[d] = 1; /* a single element (n == 0) has no dimension whose stride could be used */
  for (int k = 0; k < n; k++)
    for (int d = end[k] - 1; d >= (k ? end[k - 1] : 0); d--) {
      all[d] = strides[k];
      strides[k] = strides[k] == dynamic ? dynamic : strides[k] * dims[d];
    }
  MlirType result = is_identity(t) ? memrefs_type(b->ctx, memrefs_element(v), rank, dims, memrefs_space(v))
                                   : view_type(v, rank, dims, offset, all);
  return ir_expand_shape(b, v, result, n, end, rank, dims);
}

/* ---- changing the types of views ------------------------------------------------------------------------------- */

static MlirType with_strides(MlirType was, MlirType source, int64_t offset, const int64_t *strides) {
  int64_t dims[IR_MEMREF_RANK_MAX];
  const intptr_t rank = mlirShapedTypeGetRank(was);
  for (intptr_t d = 0; d < rank; d++)
    dims[d] = mlirShapedTypeGetDimSize(was, d);
  MlirAttribute layout = mlirStridedLayoutAttrGet(mlirTypeGetContext(was), offset, rank, strides);
  return mlirMemRefTypeGet(mlirShapedTypeGetElementType(was), rank, dims, layout, mlirMemRefTypeGetMemorySpace(source));
}

static MlirType subview_type(MlirOperation op, MlirType source) {
  const int64_t dynamic = mlirShapedTypeGetDynamicStrideOrOffset();
  int64_t strides[IR_MEMREF_RANK_MAX], result[IR_MEMREF_RANK_MAX], offset;
  bool kept[IR_MEMREF_RANK_MAX];
  MlirAttribute offsets = ir_attr(op, "static_offsets"), steps = ir_attr(op, "static_strides");
  int n = 0;

  mlirMemRefTypeGetStridesAndOffset(source, strides, &offset);
  const int rank = buffer_kept_dims(op, kept);
  for (int d = 0; d < rank; d++) {
    const int64_t at = mlirDenseI64ArrayGetElement(offsets, d), step = mlirDenseI64ArrayGetElement(steps, d);
    offset = offset == dynamic || at == dynamic || strides[d] == dynamic ? dynamic : offset + at * strides[d];
    if (kept[d])
      result[n++] = strides[d] == dynamic || step == dynamic ? dynamic : strides[d] * step;
  }
  return with_strides(mlirValueGetType(mlirOperationGetResult(op, 0)), source, offset, result);
}

/* The dimensions [first, end) of a group of a reassociation. */
struct group {
  int first, end;
};

static struct group group_of(MlirAttribute reassociation, intptr_t k) {
  MlirAttribute g = mlirArrayAttrGetElement(reassociation, k);
  const int first = (int)mlirIntegerAttrGetValueInt(mlirArrayAttrGetElement(g, 0));
  return (struct group){first, first + (int)mlirArrayAttrGetNumElements(g)};
}

/* Computes the strides of the dimensions that a dimension of this stride is expanded to. */
static void expand_stride(int64_t stride, struct group g, MlirType expanded, int64_t *out) {
  const int64_t dynamic = mlirShapedTypeGetDynamicStrideOrOffset();

  for (int d = g.end - 1; d >= g.first; d--) {
    out[d] = stride;
    stride = stride == dynamic ? dynamic : stride * mlirShapedTypeGetDimSize(expanded, d);
  }
}

/* Computes the stride of the dimension that a group is collapsed to; false if its elements are not contiguous. */
static bool collapse_stride(const int64_t *strides, struct group g, MlirType source, int64_t *out) {
  int64_t stride = strides[g.first], extent = 1;
  bool is_first = true; /* true until the first dimension longer than 1, from the last dimension on */

  for (int d = g.end - 1; d >= g.first; d--) {
    const int64_t n = mlirShapedTypeGetDimSize(source, d);
    if (n == 1)
      continue;
    if (is_first)
      stride = strides[d];
    else if (stride == mlirShapedTypeGetDynamicStrideOrOffset() || strides[d] != stride * extent)
      return false;
    extent *= n;
    is_first = false;
  }
  *out = stride;
  return true;
}

/* Returns the type that the reshape op has for a source of this type; null if such a source cannot be reshaped. */
static MlirType reshape_type(MlirOperation op, MlirType source) {
  int64_t strides[IR_MEMREF_RANK_MAX], result[IR_MEMREF_RANK_MAX], offset;
  MlirType was = mlirValueGetType(mlirOperationGetResult(op, 0));
  MlirAttribute groups = ir_attr(op, "reassociation");

  if (is_identity(source)) {
    for (intptr_t d = 0; d < mlirShapedTypeGetRank(was); d++)
      result[d] = mlirShapedTypeGetDimSize(was, d);
    return mlirMemRefTypeContiguousGet(mlirShapedTypeGetElementType(was), mlirShapedTypeGetRank(was), result,
                                       mlirMemRefTypeGetMemorySpace(source));
  }
  mlirMemRefTypeGetStridesAndOffset(source, strides, &offset);
  for (intptr_t k = 0; k < mlirArrayAttrGetNumElements(groups); k++) {
    if (ir_is(op, "memref.expand_shape"))
      expand_stride(strides[k], group_of(groups, k), was, result);
    else if (!collapse_stride(strides, group_of(groups, k), source, &result[k]))
      return (MlirType){NULL};
  }
  return with_strides(was, source, offset, result);
}

static MlirType retyped(MlirOperation view, MlirType source) {
  if (ir_is(view, "memref.cast"))
    return source;
  if (ir_is(view, "memref.subview"))
    return subview_type(view, source);
  if (ir_is(view, "memref.expand_shape") || ir_is(view, "memref.collapse_shape"))
    return reshape_type(view, source);
  return (MlirType){NULL};
}

/* True if op's own types would have to change with the type of its operand, or if its result is the same buffer. */
static bool pins_type(MlirOperation op) {
  return ir_is(op, "func.return") || ir_is(op, "func.call") || ir_is(op, "scf.yield") || ir_is(op, "scf.for") ||
         ir_is(op, "scf.while") || ir_is(op, "scf.condition") || ir_is(op, "arith.select");
}

bool memrefs_can_retype(MlirValue v, MlirType t) {
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation op = mlirOpOperandGetOwner(u);
    if (pins_type(op))
      return false;
    if (!buffer_is_view(op))
      continue;
    MlirType to = retyped(op, t);
    if (mlirTypeIsNull(to) || !memrefs_can_retype(mlirOperationGetResult(op, 0), to))
      return false;
  }
  return true;
}

/* True for a cast whose result has a user that needs its type, such as a call of a declared function. */
static bool is_pinned_cast(MlirOperation op) {
  if (!ir_is(op, "memref.cast"))
    return false;
  for (MlirOpOperand u = mlirValueGetFirstUse(mlirOperationGetResult(op, 0)); !mlirOpOperandIsNull(u);
       u = mlirOpOperandGetNextUse(u))
    if (pins_type(mlirOpOperandGetOwner(u)))
      return true;
  return false;
}

void memrefs_retype_views(MlirValue v) {
  MlirOpOperand next;

  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = next) {
    MlirOperation op = mlirOpOperandGetOwner(u);
    next = mlirOpOperandGetNextUse(u);
    if (!buffer_is_view(op) || is_pinned_cast(op))
      continue;
    MlirValue result = mlirOperationGetResult(op, 0);
    MlirType t = retyped(op, mlirValueGetType(v));
    assert(!mlirTypeIsNull(t)); /* memrefs_can_retype returned true */
    mlirValueSetType(result, t);
    memrefs_retype_views(result);
    if (ir_is(op, "memref.cast")) {
      mlirValueReplaceAllUsesOfWith(result, v);
      mlirOperationDestroy(op);
    }
  }
}

/* ---- loops ----------------------------------------------------------------------------------------------------- */

MlirValue memrefs_times(struct ir_builder *b, MlirValue v, int64_t factor) {
  return factor == 1 ? v : ir_binary(b, "arith.muli", v, ir_index(b, factor));
}

MlirValue memrefs_plus(struct ir_builder *b, MlirValue v, int64_t by) {
  return by == 0 ? v : ir_binary(b, "arith.addi", v, ir_index(b, by));
}
