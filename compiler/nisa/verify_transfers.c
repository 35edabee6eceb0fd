/* verify_transfers: what the hardware demands of DMA transfers and of collectives. */
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "ir/query.h"
#include "nisa/verify_ops.h"

/* ---- dma -------------------------------------------------------------------------------------------------------- */

void nisa_check_dma_copy(struct nisa_check *c, const struct nisa_instr *in) {
  MlirType from = nisa_element(&in->operand[1]), to = nisa_element(&in->operand[0]);
  nisa_check_same(c, in, "src");
  if (!mlirTypeEqual(from, to) && mlirTypeIsAInteger(from) && mlirTypeIsAInteger(to))
    nisa_complain(c, in->op, "DMA does not convert between integer types");
}

void nisa_check_exchange(struct nisa_check *c, const struct nisa_instr *in) {
  nisa_check_same(c, in, "src");
  if (!mlirTypeEqual(nisa_element(&in->operand[0]), nisa_element(&in->operand[1])))
    nisa_complain(c, in->op, "what is exchanged is not converted: dst and src must have the same type");
  if (nisa_access_space(&in->operand[0]) != MEM_SBUF || nisa_access_space(&in->operand[1]) != MEM_SBUF)
    nisa_complain(c, in->op, "dst and src must be in SBUF");
}

void nisa_check_dma_transpose(struct nisa_check *c, const struct nisa_instr *in) {
  const struct nisa_access *dst = &in->operand[0], *src = &in->operand[1];
  MlirAttribute p = ir_attr(in->op, "permutation");
  int64_t bytes = nisa_element_bytes(nisa_element(dst));

  if (mlirAttributeIsNull(p) || !mlirAttributeIsADenseI64Array(p) || mlirDenseArrayGetNumElements(p) != 2 ||
      mlirDenseI64ArrayGetElement(p, 0) != 1 || mlirDenseI64ArrayGetElement(p, 1) != 0)
    nisa_complain(c, in->op, "its permutation must be [1, 0]");
  if (nisa_partitions(dst) != nisa_free_elements(src) || nisa_free_elements(dst) != nisa_partitions(src))
    nisa_complain(c, in->op, "dst is %lld x %lld, src %lld x %lld", (long long)nisa_partitions(dst),
                  (long long)nisa_free_elements(dst), (long long)nisa_partitions(src),
                  (long long)nisa_free_elements(src));
  if (!mlirTypeEqual(nisa_element(dst), nisa_element(src)) || (bytes != 2 && bytes != 4))
    nisa_complain(c, in->op, "DMA transposes elements of 2 or 4 bytes, without conversion");
  if (nisa_access_space(dst) != MEM_SBUF)
    nisa_complain(c, in->op, "DMA transposes into SBUF only");
}

/* A gather or a scatter: `x` is in HBM and is indexed by `index`, the other one is in SBUF. */
static void check_rows(struct nisa_check *c, const struct nisa_instr *in, const char *name, const char *other,
                       const char *index_name, const char *dim_name, const char *max_name) {
  const struct nisa_access *x = nisa_operand(in, name), *index = nisa_operand(in, index_name);
  MlirType t = mlirValueGetType(x->base);
  int64_t dim = ir_int_attr(in->op, dim_name, -1), max = ir_int_attr(in->op, max_name, -1);

  nisa_check_same(c, in, "src");
  nisa_check_column(c, in, index_name);
  if (mem_is_on_chip(nisa_access_space(x)))
    nisa_complain(c, in->op, "%s must be in HBM", name);
  if (nisa_access_space(nisa_operand(in, other)) != MEM_SBUF || nisa_access_space(index) != MEM_SBUF)
    nisa_complain(c, in->op, "%s and %s must be in SBUF", other, index_name);
  if (!mlirTypeIsAInteger(nisa_element(index)) || mlirIntegerTypeGetWidth(nisa_element(index)) != 32)
    nisa_complain(c, in->op, "%s must be i32", index_name);
  if (!mlirTypeEqual(nisa_element(x), nisa_element(nisa_operand(in, other))))
    nisa_complain(c, in->op, "dst and src must have the same type");
  if (dim < 0 || dim >= mlirShapedTypeGetRank(t))
    nisa_complain(c, in->op, "%s is no dimension of %s", dim_name, name);
  else if (max < 1 || max > mlirShapedTypeGetDimSize(t, dim))
    nisa_complain(c, in->op, "%s is not within the dimension", max_name);
}

void nisa_check_indirect(struct nisa_check *c, const struct nisa_instr *in) {
  check_rows(c, in, "src", "dst", "src_index", "src_index_dim", "src_indirect_max_index");
}

