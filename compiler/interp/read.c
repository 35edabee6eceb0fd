/* read: makes the program from MLIR: slots for values, instructions, blocks. */
#include <string.h>

#include "mlir-c/AffineExpr.h"
#include "mlir-c/AffineMap.h"
#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"
#include "mlir-c/IntegerSet.h"

#include "base/array.h"
#include "base/table.h"
#include "hlo/literal.h"
#include "interp/internal.h"
#include "ir/query.h"

const int64_t interp_dynamic = INT64_MIN;

struct reader {
  struct arena *arena;
  MlirOperation module;
  struct table numbers; /* a value's slot + 1, by value */
  struct {
    struct slot *v;
    int n, cap;
  } slots;
  struct {
    int *v;
    int n, cap;
  } ranks;
  struct {
    struct function **v;
    int n, cap;
  } functions;
  int n_rows;
  const char *unknown;
};

struct arena *reader_arena(struct reader *r) {
  return r->arena;
}

bool read_unknown(struct reader *r, const char *what) {
  if (!r->unknown)
    r->unknown = arena_strdup(r->arena, what);
  return false;
}

static bool unknown_operation(struct reader *r, MlirOperation op) {
  return read_unknown(r, mlirIdentifierStr(mlirOperationGetName(op)).data);
}

/* ---- values ------------------------------------------------------------------------------------------------------ */

enum dtype read_dtype(MlirType t) {
  if (mlirTypeIsAIndex(t))
    return DT_I64;
  if (mlirTypeIsAInteger(t))
    switch (mlirIntegerTypeGetWidth(t)) {
    case 1:
      return DT_BOOL;
    case 8:
      return DT_I8;
    case 16:
      return DT_I16;
    case 32:
      return DT_I32;
    case 64:
      return DT_I64;
    default:
      return DT_NONE;
    }
  return mlirTypeIsAF32(t)            ? DT_F32
         : mlirTypeIsABF16(t)         ? DT_BF16
         : mlirTypeIsAF16(t)          ? DT_F16
         : mlirTypeIsAF64(t)          ? DT_F64
         : mlirTypeIsAFloat8E4M3(t)   ? DT_F8E4M3
         : mlirTypeIsAFloat8E4M3FN(t) ? DT_F8E4M3FN
         : mlirTypeIsAFloat8E5M2(t)   ? DT_F8E5M2
                                      : DT_NONE;
}

static int new_slot(struct reader *r, MlirType t) {
  struct slot s = {.view = -1};
  if (mlirTypeIsAMemRef(t) || mlirTypeIsARankedTensor(t)) {
    const int rank = (int)mlirShapedTypeGetRank(t);
    s.t = read_dtype(mlirShapedTypeGetElementType(t));
    s.view = r->ranks.n;
    s.is_tensor = mlirTypeIsARankedTensor(t);
    array_push(r->arena, &r->ranks, rank);
    if (rank > HLO_RANK_MAX)
      read_unknown(r, "a memref or a tensor of more dimensions");
  } else {
    s.t = read_dtype(t);
  }
  if (s.t == DT_NONE)
    read_unknown(r, "a type");
  array_push(r->arena, &r->slots, s);
  return r->slots.n - 1;
}

int reader_slot(struct reader *r, MlirValue v) {
  const uintptr_t known = (uintptr_t)table_get(&r->numbers, v.ptr);
  if (known)
    return (int)known - 1;
  const int n = new_slot(r, mlirValueGetType(v));
  table_put(&r->numbers, v.ptr, (void *)(uintptr_t)(n + 1));
  return n;
}

int reader_rank(struct reader *r, MlirValue v) {
  const int view = r->slots.v[reader_slot(r, v)].view;
  return view < 0 ? -1 : r->ranks.v[view];
}

static const int *slots_of(struct reader *r, intptr_t n, MlirValue (*get)(MlirOperation, intptr_t), MlirOperation op,
                           intptr_t first) {
  int *v = arena_new_array(r->arena, int, (size_t)n);
  for (intptr_t k = 0; k < n; k++)
    v[k] = reader_slot(r, get(op, first + k));
  return v;
}

/* Makes a slot of the type of each result. */
static const int *temps_for(struct reader *r, intptr_t n, MlirValue (*get)(MlirOperation, intptr_t), MlirOperation op,
                            intptr_t first) {
  int *v = arena_new_array(r->arena, int, (size_t)n);
  for (intptr_t k = 0; k < n; k++)
    v[k] = new_slot(r, mlirValueGetType(get(op, first + k)));
  return v;
}

