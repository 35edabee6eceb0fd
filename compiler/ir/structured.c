#include "ir/structured.h"

#include <assert.h>
#include <string.h>

#include "mlir-c/AffineExpr.h"
#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"
#include "mlir-c/Dialect/Linalg.h"

static const struct {
  const char *name;
  enum structured_kind kind;
} named[] = {
    {"linalg.fill", SK_FILL},
    {"linalg.transpose", SK_TRANSPOSE},
    {"linalg.broadcast", SK_BROADCAST},
    {"linalg.matmul", SK_MATMUL},
    {"linalg.batch_matmul", SK_BATCH_MATMUL},
    {"linalg.exp", SK_UNARY},
    {"linalg.log", SK_UNARY},
    {"linalg.tanh", SK_UNARY},
    {"linalg.negf", SK_UNARY},
    {"linalg.abs", SK_UNARY},
    {"linalg.ceil", SK_UNARY},
    {"linalg.floor", SK_UNARY},
    {"linalg.sqrt", SK_UNARY},
    {"linalg.rsqrt", SK_UNARY},
    {"linalg.reciprocal", SK_UNARY},
    {"linalg.square", SK_UNARY},
    {"linalg.erf", SK_UNARY},
    {"linalg.round", SK_UNARY},
    {"linalg.copy", SK_UNARY},
    {"linalg.add", SK_BINARY},
    {"linalg.sub", SK_BINARY},
    {"linalg.mul", SK_BINARY},
    {"linalg.div", SK_BINARY},
    {"linalg.div_unsigned", SK_BINARY},
    {"linalg.max", SK_BINARY},
    {"linalg.min", SK_BINARY},
    {"linalg.powf", SK_BINARY},
};

static enum structured_kind kind_of(MlirOperation op) {
  MlirStringRef n = mlirIdentifierStr(mlirOperationGetName(op));
  if (n.length < 7 || memcmp(n.data, "linalg.", 7))
    return SK_NONE;
  if (n.length == strlen("linalg.generic") && !memcmp(n.data, "linalg.generic", n.length))
    return SK_ELEMENTWISE;
  for (size_t i = 0; i < sizeof named / sizeof *named; i++)
    if (!strncmp(named[i].name, n.data, n.length) && !named[i].name[n.length])
      return named[i].kind;
  return SK_OTHER;
}

/* The attribute of a loop that is a reduction.  It is kept, because parsing it takes as long as reading an operation. */
static MlirAttribute reduction_of(MlirContext ctx) {
  static _Thread_local struct {
    const void *context; /* the context that it belongs to */
    unsigned made;       /* detects another context at the same address */
    MlirAttribute reduction;
  } known;
  if (known.context != ctx.ptr || known.made != ir_contexts_made()) {
    known.reduction = mlirAttributeParseGet(ctx, ir_str("#linalg.iterator_type<reduction>"));
    known.context = ctx.ptr;
    known.made = ir_contexts_made();
  }
  return known.reduction;
}

/* Reads which loops are reductions.  The last loop of a matmul is the contraction; a generic has iterator_types. */
static void read_iterators(MlirOperation op, struct structured *s) {
  if (s->kind == SK_MATMUL || s->kind == SK_BATCH_MATMUL) {
    s->reduction[s->n_loops - 1] = true;
    return;
  }
  MlirAttribute types = ir_attr(op, "iterator_types");
  if (mlirAttributeIsNull(types) || !mlirAttributeIsAArray(types))
    return;
  const MlirAttribute reduction = reduction_of(mlirOperationGetContext(op));
  for (int i = 0; i < s->n_loops && i < mlirArrayAttrGetNumElements(types); i++) {
    s->reduction[i] = mlirAttributeEqual(mlirArrayAttrGetElement(types, i), reduction);
    if (s->reduction[i] && s->kind == SK_ELEMENTWISE)
      s->kind = SK_REDUCTION;
  }
}

static void read_extents(MlirOperation op, struct structured *s) {
  int64_t dims[STRUCTURED_LOOPS_MAX];
  for (int i = 0; i < s->n_loops; i++)
    s->extents[i] = -1;
  for (int o = 0; o < s->n_inputs + s->n_inits; o++) {
    int rank = ir_shape(mlirOperationGetOperand(op, o), STRUCTURED_LOOPS_MAX, dims);
    for (int r = 0; r < rank && r < mlirAffineMapGetNumResults(s->maps[o]); r++) {
      int loop = structured_map_loop(s->maps[o], r);
      if (loop >= 0)
        s->extents[loop] = dims[r];
    }
  }
}

bool structured_read(MlirOperation op, struct structured *out) {
  struct structured s = {.kind = kind_of(op)};
  *out = (struct structured){.kind = SK_NONE};
  if (s.kind == SK_NONE)
    return false;
  MlirAttribute maps = mlirLinalgGetIndexingMapsAttribute(op);
  MlirAttribute segments = ir_attr(op, "operandSegmentSizes");
  if (mlirAttributeIsNull(maps))
    return false;
  intptr_t n = mlirArrayAttrGetNumElements(maps);
  if (n > STRUCTURED_OPERANDS_MAX || n > mlirOperationGetNumOperands(op))
    return false;
  for (intptr_t i = 0; i < n; i++) {
    s.maps[i] = mlirAffineMapAttrGetValue(mlirArrayAttrGetElement(maps, i));
    if (mlirAffineMapGetNumResults(s.maps[i]) > STRUCTURED_LOOPS_MAX)
      return false;
  }
  s.n_inits = !mlirAttributeIsNull(segments) && mlirAttributeIsADenseI32Array(segments)
                  ? mlirDenseI32ArrayGetElement(segments, 1)
                  : 1;
  s.n_inputs = (int)n - s.n_inits;
  assert(s.n_inputs >= 0 && s.n_inits >= 0); /* the operation has been verified */
  s.n_loops = n ? (int)mlirAffineMapGetNumDims(s.maps[0]) : 0;
  if (s.n_loops > STRUCTURED_LOOPS_MAX)
    return false;
  read_iterators(op, &s);
  read_extents(op, &s);
  *out = s;
  return true;
}

bool structured_is_elementwise(const struct structured *s) {
  return s->kind == SK_UNARY || s->kind == SK_BINARY || s->kind == SK_ELEMENTWISE;
}

bool structured_is_annotatable(const struct structured *s) {
  return structured_is_elementwise(s) || s->kind == SK_REDUCTION || s->kind == SK_MATMUL || s->kind == SK_BATCH_MATMUL;
}

int structured_map_loop(MlirAffineMap map, int r) {
  MlirAffineExpr e = mlirAffineMapGetResult(map, r);
  return mlirAffineExprIsADim(e) ? (int)mlirAffineDimExprGetPosition(e) : -1;
}

bool structured_has_simple_maps(const struct structured *s) {
  for (int o = 0; o < s->n_inputs + s->n_inits; o++)
    for (int r = 0; r < mlirAffineMapGetNumResults(s->maps[o]); r++) {
      MlirAffineExpr x = mlirAffineMapGetResult(s->maps[o], r);
      if (!mlirAffineExprIsADim(x) && !mlirAffineExprIsAConstant(x))
        return false;
    }
  return true;
}