void nisa_check_scatter(struct nisa_check *c, const struct nisa_instr *in) {
  const char *op = nisa_text_attr(in->op, "op");
  check_rows(c, in, "dst", "src", "dst_index", "dst_index_dim", "dst_indirect_max_index");
  if (*op && strcmp(op, "add") != 0)
    nisa_complain(c, in->op, "DMA adds; it has no %s", op);
}

void nisa_check_dma_compute(struct nisa_check *c, const struct nisa_instr *in) {
  nisa_check_same(c, in, "src");
  nisa_check_same(c, in, "other");
}

/* ---- collectives ------------------------------------------------------------------------------------------------ */

/* Reads a matrix of i64 with a group of devices in each row.  Returns the number of its columns; 0 if it is missing,
 * -1 if it is not such a matrix. */
static int64_t group_size(const struct nisa_instr *in, const char *name) {
  MlirAttribute a = ir_attr(in->op, name);
  if (mlirAttributeIsNull(a))
    return 0;
  MlirType t = mlirAttributeIsADenseElements(a) ? mlirAttributeGetType(a) : (MlirType){NULL};
  if (mlirTypeIsNull(t) || mlirShapedTypeGetRank(t) != 2 || !mlirTypeIsAInteger(mlirShapedTypeGetElementType(t)) ||
      mlirShapedTypeGetDimSize(t, 0) < 1 || mlirShapedTypeGetDimSize(t, 1) < 1)
    return -1;
  return mlirShapedTypeGetDimSize(t, 1);
}

static void check_whole(struct nisa_check *c, const struct nisa_instr *in, int k) {
  const struct nisa_access *x = &in->operand[k];
  MlirType t = mlirValueGetType(x->base);
  int64_t n = 1;
  for (intptr_t d = 0; d < mlirShapedTypeGetRank(t); d++)
    n *= mlirShapedTypeGetDimSize(t, d);
  if (mem_is_on_chip(nisa_access_space(x)))
    nisa_complain(c, in->op, "%s must be in HBM", in->def->operand[k].name);
  if (nisa_partitions(x) * nisa_free_elements(x) != n)
    nisa_complain(c, in->op, "%s is not the whole array", in->def->operand[k].name);
}

/* Checks that the dimensions are equal; only along `dim`, all_gather's dst and reduce_scatter's src are n times as
 * large as the other operand.  n: the number of devices in a group, 0 if the shapes determine it. */
static void check_extents(struct nisa_check *c, const struct nisa_instr *in, int64_t n) {
  MlirType to = mlirValueGetType(in->operand[0].base), from = mlirValueGetType(in->operand[1].base);
  const enum nisa_kind kind = in->def->kind;
  const bool has_dim = kind != NISA_ALL_REDUCE && kind != NISA_COLLECTIVE_PERMUTE;
  const int64_t dim = has_dim ? ir_int_attr(in->op, "dim", -1) : -1;
  const intptr_t rank = mlirShapedTypeGetRank(to);

  if (mlirShapedTypeGetRank(from) != rank || (has_dim && (dim < 0 || dim >= rank))) {
    nisa_complain(c, in->op, "dst and src have other numbers of dimensions, or no dimension dim");
    return;
  }
  for (intptr_t d = 0; d < rank; d++) {
    const int64_t x = mlirShapedTypeGetDimSize(from, d), y = mlirShapedTypeGetDimSize(to, d);
    bool fits = x == y;
    if (d == dim && kind == NISA_ALL_GATHER)
      fits = n ? y == x * n : x > 0 && y % x == 0;
    else if (d == dim && kind == NISA_REDUCE_SCATTER)
      fits = n ? x == y * n : y > 0 && x % y == 0;
    else if (d == dim)
      fits = x == y && (!n || x % n == 0);
    if (!fits)
      nisa_complain(c, in->op, "dimension %d is %lld in dst and %lld in src, which does not fit %lld devices", (int)d,
                    (long long)y, (long long)x, (long long)n);
  }
}

void nisa_check_collective(struct nisa_check *c, const struct nisa_instr *in) {
  const bool permutes = in->def->kind == NISA_COLLECTIVE_PERMUTE;
  const char *groups = permutes ? "source_target_pairs" : "replica_groups";
  const int64_t n = group_size(in, groups);

  check_whole(c, in, 0);
  check_whole(c, in, 1);
  if (!mlirTypeEqual(nisa_element(&in->operand[0]), nisa_element(&in->operand[1])))
    nisa_complain(c, in->op, "dst and src must have the same type");
  if (mlirTypeIsAFloat(nisa_element(&in->operand[0])) && !strncmp(nisa_text_attr(in->op, "op"), "bitwise_", 8))
    nisa_complain(c, in->op, "devices do not combine the bits of floats");
  if (n < 0 || (permutes && n != 2))
    nisa_complain(c, in->op, "%s must be a matrix of %s", groups, permutes ? "two columns" : "device numbers");
  else
    check_extents(c, in, permutes ? 0 : n);
}
