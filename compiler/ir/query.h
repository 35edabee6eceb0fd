/* query: questions about operations, values and types of any dialect. */
#ifndef IR_QUERY_H
#define IR_QUERY_H

#include <stdint.h>

#include "ir/ir.h"

/* ---- operations -------------------------------------------------------------------------------------- */

/* Attribute of op, inherent or discardable; null when op has none of that name. */
static inline MlirAttribute ir_attr(MlirOperation op, const char *name) {
  return mlirOperationGetAttributeByName(op, ir_str(name));
}
static inline void ir_set_attr(MlirOperation op, const char *name, MlirAttribute v) {
  mlirOperationSetAttributeByName(op, ir_str(name), v);
}

/* The integer attribute of this name; `missing` when op has none. */
int64_t ir_int_attr(MlirOperation op, const char *name, int64_t missing);

/* The operation of this kind ("func.func") and symbol name in the body of a module; null when there is none. */
MlirOperation ir_find_symbol(MlirOperation module, const char *kind, MlirStringRef name);

/* First block of the first region; null when that region is empty.  op has a region. */
static inline MlirBlock ir_body(MlirOperation op) {
  return mlirRegionGetFirstBlock(mlirOperationGetRegion(op, 0));
}
/* The operation in `block` that is op or contains it; null when there is none. */
MlirOperation ir_ancestor_in(MlirOperation op, MlirBlock block);

/* ---- values ------------------------------------------------------------------------------------------ */

static inline MlirOperation ir_defining_op(MlirValue v) { /* null for a block argument */
  return mlirValueIsAOpResult(v) ? mlirOpResultGetOwner(v) : (MlirOperation){NULL};
}
static inline bool ir_is_used(MlirValue v) {
  return !mlirOpOperandIsNull(mlirValueGetFirstUse(v));
}
/* True if v is an operand once.  An annotation that names v counts. */
static inline bool ir_has_one_use(MlirValue v) {
  MlirOpOperand use = mlirValueGetFirstUse(v);
  return !mlirOpOperandIsNull(use) && mlirOpOperandIsNull(mlirOpOperandGetNextUse(use));
}
/* The owner of v's only use; null if v has no use, or several. */
static inline MlirOperation ir_only_user(MlirValue v) {
  return ir_has_one_use(v) ? mlirOpOperandGetOwner(mlirValueGetFirstUse(v)) : (MlirOperation){NULL};
}

/* The arith.constant that defines v: its attribute; null when v is defined otherwise. */
MlirAttribute ir_constant(MlirValue v);
/* The integer constant that defines v, into *out; false when v is defined otherwise. */
bool ir_int_constant(MlirValue v, int64_t *out);
/* v is a constant 0 or -0. */
bool ir_is_zero(MlirValue v);

/* ---- types ------------------------------------------------------------------------------------------- */

/* Rank of a ranked tensor or memref value, -1 otherwise.  Writes the first `max` extents to dims, -1 where dynamic. */
int ir_shape(MlirValue v, int max, int64_t *dims);

/* ---- lists of operations ----------------------------------------------------------------------------- */

struct ir_ops {
  MlirOperation *v;
  int n, cap;
};
/* All operations under root (root included) for which want returns true, in pre-order; want NULL: all.  The list is
 * complete before the caller sees it, so the caller may change the IR while it goes through the list. */
struct ir_ops ir_collect(struct arena *a, MlirOperation root, bool (*want)(MlirOperation, void *), void *user);
/* Brings the uses of every value into the order that they have in a module that was just parsed.  A pass that looks at uses in
 * their order then makes the same of a module and of its text. */
void ir_order_uses(MlirOperation root);

/* Those with exactly this name. */
struct ir_ops ir_collect_named(struct arena *a, MlirOperation root, const char *name);

#endif
