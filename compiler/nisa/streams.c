/* streams: see the header. */
#include "nisa/streams.h"

#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "ir/query.h"
#include "nisa/cores.h"

static const char *const names[] = {"",           "nisa.wait", "nisa.dma_trigger", "nisa.barrier", "nisa.core_barrier",
                                    "nisa.rotate"};

const char *nisa_sync_name(enum nisa_sync k) {
  return names[k];
}

enum nisa_sync nisa_sync_of(MlirOperation op) {
  const int k = ir_is_of(op, "nisa.") ? ir_which(op, NISA_SYNC_ROTATE + 1, names) : -1;
  return k < 0 ? NISA_SYNC_NONE : (enum nisa_sync)k;
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

bool nisa_is_stream(MlirOperation op) {
  return ir_is(op, "scf.execute_region") && *nisa_text_attr(op, "nisa.stream");
}

const char *nisa_stream_name(MlirOperation stream) {
  return nisa_text_attr(stream, "nisa.stream");
}

bool nisa_stream_is_queue(MlirOperation stream) {
  return !mlirAttributeIsNull(ir_attr(stream, "nisa.on"));
}

enum nisa_engine nisa_stream_engine(MlirOperation stream) {
  const char *name = nisa_text_attr(stream, nisa_stream_is_queue(stream) ? "nisa.on" : "nisa.stream");
  enum nisa_engine e = nisa_engine_from_name(ir_str(name));
  return e == NISA_ENGINE_DMA ? NISA_ENGINE_NONE : e;
}

MlirOperation nisa_stream_around(MlirOperation op) {
  while (!mlirOperationIsNull(op) && !nisa_is_stream(op))
    op = mlirOperationGetParentOperation(op);
  return op;
}

bool nisa_has_streams(MlirOperation function) {
  MlirBlock body = ir_body(function);
  MlirOperation op = mlirBlockIsNull(body) ? (MlirOperation){NULL} : mlirBlockGetFirstOperation(body);
  while (!mlirOperationIsNull(op) && !nisa_is_stream(op) && !(nisa_is_core(op) && nisa_has_streams(op)))
    op = mlirOperationGetNextInBlock(op);
  return !mlirOperationIsNull(op);
}

bool nisa_read_wait(MlirOperation wait, struct nisa_access *count, const char **why) {
  const intptr_t n = mlirOperationGetNumOperands(wait);
  MlirAttribute map = ir_attr(wait, "count");
  *count = (struct nisa_access){.n_indices = (int)n};

  *why = "it names no semaphore";
  if (!*nisa_text_attr(wait, "semaphore"))
    return false;
  *why = "it has too many indices";
  if (n > NISA_RANK_MAX)
    return false;
  *why = "its count is no affine map with one result, and one symbol for each index";
  if (mlirAttributeIsNull(map) || !mlirAttributeIsAAffineMap(map))
    return false;
  count->map = mlirAffineMapAttrGetValue(map);
  if (mlirAffineMapGetNumDims(count->map) || mlirAffineMapGetNumSymbols(count->map) != n ||
      mlirAffineMapGetNumResults(count->map) != 1)
    return false;
  for (intptr_t k = 0; k < n; k++)
    count->indices[k] = mlirOperationGetOperand(wait, k);
  *why = NULL;
  return true;
}

MlirValue nisa_rotated(MlirValue v) {
  MlirOperation def = ir_defining_op(v);
  return !mlirOperationIsNull(def) && nisa_sync_of(def) == NISA_SYNC_ROTATE ? mlirOperationGetOperand(def, 0) : v;
}

bool nisa_signals(MlirOperation op) {
  MlirAttribute a = ir_attr(op, "signal");
  return !mlirAttributeIsNull(a) && mlirAttributeIsAUnit(a);
}

/* ---- making ----------------------------------------------------------------------------------------------------- */

static MlirNamedAttribute text_attr(MlirContext ctx, const char *name, const char *value) {
  return mlirNamedAttributeGet(mlirIdentifierGet(ctx, ir_str(name)), mlirStringAttrGet(ctx, ir_str(value)));
}

MlirOperation nisa_create_stream(MlirLocation loc, const char *name, const char *on) {
  MlirContext ctx = mlirLocationGetContext(loc);
  MlirOperationState yield = mlirOperationStateGet(ir_str("scf.yield"), loc);
  MlirOperationState st = mlirOperationStateGet(ir_str("scf.execute_region"), loc);
  MlirNamedAttribute attrs[] = {text_attr(ctx, "nisa.stream", name), text_attr(ctx, "nisa.on", on ? on : "")};
  MlirRegion region = mlirRegionCreate();
  MlirBlock block = mlirBlockCreate(0, NULL, NULL);

  mlirBlockAppendOwnedOperation(block, mlirOperationCreate(&yield));
  mlirRegionAppendOwnedBlock(region, block);
  mlirOperationStateAddOwnedRegions(&st, 1, &region);
  mlirOperationStateAddAttributes(&st, on ? 2 : 1, attrs);
  return mlirOperationCreate(&st);
}

MlirOperation nisa_create_wait(MlirLocation loc, const char *semaphore, MlirAffineMap count, intptr_t n,
                               MlirValue const *indices) {
  MlirContext ctx = mlirLocationGetContext(loc);
  MlirOperationState st = mlirOperationStateGet(ir_str("nisa.wait"), loc);
  MlirNamedAttribute attrs[] = {
      text_attr(ctx, "semaphore", semaphore),
      mlirNamedAttributeGet(mlirIdentifierGet(ctx, ir_str("count")), mlirAffineMapAttrGet(count))};

  mlirOperationStateAddOperands(&st, n, indices);
  mlirOperationStateAddAttributes(&st, 2, attrs);
  return mlirOperationCreate(&st);
}

MlirOperation nisa_create_trigger(MlirLocation loc, const char *queue) {
  MlirOperationState st = mlirOperationStateGet(ir_str("nisa.dma_trigger"), loc);
  MlirNamedAttribute attr = text_attr(mlirLocationGetContext(loc), "queue", queue);
  mlirOperationStateAddAttributes(&st, 1, &attr);
  return mlirOperationCreate(&st);
}

static MlirOperation create_plain(MlirLocation loc, enum nisa_sync k) {
  MlirOperationState st = mlirOperationStateGet(ir_str(nisa_sync_name(k)), loc);
  return mlirOperationCreate(&st);
}

MlirOperation nisa_create_barrier(MlirLocation loc) {
  return create_plain(loc, NISA_SYNC_BARRIER);
}

MlirOperation nisa_create_core_barrier(MlirLocation loc) {
  return create_plain(loc, NISA_SYNC_CORE_BARRIER);
}

MlirOperation nisa_create_rotate(MlirLocation loc, MlirValue alloc, MlirValue index) {
  MlirOperationState st = mlirOperationStateGet(ir_str("nisa.rotate"), loc);
  MlirValue operands[] = {alloc, index};
  MlirType t = mlirValueGetType(alloc);
  mlirOperationStateAddOperands(&st, 2, operands);
  mlirOperationStateAddResults(&st, 1, &t);
  return mlirOperationCreate(&st);
}

void nisa_set_signal(MlirOperation instr) {
  ir_set_attr(instr, "signal", mlirUnitAttrGet(mlirOperationGetContext(instr)));
}
