/* recognize_activations: gathers an expression that is a function of the Scalar engine in one operation.
 *
 *     %1 = linalg.negf %x                                %1 = linalg.generic ins(%x) {
 *     %2 = linalg.exp %1                                   %n = arith.negf %in
 *     %3 = linalg.generic { %in + 1 } %2       ==>         %e = math.exp %n
 *     %4 = linalg.generic { 1 / %in } %3                   %s = arith.addf %e, 1
 *                                                          linalg.yield arith.divf 1, %s }
 *
 * The Scalar engine computes sigmoid, silu, gelu in three forms, softplus, mish and rsqrt from tables, in the time of a copy;
 * written out they take a function, a reciprocal and several operations on the Vector engine.  lib/activations.h says
 * which spellings are found.  The operation that is made has the function as its body, so every reader of linalg can compute
 * it; linalg-to-nisa reads the body and emits one activation.
 *
 * What changes: the simulator's tables are within 2e-6 of the exact value, relative or, below 1, absolute
 * (tests/sim/test_functions.py), and narrow floats are rounded once instead of after each step.  Where NumPy's spelling
 * overflows in between, the result is that of the function: exp(x) / (1 + exp(x)) from 89 on is 1, not NaN, and log(1 +
 * exp(x)) is x, not inf.  x ** -0.5 of -0 is -inf, not inf, and of -inf NaN, not 0.  Everything else, also of NaN and infinite
 * x, is as in NumPy.
 *
 * np.rint becomes math.roundeven, which is exact in both spellings.
 *
 * Values that a knob asks something for remain operations of their own, and so does what has other users.  The pass runs on
 * tensors, before prepare-arithmetic writes divisions out.  Linear in operations.
 */
#include "mlir-c/BuiltinTypes.h"

#include "passes/lib/activations.h"
#include "passes/lib/edit.h"
#include "passes/lib/rounding.h"
#include "passes/lib/price.h"

static bool is_linalg(MlirOperation op, void *user) {
  (void)user;
  return ir_is_of(op, "linalg.") && mlirOperationGetNumResults(op) == 1 && mlirOperationGetNumRegions(op) == 1;
}

struct body {
  struct ir_builder outside;
  const struct activation *a;
  MlirType result;
};

static MlirValue build_body(struct ir_builder *b, MlirValue const *args, void *user) {
  struct body *body = user;
  return activation_build(b, &body->outside, body->a, args[0], body->result);
}

static MlirOperation make(struct pass_run *run, MlirOperation op, const struct activation *a) {
  struct ir_builder b = edit_before(run, op);
  MlirType t = mlirValueGetType(ir_result(op));
  const int rank = (int)mlirShapedTypeGetRank(t);
  const MlirAffineMap maps[] = {ir_identity_map(&b, rank), ir_identity_map(&b, rank)};
  struct body body = {b, a, mlirShapedTypeGetElementType(t)};
  MlirValue x = a->x, empty = ir_empty_of(&b, t);

  return ir_linalg_generic(&b, &(struct ir_generic){.n_loops = rank,
                                                    .n_inputs = 1,
                                                    .inputs = &x,
                                                    .maps = maps,
                                                    .output = empty,
                                                    .body = build_body,
                                                    .user = &body});
}

/* op computes nothing but the function that was found, from its own input: it was gathered before. */
static bool is_gathered(MlirOperation op, const struct activation *a) {
  return mlirOperationGetNumOperands(op) == 2 && mlirValueEqual(mlirOperationGetOperand(op, 0), a->x);
}

static MlirValue build_rounding(struct ir_builder *b, MlirValue const *args, void *user) {
  (void)user;
  return ir_op1(b, "math.roundeven", mlirValueGetType(args[0]), 1, args);
}

enum { ROUNDING_OPS = 15 };