/* ---- arithmetic -------------------------------------------------------------------------------------------------- */

static const char *const arith_names[] = {
#define ARITH(e, name, n) name,
#include "interp/arith.def"
#undef ARITH
};
static const int arith_operands[] = {
#define ARITH(e, name, n) n,
#include "interp/arith.def"
#undef ARITH
};

static int find_arith(MlirStringRef name) {
  if (!ir_begins_with(name, "arith.") && !ir_begins_with(name, "math."))
    return ARITH_COUNT;
  for (int k = 0; k < ARITH_COUNT; k++)
    if (mlirStringRefEqual(name, ir_str(arith_names[k])))
      return k;
  return ARITH_COUNT;
}

/* MLIR's numbers of the predicates of cmpf, as bits: equal, greater, less, unordered. */
static int float_predicate(int64_t p) {
  return p >= 8 && p < 14 ? (int)p + 1 : p == 14 ? 8 : (int)p;
}

bool read_arith(struct reader *r, MlirOperation op, struct arith *out) {
  const int k = find_arith(mlirIdentifierStr(mlirOperationGetName(op)));
  if (k == ARITH_COUNT)
    return false;
  const intptr_t n = mlirOperationGetNumOperands(op);
  *out = (struct arith){
      .op = (enum arith_op)k,
      .from = read_dtype(mlirValueGetType(mlirOperationGetOperand(op, n - 1))),
      .to = read_dtype(mlirValueGetType(mlirOperationGetResult(op, 0))),
  };
  if (n != arith_operands[k] || out->from == DT_NONE || out->to == DT_NONE)
    return read_unknown(r, arith_names[k]);
  const int64_t predicate = ir_int_attr(op, "predicate", 0);
  out->predicate = k == A_CMPF ? float_predicate(predicate) : (int)predicate;
  return true;
}

bool read_constant(struct reader *r, MlirOperation op, uint64_t *bits) {
  if (!ir_is(op, "arith.constant"))
    return false;
  MlirAttribute v = ir_attr(op, "value");
  const enum dtype t = read_dtype(mlirValueGetType(mlirOperationGetResult(op, 0)));
  *bits = 0;
  if (mlirAttributeIsAInteger(v)) {
    const int64_t i = t == DT_BOOL ? mlirIntegerAttrGetValueInt(v) & 1 : mlirIntegerAttrGetValueInt(v);
    memcpy(bits, &i, sizeof i);
  } else if (mlirAttributeIsAFloat(v)) {
    const double d = mlirFloatAttrGetValueDouble(v);
    const float f = (float)d;
    if (t == DT_F64)
      memcpy(bits, &d, sizeof d);
    else
      memcpy(bits, &f, sizeof f);
  } else {
    return read_unknown(r, "a constant");
  }
  return true;
}

bool read_linear(struct arena *a, MlirAffineExpr e, int n, int n_dims, struct linear *out) {
  int64_t *by = arena_new_array(a, int64_t, (size_t)n);
  struct linear x, y;
  memset(by, 0, (size_t)n * sizeof *by);
  *out = (struct linear){0, by};
  if (mlirAffineExprIsADim(e) || mlirAffineExprIsASymbol(e)) {
    by[mlirAffineExprIsADim(e) ? mlirAffineDimExprGetPosition(e) : n_dims + mlirAffineSymbolExprGetPosition(e)] = 1;
    return true;
  }
  if (mlirAffineExprIsAConstant(e)) {
    out->constant = mlirAffineConstantExprGetValue(e);
    return true;
  }
  if (!mlirAffineExprIsAAdd(e) && !mlirAffineExprIsAMul(e))
    return false;
  if (!read_linear(a, mlirAffineBinaryOpExprGetLHS(e), n, n_dims, &x) ||
      !read_linear(a, mlirAffineBinaryOpExprGetRHS(e), n, n_dims, &y))
    return false;
  const bool is_sum = mlirAffineExprIsAAdd(e);
  if (!is_sum && !mlirAffineExprIsAConstant(mlirAffineBinaryOpExprGetRHS(e)))
    return false;
  out->constant = is_sum ? x.constant + y.constant : x.constant * y.constant;
  for (int k = 0; k < n; k++)
    by[k] = is_sum ? x.by[k] + y.by[k] : x.by[k] * y.constant;
  return true;
}

/* ---- views ------------------------------------------------------------------------------------------------------- */

