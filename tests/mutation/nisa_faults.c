/* nisa_faults: faults in NISA instructions and in the places of allocations. */
#include <stdio.h>
#include <string.h>

#include "mlir-c/AffineExpr.h"
#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "faults.h"
#include "ir/query.h"
#include "nisa/nisa.h"
#include "nisa/streams.h"

/* ---- instructions ------------------------------------------------------------------------------------------------ */

static bool wrong_function(MlirOperation op, bool is_wanted) {
  static const char *const attrs[] = {"op", "op0", "reduce_op"};
  static const char *const other[][2] = {{"add", "max"},      {"max", "min"},  {"multiply", "add"},
                                         {"subtract", "add"}, {"exp", "copy"}, {"is_lt", "is_le"}};
  if (!nisa_op_of(op))
    return false;
  for (size_t k = 0; k < 3; k++)
    for (size_t f = 0; f < sizeof other / sizeof *other; f++)
      if (!strcmp(nisa_text_attr(op, attrs[k]), other[f][0])) {
        if (is_wanted)
          ir_set_attr(op, attrs[k], mlirStringAttrGet(mlirOperationGetContext(op), ir_str(other[f][1])));
        return true;
      }
  return false;
}

static bool swap_operands(MlirOperation op, bool is_wanted) {
  if (!ir_is(op, "nisa.tensor_scalar_arith") || strcmp(nisa_text_attr(op, "op0"), "subtract") != 0)
    return false;
  const char *other = strcmp(nisa_text_attr(op, "reverse_operands"), "none") ? "none" : "first";
  if (is_wanted)
    ir_set_attr(op, "reverse_operands", mlirStringAttrGet(mlirOperationGetContext(op), ir_str(other)));
  return true;
}

/* All operands that are as long as the destination lose the last element of each partition. */
static bool short_tile(MlirOperation op, bool is_wanted) {
  struct nisa_instr in;
  if (!nisa_op_of(op) || !nisa_read(op, &in, NULL) || !in.def->n_operands || in.operand[0].n_dims < 2)
    return false;
  const struct nisa_access *dst = &in.operand[0];
  const int64_t n = dst->tile[dst->n_dims - 1];
  if (n < 2)
    return false;
  for (int k = 0; is_wanted && k < in.def->n_operands; k++) {
    struct nisa_access *x = &in.operand[k];
    if (x->n_dims < 2 || x->tile[x->n_dims - 1] != n)
      continue;
    char name[64];
    snprintf(name, sizeof name, "%s_tile", in.def->operand[k].name);
    x->tile[x->n_dims - 1]--;
    ir_set_attr(op, name, mlirDenseI64ArrayGet(mlirOperationGetContext(op), x->n_dims, x->tile));
  }
  return true;
}

/* A copy whose source has the first two dimensions of its square tile exchanged. */
static bool wrong_axis(MlirOperation op, bool is_wanted) {
  struct nisa_instr in;
  if (!ir_is(op, "nisa.dma_copy") || !nisa_read(op, &in, NULL))
    return false;
  const struct nisa_access *src = nisa_operand(&in, "src");
  if (src->n_dims != 2 || src->tile[0] != src->tile[1])
    return false;
  if (is_wanted) {
    MlirContext ctx = mlirOperationGetContext(op);
    MlirAffineExpr dims[] = {mlirAffineDimExprGet(ctx, 1), mlirAffineDimExprGet(ctx, 0)}, results[NISA_RANK_MAX];
    const intptr_t n = mlirAffineMapGetNumResults(src->map), n_symbols = mlirAffineMapGetNumSymbols(src->map);
    MlirAffineMap turned = mlirAffineMapGet(ctx, 2, n_symbols, 2, dims);
    for (intptr_t k = 0; k < n; k++)
      results[k] = mlirAffineExprCompose(mlirAffineMapGetResult(src->map, k), turned);
    ir_set_attr(op, "src_ap", mlirAffineMapAttrGet(mlirAffineMapGet(ctx, 2, n_symbols, n, results)));
  }
  return true;
}

