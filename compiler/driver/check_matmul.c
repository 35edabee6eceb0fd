/* check_matmul: replaces the loops of matrix products in a check by calls of a C function.
 *
 * The engine runs at the lowest optimisation level, because compiling takes longer than running for all operations
 * except matrix products: one of 512x512x512 takes 400 ms in unoptimised loops and 5 ms in sim/product.c.  So
 *
 *     linalg.matmul ins(%a, %b) outs(%c)   ==>   call @nkx_matmul_f32(%a, %b, %c, flags)
 *
 * is done for buffers of f32, f16 or bf16 that accumulate in f32, with any strides, and with A or B transposed or
 * not; batch_matmul is handled in the same way.  All other products stay loops.  The call sums in f32 in another
 * order than the loops would; the tolerance allows for that.
 */
#include <assert.h>
#include <string.h>

#include "mlir-c/AffineExpr.h"
#include "mlir-c/AffineMap.h"
#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"
#include "mlir-c/Dialect/Linalg.h"

#include "base/array.h"
#include "driver/check_internal.h"
#include "hlo/literal.h"
#include "sim/product.h"

enum { TRANSPOSE_A = 1, TRANSPOSE_B = 2, TYPE_SHIFT = 2 }; /* flags: transposes, then the operands' dtype */

/* ---- the called functions: memrefs arrive as {allocated, aligned, offset, sizes, strides} ------------------------ */

static struct sim_matrix as_matrix(char *data, int64_t offset, enum dtype t, int64_t s0, int64_t s1, int64_t t0,
                                   int64_t t1, bool transposed) {
  char *at = data + offset * (int64_t)dtype_size(t);
  return transposed ? (struct sim_matrix){at, s1, s0, t1, t0} : (struct sim_matrix){at, s0, s1, t0, t1};
}

#define MEMREF2(x) char *x##p, char *x, int64_t x##o, int64_t x##s0, int64_t x##s1, int64_t x##t0, int64_t x##t1
#define MEMREF3(x) \
  char *x##p, char *x, int64_t x##o, int64_t x##s0, int64_t x##s1, int64_t x##s2, int64_t x##t0, int64_t x##t1, \
      int64_t x##t2

static void call_matmul(MEMREF2(a), MEMREF2(b), MEMREF2(c), int64_t flags) {
  const enum dtype t = (enum dtype)(flags >> TYPE_SHIFT);
  struct sim_matrix ma = as_matrix(a, ao, t, as0, as1, at0, at1, flags & TRANSPOSE_A);
  struct sim_matrix mb = as_matrix(b, bo, t, bs0, bs1, bt0, bt1, flags & TRANSPOSE_B);
  struct sim_matrix mc = as_matrix(c, co, DT_F32, cs0, cs1, ct0, ct1, false);

  (void)ap, (void)bp, (void)cp;
  sim_multiply(&ma, &mb, &mc, t);
}

static void call_batch_matmul(MEMREF3(a), MEMREF3(b), MEMREF3(c), int64_t flags) {
  const enum dtype t = (enum dtype)(flags >> TYPE_SHIFT);

  (void)ap, (void)bp, (void)cp, (void)bs0, (void)cs0;
  for (int64_t k = 0; k < as0; k++) {
    struct sim_matrix ma = as_matrix(a, ao + k * at0, t, as1, as2, at1, at2, flags & TRANSPOSE_A);
    struct sim_matrix mb = as_matrix(b, bo + k * bt0, t, bs1, bs2, bt1, bt2, flags & TRANSPOSE_B);
    struct sim_matrix mc = as_matrix(c, co + k * ct0, DT_F32, cs1, cs2, ct1, ct2, false);
    sim_multiply(&ma, &mb, &mc, t);
  }
}

/* Each signature in MLIR needs its own name. */
static const char *const names[2][3] = {{"nkx_matmul_f32", "nkx_matmul_f16", "nkx_matmul_bf16"},
                                        {"nkx_batch_matmul_f32", "nkx_batch_matmul_f16", "nkx_batch_matmul_bf16"}};

void check_register_products(MlirExecutionEngine engine) {
  for (int k = 0; k < 3; k++) {
    check_register(engine, names[0][k], (void (*)(void))call_matmul);
    check_register(engine, names[1][k], (void (*)(void))call_batch_matmul);
  }
}

/* ---- the rewrite ------------------------------------------------------------------------------------------------- */

static enum dtype operand_type(MlirType memref) {
  MlirType t = mlirShapedTypeGetElementType(memref);
  return mlirTypeIsAF32(t) ? DT_F32 : mlirTypeIsAF16(t) ? DT_F16 : mlirTypeIsABF16(t) ? DT_BF16 : DT_NONE;
}

/* Returns the order of the loops in the map of operand k: 0 for (batch…, p, q), 1 if p and q are swapped, -1 for
 * another order. */
