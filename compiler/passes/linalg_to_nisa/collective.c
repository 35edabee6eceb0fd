/* collective: lowers calls of collectives to instructions.
 *
 *     %1 = call @all_gather(%0)         ==>      %1 = nisa.alloc : memref<256x64xf32, shared_hbm>
 *                                                nisa.all_gather(dst=%1[d0, d1], src=%0[d0, d1], dim=0, …) engine=dma
 *
 * Both arrays are complete, are in shared HBM, and may have any strides.  An attribute of the declaration contains
 * the kind of the collective and its parameters (linalg/collective.c); these become attributes of the instruction.
 */
#include "passes/linalg_to_nisa/linalg_to_nisa.h"

#include "ir/query.h"
#include "passes/lib/buffers.h"

MlirAttribute ln_declared(struct ln *ln, const char *name) {
  MlirStringRef callee = mlirFlatSymbolRefAttrGetValue(ir_attr(ln->op, "callee"));
  MlirOperation f = ir_find_symbol(ln->run->module, "func.func", callee);
  return mlirOperationIsNull(f) ? mlirAttributeGetNull() : ir_attr(f, name);
}

/* Returns the kind of instruction for the collective; NISA_KIND_COUNT if there is none. */
static enum nisa_kind kind_of(MlirAttribute what) {
  static const enum nisa_kind kinds[] = {NISA_ALL_GATHER, NISA_ALL_REDUCE, NISA_REDUCE_SCATTER, NISA_ALL_TO_ALL,
                                         NISA_COLLECTIVE_PERMUTE};
  MlirAttribute kind = mlirAttributeIsADictionary(what) ? mlirDictionaryAttrGetElementByName(what, ir_str("kind"))
                                                        : mlirAttributeGetNull();
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds && !mlirAttributeIsNull(kind); k++)
    if (mlirAttributeIsAString(kind) &&
        mlirStringRefEqual(mlirStringAttrGetValue(kind), ir_str(nisa_op_def(kinds[k])->name)))
      return kinds[k];
  return NISA_KIND_COUNT;
}

/* Returns an access of all elements of v.  An array with fewer than two dimensions is one partition. */
static struct nisa_access whole(struct ln *ln, MlirValue v) {
  int64_t dims[NISA_TILE_MAX], results[NISA_TILE_MAX];
  const int rank = ir_shape(v, NISA_TILE_MAX, dims), pad = rank < 2 ? 2 - rank : 0;
  struct nisa_access x = {.base = v, .n_dims = rank + pad, .par_dims = 1};
  for (int d = 0; d < pad; d++)
    x.tile[d] = 1;
  for (int d = 0; d < rank; d++) {
    x.tile[pad + d] = dims[d];
    results[d] = pad + d;
  }
  x.map = ir_map(&ln->b, x.n_dims, rank, results);
  return x;
}

MlirValue ln_without_casts(struct ln *ln, MlirValue v) {
  for (MlirOperation def; !mlirOperationIsNull(def = ir_defining_op(v)) && ir_is(def, "memref.cast");)
    v = mlirOperationGetOperand(def, 0);
  return ln_buffer(ln, v);
}

MlirValue ln_new_result(struct ln *ln, MlirValue result) {
  MlirType t = mlirValueGetType(result);
  int64_t dims[NISA_TILE_MAX];
  const int rank = ir_shape(result, NISA_TILE_MAX, dims);
  MlirType made = ln_memref(ln, mlirShapedTypeGetElementType(t), rank, dims, MEM_SHARED_HBM);
  MlirValue out = mlirOperationGetResult(ln_insert(ln, nisa_create_alloc(ln->b.loc, made, 64)), 0);
  mlirValueReplaceAllUsesOfWith(result, mlirTypeEqual(made, t) ? out : ir_op1(&ln->b, "memref.cast", t, 1, &out));
  return out;
}

enum status ln_lower_collective(struct ln *ln, MlirAttribute what) {
  const enum nisa_kind kind = kind_of(what);
  struct ln_attr attrs[LN_ATTRS_MAX + 1] = {{NULL, {NULL}}};
  int n = 0;

  if (kind == NISA_KIND_COUNT || mlirOperationGetNumOperands(ln->op) != 1 || mlirOperationGetNumResults(ln->op) != 1 ||
      mlirDictionaryAttrGetNumElements(what) > LN_ATTRS_MAX)
    return ln_fail(ln, "its nkipy.collective is not a known one");
  MlirValue given = mlirOperationGetOperand(ln->op, 0), result = mlirOperationGetResult(ln->op, 0);
  if (!mlirTypeIsAMemRef(mlirValueGetType(given)) || !mlirTypeIsAMemRef(mlirValueGetType(result)))
    return ln_fail(ln, "it is not on buffers");
  if (mlirShapedTypeGetRank(mlirValueGetType(given)) > NISA_TILE_MAX ||
      mlirShapedTypeGetRank(mlirValueGetType(result)) > NISA_TILE_MAX)
    return ln_fail(ln, "it has more than %d dimensions", NISA_TILE_MAX);
  struct nisa_access operands[] = {whole(ln, ln_new_result(ln, result)), whole(ln, ln_without_casts(ln, given))};
  for (intptr_t k = 0; k < mlirDictionaryAttrGetNumElements(what); k++) {
    MlirNamedAttribute a = mlirDictionaryAttrGetElement(what, k);
    MlirStringRef name = mlirIdentifierStr(a.name);
    if (!mlirStringRefEqual(name, ir_str("kind")))
      attrs[n++] = (struct ln_attr){arena_strndup(ln->run->arena, name.data, name.length), a.attribute};
  }
  ln_emit(ln, kind, NISA_ENGINE_DMA, operands, attrs);
  return ST_OK;
}