/* Reads a list of 64-bit integers, in which MLIR's mark of a dynamic value becomes ours. */
const int64_t *read_list(struct reader *r, MlirOperation op, const char *name, int *n) {
  MlirAttribute v = ir_attr(op, name);
  *n = mlirAttributeIsNull(v) ? 0 : (int)mlirDenseArrayGetNumElements(v);
  int64_t *list = arena_new_array(r->arena, int64_t, (size_t)*n);
  for (int k = 0; k < *n; k++) {
    list[k] = mlirDenseI64ArrayGetElement(v, k);
    if (mlirShapedTypeIsDynamicSize(list[k]) || mlirShapedTypeIsDynamicStrideOrOffset(list[k]))
      list[k] = interp_dynamic;
  }
  return list;
}

/* Reads the offsets, sizes and strides of a part of a larger shape; `smaller` is the type of the part. */
bool read_slice(struct reader *r, MlirOperation op, MlirType smaller, struct instr *in) {
  int n;
  in->view.offsets = read_list(r, op, "static_offsets", &n);
  in->view.sizes = read_list(r, op, "static_sizes", &in->view.n);
  in->view.strides = read_list(r, op, "static_strides", &n);
  const int rank = (int)mlirShapedTypeGetRank(smaller);
  int *groups = arena_new_array(r->arena, int, (size_t)in->view.n), at = 0;
  for (int k = 0; k < in->view.n; k++) { /* the part leaves out some dimensions of extent 1 */
    const int64_t size = in->view.sizes[k];
    const bool is_kept =
        at < rank && (mlirShapedTypeIsDynamicDim(smaller, at) ? size == interp_dynamic
                                                              : size == mlirShapedTypeGetDimSize(smaller, at));
    groups[k] = is_kept ? at++ : -1;
  }
  in->view.groups = groups;
  return at == rank || unknown_operation(r, op);
}

static bool read_subview(struct reader *r, MlirOperation op, struct instr *in) {
  in->op = OP_SUBVIEW;
  return read_slice(r, op, mlirValueGetType(mlirOperationGetResult(op, 0)), in);
}

static bool read_reinterpret(struct reader *r, MlirOperation op, struct instr *in) {
  int n;
  in->op = OP_REINTERPRET;
  in->view.offsets = read_list(r, op, "static_offsets", &n);
  in->view.sizes = read_list(r, op, "static_sizes", &in->view.n);
  in->view.strides = read_list(r, op, "static_strides", &n);
  return true;
}

/* collapse_shape and expand_shape, of memrefs and tensors. */
bool read_reshape(struct reader *r, MlirOperation op, struct instr *in) {
  MlirAttribute groups = ir_attr(op, "reassociation");
  in->op = ir_is(op, "memref.collapse_shape") || ir_is(op, "tensor.collapse_shape") ? OP_COLLAPSE : OP_EXPAND;
  if (in->op == OP_COLLAPSE && r->slots.v[in->args[0]].is_tensor)
    in->temps = temps_for(r, 1, mlirOperationGetOperand, op, 0);
  MlirType longer =
      mlirValueGetType(in->op == OP_COLLAPSE ? mlirOperationGetOperand(op, 0) : mlirOperationGetResult(op, 0));
  const int rank = (int)mlirShapedTypeGetRank(longer);
  int *of = arena_new_array(r->arena, int, (size_t)rank);
  int64_t *sizes = arena_new_array(r->arena, int64_t, (size_t)rank);
  for (int k = 0; k < rank; k++) {
    of[k] = -1;
    if (mlirShapedTypeIsDynamicDim(longer, k))
      return unknown_operation(r, op);
    sizes[k] = mlirShapedTypeGetDimSize(longer, k);
  }
  for (intptr_t g = 0; g < mlirArrayAttrGetNumElements(groups); g++) {
    MlirAttribute group = mlirArrayAttrGetElement(groups, g);
    for (intptr_t k = 0; k < mlirArrayAttrGetNumElements(group); k++)
      of[mlirIntegerAttrGetValueInt(mlirArrayAttrGetElement(group, k))] = (int)g;
  }
  in->view.n = rank;
  in->view.groups = of;
  in->view.sizes = sizes;
  return true;
}