/* The first index that a register gives is 0 in the source. */
static bool first_tile(MlirOperation op, bool is_wanted) {
  struct nisa_instr in;
  if (!nisa_op_of(op) || !nisa_read(op, &in, NULL) || in.def->n_operands < 2)
    return false;
  intptr_t at = 0;
  int k = 0;
  for (; k < in.def->n_operands && (in.def->operand[k].writes || !in.operand[k].n_indices); k++)
    at += nisa_is_absent(&in.operand[k]) ? 0 : 1 + in.operand[k].n_indices;
  if (k == in.def->n_operands || !mlirAttributeIsNull(ir_constant(in.operand[k].indices[0])))
    return false;
  if (is_wanted)
    mlirOperationSetOperand(op, at + 1, fault_index(op, 0));
  return true;
}

/* f32 kept as bf16. */
static bool wrong_type(MlirOperation op, bool is_wanted) {
  if (!ir_is(op, "nisa.alloc"))
    return false;
  MlirValue v = mlirOperationGetResult(op, 0);
  MlirType t = mlirValueGetType(v);
  if (nisa_type_space(t) != MEM_SBUF || !mlirTypeIsAF32(mlirShapedTypeGetElementType(t)))
    return false;
  if (is_wanted) {
    int64_t dims[NISA_RANK_MAX];
    const int rank = ir_shape(v, NISA_RANK_MAX, dims);
    mlirValueSetType(v, mlirMemRefTypeGet(mlirBF16TypeGet(mlirOperationGetContext(op)), rank, dims,
                                          mlirMemRefTypeGetLayout(t), mlirMemRefTypeGetMemorySpace(t)));
  }
  return true;
}

/* SBUF and PSUM exchanged. */
static bool wrong_memory(MlirOperation op, bool is_wanted) {
  if (!ir_is(op, "nisa.alloc"))
    return false;
  MlirValue v = mlirOperationGetResult(op, 0);
  MlirType t = mlirValueGetType(v);
  const enum mem_space space = nisa_type_space(t);
  if (space != MEM_SBUF && space != MEM_PSUM)
    return false;
  if (is_wanted) {
    int64_t dims[NISA_RANK_MAX];
    const int rank = ir_shape(v, NISA_RANK_MAX, dims);
    mlirValueSetType(
        v, mlirMemRefTypeGet(mlirShapedTypeGetElementType(t), rank, dims, mlirMemRefTypeGetLayout(t),
                             nisa_space_attr(mlirOperationGetContext(op), space == MEM_SBUF ? MEM_PSUM : MEM_SBUF)));
  }
  return true;
}

/* The matmul sends its moving operand through. */
static bool wrong_transpose(MlirOperation op, bool is_wanted) {
  if (!ir_is(op, "nisa.matmul"))
    return false;
  if (is_wanted)
    ir_set_attr(op, "is_transpose", mlirBoolAttrGet(mlirOperationGetContext(op), true));
  return true;
}

/* ---- places ------------------------------------------------------------------------------------------------------ */

static enum mem_space space_of(MlirOperation alloc) {
  return nisa_type_space(mlirValueGetType(mlirOperationGetResult(alloc, 0)));
}

static bool place_in(MlirOperation op, enum mem_space space, struct nisa_place *p) {
  return ir_is(op, "nisa.alloc") && space_of(op) == space && nisa_place_of(op, p);
}

static bool is_placed_in_same_memory(MlirOperation op, MlirOperation alloc) {
  struct nisa_place p;
  return place_in(op, space_of(alloc), &p);
}

/* Where the allocation before is. */
static bool same_place(MlirOperation op, enum mem_space space, bool is_wanted) {
  struct nisa_place p, other;
  if (!place_in(op, space, &p))
    return false;
  MlirOperation before = fault_earlier(op, is_placed_in_same_memory);
  if (mlirOperationIsNull(before))
    return false;
  nisa_place_of(before, &other);
  p.bank = other.bank;
  p.offset = other.offset;
  if (is_wanted)
    nisa_set_place(op, &p);
  return true;
}

static bool overlap(MlirOperation op, bool is_wanted) {
  return same_place(op, MEM_SBUF, is_wanted);
}

static bool wrong_bank(MlirOperation op, bool is_wanted) {
  return same_place(op, MEM_PSUM, is_wanted);
}

static bool wrong_scratch(MlirOperation op, bool is_wanted) {
  return same_place(op, MEM_HBM, is_wanted) || same_place(op, MEM_SHARED_HBM, is_wanted);
}

