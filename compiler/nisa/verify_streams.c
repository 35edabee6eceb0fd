/* verify_streams: checks engine programs (nisa/streams.h).
 *
 * Each stream is checked on its own, and then against the others: waits name semaphores, triggers name queues of their
 * engine, and the control flow around barriers is the same in all streams.  Whether the waits order all accesses to
 * memory, and whether the streams ever wait for each other in a circle, is known only when the program runs. */
#include <string.h>

#include "mlir-c/BuiltinAttributes.h"
#include "mlir-c/BuiltinTypes.h"

#include "base/buf.h"
#include "ir/query.h"
#include "nisa/cores.h"
#include "nisa/verify.h"

/* ---- operations ------------------------------------------------------------------------------------------------- */

/* The first stream of this name; null if there is none. */
static MlirOperation find_stream(const struct ir_ops *streams, const char *name) {
  for (int k = 0; k < streams->n; k++)
    if (!strcmp(nisa_stream_name(streams->v[k]), name))
      return streams->v[k];
  return (MlirOperation){NULL};
}

static void check_wait(struct nisa_check *c, const struct ir_ops *streams, MlirOperation op) {
  struct nisa_access count;
  struct nisa_index sum;
  const char *why;

  if (!nisa_read_wait(op, &count, &why)) {
    nisa_complain(c, op, "%s", why);
    return;
  }
  if (!nisa_access_index(&count, 0, &sum))
    nisa_complain(c, op, "its count is no sum of multiples of indices and a constant");
  if (mlirOperationIsNull(find_stream(streams, nisa_text_attr(op, "semaphore"))))
    nisa_complain(c, op, "no stream has the semaphore %s", nisa_text_attr(op, "semaphore"));
}

static void check_trigger(struct nisa_check *c, const struct ir_ops *streams, MlirOperation stream, MlirOperation op) {
  const char *name = nisa_text_attr(op, "queue");
  MlirOperation queue = find_stream(streams, name);

  if (mlirOperationIsNull(queue) || !nisa_stream_is_queue(queue))
    nisa_complain(c, op, "there is no queue %s", name);
  else if (nisa_stream_is_queue(stream) || nisa_stream_engine(queue) != nisa_stream_engine(stream))
    nisa_complain(c, op, "the transfers of %s are started by %s", name, nisa_text_attr(queue, "nisa.on"));
}

static void check_rotate(struct nisa_check *c, MlirOperation op) {
  MlirOperation alloc = ir_defining_op(mlirOperationGetOperand(op, 0));
  if (mlirOperationIsNull(alloc) || !ir_is(alloc, "nisa.alloc") || ir_int_attr(alloc, "copies", 1) < 1)
    nisa_complain(c, op, "it selects a copy of what is no allocation");
}

static void check_instr(struct nisa_check *c, MlirOperation stream, MlirOperation op) {
  const bool is_load = nisa_op_of(op)->kind == NISA_REGISTER_LOAD;
  const enum nisa_engine own = nisa_stream_engine(stream);
  const enum nisa_engine e = nisa_engine_from_name(ir_str(nisa_text_attr(op, "engine")));

  if (nisa_op_of(op)->kind == NISA_ALLOC || nisa_op_of(op)->kind == NISA_RELEASE)
    nisa_complain(c, op, "engine programs have their allocations before the streams, and release nothing");
  else if (nisa_stream_is_queue(stream) && !is_load ? e != NISA_ENGINE_DMA : e != own)
    nisa_complain(c, op, "it stands in the program of %s, but runs on the %s engine", nisa_stream_name(stream),
                  nisa_engine_name(e));
  if (is_load && nisa_signals(op) && nisa_stream_is_queue(stream))
    nisa_complain(c, op, "only transfers raise the semaphore of a queue");
}

/* ---- barriers --------------------------------------------------------------------------------------------------- */

static bool has_barrier(struct nisa_check *c, MlirOperation op) {
  return ir_collect_named(c->arena, op, "nisa.barrier").n || ir_collect_named(c->arena, op, "nisa.core_barrier").n;
}

/* Describes the barriers of a block and the loops and branches around them: "for(0,4,1){barrier}barrier".  Bounds of a
 * loop are described if they are constants: each stream has its own copy of other values. */
