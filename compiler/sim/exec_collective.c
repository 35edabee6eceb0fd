/* exec_collective: exchanges with other devices, as in the check (driver/check_collective.c): every device of a group
 * has the same data, and all_to_all gives an array its own parts back. */
#include <assert.h>
#include <string.h>

#include "sim/machine.h"
#include "sim/row.h"

/* An array as [outer][extent][inner bytes], cut along one dimension. */
struct cut {
  int64_t outer, extent, inner;
};

static struct cut cut_at(const struct sim_buffer *b, int dim) {
  struct cut c = {1, 1, sim_type_bytes(b->type)};
  for (int k = 0; k < b->rank; k++)
    *(dim < 0 || k < dim ? &c.outer : k > dim ? &c.inner : &c.extent) *= b->dims[k];
  return c;
}

/* x `op` x … of n equal values, in x's own type, one device after the other. */
static bool combine(struct sim_machine *m, enum sim_type t, char *data, int64_t n) {
  const struct sim_instr *i = m->instr;
  const int size = sim_type_bytes(t);
  for (int64_t at = 0; at < n; at += SIM_CHUNK) {
    const int64_t count = n - at < SIM_CHUNK ? n - at : SIM_CHUNK;
    struct sim_row x, r;
    char *p = data + at * size;
    if (sim_type_is_float(t)) {
      sim_load_f32(t, p, size, count, x.f32);
      for (int64_t d = 1; d < i->devices; d++) {
        if (!sim_work(m, count))
          return false;
        sim_load_f32(t, p, size, count, r.f32);
        sim_arith_f32(i->op[0], count, r.f32, x.f32, r.f32);
        sim_store_f32(t, p, size, count, r.f32); /* rounded at each step */
      }
    } else {
      sim_load_int(t, p, size, count, x.ints);
      for (int64_t d = 1; d < i->devices; d++) {
        if (!sim_work(m, count))
          return false;
        sim_load_int(t, p, size, count, r.ints);
        sim_arith_int(t == SIM_I1 && i->op[0] == SIM_ADD ? SIM_LOGICAL_OR : i->op[0], count, r.ints, x.ints, r.ints);
        sim_store_int(t, p, size, count, r.ints);
      }
    }
  }
  return true;
}

/* Fills dst from src, which is shorter (all_gather), longer (reduce_scatter) or as long along the cut. */
static void place(const struct cut *from, const struct cut *to, enum nisa_kind kind, const char *src, char *dst) {
  for (int64_t o = 0; o < to->outer; o++)
    for (int64_t e = 0; e < to->extent; e++) {
      int64_t source = e; /* reduce_scatter: device 0 gets the first part */
      if (kind == NISA_ALL_GATHER)
        source = e % from->extent;
      memcpy(dst + (o * to->extent + e) * to->inner, src + (o * from->extent + source) * from->inner,
             (size_t)to->inner);
    }
}

bool sim_exec_collective(struct sim_machine *m) {
  const struct sim_instr *i = m->instr;
  struct sim_access dst, src;
  void *copy;
  if (!sim_open(m, 0, &dst) || !sim_open(m, 1, &src))
    return false;
  const struct sim_buffer *to = &m->program->buffers[dst.buffer], *from = &m->program->buffers[src.buffer];
  const int64_t n = src.o->partitions * src.o->elements, n_to = dst.o->partitions * dst.o->elements;
  if (n * src.size != from->bytes || n_to * dst.size != to->bytes || dst.type != src.type || to->rank != from->rank)
    return sim_fail(m, SIM_FAULT_INSTRUCTION, "dst and src are not whole arrays of one type");
  if (!sim_scratch(m, (size_t)(n * src.size), &copy))
    return false;
  for (int64_t p = 0; p < src.o->partitions; p++)
    if (!sim_read_bits(m, &src, p, 0, src.o->elements, (char *)copy + p * src.o->elements * src.size))
      return false;
  if ((i->kind == NISA_ALL_REDUCE || i->kind == NISA_REDUCE_SCATTER) && !combine(m, src.type, copy, n))
    return false;
  const struct cut a = cut_at(from, i->dim), b = cut_at(to, i->dim);
  if (a.outer != b.outer || a.inner != b.inner)
    return sim_fail(m, SIM_FAULT_INSTRUCTION, "dst has another shape than the result");
  place(&a, &b, i->kind, copy, dst.at);
  sim_state_fill(&dst.state, 0, n_to, true);
  m->counts.dma_bytes += n_to * dst.size;
  return true;
}