/* y: the function's result. The operations as written are instructions with a number at least. */
static void price_function(struct remark *r, enum target t, MlirValue y, int n_ops, const char *reason) {
  const struct price_shape s = price_shape_of(y);
  price_chosen(r, price_rows_ns(t, SIM_COST_ACTIVATION, s.rows, s.columns));
  price_instead(r, "the operations as written", n_ops * price_rows_ns(t, SIM_COST_VECTOR_SCALAR, s.rows, s.columns),
                reason);
}

/* np.rint, which is written out as fifteen operations (lib/rounding.h), becomes one. */
static bool recognize_rounding(struct pass_run *run, MlirOperation op, MlirValue y) {
  MlirValue x = rounding_find(y);
  MlirType t = mlirValueGetType(ir_result(op));

  if (mlirValueIsNull(x) || !mlirTypeEqual(mlirValueGetType(x), t) ||
      !activation_has_type(mlirShapedTypeGetElementType(t)))
    return false;
  struct ir_builder b = edit_before(run, op);
  const int rank = (int)mlirShapedTypeGetRank(t);
  const MlirAffineMap maps[] = {ir_identity_map(&b, rank), ir_identity_map(&b, rank)};
  MlirOperation made = ir_linalg_generic(&b, &(struct ir_generic){.n_loops = rank,
                                                                  .n_inputs = 1,
                                                                  .inputs = &x,
                                                                  .maps = maps,
                                                                  .output = ir_empty_of(&b, t),
                                                                  .body = build_rounding});
  struct remark *r =
      pass_remark(run, op, RULE_ACTIVATION, "round_even: one activation instead of %d operations", ROUNDING_OPS);
  price_function(r, run->target, ir_result(made), ROUNDING_OPS, "each takes an instruction");
  mlirValueReplaceAllUsesOfWith(ir_result(op), ir_result(made));
  mlirOperationDestroy(op);
  return true;
}

static void recognize(struct pass_run *run, struct arena *scratch, struct table *tensors, MlirOperation op) {
  const struct activation_search search = {.arena = scratch, .through_tensors = tensors};
  struct activation a;
  MlirValue y = mlirOperationGetOperand(mlirBlockGetTerminator(ir_body(op)), 0);
  MlirOperation last = ir_defining_op(y);

  if (mlirOperationIsNull(last))
    return;
  if (activation_is_plain(op) && recognize_rounding(run, op, y)) {
    *tensors = (struct table){.arena = run->arena};
    return;
  }
  if (!activation_may_end(last) || !activation_is_plain(op) || !activation_find(&search, y, &a) ||
      !mlirTypeIsATensor(mlirValueGetType(a.x)) || is_gathered(op, &a))
    return;
  MlirOperation made = make(run, op, &a);
  struct remark *r =
      pass_remark(run, op, RULE_ACTIVATION, "%s: one activation instead of %d operations", a.name, a.n_ops);
  price_function(r, run->target, ir_result(made), a.n_ops,
                 "each takes an instruction, and a division a reciprocal of 6 cycles an element");
  mlirValueReplaceAllUsesOfWith(ir_result(op), ir_result(made));
  mlirOperationDestroy(op);
  *tensors = (struct table){.arena = run->arena};
}

/* Backwards, so that the largest expression is found first, and what it leaves unused is not looked at. */
static enum status run_pass(struct pass_run *run) {
  struct ir_ops ops = ir_collect(run->arena, run->module, is_linalg, NULL);
  struct table tensors = {.arena = run->arena};
  struct arena scratch;

  arena_init(&scratch);
  for (int i = ops.n - 1; i >= 0; i--) {
    pass_step(run, ops.v[i], "gather-activation");
    if (ir_is_used(ir_result(ops.v[i])))
      recognize(run, &scratch, &tensors, ops.v[i]);
    else if (activation_is_plain(ops.v[i]))
      mlirOperationDestroy(ops.v[i]);
    arena_clear(&scratch);
  }
  return ST_OK;
}

const struct pass_def recognize_activations = {
    .name = "recognize-activations",
    .run = run_pass,
};
