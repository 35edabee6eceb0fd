/* compare: compiles comparisons and selections in a body.
 *
 *   cmpi, cmpf    an operator that yields 1 or 0 in the destination's type; unordered and one-sided predicates of floats
 *                 take several (nkigen has no != of floats)
 *   select        a copy of one side, then a predicated copy of the other side over it
 *
 * A select that reads its destination must not write it first: it swaps its sides, or writes a temporary buffer.
 */
#include <assert.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "passes/lib/edit.h"
#include "passes/linalg_to_nisa/linalg_to_nisa.h"

/* ---- comparisons ------------------------------------------------------------------------------------------------ */

/* A predicate of arith.cmpf: one operator, or two that `join` combines, or the negation of these. */
struct predicate {
  const char *op, *second, *join;
  bool negate, self; /* self: each operand is compared with itself */
};

static const struct predicate float_predicates[16] = {
    [1] = {.op = "is_eq"},
    [2] = {.op = "is_gt"},
    [3] = {.op = "is_ge"},
    [4] = {.op = "is_lt"},
    [5] = {.op = "is_le"},
    [6] = {.op = "is_lt", .second = "is_gt", .join = "logical_or"},
    [7] = {.op = "is_eq", .second = "is_eq", .join = "logical_and", .self = true},
    [8] = {.op = "is_lt", .second = "is_gt", .join = "logical_or", .negate = true},
    [9] = {.op = "is_le", .negate = true},
    [10] = {.op = "is_lt", .negate = true},
    [11] = {.op = "is_ge", .negate = true},
    [12] = {.op = "is_gt", .negate = true},
    [13] = {.op = "is_ne"},
    [14] = {.op = "is_ne", .second = "is_ne", .join = "logical_or", .self = true},
};

static MlirType bool_type(struct ln_body *b) {
  return mlirIntegerTypeGet(b->w->ln->b.ctx, 1);
}

static enum status compare_pair(struct ln_body *b, const struct predicate *p, const struct ln_view *dst,
                                struct ln_arg x, struct ln_arg y, ln_atoms atoms) {
  if (p->self &&
      (!x.view || !y.view)) { /* one is a constant: compare the other one; a constant NaN compares the same way */
    struct ln_arg v = x.view ? x : y;
    return ln_arith(b->w, b->par, p->op, dst, v, v, false);
  }
  struct ln_view *first = ln_temp_like(b, bool_type(b), atoms), *second = ln_temp_like(b, bool_type(b), atoms);
  enum status st = ln_arith(b->w, b->par, p->op, first, x, p->self ? x : y, false);
  if (!st)
    st = ln_arith(b->w, b->par, p->second, second, p->self ? y : x, y, false);
  if (!st)
    st = ln_arith(b->w, b->par, p->join, dst, ln_data(first), ln_data(second), false);
  ln_release(b->w->ln, second);
  ln_release(b->w->ln, first);
  return st;
}

static enum status compare_floats(struct ln_body *b, const struct predicate *p, const struct ln_view *dst,
                                  struct ln_arg x, struct ln_arg y) {
  ln_atoms atoms = ln_arg_atoms(&x) | ln_arg_atoms(&y);
  const struct ln_view *to = p->negate ? ln_temp_like(b, bool_type(b), atoms) : dst;

  enum status st = p->second ? compare_pair(b, p, to, x, y, atoms) : ln_arith(b->w, b->par, p->op, to, x, y, false);
  if (!st && p->negate)
    st = ln_arith(b->w, b->par, "is_eq", dst, ln_data(to), ln_number_arg(b, bool_type(b), 0), false);
  if (p->negate)
    ln_release(b->w->ln, to);
  return st;
}

enum status ln_compare(struct ln_body *b, MlirOperation op) {
  static const char *const integers[] = {"is_eq", "is_ne", "is_lt", "is_le", "is_gt",
                                         "is_ge", "is_lt", "is_le", "is_gt", "is_ge"};
  int64_t p = mlirIntegerAttrGetValueInt(ir_attr(op, "predicate"));
  struct ln_arg x, y;
  struct ln_view *dst;

  assert(p >= 0 && p < 16); /* MLIR verifies it */
  enum status st = ln_arg_of(b, mlirOperationGetOperand(op, 0), &x);
  if (!st)
    st = ln_arg_of(b, mlirOperationGetOperand(op, 1), &y);
  if (!st)
    st = ln_target(b, ln_converted_result(op), ln_arg_atoms(&x) | ln_arg_atoms(&y), &dst);
  if (st)
    return st;
  if (ir_is(op, "arith.cmpi"))
    return ln_arith(b->w, b->par, integers[p], dst, x, y, p >= IR_INT_ULT);
  if (p <= 0 || p >= 15)
    return ln_set(b->w, dst, ln_number_arg(b, dst->element, p >= 15).scalar);
  return compare_floats(b, &float_predicates[p], dst, x, y);
}

/* ---- select ----------------------------------------------------------------------------------------------------- */

static enum status put(struct ln_body *b, const struct ln_view *dst, const struct ln_arg *x) {
  return x->view ? ln_move(b->w, dst, x->view, false) : ln_set(b->w, dst, x->scalar);
}

enum status ln_copy_where(struct ln_body *b, const struct ln_view *dst, const struct ln_arg *src,
                          const struct ln_view *predicate, bool reverse) {
  struct ln *ln = b->w->ln;
  struct ln_shape s = ln_shape_of(b->w, b->par, ln_view_atoms(dst));
  struct nisa_access o[3];
  const struct ln_attr attrs[] = {{"reverse_pred", ln_bool(ln, reverse)}, {NULL, {NULL}}};

  enum status st = ln_access(b->w, dst, &s, &o[0]);
  if (!st && src->view)
    st = ln_access(b->w, src->view, &s, &o[1]);
  else
    o[1] = ln_scalar(src->scalar);
  if (!st)
    st = ln_access(b->w, predicate, &s, &o[2]);
  if (!st)
    ln_emit(ln, NISA_TENSOR_COPY_PREDICATED, NISA_ENGINE_VECTOR, o, attrs);
  return st;
}

static bool shares(const struct ln_view *dst, const struct ln_view *v) {
  return v && mlirValueEqual(dst->base, v->base);
}

enum status ln_select(struct ln_body *b, MlirOperation op) {
  struct ln_value *c = ln_value_of(b, mlirOperationGetOperand(op, 0));
  struct ln_arg yes, no;
  struct ln_view *cond, *dst;

  enum status st = ln_materialize(b, c, &cond);
  if (!st)
    st = ln_arg_of(b, mlirOperationGetOperand(op, 1), &yes);
  if (!st)
    st = ln_arg_of(b, mlirOperationGetOperand(op, 2), &no);
  if (!st)
    st =
        ln_target(b, mlirOperationGetResult(op, 0), ln_view_atoms(cond) | ln_arg_atoms(&yes) | ln_arg_atoms(&no), &dst);
  if (st)
    return st;
  if (yes.view && ln_same_elements(dst, yes.view) && !shares(dst, cond) && !shares(dst, no.view))
    return ln_copy_where(b, dst, &no, cond, true);
  const bool reads_dst = shares(dst, cond) || shares(dst, yes.view);
  struct ln_view *to = reads_dst ? ln_temp_like(b, dst->element, ln_view_atoms(dst)) : dst;
  st = put(b, to, &no);
  if (!st)
    st = ln_copy_where(b, to, &yes, cond, false);
  if (!st && reads_dst)
    st = ln_move(b->w, dst, to, false);
  if (reads_dst)
    ln_release(b->w->ln, to);
  return st;
}