static bool read_alloc(struct reader *r, MlirOperation op, struct instr *in) {
  MlirType t = mlirValueGetType(mlirOperationGetResult(op, 0));
  const int rank = (int)mlirShapedTypeGetRank(t);
  int64_t *sizes = arena_new_array(r->arena, int64_t, (size_t)rank),
          *strides = arena_new_array(r->arena, int64_t, (size_t)rank), offset;
  in->op = OP_ALLOC;
  if (rank > HLO_RANK_MAX || mlirLogicalResultIsFailure(mlirMemRefTypeGetStridesAndOffset(t, strides, &offset)) ||
      mlirShapedTypeIsDynamicStrideOrOffset(offset) || offset < 0)
    return unknown_operation(r, op);
  const bool is_plain = mlirAffineMapIsIdentity(mlirMemRefTypeGetAffineMap(t));
  for (int k = 0; k < rank; k++) {
    sizes[k] = mlirShapedTypeIsDynamicDim(t, k) ? interp_dynamic : mlirShapedTypeGetDimSize(t, k);
    if (is_plain)
      strides[k] = interp_dynamic; /* row-major */
    else if (sizes[k] == interp_dynamic || mlirShapedTypeIsDynamicStrideOrOffset(strides[k]) || strides[k] < 0)
      return unknown_operation(r, op);
  }
  int64_t *offsets = arena_new(r->arena, int64_t);
  *offsets = offset;
  in->view.n = rank;
  in->view.offsets = offsets;
  in->view.sizes = sizes;
  in->view.strides = strides;
  return true;
}

/* ---- constants in memory ----------------------------------------------------------------------------------------- */

/* Reads the elements of a constant.  is_splat may be NULL; if it is not, elements that are all equal are read once. */
bool read_elements(struct reader *r, MlirAttribute v, enum dtype t, bool *is_splat, void **out) {
  if (!mlirAttributeIsADenseElements(v) || t == DT_NONE)
    return read_unknown(r, "a constant");
  const bool is_equal = mlirDenseElementsAttrIsSplat(v);
  const size_t all = (size_t)mlirElementsAttrGetNumElements(v), size = dtype_size(t);
  const size_t n = is_splat && is_equal ? 1 : all;
  char *data = arena_alloc(r->arena, n * size + 1);
  const char *raw = mlirDenseElementsAttrGetRawData(v);
  if (t == DT_BOOL)
    for (size_t k = 0; k < n; k++)
      data[k] =
          is_equal ? mlirDenseElementsAttrGetBoolSplatValue(v) : mlirDenseElementsAttrGetBoolValue(v, (intptr_t)k);
  else if (is_equal)
    for (size_t k = 0; k < n; k++)
      memcpy(data + k * size, raw, size);
  else
    memcpy(data, raw, n * size);
  if (is_splat)
    *is_splat = is_equal;
  *out = data;
  return true;
}

static bool read_global(struct reader *r, MlirOperation op, struct instr *in) {
  MlirStringRef name = mlirFlatSymbolRefAttrGetValue(ir_attr(op, "name"));
  MlirOperation global = ir_find_symbol(r->module, "memref.global", name);
  MlirAttribute v = mlirOperationIsNull(global) ? mlirAttributeGetNull() : ir_attr(global, "initial_value");
  void *data = NULL;
  MlirType t = mlirValueGetType(mlirOperationGetResult(op, 0));
  in->op = OP_GLOBAL;
  if (mlirAttributeIsNull(v) || !mlirShapedTypeHasStaticShape(t))
    return unknown_operation(r, op);
  if (!read_elements(r, v, read_dtype(mlirShapedTypeGetElementType(t)), NULL, &data))
    return false;
  const int rank = (int)mlirShapedTypeGetRank(t);
  int64_t *sizes = arena_new_array(r->arena, int64_t, (size_t)rank);
  for (int k = 0; k < rank; k++)
    sizes[k] = mlirShapedTypeGetDimSize(t, k);
  in->view.n = rank;
  in->view.sizes = sizes;
  in->view.offsets = data; /* the elements */
  return true;
}

/* ---- control flow ------------------------------------------------------------------------------------------------ */

static bool read_block(struct reader *r, MlirBlock b, struct block *out);

static bool read_region(struct reader *r, MlirOperation op, intptr_t i, struct block **out) {
  MlirRegion region = mlirOperationGetRegion(op, i);
  MlirBlock b = mlirRegionGetFirstBlock(region);
  struct block *block = arena_new(r->arena, struct block);
  *block = (struct block){0};
  *out = block;
  if (mlirBlockIsNull(b)) /* no else */
    return true;
  if (!mlirBlockIsNull(mlirBlockGetNextInRegion(b)))
    return read_unknown(r, "a region of several blocks");
  return read_block(r, b, block);
}

