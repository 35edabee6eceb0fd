/* one_shot_bufferize_loops: what a loop carries stays in one buffer.
 *
 * One-shot bufferization wants a loop to yield the buffer that it was given, and refuses anything else.  A loop over
 * tiles does that by itself: it inserts tiles into what it carries.  Others may yield a new value, or one that reads what it
 * overwrites; for them the value is written back explicitly:
 *
 *     scf.for … iter_args(%a = %x) { %n = f(%a); scf.yield %n }
 *       ==>  scf.for … iter_args(%a = %x) { %n = f(%a); %m = materialize_in_destination %n in %a; scf.yield %m }
 *
 * Where that turns out to be no copy at all (it is in place already), bufferization and canonicalize fold it.
 */
#include "passes/one_shot_bufferize_loops.h"

#include "mlir-c/BuiltinTypes.h"

#include "ir/structured.h"
#include "linalg/emit.h"

/* The operand that v's definition writes into, or a null value. */
static MlirValue destination(MlirValue v) {
  MlirOperation def = ir_defining_op(v);
  struct structured s;

  if (mlirOperationIsNull(def))
    return (MlirValue){NULL};
  if (ir_is(def, "tensor.insert_slice") || ir_is(def, "bufferization.materialize_in_destination"))
    return mlirOperationGetOperand(def, 1);
  if (ir_is(def, "scf.for"))
    return mlirOperationGetOperand(def, mlirOpResultGetResultNumber(v) + 3);
  if (structured_read(def, &s) && s.n_inits == 1)
    return mlirOperationGetOperand(def, s.n_inputs);
  return (MlirValue){NULL};
}

static bool is_init(MlirOperation op, intptr_t operand) {
  struct structured s;
  return structured_read(op, &s) && operand >= s.n_inputs;
}

/* True if v, which a loop over tiles carries, is only cut into tiles and written. */
static bool is_only_tiled(MlirValue v) {
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation op = mlirOpOperandGetOwner(u);
    const intptr_t k = mlirOpOperandGetOperandNumber(u);
    bool ok;

    if (ir_is(op, "tensor.extract_slice"))
      ok = is_only_tiled(mlirOperationGetResult(op, 0));
    else if (ir_is(op, "tensor.insert_slice"))
      ok = k == 1;
    else if (ir_is(op, "scf.for"))
      ok = k >= 3;
    else
      ok = ir_is(op, "bufferization.materialize_in_destination") || ir_is(op, "scf.yield") || is_init(op, k);
    if (!ok)
      return false;
  }
  return true;
}

/* True if v is what is left of `carried` after writes into it, on every branch (a scatter writes some windows only). */
static bool is_written(MlirValue v, MlirValue carried) {
  while (!mlirValueIsNull(v) && !mlirValueEqual(v, carried)) {
    MlirOperation def = ir_defining_op(v);
    if (mlirOperationIsNull(def) || !ir_is(def, "scf.if")) {
      v = destination(v);
      continue;
    }
    for (intptr_t k = 0; k < mlirOperationGetNumRegions(def); k++) {
      MlirBlock branch = mlirRegionGetFirstBlock(mlirOperationGetRegion(def, k));
      if (!is_written(mlirOperationGetOperand(mlirBlockGetTerminator(branch), mlirOpResultGetResultNumber(v)), carried))
        return false;
    }
    return true;
  }
  return !mlirValueIsNull(v);
}

bool bufferize_has_branches(MlirValue v) {
  for (; !mlirValueIsNull(v); v = destination(v)) {
    MlirOperation def = ir_defining_op(v);
    if (mlirOperationIsNull(def))
      return false;
    if (ir_is(def, "scf.if"))
      return true;
    if (!ir_is(def, "scf.for"))
      continue;
    MlirOperation yield = mlirBlockGetTerminator(mlirRegionGetFirstBlock(mlirOperationGetRegion(def, 0)));
    if (bufferize_has_branches(mlirOperationGetOperand(yield, mlirOpResultGetResultNumber(v))))
      return true;
  }
  return false;
}

static bool is_in_place(MlirValue yielded, MlirValue carried) {
  return is_written(yielded, carried) && is_only_tiled(carried);
}

static void write_back(struct pass_run *run, MlirOperation loop) {
  MlirBlock body = mlirRegionGetFirstBlock(mlirOperationGetRegion(loop, 0));
  MlirOperation yield = mlirBlockGetTerminator(body);
  struct emit e = {.ctx = run->ir->ctx, .block = body, .arena = run->arena};

  for (intptr_t k = 0; k < mlirOperationGetNumOperands(yield); k++) {
    MlirValue v = mlirOperationGetOperand(yield, k), carried = mlirBlockGetArgument(body, k + 1);
    if (!mlirTypeIsARankedTensor(mlirValueGetType(v)) || is_in_place(v, carried))
      continue;
    MlirOperation def = ir_defining_op(v);
    e.loc = mlirOperationGetLocation(mlirOperationIsNull(def) ? yield : def);
    MlirOperation op = emit_operation(&e, &(struct emit_op){.name = "bufferization.materialize_in_destination",
                                                            .n_operands = 2,
                                                            .operands = (MlirValue[]){v, carried},
                                                            .n_results = 1,
                                                            .results = (MlirType[]){mlirValueGetType(v)}});
    mlirOperationMoveBefore(op, yield);
    mlirOperationSetOperand(yield, k, emit_result(op));
  }
}

void bufferize_loops_in_place(struct pass_run *run) {
  struct ir_ops loops = ir_collect_named(run->arena, run->module, "scf.for");

  for (int k = 0; k < loops.n; k++)
    write_back(run, loops.v[k]);
}
