/* parts: loads that stay apart because the first instruction that reads them begins with one.  See coalesce_transfers.c.
 *
 *     scf.for %k = %c0 to %c8 step %c1 {                      stays as it is: the product of %k = 0 begins when a quarter of
 *       nisa.dma_copy(dst %b[d0, %k, d1], …)                  a MiB has arrived, not all of it
 *     }
 *     scf.for %k … nisa.matmul(… moving %b[d0, %k, d1])
 *
 * Merged loads take less time to start, and that is what counts once loads run ahead of what reads them.  At the beginning
 * of a program nothing has run ahead.  So the loads of a buffer stay apart if
 *   - the loops around them do nothing else,
 *   - the engine that reads them first has done nothing before,
 *   - no other load that this reader may wait for comes after them in their queue, because it would start later.  There are
 *     two queues if Scalar and GpSimd compute nothing, and one otherwise (engine_programs/streams.c),
 *   - each brings PART_BYTES at least,
 *   - whoever reads the buffer takes one part at a time, in a loop.  A reader that takes several parts would wait for all of
 *     them, because the count that it waits for is linear in its loops.
 *
 * Linear in the operations: one walk over each function, before anything is merged, finds the buffers.
 */
#include <inttypes.h>

#include "passes/coalesce_transfers/coalesce_transfers.h"
#include "passes/lib/buffers.h"

/* A transfer of this size takes as long to move, in descriptors of 512 bytes, as the next one takes to start. */
static const int64_t PART_BYTES = 64 << 10;

/* What is known of a buffer when its loads have been seen. */
struct filled {
  int64_t loads;   /* of the function, up to the last one of this buffer */
  unsigned worked; /* engines that had done something by then: bits 1 << nisa_engine */
};

struct survey {
  struct arena *arena;
  struct coalesce_parts *out;
  struct table filled; /* buffer -> struct filled *, until it is read */
  struct table read;   /* buffer -> not NULL: what reads it first has been seen */
  int64_t loads;
  unsigned worked;
  bool has_one_queue;
};

static bool is_load(const struct nisa_instr *in) {
  return (in->def->kind == NISA_DMA_COPY || in->def->kind == NISA_DMA_TRANSPOSE) &&
         mem_is_on_chip(nisa_access_space(&in->operand[0])) &&
         !mem_is_on_chip(nisa_access_space(nisa_operand(in, "src")));
}

static void see_load(struct survey *s, const struct nisa_instr *in) {
  const void *buffer = in->operand[0].base.ptr;
  struct filled *f = arena_new(s->arena, struct filled);

  *f = (struct filled){.loads = ++s->loads, .worked = s->worked};
  table_put(&s->filled, buffer, f);
}

/* Decides about the buffers that the instruction is the first to read. */
static void see_reader(struct survey *s, const struct nisa_instr *in) {
  for (int k = 1; k < in->def->n_operands; k++) {
    const struct nisa_access *x = &in->operand[k];
    const struct filled *f = nisa_is_data(x) ? table_get(&s->filled, x->base.ptr) : NULL;
    if (!f || table_get(&s->read, x->base.ptr))
      continue;
    table_put(&s->read, x->base.ptr, s);
    if (!(f->worked >> in->engine & 1) && s->loads - f->loads <= (s->has_one_queue ? 0 : 1))
      table_put(&s->out->apart, x->base.ptr, s->out);
  }
}

static bool is_instruction(MlirOperation op, void *user) {
  struct nisa_instr in;
  (void)user;
  return nisa_op_of(op) && nisa_read(op, &in, NULL);
}

void coalesce_find_parts(struct arena *a, MlirOperation module, struct coalesce_parts *out) {
  struct ir_ops functions = ir_collect_named(a, module, "func.func");

  *out = (struct coalesce_parts){.apart = {.arena = a}};
  for (int f = 0; f < functions.n; f++) {
    struct survey s = {.arena = a, .out = out, .filled = {.arena = a}, .read = {.arena = a}};
    struct ir_ops ops = ir_collect(a, functions.v[f], is_instruction, NULL);
    for (int k = 0; k < ops.n; k++) {
      struct nisa_instr in;
      s.has_one_queue |=
          nisa_read(ops.v[k], &in, NULL) && (in.engine == NISA_ENGINE_SCALAR || in.engine == NISA_ENGINE_GPSIMD);
    }
    for (int k = 0; k < ops.n; k++) {
      struct nisa_instr in;
      if (!nisa_read(ops.v[k], &in, NULL))
        continue;
      if (is_load(&in)) {
        see_load(&s, &in);
        continue;
      }
      see_reader(&s, &in);
      s.worked |= 1u << in.engine;
    }
  }
}

/* The loops around the loop do nothing but contain it. */
static bool is_alone(MlirOperation loop) {
  MlirOperation outer = mlirOperationGetParentOperation(loop);
  for (; ir_is(outer, "scf.for"); loop = outer, outer = mlirOperationGetParentOperation(loop))
    for (MlirOperation op = mlirBlockGetFirstOperation(ir_body(outer)); !mlirOperationIsNull(op);
         op = mlirOperationGetNextInBlock(op))
      if (!mlirOperationEqual(op, loop) && !ir_is_of(op, "arith.") && !ir_is(op, "scf.yield"))
        return false;
  return ir_is(outer, "func.func");
}

/* True if x takes one place of the dimension at a time, in a loop. */
static bool is_part(const struct nisa_access *x, void *dimension) {
  return coalesce_depth_of_index(x, *(const int *)dimension) > 0;
}

bool coalesce_stays_apart(const struct coalesce_parts *parts, const struct repeated *r, int64_t bytes) {
  const struct nisa_access *dst = &r->in.operand[0];
  if (bytes < PART_BYTES || !is_load(&r->in) || !table_get(&parts->apart, dst->base.ptr) || !is_alone(r->loop))
    return false;
  int d = coalesce_dimension_of(r, dst);
  return d >= 0 && coalesce_is_only_read(r->in.op, dst->base, is_part, &d);
}
