/* streams_faults: faults in engine programs. */
#include <string.h>

#include "mlir-c/AffineExpr.h"
#include "mlir-c/AffineMap.h"
#include "mlir-c/BuiltinAttributes.h"

#include "faults.h"
#include "ir/query.h"
#include "nisa/streams.h"

static bool drop_sync(MlirOperation op, enum nisa_sync k, bool is_wanted) {
  if (nisa_sync_of(op) != k)
    return false;
  if (is_wanted)
    fault_remove(op);
  return true;
}

static bool drop_wait(MlirOperation op, bool is_wanted) {
  return drop_sync(op, NISA_SYNC_WAIT, is_wanted);
}

static bool drop_trigger(MlirOperation op, bool is_wanted) {
  return drop_sync(op, NISA_SYNC_TRIGGER, is_wanted);
}

static bool drop_barrier(MlirOperation op, bool is_wanted) {
  return drop_sync(op, NISA_SYNC_BARRIER, is_wanted);
}

/* Waits for one instruction more, or less. */
static bool move_count(MlirOperation op, int64_t by, bool is_wanted) {
  if (nisa_sync_of(op) != NISA_SYNC_WAIT)
    return false;
  if (is_wanted) {
    MlirContext ctx = mlirOperationGetContext(op);
    MlirAffineMap map = mlirAffineMapAttrGetValue(ir_attr(op, "count"));
    MlirAffineExpr count = mlirAffineAddExprGet(mlirAffineMapGetResult(map, 0), mlirAffineConstantExprGet(ctx, by));
    map = mlirAffineMapGet(ctx, 0, mlirAffineMapGetNumSymbols(map), 1, &count);
    ir_set_attr(op, "count", mlirAffineMapAttrGet(map));
  }
  return true;
}

static bool weak_wait(MlirOperation op, bool is_wanted) {
  return move_count(op, -1, is_wanted);
}

static bool strong_wait(MlirOperation op, bool is_wanted) {
  return move_count(op, 1, is_wanted);
}

static bool late_wait(MlirOperation op, bool is_wanted) {
  if (nisa_sync_of(op) != NISA_SYNC_WAIT)
    return false;
  MlirOperation next = mlirOperationGetNextInBlock(op);
  if (mlirOperationIsNull(next) || nisa_sync_of(next) == NISA_SYNC_WAIT)
    return false;
  while (nisa_sync_of(next) == NISA_SYNC_ROTATE)
    next = mlirOperationGetNextInBlock(next);
  if (is_wanted)
    mlirOperationMoveAfter(op, next);
  return true;
}

/* Another engine, or if `stream` is a queue another queue; null if there is none. */
static MlirOperation other_stream(MlirOperation stream) {
  MlirBlock block = mlirOperationGetBlock(stream);
  for (MlirOperation op = mlirBlockGetFirstOperation(block); !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op))
    if (nisa_is_stream(op) && !mlirOperationEqual(op, stream) &&
        nisa_stream_is_queue(op) == nisa_stream_is_queue(stream))
      return op;
  return (MlirOperation){NULL};
}

static bool wrong_semaphore(MlirOperation op, bool is_wanted) {
  if (nisa_sync_of(op) != NISA_SYNC_WAIT)
    return false;
  MlirOperation own = nisa_stream_around(op), first = own;
  const char *semaphore = nisa_text_attr(op, "semaphore");
  for (MlirOperation s = mlirBlockGetFirstOperation(mlirOperationGetBlock(own)); !mlirOperationIsNull(s);
       s = mlirOperationGetNextInBlock(s))
    if (nisa_is_stream(s) && !mlirOperationEqual(s, own) && strcmp(nisa_stream_name(s), semaphore) != 0) {
      first = s;
      break;
    }
  if (mlirOperationEqual(first, own))
    return false;
  if (is_wanted)
    ir_set_attr(op, "semaphore", mlirStringAttrGet(mlirOperationGetContext(op), ir_str(nisa_stream_name(first))));
  return true;
}