static struct function *find_function(struct reader *r, MlirStringRef name) {
  for (int k = 0; k < r->functions.n; k++)
    if (mlirStringRefEqual(name, ir_str(r->functions.v[k]->name)))
      return r->functions.v[k];
  MlirOperation op = ir_find_symbol(r->module, "func.func", name);
  struct function *f = arena_new(r->arena, struct function);
  *f = (struct function){.name = arena_strndup(r->arena, name.data, name.length)};
  array_push(r->arena, &r->functions, f);
  MlirBlock b = mlirOperationIsNull(op) ? (MlirBlock){NULL} : ir_body(op);
  if (mlirBlockIsNull(b) || !mlirBlockIsNull(mlirBlockGetNextInRegion(b))) {
    read_unknown(r, "a function that is not one block");
    return NULL;
  }
  f->is_read = read_block(r, b, &f->body);
  return f->is_read ? f : NULL;
}

static bool read_control(struct reader *r, MlirOperation op, struct instr *in) {
  if (ir_is(op, "scf.for")) {
    in->op = OP_FOR;
    in->temps = temps_for(r, in->n_results, mlirOperationGetResult, op, 0);
    return read_region(r, op, 0, &in->blocks[0]);
  }
  if (ir_is(op, "scf.if")) {
    in->op = OP_IF;
    return read_region(r, op, 0, &in->blocks[0]) && read_region(r, op, 1, &in->blocks[1]);
  }
  if (ir_is(op, "scf.while")) {
    in->op = OP_WHILE;
    in->temps = temps_for(r, in->n_args, mlirOperationGetOperand, op, 0);
    return read_region(r, op, 0, &in->blocks[0]) && read_region(r, op, 1, &in->blocks[1]);
  }
  in->op = OP_CALL;
  in->callee = find_function(r, mlirFlatSymbolRefAttrGetValue(ir_attr(op, "callee")));
  return in->callee && (in->callee->is_read || read_unknown(r, "a recursive function"));
}

/* ---- one operation ----------------------------------------------------------------------------------------------- */

/* NULL for an expression that is unknown. */
static const struct affine *read_affine(struct arena *a, MlirAffineExpr e, int n_dims) {
  struct affine *out = arena_new(a, struct affine);
  *out = (struct affine){.kind = AFFINE_OPERAND};
  if (mlirAffineExprIsADim(e)) {
    out->value = mlirAffineDimExprGetPosition(e);
    return out;
  }
  if (mlirAffineExprIsASymbol(e)) {
    out->value = n_dims + mlirAffineSymbolExprGetPosition(e);
    return out;
  }
  if (mlirAffineExprIsAConstant(e)) {
    out->kind = AFFINE_CONSTANT;
    out->value = mlirAffineConstantExprGetValue(e);
    return out;
  }
  out->kind = mlirAffineExprIsAAdd(e)        ? AFFINE_ADD
              : mlirAffineExprIsAMul(e)      ? AFFINE_MUL
              : mlirAffineExprIsAMod(e)      ? AFFINE_MOD
              : mlirAffineExprIsAFloorDiv(e) ? AFFINE_FLOOR
                                             : AFFINE_CEIL;
  out->x = read_affine(a, mlirAffineBinaryOpExprGetLHS(e), n_dims);
  out->y = read_affine(a, mlirAffineBinaryOpExprGetRHS(e), n_dims);
  return out->x && out->y ? out : NULL;
}

bool read_apply(struct reader *r, MlirOperation op, struct instr *in) {
  MlirAffineMap map = mlirAffineMapAttrGetValue(ir_attr(op, "map"));
  in->op = OP_AFFINE_APPLY;
  in->affine = mlirAffineMapGetNumResults(map) == 1
                   ? read_affine(r->arena, mlirAffineMapGetResult(map, 0), (int)mlirAffineMapGetNumDims(map))
                   : NULL;
  return in->affine || unknown_operation(r, op);
}

