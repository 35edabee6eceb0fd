/* emit: a thin layer over the MLIR C API for code that writes linalg on tensors.
 *
 * A struct emit says where operations go (the end of a block, or in front of one of its operations) and which location
 * they get.  All functions put operations there and return borrowed values.  Nothing here knows HLO instructions;
 * shapes and element types are the base library's.  Operation names and attributes are LLVM 22's.
 */
#ifndef LINALG_EMIT_H
#define LINALG_EMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "mlir-c/AffineExpr.h"
#include "mlir-c/AffineMap.h"
#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"
#include "mlir-c/IR.h"

#include "hlo/hlo.h"

struct emit {
  MlirContext ctx;
  MlirBlock block;
  MlirLocation loc;
  struct arena *arena;
  MlirOperation before; /* null, or: while it is in `block`, operations go in front of it instead of to the end */
};

/* ---- types and attributes --------------------------------------------------------------------------- */

MlirType emit_element_type(const struct emit *e, enum dtype t); /* bool is i1, integers are signless */
MlirType emit_tensor_type(const struct emit *e, enum dtype t, int rank, const int64_t *dims);
MlirType emit_index_type(const struct emit *e);
MlirType emit_value_element_type(MlirValue v); /* of a tensor; of a scalar, its own type */

MlirNamedAttribute emit_attr(const struct emit *e, const char *name, MlirAttribute v);
MlirAttribute emit_i64_array(const struct emit *e, int n, const int64_t *v); /* array<i64: …> */

/* ---- reshapes ---------------------------------------------------------------------------------------- */

/* Groups the dimensions of `fine` so that group k's product is coarse[k], greedily from the left; dimensions of size
 * 1 left over at the end join the last group.  end[k] is the first dimension behind group k.  False if impossible.
 * Sizes are positive. */
bool emit_group_dims(int n_coarse, const int64_t *coarse, int n_fine, const int64_t *fine, int *end);
/* [[0, 1], [2]]: the groups as expand_shape and collapse_shape want them. */
MlirAttribute emit_reassociation(const struct emit *e, int n, const int *end);

/* ---- operations ------------------------------------------------------------------------------------- */

struct emit_op {
  const char *name;
  int n_operands;
  MlirValue const *operands;
  int n_results;
  MlirType const *results;
  int n_attrs;
  MlirNamedAttribute const *attrs;
  int n_regions; /* taken over */
  MlirRegion const *regions;
};

MlirOperation emit_operation(struct emit *e, const struct emit_op *op);
/* One result, no attributes. */
MlirValue emit_op1(struct emit *e, const char *name, MlirType result, int n, MlirValue const *operands);
/* One result of the first operand's type. */
MlirValue emit_unary(struct emit *e, const char *name, MlirValue x);
MlirValue emit_binary(struct emit *e, const char *name, MlirValue x, MlirValue y);
MlirValue emit_select(struct emit *e, MlirValue cond, MlirValue x, MlirValue y);

enum emit_int_pred { INT_EQ, INT_NE, INT_SLT, INT_SLE, INT_SGT, INT_SGE, INT_ULT, INT_ULE, INT_UGT, INT_UGE };
enum emit_float_pred { FLT_OEQ = 1, FLT_OGT, FLT_OGE, FLT_OLT, FLT_OLE, FLT_ONE, FLT_ULT = 11, FLT_UNE = 13, FLT_UNO };
MlirValue emit_cmpi(struct emit *e, enum emit_int_pred p, MlirValue x, MlirValue y);
MlirValue emit_cmpf(struct emit *e, enum emit_float_pred p, MlirValue x, MlirValue y);

MlirValue emit_index(struct emit *e, int64_t v);
MlirValue emit_int(struct emit *e, MlirType type, int64_t v);
MlirValue emit_float(struct emit *e, MlirType type, double v);
MlirValue emit_number(struct emit *e, enum dtype t, double v); /* integer types: v truncated */
/* The element at data as a scalar constant. */
MlirValue emit_element(struct emit *e, enum dtype t, const void *data);

MlirValue emit_empty(struct emit *e, enum dtype t, int rank, const int64_t *dims);
MlirValue emit_fill(struct emit *e, MlirValue scalar, MlirValue dest);
MlirValue emit_extract(struct emit *e, MlirValue tensor, int n, MlirValue const *indices);
/* linalg.index inside a generic's body. */
MlirValue emit_linalg_index(struct emit *e, int dim);

/* ---- slices ------------------------------------------------------------------------------------------ */

/* offsets[i] is used unless dynamic[i] is set (dynamic may be NULL). */
struct emit_slice {
  int rank;
  const int64_t *offsets, *sizes, *strides; /* strides NULL: all 1 */
  MlirValue const *dynamic;                 /* null values where static */
};
MlirValue emit_extract_slice(struct emit *e, MlirValue x, const struct emit_slice *s, MlirType result);
MlirValue emit_insert_slice(struct emit *e, MlirValue x, MlirValue dest, const struct emit_slice *s);

/* ---- linalg ------------------------------------------------------------------------------------------ */

/* Writes the body: args are the inputs' elements, then the output's; returns the value to yield. */
typedef MlirValue (*emit_body)(struct emit *body, MlirValue const *args, void *user);

struct emit_generic {
  int n_loops;
  const bool *reduction; /* n_loops entries; NULL: all parallel */
  int n_inputs;
  MlirValue const *inputs;
  MlirAffineMap const *maps; /* of the inputs, then of the output */
  MlirValue output;
  emit_body body;
  void *user;
};
MlirOperation emit_linalg_generic(struct emit *e, const struct emit_generic *g);
/* Named operations whose body MLIR knows ("linalg.add", "linalg.fill", …). */
MlirOperation emit_linalg_named(struct emit *e, const char *name, int n_inputs, MlirValue const *inputs,
                                MlirValue output, int n_attrs, MlirNamedAttribute const *attrs);
MlirValue emit_transpose(struct emit *e, MlirValue x, enum dtype t, int rank, const int64_t *dims,
                         const int64_t *permutation, MlirOperation *op);

/* linalg.transpose or linalg.broadcast, with its one attribute: their body yields the input. */
MlirOperation emit_linalg_copying(struct emit *e, const char *name, MlirValue x, MlirValue output,
                                  MlirNamedAttribute attr);

MlirAffineMap emit_identity_map(const struct emit *e, int rank);
/* (d0 … d<n_loops-1>) -> (results): results[i] >= 0 is a loop, -1 - c the constant c. */
MlirAffineMap emit_map(const struct emit *e, int n_loops, int n_results, const int64_t *results);
#define EMIT_CONST(c) (-1 - (int64_t)(c))

static inline MlirValue emit_result(MlirOperation op) {
  return mlirOperationGetResult(op, 0);
}

#endif
