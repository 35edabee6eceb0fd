/* groups: operations that get other dimensions together.  See prepare_arithmetic.c.
 *
 * A group grows from a reduction to the operations that read its operations' results, or whose results these read, as far as they
 * fit.  What else touches the group is an argument, a constant, a reshape, or the return; any operation may touch numbers for each row.
 * A product of matrices in a batch, also through a reshape, has its own way with leading dimensions.  Linear in uses.
 */
#include "base/arena.h"
#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "passes/lib/edit.h"
#include "passes/prepare_arithmetic/prepare_arithmetic.h"

/* ---- which operations -------------------------------------------------------------------------------------------- */

static bool has_annotation(MlirOperation op) {
  for (intptr_t r = 0; r < mlirOperationGetNumResults(op); r++)
    if (prepare_has_knob(mlirOperationGetResult(op, r)))
      return true;
  return false;
}

bool prepare_may_change(struct pass_run *run, MlirOperation op, struct structured *s) {
  return structured_read(op, s) && s->n_inits == 1 && structured_has_simple_maps(s) && !has_annotation(op) &&
         (structured_is_elementwise(s) || s->kind == SK_REDUCTION) && !prepare_has_op(run, op, "tensor.extract");
}

static bool is_candidate(MlirOperation op, void *user) {
  struct structured s;
  (void)user;
  return structured_read(op, &s) && (structured_is_elementwise(&s) || s.kind == SK_REDUCTION);
}

struct ir_ops prepare_candidates(struct pass_run *run) {
  return ir_collect(run->arena, run->module, is_candidate, NULL);
}

/* ---- growing ----------------------------------------------------------------------------------------------------- */

bool prepare_is_marked(MlirOperation op, const char *mark) {
  return !mlirAttributeIsNull(ir_attr(op, mark));
}

static bool is_moved(MlirOperation op) {
  return ir_is(op, "tensor.expand_shape") || ir_is(op, "tensor.collapse_shape") || ir_is(op, "linalg.transpose");
}

/* True for a product of matrices in a batch. */
static bool is_batch_product(MlirOperation op) {
  struct structured s;
  if (!structured_read(op, &s))
    return false;
  return s.kind == SK_BATCH_MATMUL || (s.kind == SK_REDUCTION && s.n_inputs > 1 && s.n_loops > 3);
}

/* True if v, through reshapes and transposes, comes from a product of matrices in a batch. */
static bool comes_from_batch(MlirValue v) {
  MlirOperation def = ir_defining_op(v);
  while (!mlirOperationIsNull(def) && is_moved(def))
    def = ir_defining_op(mlirOperationGetOperand(def, 0));
  return !mlirOperationIsNull(def) && is_batch_product(def);
}

/* True if such a product reads the result of op, a reshape or a transpose, through others of these. */
static bool goes_to_batch(MlirOperation op, int depth) {
  enum { DEPTH_MAX = 16 };
  for (MlirOpOperand u = mlirValueGetFirstUse(ir_result(op)); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation user = mlirOpOperandGetOwner(u);
    if (is_batch_product(user) || (is_moved(user) && (depth == DEPTH_MAX || goes_to_batch(user, depth + 1))))
      return true;
  }
  return false;
}

static void take(struct prepare_group *g, MlirOperation op) {
  ir_set_attr(op, g->mark, mlirIntegerAttrGet(mlirIntegerTypeGet(mlirOperationGetContext(op), 64), g->number));
  g->ops[g->n++] = op;
}

/* Puts op, which makes or reads v, in the group, or finds that it may or may not touch one. */
static void meet(struct prepare_group *g, MlirOperation op, MlirValue v) {
  static const char *const neutral[] = {"tensor.empty", "linalg.fill", "arith.constant", "func.return"};

  if (mlirOperationIsNull(op) || prepare_elements(v) == 1)
    return; /* an argument, or a number */
  if (is_moved(op)) {
    g->is_free &= !comes_from_batch(v) && !goes_to_batch(op, 0);
    if (!ir_is(op, "linalg.transpose"))
      return;
  }
  for (size_t i = 0; i < sizeof neutral / sizeof *neutral; i++)
    if (ir_is(op, neutral[i]))
      return;
  if (prepare_is_marked(op, g->mark)) { /* by this group, or by one before it that was given up */
    g->is_free &= mlirIntegerAttrGetValueInt(ir_attr(op, g->mark)) == g->number;
    return;
  }
  if (!g->fits(g->run, op, g->what)) {
    g->is_free &= prepare_elements(v) <= g->rows; /* a number for each row is soon in another shape */
    return;
  }
  take(g, op);
}

void prepare_grow(struct prepare_group *g, MlirOperation seed) {
  if (g->fits(g->run, seed, g->what))
    take(g, seed);
  else
    meet(g, seed, ir_result(seed));
  for (int i = 0; i < g->n; i++) {
    MlirOperation op = g->ops[i];
    for (intptr_t o = 0; o < mlirOperationGetNumOperands(op); o++) {
      MlirValue v = mlirOperationGetOperand(op, o);
      meet(g, ir_defining_op(v), v);
    }
    for (MlirOpOperand u = mlirValueGetFirstUse(ir_result(op)); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u))
      meet(g, mlirOpOperandGetOwner(u), ir_result(op));
  }
}

void prepare_unmark(struct ir_ops ops, const char *mark) {
  for (int i = 0; i < ops.n; i++)
    if (!mlirOperationIsNull(ops.v[i]) && prepare_is_marked(ops.v[i], mark))
      mlirOperationRemoveAttributeByName(ops.v[i], mlirStringRefCreateFromCString(mark));
}