static void describe(struct nisa_check *c, MlirBlock block, struct buf *out) {
  for (MlirOperation op = mlirBlockGetFirstOperation(block); !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op)) {
    int64_t v;
    if (nisa_sync_of(op) == NISA_SYNC_BARRIER || nisa_sync_of(op) == NISA_SYNC_CORE_BARRIER)
      buf_printf(out, "%s;", nisa_sync_name(nisa_sync_of(op)));
    if (!mlirOperationGetNumRegions(op) || !has_barrier(c, op))
      continue;
    buf_puts(out, mlirIdentifierStr(mlirOperationGetName(op)).data);
    for (int k = 0; ir_is(op, "scf.for") && k < 3; k++)
      if (ir_int_constant(mlirOperationGetOperand(op, k), &v))
        buf_printf(out, k ? ",%lld" : " %lld", (long long)v);
    for (intptr_t r = 0; r < mlirOperationGetNumRegions(op); r++) {
      MlirBlock inner = mlirRegionGetFirstBlock(mlirOperationGetRegion(op, r));
      buf_puts(out, "{");
      if (!mlirBlockIsNull(inner))
        describe(c, inner, out);
      buf_puts(out, "}");
    }
  }
}

static void check_barriers(struct nisa_check *c, const struct ir_ops *streams) {
  struct buf first, other;
  buf_init(&first, 1 << 24);
  buf_init(&other, 1 << 24);
  for (int k = 0; k < streams->n; k++) {
    buf_clear(&other);
    describe(c, ir_body(streams->v[k]), k ? &other : &first);
    if (k && strcmp(buf_text(&first), buf_text(&other)))
      nisa_complain(c, streams->v[k], "the barriers of %s are not those of %s", nisa_stream_name(streams->v[k]),
                    nisa_stream_name(streams->v[0]));
  }
  buf_clear(&first);
  buf_clear(&other);
}

/* ---- streams ---------------------------------------------------------------------------------------------------- */

static void check_stream(struct nisa_check *c, const struct ir_ops *streams, MlirOperation stream) {
  const char *name = nisa_stream_name(stream);
  const enum nisa_engine e = nisa_engine_from_name(ir_str(name));
  struct ir_ops inside = ir_collect(c->arena, stream, NULL, NULL);

  if (!mlirOperationEqual(find_stream(streams, name), stream))
    nisa_complain(c, stream, "there are two streams %s", name);
  if (nisa_stream_engine(stream) == NISA_ENGINE_NONE)
    nisa_complain(c, stream,
                  nisa_stream_is_queue(stream) ? "no engine %s starts its transfers" : "there is no engine %s",
                  nisa_text_attr(stream, nisa_stream_is_queue(stream) ? "nisa.on" : "nisa.stream"));
  else if (nisa_stream_is_queue(stream) && mlirOperationIsNull(find_stream(streams, nisa_text_attr(stream, "nisa.on"))))
    nisa_complain(c, stream, "%s has no program that starts its transfers", nisa_text_attr(stream, "nisa.on"));
  if (nisa_stream_is_queue(stream) && e != NISA_ENGINE_NONE)
    nisa_complain(c, stream, "a queue may not have the name of an engine");
  if (mlirOperationGetNumResults(stream))
    nisa_complain(c, stream, "it may have no results");
  for (int k = 1; k < inside.n; k++) {
    MlirOperation op = inside.v[k];
    if (nisa_is_stream(op))
      nisa_complain(c, op, "it stands inside another stream");
    if (nisa_op_of(op))
      check_instr(c, stream, op);
    switch (nisa_sync_of(op)) {
    case NISA_SYNC_WAIT:
      check_wait(c, streams, op);
      break;
    case NISA_SYNC_TRIGGER:
      check_trigger(c, streams, stream, op);
      break;
    case NISA_SYNC_ROTATE:
      check_rotate(c, op);
      break;
    default:
      break;
    }
  }
}

enum { COPIES_MAX = 1024 }; /* far more than a memory on chip has room for, if they are worth it */

/* Checks the entry block of a function, or the block of a core, with streams: everything that takes time stands in a
 * stream.  Allocations without a place have memory of their own. */