static bool drop_signal(MlirOperation op, bool is_wanted) {
  if (!nisa_op_of(op) || !nisa_signals(op))
    return false;
  if (is_wanted)
    mlirOperationRemoveAttributeByName(op, ir_str("signal"));
  return true;
}

static bool is_instruction(MlirOperation op) {
  const struct nisa_op_def *def = nisa_op_of(op);
  return def && def->kind != NISA_ALLOC && def->kind != NISA_RELEASE && !mlirOperationIsNull(nisa_stream_around(op));
}

static bool extra_signal(MlirOperation op, bool is_wanted) {
  if (!is_instruction(op) || nisa_signals(op))
    return false;
  if (is_wanted)
    nisa_set_signal(op);
  return true;
}

/* Always the first copy. */
static bool first_copy(MlirOperation op, bool is_wanted) {
  if (nisa_sync_of(op) != NISA_SYNC_ROTATE)
    return false;
  if (is_wanted)
    mlirOperationSetOperand(op, 1, fault_index(op, 0));
  return true;
}

static bool extra_trigger(MlirOperation op, bool is_wanted) {
  if (nisa_sync_of(op) != NISA_SYNC_TRIGGER)
    return false;
  if (is_wanted)
    mlirBlockInsertOwnedOperationBefore(mlirOperationGetBlock(op), op, mlirOperationClone(op));
  return true;
}

/* Before the waits of what the engine did before. */
static bool early_trigger(MlirOperation op, bool is_wanted) {
  if (nisa_sync_of(op) != NISA_SYNC_TRIGGER)
    return false;
  MlirOperation first = mlirBlockGetFirstOperation(mlirOperationGetBlock(op));
  if (mlirOperationEqual(first, op))
    return false;
  if (is_wanted)
    mlirOperationMoveBefore(op, first);
  return true;
}

/* Two instructions of a stream exchanged. */
static bool reorder(MlirOperation op, bool is_wanted) {
  if (!is_instruction(op))
    return false;
  MlirOperation next = mlirOperationGetNextInBlock(op);
  if (mlirOperationIsNull(next) || !is_instruction(next))
    return false;
  if (is_wanted)
    mlirOperationMoveAfter(op, next);
  return true;
}

static bool uses_only_outside(MlirOperation op, MlirOperation stream) {
  for (intptr_t k = 0; k < mlirOperationGetNumOperands(op); k++) {
    MlirOperation def = ir_defining_op(mlirOperationGetOperand(op, k));
    if (mlirOperationIsNull(def) || !mlirBlockEqual(mlirOperationGetBlock(def), mlirOperationGetBlock(stream)))
      return false;
  }
  return true;
}

/* The instruction is the first one of another engine, the transfer that of another queue. */
static bool wrong_stream(MlirOperation op, bool is_wanted) {
  MlirOperation stream = nisa_stream_around(op);
  if (!is_instruction(op) || mlirOperationGetNumResults(op) || !uses_only_outside(op, stream))
    return false;
  MlirOperation other = other_stream(stream);
  if (mlirOperationIsNull(other))
    return false;
  if (is_wanted) {
    mlirOperationMoveBefore(op, mlirBlockGetFirstOperation(ir_body(other)));
    ir_set_attr(op, "engine",
                mlirStringAttrGet(mlirOperationGetContext(op),
                                  ir_str(nisa_stream_is_queue(other) ? "dma" : nisa_stream_name(other))));
  }
  return true;
}

const struct fault_kind streams_faults[] = {
    {"drop-wait", drop_wait},
    {"drop-trigger", drop_trigger},
    {"drop-barrier", drop_barrier},
    {"weak-wait", weak_wait},
    {"strong-wait", strong_wait},
    {"late-wait", late_wait},
    {"wrong-semaphore", wrong_semaphore},
    {"drop-signal", drop_signal},
    {"extra-signal", extra_signal},
    {"first-copy", first_copy},
    {"extra-trigger", extra_trigger},
    {"early-trigger", early_trigger},
    {"reorder", reorder},
    {"wrong-stream", wrong_stream},
    {NULL, NULL},
};
