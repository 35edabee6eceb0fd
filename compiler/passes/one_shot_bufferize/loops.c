/* loops: keeps each value that a loop carries in one buffer.
 *
 * One-shot bufferization requires a loop to yield the buffer of its iteration argument, and refuses other buffers.
 * A loop over tiles does so: it inserts tiles into the value that it carries.  Other loops may yield a new value, or
 * one that reads the elements that it overwrites; such a value is written back explicitly:
 *
 *     scf.for … iter_args(%a = %x) { %n = f(%a); scf.yield %n }
 *       ==>  scf.for … iter_args(%a = %x) { %n = f(%a); %m = materialize_in_destination %n in %a; scf.yield %m }
 *
 * A value that is read before any of it is overwritten (a row that is read, changed and stored) needs no copy.  A
 * loop also writes into its initial value, so an initial value that is used afterwards is copied before the loop.
 * If the value is in place already, bufferization and canonicalize fold the write.
 */
#include "passes/one_shot_bufferize/loops.h"

#include "mlir-c/BuiltinTypes.h"

#include "ir/structured.h"
#include "ir/build.h"
#include "passes/lib/carried.h"
#include "passes/lib/edit.h"

/* Returns the operand that v's definition writes into, or a null value. */
static MlirValue destination(MlirValue v) {
  MlirOperation def = ir_defining_op(v);
  struct structured s;
  struct carried loop;

  if (mlirOperationIsNull(def))
    return (MlirValue){NULL};
  if (ir_is(def, "tensor.insert_slice") || ir_is(def, "bufferization.materialize_in_destination"))
    return mlirOperationGetOperand(def, 1);
  if (carried_read(def, &loop))
    return mlirOperationGetOperand(def, mlirOpResultGetResultNumber(v) + loop.first_init);
  if (structured_read(def, &s) && s.n_inits == 1)
    return mlirOperationGetOperand(def, s.n_inputs);
  return (MlirValue){NULL};
}

static bool is_init(MlirOperation op, intptr_t operand) {
  struct structured s;
  return structured_read(op, &s) && operand >= s.n_inputs;
}

static bool is_view(MlirOperation op) {
  return ir_is(op, "tensor.extract_slice") || ir_is(op, "tensor.expand_shape") || ir_is(op, "tensor.collapse_shape");
}

/* True if all readers of v, which the operation `writer` overwrites, come before it.  Taking the tiles that are
 * written from v, and passing v on to be written, do not count as reading. */
static bool is_read_before(MlirValue v, MlirOperation writer) {
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation op = mlirOpOperandGetOwner(u), at = ir_ancestor_in(op, mlirOperationGetBlock(writer));
    const intptr_t k = mlirOpOperandGetOperandNumber(u);
    const bool is_earlier = !mlirOperationEqual(at, writer) && mlirOperationIsBeforeInBlock(at, writer);
    struct carried loop;
    bool ok;

    if (is_view(op))
      ok = is_read_before(mlirOperationGetResult(op, 0), writer);
    else if (ir_is(op, "tensor.insert_slice"))
      ok = k == 1 || is_earlier;
    else if (carried_read(op, &loop))
      ok = k >= loop.first_init;
    else
      ok = is_earlier || ir_is(op, "bufferization.materialize_in_destination") || ir_is(op, "scf.yield") ||
           is_init(op, k);
    if (!ok)
      return false;
  }
  return true;
}

/* True if v is the result of writes into `carried` on every branch (a scatter writes some windows only).  *first is
 * set to the first of the writes, in carried's own block; it does not change if there is none. */
static bool is_written(MlirValue v, MlirValue carried, MlirOperation *first) {
  while (!mlirValueIsNull(v) && !mlirValueEqual(v, carried)) {
    MlirOperation def = ir_defining_op(v);
    MlirOperation within = {NULL};
    *first = def;
    if (mlirOperationIsNull(def) || !ir_is(def, "scf.if")) {
      v = destination(v);
      continue;
    }
    for (intptr_t k = 0; k < mlirOperationGetNumRegions(def); k++) {
      MlirBlock branch = mlirRegionGetFirstBlock(mlirOperationGetRegion(def, k));
      if (!is_written(mlirOperationGetOperand(mlirBlockGetTerminator(branch), mlirOpResultGetResultNumber(v)), carried,
                      &within))
        return false;
    }
    return true;
  }
  return !mlirValueIsNull(v);
}

static bool has_branches(MlirValue v) {
  for (; !mlirValueIsNull(v); v = destination(v)) {
    MlirOperation def = ir_defining_op(v);
    if (mlirOperationIsNull(def))
      return false;
    if (ir_is(def, "scf.if"))
      return true;
    struct carried loop;
    if (!carried_read(def, &loop))
      continue;
    if (has_branches(mlirOperationGetOperand(loop.yield, mlirOpResultGetResultNumber(v))))
      return true;
  }
  return false;
}

static bool is_in_place(MlirValue yielded, MlirValue carried) {
  MlirOperation writer = {NULL};
  return is_written(yielded, carried, &writer) && (mlirOperationIsNull(writer) || is_read_before(carried, writer));
}

