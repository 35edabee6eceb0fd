/* carried: see carried.h. */
#include "passes/lib/carried.h"

#include "mlir-c/BuiltinAttributes.h"

#include "passes/lib/edit.h"

static MlirBlock block_of(MlirOperation op, intptr_t region) {
  return mlirRegionGetFirstBlock(mlirOperationGetRegion(op, region));
}

/* True if the condition passes argument k of its region on as value k, for every k. */
static bool is_square(MlirOperation loop) {
  MlirBlock before = block_of(loop, 0);
  MlirOperation condition = mlirBlockGetTerminator(before);
  const intptr_t n = mlirOperationGetNumOperands(loop);
  if (mlirOperationGetNumResults(loop) != n)
    return false;
  for (intptr_t k = 0; k < n; k++)
    if (!mlirValueEqual(mlirOperationGetOperand(condition, 1 + k), mlirBlockGetArgument(before, k)))
      return false;
  return true;
}

bool carried_read(MlirOperation op, struct carried *out) {
  if (ir_is(op, "scf.for"))
    *out = (struct carried){.body = ir_body(op), .first_init = 3, .first_arg = 1};
  else if (ir_is(op, "scf.while") && is_square(op))
    *out = (struct carried){.body = block_of(op, 1)};
  else
    return false;
  out->n = mlirOperationGetNumResults(op);
  out->yield = mlirBlockGetTerminator(out->body);
  return true;
}

/* ---- the square form ------------------------------------------------------------------------------------------- */

/* Returns the number of the argument of the condition's region that is passed on as value k; -1 if the value is
 * computed or comes from outside. */
static intptr_t source_of(MlirOperation loop, intptr_t k) {
  MlirBlock before = block_of(loop, 0);
  MlirValue v = mlirOperationGetOperand(mlirBlockGetTerminator(before), 1 + k);
  if (!mlirValueIsABlockArgument(v) || !mlirBlockEqual(mlirBlockArgumentGetOwner(v), before))
    return -1;
  return mlirBlockArgumentGetArgNumber(v);
}

static void replace_condition(struct pass_run *run, MlirBlock before) {
  MlirOperation old = mlirBlockGetTerminator(before);
  const intptr_t n = mlirBlockGetNumArguments(before);
  MlirValue *v = arena_new_array(run->arena, MlirValue, (size_t)n + 1);
  struct ir_builder b = edit_before(run, old);

  v[0] = mlirOperationGetOperand(old, 0);
  for (intptr_t k = 0; k < n; k++)
    v[1 + k] = mlirBlockGetArgument(before, k);
  ir_op0(&b, "scf.condition", n + 1, v);
  mlirOperationDestroy(old);
}

/* Replaces the arguments of the body: it gets one argument for each argument of the condition's region. */
static void replace_arguments(struct pass_run *run, MlirOperation loop, const intptr_t *source) {
  MlirBlock before = block_of(loop, 0), body = block_of(loop, 1);
  const intptr_t old = mlirBlockGetNumArguments(body), n = mlirBlockGetNumArguments(before);
  (void)run;
  for (intptr_t k = 0; k < n; k++) {
    MlirValue from = mlirBlockGetArgument(before, k);
    mlirBlockAddArgument(body, mlirValueGetType(from), mlirValueGetLocation(from));
  }
  for (intptr_t k = 0; k < old; k++)
    mlirValueReplaceAllUsesOfWith(mlirBlockGetArgument(body, k), mlirBlockGetArgument(body, old + source[k]));
  for (intptr_t k = old - 1; k >= 0; k--)
    mlirBlockEraseArgument(body, (unsigned)k);
}

static void make_square(struct pass_run *run, MlirOperation loop) {
  const intptr_t n = mlirOperationGetNumOperands(loop), old = mlirOperationGetNumResults(loop);
  intptr_t *source = arena_new_array(run->arena, intptr_t, (size_t)old + 1);
  MlirValue *inits = arena_new_array(run->arena, MlirValue, (size_t)n + 1);
  MlirType *types = arena_new_array(run->arena, MlirType, (size_t)n + 1);

  for (intptr_t k = 0; k < old; k++)
    if ((source[k] = source_of(loop, k)) < 0)
      return;
  replace_arguments(run, loop, source);
  replace_condition(run, block_of(loop, 0));
  for (intptr_t k = 0; k < n; k++) {
    inits[k] = mlirOperationGetOperand(loop, k);
    types[k] = mlirValueGetType(inits[k]);
  }
  struct ir_builder b = edit_before(run, loop);
  MlirRegion regions[] = {mlirRegionCreate(), mlirRegionCreate()};
  for (intptr_t r = 0; r < 2; r++)
    mlirRegionTakeBody(regions[r], mlirOperationGetRegion(loop, r));
  MlirOperation new = ir_create(&b, &(struct ir_parts){.name = "scf.while",
                                                       .n_operands = n,
                                                       .operands = inits,
                                                       .n_results = n,
                                                       .results = types,
                                                       .n_regions = 2,
                                                       .regions = regions});
  for (intptr_t k = 0; k < old; k++)
    mlirValueReplaceAllUsesOfWith(mlirOperationGetResult(loop, k), mlirOperationGetResult(new, source[k]));
  mlirOperationDestroy(loop);
}

void carried_make_square(struct pass_run *run) {
  struct ir_ops loops = ir_collect_named(run->arena, run->module, "scf.while");
  for (int k = 0; k < loops.n; k++)
    if (!is_square(loops.v[k]))
      make_square(run, loops.v[k]);
}