static bool read_memref(struct reader *r, MlirOperation op, struct instr *in) {
  static const struct {
    const char *name;
    enum op op;
  } plain[] = {{"memref.load", OP_LOAD},
               {"memref.store", OP_STORE},
               {"memref.copy", OP_COPY},
               {"memref.dealloc", OP_DEALLOC},
               {"memref.cast", OP_CAST},
               {"memref.dim", OP_DIM},
               {"memref.memory_space_cast", OP_CAST}};
  for (size_t k = 0; k < sizeof plain / sizeof *plain; k++)
    if (ir_is(op, plain[k].name)) {
      in->op = plain[k].op;
      return true;
    }
  if (ir_is(op, "memref.alloc") || ir_is(op, "memref.alloca"))
    return read_alloc(r, op, in);
  if (ir_is(op, "memref.subview"))
    return read_subview(r, op, in);
  if (ir_is(op, "memref.reinterpret_cast"))
    return read_reinterpret(r, op, in);
  if (ir_is(op, "memref.collapse_shape") || ir_is(op, "memref.expand_shape"))
    return read_reshape(r, op, in);
  if (ir_is(op, "memref.get_global"))
    return read_global(r, op, in);
  return unknown_operation(r, op);
}

static bool read_operation(struct reader *r, MlirOperation op, struct instr *in) {
  in->n_args = (int)mlirOperationGetNumOperands(op);
  in->n_results = (int)mlirOperationGetNumResults(op);
  in->args = slots_of(r, in->n_args, mlirOperationGetOperand, op, 0);
  in->results = slots_of(r, in->n_results, mlirOperationGetResult, op, 0);
  in->name = arena_strdup(r->arena, mlirIdentifierStr(mlirOperationGetName(op)).data);
  if (r->unknown)
    return false;
  if (read_watch(op, in) || read_native(r, op, in) || read_topk(r, op, in))
    return true;
  if (ir_is(op, "arith.constant") && r->slots.v[in->results[0]].is_tensor)
    return read_tensor_constant(r, op, in);
  if (read_constant(r, op, &in->bits)) {
    in->op = OP_CONSTANT;
    return true;
  }
  if (r->unknown)
    return false;
  if (read_arith(r, op, &in->arith)) {
    in->op = OP_ARITH;
    return true;
  }
  if (r->unknown)
    return false;
  if (ir_is_of(op, "linalg."))
    return read_structured(r, op, in);
  if (ir_is_of(op, "memref."))
    return read_memref(r, op, in);
  if (ir_is_of(op, "tensor.") || ir_is_of(op, "bufferization."))
    return read_tensor(r, op, in);
  if (ir_is(op, "affine.apply"))
    return read_apply(r, op, in);
  if (ir_is(op, "scf.for") || ir_is(op, "scf.if") || ir_is(op, "scf.while") || ir_is(op, "func.call"))
    return read_control(r, op, in);
  return unknown_operation(r, op);
}

static bool read_block(struct reader *r, MlirBlock b, struct block *out) {
  out->n_args = (int)mlirBlockGetNumArguments(b);
  int *args = arena_new_array(r->arena, int, (size_t)out->n_args);
  for (int k = 0; k < out->n_args; k++)
    args[k] = reader_slot(r, mlirBlockGetArgument(b, k));
  out->args = args;
  MlirOperation last = mlirBlockGetTerminator(b);
  for (MlirOperation op = mlirBlockGetFirstOperation(b); !mlirOperationEqual(op, last);
       op = mlirOperationGetNextInBlock(op)) {
    struct instr in = {0};
    if (!read_operation(r, op, &in))
      return read_unknown(r, "an operation");
    array_push(r->arena, &out->code, in);
  }
  if (!ir_is(last, "func.return") && !ir_is(last, "scf.yield") && !ir_is(last, "scf.condition"))
    return unknown_operation(r, last);
  out->n_results = (int)mlirOperationGetNumOperands(last);
  out->results = slots_of(r, out->n_results, mlirOperationGetOperand, last, 0);
  return !r->unknown;
}

void reader_rows(struct reader *r, int n) {
  r->n_rows = n > r->n_rows ? n : r->n_rows;
}

const struct interp_program *interp_read(MlirOperation module, const char *name, struct arena *a, const char **what) {
  struct reader r = {.arena = a, .module = module, .numbers = {.arena = a}};
  struct function *f = find_function(&r, ir_str(name));
  *what = r.unknown;
  if (!f || r.unknown)
    return NULL;
  struct interp_program *p = arena_new(a, struct interp_program);
  *p = (struct interp_program){.entry = f,
                               .n_slots = r.slots.n,
                               .n_views = r.ranks.n,
                               .slots = r.slots.v,
                               .ranks = r.ranks.v,
                               .n_rows = r.n_rows};
  for (int k = 0; k < r.ranks.n; k++)
    p->rank_sum += r.ranks.v[k];
  for (int k = 0; k < r.functions.n; k++)
    find_lifetimes(a, r.slots.n, r.slots.v, &r.functions.v[k]->body);
  return p;
}