/* The first half lies in what is before the allocation. */
static bool wrong_offset(MlirOperation op, bool is_wanted) {
  struct nisa_place p;
  if (!place_in(op, MEM_SBUF, &p))
    return false;
  const int64_t half = nisa_type_bytes(mlirValueGetType(mlirOperationGetResult(op, 0))) / 2;
  if (half < 64 || p.offset < half)
    return false;
  p.offset -= half;
  if (is_wanted)
    nisa_set_place(op, &p);
  return true;
}

static bool wrong_stride(MlirOperation op, bool is_wanted) {
  struct nisa_place p;
  if (!ir_is(op, "nisa.alloc") || !nisa_place_of(op, &p) || p.copies < 2)
    return false;
  p.stride /= 2;
  if (is_wanted)
    nisa_set_place(op, &p);
  return true;
}

static bool fewer_copies(MlirOperation op, bool is_wanted) {
  struct nisa_place p;
  if (!ir_is(op, "nisa.alloc") || !nisa_place_of(op, &p) || p.copies < 2)
    return false;
  p.copies--;
  if (is_wanted)
    nisa_set_place(op, &p);
  return true;
}

/* The copies reach into what comes after the allocation. */
static bool more_copies(MlirOperation op, bool is_wanted) {
  struct nisa_place p;
  if (!ir_is(op, "nisa.alloc") || !nisa_place_of(op, &p) || p.copies < 2)
    return false;
  p.copies *= 2;
  if (is_wanted)
    nisa_set_place(op, &p);
  return true;
}

static bool wrong_partition(MlirOperation op, bool is_wanted) {
  struct nisa_place p;
  if (!place_in(op, MEM_SBUF, &p))
    return false;
  p.partition = NISA_PARTITIONS / 2;
  if (is_wanted)
    nisa_set_place(op, &p);
  return true;
}

/* All but the first byte is outside the memory. */
static bool outside(MlirOperation op, bool is_wanted) {
  struct nisa_place p;
  if (!place_in(op, MEM_SBUF, &p))
    return false;
  p.offset = (1 << 20) - 64;
  if (is_wanted)
    nisa_set_place(op, &p);
  return true;
}

static bool drop_place(MlirOperation op, bool is_wanted) {
  static const char *const names[] = {"partition", "offset", "copies", "stride"};
  struct nisa_place p;
  if (!place_in(op, MEM_SBUF, &p))
    return false;
  for (int k = 0; is_wanted && k < 4; k++)
    mlirOperationRemoveAttributeByName(op, ir_str(names[k]));
  return true;
}

/* An instruction comes after the next one, which reads what it writes. */
static bool wrong_order(MlirOperation op, bool is_wanted) {
  struct nisa_instr in, reader;
  MlirOperation next = mlirOperationGetNextInBlock(op);
  while (!mlirOperationIsNull(next) && ir_is(next, "nisa.alloc"))
    next = mlirOperationGetNextInBlock(next);
  if (!nisa_op_of(op) || mlirOperationIsNull(next) || !nisa_op_of(next) || !nisa_read(op, &in, NULL) ||
      !nisa_read(next, &reader, NULL) || in.engine == NISA_ENGINE_NONE || !in.def->operand[0].writes)
    return false;
  for (int k = 0; k < reader.def->n_operands; k++)
    if (reader.def->operand[k].reads && nisa_is_data(&reader.operand[k]) &&
        mlirValueEqual(reader.operand[k].base, in.operand[0].base)) {
      if (is_wanted)
        mlirOperationMoveAfter(op, next);
      return true;
    }
  return false;
}

const struct fault_kind nisa_faults[] = {
    {"wrong-order", wrong_order},         {"wrong-function", wrong_function},
    {"swap-operands", swap_operands},     {"short-tile", short_tile},
    {"wrong-axis", wrong_axis},           {"first-tile", first_tile},
    {"wrong-type", wrong_type},           {"wrong-memory", wrong_memory},
    {"wrong-transpose", wrong_transpose}, {"overlap", overlap},
    {"wrong-bank", wrong_bank},           {"wrong-scratch", wrong_scratch},
    {"wrong-offset", wrong_offset},       {"wrong-stride", wrong_stride},
    {"fewer-copies", fewer_copies},       {"more-copies", more_copies},
    {"wrong-partition", wrong_partition}, {"outside", outside},
    {"drop-place", drop_place},           {NULL, NULL},
};
