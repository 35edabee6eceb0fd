/* canonicalize_loop_step: makes loops count tiles instead of elements.
 *
 *     scf.for %i = %c0 to %c512 step %c128          scf.for %t = %c0 to %c4 step %c1
 *       use(%i)                              ==>      %i = arith.muli %t, %c128
 *                                                     use(%i)
 *
 * legalize-layout reads block indices from this form.  A lower bound other than 0 is added after the multiplication.
 * The number of iterations is the ceiling of (upper - lower) / step, as scf.for defines it, so loops with a partial
 * last step are correct, too (tiling leaves none).  Bounds that are not constant are computed with signed operations:
 * an empty range stays empty.  A loop with step 1 is not changed.  Linear in loops.
 */
#include "mlir-c/BuiltinTypes.h"

#include "passes/lib/edit.h"

struct loop {
  MlirOperation op;
  MlirValue lower, upper, step;
};

static MlirValue number(struct ir_builder *b, const struct loop *l, int64_t v) {
  return ir_int(b, mlirValueGetType(l->lower), v);
}

/* Returns the number of iterations, computed before the loop. */
static MlirValue count_turns(struct ir_builder *b, const struct loop *l) {
  int64_t lower, upper, step;

  if (ir_int_constant(l->lower, &lower) && ir_int_constant(l->upper, &upper) && ir_int_constant(l->step, &step) &&
      step > 0)
    return number(b, l, upper > lower ? (upper - lower - 1) / step + 1 : 0);
  MlirValue length = ir_binary(b, "arith.subi", l->upper, l->lower);
  return ir_binary(b, "arith.ceildivsi", length, l->step);
}

static void normalize(struct pass_run *run, const struct loop *l) {
  struct ir_builder b = edit_before(run, l->op);
  MlirValue iv = mlirBlockGetArgument(ir_body(l->op), 0);
  int64_t lower;

  MlirValue turns = count_turns(&b, l), zero = number(&b, l, 0), one = number(&b, l, 1);
  struct ir_builder body = edit_before(run, mlirBlockGetFirstOperation(ir_body(l->op)));
  body.loc = b.loc;
  MlirValue at = ir_binary(&body, "arith.muli", iv, l->step);
  MlirOperation scaled = mlirOpResultGetOwner(at);
  if (!ir_int_constant(l->lower, &lower) || lower != 0)
    at = ir_binary(&body, "arith.addi", l->lower, at);
  edit_replace_data_uses(run->arena, iv, at, scaled);
  mlirOperationSetOperand(l->op, 0, zero);
  mlirOperationSetOperand(l->op, 1, turns);
  mlirOperationSetOperand(l->op, 2, one);
}

static enum status run_pass(struct pass_run *run) {
  struct ir_ops loops = ir_collect_named(run->arena, run->module, "scf.for");
  int64_t step;

  for (int i = 0; i < loops.n; i++) {
    struct loop l = {loops.v[i], mlirOperationGetOperand(loops.v[i], 0), mlirOperationGetOperand(loops.v[i], 1),
                     mlirOperationGetOperand(loops.v[i], 2)};
    pass_step(run, loops.v[i], "count-from-zero");
    if (!ir_int_constant(l.step, &step) || step != 1)
      normalize(run, &l);
  }
  return ST_OK;
}

const struct pass_def canonicalize_loop_step = {
    .name = "canonicalize-loop-step",
    .run = run_pass,
};
