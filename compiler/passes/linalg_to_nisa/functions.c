/* functions: marks the functions of the Scalar engine in a body, before the body is compiled.
 *
 *     %n = arith.negf %x
 *     %e = math.exp %n                        %y = math.exp %x {nkipy.function = "sigmoid"}
 *     %s = arith.addf %e, %one        ==>
 *     %y = arith.divf %one, %s
 *
 * A body is read whole (lib/activations.h), so a function is found wherever its operations have come to stand in one body: in
 * an operation of its own, or in one with what comes before and after it.  The operation that stands for the function never
 * leaves this pass: ops.c emits its activation.  A factor and a summand of x stay operations, and combine.c makes them scale and
 * bias.
 */
#include "mlir-c/BuiltinAttributes.h"

#include "base/array.h"
#include "passes/lib/activations.h"
#include "passes/lib/edit.h"
#include "passes/linalg_to_nisa/linalg_to_nisa.h"

static bool is_dead(MlirOperation op) {
  return (ir_is_of(op, "arith.") || ir_is_of(op, "math.")) && mlirOperationGetNumResults(op) == 1 &&
         !ir_is_used(ir_result(op));
}

/* Writes factor * x + summand of a before op. */
static MlirValue argument_of(struct ln *ln, MlirOperation op, const struct activation *a) {
  struct ir_builder b = edit_before(ln->run, op);
  MlirType t = mlirValueGetType(a->x);
  MlirValue x = a->x;
  if (a->scale != 1)
    x = ir_binary(&b, "arith.mulf", x, ir_float(&ln->b, t, a->scale));
  return a->bias == 0 ? x : ir_binary(&b, "arith.addf", x, ir_float(&ln->b, t, a->bias));
}

/* True if v differs from element to element, so that an engine computes what depends on it. */
static bool varies(struct ln_body *b, MlirValue v) {
  MlirOperation op = ir_defining_op(v);
  if (mlirOperationIsNull(op) || !mlirBlockEqual(mlirOperationGetBlock(op), b->block))
    return ln_value_of(b, v)->kind == LN_MANY;
  for (intptr_t k = 0; k < mlirOperationGetNumOperands(op); k++)
    if (varies(b, mlirOperationGetOperand(op, k)))
      return true;
  return false;
}

static void mark(struct ln_body *body, struct arena *scratch, MlirOperation op) {
  const struct activation_search search = {.arena = scratch};
  struct ln *ln = body->w->ln;
  struct activation a;

  if (!activation_may_end(op) || !activation_find(&search, ir_result(op), &a) || !varies(body, a.x))
    return;
  struct ir_builder b = edit_before(ln->run, op);
  MlirValue x = argument_of(ln, op, &a);
  MlirNamedAttribute name = ir_named(&b, "nkipy.function", ln_text(ln, a.name));
  MlirValue y = ir_op1_with(&b, "math.exp", mlirValueGetType(ir_result(op)), 1, &x, 1, &name);
  mlirValueReplaceAllUsesOfWith(ir_result(op), y);
}

/* Backwards, so that the largest expression is found first. */
void ln_mark_functions(struct ln_body *b) {
  struct ir_ops ops = {.n = 0};
  struct arena scratch;

  for (MlirOperation op = mlirBlockGetFirstOperation(b->block); !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op))
    array_push(&b->w->ln->scratch, &ops, op);
  arena_init(&scratch);
  for (int k = ops.n - 1; k >= 0; k--) {
    if (!is_dead(ops.v[k]))
      mark(b, &scratch, ops.v[k]);
    if (is_dead(ops.v[k]))
      mlirOperationDestroy(ops.v[k]);
    arena_clear(&scratch);
  }
}
