/* build: making MLIR operations.
 *
 * A builder says where operations go, at the end of a block or before one of its operations, and which location they
 * get.  Functions that take a builder put operations there and return borrowed values.  Element types are enum
 * dtype of base/; names and attributes of operations are those of LLVM 22.  This module does not depend on HLO.
 */
#ifndef IR_BUILD_H
#define IR_BUILD_H

#include "mlir-c/AffineExpr.h"
#include "mlir-c/AffineMap.h"
#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "base/dtype.h"
#include "ir/query.h"

struct ir_builder {
  MlirContext ctx;
  MlirBlock block;
  MlirLocation loc;
  struct arena *arena;  /* for what the builder's functions need while they run */
  MlirOperation before; /* null: operations go to the end of `block`; ignored when it is in another block */
};

/* ---- types and attributes --------------------------------------------------------------------------- */

MlirType ir_element_type(const struct ir_builder *b, enum dtype t); /* bool is i1, integers are signless */
MlirType ir_tensor_type(const struct ir_builder *b, enum dtype t, int rank, const int64_t *dims);
MlirType ir_tensor_of(MlirType element, int rank, const int64_t *dims);
MlirType ir_index_type(const struct ir_builder *b);
/* Element type of a tensor or memref; the type itself of a scalar. */
MlirType ir_value_element(MlirValue v);

MlirNamedAttribute ir_named(const struct ir_builder *b, const char *name, MlirAttribute v);
MlirAttribute ir_i64_attr(const struct ir_builder *b, int64_t v); /* v : i64 */
MlirAttribute ir_i32_attr(const struct ir_builder *b, int64_t v);
MlirAttribute ir_i64_array(const struct ir_builder *b, int n, const int64_t *v); /* array<i64: …> */
/* operandSegmentSizes: the number of operands for each operand of the operation's definition. */
MlirNamedAttribute ir_segments(const struct ir_builder *b, int n, const int32_t *v);

/* ---- operations ------------------------------------------------------------------------------------- */

struct ir_parts {
  const char *name;
  int n_operands;
  MlirValue const *operands;
  int n_results;
  MlirType const *results;
  int n_attrs;
  MlirNamedAttribute const *attrs;
  int n_regions;
  MlirRegion const *regions; /* the operation takes ownership */
};
/* Any operation.  The functions below are shorter for the usual forms. */
MlirOperation ir_create(struct ir_builder *b, const struct ir_parts *parts);
/* Puts an operation that is in no block, such as a clone, at the builder's place; returns it. */
MlirOperation ir_place(struct ir_builder *b, MlirOperation op);

static inline MlirValue ir_result(MlirOperation op) {
  return mlirOperationGetResult(op, 0);
}

/* No result. */
MlirOperation ir_op0(struct ir_builder *b, const char *name, int n, MlirValue const *operands);
MlirOperation ir_op0_with(struct ir_builder *b, const char *name, int n, MlirValue const *operands, int n_attrs,
                          MlirNamedAttribute const *attrs);
/* One result. */
MlirValue ir_op1(struct ir_builder *b, const char *name, MlirType result, int n, MlirValue const *operands);
MlirValue ir_op1_with(struct ir_builder *b, const char *name, MlirType result, int n, MlirValue const *operands,
                      int n_attrs, MlirNamedAttribute const *attrs);
/* One result of the first operand's type. */
MlirValue ir_unary(struct ir_builder *b, const char *name, MlirValue x);
MlirValue ir_binary(struct ir_builder *b, const char *name, MlirValue x, MlirValue y);
MlirValue ir_select(struct ir_builder *b, MlirValue cond, MlirValue x, MlirValue y);

/* The numbers that arith.cmpi and arith.cmpf give to their predicates. */
enum ir_int_pred {
  IR_INT_EQ,
  IR_INT_NE,
  IR_INT_SLT,
  IR_INT_SLE,
  IR_INT_SGT,
  IR_INT_SGE,
  IR_INT_ULT,
  IR_INT_ULE,
  IR_INT_UGT,
  IR_INT_UGE,
};
enum ir_float_pred {
  IR_FLT_OEQ = 1,
  IR_FLT_OGT,
  IR_FLT_OGE,
  IR_FLT_OLT,
  IR_FLT_OLE,
  IR_FLT_ONE,
  IR_FLT_ULT = 11,
  IR_FLT_UNE = 13,
};
MlirValue ir_cmpi(struct ir_builder *b, enum ir_int_pred p, MlirValue x, MlirValue y);
MlirValue ir_cmpf(struct ir_builder *b, enum ir_float_pred p, MlirValue x, MlirValue y);

/* ---- constants --------------------------------------------------------------------------------------- */

MlirValue ir_constant_of(struct ir_builder *b, MlirAttribute value); /* of the attribute's type */
MlirValue ir_index(struct ir_builder *b, int64_t v);
MlirValue ir_int(struct ir_builder *b, MlirType type, int64_t v);
MlirValue ir_float(struct ir_builder *b, MlirType type, double v);
MlirValue ir_number(struct ir_builder *b, enum dtype t, double v); /* integer types: v truncated */
/* The element at data as a scalar constant. */
MlirValue ir_element(struct ir_builder *b, enum dtype t, const void *data);

/* ---- regions and loops ------------------------------------------------------------------------------- */

/* A region with one block, which has arguments of these types; *inside builds at its end.  The caller owns the region
 * until an operation takes it. */