static void check_outside(struct nisa_check *c, MlirOperation root) {
  MlirBlock body = ir_body(root);
  int64_t sbuf = 0, psum = 0;
  for (MlirOperation op = mlirBlockGetFirstOperation(body); !mlirOperationIsNull(op);
       op = mlirOperationGetNextInBlock(op)) {
    const struct nisa_op_def *d = nisa_op_of(op);
    if (d ? d->kind != NISA_ALLOC : !nisa_is_stream(op) && mlirOperationGetNumRegions(op))
      nisa_complain(c, op, "it stands outside the streams");
    if (!d || d->kind != NISA_ALLOC)
      continue;
    const int64_t copies = ir_int_attr(op, "copies", 1);
    if (copies < 1 || copies > COPIES_MAX) {
      nisa_complain(c, op, "it has %lld copies; there may be 1 to %d", (long long)copies, COPIES_MAX);
    } else if (mlirAttributeIsNull(ir_attr(op, "offset"))) {
      MlirType t = mlirValueGetType(mlirOperationGetResult(op, 0));
      const int64_t bytes = nisa_type_bytes(t);
      sbuf += nisa_type_space(t) == MEM_SBUF && bytes > 0 ? copies * (bytes < INT32_MAX ? bytes : INT32_MAX) : 0;
      psum += nisa_type_space(t) == MEM_PSUM && bytes > 0 ? copies * (bytes < INT32_MAX ? bytes : INT32_MAX) : 0;
    }
  }
  if (sbuf > c->machine->sbuf_bytes || psum > c->machine->psum_bytes)
    nisa_complain(c, root, "its allocations without a place need %lld bytes of each partition of SBUF and %lld of PSUM",
                  (long long)sbuf, (long long)psum);
}

/* The streams that stand directly in the function or in the region of a core. */
static struct ir_ops collect_streams(struct nisa_check *c, MlirOperation root) {
  struct ir_ops all = ir_collect_named(c->arena, root, "scf.execute_region");
  int n = 0;
  for (int k = 0; k < all.n; k++)
    if (nisa_is_stream(all.v[k]) && mlirOperationEqual(mlirOperationGetParentOperation(all.v[k]), root))
      all.v[n++] = all.v[k];
  all.n = n;
  return all;
}

/* Checks an operation that belongs into a stream, if it is outside of all. */
static void check_alone(struct nisa_check *c, MlirOperation op) {
  const struct nisa_op_def *d = nisa_op_of(op);
  const bool is_load = d && d->kind == NISA_REGISTER_LOAD,
             is_sync = nisa_sync_of(op) && nisa_sync_of(op) != NISA_SYNC_CORE_BARRIER, signals = d && nisa_signals(op);

  if (nisa_is_stream(op)) {
    MlirOperation parent = mlirOperationGetParentOperation(op);
    if (!ir_is(parent, "func.func") && !nisa_is_core(parent) && mlirOperationIsNull(nisa_stream_around(parent)))
      nisa_complain(c, op, "a stream stands directly in a function or a core");
    return;
  }
  if ((!is_load && !is_sync && !signals) || !mlirOperationIsNull(nisa_stream_around(op)))
    return;
  if (is_sync)
    nisa_complain(c, op, "it stands outside the streams");
  if (signals)
    nisa_complain(c, op, "only streams have semaphores to raise");
  if (is_load && strcmp(nisa_text_attr(op, "engine"), "sync"))
    nisa_complain(c, op, "only the program of an engine loads a register of that engine");
}

static void check_program(struct nisa_check *c, MlirOperation root) {
  struct ir_ops streams = collect_streams(c, root);
  const int before = c->n_errors;
  if (!streams.n)
    return;
  check_outside(c, root);
  for (int s = 0; s < streams.n; s++)
    check_stream(c, &streams, streams.v[s]);
  if (c->n_errors == before)
    check_barriers(c, &streams);
}

void nisa_check_streams(struct nisa_check *c, MlirOperation module) {
  struct ir_ops all = ir_collect(c->arena, module, NULL, NULL);
  struct ir_ops functions = ir_collect_named(c->arena, module, "func.func");

  for (int k = 0; k < all.n; k++)
    check_alone(c, all.v[k]);
  for (int k = 0; k < functions.n; k++) {
    const struct ir_ops roots = nisa_roots(c->arena, functions.v[k]);
    for (int r = 0; r < roots.n; r++)
      check_program(c, roots.v[r]);
  }
}
