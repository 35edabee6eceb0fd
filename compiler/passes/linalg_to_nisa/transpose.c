/* transpose: transposes a tile of floats from SBUF to SBUF on the tensor engine.
 *
 *     dst(i, j) = src(j, i)    ==>    matmul(psum[i, j], stationary = src[j, i], moving = identity, is_transpose)
 *                                     tensor_copy(dst, psum)
 *
 * A product with the identity matrix passes every element through unchanged, also infinities and NaN.  A DMA transfer
 * needs about 2 us and descriptors of two bytes or four; the product of 128 rows takes 64 to 128 cycles of the tensor
 * engine, and the copy 128 of another one.  The identity matrix of a type is made at the start of the function, once.
 */
#include <assert.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "passes/linalg_to_nisa/linalg_to_nisa.h"
#include "passes/lib/price.h"

bool ln_passes_through(MlirType element) {
  return mlirTypeIsAF32(element) || mlirTypeIsABF16(element) || mlirTypeIsAF16(element);
}

bool ln_can_transpose(const struct ln_view *dst, const struct ln_view *src) {
  return dst->space == MEM_SBUF && src->space == MEM_SBUF && ln_passes_through(dst->element);
}

/* ---- the identity matrix ---------------------------------------------------------------------------------------- */

static struct nisa_access square(MlirContext ctx, MlirValue base, int64_t n) {
  return nisa_matrix(ctx, base, n, n);
}

static MlirValue new_square(struct ln *ln, MlirType element) {
  static const int64_t dims[] = {NISA_PARTITIONS, NISA_PARTITIONS};
  MlirType type = ln_memref(ln, element, 2, dims, MEM_SBUF);
  return mlirOperationGetResult(ln_insert(ln, nisa_create_alloc(ln->b.loc, type, 64)), 0);
}

static void release_square(struct ln *ln, MlirValue v) {
  ln_release(ln, &(struct ln_view){.base = v, .is_temp = true});
}

/* Makes the matrix at ln->b, of the numbers column - row, which are 0 on the diagonal. */
static MlirValue make_identity(struct ln *ln, MlirType element) {
  MlirContext ctx = ln->b.ctx;
  MlirType f32 = mlirF32TypeGet(ctx);
  MlirValue identity = new_square(ln, element), numbers = new_square(ln, f32);
  struct nisa_access out = square(ctx, identity, NISA_PARTITIONS), in = square(ctx, numbers, NISA_PARTITIONS);

  const struct ln_attr by[] = {{"coefficients", ir_i64_array(&ln->b, 2, (int64_t[]){-1, 1})}, {NULL, {NULL}}};
  ln_emit(ln, NISA_IOTA, NISA_ENGINE_GPSIMD, (struct nisa_access[]){in, ln_scalar(ir_index(&ln->b, 0))}, by);
  const struct ln_attr is_zero[] = {
      {"op0", ln_text(ln, "is_eq")}, {"reverse_operands", ln_text(ln, "none")}, {NULL, {NULL}}};
  struct nisa_access compare[NISA_OPERANDS_MAX] = {out, in, ln_scalar(ir_float(&ln->b, f32, 0))};
  ln_emit(ln, NISA_TENSOR_SCALAR_ARITH, NISA_ENGINE_VECTOR, compare, is_zero);
  release_square(ln, numbers);
  return identity;
}

static MlirOperation function_of(MlirOperation op) {
  while (!ir_is(op, "func.func"))
    op = mlirOperationGetParentOperation(op);
  return op;
}

MlirValue ln_identity(struct ln *ln, MlirType element) {
  MlirOperation function = function_of(ln->op);
  for (int k = 0; k < ln->n_identities; k++)
    if (mlirOperationEqual(ln->identity[k].function, function) && mlirTypeEqual(ln->identity[k].element, element))
      return ln->identity[k].matrix;
  struct ir_builder here = ln->b;
  MlirBlock body = ir_body(function);
  ln->b.block = body;
  ln->b.before = mlirBlockGetFirstOperation(body);
  MlirValue matrix = make_identity(ln, element);
  ln->b.before = mlirBlockGetTerminator(body);
  release_square(ln, matrix);
  ln->b = here;
  if (ln->n_identities == LN_IDENTITIES_MAX) /* another function: those of the one before are not asked for again */
    ln->n_identities = 0;
  ln->identity[ln->n_identities++] = (struct ln_identity){function, element, matrix};
  return matrix;
}

/* ---- the product ------------------------------------------------------------------------------------------------ */

void ln_emit_turn(struct ln *ln, const struct nisa_access *psum, const struct nisa_access *src, int64_t rows) {
  struct nisa_access x[NISA_OPERANDS_MAX] = {*psum, *src};
  const struct ln_attr attrs[] = {{"is_transpose", ln_bool(ln, true)},
                                  {"perf_opt", ln_text(ln, "none_")},
                                  {"psum_zero_region", ln_text(ln, "size2048")},
                                  {NULL, {NULL}}};

  x[2] = nisa_matrix(ln->b.ctx, ln_identity(ln, nisa_access_element(src)), rows, rows);
  x[3] = x[4] = ln_scalar(ir_index(&ln->b, 0));
  ln_emit(ln, NISA_MATMUL, NISA_ENGINE_TENSOR, x, attrs);
}

enum status ln_transpose(struct ln_walk *w, const struct ln_view *dst, const struct ln_view *src) {
  struct ln *ln = w->ln;
  const ln_atoms atoms = ln_view_atoms(dst), rows = ln_partition_atoms(dst), columns = atoms & ~rows;
  const struct ln_view *psum = ln_temp(w, src->element, MEM_PSUM, rows, atoms);
  struct ln_shape to = ln_shape_of(w, rows, atoms), from = ln_shape_of(w, columns, atoms);
  struct nisa_access x[2];
  assert(ln_can_transpose(dst, src) && mlirTypeEqual(dst->element, src->element));

  enum status st = ln_access(w, psum, &to, &x[0]);
  if (!st)
    st = ln_access(w, src, &from, &x[1]);
  if (st)
    return st;
  struct remark *r = pass_remark(ln->run, ln->op, RULE_TRANSPOSE_ON_TENSOR, "transposed on the tensor engine");
  const int64_t each = nisa_element_bytes(src->element), across = ln_extent(w, rows), along = ln_extent(w, columns);
  price_chosen(r, price_transpose_ns(ln->run->target, across, along, each));
  price_instead(r, "DMA", price_transfer_ns(ln->run->target, across * along * each, each),
                "a transfer takes about 2 us to start and moves single elements");
  ln_emit_turn(ln, &x[0], &x[1], ln_extent(w, columns));
  st = ln_move(w, dst, psum, false);
  ln_release(ln, psum);
  return st;
}
