/* decode_stream: the programs of engines and DMA queues. */
#include <assert.h>
#include <string.h>

#include "base/array.h"
#include "ir/query.h"
#include "nisa/cores.h"
#include "sim/decode_internal.h"

/* ---- operations ------------------------------------------------------------------------------------------------- */

/* 0 for what stands in no core. */
static int core_of(MlirOperation op) {
  MlirOperation core = nisa_core_around(op);
  return mlirOperationIsNull(core) ? 0 : nisa_core_number(core);
}

/* The stream of this name in the core in which the decoder is. */
static int find_stream(const struct decoder *d, const char *name) {
  for (int k = 0; k < d->streams.n; k++)
    if (core_of(d->streams.v[k]) == d->core && !strcmp(nisa_stream_name(d->streams.v[k]), name))
      return k;
  return -1;
}

static enum status decode_wait(struct decoder *d, MlirOperation op) {
  const int stream = find_stream(d, nisa_text_attr(op, "semaphore"));
  struct nisa_access count;
  struct nisa_index sum;
  const char *why;

  if (stream < 0 || !nisa_read_wait(op, &count, &why) || !nisa_access_index(&count, 0, &sum))
    return decode_refuse(d, op, "what it waits for");
  struct sim_linear at_least = {.constant = sum.constant};
  for (int k = 0; k < count.n_indices; k++)
    at_least = decode_add(d, at_least, decode_scalar(d, count.indices[k]), sum.sym[k]);
  decode_emit(d, (struct sim_node){
                     .kind = SIM_NODE_WAIT, .a = stream, .linear = arena_dup(d->arena, &at_least, sizeof at_least)});
  return ST_OK;
}

static enum status decode_trigger(struct decoder *d, MlirOperation op) {
  const int stream = find_stream(d, nisa_text_attr(op, "queue"));
  if (stream < 0)
    return decode_refuse(d, op, "there is no such queue");
  decode_emit(d, (struct sim_node){.kind = SIM_NODE_TRIGGER, .a = stream});
  return ST_OK;
}

/* A register that grows by 1 here. */
static int counter(struct decoder *d) {
  const int reg = decode_register(d, 0);
  decode_emit(d, (struct sim_node){.kind = SIM_NODE_STEP,
                                   .step = SIM_STEP_ADDI,
                                   .type = SIM_I64,
                                   .from = SIM_I64,
                                   .a = reg,
                                   .b = reg,
                                   .c = decode_register(d, 1)});
  return reg;
}

static enum status decode_rotate(struct decoder *d, MlirOperation op) {
  const struct decoded *found = decode_find(d, mlirOperationGetOperand(op, 0));
  if (!found || found->buffer < 0)
    return decode_refuse(d, op, "it selects a copy of what is no allocation");
  const struct decoded base = *found; /* decode_define may move it */
  const struct sim_buffer *b = &d->buffers.v[base.buffer];
  struct decoded x = base;

  x.value = mlirOperationGetResult(op, 0);
  x.copy = decode_add(d, (struct sim_linear){0}, decode_scalar(d, mlirOperationGetOperand(op, 1)), 1);
  x.group = b->space == MEM_PSUM ? counter(d) : -1;
  *decode_define(d, x.value) = x;
  return ST_OK;
}

enum status decode_sync(struct decoder *d, MlirOperation op) {
  switch (nisa_sync_of(op)) {
  case NISA_SYNC_WAIT:
    return decode_wait(d, op);
  case NISA_SYNC_TRIGGER:
    return decode_trigger(d, op);
  case NISA_SYNC_ROTATE:
    return decode_rotate(d, op);
  default:
    decode_emit(d, (struct sim_node){.kind = SIM_NODE_BARRIER, .a = nisa_sync_of(op) == NISA_SYNC_CORE_BARRIER});
    return ST_OK;
  }
}

/* ---- streams ---------------------------------------------------------------------------------------------------- */

/* A name that no stream of another core has. */
static const char *name_of(struct decoder *d, MlirOperation op) {
  const char *name = nisa_stream_name(op);
  if (mlirOperationIsNull(nisa_core_around(op)))
    return arena_strdup(d->arena, name);
  return arena_printf(d->arena, *name ? "core%d.%s" : "core%d", core_of(op), name);
}

enum status decode_streams(struct decoder *d, const struct sim_stream **out) {
  const int n = d->streams.n;
  struct sim_stream *streams = arena_new_array(d->arena, struct sim_stream, (size_t)n);

  for (int k = 0; k < n; k++) {
    MlirOperation op = d->streams.v[k];
    const bool is_queue = nisa_stream_is_queue(op);
    d->core = core_of(op);
    streams[k] = (struct sim_stream){
        .name = name_of(d, op),
        .core = d->core,
        .engine = is_queue ? NISA_ENGINE_DMA : nisa_stream_engine(op),
        .trigger = is_queue ? find_stream(d, nisa_engine_name(nisa_stream_engine(op))) : -1,
        .first = d->nodes.n,
    };
    enum status st = decode_block(d, ir_body(op), 1);
    if (st)
      return st;
    decode_emit(d, (struct sim_node){.kind = SIM_NODE_END});
  }
  d->core = 0;
  assert(d->streams.n == n); /* the verifier allows no stream inside another */
  *out = streams;
  return ST_OK;
}