/* Returns the number of the carried value that v is a view of, or -1. */
static intptr_t carried_root(MlirValue v, const struct carried *loop) {
  MlirOperation def = ir_defining_op(v);
  for (; !mlirOperationIsNull(def) && is_view(def); def = ir_defining_op(v))
    v = mlirOperationGetOperand(def, 0);
  const bool is_carried = mlirValueIsABlockArgument(v) && mlirBlockEqual(mlirBlockArgumentGetOwner(v), loop->body);
  return is_carried ? mlirBlockArgumentGetArgNumber(v) - loop->first_arg : -1;
}

/* A loop may yield a value in another position than the one where it received it (for example, two values that are
 * swapped in each iteration).  The values are written back one after the other, so a value is copied if its buffer
 * is overwritten before it is written back. */
static void copy_moved_values(struct pass_run *run, const struct carried *loop) {
  MlirBlock body = loop->body;
  MlirOperation yield = loop->yield;

  for (intptr_t k = 0; k < mlirOperationGetNumOperands(yield); k++) {
    MlirValue v = mlirOperationGetOperand(yield, k);
    MlirOperation first = {NULL}, def = ir_defining_op(v);
    if (!mlirTypeIsARankedTensor(mlirValueGetType(v)))
      continue;
    const intptr_t from = carried_root(v, loop);
    if (from < 0 || from == k)
      continue;
    MlirValue place = mlirBlockGetArgument(body, from + loop->first_arg), next = mlirOperationGetOperand(yield, from);
    if (mlirValueEqual(place, next) || (from > k && !is_written(next, place, &first)))
      continue;
    MlirOperation at = mlirOperationIsNull(def) ? mlirBlockGetFirstOperation(body) : mlirOperationGetNextInBlock(def);
    mlirOperationSetOperand(yield, k, bufferize_copy(run, at, v));
  }
}

static void write_back(struct pass_run *run, const struct carried *loop) {
  MlirOperation yield = loop->yield;
  struct ir_builder b = edit_before(run, yield);

  for (intptr_t k = 0; k < mlirOperationGetNumOperands(yield); k++) {
    MlirValue v = mlirOperationGetOperand(yield, k), carried = mlirBlockGetArgument(loop->body, k + loop->first_arg);
    if (!mlirTypeIsARankedTensor(mlirValueGetType(v)) || is_in_place(v, carried))
      continue;
    MlirOperation def = ir_defining_op(v);
    b.loc = mlirOperationGetLocation(mlirOperationIsNull(def) ? yield : def);
    MlirValue written =
        ir_op1(&b, "bufferization.materialize_in_destination", mlirValueGetType(v), 2, (MlirValue[]){v, carried});
    mlirOperationSetOperand(yield, k, written);
  }
}

/* ---- initial values ---------------------------------------------------------------------------------- */

/* True if an operation needs v, or a view of it, after the loop has started to overwrite it.  The loop's operand k
 * does not count. */
static bool is_needed_later(MlirValue v, MlirOperation loop, intptr_t k) {
  for (MlirOpOperand u = mlirValueGetFirstUse(v); !mlirOpOperandIsNull(u); u = mlirOpOperandGetNextUse(u)) {
    MlirOperation op = mlirOpOperandGetOwner(u), at = ir_ancestor_in(op, mlirOperationGetBlock(loop));
    const intptr_t operand = mlirOpOperandGetOperandNumber(u);

    if (ir_is(op, "nkipy.layout") || ir_is(op, "nkipy.tile_op"))
      continue;
    if (mlirOperationEqual(op, loop)
            ? operand > k
            : mlirOperationIsNull(at) || mlirOperationEqual(at, loop) || !mlirOperationIsBeforeInBlock(at, loop))
      return true;
    if (is_view(op) && is_needed_later(mlirOperationGetResult(op, 0), loop, -1))
      return true;
  }
  return false;
}

static void copy_initial_values(struct pass_run *run, MlirOperation loop, const struct carried *c) {
  for (intptr_t k = c->first_init; k < mlirOperationGetNumOperands(loop); k++) {
    MlirValue v = mlirOperationGetOperand(loop, k);
    if (mlirTypeIsARankedTensor(mlirValueGetType(v)) && is_needed_later(v, loop, k))
      mlirOperationSetOperand(loop, k, bufferize_copy(run, loop, v));
  }
}

bool bufferize_writes_in_place(MlirValue v, MlirValue argument) {
  const bool branches = has_branches(v);
  bool is_loop = true;
  for (MlirValue next; !mlirValueEqual(v, argument); v = next) {
    MlirOperation def = ir_defining_op(v);
    if (!mlirOperationIsNull(def) && ir_is(def, "bufferization.alloc_tensor") && mlirOperationGetNumOperands(def))
      return false;
    is_loop = is_loop && !mlirOperationIsNull(def) && carried_read(def, &(struct carried){.n = 0});
    next = destination(v);
    if (mlirValueIsNull(next))
      return branches;
  }
  return branches || is_loop;
}

static bool is_loop(MlirOperation op, void *user) {
  (void)user;
  return ir_is(op, "scf.for") || ir_is(op, "scf.while");
}

void bufferize_loops_in_place(struct pass_run *run) {
  struct ir_ops loops = ir_collect(run->arena, run->module, is_loop, NULL);
  struct carried c;

  for (int k = 0; k < loops.n; k++) {
    if (!carried_read(loops.v[k], &c))
      continue; /* a while of another form: run_pass has refused it */
    copy_initial_values(run, loops.v[k], &c);
    copy_moved_values(run, &c);
    write_back(run, &c);
  }
}