static int map_order(MlirAttribute maps, int k, int rank, int loop_p, int loop_q) {
  MlirAffineMap map = mlirAffineMapAttrGetValue(mlirArrayAttrGetElement(maps, k));
  int64_t at[3];

  if (mlirAffineMapGetNumResults(map) != rank)
    return -1;
  for (int d = 0; d < rank; d++) {
    MlirAffineExpr e = mlirAffineMapGetResult(map, d);
    if (!mlirAffineExprIsADim(e))
      return -1;
    at[d] = mlirAffineDimExprGetPosition(e);
  }
  if (rank == 3 && at[0] != 0)
    return -1;
  const int64_t *last = at + rank - 2;
  return last[0] == loop_p && last[1] == loop_q ? 0 : last[0] == loop_q && last[1] == loop_p ? 1 : -1;
}

/* Returns the flags of the call that replaces op; -1 if op stays a loop. */
static int64_t call_flags(MlirOperation op) {
  const int rank = ir_is(op, "linalg.matmul") ? 2 : ir_is(op, "linalg.batch_matmul") ? 3 : 0;
  if (!rank)
    return -1;
  for (int k = 0; k < 3; k++)
    if (!mlirTypeIsAMemRef(mlirValueGetType(mlirOperationGetOperand(op, k))))
      return -1;
  const enum dtype t = operand_type(mlirValueGetType(mlirOperationGetOperand(op, 0)));
  if (t == DT_NONE || operand_type(mlirValueGetType(mlirOperationGetOperand(op, 1))) != t ||
      operand_type(mlirValueGetType(mlirOperationGetOperand(op, 2))) != DT_F32)
    return -1;
  MlirAttribute maps = mlirLinalgGetIndexingMapsAttribute(op);
  const int m = rank - 2, n = rank - 1, k = rank; /* loops are (batch…, m, n, k) */
  const int a = map_order(maps, 0, rank, m, k), b = map_order(maps, 1, rank, k, n);
  if (a < 0 || b < 0 || map_order(maps, 2, rank, m, n) != 0)
    return -1;
  return (a ? TRANSPOSE_A : 0) | (b ? TRANSPOSE_B : 0) | (int64_t)t << TYPE_SHIFT;
}

/* Returns the type with dynamic sizes, strides and offset. */
static MlirType open_type(MlirType memref) {
  const intptr_t rank = mlirShapedTypeGetRank(memref);
  int64_t sizes[3], strides[3];
  assert(rank <= 3);

  for (intptr_t k = 0; k < rank; k++) {
    sizes[k] = mlirShapedTypeGetDynamicSize();
    strides[k] = mlirShapedTypeGetDynamicStrideOrOffset();
  }
  MlirAttribute layout =
      mlirStridedLayoutAttrGet(mlirTypeGetContext(memref), mlirShapedTypeGetDynamicStrideOrOffset(), rank, strides);
  return mlirMemRefTypeGet(mlirShapedTypeGetElementType(memref), rank, sizes, layout, mlirAttributeGetNull());
}

static void replace(MlirOperation module, MlirOperation op, int64_t flags) {
  const enum dtype t = (enum dtype)(flags >> TYPE_SHIFT);
  const char *name = names[ir_is(op, "linalg.batch_matmul")][t == DT_F32 ? 0 : t == DT_F16 ? 1 : 2];
  MlirContext ctx = mlirOperationGetContext(op);
  MlirType types[4];
  MlirValue args[4];

  for (int k = 0; k < 3; k++) {
    args[k] = mlirOperationGetOperand(op, k);
    types[k] = open_type(mlirValueGetType(args[k]));
    args[k] = check_convert(op, "memref.cast", args[k], types[k]);
  }
  types[3] = mlirIntegerTypeGet(ctx, 64);
  args[3] = check_insert_constant(op, mlirIntegerAttrGet(types[3], flags));
  check_declare(module, name, 4, types, 0, NULL);
  check_insert(op, "func.call", 4, args, 0, NULL, name);
  mlirOperationDestroy(op);
}

struct product {
  MlirOperation op;
  int64_t flags;
};
struct products {
  struct arena *arena;
  struct product *v;
  int n, cap;
};

static MlirWalkResult find(MlirOperation op, void *user) {
  struct products *f = user;
  const int64_t flags = call_flags(op);

  if (flags >= 0)
    array_push(f->arena, f, (struct product){op, flags});
  return MlirWalkResultAdvance;
}

void check_call_products(MlirOperation module, struct arena *a) {
  struct products f = {.arena = a};

  mlirOperationWalk(module, find, &f, MlirWalkPreOrder);
  for (int k = 0; k < f.n; k++)
    replace(module, f.v[k].op, f.v[k].flags);
}