MlirRegion ir_region(const struct ir_builder *b, int n, MlirType const *types, struct ir_builder *inside);
/* The region of an scf.for that carries these n values: the arguments are the counter, then what is carried. */
MlirRegion ir_loop_region(const struct ir_builder *b, int n, MlirValue const *carried, struct ir_builder *inside);
void ir_yield(struct ir_builder *b, int n, MlirValue const *values); /* scf.yield */
/* scf.for with a region of ir_loop_region that ends in a yield.  bounds: lower, upper, step. */
MlirOperation ir_for(struct ir_builder *b, MlirValue const bounds[3], int n, MlirValue const *carried,
                     MlirRegion region);
/* scf.if with two regions without arguments that end in a yield. */
MlirOperation ir_if(struct ir_builder *b, MlirValue cond, int n, MlirType const *results, MlirRegion const regions[2]);
/* scf.for from 0 to n by 1 that carries nothing; *inside builds before its yield.  Returns the counter. */
MlirValue ir_count_loop(struct ir_builder *b, int64_t n, struct ir_builder *inside);

/* A nest of n loops from 0 to extents[k] around the body, which replaces the values that are carried.  No loops are
 * made when an extent is 0. */
struct ir_loops {
  int n;
  const int64_t *extents;
  int n_carried;
  void (*body)(struct ir_builder *b, MlirValue const *at, MlirValue *carried, void *user); /* at: the n counters */
  void *user;
};
void ir_loop_nest(struct ir_builder *b, const struct ir_loops *loops, MlirValue *carried);

/* ---- tensors ----------------------------------------------------------------------------------------- */

MlirValue ir_empty(struct ir_builder *b, enum dtype t, int rank, const int64_t *dims);
MlirValue ir_empty_of(struct ir_builder *b, MlirType tensor);
MlirValue ir_extract(struct ir_builder *b, MlirValue tensor, int n, MlirValue const *indices);
MlirValue ir_insert(struct ir_builder *b, MlirValue scalar, MlirValue tensor, int n, MlirValue const *indices);

/* Groups the dimensions of `fine` so that group k's product is coarse[k], greedily from the left; dimensions of size 1
 * left over at the end join the last group.  end[k] is the first dimension after group k.  False when there is no such
 * grouping.  Sizes are positive. */
bool ir_group_dims(int n_coarse, const int64_t *coarse, int n_fine, const int64_t *fine, int *end);
/* expand_shape and collapse_shape of tensors and memrefs, by the type of x; `end` as above.  result is x in another
 * shape, dims are its extents. */
MlirValue ir_collapse_shape(struct ir_builder *b, MlirValue x, MlirType result, int n, const int *end);
MlirValue ir_expand_shape(struct ir_builder *b, MlirValue x, MlirType result, int n, const int *end, int rank,
                          const int64_t *dims);

/* offsets[i] counts unless dynamic[i] is set (dynamic may be NULL). */
struct ir_slice {
  int rank;
  const int64_t *offsets, *sizes, *strides; /* strides NULL: all 1 */
  MlirValue const *dynamic;                 /* null values where static */
};
MlirValue ir_extract_slice(struct ir_builder *b, MlirValue x, const struct ir_slice *s, MlirType result);
MlirValue ir_insert_slice(struct ir_builder *b, MlirValue x, MlirValue dest, const struct ir_slice *s);

/* ---- linalg (build_linalg.c) -------------------------------------------------------------------------- */

/* Operations on tensors have one result, of the output's type; operations on memrefs have none. */

MlirAffineMap ir_identity_map(const struct ir_builder *b, int rank);
/* (d0 … d<n_loops-1>) -> (results): results[i] >= 0 is a loop, IR_CONST(c) the constant c. */
MlirAffineMap ir_map(const struct ir_builder *b, int n_loops, int n_results, const int64_t *results);
#define IR_CONST(c) (-1 - (int64_t)(c))

/* #linalg.iterator_type<parallel> or <reduction>. */
MlirAttribute ir_iterator(MlirContext ctx, bool is_reduction);

/* Writes the body: args are the inputs' elements, then the output's; returns the value to yield. */
typedef MlirValue (*ir_body_fn)(struct ir_builder *b, MlirValue const *args, void *user);

struct ir_generic {
  int n_loops;
  const bool *reduction; /* n_loops entries; NULL: all parallel */
  int n_inputs;
  MlirValue const *inputs;
  MlirAffineMap const *maps; /* of the inputs, then of the output */
  MlirValue output;
  ir_body_fn body;
  void *user;
};
MlirOperation ir_linalg_generic(struct ir_builder *b, const struct ir_generic *g);
/* linalg.index inside a generic's body. */
MlirValue ir_linalg_index(struct ir_builder *b, int dim);

/* Named operations whose body MLIR knows ("linalg.add", "linalg.fill", …). */
MlirOperation ir_linalg_named(struct ir_builder *b, const char *name, int n_inputs, MlirValue const *inputs,
                              MlirValue output, int n_attrs, MlirNamedAttribute const *attrs);
MlirValue ir_fill(struct ir_builder *b, MlirValue scalar, MlirValue dest); /* dest is a tensor */
/* linalg.transpose or linalg.broadcast, with its one attribute: their body yields the input. */
MlirOperation ir_linalg_copying(struct ir_builder *b, const char *name, MlirValue x, MlirValue output,
                                MlirNamedAttribute attr);
MlirOperation ir_transpose(struct ir_builder *b, MlirValue x, int rank, const int64_t *permutation); /* x: a tensor */
MlirOperation ir_broadcast(struct ir_builder *b, MlirValue x, MlirValue output, int64_t new_dim);

#endif
